"""N-tuple networks: how they are learned."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from card_envs import GAMES, load_opponent
from card_envs.engine.compile import specialize
from card_envs.game import Game
from tests.test_ntuples import PLANNING, each_planner
from training import fit_ntuple
from training.fit_ntuple import Learner, Learning, Trail, learn_trail


def test_learning_goes_towards_the_end_of_the_deal() -> None:
    learner = Learner(*np.zeros((3, 6), np.float32))
    trail = Trail(np.array([[[1, 2], [3, 4]]], np.int32), np.array([[2, 1]]), np.zeros((1, 2)), np.array([2]))
    learn = specialize(learn_trail)
    learn(0, 8.0, learner, 0.5, trail)
    assert learner.weights.tolist() == [0, 2, 2, 8, 0, 0]  # half of 8 for two weights, then 8 for one
    trail.lengths[0] = 1
    learn(0, 8.0, learner, 0.5, trail)
    assert learner.weights.tolist() == [0, 4, 4, 8, 0, 0]
    learn(0, 0.0, learner, 0.5, trail)  # signs differ, so that rates fall
    assert learner.weights.tolist() == [0, 0, 0, 8, 0, 0] and learner.sums[1] == 0 and learner.sizes[1] == 16
    learn(0, 100.0, learner, 0.5, trail)
    assert learner.weights[1] == 0


@each_planner
def test_it_learns_by_itself(game: Game) -> None:
    learning = Learning(game, 0, 0.5, 16, {}, 1.0)
    first = learning.go_on(300).mean()
    learning.go_on(1500)
    assert learning.go_on(300).mean() > first + 2 and learning.deals == 2100
    assert learning.learner.weights[0] == 1
    one, other = (Learning(game, 0, 0.5, 16, {}, 1.0).go_on(5) for _ in range(2))
    assert (one == other).all()


def test_the_command(tmp_path: Path) -> None:
    game = PLANNING[0].name
    out = tmp_path / "n"
    result = CliRunner().invoke(fit_ntuple.app, [game, "--out", str(out), "--minutes", "0", "--pairs", "2"])
    assert result.exit_code == 0 and "1,001 deals" in result.output.replace("\n", " ")
    assert load_opponent(out).game.name == game
    lines = [json.loads(line) for line in (tmp_path / "n.jsonl").read_text().splitlines()]
    assert lines[-1]["deals"] == 1001 and lines[-1]["points"] > 0
    wrong = CliRunner().invoke(fit_ntuple.app, [game, "--out", str(tmp_path / "n.jsonl" / "m")])
    assert wrong.exit_code == 2 and "it is a file" in wrong.output.replace("\n", " ")
    without = next(game.name for game in GAMES.values() if game.planner is None)
    unfit = CliRunner().invoke(fit_ntuple.app, [without, "--out", str(tmp_path / "m")])
    assert unfit.exit_code == 2 and "no planner for this game" in unfit.output.replace("\n", " ")
