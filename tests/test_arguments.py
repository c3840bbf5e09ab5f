"""Every public entry point: compiled code gets only valid arguments, and errors say what would be right."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from card_envs import GameRecord, replay, verify
from card_envs.compare.games import GamePlan, play_games
from card_envs.compare.pairs import play_pairs
from card_envs.compare.survey import survey
from card_envs.draw import draw
from card_envs.engine.batch import BatchEnv
from card_envs.engine.legality import IllegalMove
from card_envs.engine.table import Table
from card_envs.envs.aec import CardEnv
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.games import GAMES, get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.policies import ARCHITECTURES
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import field_bytes, play_randomly

OTHER = next(game for game in GAMES.values() if game.is_solitaire)
B = 8


def batch() -> BatchEnv:
    return BatchEnv(TINY, B, 3)


def buffers_but(shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """All that is no writable, contiguous array of that shape and type."""
    good = np.zeros(shape, dtype)
    locked = good.copy()
    locked.flags.writeable = False
    other = np.uint8 if dtype != np.uint8 else np.int8
    return [
        good[:-1], np.zeros((shape[0] + 1, *shape[1:]), dtype), good[None], np.zeros(0, dtype), good.astype(other),
        good.astype(np.float64), good.astype(object), np.zeros((shape[0] * 2, *shape[1:]), dtype)[::2], good[::-1],
        locked, good.astype(good.dtype.newbyteorder()) if good.itemsize > 1 else None, good.tolist(), None, 5, "x",
        np.zeros(good.nbytes + 1, np.uint8)[1:].view(dtype).reshape(shape) if good.itemsize > 1 else None,
    ]  # fmt: skip


# By method: calls with arguments that must be refused. Methods that are not here must be in SAFE.
FULL = (B, TINY.rules.FULL_SIZE)
THINGS: list[Any] = [None, True, -1, 1 << 70, 1.5, float("nan"), "x", [], {"a": 1}, object(), np.zeros(3)]
NUMBERS: list[Any] = [*THINGS, 1.0, "1", [1]]
BOTS: list[Any] = [*THINGS, "nobody", "", "legal", ["greedy"]]


def each(call: Callable[[Any], Any], given: list[Any]) -> list[Callable[[], Any]]:
    return [partial(call, one) for one in given]


def batch_doors(env: BatchEnv) -> dict[str, list[Callable[[], Any]]]:
    streams, actions = np.arange(B, dtype=np.uint64), np.zeros(B, np.int64)
    steps = [0, *(number for number in NUMBERS if number is not None)]  # of which a batch without `out` has none
    wrong_actions: list[Any] = [
        actions[:-1], np.zeros(B + 1, np.int64), np.zeros(0, np.int64), actions[:, None], actions * 0.5, actions > 0,
        actions.astype(object) + 0.5, actions.astype(str), actions * 1j, None, "x", 3, [[1], [2, 3]],
    ]  # fmt: skip
    return {
        "step": each(env.step, [*wrong_actions, *(np.full(B, number) for number in (-1, 60, 1 << 31, -(1 << 62)))])
        + each(lambda x: env.step(actions, x), steps),
        "observe": each(env.observe, steps),
        "are_legal": each(env.are_legal, wrong_actions),
        "random_actions": each(lambda x: env.random_actions(x, actions), buffers_but((B,), np.uint64))
        + each(lambda x: env.random_actions(streams, x), buffers_but((B,), np.int64)),
        "bot_actions": each(lambda x: env.bot_actions("greedy", x), buffers_but((B,), np.int64))
        + each(lambda x: env.bot_actions(x, actions), BOTS),
        "observe_all": each(env.observe_all, buffers_but(FULL, np.int8)),
        "random_playout": each(lambda x: env.random_playout(x, 1), buffers_but((B,), np.uint64))
        + each(lambda x: env.random_playout(streams, x), NUMBERS),
        "bot_playout": each(lambda x: env.bot_playout("trivial", x), NUMBERS)
        + each(lambda x: env.bot_playout(x, 1), BOTS),
    }


def table_doors(table: Table) -> dict[str, list[Callable[[], Any]]]:
    readable = [one for one in buffers_but((TINY.rules.PACK_SIZE,), np.int8) if not locked(one)]
    return {
        "play": each(table.play, [TINY.rules.NUM_ACTIONS, *NUMBERS]),
        "set_deal": each(table.set_deal, readable),
        "observe": each(table.observe, [TINY.rules.NUM_SEATS, *NUMBERS]),
        "observe_all": each(table.observe_all, [TINY.rules.NUM_SEATS, *NUMBERS]),
        "determinize": each(lambda x: table.determinize(x, 0), [TINY.rules.NUM_SEATS, *NUMBERS])
        + each(lambda x: table.determinize(0, x), NUMBERS),
        "bot_move": each(table.bot_move, BOTS),
        "seed": each(table.seed, NUMBERS) + each(lambda x: table.seed(1, x), NUMBERS),
    }


def turn_doors(decisions: Decisions) -> dict[str, list[Callable[[], Any]]]:
    class Short:
        def integers(self, low: int, high: int, size: int, dtype: Any) -> Any:
            return np.zeros(size - 1, dtype)

    rng = np.random.default_rng(0)
    return {
        "check": each(
            lambda x: decisions.check(x, "me"), [np.zeros(B - 1, np.int64), None, np.zeros(B), np.full(B, 99)]
        ),
        "worlds": each(lambda x: decisions.worlds(rng, x), [0, 1 << 40, 1 << 63, *NUMBERS])
        + each(lambda x: decisions.worlds(x, 2), [Short(), *THINGS]),
        "bot_moves": each(decisions.bot_moves, BOTS),
    }


def vector_doors(env: VectorSeatEnv) -> dict[str, list[Callable[[], Any]]]:
    seeds: list[Any] = [1.5, "a", -1, True, 1 << 64, [1], [1, 2, "x"], [1, 2, 3.0], {"a": 1}, b"abc"]
    return {
        "step": each(env.step, [np.zeros(2, np.int64), np.zeros(3), None, "abc", [[1], [2, 3], []]]),
        "reset": each(lambda x: env.reset(seed=x), seeds)
        + each(lambda x: env.reset(options=x), [5, {"deal": {}}, [1], "x"]),
    }


def locked(array: Any) -> bool:
    return isinstance(array, np.ndarray) and not array.flags.writeable


# Without arguments that reach compiled code, or checked by other tests below.
SAFE: dict[type, set[str]] = {
    BatchEnv: set(),
    Table: {"copy", "deal", "legal", "over", "seat", "needs_deal", "rewards"},
    Decisions: {"at", "copy", "failure"},
    VectorSeatEnv: {"action_masks", "render", "states", "seat"},
}


def vector() -> VectorSeatEnv:
    env = VectorSeatEnv(TINY.name, 3, opponents="trivial")
    env.reset(seed=0)
    return env


def table() -> Table:
    made = Table(TINY, TINY.rules.new_state(TINY.validated({})))
    made.seed(1)
    made.deal()
    return made


DOORS: dict[type, Callable[[], tuple[Any, dict[str, list[Callable[[], Any]]]]]] = {
    BatchEnv: lambda: (one := batch(), batch_doors(one)),
    Table: lambda: (one := table(), table_doors(one)),
    Decisions: lambda: (one := decisions_at(TINY, batch().states), turn_doors(one)),
    VectorSeatEnv: lambda: (one := vector(), vector_doors(one)),
}


@pytest.mark.parametrize("kind", DOORS, ids=lambda kind: kind.__name__)
def test_all_doors_are_listed(kind: type) -> None:
    """A public method that is in no list fails here: say how it checks what it gets."""
    public = {name for name, _ in inspect.getmembers(kind) if not name.startswith("_") and name in vars(kind)}
    assert public == set(DOORS[kind]()[1]) | SAFE[kind]


@pytest.mark.parametrize("kind", DOORS, ids=lambda kind: kind.__name__)
def test_doors_refuse_what_does_not_fit(kind: type) -> None:
    thing, doors = DOORS[kind]()
    for name, calls in doors.items():
        for number, call in enumerate(calls):
            before = field_bytes(thing.states) if hasattr(thing, "states") else b""
            with pytest.raises(ValueError, match=r"expected|unknown|illegal") as caught:
                call()
            assert "expected" in str(caught.value) or isinstance(caught.value, IllegalMove), (name, number)
            assert len(str(caught.value)) < 2000, (name, number)
            assert not hasattr(thing, "states") or field_bytes(thing.states) == before, (name, number)


@pytest.mark.parametrize("kind", [BatchEnv, Table])
def test_what_compiled_code_relies_on_is_never_replaced(kind: type) -> None:
    thing, _ = DOORS[kind]()
    public = [name for name in vars(thing) if not name.startswith("_")]
    assert {"game", "states"} <= set(public)
    for name in public:
        with pytest.raises(AttributeError, match="can't be replaced"):
            setattr(thing, name, copy.copy(getattr(thing, name)))
        with pytest.raises(AttributeError, match="can't be deleted"):
            delattr(thing, name)


def test_nothing_is_stepped_unseen() -> None:
    """After a playout the masks are those of another position."""
    env = batch()
    for playout in (partial(env.bot_playout, "greedy"), partial(env.random_playout, np.arange(B, dtype=np.uint64))):
        playout(1)
        before = field_bytes(env.states)
        with pytest.raises(IllegalMove, match=r"call observe\(\) first"):
            env.step(env.mask.argmax(axis=1))
        assert field_bytes(env.states) == before
        env.observe()
        env.step(env.mask.argmax(axis=1))


@pytest.mark.parametrize("seat", [-1, TINY.rules.NUM_SEATS])
def test_states_with_no_such_seat(seat: int) -> None:
    env = batch()
    states = env.states.copy()
    states["seat"][5] = seat
    made = pickle.dumps(env)
    env.states[:] = states
    for call in (
        env.observe, lambda: decisions_at(TINY, states), lambda: Table(TINY, states[5]),
        lambda: pickle.loads(pickle.dumps(env)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"got {seat}"):
            call()
    assert pickle.loads(made).mask.any()


def test_states_of_another_kind() -> None:
    other = BatchEnv(OTHER, B).states
    states = batch().states
    for wrong in (other, states[::2], states[:, None], None, b""):
        with pytest.raises(ValueError, match="states: expected"):
            decisions_at(TINY, wrong)  # type: ignore[arg-type]
    no_state: tuple[Any, ...] = (other[0], states, None)
    for one in no_state:
        with pytest.raises(ValueError, match="state: expected one State of high_card"):
            Table(TINY, one)
    for game in (OTHER.name, None):
        for make in (
            lambda game=game: Table(game, states[0]),
            lambda game=game: BatchEnv(game, 1),
            lambda game=game: CardEnv(game),
        ):
            with pytest.raises(ValueError, match="game: expected a Game"):
                make()
    for lineups in (np.zeros((1, 1), np.int8), np.full((1, 2), 1, np.int8), np.full((1, 2), -1, np.int8), [[0, 0]]):
        with pytest.raises(ValueError, match="lineups: expected"):
            play_games(GamePlan(TINY, [RandomPolicy()], lineups=lineups), np.arange(B))  # type: ignore[arg-type]


def test_unpickled_batches_are_checked() -> None:
    env = batch()
    good = env.__getstate__()
    for name, wrong in (
        ("states", BatchEnv(OTHER, B).states), ("states", env.states[:, None]), ("states", b"12"), ("states", None),
        ("rewards", env.rewards[:-1]), ("done", env.rewards), ("num_threads", 0), ("skip_forced", 1), ("game", "x"),
    ):  # fmt: skip
        made = BatchEnv.__new__(BatchEnv)
        with pytest.raises(ValueError, match="expected"):
            made.__setstate__({**good, name: wrong})
    short = BatchEnv.__new__(BatchEnv)
    short.__setstate__({**good, "states": env.states[:3].copy(), "rewards": env.rewards[:3], "done": env.done[:3]})
    assert short.num_tables == 3 and short.obs.shape[0] == 3
    made_of: Any = table().__reduce__()
    restore, arguments = made_of
    for state in (arguments[1][:-1], arguments[1] + b"1", b""):
        with pytest.raises(ValueError, match="bytes"):
            restore(arguments[0], state)


def test_turns_are_whole() -> None:
    states = batch().states
    decisions = decisions_at(TINY, states)
    for name in ("obs", "mask", "seat"):
        arrays = {"obs": decisions.obs, "mask": decisions.mask, "seat": decisions.seat}
        with pytest.raises(ValueError, match="expected"):
            Decisions(TINY, states, **{**arrays, name: arrays[name][1:]})
    some = np.array([True, False] * 4)
    assert np.array_equal(decisions.at(some).obs, decisions.obs[::2]) and len(decisions.at(some)) == 4  # type: ignore[arg-type]
    assert np.array_equal(decisions.at(some).copy().obs, decisions.obs[::2])  # type: ignore[arg-type]
    assert np.array_equal(pickle.loads(pickle.dumps(decisions)).obs, decisions.obs)
    with pytest.raises(ValueError, match="rows: expected"):
        decisions.at(np.array([B]))
    decisions.seat[:] = 77  # draws worlds of the true seats all the same
    worlds = decisions.worlds(np.random.default_rng(0), 2)
    assert np.array_equal(worlds["seat"][:, 0], states["seat"])


# Silent acceptance


def wrong_arguments() -> list[tuple[Callable[[], Any], str]]:
    def batch_of(**arguments: Any) -> Callable[[], Any]:
        return lambda: BatchEnv(TINY, **{"num_tables": 2, **arguments})

    def single(**arguments: Any) -> Callable[[], Any]:
        return lambda: SingleSeatEnv(**{"game": TINY.name, **arguments})

    def many(**arguments: Any) -> Callable[[], Any]:
        return lambda: VectorSeatEnv(**{"game": TINY.name, **arguments})

    def env(**arguments: Any) -> Callable[[], Any]:
        return lambda: CardEnv(TINY, **arguments)

    def reset(**arguments: Any) -> Callable[[], Any]:
        return lambda: CardEnv(TINY).reset(**arguments)

    def reset_single(**arguments: Any) -> Callable[[], Any]:
        return lambda: SingleSeatEnv(TINY.name).reset(**arguments)

    calls: list[tuple[Callable[[], Any], str]] = []
    seed: Any
    for seed in (1.5, "a", -1, True, [1]):
        calls += [(reset(seed=seed), "seed"), (reset_single(seed=seed), "seed"), (batch_of(seed=seed), "seed")]
    for options in (5, "deal", [1]):
        calls += [(reset(options=options), "options"), (reset_single(options=options), "options")]
        calls += [(batch_of(options=options), "options")]
    for number in (0, 1.5, "2", True):
        calls += [(batch_of(num_tables=number), "num_tables"), (batch_of(num_threads=number), "num_threads")]
        calls += [(many(num_envs=number), "num_envs")]
    for tables in ([0.5, 1], [-1, 0], [True, False], [1], 5):
        calls += [(batch_of(tables=tables), "tables")]
    value: Any
    for value in ("no", 1, None):
        calls += [(batch_of(skip_forced=value), "skip_forced")]
        calls += [(partial(load_opponent, "greedy", TINY, value), "sampled")]
    for word in ("xx", 5, ["ansi"]):
        for make in (single, many, env):
            calls += [(make(render_mode=word), "render_mode"), (make(illegal_move=word), "illegal_move")]
            calls += [(make(obs_dtype=word), "obs_dtype"), (make(observe=word), "observe")]
        calls += [(many(autoreset_mode=word), "autoreset_mode")]
    for key in (5, "action_mask", None):
        calls += [(env(obs_key=key), "obs_key")]
    calls += [(env(obs_key="observations", observe="flat"), "obs_key")]
    for make in (single, many):
        calls += [(make(obs_key="observations"), "obs_key")]
        for seat in (True, 0.0, -1, 2, "left"):
            calls += [(make(seat=seat), "seat")]
        for opponents in (5, None, {"greedy"}, [RandomPolicy], object(), ["greedy"] * 3, []):
            calls += [(make(opponents=opponents), "opponents")]
        calls += [
            (make(opponents="gredy"), "greedy"),
            (make(opponents=load_opponent(f"{OTHER.name}/greedy")), f"plays {OTHER.name}"),
        ]
        calls += [
            (make(game=OTHER.name, opponents="gredy"), "greedy"),
            (make(game=OTHER.name, opponents=5), "opponents"),
        ]
        calls += [(make(game=game), "game") for game in (5, None, [OTHER.name], TINY)]
    calls += [(call, "game") for call in each(get_game, [5, None, [], "x" * 10**6])]
    return calls


def test_nothing_wrong_is_taken_in_silence() -> None:
    for number, (call, named) in enumerate(wrong_arguments()):
        with pytest.raises(ValueError, match=named) as caught:
            call()
        assert len(str(caught.value)) < 1000, number


# One wrong argument after the other


GREEDY = ScriptedPolicy("greedy")


def env() -> CardEnv:
    made = CardEnv(TINY)
    made.reset(seed=1)
    return made


RECORD = play_randomly(env(), 1).record()

# Calls with all that they need; each argument is then replaced by one wrong value after the other.
CALLS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "play_pairs": (play_pairs, {"game": TINY, "first": GREEDY, "second": GREEDY, "pairs": 1, "seed": 0}),
    "survey": (survey, {"game": TINY, "policy": GREEDY, "episodes": 1, "seed": 0}),
    "draw": (draw, {"game": TINY, "view": env().view("player_0"), "tall": False}),
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
