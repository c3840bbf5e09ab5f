"""The Gymnasium vector environment: every table is what the single environment is."""

from __future__ import annotations

import pickle
from functools import partial
from itertools import product
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from card_envs.engine.legality import IllegalMove
from card_envs.envs._rendering import rendered
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game, Int8s
from card_envs.games import GAMES
from card_envs.opponents.policy import Decisions
from card_envs.opponents.scripted import RandomPolicy
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import assert_refused, field_bytes, need_moves, new_env, play_randomly, short_options

MATCH = max(GAMES.values(), key=lambda game: game.rules.NUM_SEATS)  # an episode has many deals


def make(game: Game, num_envs: int, **arguments: Any) -> VectorSeatEnv:
    """As users make it, with the shortest episodes."""
    made = gymnasium.make_vec(game.gymnasium_id, num_envs, "vector_entry_point", **short_options(game), **arguments)
    assert isinstance(made, VectorSeatEnv)
    return made


def random_legal(mask: Int8s, rng: np.random.Generator) -> NDArray[np.int64]:
    """A random legal action for each table; 0 where there is none."""
    return np.argmax(mask * (1 + rng.random(mask.shape)), axis=1)


def check_spaces(env: VectorSeatEnv, obs: Int8s, info: dict[str, Any], resting: NDArray[np.bool_]) -> None:
    assert env.observation_space.contains(obs)
    mask = info["action_mask"]
    assert mask.dtype == np.int8 and mask.shape == (env.num_envs, env.single_action_space.n)  # type: ignore[attr-defined]
    assert np.array_equal(mask.any(axis=1), ~resting)
    assert np.array_equal(mask != 0, env.action_masks()) and env.action_masks().dtype == np.bool_


@pytest.mark.mechanics
@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_tables_are_single_environments(game: Game, mode: str) -> None:
    """Move for move over several episodes, with an illegal action now and then, from every seat."""
    n = 3
    for seat in range(game.rules.NUM_SEATS):
        env = make(game, n, opponents="greedy", seat=seat, autoreset_mode=mode)
        singles = [SingleSeatEnv(game.name, "greedy", seat, **short_options(game)) for _ in range(n)]
        # What SingleSeatEnv makes of its seed is the seed of the deals.
        seeds = [int(seeding.np_random(number)[0].integers(1 << 63)) for number in range(n)]
        seen = [single.reset(seed=number) for number, single in enumerate(singles)]
        seen = [next_episode(single, seed) for single, seed in zip(singles, seeds)]
        obs, info = env.reset(seed=seeds)
        rng = np.random.default_rng(seat)
        resting = np.zeros(n, np.bool_)
        ended = 0
        for _ in range(150):
            check_spaces(env, obs, info, resting)
            for i in range(n):
                assert np.array_equal(obs[i], seen[i][0])
                assert np.array_equal(info["action_mask"][i], seen[i][1]["action_mask"])
                assert info["illegal"][i] == seen[i][1]["illegal"]
            assert info["illegal"].dtype == np.int8 and info["_illegal"].all()
            actions = random_legal(info["action_mask"], rng)
            actions[rng.random(n) < 0.03] = len(info["action_mask"][0]) - 1  # legal or not
            obs, rewards, terminated, truncated, info = env.step(actions)
            assert rewards.dtype == np.float64 and terminated.dtype == truncated.dtype == np.bool_
            assert not truncated.any()
            for i, single in enumerate(singles):
                if resting[i]:
                    seen[i] = next_episode(single)
                    assert (rewards[i], terminated[i]) == (0, False)
                    continue
                last, reward, over, _, last_info = single.step(actions[i])
                assert (rewards[i], terminated[i]) == (reward, over)
                seen[i] = next_episode(single) if over and mode == "SameStep" else (last, last_info)
                if over and mode == "SameStep":
                    assert np.array_equal(info["final_obs"][i], last)
                    assert not info["final_info"]["action_mask"][i].any()
                    assert info["final_info"]["illegal"][i] == last_info["illegal"]
                    assert info["_final_obs"][i] and info["_final_info"][i]
            assert mode == "SameStep" or "final_obs" not in info
            resting = terminated if mode == "NextStep" else resting
            ended += terminated.sum()
        assert ended > 2


def next_episode(single: SingleSeatEnv, seed: int | None = None) -> tuple[Int8s, dict[str, Any]]:
    """Go on with the stream of deals at hand, or of a seed, where SingleSeatEnv draws a new one."""
    single._env.reset(seed=seed)
    single._play()
    return next_episode(single) if single._over else single._look()  # the seat had no decision


