"""The set of keys that a search has seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.seen import Seen, forget, is_new, new_seen


def enter_keys(keys: NDArray[np.uint64], seen: Seen, new: NDArray[np.bool_]) -> None:
    for i in range(keys.shape[0]):
        new[i] = is_new(keys[i], seen)


def test_what_was_seen_is_not_new_until_it_is_forgotten() -> None:
    def entered(keys: list[int], seen: Seen) -> list[bool]:
        new = np.zeros(len(keys), np.bool_)
        specialize(enter_keys)(np.array(keys, np.uint64), seen, new)
        found: list[bool] = new.tolist()
        return found

    seen = new_seen(4)
    size = len(seen.keys)
    assert size >= 8
    assert entered([0, 5, 5, 5 + size, 0, 5 + size], seen) == [True, True, False, True, False, False]
    forget(seen)
    assert entered([5, 0, 5], seen) == [True, True, False]
