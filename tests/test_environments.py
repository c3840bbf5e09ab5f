"""The environments as users and their tools meet them: PettingZoo, Gymnasium, and what goes beyond both."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, render_test, seed_test

from card_envs.engine.legality import IllegalMove
from card_envs.envs._replay import verify
from card_envs.envs.aec import CardEnv
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game
from tests.conftest import fewest_moves, field_bytes, option_sets, play_randomly, short_options


def gymnasium_id(game: Game) -> str:
    return f"card_envs/{game.title.replace(' ', '')}-v{game.version}"


def fresh(game: Game, seed: int = 0, **arguments: Any) -> CardEnv:
    """An environment with the shortest episodes, freshly dealt."""
    env = CardEnv(game, **{**short_options(game), **arguments})
    env.reset(seed=seed)
    return env


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


def test_pettingzoo_make(game: Game) -> None:
    if not hasattr(pettingzoo, "make"):
        pytest.skip("this PettingZoo has no registry")
    env = pettingzoo.make("aec", game.id, illegal_move="raise", **short_options(game))
    assert isinstance(env, CardEnv) and env.game == game and env.illegal_move == "raise"
    assert env.metadata["name"] == f"{game.name}_v{game.version}"
    play_randomly_from(env)


def play_randomly_from(env: CardEnv) -> None:
    env.reset(seed=1)
    play_randomly(env, 1)
    assert env.outcome()["over"]


def test_the_module_that_pettingzoo_users_import(game: Game) -> None:
    if not game.package.startswith("card_envs.games."):
        pytest.skip("a game outside the package")
    module = importlib.import_module(f"card_envs.{game.name}_v{game.version}")
    for make in (module.env, module.raw_env):
        env = make(render_mode="ansi", **short_options(game))
        assert isinstance(env, CardEnv) and env.game == game
        play_randomly_from(env)


def test_spaces(game: Game) -> None:
    env = fresh(game)
    rules = game.rules
    assert env.possible_agents == [f"player_{seat}" for seat in range(rules.NUM_SEATS)]
    for agent in env.possible_agents:
        assert env.observation_space(agent) == env.observation_space("player_0")
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
        assert env.action_space(agent) == spaces.Discrete(rules.NUM_ACTIONS)
        assert set(env.observe(agent)) == {"observation", "action_mask"}
    while not env.outcome()["over"]:
        for agent in env.possible_agents:
            observation = env.observe(agent)
            assert env.observation_space(agent).contains(observation)
            assert all(value.dtype == np.int8 for value in observation.values())
            assert env.infos[agent]["action_mask"].dtype == np.int8
            assert set(env.infos[agent]) == {"action_mask"}
        assert env.state_space.contains(env.state())
        play_randomly(env, 0, moves=1)
    assert all(env.observation_space(agent).contains(env.observe(agent)) for agent in env.possible_agents)


def test_masks(game: Game) -> None:
    """One mask for the seat to move, in its observation and its info; all zero for everybody else."""
    env = fresh(game)
    rng = np.random.default_rng(2)
    while not env.outcome()["over"]:
        for agent in env.possible_agents:
            mask = env.observe(agent)["action_mask"]
            assert np.array_equal(mask, env.infos[agent]["action_mask"])
            assert mask.any() == (agent == env.agent_selection)
            mask[:] = 1  # a copy: callers may write into it
        observation, _, _, _, info = env.last()
        assert np.array_equal(observation["action_mask"], info["action_mask"])
        legal = np.flatnonzero(info["action_mask"])
        assert env.legal_moves() == [env.move_text(action) for action in legal]
        assert env.action_space(env.agent_selection).sample(info["action_mask"]) in legal
        env.step(rng.choice(legal))
    assert not any(env.observe(agent)["action_mask"].any() for agent in env.possible_agents)
    assert env.legal_moves() == []


def test_observations_are_the_users_own(game: Game) -> None:
    env = fresh(game)
    before = snapshot(env)
    for agent in env.possible_agents:
        for array in (*env.observe(agent).values(), *env.last()[0].values()):
            array[:] = 1
    env.state()[:] = 1
    assert snapshot(env) == before


def test_obs_key(game: Game) -> None:
    env = fresh(game, obs_key="observations")
    assert set(env.observe("player_0")) == {"observations", "action_mask"}
    assert env.observation_space("player_0").contains(env.observe("player_0"))
    assert np.array_equal(env.observe("player_0")["observations"], fresh(game).observe("player_0")["observation"])


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
        action = rng.choice(np.flatnonzero(env.last()[4]["action_mask"]))
        env.step(action)
        twin.step(action)
    with contextlib.redirect_stdout(io.StringIO()):
        api_test(fresh(game, observe="flat"), num_cycles=100)
        seed_test(lambda: CardEnv(game, observe="flat"), num_cycles=60)
    with pytest.raises(ValueError, match="observe: expected"):
        CardEnv(game, observe="array")  # type: ignore[arg-type]


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


@pytest.mark.parametrize("make_action", [int, np.int8, np.int32, np.int64, np.array])
def test_actions_of_any_whole_type(game: Game, make_action: Callable[[int], Any]) -> None:
    env, twin = fresh(game), fresh(game)
    action = int(np.flatnonzero(env.last()[0]["action_mask"])[0])
    env.step(make_action(action))
    twin.step(action)
    assert snapshot(env) == snapshot(twin)


@pytest.mark.parametrize("action", [None, 1.0, "x", [0], np.float32(1)])
def test_other_actions_are_value_errors(game: Game, action: Any) -> None:
    env = fresh(game)
    before = snapshot(env)
    with pytest.raises(ValueError, match="action"):
        env.step(action)
    assert snapshot(env) == before


def test_rewards_add_up(game: Game) -> None:
    """`last()` pays what came in since the seat's last move; the sums are those of every single reward."""
    for number, options in enumerate(option_sets(game)[:6]):
        env = CardEnv(game, **options)
        env.reset(seed=number)
        rng = np.random.default_rng(number)
        paid = dict.fromkeys(env.possible_agents, 0.0)
        single = dict.fromkeys(env.possible_agents, 0.0)
        due = dict.fromkeys(env.possible_agents, 0.0)
        for agent in env.agent_iter():
            observation, reward, termination, truncation, _ = env.last()
            assert reward == due[agent]
            assert not truncation
            paid[agent] += reward
            due[agent] = 0.0
            if termination:
                env.step(None)
                continue
            env.step(rng.choice(np.flatnonzero(observation["action_mask"])))
            for name, value in env.rewards.items():
                assert isinstance(value, float)
                single[name] += value
                due[name] += value
        assert paid == pytest.approx(single)
        assert env.agents == [] and env.num_agents == 0


