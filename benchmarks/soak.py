"""Does memory grow? `python -m benchmarks.soak --minutes 30`: training, comparing and a batch.

Each is a process of its own. Prints the resident memory of each over time, and how much it grew from minute 5 (or a
sixth of the time) to the end; the exit status is 1 where that is more than 2 %.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Sheet

MOST_GROWTH = 0.02
BATCH = """
import numpy as np
from card_envs import GAMES, BatchEnv
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import decisions_at
env = BatchEnv(list(GAMES.values())[-1], 512, num_threads=2)
greedy, rng = load_opponent("greedy", env.game), np.random.default_rng(0)
streams, actions = np.arange(512, dtype=np.uint64), np.zeros(512, np.int64)
while True:
    env.random_actions(streams, actions)
    env.step(actions)
    greedy.policy.choose(decisions_at(env.game, env.states), rng)
"""
COMPARE = """
from card_envs import GAMES
from card_envs.compare._contest import Contest, play_contest
from card_envs.compare.pairs import join
from card_envs.compare.standings import standings
contest = Contest(next(iter(GAMES.values())), ("greedy", "trivial", "ppo"))
while True:
    standings(contest, join(list(play_contest(contest, 64)))).as_dict()
"""


def resident(process: subprocess.Popen[bytes]) -> float:
    """MiB. Raises RuntimeError if it has ended."""
    if process.poll() is not None:
        raise RuntimeError(f"ended with {process.returncode}: {process.args!r}")
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def main(minutes: Annotated[float, typer.Option(min=0.1, help="of each")] = 30.0) -> None:
    """Measure the resident memory of long runs."""
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        training = ["-m", "training.train", "--config", "configs/quickstart.toml", f"minutes={2 * minutes}"]
        commands = {"training": [*training, f"runs={folder}"], "compare": ["-c", COMPARE], "batch": ["-c", BATCH]}
        running = {
            name: subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
            for name, command in commands.items()
        }
        seen: dict[str, list[float]] = {name: [] for name in running}
        first, samples = min(5.0, minutes / 6), 6
        try:
            start = time.monotonic()
            for sample in range(samples):
                due = first + (minutes - first) * sample / (samples - 1)
                time.sleep(max(0.0, start + 60 * due - time.monotonic()))
                for name, process in running.items():
                    seen[name].append(resident(process))
        finally:
            for process in running.values():
                process.kill()
                process.wait()
    sheet = Sheet(title=f"resident memory, MiB, from minute {first:g} to {minutes:g}")
    for column in ("", *(f"{first + (minutes - first) * k / (samples - 1):.0f}" for k in range(samples)), "growth"):
        sheet.add_column(column, justify="right")
    growth = {name: sizes[-1] / sizes[0] - 1 for name, sizes in seen.items()}
    for name, sizes in seen.items():
        sheet.add_row(name, *(f"{size:.0f}" for size in sizes), f"{growth[name]:+.1%}")
    console.print(sheet)
    raise SystemExit(any(grown > MOST_GROWTH for grown in growth.values()))


if __name__ == "__main__":
    typer.run(main)
