"""All operations of a server, once: HTTP's routes, the calls of JSON lines, and the tables of the protocol's page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from card_envs.frontends.serve import _messages as messages
from card_envs.frontends.serve._advice_service import AdviceService
from card_envs.frontends.serve._messages import Request
from card_envs.frontends.serve._table_service import TableService
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


def _by_advice_service(handler: Callable[[AdviceService, Any], Any]) -> Callable[[TableService, Any], Any]:
    """Return a handler that needs no table."""
    return lambda service, asked: handler(service.advice, asked)


OPERATIONS = (
    Operation(
        "games", "GET", "/v1/games", messages.GamesRequest, messages.Games,
        lambda service, asked: service.advice.games(asked, service.allow_deals),
        "games: name, title, seats, sides, options, words for people, opponents",
    ),
    Operation(
        "schema", "GET", "/v1/games/{game}/schema", messages.GameRequest, dict[str, Any],
        _by_advice_service(AdviceService.schema),
        "JSON schema of a view",
    ),
    Operation(
        "rules", "GET", "/v1/games/{game}/rules", messages.GameRequest, messages.RulesInWords,
        _by_advice_service(AdviceService.rules),
        'the rules: `{"rules": "…"}`, Markdown',
    ),
    Operation(
        "opponents", "GET", "/v1/opponents", messages.OpponentsRequest, messages.Opponents,
        _by_advice_service(AdviceService.opponent_list),
        "opponents with measured strength and time per move",
    ),
    Operation(
        "advise", "POST", "/v1/advise", messages.AdviseRequest, messages.Advice,
        _by_advice_service(AdviceService.advise),
        "an opponent's evaluation of every legal move of a view",
    ),
    Operation(
        "judge", "POST", "/v1/judge", messages.JudgeRequest, messages.Judgement,
        _by_advice_service(AdviceService.judge),
        "what a move cost, in the opinion of an opponent that searches",
    ),
    Operation(
        "replay", "POST", "/v1/replay", messages.ReplayRequest, messages.Position,
        _by_advice_service(AdviceService.replay),
        "what a seat saw at some point of a game record",
    ),
    Operation(
        "table", "POST", "/v1/tables", messages.TableRequest, messages.NewTable, TableService.create,
        "a new table; returns a secret link for each person's seat",
        status=201,
    ),
    Operation(
        "position", "GET", "/v1/seats/{token}", messages.PositionRequest, messages.Position, TableService.position,
        "what the seat sees now",
    ),
    Operation(
        "move", "POST", "/v1/seats/{token}/moves", messages.MoveRequest, messages.Position, TableService.move,
        "play a move",
    ),
    Operation(
        "undo", "POST", "/v1/seats/{token}/undo", messages.UndoRequest, messages.Position, TableService.undo,
        "take back your last move, if that is fair to everyone",
    ),
    Operation(
        "events", "GET", "/v1/seats/{token}/events", messages.EventsRequest, messages.Position, TableService.events,
        "server-sent events: the position after every change",
        streams=True,
    ),
    Operation(
        "record", "GET", "/v1/seats/{token}/record", messages.TokenRequest, GameRecord, TableService.record,
        "the game record, once the game is over",
    ),
    Operation(
        "leave", "DELETE", "/v1/seats/{token}", messages.TokenRequest, messages.Left, TableService.leave,
        "leave the table, which ends it; only if no other person plays there",
    ),
    Operation(
        "watch", "GET", "/v1/watch/{token}", messages.WatchRequest, messages.Watched, TableService.watch,
        "what watchers may see now",
    ),
    Operation(
        "watched_events", "GET", "/v1/watch/{token}/events", messages.EventsRequest, messages.Watched,
        TableService.watched_events,
        "server-sent events: the same after every change",
        streams=True,
    ),
    Operation(
        "watched_record", "GET", "/v1/watch/{token}/record", messages.TokenRequest, GameRecord,
        TableService.watched_record,
        "the game record, once the game is over",
    ),
)  # fmt: skip
CALLS = {one.name: one for one in OPERATIONS if not one.streams}  # of JSON lines
