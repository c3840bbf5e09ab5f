"""Search: the same worlds for all actions, nothing but what the seat knows, any parts together, and stronger than
`greedy`."""

from __future__ import annotations

import copy
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from card_envs import load_opponent
from card_envs.__main__ import app
from card_envs.compare.pairs import play_pairs
from card_envs.compiling import specialize
from card_envs.engine import kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.rng import GOLDEN_RATIO, hash_each
from card_envs.engine.table import Table
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.policies import AfterstatePolicy, LookaheadPolicy, NetworkPolicy
from card_envs.opponents.policy import ActionValues, Decisions, Opponent, Policy, decisions_at
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy
from card_envs.opponents.search import SearchPolicy
from card_envs.opponents.search import _workers as workers
from card_envs.opponents.search._budget import FIRST_BATCH, LONGER
from card_envs.opponents.search._decide import SearchResults
from card_envs.opponents.search._settings import Moves
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import games_under_test, positions, redealt, some, untrained

HIDDEN = [16, 8]


def part(game: Game, kind: str) -> Policy | None:
    """Return a part of a search; networks have learned nothing."""
    match kind:
        case "none":
            return None
        case "scripted":
            return ScriptedPolicy("greedy")
        case "random":
            return RandomPolicy()
        case "network":
            return untrained(game, NetworkPolicy, HIDDEN)
        case "afterstate":
            return Opponent("wrapped", game, untrained(game, AfterstatePolicy, HIDDEN)).policy
        case "lookahead":
            return untrained(game, LookaheadPolicy, HIDDEN)
        case _:
            policy = untrained(game, NTuplePolicy, HIDDEN)
            policy.max_positions = SearchPolicy.rollout_positions
            return policy


ALL_POSITIONS = 8192  # that a player can reach in the positions of a test


def assert_same(one: SearchResults, other: SearchResults) -> None:
    """Assert that two searches found the same, bit for bit."""
    assert one.moves == other.moves
    for array, same in zip(one[:3], other[:3]):
        np.testing.assert_array_equal(array, same)  # type: ignore[arg-type]
    for array, same in zip(one.stats, other.stats):
        np.testing.assert_array_equal(array, same)


def assert_legal(decisions: Decisions, found: SearchResults) -> None:
    """Assert that what is played is legal, and tried unless it is all that there is to play."""
    rows = np.arange(len(decisions))
    assert decisions.mask[rows, found.chosen].all() and decisions.mask[rows, found.baselines].all()
    assert not found.stats.worlds[decisions.mask == 0].any()
    tried = found.stats.worlds.any(axis=1)
    assert tried.any() and (found.stats.worlds[rows, found.chosen] > 0)[tried].all()
    assert np.array_equal(np.isfinite(found.expected), tried)
    assert np.array_equal(found.chosen[~tried], found.baselines[~tried])


def widest(game: Game, number: int) -> Decisions:
    """Return decisions that are among those with the most actions."""
    decisions = decisions_at(game, positions(game))
    return decisions.at(np.argsort(-decisions.mask.sum(axis=1, dtype=int), kind="stable")[:number])


# Threads and workers


@pytest.mark.parametrize("moves", get_args(Moves))
def test_moves_are_legal_and_the_same_for_any_number_of_threads(game: Game, moves: Moves) -> None:
    """Three threads share twelve decisions."""
    decisions = decisions_at(game, some(positions(game), 4 * workers.MANY))
    one, three = (
        SearchPolicy(game, 4, moves=moves, threads=threads).search(decisions, np.random.default_rng(5))
        for threads in (1, 4)
    )
    assert_same(one, three)
    assert_legal(decisions, one)


@pytest.mark.mechanics
@pytest.mark.parametrize("moves", get_args(Moves))
def test_threads_that_share_the_worlds_of_a_decision_change_no_bit(game: Game, moves: Moves) -> None:
    """The first batch of this many worlds takes long enough for the next ones to be shared among threads."""
    decisions = widest(game, 2)
    one, other = (
        SearchPolicy(game, 400, moves=moves, threads=threads).search(decisions, np.random.default_rng(5))
        for threads in (1, 3)
    )
    assert_same(one, other)
    assert one.stats.worlds.max() > FIRST_BATCH


