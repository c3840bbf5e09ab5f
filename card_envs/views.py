"""Validation of untrusted JSON, custom deals and views, for the `view.py` of every game; games in words.

A game's `from_view` parses the view (`read`), guesses a pack or a state, plays the moves that the view shows
(`play_shown`), and lets `settled` do the rest. Every error is a ValueError that begins with the path to the fault.
"""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from card_envs.engine.buffers import check_int as check_int  # re-exported for games
from card_envs.engine.table import Table, legal_actions
from card_envs.game import Game, State
from card_envs.system.files import short_repr

Model = TypeVar("Model", bound=BaseModel)

VERSION: Literal[1] = 1  # of the format of views: incremented when the meaning of a key changes or a key is dropped
Amount = Annotated[int, Field(ge=0, le=1000)]  # number of cards, tricks or bids; pictures of more would be too large
Points = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]  # far beyond the score of any episode
Version = Annotated[Literal[1], Field(description="version of the format of views")]


def in_words(game: Game) -> dict[str, Any]:
    """Return the texts of a game for people besides its views, ready for JSON."""
    return {
        "goal": game.view.GOAL,
        "minutes": game.view.MINUTES,
        "ends": dict(game.view.ENDS),
        "questions": [[text, list(moves)] for text, moves in game.view.QUESTIONS],
        "margin_unit": game.view.MARGIN_UNIT,
        "words": game.words,
        "legend": [list(entry) for entry in game.view.LEGEND],
        "choices": [
            {"option": option, "title": title, "values": [list(entry) for entry in values]}
            for option, title, values in game.view.CHOICES
        ],
    }


class Strict(BaseModel):
    """A view or a part of one: only these keys, with exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True)


def follows(description: str) -> Any:
    """Return a key that may be omitted or null, because the other keys determine it; if given, it is checked."""
    return Field(None, description=f"{description}; follows from the rest")


def to_move(state: State) -> int | None:
    """Return the seat to move; None if no decision is due."""
    return None if state.needs_deal else int(state.seat)


def plain(state: State) -> Any:
    """Return the fields of a State as attributes that Python reads ten times as fast: for reading many of them."""
    return SimpleNamespace(**dict(zip(state.dtype.names, state.item())))


def legal_texts(game: Game, state: State, seat: int, seen: Any = None) -> list[str]:
    """Return the legal moves of a seat as text, in the order of the actions; empty if it is not to move.

    `seen` is `plain(state)`, where the caller has it.
    """
    seen = plain(state) if seen is None else seen
    if to_move(seen) != seat:
        return []
    return [game.view.move_text(seen, action) for action in legal_actions(game, state)]


# Custom deals


def deal_keys(deal: object, required: str, *optional: str, example: str, where: str = "deal") -> dict[str, Any]:
    """Return a custom deal that has the required key and no unknown ones.

    Args:
        deal: user input.
        required: the required key.
        optional: optional keys.
        example: an example of a deal, for error messages.
        where: the name of the deal in error messages.
    """
    if not isinstance(deal, dict) or required not in deal:
        raise ValueError(f"{where}: expected {example}, got {deal!r:.80}")
    unknown = set(deal) - {required, *optional}
    if unknown:
        raise ValueError(
            f"{where}: unknown key {min(map(str, unknown))!r}; expected {', '.join((required, *optional))}"
        )
    return deal


# Views


def read(model: type[Model], data: object) -> Model:
    """Return a view, or the options in it, as a model."""
    if not isinstance(data, dict):
        raise ValueError(f"view: expected a dict, got {short_repr(data):.80}")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"view: {where:.80}: {first['msg']}" if where else f"view: {first['msg']}") from None


def play_shown(table: Table, seat: int, move: str, where: str, known: bool = True) -> None:
    """Play a move that a view shows.

    Args:
        table: modified.
        seat: the seat that made the move.
        move: its text.
        where: its path in the view: `bids.2`.
        known: the seat's hand is known, not guessed: then the move must be legal.
    """
    if table.needs_deal or seat != table.seat:
        turn = "nobody's turn" if table.needs_deal else f"the turn of seat {table.seat}"
        raise ValueError(f"view: {where}: {move} of seat {seat} can't be played here: by the rules it is {turn}")
    try:
        action = table.game.view.parse_move(table.state, move)
    except ValueError as error:
        raise ValueError(f"view: {where}: {error}") from None
    if known and not table.legal()[action]:
        raise ValueError(f"view: {where}: {move} is not a legal move for seat {seat} at that point")
    table.play(action)


def settled(table: Table, given: dict[str, Any], sets: Collection[str] = ("legal",)) -> State:
    """Return the state of a table set up from a view if it shows that view; redraw what the seat can't know.

    Args:
        table: one with a decision due.
        given: the view.
        sets: keys of lists whose order does not matter.
    """
    if not table.legal().any():
        raise ValueError("view: no decision is due; expected a view of a decision")
    table.determinize(given["seat"], 0)
    _check_same(given, table.game.view.view(table.state, given["seat"]), sets, ())
    return table.state


def _check_same(actual: Any, expected: Any, sets: Collection[str], path: tuple[str, ...]) -> None:
    """Raise ValueError unless a value of a view equals that of the state; None was omitted, and options may be."""
    if actual is None or actual == expected or path == ("options",):
        return
    if isinstance(expected, dict):
        for key, value in expected.items():
            _check_same(actual.get(key), value, sets, (*path, key))
    elif isinstance(expected, list) and expected and isinstance(expected[0], dict) and len(actual) == len(expected):
        for number, value in enumerate(expected):
            _check_same(actual[number], value, sets, (*path, str(number)))
    elif path[-1] not in sets or sorted(actual) != sorted(expected):
        where = ".".join(path)
        raise ValueError(f"view: {where}: got {short_repr(actual)}, but the rest of the view makes it {expected!r}")