@pytest.mark.mechanics
def test_infos_are_laid_out_as_gymnasiums(game: Game) -> None:
    ours = make(game, 2)
    theirs = gymnasium.make_vec(
        game.gymnasium_id, 2, "sync", {"autoreset_mode": AutoresetMode.SAME_STEP}, **short_options(game)
    )
    layouts = []
    for env in (ours, theirs):
        env.reset(seed=1)
        wrong = np.array([-1, env.action_masks()[1].argmax() if env is ours else 0])
        if env is theirs:
            wrong = np.array([-1, -1])
        layouts.append({key: layout(value) for key, value in env.step(wrong)[4].items()})
    assert layouts[0] == layouts[1]


def layout(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: layout(inner) for key, inner in value.items()}
    return value.dtype, value.shape


@pytest.mark.mechanics
@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_observations_with_masks(game: Game, mode: str) -> None:
    """`observe="dict"`: the observations and masks of the flat environment, also those at the end of an episode."""
    env, flat = (make(game, 3, observe=layout, autoreset_mode=mode) for layout in ("dict", "flat"))
    (seen, info), (expected, _) = env.reset(seed=6), flat.reset(seed=6)
    ended = 0
    for step in range(60):
        assert env.observation_space.contains(seen)
        assert np.array_equal(seen["observation"], expected) and np.array_equal(
            seen["action_mask"], info["action_mask"]
        )
        actions = info["action_mask"].argmax(axis=1)
        actions[step % 3] = actions[step % 3] if step % 9 else -1  # episodes end in time
        seen["action_mask"][:] = info["action_mask"][:] = 1  # copies
        seen, _, terminated, _, info = env.step(actions)
        expected, _, _, _, same = flat.step(actions)
        for i in np.flatnonzero(terminated).tolist() if mode == "SameStep" else ():
            last = info["final_obs"][i]
            assert env.single_observation_space.contains(last) and not last["action_mask"].any()
            assert np.array_equal(last["observation"], same["final_obs"][i])
        ended += terminated.sum()
    assert ended > 2


def trajectory(env: VectorSeatEnv, tables: int, seed: Any, steps: int = 60) -> list[Any]:
    """What the first tables show; the learner takes its first legal action or its last, in turn."""
    obs, info = env.reset(seed=seed)
    seen: list[Any] = []
    for step in range(steps):
        seen.append((obs[:tables].tolist(), info["action_mask"][:tables].tolist(), env.seat[:tables].tolist()))
        mask = info["action_mask"]
        actions = mask.argmax(axis=1) if step % 2 else mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
        obs, rewards, terminated, _, info = env.step(actions)
        seen.append((rewards[:tables].tolist(), terminated[:tables].tolist()))
    return seen


@pytest.mark.mechanics
def test_seeds(game: Game) -> None:
    for opponents in ("greedy", "random"):
        first, second = (make(game, 6, opponents=opponents, seat="random") for _ in range(2))
        once = trajectory(first, 6, seed=8)
        assert trajectory(first, 6, seed=8) == once == trajectory(second, 6, seed=8)
        assert trajectory(first, 6, seed=9) != once
        assert trajectory(first, 6, seed=None, steps=5) != trajectory(second, 6, seed=list(range(6)), steps=5)
    few, many = make(game, 3, seat="random"), make(game, 9, seat="random")
    assert trajectory(few, 3, seed=4) == trajectory(many, 3, seed=4)
    assert len(set(many.seat.tolist())) == min(game.rules.NUM_SEATS, 3) or game.rules.NUM_SEATS > 2


class Spy(RandomPolicy):
    """Notes the seats it plays."""

    def __init__(self) -> None:
        self.seats: set[int] = set()

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        self.seats |= set(decisions.seat.tolist())
        return super().act(decisions, rng)


class Cheat(RandomPolicy):
    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return decisions.mask.argmin(axis=1)


def test_opponents_sit_clockwise_from_the_left(game: Game) -> None:
    seats = game.rules.NUM_SEATS
    spies = [Spy() for _ in range(seats - 1)]
    trajectory(make(game, 8, opponents=spies, seat=seats - 1), 8, seed=1)
    assert [spy.seats for spy in spies] == [{number} for number in range(seats - 1)]
    if spies:
        env = make(game, 8, opponents=Cheat(), seat="random")
        with pytest.raises(IllegalMove, match=f"{game.name}.*Cheat"):
            trajectory(env, 8, seed=1)


