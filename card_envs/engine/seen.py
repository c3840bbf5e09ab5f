"""What was met before, by a hash of it: a set that is emptied in no time; and the way to what was."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.jit import rule
from card_envs.game import Int64s, UInt64s


class Seen(NamedTuple):
    """The set.

    Attributes:
        keys: [a power of two] hashes.
        entered: [the same] when each was: those of an earlier time are forgotten.
        clock: [1] that time.
    """

    keys: UInt64s
    entered: Int64s
    clock: Int64s


def new_seen(most: int) -> Seen:
    """Room for so many, half of it empty then."""
    slots = 1 << (2 * most).bit_length()
    return Seen(np.zeros(slots, np.uint64), np.zeros(slots, np.int64), np.ones(1, np.int64))


@rule
def forget(seen: Seen) -> None:
    """Empty the set."""
    seen.clock[0] += 1


@rule
def is_new(key: np.uint64, seen: Seen) -> bool:
    """Enter a hash; whether it was not there."""
    slots = len(seen.keys) - 1
    now = seen.clock[0]
    slot = np.int64(key & np.uint64(slots))
    while seen.entered[slot] == now:
        if seen.keys[slot] == key:
            return False
        slot = (slot + 1) & slots
    seen.entered[slot] = now
    seen.keys[slot] = key
    return True


@rule
def trace(k: int, depth: int, parents: Int64s, actions: NDArray[Any], line: NDArray[np.int16]) -> None:
    """Write the so many moves that led to position k, each `actions` [M] from one of `parents` [M]."""
    for step in range(depth - 1, -1, -1):
        line[step] = actions[k]
        k = int(parents[k])
