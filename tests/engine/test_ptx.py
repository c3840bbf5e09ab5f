"""The kernels of `GpuBatchEnv` compiled for GPUs, without one.

By NVVM where the extra `gpu` is installed; else by LLVM's own backend, which llvmlite has, on what numba-cuda makes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from ctypes import CDLL
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import typeof

from card_envs.game import Game
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.testing.referee import facts_of
from tests.conftest import games_under_test, positions, some
from tests.engine.ptx_as_c import built, launch
from tests.engine.test_gpu import assert_plays_as_the_cpu
from tests.training.conftest import TENSORS
from tests.training.test_advantages import at_states, labels_at
from tests.training.test_moves import READINGS, assert_the_cpus, written
from training.algorithms.labels import finish_by_greedy
from training.algorithms.playouts import LearnerPlayouts
from training.moves import MoveReading
from training.networks import Network
from training.tables import HostTables

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from tests.engine import ptx

OCCUPANCY = 128  # registers a thread, with which a multiprocessor still holds 512 threads


def by_llvm(modules: list[str], arch: str, **options: Any) -> bytes:
    """What NVVM does, done by LLVM: one module, in which all but the kernel is private and inlined."""
    machine = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(
        cpu=arch.replace("compute", "sm"), opt=3
    )
    whole, *others = map(llvm.parse_assembly, modules)
    for other in others:
        whole.link_in(other)
    for function in whole.functions:
        if not function.is_declaration and "ptx_kernel" not in str(function).partition("{")[0]:
            function.linkage = "internal"
            function.add_function_attribute("alwaysinline")
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(whole, passes)
    return bytes(machine.emit_assembly(whole), "ascii")


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> Iterator[None]:
    """NVVM where it is, else LLVM in its place."""
    try:
        ptx.check_compiler()
    except ValueError:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("numba.cuda.cudadrv.nvvm.compile_ir", by_llvm)
            patch.setattr("numba.cuda.cudadrv.nvrtc.get_arch_option", "compute_{}{}".format)
            patch.setattr("numba.cuda.cudadrv.nvvm.NVVM", LlvmAsNvvm)
            yield
    else:
        yield


class LlvmAsNvvm:
    """What numba-cuda asks of NVVM before there is anything to compile."""

    data_layout = (
        "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
        "v64:64:64-v128:128:128-n16:32:64"
    )

    def get_ir_version(self) -> tuple[int, int, int, int]:
        return 2, 0, 3, 1


@cache
def launches_of(game: Game) -> dict[str, ptx.Launch]:
    return ptx.launches(game)


# The first one compiles for long, the others alike: one will do for large games.
EACH_ON_ONE = [
    pytest.param(game, capability, marks=[] if game == HIGH_CARD or not number else pytest.mark.slow)
    for game in games_under_test()
    for number, capability in enumerate(ptx.CAPABILITIES)
]


@pytest.mark.parametrize(("game", "capability"), EACH_ON_ONE, ids=lambda value: getattr(value, "name", None))
def test_a_step_needs_no_stack_no_call_and_no_double(game: Game, capability: tuple[int, int]) -> None:
    """Legality, play, deal and observation in one kernel, and nothing in it that a GPU is slow at."""
    found = ptx.figures(ptx.compiled(launches_of(game)["step_or_refuse"], capability), capability)
    assert found.instructions > 500 and found.loads > 20 and found.stores > 20
    assert found.local == found.calls == found.doubles == 0
    assert found.stack <= 0 and found.registers <= OCCUPANCY
    assert found.constants < 1 << 16


@pytest.mark.slow
def test_all_kernels_compile(game: Game) -> None:
    """For one GPU, and as tightly; only a bot that weighs chances may count in doubles."""
    assert len(launches_of(game)) == 11
    for name, recorded in launches_of(game).items():
        found = ptx.figures(ptx.compiled(recorded, (9, 0)), (9, 0))
        assert found.local == found.calls == 0, name
        assert found.doubles == 0 or facts_of(game).COUNTING, name
        assert found.stack <= 0 and found.constants < 1 << 16, name


@pytest.mark.slow
def test_the_kernels_of_training_compile(game: Game) -> None:
    """A program whose constants exceed 65,536 bytes can't be loaded; those that run most often need no stack."""
    found = ptx.training_launches(game)
    assert len(found) == 11
    for name, recorded in found.items():
        cost = ptx.figures(ptx.compiled(recorded, (9, 0)), (9, 0))
        assert cost.local == cost.calls == 0 and cost.constants < 1 << 16, name
        if name.split()[0] in ("write_after", "follow_pairs", "look_ahead", "try_pairs", "fork_tables", "step_forks"):
            assert cost.stack <= 0 and cost.registers <= OCCUPANCY, name


class RunAsC(ptx.Recorder):
    """`GpuBatchEnv` whose kernels are the PTX of a GPU, run as C on the CPU."""

    folder: ClassVar[Path]

    def launch(self, kernel: Any, number: int, *arguments: Any) -> None:
        wanted = ptx.Launch(kernel, tuple(map(typeof, (number, *arguments))))
        key = kernel.py_func.__name__, wanted.arguments  # games share kernels, not always the types of their arguments
        if key not in LIBRARIES:
            text = ptx.compiled(wanted, (9, 0))
            LIBRARIES[key] = built(text, self.folder / f"{key[0]}_{len(LIBRARIES)}.so")
        launch(LIBRARIES[key], number, number, *arguments)


LIBRARIES: dict[tuple[str, tuple[Any, ...]], CDLL] = {}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_ptx_run_as_c_plays_as_the_cpu(game: Game, tmp_path: Path) -> None:
    RunAsC.folder = tmp_path
    assert_plays_as_the_cpu(RunAsC, game, 2_000, 150, "cpu")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize("reading", READINGS[::2], ids=["afterstates", "lookahead"])
def test_ptx_run_as_c_writes_the_rows_of_the_cpu(game: Game, reading: MoveReading, tmp_path: Path) -> None:
    RunAsC.folder = tmp_path
    states = some(positions(game), 200, seed=4)
    assert_the_cpus(written(RunAsC, game, states, reading, 500), game, states, reading)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_ptx_run_as_c_labels_as_the_cpu(game: Game, tmp_path: Path) -> None:
    """`greedy` plays the tried moves to the end, and the learner does."""
    RunAsC.folder = tmp_path
    states = some(positions(game), 100, seed=7)
    actor = Network(game.input_fields, [8], game.rules.NUM_ACTIONS, 1.0)
    for finish in (finish_by_greedy, LearnerPlayouts(game, TENSORS, actor)):
        found, expected = (labels_at(at_states(kind, game, states), finish=finish) for kind in (RunAsC, HostTables))
        np.testing.assert_array_equal(found, expected)
        assert expected.any()
