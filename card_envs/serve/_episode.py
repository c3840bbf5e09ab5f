"""The episodes of a server's tables: moves as texts, by seat; others get only what a seat sees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from card_envs.compiling import specialize
from card_envs.engine import _kernels as kernels
from card_envs.engine._legality import is_legal
from card_envs.episode import RANDOM, Episode
from card_envs.game import Game
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.options import as_json
from card_envs.serve._messages import Outcome, Played, Position, Watched
from card_envs.terminal._narration import Event, position_text, seat_names


class Move(NamedTuple):
    """A move that was played: by which seat, its text, and in which deal, from 0."""

    seat: int
    move: str
    deal: int


class ServedEpisode(Episode):
    """The episode of a table.

    Attributes:
        seed: of the deals.
        custom: the custom deal that came first, or None.
        texts: the moves so far.
    """

    def __init__(self, game: Game, options: dict[str, Any], seed: int, deal: dict[str, Any] | None = None) -> None:
        """Deal; see `Episode`. Raises ValueError for the options or the deal."""
        super().__init__(game, game.validated(options), RANDOM if deal is None else deal, seed)
        self.seed = seed
        self.custom = deal
        self.texts: list[Move] = []

    @property
    def seat(self) -> int | None:
        """The seat to move; None after the end."""
        return None if self.over else self.table.seat

    def checked(self, text: str) -> int:
        """Return the action of a legal move. Raises ValueError if it is not a move or illegal."""
        action = self.game.parse_move(self.table.state, text)
        mask = self.table.legal()
        if not is_legal(mask, action):
            legal = ", ".join(self.move_text(int(number)) for number in np.flatnonzero(mask))
            raise ValueError(f"{text!r:.80} is not a legal move; legal: {legal}")
        return action

    def play_text(self, text: str) -> None:
        """Play a move. Raises ValueError, without side effects, if it is not a move or illegal."""
        self.play(self.checked(text))

    def play(self, action: int) -> None:
        """Play a legal action."""
        self.texts.append(Move(self.table.seat, self.move_text(action), len(self.dealt) - 1))
        super().play(action)

    def move_text(self, action: int) -> str:
        """Return an action as text."""
        return self.game.view.move_text(self.table.state, action)

    def moves(self) -> list[str]:
        """Return the texts of the moves so far."""
        return [move.move for move in self.texts]

    def after(self, num_moves: int) -> ServedEpisode:
        """Return another episode in which only the first `num_moves` moves have been played."""
        again = ServedEpisode(self.game, as_json(self.options), self.seed, self.custom)
        for action in self.actions[:num_moves]:
            again.play(action)
        return again

    def num_common(self, other: ServedEpisode) -> int:
        """Return how many moves both episodes begin with."""
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self.texts, other.texts))
        return sum(1 for _ in same)

    def view(self, seat: int) -> dict[str, Any]:
        """Return the view of a seat."""
        return self.game.view.view(self.table.state, seat)

    def decision(self, rng: np.random.Generator) -> Decisions:
        """Return the current decision in a determinization of what the mover knows: never the true state."""
        states = self.table.states.copy()
        keys = rng.integers(0, 1 << 64, 1, np.uint64)
        specialize(kernels.determinize_tables, self.game)(0, 1, states, states["seat"].copy(), keys)
        return decisions_at(self.game, states)


def position(
    episode: ServedEpisode,
    seat: int,
    players: list[str | None],
    since: int | None = None,
    can_undo: bool = False,
    problem: str | None = None,
) -> Position:
    """Return what a seat may see of an episode, with the moves from number `since` on."""
    number = len(episode.texts)
    return Position(
        game=episode.game.name,
        seat=seat,
        players=players,
        turn=number,
        moves=_played(episode.texts[number if since is None else since :]),
        your_turn=episode.seat == seat,
        view=episode.view(seat),
        outcome=Outcome(**episode.outcome()),
        can_undo=can_undo,
        problem=problem,
    )


def _played(moves: Sequence[Move]) -> list[Played]:
    return [Played(seat=seat, move=move, deal=deal) for seat, move, deal in moves]


def in_words(game: Game, found: Position) -> str:
    """Return a position as text: the moves that it lists, the table, and the legal moves or the result."""
    names = seat_names(game, found.seat)
    events = [Event(names[move.seat], move.move) for move in found.moves]
    return position_text(game, found.seat, events, found.view, found.outcome.model_dump()) + "\n"


def watched(
    episode: ServedEpisode,
    players: list[str | None],
    public: bool,
    since: int | None = None,
    problem: str | None = None,
) -> Watched:
    """Return what watchers may see: everything after the end; before it, what all seats are told, if `public`."""
    number, over = len(episode.texts), episode.over
    shown = public or over
    moves = episode.texts[number if since is None else since :] if shown else []
    return Watched(
        game=episode.game.name,
        players=players,
        turn=number if shown else None,
        moves=_played(moves),
        outcome=Outcome(**episode.outcome()) if shown else None,
        views=[episode.view(seat) for seat in range(episode.game.rules.NUM_SEATS)] if over else None,
        problem=problem if shown else None,
    )
