"""`python -m benchmarks.start`: how long it takes from the start of a process to its first answers.

Each figure is of processes of its own: compiled by Numba for the first time (cold), from Numba's cache (warm), and from
libraries that were built ahead of time (`python -m card_envs build`). Wall time, CPU time and peak memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from card_envs.games import GAMES

PLAYERS = ("small", "strong", "champion")
REPORT = """
import json, os, resource, sys, time
times = os.times()
spent = time.time() - float(sys.argv[1]), times.user + times.system
print(json.dumps([*spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
RESET = """
import card_envs
from card_envs.envs.aec import CardEnv
env = CardEnv(card_envs.get_game({game!r}))
env.reset(seed=1)
"""
MOVE = """
import card_envs
from card_envs.envs.aec import CardEnv
env = CardEnv(card_envs.get_game({game!r}))
env.reset(seed=1)
for _ in range(9):  # Back Alley: beyond the bids
    env.step(int(env.last()[0]["action_mask"].argmax()))
card_envs.load_opponent("{game}/{player}").evaluate(env.view(env.agent_selection))
"""
SPIEL = """
import pyspiel
state = pyspiel.load_game("spades").new_initial_state()
while state.is_chance_node():
    state.apply_action(state.legal_actions()[0])
state.legal_actions()
"""


class Cost(NamedTuple):
    """The cost of a process: wall seconds, CPU seconds, peak MiB."""

    wall: float
    cpu: float
    memory: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} s, {self.cpu:.2f} s, {self.memory:.0f} MiB"


def cost(code: str, environment: dict[str, str]) -> Cost:
    """Return the cost of running some code in a fresh process."""
    command = [sys.executable, "-c", code + REPORT, repr(time.time())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return Cost(*json.loads(done.stdout.splitlines()[-1]))


def server_cost(environment: dict[str, str]) -> Cost:
    """Return the cost of a server up to its first answer, with all games and opponents."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        command = [sys.executable, "-m", "card_envs", "serve", "--port", str(port), "--folder", folder]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/games", timeout=600) as answer:
                        answer.read()
                    break
                except (urllib.error.URLError, ConnectionError):
                    if server.poll() is not None:
                        raise SystemExit("the server ended") from None
                    time.sleep(0.01)
            wall = time.time() - start
            with open(f"/proc/{server.pid}/stat", encoding="utf-8") as file:  # noqa: PTH123 - of the system
                ticks = file.read().rpartition(")")[2].split()
            with open(f"/proc/{server.pid}/status", encoding="utf-8") as file:  # noqa: PTH123
                peak = next(line for line in file if line.startswith("VmHWM")).split()[1]
            return Cost(wall, (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK"), int(peak) / 1024)
        finally:
            server.terminate()
            server.wait()


def environments(cache: str) -> dict[str, dict[str, str]]:
    """Return the environment of a process for each column."""
    own = {**os.environ, "NUMBA_CACHE_DIR": cache}
    compiled = {**own, "CARD_ENVS_NATIVE": "0"}
    return {"Numba, cold": compiled, "Numba, warm": compiled, "library": own}


def rows(games: list[str], with_cold: bool) -> Iterator[tuple[str, dict[str, Cost]]]:
    """Yield what to do, and what it takes in each column."""
    tasks = [(f"{game}: first reset", RESET.format(game=game)) for game in games]
    tasks += [(f"{game}: first move of {who}", MOVE.format(game=game, player=who)) for game in games for who in PLAYERS]
    measured: list[tuple[str, Callable[[dict[str, str]], Cost]]] = [(name, partial(cost, code)) for name, code in tasks]
    for name, measure in [*measured, ("server: first answer", server_cost)]:
        with tempfile.TemporaryDirectory() as cache:
            kinds = environments(cache).items()
            yield name, {kind: measure(own) for kind, own in kinds if with_cold or kind == "library"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES))
    parser.add_argument("--library", action="store_true", help="measure libraries alone: seconds, not minutes")
    arguments = parser.parse_args()
    cost("import card_envs, gymnasium, pettingzoo", dict(os.environ))  # files are in memory from now on
    header: list[str] = []
    for name, found in rows(arguments.games, not arguments.library):
        if not header:
            header = list(found)
            print(f"| wall, CPU, memory | {' | '.join(header)} |\n| --- |{' --- |' * len(header)}")
        print(f"| {name} | {' | '.join(str(found[kind]) for kind in header)} |", flush=True)
    if importlib.util.find_spec("pyspiel"):
        print(f"| OpenSpiel's spades: first decision |{' |' * (len(header) - 1)} {cost(SPIEL, dict(os.environ))} |")


if __name__ == "__main__":
    main()
