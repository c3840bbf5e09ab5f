"""`BatchEnv` writing into a caller's arrays, and observations packed as bits."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs import Packing
from card_envs.engine import batch
from card_envs.engine._legality import IllegalMove
from card_envs.engine.batch import BatchEnv
from card_envs.engine.packing import _Planes
from card_envs.game import Field, Game, bounds
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import field_bytes
from tests.test_doors import buffers_but
from tests.test_engine import BUFFERS, random_steps

B, T = 6, 5


def out_of(game: Game, names: tuple[str, ...] = BUFFERS, tables: int = B) -> dict[str, Any]:
    """Arrays for `out`, full of what no step writes."""
    model = BatchEnv(game, tables)
    return {name: np.full((T, *getattr(model, name).shape), 99, getattr(model, name).dtype) for name in names}


def in_step(game: Game, out: dict[str, Any], steps: int, tables: int = B, **arguments: Any) -> BatchEnv:
    """A batch with `out` beside one without: after each step both show the same, and no other slice has changed."""
    plain = BatchEnv(game, tables, 3, **arguments)
    env = BatchEnv(game, tables, 3, out=out, **arguments)
    rng = np.random.default_rng(0)
    for number in range(steps):
        t = number % T
        for name in BUFFERS:
            shown = out[name][t] if name in out else getattr(env, name)
            if number or name not in ("rewards", "done"):
                assert np.array_equal(shown, getattr(plain, name)), (name, number)
        before = {name: array.copy() for name, array in out.items()}
        draws = rng.integers(0, 1 << 64, tables, np.uint64)
        actions = np.zeros(tables, np.int64)
        plain.random_actions(draws, actions)
        plain.step(actions)
        env.step(actions, (t + 1) % T)
        for name, array in out.items():
            others = np.arange(T) != (t + 1) % T
            assert np.array_equal(array[others], before[name][others])
    return env


@pytest.mark.mechanics
@pytest.mark.parametrize("skip_forced", [False, True])
def test_out_gets_what_the_own_buffers_get(game: Game, skip_forced: bool) -> None:
    for names in (BUFFERS, ("obs", "mask"), ("rewards",)):
        out = out_of(game, names)
        env = in_step(game, out, 40, skip_forced=skip_forced)
        for name in names:
            assert np.shares_memory(getattr(env, name), out[name])
            assert not (out[name] == 99).all(axis=tuple(range(1, out[name].ndim))).any()


@pytest.mark.mechanics
def test_threads_write_the_same(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MIN_TABLES_A_THREAD", 2)
    in_step(game, out_of(game), 20, num_threads=3)


def test_what_is_made_and_looked_at_goes_where_it_should() -> None:
    out = out_of(TINY)
    env = BatchEnv(TINY, B, 1, out=out)
    plain = BatchEnv(TINY, B, 1)
    assert np.array_equal(out["obs"][0], plain.obs) and (out["obs"][1:] == 99).all()
    env.observe(3)
    assert np.array_equal(out["obs"][3], plain.obs) and (out["rewards"] == 99).all()


@pytest.mark.mechanics
def test_a_callers_mask_decides_nothing(game: Game) -> None:
    out = out_of(game, ("mask",))
    env = BatchEnv(game, B, 2, out=out)
    true = BatchEnv(game, B, 2).mask
    out["mask"][:] = 1
    table = int(true.min(axis=1).argmin())
    wrong = true.argmax(axis=1)
    wrong[table] = true[table].argmin()
    before = field_bytes(env.states)
    with pytest.raises(IllegalMove, match=f"at table {table} is illegal"):
        env.step(wrong, 1)
    assert field_bytes(env.states) == before
    out["mask"][:] = 0
    env.step(true.argmax(axis=1), 1)
    assert field_bytes(env.states) != before


@pytest.mark.parametrize("t", [None, -1, T, 1.0, True, "0", 1 << 70])
def test_slices_that_there_are_not(t: Any) -> None:
    env = BatchEnv(TINY, B, out=out_of(TINY))
    before, actions = field_bytes(env.states), env.mask[0].argmax(axis=1)
    calls: tuple[Callable[[], None], ...] = (lambda: env.step(actions, t), lambda: env.observe(t))
    for call in calls:
        with pytest.raises(ValueError, match=f"t: expected a whole number from 0 to {T - 1}, got"):
            call()
    assert field_bytes(env.states) == before
    if t is not None:
        with pytest.raises(ValueError, match="t: expected None, because `out` has no time steps, got"):
            BatchEnv(TINY, B).step(actions, t)


def test_what_can_not_be_written_into_is_refused() -> None:
    def made(out: Any) -> BatchEnv:
        return BatchEnv(TINY, B, out=out)

    good = out_of(TINY)
    for name, array in good.items():
        for wrong in buffers_but(array.shape, array.dtype):
            if isinstance(wrong, np.ndarray) and wrong.shape[1:] == array.shape[1:] and len(wrong) != T:
                continue  # right by itself, wrong beside the others: below
            with pytest.raises(
                ValueError, match=f"out: {name}: expected a contiguous, writable array of {array.dtype}"
            ):
                made({name: wrong})
        with pytest.raises(ValueError, match=r"out: .*: expected a contiguous, writable array"):
            made({**good, name: array[:-1].copy()})
    for wrong in (5, "obs", [good["obs"]], {"observations": good["obs"]}, {1: good["obs"]}):
        with pytest.raises(ValueError, match="out: "):
            made(wrong)
    shared = np.zeros(good["obs"].nbytes + good["mask"].nbytes, np.uint8)
    overlapping = {
        "obs": shared[: good["obs"].nbytes].view(good["obs"].dtype).reshape(good["obs"].shape),
        "mask": shared[8 : 8 + good["mask"].nbytes].view(good["mask"].dtype).reshape(good["mask"].shape),
    }
    with pytest.raises(ValueError, match="out: expected arrays that do not overlap, but obs and mask share memory"):
        made(overlapping)


def test_copies_have_arrays_of_their_own() -> None:
    out = out_of(TINY)
    env = BatchEnv(TINY, B, 4, out=out, skip_forced=True)
    env.step(env.mask[0].argmax(axis=1), 2)
    for twin in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        kept = {name: array.copy() for name, array in out.items()}
        for name in BUFFERS:
            assert np.array_equal(getattr(twin, name), out[name]) and not np.shares_memory(
                getattr(twin, name), out[name]
            )
        twin.step(twin.mask[2].argmax(axis=1), 3)
        assert field_bytes(twin.states) != field_bytes(env.states)
        assert all(np.array_equal(out[name], kept[name]) for name in out)


# Bits


def reference(fields: tuple[Field, ...], rows: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Rows packed as `engine/packing.py` tells, bit by bit."""
    lows = np.repeat([field.low for field in fields], [field.size for field in fields])
    ranges = np.repeat([field.high - field.low for field in fields], [field.size for field in fields])
    packed = []
    for row in rows.astype(int) - lows:
        bits = [
            value >> plane & 1
            for plane in range(8)
            for value, most in zip(row.tolist(), ranges.tolist())
            if plane == 0 or most >= 1 << plane
        ]
        bits += [0] * (-len(bits) % 64)
        packed.append([sum(bits[i + k] << k for k in range(8)) for i in range(0, len(bits), 8)])
    return np.array(packed, np.uint8)


