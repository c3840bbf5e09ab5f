"""N-tuple networks that learn by themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from card_envs import load_opponent
from card_envs.compiling import specialize
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents.networks.folder import load_card
from tests.conftest import games_under_test
from training import checkpoint
from training.algorithms.td import Learner, TemporalDifferences, Trail, learn_trail
from training.config import Config
from training.ranks import Ranks
from training.run import Run
from training.train import app

PLANNING = [game for game in games_under_test() if game.planner is not None]
# To compile; the others, whose planners `tests/opponents/networks/test_ntuples.py` tests, learn by the same loop.
SOONEST = (PLANNING or [game for game in GAMES.values() if game.planner is not None])[-1]
each_planner = pytest.mark.parametrize(
    "game", [pytest.param(game, id=game.name, marks=[] if game == SOONEST else pytest.mark.slow) for game in PLANNING]
)


def config(game: Game, **more: Any) -> Config:
    settings: dict[str, Any] = {"greedy_share": 1.0, "decisions": 10**9, **more}
    return Config(algorithm="td", game=game.name, **settings)


def begun(settings: Config, deals: int) -> Run:
    """A run with that many deals in an iteration."""
    run = Run(settings)
    assert isinstance(run.algorithm, TemporalDifferences)
    run.algorithm.deals_each = deals
    return run


def test_learning_goes_towards_the_end_of_the_deal() -> None:
    learner = Learner(*np.zeros((3, 6), np.float32))
    trail = Trail(np.array([[[1, 2], [3, 4]]], np.int32), np.array([[2, 1]]), np.zeros((1, 2)), np.array([2]))
    learn = specialize(learn_trail)
    learn(0, 8.0, learner, trail)
    assert learner.weights.tolist() == [0, 2, 2, 8, 0, 0]  # half of 8 for two weights, then 8 for one
    trail.lengths[0] = 1
    learn(0, 8.0, learner, trail)
    assert learner.weights.tolist() == [0, 4, 4, 8, 0, 0]
    learn(0, 0.0, learner, trail)  # signs differ, so that rates fall
    assert learner.weights.tolist() == [0, 0, 0, 8, 0, 0] and learner.sums[1] == 0 and learner.sizes[1] == 16
    learn(0, 100.0, learner, trail)
    assert learner.weights[1] == 0


@each_planner
def test_it_learns_by_itself(game: Game) -> None:
    run = begun(config(game), deals=300)
    margins = [run.iterate()["margin_over_greedy"] for _ in range(7)]
    assert margins[-1] > margins[0] + 2
    assert isinstance(run.algorithm, TemporalDifferences) and run.algorithm.deals == 2100
    assert run.algorithm.learner.weights[0] == 1 and run.decisions > 2100


@each_planner
def test_a_resumed_run_goes_on_exactly(game: Game, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    settings = config(game, greedy_share=0.5)
    one, other = (begun(settings, deals=40) for _ in range(2))
    one.iterate()
    one.iterate()
    one.save_checkpoint(path)
    other.load_checkpoint(path)
    figures = [[run.iterate()["decisions"] for _ in range(3)] for run in (one, other)]
    assert figures[0] == figures[1] and other.decisions == one.decisions
    for mine, theirs in zip(one.algorithm.memory()[0].values(), other.algorithm.memory()[0].values()):
        assert mine.any() and mine.tobytes() == theirs.tobytes()


def test_forged_memories_are_refused() -> None:
    learner = TemporalDifferences(config(SOONEST), Ranks())
    arrays, facts = learner.memory()
    arrays = {name: array.copy() for name, array in arrays.items()}
    for wrong, more, said in (
        ({}, {"deals": -1}, "deals"),
        ({}, {"deals": 0.5}, "deals"),
        ({"weights": arrays["weights"][1:]}, {}, "td/weights"),
        ({"surprise": arrays["sizes"]}, {}, "td: expected arrays"),
    ):
        with pytest.raises(ValueError, match=said):
            learner.restore(({**arrays, **wrong}, {**facts, **more}), ({}, {}))


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(f'game = "{SOONEST.name}"\nalgorithm = "td"\n')
    words = ["--config", str(file), f"runs={tmp_path}", "quick_pairs=1", "final_pairs=2"]
    result = CliRunner().invoke(app, [*words, "decisions=600"])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, [*words, "decisions=1200", "--resume"])
    assert result.exit_code == 0 and "resuming" in result.output
    folder = tmp_path / "tiny"
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert log[-1]["decisions"] >= 1200 and 0 <= log[0]["win_share_greedy"] <= 1
    assert load_opponent(folder / "opponent").game.name == SOONEST.name
    assert load_card(folder / "opponent").training["algorithm"] == "td"
    assert checkpoint.read_checkpoint(folder / "checkpoint.safetensors")[1]["algorithm"] == {"deals": log[-1]["deals"]}
    several = CliRunner().invoke(app, [*words, "decisions=1", "--processes", "2"])
    assert several.exit_code == 2 and "--processes: expected 1" in several.output
