"""Whatever plays can be copied, and sent to a worker: the copy does the same."""

from __future__ import annotations

import copy
import importlib.util
import math
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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
from tests.conftest import interrupted, is_timed, positions, run_python, some, untrained

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
        "search:2,prior=trivial",
        str(folder / "mine"),
        f"search:4,prior={folder / 'mine'}",
        "tests.conftest:FirstLegal",
    ]
    names += [f"{phase}=greedy+{folder / 'mine'}" for phase in game.view.PHASES]
    return [load_opponent(name, game) for name in names]


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
def test_a_copy_plays_as_its_original(game: Game, way: str, tmp_path: Path) -> None:
    """With its name, the options that it was trained with, and where it is from; also as a part of another."""
    options = {"reward": "win"}
    decisions = decisions_at(game, some(positions(game), 4))
    policies = [player.policy for player in all_players(game, tmp_path)]
    for network in small_networks(game):
        folder = tmp_path / network.architecture
        save_network(folder, network, decisions, training={"config": {"options": options}}, strength=[])
        names = [str(folder), *(f"{phase}=greedy+{folder}" for phase in game.view.PHASES)]
        names += [f"search:2,prior={folder}"] * (network.architecture != "n-tuple")
        trained = [load_opponent(name, game, sampled=False).policy for name in names]
        assert all(options in [getattr(part, "trained_options", None) for part in one.parts()] for one in trained)
        policies += trained
    for policy in policies:
        twin = WAYS[way](policy)
        for part, copied in zip(policy.parts(), twin.parts(), strict=True):
            for what in ("name", "sampled", "trained_options", "origin"):
                assert getattr(copied, what, None) == getattr(part, what, None), (policy.name, what)
        moves, its_moves = (player.act(decisions, np.random.default_rng(1)) for player in (policy, twin))
        assert np.array_equal(moves, its_moves), policy.name


def test_a_process_that_knows_nothing_takes_it_all(tmp_path: Path) -> None:
    decisions = decisions_at(TINY, some(positions(TINY), 4))
    (tmp_path / "sent").write_bytes(pickle.dumps((all_players(TINY, tmp_path)[:3], decisions)))
    code = "import pickle; players, decisions = pickle.load(open('sent', 'rb')); print(len(players), len(decisions))"
    assert run_python("-c", code, folder=tmp_path).stdout == "3 4\n"


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
