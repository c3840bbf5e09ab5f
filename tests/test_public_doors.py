"""Public functions and classes of the Python API with one wrong argument after the other: a ValueError, never another
exception, and never gigabytes."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from card_envs import BatchEnv, Decisions, Game, GameRecord, Packing, load_opponent, replay, verify
from card_envs.compare.pairs import play_pairs
from card_envs.compare.survey import survey
from card_envs.draw import draw
from card_envs.engine._legality import check_ints
from card_envs.engine.table import Table
from card_envs.envs.aec import CardEnv
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.policies import ARCHITECTURES
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import decisions_at
from card_envs.opponents.scripted import ScriptedPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import play_randomly

WRONG: list[Any] = [
    None, True, -1, 1 << 40, 1 << 63, 1 << 70, 1.5, float("nan"), "x", b"x", [], {}, [1, 2], {"a": 1}, object(), int,
    memoryview(b"x"), np.zeros(3), np.zeros((2, 2), np.int8), {1},
]  # fmt: skip
GREEDY = ScriptedPolicy("greedy")
RNG = np.random.default_rng(0)
TURN = decisions_at(TINY, BatchEnv(TINY, 4).states)
PACKING = Packing(TINY)


def env() -> CardEnv:
    made = CardEnv(TINY)
    made.reset(seed=1)
    return made


RECORD = play_randomly(env(), 1).record()
SMALL = [np.zeros((2, 3), np.float32), np.zeros((1, 2), np.float32)]

# Calls with all that they need; each argument is then replaced by one wrong value after the other.
DOORS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "play_pairs": (play_pairs, {"game": TINY, "first": GREEDY, "second": GREEDY, "pairs": 1, "seed": 0}),
    "survey": (survey, {"game": TINY, "policy": GREEDY, "episodes": 1, "seed": 0}),
    "draw": (draw, {"game": TINY, "view": env().view("player_0"), "tall": False}),
    "replay": (replay, {"record": RECORD, "num_moves": 1}),
    "verify": (verify, {"record": RECORD}),
    "decisions_at": (decisions_at, {"game": TINY, "states": BatchEnv(TINY, 4).states}),
    "Turn": (Decisions, {"game": TINY, "states": BatchEnv(TINY, 4).states, "obs": TURN.obs, "mask": TURN.mask,
                    "seat": TURN.seat}),
    "Turn.at": (TURN.at, {"rows": np.array([0])}),
    "Turn.worlds": (TURN.worlds, {"rng": RNG, "k": 1}),
    "Turn.check": (TURN.check, {"actions": TURN.mask.argmax(axis=1), "who": "me"}),
    "Turn.bot_moves": (TURN.bot_moves, {"bot": "greedy"}),
    "Table": (Table, {"game": TINY, "state": TINY.rules.new_state(TINY.validated({}))}),
    "Table.seed": (Table(TINY, TINY.rules.new_state(TINY.validated({}))).seed, {"seed": 1, "table": 2}),
    "BatchEnv": (BatchEnv, {"game": TINY, "num_tables": 1, "seed": 0, "options": {}, "tables": [0],
                            "skip_forced": False, "num_threads": 1, "out": {}}),
    "ScriptedPolicy": (ScriptedPolicy, {"bot": "greedy"}),
    "PhasedPolicy": (PhasedPolicy, {"actions": range(1), "inside": GREEDY, "outside": GREEDY}),
    "SearchPolicy": (SearchPolicy, {"game": TINY, "worlds": 1, "seconds": None, "moves": "single", "prior": None,
                                    "rollout": None, "leaf": None, "leaf_after": 2, "leaf_playout": 0.0, "arms": 2,
                                    "threads": 1}),
    "Packing": (Packing, {"game": TINY}),
    "Packing.pack": (PACKING.pack, {"obs": TURN.obs}),
    "Packing.unpack": (PACKING.unpack, {"rows": PACKING.pack(TURN.obs)}),
    "Packing.pack_mask": (PACKING.pack_mask, {"mask": TURN.mask}),
    "Packing.unpack_mask": (PACKING.unpack_mask, {"rows": PACKING.pack_mask(TURN.mask)}),
    "load_opponent": (load_opponent, {"name": "greedy", "game": TINY, "sampled": True}),
    "GameRecord": (GameRecord, RECORD.model_dump()),
    **{kind.__name__: (kind, {"game": TINY, "weights": {}, "sampled": True}) for kind in
       (*ARCHITECTURES.values(), NTuplePolicy)},
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_public_doors_say_what_is_wrong(door: str) -> None:
    call, good = DOORS[door]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in good:
        for number, wrong in enumerate(WRONG):
            try:
                call(**{**good, name: wrong})
            except ValueError as error:
                assert 0 < len(str(error)) < 2000, (name, number)  # noqa: PT017 (some values are right)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


def test_records_set_nothing_but_options() -> None:
    for option, value in (("render_mode", "human"), ("illegal_move", "terminate"), ("obs_key", "x"), ("game", 1)):
        with pytest.raises(ValueError, match=option):
            replay(RECORD.model_copy(update={"options": {option: value}}))


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all that a view holds."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [way for key, inner in items for way in paths(inner, (*path, key))]


def changed(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    """A copy with something else at a place."""
    if not path:
        return wrong
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], wrong)
    return copy


def test_drawings_of_wrong_views(game: Game) -> None:
    """Wherever something in a view is wrong or left out, the message begins with the view."""
    made = CardEnv(game)
    made.reset(seed=1)
    play_randomly(made, 1, 20)
    view = made.view(made.agent_selection)
    assert draw(game, view).startswith("<svg")
    rng = np.random.default_rng(0)
    ways = paths(view)
    ways = [ways[i] for i in rng.permutation(len(ways))[:80]]
    for way in ways:
        views: list[Any] = [changed(view, way[:-1], [])]
        values: list[Any] = [None, -1, 1 << 40, 1.5, "x", [], {}, [[]] * 2000]
        views += [changed(view, way, value) for value in values]
        for wrong in views:
            try:
                assert draw(game, wrong).startswith("<svg")
            except ValueError as error:
                assert str(error).startswith("view: ") and len(str(error)) < 2000  # noqa: PT017


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def test_read_only_arrays_compile_nothing_again() -> None:
    """Numba would compile a loop once more for each kind of array."""
    env = BatchEnv(TINY, 4)
    actions = env.mask.argmax(axis=1)
    env.step(actions)
    loops = [env._step]
    before = [len(loop.signatures) for loop in loops]  # type: ignore[attr-defined]
    env.step(read_only(env.mask.argmax(axis=1)))
    assert [len(loop.signatures) for loop in loops] == before  # type: ignore[attr-defined]
    assert check_ints(actions, 4) is actions and check_ints(read_only(actions), 4).flags.writeable
    decisions = decisions_at(TINY, read_only(env.states))
    assert decisions.bot_moves("greedy").tolist() == decisions_at(TINY, env.states).bot_moves("greedy").tolist()
    assert np.array_equal(PACKING.unpack(read_only(PACKING.pack(read_only(env.obs)))), env.obs)
