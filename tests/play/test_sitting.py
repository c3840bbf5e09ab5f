"""A sitting: who plays, what is taken back, what each seat is told, and where the play of policies stops."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import Decisions, Policy, PolicyError
from card_envs.play.episode import Episode, episode_of
from card_envs.play.narration import seat_names
from card_envs.play.sitting import Sitting, seated
from tests.conftest import short_options

FEW = 6  # moves of a person


class Failing(Policy):
    def act(self, decisions: Decisions, rng: np.random.Generator) -> Any:
        raise RuntimeError("out of order")

    def probabilities(self, decisions: Decisions) -> Any:
        raise RuntimeError("out of order")


def sat_down(game: Game, seat: int = 0, name: str = "random") -> Sitting:
    """A person in a seat, policies in the others."""
    players = seated([load_opponent(name, game).policy] * (game.rules.NUM_SEATS - 1), seat)
    episode = Episode(game, game.validated(short_options(game)), seed=5)
    return Sitting(episode, players, np.random.default_rng(7), seat_names(game, seat))


def go_on(sitting: Sitting, rng: np.random.Generator, most: int = FEW) -> None:
    """Random moves of the person, and the others' moves."""
    for number in range(most + 1):
        for _ in sitting.advance():
            pass
        if sitting.over or number == most:
            return
        sitting.play(sitting.action(str(rng.choice(sitting.legal_moves()))))


def course(sitting: Sitting) -> Any:
    state = sitting.episode.table.states.tobytes()
    return sitting.moves, sitting.events, state, len(sitting.episode.dealt), sitting.outcome()


@pytest.mark.mechanics
def test_what_is_taken_back_comes_out_the_same(game: Game) -> None:
    """With the policies' draws and the later deals; also in copies, and after a part of the moves."""
    sitting = sat_down(game)
    go_on(sitting, np.random.default_rng(1), 2)
    before = copy.deepcopy(course(sitting))
    twins = [copy.deepcopy(sitting), pickle.loads(pickle.dumps(sitting))]
    for one in (sitting, *twins):
        go_on(one, np.random.default_rng(2))
    expected = copy.deepcopy(course(sitting))
    assert all(course(twin) == expected for twin in twins)
    while len(sitting.moves) > len(before[0]):
        assert sitting.undo(0)
    if sitting.seat != 0:
        for _ in sitting.advance():
            pass
    assert course(sitting) == before
    go_on(sitting, np.random.default_rng(2))
    assert course(sitting) == expected
    number = len(expected[0]) // 2
    part = sitting.after(number)
    assert part.moves == expected[0][:number]
    assert not Sitting.dealt(game, short_options(game), 5).undo(0)


@pytest.mark.parametrize("policies", [0, 1, "all"])
@pytest.mark.mechanics
def test_undo_takes_back_the_events_of_its_moves_alone(game: Game, policies: Any) -> None:
    """Of people, and of policies, whose moves can be taken back as well."""
    num_seats = game.rules.NUM_SEATS
    number = num_seats if policies == "all" else policies
    players: list[Policy | None] = [load_opponent("random", game).policy] * number + [None] * (num_seats - number)
    episode = Episode(game, game.validated(short_options(game)), seed=5)
    sitting = Sitting(episode, players, np.random.default_rng(7) if number else None, seat_names(game, 0))
    courses = []
    for _ in range(FEW):
        if sitting.over:
            break
        courses.append((sitting.seat, copy.deepcopy(course(sitting))))
        legal = np.flatnonzero(sitting.episode.table.legal())
        if sitting.seat is not None and sitting.players[sitting.seat] is None:
            sitting.play(int(legal[-1]))
        else:
            next(sitting.advance())
    assert sitting.events
    for seat, before in reversed(courses):
        assert seat is not None and sitting.undo(seat)
        assert course(sitting) == before


@pytest.mark.mechanics
def test_a_seat_is_told_what_happened_since_its_move(game: Game) -> None:
    sitting = sat_down(game)
    go_on(sitting, np.random.default_rng(3), 0)
    if sitting.over:
        pytest.skip("there was nothing to decide")
    assert sitting.prompt(0).events == sitting.events
    move = sitting.legal_moves()[-1]
    sitting.play(sitting.action(move))
    go_on(sitting, np.random.default_rng(3), 0)
    events, view, outcome = sitting.prompt(0)
    assert (events[0].who, events[0].what) == (sitting.names[0], move)
    assert sum(event.who == sitting.names[0] for event in events) == 1
    assert view == sitting.view(0) and outcome == sitting.outcome()


@pytest.mark.mechanics
def test_policies_play_as_long_as_they_are_asked(game: Game) -> None:
    """Each move is chosen where the caller wants it; what a seat is paid adds up to the margin of the environment."""
    asked: list[str] = []

    def wait(who: str, work: Any) -> Any:
        asked.append(who)
        return work()

    episode = Episode(game, game.validated(short_options(game)), seed=5)
    policies = [load_opponent("greedy", game).policy] * game.rules.NUM_SEATS
    sitting = Sitting(episode, policies, np.random.default_rng(0))
    play = sitting.advance(wait)
    next(play)
    assert len(sitting.moves) == 1 and asked == ["greedy"] and sitting.events == []
    for _ in play:
        pass
    assert sitting.over and sitting.seat is None and sitting.legal_moves() == []
    assert len(asked) == len(sitting.moves) == len(episode.actions)


@pytest.mark.mechanics
def test_what_is_refused_or_fails_changes_nothing(game: Game) -> None:
    sitting = Sitting.dealt(game, short_options(game), 5)
    before = copy.deepcopy(course(sitting))
    illegal = next(
        text for text in map(sitting.move_text, range(game.rules.NUM_ACTIONS)) if text not in sitting.legal_moves()
    )
    for wrong in ("nonsense", illegal):
        with pytest.raises(ValueError, match=r"\S"):
            sitting.action(wrong)
    sitting.players, sitting.rng = [Failing()] * game.rules.NUM_SEATS, np.random.default_rng(0)
    with pytest.raises(PolicyError, match="out of order"):
        next(sitting.advance())
    assert course(sitting) == before
    record = sitting.episode.record()
    with pytest.raises(ValueError, match=f"record: version: {game.version + 1}; these are the rules of {game.version}"):
        episode_of(record.model_copy(update={"version": game.version + 1}), game)
