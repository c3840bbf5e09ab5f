"""Policies: what is adapted, what those made of others hand on, and that nothing remembered changes a result."""

from __future__ import annotations

import copy
import json
import math
import pickle
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compare.contests import Contest, Part, join
from card_envs.compare.games import GamePlan, play_games
from card_envs.compare.pairs import play_pairs
from card_envs.compare.survey import survey
from card_envs.engine.batch import BatchEnv
from card_envs.engine.legality import IllegalMove
from card_envs.envs.aec import env_with
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import OpponentPool, load_opponent, opponent_names
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import (
    ActionValues,
    Decisions,
    Opponent,
    Policy,
    PolicyError,
    PolicyLike,
    as_policy,
    decisions_at,
    hide_seed,
    sample,
    spawn,
)
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.scaffold.high_card import GAME as TINY
from card_envs.system.files import write_json
from tests.conftest import observed_in_full, play_randomly, positions, short_options, some, table_of


def searches_of(opponent: Opponent) -> list[SearchPolicy]:
    """Those that decide; not those that other searches ask."""
    parts = opponent.policy.parts()
    return [part for part in parts if isinstance(part, SearchPolicy)]


class Bounded:
    """A user's policy with all that is optional; notes what it was asked."""

    def __init__(self, game: Game) -> None:
        self.asked: list[Any] = []

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return decisions.mask.argmax(axis=1)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        return np.full(decisions.mask.shape, 0.5, np.float32)

    def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues:
        self.asked.append("evaluate")
        values = np.zeros(decisions.mask.shape)
        return ActionValues(values, values, np.ones(values.shape, np.int64), decisions.mask.argmax(axis=1))

    def act_and_evaluate(
        self, decisions: Decisions, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], ActionValues | None]:
        self.asked.append("both")
        return self.act(decisions, rng), None

    def within(self, seconds: float, threads: int) -> Bounded:
        self.asked.append((seconds, threads))
        return self

    def reset(self) -> None:
        self.asked.append("reset")


