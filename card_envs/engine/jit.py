"""Every Numba decorator of the project, in one place.

`_nrt=False` keeps reference counts out of rule functions: without it they run two to five times slower. It also makes
allocation a compile-time error. Rules are compiled as parts of loops alone (`_Rule`), which takes half the time.
Numba documents neither, hence the pinned range of its versions.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar, cast

from numba import config, njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

from card_envs.engine.cache import lasting

Function = TypeVar("Function", bound=Callable[..., Any])

# True where rules run as plain Python (for debugging and coverage).
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

IN_RULES = {"nopython": True, "_nrt": False, "error_model": "numpy"}


def checks_bounds() -> bool:
    """Return whether what is compiled now raises IndexError outside an array, instead of reading or writing there."""
    return bool(config.BOUNDSCHECK)


def rule(function: Function) -> Function:
    """Compile a rule function: no allocation, no exceptions, no Python objects inside."""
    return cast(Function, function if INTERPRETED else _Rule(function, targetoptions=IN_RULES | {"forceinline": True}))


def noinline(function: Function) -> Function:
    """Return a rule function that is called, not inlined: many large ones in one loop would compile for minutes."""
    function = getattr(function, "py_func", function)
    return cast(Function, function if INTERPRETED else _Rule(function, targetoptions=IN_RULES))


def loop(function: Function) -> Function:
    """Compile a loop over tables: cached on disk, runs without the GIL."""
    return cast(Function, lasting(njit(nogil=True, error_model="numpy")(function)))


def threads(function: Function) -> Any:
    """Return a loop as a CUDA kernel, `kernel[blocks, threads, stream](number, *arguments)`: thread i runs it for i alone.

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


class _Rule(CPUDispatcher):
    """A rule function: Python calls it, and compiled code its twin, which is made for linking alone.

    Numba optimises every function and makes machine code of it, then does so again with all that has linked it. Of
    rules, which loops inline, the first is run only where Python calls them; without it loops compile in half the time.
    """

    @cached_property
    def linked(self) -> _Linked:
        return _Linked(self.py_func, self.locals, self.targetoptions, _ForLinking)

    @property
    def is_compiling(self) -> Any:
        return self.linked.is_compiling

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return self.linked.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return self.linked.get_overload(sig)


class _Linked(CPUDispatcher):
    """A rule function as compiled code calls it. There is no entry point: the library stands for it as a key."""

    def add_overload(self, result: Any) -> None:
        self.targetctx.insert_user_function(result.library, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result._replace(entry_point=result.library)


class _ForLinking(Compiler):
    """Numba's compiler up to what can be linked."""

    def compile_extra(self, func: Any) -> Any:
        flags = self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        self.state.library = _Library(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _Library(JITCodeLibrary):
    """Code that is optimised, and becomes machine code, as a part of what links it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True
