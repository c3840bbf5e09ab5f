"""Sitting: an episode whose seats are held by people and policies, as every front end shows it in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from card_envs.game import Game, Int64s
from card_envs.opponents.policy import ActionValue, Opponent, Policy, decisions_at
from card_envs.play.episode import RANDOM, Episode
from card_envs.play.narration import Event, events_after, events_of

Wait = Callable[[str, Callable[[], Int64s]], Int64s]


class Move(NamedTuple):
    """A move that was played: by which seat, its text, and in which deal, from 0."""

    seat: int
    move: str
    deal: int


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


class _Before(NamedTuple):
    """The state to restore on undo: the number of events and the state of the policies' generator."""

    events: int
    rng: Mapping[str, Any] | None


def seated(others: Sequence[Policy], seat: int) -> list[Policy | None]:
    """Return the players by seat, given those of all seats but one, clockwise from its left."""
    players: list[Policy | None] = list(others)
    left = len(players) - seat
    return [*players[left:], None, *players[:left]]


class Sitting:
    """An episode, the players in its seats, and its course so far.

    Attributes:
        episode: being played; taking moves back replaces it.
        players: by seat; None: somebody who calls `play`.
        rng: all the policies' randomness, or None if there are none.
        names: of the seats, for events; without names there are no events.
        moves: played here.
        events: what happened here, and before if the caller says so.
    """

    def __init__(
        self,
        episode: Episode,
        players: Sequence[Policy | None] = (),
        rng: np.random.Generator | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self.episode = episode
        self.game = episode.game
        self.players = list(players) or [None] * episode.game.rules.NUM_SEATS
        self.rng = rng
        self.names = names
        self.moves: list[Move] = []
        self.events: list[Event] = []
        self._first = len(episode.actions)  # played before
        self._before: list[_Before] = []  # each move

    @classmethod
    def dealt(cls, game: Game, options: Mapping[str, Any], seed: int, deal: dict[str, Any] | None = None) -> Sitting:
        """Return a sitting before its first move, without policies.

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
        episode, seat = self.episode, self.episode.table.seat
        self._before.append(_Before(len(self.events), None if self.rng is None else self.rng.bit_generator.state))
        self.moves.append(Move(seat, self.move_text(action), len(episode.dealt) - 1))
        if self.names:
            self.events += events_of(episode, action, self.names)
        deals, scores = len(episode.dealt), self.outcome()["scores"] if self.names else []
        rewards = episode.play(action)
        if self.names:
            self.events += events_after(episode, deals, scores, self.names)
        return rewards

    def advance(self, wait: Wait = lambda who, work: work()) -> Iterator[list[float]]:
        """Play the policies' moves up to the turn of somebody else, or the end; yield what each pays each seat.

        Play stops when the caller stops iterating. Each move is chosen by a call of `wait` with the policy's name and
        the function that chooses it.

        Raises:
            PolicyError, IllegalMove, ValueError: a policy failed; see `Policy.choose`.
        """
        while self.seat is not None and (player := self.players[self.seat]) is not None:
            assert self.rng is not None
            decisions = decisions_at(self.game, self.episode.table.states)
            yield self.play(int(wait(player.name, partial(player.choose, decisions, self.rng))[0]))

    def prompt(self, seat: int) -> Prompt:
        """Return what a seat is shown now."""
        last = self.last_own(seat)
        first = 0 if last is None else self._before[last].events
        return Prompt(self.events[first:], self.view(seat), self.outcome())

    def advice(self, seat: int, opponent: Opponent) -> list[ActionValue]:
        """Return how an opponent ranks the legal moves of a seat, from what it sees. Raises as `evaluate` does."""
        return opponent.evaluate(self.view(seat))

    def last_own(self, seat: int) -> int | None:
        """Return how many moves were played here before the last one of a seat; None if it has not moved."""
        return next((number for number in reversed(range(len(self.moves))) if self.moves[number].seat == seat), None)

    def undo(self, seat: int) -> bool:
        """Take back the last move of a seat and all that followed; return whether there was one."""
        number = self.last_own(seat)
        if number is None:
            return False
        before = self._before[number]
        self.episode = self.episode.after(self._first + number)
        del self.moves[number:], self._before[number:], self.events[before.events :]
        if self.rng is not None and before.rng is not None:
            self.rng.bit_generator.state = before.rng
        return True

    def after(self, num_moves: int) -> Sitting:
        """Return another sitting, of the same players, in which only the first `num_moves` moves have been played."""
        first = self.episode.actions[: self._first]
        again = Sitting(self.episode.after(len(first)), self.players, self.rng, self.names)
        for action in self.episode.actions[self._first : self._first + num_moves]:
            again.play(action)
        return again

    def num_common(self, other: Sitting) -> int:
        """Return how many moves both sittings begin with."""
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.moves, other.moves)))
