"""`python -m benchmarks.serving`: starts a server, and measures its moves per second at many tables at once.

At each table a person moves after some seconds (drawn uniformly around the mean), then without pause; latency is that
of the POST of a move, the answers of the opponents included. The clients run on the same machine, in another process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from card_envs.games import GAMES
from card_envs.opponents import opponent_names

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


class ServerProcess:
    """A server of the package's games in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "card_envs", "serve", "--port", str(self.port), "--folder", str(folder)]
        self.process = subprocess.Popen([*command, *options], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "serving on" in line:
                break
        while self.process.poll() is None:
            with suppress(OSError):
                self.ask("/v1/games")
                break
            time.sleep(0.1)

    def ask(self, path: str, body: Any = None) -> Any:
        """Return the reply to a GET, or to a POST of a body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)

    def stop(self) -> float:
        """End it gracefully; return the seconds that took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)
        return time.monotonic() - began

    def memory(self) -> float:
        """Return its resident memory in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def seconds(self) -> float:
        """Return its processor time in seconds."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """One connection that stays open, with the little HTTP that is needed: as fast as the server."""

    async def ask(self, path: str, body: Any = None) -> Any:
        """Return the reply to a GET, or to a POST of a body, that must succeed."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        reply = await self.reader.readexactly(length)
        assert lines[0].split()[1] in (b"200", b"201"), reply
        return json.loads(reply)

    async def play(
        self, port: int, game: str, opponent: str, pace: float, times: tuple[float, float], seed: int
    ) -> list[tuple[float, int]]:
        """Play at random at one table after another until the time is up; return latency and moves of each answer."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        rng, clock, answers = random.Random(seed), asyncio.get_running_loop().time, []
        players = [None, *[opponent] * (GAMES[game].rules.NUM_SEATS - 1)]
        await asyncio.sleep(pace * rng.random())
        while clock() < times[1]:
            link = (await self.ask("/v1/tables", {"game": game, "players": players}))["seats"][0]["link"]
            seen = await self.ask(f"{link}?wait=30")
            while not seen["outcome"]["over"] and clock() < times[1]:
                await asyncio.sleep(pace * (0.5 + rng.random()))
                if not seen["your_turn"]:
                    seen = await self.ask(f"{link}?wait=30")
                    continue
                move = {"move": rng.choice(seen["view"]["legal"]), "turn": seen["turn"], "wait": 30}
                began = clock()
                seen = await self.ask(f"{link}/moves", move)
                if times[0] <= began and clock() <= times[1]:
                    answers.append((clock() - began, len(seen["moves"])))
        self.writer.close()
        return answers


async def play_all(port: int, game: str, opponent: str, tables: int, pace: float, seconds: float) -> Any:
    """Play at all tables at once; return [n, 2] latencies and moves within `seconds` once all have begun."""
    began = asyncio.get_running_loop().time() + 1.5 * pace + 2
    times = (began, began + seconds)
    plays = (Client().play(port, game, opponent, pace, times, seed) for seed in range(tables))
    return np.array([answer for answers in await asyncio.gather(*plays) for answer in answers]).reshape(-1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--tables", type=int, default=1000, help="with pauses (default 1000)")
    parser.add_argument("--pace", type=float, default=10.0, help="mean seconds between a person's moves (default 10)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement (default 30)")
    parser.add_argument("--opponents", nargs="+", default=("greedy", "small", "ppo"), help="with pauses")
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES))
    arguments = parser.parse_args()
    print("| game | opponents | tables | moves/s | own/s | p50 ms | p99 ms | cores | MiB |" + "\n|" + " --- |" * 9)
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder) / "tables")
        try:
            for game in arguments.games:
                paced = [(opponent, arguments.tables, arguments.pace) for opponent in arguments.opponents]
                for who, tables, pace in [*paced, ("greedy", 32, 0.0), ("search:64", 16, 0.0)]:
                    if who not in (*opponent_names(GAMES[game]), "search:64"):
                        continue
                    used, began = server.seconds(), time.monotonic()
                    answers = asyncio.run(play_all(server.port, game, who, tables, pace, arguments.seconds))
                    cores = (server.seconds() - used) / (time.monotonic() - began)
                    rates = answers[:, 1].sum() / arguments.seconds, len(answers) / arguments.seconds
                    figures = *rates, *(1000 * np.quantile(answers[:, 0], (0.5, 0.99))), cores, server.memory()
                    cells = " | ".join(f"{figure:.3g}" for figure in figures)
                    print(f"| {game} | {who} | {tables} | {cells} |", flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