def test_packed_observations_are_observations(game: Game) -> None:
    env, packing = BatchEnv(game, B, 7), Packing(game)
    assert packing.obs_bytes + packing.mask_bytes < 0.4 * (game.rules.OBS_SIZE + game.rules.NUM_ACTIONS) + 16
    legal = (Field("legal", game.rules.NUM_ACTIONS, 1),)

    def compare(actions: NDArray[np.int64]) -> None:
        obs, mask = packing.pack(env.obs), packing.pack_mask(env.mask)
        assert obs.shape == (B, packing.obs_bytes) and mask.shape == (B, packing.mask_bytes)
        assert obs.dtype == mask.dtype == np.uint8
        assert np.array_equal(packing.unpack(obs), env.obs)
        assert np.array_equal(packing.unpack_mask(mask), env.mask)
        assert np.array_equal(reference(game.rules.OBS_FIELDS, env.obs[:1]), obs[:1])
        assert np.array_equal(reference(legal, env.mask[:1]), mask[:1])

    random_steps(env, 60, compare)


FIELDS: dict[str, tuple[Field, ...]] = {
    "one bit": (Field("only", 1, 1),),
    "all ranges": tuple(Field(f"f{low}_{high}", 3, high, low) for low in (-128, -1, 0, 5) for high in (6, 7, 8, 127)),
    "long": (Field("a", 61, 1), Field("b", 70, 5, 2), Field("c", 129, 127, -128), Field("d", 2, 1)),
}


