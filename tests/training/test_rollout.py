"""Rollouts: legal and exactly recorded decisions, past selves, and the league they come from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from card_envs import get_game
from training.league import League
from training.network import Network
from training.rollout import Rollout, _draw_actions

GAME = get_game("back_alley")
OPTIONS = {"deals": "single"}


def actor(seed: int) -> Network:
    torch.manual_seed(seed)
    return Network(GAME.rules.OBS_FIELDS, [16], GAME.rules.NUM_ACTIONS, 3.0)


def played(past_share: float = 0.0, past: Network | None = None, seed: int = 0) -> Rollout:
    rollout = Rollout(GAME, 40, 60, past_share, seed, OPTIONS)
    rollout.collect(actor(1), past, lambda: None)
    return rollout


def test_decisions_are_legal_and_their_probabilities_those_of_the_network() -> None:
    rollout = played()
    mask = rollout.mask.reshape(-1, GAME.rules.NUM_ACTIONS)
    actions = rollout.actions.reshape(-1, 1)
    assert np.take_along_axis(mask, actions, axis=1).all()
    with torch.no_grad():
        logits = actor(1)(rollout.obs.reshape(len(mask), -1), np.arange(len(mask)))
        log_all = logits.masked_fill(torch.from_numpy(mask == 0), -1e9).log_softmax(dim=1)
    expected = log_all.gather(1, torch.from_numpy(actions))[:, 0]
    np.testing.assert_allclose(rollout.log_probabilities.reshape(-1), expected, atol=1e-5)
    np.testing.assert_array_equal(rollout.learned, rollout.mask.sum(axis=2, dtype=int) > 1)


def test_buffers_belong_together() -> None:
    """A decision's observation, full state, seat and reward come from the same moment."""
    rollout = played()
    size = GAME.rules.OBS_SIZE
    np.testing.assert_array_equal(rollout.full[..., :size], rollout.obs)
    assert rollout.done.any()
    assert (rollout.rewards[~rollout.done] == 0).all()  # a single deal pays at its end
    scores = rollout.rewards[rollout.done]
    np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])


def test_same_seed_same_bytes() -> None:
    one, two, other = played(seed=5), played(seed=5), played(seed=6)
    for name in ("obs", "full", "mask", "seat", "actions", "log_probabilities", "rewards", "done"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert one.actions.tobytes() != other.actions.tobytes()


def test_past_selves_sit_on_one_side_and_are_not_learned_from() -> None:
    rollout = played(0.25, actor(2))
    assert rollout.num_past == 10
    assert (rollout.past_seats[:10:2] == [True, False, True, False]).all()
    assert (rollout.past_seats[1:10:2] == [False, True, False, True]).all()
    assert not rollout.past_seats[10:].any()
    is_past = rollout.past_seats[np.arange(40), rollout.seat]
    assert not rollout.learned[is_past].any()
    assert rollout.learned[~is_past].mean() > 0.9
    rows = np.flatnonzero(is_past.reshape(-1))
    with torch.no_grad():
        logits = actor(2)(rollout.obs.reshape(is_past.size, -1), rows)
    mask = torch.from_numpy(rollout.mask.reshape(is_past.size, -1)[rows] == 0)
    taken = torch.from_numpy(rollout.actions.reshape(-1, 1)[rows])
    expected = logits.masked_fill(mask, -1e9).log_softmax(dim=1).gather(1, taken)[:, 0]
    np.testing.assert_allclose(rollout.log_probabilities.reshape(-1)[rows], expected, atol=1e-5)


def test_margin_over_past_selves() -> None:
    rollout = Rollout(GAME, 4, 2, 0.5, 0, OPTIONS)
    assert np.isnan(rollout.margin_over_past())
    rollout.done[1, :] = True
    rollout.rewards[1] = [[-7, 7, -7, 7], [5, -5, 5, -5], [90, -90, 90, -90], [90, -90, 90, -90]]
    assert rollout.margin_over_past() == (7 + 5) / 2


def test_tick_can_stop_a_rollout() -> None:
    rollout = Rollout(GAME, 4, 50, 0, 0, OPTIONS)
    ticks = iter([None, None])

    with pytest.raises(StopIteration):
        rollout.collect(actor(1), None, lambda: next(ticks))
    assert rollout.log_probabilities[:2].all()
    assert not rollout.log_probabilities[2:].any()


def test_draws_have_their_probabilities() -> None:
    logits = np.array([1.0, 50.0, -1.0, 0.0, 2.0], np.float32)
    mask = np.array([[1, 0, 1, 0, 1]], np.int8)
    num = 10_000
    draws = ((np.arange(num) + 0.5) / num).astype(np.float32)
    counts = np.zeros(5)
    log_probabilities = np.zeros(1, np.float32)
    for draw in draws:
        action = np.zeros(1, np.int64)
        _draw_actions(logits[None], mask, np.zeros(1, np.int64), np.array([draw]), action, log_probabilities)
        counts[action[0]] += 1
        weights = np.exp(logits - 2) * mask[0]
        assert log_probabilities[0] == pytest.approx(np.log(weights[action[0]] / weights.sum()), abs=1e-5)
    np.testing.assert_allclose(counts / num, weights / weights.sum(), atol=2 / num)


def test_the_largest_draw_is_legal() -> None:
    logits = np.array([[-30, 0, -30, 0]], np.float32)
    mask = np.array([[1, 1, 1, 0]], np.int8)
    action, log_probability = np.zeros(1, np.int64), np.zeros(1, np.float32)
    draw = np.nextafter(np.ones(1, np.float32), np.float32(0))
    _draw_actions(logits, mask, np.zeros(1, np.int64), draw, action, log_probability)
    assert mask[0, action[0]]


def test_league_spaces_its_snapshots_evenly_and_keeps_them_unchanged() -> None:
    network = actor(1)
    league = League(network, 4, seed=0)
    assert league.draw() is None
    kept: list[float] = []
    for progress in np.linspace(0, 1, 101):
        league.offer(network, float(progress))
        if len(league.snapshots) > len(kept):
            kept.append(float(progress))
            with torch.no_grad():
                network.first_bias.add_(1)
    np.testing.assert_allclose(kept, [0.2, 0.4, 0.6, 0.8], atol=0.011)
    drawn = {past.first_bias.mean().item() for _ in range(100) if (past := league.draw()) is not None}
    assert drawn == {0.0, 1.0, 2.0, 3.0}
    assert network.first_bias.mean().item() == 4.0
