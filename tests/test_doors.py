"""Every public entry point: compiled code gets only valid arguments, and errors say what would be right."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from card_envs import GameRecord, replay, verify
from card_envs.compare.games import GamePlan, play_games
from card_envs.compare.pairs import play_pairs
from card_envs.compare.survey import survey
from card_envs.draw import draw
from card_envs.engine._buffers import INT64, checked
from card_envs.engine._legality import IllegalMove, check_ints
from card_envs.engine.batch import BatchEnv
from card_envs.engine.table import Table
from card_envs.envs.aec import CardEnv
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game, total
from card_envs.games import GAMES, get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.networks._afterstate_network import AfterstateNetwork, move_scores
from card_envs.opponents.networks._afterstates import move_fields
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.policies import ARCHITECTURES
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import Decisions, PolicyError, decisions_at, hide_seed, spawn
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.options import describe_options
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import field_bytes, play_randomly, short_options
from tests.test_environments import gymnasium_id

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
THINGS: list[Any] = [
    None, True, -1, 1 << 70, 1.5, float("nan"), "x", b"x", [], {}, [1, 2], {"a": 1}, object(), int, memoryview(b"x"),
    np.zeros(3), np.zeros((2, 2), np.int8), {1},
]  # fmt: skip
NUMBERS: list[Any] = [*THINGS, 1.0, 0.5, "1", [1]]
BOTS: list[Any] = [*THINGS, "nobody", "", "legal", 5, ["greedy"], "__class__"]


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


def test_reshaped_buffers_are_the_users_alone() -> None:
    env, twin = batch(), batch()
    for array in (env.states, env.obs, env.mask, env.seat, env.rewards, env.done):
        with pytest.raises(ValueError, match=r"own its data|resize"):
            array.resize((1,))
    for array in (env.obs, env.mask, env.rewards):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            array.shape = (array.size,)
    env.seat[:] = 99  # and what is written there is not believed
    full = np.zeros(FULL, np.int8)
    env.observe_all(full)
    for one in (env, twin):
        one.step(one.mask.reshape(B, -1).argmax(axis=1))
    assert field_bytes(env.states) == field_bytes(twin.states)
    assert np.array_equal(env.obs.reshape(B, -1), twin.obs)
    vector = DOORS[VectorSeatEnv]()[0]
    vector.seat[:] = 99
    vector.step(vector.action_masks().argmax(axis=1))
    assert vector.seat.max() == 0


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


@pytest.mark.parametrize("seat", [-1, TINY.rules.NUM_SEATS, 77])
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
    for wrong in (other, states[::2], states[:, None], states.view(np.uint8), None, [1], b""):
        with pytest.raises(ValueError, match="states: expected"):
            decisions_at(TINY, wrong)  # type: ignore[arg-type]
    no_state: tuple[Any, ...] = (other[0], states, states[:1], None, 5, b"", {})
    for one in no_state:
        with pytest.raises(ValueError, match="state: expected one State of high_card"):
            Table(TINY, one)
    for game in (OTHER.name, None, 5):
        for make in (
            lambda game=game: Table(game, states[0]),
            lambda game=game: BatchEnv(game, 1),
            lambda game=game: CardEnv(game),
        ):
            with pytest.raises(ValueError, match="game: expected a Game"):
                make()
    for lineups in (np.zeros((1, 1), np.int8), np.full((1, 2), 1, np.int8), np.full((1, 2), -1, np.int8), [[0, 0]]):
        with pytest.raises(ValueError, match="lineups: expected"):
            play_games(GamePlan(TINY, [RandomPolicy()], lineups), np.arange(B))  # type: ignore[arg-type]


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


def test_pickles_share_their_memory_within() -> None:
    """What shows a buffer shows it after unpickling, too."""
    env = DOORS[VectorSeatEnv]()[0]
    for twin in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        for _ in range(20):
            actions = env.action_masks().argmax(axis=1)
            kept = copy.deepcopy(env)
            one, other = kept.step(actions), twin.step(actions)
            assert np.array_equal(one[0], other[0]) and field_bytes(kept.states) == field_bytes(twin.states)
            env = kept
        env = DOORS[VectorSeatEnv]()[0]
    made = batch()
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        again.step(again.mask.argmax(axis=1))
        assert np.shares_memory(again.states, again._states)
    single = CardEnv(TINY)
    single.reset(seed=1)
    single._mask[:] = 1
    again = pickle.loads(pickle.dumps(single))
    assert np.array_equal(again._mask, again._table.legal())


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


# Search


class Misleading(RandomPolicy):
    """A prior whose probabilities are what somebody wants."""

    def __init__(self, answer: Callable[[Decisions], Any]) -> None:
        self.answer = answer

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        answer: NDArray[np.float32] = self.answer(decisions)
        return answer


def forged(decisions: Decisions) -> Any:
    decisions.mask[:] = 1
    decisions.seat[:] = 9
    decisions.mask = np.ones((1, 1), np.int8)
    return np.full((len(decisions), decisions.game.rules.NUM_ACTIONS), 0.1, np.float32)


def test_search_bears_any_prior() -> None:
    decisions = decisions_at(TINY, batch().states)
    rng = np.random.default_rng(0)
    for answer in (
        lambda at: np.ones((len(at), 3), np.float32), lambda at: None, lambda at: at.mask,
        lambda at: np.ones((len(at) + 1, TINY.rules.NUM_ACTIONS), np.float32), lambda at: 1 / 0,
        lambda at: np.full(at.mask.shape, np.nan, np.float32), lambda at: (1 - at.mask).astype(np.float32), forged,
    ):  # fmt: skip
        settings: dict[str, Any]
        for settings in ({"prior": Misleading(answer)}, {"prior": Misleading(answer), "moves": "turn"},
                         {"rollout": Misleading(answer)}):  # fmt: skip
            with pytest.raises(ValueError, match="Misleading"):
                SearchPolicy(TINY, 16, threads=1, **settings).search(decisions, rng)
    forger = decisions_at(TINY, batch().states)
    forger.mask[:] = 1
    forger.seat[:] = 9
    found = SearchPolicy(TINY, 16, threads=1).search(forger, np.random.default_rng(0))
    honest = SearchPolicy(TINY, 16, threads=1).search(decisions, np.random.default_rng(0))
    assert np.array_equal(found.chosen, honest.chosen) and np.array_equal(found.stats.worlds, honest.stats.worlds)
    with pytest.raises(ValueError, match=f"plays {OTHER.name}, not high_card"):
        SearchPolicy(OTHER, 4).act(decisions, rng)


class MisleadingPlayer(ScriptedPolicy):
    """Plays on as somebody wants."""

    def __init__(self, answer: Callable[[Decisions], Any]) -> None:
        super().__init__("greedy")
        self.answer = answer

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        answer: NDArray[np.int64] = self.answer(decisions)
        return answer


def test_search_bears_anyone_who_plays_on() -> None:
    decisions = decisions_at(TINY, batch().states)
    for answer in (
        lambda at: None, lambda at: np.zeros(len(at) + 1, np.int64), lambda at: np.full(len(at), 99), lambda at: 1 / 0,
        lambda at: np.zeros(len(at)), lambda at: at.mask.argmin(axis=1),
        lambda at: forged(at).argmax(axis=1) + len(forged(at)),
    ):  # fmt: skip
        player = MisleadingPlayer(answer)
        with pytest.raises(ValueError, match="MisleadingPlayer"):
            SearchPolicy(TINY, 16, threads=1, rollout=player).search(decisions, np.random.default_rng(0))


def mover() -> AfterstateNetwork:
    """A network that scores moves, of no sense."""
    seen, moves = TINY.rules.OBS_SIZE + TINY.rules.NUM_ACTIONS, total(move_fields(TINY.rules))
    shapes = (seen, 6), (moves, 6), (6,), (6, 4), (4,), (4,), (2,)
    return AfterstateNetwork(*(np.ones(shape, np.float32) for shape in shapes))


def test_compiled_networks_fit_their_game() -> None:
    states = batch().states
    scores = np.zeros((B, TINY.rules.NUM_ACTIONS), np.float32)
    for name, weights in mover()._asdict().items():
        for wrong in buffers_but(weights.shape, np.float32):
            if not locked(wrong):
                with pytest.raises(ValueError, match=r"network: \w+: expected"):
                    move_scores(TINY, states, mover()._replace(**{name: wrong}), scores)
    with pytest.raises(ValueError, match="network: "):
        move_scores(OTHER, BatchEnv(OTHER, 1).states, mover(), scores)
    assert not scores.any()
    move_scores(TINY, states, mover(), scores)
    assert scores.any()


def test_checked_keeps_the_array() -> None:
    array = np.zeros(3, np.int64)
    assert checked("x", array, (3,), INT64) is array
    mapped = np.ma.masked_array(array)
    assert np.shares_memory(checked("x", mapped, (3,), INT64), array)
    assert type(checked("x", mapped, (3,), INT64)) is np.ndarray


# Seeds and streams


def test_unseeded_deals_have_64_bits() -> None:
    """Two halves of what the stream holds, each never the same for 40 environments."""
    drawn: list[int] = []

    def note(number: int) -> None:
        drawn.append(number)

    original = Table.seed
    try:
        Table.seed = lambda self, seed, table=0: (note(seed), original(self, seed, table))[1]  # type: ignore[method-assign,assignment,func-returns-value]
        for _ in range(40):
            CardEnv(TINY).reset()
            SingleSeatEnv(TINY.name).reset()
    finally:
        Table.seed = original  # type: ignore[method-assign]
    assert max(drawn[0::2]) >= 1 << 63 and max(drawn[1::2]) >= 1 << 63  # once in 2**40 not
    assert len({seed & 0xFFFFFFFF for seed in drawn}) == 80 == len({seed >> 32 for seed in drawn})
    keys = [VectorSeatEnv(TINY.name, 2) for _ in range(10)]
    for env in keys:
        env.reset()
    assert len({int(env.states["rng"][0]) >> 32 for env in keys}) == 10


class Nosy(RandomPolicy):
    """Keeps the generators that it is given, and the state in which it got them."""

    def __init__(self) -> None:
        self.seen: list[tuple[np.random.Generator, dict[str, Any]]] = []

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        self.seen.append((rng, dict(rng.bit_generator.state)))
        return super().act(decisions, rng)


SEED = 0x1234567 * 12345 + 1


def met_by_policies() -> dict[str, list[tuple[np.random.Generator, dict[str, Any]]]]:
    seen = {}
    for name in ("pairs", "survey", "single", "vector"):
        policy = Nosy()
        if name == "pairs":
            play_pairs(TINY, policy, policy, 4, SEED)
        elif name == "survey":
            survey(TINY, policy, 4, SEED)
        elif name == "single":
            SingleSeatEnv(TINY.name, policy, 1).reset(seed=SEED)
        else:
            VectorSeatEnv(TINY.name, 16, policy, "random").reset(seed=SEED)
        seen[name] = policy.seen
    return seen


def test_generators_do_not_tell_how_deals_were_seeded() -> None:
    for name, seen in met_by_policies().items():
        assert seen, name
        for rng, _ in seen:
            sequence: Any = rng.bit_generator.seed_seq
            assert str(SEED) not in str(sequence.state) and SEED not in np.ravel(sequence.entropy), name
            assert sequence.entropy > 1 << 64  # a hash
    # In the environment for one seat deals are drawn from `np_random`: it must not be turned back to them.
    env = SingleSeatEnv(TINY.name, Nosy(), 1)
    env.reset(seed=SEED)
    deal = int(gymnasium.utils.seeding.np_random(SEED)[0].bit_generator.random_raw()) >> 1
    for back in range(-8, 9):
        twin = copy.deepcopy(env._others.rng)
        twin.bit_generator.advance(back % (1 << 128))  # type: ignore[attr-defined]
        assert twin.bit_generator.random_raw() >> 1 != deal


def test_sealed_generators_go_on_with_the_same_numbers() -> None:
    one, other = np.random.default_rng([7, 8]), np.random.default_rng([7, 8])
    one.random(5)
    other.random(5)
    twin = hide_seed(one)
    assert np.array_equal(twin.random(100), other.random(100))
    children = [[child.random() for child in hide_seed(one).spawn(2)] for _ in range(2)]
    assert children[0] == children[1]
    firsts = [hide_seed(np.random.default_rng(seed)).spawn(1)[0].random() for seed in (1, 2)]
    assert firsts[0] != firsts[1]
    assert spawn(one).random() == spawn(one).random() != one.random()


def test_seeded_numbers_are_those_they_were(game: Game) -> None:
    """The deals of seeds, and what comparisons drew before generators hid their seeds."""
    policy = Nosy()
    play_games(GamePlan.of_self_play(TINY, policy, 5, {}), np.arange(4))
    source = np.random.default_rng([5, 0])
    source.integers(0, 1 << 64, 4, np.uint64)
    assert policy.seen[0][1]["state"] == source.bit_generator.state["state"]
    env, single = CardEnv(game), SingleSeatEnv(game.name, seat=0)
    single.reset(seed=11)
    env.reset(seed=int(gymnasium.utils.seeding.np_random(11)[0].integers(1 << 63)))
    assert env.record().deal == single._env.record().deal


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
    for seed in (1.5, "a", -1, True, [1], {}, float("nan")):
        calls += [(reset(seed=seed), "seed"), (reset_single(seed=seed), "seed"), (batch_of(seed=seed), "seed")]
    for options in (5, "deal", [1], [["deal"]]):
        calls += [(reset(options=options), "options"), (reset_single(options=options), "options")]
        calls += [(batch_of(options=options), "options")]
    for number in (0, -1, 1.5, "2", None, True):
        calls += [(batch_of(num_tables=number), "num_tables"), (batch_of(num_threads=number), "num_threads")]
        calls += [(many(num_envs=number), "num_envs")]
    for tables in ([float("nan"), 1], [0.5, 1], [-1, 0], ["a", "b"], [True, False], [1], 5, [None, 1]):
        calls += [(batch_of(tables=tables), "tables")]
    value: Any
    for value in ("no", 1, 0, None, "yes"):
        calls += [(batch_of(skip_forced=value), "skip_forced")]
        calls += [(partial(load_opponent, "greedy", TINY, value), "sampled")]
    for word in ("xx", 5, "", ["ansi"], np.array(["ansi", "human"])):
        for make in (single, many, env):
            calls += [(make(render_mode=word), "render_mode"), (make(illegal_move=word), "illegal_move")]
            calls += [(make(obs_dtype=word), "obs_dtype"), (make(observe=word), "observe")]
        calls += [(many(autoreset_mode=word), "autoreset_mode")]
    for key in (5, "action_mask", None):
        calls += [(env(obs_key=key), "obs_key")]
    calls += [(env(obs_key="observations", observe="flat"), "obs_key")]
    for make in (single, many):
        calls += [(make(obs_key="observations"), "obs_key")]
        for seat in (True, 0.0, 1.0, -1, 2, None, "left", [0]):
            calls += [(make(seat=seat), "seat")]
        for opponents in (5, None, {"greedy"}, [5], RandomPolicy, [RandomPolicy], object(), ["greedy"] * 3, []):
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
    for make in (single, many):
        calls += [(make(opponents=load_opponent(f"{OTHER.name}/greedy")), f"plays {OTHER.name}")]
    return calls


def test_nothing_wrong_is_taken_in_silence() -> None:
    for number, (call, named) in enumerate(wrong_arguments()):
        with pytest.raises(ValueError, match=named) as caught:
            call()
        assert len(str(caught.value)) < 1000, number


# Raw errors


@pytest.mark.parametrize("agent", ["player_9", "", None, 0, [], {}])
def test_agents_that_there_are_not(game: Game, agent: Any) -> None:
    env = CardEnv(game)
    env.reset(seed=1)
    for call in (env.observe, env.view, env.observation_space, env.action_space):
        with pytest.raises(ValueError, match=f"{game.name}: agent: expected one of player_0"):
            call(agent)


@pytest.mark.parametrize("text", [[], {}, None, 5, b"x", ["turn"], np.array(["a", "b"])])
def test_moves_that_are_no_text(game: Game, text: Any) -> None:
    env = CardEnv(game)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="move: expected a text"):
        env.parse_move(text)
    with pytest.raises(ValueError, match="move"):
        game.view.parse_move(env.states[0], text)


def test_order_of_calls_in_pettingzoo(game: Game) -> None:
    env = CardEnv(game, **short_options(game))
    for call in (env.last, lambda: env.step(0), env.agent_iter, lambda: env.step(None)):
        with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
            call()
    env.reset(seed=1)
    play_randomly(env, 1)
    with pytest.raises(ValueError, match="the only valid action is None"):
        env.step(0)
    for _ in env.agent_iter():
        env.step(None)
    for call in (env.last, lambda: env.step(None), lambda: env.step(0)):
        with pytest.raises(RuntimeError, match=r"over for all agents: call reset\(\)"):
            call()
    assert env.observe("player_0") and env.outcome()["over"]


def test_order_of_calls_in_gymnasium(game: Game) -> None:
    env = SingleSeatEnv(game.name, render_mode="ansi", **short_options(game))
    for call in (lambda: env.step(0), env.action_masks, env.render):
        with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
            call()
    _, info = env.reset(seed=1)
    env.step(int(info["action_mask"].argmin()))
    for action in (0, None):
        with pytest.raises(ResetNeeded, match=r"the episode is over: call reset\(\)"):
            env.step(action)  # type: ignore[arg-type]
    assert env.render() and not env.action_masks().any()
    many = VectorSeatEnv(game.name, 2, render_mode="ansi")
    for again in (lambda: many.step(np.zeros(2, np.int64)), many.action_masks, many.render):
        with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
            again()
    raising = SingleSeatEnv(game.name, illegal_move="raise", **short_options(game))
    _, info = raising.reset(seed=1)
    with pytest.raises(IllegalMove):
        raising.step(int(info["action_mask"].argmin()))
    raising.step(int(info["action_mask"].argmax()))


@pytest.mark.parametrize("number", [1 << 63, 1 << 64, 10**40, -(1 << 70), 1 << 31])
def test_views_with_huge_numbers(game: Game, number: int) -> None:
    """Wherever a view holds a number."""
    env = CardEnv(game, **short_options(game))
    env.reset(seed=1)
    play_randomly(env, 1, moves=1)
    seen = env.view(env.agent_selection)

    def changed(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [{**value, key: one} for key, inner in value.items() for one in changed(inner)]
        if isinstance(value, list):
            parts = [[*value[:i], one, *value[i + 1 :]] for i, inner in enumerate(value) for one in changed(inner)]
            return parts + ([[number] * len(value)] if value else [])
        return [number]

    for view in changed(seen):
        try:
            game.view.from_view(view)
        except ValueError as error:
            assert str(error).startswith("view"), view  # noqa: PT017 (some may be taken)


NAMES = {
    "os:system": "TypeError", "os:getcwd": "TypeError", "builtins:int": "TypeError", ":": "Empty module",
    ":X": "Empty module", ".x:Y": "no folder of that name", "json:": "AttributeError", "antigravity\0:x": "opponent",
    "builtins:object": "TypeError", "builtins:SystemExit": "needs the method act", "x" * 300: "unknown opponent",
    "x" * 5000: "at most 4096", "a=b+" * 1000 + "b": "no phase 'a'",
    "search:" + "9" * 400: "expected search:N", "\0": "unknown opponent", "\ud800": "unknown opponent",
    "search:greedy-0": "expected search:N", "": "unknown opponent", "search:0": "expected search:N",
    "search:8," + "x" * 3000: "expected KEY=VALUE", "search:8,prior=search:8,prior=greedy": "given twice",
    "search:8,prior=" + "a=b+" * 1000 + "b": "no phase 'a'", "search:8,arms=" + "9" * 4000: "arms: expected",
    "tests.test_doors:Bomb": "ZeroDivisionError", "tests.test_doors:Leaves": "SystemExit",
}  # fmt: skip


class Bomb:
    def __init__(self, game: Game) -> None:
        raise ZeroDivisionError("boom")


class Leaves:
    def __init__(self, game: Game) -> None:
        raise SystemExit(0)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:20]))
def test_names_that_load_nothing(name: str) -> None:
    with pytest.raises(ValueError, match=NAMES[name]) as caught:
        load_opponent(name, TINY)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", [None, 5, ["greedy"], b"greedy"])
def test_names_that_are_none(name: Any) -> None:
    with pytest.raises(ValueError, match="opponent: expected a name"):
        load_opponent(name, TINY)
    with pytest.raises(ValueError, match="game: expected a name"):
        load_opponent("greedy", name or 7)  # type: ignore[arg-type]


class Fails(RandomPolicy):
    """Raises at its second decision."""

    def __init__(self, game: Game) -> None:
        self.left = 1

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        self.left -= 1
        if self.left < 0:
            raise KeyError("my own mistake")
        return super().act(decisions, rng)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        if self.left < 0:
            raise KeyError("my own mistake")
        return super().probabilities(decisions)


def test_exceptions_of_policies_are_named() -> None:
    for name, policy in (
        ("Fails", Fails(TINY)),
        ("tests.test_doors:Fails", load_opponent("tests.test_doors:Fails", TINY)),
    ):
        with pytest.raises(PolicyError) as caught:
            play_pairs(TINY, policy, ScriptedPolicy("greedy"), 8)
        message = str(caught.value)
        assert message.startswith(f"high_card: policy {name}: KeyError: 'my own mistake' (")
        assert "test_doors.py, line " in message and ", in act) at {" in message and '"seat"' in message
        assert isinstance(caught.value.__cause__, KeyError) and len(message) < 1000
        again = pickle.loads(pickle.dumps(caught.value))  # as from a worker
        assert str(again) == message
    env = CardEnv(TINY)
    env.reset(seed=1)
    failing = load_opponent("tests.test_doors:Fails", TINY)
    failing.policy.left = -1  # type: ignore[attr-defined]
    with pytest.raises(PolicyError, match="my own mistake"):
        failing.evaluate(env.view(env.agent_selection))
    half = PhasedPolicy(range(TINY.rules.NUM_ACTIONS), Fails(TINY), RandomPolicy())
    half.inside.left = 0  # type: ignore[attr-defined]
    assert isinstance(half.inside, Fails)
    with pytest.raises(PolicyError, match="my own mistake"):
        play_pairs(TINY, half, RandomPolicy(), 8)
    for seed in (1.5, "a", -1):
        with pytest.raises(ValueError, match="seed"):
            load_opponent("greedy", TINY).evaluate(env.view(env.agent_selection), seed)  # type: ignore[arg-type]


# Observations as floats


def test_observations_as_floats(game: Game) -> None:
    options = short_options(game)
    env, plain = CardEnv(game, obs_dtype="float32", **options), CardEnv(game, **options)
    for one in (env, plain):
        one.reset(seed=1)
    agent = env.agent_selection
    seen, whole = env.observe(agent), plain.observe(agent)
    assert seen["observation"].dtype == np.float32 and seen["action_mask"].dtype == np.int8
    assert np.array_equal(seen["observation"], whole["observation"]) and whole["observation"].dtype == np.int8
    assert env.observation_space(agent).contains(seen)
    space, other = env.observation_space(agent)["observation"], plain.observation_space(agent)["observation"]  # type: ignore[index]
    assert np.array_equal(space.low, other.low) and np.array_equal(space.high, other.high)
    assert env.clone().observe(agent)["observation"].dtype == np.float32
    single = SingleSeatEnv(game.name, obs_dtype="float32", **options)
    obs, info = single.reset(seed=1)
    assert obs.dtype == np.float32 and single.observation_space.contains(obs)
    obs, *_, info = single.step(int(info["action_mask"].argmax()))
    assert obs.dtype == np.float32 and info["action_mask"].dtype == np.int8
    many = VectorSeatEnv(game.name, 2, obs_dtype="float32", **options)
    obs, info = many.reset(seed=1)
    assert obs.dtype == np.float32 and many.observation_space.contains(obs)
    *_, info = many.step(np.array([-1, -1]))
    assert info["final_obs"][0].dtype == np.float32 and many.single_observation_space.contains(info["final_obs"][0])


@pytest.mark.parametrize("obs_dtype", ["int8", "float32"])
def test_checkers_do_not_complain_of_masks(game: Game, obs_dtype: str) -> None:
    from pettingzoo.test import api_test

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(gymnasium.make(gymnasium_id(game), obs_dtype=obs_dtype, **short_options(game)).unwrapped)
        env = CardEnv(game, obs_dtype=obs_dtype, **short_options(game))  # type: ignore[arg-type]
        api_test(env, num_cycles=50)
    said = [str(warning.message) for warning in caught]
    assert not [text for text in said if "mask" in text.lower() or "writ" in text.lower()], said


@pytest.mark.parametrize("name", ["num_tables", "seed", "skip_forced", "num_threads"])
def test_values_beyond_all_measure_are_named_in_messages(name: str) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, -(10**5000), 10**5000 if name != "num_threads" else 0.5):
        settings: dict[str, Any] = {"num_tables": 2, name: value}
        with pytest.raises(ValueError, match=f"{name}: expected .* got (a (int|list) too large to show|0.5)"):
            BatchEnv(TINY, **settings)


def test_errors_do_not_repeat_long_texts(game: Game) -> None:
    """Wherever one may stand; a server sends them."""
    long = "x" * 200_000
    env = CardEnv(game)
    env.reset(seed=0)
    view = env.view(env.agent_selection)
    player = load_opponent("greedy", game)
    anything: Any = long
    deals: list[Any] = [{long: 1}, long]
    for key in env.record().deal:
        deals += [{**env.record().deal, key: wrong} for wrong in (long, [long], [[long] * 60], {long: long})]
    asked: list[Callable[[], Any]] = [
        lambda: env.parse_move(long),
        lambda: game.view.parse_move(env.states[0], long),
        partial(CardEnv, game, **{long: anything}),
        lambda: get_game(long),
        lambda: player.evaluate({**view, long: 1}),
        *(partial(player.evaluate, {**view, key: wrong}) for key in view for wrong in (long, [long], {long: 1})),
        *(
            partial(CardEnv, game, **{name: anything})
            for name in [*describe_options(game.options), "render_mode", "observe"]
        ),
        *(
            partial(load_opponent, f"{before}{long}{after}", game)
            for before in ("", "search:", "./")
            for after in ("", ":x")
        ),
        *(partial(env.reset, options={"deal": deal}) for deal in deals),
    ]
    for ask in asked:
        with pytest.raises((ValueError, TypeError)) as caught:
            ask()
        assert len(str(caught.value)) < 4000, str(caught.value)[:200]


# One wrong argument after the other


WRONG = [*THINGS, 1 << 40, 1 << 63]
GREEDY = ScriptedPolicy("greedy")
TURN = decisions_at(TINY, BatchEnv(TINY, 4).states)


def env() -> CardEnv:
    made = CardEnv(TINY)
    made.reset(seed=1)
    return made


RECORD = play_randomly(env(), 1).record()
SMALL = [np.zeros((2, 3), np.float32), np.zeros((1, 2), np.float32)]

# Calls with all that they need; each argument is then replaced by one wrong value after the other.
CALLS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "play_pairs": (play_pairs, {"game": TINY, "first": GREEDY, "second": GREEDY, "pairs": 1, "seed": 0}),
    "survey": (survey, {"game": TINY, "policy": GREEDY, "episodes": 1, "seed": 0}),
    "draw": (draw, {"game": TINY, "view": env().view("player_0"), "tall": False}),
    "replay": (replay, {"record": RECORD, "num_moves": 1}),
    "verify": (verify, {"record": RECORD}),
    "decisions_at": (decisions_at, {"game": TINY, "states": BatchEnv(TINY, 4).states}),
    "Turn": (Decisions, {"game": TINY, "states": BatchEnv(TINY, 4).states, "obs": TURN.obs, "mask": TURN.mask,
                    "seat": TURN.seat}),
    "Turn.at": (TURN.at, {"rows": np.array([0])}),
    "Turn.check": (TURN.check, {"actions": TURN.mask.argmax(axis=1), "who": "me"}),
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
def test_one_wrong_argument_is_named_and_takes_no_gigabytes(door: str) -> None:
    call, good = CALLS[door]
    resource = pytest.importorskip("resource", reason="Windows does not tell")
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
