"""Search that plans: all that a seat can bring about before anything hidden shows, and one look for all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs import load_opponent
from card_envs.compare.pairs import play_pairs
from card_envs.engine.compile import specialize
from card_envs.engine.table import Table
from card_envs.game import Game, Int8s, State, reveals
from card_envs.opponents import search
from card_envs.opponents.lines import LONGEST, NO_MOVE, find_lines, new_reach
from card_envs.opponents.networks.afterstate_network import AfterstateNetwork, line_scores
from card_envs.opponents.networks.policies import LookaheadPolicy
from card_envs.opponents.policy import Opponent, decisions_at
from card_envs.opponents.scripted import ScriptedPolicy
from card_envs.opponents.search import Guide, SearchPolicy
from tests.conftest import games_under_test, observed, positions, redealt, some


def reveals_at(states: NDArray[Any], i: int, action: int) -> bool:
    return bool(reveals(states[i], action))


def shows(game: Game, state: State, action: int) -> bool:
    """Whether a move may show something hidden."""
    return bool(specialize(reveals_at, game)(np.array([state], game.rules.STATE), 0, action))


def lines_of(game: Game, state: State, room: int, plays_on: bool = True) -> list[list[int]]:
    """The lines of one table, the own one first."""
    states = np.array([state], game.rules.STATE)
    decisions = decisions_at(game, states)
    lines, live = np.full((1, room, LONGEST), 99, np.int16), np.full((1, room), 99, np.int8)
    own = decisions.bot_moves("greedy")
    specialize(find_lines, game, "greedy")(
        0, 1, states, own, decisions.mask, plays_on, new_reach(game, room), lines, live
    )
    number = int(live.sum())
    assert live[0, :number].all() and not live[0, number:].any()
    found = [[int(move) for move in line if move != NO_MOVE] for line in lines[0, :number]]
    assert all((line[len(moves) :] == NO_MOVE).all() for line, moves in zip(lines[0], found))
    return found


def sight(game: Game, state: State, seat: int) -> bytes:
    return observed(game, np.array([state], game.rules.STATE), np.array([seat], np.int8)).tobytes()


def ends_of_stretch(game: Game, state: State) -> set[tuple[bytes, int]]:
    """What the seat sees before the last move of each stretch from here and that move, found one by one.

    Where it does not hide anything, what is seen after it and -1: several moves may come to the same.
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


def test_lines_are_all_that_can_be_done_before_something_shows(game: Game) -> None:
    room = max(2 * game.rules.NUM_ACTIONS, 400)
    whole = 0
    for state in some(positions(game), 60, seed=1):
        seat = int(state.seat)
        own, *lines = lines_of(game, state, room)
        ends = set()
        for moves in [own, *lines]:
            table = Table(game, redealt(game, np.array([state]), np.array([seat], np.int8), 3)[0])  # in any world
            for k, move in enumerate(moves):
                assert not table.needs_deal and table.seat == seat and table.legal()[move]
                before, hidden = sight(game, table.state, seat), shows(game, table.state, move)
                assert not hidden or k == len(moves) - 1
                table.play(move)
            gone_on = not table.needs_deal and table.seat == seat and not hidden
            if moves is not own:
                ends.add((before, moves[-1]) if hidden else (sight(game, table.state, seat), -2 if gone_on else -1))
        assert len(ends) == len(lines)  # nothing twice
        if not any(move == -2 for _, move in ends):
            assert ends == ends_of_stretch(game, state)
            whole += 1
    assert whole > 10


def test_where_room_is_short_lines_end_early(game: Game) -> None:
    room = 2 * game.rules.NUM_ACTIONS
    for state in some(positions(game), 100, seed=2):
        assert 2 <= len(lines_of(game, state, room)) <= room


def test_the_own_line_is_what_greedy_does(game: Game) -> None:
    for state in some(positions(game), 50, seed=3):
        own = lines_of(game, state, 2 * game.rules.NUM_ACTIONS)[0]
        assert lines_of(game, state, 2 * game.rules.NUM_ACTIONS, plays_on=False)[0] == own[:1]
        table = Table(game, state)
        for k, move in enumerate(own):
            assert table.bot_move("greedy") == move
            assert not shows(game, table.state, move) or k == len(own) - 1
            table.play(move)
        assert table.needs_deal or table.seat != state.seat or shows(game, state, move) or len(own) <= LONGEST


def ranker(game: Game) -> Guide:
    """A network that has learned nothing, who ranks lines."""
    rng, shapes = np.random.default_rng(1), LookaheadPolicy.shapes(game, [16, 8])
    weights = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    return Guide(Opponent("ranker", game, LookaheadPolicy(game, weights)))


GUIDES: list[Callable[[Game], Guide | None]] = [lambda _: None, lambda _: Guide(ScriptedPolicy("greedy")), ranker]


