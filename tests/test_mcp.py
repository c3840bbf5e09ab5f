"""The tools for language models, over the protocol as a client speaks it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from card_envs.games import GAMES
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.serve._mcp import MOST_TABLES, Tables

ROOT = Path(__file__).parents[1]
TOOLS = {"games", "rules", "new_table", "position", "legal_moves", "move", "hint"}


def moves_in(text: str) -> list[str]:
    return re.findall(r"Your legal moves: (.*)", text)[-1].split(", ")


def test_a_game_by_tools() -> None:
    tables = Tables()
    assert f"{HIGH_CARD.name} ({HIGH_CARD.title}), 2 seats" in tables.games()
    assert HIGH_CARD.short_rules in tables.rules(HIGH_CARD.name)
    text = tables.new_table(HIGH_CARD.name, "greedy", options={"reward": "win"})
    assert text.startswith("Table 1.")
    assert "would play" in tables.hint(1, "search:8")
    while "Game over" not in text:
        assert tables.legal_moves(1) == moves_in(text)
        assert moves_in(tables.position(1)) == moves_in(text)
        assert "no legal move" in tables.move(1, "99")
        text = tables.move(1, f" {moves_in(text)[0]}.")
    assert tables.move(1, "1") == tables.position(1) and "Game over" in tables.position(1)


def test_old_tables_are_closed_and_wrong_calls_explained() -> None:
    tables = Tables()
    for _ in range(MOST_TABLES + 1):
        tables.new_table(HIGH_CARD.name)
        if tables._tables:
            tables.position(next(iter(tables._tables)))  # used, so that another is the oldest
    with pytest.raises(ValueError, match="table 9999: there is none of this number; open: "):
        tables.move(9999, "1")
    assert len(tables._tables) == MOST_TABLES
    with pytest.raises(ValueError, match=f"unknown game 'bridge'; there are: {next(iter(GAMES))}"):
        tables.new_table("bridge")
    with pytest.raises(ValueError, match="unknown opponent 'bob'"):
        tables.new_table(HIGH_CARD.name, "bob")


@pytest.mark.processes
def test_a_client_of_the_protocol_plays() -> None:
    pytest.importorskip("mcp")
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    game = next(game.name for game in GAMES.values() if game != HIGH_CARD)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "card_envs", "serve", "--mcp"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    async def play() -> tuple[set[str], str, str, bool]:
        async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            tools = {tool.name for tool in (await session.list_tools()).tools}
            first = text_of(await session.call_tool("new_table", {"game": game}))
            second = text_of(await session.call_tool("move", {"table": 1, "move": moves_in(first)[0]}))
            wrong = await session.call_tool("position", {"table": 7})
            return tools, first, second, bool(getattr(wrong, "is_error", getattr(wrong, "isError", False)))

    tools, first, second, failed = asyncio.run(asyncio.wait_for(play(), 300))
    assert tools == TOOLS and first.startswith("Table 1.") and failed
    assert "Your legal moves" in second or "Game over" in second


def text_of(result: Any) -> str:
    return "".join(part.text for part in result.content)
