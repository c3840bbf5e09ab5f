"""N-tuple networks: what a planner reaches, what counts there, who plays by it, and how it is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs import load_opponent
from card_envs.engine.compile import specialize
from card_envs.engine.table import Table
from card_envs.game import (
    Game,
    Int64s,
    active_features,
    expand,
    final_margin,
    is_chance_next,
    is_terminal,
    load,
    path_to,
    reveals,
    score_margin,
)
from card_envs.opponents.lines import LONGEST, NO_MOVE
from card_envs.opponents.networks.afterstates import MOST_AHEAD
from card_envs.opponents.networks.folder import load_network, save_network
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.ntuples import NO_WEIGHTS, find_best_lines, planner_of, planning_scratch
from card_envs.opponents.networks.onnx import to_onnx
from card_envs.opponents.policy import decisions_at
from card_envs.opponents.search import Guide, SearchPolicy
from card_envs.opponents.searching import FRACTION, TO_THE_END, Ending, new_scratch, result_of
from card_envs.opponents.value import NO_NET
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import games_under_test, positions, redealt, some

PLANNING = [game for game in games_under_test() if game.planner is not None]
each_planner = pytest.mark.parametrize("game", PLANNING, ids=lambda game: game.name)
ROOM = 300


def reached_from(
    first: int, last: int, states: NDArray[Any], scratch: Any, lines: NDArray[np.int16], facts: NDArray[np.float64],
    features: Int64s, numbers: Int64s, known: Int64s,
) -> None:  # fmt: skip
    """All that is known of the positions that can be reached at one table."""
    for i in range(first, last):
        load(states[i], states[i].seat, scratch)
        known[0] = expand(scratch, ROOM, LONGEST - 1)
        for k in range(known[0]):
            lines[k, path_to(scratch, k, lines[k]) :] = NO_MOVE
            facts[k, 0], facts[k, 1], facts[k, 2] = (
                is_chance_next(scratch, k),
                is_terminal(scratch, k),
                final_margin(scratch, k),
            )
            numbers[k] = active_features(scratch, k)
            for j in range(numbers[k]):
                features[k, j] = scratch.features[j]


def entered_at(
    states: NDArray[Any], seat: int, scratch: Any, facts: NDArray[np.float64], features: Int64s, numbers: Int64s
) -> None:
    """What is known of a position as such."""
    load(states[0], seat, scratch)
    facts[0] = final_margin(scratch, 0)
    numbers[0] = active_features(scratch, 0)
    for j in range(numbers[0]):
        features[j] = scratch.features[j]


def reveals_at(states: NDArray[Any], move: int) -> bool:
    return bool(reveals(states[0], move))


def score_margin_at(states: NDArray[Any], seat: int) -> float:
    return float(score_margin(states[0], seat))


def shows(table: Table, move: int) -> bool:
    """Whether a move may show something hidden."""
    return bool(specialize(reveals_at, table.game)(np.array([table.state]), move))


def would_come(table: Table, move: int) -> bool:
    """Whether a move is what a position as such expects: that of `greedy`, or any where nobody else plays."""
    return table.game.rules.NUM_SEATS == 1 or table.bot_move("greedy") == move


def known_of(table: Table, seat: int) -> tuple[float, list[int]]:
    """A position as such: its points, and which weights count."""
    game = table.game
    scratch = planning_scratch(game, ROOM)
    facts, features, numbers = np.zeros(1), np.zeros(len(scratch.features), np.int64), np.zeros(1, np.int64)
    specialize(entered_at, game)(np.array([table.state]), seat, scratch, facts, features, numbers)
    return facts[0], sorted(features[: numbers[0]].tolist())


class Reached:
    """The positions that can be reached from a state: lines, what is known of each, which weights count."""

    def __init__(self, game: Game, state: Any) -> None:
        scratch = planning_scratch(game, ROOM)
        lines, facts, known = np.zeros((ROOM, LONGEST), np.int16), np.zeros((ROOM, 3)), np.zeros(1, np.int64)
        features, numbers = np.zeros((ROOM, len(scratch.features)), np.int64), np.zeros(ROOM, np.int64)
        states = np.array([state], game.rules.STATE)
        specialize(reached_from, game)(0, 1, states, scratch, lines, facts, features, numbers, known)
        number = int(known[0])
        self.lines = [[int(move) for move in line if move != NO_MOVE] for line in lines[:number]]
        self.is_chance_next, self.is_terminal = facts[:number, 0] != 0, facts[:number, 1] != 0
        self.final_margin = facts[:number, 2]
        self.features = [sorted(row[:count].tolist()) for row, count in zip(features, numbers[:number])]


@each_planner
def test_what_is_reached_is_reached_by_the_rules(game: Game) -> None:
    num_weights, several = planner_of(game).NUM_WEIGHTS, 0
    for state in some(positions(game), 60, seed=1):
        found = Reached(game, state)
        several += len(found.lines) > 3
        lines = [tuple(line) for k, line in enumerate(found.lines) if found.is_chance_next[k] or found.is_terminal[k]]
        assert len(set(lines)) == len(lines)
        for k, line in enumerate(found.lines):
            table, seat = Table(game, state), int(state["seat"])
            as_such = True
            for step, move in enumerate(line):
                assert not table.needs_deal and table.state.seat == seat and table.legal()[move]
                if shows(table, move):
                    assert step == len(line) - 1
                    as_such = would_come(table, move)
                    break
                table.play(move)
            else:
                if game.rules.NUM_SEATS == 1:
                    assert not found.is_chance_next[k]
                if not table.needs_deal and table.state.seat == seat and len(line) < LONGEST:
                    assert not found.is_chance_next[k]
                    assert found.is_terminal[k] or not any(
                        shows(table, move) for move in np.flatnonzero(table.legal()).tolist()
                    )
            if game.rules.NUM_SEATS == 1 or (found.is_terminal[k] and table.needs_deal):
                assert found.final_margin[k] == specialize(score_margin_at, game)(np.array([table.state]), seat)
            if as_such and not table.needs_deal:  # it is worth what it is, however it came about
                assert known_of(table, seat) == (found.final_margin[k], found.features[k])
            assert all(0 < weight < num_weights for weight in found.features[k])  # the first one stands for a point
    assert several > 30


@each_planner
def test_marks_know_nothing_hidden(game: Game) -> None:
    states = some(positions(game), 40, seed=2)
    worlds = redealt(game, states, states["seat"].copy(), 5)
    for state, world in zip(states, worlds):
        one, other = Reached(game, state), Reached(game, world)
        assert one.lines == other.lines and one.features == other.features


def random_policy(game: Game) -> NTuplePolicy:
    weights = np.random.default_rng(1).normal(size=planner_of(game).NUM_WEIGHTS).astype(np.float16)
    weights[0] = 1
    return NTuplePolicy(game, {"weights": weights}, sampled=False)


@each_planner
def test_the_player_goes_where_its_network_promises_most(game: Game) -> None:
    policy, rng = random_policy(game), np.random.default_rng(0)
    states = some(positions(game), 40, seed=3)
    decisions = decisions_at(game, states)
    lines, live = policy.best_lines(states.copy(), 3)
    logits = policy.logits_at(decisions)
    chosen = policy.act(decisions, rng)
    for i, state in enumerate(states):
        found = Reached(game, state)
        worth = {
            tuple(found.lines[k]): float(
                found.final_margin[k] if found.is_terminal[k] else policy.table[found.features[k]].sum()
            )
            for k in range(len(found.lines))
            if found.lines[k] and (found.is_chance_next[k] or found.is_terminal[k])
        }
        if worth and len(found.lines) < ROOM:  # else it goes as far as it sees
            best = sorted(worth.values(), reverse=True)[: live[i].sum()]
            ways = [tuple(line[line != NO_MOVE].tolist()) for line in lines[i][live[i] != 0]]
            assert np.allclose([worth[path_to] for path_to in ways], best, atol=1e-3)
            assert np.isclose(logits[i].max(), best[0], atol=1e-3) and len(ways) == min(len(worth), 3)
        assert live[i, 0] and decisions.mask[i, chosen[i]] and chosen[i] == lines[i, 0, 0]
        assert np.isclose(logits[i, chosen[i]], logits[i].max())
        assert (logits[i][decisions.mask[i] == 0] == -1e9).all()
    assert (policy.probabilities(decisions).sum(axis=1) > 0.999).all()


@each_planner
def test_plans_are_gone_on_with(game: Game) -> None:
    policy, rng = random_policy(game), np.random.default_rng(0)
    for state in some(positions(game), 20, seed=4):
        line = policy.best_lines(np.array([state], game.rules.STATE), 1)[0][0, 0]
        table = Table(game, state)
        for move in line[line != NO_MOVE].tolist():
            assert policy.act(decisions_at(game, np.array([table.state], game.rules.STATE)), rng)[0] == move
            table.play(move)


@each_planner
def test_a_folder_keeps_it(game: Game, tmp_path: Path) -> None:
    policy, decisions = random_policy(game), decisions_at(game, some(positions(game), 30, seed=5))
    save_network(tmp_path / "n", policy, decisions, training={}, strength=[])
    again = load_network(tmp_path / "n", game)
    assert isinstance(again, NTuplePolicy) and (again.table == policy.table).all()
    assert (again.logits_at(decisions) == policy.logits_at(decisions)).all()
    inputs = policy.inputs(decisions)
    again.check_inputs(inputs)
    inputs["entry"][0] = len(policy.table)
    with pytest.raises(ValueError, match=r"golden\.entry"):
        again.check_inputs(inputs)
    with pytest.raises(ValueError, match="can't be written as an ONNX model"):
        to_onnx(policy)
    with pytest.raises(ValueError, match=r"weights: expected \(\d+,\), got \(\d+,\)"):
        NTuplePolicy(game, {"weights": policy.table[:-1]})


@each_planner
@pytest.mark.parametrize("plays_on", [False, True])
def test_search_asks_it_and_threads_change_nothing(game: Game, plays_on: bool) -> None:
    guide, states = Guide(random_policy(game), plays_on=plays_on), some(positions(game), 6, seed=6)
    decisions = decisions_at(game, states)
    found = [
        SearchPolicy(game, 16, threads, guide, plans=True).search(decisions, np.random.default_rng(7))
        for threads in (1, 3)
    ]
    for one, other in zip(found[0].trials, found[1].trials):
        assert (one == other).all()
    assert (found[0].lines == found[1].lines).all()
    assert decisions.mask[np.arange(len(decisions)), found[0].chosen].all()
    assert found[0].trials.worlds.max() >= 8
    best = guide.ranker
    assert isinstance(best, NTuplePolicy)
    assert (found[0].own == best.best_lines(states.copy(), 1)[0][:, 0, 0]).all()  # the one to beat
    for name in ("rollout",) if plays_on else ("search", "plan"):  # by name, through a folder
        named = load_opponent(f"{name}:ntuple-8", game)
        assert isinstance(named.policy, SearchPolicy) and named.policy.plans == (name != "search")
        assert named.act(decisions, np.random.default_rng(0)).shape == (6,)


@each_planner
def test_it_plays_for_its_seat_until_it_is_asked(game: Game) -> None:
    most, looks, policy = 10, 3, random_policy(game)
    play_out, find = specialize(result_of, game, "greedy"), specialize(find_best_lines, game, "greedy")
    scratch, planning, values = new_scratch(game, NO_NET, most), planning_scratch(game, most), np.zeros(most)
    asked = 0
    for state in some(positions(game), 20, seed=9):
        table, seat = Table(game, state), int(state["seat"])
        left = made = 0
        while left < looks and made < MOST_AHEAD and not table.needs_deal:
            lines, live = np.full((1, 1, LONGEST), NO_MOVE, np.int16), np.zeros((1, 1), np.int8)
            lines[0, 0, 0] = table.bot_move("greedy")
            if table.state.seat == seat:
                here = np.array([table.state], game.rules.STATE)
                find(0, 1, here, policy.table, planning, values, lines, live)
            for move in lines[lines != NO_MOVE].tolist():
                left += shows(table, move)
                if left == looks:
                    break
                table.play(move)
                made += 1
        final_margin, features = known_of(table, seat)
        worth = final_margin if table.needs_deal else float(policy.table[features].sum())
        ending, here = Ending(looks, weights=policy.table), np.array([state], game.rules.STATE)
        moves, result = play_out(here[0], seat, ending, values, scratch)
        assert moves == made and result == pytest.approx(worth, abs=1e-3 + 1 / FRACTION)
        asked += not table.needs_deal
    assert asked > 10


@each_planner
def test_a_share_of_a_result_comes_from_the_end(game: Game) -> None:
    weights, scratch = random_policy(game).table, new_scratch(game, NO_NET)
    play_out = specialize(result_of, game, "greedy")
    differ = 0
    for state in some(positions(game), 20, seed=8):

        def result(ending: Ending, state: Any = state) -> float:
            return play_out(np.array([state], game.rules.STATE)[0], int(state["seat"]), ending, None, scratch)[1]

        asked, ended, both = (result(Ending(2, weights=weights, share=share)) for share in (0.0, 1.0, 0.25))
        assert ended == result(TO_THE_END)
        assert both == pytest.approx(0.75 * asked + 0.25 * ended, abs=2 / FRACTION)
        differ += asked != ended
    assert differ > 10


def test_where_there_is_no_planner() -> None:
    assert HIGH_CARD.planner is None
    with pytest.raises(ValueError, match="there is no planner for this game"):
        NTuplePolicy(HIGH_CARD, {"weights": NO_WEIGHTS})
    assert len(planning_scratch(HIGH_CARD, 1).features) == 1
