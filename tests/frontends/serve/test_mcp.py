"""The tools for language models: what they answer, what they refuse, and the protocol as a client speaks it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from card_envs.frontends.serve._command import registered
from card_envs.frontends.serve._mcp import MOST_TABLES, ModelTables
from card_envs.frontends.serve._messages import Problem
from card_envs.games import GAMES
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import FirstLegal, run_python
from tests.frontends.serving import bytes_waiting

ROOT = Path(__file__).parents[3]
TOOLS = ["games", "rules", "new_table", "position", "legal_moves", "move", "hint"]
GAME = HIGH_CARD.name
Found = TypeVar("Found")

# What a client may not name: modules, folders, other games' opponents, searches that never end.
UNNAMED = ["evil_module:Policy", "os:system", "./net", "/", "..", "search:9999999", f"{GAME}/greedy", "bob", ""]
# Arguments of environments that are not options of a game.
ARGUMENTS = [
    {"render_mode": "human"}, {"illegal_move": "raise"}, {"observe": "flat"}, {"obs_key": "x"}, {"obs_dtype": "int8"},
    {"game": GAME}, {"opponents": "bob"}, {"seat": 1}, {"self": 1}, {"options": {}}, {"reward": "gold"}, {"trump": "C"},
]  # fmt: skip
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    *(("new_table", {"game": GAME, "opponents": name}, "opponents: no ") for name in UNNAMED),
    *(("hint", {"table": 1, "opponent": name}, "opponent: no ") for name in UNNAMED),
    *(("new_table", {"game": GAME, "options": options}, "option") for options in ARGUMENTS),
    ("new_table", {"game": GAME, "opponent": "greedy"}, "opponent: Extra inputs are not permitted; it takes game, opp"),
    ("new_table", {"game": GAME, "seat": 9}, "seat: expected a whole number from 0 to 1, got 9"),
    ("new_table", {"game": GAME, "seat": -1}, "seat: expected a whole number from 0 to 1, got -1"),
    ("new_table", {"game": GAME, "seat": "0"}, "seat.int: Input should be a valid integer"),
    ("new_table", {}, "game: Field required; it takes game, opponents, seat, options"),
    ("new_table", {"game": "bridge"}, f"game: no 'bridge'; there are: {GAME}"),
    ("new_table", {"game": GAME, "options": json.loads('{"a":' * 300 + "1" + "}" * 300)}, "option a="),
    ("rules", {"game": "bridge"}, f"game: no 'bridge'; there are: {GAME}"),
    ("rules", {"game": "x" * 100_000}, "game: no 'xxxxxx"),
    ("games", {"all": True}, "all: Extra inputs are not permitted; it takes nothing"),
    ("position", {"table": 7}, "table: there is no 7; open: 1"),
    ("position", {"table": 10**30}, "table: there is no 1000"),
    ("legal_moves", {"table": None}, "table: Input should be a valid integer"),
    ("move", {"table": 1, "move": "\n" * 16_000}, "move: String should have at most 100 characters"),
    ("move", {"table": 1, "move": 3}, "move: Input should be a valid string"),
    ("move", {"table": 1}, "move: Field required; it takes table, move"),
    ("deal", {}, f"no tool 'deal'; there are: {', '.join(TOOLS)}"),
]


@pytest.fixture
def tables() -> ModelTables:
    return ModelTables(registered([GAME], []), 1.0)


def moves_in(text: str) -> list[str]:
    return re.findall(r"Your legal moves: (.*)", text)[-1].split(", ")


def test_a_game_by_tools(tables: ModelTables) -> None:
    assert f"{GAME} ({HIGH_CARD.title}), 2 seats" in tables.call("games", {})
    assert HIGH_CARD.short_rules in tables.call("rules", {"game": GAME})
    text = tables.call("new_table", {"game": GAME, "options": {"reward": "win"}})
    assert text.startswith("Table 1.")
    assert "would play" in tables.call("hint", {"table": 1, "opponent": "search:64"})
    while "Game over" not in text:
        assert tables.call("legal_moves", {"table": 1}).splitlines() == moves_in(text)
        assert moves_in(tables.call("position", {"table": 1})) == moves_in(text)
        assert "no legal move" in tables.call("move", {"table": 1, "move": "99"})
        text = tables.call("move", {"table": 1, "move": f" {moves_in(text)[0]}."})
    over = tables.call("move", {"table": 1, "move": "1"})
    assert over == tables.call("position", {"table": 1}) and "Game over" in over
    assert tables.call("legal_moves", {"table": 1}) == ""


def test_old_tables_are_closed(tables: ModelTables) -> None:
    for _ in range(MOST_TABLES + 1):
        tables.call("new_table", {"game": GAME})
        tables.call("position", {"table": 1})  # used, so that another is the oldest
    with pytest.raises(Problem, match="table: there is no 2; open: "):
        tables.call("position", {"table": 2})
    assert tables.call("position", {"table": 1}) and tables.call("position", {"table": MOST_TABLES + 1})


def test_what_a_client_may_not_name_is_refused_with_the_reason(
    tables: ModelTables, capfd: pytest.CaptureFixture[str]
) -> None:
    tables.call("new_table", {"game": GAME})
    for tool, arguments, said in REFUSED:
        with pytest.raises(Problem) as caught:
            tables.call(tool, arguments)
        assert said in str(caught.value) and len(str(caught.value)) < 2000
    assert "evil_module" not in sys.modules
    with pytest.raises(Problem, match="there is no 2"):
        tables.call("position", {"table": 2})  # nothing was begun
    assert capfd.readouterr() == ("", "")


class Bounded(FirstLegal):
    """Notes how long it may think."""

    bounds: ClassVar[list[float]] = []

    def within(self, seconds: float, threads: int) -> Bounded:
        self.bounds.append(seconds)
        return self


def test_searches_are_bounded_in_time() -> None:
    """By the server's seconds, at tables and for hints."""
    tables = ModelTables(registered([GAME], [f"{GAME}/bounded={__name__}:Bounded"]), 0.25)
    tables.call("new_table", {"game": GAME, "opponents": "bounded"})
    tables.call("hint", {"table": 1, "opponent": "bounded"})
    assert Bounded.bounds == [0.25, 0.25]


