"""Speed on this machine, by wall-clock and CPU time, relative to the speed of copying memory."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from card_envs.compare.contests import Contest
from card_envs.compiling import specialize
from card_envs.engine import kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.cost import per_second
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.opponents.policy import decisions_at
from card_envs.opponents.search import SearchPolicy
from card_envs.system.processes import begin_worker

TABLES = 1024
MANY_TABLES = 65536
SMALL_BATCH = 64  # tables or deals for slow measurements
DECISIONS = 20  # per table between readings of the clock
TURNS = 100  # of the PettingZoo loop between readings
STAGES = 500  # before measuring, tables play a random number of decisions up to this
COPIED = 256 << 20  # bytes, far beyond every cache, in pieces
PIECE = 4 << 20
REPEATS = 3  # the best one counts: other load on the machine can only slow it down


class Throughput(NamedTuple):
    """A figure by wall-clock time and by CPU time of this process, which is less affected by other load."""

    clock: float
    cpu: float

    def each(self, number: float) -> Throughput:
        return Throughput(self.clock / number, self.cpu / number)

    def of(self, other: Throughput) -> Throughput:
        """Return this rate relative to another."""
        return Throughput(self.clock / other.clock, self.cpu / other.cpu)


def rate(work: Callable[[], int], seconds: float) -> Throughput:
    """Return units of work per second: the best of a few runs after one warm-up call, `seconds` in total."""
    work()
    runs = []
    for _ in range(REPEATS):
        done = 0
        start, cpu_start = time.perf_counter(), time.process_time()
        while done == 0 or time.perf_counter() - start < seconds / REPEATS:
            done += work()
        cpu = per_second(done, time.process_time() - cpu_start)
        runs.append(Throughput(per_second(done, time.perf_counter() - start), cpu))
    return Throughput(max(run.clock for run in runs), max(run.cpu for run in runs))


def copy_rate(seconds: float) -> Throughput:
    """Return the bytes per second that one core copies from one large array to another."""
    source = np.ones((COPIED // PIECE, PIECE), np.uint8)
    target = np.empty_like(source)
    pieces = cycle(range(len(source)))

    def copy() -> int:
        piece = next(pieces)
        target[piece] = source[piece]
        return PIECE

    return rate(copy, seconds)


def batch_out_of_step(game: Game, num_tables: int, num_threads: int = 1) -> BatchEnv:
    """Return tables at different stages, as in training: in lockstep, branch prediction would be too good."""
    env = BatchEnv(game, num_tables, num_threads=num_threads)
    playout = specialize(kernels.random_playout, game)
    streams = np.arange(num_tables, dtype=np.uint64)
    for table, decisions in enumerate(np.random.default_rng(0).integers(0, STAGES, num_tables).tolist()):
        playout(table, table + 1, env.states, streams, decisions)
    env.observe()
    return env


def playout_rate(game: Game, player: str, seconds: float) -> Throughput:
    """Return decisions per second of fused playouts of random moves ("random") or of a scripted player."""
    env = batch_out_of_step(game, TABLES)
    streams = np.arange(TABLES, dtype=np.uint64)

    def playout() -> int:
        if player == "random":
            env.random_playout(streams, DECISIONS)
        else:
            env.bot_playout(player, DECISIONS)
        return TABLES * DECISIONS

    return rate(playout, seconds)


def compare_rate(game: Game, seconds: float) -> Throughput:
    """Return decisions per second of `compare` with two greedy players, statistics included."""
    contest = Contest(game, ("greedy", "greedy"))
    numbers = np.arange(SMALL_BATCH)
    return rate(lambda: int(contest.play(numbers).decisions.sum()), seconds)


def search_rate(game: Game, seconds: float) -> Throughput:
    """Return the simulated moves per second of `search:64` at 64 tables, on one core."""
    env = batch_out_of_step(game, SMALL_BATCH)
    search = SearchPolicy(game, 64, threads=1)
    rng = np.random.default_rng(0)

    def think() -> int:
        env.bot_playout("greedy", 5)
        return search.search(decisions_at(game, env.states), rng).moves

    return rate(think, seconds)


def step_rate(game: Game, num_tables: int, num_threads: int, seconds: float) -> Throughput:
    """Return decisions per second of `BatchEnv.step` with random legal actions, observations and masks included."""
    env = batch_out_of_step(game, num_tables, num_threads)
    streams = np.arange(num_tables, dtype=np.uint64)
    actions = np.zeros(num_tables, np.int64)

    def step() -> int:
        env.random_actions(streams, actions)
        env.step(actions)
        return num_tables

    return rate(step, seconds)


def aec_rate(game: Game, seconds: float) -> Throughput:
    """Return steps per second of the PettingZoo loop: `last`, a random legal action, `step`."""
    env = CardEnv(game)
    draw = random.Random(0).random
    env.reset(seed=0)

    def turns() -> int:
        for _ in range(TURNS):
            observation, _, over, _, _ = env.last()
            if over:
                env.reset()
                continue
            legal = observation["action_mask"].nonzero()[0]
            env.step(legal[int(draw() * len(legal))])
        return TURNS

    return rate(turns, seconds)


def two_process_rate(game: Game, seconds: float) -> Throughput:
    """Return decisions per second of two processes together, each stepping half of the tables."""
    with ProcessPoolExecutor(2, get_context("spawn"), begin_worker) as pool:
        list(pool.map(step_rate, [game] * 2, [SMALL_BATCH] * 2, [1] * 2, [0.01] * 2))  # warm up
        first, second = pool.map(step_rate, [game] * 2, [MANY_TABLES // 2] * 2, [1] * 2, [seconds] * 2)
    return Throughput(first.clock + second.clock, (first.cpu + second.cpu) / 2)


STARTED = "import time; start, cpu = time.perf_counter(), time.process_time(); "
NEEDED = "print(time.perf_counter() - start, time.process_time() - cpu)"


def first_reset_seconds(game: Game, cold: bool) -> Throughput:
    """Measure the time from creating an environment to its first deal, in a fresh process."""
    return _seconds(
        f"import card_envs; {STARTED} from card_envs.envs.aec import CardEnv; from card_envs.games import GAMES; "
        f"CardEnv(GAMES[{game.name!r}]).reset(seed=0); {NEEDED}",
        cold,
    )


def import_seconds() -> Throughput:
    """Measure the time of `import card_envs` in a fresh process."""
    return _seconds(f"{STARTED} import card_envs; {NEEDED}")


def _seconds(code: str, cold: bool = False) -> Throughput:
    """Run code in a fresh process; return what it prints: best of three with a warm cache, else one run."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **({"NUMBA_CACHE_DIR": folder} if cold else {})}
        runs = [
            subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True).stdout
            for _ in range(1 if cold else REPEATS)
        ]
    clocks, cpus = zip(*(map(float, run.split()) for run in runs))
    return Throughput(min(clocks), min(cpus))


