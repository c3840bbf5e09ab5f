"""The environments as users and their tools meet them: PettingZoo, Gymnasium, and what goes beyond both."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo.test import api_test, render_test, seed_test

from card_envs.engine.legality import IllegalMove
from card_envs.envs._replay import verify
from card_envs.envs.aec import CardEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game
from tests.conftest import field_bytes, new_env, option_sets, play_randomly, short_options


def fresh(game: Game, seed: int = 0, **arguments: Any) -> CardEnv:
    """An environment with the shortest episodes, freshly dealt."""
    return new_env(game, seed, **{**short_options(game), **arguments})


def legal_actions(env: CardEnv) -> NDArray[np.int64]:
    return np.flatnonzero(env.last()[4]["action_mask"])


def snapshot(env: CardEnv) -> dict[str, Any]:
    """Everything that an environment shows and holds."""
    return {
        "agents": list(env.agents),
        "turn": env.agent_selection,
        "rewards": dict(env.rewards),
        "cumulative": dict(env._cumulative_rewards),
        "terminations": dict(env.terminations),
        "truncations": dict(env.truncations),
        "infos": {agent: info["action_mask"].tolist() for agent, info in env.infos.items()},
        "seen": {
            agent: {key: value.tolist() for key, value in env.observe(agent).items()} for agent in env.possible_agents
        },
        "state": env.state().tolist(),
        "states": field_bytes(env.states),
        "outcome": env.outcome(),
        "record": env.record().model_dump(),
    }


# PettingZoo


# What api_test says of every environment with a mask in its observation.
MASKED = (
    "Observation space for each agent probably should be gymnasium.spaces.box or gymnasium.spaces.discrete",
    "Observation is not a NumPy array",
)


def test_pettingzoo_conformance(game: Game, recwarn: pytest.WarningsRecorder) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        api_test(fresh(game), num_cycles=400)
        seed_test(lambda: CardEnv(game), num_cycles=60)
        render_test(lambda **arguments: CardEnv(game, **arguments))
    said = {str(warning.message) for warning in recwarn if issubclass(warning.category, UserWarning)}
    nothing_known = not fresh(game).observe("player_0")["observation"].any()  # at first, as where all cards lie hidden
    assert said <= {*MASKED, *(["Observation numpy array is all zeros."] if nothing_known else [])}


def test_how_pettingzoo_makes_it(game: Game) -> None:
    makers: list[Callable[..., Any]] = []
    if game.package.startswith("card_envs.games."):
        module = importlib.import_module(f"card_envs.{game.name}_v{game.version}")
        makers += [module.env, module.raw_env]
    if hasattr(pettingzoo, "make"):
        makers.append(partial(pettingzoo.make, "aec", game.id))
    for make in makers:
        env = make(illegal_move="raise", **short_options(game))
        assert isinstance(env, CardEnv) and env.game == game and env.illegal_move == "raise"
        assert env.metadata["name"] == f"{game.name}_v{game.version}"
        env.reset(seed=1)
        assert play_randomly(env, 1).outcome()["over"]


def test_spaces_and_masks(game: Game) -> None:
    """One mask for the seat to move, in its observation and its info; all zero for everybody else."""
    env = fresh(game)
    rng = np.random.default_rng(2)
    assert env.possible_agents == [f"player_{seat}" for seat in range(game.rules.NUM_SEATS)]
    for agent in env.possible_agents:
        assert env.observation_space(agent) == env.observation_space("player_0")
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
        assert env.action_space(agent) == spaces.Discrete(game.rules.NUM_ACTIONS)
    while True:
        for agent in env.possible_agents:
            observation = env.observe(agent)
            assert env.observation_space(agent).contains(observation)
            assert set(observation) == {"observation", "action_mask"}
            assert all(value.dtype == np.int8 for value in observation.values())
            assert set(env.infos[agent]) == {"action_mask"} and env.infos[agent]["action_mask"].dtype == np.int8
            assert np.array_equal(observation["action_mask"], env.infos[agent]["action_mask"])
            is_mover = agent == env.agent_selection and not env.outcome()["over"]
            assert observation["action_mask"].any() == is_mover
        assert env.state_space.contains(env.state())
        if env.outcome()["over"]:
            break
        legal = legal_actions(env)
        assert env.legal_moves() == [env.move_text(action) for action in legal]
        assert env.action_space(env.agent_selection).sample(env.last()[4]["action_mask"]) in legal
        env.step(rng.choice(legal))
    assert env.legal_moves() == []


@pytest.mark.mechanics
def test_observations_are_the_users_own(game: Game) -> None:
    env = fresh(game)
    before = snapshot(env)
    for agent in env.possible_agents:
        for array in (*env.observe(agent).values(), *env.last()[0].values()):
            array[:] = 1
    env.state()[:] = 1
    assert snapshot(env) == before


@pytest.mark.mechanics
def test_obs_key(game: Game) -> None:
    env = fresh(game, obs_key="observations")
    assert set(env.observe("player_0")) == {"observations", "action_mask"}
    assert env.observation_space("player_0").contains(env.observe("player_0"))
    assert np.array_equal(env.observe("player_0")["observations"], fresh(game).observe("player_0")["observation"])


@pytest.mark.mechanics
def test_observations_without_masks(game: Game) -> None:
    """`observe="flat"`: the arrays alone; the mask is in `info`. PettingZoo's tests find it there."""
    env, twin = fresh(game, observe="flat"), fresh(game)
    rng = np.random.default_rng(3)
    while True:
        for agent in env.possible_agents:
            seen = env.observe(agent)
            assert env.observation_space(agent).contains(seen) and seen.shape == (game.rules.OBS_SIZE,)
            assert np.array_equal(seen, twin.observe(agent)["observation"])
            assert np.array_equal(env.infos[agent]["action_mask"], twin.observe(agent)["action_mask"])
        if env.outcome()["over"]:
            break
        action = rng.choice(legal_actions(env))
        env.step(action)
        twin.step(action)
    with contextlib.redirect_stdout(io.StringIO()):
        api_test(fresh(game, observe="flat"), num_cycles=100)