def test_whoever_moves_again_stays_selected(game: Game) -> None:
    env = fresh(game)
    again = 0
    for number in range(20):
        if again > 0 and number >= 3:
            break
        env.reset(seed=number)
        rng = np.random.default_rng(number)
        while not env.outcome()["over"]:
            mover = env.agent_selection
            env.step(rng.choice(np.flatnonzero(env.last()[0]["action_mask"])))
            if not env.outcome()["over"]:
                assert env.agent_selection == f"player_{env.states['seat'][0]}"
                again += env.agent_selection == mover
    if again == 0:
        pytest.skip("its turns alternate strictly")


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
    with pytest.raises(ValueError, match="None"):
        env.step(0)
    while env.agents:
        env.step(None)
    env.reset()
    assert not env.outcome()["over"] and env.agents == env.possible_agents


def test_nothing_works_before_reset(game: Game) -> None:
    env = CardEnv(game)
    for call in (
        lambda: env.observe("player_0"), env.state, env.outcome, env.legal_moves, env.record, env.render,
        lambda: env.view("player_0"), lambda: env.step(0),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"reset\(\)"):
            call()


# Seeds and deals


def test_seeds(game: Game) -> None:
    one, other = CardEnv(game), CardEnv(game)
    one.reset(seed=5)
    other.reset(seed=5)
    assert snapshot(one) == snapshot(other)
    one.reset()  # goes on with the stream: another deal, the same in both
    other.reset()
    again = snapshot(one)
    assert again == snapshot(other)
    one.reset(seed=5)
    assert snapshot(one)["states"] != again["states"]
    assert snapshot(one)["states"] == snapshot_of_seed(game, 5)
    other.reset(seed=6)
    assert snapshot(other)["states"] != snapshot(one)["states"]
    with pytest.raises(ValueError, match="seed"):
        one.reset(seed=-1)
    unseeded = [CardEnv(game) for _ in range(2)]
    for env in unseeded:
        env.reset()
    assert unseeded[0].states["rng"] != unseeded[1].states["rng"]


