"""Games for language models as tools of the Model Context Protocol: `python -m card_envs serve --mcp`.

A table is a seat in words (`TextEnv`), known by a number while the server runs. What a tool answers is text.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count
from typing import Any

from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import opponent_names
from card_envs.options import described
from card_envs.text import TextEnv

INSTRUCTIONS = (
    "Play card games against opponents of measured strength. Begin with `games` and `new_table`; then play with `move` "
    "until the game is over. Answers show the position and your legal moves."
)
MOST_TABLES = 100  # then the one that was used longest ago is closed


class Tables:
    """The tools, and the tables that they play at."""

    def __init__(self) -> None:
        self._tables: OrderedDict[int, TextEnv] = OrderedDict()
        self._numbers = count(1)

    def games(self) -> str:
        """List the games, their options and opponents."""
        return "\n\n".join(map(_described, GAMES.values()))

    def rules(self, game: str) -> str:
        """Return the rules of a game in short, and what the codes of moves mean."""
        found = _game(game)
        return "\n".join([found.short_rules, "", *(f"{code}: {meaning}" for code, meaning in found.legend)])

    def new_table(
        self, game: str, opponents: str = "greedy", seat: int = 0, options: dict[str, Any] | None = None
    ) -> str:
        """Begin a game and return the number of its table, the rules in short and the position.

        Args:
            game: such as "russian_bank".
            opponents: who plays the other seats: "greedy" (quick), "small", "strong" or "champion" (best, slow).
            seat: yours, from 0.
            options: of the game, such as {"deals": "single"} for one deal of Back Alley; `games` lists them.
        """
        table = TextEnv(_game(game), opponents, seat, **(options or {}))
        text = table.reset()
        number = next(self._numbers)
        self._tables[number] = table
        if len(self._tables) > MOST_TABLES:
            self._tables.popitem(last=False)
        return f"Table {number}.\n\n{text}"

    def position(self, table: int) -> str:
        """Return what happened since your last move, the position and your legal moves."""
        return self._at(table).prompt()

    def legal_moves(self, table: int) -> list[str]:
        """Return your legal moves; none once the game is over."""
        return self._at(table).legal_moves()

    def move(self, table: int, move: str) -> str:
        """Play a move and the others' moves; return what happened and the next position, or the result.

        Args:
            table: its number.
            move: one of the legal moves, in any spelling: TD, ten of diamonds, H2-H5.
        """
        found = self._at(table)
        if found.over:
            return found.prompt()
        return found.step(move)[0]

    def hint(self, table: int, opponent: str = "strong") -> str:
        """Return what an opponent would play from your seat, and how the other moves compare."""
        return self._at(table).hint(opponent)

    def _at(self, table: int) -> TextEnv:
        if table not in self._tables:
            open_ones = ", ".join(map(str, self._tables)) or "none"
            raise ValueError(f"table {table}: there is none of this number; open: {open_ones}")
        self._tables.move_to_end(table)
        return self._tables[table]


def _game(name: str) -> Game:
    if name not in GAMES:
        raise ValueError(f"unknown game {name!r}; there are: {', '.join(GAMES)}")
    return GAMES[name]


def _described(game: Game) -> str:
    options = [f"  option {name}: {option.description}" for name, option in described(game.options).items()]
    opponents = f"  opponents: {', '.join(opponent_names(game))}"
    return "\n".join([f"{game.name} ({game.title}), {game.rules.NUM_SEATS} seats", *options, opponents])


def make_server() -> Any:
    """Return the MCP server. Raises ValueError if its package is missing."""
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise ValueError("this needs the package mcp: pip install 'card_envs[mcp]'") from None
    tables = Tables()
    server = MCPServer("card_envs", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in (
        tables.games, tables.rules, tables.new_table, tables.position, tables.legal_moves, tables.move, tables.hint,
    ):  # fmt: skip
        server.tool()(tool)
    return server


def serve_mcp() -> None:
    """Serve on stdin and stdout until they are closed."""
    make_server().run("stdio")
