"""Functions that are compiled once something calls them: rules, and instructions. No compiler is imported before.

Compiled code finds such a function among its globals by `_numba_type_`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# True if rules run as plain Python (for debugging and coverage).
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def instruction(function: Function) -> Function:
    """Declare a function that compiled code replaces by instructions of its own: see `_instructions.py`."""
    return cast(Function, function if INTERPRETED else Instruction(function))


def plain(function: Function) -> Function:
    """Return the plain Python of a function, compiled or not."""
    return cast(Function, getattr(function, "py_func", function))


class Compilable:
    """A function that is compiled when compiled code or Python calls it.

    Attributes:
        py_func: the function in plain Python.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = function
        update_wrapper(self, function)

    @cached_property
    def compiled(self) -> Any:
        """The function as Numba compiled it."""
        raise NotImplementedError

    @property
    def _numba_type_(self) -> Any:
        """The type of this function as a global variable of compiled code."""
        from card_envs.engine import _numba

        return _numba.type_of(self.compiled)

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.__module__}.{self.__qualname__}>"  # type: ignore[attr-defined]


class Rule(Compilable):
    """A rule function."""

    def __init__(self, function: Callable[..., Any], inline: bool) -> None:
        super().__init__(function)
        self.inline = inline

    @cached_property
    def compiled(self) -> Any:
        from card_envs.engine import _numba

        return _numba.compiled_rule(self.py_func, self.inline)


class Instruction(Compilable):
    """A function that stands for instructions; Python runs it as it is written."""

    @cached_property
    def compiled(self) -> Any:
        from card_envs.engine import _numba

        return _numba.instruction_of(self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)
