"""All operations of a server, once: HTTP's routes, the calls of JSON lines, and the tables of the protocol's page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from card_envs.frontends.serve import _messages as messages
from card_envs.frontends.serve._advisers import Advisers
from card_envs.frontends.serve._messages import Request
from card_envs.frontends.serve._seats import Seats
from card_envs.record import GameRecord


@dataclass(frozen=True)
class Operation:
    """Something that clients can ask for.

    Attributes:
        name: of the call in JSON lines, or of a language model's tool.
        method, path: of the HTTP request, if there is one. The keys of `request` that the path does not name are in
            its query (GET, DELETE) or its body (POST).
        request: model of all that a client says.
        reply: model of the answer, which the handler returns.
        handler: takes the one who answers and the request; raises `Problem`.
        sentence: what it does, for people.
        status: of the reply over HTTP.
        streams: replies come one after another as server-sent events, over HTTP alone.
    """

    name: str
    method: str
    path: str
    request: type[Request]
    reply: Any
    handler: Callable[[Any, Any], Any]
    sentence: str
    status: int = 200
    streams: bool = False

    def names_in_path(self) -> list[str]:
        """Return the keys of the request that stand in the path."""
        return re.findall(r"{(\w+)}", self.path)

    def names_in_query(self) -> list[str]:
        """Return the keys of the request that stand in the query."""
        in_path, is_sent = self.names_in_path(), self.method == "POST" or self.streams
        return [] if is_sent else [name for name in self.request.model_fields if name not in in_path]


def _by_advisers(handler: Callable[[Advisers, Any], Any]) -> Callable[[Seats, Any], Any]:
    """Return a handler that needs no table."""
    return lambda seats, asked: handler(seats.advisers, asked)


OPERATIONS = (
    Operation(
        "games", "GET", "/v1/games", messages.GamesRequest, messages.Games,
        _by_advisers(Advisers.games),
        "games: name, title, seats, sides, options, words for people, opponents",
    ),
    Operation(
        "schema", "GET", "/v1/games/{game}/schema", messages.GameRequest, dict[str, Any],
        _by_advisers(Advisers.schema),
        "JSON schema of a view",
    ),
    Operation(
        "rules", "GET", "/v1/games/{game}/rules", messages.GameRequest, messages.RulesInWords,
        _by_advisers(Advisers.rules),
        'the rules: `{"rules": "…"}`, Markdown',
    ),
    Operation(
        "opponents", "GET", "/v1/opponents", messages.OpponentsRequest, messages.Opponents,
        _by_advisers(Advisers.opponent_list),
        "opponents with measured strength and time per move",
    ),
    Operation(
        "advise", "POST", "/v1/advise", messages.AdviseRequest, messages.Advice,
        _by_advisers(Advisers.advise),
        "an opponent's evaluation of every legal move of a view",
    ),
    Operation(
        "judge", "POST", "/v1/judge", messages.JudgeRequest, messages.Judgement,
        _by_advisers(Advisers.judge),
        "what a move cost, in the opinion of an opponent that searches",
    ),
    Operation(
        "replay", "POST", "/v1/replay", messages.ReplayRequest, messages.Position,
        _by_advisers(Advisers.replay),
        "what a seat saw at some point of a game record",
    ),
    Operation(
        "table", "POST", "/v1/tables", messages.TableRequest, messages.NewTable, Seats.create,
        "a new table; returns a secret link for each person's seat",
        status=201,
    ),
    Operation(
        "position", "GET", "/v1/seats/{token}", messages.PositionRequest, messages.Position, Seats.position,
        "what the seat sees now",
    ),
    Operation(
        "move", "POST", "/v1/seats/{token}/moves", messages.MoveRequest, messages.Position, Seats.move,
        "play a move",
    ),
    Operation(
        "undo", "POST", "/v1/seats/{token}/undo", messages.UndoRequest, messages.Position, Seats.undo,
        "take back your last move, if that is fair to everyone",
    ),
    Operation(
        "events", "GET", "/v1/seats/{token}/events", messages.EventsRequest, messages.Position, Seats.events,
        "server-sent events: the position after every change",
        streams=True,
    ),
    Operation(
        "record", "GET", "/v1/seats/{token}/record", messages.TokenRequest, GameRecord, Seats.record,
        "the game record, once the game is over",
    ),
    Operation(
        "leave", "DELETE", "/v1/seats/{token}", messages.TokenRequest, messages.Left, Seats.leave,
        "leave the table, which ends it; only if no other person plays there",
    ),
    Operation(
        "watch", "GET", "/v1/watch/{token}", messages.WatchRequest, messages.Watched, Seats.watch,
        "what watchers may see now",
    ),
    Operation(
        "watched_events", "GET", "/v1/watch/{token}/events", messages.EventsRequest, messages.Watched,
        Seats.watched_events,
        "server-sent events: the same after every change",
        streams=True,
    ),
    Operation(
        "watched_record", "GET", "/v1/watch/{token}/record", messages.TokenRequest, GameRecord, Seats.watched_record,
        "the game record, once the game is over",
    ),
)  # fmt: skip
CALLS = {one.name: one for one in OPERATIONS if not one.streams}  # of JSON lines
