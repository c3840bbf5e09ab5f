"""Learning: a problem with a known answer, and a tiny game."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from card_envs import load_opponent
from card_envs.compare.pairs import play_pairs
from card_envs.game import Field
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.engine.test_gpu import simulated
from tests.training.conftest import TENSORS, check_high_card
from training.algorithms import Diverged
from training.algorithms.ppo import PPO, TrainingBatch
from training.config import Config
from training.networks import Inputs, Network, Observations
from training.ranks import Ranks
from training.rollout import HOST, Backend
from training.run import Run

FIELDS = (Field("context", 6, 1),)
ACTIONS = (Field("bid", 1, 1), Field("card", 3, 1))
# Rewards by context and action; the third action would be the best everywhere, and is never legal.
REWARDS = np.random.default_rng(0).permuted(np.tile(np.array([-1, 0, 2], np.float32), (6, 1)), axis=1)
REWARDS = np.insert(REWARDS, 2, 5, axis=1)


def learner(learning_rate: float = 1e-3, **settings: Any) -> PPO:
    """PPO whose networks decide a problem of one decision; its tables are never played at."""
    defaults = {"minibatch_size": 128, "update_epochs": 2, "ent_coef": 0, "ent_coef_end": 0}
    sizes = {"num_envs": 2, "num_steps": 2, "hidden": [32], "learning_rate": learning_rate}
    config = Config(**{"game": HIGH_CARD.name, "minutes": 1, **sizes, **defaults, **settings})
    torch.manual_seed(0)
    learned = PPO(config, Ranks(), {"actor": Network(FIELDS, [32], 4, 0.01), "critic": Network(FIELDS, [32], 1, 1.0)})
    learned.action_fields = ACTIONS
    return learned


def actor_of(learned: PPO) -> Network:
    assert isinstance(learned.actor, Network)
    return learned.actor


def bandit_batch(learned: PPO, rng: np.random.Generator, num: int = 512) -> TrainingBatch:
    """One decision an episode: the context says which action pays."""
    context = rng.integers(0, 6, num)
    obs = np.eye(6, dtype=np.int8)[context]
    mask = np.tile(np.array([1, 1, 0, 1], np.int8), (num, 1))
    rows = torch.arange(num)
    seen = Observations(torch.from_numpy(obs))
    with torch.no_grad():
        log_all = actor_of(learned)(seen, rows).masked_fill(torch.from_numpy(mask == 0), -1e9).log_softmax(1).numpy()
        values = learned.critic(seen, rows)[:, 0].numpy()
    actions = (log_all + rng.gumbel(size=log_all.shape)).argmax(axis=1)
    rewards = REWARDS[context, actions]
    best = REWARDS[:, [0, 1, 3]].argmax(axis=1)[context]
    expert = np.array([0, 1, 3])[best]
    arrays = mask, actions, log_all[np.arange(num), actions], rewards - values, rewards, expert
    tensors: list[Any] = [*map(torch.from_numpy, arrays), rows]
    return TrainingBatch(Inputs(seen, None), seen, *tensors)


@pytest.mark.parametrize("settings", [{}, {"bf16": True}])
def test_bandit_with_a_known_value_is_learned(settings: dict[str, Any]) -> None:
    learned = learner(3e-3, **settings)
    rng = np.random.default_rng(1)
    figures = {}
    for _ in range(60):
        figures = learned.update(bandit_batch(learned, rng), 0.0)
    obs = np.eye(6, dtype=np.int8)
    with torch.no_grad():
        seen = Observations(torch.from_numpy(obs))
        logits = actor_of(learned)(seen, torch.arange(6))
        logits[:, 2] = -1e9
        values = learned.critic(seen, torch.arange(6))[:, 0].numpy()
    chosen = logits.argmax(dim=1).numpy()
    np.testing.assert_array_equal(REWARDS[np.arange(6), chosen], np.full(6, 2))
    assert logits.softmax(dim=1).max(dim=1).values.min() > 0.9
    np.testing.assert_allclose(values, 2, atol=0.3)
    assert figures["entropy"] < 0.3


def test_first_figures_of_an_unchanged_policy() -> None:
    learned = learner(1e-12, update_epochs=1)
    before = {name: weight.clone() for name, weight in learned.actor.state_dict().items()}
    figures = learned.update(bandit_batch(learned, np.random.default_rng(2)), 0.0)
    assert figures["entropy"] == pytest.approx(1, abs=1e-3)  # of three legal actions
    assert figures["approx_kl"] == pytest.approx(0, abs=1e-6)
    assert figures["clip_fraction"] == 0
    for name, weight in learned.actor.state_dict().items():
        torch.testing.assert_close(weight, before[name], atol=1e-6, rtol=0)


def test_a_forced_decision_has_no_entropy() -> None:
    learned = learner(update_epochs=1, ent_coef=1)
    batch = bandit_batch(learned, np.random.default_rng(4))
    batch.mask[:] = 0
    batch.mask[:, 1] = 1
    batch.actions[:] = 1
    batch.log_probs[:] = 0
    figures = learned.update(batch, 0.0)
    assert figures["entropy"] == figures["approx_kl"] == 0
    assert all(torch.isfinite(weight).all() for weight in learned.actor.parameters())


class WithOthers(Ranks):
    """As if other processes had so many decisions, and the same gradients as this one."""

    def __init__(self, decisions: int) -> None:
        super().__init__()
        self.decisions = decisions

    def sum(self, *values: float) -> NDArray[np.float64]:
        return super().sum(*values) + self.decisions


@pytest.mark.parametrize(("decisions", "others"), [(0, 0), (0, 1000), (1, 1000), (5, 0)])
def test_an_update_of_few_decisions(decisions: int, others: int) -> None:
    """Weights stay finite; without any decision they stay as they were, however many minibatches others have."""
    learned = learner(ent_coef=0.01, bc_coef=0.1, minibatch_size=64)
    batch = bandit_batch(learned, np.random.default_rng(5))
    learned.ranks = WithOthers(others)
    batch.rows = torch.arange(decisions)
    before = [weight.clone() for weight in learned.parameters]
    figures = learned.update(batch, 0.0)
    assert all(np.isfinite(figure) for figure in figures.values()) and ("entropy" in figures) == (decisions > 0)
    assert all(bool(weight.isfinite().all()) for weight in learned.parameters)
    unchanged = all(torch.equal(*pair) for pair in zip(before, learned.parameters, strict=True))
    assert unchanged == (decisions == 0)


def test_only_the_chosen_rows_are_learned_from() -> None:
    one, other = learner(ent_coef=0.01), learner(ent_coef=0.01)
    batch = bandit_batch(one, np.random.default_rng(5))
    batch.rows = torch.arange(0, 512, 2)
    one.update(batch, 0.0)
    batch.actions[1::2] = 0
    batch.advantages[1::2] = 1e6
    batch.returns[1::2] = -1e6
    other.update(batch, 0.0)
    for weight, same in zip(one.actor.parameters(), other.actor.parameters()):
        torch.testing.assert_close(weight, same, rtol=0, atol=0)


def test_cloning_alone_learns_the_experts_moves() -> None:
    learned = learner(1e-2, bc_coef=1)
    rng = np.random.default_rng(6)
    for _ in range(60):
        batch = bandit_batch(learned, rng)
        batch.advantages[:] = 0
        figures = learned.update(batch, 0.0)
    assert figures["bc_loss"] < 0.2
    assert (batch.actions == batch.expert).float().mean() > 0.8


def test_a_loss_that_is_no_number_stops_before_it_does_harm() -> None:
    learned = learner(1e-2, update_epochs=1, minibatch_size=512)
    batch = bandit_batch(learned, np.random.default_rng(10))
    batch.returns[5] = np.nan
    before = {name: weight.clone() for name, weight in learned.actor.state_dict().items()}
    with pytest.raises(Diverged) as diverged:
        learned.update(batch, 0.0)
    assert np.isnan(diverged.value.arrays["returns"]).sum() == 1
    assert all(torch.equal(weight, before[name]) for name, weight in learned.actor.state_dict().items())


HIGH_CARD_SETTINGS: dict[str, Any] = {
    "game": HIGH_CARD.name,
    "decisions": 150_000,
    "num_envs": 256,
    "num_steps": 24,
    "hidden": [64],
    "minibatch_size": 1024,
    "learning_rate": 5e-3,
    "reward_scale": 1,
}


@pytest.mark.parametrize("backend", [HOST, TENSORS])
def test_high_card_is_learned(backend: Backend) -> None:
    """The tiny game of the tests: better than its scripted player, which takes 0.32 points from random play."""
    run = Run(Config(**HIGH_CARD_SETTINGS), backend=backend)
    while run.progress < 1:
        entry = run.iterate()
    assert np.isfinite([entry["value_error"], entry["value_slope"], entry["approx_kl"]]).all()
    assert isinstance(run.algorithm, PPO) and len(run.algorithm.pool.snapshots) > 10
    check_high_card(run)


IN_THE_SIMULATOR = """
import json, sys
import numpy as np
from card_envs.engine.gpu import GpuBatchEnv
from card_envs.games import GAMES
from card_envs.scaffold.high_card import GAME
from training.config import Config
from training.run import Run
from pathlib import Path