class Acts:
    """As little as there must be."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return last_legal(decisions, rng)


def last_legal(decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
    """A function that is a policy."""
    return decisions.mask.shape[1] - 1 - decisions.mask[:, ::-1].argmax(axis=1)


def makes_last_legal(game: Game, *more: Any, kind: str = "last") -> PolicyLike:
    """A function that returns one."""
    return last_legal


def test_what_is_optional_is_handed_on() -> None:
    own, plain = Bounded(TINY), ScriptedPolicy("greedy")
    adapted = as_policy(own, "own")
    made = Opponent("mine", TINY, PhasedPolicy(range(1), adapted, plain))
    bounded = made.within(0.5, 2)
    bounded.reset()
    assert own.asked == [(0.5, 2), "reset"] and plain.within(1.0) is plain
    decisions, rng = decisions_at(TINY, some(positions(TINY), 20)), np.random.default_rng(0)
    assert plain.evaluate(decisions, rng) is None and plain.act_and_evaluate(decisions, rng)[1] is None
    again = adapted.within(1.0)
    assert again.evaluate(decisions, rng) is not None and again.act_and_evaluate(decisions, rng)[1] is None
    assert again.name == "Bounded" and "Bounded object" in repr(again) and (again.probabilities(decisions) == 0.5).all()
    assert own.asked[2:] == [(1.0, 1), "evaluate", "both"]


def test_a_player_of_two_has_the_values_of_the_one_that_decides() -> None:
    decisions = decisions_at(TINY, some(positions(TINY), 20))
    search, greedy = SearchPolicy(TINY, 4, threads=1), ScriptedPolicy("greedy")
    chosen, values = search.act_and_evaluate(decisions, np.random.default_rng(0))
    assert values is not None
    searching = PhasedPolicy(range(TINY.rules.NUM_ACTIONS), search, greedy)
    played, estimates = searching.act_and_evaluate(decisions, np.random.default_rng(0))
    assert np.array_equal(played, chosen)
    for of_both in (estimates, searching.evaluate(decisions, np.random.default_rng(0))):
        assert of_both is not None and np.array_equal(of_both.chosen, values.chosen)
    scripted = PhasedPolicy(range(0), search, greedy)
    played, estimates = scripted.act_and_evaluate(decisions, np.random.default_rng(0))
    assert np.array_equal(played, decisions.bot_moves("greedy"))
    assert estimates is None and scripted.evaluate(decisions, np.random.default_rng(0)) is None


@pytest.mark.parametrize("given", [Acts(TINY), last_legal])
def test_users_policies_are_adapted_where_they_enter(given: PolicyLike) -> None:
    """An object with `act` alone, and a function; the rest are defaults."""
    decisions, name = decisions_at(TINY, some(positions(TINY), 20)), getattr(given, "__name__", type(given).__name__)
    expected = last_legal(decisions, np.random.default_rng(0))
    pool = OpponentPool(TINY, [given])
    pool.add(given)
    for policy in (as_policy(given, "it"), *(member.policy for member in pool.members)):
        assert np.array_equal(policy.act(decisions, np.random.default_rng(1)), expected)
        assert np.array_equal(policy.probabilities(decisions), np.eye(decisions.mask.shape[1])[expected])
        assert policy.evaluate(decisions, np.random.default_rng(1)) is None and policy.parts() == (policy,)
    assert [member.name for member in pool.members] == [name, "snapshot-1"]
    single, vector = SingleSeatEnv(TINY.name, given), VectorSeatEnv(TINY.name, 3, [given])
    single.reset(seed=1)
    vector.reset(seed=1)
    vector.step(vector.action_masks().argmax(axis=1))
    margins = play_pairs(TINY, given, given, 4).margins
    assert not margins.any() and survey(TINY, given, 4).episodes == 4
    search = SearchPolicy(TINY, 4, prior=as_policy(given, "prior"))
    assert search.act(decisions, np.random.default_rng(0)).shape == (20,) and name in repr(search)


@pytest.mark.parametrize("name", ["Acts", "last_legal", "makes_last_legal"])
def test_users_policies_have_names(name: str) -> None:
    opponent = load_opponent(f"{__name__}:{name}", TINY)
    decisions = decisions_at(TINY, some(positions(TINY), 5))
    assert np.array_equal(
        opponent.act(decisions, np.random.default_rng(0)), last_legal(decisions, np.random.default_rng(0))
    )
    assert opponent.policy.name == opponent.name == f"{__name__}:{name}"
    for same in (pickle.loads(pickle.dumps(opponent)), copy.deepcopy(opponent)):
        assert same.name == opponent.name and len(same.policy.act(decisions, np.random.default_rng(0))) == 5


class Called(RandomPolicy):
    """A user's own that sets its name."""

    def __init__(self) -> None:
        self.name = "me"


def test_a_policy_may_name_itself() -> None:
    own = Called()
    opponent = Opponent("you", TINY, own)
    assert (own.name, opponent.policy.name, Opponent("me", TINY, own).policy) == ("me", "you", own)
    assert opponent.within(1.0).policy.name == "you" and own.name == "me"


class Forbidden:
    """Its actions are illegal."""

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return decisions.mask.argmin(axis=1)


class Mixed(Forbidden, Policy):
    """It inherits what it plays from a class that is not a policy."""


def test_answers_are_checked_wherever_they_are_from() -> None:
    """From a class, or one beside it; also in a direct call."""
    decisions, rng = decisions_at(TINY, some(positions(TINY), 20)), np.random.default_rng(0)
    with pytest.raises(IllegalMove, match="policy Mixed at"):
        Mixed().act(decisions, rng)
    for own in (Forbidden(), Mixed()):
        with pytest.raises(IllegalMove, match="policy mine at"):
            Opponent("mine", TINY, own).act(decisions, rng)  # type: ignore[arg-type]


def test_evaluate_of_an_opponent_is_rank_moves() -> None:
    """With a warning."""
    env = env_with(TINY, {})
    env.reset(seed=1)
    view, opponent = env.view(env.agent_selection), load_opponent("greedy", TINY)
    with pytest.warns(DeprecationWarning, match="rank_moves"):
        assert opponent.evaluate(view) == opponent.rank_moves(view)


