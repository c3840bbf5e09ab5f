"""What moves change, as networks read it: it is true, it leaks nothing, and drawn cards pass for no facts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.game import Game, bot_move, legal, observe, play, reveals, total
from card_envs.opponents.networks.afterstates import (
    CHANCE_AHEAD,
    MAX_AHEAD,
    MAX_FOLLOWED,
    NUM_AHEAD,
    Afterstates,
    afterstates,
    concatenate,
    move_fields,
    move_scale,
)
from card_envs.opponents.networks.policies import (
    AfterstatePolicy,
    LookaheadPolicy,
    afterstates_of,
)
from card_envs.opponents.policy import decisions_at
from tests.conftest import positions, redealt, some, untrained

pytestmark = pytest.mark.mechanics  # the games' own parts have tests of their own: test_contract.py, test_worlds.py


def dense(game: Game, after: Afterstates) -> NDArray[np.float32]:
    """[R, M] the rows, unpacked."""
    starts, entry, value = after.rows
    rows = np.zeros((len(after.action), total(move_fields(game.rules))), np.float32)
    rows[np.repeat(np.arange(len(rows)), np.diff(starts)), entry] = value
    return rows


def decision_of(after: Afterstates) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(after.first) - 1), np.diff(after.first))


def play_each(
    first: int, last: int, states: Any, actions: Any, seats: Any, obs: Any, mask: Any, flags: Any
) -> None:  # fmt: skip
    """Play an action at each table: what its seat sees then, may play then, and [B, 3] how the move was."""
    for i in range(first, last):
        flags[i, 2] = reveals(states[i], actions[i])
        play(states[i], actions[i])
        observe(states[i], seats[i], obs[i])
        flags[i, 0] = not states[i].needs_deal and states[i].seat == seats[i]
        flags[i, 1] = states[i].needs_deal
        if flags[i, 0]:
            legal(states[i], mask[i])


def played(game: Game, states: NDArray[Any], after: Afterstates) -> NDArray[np.float32]:
    """[R, M] the rows as they would be in these very states, and [R] whether each move may show a hidden card."""
    rules, decision = game.rules, decision_of(after)
    before = decisions_at(game, states)
    n, size = len(decision), rules.OBS_SIZE
    obs, mask = np.zeros((n, size), np.int8), np.zeros((n, rules.NUM_ACTIONS), np.int8)
    flags = np.zeros((n, 3), np.bool_)
    specialize(play_each, game)(0, n, states[decision], after.action, before.seat[decision], obs, mask, flags)
    changes = (obs.astype(np.float32) - before.obs[decision]) * move_scale(rules)[:size]
    baseline = after.action == before.bot_moves("greedy")[decision]
    moves = np.eye(rules.NUM_ACTIONS, dtype=np.float32)[after.action]
    return np.hstack([changes, moves, mask, flags[:, :2], baseline[:, None], flags[:, 2:]]).astype(np.float32)


def play_on(
    first: int, last: int, states: Any, actions: Any, seats: Any, by_all: bool, obs: Any, shows: Any, ends: Any
) -> None:  # fmt: skip
    """Play an action at each table, then `greedy` until it would show a card: what the action's seat sees then."""
    for i in range(first, last):
        shows[i] = reveals(states[i], actions[i])
        play(states[i], actions[i])
        for _ in range(MAX_FOLLOWED):
            if states[i].needs_deal or not (by_all or states[i].seat == seats[i]):
                break
            if reveals(states[i], bot_move(states[i])):
                break
            play(states[i], bot_move(states[i]))
        observe(states[i], seats[i], obs[i])
        ends[i] = states[i].needs_deal


def play_far(first: int, last: int, states: Any, actions: Any, seats: Any, by_all: bool, obs: Any) -> None:
    """Play an action at each table, then `greedy` until one hidden card more than CARDS_AHEAD would show."""
    for i in range(first, last):
        action, shown = actions[i], 0
        for _ in range(MAX_AHEAD):
            shown += reveals(states[i], action) or not (by_all or states[i].seat == seats[i])
            if shown == CHANCE_AHEAD + 1:
                break
            play(states[i], action)
            if states[i].needs_deal:
                break
            action = bot_move(states[i])
        observe(states[i], seats[i], obs[i])


