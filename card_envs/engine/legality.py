"""Illegal actions: found in one way and reported in one way, for tables, environments and comparisons alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.compile import bind
from card_envs.game import Game, Int8s, Int64s


class IllegalMove(ValueError):
    """An action that the rules forbid; nothing was played."""


def find_illegal(first: int, last: int, mask: Int8s, actions: Int64s) -> int:
    """The first of the rows first <= i < last whose action [B] its mask [B, A] forbids, or -1."""
    for i in range(first, last):
        if actions[i] < 0 or actions[i] >= mask.shape[1] or mask[i, actions[i]] == 0:
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


def illegal_move(game: Game, action: int, mask: NDArray[Any], who: str) -> IllegalMove:
    """The error for an action that the mask [A] of its position forbids; `who` says whose it was, and where."""
    legal = ", ".join(map(str, np.flatnonzero(mask)))
    return IllegalMove(f"{game.name}: action {action} of {who} is illegal; legal: {legal}")