@pytest.mark.parametrize("moves", get_args(Moves))
@pytest.mark.mechanics
def test_copies_and_forked_children_search_alike(game: Game, moves: Moves) -> None:
    """Also after it has searched, with other worlds and in two threads, which a child does not have."""
    decisions = decisions_at(game, some(positions(game), 12))
    search = SearchPolicy(game, 8, moves=moves, threads=2)
    first = search.search(decisions, np.random.default_rng(1))
    search.search(decisions, np.random.default_rng(2))
    for other in (search, pickle.loads(pickle.dumps(search)), copy.deepcopy(search), search.within(1e6, 2)):
        assert_same(first, other.search(decisions, np.random.default_rng(1)))
    if hasattr(os, "fork"):
        with ProcessPoolExecutor(1, get_context("fork"), _take, (search,)) as children:
            assert_same(first, children.submit(_search_in_child, decisions, 1).result(60))


_taken: list[SearchPolicy] = []  # by a forked child, as it was: not pickled


def _take(search: SearchPolicy) -> None:
    _taken.append(search)


def _search_in_child(decisions: Decisions, seed: int) -> SearchResults:
    return _taken[0].search(decisions, np.random.default_rng(seed))


def test_an_interrupted_search_begins_again() -> None:
    """Wherever it was interrupted; the next decision is as without."""
    decisions = decisions_at(HIGH_CARD, some(positions(HIGH_CARD), 2))
    search = SearchPolicy(HIGH_CARD, 32, seconds=1e6, threads=1)
    expected = search.search(decisions, np.random.default_rng(1))
    interrupted = 0
    for calls in range(1, 10**6, 7):
        try:
            with interrupt_after(calls):
                search.search(decisions, np.random.default_rng(2))
        except KeyboardInterrupt:
            interrupted += 1
        else:
            break
        assert_same(expected, search.search(decisions, np.random.default_rng(1)))
    assert interrupted > 20


@contextmanager
def interrupt_after(calls: int) -> Iterator[None]:
    """Press Ctrl-C, as it were, after that many calls and returns of functions."""
    left = calls

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("moves", get_args(Moves))
@pytest.mark.mechanics
def test_a_search_may_be_used_from_two_threads_at_once(game: Game, moves: Moves) -> None:
    search = SearchPolicy(game, 64, moves=moves, threads=2)
    batches = [decisions_at(game, some(positions(game), 40, seed)) for seed in range(8)]
    expected = [search.search(decisions, np.random.default_rng(seed)) for seed, decisions in enumerate(batches)]
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(lambda seed: search.search(batches[seed], np.random.default_rng(seed)), range(8))
        for one, other in zip(expected, found, strict=True):
            assert_same(one, other)


# Budget


@pytest.mark.mechanics
def test_dropped_actions_are_compared_in_the_worlds_in_which_they_were_tried(game: Game) -> None:
    """An advantage is the same whether the baseline went on to more worlds or not."""
    decisions = decisions_at(game, some(positions(game), 40, seed=2))
    policies = [SearchPolicy(game, worlds, threads=1, refine_steps=16) for worlds in (8, 64)]
    few, many = (policy.evaluate(decisions, np.random.default_rng(9)) for policy in policies)
    same = (few.worlds == many.worlds) & (few.worlds > 0)
    assert same.any() and (few.worlds != many.worlds).any()
    np.testing.assert_array_equal(few.advantages[same], many.advantages[same])
    baseline = np.eye(decisions.mask.shape[1], dtype=bool)[decisions.bot_moves("greedy")]
    assert (many.advantages[baseline & (many.worlds > 0)] == 0).all()
    tried = many.worlds > 0
    expected = np.repeat(many.means[baseline][:, None], baseline.shape[1], axis=1) + many.advantages
    np.testing.assert_allclose(many.means[tried], expected[tried])


@pytest.mark.parametrize("moves", get_args(Moves))
@pytest.mark.mechanics
def test_a_search_within_a_time(game: Game, moves: Moves) -> None:
    """With time enough it is the search in all worlds; with next to none, one in the worlds of the first stage."""
    decisions = decisions_at(game, some(positions(game), 40, seed=4))
    whole = SearchPolicy(game, 32, moves=moves, threads=1).search(decisions, np.random.default_rng(1))
    patient = SearchPolicy(game, 32, seconds=1e6, moves=moves, threads=1).search(decisions, np.random.default_rng(1))
    assert_same(whole, patient)
    assert whole.stats.worlds.max() > FIRST_BATCH
    hasty = SearchPolicy(game, seconds=1e-9, moves=moves).search(decisions, np.random.default_rng(1))
    assert 0 < hasty.stats.worlds.max() <= FIRST_BATCH
    assert_legal(decisions, hasty)
    longer = load_opponent(f"search:5ms,moves={moves}", game).policy
    assert isinstance(longer, SearchPolicy) and longer.seconds == 0.005
    assert_legal(decisions, longer.search(decisions, np.random.default_rng(1)))


