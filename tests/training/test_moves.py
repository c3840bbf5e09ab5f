"""Kernels write what moves change: the same as on the CPU, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from card_envs.game import Game, bounds
from card_envs.opponents.networks.afterstates import NUM_AHEAD, Afterstates, afterstates, move_scale
from card_envs.opponents.policy import decisions_at
from tests.conftest import positions, some
from tests.engine.test_gpu import simulated
from tests.opponents.networks.test_afterstates import decision_of, dense
from training import after, ahead
from training.ahead import ahead_columns, wide_entries
from training.moves import DeviceRecorder, HostMoves, MoveReading, Moves, Selection, StoredMoves
from training.networks import AfterstateActor, Inputs, Observations

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

    A launch writes `at_once` rows, so that there are several. With lookahead, rows that were kept are also those that
    are written again.
    """
    tables = kind(game, len(states))
    tables.write_states(states)
    baseline = torch.zeros(len(states), dtype=torch.int64, device=tables.device)
    tables.bot_actions("greedy", baseline)
    chosen = torch.tensor([*range(len(states) - 1), 0], device=tables.device)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(after, "ROWS_PER_LAUNCH", at_once)
        patch.setattr(after, "AGREED_PER_LAUNCH", max(1, at_once // 2))
        patch.setattr(ahead, "MOVES_PER_LAUNCH", at_once)
        patch.setattr(ahead, "ROWS_PER_LAUNCH", at_once)
        for most_kept in (None, 0) if reading.lookahead else (None,):
            recorder = DeviceRecorder(game, reading, 1, tables, most_kept)
            recorder.step(torch.ones_like(tables.done), baseline, tables.mask)
            source = recorder.all(baseline[None], tables.mask[None])
            assert isinstance(source, StoredMoves) == (reading.lookahead and most_kept is None)
            found.append({"shown": source.action_mask(), **source.of(chosen)._asdict()})
    for name, tensor in found[-1].items():
        assert torch.equal(tensor, found[0][name])
    return {name: tensor.cpu().numpy() for name, tensor in found[0].items()}


def assert_the_cpus(found: Any, game: Game, states: NDArray[Any], reading: MoveReading) -> None:
    chosen = np.array([*range(len(states) - 1), 0])
    decided = decisions_at(game, states)
    own = decided.bot_moves("greedy")
    shown = own if reading.shows_baseline else np.full_like(own, -1)
    expected = afterstates(game, states, chosen, shown, reading.lookahead)
    np.testing.assert_array_equal(found["decision"], decision_of(expected))
    np.testing.assert_array_equal(found["action"], expected.action)
    np.testing.assert_array_equal(found["is_baseline"], expected.action == shown[chosen][decision_of(expected)])
    np.testing.assert_array_equal(found["shown"][chosen], expected.action_mask(game.rules.NUM_ACTIONS))
    # What is seen after the move, of which what is seen before is taken away.
    before = decided.obs[chosen][found["decision"]]
    rows = changes_of(found["changes"], before, game, reading.lookahead)
    np.testing.assert_array_equal(rows, dense(game, expected))
    assert found["changes"].dtype == np.int8 and rows.any()
    assert_scored_alike(found, expected, np.hstack([decided.obs, decided.mask])[chosen], game, reading)


class GivenMoves:
    """Dense rows of all decisions that are asked for."""

    def __init__(self, found: Any) -> None:
        self.found = Moves(*(torch.from_numpy(found[name]) for name in Moves._fields))

    def of(self, rows: Selection) -> Moves:
        return self.found


def assert_scored_alike(found: Any, expected: Afterstates, seen: Any, game: Game, reading: MoveReading) -> None:
    """A network makes of dense rows what it makes of sparse ones, within rounding."""
    actor = AfterstateActor(game, [8], 2.0 if reading.shows_baseline else 0.0, 1.0, reading.lookahead)
    rows, obs = torch.arange(len(seen)), torch.from_numpy(seen)
    given: Any = GivenMoves(found)
    with torch.no_grad():
        scores = actor.logits(Inputs(Observations(obs, dense=True), given), rows)
        others = actor.logits(Inputs(Observations(obs), HostMoves(expected, game.rules)), rows)
    torch.testing.assert_close(scores, others, rtol=1e-4, atol=1e-5)


def changes_of(rows: NDArray[Any], before: NDArray[Any], game: Game, lookahead: bool) -> NDArray[np.float32]:
    """[R, M] what int8 rows say that moves change, computed as on the CPU."""
    scale, size = move_scale(game.rules), before.shape[1]
    columns, _ = ahead_columns(game.rules) if lookahead else (np.arange(len(scale)), scale)
    worlds = NUM_AHEAD if lookahead else 1
    whole = rows[:, : len(scale)].astype(int)
    wide = columns[len(scale) :]
    whole[:, wide] = worlds * whole[:, wide] + rows[:, len(scale) : len(columns)]
    assert not rows[:, len(columns) :].any()
    whole[:, :size] -= worlds * before.astype(int)
    changes = whole.astype(np.float32)
    changes[:, :size] /= np.float32(worlds)
    return changes * scale


def test_shares_of_columns_give_the_means_back(game: Game) -> None:
    """A sum of any size over the worlds, split into columns of 8 bits, counts as the mean."""
    rules = game.rules
    columns, shares = ahead_columns(rules)
    wide = wide_entries(rules)
    low, high = (bound.astype(int) for bound in bounds(rules.OBS_FIELDS))
    scale = move_scale(rules)
    assert len(columns) == len(shares) == len(scale) + len(wide)
    for sums in (NUM_AHEAD * low, NUM_AHEAD * high, NUM_AHEAD * low + 1, NUM_AHEAD * high - 1):
        row = np.zeros(len(columns), int)
        row[: len(sums)] = sums
        row[wide], row[len(scale) :] = np.divmod(sums[wide], NUM_AHEAD)
        assert np.abs(row).max() <= 128 and row.min() >= -128 and row.max() <= 127
        found = np.zeros(len(scale))
        np.add.at(found, columns, row * shares)
        np.testing.assert_allclose(found[: len(sums)], sums / NUM_AHEAD * scale[: len(sums)], rtol=1e-6)


@pytest.mark.mechanics
@pytest.mark.parametrize(
    "reading",
    [
        pytest.param(READINGS[0], id="afterstates", marks=pytest.mark.slow),
        pytest.param(READINGS[1], id="without-baseline"),
        pytest.param(READINGS[2], id="lookahead"),
    ],
)
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