@pytest.mark.mechanics
def test_actions_of_any_type(game: Game) -> None:
    """Whole numbers of any type are taken, all else is refused."""
    kinds: list[Any] = [int, np.int8, np.int32, np.int64, np.array]
    for make_action in kinds:
        env, twin = fresh(game), fresh(game)
        action = int(legal_actions(env)[0])
        env.step(make_action(action))
        twin.step(action)
        assert snapshot(env) == snapshot(twin)
    env = fresh(game)
    before = snapshot(env)
    wrong: Any
    for wrong in (None, 1.0, "x", [0], np.float32(1)):
        with pytest.raises(ValueError, match="action"):
            env.step(wrong)
        assert snapshot(env) == before


@pytest.mark.mechanics
def test_rewards_add_up(game: Game) -> None:
    """`last()` pays what came in since the seat's last move; the sums are those of every single reward."""
    for number, options in enumerate(option_sets(game)[:6]):
        env = new_env(game, number, **options)
        rng = np.random.default_rng(number)
        paid, single, due = (dict.fromkeys(env.possible_agents, 0.0) for _ in range(3))
        for agent in env.agent_iter():
            _, reward, termination, truncation, _ = env.last()
            assert reward == due[agent] and not truncation
            paid[agent] += reward
            due[agent] = 0.0
            env.step(None if termination else rng.choice(legal_actions(env)))
            for name, value in env.rewards.items() if not termination else ():
                assert isinstance(value, float)
                single[name] += value
                due[name] += value
        assert paid == pytest.approx(single)
        assert env.agents == [] and env.num_agents == 0


@pytest.mark.mechanics
def test_everything_works_after_the_end(game: Game) -> None:
    env = play_randomly(fresh(game), 3)
    assert env.outcome()["over"] and env.outcome()["reason"] not in ("", "illegal")
    assert len(env.outcome()["scores"]) == game.rules.NUM_SEATS
    assert all(env.terminations.values()) and env.legal_moves() == []
    for agent in env.possible_agents:
        assert env.view(agent)["to_move"] is None
        assert not env.observe(agent)["action_mask"].any()
    verify(env.record())
    assert env.state_space.contains(env.state())
    with pytest.raises(ValueError, match="the only valid action is None"):
        env.step(0)
    for _ in env.agent_iter():
        env.step(None)
    assert env.agents == [] and env.observe("player_0") and env.outcome()["over"]
    for call in (env.last, lambda: env.step(None), lambda: env.step(0)):
        with pytest.raises(RuntimeError, match=r"over for all agents: call reset\(\)"):
            call()
    env.reset()
    assert not env.outcome()["over"] and env.agents == env.possible_agents


@pytest.mark.mechanics
def test_nothing_works_before_reset(game: Game) -> None:
    env = CardEnv(game)
    for call in (
        lambda: env.observe("player_0"), env.state, env.outcome, env.legal_moves, env.record, env.render,
        lambda: env.view("player_0"), lambda: env.step(0), lambda: env.step(None), env.last, env.agent_iter,
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"reset\(\)"):
            call()


# Seeds and deals


