"""Replies about a course: the position of a seat, the watchers' view, and positions as text."""

from __future__ import annotations

from collections.abc import Sequence

from card_envs.frontends.serve._messages import Outcome, Played, Position, Watched
from card_envs.game import Game
from card_envs.play.narration import Event, position_text, seat_names
from card_envs.play.sitting import Course, Move


def position(
    course: Course,
    seat: int,
    players: list[str | None],
    since: int | None = None,
    can_undo: bool = False,
    problem: str | None = None,
) -> Position:
    """Return what a seat may see of a game, with the moves from number `since` on."""
    number, view = len(course.moves), course.view(seat)
    return Position(
        game=course.game.name,
        seat=seat,
        players=players,
        turn=number,
        moves=_played(course.moves[number if since is None else since :]),
        your_turn=course.seat == seat,
        view=view,
        question=course.game.question(view),
        move_notes=course.game.move_notes(view),
        outcome=Outcome(**course.outcome()),
        can_undo=can_undo,
        problem=problem,
    )


def _played(moves: Sequence[Move]) -> list[Played]:
    return [Played(**move._asdict()) for move in moves]


def in_words(game: Game, found: Position) -> str:
    """Return a position as text: the moves that it lists, the table, and the legal moves or the result."""
    names = seat_names(game, found.seat)
    events = [Event(names[move.seat], move.move) for move in found.moves]
    return position_text(game, found.seat, events, found.view, found.outcome.model_dump()) + "\n"


def watched(
    course: Course,
    players: list[str | None],
    public: bool,
    since: int | None = None,
    problem: str | None = None,
) -> Watched:
    """Return what watchers may see: everything after the end; before it, what all seats are told, if `public`."""
    number, over = len(course.moves), course.over
    shown = public or over
    moves = course.moves[number if since is None else since :] if shown else []
    return Watched(
        game=course.game.name,
        players=players,
        turn=number if shown else None,
        moves=_played(moves),
        outcome=Outcome(**course.outcome()) if shown else None,
        view=course.game.public_view(course.episode.table.state) if shown else None,
        views=[course.view(seat) for seat in range(course.game.rules.NUM_SEATS)] if over else None,
        problem=problem if shown else None,
    )
