"""All Numba decorators of the project.

`_nrt=False` keeps reference counting out of rule functions, which would run two to five times slower with it; it also
turns allocation into a compile-time error. Rules are compiled only as parts of loops (`_Rule`), which halves compile
time. Numba documents neither, hence the pinned range of versions.
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

from card_envs.engine._cache import lasting

Function = TypeVar("Function", bound=Callable[..., Any])

# True if rules run as plain Python (for debugging and coverage).
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

IN_RULES = {"nopython": True, "_nrt": False, "error_model": "numpy"}


def checks_bounds() -> bool:
    """Return whether code compiled now raises IndexError for an index out of bounds."""
    return bool(config.BOUNDSCHECK)


def rule(function: Function) -> Function:
    """Compile a rule function: no allocation, no exceptions, no Python objects inside."""
    return cast(Function, function if INTERPRETED else _Rule(function, targetoptions=IN_RULES | {"forceinline": True}))


def noinline(function: Function) -> Function:
    """Compile a rule function that is called, not inlined: inlining many large ones takes minutes to compile."""
    function = getattr(function, "py_func", function)
    return cast(Function, function if INTERPRETED else _Rule(function, targetoptions=IN_RULES))


def loop(function: Function) -> Function:
    """Compile a loop over tables: cached on disk, releases the GIL."""
    return cast(Function, lasting(njit(nogil=True, error_model="numpy")(function)))


def threads(function: Function) -> Any:
    """Return a loop as a CUDA kernel, `kernel[blocks, threads, stream](number, *arguments)`.

    Thread i runs the loop for table i alone: the kernel sets the loop's first two parameters, the ends of the range.
    """
    from numba import cuda  # importing it takes a tenth of a second

    names = ", ".join(list(inspect.signature(function).parameters)[2:])
    source = f"""def kernel(number, {names}):
        i = cuda.grid(1)
        if i < number:
            loop(i, i + 1, {names})"""  # spelled out, because kernels do not support *arguments
    scope = {"cuda": cuda, "loop": function if INTERPRETED else cuda.jit(device=True)(function)}
    exec(compile(source, function.__code__.co_filename, "exec"), scope)  # the file name determines where the cache is
    kernel = cast(Any, scope["kernel"])
    kernel.__name__ = kernel.__qualname__ = function.__name__
    if INTERPRETED:
        return cuda.jit(kernel)
    with suppress(RuntimeError):  # there is nowhere to write
        return cuda.jit(kernel, cache=True, lto=False)  # without LTO, the GPU runs the PTX that the tests inspect
    return cuda.jit(kernel, lto=False)


class _Rule(CPUDispatcher):
    """A rule function: Python calls it directly; compiled code calls a twin that is only made for linking.

    Numba optimizes every function and generates machine code for it, then does so again for every caller that links it.
    Rules are inlined into loops, so their own machine code is needed only when Python calls them. Skipping it halves
    the compile time of loops.
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
    """A rule function as compiled code calls it. It has no entry point, so its library serves as the key."""

    def add_overload(self, result: Any) -> None:
        self.targetctx.insert_user_function(result.library, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result._replace(entry_point=result.library)


class _ForLinking(Compiler):
    """Numba's compiler, stopped as soon as the code can be linked."""

    def compile_extra(self, func: Any) -> Any:
        flags = self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        self.state.library = _Library(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _Library(JITCodeLibrary):
    """Code that is optimized and compiled to machine code only as a part of the code that links it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True
