"""Illegal actions: detected and reported in the same way by tables, environments and policies.

Masks are handed out to users, who may write into them. The legal actions are therefore also kept as private packed
bits, written together with the mask; only these decide. Word w of a row holds the actions from 64 * w on. The last word
of a row with more than 64 actions holds the last 64 actions, so that every word is packed from 64 contiguous bytes of
the mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import as_writable
from card_envs.engine.rng import advance, below
from card_envs.engine.sets import count, nth, some_bits
from card_envs.game import Cards, Game, Int8s, Int64s, UInt64s

WORD = 64
ONE = np.uint64(1)


class IllegalMove(ValueError):
    """An action that the rules forbid; nothing was played."""


def num_words(num_actions: int) -> int:
    """Return the number of words for the legal bits of `num_actions` actions."""
    return -(-num_actions // WORD)


def word_start(word: int, num_actions: int) -> int:
    """Return the action of the lowest bit of a word."""
    return max(min(WORD * word, num_actions - WORD), 0)


def pack_mask(mask: Int8s, legal: UInt64s) -> None:
    """Pack a mask [A] into words [W]."""
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
    """Return whether an action, any integer, is legal according to the words [W]."""
    if action < 0 or action >= num_actions:
        return False
    word = action // WORD
    return (legal[word] >> np.uint64(action - word_start(word, num_actions))) & ONE != 0


def find_illegal(first: int, last: int, legal: UInt64s, num_actions: int, actions: Int64s) -> int:
    """Return the first row in first <= i < last whose action [B] is not legal in `legal` [B, W], or -1."""
    for i in range(first, last):
        if not allows(legal[i], num_actions, actions[i]):
            return i
    return -1


def find_legal(
    first: int, last: int, legal: UInt64s, num_actions: int, actions: Int64s, allowed: NDArray[np.bool_]
) -> None:
    """Write into `allowed` [B] which of the actions [B] are legal in `legal` [B, W]."""
    for i in range(first, last):
        allowed[i] = allows(legal[i], num_actions, actions[i])


def draw_legal(first: int, last: int, legal: UInt64s, num_actions: int, streams: UInt64s, actions: Int64s) -> int:
    """Draw a legal action in `legal` [B, W] uniformly for each row and write it into `actions` [B].

    Advances `streams` [B] where there is a choice. Returns the first row without a legal action, or -1.
    """
    for i in range(first, last):
        number = 0
        for word in range(legal.shape[1]):
            number += count(bits_from(legal[i], num_actions, word))
        if number == 0:
            return i
        index = below(advance(streams[i : i + 1]), number) if number > 1 else 0
        word = 0
        bits = bits_from(legal[i], num_actions, word)
        while index >= count(bits):
            index -= count(bits)
            word += 1
            bits = bits_from(legal[i], num_actions, word)
        actions[i] = WORD * word + nth(bits, index)
    return -1


def bits_from(legal: UInt64s, num_actions: int, word: int) -> Cards:
    """Return the legal bits of the actions from WORD * word on.

    The last word also holds actions of the word before it, which are removed here.
    """
    return legal[word] >> np.uint64(WORD * word - word_start(word, num_actions))


def unpack_mask(legal: UInt64s, num_actions: int) -> Int8s:
    """Return the mask [A] of a row [W] of packed bits."""
    mask = np.zeros(num_actions, np.int8)
    for word, bits in enumerate(legal):
        start = word_start(word, num_actions)
        mask[start : start + WORD] = [int(bits) >> k & 1 for k in range(min(WORD, num_actions))]
    return mask


def check_ints(actions: Any, number: int) -> Int64s:
    """Return actions as contiguous int64 [number]. Raises ValueError for another shape or dtype."""
    try:
        actions = np.asarray(actions)
    except ValueError as error:  # ragged lists
        raise ValueError(f"actions: expected {number} whole numbers: {error}") from None
    if actions.shape != (number,) or actions.dtype.kind not in "iu":
        raise ValueError(f"actions: expected {number} whole numbers, got {actions.dtype} of shape {actions.shape}")
    return as_writable(np.ascontiguousarray(actions, np.int64))


def is_legal(mask: Int8s, action: int) -> bool:
    """Return whether a mask [A] allows an action."""
    return 0 <= action < len(mask) and bool(mask[action])


def illegal_move(
    game: Game, action: int, mask: Int8s, who: str, text: Callable[[int], str] | None = None
) -> IllegalMove:
    """Return the error for an action that the mask [A] of its position forbids.

    Args:
        game: the game.
        action: the illegal action.
        mask: the legal ones.
        who: who chose it, and where.
        text: formats an action in the game's notation; None if the position is unknown: numbers only.
    """
    legal = ", ".join(map(text or str, np.flatnonzero(mask).tolist()))
    named = f" ({text(action) if 0 <= action < len(mask) else 'out of range'})" if text else ""
    return IllegalMove(f"{game.name}: action {action}{named} of {who} is illegal; legal: {legal}")
