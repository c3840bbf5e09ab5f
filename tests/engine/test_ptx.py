"""The kernels of `GpuBatchEnv` compiled for GPUs, without one.

By NVVM where the extra `gpu` is installed; else by LLVM's own backend, which llvmlite has, on what numba-cuda makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import pytest

from card_envs.game import Game
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.testing.referee import facts_of
from tests.conftest import games_under_test

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


# One will do for large games, which compile for long.
EACH_ON_ONE = [
    pytest.param(game, capability, marks=[] if game == HIGH_CARD else pytest.mark.slow)
    for game in games_under_test()
    for capability in (ptx.CAPABILITIES if game == HIGH_CARD else ptx.CAPABILITIES[:1])
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
