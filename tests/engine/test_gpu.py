"""`GpuBatchEnv` beside `BatchEnv`: in CUDA's simulator, and on a GPU where there is one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from card_envs.engine.batch import BatchEnv
from card_envs.engine.buffers import row_size
from card_envs.engine.rng import table_keys
from card_envs.game import Game
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import option_sets, run_python

TABLES, STEPS = 5, 12
FIELDS = ("obs", "mask", "seat", "rewards", "done")

IN_THE_SIMULATOR = """
import importlib, json, sys
import numpy as np
import torch
from card_envs.engine import gpu
from card_envs.engine.legality import IllegalMove

package, options, tables, steps, skip_forced, path = json.loads(sys.argv[1])
gpu.THREADS = 4  # two blocks, the last not full
GAME = importlib.import_module(package).GAME
from tests.engine.test_gpu import new_rows, played
settings = {"options": options, "skip_forced": skip_forced}
out = new_rows(GAME, tables, "cpu") if skip_forced else None
np.savez(path, **played(gpu.GpuBatchEnv(GAME, tables, 3, out=out, **settings), steps))

env = gpu.GpuBatchEnv(GAME, tables, 3, **settings)
wrong = env.mask.argmax(1)
wrong[2] = -7
before = env.read_states()
env.step(wrong)
stood = env.read_states()
assert stood[2] == before[2] and stood[1] != before[1] and not env.rewards[2].any() and not env.done[2]
assert env.are_legal(env.mask.argmax(1)).all() and not env.are_legal(torch.full_like(wrong, len(env.mask[0]))).any()
env.step(env.mask.argmax(1))
assert env.read_states()[2] == before[2]  # still, until somebody looks
for expected in (True, False):
    try:
        env.check()
    except IllegalMove as error:
        assert expected
        print(error)
env.step(env.mask.argmax(1))
assert env.read_states()[2] != before[2]
illegal = env.mask.argmin(1)
env.mask[:] = 1  # decides nothing
assert not env.are_legal(illegal).any()
env.random_playout(torch.zeros(tables, dtype=torch.uint64), 1)
try:
    env.step(illegal)
except IllegalMove as error:
    print(error)
"""


def new_rows(game: Game, num_tables: int, device: Any) -> dict[str, torch.Tensor]:
    """`out` with two time steps, and rows of whole 16 bytes."""
    sizes = {"seen": row_size(game.rules.OBS_SIZE + game.rules.NUM_ACTIONS), "rewards": game.rules.NUM_SEATS}
    kinds = {"seen": torch.int8, "seat": torch.int8, "rewards": torch.float32, "done": torch.bool}
    shapes = {name: (2, num_tables, *([sizes[name]] if name in sizes else [])) for name in kinds}
    return {name: torch.zeros(shapes[name], dtype=kind, device=device) for name, kind in kinds.items()}


def of_all_options(kind: type[Any], game: Game, num_tables: int, skip_forced: bool, device: str) -> Any:
    """About that many tables, some under each of the options: a State carries its own.

    Those of a GPU write into rows of the caller's with `skip_forced`, else into columns of their own.
    """
    sets = option_sets(game)
    each = max(1, num_tables // len(sets))
    dealt = [BatchEnv(game, each, 3, options=options) for options in sets]
    number = each * len(sets)
    out = new_rows(game, number, device) if skip_forced and kind is not BatchEnv else None
    env = kind(game, number, 3, skip_forced=skip_forced, out=out)
    states = np.concatenate([one.states for one in dealt])
    if kind is BatchEnv:
        env.states[:] = states
        env.observe()
    else:
        env.write_states(states)
    return env


def moments(env: Any, steps: int) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield every field and State after each of `steps` steps, random and greedy in turn; valid until the next."""
    is_tensor = isinstance(env.obs, torch.Tensor)
    rules, number = env.game.rules, env.num_tables
    times: tuple[int | None, ...] = (0, 1) if env.seat.ndim == 2 else (None,)
    streams: Any = table_keys(5, np.arange(number))
    actions: Any = np.zeros(number, np.int64)
    full: Any = np.zeros((number, rules.FULL_SIZE if times == (None,) else row_size(rules.FULL_SIZE)), np.int8)
    if is_tensor:
        streams, actions, full = (torch.from_numpy(array).to(env.device) for array in (streams, actions, full))

    def arrays(**found: Any) -> dict[str, NDArray[Any]]:
        return {
            name: np.asarray(one.cpu() if is_tensor and torch.is_tensor(one) else one) for name, one in found.items()
        }

    def all_at(t: int | None) -> dict[str, NDArray[Any]]:
        states = env.read_states() if is_tensor else env.states
        shown = {name: getattr(env, name) if t is None else getattr(env, name)[t] for name in FIELDS}
        return arrays(**shown, **{f"state_{n}": states[n] for n in states.dtype.names})

    yield all_at(times[0])
    for step in range(steps):
        if step % 2:
            env.bot_actions("greedy", actions)
        else:
            env.random_actions(streams, actions)
        env.observe_all(full)
        yield arrays(actions=actions, full=full[:, : rules.FULL_SIZE], streams=streams)
        t = times[(step + 1) % len(times)]
        env.step(actions, t)
        yield all_at(t)
    yield arrays(ended=env.random_playout(streams, 40), of_bot=env.bot_playout("trivial", 40))
    env.observe(times[0])
    yield all_at(times[0])