@pytest.mark.mechanics
def test_seeds(game: Game) -> None:
    one, other = new_env(game, 5), new_env(game, 5)
    first = snapshot(one)
    assert first == snapshot(other)
    for env in (one, other):
        env.reset()  # goes on with the stream: another deal, the same in both
    again = snapshot(one)
    assert again == snapshot(other) and again["states"] != first["states"]
    one.reset(seed=5)
    assert snapshot(one)["states"] == first["states"] != snapshot(new_env(game, 6))["states"]
    unseeded = [CardEnv(game) for _ in range(2)]
    for env in unseeded:
        env.reset()
    assert unseeded[0].states["rng"] != unseeded[1].states["rng"]


@pytest.mark.mechanics
def test_wrong_deals_leave_the_environment_as_it_was(game: Game) -> None:
    env = fresh(game)
    play_randomly(env, 4, moves=2)
    before = snapshot(env)
    good = env.record().deal
    for options, named in (
        ({"deal": None}, "deal"),
        ({"deal": {}}, "deal"),
        ({"deal": {**good, "surprise": 1}}, "surprise"),
        ({"surprise": 1}, "surprise"),
        ({"deal": good, "surprise": 1}, "surprise"),
    ):
        with pytest.raises(ValueError, match=named):
            env.reset(seed=9, options=options)
        assert snapshot(env) == before
    twin = env.clone()
    for each in (env, twin):
        play_randomly(each, 5)
    assert snapshot(env) == snapshot(twin)


@pytest.mark.mechanics
def test_options_are_checked_by_name(game: Game) -> None:
    with pytest.raises(ValueError, match=rf"{game.name}.*no_such_option.*reward"):
        CardEnv(game, no_such_option=1)
    with pytest.raises(ValueError, match="reward"):
        CardEnv(game, reward="nonsense")
    for kind in (TypeError, ValueError):  # trainers try arguments and expect Python's error
        with pytest.raises(kind, match="got an unexpected keyword argument 'frameskip'"):
            gymnasium.make(game.gymnasium_id, frameskip=1)


# Illegal moves


def illegal_actions(env: CardEnv) -> list[int]:
    mask = env.last()[0]["action_mask"]
    return [-1, len(mask), 1 << 40, *np.flatnonzero(mask == 0)[:1].tolist()]


def test_an_illegal_move_ends_the_game(game: Game) -> None:
    for options in option_sets(game)[:8]:
        worst = -1.0 if game.validated(options).reward == "win" else float(game.rules.WORST_SCORE)
        for action in illegal_actions(new_env(game, **options)):
            env = new_env(game, **options)
            moves, mover = env.record().moves, env.agent_selection
            env.step(action)
            assert env.outcome()["over"] and env.outcome()["reason"] == "illegal"
            assert all(env.terminations.values()) and not any(env.truncations.values())
            assert env.rewards == {agent: worst if agent == mover else 0.0 for agent in env.possible_agents}
            for agent in env.agent_iter():
                _, reward, termination, _, _ = env.last()
                assert reward == (worst if agent == mover else 0.0) and termination
                env.step(None)
            assert env.record().moves == moves
            assert all(env.view(agent)["legal"] == [] for agent in env.possible_agents)
            env.reset(seed=1)
            assert not env.outcome()["over"]


@pytest.mark.mechanics
def test_an_illegal_move_can_be_an_error(game: Game) -> None:
    """Nothing changes then, and what the seat was paid since its last move is still there to be read."""
    rng = np.random.default_rng(6)
    for number in range(3):
        env = fresh(game, number, illegal_move="raise")
        before = snapshot(env)
        for action in illegal_actions(env):
            with pytest.raises(IllegalMove, match=rf"{game.name}.*{action}.*{env.agent_selection}") as error:
                env.step(action)
            assert all(move in str(error.value) for move in env.legal_moves()) and snapshot(env) == before
        while not env.outcome()["over"]:
            due = env.last()[1]
            with pytest.raises(IllegalMove):
                env.step(-1)
            assert env.last()[1] == due
            env.step(rng.choice(legal_actions(env)))


# Copies


