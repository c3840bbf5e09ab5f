"""Functions that a GPU replays do what they do when they are called: with a tape in place of a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from card_envs.game import Game
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.training.tape import TAPED, TapedGraphs, counted
from training.algorithms import ppo
from training.algorithms.self_play import SelfPlay
from training.config import Config
from training.graphs import WARM_UPS, NoGraphs
from training.ranks import Ranks
from training.run import Run

SETTINGS: dict[str, Any] = {
    "game": HIGH_CARD.name,
    "decisions": 1500,
    "num_envs": 16,
    "num_steps": 5,
    "hidden": [8],
    "minibatch_size": 32,
    "update_epochs": 2,
    "pool_size": 4,
    "pool_share": 0.5,
    "bf16": False,
}
KINDS: dict[str, dict[str, Any]] = {
    "ppo": {"reward_scale": 1, "critic_first": 0.3, "bc_coef": 1.0, "bc_until": 0.6, "ent_coef": 0.1},
    "advantages": {"algorithm": "advantages"},
}


def trained(**settings: Any) -> tuple[Run, list[dict[str, float]]]:
    """Return a whole run with tapes, and the figures of its iterations without the times."""
    run = Run(Config(**{**SETTINGS, **settings}), backend=TAPED)
    figures = []
    while run.progress < 1:
        entry = run.iterate()
        figures.append({name: value for name, value in entry.items() if "second" not in name and name != "minutes"})
    return run, figures


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.mechanics
def test_a_replayed_run_is_the_run(game: Game, kind: str) -> None:
    """The same weights, episodes, streams and figures: coefficients, learning rate and snapshots change all the time.

    Episodes get longer for a while, so that they are moved in memory.
    """
    run, figures = trained(game=game.name, **KINDS[kind])
    expected, called = trained(game=game.name, graphs=False, **KINDS[kind])
    graphs, others = (one.algorithm.rollout.graphs for one in (run, expected) if isinstance(one.algorithm, SelfPlay))
    assert isinstance(graphs, TapedGraphs) and isinstance(others, NoGraphs)
    mine, theirs = ({**one.algorithm.memory()[0], **one.algorithm.rank_memory()[0]} for one in (run, expected))
    assert set(mine) == set(theirs) and "pool1/first_weight" in mine
    for name, array in mine.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
    assert len(figures) > 12
    np.testing.assert_equal(figures, called)


def test_few_launches_are_left() -> None:
    """Of an update with about a hundred minibatches and a rollout of 64 steps, as in configs/gpu/back_alley.toml."""
    sizes = {"num_steps": 64, "minibatch_size": 15, "decisions": 10**6, "reward_scale": 1}
    found = {}
    for graphs in (False, True):
        algorithm = ppo.PPO(Config(**{**SETTINGS, **sizes, "graphs": graphs}), Ranks(), backend=TAPED)
        for _ in range(WARM_UPS + 2):
            with counted() as played:
                algorithm.play(0.5)
            batch = algorithm.batch()
            with counted() as updated:
                algorithm.update(batch, 0.5)
        found[graphs] = played.launches, updated.launches
    assert 90 < len(algorithm.minibatches(batch.rows)) < 130
    (played_before, updated_before), (played_now, updated_now) = found.values()
    assert played_before > 1000 and updated_before > 5000  # by themselves
    assert played_now <= 200 and updated_now <= 300


@pytest.mark.parametrize("waiting", [lambda x: float(x.sum()), lambda x: x[x > 0]])
def test_what_waits_for_the_device_can_not_be_captured(waiting: Callable[[torch.Tensor], Any]) -> None:
    """Else these tests would pass what fails on a GPU."""
    graphs, x = TapedGraphs(), torch.ones(3)
    for _ in range(WARM_UPS):
        graphs.repeat("it", lambda: waiting(x))
    with pytest.raises(RuntimeError, match="can't be captured"):
        graphs.repeat("it", lambda: waiting(x))


@pytest.mark.gpu
def test_a_gpu_replays_what_it_does() -> None:
    """Sums of a GPU may differ in their order."""
    weights = []
    for graphs in (False, True):
        run = Run(Config(**{**SETTINGS, **KINDS["ppo"], "device": "cuda", "graphs": graphs, "decisions": 10**6}))
        for _ in range(WARM_UPS + 3):
            run.iterate()
        weights.append(run.algorithm.stored_policy().weights)
    for name, weight in weights[0].items():
        np.testing.assert_allclose(weight, weights[1][name], rtol=1e-2, atol=1e-3, err_msg=name)
