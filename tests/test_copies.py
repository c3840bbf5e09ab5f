"""Whatever plays can be copied, and sent to a worker: the copy does the same."""

from __future__ import annotations

import copy
import importlib.util
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from card_envs.game import Game
from card_envs.opponents import load_opponent, opponent_names
from card_envs.opponents.networks.folder import save_network
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.onnx import OnnxPolicy, to_onnx
from card_envs.opponents.networks.policies import ARCHITECTURES, NetworkPolicy, TrainedPolicy
from card_envs.opponents.policy import Opponent, decisions_at
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import is_timed, positions, short_options, some, untrained

pytestmark = pytest.mark.mechanics

WAYS: dict[str, Callable[[Any], Any]] = {
    "sent": lambda one: pickle.loads(pickle.dumps(one)),
    "deep": copy.deepcopy,
    "shallow": copy.copy,
}


def all_players(game: Game, folder: Path) -> list[Opponent]:
    """Those that the package ships, and one of each other kind."""
    network = untrained(game, NetworkPolicy, [8, 8])
    save_network(folder / "mine", network, decisions_at(game, some(positions(game), 8)), training={}, strength=[])
    names = [
        name for name in opponent_names(game) if not is_timed(game, name) and name not in ("champion", "search:1024")
    ]
    names += [
        "search:2,rollout=trivial",
        str(folder / "mine"),
        f"search:4,prior={folder / 'mine'}",
        "tests.conftest:FirstLegal",
    ]
    names += [f"{phase}=greedy+{folder / 'mine'}" for phase in game.view.PHASES]
    return [load_opponent(name, game) for name in names]


@pytest.mark.parametrize("way", WAYS)
def test_players(game: Game, way: str, tmp_path: Path) -> None:
    decisions = decisions_at(game, some(positions(game), 4))
    for player in all_players(game, tmp_path):
        copied = WAYS[way](player)
        assert copied.name == player.name and copied.game == game
        moves, its_moves = (one.act(decisions, np.random.default_rng(1)) for one in (player, copied))
        assert np.array_equal(moves, its_moves), player.name
        assert getattr(copied.policy, "sampled", None) == getattr(player.policy, "sampled", None)


def small_networks(game: Game) -> list[TrainedPolicy]:
    """One of each kind that a folder can hold."""
    rng = np.random.default_rng(0)
    networks: list[TrainedPolicy] = [untrained(game, kind, [8, 8]) for kind in ARCHITECTURES.values()]
    if game.planner is not None:
        (shape,) = NTuplePolicy.shapes(game, []).values()
        networks.append(NTuplePolicy(game, {"weights": rng.normal(0, 0.3, shape).astype(np.float32)}))
    if all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime")):
        networks.append(OnnxPolicy(game, to_onnx(networks[0])))
    return networks


@pytest.mark.parametrize("way", WAYS)
def test_what_a_folder_says_of_a_policy_is_copied_with_it(game: Game, way: str, tmp_path: Path) -> None:
    """Its name, the options that it was trained with, how it plays, and where it is from; alone and as a part."""
    options = {"reward": "win"}
    decisions = decisions_at(game, some(positions(game), 4))
    for network in small_networks(game):
        folder = tmp_path / network.architecture
        training = {"config": {"options": options}}
        save_network(folder, network, decisions, training=training, strength=[])
        names = [str(folder), *(f"{phase}=greedy+{folder}" for phase in game.view.PHASES)]
        names += [f"search:2,prior={folder}"] * (network.architecture != "n-tuple")
        for name in names:
            policy = load_opponent(name, game, sampled=False).policy
            twin = WAYS[way](policy)
            for part, copied in zip(policy.parts(), twin.parts(), strict=True):
                for what in ("name", "sampled", "trained_options", "origin"):
                    assert getattr(copied, what, None) == getattr(part, what, None), (name, what)
            assert options in [getattr(part, "trained_options", None) for part in twin.parts()]
            moves, its_moves = (player.act(decisions, np.random.default_rng(1)) for player in (policy, twin))
            assert np.array_equal(moves, its_moves), name


