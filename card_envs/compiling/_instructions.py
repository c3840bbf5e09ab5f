"""The instructions that compiled code has in place of functions marked `instruction`, under the same names.

Where they do not apply, compiled code has the function in plain Python (`PLAIN`).
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.cpu import CPUContext
from numba.core.errors import TypingError
from numba.extending import intrinsic

X86 = platform.machine() in ("x86_64", "AMD64")
ENTRIES = "card_envs.entries."  # the names of functions that turn bits into entries, up to the number of bits

PLAIN: dict[str, Any] = {}  # each function in plain Python, by name
TILE_DTYPES = [types.float32, types.int32, types.float32, types.float32]  # of the arrays of `add_tile`


def _instruction(emit: Any) -> Any:
    """Return a function `uint64 -> int64` from the LLVM instructions that `emit(builder, value)` builds."""

    def typed(context: Any, cards: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return emit(builder, arguments[0])

        return types.int64(types.uint64), generate

    return intrinsic(typed)


# This flag makes the result undefined for the empty set, which callers must not pass.
_NEVER_EMPTY = ir.Constant(ir.IntType(1), 1)
_TOP = ir.Constant(ir.IntType(64), 63)
count = _instruction(lambda builder, cards: builder.ctpop(cards))
lowest = _instruction(lambda builder, cards: builder.cttz(cards, _NEVER_EMPTY))
highest = _instruction(lambda builder, cards: builder.sub(_TOP, builder.ctlz(cards, _NEVER_EMPTY)))


def _vectors(context: Any, signature: Any) -> tuple[int, list[int]]:
    """Return the vector length and the positions to write at; no position means one entry at a time.

    The last two vectors may overlap. Vectors are used only on the CPU, for constant lengths and contiguous arrays,
    without bounds checking.
    """
    length = signature.args[3].literal_value
    arrays = [array for array in signature.args if isinstance(array, types.Array)]
    whole = all(array.layout == "C" for array in arrays)
    if not isinstance(context, CPUContext) or not whole or length < 4 or config.BOUNDSCHECK:
        return 0, []
    size = min(64, 1 << (length.bit_length() - 1))
    return size, [*range(0, length - size, size), length - size]


def _check_constant(length: Any) -> None:
    """Raise TypingError unless the length is a literal or named constant: it selects the vectors."""
    if not isinstance(length, types.IntegerLiteral):
        raise TypingError(f"length: expected a constant, got {length}")


def _at(context: Any, builder: Any, array: Any, value: Any, start: Any, size: int) -> Any:
    """Return a pointer to a vector of entries of an array."""
    entry = builder.gep(context.make_array(array)(context, builder, value).data, [start])
    return builder.bitcast(entry, ir.VectorType(ir.IntType(8), size).as_pointer())


def _bits_as_entries(builder: Any, bits: Any, size: int) -> Any:
    """Return the bits of a `size`-bit integer as a vector of entries, each 0 or 1.

    A function of its own, because it is written in one way for x86 and in another for all other processors: code for
    several targets is made from the same module, in which `other_entries` replaces it.
    """
    kind = ir.FunctionType(ir.VectorType(ir.IntType(8), size), [ir.IntType(size)])
    function = cgutils.get_or_insert_function(builder.module, kind, f"{ENTRIES}{size}")
    if function.is_declaration:
        (x86_entries if X86 else other_entries)(function)
    return builder.call(function, [bits])


def _inline_body(function: Any) -> Any:
    """Return a builder of the body of a function that is inlined wherever it is called."""
    function.linkage = "linkonce_odr"
    function.attributes.add("alwaysinline")
    return ir.IRBuilder(function.append_basic_block())


def x86_entries(function: Any) -> None:
    """Write the body of a function from `_bits_as_entries` for x86: one conversion."""
    builder = _inline_body(function)
    kind = function.function_type.return_type
    bits = builder.bitcast(function.args[0], ir.VectorType(ir.IntType(1), kind.count))
    builder.ret(builder.zext(bits, kind))


def other_entries(function: Any) -> None:
    """Write it for other processors: repeat each byte eight times, select one bit of each copy, not bit by bit."""
    size = function.function_type.return_type.count
    if size < 8:
        x86_entries(function)
        return
    builder = _inline_body(function)
    kind = function.function_type.return_type
    octets = builder.bitcast(function.args[0], ir.VectorType(ir.IntType(8), size // 8))
    places = ir.Constant(ir.VectorType(ir.IntType(32), size), [i // 8 for i in range(size)])
    copies = builder.shuffle_vector(octets, ir.Constant(octets.type, ir.Undefined), places)
    bit_of = ir.Constant(kind, [1 << i % 8 for i in range(size)])
    chosen = builder.icmp_unsigned("!=", builder.and_(copies, bit_of), ir.Constant(kind, None))
    builder.ret(builder.zext(chosen, kind))


def _by_vectors(name: str, vector: Any) -> Any:
    """Return a code generator that writes an array, its first argument, from a position on, by vectors.

    Args:
        name: the function in `PLAIN` for cases without vectors.
        vector: `vector(context, builder, signature, argument, skipped, size)` returns `size` entries of the third
            argument, after the first `skipped` ones.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size, offsets = _vectors(context, signature)
        if not offsets:
            return context.compile_internal(builder, PLAIN[name], signature, arguments)
        for offset in offsets:
            skipped = ir.Constant(ir.IntType(64), offset)
            entries = vector(context, builder, signature, arguments[2], skipped, size)
            target = _at(context, builder, signature.args[0], arguments[0], builder.add(arguments[1], skipped), size)
            builder.store(entries, target, align=1)
        return context.get_dummy_value()

    return generate