@pytest.mark.mechanics
def test_illegal_moves_can_be_errors(game: Game) -> None:
    env = make(game, 3, illegal_move="raise")
    obs, info = env.reset(seed=1)
    before = env.states.tobytes()
    actions = random_legal(info["action_mask"], np.random.default_rng(0))
    for wrong in (-1, len(info["action_mask"][0])):
        with pytest.raises(IllegalMove, match=f"^{game.name}: action {wrong} of seat . at table 1 is illegal"):
            env.step(np.array([actions[0], wrong, actions[2]]))
        assert env.states.tobytes() == before
    assert env.step(actions)[0].shape == obs.shape


@pytest.mark.mechanics
def test_wrong_resets_change_nothing(game: Game) -> None:
    env = make(game, 2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="of all tables"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=1)
    before = pickle.dumps(env)
    for options, what in (
        ({"deal": {}}, "deal"),
        ({"deal": [None]}, "deal: expected one, or 2, got 1"),
        ({"deal": [None, {}]}, "deal"),
        ({"reset_mask": [True, False]}, "reset_mask: expected bools"),
        ({"reset_mask": np.zeros(2, np.bool_)}, "at least one"),
        ({"reset_mask": np.ones(3, np.bool_)}, "reset_mask"),
        ({"reset_mask": np.ones(2)}, "reset_mask"),
        ({"shuffle": True}, "unknown key"),
    ):
        with pytest.raises(ValueError, match=what):
            env.reset(options=options)
        assert pickle.dumps(env) == before


def test_wrong_arguments_are_refused() -> None:
    env = VectorSeatEnv(TINY.name, 3, opponents="trivial")
    env.reset(seed=0)
    seeds: list[Any] = [1.5, "a", -1, True, 1 << 64, [1], [1, 2, "x"], [1, 2, 3.0], {"a": 1}, b"abc", [1, 2, -3]]
    options: list[Any] = [5, {"deal": {}}, [1], "x"]
    wrong: dict[str, list[Any]] = {
        "step": [np.zeros(2, np.int64), np.zeros(3), None, "abc", [[1], [2, 3], []]],
        "reset": [
            *(partial(env.reset, seed=seed) for seed in seeds),
            *(partial(env.reset, options=one) for one in options),
        ],
    }
    assert_refused(env, {"step": zip(wrong["step"])}, {"action_masks", "render", "states", "seat", "reset"})
    for reset in wrong["reset"]:
        before = field_bytes(env.states)
        with pytest.raises(ValueError, match="expected"):
            reset()
        assert field_bytes(env.states) == before


@pytest.mark.mechanics
def test_seeds_may_be_left_out_for_some_tables(game: Game) -> None:
    """As in Gymnasium's own: None at a table goes on with its stream, or begins with one that nobody can guess."""
    env = make(game, 3, opponents="greedy")
    env.reset(seed=[1, 2, 3])
    given = env.states.copy()
    env.reset(seed=[1, None, 3])
    assert [bool(equal) for equal in env.states == given] == [True, False, True]
    fresh = [make(game, 3, opponents="greedy") for _ in range(2)]
    for one in fresh:
        one.reset(seed=[None, 2, None])
    assert [bool(equal) for equal in fresh[0].states == fresh[1].states] == [False, True, False]
    for deterministic in fresh:
        deterministic.reset(seed=[1, 2, 3])
        assert np.array_equal(deterministic.states, given)


@pytest.mark.mechanics
@pytest.mark.parametrize("mode", AutoresetMode)
def test_some_tables_are_reset(game: Game, mode: AutoresetMode) -> None:
    """The others stay as they are; what comes is what a reset of all would bring there."""
    env, whole = (make(game, 4, autoreset_mode=mode) for _ in range(2))
    assert env.autoreset_mode is mode is env.metadata["autoreset_mode"]
    obs, info = env.reset(seed=5)
    for _ in range(3):
        actions = info["action_mask"].argmax(axis=1)
        actions[0] = -1  # the episode ends there
        before = obs, *env.step(actions)
        obs, terminated, info = before[1], before[3], before[5]
        chosen = np.array([True, False, False, True]) | (terminated if mode is AutoresetMode.DISABLED else False)
        options = {"reset_mask": chosen, "deal": None}
        seen, info = env.reset(seed=7, options=options)
        assert set(options) == {"reset_mask", "deal"}  # the caller's
        assert np.array_equal(seen[chosen], whole.reset(seed=7)[0][chosen])
        assert np.array_equal(seen[~chosen], obs[~chosen])
        assert info["action_mask"].any(axis=1).all() or mode is not AutoresetMode.SAME_STEP
        obs = seen
        assert terminated[0]


