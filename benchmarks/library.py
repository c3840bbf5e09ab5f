"""`python -m benchmarks.library`: the speed of libraries built ahead of time against code that Numba compiles here.

Processes of both kinds take turns; of each figure the best of all turns counts. CPU time, one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from card_envs._bench import batch_out_of_step
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.games import GAMES, get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import decisions_at
from card_envs.opponents.search import SearchPolicy

KINDS = {"Numba": {"CARD_ENVS_NATIVE": "0"}, "library": {}}
REPEATS = 5


def seconds(work: Callable[[], object], least: float) -> float:
    """CPU seconds of one call: the best of some rounds, each of at least some seconds in all."""
    work()
    best, spent = float("inf"), 0.0
    while spent < least:
        start = time.process_time()
        work()
        took = time.process_time() - start
        best, spent = min(best, took), spent + took
    return best


def batch(game: Game, num_tables: int) -> Callable[[], object]:
    """A step of a batch with the first legal actions."""
    env = batch_out_of_step(game, num_tables)

    def work() -> None:
        for _ in range(max(1, 4096 // num_tables)):
            env.step(env.mask.argmax(axis=1))

    return work


def environment(game: Game) -> Callable[[], object]:
    """Some steps of the PettingZoo environment."""
    env = CardEnv(game)

    def work() -> None:
        env.reset(seed=1)
        for _ in range(200):
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                break
            env.step(int(observation["action_mask"].argmax()))

    return work


def search(game: Game) -> Callable[[], object]:
    """Decisions of `search:64` at some tables."""
    decisions = decisions_at(game, batch_out_of_step(game, 8).states)
    policy = SearchPolicy(game, 64, threads=1)
    return lambda: policy.act(decisions, np.random.default_rng(1))


def network(game: Game) -> Callable[[], object]:
    """A decision of `small` at one table."""
    decisions = decisions_at(game, batch_out_of_step(game, 1).states)
    opponent = load_opponent("small", game)
    return lambda: [opponent.act(decisions, np.random.default_rng(1)) for _ in range(20)]


TASKS: dict[str, Callable[[Game], Callable[[], object]]] = {
    "BatchEnv.step, 1,024 tables": lambda game: batch(game, 1024),
    "BatchEnv.step, 4 tables": lambda game: batch(game, 4),
    "AEC last + step": environment,
    "search:64": search,
    "small at one table": network,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.library", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each figure and turn (default 1)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        found = {
            f"{game}: {task}": seconds(make(get_game(game)), arguments.seconds)
            for game in GAMES
            for task, make in TASKS.items()
        }
        print(json.dumps(found))
        return
    best: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    for _ in range(REPEATS):
        for kind, changed in KINDS.items():
            command = [sys.executable, "-m", "benchmarks.library", "--child", "--seconds", str(arguments.seconds)]
            done = subprocess.run(command, env={**os.environ, **changed}, capture_output=True, text=True, check=True)
            for task, took in json.loads(done.stdout).items():
                best[kind][task] = min(best[kind].get(task, float("inf")), took)
    print("| | library / Numba, in speed |\n| --- | --- |")
    for task in best["Numba"]:
        print(f"| {task} | {best['Numba'][task] / best['library'][task]:.2f} |")


if __name__ == "__main__":
    main()
