"""Sets of up to 64 cards as the bits of a `uint64`.

Compiled code replaces the functions marked `instruction` (`_instructions.py`); plain Python runs what stands here.
"""

from __future__ import annotations

import numpy as np

from card_envs.compiling import rule
from card_envs.compiling._rules import instruction
from card_envs.game import Cards, Int8s

EMPTY = np.uint64(0)
ONE = np.uint64(1)


@instruction
def count(cards: Cards) -> int:
    """Return the number of cards in a set."""
    return int(cards).bit_count()


@instruction
def lowest(cards: Cards) -> int:
    """Return the smallest code in a set, which must not be empty."""
    return (int(cards) & -int(cards)).bit_length() - 1


@instruction
def highest(cards: Cards) -> int:
    """Return the largest code in a set, which must not be empty."""
    return int(cards).bit_length() - 1


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


@instruction
def spread(entries: Int8s, start: int, cards: Cards, length: int) -> None:
    """Write a set as `length` entries, each 0 or 1, from `start` on, card 0 first; `length` is a constant."""
    for card in range(length):
        entries[start + card] = (cards >> np.uint64(card)) & ONE


@instruction
def copy(entries: Int8s, start: int, source: Int8s, length: int) -> None:
    """Write the first `length` entries of `source` from `start` on; `length` is a constant."""
    for i in range(length):
        entries[start + i] = source[i]


@instruction
def some_bits(entries: Int8s, start: int, probe: int) -> Cards:
    """Return the set of those of the 64 entries from `start` on that have a bit in common with `probe`.

    For contiguous entries this takes two instructions on CPUs that have them.
    """
    bits = EMPTY
    for k in range(64):
        if entries[start + k] & probe != 0:
            bits |= ONE << np.uint64(k)
    return bits