def test_a_search_within_a_time_is_the_same_search() -> None:
    prior, rollout = part(HIGH_CARD, "lookahead"), part(HIGH_CARD, "afterstate")
    search = SearchPolicy(HIGH_CARD, 7, moves="turn", prior=prior, rollout=rollout, arms=9, threads=1)
    bounded = search.within(0.5, 3)
    assert (bounded.seconds, bounded.threads) == (0.5, 3)
    for name in ("worlds", "moves", "prior", "rollout", "leaf", "leaf_after", "leaf_playout", "arms"):
        assert getattr(bounded, name) == getattr(search, name), name
    assert bounded.within(0.7).seconds == 0.5 and bounded.within(0.3).seconds == 0.3


@pytest.mark.mechanics
@pytest.mark.parametrize("moves", get_args(Moves))
def test_arms_that_fall_behind_get_fewer_worlds(game: Game, moves: Moves) -> None:
    decisions = widest(game, 1)
    num_legal = int(decisions.mask.sum(dtype=int))
    policy = SearchPolicy(game, 32, moves=moves)
    worlds = policy.evaluate(decisions, np.random.default_rng(8)).worlds[0]
    if moves == "single":
        assert (worlds > 0).sum() == num_legal
    if num_legal > 3:
        assert worlds.max() > worlds[worlds > 0].min()
    assert worlds[policy.act(decisions, np.random.default_rng(8))[0]] == worlds.max() <= 32 * LONGER


# What a search knows and finds


@pytest.mark.parametrize("moves", get_args(Moves))
def test_search_knows_no_more_than_its_seat(game: Game, moves: Moves) -> None:
    states = some(positions(game), 12, seed=1)
    one, other = (
        SearchPolicy(game, 8, moves=moves).search(decisions_at(game, worlds), np.random.default_rng(6))
        for worlds in (states, redealt(game, states, states["seat"].copy(), 3))
    )
    assert_same(one, other)


@pytest.mark.parametrize(
    ("moves", "prior", "rollout"), [("turn", "lookahead", "afterstate"), ("single", "network", "lookahead")]
)
@pytest.mark.mechanics
def test_parts_know_no_more_than_their_seat(game: Game, moves: Moves, prior: str, rollout: str) -> None:
    states = some(positions(game), 6, seed=1)
    one, other = (
        SearchPolicy(game, 8, moves=moves, prior=part(game, prior), rollout=part(game, rollout)).search(
            decisions_at(game, worlds), np.random.default_rng(6)
        )
        for worlds in (states, redealt(game, states, states["seat"].copy(), 3))
    )
    assert_same(one, other)


def by_hand(game: Game, decisions: Decisions, player: Policy) -> dict[int, list[float]]:
    """Play each action of one decision out in its four worlds, move by move on single tables; return the results."""
    rng = np.random.default_rng(7)
    base, seat = decisions.worlds(rng, 1)[0, 0], int(decisions.seat[0])
    key = rng.integers(0, 1 << 64, 1, np.uint64)
    score_margin = getattr(game.rules.score_margin, "py_func", game.rules.score_margin)
    results: dict[int, list[float]] = {int(action): [] for action in np.flatnonzero(decisions.mask[0])}
    for number in range(LONGER):
        world = Table(game, base)
        stream = hash_each(key + np.full(1, number + 1, np.uint64) * GOLDEN_RATIO)
        specialize(kernels.determinize_tables, game)(0, 1, world.states, decisions.seat, stream)
        for action, gained in results.items():
            table = world.copy()
            table.play(action)
            while not table.needs_deal:
                asked = player if game.sides[table.seat] == game.sides[seat] else ScriptedPolicy("greedy")
                table.play(int(asked.act(decisions_at(game, table.states), rng)[0]))
            gained.append(score_margin(table.state, seat))
    return results