@pytest.mark.parametrize("kind", FIELDS)
def test_all_values_come_back(kind: str) -> None:
    come_back(FIELDS[kind])


def test_all_values_of_a_game_come_back(game: Game) -> None:
    come_back(game.rules.OBS_FIELDS)


def come_back(fields: tuple[Field, ...]) -> None:
    torch = pytest.importorskip("torch")
    planes, (low, high) = _Planes(fields), (bound.astype(np.int16) for bound in bounds(fields))
    rows = np.random.default_rng(0).integers(low, high + 1, (3, 20, planes.size), np.int16)
    rows[0, 0], rows[0, 1] = low, high
    rows = rows.astype(np.int8)
    packed = planes.packed(rows)
    assert np.array_equal(packed[:, :2], [reference(fields, part) for part in rows[:, :2]])
    assert np.array_equal(planes.unpacked(packed), rows)
    assert np.array_equal(planes.packed(rows[:, ::2]), packed[:, ::2])
    assert np.array_equal(planes.unpacked(packed[::2, 1::3]), rows[::2, 1::3])
    assert np.array_equal(
        planes.unpacked(np.concatenate([[0], packed.ravel()]).astype(np.uint8)[1:].reshape(packed.shape)), rows
    )
    tensor = torch.from_numpy(packed)
    for found in (planes.unpacked(tensor), planes.on_device(tensor), planes.unpacked(tensor[:, ::2].contiguous())):
        assert found.dtype == torch.int8
        assert np.array_equal(found.numpy(), rows if found.shape == rows.shape else rows[:, ::2])
    assert planes.unpacked(packed[:0]).shape == (0, 20, planes.size)
    assert planes.unpacked(packed[0, 0]).shape == (planes.size,)


def test_rows_of_another_kind_are_refused() -> None:
    wrong: Any
    torch = pytest.importorskip("torch")
    packing, size = Packing(TINY), TINY.rules.OBS_SIZE
    rows = np.zeros((2, packing.obs_bytes), np.uint8)
    for wrong in (
        rows[:, 1:], rows.astype(np.int8), rows.astype(np.float32), rows.tolist(), None, 5, np.uint8(1), "x",
        torch.zeros(2, packing.obs_bytes), torch.zeros(2, packing.obs_bytes + 1, dtype=torch.uint8),
    ):  # fmt: skip
        for call in (packing.unpack, packing.unpack_mask):
            with pytest.raises(ValueError, match=r"expected a.* of (torch\.)?uint8 with shape \(\.\.\., \d+\), got"):
                call(wrong)
    for wrong in (
        np.zeros((2, size + 1), np.int8),
        np.zeros((2, size), np.uint8),
        [0] * size,
        torch.zeros(2, size),
        None,
    ):
        for pack in (packing.pack, packing.pack_mask):
            with pytest.raises(ValueError, match=r"expected an array of int8 with shape \(\.\.\., \d+\), got"):
                pack(wrong)
    with pytest.raises(ValueError, match="game: expected a Game"):
        Packing("tiny")  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="can't be replaced"):
        packing.obs_bytes = 3
