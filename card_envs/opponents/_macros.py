"""Macro-actions: several actions of a seat that are one decision (options: Sutton, Precup & Singh 1999).

Between two looks at hidden cards nothing new becomes known, so that a seat can decide on all its moves up to the next
one at once. A macro-action is an array of actions, `NO_ACTION` after its last.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.rng import MIX_1, SHIFT_32, mix
from card_envs.game import Int8s, Int64s

MAX_LENGTH = 32  # actions of a macro-action
NO_ACTION = -1
UNKNOWN = -np.inf  # value of a candidate that is never chosen

Macro: TypeAlias = NDArray[np.int16]  # [L], L up to MAX_LENGTH
Macros: TypeAlias = NDArray[np.int16]  # [C, L] of one table, or [B, C, L]


def last_of(macro: Macro) -> int:
    """Return the last action of a macro-action."""
    step = 0
    while step + 1 < macro.shape[0] and macro[step + 1] != NO_ACTION:
        step += 1
    return int(macro[step])


def sight(obs: Int8s) -> np.uint64:
    """Return a hash of an observation, padded to a multiple of 8 bytes."""
    words = obs.view(np.uint64)
    bits = np.uint64(0)
    for w in range(words.shape[0]):
        bits = (bits ^ words[w]) * MIX_1
        bits ^= bits >> SHIFT_32
    return mix(bits)


def select_best(values: NDArray[Any], number: int, most: int, order: Int64s) -> int:
    """Write the indices of the `most` greatest of the first `number` values; return how many there are.

    The greatest comes first, and of equal ones the one with the lower index; UNKNOWN ones are left out.
    """
    selected = 0
    for k in range(number):  # insertion into the best so far
        if values[k] == UNKNOWN or (selected == most and not values[k] > values[order[most - 1]]):
            continue
        place = selected if selected < most else most - 1
        while place > 0 and values[order[place - 1]] < values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
        selected = min(selected + 1, most)
    return selected
