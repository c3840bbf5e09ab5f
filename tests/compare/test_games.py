"""Games in bulk: arrays are what replayed games show, in portions that depend on nothing but a plan."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compare.games import GamePlan, Games, play_games, portions
from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import ActionValues, Decisions, decisions_at
from card_envs.opponents.scripted import ScriptedPolicy
from card_envs.play.episode import Episode
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import short_options


class Valuing(ScriptedPolicy):
    """`greedy`, which expects of an action its number, and of the first legal one what the seat sees, in a sum."""

    def __init__(self, game: Game) -> None:
        super().__init__("greedy")

    def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues:
        means = expected_of(decisions)
        return ActionValues(means, means, decisions.mask.astype(np.int64), decisions.bot_moves("greedy"))


def expected_of(decisions: Decisions) -> NDArray[np.float64]:
    means = np.where(decisions.mask == 1, np.arange(decisions.mask.shape[1]), np.nan)
    means[np.arange(len(means)), decisions.mask.argmax(axis=1)] = decisions.obs.sum(axis=1, dtype=np.int64)
    return means


def plan_of(game: Game, players: tuple[Any, ...], **settings: Any) -> GamePlan:
    return GamePlan(game, players, 3, tuple(short_options(game).items()), **settings)


def same(one: Games, other: Games) -> bool:
    names = [field.name for field in fields(Games) if field.name not in ("seconds", "states", "values")]
    assert (one.values is None) == (other.values is None)
    if one.values is not None and other.values is not None:
        assert np.array_equal(one.values, other.values, equal_nan=True)
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def test_arrays_are_what_replayed_games_show(game: Game) -> None:
    players = ("random", Valuing(game)) if game.num_sides > 1 else (Valuing(game),)
    plan = plan_of(game, players, keep_values=True)
    games = play_games(plan, np.arange(4, 7))
    assert games.number.tolist() == [4, 5, 6] and games.starts[-1] == len(games.action)
    assert games.values is not None
    for i, number in enumerate(games.number.tolist()):
        rows, paid = range(games.starts[i], games.starts[i + 1]), np.zeros(game.rules.NUM_SEATS)
        episode = Episode(game, game.validated(dict(plan.options)), seed=plan.seed, number=number)
        assert games.first_seat[i] == episode.table.seat
        for row, state in zip(rows, episode.states_before(games.actions_of(i)), strict=True):
            seen = decisions_at(game, np.array([state], game.rules.STATE))
            seat, player = int(state["seat"]), games.lineup[i, int(state["seat"])]
            assert (games.seat[row], games.player[row]) == (seat, player)
            asked = player == len(players) - 1 and seen.mask.sum() > 1
            expected = expected_of(seen)[0] if asked else np.full(game.rules.NUM_ACTIONS, np.nan)
            assert np.array_equal(games.values[row], expected.astype(np.float32), equal_nan=True)
            paid += state["rewards"] if row > rows.start else 0
        assert episode.over and game.view.outcome(games.states[i]) == game.view.outcome(episode.table.state)
        assert games.rewards[i] == pytest.approx(paid + episode.table.state["rewards"])
        assert games.num_moves[i].tolist() == [(games.player[rows] == p).sum() for p in range(len(players))]


def test_a_portion_depends_on_nothing_but_the_plan() -> None:
    plan = plan_of(HIGH_CARD, ("random", "search:4", "trivial"), keep_values=True)
    games = play_games(plan, np.arange(5, 12))
    play_games(plan, np.arange(3))
    assert same(play_games(plan, np.arange(5, 12)), games)
    assert same(play_games(pickle.loads(pickle.dumps(plan)), np.arange(5, 12)), games)
    loaded = replace(plan, players=[load_opponent(str(name), HIGH_CARD) for name in plan.players])
    assert same(play_games(loaded, np.arange(5, 12)), games)


@pytest.mark.mechanics
def test_what_is_kept_changes_nothing_else(game: Game) -> None:
    plan = plan_of(game, ("random", "greedy"))
    bare, whole = (play_games(one, np.arange(6)) for one in (plan, replace(plan, keep_moves=True)))
    assert len(bare.action) == 0 and bare.values is None and not bare.starts.any()
    assert len(whole.action) == whole.num_moves.sum() and whole.values is None
    nothing: dict[str, Any] = {"starts": bare.starts, "seat": bare.seat, "player": bare.player, "action": bare.action}
    assert same(replace(whole, **nothing), bare)


def test_deals_are_played_by_all_line_ups_or_by_one_in_turn() -> None:
    lineups = np.array([[0, 1], [1, 0], [1, 1]], np.int8)
    plan = GamePlan(HIGH_CARD, ("greedy", "trivial"), lineups=lineups)
    in_turn, by_all = (play_games(replace(plan, mirrored=mirrored), np.arange(2, 6)) for mirrored in (False, True))
    assert in_turn.number.tolist() == [2, 3, 4, 5] and np.array_equal(in_turn.lineup, lineups[[2, 0, 1, 2]])
    assert np.array_equal(by_all.number, np.repeat(in_turn.number, 3))
    assert np.array_equal(by_all.lineup, np.tile(lineups, (4, 1)))
    rows = np.flatnonzero((by_all.lineup == in_turn.lineup.repeat(3, axis=0)).all(axis=1))
    assert np.array_equal(by_all.rewards[rows], in_turn.rewards)  # neither player draws random numbers


def test_moves_are_told_as_they_are_made() -> None:
    told: list[int] = []
    plan = plan_of(HIGH_CARD, (Valuing(HIGH_CARD), "greedy"))
    games = play_games(plan, np.arange(3), told.append)
    assert len(told) > 1 and sum(told) == games.num_moves.sum()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"game": "high_card"}, "game: expected a Game"),
    ({"players": "greedy"}, "players: expected a list"),
    ({"players": ()}, "players: expected a list"),
    ({"players": ("greedy", 3)}, "players: expected a Policy"),
    ({"players": ("greedy", "nobody")}, "unknown opponent 'nobody'"),
    *(({"lineups": lineups}, "lineups: expected") for lineups in (3, [[0, 1]], np.zeros((0, 2), np.int8))),
    *(({"lineups": np.array(lineups, np.int8)}, "lineups: expected") for lineups in ([0, 1], [[0, 2]], [[0, -1]])),
    *(({"seed": seed}, "seed: expected a whole number from 0") for seed in (-1, 1.5, True)),
    *(({"options": options}, "options: expected items") for options in (None, {"cards": 3}, ("cards",))),
    ({"options": (("cards", "many"),)}, "cards"),
    *(({name: 0}, f"{name}: expected True or False") for name in ("sampled", "mirrored", "keep_moves", "keep_values")),
    *(({"streams": streams}, "streams: expected") for streams in (None, 3, [0], [0, -1], [0, "1"])),
]


def test_what_is_no_plan_is_refused() -> None:
    right = {"game": HIGH_CARD, "players": ("greedy", "random"), "lineups": np.array([[0, 1]], np.int8)}
    for wrong, expected in WRONG:
        with pytest.raises(ValueError, match=expected):
            play_games(GamePlan(**{**right, **wrong}), np.arange(2))
    for numbers in (None, "12", [], [[0, 1]], [-1], [0.5], [True], [1 << 63], [0, None]):
        with pytest.raises(ValueError, match="numbers: expected whole numbers of deals, from 0 on, at least one, got"):
            play_games(plan_of(HIGH_CARD, ("greedy", "random")), numbers)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="plan: expected a GamePlan, got 'greedy'"):
        play_games("greedy", np.arange(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="watch: expected a function"):
        play_games(plan_of(HIGH_CARD, ("greedy", "random")), np.arange(2), 3)  # type: ignore[arg-type]


def test_portions() -> None:
    assert portions(7, 3) == [range(3), range(3, 6), range(6, 7)] and portions(0, 3) == []


def test_games_longer_than_the_log_at_first_are_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(HIGH_CARD, ("random", Valuing(HIGH_CARD)), keep_values=True)
    games = play_games(plan, np.arange(3))
    monkeypatch.setattr("card_envs.compare.games.LOG_SIZE", 2)
    assert same(play_games(plan, np.arange(3)), games)
