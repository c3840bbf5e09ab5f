"""`Decisions`: whole, and safe for compiled code."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from card_envs.engine.batch import BatchEnv
from card_envs.games import GAMES
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import BOTS, NUMBERS, THINGS, assert_refused


class ShortDraws:
    """A generator that draws too few keys."""

    def integers(self, low: int, high: int, size: int, dtype: Any) -> Any:
        return np.zeros(size - 1, dtype)


def test_wrong_arguments_are_refused() -> None:
    decisions = decisions_at(TINY, BatchEnv(TINY, 8, 3).states)
    rng = np.random.default_rng(0)
    answers = [np.zeros(7, np.int64), None, np.zeros(8), np.full(8, 99)]
    calls: dict[str, Any] = {
        "check": ((answer, "me") for answer in answers), "bot_moves": zip(BOTS),
        "worlds": [*((rng, n) for n in [0, 1 << 40, 1 << 63, *NUMBERS]), *((x, 2) for x in [ShortDraws(), *THINGS])],
    }  # fmt: skip
    assert_refused(decisions, calls, {"at", "copy", "failure"})


def test_decisions_are_whole() -> None:
    states = BatchEnv(TINY, 8, 3).states
    for wrong in (BatchEnv(GAMES[next(iter(GAMES))], 8).states, states[::2], states[:, None], None, b""):
        with pytest.raises(ValueError, match="states: expected"):
            decisions_at(TINY, wrong)  # type: ignore[arg-type]
    decisions = decisions_at(TINY, states)
    arrays = {"obs": decisions.obs, "mask": decisions.mask, "seat": decisions.seat}
    for name, array in arrays.items():
        with pytest.raises(ValueError, match="expected"):
            Decisions(TINY, states, **{**arrays, name: array[1:]})
    some: Any = np.array([True, False] * 4)
    assert np.array_equal(decisions.at(some).obs, decisions.obs[::2]) and len(decisions.at(some)) == 4
    assert np.array_equal(decisions.at(some).copy().obs, decisions.obs[::2])
    assert np.array_equal(pickle.loads(pickle.dumps(decisions)).obs, decisions.obs)
    with pytest.raises(ValueError, match="rows: expected"):
        decisions.at(np.array([8]))
    decisions.seat[:] = 77  # draws worlds of the true seats all the same
    worlds = decisions.worlds(np.random.default_rng(0), 2)
    assert np.array_equal(worlds["seat"][:, 0], states["seat"])
