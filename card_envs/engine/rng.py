"""Random streams: counters hashed by splitmix64 (Steele, Lea & Flood 2014), so a stream is one `uint64`.

A *key* names a stream and never changes; `derive` makes independent keys from it. A *stream* is an array of one
`uint64` that `advance` moves on, for playouts and search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import rule
from card_envs.engine.buffers import seed_number
from card_envs.game import Int8s, Key, Stream, UInt64s

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
LOW_32 = np.uint64(0xFFFFFFFF)
TWO_32 = np.uint64(1 << 32)
SHIFT_27, SHIFT_30, SHIFT_31, SHIFT_32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@rule
def mix(bits: np.uint64) -> np.uint64:
    """Hash 64 bits to 64 bits, one to one."""
    bits = (bits ^ (bits >> SHIFT_30)) * MIX_1
    bits = (bits ^ (bits >> SHIFT_27)) * MIX_2
    return bits ^ (bits >> SHIFT_31)


@rule
def derive(key: Key, index: int) -> Key:
    """Return the key of stream number `index` (0, 1, …) below `key`."""
    return mix(key + GOLDEN_RATIO * np.uint64(index + 1))


@rule
def advance(stream: Stream) -> np.uint64:
    """Return the next 64 random bits of a stream."""
    stream[0] += GOLDEN_RATIO
    return mix(stream[0])


@rule
def uniform(stream: Stream) -> float:
    """Return a float in [0, 1)."""
    return np.float64(np.int64(advance(stream) >> np.uint64(11))) * 2.0**-53


@rule
def below(bits: np.uint64, bound: int) -> int:
    """Return an integer in [0, bound), exactly uniform, from 64 random bits; `bound` is below 2**32.

    The high 32 bits of (32 random bits) * bound are uniform once the draws with the lowest (2**32 mod bound) low halves
    are rejected. A rejected draw re-hashes its bits. Ref: Lemire 2019, "Fast Random Integer Generation in an Interval".
    """
    limit = np.uint64(bound)
    product = (bits & LOW_32) * limit
    if (product & LOW_32) < limit:
        threshold = (TWO_32 - limit) % limit
        while (product & LOW_32) < threshold:
            bits = mix(bits + GOLDEN_RATIO)
            product = (bits & LOW_32) * limit
    return int(np.int64(product >> SHIFT_32))  # `int` of a uint64 would stay unsigned


@rule
def shuffle(cards: Int8s, size: int, count: int, key: Key) -> None:
    """Shuffle in place (Fisher-Yates): the first `count` of the first `size` entries become a uniform ordered draw."""
    for i in range(min(count, size - 1)):
        j = i + below(derive(key, i), size - i)
        card = cards[i]
        cards[i] = cards[j]
        cards[j] = card


def hash_each(bits: UInt64s) -> UInt64s:
    """Return `mix` of each entry, in NumPy: compiling a loop for it would take a second."""
    plain: Any = getattr(mix, "py_func", mix)
    with np.errstate(over="ignore"):
        hashed: UInt64s = plain(bits)
    return hashed


def derive_each(keys: UInt64s, index: int) -> UInt64s:
    """Return `derive` of each key, in NumPy."""
    return hash_each(keys + GOLDEN_RATIO * np.array([index + 1], np.uint64))


def table_keys(seed: int, tables: NDArray[Any]) -> UInt64s:
    """Return the key of each table's stream, uint64: a function of the seed and the table's number only."""
    seed = seed_number(seed)
    seed_key = hash_each(np.array([seed], np.uint64) + GOLDEN_RATIO)
    return hash_each(seed_key + GOLDEN_RATIO * (np.asarray(tables).astype(np.uint64) + np.uint64(1)))
