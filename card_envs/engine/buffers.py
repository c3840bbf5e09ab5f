"""Validation of everything that reaches compiled code, which checks nothing: arrays, numbers, words.

Every error is a ValueError that names the argument, what was expected and what was given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from card_envs.game import Game
from card_envs.system.files import short_repr

INT8, INT64, UINT64, FLOAT32 = (np.dtype(kind) for kind in (np.int8, np.int64, np.uint64, np.float32))

MAX_TABLES = 1 << 40
ALIGNMENT = 64  # bytes: a line of the processor's cache, and what JAX asks of memory that it shares
ROW_BYTES = 16  # which a GPU reads at once


def checked(
    name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], *, written: bool = True
) -> NDArray[Any]:
    """Return the array if compiled code may use it; return a copy of a read-only one unless it is `written`.

    Args:
        name: its name in messages.
        array: the value to check.
        shape: expected shape.
        dtype: expected dtype.
        written: whether it is written to.

    Raises:
        ValueError: not an array, wrong shape or dtype, not C-contiguous, or read-only although it is `written`.
    """
    if isinstance(array, np.ndarray) and array.shape == shape and array.dtype == dtype:
        flags = array.flags
        if flags.carray or (not written and flags.c_contiguous and flags.aligned):
            return as_writable(array if type(array) is np.ndarray else np.asarray(array))
        got = f"{'a read-only' if flags.c_contiguous else 'a strided'} one"
    else:
        got = f"{array.dtype.name} of shape {array.shape}" if isinstance(array, np.ndarray) else short_repr(array)
    kind = "a contiguous, writable array" if written else "a contiguous array"
    raise ValueError(f"{name}: expected {kind} of {dtype.name} with shape {shape}, got {got}")


def as_writable(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous array; a read-only one is copied, because Numba would compile the loops again for it."""
    return array if array.flags.carray else array.copy()


