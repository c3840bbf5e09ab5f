"""Rollouts: legal and exactly recorded decisions, past selves, and the league they come from."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from card_envs import get_game
from card_envs.opponents.networks.policies import input_fields
from card_envs.opponents.networks.sparse import compress
from training.config import Config
from training.league import League, rivals_of
from training.network import Actor, AfterstateActor, Network, Rows
from training.rollout import CURRENT, PAST, SCRIPTED, Rollout, _draw_actions

GAME = get_game("back_alley")
OPTIONS = {"deals": "single"}


def actor(seed: int, sees_moves: bool = False, lookahead: bool = False) -> Actor:
    torch.manual_seed(seed)
    if sees_moves:
        return AfterstateActor(GAME, [16], 2.0, 3.0, lookahead)
    return Network(input_fields(GAME.rules), [16], GAME.rules.NUM_ACTIONS, 3.0)


def dealt(seed: int = 0, tables: int = 40, **settings: Any) -> Rollout:
    config = Config(
        **{"game": GAME.name, "minutes": 1, "past_share": 0, "greedy_share": 0, **settings}, tables=tables, steps=60
    )
    return Rollout(GAME, config, OPTIONS, [seed])


def played(past: Actor | None = None, seed: int = 0, sees_moves: bool = False, **settings: Any) -> Rollout:
    rollout = dealt(seed, **settings)
    rollout.collect(actor(1, sees_moves), past)
    return rollout


@pytest.mark.parametrize("sees_moves", [False, True])
def test_decisions_are_legal_and_their_probabilities_those_of_the_network(sees_moves: bool) -> None:
    settings: dict[str, Any] = {"network": "afterstates", "hint": 2.0} if sees_moves else {}
    rollout = played(sees_moves=sees_moves, **settings)
    mask = rollout.mask.reshape(-1, GAME.rules.NUM_ACTIONS)
    actions = rollout.actions.reshape(-1, 1)
    assert np.take_along_axis(mask, actions, axis=1).all()
    with torch.no_grad():
        logits = actor(1, sees_moves).logits(rollout.inputs(), np.arange(len(mask)))
        log_all = logits.masked_fill(torch.from_numpy(mask == 0), -1e9).log_softmax(dim=1)
    expected = log_all.gather(1, torch.from_numpy(actions))[:, 0]
    np.testing.assert_allclose(rollout.log_probabilities.reshape(-1), expected, atol=1e-5)
    np.testing.assert_array_equal(rollout.learned, rollout.mask.sum(axis=2, dtype=int) > 1)


def test_what_was_found_while_playing_is_not_looked_for_again() -> None:
    rollout = played()
    seen, rows = rollout.inputs().seen, rollout.seen.reshape(-1, rollout.seen.shape[-1])
    assert isinstance(seen, Rows)
    for found, expected in zip(seen.sparse, compress(rows, np.arange(len(rows)), rollout.scale)):
        np.testing.assert_array_equal(found, expected)


def test_scripted_players_moves_are_not_looked_at() -> None:
    rollout = played(sees_moves=True, network="afterstates", greedy_share=0.5)
    assert rollout.after is not None
    scripted = rollout.sitting[np.arange(40), rollout.seat] == SCRIPTED
    counts = np.diff(rollout.after.first).reshape(scripted.shape)
    assert scripted.any() and not counts[scripted].any()
    np.testing.assert_array_equal(counts[~scripted], rollout.mask.sum(axis=2, dtype=np.int64)[~scripted])
    actions = np.nonzero(rollout.mask[~scripted])[1]
    np.testing.assert_array_equal(rollout.after.action, actions)


def test_moves_that_lead_where_greedys_leads_are_never_played() -> None:
    game = get_game("big_ben")
    config = Config(game=game.name, minutes=1, network="lookahead", hint=2.0, tables=40, steps=60)
    torch.manual_seed(1)
    rollout = Rollout(game, config, {}, [0])
    rollout.collect(AfterstateActor(game, [16], 2.0, 3.0, lookahead=True), None)
    assert rollout.after is not None
    shown = np.zeros((rollout.actions.size, game.rules.NUM_ACTIONS), np.bool_)
    shown[rollout.after.decision(), rollout.after.action] = True
    assert shown[np.arange(len(shown)), rollout.actions.ravel()].all()
    assert shown.sum() < 0.9 * rollout.mask.sum()


def test_networks_at_a_table_read_alike() -> None:
    rollout = dealt(network="afterstates", past_share=0.5)
    with pytest.raises(ValueError, match="where moves settle can't sit at tables"):
        rollout.collect(actor(1, sees_moves=True), actor(2, sees_moves=True, lookahead=True))


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


def test_past_selves_and_greedy_sit_on_one_side_and_are_not_learned_from() -> None:
    rollout = played(actor(2), past_share=0.25, greedy_share=0.1)
    assert rollout.sitting[:10:2].tolist() == [[PAST, CURRENT, PAST, CURRENT]] * 5
    assert rollout.sitting[1:10:2].tolist() == [[CURRENT, PAST, CURRENT, PAST]] * 5
    assert rollout.sitting[10:14:2].tolist() == [[SCRIPTED, CURRENT, SCRIPTED, CURRENT]] * 2
    assert (rollout.sitting[14:] == CURRENT).all()
    mover = rollout.sitting[np.arange(40), rollout.seat]
    assert not rollout.learned[mover != CURRENT].any()
    assert rollout.learned[mover == CURRENT].mean() > 0.9
    np.testing.assert_array_equal(rollout.actions[mover == SCRIPTED], rollout.teacher[mover == SCRIPTED])
    rows = np.flatnonzero((mover == PAST).reshape(-1))
    with torch.no_grad():
        logits = actor(2).logits(rollout.inputs(), rows)
    mask = torch.from_numpy(rollout.mask.reshape(mover.size, -1)[rows] == 0)
    taken = torch.from_numpy(rollout.actions.reshape(-1, 1)[rows])
    expected = logits.masked_fill(mask, -1e9).log_softmax(dim=1).gather(1, taken)[:, 0]
    np.testing.assert_allclose(rollout.log_probabilities.reshape(-1)[rows], expected, atol=1e-5)


def test_the_teacher_is_greedy() -> None:
    rollout = played(greedy_share=1.0)
    env = dealt(greedy_share=1.0).env
    moves = np.zeros(40, np.int64)
    for t in range(60):
        env.bot_actions("greedy", moves)
        np.testing.assert_array_equal(rollout.teacher[t], moves)
        env.step(rollout.actions[t])


def test_forced_decisions_are_learned_from_on_request() -> None:
    rollout = played(skip_forced=False)
    assert rollout.learned.all()
    assert (rollout.mask.sum(axis=2, dtype=int) == 1).any()


@pytest.mark.parametrize(("who", "share"), [(PAST, "past_share"), (SCRIPTED, "greedy_share")])
def test_margins(who: int, share: str) -> None:
    settings: dict[str, Any] = {share: 0.5}
    rollout = dealt(tables=4, **settings)
    assert np.isnan(rollout.margin_over(who))
    rollout.done[1, :] = True
    rollout.rewards[1] = [[-7, 7, -7, 7], [5, -5, 5, -5], [90, -90, 90, -90], [90, -90, 90, -90]]
    assert rollout.margin_over(who) == (7 + 5) / 2


def test_a_rollout_goes_on_from_its_memory() -> None:
    one = played()
    arrays, facts = one.memory()
    arrays = {name: array.copy() for name, array in arrays.items()}
    facts = json.loads(json.dumps(facts))
    one.collect(actor(1), None)
    other = dealt(seed=99)
    other.remember(arrays, facts)
    other.collect(actor(1), None)
    for name in ("obs", "full", "actions", "log_probabilities", "rewards", "done"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


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
    assert isinstance(network, Network)
    league = League(network, 4, seed=[0])
    assert league.draw() is None
    kept: list[float] = []
    for progress in np.linspace(0, 1, 101):
        league.offer(network, float(progress))
        if len(league.snapshots) > len(kept):
            kept.append(float(progress))
            with torch.no_grad():
                network.first_bias.add_(1)
    np.testing.assert_allclose(kept, [0.2, 0.4, 0.6, 0.8], atol=0.011)
    drawn = {past.first_bias.mean().item() for _ in range(100) if isinstance(past := league.draw(), Network)}
    assert drawn == {0.0, 1.0, 2.0, 3.0}
    assert network.first_bias.mean().item() == 4.0


def test_league_draws_rivals_alone_at_first_then_as_often_as_asked() -> None:
    network, rivals = actor(1), [actor(2), actor(3)]
    league = League(network, 4, [0], rivals, rivals_share=0.75)
    first = [league.draw() for _ in range(100)]
    assert all(any(drawn is rival for drawn in first) for rival in rivals)
    assert all(drawn in rivals for drawn in first)
    league.offer(network, 0.5)
    drawn = [league.draw() for _ in range(1000)]
    assert 0.7 < sum(one in rivals for one in drawn) / 1000 < 0.8


@pytest.mark.parametrize(
    ("name", "in_tensors", "said"),
    [
        ("ppos", False, "rivals: 'ppos': unknown opponent"),
        ("greedy", False, "rivals: 'greedy': expected a trained opponent"),
        ("small", False, "rivals: 'small': of its network and this one, one reads where moves settle"),
        ("small", True, "rivals: 'small': its network sees what moves do"),
    ],
)
def test_rivals_must_be_able_to_sit_at_the_tables(name: str, in_tensors: bool, said: str) -> None:
    game = get_game("russian_bank")
    network = AfterstateActor(game, [16], 2.0, 3.0)
    with pytest.raises(ValueError, match=said):
        rivals_of(game, [name], network, in_tensors)
    assert len(rivals_of(game, ["ppo", "ppo"], network, in_tensors)) == 2
