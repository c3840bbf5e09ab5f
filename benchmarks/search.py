"""`python -m benchmarks.search`: the speed of a decision with the libraries built ahead of time, beside Numba's code.

Processes of both kinds take turns; of each figure the best of all turns counts. CPU time, one thread. `--beside FOLDER`
compares this checkout with another one instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from card_envs._bench import Throughput, aec_rate, batch_out_of_step, rate, search_rate, step_rate
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import decisions_at

REPEATS = 5
ROOT = str(Path(__file__).parents[1])


def player_rate(player: str, game: Game, seconds: float) -> Throughput:
    """Return decisions per second of an opponent, one at a time."""
    decisions = decisions_at(game, batch_out_of_step(game, 1).states)
    opponent, rng = load_opponent(player, game), np.random.default_rng(1)
    return rate(lambda: len(opponent.act(decisions, rng)), seconds)


TASKS: dict[str, Callable[[Game, float], Throughput]] = {
    "BatchEnv.step, 1,024 tables": lambda game, seconds: step_rate(game, 1024, 1, seconds),
    "BatchEnv.step, 4 tables": lambda game, seconds: step_rate(game, 4, 1, seconds),
    "AEC last + step": aec_rate,
    "search:64": search_rate,
    "small at one table": partial(player_rate, "small"),
    "champion at one table": partial(player_rate, "champion"),
}


def compare(kinds: dict[str, dict[str, str]], seconds: float) -> None:
    """Print the speed of the second kind of process, given by its environment variables, relative to the first."""
    best: dict[str, dict[str, float]] = {kind: {} for kind in kinds}
    for _ in range(REPEATS):
        for kind, environment in kinds.items():
            command, env = [sys.executable, __file__, "--child", "--seconds", str(seconds)], os.environ | environment
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            for task, now in json.loads(done.stdout).items():
                best[kind][task] = max(best[kind].get(task, 0.0), now)
    one, other = best
    print(f"| | {other} / {one}, in speed |\n| --- | --- |")
    for task in best[one]:
        print(f"| {task} | {best[other][task] / best[one][task]:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each figure and turn (default 1)")
    parser.add_argument("--beside", metavar="FOLDER", help="another checkout, instead of Numba's code")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        rates = {
            f"{name}: {task}": measure(game, arguments.seconds).cpu
            for name, game in GAMES.items()
            for task, measure in TASKS.items()
        }
        print(json.dumps(rates))
    elif arguments.beside:
        compare({"other": {"PYTHONPATH": arguments.beside}, "this": {"PYTHONPATH": ROOT}}, arguments.seconds)
    else:
        this = {"PYTHONPATH": ROOT}
        compare({"Numba": this | {"CARD_ENVS_NATIVE": "0"}, "library": this}, arguments.seconds)


if __name__ == "__main__":
    main()
