"""`python -m benchmarks`: rates beside those of others, as a table; `--write` puts it into README.md beside it.

`step`: `BatchEnv.step` beside a trick game in C that writes as many bytes a step. `libraries`: OpenSpiel's C++ is
behind a Python call for each state, move and observation (extra `open-spiel`); `BatchEnv` has one for all tables.
PettingZoo's own games run in the same loop as ours (`pip install 'pettingzoo[classic]'`). `training`: see training.py.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core each; before NumPy or torch is imported

import numpy as np
from numpy.ctypeslib import ndpointer

from benchmarks import Row, Work, as_work, in_turns, markdown
from card_envs import BatchEnv, get_game
from card_envs.bench import STAGES, TABLES, batch_out_of_step
from card_envs.envs.aec import CardEnv
from card_envs.system.files import replace_file
from card_envs.system.processes import processor

SOURCE = Path(__file__).with_name("trick_game.c")
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
OBS_SIZE, NUM_ACTIONS, NUM_SEATS = 577, 68, 4
STEPS = 20  # between looks at the clock


def compile_game(folder: Path) -> ctypes.CDLL:
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


def step_rows(seconds: float) -> Iterator[Row]:
    """Yield random play of 1,024 tables out of step on one core: the move, observation and mask."""
    game = get_game("back_alley")
    with tempfile.TemporaryDirectory() as folder:
        theirs = TrickGame(compile_game(Path(folder)), TABLES)
        theirs.out_of_step()
        steps = steps_of(theirs.choose, theirs.step, TABLES)
        name = f"a trick game in C (`cc {' '.join(FLAGS[:2])}`, 645 bytes a step)"
        ours = our_steps(batch_out_of_step(game, TABLES))
        yield in_turns(f"`BatchEnv.step`, {game.title}, 645 bytes", name, steps, ours, seconds)


# Other libraries


DECISIONS = 200  # between readings of the clock
OPEN_SPIEL = {"spades": "back_alley", "solitaire": "russian_bank"}  # similar games, observations of similar size
CLASSIC = ("leduc_holdem_v4", "texas_holdem_v4", "connect_four_v3", "tictactoe_v3")


def open_spiel_moves(name: str) -> Work:
    """Play one state of OpenSpiel: observation, legal actions, a move; chance is drawn as it comes."""
    import pyspiel

    game, draw = pyspiel.load_game(name), random.Random(0)
    state = game.new_initial_state()

    def play() -> int:
        nonlocal state
        for _ in range(DECISIONS):
            while state.is_chance_node() or state.is_terminal():
                if state.is_terminal():
                    state = game.new_initial_state()
                else:
                    actions, shares = zip(*state.chance_outcomes())
                    state.apply_action(draw.choices(actions, shares)[0])
            state.observation_tensor(state.current_player())
            state.apply_action(draw.choice(state.legal_actions()))
        return DECISIONS

    return as_work(play)


def turns_of(env: Any) -> Work:
    """Play a PettingZoo environment: `last`, a random legal action, `step`; `reset` after an episode."""
    draw = random.Random(0).random
    env.reset(seed=0)

    def turns() -> int:
        for _ in range(DECISIONS):
            observation, _, over, cut, _ = env.last()
            if over or cut:
                env.reset()
                observation = env.last()[0]
            legal = observation["action_mask"].nonzero()[0]
            env.step(int(legal[int(draw() * len(legal))]))
        return DECISIONS

    return as_work(turns)


def library_rows(seconds: float) -> Iterator[Row]:
    """Yield OpenSpiel's games beside both of our loops, then PettingZoo's beside the same loop."""
    for theirs, name in OPEN_SPIEL.items():
        game, other = get_game(name), f"OpenSpiel's {theirs}, in Python"
        loop, steps = turns_of(CardEnv(game)), our_steps(batch_out_of_step(game, TABLES))
        yield in_turns(f"PettingZoo loop, {game.title}", other, open_spiel_moves(theirs), loop, seconds)
        yield in_turns(f"`BatchEnv.step`, {game.title}", other, open_spiel_moves(theirs), steps, seconds)
    game = get_game("back_alley")
    for name in CLASSIC:
        classic = turns_of(importlib.import_module(f"pettingzoo.classic.{name}").env())
        ours = turns_of(CardEnv(game))
        yield in_turns(f"PettingZoo loop, {game.title}", f"PettingZoo's `{name}`", classic, ours, seconds)


# The command


def training_rows(seconds: float) -> Iterator[Row]:
    """Yield decisions learned a second, beside sb3-contrib's MaskablePPO."""
    from benchmarks.training import rows

    yield from rows(seconds)


BENCHMARKS = {"step": step_rows, "libraries": library_rows, "training": training_rows}
PAGE = Path(__file__).with_name("README.md")
MARKED = re.compile(r"(<!-- benchmarks -->\n).*(<!-- /benchmarks -->\n)", re.S)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each of the two, about (default 5)")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), help="these alone")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    arguments = parser.parse_args()
    rows: list[Row] = []
    missing = ""
    for name in arguments.only:
        try:
            for row in BENCHMARKS[name](arguments.seconds):
                rows.append(row)
                print(f"{row.work} / {row.other}: {row.cells()[-1]}", file=sys.stderr, flush=True)
        except ModuleNotFoundError as error:
            missing += f"\nNot measured: {name}: needs {error.name}.\n"
    machine = f"one core of {processor()}, Python {platform.python_version()}"
    text = f"On {machine}, by CPU time, in turns:\n\n{markdown(rows)}{missing}"
    print(text, end="")
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        replace_file(PAGE, MARKED.sub(lambda marked: marked[1] + text + marked[2], page))


if __name__ == "__main__":
    main()