@pytest.mark.parametrize("guided", GUIDES)
def test_threads_change_no_bit(
    game: Game, guided: Callable[[Game], Guide | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WORTH_SHARING", 0.0)
    decisions = decisions_at(game, some(positions(game), 9, seed=4))
    guide = guided(game)
    one, *others = (
        SearchPolicy(game, 12, threads, guide, plans=True).search(decisions, np.random.default_rng(5))
        for threads in (1, 2, 5)
    )
    assert decisions.mask[np.arange(len(decisions)), one.chosen].all()
    for other in others:
        assert other.moves == one.moves and np.array_equal(other.lines, one.lines)
        for trials, same in zip(one.trials, other.trials):
            np.testing.assert_array_equal(trials, same)


@pytest.mark.parametrize("guided", GUIDES)
def test_nothing_hidden_decides(game: Game, guided: Callable[[Game], Guide | None]) -> None:
    states = some(positions(game), 12, seed=5)
    worlds = redealt(game, states, states["seat"].copy(), 6)
    found = [
        SearchPolicy(game, 8, guide=guided(game), plans=True).search(
            decisions_at(game, there), np.random.default_rng(7)
        )
        for there in (states, worlds)
    ]
    assert np.array_equal(found[0].lines, found[1].lines)


def test_only_the_lines_that_a_network_ranks_first_are_tried(game: Game) -> None:
    decisions = decisions_at(game, some(positions(game), 30, seed=6))
    guide = ranker(game)
    assert isinstance(guide.ranker, AfterstateNetwork) and Guide(ScriptedPolicy("greedy")).ranker is None
    room = 2 * game.rules.NUM_ACTIONS
    for num_worlds, kept in ((2, 2), (40, 5)):
        policy = SearchPolicy(game, num_worlds, 1, guide, plans=True)
        states = decisions.worlds(np.random.default_rng(0), 1)[:, 0].copy()
        own, tried = policy._proposals(decisions)
        tables = policy._tables(states, np.zeros(len(decisions), np.uint64), own, tried)
        lines, live = np.empty((len(decisions), room, LONGEST), np.int16), np.empty((len(decisions), room), np.int8)
        reach = new_reach(game, room)
        specialize(find_lines, game, "greedy")(0, len(decisions), states, own, decisions.mask, True, reach, lines, live)
        scores = line_scores(game, states, lines, live, guide.ranker)
        for i in range(len(decisions)):
            best = sorted(np.flatnonzero(live[i]), key=lambda c: -scores[i, c])[:kept]
            assert tables.own[i] == best[0]
            assert sorted(np.flatnonzero(tables.live[i])) == sorted(best[1:])
        found = policy.search(decisions, np.random.default_rng(1))
        assert (found.trials.worlds > 0).sum(axis=1).max() <= kept
        assert np.array_equal(found.own, tables.lines[np.arange(len(decisions)), tables.own, 0])


def test_a_network_that_fits_no_game_ranks_nothing(game: Game) -> None:
    guide = ranker(game)
    assert isinstance(guide.ranker, AfterstateNetwork)
    policy = SearchPolicy(game, 8, 1, guide, plans=True)
    policy.ranker = guide.ranker._replace(last=np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="network: last: expected"):
        policy.act(decisions_at(game, some(positions(game), 2)), np.random.default_rng(0))


def test_a_plan_is_played_to_its_end_without_another_look(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Int8s] = []
    inner = SearchPolicy.search

    def noted(self: SearchPolicy, decisions: Any, rng: np.random.Generator) -> Any:
        looks.append(decisions.obs)
        found = inner(self, decisions, rng)
        planned.extend(int(move) for move in found.lines[0] if move != NO_MOVE)
        tried = found.trials.worlds[0] > 0
        assert not tried[decisions.mask[0] == 0].any()
        assert found.trials.worlds[0, found.chosen[0]] == found.trials.worlds[0].max()
        return found

    monkeypatch.setattr(SearchPolicy, "search", noted)
    policy = load_opponent("plan-4", game)
    table = Table(game, game.rules.new_state(game.validated({})))
    table.seed(3, 0)
    table.deal()
    played: list[int] = []
    planned: list[int] = []
    while not table.needs_deal and len(played) < 150:
        move = int(policy.act(decisions_at(game, table.states), np.random.default_rng(len(played)))[0])
        seat = int(table.seat)
        played.append(move)
        table.play(move)
        if table.seat != seat or table.needs_deal:
            assert played == planned
    assert len(looks) <= len(played)


@pytest.mark.parametrize("guided", GUIDES)
def test_a_time_bounds_plans_as_well(game: Game, guided: Callable[[Game], Guide | None]) -> None:
    decisions = decisions_at(game, some(positions(game), 3, seed=8))
    policy = SearchPolicy(game, seconds=1e-3, guide=guided(game), plans=True)
    moves = policy.act(decisions, np.random.default_rng(0))
    assert decisions.mask[np.arange(3), moves].all()
    assert policy.within(1e-6).plans


@pytest.mark.parametrize("game", [game for game in games_under_test() if game.is_solitaire], ids=lambda game: game.name)
def test_plans_win_more_than_moves(game: Game) -> None:
    result = play_pairs(game, load_opponent("plan-16", game), load_opponent("search-16", game), 150, 3)
    assert result.margin_per_episode.low > 0


def test_who_plays_on_move_by_move_makes_no_plans(game: Game) -> None:
    with pytest.raises(ValueError, match="only an n-tuple network makes plans"):
        SearchPolicy(game, 4, guide=Guide(ScriptedPolicy("greedy"), plays_on=True), plans=True)