def _bits_from(context: Any, builder: Any, signature: Any, cards: Any, skipped: Any, size: int) -> Any:
    return _bits_as_entries(builder, builder.trunc(builder.lshr(cards, skipped), ir.IntType(size)), size)


def _entries_from(context: Any, builder: Any, signature: Any, source: Any, skipped: Any, size: int) -> Any:
    return builder.load(_at(context, builder, signature.args[2], source, skipped, size), align=1)


@intrinsic(prefer_literal=True)
def spread(typing: Any, entries: Any, start: Any, cards: Any, length: Any) -> Any:
    """Write a set as `length` entries, each 0 or 1, from `start` on, card 0 first; `length` is a constant."""
    _check_constant(length)
    return types.void(entries, types.int64, types.uint64, length), _by_vectors("spread", _bits_from)


@intrinsic(prefer_literal=True)
def copy(typing: Any, entries: Any, start: Any, source: Any, length: Any) -> Any:
    """Write the first `length` entries of `source` from `start` on; `length` is a constant."""
    _check_constant(length)
    return types.void(entries, types.int64, source, length), _by_vectors("copy", _entries_from)


@intrinsic
def copy_state(typing: Any, source: Any, i: Any, target: Any, k: Any) -> Any:
    """Copy a State by words; an assignment would load all of it into the registers of a GPU's thread first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if source.dtype.size % 8 or source.dtype != target.dtype or config.BOUNDSCHECK:
            return context.compile_internal(builder, PLAIN["copy_state"], signature, arguments)
        words = []
        for kind, array, index in ((source, *arguments[:2]), (target, *arguments[2:])):
            place = cgutils.get_item_pointer(
                context, builder, kind, context.make_array(kind)(context, builder, array), [index]
            )
            words.append(builder.bitcast(place, ir.IntType(64).as_pointer()))
        number = context.get_constant(types.intp, source.dtype.size // 8)
        with cgutils.for_range(builder, number) as loop:
            read, write = (builder.gep(word, [loop.index]) for word in words)
            builder.store(builder.load(read, align=8), write, align=8)
        return context.get_dummy_value()

    return types.void(source, types.intp, target, types.intp), generate


def _vector(builder: Any, array: Any, start: Any) -> tuple[Any, Any]:
    """Return a pointer to 64 contiguous entries of an array, and their type."""
    kind = ir.VectorType(ir.IntType(8), 64)
    return builder.bitcast(builder.gep(array.data, [start]), kind.as_pointer()), kind


def _broadcast(builder: Any, value: Any, kind: Any) -> Any:
    """Return a vector with the value in every entry."""
    undefined, lanes = ir.Constant(kind, ir.Undefined), ir.VectorType(ir.IntType(32), kind.count)
    vector = builder.insert_element(undefined, value, ir.Constant(lanes.element, 0))
    return builder.shuffle_vector(vector, undefined, ir.Constant(lanes, None))


@intrinsic
def some_bits(typing: Any, entries: Any, start: Any, probe: Any) -> Any:
    """Return the set of those of the 64 entries from `start` on that have a bit in common with `probe`.

    For contiguous entries this takes two instructions on CPUs that have them.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if not isinstance(context, CPUContext) or signature.args[0].layout != "C":
            return context.compile_internal(builder, PLAIN["some_bits"], signature, arguments)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place, kind = _vector(builder, array, arguments[1])
        common = builder.and_(
            builder.load(place, align=1), _broadcast(builder, builder.trunc(arguments[2], kind.element), kind)
        )
        return builder.bitcast(builder.icmp_unsigned("!=", common, ir.Constant(kind, None)), ir.IntType(64))

    return types.uint64(entries, types.int64, types.int64), generate


@intrinsic(prefer_literal=True)
def add_tile(  # type: ignore[no-untyped-def]
    typing, weights, entry, value, first, last, sums, column, size
) -> Any:
    """Keep the sums of a tile in registers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [array for array in signature.args if isinstance(array, types.Array)]
        whole = all(array.layout == "C" for array in arrays) and [array.dtype for array in arrays] == TILE_DTYPES
        columns = signature.args[-1]
        constant = isinstance(columns, types.IntegerLiteral)
        if not whole or not constant or not isinstance(context, CPUContext) or config.BOUNDSCHECK:
            return context.compile_internal(builder, PLAIN["add_tile"], signature, arguments)
        number = columns.literal_value
        kind = ir.VectorType(ir.FloatType(), number)
        table, rows, times, target = (
            context.make_array(array)(context, builder, arguments[i]) for array, i in zip(arrays, (0, 1, 2, 5))
        )
        begin, end, start = (context.cast(builder, arguments[i], signature.args[i], types.intp) for i in (3, 4, 6))
        place = builder.bitcast(builder.gep(target.data, [start]), kind.as_pointer())
        total = cgutils.alloca_once_value(builder, builder.load(place, align=4))
        width = builder.extract_value(table.shape, 1)
        with cgutils.for_range_slice(builder, begin, end, context.get_constant(types.intp, 1)) as (k, _):
            row = builder.sext(builder.load(builder.gep(rows.data, [k])), ir.IntType(64))
            origin = builder.gep(table.data, [builder.add(builder.mul(row, width), start)])
            weight = builder.load(builder.bitcast(origin, kind.as_pointer()), align=4)
            factor = builder.load(builder.gep(times.data, [k]))
            builder.store(
                builder.fadd(builder.load(total), builder.fmul(_broadcast(builder, factor, kind), weight)), total
            )
        builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return types.void(weights, entry, value, first, last, sums, column, size), generate
