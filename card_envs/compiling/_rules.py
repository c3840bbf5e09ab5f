"""The decorators of compiled functions. Importing them imports no compiler: Numba is loaded when it has to compile.

Rules (`rule`) are compiled as parts of loops; `specialize` turns loops into machine code. Where a library that was
built ahead of time has a loop, Numba is never imported (`compiling/_library.py`). Compiled code finds a decorated
function among its globals by `_numba_type_`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# True if rules run as plain Python (for debugging and coverage).
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def checks_bounds() -> bool:
    """Return whether code compiled now raises IndexError for an index out of bounds."""
    config = getattr(sys.modules.get("numba"), "config", None)
    return bool(config.BOUNDSCHECK) if config else os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")


def rule(function: Function) -> Function:
    """Compile a rule function: no allocation, no exceptions, no Python objects inside."""
    return cast(Function, function if INTERPRETED else Rule(function, inline=True))


def noinline(function: Function) -> Function:
    """Compile a rule function that is called, not inlined: inlining many large ones takes minutes to compile."""
    return cast(Function, plain_function(function) if INTERPRETED else Rule(plain_function(function), inline=False))


def instruction(function: Function) -> Function:
    """Declare a function that compiled code replaces by instructions of its own: see `_instructions.py`."""
    return cast(Function, function if INTERPRETED else Instruction(function))


def loop(function: Function, label: str = "a loop", may_be_kept: Callable[[], bool] = lambda: True) -> Function:
    """Compile a loop over tables: it releases the GIL.

    Args:
        function: the loop.
        label: what it is compiled for.
        may_be_kept: called once it is compiled; returns whether the disk cache may have it.
    """
    from card_envs.compiling import _numba

    return cast(Function, _numba.compile_loop(function, label, may_be_kept))


def threads(function: Function) -> Any:
    """Return a loop as a CUDA kernel, `kernel[blocks, threads, stream](number, *arguments)`.

    Thread i runs the loop for table i alone: the kernel sets the loop's first two parameters, the ends of the range.
    """
    from card_envs.compiling import _numba

    return _numba.compile_kernel(function, INTERPRETED)


def plain_function(function: Function) -> Function:
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
        from card_envs.compiling import _numba

        return _numba.type_of_global(self.compiled)

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.__module__}.{self.__qualname__}>"  # type: ignore[attr-defined]


class Rule(Compilable):
    """A rule function, inlined or called."""

    def __init__(self, function: Callable[..., Any], inline: bool) -> None:
        super().__init__(function)
        self.inline = inline

    @cached_property
    def compiled(self) -> Any:
        from card_envs.compiling import _numba

        return _numba.compile_rule(self.py_func, self.inline)


class Instruction(Compilable):
    """A function that stands for instructions; Python runs it as it is written."""

    @cached_property
    def compiled(self) -> Any:
        from card_envs.compiling import _numba

        return _numba.instruction_of(self.py_func)

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)