@pytest.mark.mechanics
def test_without_autoreset_ended_tables_have_to_be_reset(game: Game) -> None:
    need_moves(game, 2 * game.rules.NUM_SEATS)  # so that none ends before the seat's second move
    env = make(game, 3, autoreset_mode="Disabled")
    _, info = env.reset(seed=5)
    actions = info["action_mask"].argmax(axis=1)
    actions[1] = -1
    _, rewards, terminated, _, info = env.step(actions)
    assert terminated.tolist() == [False, True, False] and rewards[1] < 0 and not info["action_mask"][1].any()
    before = pickle.dumps(env)
    with pytest.raises(gymnasium.error.ResetNeeded, match="at table 1 is over; reset"):
        env.step(info["action_mask"].argmax(axis=1))
    assert pickle.dumps(env) == before
    _, info = env.reset(options={"reset_mask": terminated})
    _, rewards, *_ = env.step(info["action_mask"].argmax(axis=1))
    assert info["action_mask"].any(axis=1).all()


@pytest.mark.parametrize(("game", "short"), list(product((TINY, MATCH), (True, False))), ids=str)
def test_deals_are_set_at_tables(game: Game, short: bool) -> None:
    """At all tables, or at each its own; move for move what the single environment plays on these deals."""
    need_moves(game, 2)
    chosen = short_options(game) if short else {}
    records = [play_randomly(new_env(game, seed, **chosen), seed, 200).record().deal for seed in (1, 2)]
    env = VectorSeatEnv(game.name, 3, **chosen)
    singles = [SingleSeatEnv(game.name, **chosen) for _ in range(3)]
    for deals in ([records[0]] * 3, [records[0], None, records[1]]):
        obs, info = env.reset(seed=[4, 5, 6], options={"deal": deals[0] if deals[1] else deals})
        over = np.zeros(3, np.bool_)
        shown = 0
        for i, deal in enumerate(deals):
            seen, _ = singles[i].reset(seed=0, options=None if deal is None else {"deal": deal})
            over[i] = deal is None
            assert over[i] or np.array_equal(obs[i], seen)
        num_packs = env._num_packs.copy()
        for _ in range(100):
            actions = info["action_mask"].argmax(axis=1)
            obs, rewards, terminated, _, info = env.step(actions)
            for i in np.flatnonzero(~over).tolist():
                seen, reward, over[i], _, _ = singles[i].step(actions[i])
                assert (rewards[i], terminated[i]) == (reward, over[i])
                # Behind the packs of the record each environment deals from a stream of its own.
                over[i] = over[i] or (num_packs[i] > 0 and env._num_packs[i] == 0)
                assert over[i] or np.array_equal(obs[i], seen)
                shown += 1
        assert shown > 3


@pytest.mark.mechanics
def test_rendering(game: Game) -> None:
    """A text or a picture for each table, of what the learner's seat sees."""
    assert make(game, 2).render() is None
    env = make(game, 2, render_mode="ansi")
    env.reset(seed=1)
    texts = env.render()
    assert texts is not None and len(texts) == 2 and max(map(len, texts[0].splitlines())) <= 80
    pytest.importorskip("resvg_py", reason="the extra draw is not installed")
    env = make(game, 2, render_mode="rgb_array")
    env.reset(seed=[1, 2])
    env.step(env.action_masks().argmax(axis=1))  # before, no card may be known
    pictures = env.render()
    assert pictures is not None and len(pictures) == 2 and (pictures[0] != pictures[1]).any()
    for picture, state in zip(pictures, env.states):
        assert picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3
        np.testing.assert_array_equal(picture, rendered(game, game.view.view(state, 0), "rgb_array"))


@pytest.mark.mechanics
@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_what_is_written_into_the_states_counts_at_once(game: Game, mode: str) -> None:
    env = VectorSeatEnv(game.name, 3, illegal_move="raise", autoreset_mode=mode, **short_options(game))
    env.reset(seed=3)
    masks, saved = env.action_masks(), env._states.copy()
    for _ in range(40):
        env.step(env._tables.mask.argmax(axis=1))
        if (env._tables.mask.astype(bool) & ~masks).any(axis=1).all():
            break
    later = env._tables.mask.astype(bool)
    wrong = np.where((later & ~masks).any(axis=1), (later & ~masks).argmax(axis=1), masks.argmax(axis=1))
    if (wrong == masks.argmax(axis=1)).all():
        pytest.skip("no move becomes legal that is not from the start")
    states = env.states
    states[:] = saved
    with pytest.raises(IllegalMove):
        env.step(wrong)
    assert (env.action_masks() == masks).all()
    env.step(masks.argmax(axis=1))
    states[:] = saved  # the same array, kept
    assert (env.action_masks() == masks).all()
