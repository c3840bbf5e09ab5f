"""Opponent pools: who stays, who is drawn, what results do, and that environments draw and report once per episode."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.frontends.text import TextEnv
from card_envs.game import Game
from card_envs.opponents import OpponentPool, TorchPolicy, load_opponent
from card_envs.opponents.policy import Decisions, Opponent, decisions_at
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import positions, short_options, some

DRAWS = ("uniform", "recent", "hard", "close")


class Named(RandomPolicy):
    """A policy that counts its decisions and how often it was reset."""

    def __init__(self) -> None:
        self.decisions = self.resets = 0

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        self.decisions += len(decisions)
        return super().act(decisions, rng)

    def reset(self) -> None:
        self.resets += 1


def pool_of(number: int, game: Game = TINY, **settings: Any) -> OpponentPool:
    """A pool with that many snapshots."""
    pool = OpponentPool(game, size=number, **settings)
    for _ in range(number):
        pool.add("random")
    return pool


def numbers(pool: OpponentPool) -> list[int]:
    """The numbers of its snapshots."""
    return [int(member.name.removeprefix("snapshot-")) for member in pool.members]


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_snapshots_are_kept_evenly_over_time(size: int) -> None:
    pool = OpponentPool(TINY, size=size)
    for added in range(1, 200):
        pool.add("random")
        kept = numbers(pool)
        assert len(kept) == min(size, added) and kept[-1] == added and (size == 1 or kept[0] == 1)
        assert size < 3 or added <= size or np.diff(kept).max() < 2 * added / (size - 1), kept
        gaps = np.diff(kept[:-1])  # the last gap grows until the next one is dropped
        assert len(gaps) < 3 or gaps.max() <= 2 * gaps.min(), kept


def test_rivals_stay() -> None:
    pool = OpponentPool(TINY, ["greedy", own := Named()], size=2)
    for _ in range(10):
        pool.add("random")
    assert [member.name for member in pool.members] == ["greedy", "Named", "snapshot-1", "snapshot-10"]
    assert pool.members[1].policy is own and len(pool) == 4


def test_chances_follow_the_results() -> None:
    def chances(draw_by: Any, **settings: Any) -> list[float]:
        pool = OpponentPool(TINY, ["greedy"], draw_by=draw_by, **settings)
        for _ in range(5):
            pool.add("random")
        for name, won in (("greedy", 0.0), ("snapshot-1", 1.0), ("snapshot-5", 0.5)):
            pool.report(name, won)
        shares = [one.win_share for one in pool.figures()]
        assert shares == pytest.approx([1 / 4, 3 / 4, 1 / 2, 1 / 2, 1 / 2, 1 / 2])
        return (pool.chances() / pool.chances()[0]).tolist()

    assert chances("uniform") == [1] * 6
    assert chances("recent") == [1, 0, 0, 1, 1, 1]
    assert chances("hard") == pytest.approx([1, *(9 * np.array([1 / 4, 1 / 2, 1 / 2, 1 / 2, 1 / 2]) ** 2 * 16 / 81)])
    assert chances("hard", power=1) == pytest.approx([1, 1 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3])
    assert chances("close") == pytest.approx([1, 1, 4 / 3, 4 / 3, 4 / 3, 4 / 3])
    assert pool_of(1, draw_by="recent").chances().tolist() == [1]


@pytest.mark.parametrize("draw_by", DRAWS)
def test_draws_have_the_chances(draw_by: Any) -> None:
    pool = pool_of(4, draw_by=draw_by)
    pool.report("snapshot-2", 1.0)
    expected = pool.chances()
    drawn = Counter(pool.draw().name for _ in range(4000))
    found = np.array([drawn[member.name] for member in pool.members]) / 4000
    assert np.abs(found - expected).max() < 0.04  # five standard errors


def test_recent_episodes_count_more() -> None:
    pool = pool_of(1)
    for won in (1.0, 0.0):
        pool.report(pool.members[0], won)
    (found,) = pool.figures()
    assert found.win_share == pytest.approx((0.99 + 0.5) / (1.99 + 1)) and found.episodes == 2
    for _ in range(2000):
        pool.report("snapshot-1", 0.0)
    assert pool.figures()[0].win_share == pytest.approx(0.5 / 101, rel=1e-3)


def test_ratings_are_elos() -> None:
    pool = pool_of(1)
    pool.report("snapshot-1", True)
    assert pool.rating == 1008 and pool.figures()[0].rating == 992
    pool.report("snapshot-1", 0.0)
    expected = 1 / (1 + 10 ** (-16 / 400))
    assert pool.rating == pytest.approx(1008 - 16 * expected)
    late = pool.add("random")  # a snapshot is as strong as the learner; the old one is dropped
    assert [(one.name, one.rating) for one in pool.figures()] == [(late, pool.rating)]
    before = pool.rating
    pool.report("snapshot-1", 1.0)  # an episode that began before
    assert pool.rating > before


def test_ratings_find_the_difference() -> None:
    """Draws of a known win share lead to the difference that goes with it."""
    pool, rng, found = pool_of(1), np.random.default_rng(0), []
    for _ in range(4000):
        pool.report("snapshot-1", float(rng.random() < 10 / 11))
        found.append(pool.rating - pool.figures()[0].rating)
    assert np.mean(found[1000:]) == pytest.approx(400, abs=30)


@pytest.mark.parametrize("draw_by", DRAWS)
def test_same_seed_same_draws_and_pickling_goes_on(draw_by: Any) -> None:
    def drawn(pool: OpponentPool) -> list[str]:
        names = []
        for k in range(30):
            names.append(pool.draw().name)
            pool.report(names[-1], k % 2)
            if k % 5 == 0:
                pool.add("random")
        return names

    one, other, third = (pool_of(4, draw_by=draw_by, seed=seed) for seed in (3, 3, 4))
    assert drawn(one) == drawn(other) and drawn(third) != drawn(one)
    copied = pickle.loads(pickle.dumps(other))
    drawn(one)  # which was one round ahead
    assert drawn(copied) == drawn(other)


@pytest.mark.mechanics
def test_a_pool_of_names_can_be_pickled(game: Game) -> None:
    pool = OpponentPool(game, ["random", "trivial", "greedy"])
    decisions = decisions_at(game, some(positions(game), 20))
    copied: OpponentPool = pickle.loads(pickle.dumps(pool))
    for one, other in zip(pool.members, copied.members):
        moves, same = (member.act(decisions, np.random.default_rng(0)) for member in (one, other))
        assert np.array_equal(moves, same)


@pytest.mark.mechanics
def test_a_snapshot_stays_as_it_was(game: Game) -> None:
    torch = pytest.importorskip("torch")

    class Actor(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(game.rules.OBS_SIZE, game.rules.NUM_ACTIONS)

        def forward(self, observation: Any, action_mask: Any) -> Any:
            assert not self.training
            return self.layer(observation)

    learner = Actor()
    decisions = decisions_at(game, some(positions(game), 20))
    pool = OpponentPool(game)
    pool.add(learner)
    pool.add(TorchPolicy(learner))
    before = TorchPolicy(learner.eval()).probabilities(decisions)
    learner.train()
    with torch.no_grad():
        learner.layer.weight.mul_(-1)
    assert learner.training  # the learner's own mode is left alone
    for member in pool.members:
        assert np.array_equal(member.probabilities(decisions), before)
    assert not np.array_equal(TorchPolicy(learner.eval()).probabilities(decisions), before)


def test_what_does_not_fit_is_refused() -> None:
    made, wrong = OpponentPool, OpponentPool(TINY, ["greedy"])
    calls: list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any], str]] = [
        (made, (TINY,), {"size": 0}, "size: expected a whole number from 1"),
        (made, (TINY,), {"draw_by": "best"}, 'draw_by: expected "uniform", "recent", "hard" or "close"'),
        *(
            (made, (TINY,), {"power": power}, "power: expected a number from 0 to 100")
            for power in (-1, np.nan, "1", True)
        ),
        (made, (TINY, "greedy"), {}, "rivals: expected a list"),
        (made, (TINY, ["gredy"]), {}, "unknown opponent"),
        (made, (TINY, ["greedy", "greedy"]), {}, "different names, got 'greedy' again"),
        (made(TINY).draw, (), {}, "nobody to draw"),
        (wrong.add, (RandomPolicy,), {}, "expected a Policy"),
        (wrong.add, ([],), {}, "expected a Policy, or another object with act, or what TorchPolicy takes"),
        *((wrong.add, ("random", name), {}, "name: expected a text") for name in (1, "", b"x")),
        (wrong.report, ("trivial", 1.0), {}, "expected a member of the pool, got 'trivial'"),
        (wrong.report, ([], 1.0), {}, "expected a member of the pool, got"),
        *(
            (wrong.report, ("greedy", won), {}, "won: expected a number from 0 to 1")
            for won in (1.5, np.nan, "1", np.inf)
        ),
        (SingleSeatEnv(TINY.name, made(TINY)).reset, (), {}, "nobody to draw"),
        (VectorSeatEnv(TINY.name, 2, made(TINY)).reset, (), {}, "nobody to draw"),
    ]
    for call, arguments, named, message in calls:
        with pytest.raises(ValueError, match=message):
            call(*arguments, **named)


def test_a_pool_plays_one_game(games: list[Game]) -> None:
    other = next(game for game in games if game != TINY and game.rules.NUM_SEATS > 1)
    with pytest.raises(ValueError, match=f"the pool plays {TINY.name}, not {other.name}"):
        SingleSeatEnv(other.name, pool_of(1))
    with pytest.raises(ValueError, match=f"plays {other.name}, not {TINY.name}"):
        OpponentPool(TINY).add(load_opponent("greedy", other))


def two_sided(game: Game) -> None:
    if game.num_sides < 2:
        pytest.skip("nobody else plays")


@pytest.mark.mechanics
def test_single_seat_draws_and_reports_once_per_episode(game: Game) -> None:
    """All seats of the pool are played by the same member, and a win counts for the side with the higher score."""
    two_sided(game)
    rivals = [Opponent(name, game, Named()) for name in "abc"]
    pool = OpponentPool(game, rivals, seed=1)
    env = SingleSeatEnv(game.name, pool, seat="random", **short_options(game))
    rng = np.random.default_rng(0)
    for episode in range(1, 9):
        before = {rival.name: rival.policy.decisions for rival in rivals}  # type: ignore[attr-defined]
        shares = {one.name: one for one in pool.figures()}
        env.reset(seed=episode)
        over, margin = False, 0.0
        while not over:
            _, paid, over, _, _ = env.step(rng.choice(np.flatnonzero(env.action_masks())))
            margin += paid
        played = [rival.name for rival in rivals if rival.policy.decisions > before[rival.name]]  # type: ignore[attr-defined]
        (told,) = (one for one in pool.figures() if one.episodes > shares[one.name].episodes)
        assert played == [told.name]
        change = told.rating - shares[told.name].rating  # the member's falls if the learner wins
        assert np.sign(change) == -np.sign(margin) or margin == 0
        assert sum(one.episodes for one in pool.figures()) == episode
    assert sum(rival.policy.resets for rival in rivals) == 8  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", [SingleSeatEnv, VectorSeatEnv])
@pytest.mark.mechanics
def test_an_illegal_move_loses(make: Any, game: Game) -> None:
    two_sided(game)
    pool = OpponentPool(game, ["greedy"])
    env = make(game.name, opponents=pool, **short_options(game))
    _, info = env.reset(seed=0)
    wrong = np.asarray(info["action_mask"]).argmin(axis=-1)
    env.step(wrong if make is VectorSeatEnv else int(wrong))
    assert [(one.episodes, one.win_share) for one in pool.figures()] == [(1, 0.25)]


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
@pytest.mark.mechanics
def test_each_table_has_its_own_member(game: Game, mode: str) -> None:
    """It goes like at a table where that member is the only opponent; every episode is reported once."""
    two_sided(game)
    rivals = ["greedy", "trivial"]
    pool = OpponentPool(game, rivals, seed=2)
    options: dict[str, Any] = {"autoreset_mode": mode, **short_options(game)}
    num_envs, ended = 12, 0
    env = VectorSeatEnv(game.name, num_envs, pool, **options)
    alone = [VectorSeatEnv(game.name, num_envs, rival, **options) for rival in rivals]
    obs, info = env.reset(seed=5)
    seen = [one.reset(seed=5)[0] for one in alone]
    may_be = np.ones((2, num_envs), np.bool_)  # by all that was seen, each rival at each table
    first = np.ones(num_envs, np.bool_)  # tables in their first episode
    masks = [info["action_mask"]] * 2
    for _ in range(2000):
        may_be &= ~first | [(obs == each).all(axis=1) for each in seen]
        assert may_be.any(axis=0).all()
        actions = info["action_mask"].argmax(axis=1)
        obs, _, over, _, info = env.step(actions)
        for k, one in enumerate(alone):  # tables of other opponents go their own way
            taken = np.where(first & may_be[k], actions, masks[k].argmax(axis=1))
            seen[k], _, _, _, told = one.step(taken)
            masks[k] = told["action_mask"]
        first &= ~over
        ended += int(over.sum())
        if not first.any() and ended > 3 * num_envs:
            break
    assert not first.any() and sum(one.episodes for one in pool.figures()) == ended
    assert not may_be.all(axis=1).any()  # both were drawn


def test_tables_report_who_won() -> None:
    """The side with the higher score, which the rewards add up to."""
    pool = OpponentPool(TINY, ["greedy"])
    told: list[float] = []
    pool.report = lambda opponent, won: told.append(won)  # type: ignore[method-assign]
    env = VectorSeatEnv(TINY.name, 32, pool, seat="random")
    _, info = env.reset(seed=1)
    totals, expected = np.zeros(32), []
    for _ in range(30):
        _, rewards, over, _, info = env.step(info["action_mask"].argmax(axis=1))
        totals += rewards
        expected += ((np.sign(totals[over]) + 1) / 2).tolist()
        totals[over] = 0
    assert told == expected and {0.0, 1.0} <= set(told)


@pytest.mark.mechanics
def test_tables_repeat_with_the_seeds(game: Game) -> None:
    two_sided(game)

    def played() -> list[Any]:
        pool = OpponentPool(game, [Opponent(name, game, RandomPolicy()) for name in "abcdef"], draw_by="hard")
        env = VectorSeatEnv(game.name, 6, pool, **short_options(game))
        _, info = env.reset(seed=3)
        for _ in range(40):
            obs, _, _, _, info = env.step(info["action_mask"].argmax(axis=1))
        return [obs.tolist(), pool.figures()]

    assert played() == played()


@pytest.mark.mechanics
def test_gymnasium_hands_on_the_pool_itself(game: Game) -> None:
    two_sided(game)
    pool = OpponentPool(game, ["random"])
    env = gymnasium.make(game.gymnasium_id, opponents=pool, **short_options(game))
    envs = gymnasium.make_vec(
        game.gymnasium_id, 2, vectorization_mode="vector_entry_point", opponents=pool, **short_options(game)
    )
    env.reset(seed=0)
    env.step(int(env.unwrapped.action_masks().argmin()))  # type: ignore[attr-defined]
    _, info = envs.reset(seed=0)
    envs.step(info["action_mask"].argmin(axis=1))
    assert pool.figures()[0].episodes == 3
    pool.add(ScriptedPolicy("greedy"))  # from now on, in both
    for _ in range(20):
        env.reset()
        env.step(int(env.unwrapped.action_masks().argmin()))  # type: ignore[attr-defined]
    assert all(one.episodes > 3 * (one.name == "random") for one in pool.figures())


@pytest.mark.mechanics
def test_an_environment_of_texts_draws_and_reports_once_per_episode(game: Game) -> None:
    two_sided(game)
    rivals = [Opponent(name, game, Named()) for name in "ab"]
    pool = OpponentPool(game, rivals)
    env = TextEnv(game, pool, seat="random", **short_options(game))
    for seed in range(10):
        env.reset(seed=seed)
        rating = pool.rating
        while not env.over:
            env.step("no move")
            assert sum(one.episodes for one in pool.figures()) == seed
            env.step(env.legal_moves()[0])
        assert sum(one.episodes for one in pool.figures()) == seed + 1
        scores = env.outcome()["scores"]
        best = max(score for side, score in zip(game.sides, scores) if side != game.sides[env.seat])
        assert np.sign(pool.rating - rating) == np.sign(scores[env.seat] - best) or scores[env.seat] == best
    assert all(rival.policy.decisions for rival in rivals)  # type: ignore[attr-defined]
