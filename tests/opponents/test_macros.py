"""Macro-actions: all that a seat can bring about before anything hidden shows, and how one is played to its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs import load_opponent
from card_envs.compare.pairs import play_pairs
from card_envs.compiling import specialize
from card_envs.engine.table import Table
from card_envs.game import Game, Int8s, State, reveals
from card_envs.opponents.macros import MAX_LENGTH, NO_ACTION, Macros, PlanCache
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.opponents.search import SearchPolicy
from card_envs.opponents.search._candidates import find_macros, new_expansion
from card_envs.opponents.search._decide import SearchResults
from tests.conftest import games_under_test, observed, positions, redealt, some, table_of

each_solitaire = pytest.mark.parametrize(
    "game", [game for game in games_under_test() if game.is_solitaire], ids=lambda game: game.name
)


def reveals_at(states: NDArray[Any], i: int, action: int) -> bool:
    return bool(reveals(states[i], action))


def shows(game: Game, state: State, action: int) -> bool:
    """Return whether an action may show something hidden."""
    return bool(specialize(reveals_at, game)(np.array([state], game.rules.STATE), 0, action))


def find_at(states: NDArray[Any], baseline: int, tried: Int8s, most: int, expansion: Any, macros: Macros) -> int:
    return int(find_macros(states[0], baseline, tried, most, expansion, macros))


def macros_of(game: Game, state: State, most: int, continues: bool = True, tried: list[int] | None = None) -> Macros:
    """Return the macro-actions [C, MAX_LENGTH] from a state, the baseline first, that begin with some actions."""
    states = np.array([state], game.rules.STATE)
    decisions = decisions_at(game, states)
    begun = decisions.mask[0].copy()
    if tried is not None:
        begun[:] = np.isin(np.arange(len(begun)), tried)
    macros = np.full((most, MAX_LENGTH), 99, np.int16)
    baseline = int(decisions.bot_moves("greedy")[0])
    number = specialize(find_at, game, "greedy")(
        states, baseline, begun, most, new_expansion(game, most, continues), macros
    )
    assert np.array_equal(states, np.array([state], game.rules.STATE))
    return macros[:number]


def lists_of(macros: Macros) -> list[list[int]]:
    """Return macro-actions as lists, having checked that nothing follows their ends."""
    found = [[int(action) for action in macro if action != NO_ACTION] for macro in macros]
    assert all(actions and (macro[len(actions) :] == NO_ACTION).all() for macro, actions in zip(macros, found))
    return found


def sight(game: Game, state: State, seat: int) -> bytes:
    return observed(game, np.array([state], game.rules.STATE), np.array([seat], np.int8)).tobytes()


def ends_of_stretch(game: Game, state: State) -> set[tuple[bytes, int]]:
    """Find, one by one, what the seat sees before the last action of each stretch from here, and that action.

    Where it does not hide anything, what is seen after it and -1: several actions may come to the same.
    """
    seat = int(state.seat)
    ends, seen, left = set(), {sight(game, state, seat)}, [Table(game, state)]
    while left:
        table = left.pop()
        for action in np.flatnonzero(table.legal()).tolist():
            if shows(game, table.state, action):
                ends.add((sight(game, table.state, seat), action))
                continue
            after = table.copy()
            after.play(action)
            there = sight(game, after.state, seat)
            if after.needs_deal or after.seat != seat:
                ends.add((there, -1))
            elif there not in seen:
                seen.add(there)
                left.append(after)
    return ends


# Candidates


@pytest.mark.few_games
def test_macros_are_all_that_can_be_done_before_something_shows(game: Game) -> None:
    most = max(2 * game.rules.NUM_ACTIONS, 400)
    whole = 0
    for state in some(positions(game), 60, seed=1):
        seat = int(state.seat)
        baseline, *others = lists_of(macros_of(game, state, most))
        ends = set()
        for actions in [baseline, *others]:
            table = Table(game, redealt(game, np.array([state]), np.array([seat], np.int8), 3)[0])  # in any world
            for k, action in enumerate(actions):
                assert not table.needs_deal and table.seat == seat and table.legal()[action]
                before, hidden = sight(game, table.state, seat), shows(game, table.state, action)
                assert not hidden or k == len(actions) - 1
                table.play(action)
            gone_on = not table.needs_deal and table.seat == seat and not hidden
            if actions is not baseline:
                ends.add((before, actions[-1]) if hidden else (sight(game, table.state, seat), -2 if gone_on else -1))
        assert len(ends) == len(others)  # nothing twice
        if not any(action == -2 for _, action in ends):
            assert ends == ends_of_stretch(game, state)
            whole += 1
    assert whole > 10


@pytest.mark.few_games
def test_the_baseline_is_what_greedy_does(game: Game) -> None:
    for state in some(positions(game), 50, seed=3):
        baseline = lists_of(macros_of(game, state, 2 * game.rules.NUM_ACTIONS))[0]
        assert lists_of(macros_of(game, state, 2 * game.rules.NUM_ACTIONS, continues=False))[0] == baseline[:1]
        table = Table(game, state)
        hidden = False
        for k, action in enumerate(baseline):
            assert table.bot_move("greedy") == action
            hidden = shows(game, table.state, action)
            assert not hidden or k == len(baseline) - 1
            table.play(action)
        assert table.needs_deal or table.seat != state.seat or hidden or len(baseline) == MAX_LENGTH


@pytest.mark.few_games
def test_macros_begin_with_the_actions_to_try(game: Game) -> None:
    most, fewer = max(2 * game.rules.NUM_ACTIONS, 400), 0
    for state in some(positions(game), 30, seed=9):
        legal = np.flatnonzero(decisions_at(game, np.array([state], game.rules.STATE)).mask[0]).tolist()
        _, *others = lists_of(macros_of(game, state, most, tried=legal[:1]))
        assert {actions[0] for actions in others} <= {legal[0]}
        fewer += len(others) < len(macros_of(game, state, most)) - 1
    assert fewer > 5


# Plans


@pytest.mark.mechanics
def test_a_cache_knows_how_macros_go_on(game: Game) -> None:
    cache, asked = PlanCache(), []

    def decide(decisions: Any) -> NDArray[np.int64]:
        asked.append(len(decisions))
        return decisions.mask.argmax(axis=1).astype(np.int64)  # type: ignore[no-any-return]

    states = some(positions(game), 5, seed=3).copy()
    decisions = decisions_at(game, states)
    assert np.array_equal(cache.act(decisions, decide), decisions.mask.argmax(axis=1)) and asked == [5]
    macros = np.full((5, 3), NO_ACTION, np.int16)
    macros[:, 0] = decisions.mask.argmax(axis=1)
    then = [Table(game, state) for state in states]
    for table, macro in zip(then, macros):
        table.play(int(macro[0]))
    goes_on = [k for k, table in enumerate(then) if not table.needs_deal]
    for k in goes_on:
        macros[k, 1] = np.flatnonzero(then[k].legal())[-1]
    cache.add(game, states.copy(), macros)
    there = decisions_at(game, np.concatenate([then[k].states for k in goes_on]))
    assert np.array_equal(cache.act(there, decide), macros[goes_on, 1]) and asked == [5]
    there.obs[:] = there.mask[:] = 0  # decides nothing
    assert np.array_equal(cache.act(there, decide), macros[goes_on, 1]) and asked == [5]
    cache.clear()
    cache.act(there, decide)
    assert asked == [5, len(goes_on)] and goes_on


class Noting(SearchPolicy):
    """Notes what it plans."""

    planned: list[int]
    searches = 0

    def search(self, decisions: Decisions, rng: np.random.Generator) -> SearchResults:
        found = super().search(decisions, rng)
        self.searches += 1
        self.planned.extend(int(action) for action in found.macros[0] if action != NO_ACTION)
        tried = found.stats.worlds[0] > 0
        assert not tried[decisions.mask[0] == 0].any()
        assert found.stats.worlds[0, found.chosen[0]] == found.stats.worlds[0].max()
        return found


@pytest.mark.mechanics
def test_a_plan_is_played_to_its_end_without_another_search(game: Game) -> None:
    policy, played = Noting(game, 4, moves="turn"), list[int]()
    policy.planned = []
    table = table_of(game, {}, 3)
    while not table.needs_deal and len(played) < 150:
        action = int(policy.act(decisions_at(game, table.states), np.random.default_rng(len(played)))[0])
        seat = int(table.seat)
        played.append(action)
        table.play(action)
        if table.seat != seat or table.needs_deal:
            assert played == policy.planned
    assert policy.searches < len(played) if game.is_solitaire else policy.searches <= len(played)


@pytest.mark.slow
@each_solitaire
def test_macros_win_more_than_single_actions(game: Game) -> None:
    one, other = (load_opponent(name, game) for name in ("search:16,moves=turn", "search:16"))
    assert play_pairs(game, one, other, 150, 3).margin_per_episode.low > 0


def test_a_full_cache_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    game = games_under_test()[-1]
    monkeypatch.setattr("card_envs.opponents.macros.MAX_ENTRIES", 3)
    cache = PlanCache()
    cache.actions.update({bytes([k]): 0 for k in range(4)})
    cache.add(game, positions(game)[:1].copy(), np.full((1, 2), NO_ACTION, np.int16))
    assert not cache.actions