def assert_means_by_hand(game: Game, player: Policy, search: SearchPolicy) -> None:
    """With two legal actions both see all worlds before they are judged."""
    decisions = decisions_at(game, positions(game))
    decisions = decisions.at(np.flatnonzero(decisions.mask.sum(axis=1, dtype=int) == 2)[:1])
    found = search.evaluate(decisions, np.random.default_rng(7))
    results = by_hand(game, decisions, player)
    baseline = int(player.act(decisions, np.random.default_rng(0))[0])
    for action, gained in results.items():
        assert found.worlds[0, action] == LONGER
        for found_means, values in (
            (found.means, gained),
            (found.advantages, np.subtract(gained, results[baseline])),
        ):
            assert found_means[0, action] == pytest.approx(np.mean(values), rel=1e-4, abs=0.02)


@pytest.mark.mechanics
def test_means_are_those_of_playouts_in_the_worlds_drawn(game: Game) -> None:
    assert_means_by_hand(game, ScriptedPolicy("greedy"), SearchPolicy(game, 1))


PLAYING_ON = [
    *(pytest.param(HIGH_CARD, kind) for kind in ("scripted", "afterstate", "lookahead")),
    pytest.param(get_game("russian_bank"), "ntuple"),
    pytest.param(get_game("back_alley"), "lookahead", marks=pytest.mark.slow),
    pytest.param(get_game("big_ben"), "afterstate", marks=pytest.mark.slow),
    pytest.param(get_game("big_ben"), "ntuple", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("game", "kind"), PLAYING_ON, ids=lambda value: getattr(value, "name", value))
def test_means_are_those_of_playouts_by_the_policy_that_plays_on(game: Game, kind: str) -> None:
    player = part(game, kind)
    assert player is not None
    if isinstance(player, NTuplePolicy):  # it remembers plans in all worlds at once: no difference where it values all
        player.max_positions = ALL_POSITIONS
    assert_means_by_hand(game, player, SearchPolicy(game, 1, rollout=player, rollout_positions=ALL_POSITIONS))


@pytest.mark.parametrize("game", [game for game in games_under_test() if game.is_solitaire], ids=lambda game: game.name)
def test_search_wins_more_than_the_player_that_it_asks(game: Game) -> None:
    result = play_pairs(game, load_opponent("search:16", game), load_opponent("greedy", game), 100, 3)
    assert result.margin_per_episode.low > 0


@pytest.mark.mechanics
def test_advice_from_a_view(game: Game, tmp_path: Path) -> None:
    state = positions(game)[decisions_at(game, positions(game)).mask.sum(axis=1, dtype=int).argmax()]
    view = game.view.view(state, int(state["seat"]))
    advices = load_opponent("search:8", game).rank_moves(view)
    assert sorted(one.move for one in advices) == sorted(view["legal"])
    assert all(one.margin is not None for one in advices)
    assert [one.probability for one in advices] == [1.0] + [0.0] * (len(advices) - 1)
    best = advices[0]
    assert best.difference == 0 and not best.dropped
    for one in advices:
        assert one.difference is not None and one.advantage is not None and best.advantage is not None
        assert one.difference == one.advantage - best.advantage and one.dropped == (one.worlds < best.worlds)
    order = [(one is not best, one.dropped, -one.worlds, -(one.difference or 0)) for one in advices]
    assert order == sorted(order)
    position = tmp_path / "position.json"
    position.write_text(json.dumps(view))
    out = tmp_path / "advice.json"
    command = ["advise", game.name, str(position), "--opponent", "search:8", "--json", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["moves"] == [one._asdict() for one in advices]
    heads = " ".join(result.output.split())
    assert "against" in heads and f"in {game.view.MARGIN_UNIT}" in heads
    greedy = CliRunner().invoke(app, [*command[:3], "--opponent", "greedy"])
    assert greedy.exit_code == 0 and "probability" in greedy.output


def test_differences_to_the_chosen_action() -> None:
    """By hand; to the baseline they are the advantages."""
    nan = np.nan
    values = ActionValues(
        means=np.array([[1.0, 3.0, 2.0, 3.0, nan]]),
        advantages=np.array([[0.0, 2.0, 1.0, 2.0, nan]]),
        worlds=np.array([[64, 64, 64, 64, 0]]),
        chosen=np.array([1]),
    )
    np.testing.assert_array_equal(values.differences, [[-2, 0, -1, 0, nan]])
    np.testing.assert_array_equal(replace(values, chosen=np.array([0])).differences, values.advantages)


@pytest.mark.mechanics
def test_search_plays_where_every_move_is_forced(game: Game) -> None:
    decisions = decisions_at(game, positions(game))
    decisions = decisions.at(np.flatnonzero(decisions.mask.sum(axis=1, dtype=int) == 1)[:50])
    if not len(decisions):
        pytest.skip("no move is ever forced")
    assert np.array_equal(SearchPolicy(game, 2).act(decisions, np.random.default_rng(0)), decisions.mask.argmax(axis=1))


# Parts


# Each prior and each rollout once, with both kinds of moves: every pair compiles a search of its own.
BY_GAME = [
    (HIGH_CARD, "single", "none", "none", "none"),
    (HIGH_CARD, "single", "scripted", "afterstate", "none"),
    (HIGH_CARD, "turn", "random", "scripted", "none"),
    (HIGH_CARD, "single", "network", "lookahead", "none"),
    (HIGH_CARD, "turn", "afterstate", "lookahead", "none"),
    (HIGH_CARD, "turn", "lookahead", "afterstate", "none"),
    pytest.param(get_game("big_ben"), "turn", "ntuple", "none", "ntuple", marks=pytest.mark.slow),  # as shipped
    (get_game("russian_bank"), "turn", "ntuple", "ntuple", "ntuple"),  # as shipped
    pytest.param(get_game("big_ben"), "single", "none", "ntuple", "none", marks=pytest.mark.slow),
    pytest.param(get_game("big_ben"), "turn", "scripted", "lookahead", "ntuple", marks=pytest.mark.slow),
    pytest.param(get_game("big_ben"), "single", "ntuple", "afterstate", "ntuple", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(
    ("game", "moves", "prior", "rollout", "leaf"), BY_GAME, ids=lambda value: getattr(value, "name", value)
)
def test_any_parts_go_together(game: Game, moves: Moves, prior: str, rollout: str, leaf: str) -> None:
    """Threads share the decisions of one batch, and what they do with two others."""
    parts: dict[str, Any] = {"prior": part(game, prior), "rollout": part(game, rollout)}
    if leaf != "none":
        parts |= {"leaf": part(game, leaf), "leaf_after": 3, "leaf_playout": 0.25}
    one, three = (SearchPolicy(game, 12, moves=moves, threads=threads, **parts) for threads in (1, 3))
    for decisions in (widest(game, 2), decisions_at(game, some(positions(game), 3 * workers.MANY, seed=3))):
        found = one.search(decisions, np.random.default_rng(5))
        assert_legal(decisions, found)
        assert found.stats.worlds.max() >= FIRST_BATCH
        assert_same(found, three.search(decisions, np.random.default_rng(5)))


@pytest.mark.parametrize("moves", get_args(Moves))
@pytest.mark.parametrize("kind", ["scripted", "network"])
@pytest.mark.mechanics
def test_a_prior_names_the_baseline_and_leaves_out_what_is_unlikely(game: Game, moves: Moves, kind: str) -> None:
    """One that is certain ranks no other actions: all are tried."""
    policy, decisions = part(game, kind), decisions_at(game, some(positions(game), 60, seed=5))
    if kind == "network":
        weights = dict(untrained(game, NetworkPolicy, HIDDEN).weights)
        weights[f"layer{len(HIDDEN)}.weight"] = 3 * weights[f"layer{len(HIDDEN)}.weight"]
        policy = NetworkPolicy(game, weights, sampled=True)
    assert policy is not None
    probabilities = policy.probabilities(decisions)
    assert kind == "scripted" or ((probabilities < 0.01) & (decisions.mask != 0)).any()
    found = SearchPolicy(game, 16, moves=moves, prior=policy).search(decisions, np.random.default_rng(1))
    assert np.array_equal(found.baselines, probabilities.argmax(axis=1))
    certain = probabilities.max(axis=1, keepdims=True) == 1
    tried = (decisions.mask != 0) & (certain | (probabilities >= 0.01))
    several = tried.sum(axis=1) > 1
    if moves == "turn":  # actions after which a seat can do the same are one candidate: none need be tried
        assert found.stats.worlds[several].any() and not found.stats.worlds[~tried].any()
    else:
        assert several.any() and np.array_equal(found.stats.worlds[several] > 0, tried[several])


# What can't be


OTHER = next(game for game in games_under_test() if game != HIGH_CARD)
NAMES = ("prior", "rollout", "leaf")
FOREIGN = Opponent("other", OTHER, RandomPolicy())
IN_PYTHON = (
    RandomPolicy(), ScriptedPolicy("trivial"), SearchPolicy(HIGH_CARD, 2), untrained(HIGH_CARD, NetworkPolicy, HIDDEN),
    untrained(HIGH_CARD, AfterstatePolicy, HIDDEN, sampled=True), untrained(HIGH_CARD, AfterstatePolicy, [8]),
)  # fmt: skip
NO_NUMBERS = {
    "seconds": (0, -1.0, float("nan"), float("inf"), "1"),
    "leaf_playout": (-0.1, 1.1, float("nan"), "1"),
    "worlds": (0, 1.5),
    "threads": (0, 1.5),
    "arms": (1, 1 << 20),
    "leaf_after": (0, 2.5),
}
MISFITS: list[tuple[dict[str, Any], str]] = [
    *(({name: "greedy"}, f"{name}: expected a Policy") for name in NAMES),
    *(({name: FOREIGN}, f"{name}: other plays {OTHER.name}, not") for name in NAMES),
    ({"leaf": RandomPolicy()}, "leaf: expected an n-tuple network, got RandomPolicy"),
    *(({"rollout": policy}, "rollout: expected greedy, an n-tuple network, or one of moves") for policy in IN_PYTHON),
    ({"leaf_after": 3}, "expected a leaf as well"),
    ({"leaf_playout": 0.5}, "expected a leaf as well"),
    ({"moves": "both"}, "moves: expected"),
    ({"worlds": 1 << 40}, "expected a number of worlds, or seconds"),
    ({"game": "x"}, "game: expected"),
    *(({name: wrong}, f"{name}: expected") for name, values in NO_NUMBERS.items() for wrong in values),
]


def test_parts_that_do_not_fit() -> None:
    for settings, said in MISFITS:
        arguments: dict[str, Any] = {"game": HIGH_CARD, "worlds": 4, **settings}
        with pytest.raises(ValueError, match=said):
            SearchPolicy(**arguments)


def test_a_network_that_fits_no_game_is_refused() -> None:
    policy = untrained(HIGH_CARD, LookaheadPolicy, HIDDEN)
    assert policy.network is not None
    policy.network = policy.network._replace(last=np.zeros(3, np.float32))
    decisions = decisions_at(HIGH_CARD, some(positions(HIGH_CARD), 2))
    search = SearchPolicy(HIGH_CARD, 8, prior=ScriptedPolicy("greedy"), rollout=policy)
    with pytest.raises(ValueError, match="network: last: expected"):
        search.act(decisions, np.random.default_rng(0))


class Misleading(ScriptedPolicy):
    """Guides a search as somebody wants."""

    def __init__(self, answer: Callable[[Decisions], Any]) -> None:
        super().__init__("greedy")
        self.answer = answer

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        answer: NDArray[np.float32] = self.answer(decisions)
        return answer


def forged(decisions: Decisions) -> Any:
    decisions.mask[:] = 1
    decisions.seat[:] = 9
    decisions.mask = np.ones((1, 1), np.int8)
    return np.full((len(decisions), decisions.game.rules.NUM_ACTIONS), 0.1, np.float32)


MISLEADING: list[Callable[[Decisions], Any]] = [
    lambda at: None, lambda at: at.mask, lambda at: np.ones((len(at) + 1, HIGH_CARD.rules.NUM_ACTIONS), np.float32),
    lambda at: 1 / 0, lambda at: np.full(at.mask.shape, np.nan, np.float32),
    lambda at: (1 - at.mask).astype(np.float32), forged,
]  # fmt: skip


def test_a_search_names_the_prior_that_misleads_it() -> None:
    decisions = decisions_at(HIGH_CARD, BatchEnv(HIGH_CARD, 8, 3).states)
    for answer in MISLEADING:
        search = SearchPolicy(HIGH_CARD, 16, threads=1, prior=Misleading(answer))
        with pytest.raises(ValueError, match="Misleading"):
            search.search(decisions, np.random.default_rng(0))


def test_a_search_does_not_believe_what_is_written_into_decisions() -> None:
    honest, forger = (decisions_at(HIGH_CARD, BatchEnv(HIGH_CARD, 8, 3).states) for _ in range(2))
    forger.mask[:] = 1
    forger.seat[:] = 9
    one, other = (
        SearchPolicy(HIGH_CARD, 16, threads=1).search(decisions, np.random.default_rng(0))
        for decisions in (honest, forger)
    )
    assert np.array_equal(one.chosen, other.chosen) and np.array_equal(one.stats.worlds, other.stats.worlds)
    with pytest.raises(ValueError, match=f"plays {OTHER.name}, not high_card"):
        SearchPolicy(OTHER, 4).act(honest, np.random.default_rng(0))
