"""Every Numba decorator of the project, in one place.

`_nrt=False` (an undocumented option, hence the pinned range of Numba versions) keeps reference counts out of
rule functions: without it they run two to five times slower. It also makes allocation a compile-time error.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from numba import config, njit

from card_envs.engine.cache import lasting

Function = TypeVar("Function", bound=Callable[..., Any])

# True where rules run as plain Python (for debugging and coverage).
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def checks_bounds() -> bool:
    """Whether what is compiled now raises IndexError outside an array, instead of reading or writing there."""
    return bool(config.BOUNDSCHECK)


def rule(function: Function) -> Function:
    """Compile a rule function: no allocation, no exceptions, no Python objects inside."""
    return cast(Function, njit(_nrt=False, forceinline=True, error_model="numpy")(function))


def apart(function: Function) -> Function:
    """A rule function that is called, not inlined: many large ones in one loop would compile for minutes."""
    return cast(Function, njit(_nrt=False, error_model="numpy")(getattr(function, "py_func", function)))


def loop(function: Function) -> Function:
    """Compile a loop over tables: cached on disk, runs without the GIL."""
    return cast(Function, lasting(njit(nogil=True, error_model="numpy")(function)))


def threads(function: Function) -> Any:
    """A loop as a CUDA kernel, `kernel[blocks, threads, stream](number, *arguments)`: thread i runs it for i alone.

    The loop's first two parameters are the ends of the range, which the kernel sets.
    """
    from numba import cuda  # takes a tenth of a second

    names = ", ".join(list(inspect.signature(function).parameters)[2:])
    source = f"""def kernel(number, {names}):
        i = cuda.grid(1)
        if i < number:
            loop(i, i + 1, {names})"""  # in so many words, for launches know no *arguments
    scope = {"cuda": cuda, "loop": function if INTERPRETED else cuda.jit(device=True)(function)}
    exec(compile(source, function.__code__.co_filename, "exec"), scope)  # the file says where the cache belongs
    kernel = cast(Any, scope["kernel"])
    kernel.__name__ = kernel.__qualname__ = function.__name__
    if INTERPRETED:
        return cuda.jit(kernel)
    with suppress(RuntimeError):  # there is nowhere to write
        return cuda.jit(kernel, cache=True, lto=False)  # what runs is then the PTX that tests look at
    return cuda.jit(kernel, lto=False)
