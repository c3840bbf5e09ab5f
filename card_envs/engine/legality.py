"""Illegal actions: noted privately, found in one way and reported in one way, for tables, environments and policies.

Masks are handed out, and whoever gets one may write into it. What is legal is therefore kept in packed bits as well,
written together with the mask; only these decide. Word w of a row holds the actions from 64 * w on; the last word of
a row with more than 64 actions holds the last 64 of them, so that both are whole stretches of 64 bytes of the mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import for_loops
from card_envs.engine.rng import advance, below
from card_envs.engine.sets import count, nth, some_bits
from card_envs.game import Cards, Game, Int8s, Int64s, UInt64s

WORD = 64
ONE = np.uint64(1)


class IllegalMove(ValueError):
    """An action that the rules forbid; nothing was played."""


def words(num_actions: int) -> int:
    """Return how many words hold the legal ones of so many actions."""
    return -(-num_actions // WORD)


def word_start(word: int, num_actions: int) -> int:
    """Return the action that the lowest bit of a word stands for."""
    return max(min(WORD * word, num_actions - WORD), 0)


def note_legal(mask: Int8s, legal: UInt64s) -> None:
    """Pack a mask [A] into its words [W]."""
    num_actions = mask.shape[0]
    if num_actions < WORD:
        bits = np.uint64(0)
        for action in range(num_actions):
            bits |= np.uint64(mask[action]) << np.uint64(action)
        legal[0] = bits
        return
    for word in range(legal.shape[0]):
        legal[word] = some_bits(mask, word_start(word, num_actions), 1)


def allows(legal: UInt64s, num_actions: int, action: int) -> bool:
    """Return whether an action, any number, is among the legal ones [W]."""
    if action < 0 or action >= num_actions:
        return False
    word = action // WORD
    return (legal[word] >> np.uint64(action - word_start(word, num_actions))) & ONE != 0


def find_illegal(first: int, last: int, legal: UInt64s, num_actions: int, actions: Int64s) -> int:
    """Return the first of the rows first <= i < last whose action [B] is not among the legal ones [B, W], or -1."""
    for i in range(first, last):
        if not allows(legal[i], num_actions, actions[i]):
            return i
    return -1


def find_legal(
    first: int, last: int, legal: UInt64s, num_actions: int, actions: Int64s, allowed: NDArray[np.bool_]
) -> None:
    """Write into `allowed` [B] which of the actions [B] are among the legal ones [B, W]."""
    for i in range(first, last):
        allowed[i] = allows(legal[i], num_actions, actions[i])


def draw_legal(first: int, last: int, legal: UInt64s, num_actions: int, streams: UInt64s, actions: Int64s) -> int:
    """Write a uniformly drawn one of the legal actions [B, W] of each row into `actions` [B].

    `streams` [B] move on where there is a choice. Returns the first row without a legal action, or -1.
    """
    for i in range(first, last):
        number = 0
        for word in range(legal.shape[1]):
            number += count(own_bits(legal[i], num_actions, word))
        if number == 0:
            return i
        index = below(advance(streams[i : i + 1]), number) if number > 1 else 0
        word = 0
        bits = own_bits(legal[i], num_actions, word)
        while index >= count(bits):
            index -= count(bits)
            word += 1
            bits = own_bits(legal[i], num_actions, word)
        actions[i] = WORD * word + nth(bits, index)
    return -1


def own_bits(legal: UInt64s, num_actions: int, word: int) -> Cards:
    """Return the legal ones among the actions from WORD * word on: the last word begins with some of the word before."""
    return legal[word] >> np.uint64(WORD * word - word_start(word, num_actions))


def unpacked(legal: UInt64s, num_actions: int) -> Int8s:
    """Return the mask [A] of a row [W] of packed bits."""
    mask = np.zeros(num_actions, np.int8)
    for word, bits in enumerate(legal):
        start = word_start(word, num_actions)
        mask[start : start + WORD] = [int(bits) >> k & 1 for k in range(min(WORD, num_actions))]
    return mask


def check_ints(actions: Any, number: int) -> Int64s:
    """Actions as contiguous int64 [number]. Raises ValueError for another shape, or what is no whole number."""
    try:
        actions = np.asarray(actions)
    except ValueError as error:  # lists of several lengths
        raise ValueError(f"actions: expected {number} whole numbers: {error}") from None
    if actions.shape != (number,) or actions.dtype.kind not in "iu":
        raise ValueError(f"actions: expected {number} whole numbers, got {actions.dtype} of shape {actions.shape}")
    return for_loops(np.ascontiguousarray(actions, np.int64))


def is_legal(mask: Int8s, action: int) -> bool:
    """Return whether a mask [A] allows an action."""
    return 0 <= action < len(mask) and bool(mask[action])


def illegal_move(
    game: Game, action: int, mask: Int8s, who: str, text: Callable[[int], str] | None = None
) -> IllegalMove:
    """Return the error for an action that the mask [A] of its position forbids.

    Args:
        game: what is played.
        action: what was chosen.
        mask: what could have been.
        who: whose it was, and where.
        text: an action in the game's notation, where the position is known; None: numbers must do.
    """
    legal = ", ".join(map(text or str, np.flatnonzero(mask).tolist()))
    named = f" ({text(action) if 0 <= action < len(mask) else 'out of range'})" if text else ""
    return IllegalMove(f"{game.name}: action {action}{named} of {who} is illegal; legal: {legal}")
