"""The public API: `docs/api.md` lists it module by module; names that it does not list are private."""

from __future__ import annotations

import ast
import contextlib
import importlib
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import card_envs
from card_envs import GameRecord, replay, verify
from card_envs.compare.pairs import play_pairs
from card_envs.compare.survey import survey
from card_envs.draw import draw
from card_envs.engine.batch import BatchEnv
from card_envs.engine.table import Table
from card_envs.games import get_game
from card_envs.opponents import TorchPolicy, load_opponent
from card_envs.opponents.networks.folder import save_network
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.policies import ARCHITECTURES, NetworkPolicy
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import decisions_at
from card_envs.opponents.scripted import ScriptedPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.scaffold.high_card import GAME as TINY
from card_envs.system.moved import MOVED
from tests.conftest import THINGS, new_env, play_randomly, positions, some, untrained

ROOT = Path(__file__).parents[1]
MOST = 250  # public names
AUTODOC = re.compile(r"^\.\. auto(?:class|function|exception|module):: (\S+)(?:\n   :members: (.*))?$", re.MULTILINE)


def listed() -> set[str]:
    """Return the full names that the page lists."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    found = set(re.findall(r"`(card_envs(?:\.\w+){3,4})`", page))  # of extras, which need not be installed
    for name, members in AUTODOC.findall(page):
        found |= {f"{name}.{member}" for member in members.split(", ")} if members else {name}
    return found


def defined() -> set[str]:
    """Return the full names of all classes and functions of the modules of which the page lists something."""
    names = set()
    public = {name.rpartition(".")[0] for name in listed()}
    for file in (ROOT / "card_envs").rglob("*.py"):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if module in public:
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                    names.add(f"{module}.{node.name}")
    return names


def found(name: str) -> object:
    """Import what a full name stands for; skip the test where its extra is not installed."""
    module, _, attribute = name.rpartition(".")
    return getattr(pytest.importorskip(module, exc_type=ImportError), attribute)


def origin(name: str) -> str:
    """Return the full name of where a public name is defined: packages hand names on."""
    thing = found(name)
    return f"{thing.__module__}.{getattr(thing, '__name__', '')}"


def test_the_page_lists_what_is_public() -> None:
    names = listed()
    handed_on = {name for name in names if origin(name) != name}
    assert all(name.count(".") <= 2 or ".search." in name for name in handed_on), "only packages hand names on"
    assert {origin(name) for name in names} >= defined(), sorted(defined() - {origin(name) for name in names})
    own = names - handed_on
    assert own <= defined(), sorted(own - defined())


def test_all_names_of_the_package_are_listed() -> None:
    names = {name for name in card_envs.__all__ if name != "GAMES"}
    assert names <= {name.rpartition(".")[2] for name in listed()}


def test_public_names_are_few_and_described() -> None:
    names = listed()
    assert len(names) < MOST
    for name in names:
        assert found(name).__doc__, name


@pytest.mark.filterwarnings("always::DeprecationWarning")
@pytest.mark.parametrize(("name", "new_name"), MOVED.items())
def test_modules_that_moved_are_found_under_their_names_of_before(name: str, new_name: str) -> None:
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"{name} is {new_name} now"):
        module = importlib.import_module(name)
    assert module is importlib.import_module(new_name)


GREEDY = ScriptedPolicy("greedy")


RECORD = play_randomly(new_env(TINY), 1).record()


# Calls with all that they need; each argument is then replaced by one wrong value after the other.
CALLS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "play_pairs": (play_pairs, {"game": TINY, "first": GREEDY, "second": GREEDY, "pairs": 1, "seed": 0}),
    "survey": (survey, {"game": TINY, "policy": GREEDY, "episodes": 1, "seed": 0}),
    "draw": (draw, {"game": TINY, "view": new_env(TINY).view("player_0"), "tall": False}),
    "replay": (replay, {"record": RECORD, "num_moves": 1}),
    "verify": (verify, {"record": RECORD}),
    "Table": (Table, {"game": TINY, "state": TINY.rules.new_state(TINY.validated({}))}),
    "BatchEnv": (BatchEnv, {"game": TINY, "num_tables": 1, "seed": 0, "options": {}, "tables": [0],
                            "skip_forced": False, "num_threads": 1, "out": {}}),
    "ScriptedPolicy": (ScriptedPolicy, {"bot": "greedy"}),
    "PhasedPolicy": (PhasedPolicy, {"actions": range(1), "inside": GREEDY, "outside": GREEDY}),
    "SearchPolicy": (SearchPolicy, {"game": TINY, "worlds": 1, "seconds": None, "moves": "single", "prior": None,
                                    "rollout": None, "leaf": None, "leaf_after": 2, "leaf_playout": 0.0, "arms": 2,
                                    "threads": 1}),
    "load_opponent": (load_opponent, {"name": "greedy", "game": TINY, "sampled": True}),
    "GameRecord": (GameRecord, RECORD.model_dump()),
    "get_game": (get_game, {"name": TINY.name}),
    **{kind.__name__: (kind, {"game": TINY, "weights": {}, "sampled": True}) for kind in
       (*ARCHITECTURES.values(), NTuplePolicy)},
}  # fmt: skip


@pytest.mark.parametrize("door", CALLS)
def test_one_wrong_argument_is_a_value_error_or_taken(door: str) -> None:
    call, good = CALLS[door]
    for name in good:
        for wrong in [*THINGS, 1 << 40]:
            try:
                call(**{**good, name: wrong})
            except ValueError as error:
                assert 0 < len(str(error)) < 2000, name  # noqa: PT017 (some values are right)


@contextlib.contextmanager
def hostile() -> Iterator[None]:
    """Modes of NumPy and Torch that programs set, and warnings as errors."""
    with contextlib.ExitStack() as undo:
        undo.enter_context(np.errstate(all="raise"))
        undo.enter_context(np.printoptions(precision=1, threshold=1, sign="+"))
        undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        with contextlib.suppress(ImportError):
            import torch

            undo.callback(torch.set_default_dtype, torch.get_default_dtype())
            undo.callback(torch.set_default_device, None)
            undo.callback(torch.set_grad_enabled, torch.is_grad_enabled())
            torch.set_default_dtype(torch.float64)
            torch.set_default_device("meta")
            torch.set_grad_enabled(False)
        yield


def answers(folder: Path, module: Any) -> list[Any]:
    """What players, environments and comparisons answer."""
    decisions = decisions_at(TINY, some(positions(TINY), 16))
    env = new_env(TINY, 5, render_mode="ansi")
    view = env.view(env.agent_selection)
    found: list[Any] = [env.render(), view, repr(env.record())]
    save_network(folder, untrained(TINY, NetworkPolicy, [8]), decisions, training={}, strength=[])
    for name in ("greedy", "random", "search:4,moves=turn", str(folder)):
        player = load_opponent(name, TINY)
        found += [player.act(decisions, np.random.default_rng(0)).tolist(), repr(player.rank_moves(view))]
    if module is not None:
        found.append(TorchPolicy(module).probabilities(decisions).tolist())
    batch = BatchEnv(TINY, 8, seed=1)
    batch.step(batch.mask.argmax(axis=1))
    figures = play_pairs(TINY, "greedy", "random", 10, 3).as_dict()
    return [*found, batch.obs.tolist(), [str(value) for key, value in figures.items() if "micro" not in key]]


def test_answers_do_not_depend_on_what_a_program_has_set(tmp_path: Path) -> None:
    module: Any = None
    with contextlib.suppress(ImportError):
        import torch

        module = torch.nn.Linear(TINY.rules.OBS_SIZE, TINY.rules.NUM_ACTIONS)
    seeds: Any = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index] # noqa: NPY002
    calm = answers(tmp_path / "calm", module)
    assert seeds == (random.getstate(), np.random.get_state()[1].tolist())  # type: ignore[index] # noqa: NPY002
    with hostile():
        found = answers(tmp_path / "hostile", module)
    assert found == calm
