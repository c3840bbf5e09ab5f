"""Rates where a clock stands still: coarse clocks show no time for what is fast."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from card_envs import bench
from card_envs.compare._solving import SolveTask, solving_figures
from card_envs.compare.report import show_solving
from card_envs.engine.batch import BatchEnv
from card_envs.engine.cost import per_second
from card_envs.game import Game, Solution
from card_envs.games import GAMES
from card_envs.opponents.policy import decisions_at
from card_envs.opponents.search import SearchPolicy


@pytest.fixture
def no_time_goes_by(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("perf_counter", "process_time", "thread_time", "monotonic"):
        monkeypatch.setattr(time, name, lambda: 5.0)


def test_rates_are_finite() -> None:
    assert per_second(6, 3) == 2 and per_second(0, 0) == 0 and per_second(3, 0) == 3e6


@pytest.mark.usefixtures("no_time_goes_by")
def test_bench_measures_at_a_standing_clock() -> None:
    assert all(np.isfinite(figure) and figure > 0 for figure in bench.rate(lambda: 3, 0.0))


def test_solved_deals_that_took_no_time() -> None:
    game = next(game for game in GAMES.values() if game.solver is not None)
    lost = Solution("lost", [], 4, 0.0)
    figures = solving_figures(SolveTask(game), [(0, lost), (1, lost)])
    assert figures.as_dict()["positions_per_second"] == 8_000_000
    said: list[Any] = []
    console: Any = type("Console", (), {"print": lambda self, *words: said.extend(words)})()
    show_solving(console, "", figures)
    assert "8,000,000 positions a second" in str(said[-1])


@pytest.mark.mechanics
@pytest.mark.usefixtures("no_time_goes_by")
def test_searches_with_a_time_decide_at_a_standing_clock(game: Game) -> None:
    decisions = decisions_at(game, BatchEnv(game, 2).states)
    policy = SearchPolicy(game, 64, seconds=1, threads=1)
    decisions.check(policy.act(decisions, np.random.default_rng(0)), "search")
