"""Games for language models as tools of the Model Context Protocol: `python -m card_envs serve --mcp`.

A table is a seat in words (`TextEnv`), known by a number while the server runs. What a tool answers is text; an error
is one as well, and says what would be right. Clients name games and opponents that are registered, nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from io import TextIOWrapper
from itertools import count
from types import SimpleNamespace
from typing import Any, BinaryIO, Literal

from pydantic import Field, ValidationError

from card_envs.frontends.serve._asking import ServedOpponents
from card_envs.frontends.serve._messages import (
    GameName,
    GameRequest,
    NoRequest,
    OpponentName,
    Problem,
    Request,
    malformed,
    wrong,
)
from card_envs.frontends.serve._operations import Operation
from card_envs.frontends.serve._stdio import in_daemon
from card_envs.frontends.text import TextEnv
from card_envs.game import LONGEST_MOVE, Game
from card_envs.opponents.policy import Opponent, PolicyError
from card_envs.options import describe_options

INSTRUCTIONS = (
    "Play card games against opponents of measured strength. Begin with `games` and `new_table`; then play with `move` "
    "until the game is over. Answers show the position and your legal moves."
)
MOST_TABLES = 100  # then the one that was used longest ago is closed
log = logging.getLogger("card_envs.serve")


class NewTableRequest(Request):
    game: GameName
    opponents: OpponentName = Field("greedy", description='players of the other seats, such as "greedy" or "strong"')
    seat: int | Literal["random"] = Field(0, description="yours")
    options: dict[str, Any] = Field({}, description="of the game, as `games` lists them: values by name")


class NumberRequest(Request):
    table: int = Field(description="its number")


class AnswerRequest(NumberRequest):
    move: str = Field(
        max_length=LONGEST_MOVE,
        description="a legal move alone, in any spelling: TD, ten of diamonds, H2-H5; or a line `Move: TD`",
    )


class HintRequest(NumberRequest):
    opponent: OpponentName = "strong"


class ModelTables:
    """The tools, and the tables that they play at, one call at a time; opponents think for `seconds` a move."""

    def __init__(self, opponents: ServedOpponents, seconds: float) -> None:
        self.opponents = opponents
        self.seconds = seconds
        self._tables: OrderedDict[int, TextEnv] = OrderedDict()
        self._numbers = count(1)
        self._lock = threading.Lock()

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return what a tool answers. Raises Problem, whose text is for the client."""
        if name not in TOOLS:
            raise Problem("unknown", f"no tool {name!r:.80}; there are: {', '.join(TOOLS)}")
        tool = TOOLS[name]
        try:
            asked = tool.request.model_validate(arguments)
            with self._lock:
                said: str = tool.handler(self, asked)
                return said
        except ValidationError as error:
            problem = malformed(error)
            takes = ", ".join(tool.request.model_fields) or "nothing"
            raise Problem("bad_request", f"{name}: {problem}; it takes {takes}", problem.field) from None
        except PolicyError:
            log.exception("an opponent failed")  # the message is only for the owner: it may hold hidden information
            raise Problem("failed", "an opponent failed; the server's log has more") from None
        except ValueError as error:
            raise wrong("bad_request", error) from None
        except Problem:
            raise
        except Exception:
            log.exception("%s failed", name)
            raise Problem("failed", "the server failed; its log has more") from None

    def games(self, asked: NoRequest) -> str:
        """List the games, their options and opponents."""
        return "\n\n".join(map(self._described, self.opponents.games.values()))

    def rules(self, asked: GameRequest) -> str:
        """Return the rules of a game in short, and what the codes of moves mean."""
        found = self.opponents.game(asked.game)
        return "\n".join([found.short_rules, "", *(f"{code}: {meaning}" for code, meaning in found.view.LEGEND)])

    def new_table(self, asked: NewTableRequest) -> str:
        """Begin a game and return the number of its table, the rules in short and the position."""
        game = self.opponents.game(asked.game)
        game.validated(asked.options)
        opponent = self._opponent(game, asked.opponents, "opponents")
        others: list[Any] = [opponent] * (game.rules.NUM_SEATS - 1)
        table = TextEnv(game, others, asked.seat, **asked.options)
        text = table.reset()
        number = next(self._numbers)
        self._tables[number] = table
        if len(self._tables) > MOST_TABLES:
            self._tables.popitem(last=False)
        return f"Table {number}.\n\n{text}"

    def position(self, asked: NumberRequest) -> str:
        """Return what happened since your last move, the position and your legal moves."""
        return self._at(asked).prompt()

    def legal_moves(self, asked: NumberRequest) -> str:
        """Return your legal moves, a line each; none once the game is over."""
        return "\n".join(self._at(asked).legal_moves())

    def move(self, asked: AnswerRequest) -> str:
        """Play a move and the others' moves; return what happened and the next position, or the result."""
        table = self._at(asked)
        return table.prompt() if table.over else table.step(asked.move)[0]

    def hint(self, asked: HintRequest) -> str:
        """Return what an opponent would play from your seat, and how the other moves compare."""
        table = self._at(asked)
        return table.hint(self._opponent(table.game, asked.opponent, "opponent"))

    def _opponent(self, game: Game, name: str, field: str) -> Opponent:
        return self.opponents.opponent(game, name, field).within(self.seconds)

    def _at(self, asked: NumberRequest) -> TextEnv:
        if asked.table not in self._tables:
            open_ones = ", ".join(map(str, self._tables)) or "none"
            raise Problem("unknown", f"table: there is no {asked.table!r:.20}; open: {open_ones}", "table")
        self._tables.move_to_end(asked.table)
        return self._tables[asked.table]

    def _described(self, game: Game) -> str:
        options = [f"  option {name}: {option.description}" for name, option in describe_options(game.options).items()]
        opponents = f"  opponents: {', '.join(self.opponents.names(game))}"
        return "\n".join([f"{game.name} ({game.title}), {game.rules.NUM_SEATS} seats", *options, opponents])


