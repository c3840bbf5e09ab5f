"""Speed on this machine: every figure as a rate or a time, beside the speed of copying memory."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from card_envs.compare.contest import Contest
from card_envs.compare.spread import begin_worker
from card_envs.engine.batch import BatchEnv
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.opponents.policy import turn_of_states
from card_envs.opponents.search import SearchPolicy

TABLES = 1024
MANY_TABLES = 65536
SEARCHED = 64  # tables
DECISIONS = 200  # a table between looks at the clock
REPEATS = 3  # the best counts: other work on the machine only ever slows down


def rate(work: Callable[[], int], seconds: float) -> float:
    """Units of work a second: the best of a few stretches of that length, after one warm-up call."""
    work()
    best = 0.0
    for _ in range(REPEATS):
        done = 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds / REPEATS:
            done += work()
        best = max(best, done / (time.perf_counter() - start))
    return best


def copy_rate(seconds: float) -> float:
    """GB a second that one core copies, from one 256 MiB array to another."""
    source = np.ones(256 << 20, np.uint8)
    target = np.empty_like(source)

    def copy() -> int:
        target[:] = source
        return source.nbytes

    return rate(copy, seconds) / 1e9


def random_rate(game: Game, seconds: float) -> float:
    """Decisions a second of fused random playouts."""
    env = BatchEnv(game, TABLES)
    streams = np.arange(TABLES, dtype=np.uint64)

    def playout() -> int:
        env.random_playout(streams, DECISIONS)
        return TABLES * DECISIONS

    return rate(playout, seconds)


def bot_rate(game: Game, bot: str, seconds: float) -> float:
    """Decisions a second of fused playouts of a scripted player."""
    env = BatchEnv(game, TABLES)

    def playout() -> int:
        env.bot_playout(bot, DECISIONS)
        return TABLES * DECISIONS

    return rate(playout, seconds)


def compare_rate(game: Game, seconds: float) -> float:
    """Decisions a second of `compare` with two greedy players: deals, play, results and tallies."""
    contest = Contest(game, ("greedy", "greedy"))
    numbers = np.arange(TABLES)
    return rate(lambda: int(contest.play(numbers).decisions.sum()), seconds)


def search_rate(game: Game, seconds: float) -> float:
    """Moves a second that `search-64` plays out for 64 tables, on one core."""
    env = BatchEnv(game, SEARCHED)
    search = SearchPolicy(game, 64, num_threads=1)
    rng = np.random.default_rng(0)

    def think() -> int:
        env.bot_playout("greedy", 5)
        return search.search(turn_of_states(game, env.states), rng).moves

    return rate(think, seconds)


def step_rate(game: Game, num_tables: int, num_threads: int, seconds: float) -> float:
    """Decisions a second of `BatchEnv.step` with observation and mask, under random legal actions."""
    env = BatchEnv(game, num_tables, num_threads=num_threads)
    streams = np.arange(num_tables, dtype=np.uint64)
    actions = np.zeros(num_tables, np.int64)

    def step() -> int:
        env.random_actions(streams, actions)
        env.step(actions)
        return num_tables

    return rate(step, seconds)


def aec_rate(game: Game, seconds: float) -> float:
    """Turns a second of the PettingZoo loop: `last`, a random legal action, `step`."""
    env = CardEnv(game)
    draw = random.Random(0).random
    env.reset(seed=0)

    def turns() -> int:
        for _ in range(1000):
            observation, _, over, _, _ = env.last()
            if over:
                env.reset()
                continue
            legal = observation["action_mask"].nonzero()[0]
            env.step(legal[int(draw() * len(legal))])
        return 1000

    return rate(turns, seconds)


def two_process_rate(game: Game, seconds: float) -> float:
    """Decisions a second of two processes together, each stepping half of the tables."""
    with ProcessPoolExecutor(2, get_context("spawn"), begin_worker) as pool:
        list(pool.map(step_rate, [game] * 2, [1024] * 2, [1] * 2, [0.01] * 2))  # started and loaded
        return sum(pool.map(step_rate, [game] * 2, [MANY_TABLES // 2] * 2, [1] * 2, [seconds] * 2))


def first_reset_seconds(game: Game, cold: bool) -> float:
    """Seconds from creating an environment to its first deal, in a fresh process that has imported card_envs."""
    code = (
        "import time, card_envs; start = time.perf_counter(); from card_envs.envs.aec import CardEnv; "
        f"from card_envs.games import GAMES; CardEnv(GAMES[{game.name!r}]).reset(seed=0); "
        "print(time.perf_counter() - start)"
    )
    return _run_python(code, cold)


def import_seconds() -> float:
    """Seconds of `import card_envs` in a fresh process."""
    return _run_python("import time; start = time.perf_counter(); import card_envs; print(time.perf_counter() - start)")


def _run_python(code: str, cold: bool = False) -> float:
    """What a fresh process prints: the best of three with a warm cache, one run with an empty one."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **({"NUMBA_CACHE_DIR": folder} if cold else {})}
        runs = [
            float(subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True).stdout)
            for _ in range(1 if cold else 3)
        ]
    return min(runs)


def measure_game(game: Game, seconds: float) -> Iterator[tuple[str, float]]:
    """Every figure of a game, as it is measured."""
    yield "random playouts, M/s", random_rate(game, seconds) / 1e6
    yield "BatchEnv.step, 1,024 tables, M/s", step_rate(game, TABLES, 1, seconds) / 1e6
    greedy = bot_rate(game, "greedy", seconds)
    yield "greedy playouts, M/s", greedy / 1e6
    yield "compare greedy greedy / greedy playouts", compare_rate(game, seconds) / greedy
    yield "search-64 / greedy playouts", search_rate(game, seconds) / greedy
    yield "trivial playouts, M/s", bot_rate(game, "trivial", seconds) / 1e6
    yield "AEC last + step, k/s", aec_rate(game, seconds) / 1e3
    one_thread = step_rate(game, MANY_TABLES, 1, seconds)
    yield "step, 65,536 tables, one thread, M/s", one_thread / 1e6
    two_threads = step_rate(game, MANY_TABLES, 2, seconds)
    yield "two threads / one", two_threads / one_thread
    yield "two threads / two processes", two_threads / two_process_rate(game, seconds)
    yield "first reset, warm cache, s", first_reset_seconds(game, cold=False)
    yield "first reset, cold cache, s", first_reset_seconds(game, cold=True)
    yield "bytes a table", float(game.rules.STATE.itemsize)


def measure_all(games: list[Game], seconds: float) -> Iterator[dict[str, Any]]:
    """The import, the memory copy, and every figure of these games: what is known so far, after each of them."""
    figures: dict[str, Any] = {"copy_gb_per_second": copy_rate(seconds), "import_seconds": import_seconds()}
    figures["games"] = {game.name: {} for game in games}
    yield figures
    for game in games:
        for label, figure in measure_game(game, seconds):
            figures["games"][game.name][label] = figure
            yield figures
