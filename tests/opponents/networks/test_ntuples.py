"""N-tuple networks: what a planner reaches, what counts there, who plays by it, and searches that are made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compiling import specialize
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
from card_envs.opponents.macros import MAX_LENGTH, NO_ACTION, Macros
from card_envs.opponents.networks._ntuples import ntuple_moves, planner_of
from card_envs.opponents.networks.folder import load_network, save_network
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.onnx import to_onnx
from card_envs.opponents.policy import decisions_at
from card_envs.opponents.search import SearchPolicy
from card_envs.opponents.search._decide import new_workspace
from card_envs.opponents.search._parts import MAX_ACTIONS, RESOLUTION, leaf_value, roll_out
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import games_under_test, positions, redealt, some

PLANNING = [game for game in games_under_test() if game.planner is not None]
each_planner = pytest.mark.parametrize("game", PLANNING, ids=lambda game: game.name)
# What is the same for every planner: by default on the one that compiles soonest.
dear_planners = pytest.mark.parametrize(
    "game",
    [pytest.param(game, id=game.name, marks=[] if game == PLANNING[-1] else pytest.mark.slow) for game in PLANNING],
)
ROOM = 300


def reached_from(
    first: int, last: int, states: NDArray[Any], scratch: Any, macros: Macros, facts: NDArray[np.float64],
    features: Int64s, numbers: Int64s, known: Int64s,
) -> None:  # fmt: skip
    """All that is known of the positions that can be reached at one table."""
    for i in range(first, last):
        load(states[i], states[i].seat, scratch)
        known[0] = expand(scratch, ROOM, MAX_LENGTH - 1)
        for k in range(known[0]):
            macros[k, path_to(scratch, k, macros[k]) :] = NO_ACTION
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
    scratch = planner_of(game).new_scratch(ROOM)
    facts, features, numbers = np.zeros(1), np.zeros(len(scratch.features), np.int64), np.zeros(1, np.int64)
    specialize(entered_at, game)(np.array([table.state]), seat, scratch, facts, features, numbers)
    return facts[0], sorted(features[: numbers[0]].tolist())


class Reached:
    """The positions that can be reached from a state: macro-actions, what is known of each, which weights count."""

    def __init__(self, game: Game, state: Any) -> None:
        scratch = planner_of(game).new_scratch(ROOM)
        macros, facts, known = np.zeros((ROOM, MAX_LENGTH), np.int16), np.zeros((ROOM, 3)), np.zeros(1, np.int64)
        features, numbers = np.zeros((ROOM, len(scratch.features)), np.int64), np.zeros(ROOM, np.int64)
        states = np.array([state], game.rules.STATE)
        specialize(reached_from, game)(0, 1, states, scratch, macros, facts, features, numbers, known)
        number = int(known[0])
        self.macros = [[int(move) for move in macro if move != NO_ACTION] for macro in macros[:number]]
        self.is_chance_next, self.is_terminal = facts[:number, 0] != 0, facts[:number, 1] != 0
        self.final_margin = facts[:number, 2]
        self.features = [sorted(row[:count].tolist()) for row, count in zip(features, numbers[:number])]


@each_planner
def test_what_is_reached_is_reached_by_the_rules(game: Game) -> None:
    num_weights, several = planner_of(game).NUM_WEIGHTS, 0
    for state in some(positions(game), 60, seed=1):
        found = Reached(game, state)
        several += len(found.macros) > 3
        macros = [
            tuple(macro) for k, macro in enumerate(found.macros) if found.is_chance_next[k] or found.is_terminal[k]
        ]
        assert len(set(macros)) == len(macros)
        for k, macro in enumerate(found.macros):
            table, seat = Table(game, state), int(state["seat"])
            as_such = True
            for step, move in enumerate(macro):
                assert not table.needs_deal and table.state.seat == seat and table.legal()[move]
                if shows(table, move):
                    assert step == len(macro) - 1
                    as_such = would_come(table, move)
                    break
                table.play(move)
            else:
                if game.rules.NUM_SEATS == 1:
                    assert not found.is_chance_next[k]
                if not table.needs_deal and table.state.seat == seat and len(macro) < MAX_LENGTH:
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
        assert one.macros == other.macros and one.features == other.features


def random_policy(game: Game) -> NTuplePolicy:
    weights = np.random.default_rng(1).normal(size=planner_of(game).NUM_WEIGHTS).astype(np.float16)
    weights[0] = 1
    return NTuplePolicy(game, {"weights": weights}, sampled=False)


@each_planner
def test_the_player_goes_where_its_network_promises_most(game: Game) -> None:
    policy, rng = random_policy(game), np.random.default_rng(0)
    states = some(positions(game), 40, seed=3)
    decisions = decisions_at(game, states)
    macros, numbers = policy.best_macros(states.copy(), 3)
    logits = policy.logits_at(decisions)
    chosen = policy.act(decisions, rng)
    for i, state in enumerate(states):
        found = Reached(game, state)
        worth = {
            tuple(found.macros[k]): float(
                found.final_margin[k] if found.is_terminal[k] else policy.table[found.features[k]].sum()
            )
            for k in range(len(found.macros))
            if found.macros[k] and (found.is_chance_next[k] or found.is_terminal[k])
        }
        if worth and len(found.macros) < ROOM:  # else it goes as far as it sees
            best = sorted(worth.values(), reverse=True)[: numbers[i]]
            ways = [tuple(macro[macro != NO_ACTION].tolist()) for macro in macros[i][: numbers[i]]]
            assert np.allclose([worth[way] for way in ways], best, atol=1e-3)
            assert np.isclose(logits[i].max(), best[0], atol=1e-3) and len(ways) == min(len(worth), 3)
        assert numbers[i] and decisions.mask[i, chosen[i]] and chosen[i] == macros[i, 0, 0]
        assert np.isclose(logits[i, chosen[i]], logits[i].max())
        assert (logits[i][decisions.mask[i] == 0] == -1e9).all()
    assert (policy.probabilities(decisions).sum(axis=1) > 0.999).all()


@each_planner
def test_plans_are_gone_on_with(game: Game) -> None:
    policy, rng = random_policy(game), np.random.default_rng(0)
    for state in some(positions(game), 20, seed=4):
        macro = policy.best_macros(np.array([state], game.rules.STATE), 1)[0][0, 0]
        table = Table(game, state)
        for move in macro[macro != NO_ACTION].tolist():
            assert policy.act(decisions_at(game, np.array([table.state], game.rules.STATE)), rng)[0] == move
            table.play(move)
    assert policy.plans.actions
    policy.reset()
    assert not policy.plans.actions


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


@dear_planners
def test_a_search_has_its_best_macros_as_arms(game: Game) -> None:
    policy, states = random_policy(game), some(positions(game), 6, seed=6)
    decisions = decisions_at(game, states)
    search = SearchPolicy(game, 16, moves="turn", prior=policy, leaf=policy, arms=5, threads=1)
    found = search.search(decisions, np.random.default_rng(7))
    macros, numbers = policy.best_macros(states.copy(), 5)
    assert (found.baselines == macros[:, 0, 0]).all()
    for i, number in enumerate(numbers):
        assert found.macros[i].tolist() in macros[i, :number].tolist()
        if number > 1:
            assert set(np.flatnonzero(found.stats.worlds[i])) == set(macros[i, :number, 0].tolist())
    assert numbers.max() > 2


def played_on(states: NDArray[Any], seat: int, rollout: Any, leaf: Any, results: NDArray[np.float64]) -> int:
    """Play states[0] out; write the result."""
    moves = roll_out(states[0], seat, rollout)
    more, results[0] = leaf_value(states[0], seat, leaf)
    return int(moves + more)


class Playouts:
    """Playouts by the compiled search, with these parts."""

    def __init__(self, game: Game, **parts: Any) -> None:
        self.game, search = game, SearchPolicy(game, 1, **parts)
        functions, self.workspace = new_workspace(search, search.budget(None))
        self.loop = specialize(played_on, game, "greedy", functions=functions)

    def of(self, state: Any) -> tuple[int, float]:
        """Play out from a state; return how many actions that took, and the result."""
        states, results = np.array([state], self.game.rules.STATE), np.zeros(1)
        moves = self.loop(states, int(state["seat"]), self.workspace.rollout, self.workspace.leaf, results)
        return moves, float(results[0])


def best_macro_at(states: NDArray[Any], network: Any, macro: Any) -> int:
    return int(ntuple_moves(states[0], network, macro))


@dear_planners
@pytest.mark.parametrize("plays_on", [False, True])
def test_a_playout_stops_before_a_chance_event_and_is_worth_what_it_says(game: Game, plays_on: bool) -> None:
    most, after, policy = 10, 3, random_policy(game)
    rollout = {"rollout": policy, "rollout_positions": most} if plays_on else {}
    playouts = Playouts(game, leaf=policy, leaf_after=after, **rollout)
    asked = 0
    for state in some(positions(game), 20, seed=9):
        table, seat = Table(game, state), int(state["seat"])
        shown = made = 0
        while shown < after and made < MAX_ACTIONS and not table.needs_deal:
            macro, number = np.full(MAX_LENGTH, NO_ACTION, np.int16), 1
            macro[0] = table.bot_move("greedy")
            if plays_on and table.state.seat == seat:
                here = np.array([table.state], game.rules.STATE)
                number = specialize(best_macro_at, game, "greedy")(here, policy.network(most), macro)
            for action in macro[:number].tolist():
                shown += shows(table, action)
                if shown == after:
                    break
                table.play(action)
                made += 1
        final_margin, features = known_of(table, seat)
        worth = final_margin if table.needs_deal else float(policy.table[features].sum())
        moves, result = playouts.of(state)
        assert moves == made and result == pytest.approx(worth, abs=1e-3 + 1 / RESOLUTION)
        assert result * RESOLUTION == round(result * RESOLUTION)
        asked += not table.needs_deal
    assert asked > 10


@dear_planners
def test_a_share_of_a_result_comes_from_the_end(game: Game) -> None:
    policy = random_policy(game)
    none, whole, quarter = (Playouts(game, leaf=policy, leaf_after=2, leaf_playout=share) for share in (0.0, 1.0, 0.25))
    to_the_end = Playouts(game)
    differ = 0
    for state in some(positions(game), 20, seed=8):
        asked, ended, both = (playouts.of(state)[1] for playouts in (none, whole, quarter))
        assert (ended, whole.of(state)[0]) == (to_the_end.of(state)[1], to_the_end.of(state)[0])
        assert both == pytest.approx(0.75 * asked + 0.25 * ended, abs=2 / RESOLUTION)
        differ += asked != ended
    assert differ > 10


def test_where_there_is_no_planner() -> None:
    assert HIGH_CARD.planner is None
    with pytest.raises(ValueError, match="there is no planner for this game"):
        NTuplePolicy(HIGH_CARD, {"weights": np.zeros(1, np.float32)})