def zeros(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return a C-contiguous array of zeros that begins at a multiple of ALIGNMENT."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)  # untouched memory costs nothing
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def row_size(entries: int) -> int:
    """Return the bytes of a row of that many int8 entries with its padding: a multiple of ROW_BYTES."""
    return -(-entries // ROW_BYTES) * ROW_BYTES


def with_padding(shape: tuple[int, ...], array: Any) -> tuple[int, ...]:
    """Return the shape with the last size of an array's, if the array's rows are longer."""
    size = int(array.shape[-1]) if getattr(array, "ndim", 0) else 0
    return (*shape[:-1], max(shape[-1], size))


Kinds = dict[str, tuple[tuple[int, ...], type[np.generic]]]  # shape and dtype by the name of the array
SEEN = "seen"  # the name of rows that hold observation and mask side by side, and may have padding


def buffer_kinds(game: Game, num_tables: int) -> Kinds:
    """Return the buffers that a batch of tables writes."""
    rules = game.rules
    return {
        SEEN: ((num_tables, rules.OBS_SIZE + rules.NUM_ACTIONS), np.int8),
        "obs": ((num_tables, rules.OBS_SIZE), np.int8),
        "mask": ((num_tables, rules.NUM_ACTIONS), np.int8),
        "seat": ((num_tables,), np.int8),
        "rewards": ((num_tables, rules.NUM_SEATS), np.float32),
        "done": ((num_tables,), np.bool_),
    }


def check_out(out: object, kinds: Kinds) -> dict[str, NDArray[Any]]:
    """Return the arrays of `out`, each of shape [T, *shape] and with the dtype of its kind.

    Raises:
        ValueError: unknown name, array unfit for compiled code, different T, or shared memory.
    """
    arrays = known_keys(out, tuple(kinds), "out")
    for name, shape in out_shapes(arrays, kinds, np.ndarray).items():
        arrays[name] = checked(f"out: {name}", arrays[name], shape, np.dtype(kinds[name][1]))
    if SEEN in arrays and ("obs" in arrays or "mask" in arrays):
        raise ValueError(f"out: {SEEN} holds obs and mask: expected either it or them")
    for first, second in itertools.combinations(arrays, 2):
        if np.may_share_memory(arrays[first], arrays[second]):
            raise ValueError(f"out: expected arrays that do not overlap, but {first} and {second} share memory")
    return arrays


def out_shapes(arrays: Mapping[str, Any], kinds: Kinds, kind: type[Any]) -> dict[str, tuple[int, ...]]:
    """Return the shape that each array (or tensor, the `kind`) of `out` must have: [T, *shape], rows with padding."""
    num_steps = max((1, *(len(item) for item in arrays.values() if isinstance(item, kind) and item.ndim)))
    shapes = {name: kinds[name][0] for name in arrays}
    return {
        name: (num_steps, *(with_padding(shape, arrays[name]) if name == SEEN else shape))
        for name, shape in shapes.items()
    }


Slice = TypeVar("Slice")


def slice_at(slices: Sequence[Slice], has_steps: bool, t: object) -> Slice:
    """Return the slice of `out` at time step t; without `out` there is one, at None. Raises ValueError."""
    if has_steps:
        return slices[check_int(t, 0, len(slices) - 1, "t")]
    if t is not None:
        raise ValueError(f"t: expected None, because `out` has no time steps, got {short_repr(t)}")
    return slices[0]


def checked_states(game: Game, states: Any) -> NDArray[Any]:
    """Return the [n] States of a game, any n, for reading. Raises ValueError."""
    states = checked("states", states, (np.size(states),), game.rules.STATE, written=False)
    check_seats(game, states)
    return states


def check_seats(game: Game, states: NDArray[Any]) -> None:
    """Raise ValueError if a State names a seat to move that does not exist."""
    seats = states["seat"]
    wrong = seats.view(np.uint8) >= game.rules.NUM_SEATS
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"states: expected seats 0 to {game.rules.NUM_SEATS - 1} to move, got {seats[i]} at table {i}")


def check_int(value: object, low: int, high: int | None, where: str) -> int:
    """Return an int within [low, high] (None: unbounded); `where` is its name in error messages."""
    within = isinstance(value, (int, np.integer)) and low <= value and (high is None or value <= high)
    if isinstance(value, bool) or not within:
        span = f"from {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{where}: expected a whole number {span}, got {short_repr(value)}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_positive(value: object, where: str) -> float:
    """Return a finite number above 0. Raises ValueError for anything else."""
    number = _number(value)
    if not 0 < number < float("inf"):
        raise ValueError(f"{where}: expected a number above 0, got {short_repr(value)}")
    return number


def check_within(value: object, low: float, high: float, where: str) -> float:
    """Return a number within [low, high]. Raises ValueError for anything else."""
    number = _number(value)
    if not low <= number <= high:
        raise ValueError(f"{where}: expected a number from {low:g} to {high:g}, got {short_repr(value)}")
    return number


def _number(value: object) -> float:
    """Return a number as a float; NaN if the value is not a number (bools and strings included)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def seed_number(seed: object) -> int:
    """Return a valid seed of deals, an unsigned 64-bit number. Raises ValueError."""
    return check_int(seed, 0, (1 << 64) - 1, "seed")


def new_seed() -> int:
    """Return an unpredictable seed."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


def check_bool(value: object, where: str) -> bool:
    """Return a bool. Raises ValueError for anything else, such as 0, 1 and other truthy values."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{where}: expected True or False, got {short_repr(value)}")
    return bool(value)


def check_choice(value: object, allowed: tuple[str | None, ...], where: str) -> None:
    """Raise ValueError unless an argument is one of these words."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        words = [f'"{word}"' if word else "None" for word in allowed]
        raise ValueError(f"{where}: expected {', '.join(words[:-1])} or {words[-1]}, got {short_repr(value)}")


def known_keys(data: object, known: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return a dict that has only known keys; empty for None. Raises ValueError."""
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected a dict, got {short_repr(data)}")
    for key in data:
        if key not in known:
            raise ValueError(f"{where}: unknown key {short_repr(key)}; expected {' or '.join(known) or 'none'}")
    return dict(data)


def check_game(game: object) -> None:
    """Raise ValueError unless the argument is a game."""
    if not isinstance(game, Game):
        raise ValueError(f"game: expected a Game, from card_envs.get_game(name), got {short_repr(game)}")


class Fixed:
    """An object whose public attributes are set once, because compiled code relies on them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name in self.__dict__:
            raise AttributeError(f"{type(self).__name__}.{name} can't be replaced; write into an array in place")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} can't be deleted")