GPU_TABLES = (1 << 10, 1 << 16, 1 << 20)
STEPS_BETWEEN_WAITS = 50


def gpu_tables(game: Game, num_tables: int, device: str) -> tuple[Any, Any]:
    """Return tables on a GPU, out of step, and a random stream for each. Raises ValueError: there is no such GPU."""
    import torch

    from card_envs.engine.gpu import GpuBatchEnv

    env = GpuBatchEnv(game, num_tables, device=device)
    streams = torch.arange(num_tables, device=env.device).view(torch.uint64)
    env.random_playout(streams, STAGES)
    env.observe()
    return env, streams


def gpu_steps(env: Any, streams: Any) -> Callable[[], int]:
    """Return what takes random steps at all tables, and waits for them."""
    import torch

    actions = torch.zeros(env.num_tables, dtype=torch.int64, device=env.device)

    def steps() -> int:
        for _ in range(STEPS_BETWEEN_WAITS):
            env.random_actions(streams, actions)
            env.step(actions)
        env.check()  # waits
        return STEPS_BETWEEN_WAITS * int(env.num_tables)

    return steps


def gpu_rates(game: Game, device: str, seconds: float) -> Iterator[tuple[str, float]]:
    """Yield decisions per second on a GPU by wall-clock time as they are measured: steps, and fused playouts.

    Raises:
        ValueError: there is no such GPU.
    """
    from card_envs.engine.gpu import SIMULATED

    for num_tables in (2,) if SIMULATED else GPU_TABLES:
        env, streams = gpu_tables(game, num_tables, device)
        yield f"step, {num_tables:,} tables, M/s", rate(gpu_steps(env, streams), seconds).clock / 1e6

    def random_playout() -> int:
        env.random_playout(streams, DECISIONS)
        return num_tables * DECISIONS

    def greedy_playout() -> int:
        env.bot_playout("greedy", DECISIONS)
        return num_tables * DECISIONS

    yield f"random playouts, {num_tables:,} tables, M/s", rate(random_playout, seconds).clock / 1e6
    yield f"greedy playouts, {num_tables:,} tables, M/s", rate(greedy_playout, seconds).clock / 1e6


FIGURES = 13  # per game


def measure_game(game: Game, seconds: float) -> Iterator[tuple[str, Throughput]]:
    """Yield every figure of a game as it is measured."""
    yield "random playouts, M/s", playout_rate(game, "random", seconds).each(1e6)
    yield "BatchEnv.step, 1,024 tables, M/s", step_rate(game, TABLES, 1, seconds).each(1e6)
    greedy = playout_rate(game, "greedy", seconds)
    yield "greedy playouts, M/s", greedy.each(1e6)
    yield "compare greedy greedy / greedy playouts", compare_rate(game, seconds).of(greedy)
    yield "search:64 / greedy playouts", search_rate(game, seconds).of(greedy)
    yield "trivial playouts, M/s", playout_rate(game, "trivial", seconds).each(1e6)
    yield "AEC last + step, k/s", aec_rate(game, seconds).each(1e3)
    one_thread = step_rate(game, MANY_TABLES, 1, seconds)
    yield "step, 65,536 tables, one thread, M/s", one_thread.each(1e6)
    two_threads = step_rate(game, MANY_TABLES, 2, seconds)
    yield "two threads / one", two_threads.of(one_thread)
    yield "two threads / two processes", two_threads.of(two_process_rate(game, seconds))
    yield "first reset, warm cache, s", first_reset_seconds(game, cold=False)
    yield "first reset, cold cache, s", first_reset_seconds(game, cold=True)
    size = float(game.rules.STATE.itemsize)
    yield "bytes a table", Throughput(size, size)


def measure_all(games: list[Game], seconds: float) -> Iterator[dict[str, Any]]:
    """Yield all figures so far after each measurement: import, memory copy, and those of these games.

    A figure is a dict with `clock` and `cpu`, by wall-clock and by CPU time.
    """
    figures: dict[str, Any] = {
        "copy_gb_per_second": copy_rate(seconds).each(1e9)._asdict(),
        "import_seconds": import_seconds()._asdict(),
        "games": {game.name: {} for game in games},
    }
    yield figures
    for game in games:
        for label, figure in measure_game(game, seconds):
            figures["games"][game.name][label] = figure._asdict()
            yield figures
