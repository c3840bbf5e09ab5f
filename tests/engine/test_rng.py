"""Streams, bounded draws, shuffles and keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from card_envs.engine.rng import advance, below, derive, shuffle, table_keys


def test_below_is_uniform_and_shuffles_are_permutations() -> None:
    from card_envs.compiling._rules import loop

    @loop
    def draw(stream: Any, bound: int, drawn: Any) -> None:
        for i in range(len(drawn)):
            drawn[i] = below(advance(stream), bound)

    @loop
    def shuffle_often(cards: Any, key: Any) -> None:
        for number in range(len(cards)):
            shuffle(cards[number], cards.shape[1], cards.shape[1], derive(key, number))

    stream = np.array([5], np.uint64)
    draws = 60_000
    for bound in (1, 2, 3, 7, 54):
        drawn = np.zeros(draws, np.int64)
        draw(stream, bound, drawn)
        counts = np.bincount(drawn, minlength=bound)
        assert len(counts) == bound
        assert (np.abs(counts - draws / bound) <= 5 * np.sqrt(draws / bound)).all()
    packs = np.tile(np.arange(10, dtype=np.int8), (20_000, 1))
    shuffle_often(packs, np.uint64(7))
    assert (np.sort(packs) == np.arange(10)).all()
    places = np.array([np.bincount(packs[:, place], minlength=10) for place in range(10)])
    assert (np.abs(places - 2000) < 5 * np.sqrt(2000 * 0.9)).all()


def test_table_keys_do_not_collide() -> None:
    keys = np.concatenate([table_keys(seed, np.arange(20_000)) for seed in (0, 1, 2, (1 << 64) - 1)])
    assert keys.dtype == np.uint64 and len(np.unique(keys)) == 80_000
