"""Messages of the protocol: requests, which are validated, and replies, as described by the OpenAPI page."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

STATUS = {
    "unknown": 404,
    "not_your_turn": 409,
    "stale_turn": 409,
    "over": 409,
    "not_over": 409,
    "no_undo": 409,
    "not_alone": 409,
    "forbidden": 403,
    "too_large": 413,
    "not_json": 415,
    "bad_request": 422,
    "bad_view": 422,
    "bad_deal": 422,
    "illegal_move": 422,
    "failed": 500,
    "busy": 503,
}
RETRY_AFTER = "1"  # seconds, if the server is busy
MOST_ENTRIES = 20_000  # of any list or object: the moves of a record
PLACE = re.compile(
    r"((?:view|deal|record|options?)(?:[.:\[] ?[\w.\[\]]+)?)(?=: )"
)  # `view: hand.2: …`, `deal.packs[0]: …`


class Problem(Exception):
    """An error reply."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(_sayable(message))
        self.code = code
        self.field = None if field is None else _sayable(field)

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object to send."""
        return {"error": {"code": self.code, "message": str(self), "field": self.field}}


def _sayable(text: str) -> str:
    """Return a text without lone surrogates, which can't be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()


def wrong(code: str, error: ValueError) -> Problem:
    """Return the problem for an error of a game, whose text begins with the path to the fault."""
    message = str(error)
    place = PLACE.match(message)
    return Problem(code, message, place[1].replace(": ", ".") if place else None)


def malformed(error: ValidationError) -> Problem:
    """Return the problem for a body that does not fit its model."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return Problem("bad_request", f"{where}: {first['msg']}" if where else first["msg"], where or None)


class Request(BaseModel):
    """A body: only these keys, with exactly these types.

    But `2.0` is accepted as an int, because some languages write it.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, given: Any) -> Any:
        try:
            return with_ints(given)
        except RecursionError:
            raise ValueError("nested too deep") from None


def with_ints(given: Any) -> Any:
    """Return parsed JSON with integral floats as ints.

    Raises:
        ValueError: infinite, not a number, a lone surrogate, or too large.
    """
    if isinstance(given, (dict, list)):
        if len(given) > MOST_ENTRIES:
            raise ValueError(f"a list or object of {len(given)} entries; expected at most {MOST_ENTRIES}")
        if isinstance(given, list):
            return [with_ints(value) for value in given]
        return {with_ints(key): with_ints(value) for key, value in given.items()}
    if isinstance(given, str) and not given.isascii():
        try:
            given.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{given!r:.80}: a lone surrogate; expected Unicode text") from None
    if isinstance(given, float):
        if not math.isfinite(given):
            raise ValueError(f"{given} is not a JSON number; expected a finite one")
        return int(given) if given.is_integer() else given
    return given


class Reply(BaseModel):
    """A reply, returned by the handler of its operation."""


def as_json(reply: BaseModel | dict[str, Any]) -> dict[str, Any]:
    """Return a reply as the JSON object to send."""
    return reply if isinstance(reply, dict) else reply.model_dump(exclude_unset=True)


GameName = Annotated[str, Field(max_length=64, description="as `/v1/games` lists it")]
OpponentName = Annotated[str, Field(max_length=200, description="as `/v1/opponents` lists it, without the game")]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
# FastAPI writes bounds as floats: 2 ** 64 would be 1.8446744073709552e+19.
Seed = Annotated[int, Field(ge=0, lt=1 << 64), WithJsonSchema({"type": "integer", "format": "uint64"})]
Wait = Annotated[
    float, Field(ge=0, le=30, allow_inf_nan=False, description="seconds to wait for the seat's turn or the end")
]
Turn = Annotated[int, Field(ge=0, description="moves played so far")]
Number = Annotated[int, Field(ge=0, le=1 << 31)]  # of a move
Picture = Annotated[Literal["wide", "tall"] | None, Field(description="add a drawing (SVG), for such a screen")]


class NoRequest(Request):
    """A request without keys."""


class GamesRequest(Request):
    picture: Picture = None


class GameRequest(Request):
    game: str


class OpponentsRequest(Request):
    game: str | None = None


class AdviseRequest(Request):
    game: GameName
    opponent: OpponentName = "greedy"
    view: Annotated[dict[str, Any], Field(description="see `/v1/games/{game}/schema`")]
    seconds: Seconds | None = Field(default=None, description="for a search; the server's own limit holds besides")
    seed: Seed = Field(default=0, description="of what a search draws, 0 to 2 ** 64 - 1")


class JudgeRequest(AdviseRequest):
    opponent: OpponentName = "strong"
    move: Annotated[str, Field(max_length=64, description="what was played there")]