def played(env: Any, steps: int) -> dict[str, NDArray[Any]]:
    """All that `moments` yields, by name."""
    found: dict[str, list[NDArray[Any]]] = {}
    for moment in moments(env, steps):
        for name, array in moment.items():
            found.setdefault(name, []).append(array.copy())
    return {name: np.array(copies) for name, copies in found.items()}


def assert_plays_as_the_cpu(kind: type[Any], game: Game, num_tables: int, steps: int, device: str) -> None:
    """Compare all fields and States of another kind of batch, bit by bit, under all options.

    Moment by moment: all of them would take gigabytes.
    """
    for skip_forced in (False, True):
        both = [
            moments(of_all_options(batch, game, num_tables, skip_forced, device), steps) for batch in (BatchEnv, kind)
        ]
        for expected, found in zip(*both, strict=True):
            for name, array in expected.items():
                np.testing.assert_array_equal(found[name], array, err_msg=name)


def simulated(code: str, *arguments: str) -> str:
    switches: Any = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"}
    return run_python("-W", "ignore", "-c", code, *arguments, **switches).stdout


@pytest.mark.mechanics
@pytest.mark.parametrize("skip_forced", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_simulator_plays_as_the_cpu(game: Game, skip_forced: bool, tmp_path: Path) -> None:
    """All fields and States, bit by bit; and illegal actions stop their tables until `check` tells of them."""
    options = option_sets(game)[-1] if skip_forced else {}
    env = BatchEnv(game, TABLES, 3, options=options, skip_forced=skip_forced)
    expected = played(env, STEPS)
    path = tmp_path / "played.npz"
    arguments = [game.package, options, TABLES, STEPS, skip_forced, str(path)]
    message = simulated(IN_THE_SIMULATOR, json.dumps(arguments))
    assert f"{game.name}: action -7 of seat" in message and "at table 2 is illegal" in message
    assert message.endswith("no move is known to be legal: call observe() first\n") and message.count("\n") == 2
    with np.load(path) as found:
        assert set(found) == set(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)
            assert found[name].dtype == array.dtype


@pytest.mark.gpu
def test_a_gpu_plays_as_the_cpu(game: Game) -> None:
    """One test a game, for its kernels compile for a minute."""
    from card_envs.engine.gpu import GpuBatchEnv

    assert_plays_as_the_cpu(GpuBatchEnv, game, 10_000, 100, "cuda")


@pytest.mark.mechanics
def test_without_a_gpu_there_is_a_clear_error(game: Game) -> None:
    from card_envs.engine.gpu import GpuBatchEnv

    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ValueError, match=r"device = 'cuda': torch .* finds no GPU here"):
        GpuBatchEnv(game, 2)
    with pytest.raises(ValueError, match="device: expected 'cuda' or 'cuda:0', 'cuda:1', …, got 'cpu'"):
        GpuBatchEnv(game, 2, device="cpu")


def test_tensors_that_kernels_can_not_write_are_refused() -> None:
    """Kernels check nothing. On CPU tensors, with kernels that are not launched."""
    from tests.engine import ptx

    good = new_rows(TINY, 3, "cpu")
    env = ptx.Recorder(TINY, 3, out=good)
    assert env.obs.shape == (2, 3, TINY.rules.OBS_SIZE)
    assert env.mask.data_ptr() == good["seen"].data_ptr() + TINY.rules.OBS_SIZE
    wrong: list[Any] = [
        {"obs": good["seen"]}, {"seen": good["seen"][..., : TINY.rules.OBS_SIZE]}, {"seat": good["seat"].long()},
        {"seen": good["seen"][:, :2]}, {"seen": good["seen"].transpose(0, 1)}, {"done": None}, [good["seen"]],
        {**good, "seat": torch.zeros((3, 3), dtype=torch.int8)}, {"rewards": good["rewards"].numpy()},
        {"seen": torch.zeros((2, *good["seen"].shape[:0:-1]), dtype=torch.int8).transpose(1, 2)},
    ]  # fmt: skip
    for out in wrong:
        with pytest.raises(ValueError, match="out: "):
            ptx.Recorder(TINY, 3, out=out)
    actions = torch.zeros(3, dtype=torch.int64)
    for t in (None, -1, 2, True):
        with pytest.raises(ValueError, match="t: expected a whole number from 0 to 1, got"):
            env.step(actions, t)
    with pytest.raises(ValueError, match="t: expected None, because `out` has no time steps, got 0"):
        ptx.Recorder(TINY, 3).step(actions, 0)


@pytest.mark.mechanics
def test_bench_counts_what_a_gpu_would_do(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loops, with kernels that are not launched."""
    from card_envs import bench
    from card_envs.engine import gpu
    from tests.engine import ptx

    monkeypatch.setattr(gpu, "GpuBatchEnv", lambda *arguments, device: ptx.Recorder(*arguments))
    monkeypatch.setattr(bench, "GPU_TABLES", (2, 3))
    monkeypatch.setattr(bench, "rate", lambda work, seconds: bench.Throughput(1e6 * work(), 0))
    found = dict(bench.gpu_rates(game, "cuda", 1.0))
    assert found == {
        "step, 2 tables, M/s": 2 * bench.STEPS_BETWEEN_WAITS,
        "step, 3 tables, M/s": 3 * bench.STEPS_BETWEEN_WAITS,
        "random playouts, 3 tables, M/s": 3 * bench.DECISIONS,
        "greedy playouts, 3 tables, M/s": 3 * bench.DECISIONS,
    }
