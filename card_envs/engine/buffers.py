"""What comes from outside, checked before it reaches compiled code, which checks nothing: arrays, numbers, words.

Every error is a ValueError that says what is wrong, what would be right and what was given.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.files import short_repr
from card_envs.game import Game

INT8, INT64, UINT64, FLOAT32 = (np.dtype(kind) for kind in (np.int8, np.int64, np.uint64, np.float32))

MAX_TABLES = 1 << 40


def checked(
    name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], *, written: bool = True
) -> NDArray[Any]:
    """Return the array itself, if compiled code may have it; of a read-only one, which is not `written`, a copy.

    Args:
        name: what messages call it.
        array: what was given.
        shape: that it must have.
        dtype: that it must have.
        written: whether it is written into.

    Raises:
        ValueError: it is no array, of another shape or type, not contiguous, or read-only where it is `written`.
    """
    if isinstance(array, np.ndarray) and array.shape == shape and array.dtype == dtype:
        flags = array.flags
        if flags.carray or (not written and flags.c_contiguous and flags.aligned):
            return for_loops(array if type(array) is np.ndarray else np.asarray(array))
        got = f"{'a read-only' if flags.c_contiguous else 'a strided'} one"
    else:
        got = f"{array.dtype.name} of shape {array.shape}" if isinstance(array, np.ndarray) else short_repr(array)
    kind = "a contiguous, writable array" if written else "a contiguous array"
    raise ValueError(f"{name}: expected {kind} of {dtype.name} with shape {shape}, got {got}")


def for_loops(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous array, or a copy if it is read-only: for that, loops would be compiled once more."""
    return array if array.flags.carray else array.copy()


Kinds = dict[str, tuple[tuple[int, ...], type[np.generic]]]  # arrays by name: shape and type


def checked_out(out: object, kinds: Kinds) -> dict[str, NDArray[Any]]:
    """Return a caller's arrays by name, each of its kind with one more axis before, as long for all of them: [T, …].

    Raises:
        ValueError: an unknown name, an array that compiled code may not have, or two that share memory.
    """
    given = known_keys(out, tuple(kinds), "out")
    lengths = [len(array) for array in given.values() if isinstance(array, np.ndarray) and array.ndim]
    num_steps = max((1, *lengths))
    for name, array in given.items():
        shape, dtype = kinds[name]
        given[name] = checked(f"out: {name}", array, (num_steps, *shape), np.dtype(dtype))
        if dtype is np.uint8 and given[name].ctypes.data % 8:  # bits, written in words
            raise ValueError(f"out: {name}: expected an array that begins at a multiple of 8 bytes")
    for one, other in itertools.combinations(given, 2):
        if np.may_share_memory(given[one], given[other]):
            raise ValueError(f"out: expected arrays apart from each other, but {one} and {other} share memory")
    return given


def checked_states(game: Game, states: Any, name: str = "states") -> NDArray[Any]:
    """Return [n] States of a game, any number of them, which are only read. Raises ValueError."""
    states = checked(name, states, (np.size(states),), game.rules.STATE, written=False)
    check_seats(game, states, name)
    return states


def check_seats(game: Game, states: NDArray[Any], name: str = "states") -> None:
    """Raise ValueError where it is the turn of a seat that there is not: such a State comes from no game."""
    seats = states["seat"]
    wrong = seats.view(np.uint8) >= game.rules.NUM_SEATS
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"{name}: expected seats 0 to {game.rules.NUM_SEATS - 1} to move, got {seats[i]} at table {i}")


def check_int(value: object, low: int, high: int | None, where: str) -> int:
    """Return a whole number within [low, high] (None: without end); `where` is its name in error messages."""
    within = isinstance(value, (int, np.integer)) and low <= value and (high is None or value <= high)
    if isinstance(value, bool) or not within:
        span = f"from {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{where}: expected a whole number {span}, got {short_repr(value)}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def seed_number(seed: object) -> int:
    """Return a seed of deals: all that a stream holds."""
    return check_int(seed, 0, (1 << 64) - 1, "seed")


def new_seed() -> int:
    """Return a seed that nobody can guess."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


def check_bool(value: object, where: str) -> bool:
    """True or False, and nothing that only counts as one of them."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{where}: expected True or False, got {short_repr(value)}")
    return bool(value)


def check_choice(value: object, allowed: tuple[str | None, ...], where: str) -> None:
    """Raise ValueError where an argument is none of these words."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        words = [f'"{word}"' if word else "None" for word in allowed]
        raise ValueError(f"{where}: expected {', '.join(words[:-1])} or {words[-1]}, got {short_repr(value)}")


def known_keys(given: object, known: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return a dict with none but these keys; empty for None."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"{where}: expected a dict, got {short_repr(given)}")
    for key in given:
        if key not in known:
            raise ValueError(f"{where}: unknown key {short_repr(key)}; expected {' or '.join(known) or 'none'}")
    return dict(given)


def check_game(game: object) -> None:
    """Raise ValueError where a game is meant and something else was given."""
    if not isinstance(game, Game):
        raise ValueError(f"game: expected a Game, from card_envs.get_game(name), got {short_repr(game)}")


class Fixed:
    """An object whose public attributes are set once: compiled code relies on them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name in self.__dict__:
            raise AttributeError(f"{type(self).__name__}.{name} can't be replaced; write into an array in place")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} can't be deleted")