@pytest.mark.mechanics
def test_copies_are_equal_and_independent(game: Game) -> None:
    env = play_randomly(fresh(game, render_mode="ansi"), 7, moves=3)
    before = snapshot(env)
    copies = [env.clone(), copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    for twin in copies:
        assert snapshot(twin) == before
        assert twin.render() == env.render()
        assert twin.game == env.game and twin.options == env.options
    for twin in copies:
        play_randomly(twin, 8)
        twin.reset()
        play_randomly(twin, 9)
    assert snapshot(env) == before
    play_randomly(env, 8)
    env.reset()
    play_randomly(env, 9)
    assert all(snapshot(twin) == snapshot(env) for twin in copies)


# Text


@pytest.mark.mechanics
def test_text_of_moves(game: Game) -> None:
    env = fresh(game)
    for text in env.legal_moves():
        assert env.move_text(np.int64(env.parse_move(text))) == text
    for wrong in (-1, game.rules.NUM_ACTIONS):
        with pytest.raises(ValueError, match="action"):
            env.move_text(wrong)
    with pytest.raises(ValueError, match="surely no move"):
        env.parse_move("surely no move")
    wrong_text: Any
    for wrong_text in (None, 5, b"x", ["turn"]):
        with pytest.raises(ValueError, match="move: expected a text"):
            env.parse_move(wrong_text)
        with pytest.raises(ValueError, match="move"):
            game.view.parse_move(env.states[0], wrong_text)


@pytest.mark.mechanics
def test_rendering(game: Game, capsys: pytest.CaptureFixture[str]) -> None:
    env = play_randomly(fresh(game, render_mode="ansi"), 1, moves=2)
    text = env.render()
    assert text and max(map(len, text.splitlines())) <= 80
    text = play_randomly(env, 1).render()
    assert text and env.outcome()["reason"] in text and str(env.outcome()["scores"]) in text
    assert capsys.readouterr().out == ""
    human = fresh(game, render_mode="human")
    shown = capsys.readouterr().out
    assert shown.strip() == (fresh(game, render_mode="ansi").render() or "").strip()
    human.step(legal_actions(human)[0])
    assert capsys.readouterr().out not in ("", shown)
    assert fresh(game).render() is None


# Gymnasium


@pytest.mark.mechanics
@pytest.mark.parametrize("early", [True, False], ids=["kept from the start", "asked for later"])
@pytest.mark.parametrize("ends", [False, True], ids=["in the middle", "at the end"])
def test_what_is_written_into_the_state_counts_at_once(game: Game, early: bool, ends: bool) -> None:
    """Masks, observations, infos, the seat to move and the legal moves are those of the state as it is."""

    def first_legal(env: CardEnv) -> int:
        return int(env.last()[0]["action_mask"].argmax())

    env = fresh(game, 3, illegal_move="raise")
    twin = env.clone()
    states, expected = env.states if early else None, twin.last()
    wrong = -1
    while not env.outcome()["over"]:
        wrong = first_legal(env)
        if not ends and not expected[0]["action_mask"][wrong]:
            break
        env.step(wrong)
    (env.states if states is None else states)[:] = twin.states
    if not expected[0]["action_mask"][wrong]:
        with pytest.raises(IllegalMove):
            env.step(wrong)
    assert env.legal_moves() == twin.legal_moves() and env.agent_selection == twin.agent_selection
    obs, _, over, _, info = env.last()
    assert (obs["observation"] == expected[0]["observation"]).all() and over == expected[2]
    assert (obs["action_mask"] == expected[0]["action_mask"]).all() and (
        info["action_mask"] == obs["action_mask"]
    ).all()
    for agent in env.agents:
        assert (env.infos[agent]["action_mask"] == twin.infos[agent]["action_mask"]).all()
        assert all((env.observe(agent)[key] == twin.observe(agent)[key]).all() for key in obs)
    for each in (env, twin):
        each.step(first_legal(each))
    assert field_bytes(env.states) == field_bytes(twin.states)


@pytest.mark.mechanics
@pytest.mark.parametrize("agent", ["player_9", None, []])
def test_agents_that_there_are_not(game: Game, agent: Any) -> None:
    env = CardEnv(game)
    env.reset(seed=1)
    for call in (env.observe, env.view, env.observation_space, env.action_space):
        with pytest.raises(ValueError, match=f"{game.name}: agent: expected one of player_0"):
            call(agent)


@pytest.mark.mechanics
def test_environments_do_not_believe_their_masks(game: Game) -> None:
    env = CardEnv(game, illegal_move="raise")
    env.reset(seed=1)
    agent = env.agent_selection
    forbidden = int(env.observe(agent)["action_mask"].argmin())
    for mask in (env.observe(agent)["action_mask"], env.infos[agent]["action_mask"], env.last()[0]["action_mask"]):
        mask[:] = 1
        with pytest.raises(IllegalMove):
            env.step(forbidden)
    vector = VectorSeatEnv(game.name, 3, opponents="greedy", illegal_move="raise")
    _, info = vector.reset(seed=1)
    forbidden = info["action_mask"].argmin(axis=1)
    info["action_mask"][:] = 1
    with pytest.raises(IllegalMove):
        vector.step(forbidden)
