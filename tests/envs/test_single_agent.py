"""`SingleSeatEnv`: one seat as a Gymnasium environment; and what is the same for all environments."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from card_envs.engine.legality import IllegalMove
from card_envs.envs.aec import CardEnv
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.opponents.scripted import RandomPolicy
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import new_env, short_options


@pytest.mark.mechanics
def test_gymnasium_observations_with_masks(game: Game) -> None:
    """`observe="dict"`: observation and mask, step for step those of the flat environment."""
    chosen = {"obs_key": "observations", "obs_dtype": "float32", **short_options(game)}
    env = SingleSeatEnv(game.name, observe="dict", **chosen)
    flat = SingleSeatEnv(game.name, **short_options(game))
    (seen, info), (expected, _) = env.reset(seed=4), flat.reset(seed=4)
    over = False
    while not over:
        assert env.observation_space.contains(seen) and set(seen) == {"observations", "action_mask"}
        assert seen["observations"].dtype == np.float32 and np.array_equal(seen["observations"], expected)
        assert np.array_equal(seen["action_mask"], info["action_mask"])
        assert np.array_equal(seen["action_mask"] != 0, flat.action_masks())
        seen["action_mask"][:] = 1  # a copy, as that in `info`
        action = int(np.flatnonzero(info["action_mask"])[-1])
        seen, reward, over, _, info = env.step(action)
        expected, same, ended, _, _ = flat.step(action)
        assert (reward, over) == (same, ended)
    assert env.observation_space.contains(seen) and not seen["action_mask"].any()


@pytest.mark.mechanics
def test_gymnasium_says_what_was_illegal(game: Game) -> None:
    env = SingleSeatEnv(game.name, **short_options(game))
    worst = -1.0 if game.validated(short_options(game)).reward == "win" else float(game.rules.WORST_SCORE)
    rng = np.random.default_rng(1)
    for illegal in (True, False):
        _, info = env.reset(seed=1)
        over = False
        while not over:
            assert set(info) == {"action_mask", "illegal"} and not info["illegal"]
            actions = np.flatnonzero(info["action_mask"] == 0) if illegal else np.flatnonzero(info["action_mask"])
            _, reward, over, _, info = env.step(rng.choice(actions))
            assert isinstance(info["illegal"], np.int8)
            assert not illegal or (reward, over) == (worst, True)
        assert info["illegal"] == illegal and set(info) == {"action_mask", "illegal"} and not info["action_mask"].any()


@pytest.mark.mechanics
def test_minari_records_infos(game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of episodes that an illegal action ends: every info has the same layout."""
    minari = pytest.importorskip("minari")
    pytest.importorskip("jax", reason="Minari's collector puts steps together with it")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(SingleSeatEnv(game.name, **short_options(game)), record_infos=True, data_format="arrow")
    rng = np.random.default_rng(1)
    for number in range(4):
        _, info = env.reset(seed=number)
        over = False
        while not over:
            is_illegal = number % 2 and rng.random() < 0.2
            actions = np.flatnonzero(info["action_mask"] == 0) if is_illegal else np.flatnonzero(info["action_mask"])
            _, _, over, _, info = env.step(rng.choice(actions))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what describes a data set for others
        found = env.create_dataset(f"{game.name}/infos-v0")
    ends = [episode.infos["illegal"] for episode in found.iterate_episodes()]
    assert [bool(end[-1]) for end in ends][::2] == [False, False] and any(end[-1] for end in ends)
    assert not any(end[:-1].any() for end in ends)


def test_gymnasium_conformance(game: Game) -> None:
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        env = gymnasium.make(game.gymnasium_id, **short_options(game))
        check_env(env.unwrapped)
    said = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
    # Gymnasium warns of observations that are not an image and not within [-1, 1], and of unnormalised low and high.
    assert [text for text in said if "Box" not in text] == []


