"""An episode as it is played: its course, and the people and policies in its seats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from card_envs.game import Game, Int64s
from card_envs.opponents.policy import ActionValue, Decisions, Opponent, Policy, decisions_at
from card_envs.play.episode import RANDOM, Episode
from card_envs.play.narration import Event, events_after, events_of

Wait = Callable[[str, Callable[[], Int64s]], Int64s]
Player = TypeVar("Player")


class Move(NamedTuple):
    """A move that was played: by which seat, its text, in which deal, from 0, and the card that all saw it take."""

    seat: int
    move: str
    deal: int
    card: str = ""


class Prompt(NamedTuple):
    """A position as shown to a seat.

    Attributes:
        events: since its last move, that one included.
        view: all that it sees, with its legal moves.
        outcome: of the episode so far.
    """

    events: list[Event]
    view: dict[str, Any]
    outcome: dict[str, Any]


def seated(others: Sequence[Player], seat: int) -> list[Player | None]:
    """Return the players by seat, given those of all seats but one, clockwise from its left."""
    left = len(others) - seat
    return [*others[left:], None, *others[:left]]


class Course:
    """An episode and the moves played here, which can be taken back.

    Attributes:
        episode: being played; taking moves back replaces it.
        moves: played here; taking some back replaces the list.
    """

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.game = episode.game
        self.moves: list[Move] = []
        self._first = len(episode.actions)  # played before

    @classmethod
    def dealt(cls, game: Game, options: Mapping[str, Any], seed: int, deal: dict[str, Any] | None = None) -> Self:
        """Deal; return the course before its first move.

        Args:
            game: what is played.
            options: of the game.
            seed: of the deals.
            deal: the first one, in the format of RULES.md, or None.

        Raises:
            ValueError: an option or the deal does not fit the game.
        """
        return cls(Episode(game, game.validated(dict(options)), RANDOM if deal is None else deal, seed))

    @property
    def over(self) -> bool:
        """True once the episode has ended."""
        return self.episode.over

    @property
    def seat(self) -> int | None:
        """The seat to move; None after the end."""
        return None if self.over else self.episode.table.seat

    def view(self, seat: int) -> dict[str, Any]:
        """Return what a seat sees."""
        return self.game.view.view(self.episode.table.state, seat)

    def decisions(self) -> Decisions:
        """Return the decision of the seat to move."""
        return decisions_at(self.game, self.episode.table.states)

    def outcome(self) -> dict[str, Any]:
        """Return `{"over", "reason", "scores"}`."""
        return self.episode.outcome()

    def legal_moves(self) -> list[str]:
        """Return the legal moves of the seat to move; none after the end."""
        return self.episode.legal_moves()

    def move_text(self, action: int) -> str:
        """Return an action as text."""
        text: str = self.game.view.move_text(self.episode.table.state, action)
        return text

    def action(self, move: str) -> int:
        """Return the action of a legal move, in any spelling. Raises ValueError if it is not a move or illegal."""
        return self.episode.action(move)

    def play(self, action: int) -> list[float]:
        """Play a legal action (unchecked) for the seat to move; return what it pays each seat."""
        episode, move = self.episode, self.move_text(action)
        seat = episode.table.seat
        card = self.game.view.moved_card(self.view(seat), move)
        self.moves.append(Move(seat, move, len(episode.dealt) - 1, card))
        return episode.play(action)

    def take_turns(self, players: Sequence[Player | None]) -> Iterator[Player]:
        """Yield the player to move, whose move the caller plays, until it is a person's turn or the end.

        Args:
            players: by seat; None: a person.
        """
        while not (table := self.episode.table).over and (player := players[table.seat]) is not None:
            yield player

    def last_own(self, seat: int) -> int | None:
        """Return how many moves were played here before the last one of a seat; None if it has not moved."""
        return next((number for number in reversed(range(len(self.moves))) if self.moves[number].seat == seat), None)

    def after(self, num_moves: int) -> Course:
        """Return another course, in which only the first `num_moves` moves have been played."""
        course = Course(self.episode.after(self._first + num_moves))
        course.moves, course._first = self.moves[:num_moves], self._first
        return course

    def go_back(self, num_moves: int) -> None:
        """Take back all but the first `num_moves` moves."""
        earlier = self.after(num_moves)
        self.episode, self.moves = earlier.episode, earlier.moves


class Sitting(Course):
    """A course with policies in some seats, and with what each seat is told.

    Attributes:
        players: by seat; None: somebody who calls `play`.
        rng: all the policies' randomness, or None if there are none.
        names: of the seats, for events; without names there are no events.
        events: what happened here, and before if the caller says so.
    """

    def __init__(
        self,
        episode: Episode,
        players: Sequence[Policy | None] = (),
        rng: np.random.Generator | None = None,
        names: Sequence[str] = (),
    ) -> None:
        super().__init__(episode)
        self.players = list(players) or [None] * episode.game.rules.NUM_SEATS
        self.rng = rng
        self.names = names
        self.events: list[Event] = []
        self._before: list[tuple[int, Any]] = []  # each move: the number of events, the state of `rng`

    def play(self, action: int) -> list[float]:
        self._before.append((len(self.events), None if self.rng is None else self.rng.bit_generator.state))
        if not self.names:
            return super().play(action)
        episode = self.episode
        deals, scores = len(episode.dealt), self.outcome()["scores"]
        self.events += events_of(episode, action, self.names)
        rewards = super().play(action)
        self.events += events_after(episode, deals, scores, self.names)
        return rewards

    def advance(self, wait: Wait = lambda who, work: work()) -> Iterator[list[float]]:
        """Play the policies' moves up to the turn of somebody else, or the end; yield what each pays each seat.

        Play stops when the caller stops iterating. Each move is chosen by a call of `wait` with the policy's name and
        the function that chooses it.

        Raises:
            PolicyError, IllegalMove, ValueError: a policy failed; see `Policy`.
        """
        for player in self.take_turns(self.players):
            assert self.rng is not None
            yield self.play(int(wait(player.name, partial(player.act, self.decisions(), self.rng))[0]))

    def prompt(self, seat: int) -> Prompt:
        """Return what a seat is shown now."""
        last = self.last_own(seat)
        first = 0 if last is None else self._before[last][0]
        return Prompt(self.events[first:], self.view(seat), self.outcome())

    def advice(self, seat: int, opponent: Opponent) -> list[ActionValue]:
        """Return how an opponent ranks the legal moves of a seat, from what it sees. Raises as `rank_moves` does."""
        return opponent.rank_moves(self.view(seat))

    def go_back(self, num_moves: int) -> None:
        num_events, state = self._before[num_moves]
        super().go_back(num_moves)
        del self._before[num_moves:], self.events[num_events:]
        if self.rng is not None and state is not None:
            self.rng.bit_generator.state = state

    def undo(self, seat: int) -> bool:
        """Take back the last move of a seat and all that followed; return whether there was one."""
        number = self.last_own(seat)
        if number is not None:
            self.go_back(number)
        return number is not None
