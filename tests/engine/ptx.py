"""The kernels of `GpuBatchEnv`, compiled to PTX without a GPU: numba-cuda and NVVM suffice.

`python -m tests.engine.ptx` prints what the kernels of all games cost, as in docs/gpu.md: minutes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from numba import cuda, typeof, types

from card_envs.engine.buffers import row_size
from card_envs.engine.gpu import GpuBatchEnv
from card_envs.game import Game
from card_envs.games import GAMES
from training.algorithms.labels import MoveLabels
from training.algorithms.playouts import LearnerPlayouts, step_forks
from training.moves import DeviceRecorder, MoveReading
from training.networks import CPU, Network
from training.rollout import Backend, GumbelSampler

CAPABILITIES = ((8, 0), (9, 0), (12, 0))
NEAR = {"param", "const", "local", "shared"}
INSTRUCTION = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.]*)[\s;]", re.MULTILINE)


class Launch(NamedTuple):
    """A kernel with the types of its arguments at launch."""

    kernel: Any
    arguments: tuple[Any, ...]


class Recorder(GpuBatchEnv):
    """A `GpuBatchEnv` on CPU tensors that launches nothing and records what it would have launched.

    Attributes:
        launches: by kernel.
    """

    def _usable(self, device: Any) -> torch.device:
        self.launches: dict[str, Launch] = {}
        return torch.device("cpu")

    def launch(self, kernel: Any, number: int, *arguments: Any) -> None:
        stem = re.sub(r"_cuda[0-9a-f]*$", "", kernel.py_func.__name__.rpartition("_")[0])
        name = stem.replace(f"_{self.game.name}_", " ").strip("_ ")
        self.launches[name] = Launch(kernel, tuple(map(typeof, (number, *arguments))))


def launches(game: Game) -> dict[str, Launch]:
    """Return all kernels of `GpuBatchEnv` for a game, by name."""
    env = Recorder(game, 2)
    streams = torch.zeros(2, dtype=torch.uint64)
    actions = torch.zeros(2, dtype=torch.int64)
    env.step(actions)
    env.are_legal(actions)
    env.random_actions(streams, actions)
    for bot in ("trivial", "greedy"):
        env.bot_actions(bot, actions)
        env.bot_playout(bot, 1)
    env.random_playout(streams, 1)
    env.observe_all(torch.zeros((2, row_size(game.rules.FULL_SIZE)), dtype=torch.int8))
    return env.launches


def training_launches(game: Game) -> dict[str, Launch]:
    """Return the kernels of training that are not those of `GpuBatchEnv`, by name: rows of moves, labels, playouts."""
    tables = Recorder(game, 2)
    mask, baseline = torch.ones_like(tables.mask), torch.zeros(2, dtype=torch.int64)
    for lookahead in (False, True):
        recorder = DeviceRecorder(game, MoveReading(lookahead, True), 1, tables)
        recorder.moves_at(tables.state_bytes, baseline, mask).of(slice(None))
    MoveLabels(game, worlds=2)(tables, baseline, mask, np.random.default_rng(0))
    actor = Network(game.input_fields, [1], game.rules.NUM_ACTIONS, 1.0)
    playouts = LearnerPlayouts(game, Backend(CPU, Recorder, True, GumbelSampler, DeviceRecorder), actor)
    playouts(tables, tables.state_bytes, torch.zeros((2, 2), dtype=torch.int64), np.random.default_rng(0))
    sizes, bytes_ = (game.rules.OBS_SIZE, game.rules.NUM_ACTIONS), torch.zeros(2, dtype=torch.int8)
    rows = torch.zeros((2, row_size(sum(sizes))), dtype=torch.int8)
    tables.run(step_forks, 2, tables.state_bytes, baseline, rows, sizes, bytes_)
    return {name: launch for name, launch in tables.launches.items() if name not in launches(game)}


def compiled(launch: Launch, capability: tuple[int, int]) -> str:
    """Return the PTX of a kernel for GPUs of a compute capability."""
    device = type("Device", (), {"compute_capability": capability})
    with patch("numba.cuda.dispatcher.get_current_device", device):  # queried although the capability is passed
        signature = types.void(*launch.arguments)
        ptx, _ = cuda.compile(launch.kernel.py_func, signature, cc=capability, device=False, abi="numba", opt=True)
    return str(ptx)


class Figures(NamedTuple):
    """The cost of a kernel, read from its PTX and, if ptxas is installed, from its machine code.

    Attributes:
        instructions: in the PTX (static count).
        loads, stores: among them, to neither constant nor local memory.
        local: bytes of local memory per thread (spilled or indexed arrays; 0 is best).
        constants: bytes of tables in constant memory, of 65,536.
        calls, doubles: instructions that call, or compute in 64-bit floats.
        registers: per thread; -1 without ptxas.
        stack: bytes of stack per thread, spills included; -1 without ptxas.
    """

    instructions: int
    loads: int
    stores: int
    local: int
    constants: int
    calls: int
    doubles: int
    registers: int
    stack: int


def figures(ptx: str, capability: tuple[int, int]) -> Figures:
    names = INSTRUCTION.findall(ptx)
    sizes = {
        space: sum(map(int, re.findall(rf"^\s*\.{space} .*?\[(\d+)\]", ptx, re.MULTILINE)))
        for space in ("local", "const")
    }
    return Figures(
        sum(not name.startswith("bar") for name in names),
        sum(name.startswith("ld.") and name.split(".")[1] not in NEAR for name in names),
        sum(name.startswith("st.") and name.split(".")[1] not in NEAR for name in names),
        sizes["local"],
        sizes["const"],
        sum(name.startswith("call") for name in names),
        sum(".f64" in name for name in names),
        *assembled(ptx, capability),
    )


def assembled(ptx: str, capability: tuple[int, int]) -> tuple[int, int]:
    """Return registers and stack bytes per thread according to ptxas; -1 without it."""
    ptxas = find_ptxas()
    if ptxas is None:
        return -1, -1
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.ptx"
        file.write_text(ptx, encoding="utf-8")
        arch = "sm_{}{}".format(*capability)
        command = [ptxas, "-v", f"-arch={arch}", "-o", str(file.with_suffix(".cubin")), str(file)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    registers, stack = (re.search(rf"(?:Used )?(\d+) {what}", said) for what in ("registers", "bytes stack frame"))
    assert registers and stack, said
    return int(registers[1]), int(stack[1])


def find_ptxas() -> str | None:
    """Return the path of ptxas from PATH or from the package nvidia-cuda-nvcc, or None."""
    try:
        from nvidia import cu13

        packaged = Path(cu13.__path__[0]) / "bin" / "ptxas"
    except ImportError:
        return shutil.which("ptxas")
    return str(packaged) if packaged.exists() else shutil.which("ptxas")


def check_compiler() -> None:
    """Raise ValueError if numba-cuda or NVVM is missing."""
    try:
        import numba_cuda  # noqa: F401

        cuda.compile(nothing, types.void(), cc=CAPABILITIES[0], device=False, abi="numba")
    except Exception as error:  # the exception type depends on the version
        first = (str(error).splitlines() or [""])[0]
        raise ValueError(f"nothing here compiles for GPUs: pip install 'card_envs[gpu]' ({first})") from None


def nothing() -> None:
    """Do nothing: the smallest kernel."""


def main() -> None:
    """Print registers per thread, instructions, loads and stores of every kernel."""
    check_compiler()
    by_game = {game: {**launches(game), **training_launches(game)} for game in GAMES.values()}
    print("| kernel |", *(f"{game.title} |" for game in by_game))
    print("| --- |", *("--- |" for _ in by_game))
    for name in next(iter(by_game.values())):
        found = [figures(compiled(launches[name], (9, 0)), (9, 0)) for launches in by_game.values()]
        cells = [f"{one.registers}; {one.instructions:,}; {one.loads} + {one.stores} |" for one in found]
        print(f"| `{name}` |", *cells)


if __name__ == "__main__":
    main()
