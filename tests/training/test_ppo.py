"""Learning: a problem with a known answer, and a tiny game."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from card_envs.game import Field
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.training.conftest import check_high_card
from training.algorithms import Diverged
from training.algorithms.ppo import PPO, Batch
from training.config import Config
from training.networks import Inputs, Network, Rows
from training.ranks import Ranks
from training.run import Run

FIELDS = (Field("context", 6, 1),)
ACTIONS = (Field("bid", 1, 1), Field("card", 3, 1))
# Rewards by context and action; the third action would be the best everywhere, and is never legal.
REWARDS = np.random.default_rng(0).permuted(np.tile(np.array([-1, 0, 2], np.float32), (6, 1)), axis=1)
REWARDS = np.insert(REWARDS, 2, 5, axis=1)


class Bandit(PPO):
    """PPO whose networks decide a problem of one decision; its tables are never played at."""

    def __init__(self, **settings: Any) -> None:
        defaults = {"minibatch_size": 128, "update_epochs": 2, "ent_coef": 0, "ent_coef_end": 0}
        sizes = {"num_envs": 2, "num_steps": 2, "hidden": [32]}
        super().__init__(Config(**{"game": HIGH_CARD.name, "minutes": 1, **sizes, **defaults, **settings}), Ranks())

    def begin(self) -> None:
        torch.manual_seed(0)
        self.actor = self.networks["actor"] = Network(FIELDS, [32], 4, 0.01)
        self.critic = Network(FIELDS, [32], 1, 1.0)
        self.action_fields = ACTIONS
        super().begin()


def learner(learning_rate: float = 1e-3, **settings: Any) -> Bandit:
    return Bandit(learning_rate=learning_rate, **settings)


def actor_of(learned: PPO) -> Network:
    assert isinstance(learned.actor, Network)
    return learned.actor


def bandit_batch(learned: PPO, rng: np.random.Generator, num: int = 512) -> Batch:
    """One decision an episode: the context says which action pays."""
    context = rng.integers(0, 6, num)
    obs = np.eye(6, dtype=np.int8)[context]
    mask = np.tile(np.array([1, 1, 0, 1], np.int8), (num, 1))
    rows = np.arange(num)
    seen = Rows(obs, learned.critic.scale)
    with torch.no_grad():
        log_all = actor_of(learned)(seen, rows).masked_fill(torch.from_numpy(mask == 0), -1e9).log_softmax(1).numpy()
        values = learned.critic(seen, rows)[:, 0].numpy()
    actions = (log_all + rng.gumbel(size=log_all.shape)).argmax(axis=1)
    rewards = REWARDS[context, actions]
    best = REWARDS[:, [0, 1, 3]].argmax(axis=1)[context]
    expert = np.array([0, 1, 3])[best]
    inputs, log_probs = Inputs(seen, None), log_all[rows, actions]
    return Batch(inputs, seen, mask, actions, log_probs, rewards - values, rewards, expert, rows)


@pytest.mark.parametrize("settings", [{}, {"bf16": True}])
def test_bandit_with_a_known_value_is_learned(settings: dict[str, Any]) -> None:
    learned = learner(3e-3, **settings)
    rng = np.random.default_rng(1)
    figures = {}
    for _ in range(60):
        figures = learned.update(bandit_batch(learned, rng), 0.0)
    obs = np.eye(6, dtype=np.int8)
    with torch.no_grad():
        seen = Rows(obs, learned.critic.scale)
        logits = actor_of(learned)(seen, np.arange(6))
        logits[:, 2] = -1e9
        values = learned.critic(seen, np.arange(6))[:, 0].numpy()
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


def test_entropy_alone_keeps_play_uniform() -> None:
    learned = learner(1e-2, ent_coef=1)
    rng = np.random.default_rng(3)
    with torch.no_grad():
        next(reversed(list(learned.actor.parameters()))).copy_(torch.tensor([2.0, 0.0, 0.0, -2.0]))
    figures = {}
    for _ in range(60):
        batch = bandit_batch(learned, rng)
        batch.advantages[:] = 0
        figures = learned.update(batch, 0.0)
    assert figures["entropy"] > 0.98


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


def test_only_the_chosen_rows_are_learned_from() -> None:
    one, other = learner(ent_coef=0.01), learner(ent_coef=0.01)
    batch = bandit_batch(one, np.random.default_rng(5))
    batch.rows = np.arange(0, 512, 2)
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
    assert np.mean(batch.actions == batch.expert) > 0.8


def test_figures_by_field() -> None:
    learned = learner(1e-12, update_epochs=1)
    batch = bandit_batch(learned, np.random.default_rng(9))
    batch.actions[:] = 3
    figures = learned.update(batch, 0.0)
    assert "entropy_bid" not in figures
    assert figures["entropy_card"] == pytest.approx(figures["entropy"], abs=1e-5)


def test_a_loss_that_is_no_number_stops_before_it_does_harm() -> None:
    learned = learner(1e-2, update_epochs=1, minibatch_size=512)
    batch = bandit_batch(learned, np.random.default_rng(10))
    batch.returns[5] = np.nan
    before = {name: weight.clone() for name, weight in learned.actor.state_dict().items()}
    with pytest.raises(Diverged) as diverged:
        learned.update(batch, 0.0)
    assert np.isnan(diverged.value.arrays["returns"]).sum() == 1
    assert all(torch.equal(weight, before[name]) for name, weight in learned.actor.state_dict().items())


def test_high_card_is_learned() -> None:
    """The tiny game of the tests: better than its scripted player, which takes 0.32 points from random play."""
    config = Config(
        game=HIGH_CARD.name,
        decisions=150_000,
        num_envs=256,
        num_steps=24,
        hidden=[64],
        minibatch_size=1024,
        learning_rate=5e-3,
        reward_scale=1,
    )
    run = Run(config)
    while run.progress < 1:
        run.iterate()
    assert isinstance(run.algorithm, PPO) and len(run.algorithm.pool.snapshots) > 10
    check_high_card(run)
