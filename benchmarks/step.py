"""`python -m benchmarks --only step`: `BatchEnv.step` beside a trick game in C that writes as many bytes a step."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.ctypeslib import ndpointer

from benchmarks.measuring import Row, Work, in_turns
from card_envs import BatchEnv, get_game
from card_envs._bench import STAGES, TABLES, batch_out_of_step

SOURCE = Path(__file__).with_name("trick_game.c")
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
OBS_SIZE, NUM_ACTIONS, NUM_SEATS = 577, 68, 4
STEPS = 20  # between looks at the clock


def compiled(folder: Path) -> ctypes.CDLL:
    """Return the C game, compiled by `cc` or $CC. Raises OSError or CalledProcessError: no compiler, or it fails."""
    library = folder / "trick_game.so"
    subprocess.run([os.environ.get("CC", "cc"), *FLAGS, str(SOURCE), "-o", str(library)], check=True)
    code = ctypes.CDLL(str(library))
    code.prepare()
    code.table_size.restype = code.step.restype = ctypes.c_long
    kinds = ("uint8", "int8", "int64", "uint64", "float32", "bool")
    rows: dict[str, Any] = {kind: ndpointer(np.dtype(kind), flags="C_CONTIGUOUS") for kind in kinds}
    int8 = rows["int8"]
    code.reset.argtypes = [rows["uint8"], ctypes.c_long, ctypes.c_uint64, int8, int8, int8]
    code.step.argtypes = [rows["uint8"], ctypes.c_long, rows["int64"], int8, int8, int8, rows["float32"], rows["bool"]]
    code.choose.argtypes = [ctypes.c_long, int8, rows["uint64"], rows["int64"]]
    return code


class TrickGame:
    """Tables of the C game, with the buffers of a `BatchEnv`."""

    def __init__(self, code: ctypes.CDLL, num_tables: int, seed: int = 0) -> None:
        self.code = code
        self.num_tables = num_tables
        self.tables = np.zeros((num_tables, code.table_size()), np.uint8)
        self.obs = np.zeros((num_tables, OBS_SIZE), np.int8)
        self.mask = np.zeros((num_tables, NUM_ACTIONS), np.int8)
        self.seat = np.zeros(num_tables, np.int8)
        self.rewards = np.zeros((num_tables, NUM_SEATS), np.float32)
        self.done = np.zeros(num_tables, np.bool_)
        self.streams = np.arange(num_tables, dtype=np.uint64) + np.uint64(seed << 32)
        self.actions = np.zeros(num_tables, np.int64)
        code.reset(self.tables, num_tables, seed, self.obs, self.mask, self.seat)

    def choose(self) -> None:
        """Draw a legal action for each table."""
        self.code.choose(self.num_tables, self.mask, self.streams, self.actions)

    def step(self, first: int = 0, last: int | None = None) -> None:
        """Play `actions` at these tables. Raises ValueError naming the first table with an illegal one."""
        part = slice(first, last)
        buffers = (self.obs[part], self.mask[part], self.seat[part], self.rewards[part], self.done[part])
        actions = self.actions[part]
        illegal = self.code.step(self.tables[part], len(actions), actions, *buffers)
        if illegal >= 0:
            raise ValueError(f"action {actions[illegal]} is illegal at table {first + illegal}")

    def out_of_step(self) -> None:
        """Play on at each table until all are at different stages."""
        for table, steps in enumerate(np.random.default_rng(0).integers(0, STAGES, self.num_tables).tolist()):
            row = slice(table, table + 1)
            for _ in range(steps):
                self.code.choose(1, self.mask[row], self.streams[row], self.actions[row])
                self.step(table, table + 1)


def our_steps(env: BatchEnv) -> Work:
    """Return random steps of a batch."""
    streams, actions = np.arange(env.num_tables, dtype=np.uint64), np.zeros(env.num_tables, np.int64)
    return steps_of(lambda: env.random_actions(streams, actions), lambda: env.step(actions), env.num_tables)


def steps_of(choose: Callable[[], None], step: Callable[[], None], num_tables: int) -> Work:
    """Return steps alone, without the choosing."""

    def work() -> tuple[int, float]:
        spent = 0
        for _ in range(STEPS):
            choose()
            start = time.process_time_ns()
            step()
            spent += time.process_time_ns() - start
        return STEPS * num_tables, spent / 1e9

    return work


def rows(seconds: float) -> Iterator[Row]:
    """Yield random play of 1,024 tables out of step on one core: the move, observation and mask."""
    game = get_game("back_alley")
    with tempfile.TemporaryDirectory() as folder:
        theirs = TrickGame(compiled(Path(folder)), TABLES)
        theirs.out_of_step()
        steps = steps_of(theirs.choose, theirs.step, TABLES)
        name = f"a trick game in C (`cc {' '.join(FLAGS[:2])}`, 645 bytes a step)"
        ours = our_steps(batch_out_of_step(game, TABLES))
        yield in_turns(f"`BatchEnv.step`, {game.title}, 645 bytes", name, steps, ours, seconds)
