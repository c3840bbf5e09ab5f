"""What moves gain over the scripted player's: against tables that are played on step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs import load_opponent
from card_envs.compare.pairs import play_pairs
from card_envs.engine.batch import BatchEnv
from card_envs.game import Int64s
from card_envs.opponents.scripted import ScriptedPolicy
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from training.config import Config
from training.leads import kinds_of, leads_led, leads_over, spreads
from training.network import new_actor
from training.rollout import Rollout
from training.trainer import Trainer

TABLES = 200


def dealt() -> tuple[BatchEnv, Int64s]:
    env = BatchEnv(HIGH_CARD, TABLES, 3)
    return env, scripted(env)


def scripted(env: BatchEnv) -> Int64s:
    moves = np.zeros(TABLES, np.int64)
    env.bot_actions("greedy", moves)
    return moves


def gained(action: int) -> NDArray[np.floating]:
    """[B] points of the first seat to move, who plays `action` where that is legal, the scripted player then."""
    env, own = dealt()
    seat, tables = env.seat.copy(), np.arange(TABLES)
    moves = np.where(env.mask[:, action] != 0, action, own)
    sums, running = np.zeros(TABLES), np.ones(TABLES, np.bool_)
    while running.any():
        env.step(moves)
        sums += np.where(running, env.rewards[tables, seat], 0)
        running &= ~env.done
        moves = scripted(env)
    return sums


def test_leads_are_what_playing_on_brings() -> None:
    env, own = dealt()
    before = env.states.copy()
    leads = leads_over(HIGH_CARD, env.states, own, env.mask)
    assert (env.states == before).all()
    results = np.stack([gained(action) for action in range(HIGH_CARD.rules.NUM_ACTIONS)], axis=1)
    # Points are zero-sum: being ahead by so many counts each of them twice.
    expected = np.where(env.mask != 0, results - results[np.arange(TABLES), own][:, None], 0)
    scale = leads[expected != 0] / expected[expected != 0]
    assert len(scale) > 50 and (scale == scale[0]).all() and scale[0] > 0
    assert (leads[expected == 0] == 0).all()


def test_whoever_plays_on_as_greedy_does_finds_the_same_leads() -> None:
    env, own = dealt()
    led = leads_led(HIGH_CARD, env.states, own, env.mask, ScriptedPolicy("greedy"), np.random.default_rng(0))
    np.testing.assert_array_equal(led, leads_over(HIGH_CARD, env.states, own, env.mask))
    assert (led != 0).any()


def test_drawn_worlds_take_chance_out_of_leads() -> None:
    env, own = dealt()
    one = leads_over(HIGH_CARD, env.states, own, env.mask)
    many = leads_over(HIGH_CARD, env.states, own, env.mask, worlds=256, seed=1)
    np.testing.assert_array_equal(many, leads_over(HIGH_CARD, env.states, own, env.mask, worlds=256, seed=1))
    others = env.mask != 0
    others[np.arange(TABLES), own] = False
    assert (many[~others] == 0).all()
    chance = (one - many)[others]
    assert abs(chance.mean()) < 4 * chance.std() / np.sqrt(len(chance))
    assert many[others].std() < one[others].std()


def test_spreads_are_those_of_the_best_rival() -> None:
    leads = np.array([[0, 2, -9], [0, 4, 1], [5, 0, -9], [0, 0, 0]], np.float32)
    own, mask = np.array([0, 0, 1, 2]), np.array([[1, 1, 0], [1, 1, 1], [1, 1, 1], [0, 0, 1]], np.int8)
    # Rivals' best leads: 2 and 4 where the own move is of the first kind, 5 of the second; the last has no rival.
    np.testing.assert_array_equal(spreads(leads, own, mask, np.array([0, 1, 1])), [1.0, 1.0])
    np.testing.assert_allclose(spreads(leads, own, mask, np.array([0, 0, 0])), [np.std([2, 4, 5])])


def config(**more: Any) -> Config:
    return Config(
        **{
            "game": HIGH_CARD.name,
            "decisions": 150_000,
            "tables": 256,
            "steps": 24,
            "hidden": [32],
            "minibatch": 256,
            "lr": 5e-3,
            "reward_scale": 1,
            "leads_until": 1.0,
            **more,
        }
    )


def test_rollouts_try_every_decision() -> None:
    small = config(tables=8, steps=5, greedy_share=0.25)
    rollout = Rollout(HIGH_CARD, small, {}, [0])
    states = rollout.env.states.copy()
    rollout.collect(new_actor(HIGH_CARD, small), None, leads=True)
    mask = np.where(rollout.learned[0][:, None], rollout.mask[0], np.int8(0))  # not where `greedy` decides
    assert 0 < rollout.learned[0].sum() < 8
    np.testing.assert_array_equal(rollout.leads[0], leads_over(HIGH_CARD, states, rollout.teacher[0], mask))
    assert (rollout.leads[rollout.mask == 0] == 0).all() and (rollout.leads != 0).any()
    assert (np.take_along_axis(rollout.leads, rollout.teacher[..., None], axis=2) == 0).all()


def test_rollouts_try_what_is_told_apart_in_several_worlds() -> None:
    found = []
    for worlds in (1, 16, 16):
        small = config(tables=64, steps=5, network="lookahead", leads_worlds=worlds)
        rollout = Rollout(HIGH_CARD, small, {}, [0])
        rollout.collect(new_actor(HIGH_CARD, small), None, leads=True)
        assert rollout.after is not None
        told = np.zeros((5 * 64, rollout.mask.shape[-1]), np.bool_)
        told[rollout.after.decision(), rollout.after.action] = True
        assert (rollout.leads.reshape(told.shape)[~told] == 0).all() and (rollout.leads != 0).any()
        found.append(rollout.leads[0])
    assert found[1][found[1] != 0].std() < found[0][found[0] != 0].std()
    np.testing.assert_array_equal(found[1], found[2])


def test_a_game_without_phases_has_one_kind_of_decision() -> None:
    assert kinds_of(HIGH_CARD).tolist() == [0] * HIGH_CARD.rules.NUM_ACTIONS


@pytest.mark.parametrize("more", [{}, *({"network": name, "hint": 1.0} for name in ("afterstates", "lookahead"))])
def test_leads_are_learned(more: dict[str, Any]) -> None:
    trainer = Trainer(config(**more))
    figures = [trainer.iterate()]
    while trainer.progress < 1:
        figures.append(trainer.iterate())
    assert figures[-1]["leads_loss"] < 0.8 * figures[0]["leads_loss"]
    policy = trainer.actor.stored(HIGH_CARD)
    policy.sampled = False
    found = play_pairs(HIGH_CARD, policy, load_opponent("greedy", HIGH_CARD), 2000).margin_per_episode
    assert found.low > 0.05, found


def test_then_its_own_games_teach() -> None:
    trainer = Trainer(config(leads_until=0.5, decisions=20_000))
    phases = []
    while trainer.progress < 1:
        phases.append("leads_loss" in trainer.iterate())
    assert phases[0] and not phases[-1] and sorted(phases, reverse=True) == phases
