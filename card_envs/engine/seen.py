"""A set of hashes that is cleared in constant time, and the path to an entry of a search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import rule
from card_envs.game import Int64s, UInt64s


class Seen(NamedTuple):
    """A hash set with open addressing.

    Attributes:
        keys: [a power of two] hashes.
        entered: [the same] the time at which each was entered; entries of an earlier time are stale.
        clock: [1] the current time.
    """

    keys: UInt64s
    entered: Int64s
    clock: Int64s


def new_seen(most: int) -> Seen:
    """Return a set with room for `most` hashes, at most half full."""
    slots = 1 << (2 * most).bit_length()
    return Seen(np.zeros(slots, np.uint64), np.zeros(slots, np.int64), np.ones(1, np.int64))


@rule
def forget(seen: Seen) -> None:
    """Clear the set."""
    seen.clock[0] += 1


@rule
def is_new(key: np.uint64, seen: Seen) -> bool:
    """Add a hash; return whether it was new."""
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
    """Write the `depth` actions that led to position k into `line`; `actions` [M] and `parents` [M] are by position."""
    for step in range(depth - 1, -1, -1):
        line[step] = actions[k]
        k = int(parents[k])