def test_lookahead_moves_lead_where_greedy_would(game: Game) -> None:
    states = some(positions(game), 300, seed=8)
    decisions = decisions_at(game, states)
    decision, action = np.nonzero(decisions.mask)
    by_all, size = game.all_see_alike, game.rules.OBS_SIZE
    obs, (shows, ends) = np.zeros((len(action), size), np.int8), np.zeros((2, len(action)), np.bool_)
    seats = decisions.seat[decision]
    loop = specialize(play_on, game, "greedy")
    loop(0, len(action), states[decision], action, seats, by_all, obs, shows, ends)
    others = action != decisions.bot_moves("greedy")[decision]
    alike = np.zeros(len(action), np.bool_)
    reached = set()
    for row in np.lexsort((action, others, decision)):  # the own move before all others
        place = (decision[row], obs[row].tobytes())
        alike[row] = place in reached and not shows[row]
        if not shows[row]:
            reached.add(place)
    after = afterstates_of(decisions, lookahead=True)
    left, action = decision[~alike], action[~alike]
    np.testing.assert_array_equal(np.stack([decision_of(after), after.action]), np.stack([left, action]))
    found = dense(game, after)
    names = found[:, size:][:, : game.rules.NUM_ACTIONS]
    assert (names.sum(axis=1) == shows[~alike]).all()
    if by_all:
        assert alike.mean() > 0.1

    # Where all lead to the same, nothing is told of it, but that the deal ends there.
    alone, over = (np.diff(after.first) == 1)[left], ends[~alike] & ~shows[~alike]
    assert not found[alone & ~over, :size].any()

    # What it leads to: as in the mean of other drawn worlds, and exactly so where these agree.
    worlds = []
    for seed in range(40):
        seen = np.zeros((len(action), size), np.int8)
        drawn = redealt(game, states, states["seat"].copy(), seed)[left]
        specialize(play_far, game, "greedy")(0, len(action), drawn, action, seats[~alike], by_all, seen)
        worlds.append((seen.astype(np.float32) - decisions.obs[left]) * move_scale(game.rules)[:size])
    mean, spread, width = np.mean(worlds, axis=0), np.std(worlds, axis=0), np.ptp(worlds, axis=0)
    agreed = np.isclose(found[:, :size], mean, atol=1e-6)[(width == 0) & ~alone[:, None]]
    assert agreed.mean() > 0.98  # 40 worlds don't show what is rare
    open_ones = (spread > 0.4 * width) & (width > 0) & ~alone[:, None]
    off = (found[:, :size] - mean) / np.where(open_ones, spread, np.inf)
    off = (off**2).sum(axis=1)[open_ones.any(axis=1)] / open_ones.sum(axis=1)[open_ones.any(axis=1)]
    assert np.median(off) == pytest.approx(1 / NUM_AHEAD + 1 / 40, rel=0.3)
    # Where the deal is over before a hidden card shows, nothing is drawn.
    certain = (obs.astype(np.float32) - decisions.obs[decision]) * move_scale(game.rules)[:size]
    np.testing.assert_array_equal(found[over, :size], certain[~alike][over])


def test_moves_change_what_they_say(game: Game) -> None:
    states = some(positions(game), 300)
    after = afterstates_of(decisions_at(game, states), lookahead=False)
    expected = played(game, states, after)
    found, certain = dense(game, after), expected[:, -1] == 0
    np.testing.assert_array_equal(found[certain], expected[certain, :-1])
    mask = decisions_at(game, states).mask
    np.testing.assert_array_equal(np.stack([decision_of(after), after.action], axis=1), np.argwhere(mask))


def test_drawn_cards_pass_for_no_facts(game: Game) -> None:
    """Where a move shows a hidden card, what it is said to change is what it changes in (almost) every world."""
    states = some(positions(game), 300, seed=1)
    after = afterstates_of(decisions_at(game, states), lookahead=False)
    found, seats = dense(game, after), states["seat"].copy()
    worlds = [played(game, redealt(game, states, seats, seed), after)[:, :-1] for seed in range(40)]
    agreeing = np.mean([world == found for world in worlds], axis=0)
    shown = found != 0
    assert agreeing[shown].mean() > 0.98
    assert (shown & (agreeing < 0.2)).any(axis=1).mean() < 0.005  # a card that was drawn is seldom drawn again


@pytest.mark.parametrize("lookahead", [False, True])
def test_hidden_cards_leak_into_nothing(game: Game, lookahead: bool) -> None:
    states = some(positions(game), 300, seed=3)
    one = afterstates_of(decisions_at(game, states), lookahead)
    other = afterstates_of(decisions_at(game, redealt(game, states, states["seat"].copy(), 5)), lookahead)
    again = afterstates_of(decisions_at(game, states.copy()), lookahead)
    for parts in zip(*((x.first, x.action, *x.rows) for x in (one, other, again))):
        np.testing.assert_array_equal(parts[0], parts[1])
        np.testing.assert_array_equal(parts[0], parts[2])


@pytest.mark.parametrize("lookahead", [False, True])
def test_some_tables_are_rows_of_all(game: Game, lookahead: bool) -> None:
    states = some(positions(game), 40, seed=4)
    tables = np.array([7, 3, 3, 39])
    everything = afterstates(game, states, np.arange(40), lookahead=lookahead)
    rows = dense(game, everything)
    parts = [afterstates(game, states, np.array([table]), lookahead=lookahead) for table in tables]
    for found in (afterstates(game, states, tables, lookahead=lookahead), concatenate(parts)):
        expected = [rows[everything.first[table] : everything.first[table + 1]] for table in tables]
        np.testing.assert_array_equal(dense(game, found), np.concatenate(expected))
    assert len(concatenate([]).action) == len(afterstates(game, states, np.zeros(0, np.int64)).action) == 0


def test_parts_do_not_show(game: Game) -> None:
    """They are of 256 tables."""
    states = np.resize(some(positions(game), 30, seed=5), 257)
    rows = dense(game, afterstates(game, states, np.arange(257)))
    last = dense(game, afterstates(game, states, np.array([256])))
    np.testing.assert_array_equal(rows[-len(last) :], last)


@pytest.mark.parametrize("kind", [AfterstatePolicy, LookaheadPolicy])
def test_compiled_networks_score_moves_as_the_formula_does(game: Game, kind: type[AfterstatePolicy]) -> None:
    policy = untrained(game, kind, [24, 10])
    decisions = decisions_at(game, some(positions(game), 60, seed=3))
    expected = policy.logits(policy.inputs(decisions))
    decisions.obs[:] = decisions.mask[:] = 1  # decides nothing
    np.testing.assert_allclose(policy.logits_at(decisions), expected, rtol=1e-4, atol=1e-4)
    policy = untrained(game, kind, [8, 6, 4])
    np.testing.assert_array_equal(policy.logits_at(decisions), policy.logits(policy.inputs(decisions)))
