"""Illegal actions: found in one way and reported in one way, for tables, environments and comparisons alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.compile import bind
from card_envs.game import Game, Int8s, Int64s


class IllegalMove(ValueError):
    """An action that the rules forbid; nothing was played."""


def is_legal(mask: Int8s, action: int) -> bool:
    """Whether a mask [A] allows an action."""
    return 0 <= action < len(mask) and mask[action] != 0


def find_illegal(first: int, last: int, mask: Int8s, actions: Int64s) -> int:
    """The first of the rows first <= i < last whose action [B] its mask [B, A] forbids, or -1."""
    for i in range(first, last):
        if not is_legal(mask[i], actions[i]):
            return i
    return -1


def first_illegal(mask: Int8s, actions: Int64s) -> int:
    """The first row whose action [n] its mask [n, A] forbids, or -1."""
    return bind(find_illegal)(0, len(actions), mask, actions)


def whole_numbers(actions: Any, number: int) -> Int64s:
    """Actions as int64 [number]. Raises ValueError for another shape, or what is no whole number."""
    actions = np.asarray(actions)
    if actions.shape != (number,) or actions.dtype.kind not in "iu":
        raise ValueError(f"actions: expected {number} whole numbers, got {actions.dtype} of shape {actions.shape}")
    numbers: Int64s = actions.astype(np.int64, copy=False)
    return numbers


def illegal_move(
    game: Game, action: int, mask: NDArray[Any], who: str, text: Callable[[int], str] | None = None
) -> IllegalMove:
    """The error for an action that the mask [A] of its position forbids.

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