@pytest.mark.parametrize(
    ("kind", "option", "used"), [("--mcp", "--port=80", "--seconds"), ("--stdio", "--host-name=x", "--searches")]
)
def test_options_of_the_command_that_do_nothing_are_refused(kind: str, option: str, used: str) -> None:
    """On stderr: stdout is the protocol's."""
    done = run_python("-m", "card_envs", "serve", kind, option, stdin="", status=2)
    assert done.stdout == ""
    name = option.partition("=")[0]
    assert f"serve {kind}: {name} does not apply; these do: --game, --opponent, " in done.stderr
    assert done.stderr.rstrip().endswith(used)


# The protocol, by its own client


def command(*given: str) -> list[str]:
    return [sys.executable, "-m", "card_envs", "serve", *given]


def environment(folder: Path | None = None) -> dict[str, str]:
    path = os.pathsep.join(map(str, filter(None, (ROOT, folder))))
    return {**os.environ, "PYTHONPATH": path}


def with_client(folder: Path, given: list[str], use: Callable[[Any], Awaitable[Found]]) -> tuple[Found, str]:
    """Return what a function of the client finds, and what the server wrote to stderr."""
    pytest.importorskip("mcp")
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    program, *rest = command("--mcp", *given)
    server = StdioServerParameters(command=program, args=rest, env=environment(folder))

    async def run() -> Found:
        with (folder / "stderr").open("w") as errors:
            async with (
                stdio_client(server, errlog=errors) as (reader, writer),
                ClientSession(reader, writer) as session,
            ):
                await session.initialize()
                return await use(session)

    return asyncio.run(asyncio.wait_for(run(), 300)), (folder / "stderr").read_text()


async def said(session: Any, tool: str, **arguments: Any) -> tuple[str, bool]:
    """Return what a tool answers, and whether that is an error."""
    result = await session.call_tool(tool, arguments)
    return "".join(part.text for part in result.content), result.is_error


NOISY = """
import os, subprocess, sys
import numpy as np
print("printed while loading")
os.write(1, b"written while loading\\n")
class Policy:
    def __init__(self, game): pass
    def act(self, decisions, rng):
        print("printed")
        os.write(1, b"written\\n")
        subprocess.run([sys.executable, "-c", "print('from a child')"])
        os.system("echo from a shell")
        return np.argmax(decisions.mask, axis=1)
    def probabilities(self, decisions):
        return decisions.mask / decisions.mask.sum(axis=1, keepdims=True)
"""


