"""Learning: a problem with a known answer, and a tiny game."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from card_envs.game import Field
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.training.conftest import check_high_card
from training.config import Config
from training.leads import SHARPNESS
from training.network import Inputs, Network, Rows
from training.ppo import Batch, Diverged, Learner, LossWeights
from training.ranks import Ranks
from training.trainer import Trainer

FIELDS = (Field("context", 6, 1),)
ACTIONS = (Field("bid", 1, 1), Field("card", 3, 1))
# Rewards by context and action; the third action would be the best everywhere, and is never legal.
REWARDS = np.random.default_rng(0).permuted(np.tile(np.array([-1, 0, 2], np.float32), (6, 1)), axis=1)
REWARDS = np.insert(REWARDS, 2, 5, axis=1)


def learner(**settings: Any) -> Learner:
    torch.manual_seed(0)
    config = Config(
        **{
            "game": "back_alley",
            "minutes": 1,
            "minibatch": 128,
            "epochs": 2,
            "entropy": 0,
            "huber_delta": 10,
            **settings,
        }
    )
    critic = Network(FIELDS, [32], max(1, config.value_bins), 1.0)
    return Learner(Network(FIELDS, [32], 4, 0.01), critic, config, ACTIONS, Ranks())


def actor_of(learned: Learner) -> Network:
    assert isinstance(learned.actor, Network)
    return learned.actor


def bandit_batch(learned: Learner, rng: np.random.Generator, num: int = 512) -> Batch:
    """One decision an episode: the context says which action pays."""
    context = rng.integers(0, 6, num)
    obs = np.eye(6, dtype=np.int8)[context]
    mask = np.tile(np.array([1, 1, 0, 1], np.int8), (num, 1))
    rows = np.arange(num)
    seen = Rows(obs, learned.critic.scale)
    with torch.no_grad():
        log_all = actor_of(learned)(seen, rows).masked_fill(torch.from_numpy(mask == 0), -1e9).log_softmax(1).numpy()
        values = learned.values.decode(learned.critic(seen, rows)).numpy()
    actions = (log_all + rng.gumbel(size=log_all.shape)).argmax(axis=1)
    rewards = REWARDS[context, actions]
    best = REWARDS[:, [0, 1, 3]].argmax(axis=1)[context]
    teacher = np.array([0, 1, 3])[best]
    inputs, chances = Inputs(seen, None), log_all[rows, actions]
    return Batch(inputs, seen, mask, actions, chances, rewards - values, rewards, teacher, rows)


@pytest.mark.parametrize(
    "settings", [{}, {"value_bins": 51}, {"kl": 0.02}, {"entropy_by_width": False}, {"bf16": True}]
)
def test_bandit_with_a_known_value_is_learned(settings: dict[str, Any]) -> None:
    learned = learner(**settings)
    learned.actor.bf16 = learned.critic.bf16 = settings.get("bf16", False)
    rng = np.random.default_rng(1)
    figures = {}
    for _ in range(60):
        figures = learned.update(bandit_batch(learned, rng), LossWeights(3e-3, 0.0))
    obs = np.eye(6, dtype=np.int8)
    with torch.no_grad():
        seen = Rows(obs, learned.critic.scale)
        logits = actor_of(learned)(seen, np.arange(6))
        logits[:, 2] = -1e9
        values = learned.values.decode(learned.critic(seen, np.arange(6))).numpy()
    chosen = logits.argmax(dim=1).numpy()
    np.testing.assert_array_equal(REWARDS[np.arange(6), chosen], np.full(6, 2))
    assert logits.softmax(dim=1).max(dim=1).values.min() > 0.9
    np.testing.assert_allclose(values, 2, atol=0.3)
    assert figures["entropy"] < 0.3


def test_first_figures_of_an_unchanged_policy() -> None:
    learned = learner(epochs=1)
    before = {name: weight.clone() for name, weight in learned.actor.state_dict().items()}
    figures = learned.update(bandit_batch(learned, np.random.default_rng(2)), LossWeights(1e-12, 0.0))
    assert figures["entropy"] == pytest.approx(1, abs=1e-3)  # of three legal actions
    assert figures["kl"] == pytest.approx(0, abs=1e-6)
    assert figures["clipped"] == 0
    for name, weight in learned.actor.state_dict().items():
        torch.testing.assert_close(weight, before[name], atol=1e-6, rtol=0)


def test_entropy_alone_keeps_play_uniform() -> None:
    learned = learner()
    rng = np.random.default_rng(3)
    with torch.no_grad():
        next(reversed(list(learned.actor.parameters()))).copy_(torch.tensor([2.0, 0.0, 0.0, -2.0]))
    figures = {}
    for _ in range(60):
        batch = bandit_batch(learned, rng)
        batch.advantages[:] = 0
        figures = learned.update(batch, LossWeights(1e-2, 1.0))
    assert figures["entropy"] > 0.98


def test_a_forced_decision_has_no_entropy() -> None:
    learned = learner(epochs=1)
    batch = bandit_batch(learned, np.random.default_rng(4))
    batch.mask[:] = 0
    batch.mask[:, 1] = 1
    batch.actions[:] = 1
    batch.log_probabilities[:] = 0
    figures = learned.update(batch, LossWeights(1e-3, 1.0))
    assert figures["entropy"] == figures["kl"] == 0
    assert all(torch.isfinite(weight).all() for weight in learned.actor.parameters())


def test_only_the_chosen_rows_are_learned_from() -> None:
    one, other = learner(), learner()
    batch = bandit_batch(one, np.random.default_rng(5))
    batch.rows = np.arange(0, 512, 2)
    one.update(batch, LossWeights(1e-3, 0.01))
    batch.actions[1::2] = 0
    batch.advantages[1::2] = 1e6
    batch.returns[1::2] = -1e6
    other.update(batch, LossWeights(1e-3, 0.01))
    for weight, same in zip(one.actor.parameters(), other.actor.parameters()):
        torch.testing.assert_close(weight, same, rtol=0, atol=0)


def test_copying_alone_learns_the_teachers_moves() -> None:
    learned = learner()
    rng = np.random.default_rng(6)
    for _ in range(60):
        batch = bandit_batch(learned, rng)
        batch.advantages[:] = 0
        figures = learned.update(batch, LossWeights(1e-2, 0.0, imitation=1.0))
    assert figures["imitation_loss"] < 0.2
    assert np.mean(batch.actions == batch.teacher) > 0.8


def test_leads_alone_teach_what_moves_gain() -> None:
    learned = learner()
    rng = np.random.default_rng(11)
    for _ in range(60):
        batch = bandit_batch(learned, rng)
        context = np.argmax(batch.inputs.seen.obs, axis=1)
        batch.advantages[:] = 0
        batch.teacher[:] = 0
        batch.leads = REWARDS[context] - REWARDS[context, :1]
        figures = learned.update(batch, LossWeights(1e-2, 0.0))
    assert figures["leads_loss"] < 0.01
    with torch.no_grad():
        logits = actor_of(learned)(batch.inputs.seen, batch.rows)
    found = (logits - logits[:, :1]).numpy()[:, [1, 3]] / SHARPNESS
    np.testing.assert_allclose(found, np.asarray(batch.leads)[:, [1, 3]], atol=0.25)
    assert (batch.actions == REWARDS[:, [0, 1, 3]].argmax(axis=1)[context].choose([0, 1, 3])).mean() > 0.95


def test_only_the_chosen_fields_are_copied() -> None:
    learned = learner(game="back_alley", imitation_fields=["bid"], epochs=1)
    batch = bandit_batch(learned, np.random.default_rng(7))
    bids = batch.teacher == 0
    assert 0 < bids.mean() < 1
    figures = learned.update(batch, LossWeights(1e-12, 0.0, imitation=1.0))
    assert figures["imitation_loss"] == pytest.approx(np.log(3) * bids.mean(), abs=0.02)


def test_the_slow_copy_follows_and_holds_back() -> None:
    learned = learner(kl=1.0, kl_follow=0.25, epochs=1)
    before = actor_of(learned).first_bias.detach().clone()
    figures = learned.update(bandit_batch(learned, np.random.default_rng(8)), LossWeights(1e-2, 0.0))
    now = actor_of(learned).first_bias.detach()
    assert 0 < figures["kl_slow_copy"] < 0.1
    slow = learned.ema_policy
    assert isinstance(slow, Network)
    torch.testing.assert_close(slow.first_bias, before + 0.25 * (now - before))


def test_figures_by_field() -> None:
    learned = learner(epochs=1)
    batch = bandit_batch(learned, np.random.default_rng(9))
    batch.actions[:] = 3
    figures = learned.update(batch, LossWeights(1e-12, 0.0))
    assert "entropy_bid" not in figures
    assert figures["entropy_card"] == pytest.approx(figures["entropy"], abs=1e-5)


def test_a_loss_that_is_no_number_stops_before_it_does_harm() -> None:
    learned = learner(epochs=1)
    batch = bandit_batch(learned, np.random.default_rng(10))
    batch.returns[5] = np.nan
    before = {name: weight.clone() for name, weight in learned.actor.state_dict().items()}
    learned.config = learned.config.model_copy(update={"minibatch": 512})
    with pytest.raises(Diverged) as diverged:
        learned.update(batch, LossWeights(1e-2, 0.0))
    assert 5 in diverged.value.rows
    assert all(torch.equal(weight, before[name]) for name, weight in learned.actor.state_dict().items())


def test_high_card_is_learned() -> None:
    """The tiny game of the tests: better than its scripted player, which takes 0.32 points from random play."""
    config = Config(
        game=HIGH_CARD.name,
        decisions=150_000,
        tables=256,
        steps=24,
        hidden=[64],
        minibatch=1024,
        lr=5e-3,
        reward_scale=1,
    )
    trainer = Trainer(config)
    while trainer.progress < 1:
        trainer.iterate()
    assert len(trainer.league.snapshots) > 10
    check_high_card(trainer)
