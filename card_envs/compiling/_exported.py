"""Plain C functions out of loops: arguments come from a caller's memory and numbers, or are constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numpy.typing import NDArray

from card_envs.compiling._ir import STATUS, Call, _with_entry, array_at, pointer_to
from card_envs.compiling.loops import type_of_argument

FAILED = -100  # what a function returns where Python would raise: never, unless the code is wrong


@dataclass(frozen=True, eq=False)
class Pointer:
    """An array in memory of the caller: `offset` bytes behind parameter number `parameter`."""

    parameter: int
    array: NDArray[Any]
    offset: int = 0


@dataclass(frozen=True)
class Number:
    """An int32 of the caller: parameter number `parameter`."""

    parameter: int


@dataclass(frozen=True, eq=False)
class Local:
    """An array that lasts as long as the call; its initial contents are undefined."""

    array: NDArray[Any]


def argument_type(value: Any) -> Any:
    """Return the Numba type of an argument."""
    if isinstance(value, (Pointer, Local)):
        return type_of_argument(value.array)
    if isinstance(value, Number):
        return types.int64
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return types.NamedTuple([argument_type(part) for part in value], type(value))
    return type_of_argument(value)


def parts_of(value: Any) -> list[Any]:
    """Return the parts of a tuple, nested tuples flattened; a list of the argument itself if it is not a tuple."""
    return [part for inner in value for part in parts_of(inner)] if isinstance(value, tuple) else [value]


@global_compiler_lock
def export_function(function: Any, arguments: Sequence[Any], symbol: str, aliases: Sequence[str] = ()) -> str:
    """Return a module, for `link_modules`, with `int32 symbol(…)`, which calls a loop and returns its int, or FAILED.

    Args:
        function: a loop whose helpers are a game's own; returns an int or None (the function then returns 0).
        arguments: the loop's arguments: `Pointer`, `Number`, `Local`, constants, and named tuples of these.
        symbol: the name of the function.
        aliases: more names for the function.
    """
    parameters: dict[int, Any] = {}
    for part in parts_of(tuple(arguments)):
        if isinstance(part, (Pointer, Number)):
            parameters[part.parameter] = STATUS if isinstance(part, Number) else cgutils.voidptr_t

    def body(context: Any, builder: Any, call: Call, returns: Any) -> None:
        received = builder.function.args

        def argument(value: Any) -> Any:
            kind = argument_type(value)
            if isinstance(value, Number):
                return context.cast(builder, received[value.parameter], types.int32, types.int64)
            if isinstance(value, (Pointer, Local)):
                if isinstance(value, Pointer):
                    data = builder.gep(received[value.parameter], [ir.Constant(ir.IntType(32), value.offset)])
                else:
                    data = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(64), -(-value.array.nbytes // 8)))
                shape = [ir.Constant(ir.IntType(64), length) for length in value.array.shape]
                return array_at(context, builder, kind, builder.bitcast(data, pointer_to(context, kind)), shape)
            if isinstance(value, tuple):
                return context.make_tuple(builder, kind, [argument(part) for part in value])
            return context.get_dummy_value() if value is None else context.get_constant_generic(builder, kind, value)

        status, value = call(list(map(argument, arguments)))
        if isinstance(returns, types.NoneType):
            number = ir.Constant(STATUS, 0)
        else:
            number = context.cast(builder, value, returns, types.int32)
        builder.ret(builder.select(status.is_ok, number, ir.Constant(STATUS, FAILED)))

    count = max(parameters) + 1
    signature = tuple(map(argument_type, arguments))
    text, _ = _with_entry(function, signature, symbol, [parameters[k] for k in range(count)], body, aliases)
    return text


def memory_of(values: Any, parameter: int) -> tuple[Any, list[tuple[int, NDArray[Any]]], int]:
    """Lay all arrays of some arguments out in one block of memory.

    Arrays with something in them come first, so that only the beginning of the block has to be stored.

    Args:
        values: a tuple of arguments; arrays in it are to lie in the block.
        parameter: the number of the parameter that points to it.

    Returns:
        The same tuple with a `Pointer` for each array; the initial contents of the block, as offsets with arrays; and
        its size in bytes.
    """
    arrays: dict[tuple[int, int], NDArray[Any]] = {}

    def key_of(array: NDArray[Any]) -> tuple[int, int]:
        return array.ctypes.data, array.nbytes

    for part in parts_of(values):
        if isinstance(part, np.ndarray):
            arrays.setdefault(key_of(part), part)
    has_content = {key: bool(array.view(np.uint8).any()) for key, array in arrays.items()}
    offsets, size = {}, 0
    for key in sorted(arrays, key=has_content.__getitem__, reverse=True):
        offsets[key] = size
        size += -(-max(arrays[key].nbytes, 1) // 64) * 64

    def with_pointers(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return Pointer(parameter, value, offsets[key_of(value)])
        if isinstance(value, tuple):
            parts = [with_pointers(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    initial = [(offset, arrays[key]) for key, offset in offsets.items() if has_content[key]]
    return with_pointers(values), initial, size
