"""One thread at a time: compiled loops release the GIL, so two threads in one object would corrupt it silently."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Owner = TypeVar("Owner")


class Holder(dict[None, int]):
    """The thread that is inside an object, if any. A copy is empty.

    Its two operations are atomic. A thread may enter again, so a Ctrl-C between them locks nobody out for good.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return Holder, ()

    def enter(self, who: object, what: str) -> None:
        """Claim the object for this thread. Raises RuntimeError, without side effects, if another thread holds it."""
        this_thread = get_ident()
        if self.setdefault(None, this_thread) != this_thread:
            raise RuntimeError(
                f"{type(who).__name__}.{what}: another thread is inside this object; "
                "give each thread its own, or share it under a lock"
            )

    def leave(self) -> None:
        """Release the object."""
        self.clear()


def exclusive(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Run a method only if no other thread is inside the same object, which has a `_holder`.

    Raises:
        RuntimeError: another thread is inside; this call changed nothing.
    """

    @wraps(method)
    def alone(self: Owner, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        holder: Holder = self._holder  # type: ignore[attr-defined]
        holder.enter(self, method.__name__)
        try:
            return method(self, *arguments, **named)
        finally:
            holder.leave()

    return cast(Callable[Concatenate[Owner, Arguments], Result], alone)