@pytest.mark.processes
def test_a_client_of_the_protocol_plays(tmp_path: Path) -> None:
    """Whatever opponents write to stdout is not in the protocol; errors come with their reasons."""
    pytest.importorskip("mcp")
    game = next(game.name for game in GAMES.values() if game != HIGH_CARD and game.rules.NUM_SEATS > 1)
    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")

    async def use(session: Any) -> None:
        tools = (await session.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS and all(tool.description for tool in tools)
        assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
        for name in ("evil_module:Policy", "search:9999999", str(tmp_path)):
            text, failed = await said(session, "new_table", game=game, opponents=name)
            assert failed and text.startswith(f"opponents: no {name!r:.80}; there are: random, ")
        text, failed = await said(session, "new_table", game=game, opponents="noisy")
        while "Game over" not in text and len(text) > 0 and not failed:
            before = text
            text, failed = await said(session, "move", table=1, move=moves_in(text)[0])
            if "noisy" not in before:
                break
        assert not failed and ("Your legal moves" in text or "Game over" in text)
        assert (await said(session, "position", table=7)) == ("table: there is no 7; open: 1", True)
        text, failed = await said(session, "hint", table=1, opponent="evil_module:Policy")
        assert failed and text.startswith("opponent: no 'evil_module:Policy'; there are: ")
        text, failed = await said(session, "new_table", game=game, options={"render_mode": "human"})
        assert failed and "unexpected keyword argument 'render_mode'. The options are" in text
        assert (await said(session, "bluff"))[1]

    _, errors = with_client(tmp_path, ["--game", game, "--opponent", f"{game}/noisy=noisy:Policy"], use)
    assert "printed while loading" in errors and "written" in errors and "from a child" in errors
    assert "Traceback" not in errors and "imported" not in errors


def requests(*calls: dict[str, Any]) -> str:
    """Return lines that a client writes: the handshake, then calls of tools."""
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": call} for n, call in enumerate(calls, 1)),
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


SLOW = """
import sys, threading
class Policy:
    def __init__(self, game): pass
    def act(self, decisions, rng):
        print("asked", file=sys.stderr, flush=True)
        threading.Event().wait()
    probabilities = act
"""


@pytest.mark.processes
def test_the_end_of_input_ends_the_process(tmp_path: Path) -> None:
    """Whatever is going on."""
    pytest.importorskip("mcp")
    game = next(game.name for game in GAMES.values() if game != HIGH_CARD and game.rules.NUM_SEATS > 1)
    (tmp_path / "slow.py").write_text(SLOW)
    given = command("--mcp", "--game", game, "--opponent", f"{game}/slow=slow:Policy")
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(given, env=environment(tmp_path), text=True, **pipes)  # type: ignore[call-overload]
    play = {"name": "new_table", "arguments": {"game": game, "opponents": "slow", "seat": 1}}
    process.stdin.write(requests({"name": "games"}, *[play] * 3))
    process.stdin.flush()
    for _ in range(2):
        assert json.loads(process.stdout.readline())["result"]
    while "asked" not in process.stderr.readline():
        pass
    process.stdin.close()
    assert process.wait(60) == 0


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "unread"), [(signal.SIGTERM, False), (signal.SIGINT, True)], ids=["TERM", "INT"])
def test_one_signal_ends_the_process(number: signal.Signals, unread: bool, tmp_path: Path) -> None:
    """Though a line is waited for, or somebody to read the answers."""
    pytest.importorskip("mcp")
    game = next(iter(GAMES))
    given = command("--mcp", "--game", game)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(given, env=environment(), **pipes) as process:  # type: ignore[call-overload]
        calls = [{"name": "rules", "arguments": {"game": game}}] * (1 + 150 * unread)  # more than the pipe holds
        process.stdin.write(requests(*calls).encode())
        process.stdin.flush()
        for _ in range(2):
            assert json.loads(process.stdout.readline())["result"]
        while unread and bytes_waiting(process.stdout) < 50_000:
            pass
        process.send_signal(number)
        try:
            assert process.wait(30)
        finally:
            process.kill()
        errors = process.stderr.read()
        assert b"Traceback" not in errors and b"Fatal" not in errors