def snapshot_of_seed(game: Game, seed: int) -> bytes:
    env = CardEnv(game)
    env.reset(seed=seed)
    return field_bytes(env.states)


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


def test_options_are_checked_by_name(game: Game) -> None:
    with pytest.raises(ValueError, match=rf"{game.name}.*no_such_option.*reward"):
        CardEnv(game, no_such_option=1)
    for kind in (TypeError, ValueError):  # trainers try arguments and expect Python's error
        with pytest.raises(kind, match="got an unexpected keyword argument 'frameskip'"):
            gymnasium.make(gymnasium_id(game), frameskip=1)
    for name, wrong in (("render_mode", "rgb"), ("illegal_move", "ignore"), ("reward", "nonsense")):
        with pytest.raises(ValueError, match=name):
            CardEnv(game, **{name: wrong})  # type: ignore[arg-type]


# Illegal moves


def illegal_actions(env: CardEnv) -> list[int]:
    mask = env.last()[0]["action_mask"]
    return [-1, len(mask), 1 << 40, *np.flatnonzero(mask == 0)[:1].tolist()]


def test_an_illegal_move_ends_the_game(game: Game) -> None:
    for options in option_sets(game)[:8]:
        worst = -1.0 if game.validated(options).reward == "win" else float(game.rules.WORST_SCORE)
        env = CardEnv(game, **options)
        env.reset(seed=1)
        for action in illegal_actions(env):
            env.reset(seed=1)
            moves = env.record().moves
            mover = env.agent_selection
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


def test_an_illegal_move_can_be_an_error(game: Game) -> None:
    env = fresh(game, illegal_move="raise")
    play_randomly(env, 6, moves=min(game.rules.NUM_SEATS + 1, fewest_moves(game) - 1))
    before = snapshot(env)
    legal = env.legal_moves()
    for action in illegal_actions(env):
        with pytest.raises(IllegalMove, match=rf"{game.name}.*{action}.*{env.agent_selection}") as error:
            env.step(action)
        assert all(move in str(error.value) for move in legal)
        assert snapshot(env) == before
    play_randomly(env, 6)


def test_illegal_moves_keep_the_rewards_due(game: Game) -> None:
    """`illegal_move="raise"`: what the seat was paid since its last move is still there to be read."""
    env = fresh(game, illegal_move="raise")
    for number in range(4):
        env.reset(seed=number)
        rng = np.random.default_rng(number)
        while not env.outcome()["over"]:
            due = env.last()[1]
            with pytest.raises(IllegalMove):
                env.step(-1)
            assert env.last()[1] == due
            env.step(rng.choice(np.flatnonzero(env.last()[0]["action_mask"])))


# Copies


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


def test_an_environment_can_be_copied_before_reset(game: Game) -> None:
    env = CardEnv(game)
    for twin in (env.clone(), pickle.loads(pickle.dumps(env))):
        twin.reset(seed=3)
        env.reset(seed=3)
        assert snapshot(twin) == snapshot(env)


# Text


def test_text_of_moves(game: Game) -> None:
    env = fresh(game)
    rng = np.random.default_rng(1)
    while not env.outcome()["over"]:
        text = env.legal_moves()[0]
        assert env.observe(env.agent_selection)["action_mask"][env.parse_move(text)] == 1
        assert env.move_text(np.int64(env.parse_move(text))) == text
        env.step(rng.choice(np.flatnonzero(env.last()[0]["action_mask"])))
    for wrong in (-1, game.rules.NUM_ACTIONS):
        with pytest.raises(ValueError, match="action"):
            env.move_text(wrong)
    with pytest.raises(ValueError, match="surely no move"):
        env.parse_move("surely no move")


def test_rendering(game: Game, capsys: pytest.CaptureFixture[str]) -> None:
    env = fresh(game, render_mode="ansi")
    rng = np.random.default_rng(1)
    while True:
        text = env.render()
        assert text and max(map(len, text.splitlines())) <= 80
        if env.outcome()["over"]:
            break
        env.step(rng.choice(np.flatnonzero(env.last()[0]["action_mask"])))
    assert env.outcome()["reason"] in text and str(env.outcome()["scores"]) in text
    assert capsys.readouterr().out == ""
    human = fresh(game, render_mode="human")
    shown = capsys.readouterr().out
    assert shown.strip() == (fresh(game, render_mode="ansi").render() or "").strip()
    human.step(np.flatnonzero(human.last()[0]["action_mask"])[0])
    assert capsys.readouterr().out not in ("", shown)
    assert fresh(game).render() is None


