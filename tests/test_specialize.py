"""Loops that are made of functions: stubs, what takes their place, and how the result is named."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compiling import _specialize as specializing
from card_envs.compiling import rule, specialize, stub
from card_envs.compiling._loops import TracedLoop
from card_envs.compiling._specialize import Functions, Specialization, rebuilt
from card_envs.game import State, load
from card_envs.opponents.search import SearchPolicy
from card_envs.opponents.search._decide import decide_tables, new_workspace
from card_envs.scaffold.high_card import GAME

FACTOR = 3


@stub
def worth(x: int) -> int:
    """Return what a number is worth."""
    raise NotImplementedError


@stub
def bonus(x: int) -> int:
    """Return what is added to that."""
    raise NotImplementedError


def tripled(x: int) -> int:
    return FACTOR * x


def raised(x: int) -> int:
    return x + bonus(x)


def one(x: int) -> int:
    return 1


def sum_worths(numbers: NDArray[np.int64]) -> int:
    total = 0
    for k in range(len(numbers)):
        total += worth(numbers[k])
    return total


@rule
def compiled(x: int) -> int:
    return worth(x)


def sum_compiled(numbers: NDArray[np.int64]) -> int:
    return int(compiled(numbers[0]))


def load_all(states: NDArray[Any], planning: Any) -> None:
    load_one(states[0], planning)


def load_one(state: State, planning: Any) -> None:
    load(state, 0, planning)


def name_of(loop: Any, functions: Functions, game: Any = None, bot: str = "") -> str:
    return rebuilt(Specialization(loop, game, bot, functions=functions))[0].__name__


def test_functions_take_the_place_of_stubs() -> None:
    numbers = np.array([1, 2, 4])
    assert specialize(sum_worths, functions=((worth, tripled),))(numbers) == 21
    assert specialize(sum_worths, functions=((worth, raised), (bonus, one)))(numbers) == 10
    assert specialize(sum_worths, functions=((worth, raised), (bonus, tripled)))(numbers) == 28


def test_a_stub_without_a_function_is_an_error() -> None:
    for functions, message in (
        ((), "sum_worths calls worth: specialize it with a function for it"),
        (((worth, raised),), "raised calls bonus: specialize it with a function for it"),
    ):
        with pytest.raises(TypeError, match=message):
            specialize(sum_worths, functions=functions)
    with pytest.raises(TypeError, match="compiled calls the stub worth: helpers of loops are plain functions"):
        specialize(sum_compiled, functions=((worth, tripled),))
    with pytest.raises(TypeError, match="load_one calls load: high_card has no planner"):
        specialize(load_all, GAME)
    with pytest.raises(NotImplementedError):
        sum_worths(np.ones(1, np.int64))


def test_other_functions_make_another_name() -> None:
    """Even of the same files and constants."""
    made_of: list[Functions] = [
        ((worth, one),),
        ((worth, raised), (bonus, one)),
        ((worth, raised), (bonus, tripled)),
        ((worth, tripled),),
    ]
    names = [name_of(sum_worths, functions) for functions in made_of]
    assert len({name[: -specializing.HEX_DIGITS] for name in names}) == len(made_of)  # the cache keeps all of them
    assert names == [name_of(sum_worths, functions) for functions in made_of]


def test_an_edit_of_a_function_makes_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "someones_part.py"
    file.write_text("def doubled(x):\n    return 2 * x\n")
    part = importlib.import_module("someones_part")
    before = name_of(sum_worths, ((worth, part.doubled),))
    assert name_of(sum_worths, ((worth, part.doubled),)) == before
    others = name_of(sum_worths, ((worth, one),))
    file.write_text("def doubled(x):\n    return 2 * x  # edited\n")
    specializing._file_digest.cache_clear()
    after = name_of(sum_worths, ((worth, part.doubled),))
    assert after != before and after[: -specializing.HEX_DIGITS] == before[: -specializing.HEX_DIGITS]
    assert name_of(sum_worths, ((worth, one),)) == others


@pytest.mark.parametrize("moves", ["single", "turn"])
def test_another_process_can_make_a_loop_again(moves: Any) -> None:
    search = SearchPolicy(GAME, 8, moves=moves)
    wanted = Specialization(decide_tables, GAME, "greedy", functions=new_workspace(search, search.budget(None))[0])
    traced = pickle.loads(pickle.dumps(TracedLoop.of(wanted, ("int64",))))
    assert traced.specialization() == wanted and traced.signature == ("int64",)
    assert rebuilt(traced.specialization())[0].__name__ == rebuilt(wanted)[0].__name__