@pytest.mark.parametrize("given", [Acts, "greedy", None, 3, object()])
def test_what_is_no_policy_is_refused(given: Any) -> None:
    for use in (
        lambda: as_policy(given, "it"),
        lambda: Opponent("it", TINY, given),
        lambda: PhasedPolicy(range(1), given, given),
    ):
        with pytest.raises(ValueError, match="expected a Policy, or another object with act, got"):
            use()
    with pytest.raises(ValueError, match=r"first: expected a Policy, .* or what TorchPolicy takes|unknown opponent"):
        play_pairs(TINY, "nobody" if given == "greedy" else given, "greedy", 1)


def test_a_failing_policy_is_named_with_the_position() -> None:
    """By the name that its opponent has, wherever it is asked."""

    def illegal(decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        forbidden = decisions.mask.argmin(axis=1)
        decisions.mask[:] = 1  # which is not believed
        return forbidden

    def broken(decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        raise KeyError("x")

    for given, error in ((illegal, IllegalMove), (broken, PolicyError)):
        own = Opponent("mine", TINY, as_policy(given, "it"))
        for use in (
            lambda own=own: play_pairs(TINY, own, own, 1),
            lambda own=own: SingleSeatEnv(TINY.name, own, seat=1).reset(seed=0),
            lambda own=own: VectorSeatEnv(TINY.name, 64, own, seat="random").reset(seed=0),
            lambda own=own: own.actions(BatchEnv(TINY, 2), np.random.default_rng(0)),
        ):
            with pytest.raises(error, match="policy mine") as found:
                use()
            assert '"hand"' in str(found.value)
    for answer in (None, [0.5] * 64, np.zeros(3, np.int64), ["a"] * 64):
        wrong: Any = lambda decisions, rng, answer=answer: answer  # noqa: E731
        own = Opponent("mine", TINY, as_policy(wrong, "it"))
        with pytest.raises(ValueError, match=r"policy mine: actions: expected \d+ whole numbers, got "):
            VectorSeatEnv(TINY.name, 64, own, seat="random").reset(seed=0)


def memories(policy: Policy) -> list[int]:
    """The plan caches of a policy and its parts."""
    return [id(part.plans) for part in policy.parts() if isinstance(part, (SearchPolicy, NTuplePolicy))]


def test_copies_within_a_time_share_no_memory(game: Game) -> None:
    """Tables of a server do not share what an opponent remembers."""
    names = ("search:4,moves=turn", "search:4,prior=search:2", *opponent_names(game))
    for name in names:
        policy = load_opponent(name, game).policy
        one, other = policy.within(1.0), policy.within(math.inf)
        found = [memories(policy), memories(one), memories(other)]
        assert len({len(each) for each in found}) == 1 and len({*chain(*found)}) == 3 * len(found[0]), name
        assert one.name == other.name == policy.name
    assert {name for name in names if memories(load_opponent(name, game).policy)} >= set(names[:2])


def test_every_search_keeps_to_its_time(game: Game) -> None:
    for name in opponent_names(game):
        bounded = load_opponent(name, game).within(0.01)
        assert all((one.seconds, one.threads) == (0.01, 1) for one in searches_of(bounded)), name
        assert len(searches_of(bounded)) == len(searches_of(load_opponent(name, game)))


@pytest.mark.mechanics
def test_every_preset_that_searches_gives_margins(game: Game) -> None:
    """With their errors, where more than one move is tried."""
    states = some(positions(game), 60)
    for name in game.presets:
        opponent = load_opponent(name, game).within(0.02)
        if not searches_of(opponent):
            continue
        found = 0
        for i in range(len(states)):
            state = states[i]
            advices = opponent.rank_moves(game.view.view(state, int(state.seat)))
            margins = [one for one in advices if one.margin is not None and one.margin == one.margin]
            assert not margins or advices[0].margin is not None
            found += bool(margins)
            if found > 3:
                break
        assert found > 3, name


@pytest.mark.mechanics
def test_an_opponent_moves_in_any_environment(game: Game) -> None:
    """As `act` chooses at the same decision; not where none is due, nor in another game."""
    opponent = load_opponent("greedy", game)
    env, batch = env_with(game, short_options(game)), BatchEnv(game, 5, seed=1)
    with pytest.raises(ValueError, match="no decision is due"):
        opponent.move(env, np.random.default_rng(0))
    env.reset(seed=1)
    while env.agents:
        if env.terminations[env.agent_selection]:
            env.step(None)
            continue
        action = opponent.move(env, np.random.default_rng(0))
        assert action == opponent.act(decisions_at(game, env.states), np.random.default_rng(0))[0]
        env.step(action)
    with pytest.raises(ValueError, match="no decision is due"):
        opponent.move(env, np.random.default_rng(0))
    expected = np.zeros(5, np.int64)
    batch.bot_actions("greedy", expected)
    assert np.array_equal(opponent.actions(batch, np.random.default_rng(0)), expected)
    other = next(one for one in (TINY, *GAMES.values()) if one.name != game.name)
    with pytest.raises(ValueError, match=f"plays {game.name}, not {other.name}"):
        opponent.move(BatchEnv(other, 1), np.random.default_rng(0))
    with pytest.raises(ValueError, match="one table, got 5"):
        opponent.move(batch, np.random.default_rng(0))


@pytest.mark.mechanics
def test_parts_do_not_depend_on_those_before(game: Game) -> None:
    options, size = ({}, 20) if game.is_solitaire else (short_options(game), 3)

    def played(policy: Policy, part: NDArray[np.int64]) -> Part:
        return Contest(game, (policy, "greedy"), 3, tuple(options.items())).play(part)

    parts = [np.arange(k * size, (k + 1) * size) for k in range(2)]
    one = load_opponent("search:1,moves=turn", game).policy
    shared = join([played(one, part) for part in parts])
    alone = join([played(load_opponent("search:1,moves=turn", game).policy, part) for part in parts])
    assert np.array_equal(shared.margins, alone.margins) and np.array_equal(shared.decisions, alone.decisions)


@pytest.mark.mechanics
def test_episodes_do_not_depend_on_those_before(game: Game) -> None:
    if game.is_solitaire:
        pytest.skip("nobody else plays")
    env = VectorSeatEnv(game.name, 4, opponents="search:1,moves=turn", **short_options(game))
    seen = []
    for _ in range(2):
        obs, info = env.reset(seed=5)
        for _ in range(6):
            obs, *_, info = env.step(info["action_mask"].argmax(axis=1))
        seen.append(obs)
    assert np.array_equal(seen[0], seen[1])


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


def test_seeded_numbers_are_those_they_were() -> None:
    """Return what comparisons drew before generators hid their seeds."""
    policy = Nosy()
    play_games(GamePlan(TINY, [policy], 5), np.arange(4))
    source = np.random.default_rng([5, 0])
    source.integers(0, 1 << 64, 4, np.uint64)
    assert policy.seen[0][1]["state"] == source.bit_generator.state["state"]


class Fails(RandomPolicy):
    def __init__(self, game: Game) -> None:
        pass

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        raise KeyError("my own mistake")

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        raise KeyError("my own mistake")


def test_exceptions_of_policies_say_where_they_come_from() -> None:
    """With the line of the user's code, also when a worker sends them, and of parts of others."""
    table = table_of(TINY, {}, 1)
    name = f"{__name__}:Fails"
    for policy, shown in ((Fails(TINY), "Fails"), (load_opponent(name, TINY), name)):
        with pytest.raises(PolicyError) as caught:
            play_pairs(TINY, policy, "greedy", 8)
        message = str(caught.value)
        assert message.startswith(f"high_card: policy {shown}: KeyError: 'my own mistake' (")
        assert "test_policy.py, line " in message and ", in act) at {" in message and '"seat"' in message
        assert isinstance(caught.value.__cause__, KeyError) and len(message) < 1000
        assert str(pickle.loads(pickle.dumps(caught.value))) == message
    half = PhasedPolicy(range(TINY.rules.NUM_ACTIONS), Fails(TINY), RandomPolicy())
    for ask in (
        lambda: load_opponent(name, TINY).rank_moves(TINY.view.view(table.state, table.seat)),
        lambda: play_pairs(TINY, half, RandomPolicy(), 8),
    ):
        with pytest.raises(PolicyError, match="my own mistake"):
            ask()


def test_policies_are_never_handed_the_true_state(game: Game) -> None:
    """Whatever a Turn shows in public is known to the seat: hidden cards lie otherwise in its worlds."""
    states = positions(game)[:256]
    decisions = decisions_at(game, states)
    public = {name for name in dir(decisions) if not name.startswith("_")}
    checks = {"check", "failure"}
    assert public == {"game", "obs", "mask", "seat", "at", "copy", "worlds", "bot_moves"} | checks
    assert len(decisions) == 256
    worlds = decisions.worlds(np.random.default_rng(0), 3)
    assert worlds.shape == (256, 3) and worlds.dtype == game.rules.STATE
    seats = decisions.seat
    truth = observed_in_full(game, states, seats)
    for k in range(3):
        column = worlds[:, k].copy()
        seen = decisions_at(game, column)
        assert np.array_equal(seen.obs, decisions.obs) and np.array_equal(seen.mask, decisions.mask)
        assert (observed_in_full(game, column, seats) != truth).any(axis=1).mean() > 0.5
    again = decisions.worlds(np.random.default_rng(0), 3)
    assert np.array_equal(again["rng"], worlds["rng"])
    worlds["seat"] = 77  # a policy may do with its worlds what it likes
    assert np.array_equal(states["seat"], seats)


def test_samples_are_drawn_with_their_probabilities() -> None:
    rng = np.random.default_rng(3)
    probabilities = np.tile(np.array([0, 0.5, 0, 0.2, 0.3, 0], np.float32), (50_000, 1))
    counts = np.bincount(sample(probabilities, rng), minlength=6) / 50_000
    assert counts[[0, 2, 5]].tolist() == [0, 0, 0]
    assert np.abs(counts - probabilities[0]).max() < 0.012  # five standard deviations
    tiny = np.zeros((4, 3), np.float32)
    tiny[:, 1] = 1e-30
    assert sample(tiny, rng).tolist() == [1, 1, 1, 1]


@pytest.mark.mechanics
def test_no_advice_out_of_turn(game: Game) -> None:
    env = env_with(game, short_options(game))
    env.reset(seed=1)
    opponent = load_opponent("greedy", game)
    for agent in env.possible_agents:
        if agent != env.agent_selection:
            with pytest.raises(ValueError, match="turn"):
                opponent.advise(env.view(agent))
    with pytest.raises(ValueError, match="view"):
        opponent.advise({})
    play_randomly(env, 1)
    for agent in env.possible_agents:
        with pytest.raises(ValueError, match="view"):
            opponent.advise(env.view(agent))


@pytest.mark.mechanics
def test_where_nothing_is_tried_nothing_is_estimated(game: Game, tmp_path: Path) -> None:
    """As where a search has one candidate; and JSON has no numbers that are none."""

    class Untried(Policy):
        def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
            return np.argmax(decisions.mask, axis=1)

        def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues:
            nothing = np.full(decisions.mask.shape, np.nan)
            worlds = np.zeros(nothing.shape, np.int64)
            return ActionValues(nothing, nothing, worlds, np.argmax(decisions.mask, axis=1))

    state = positions(game)[decisions_at(game, positions(game)).mask.sum(axis=1, dtype=int).argmax()]
    view = game.view.view(state, int(state["seat"]))
    found = Opponent("untried", game, Untried()).rank_moves(view)
    assert [one.probability for one in found] == [1.0] + [0.0] * (len(found) - 1)
    assert {one.move for one in found} == set(view["legal"]) and all(one.margin is None for one in found)
    assert Opponent("untried", game, Untried()).advise(view)[0] == (found[0].move, 1.0)
    write_json(tmp_path / "figures.json", {"a": [float("nan"), (float("inf"), 1.5)]})
    assert json.loads((tmp_path / "figures.json").read_text()) == {"a": [None, [None, 1.5]]}