@pytest.mark.parametrize("way", ["sent", "deep"])
def test_environments_of_gymnasium(game: Game, way: str) -> None:
    one = gymnasium.make(game.gymnasium_id, opponents="trivial")
    many = gymnasium.make_vec(game.gymnasium_id, num_envs=3, opponents="trivial")
    made: Any
    for made in (one, many):
        made.reset(seed=1)
        twin = WAYS[way](made)
        for _ in range(2):
            masks = made.unwrapped.action_masks()
            seen, its = (env.step(masks.argmax(axis=-1))[0] for env in (made, twin))
            assert np.array_equal(seen, its)


def spiel_game(game: Game) -> Any:
    pytest.importorskip("pyspiel", reason="the extra `open-spiel` is not installed")
    import pyspiel

    from card_envs.envs import spiel

    if spiel.PREFIX + game.name not in pyspiel.registered_names():
        spiel.register(game)
    return pyspiel.load_game(spiel.PREFIX + game.name, {"options": json.dumps(short_options(game)), "seed": 3})


@pytest.mark.parametrize("way", WAYS)
def test_games_states_and_bots_of_openspiel(game: Game, way: str) -> None:
    made = spiel_game(game)
    from card_envs.envs import spiel

    copied = WAYS[way](made)
    assert copied.get_parameters() == made.get_parameters() and copied.card_game == game
    state = made.new_initial_state()
    for step in range(6):
        state.apply_action(0 if state.is_chance_node() else state.legal_actions()[step % len(state.legal_actions())])
    twin = WAYS[way](state)
    assert type(twin) is type(state) and twin.history() == state.history() and str(twin) == str(state)
    while not state.is_chance_node() and not state.is_terminal():
        assert twin.legal_actions() == state.legal_actions() and twin.current_player() == state.current_player()
        for one in (state, twin):
            one.apply_action(one.legal_actions()[0])
    assert twin.returns() == state.returns()
    state = made.new_initial_state()
    state.apply_action(0)
    bot = spiel.OpponentBot(load_opponent("random", game), seed=5)
    assert WAYS[way](bot).step(state.clone()) == bot.step(state.clone())


def test_what_is_sent_does_not_know_the_deals_to_come(game: Game) -> None:
    made = spiel_game(game)
    before = made.new_initial_state()
    sent = [pickle.loads(pickle.dumps(one)) for one in (before, before, made.new_initial_state())]
    deals = []
    for state in (before, *sent):
        state.apply_action(0)
        deals.append(state.table.game.view.dealt_pack(state.table.state).tobytes())
    assert len(set(deals)) == 2 and deals[0] != deals[1]


def test_a_process_that_knows_nothing_takes_it_all(tmp_path: Path) -> None:
    decisions = decisions_at(TINY, some(positions(TINY), 4))
    made: list[Any] = [*all_players(TINY, tmp_path)[:3], decisions]
    state = spiel_game(TINY).new_initial_state()
    state.apply_action(0)
    (tmp_path / "sent").write_bytes(pickle.dumps((made, state)))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'sent')!r}, 'rb'))[1].legal_actions())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(state.legal_actions())


def interrupted(ask: Callable[[], Any], event: int) -> bool:
    """Whether Ctrl-C at an event of Python's profiler (calls and returns, also of C functions) came before the end."""
    num_events = 0

    def count(*_: Any) -> None:
        nonlocal num_events
        num_events += 1
        if num_events == event:
            raise KeyboardInterrupt

    has_come = True
    try:
        sys.setprofile(count)
        ask()
        has_come, event = num_events >= event, 0  # nothing is raised from here on
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return has_come


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it may come in a destructor
def test_after_an_interrupt_the_next_answer_is_that_of_the_next_question(tmp_path: Path) -> None:
    """Wherever Ctrl-C comes, and of every kind of policy."""
    decisions = decisions_at(TINY, some(positions(TINY), 2))
    first, second = (decisions.at(np.array([row])) for row in range(2))
    players = [*small_networks(TINY), *(player.policy for player in all_players(TINY, tmp_path))]
    # One thread: Ctrl-C while Python takes a lock of a pool leaves that lock taken for good.
    for policy in (player.within(math.inf) for player in players):
        expected = policy.probabilities(second)
        policy.probabilities(first)
        num_events = 0
        while interrupted(partial(policy.probabilities, first), num_events + 1):
            num_events += 1
            policy.reset()
            np.testing.assert_array_equal(policy.probabilities(second), expected, err_msg=policy.name)
        assert num_events > 3
