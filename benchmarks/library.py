"""`python -m benchmarks.library`: the speed of libraries built ahead of time against code that Numba compiles here.

Processes of both kinds take turns; of each figure the best of all turns counts. CPU time, one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from card_envs._bench import Throughput, aec_rate, batch_out_of_step, rate, search_rate, step_rate
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import decisions_at

KINDS = {"Numba": {"CARD_ENVS_NATIVE": "0"}, "library": {}}
REPEATS = 5


def network_rate(game: Game, seconds: float) -> Throughput:
    """Return decisions per second of `small`, one at a time."""
    decisions = decisions_at(game, batch_out_of_step(game, 1).states)
    opponent, rng = load_opponent("small", game), np.random.default_rng(1)
    return rate(lambda: len(opponent.act(decisions, rng)), seconds)


TASKS: dict[str, Callable[[Game, float], Throughput]] = {
    "BatchEnv.step, 1,024 tables": lambda game, seconds: step_rate(game, 1024, 1, seconds),
    "BatchEnv.step, 4 tables": lambda game, seconds: step_rate(game, 4, 1, seconds),
    "AEC last + step": aec_rate,
    "search:64": search_rate,
    "small at one table": network_rate,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.library", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each figure and turn (default 1)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        rates = {
            f"{name}: {task}": measure(game, arguments.seconds).cpu
            for name, game in GAMES.items()
            for task, measure in TASKS.items()
        }
        print(json.dumps(rates))
        return
    best: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    for _ in range(REPEATS):
        for kind, changed in KINDS.items():
            command = [sys.executable, "-m", "benchmarks.library", "--child", "--seconds", str(arguments.seconds)]
            done = subprocess.run(command, env={**os.environ, **changed}, capture_output=True, text=True, check=True)
            for task, found in json.loads(done.stdout).items():
                best[kind][task] = max(best[kind].get(task, 0.0), found)
    print("| | library / Numba, in speed |\n| --- | --- |")
    for task in best["Numba"]:
        print(f"| {task} | {best['library'][task] / best['Numba'][task]:.2f} |")


if __name__ == "__main__":
    main()
