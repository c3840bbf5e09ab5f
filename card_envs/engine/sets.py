"""Sets of up to 64 cards as the bits of a `uint64`; plain Python replaces the intrinsics if Numba is switched off."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cpu import CPUContext
from numba.core.errors import TypingError
from numba.extending import intrinsic

from card_envs.engine.jit import INTERPRETED, checks_bounds, rule
from card_envs.game import Cards, Int8s

X86 = platform.machine() in ("x86_64", "AMD64")
EMPTY = np.uint64(0)
ONE = np.uint64(1)


def _instruction(emit: Any) -> Any:
    """Return a function `uint64 -> int64` from the LLVM instructions that `emit(builder, value)` builds."""

    def typed(context: Any, cards: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return emit(builder, arguments[0])

        return types.int64(types.uint64), generate

    return intrinsic(typed)


if INTERPRETED:

    def count(cards: Cards) -> int:
        return int(cards).bit_count()

    def lowest(cards: Cards) -> int:
        return (int(cards) & -int(cards)).bit_length() - 1

    def highest(cards: Cards) -> int:
        return int(cards).bit_length() - 1

else:
    # This flag makes the result undefined for the empty set, which callers must not pass.
    _NEVER_EMPTY = ir.Constant(ir.IntType(1), 1)
    _TOP = ir.Constant(ir.IntType(64), 63)
    count = _instruction(lambda builder, cards: builder.ctpop(cards))
    lowest = _instruction(lambda builder, cards: builder.cttz(cards, _NEVER_EMPTY))
    highest = _instruction(lambda builder, cards: builder.sub(_TOP, builder.ctlz(cards, _NEVER_EMPTY)))


@rule
def bit(card: int) -> Cards:
    """Return the set of one card."""
    return ONE << np.uint64(card)


@rule
def below_card(card: int) -> Cards:
    """Return the set of all cards with a smaller code."""
    return (ONE << np.uint64(card)) - ONE


@rule
def above_card(card: int) -> Cards:
    """Return the set of all cards with a larger code, up to 63."""
    return ~((np.uint64(2) << np.uint64(card)) - ONE)


@rule
def nth(cards: Cards, index: int) -> int:
    """Return the card at `index` (0: the smallest code) of a set with more than `index` cards."""
    for _ in range(index):
        cards &= cards - ONE
    return lowest(cards)


def _spread(entries: Int8s, start: int, cards: Cards, length: int) -> None:
    for card in range(length):
        entries[start + card] = (cards >> np.uint64(card)) & ONE


def _copy(entries: Int8s, start: int, source: Int8s, length: int) -> None:
    for i in range(length):
        entries[start + i] = source[i]


def _some_bits(entries: Int8s, start: int, probe: int) -> Cards:
    bits = EMPTY
    for k in range(64):
        if entries[start + k] & probe != 0:
            bits |= ONE << np.uint64(k)
    return bits


if INTERPRETED:
    spread, copy, some_bits = _spread, _copy, _some_bits

    def set_bits(entries: Int8s, start: int, cards: Cards, probe: int) -> None:
        named = np.unpackbits(np.array([cards], np.uint64).view(np.uint8), bitorder="little")
        entries[start : start + 64].view(np.uint8)[:] |= named * np.uint8(probe)

else:

    def _vectors(context: Any, signature: Any) -> tuple[int, list[int]]:
        """Return the vector length and the positions to write at; no position means one entry at a time.

        The last two vectors may overlap. Vectors are used only on the CPU, for constant lengths and contiguous arrays,
        without bounds checking.
        """
        length = signature.args[3].literal_value
        arrays = [array for array in signature.args if isinstance(array, types.Array)]
        whole = all(array.layout == "C" for array in arrays)
        if not isinstance(context, CPUContext) or not whole or length < 4 or checks_bounds():
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

    def _entries(builder: Any, bits: Any, size: int) -> Any:
        """Return the bits of a `size`-bit integer as a vector of entries, each 0 or 1."""
        kind = ir.VectorType(ir.IntType(8), size)
        if X86 or size < 8:
            return builder.zext(builder.bitcast(bits, ir.VectorType(ir.IntType(1), size)), kind)
        # Other targets would move bit by bit. Instead: repeat each byte eight times, then select one bit of each copy.
        octets = builder.bitcast(bits, ir.VectorType(ir.IntType(8), size // 8))
        places = ir.Constant(ir.VectorType(ir.IntType(32), size), [i // 8 for i in range(size)])
        copies = builder.shuffle_vector(octets, ir.Constant(octets.type, ir.Undefined), places)
        bit_of = ir.Constant(kind, [1 << i % 8 for i in range(size)])
        return builder.zext(builder.icmp_unsigned("!=", builder.and_(copies, bit_of), ir.Constant(kind, None)), kind)

    @intrinsic(prefer_literal=True)
    def spread(typing: Any, entries: Any, start: Any, cards: Any, length: Any) -> Any:
        """Write a set as `length` entries, each 0 or 1, from `start` on, card 0 first; `length` is a constant."""
        _check_constant(length)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            size, offsets = _vectors(context, signature)
            if not offsets:
                return context.compile_internal(builder, _spread, signature, arguments)
            for offset in offsets:
                skipped = ir.Constant(ir.IntType(64), offset)
                part = builder.trunc(builder.lshr(arguments[2], skipped), ir.IntType(size))
                target = _at(
                    context, builder, signature.args[0], arguments[0], builder.add(arguments[1], skipped), size
                )
                builder.store(_entries(builder, part, size), target, align=1)
            return context.get_dummy_value()

        return types.void(entries, types.int64, types.uint64, length), generate

    @intrinsic(prefer_literal=True)
    def copy(typing: Any, entries: Any, start: Any, source: Any, length: Any) -> Any:
        """Write the first `length` entries of `source` from `start` on; `length` is a constant."""
        _check_constant(length)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            size, offsets = _vectors(context, signature)
            if not offsets:
                return context.compile_internal(builder, _copy, signature, arguments)
            for offset in offsets:
                skipped = ir.Constant(ir.IntType(64), offset)
                origin = _at(context, builder, signature.args[2], arguments[2], skipped, size)
                target = _at(
                    context, builder, signature.args[0], arguments[0], builder.add(arguments[1], skipped), size
                )
                builder.store(builder.load(origin, align=1), target, align=1)
            return context.get_dummy_value()

        return types.void(entries, types.int64, source, length), generate

    def _vector(builder: Any, array: Any, start: Any) -> tuple[Any, Any]:
        """Return a pointer to 64 contiguous entries of an array, and their type."""
        kind = ir.VectorType(ir.IntType(8), 64)
        return builder.bitcast(builder.gep(array.data, [start]), kind.as_pointer()), kind

    def _repeated(builder: Any, value: Any, kind: Any) -> Any:
        """Return a vector that repeats the lowest 8 bits of an integer."""
        nothing, lanes = ir.Constant(kind, ir.Undefined), ir.VectorType(ir.IntType(32), kind.count)
        one = builder.insert_element(nothing, builder.trunc(value, kind.element), ir.Constant(lanes.element, 0))
        return builder.shuffle_vector(one, nothing, ir.Constant(lanes, None))

    @intrinsic
    def some_bits(typing: Any, entries: Any, start: Any, probe: Any) -> Any:
        """Return the set of those of the 64 entries from `start` on that have a bit in common with `probe`.

        For contiguous entries this takes two instructions on CPUs that have them.
        """

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if not isinstance(context, CPUContext) or signature.args[0].layout != "C":
                return context.compile_internal(builder, _some_bits, signature, arguments)
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            place, kind = _vector(builder, array, arguments[1])
            common = builder.and_(builder.load(place, align=1), _repeated(builder, arguments[2], kind))
            return builder.bitcast(builder.icmp_unsigned("!=", common, ir.Constant(kind, None)), ir.IntType(64))

        return types.uint64(entries, types.int64, types.int64), generate

    @intrinsic
    def set_bits(typing: Any, entries: Any, start: Any, cards: Any, probe: Any) -> Any:
        """Set the bits of `probe` in the entries that a set names, among 64 contiguous ones from `start` on."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            place, kind = _vector(builder, array, arguments[1])
            named = builder.neg(_entries(builder, arguments[2], 64))
            added = builder.and_(named, _repeated(builder, arguments[3], kind))
            builder.store(builder.or_(builder.load(place, align=1), added), place, align=1)
            return context.get_dummy_value()

        return types.void(entries, types.int64, types.uint64, types.int64), generate