def _tool(handler: Callable[[ModelTables, Any], str], request: type[Request]) -> Operation:
    return Operation(handler.__name__, "", "", request, str, handler, handler.__doc__ or "")


TOOLS = {
    tool.name: tool
    for tool in (
        _tool(ModelTables.games, NoRequest),
        _tool(ModelTables.rules, GameRequest),
        _tool(ModelTables.new_table, NewTableRequest),
        _tool(ModelTables.position, NumberRequest),
        _tool(ModelTables.legal_moves, NumberRequest),
        _tool(ModelTables.move, AnswerRequest),
        _tool(ModelTables.hint, HintRequest),
    )
}


def serve_mcp(tables: ModelTables, source: BinaryIO, target: BinaryIO) -> None:
    """Serve until the input ends, or the output is closed."""
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async def list_tools(context: Any, asked: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, description=tool.sentence, input_schema=tool.request.model_json_schema())
                for name, tool in TOOLS.items()
            ]
        )

    async def call_tool(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            text, failed = await in_daemon(lambda: tables.call(asked.name, asked.arguments or {})), False
        except Problem as problem:
            text, failed = str(problem), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    server = Server(
        "card_envs",
        version=version("card_envs"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )

    async def lines() -> AsyncIterator[str]:
        requests = TextIOWrapper(source, encoding="utf-8", errors="replace")
        while line := await in_daemon(requests.readline):
            yield line

    async def serve() -> None:  # reads and writes in threads that can be left at Ctrl-C, unlike anyio's
        requests: Any = lines()
        answers: Any = SimpleNamespace(
            write=lambda text: in_daemon(lambda: target.write(text.encode())), flush=lambda: in_daemon(target.flush)
        )
        async with stdio_server(requests, answers) as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    unsent = False
    try:
        anyio.run(serve)
    except* anyio.BrokenResourceError:  # the process was told to end while nobody read
        unsent = True
    if unsent:
        raise KeyboardInterrupt