# Gymnasium


def test_gymnasium_conformance(game: Game) -> None:
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        env = gymnasium.make(gymnasium_id(game), **short_options(game))
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


def test_gymnasium_episodes_are_reproducible(game: Game) -> None:
    for opponents in ("random", "greedy"):
        envs = [gymnasium.make(gymnasium_id(game), opponents=opponents, **short_options(game)).unwrapped] * 2
        for seed in range(5):
            one, other = (play_single(env, seed) for env in envs)  # type: ignore[arg-type]
            assert one == other


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


def test_gymnasium_seats_and_opponents(game: Game) -> None:
    with pytest.raises(ValueError, match="no_such_option"):
        SingleSeatEnv(game.name, no_such_option=1)
    env = SingleSeatEnv(game.name, seat="random", **short_options(game))
    seats = set()
    for seed in range(40):
        env.reset(seed=seed)
        seats.add(env.seat)
    assert seats == set(range(game.rules.NUM_SEATS))


def test_gymnasium_rendering(game: Game) -> None:
    env = gymnasium.make(gymnasium_id(game), render_mode="ansi", **short_options(game))
    env.reset(seed=1)
    text = env.render()
    assert isinstance(text, str) and max(map(len, text.splitlines())) <= 80


def played_on(env: CardEnv, moves: int) -> int:
    """Play some moves; return an action that is legal then."""
    for _ in range(moves):
        env.step(int(env.last()[0]["action_mask"].argmax()))
    return int(env.last()[0]["action_mask"].argmax())


@pytest.mark.parametrize("early", [True, False], ids=["kept from the start", "asked for again"])
@pytest.mark.parametrize("ends", [False, True], ids=["later", "at the end"])
def test_what_is_written_into_the_state_counts_at_once(game: Game, early: bool, ends: bool) -> None:
    """Masks, observations, infos, the seat to move and the legal moves are those of the state as it is."""
    env = CardEnv(game, illegal_move="raise", **short_options(game))
    env.reset(seed=3)
    states = env.states if early else None
    played_on(env, min(2, fewest_moves(game) - 1))
    twin, saved = env.clone(), env.states.copy()
    if not early:
        env._lent = False  # as if nobody had asked yet
    expected = env.last()
    wrong = -1
    for _ in range(100_000):
        wrong = played_on(env, 0)
        if env._over or (not ends and not expected[0]["action_mask"][wrong]):
            break
        env.step(wrong)
    (env.states if states is None else states)[:] = saved
    if not ends:
        with pytest.raises(IllegalMove):
            env.step(wrong)
    assert env.legal_moves() == twin.legal_moves() and env.agent_selection == twin.agent_selection
    played_on(env, 0)
    obs, _, over, _, info = env.last()
    assert (obs["observation"] == expected[0]["observation"]).all() and over == expected[2]
    assert (obs["action_mask"] == expected[0]["action_mask"]).all()
    assert (info["action_mask"] == expected[0]["action_mask"]).all()
    for agent in env.agents:
        assert (env.infos[agent]["action_mask"] == twin.infos[agent]["action_mask"]).all()
        assert all((env.observe(agent)[key] == twin.observe(agent)[key]).all() for key in obs)
    action = int(info["action_mask"].argmax())
    env.step(action)
    twin.step(action)
    assert field_bytes(env.states) == field_bytes(twin.states)


@pytest.mark.mechanics
@pytest.mark.parametrize("agent", ["player_9", None, []])
def test_agents_that_there_are_not(game: Game, agent: Any) -> None:
    env = CardEnv(game)
    env.reset(seed=1)
    for call in (env.observe, env.view, env.observation_space, env.action_space):
        with pytest.raises(ValueError, match=f"{game.name}: agent: expected one of player_0"):
            call(agent)


@pytest.mark.parametrize("text", [None, 5, b"x", ["turn"]])
def test_moves_that_are_no_text(game: Game, text: Any) -> None:
    env = CardEnv(game)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="move: expected a text"):
        env.parse_move(text)
    with pytest.raises(ValueError, match="move"):
        game.view.parse_move(env.states[0], text)


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