class TableRequest(Request):
    game: GameName
    options: Annotated[dict[str, Any], Field(description="see `/v1/games`")] = {}
    players: Annotated[list[OpponentName | None], Field(max_length=16)] | None = Field(
        default=None, description="of each seat: null for a person; left out: a person in seat 0, `greedy` elsewhere"
    )
    undo: bool = Field(default=False, description="whether moves may be taken back; only with one person")
    seconds: Seconds | None = Field(
        default=None, description="for each move of a search; the server's own limit holds besides"
    )
    watch: Literal["nothing", "public"] = Field(
        default="nothing", description='what watchers see before the end: "public": what all seats see, but no hand'
    )
    seed: Seed | None = Field(
        default=None,
        description="of the deals and of what players draw, 0 to 2 ** 64 - 1; only where the server allows it",
    )
    deal: dict[str, Any] | None = Field(
        default=None, description="as `reset` takes it; only where the server allows it"
    )


class TokenRequest(Request):
    token: str


class PositionRequest(TokenRequest):
    wait: Wait = 0.0
    since: Number | None = None
    at: Number | None = None


class MoveRequest(TokenRequest):
    move: Annotated[str, Field(max_length=64)]
    turn: Turn | None = Field(default=None, description="if given, it must be the number of moves played so far")
    wait: Wait = 10.0


class UndoRequest(TokenRequest):
    turn: Turn | None = Field(default=None, description="if given, it must be the number of moves played so far")


class WatchRequest(TokenRequest):
    wait: Wait = 0.0
    since: Number | None = None
    picture: Picture = None


class EventsRequest(TokenRequest):
    last: Turn | None = Field(default=None, description="turn of the last event that was seen")


class ReplayRequest(Request):
    record: Annotated[dict[str, Any], Field(description="a game record, as `/record` gives it")]
    seat: Annotated[int, Field(ge=0)] = 0
    at: Turn | None = Field(default=None, description="left out: all of them")
    since: Turn | None = Field(default=None, description="list the moves from this number on; left out: none")


class Error(Reply):
    code: Literal[tuple(STATUS)]  # type: ignore[valid-type]
    message: str
    field: str | None


class Failure(Reply):
    error: Error


class OneChoice(Reply):
    option: str
    title: str
    values: list[tuple[Any, str]]


class OneLevel(Reply):
    name: str
    player: str
    strength: str = Field(description="as it was measured: `beats easy in 88 of 100 games`; empty: it was not")


class OneGame(Reply):
    name: str
    title: str
    seats: int
    sides: list[int]
    seat_names: list[str]
    options: dict[str, Any]
    goal: str
    minutes: int
    ends: dict[str, str] = Field(
        description="reasons of an end in words; {score} stands for the seat's; empty: none needed"
    )
    questions: list[tuple[str, list[str]]] = Field(
        description="that go by the legal moves alone: a position's own `question` says more"
    )
    margin_unit: str
    words: dict[str, str] = Field(description="of moves by their text, where they say more: orders, `bid 3 tricks`")
    legend: list[tuple[str, str]]
    choices: list[OneChoice]
    opponents: list[str]
    about_opponents: dict[str, str]
    levels: list[OneLevel] = Field(description="of opponents for people, the easiest first")
    judges: list[str] = Field(description="opponents that `/v1/judge` can ask")
    picture: str | None = Field(default=None, description="SVG of the beginning, with `?picture=wide` or `tall`")


class Games(Reply):
    version: int
    deals: bool = Field(description="whether a table may have a seed or a deal")
    games: list[OneGame]


class RulesInWords(Reply):
    rules: str = Field(description="Markdown")


class OneOpponent(Reply):
    name: str
    game: str
    strength: list[dict[str, Any]]
    microseconds_per_move: float | None


class Opponents(Reply):
    opponents: list[OneOpponent]


class OneMove(Reply):
    move: str
    probability: float
    margin: float | None
    worlds: int
    advantage: float | None
    difference: float | None
    dropped: bool


class Advice(Reply):
    game: str
    opponent: str
    seat: int
    moves: list[OneMove]


class Judgement(Reply):
    game: str
    opponent: str
    seat: int
    best: str
    cost: float | None
    error: float | None


class Chair(Reply):
    seat: int
    token: str
    link: str


class WatchLink(Reply):
    token: str
    link: str


class NewTable(Reply):
    game: str
    seats: list[Chair]
    watch: WatchLink


class Played(Reply):
    seat: int
    move: str
    deal: int
    card: str = Field(description="that it took, where all see it and `move` does not say it; else empty")


class Outcome(Reply):
    over: bool
    reason: str
    scores: list[int]


class Position(Reply):
    game: str
    seat: int
    players: list[str | None]
    turn: int
    moves: list[Played]
    your_turn: bool
    view: dict[str, Any]
    question: str = Field(description="what the seat is asked; empty: it is not to move")
    move_notes: dict[str, str] = Field(description="what legal moves come to here, by their text: `together 4`")
    outcome: Outcome
    can_undo: bool
    problem: str | None
    picture: str | None = Field(default=None, description="SVG, with `?picture=wide` or `tall`")


class Watched(Reply):
    game: str
    players: list[str | None]
    turn: int | None
    moves: list[Played]
    outcome: Outcome | None
    view: dict[str, Any] | None = Field(description="what all seats see, no hand, with the `names` of the seats")
    views: list[dict[str, Any]] | None = Field(description="of each seat, once the game is over")
    problem: str | None
    picture: str | None = Field(default=None, description="SVG of `view`, with `?picture=wide` or `tall`")


class Left(Reply):
    left: bool