GAMES[GAME.name] = GAME
settings, folder = json.loads(sys.argv[1])
checkpoint = Path(folder, "checkpoint.safetensors")
one, other = (Run(Config(**settings, device="cuda")) for _ in range(2))
assert isinstance(one.algorithm.rollout.tables, GpuBatchEnv)
one.iterate()
one.save_checkpoint(checkpoint)
other.load_checkpoint(checkpoint)
one.iterate()
other.iterate()
mine, theirs = ({**run.algorithm.memory()[0], **run.algorithm.rank_memory()[0]} for run in (one, other))
assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
np.savez(Path(folder, "memory.npz"), **mine)
"""


LABELS: dict[str, Any] = {"algorithm": "advantages"}
BY_LEARNER: dict[str, Any] = {**LABELS, "advantage_player": "learner"}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="flat", marks=pytest.mark.slow),
        pytest.param({"network": "afterstates", "baseline_bonus": 2.0}, id="afterstates"),
        pytest.param(
            {**LABELS, "advantage_stride": 2, "advantage_worlds": 2, "decisions": 20},
            id="labels",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {**BY_LEARNER, "network": "lookahead", "baseline_bonus": 2.0},
            id="lookahead-labels-by-learner",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_simulator_learns_as_the_cpu_and_resumes_exactly(more: dict[str, Any], tmp_path: Path) -> None:
    """Two whole iterations of `device = "cuda"`: the same moves, weights and episodes as in tensors on the CPU.

    Networks of moves sum dense rows there and sparse ones here, in another order.
    """
    small = {"num_envs": 6, "num_steps": 5, "hidden": [8], "minibatch_size": 16, "pool_size": 2, "decisions": 60}
    settings: dict[str, Any] = {**HIGH_CARD_SETTINGS, **small, "bf16": False, **more}
    if "algorithm" in more:
        del settings["reward_scale"]
    simulated(IN_THE_SIMULATOR, json.dumps([settings, str(tmp_path)]))
    run = Run(Config(**settings), backend=TENSORS)
    run.iterate()
    run.iterate()
    expected = {**run.algorithm.memory()[0], **run.algorithm.rank_memory()[0]}
    with np.load(tmp_path / "memory.npz") as found:
        assert set(found) == set(expected) and "pool0/first_weight" in expected
        for name, array in expected.items():
            if "network" in more and array.dtype == np.float32:
                np.testing.assert_allclose(found[name], array, rtol=1e-3, atol=1e-5, err_msg=name)
            else:
                np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.gpu
def test_high_card_is_learned_on_a_gpu(tmp_path: Path) -> None:
    settings = Config(**{**HIGH_CARD_SETTINGS, "decisions": 2_000_000, "num_envs": 4096, "minibatch_size": 8192})
    run = Run(settings.changed(device="cuda"))
    while run.progress < 1:
        run.iterate()
    check_high_card(run)
    path = tmp_path / "checkpoint.safetensors"
    run.save_checkpoint(path)
    Run(settings).load_checkpoint(path)


def test_a_batch_in_tensors_is_that_of_the_cpu() -> None:
    """Values and advantages of the same rollout, from dense rows and from sparse ones."""
    config = Config(**{**HIGH_CARD_SETTINGS, "pool_share": 0.2})
    one, other = (PPO(config, Ranks(), backend=backend) for backend in (TENSORS, HOST))
    one.rollout.collect(one.actor, None)
    other.rollout.collect(other.actor, None)  # for what follows from actions alone
    other.rollout.tables.write_states(one.rollout.tables.read_states())  # which observes, too
    for name in ("seen", "full", "seat", "actions", "learned", "rewards", "done", "baseline", "log_probs"):
        getattr(other.rollout, name)[:] = getattr(one.rollout, name)
    other.rollout.steps = []
    found, expected = one.batch(), other.batch()
    for name in ("mask", "actions", "log_probs", "expert", "rows"):
        assert torch.equal(getattr(found, name), getattr(expected, name))
    for name in ("advantages", "returns"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), atol=1e-5, rtol=1e-5)


def test_a_run_in_tensors_resumes_exactly_and_goes_on_without(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    small = {"num_envs": 16, "num_steps": 8, "hidden": [8], "minibatch_size": 64, "pool_size": 5, "decisions": 3000}
    settings = Config(**{**HIGH_CARD_SETTINGS, **small})
    one = Run(settings, backend=TENSORS)
    for _ in range(3):
        one.iterate()
    one.save_checkpoint(path)
    one.iterate()
    for backend in (TENSORS, HOST):
        other = Run(settings, backend=backend)
        other.load_checkpoint(path)
        other.iterate()
        mine, theirs = one.algorithm.memory()[0], other.algorithm.memory()[0]
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine) == (backend is TENSORS)
        assert other.decisions > 0
    one.save(tmp_path / "opponent")
    assert play_pairs(HIGH_CARD, load_opponent(tmp_path / "opponent"), load_opponent("greedy", HIGH_CARD), 2)
