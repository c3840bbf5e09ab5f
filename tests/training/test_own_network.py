"""Modules of the user's own: trained by the same command, saved as ONNX models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from card_envs import load_opponent
from card_envs.game import Game
from card_envs.opponents import TorchPolicy
from card_envs.opponents.networks.folder import load_card
from card_envs.opponents.policy import decisions_at
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import positions, some
from training.algorithms.ppo import PPO
from training.config import Config
from training.networks import UserNetwork
from training.run import Run
from training.train import app

for package in ("onnx", "onnxruntime", "onnxscript"):
    pytest.importorskip(package, reason="the extra onnx is not installed")


class Scores(nn.Module):
    """What a user would write."""

    def __init__(self, game: Game) -> None:
        super().__init__()
        size, actions = game.rules.OBS_SIZE, game.rules.NUM_ACTIONS
        self.layers = nn.Sequential(nn.Linear(size + actions, 24), nn.LayerNorm(24), nn.GELU(), nn.Linear(24, actions))

    def forward(self, observation: torch.Tensor, action_mask: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layers(torch.cat([observation / 16, action_mask], dim=1))
        return logits


class Narrow(Scores):
    """One action too few."""

    def forward(self, observation: torch.Tensor, action_mask: torch.Tensor) -> torch.Tensor:
        return super().forward(observation, action_mask)[:, 1:]


NAME = f"{__name__}:Scores"
SETTINGS: dict[str, Any] = {
    "game": TINY.name,
    "num_envs": 32,
    "num_steps": 16,
    "hidden": [16],
    "minibatch_size": 128,
}


def test_it_is_trained_saved_and_loaded(tmp_path: Path) -> None:
    run = Run(Config(**SETTINGS, network=NAME, decisions=2000))
    assert isinstance(run.algorithm, PPO)
    before = run.algorithm.actor.weights()
    while run.progress < 1:
        run.iterate()
    assert any(not np.array_equal(weight, before[name]) for name, weight in run.algorithm.actor.weights().items())
    run.save(tmp_path / "opponent")
    assert load_card(tmp_path / "opponent").architecture == "onnx"
    decisions = decisions_at(TINY, some(positions(TINY), 100))
    assert isinstance(run.algorithm.actor, UserNetwork)
    expected = TorchPolicy(run.algorithm.actor.module).probabilities(decisions)
    np.testing.assert_allclose(load_opponent(tmp_path / "opponent").probabilities(decisions), expected, atol=1e-5)


@pytest.mark.processes
def test_by_command(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text(f'game = "{TINY.name}"\nnetwork = "{NAME}"\nnum_envs = 16\nnum_steps = 8\nminibatch_size = 64\n')
    arguments = ["--config", str(config), f"runs={tmp_path}", "decisions=300", "final_pairs=4", "hidden=[8]"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    resumed = CliRunner().invoke(app, [*arguments, "decisions=600", "--resume"])
    assert resumed.exit_code == 0, resumed.output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:Net", "No module named 'no_such_module'"),
        (f"{__name__}:Missing", "has no attribute 'Missing'"),
        (f"{__name__}:Path", "takes|expected|argument"),
        ("builtins:repr", "expected a class of torch.nn.Module, got str"),
    ],
)
def test_what_is_no_network_is_refused(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Run(Config(**SETTINGS, network=name, decisions=100))


def test_wrong_answers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Narrow: expected logits of shape \(\d+, 12\), got"):
        Run(Config(**SETTINGS, network=f"{__name__}:Narrow", decisions=100)).iterate()
