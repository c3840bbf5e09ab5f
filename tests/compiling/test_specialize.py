"""Loops that are made of functions: stubs, what takes their place, and how the result is named."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs import game as contract
from card_envs.compiling import rule, specialize, stub
from card_envs.compiling._digest import HEX_DIGITS
from card_envs.compiling._rules import INTERPRETED
from card_envs.compiling._specialize import Functions, Specialization, rebuild
from card_envs.compiling.loops import TracedLoop
from card_envs.engine import kernels
from card_envs.game import Game, State, greedy, load
from card_envs.opponents.search import SearchPolicy
from card_envs.opponents.search._decide import decide_tables, new_workspace
from card_envs.scaffold.high_card import GAME
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import ROOT, run_python

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
    return rebuild(Specialization(loop, game, bot, functions=functions)).function.__name__


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


def test_only_stubs_are_replaced() -> None:
    """A helper that a loop calls as well would be replaced without a word."""
    with pytest.raises(TypeError, match="functions: tripled is not a stub; mark what is to be replaced with `stub`"):
        specialize(sum_worths, functions=((worth, tripled), (tripled, one)))


def test_other_functions_make_another_name() -> None:
    """Even of the same files and constants."""
    made_of: list[Functions] = [
        ((worth, one),),
        ((worth, raised), (bonus, one)),
        ((worth, raised), (bonus, tripled)),
        ((worth, tripled),),
    ]
    names = [name_of(sum_worths, functions) for functions in made_of]
    assert len({name[:-HEX_DIGITS] for name in names}) == len(made_of)  # the cache keeps all of them
    assert names == [name_of(sum_worths, functions) for functions in made_of]


FILES_THAT_RUN = """
import re, sys
from pathlib import Path

import numpy as np

import card_envs
from card_envs.build import _warm_up as warm
from card_envs.compiling import _specialize as specializing
from card_envs.compiling.loops import game_of_package

game, folder = game_of_package(sys.argv[1]), str(Path(card_envs.__file__).parent)
card_envs.games.GAMES.setdefault(game.name, game)
ran = {}

def recorded(wanted, bound):
    files = ran.setdefault(wanted, set())

    def profile(frame, event, argument):
        files.add(frame.f_code.co_filename)

    def called(*arguments):
        sys.setprofile(profile)
        try:
            return bound(*arguments)
        finally:
            sys.setprofile(None)

    return called

with specializing.watching_specialize(recorded), np.errstate(all="ignore"):
    warm.warm_up_environments(game)
    warm.warm_up_batches(game)
    for name in {re.sub(r"^search:[0-9]+", "", name): name for name in warm.opponent_names(game)}.values():
        if "moves=turn" not in name or game.name == "high_card":  # a minute; `strong` has the same files
            warm.warm_up_opponent(game, warm.load_opponent(name, game))
    if game.is_solitaire:
        warm.warm_up_solver(game)

for wanted, files in ran.items():
    digested = {function.__code__.co_filename for function in specializing.rebuild(wanted).sources}
    for file in files:
        if file.startswith(folder):
            print(file in digested, wanted.loop.__name__, file)
"""


@pytest.mark.mechanics
def test_a_digest_covers_every_file_that_runs(game: Game) -> None:
    """Of every loop, by the files whose functions Python calls when it runs the loop as it is written."""
    done = run_python("-c", FILES_THAT_RUN, game.package, NUMBA_DISABLE_JIT="1", CARD_ENVS_TEST_GAME="")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line for line in lines if line[0] != "True"] == []
    files = {Path(line[2]).stem for line in lines if Path(line[2]).parent == Path(str(game.rules.__file__)).parent}
    assert {"rules", "bot"} <= files and ("planner" in files) == (game.planner is not None)


class Way(Enum):
    FAST = 1


class Two(NamedTuple):
    x: int
    y: int = 3


def closing_over(part: Any) -> Callable[[int], int]:
    def loop(x: int) -> int:
        return int(part(x))

    return loop


def with_constant(constant: Any) -> Callable[[int], int]:
    def loop(x: int) -> Any:
        return x if constant == 0 else constant

    return loop


def with_default(constant: Any) -> Callable[[int], int]:
    def loop(x: int, y: int = constant) -> int:
        return x + y

    return loop


def test_closures_and_defaults_count() -> None:
    assert specialize(closing_over(tripled))(5) == 15 and specialize(closing_over(one))(5) == 1
    assert specialize(closing_over(raised), functions=((bonus, tripled),))(5) == 20
    with pytest.raises(TypeError, match="raised calls bonus: specialize it with a function for it"):
        specialize(closing_over(raised))
    assert specialize(with_default(1))(5) == 6 and specialize(with_default(2))(5) == 7
    for make, values in (
        (closing_over, (tripled, one, rule(one))),
        (with_default, (1, 2, 2.0)),
        (with_constant, (1, 2, 1j, b"1", b"2", "1", Way.FAST, Way, Two(1), Two, NamedTuple("Two", x=int, y=int))),
    ):
        names = [name_of(make(value), ()) for value in values]
        assert names == [name_of(make(value), ()) for value in values]
        assert len(set(names)) == len(names) - (make is closing_over)  # `rule(one)` is the same code


def through_a_module(states: Any) -> None:
    contract.play(states[0], 0)


@rule
def rule_through_a_module(states: Any) -> None:
    contract.play(states[0], 0)


def calls_that_rule(states: Any) -> None:
    rule_through_a_module(states)


def test_a_stub_of_a_module_is_refused() -> None:
    """It would be called as it is."""
    for loop, name in ((through_a_module, "through_a_module"), (calls_that_rule, "rule_through_a_module")):
        with pytest.raises(TypeError, match=f"{name} calls the stub contract.play: loops call stubs by name alone"):
            specialize(loop, GAME)


@pytest.mark.parametrize("moves", ["single", "turn"])
def test_another_process_can_make_a_loop_again(moves: Any) -> None:
    search = SearchPolicy(GAME, 8, moves=moves)
    wanted = Specialization(decide_tables, GAME, "greedy", functions=new_workspace(search, search.budget(None))[0])
    traced = pickle.loads(pickle.dumps(TracedLoop.of(wanted, ("int64",))))
    assert traced.specialization() == wanted and traced.signature == ("int64",)
    assert rebuild(traced.specialization()).function.__name__ == rebuild(wanted).function.__name__


def test_a_loop_without_a_file_is_compiled() -> None:
    """The loop of CONTRIBUTING.md, typed at a prompt."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    loop = next(block for block in re.findall("```python\n(.*?)```", text, re.DOTALL) if "specialize(" in block)
    assert int(run_python("-", stdin=loop).stdout) > 1


def sum_of_moves(states: Any) -> int:
    return next_move(states[0])


@rule
def next_move(state: State) -> int:
    return greedy(state)


def test_wrong_loops_are_refused() -> None:
    with pytest.raises(TypeError, match="step_table calls play: specialize it for a game"):
        specialize(kernels.step_tables)
    with pytest.raises(TypeError, match="bot_actions calls bot_move: specialize it for a bot"):
        specialize(kernels.bot_actions, HIGH_CARD)
    with pytest.raises(TypeError, match="high_card has no function nobody"):
        specialize(kernels.bot_actions, HIGH_CARD, "nobody")
    if not INTERPRETED:
        with pytest.raises(TypeError, match="next_move calls the stub greedy"):
            specialize(sum_of_moves, HIGH_CARD)
