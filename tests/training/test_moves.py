"""Kernels write what moves change: the same rows as the CPU, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from card_envs.game import Game
from card_envs.opponents.networks._afterstates import afterstates, move_scale
from card_envs.opponents.policy import decisions_at
from tests.conftest import positions, some
from tests.test_afterstates import decision_of, dense
from tests.test_gpu import simulated
from training import moves
from training.moves import DeviceRecorder, MoveReading

READINGS = (MoveReading(False, True), MoveReading(False, False), MoveReading(True, True))

IN_THE_SIMULATOR = """
import importlib, json, sys
import numpy as np
from card_envs.engine import gpu
from tests.training.test_moves import written
from training.moves import MoveReading

package, reading, folder = json.loads(sys.argv[1])
gpu.THREADS = 4
game = importlib.import_module(package).GAME
states = np.load(f"{folder}/states.npy").view(game.rules.STATE)
np.savez(f"{folder}/written.npz", **written(gpu.GpuBatchEnv, game, states, MoveReading(*reading)))
"""


def written(
    kind: type[Any], game: Game, states: NDArray[Any], reading: MoveReading, at_once: int = 7
) -> dict[str, NDArray[Any]]:
    """Rows that kernels write for these States; the last is left out, and the first is asked for twice.

    A launch writes `at_once` rows, so that there are several.
    """
    tables = kind(game, len(states))
    tables.write_states(states)
    baseline = torch.zeros(len(states), dtype=torch.int64, device=tables.device)
    tables.bot_actions("greedy", baseline)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moves, "AT_ONCE", at_once)
        patch.setattr(moves, "AGREED_AT_ONCE", max(1, at_once // 2))
        recorder = DeviceRecorder(game, reading, 1, tables)
    recorder.step(tables.done, baseline, tables.mask)
    found = recorder.all(baseline[None], tables.mask[None]).of(
        torch.tensor([*range(len(states) - 1), 0], device=tables.device)
    )
    return {name: tensor.cpu().numpy() for name, tensor in found._asdict().items()}


def assert_the_cpus(found: Any, game: Game, states: NDArray[Any], reading: MoveReading) -> None:
    chosen = np.array([*range(len(states) - 1), 0])
    own = decisions_at(game, states).bot_moves("greedy")
    shown = own if reading.shows_baseline else np.full_like(own, -1)
    after = afterstates(game, states, chosen, shown, reading.lookahead)
    np.testing.assert_array_equal(found["decision"], decision_of(after))
    np.testing.assert_array_equal(found["action"], after.action)
    np.testing.assert_array_equal(found["is_baseline"], after.action == shown[chosen][decision_of(after)])
    expected, scale = dense(game, after), move_scale(game.rules)
    rows, padding = np.split(found["changes"], [len(scale)], axis=1)
    if not reading.lookahead:  # what is seen after the move, of which what is seen before is taken away
        before = decisions_at(game, states).obs[chosen][found["decision"]]
        rows = rows.astype(np.float32)
        rows[:, : before.shape[1]] -= before
        rows *= scale
    np.testing.assert_array_equal(rows, expected)
    assert found["changes"].dtype == (np.float32 if reading.lookahead else np.int8)
    assert rows.any() and not padding.any()


@pytest.mark.mechanics
@pytest.mark.parametrize("reading", READINGS, ids=["afterstates", "without-baseline", "lookahead"])
def test_the_simulator_writes_the_rows_of_the_cpu(game: Game, reading: MoveReading, tmp_path: Path) -> None:
    states = some(positions(game), 3 if reading.lookahead else 6, seed=3)
    np.save(tmp_path / "states.npy", states.view(np.uint8))
    simulated(IN_THE_SIMULATOR, json.dumps([game.package, reading, str(tmp_path)]))
    with np.load(tmp_path / "written.npz") as found:
        assert_the_cpus(found, game, states, reading)


@pytest.mark.gpu
@pytest.mark.parametrize("reading", READINGS[::2], ids=["afterstates", "lookahead"])
def test_a_gpu_writes_the_rows_of_the_cpu(game: Game, reading: MoveReading) -> None:
    from card_envs.engine.gpu import GpuBatchEnv

    states = some(positions(game), 2000, seed=4)
    assert_the_cpus(written(GpuBatchEnv, game, states, reading, 5000), game, states, reading)
