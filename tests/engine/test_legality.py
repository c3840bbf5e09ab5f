"""Legal actions as bits."""

from __future__ import annotations

import numpy as np
import pytest

from card_envs.compiling import specialize
from card_envs.engine.legality import num_words, pack_mask, unpack_mask


@pytest.mark.parametrize("size", [1, 63, 64, 65, 130])
def test_packed_masks(size: int) -> None:
    rng = np.random.default_rng(size)
    masks = (rng.random((50, size)) < 0.4).astype(np.int8)
    for mask in masks:
        legal = np.zeros(num_words(size), np.uint64)
        specialize(pack_mask)(mask, legal)
        assert np.array_equal(unpack_mask(legal, size), mask)
