"""Rates of what took no time: coarse clocks show none for what is fast."""

from __future__ import annotations

from typing import Any

from card_envs.compare._solving import SolveTask, solving_figures
from card_envs.compare.report import show_solving
from card_envs.engine.cost import per_second
from card_envs.game import Solution
from card_envs.games import GAMES


def test_rates_are_finite() -> None:
    assert per_second(6, 3) == 2 and per_second(0, 0) == 0 and per_second(3, 0) == 3e6


def test_solved_deals_that_took_no_time() -> None:
    game = next(game for game in GAMES.values() if game.solver is not None)
    lost = Solution("lost", [], 4, 0.0)
    figures = solving_figures(SolveTask(game), [(0, lost), (1, lost)])
    assert figures.as_dict()["positions_per_second"] == 8_000_000
    said: list[Any] = []
    console: Any = type("Console", (), {"print": lambda self, *words: said.extend(words)})()
    show_solving(console, "", figures)
    assert "8,000,000 positions a second" in str(said[-1])
