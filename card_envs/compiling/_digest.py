"""Digests of what a loop is made of, as this process imported it.

A digest names machine code in caches and libraries, so it must describe the functions that are compiled, not files that
have been edited since. A function is described by its file if the file still has this function, else by its bytecode:
the former is the same for every version of Python, the latter is known to this process alone.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np

HEX_DIGITS = 16
COMPILERS = ("_digest.py", "_specialize.py", "_rules.py", "_numba.py", "_instructions.py")  # files of this folder
Used: TypeAlias = tuple[tuple[str, Any], ...]  # names, with their values
Sources: TypeAlias = dict[FunctionType, None]  # the functions of a loop, in the order in which they are reached

_compilers = b"".join(Path(__file__).with_name(name).read_bytes() for name in COMPILERS)  # as they are imported


def digest_sources(sources: Sources) -> str:
    """Return a hash of the functions and of the constants that they use."""
    digest = hashlib.sha256(_compilers)
    for function in sources:
        constants = [constant_bytes(value) for _, value in first_used(function)]
        for part in (f"{function.__module__}.{function.__qualname__}".encode(), function_digest(function), *constants):
            digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:HEX_DIGITS]


def is_unchanged(sources: Sources) -> bool:
    """Return whether all names in the functions still mean what they did when the digest was made.

    They do not after `importlib.reload`, which replaces the globals of functions that may be compiled already.
    """
    return all(
        len(now) == len(before) and all(value is value_before for (_, value), (_, value_before) in zip(now, before))
        for now, before in ((tuple(used_by(function)), first_used(function)) for function in sources)
    )


@cache
def first_used(function: FunctionType) -> Used:
    """Return what a function used at the first call, so that digests agree with each other."""
    return tuple(used_by(function))


def used_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals, free variables and default values of a function by name; of modules, "module.attribute".

    Too many rather than too few: any name in its code may be an attribute of any module in it.
    """
    names = dict.fromkeys(_names(function.__code__))
    values = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    values += zip(function.__code__.co_freevars, free_values(function))
    values += [("default", value) for value in function.__defaults__ or ()]
    values += (function.__kwdefaults__ or {}).items()
    modules: set[ModuleType] = set()
    for name, value in values:  # which grows meanwhile
        if not isinstance(value, ModuleType):
            yield name, value
        elif value not in modules:
            modules.add(value)
            values += [(f"{name}.{part}", getattr(value, part)) for part in names if hasattr(value, part)]


def free_values(function: FunctionType) -> Iterator[Any]:
    """Yield the values of a function's free variables; None for one without a value yet."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            yield None


def functions_in(value: Any) -> Iterator[FunctionType]:
    """Yield the plain functions that code runs through a value: itself, what Numba made of it, the parts of a tuple."""
    if isinstance(value, tuple):
        for part in value:
            yield from functions_in(part)
    elif isinstance(value, FunctionType):
        yield value
        yield from _overloads(value)
    elif callable(value) and not isinstance(value, type):  # rules, and all that Numba's decorators return
        function = getattr(value, "py_func", getattr(value, "__wrapped__", None))
        if isinstance(function, FunctionType):
            yield function


def _overloads(function: FunctionType) -> Iterator[FunctionType]:
    """Yield the functions by which Numba's `overload` replaces a function in compiled code."""
    templates: Any = sys.modules.get("numba.core.typing.templates")
    for value, kind in templates.builtin_registry.globals if templates else ():
        if value is function:
            overloads = (getattr(template, "_overload_func", None) for template in getattr(kind, "templates", ()))
            yield from (overload for overload in overloads if isinstance(overload, FunctionType))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function may look up in its globals, attribute names included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def function_digest(function: FunctionType) -> bytes:
    """Return a hash of a function's file if this function is in it as it was imported, else of its bytecode."""
    code = _code_digest(function.__code__)
    content, codes = file_digests(function.__code__.co_filename)
    return content if code in codes else code


@cache  # as the file is now: for a function that is not in it, it does not matter what is
def file_digests(file: str) -> tuple[bytes, frozenset[bytes]]:
    """Return a hash of a file, and the hashes of all functions in it; nothing if it is not a file of Python."""
    try:
        content = Path(file).read_bytes()
        codes = [compile(content, file, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return b"", frozenset()
    for code in codes:  # which grows meanwhile
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    return hashlib.sha256(content).digest(), frozenset(map(_code_digest, codes))


def _code_digest(code: CodeType) -> bytes:
    """Return a hash of all that a function does, not of where it stands."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    digest = hashlib.sha256(repr((code.co_qualname, counts, names)).encode())
    for part in (code.co_code, code.co_exceptiontable, constant_bytes(code.co_consts)):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


def constant_bytes(part: Any) -> bytes:
    """Return a constant of compiled code as bytes; none if the value is not a constant."""
    if isinstance(part, np.ndarray):
        return f"{part.dtype}{part.shape}".encode() + part.tobytes()
    if isinstance(part, tuple):  # its `repr` would abbreviate a large array
        return constant_bytes(type(part)) + str(len(part)).encode() + b"\0".join(map(constant_bytes, part))
    if isinstance(part, frozenset):
        return b"set" + b"\0".join(sorted(map(constant_bytes, part)))
    if isinstance(part, CodeType):
        return _code_digest(part)
    if isinstance(part, Enum):
        return constant_bytes(type(part)) + part.name.encode()
    if part is None or part is ... or isinstance(part, (int, float, complex, str, bytes, np.generic, np.dtype)):
        return f"{type(part).__name__}{part!r}".encode()
    if isinstance(part, type):
        fields = [getattr(part, name, "") for name in ("__name__", "_fields", "_field_defaults")]
        return repr(
            [*fields, [(member.name, member.value) for member in part] if issubclass(part, Enum) else ()]
        ).encode()
    return b""  # compiled code has no other kind of constant
