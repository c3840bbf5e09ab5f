"""Sets of up to 64 cards as the bits of a `uint64`; plain Python stands in where Numba is switched off."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from card_envs.engine.jit import INTERPRETED, rule
from card_envs.game import Cards, Int8s

EMPTY = np.uint64(0)
ONE = np.uint64(1)


def _instruction(emit: Any) -> Any:
    """A function `uint64 -> int64` made of the LLVM instructions that `emit(builder, value)` writes."""

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
    # The flag says that the empty set is never asked for; its "lowest" card is undefined.
    _NEVER_EMPTY = ir.Constant(ir.IntType(1), 1)
    _TOP = ir.Constant(ir.IntType(64), 63)
    count = _instruction(lambda builder, cards: builder.ctpop(cards))
    lowest = _instruction(lambda builder, cards: builder.cttz(cards, _NEVER_EMPTY))
    highest = _instruction(lambda builder, cards: builder.sub(_TOP, builder.ctlz(cards, _NEVER_EMPTY)))


@rule
def bit(card: int) -> Cards:
    """The set of one card."""
    return ONE << np.uint64(card)


@rule
def below_card(card: int) -> Cards:
    """The set of all cards with a smaller code."""
    return (ONE << np.uint64(card)) - ONE


@rule
def above_card(card: int) -> Cards:
    """The set of all cards with a larger code, up to 63."""
    return ~((np.uint64(2) << np.uint64(card)) - ONE)


@rule
def nth(cards: Cards, index: int) -> int:
    """The card at `index` (0: the smallest code) of a set that holds more cards than that."""
    for _ in range(index):
        cards &= cards - ONE
    return lowest(cards)


@rule
def set_bits(entries: Int8s, start: int, cards: Cards) -> None:
    """Set the entry of each card of a set to 1; that of card 0 is at `start`."""
    while cards:
        entries[start + lowest(cards)] = 1
        cards &= cards - ONE