def play_single(env: SingleSeatEnv, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    obs, info = env.reset(seed=seed)
    seen: list[Any] = [obs.tolist()]
    over = bool(env._env.outcome()["over"])
    while not over:
        mask = info["action_mask"]
        assert mask.any() and np.array_equal(mask != 0, env.action_masks())
        assert env.action_masks().dtype == np.bool_
        assert env.observation_space.contains(obs)
        obs, reward, over, truncated, info = env.step(rng.choice(np.flatnonzero(mask)))
        assert isinstance(reward, float) and type(over) is bool and truncated is False
        seen.append((obs.tolist(), reward, over))
    assert not env.action_masks().any()
    return seen


@pytest.mark.mechanics
def test_gymnasium_episodes_are_reproducible(game: Game) -> None:
    for opponents in ("random", "greedy"):
        env: Any = gymnasium.make(game.gymnasium_id, opponents=opponents, **short_options(game)).unwrapped
        for seed in range(5):
            assert play_single(env, seed) == play_single(env, seed)


@pytest.mark.mechanics
def test_gymnasium_rewards_are_all_that_the_seat_is_paid(game: Game) -> None:
    for seat in range(game.rules.NUM_SEATS):
        env = SingleSeatEnv(game.name, opponents="trivial", seat=seat, **short_options(game))
        for seed in range(5):
            rewards = [step[1] for step in play_single(env, seed)[1:]]
            record = env._env.record()
            replayed = CardEnv(game, **record.options)
            replayed.reset(seed=0, options={"deal": record.deal})
            paid = 0.0
            for move in record.moves:
                replayed.step(replayed.parse_move(move))
                paid += replayed.rewards[f"player_{seat}"]
            assert replayed.outcome() == env._env.outcome()
            before = paid - sum(rewards)  # what was paid before the seat's first move
            assert before == pytest.approx(0) or seat != replayed.states["seat"][0]


@pytest.mark.mechanics
def test_gymnasium_seats(game: Game) -> None:
    env = SingleSeatEnv(game.name, seat="random", **short_options(game))
    seats = set()
    for seed in range(40):
        env.reset(seed=seed)
        seats.add(env.seat)
    assert seats == set(range(game.rules.NUM_SEATS))


@pytest.mark.mechanics
def test_order_of_calls_in_gymnasium(game: Game) -> None:
    env = SingleSeatEnv(game.name, render_mode="ansi", **short_options(game))
    many = VectorSeatEnv(game.name, 2, render_mode="ansi")
    for call in (
        lambda: env.step(0), env.action_masks, env.render, lambda: many.step(np.zeros(2, np.int64)), many.action_masks,
        many.render,
    ):  # fmt: skip
        with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
            call()
    _, info = env.reset(seed=1)
    env.step(int(info["action_mask"].argmin()))
    for action in (0, None):
        with pytest.raises(ResetNeeded, match=r"the episode is over: call reset\(\)"):
            env.step(action)  # type: ignore[arg-type]
    text = env.render()
    assert isinstance(text, str) and max(map(len, text.splitlines())) <= 80 and not env.action_masks().any()
    raising = SingleSeatEnv(game.name, illegal_move="raise", **short_options(game))
    _, info = raising.reset(seed=1)
    with pytest.raises(IllegalMove):
        raising.step(int(info["action_mask"].argmin()))
    raising.step(int(info["action_mask"].argmax()))


KINDS: dict[str, Callable[..., Any]] = {
    "single": lambda **arguments: SingleSeatEnv(**{"game": TINY.name, **arguments}),
    "many": lambda **arguments: VectorSeatEnv(**{"game": TINY.name, **arguments}),
    "aec": lambda **arguments: CardEnv(**{"game": TINY, **arguments}),
}
WORDS: list[Any] = ["xx", 5, ["ansi"]]
OTHER = next(game for game in GAMES.values() if game.is_solitaire)
# Values that each argument must refuse, of the kinds of environments that have it.
WRONG: dict[str, tuple[str, list[Any]]] = {
    "render_mode": ("single many aec", [*WORDS, "rgb"]),
    "illegal_move": ("single many aec", [*WORDS, "ignore"]),
    "obs_dtype": ("single many aec", WORDS),
    "observe": ("single many aec", [*WORDS, "array"]),
    "autoreset_mode": ("many", [*WORDS, "Sometimes"]),
    "num_envs": ("many", [0, 1.5, "2", True]),
    "seat": ("single many", [True, 0.0, -1, 2, "left"]),
    "opponents": ("single many", [5, None, {"greedy"}, [RandomPolicy], object(), ["greedy"] * 3, [], "gredy"]),
    "game": ("single many", [5, None, [OTHER.name], TINY]),
    "no_such_option": ("single many", [1]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(name: str) -> None:
    kinds, values = WRONG[name]
    for kind, value in product(kinds.split(), values):
        with pytest.raises(ValueError, match="greedy" if value == "gredy" else name) as caught:
            KINDS[kind](**{name: value})
        assert len(str(caught.value)) < 1000


def test_arguments_that_do_not_fit_each_other() -> None:
    for key in (5, "action_mask", None):
        with pytest.raises(ValueError, match="obs_key"):
            CardEnv(TINY, obs_key=key)  # type: ignore[arg-type]
    for kind, arguments in (("single", {}), ("many", {}), ("aec", {"observe": "flat"})):
        with pytest.raises(ValueError, match="obs_key"):
            KINDS[kind](obs_key="observations", **arguments)
    for kind in ("single", "many"):
        with pytest.raises(ValueError, match=f"plays {OTHER.name}"):
            KINDS[kind](opponents=load_opponent(f"{OTHER.name}/greedy"))
        for opponents, said in (("gredy", "greedy"), (5, "opponents")):
            with pytest.raises(ValueError, match=said):
                KINDS[kind](game=OTHER.name, opponents=opponents)


@pytest.mark.parametrize("kind", ["single", "aec"])
def test_wrong_arguments_of_a_reset(kind: str) -> None:
    for name, values in (("seed", [1.5, "a", -1, True, [1]]), ("options", [5, "deal", [1]])):
        for value in values:
            with pytest.raises(ValueError, match=name):
                KINDS[kind]().reset(**{name: value})


@pytest.mark.mechanics
@pytest.mark.parametrize("way", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deep", "sent"])
def test_environments_are_copied(game: Game, way: Callable[[Any], Any]) -> None:
    envs: list[Any] = [
        gymnasium.make(game.gymnasium_id, opponents="trivial"),
        gymnasium.make_vec(game.gymnasium_id, num_envs=3, opponents="trivial"),
    ]
    for env in envs:
        env.reset(seed=1)
        twin = way(env)
        for _ in range(2):
            masks = env.unwrapped.action_masks()
            seen, its = (each.step(masks.argmax(axis=-1))[0] for each in (env, twin))
            assert np.array_equal(seen, its)


@pytest.mark.mechanics
def test_observations_as_floats(game: Game) -> None:
    options = short_options(game)
    env, plain = new_env(game, obs_dtype="float32", **options), new_env(game, **options)
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
