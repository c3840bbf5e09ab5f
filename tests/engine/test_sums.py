"""Sparse rows of weights, added up."""

from __future__ import annotations

import numpy as np
import pytest

from card_envs.compiling import specialize
from card_envs.engine import sums


@pytest.mark.parametrize("width", [1, 15, 16, 65, 200])
def test_rows_are_added_up_in_order_whatever_the_width(width: int) -> None:
    """Bit for bit as one after the other, for weights in one piece or not; nothing beside the sums is written."""
    rng = np.random.default_rng(width)
    weights = rng.standard_normal((30, width), np.float32)
    entry, value = rng.integers(0, 30, 50).astype(np.int32), rng.standard_normal(50, np.float32)
    add = specialize(sums.add_rows)
    for first, last in ((0, 50), (3, 20), (7, 8), (9, 9)):
        expected = np.full(width, 0.1, np.float32)
        for k in range(first, last):
            expected += value[k] * weights[entry[k]]
        for table in (weights, np.asfortranarray(weights), np.repeat(weights, 2, axis=1)[:, ::2]):
            guarded = np.full(width + 128, 0.1, np.float32)
            add(table, entry, value, first, last, guarded[64:-64])
            assert np.array_equal(guarded[64:-64], expected)
            assert (guarded[:64] == np.float32(0.1)).all() and (guarded[-64:] == np.float32(0.1)).all()
