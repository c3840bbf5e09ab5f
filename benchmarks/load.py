"""Measure the moves per second of a server: `python -m benchmarks.load` starts one and plays at many tables at once.

- *paced*: at each table a person moves after some seconds (drawn uniformly around the mean); latency is that of the
  POST of a move, the answers of the opponents included.
- *flat out*: some tables without pause, for the most moves a second; with a searching opponent this is where it
  saturates.
- *flood*: malformed and oversized requests, then the resident memory again; more than 5 % of growth is a failure.

The clients run on the same machine, in another process than the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as Sheet

from benchmarks.serving import Server
from card_envs import _processes as processes
from card_envs.games import GAMES
from card_envs.opponents import opponent_names

MOST_GROWTH = 0.05
console = Console(width=120)


class Connection:
    """One connection that stays open, with the little HTTP that is needed: a client as fast as the server."""

    def __init__(self, address: str) -> None:
        self.host, _, port = address.removeprefix("http://").partition(":")
        self.port = int(port)
        self.reader: asyncio.StreamReader | None = None

    async def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of the reply."""
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        reply = await self.reader.readexactly(length)
        if b"connection: close" in lines:
            self.close()
        return int(lines[0].split()[1]), reply

    async def ask(self, path: str, body: Any = None) -> Any:
        """The reply to a GET, or to a POST of a body, that must succeed."""
        data = b"" if body is None else json.dumps(body).encode()
        status, reply = await self.send("GET" if body is None else "POST", path, data)
        assert status in (200, 201), reply
        return json.loads(reply)

    def close(self) -> None:
        if self.reader is not None:
            self.writer.close()
            self.reader = None


@dataclass
class Measured:
    """What happened at some tables. Latencies are in seconds."""

    latencies: list[float] = field(default_factory=list)
    moves: int = 0  # of everybody
    games: int = 0

    def quantile(self, share: float) -> float:
        return 1000 * float(np.quantile(self.latencies, share))


async def play_at(
    address: str, game: str, opponent: str, pace: float, times: tuple[float, float], found: Measured, seed: int
) -> None:
    """Play at one table after another until the time is up, moving at random; measure within `times`."""
    connection, rng = Connection(address), random.Random(seed)
    players = [None, *[opponent] * (GAMES[game].rules.NUM_SEATS - 1)]
    loop = asyncio.get_running_loop()
    await asyncio.sleep(pace * rng.random())
    while loop.time() < times[1]:
        link = (await connection.ask("/v1/tables", {"game": game, "players": players}))["seats"][0]["link"]
        seen = await connection.ask(f"{link}?wait=30")
        while not seen["outcome"]["over"] and loop.time() < times[1]:
            if pace:
                await asyncio.sleep(pace * (0.5 + rng.random()))
            if not seen["your_turn"]:
                seen = await connection.ask(f"{link}?wait=30")
                continue
            move = {"move": rng.choice(seen["view"]["legal"]), "turn": seen["turn"], "wait": 30}
            began = loop.time()
            seen = await connection.ask(f"{link}/moves", move)
            if times[0] <= began and loop.time() <= times[1]:
                found.latencies.append(loop.time() - began)
                found.moves += len(seen["moves"])
        found.games += seen["outcome"]["over"]
        await connection.send("DELETE", link)
    connection.close()


async def play_all(address: str, game: str, opponent: str, tables: int, pace: float, seconds: float) -> Measured:
    """Play at all tables at once, and measure for `seconds` once all have begun."""
    found = Measured()
    began = asyncio.get_running_loop().time() + 1.5 * pace + 2
    times = (began, began + seconds)
    await asyncio.gather(*(play_at(address, game, opponent, pace, times, found, seed) for seed in range(tables)))
    return found


async def flood(address: str, requests: int, connections: int = 32) -> dict[int, int]:
    """Send nonsense; returns how often each status came."""
    junk = [
        b"",
        b"{",
        b"[" * 50_000,
        b"\xff" * 1000,
        b'{"game": NaN}',
        b'{"game": "x", "view": {"seat": 1e999}}',
    ]
    junk += [json.dumps({"game": name, "view": {"hand": ["?"] * 5000}}).encode() for name in GAMES]
    junk += [json.dumps({"game": name, "options": {"x" * 5000: 1}}).encode() for name in GAMES]
    junk += [b'{"game": "' + b"x" * 60_000 + b'"}', b"y" * 300_000]
    paths = [
        "/v1/advise",
        "/v1/tables",
        "/v1/replay",
        "/v1/seats/" + "0" * 48 + "/moves",
        "/v1/%00",
        "/v1/games/x/schema",
    ]
    counts: dict[int, int] = {}

    async def send(number: int) -> None:
        connection, rng = Connection(address), random.Random(number)
        for _ in range(requests // connections):
            try:
                status, _ = await connection.send("POST", rng.choice(paths), rng.choice(junk))
            except (OSError, asyncio.IncompleteReadError):  # it may hang up on what is no HTTP or too long
                status = 0
                connection.close()
            counts[status] = counts.get(status, 0) + 1
        connection.close()

    await asyncio.gather(*(send(number) for number in range(connections)))
    return counts


def processor_time(server: Server) -> float:
    """Seconds that the server has used."""
    words = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def main(
    tables: Annotated[int, typer.Option(help="at once, in the paced runs")] = 1000,
    pace: Annotated[float, typer.Option(help="seconds from one move of a person to the next, on average")] = 10.0,
    seconds: Annotated[float, typer.Option(help="of each measurement")] = 30.0,
    opponent: Annotated[list[str] | None, typer.Option(help="in the paced runs")] = None,
    game: Annotated[list[str] | None, typer.Option(help="default: all")] = None,
    flat_out: Annotated[bool, typer.Option(help="measure the most as well")] = True,
    requests: Annotated[int, typer.Option(help="of the flood")] = 20_000,
) -> None:
    """Measure all of it."""
    sheet = Sheet(title=f"server on {processes.cores()} cores; {seconds:g} s each", title_justify="left")
    for column in ("game", "opponents", "tables", "pace s", "moves/s", "own/s", "p50 ms", "p99 ms", "cores", "MiB"):
        sheet.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "tables")
        try:
            for name in game or list(GAMES)[:3]:
                names = opponent_names(GAMES[name])
                runs = [(one, tables, pace) for one in opponent or ("greedy", "small", "ppo") if one in names]
                runs += [("greedy", 32, 0.0), ("search:64", 16, 0.0)] if flat_out else []
                for who, number, every in runs:
                    used, began = processor_time(server), time.monotonic()
                    found = asyncio.run(play_all(server.address, name, who, number, every, seconds))
                    cores = (processor_time(server) - used) / (time.monotonic() - began)
                    rates = found.moves / seconds, len(found.latencies) / seconds
                    cells = number, every, *rates, found.quantile(0.5), found.quantile(0.99), cores, server.memory()
                    sheet.add_row(name, who, *(f"{cell:.4g}" for cell in cells))
                    console.print(f"{name} {who}: done", highlight=False)
            console.print(sheet)
            asyncio.run(flood(server.address, requests // 10))  # what is loaded once
            before = server.memory()
            counts = asyncio.run(flood(server.address, requests))
            after = server.memory()
            growth = after / before - 1
            console.print(f"flood of {requests}: {counts}; {before:.0f} MiB before, {after:.0f} after ({growth:+.1%})")
            assert server.ask("/v1/games")["games"]
        finally:
            server.stop()
    sys.exit(growth > MOST_GROWTH or any(500 <= status < 600 and status != 503 for status in counts))


if __name__ == "__main__":
    typer.run(main)
