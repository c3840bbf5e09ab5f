"""`BatchEnv` writing into a caller's arrays."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from card_envs.engine.batch import MIN_TABLES_A_THREAD, BatchEnv
from card_envs.game import Game
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import buffers_but, field_bytes
from tests.engine.test_batch import BUFFERS

B, T = 6, 5
SEEN = ("obs", "mask")


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
            shown = getattr(env, name)[t] if name in out or ("seen" in out and name in SEEN) else getattr(env, name)
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
@pytest.mark.parametrize("padding", [0, 3])
def test_a_row_holds_observation_and_mask(game: Game, padding: int) -> None:
    """Side by side, and nothing is written behind them; copies have rows of their own."""
    size = game.rules.OBS_SIZE + game.rules.NUM_ACTIONS
    rows = np.full((T, B, size + padding), 99, np.int8)
    env = in_step(game, {"seen": rows, **out_of(game, ("seat", "done"))}, 40, skip_forced=True)
    np.testing.assert_array_equal(rows[..., :size], np.concatenate([env.obs, env.mask], axis=2))
    assert (rows[..., size:] == 99).all() and not (rows[..., :size] == 99).all(axis=2).any()
    assert np.shares_memory(env.obs, rows)
    twin = pickle.loads(pickle.dumps(env))
    kept = rows.copy()
    twin.step(twin.mask[0].argmax(axis=1), 1)  # 40 steps end at [0]
    assert np.array_equal(rows, kept) and not np.array_equal(twin.obs[1], env.obs[1])


def test_a_row_is_wide_enough_and_takes_the_place_of_both() -> None:
    size = TINY.rules.OBS_SIZE + TINY.rules.NUM_ACTIONS
    with pytest.raises(ValueError, match=f"out: seen: expected a contiguous, .* with shape \\({T}, {B}, {size}\\)"):
        BatchEnv(TINY, B, out={"seen": np.zeros((T, B, size - 1), np.int8)})
    with pytest.raises(ValueError, match="out: seen holds obs and mask: expected either it or them"):
        BatchEnv(TINY, B, out={"seen": np.zeros((T, B, size), np.int8), **out_of(TINY, ("mask",))})


def test_own_buffers_begin_at_lines_of_the_cache() -> None:
    """JAX takes memory without a copy only if it does."""
    for tables in (1, 3, 1000):
        env = BatchEnv(TINY, tables)
        assert all(getattr(env, name).ctypes.data % 64 == 0 and getattr(env, name).flags.carray for name in BUFFERS)


@pytest.mark.mechanics
def test_threads_write_the_same(game: Game) -> None:
    tables = 2 * MIN_TABLES_A_THREAD
    in_step(game, out_of(game, tables=tables), 8, tables, num_threads=2)


def test_what_is_made_and_looked_at_goes_where_it_should() -> None:
    out = out_of(TINY)
    env = BatchEnv(TINY, B, 1, out=out)
    plain = BatchEnv(TINY, B, 1)
    assert np.array_equal(out["obs"][0], plain.obs) and (out["obs"][1:] == 99).all()
    env.observe(3)
    assert np.array_equal(out["obs"][3], plain.obs) and (out["rewards"] == 99).all()


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
