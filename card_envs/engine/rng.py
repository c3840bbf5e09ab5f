"""Random streams: counters hashed by splitmix64 (Steele, Lea & Flood 2014), so a stream is one `uint64`.

A *key* names a stream and never changes; `derive` makes independent keys from it. A *stream* is an array of one
`uint64` that `advance` moves on, for playouts and search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.jit import rule

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
LOW_32 = np.uint64(0xFFFFFFFF)
TWO_32 = np.uint64(1 << 32)
SHIFT_27, SHIFT_30, SHIFT_31, SHIFT_32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@rule
def mix(bits: Any) -> Any:
    """Hash 64 bits into 64 others, one to one."""
    bits = (bits ^ (bits >> SHIFT_30)) * MIX_1
    bits = (bits ^ (bits >> SHIFT_27)) * MIX_2
    return bits ^ (bits >> SHIFT_31)


@rule
def derive(key: Any, index: int) -> Any:
    """The key of the stream number `index` (0, 1, …) below `key`."""
    return mix(key + GOLDEN * np.uint64(index + 1))


@rule
def advance(stream: Any) -> Any:
    """The next 64 random bits of a stream."""
    stream[0] += GOLDEN
    return mix(stream[0])


@rule
def uniform(stream: Any) -> float:
    """A float in [0, 1)."""
    return np.float64(np.int64(advance(stream) >> np.uint64(11))) * 2.0**-53


@rule
def below(bits: Any, bound: int) -> Any:
    """A whole number in [0, bound), exactly uniform, from 64 random bits; `bound` under 2**32.

    Ref: Lemire 2019, "Fast Random Integer Generation in an Interval"; a rejected draw re-hashes its bits.
    """
    limit = np.uint64(bound)
    product = (bits & LOW_32) * limit
    if (product & LOW_32) < limit:
        threshold = (TWO_32 - limit) % limit
        while (product & LOW_32) < threshold:
            bits = mix(bits + GOLDEN)
            product = (bits & LOW_32) * limit
    return np.int64(product >> SHIFT_32)


@rule
def shuffle(cards: Any, size: int, count: int, key: Any) -> None:
    """Fisher-Yates in place: the first `count` of the first `size` entries become a uniform draw in order."""
    for i in range(min(count, size - 1)):
        j = i + below(derive(key, i), size - i)
        card = cards[i]
        cards[i] = cards[j]
        cards[j] = card


def hash_each(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix` of each entry, in NumPy's arithmetic: compiling for this would cost a second."""
    with np.errstate(over="ignore"):
        hashed: NDArray[np.uint64] = getattr(mix, "py_func", mix)(bits)
    return hashed


def table_keys(seed: int, tables: NDArray[Any]) -> NDArray[np.uint64]:
    """The key of each table's stream, `uint64`: it depends on the seed and the table's number alone."""
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"seed: expected a whole number from 0 to 2**64 - 1, got {seed!r}")
    seed_key = hash_each(np.array([seed], np.uint64) + GOLDEN)
    return hash_each(seed_key + GOLDEN * (np.asarray(tables).astype(np.uint64) + np.uint64(1)))
