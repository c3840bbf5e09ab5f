"""Compile rules and loops with Numba; imported only when something has to be compiled.

`_nrt=False` keeps reference counting out of rule functions, which would run two to five times slower with it; it also
turns allocation into a compile-time error. Rules are compiled only as parts of loops (`_Rule`), which halves compile
time. Numba documents neither, hence the pinned range of versions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from typing import Any, cast

from numba import njit
from numba.core import codegen
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime import rtsys

from card_envs.compiling import _instructions  # registers what instructions are before anything is compiled
from card_envs.compiling._cache import with_cache

IN_RULES = {"nopython": True, "_nrt": False, "error_model": "numpy"}


def type_of_global(compiled: Any) -> Any:
    """Return the type of a compiled function, or of an intrinsic, as a global variable."""
    return cpu_target.typing_context.resolve_value_type(compiled)


def compile_rule(function: Any, inline: bool) -> Any:
    return _Rule(function, targetoptions=IN_RULES | {"forceinline": inline})  # else it would be as its caller is


def instruction_of(function: Any) -> Any:
    _instructions.PLAIN[function.__name__] = function
    return getattr(_instructions, function.__name__)


def compile_loop(function: Any, label: str, may_be_kept: Callable[[], bool]) -> Any:
    return with_cache(njit(nogil=True, error_model="numpy")(function), label, may_be_kept)


def compile_kernel(function: Any, interpreted: bool) -> Any:
    from numba import cuda  # importing it takes a tenth of a second

    if not interpreted:
        _let_cuda_compile_rules()
    names = ", ".join(list(inspect.signature(function).parameters)[2:])
    source = f"""def kernel(number, {names}):
        i = cuda.grid(1)
        if i < number:
            loop(i, i + 1, {names})"""  # spelled out, because kernels do not support *arguments
    scope = {"cuda": cuda, "loop": function if interpreted else cuda.jit(device=True)(function)}
    exec(compile(source, function.__code__.co_filename, "exec"), scope)  # the file name determines where the cache is
    kernel = cast(Any, scope["kernel"])
    kernel.__name__ = kernel.__qualname__ = function.__name__
    if interpreted:
        return cuda.jit(kernel)
    with suppress(RuntimeError):  # there is nowhere to write
        return cuda.jit(kernel, cache=True, lto=False)  # without LTO, the GPU runs the PTX that the tests inspect
    return cuda.jit(kernel, lto=False)


def _let_cuda_compile_rules() -> None:
    """Let kernels find the CPU's compiled function in a rule, which they compile for the GPU."""
    from numba.cuda.target import CUDATypingContext

    whole = CUDATypingContext.resolve_value_type
    if not hasattr(whole, "sees_rules"):

        def resolve(self: Any, value: Any) -> Any:
            return whole(self, getattr(value, "compiled", value))  # of a `_rules.Compilable`

        setattr(resolve, "sees_rules", True)  # noqa: B010 - functions have no such attribute to type checkers
        CUDATypingContext.resolve_value_type = resolve


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


@cache
def keep_unoptimized() -> None:
    """Switch off all that Numba does to a module after its front end.

    Raises:
        RuntimeError: this process has compiled for itself, or loaded what was.
    """
    if rtsys._init:
        raise RuntimeError("this process has code for its own processor; code for a target needs a process of its own")
    rtsys.initialize(cpu_target.target_context)  # it is compiled for this process, and runs

    def nothing(self: Any, *_: Any) -> None:
        pass

    def finish(self: Any) -> None:
        self._finalized = True

    # Numba's own functions get no entry point either: the library stands for it, as in `_Linked`.
    replaced: list[tuple[Any, str, Any]] = [
        (CPUContext, "get_executable", lambda self, library, fndesc, env: library),
        (Dispatcher, "add_overload", _Linked.add_overload),
        (codegen.CPUCodeLibrary, "_optimize_functions", nothing),
    ]
    for kind in (codegen.CPUCodeLibrary, codegen.JITCodeLibrary, _Library):
        replaced += [(kind, "_optimize_final_module", nothing), (kind, "_finalize_final_module", finish)]
    for owner, name, function in replaced:
        setattr(owner, name, function)
