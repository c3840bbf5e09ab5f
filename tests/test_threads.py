"""Several threads in one object: refused with a clear error, and never corrupted."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from card_envs import BatchEnv
from card_envs.engine._legality import IllegalMove
from card_envs.engine.rng import table_keys
from card_envs.envs.aec import CardEnv
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game
from card_envs.opponents.policy import Decisions
from card_envs.opponents.scripted import ScriptedPolicy
from tests.conftest import short_options

pytestmark = pytest.mark.mechanics

B = 512


def batch(game: Game) -> tuple[Any, dict[str, Callable[[], object]]]:
    """A batch, and each of its public calls."""
    env = BatchEnv(game, B, options=short_options(game))
    streams, actions = table_keys(1, np.arange(B)), np.zeros(B, np.int64)
    full = np.zeros((B, game.rules.FULL_SIZE), np.int8)
    return env, {
        "step": lambda: env.step(env.mask.argmax(axis=1)),
        "observe": env.observe,
        "are_legal": lambda: env.are_legal(actions),
        "random_actions": lambda: env.random_actions(streams, actions),
        "bot_actions": lambda: env.bot_actions("greedy", actions),
        "observe_all": lambda: env.observe_all(full),
        "random_playout": lambda: env.random_playout(streams, 1),
        "bot_playout": lambda: env.bot_playout("greedy", 1),
    }


def vector(game: Game) -> tuple[Any, dict[str, Callable[[], object]]]:
    env = VectorSeatEnv(game.name, 4, **short_options(game))
    env.reset(seed=1)
    return env, {"step": lambda: env.step(env.action_masks().argmax(axis=1)), "reset": env.reset}


def single(game: Game) -> tuple[Any, dict[str, Callable[[], object]]]:
    env = SingleSeatEnv(game.name, **short_options(game))
    env.reset(seed=1)
    return env, {"step": lambda: env.step(env.action_masks().argmax()), "reset": env.reset}


def pettingzoo(game: Game) -> tuple[Any, dict[str, Callable[[], object]]]:
    env = CardEnv(game, **short_options(game))
    env.reset(seed=1)
    return env, {"step": lambda: env.step(env.last()[0]["action_mask"].argmax()), "reset": env.reset}


KINDS = {"batch": batch, "vector": vector, "single": single, "pettingzoo": pettingzoo}


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_thread_is_refused(game: Game, kind: str) -> None:
    """Whatever it calls; and copies made meanwhile are free."""
    env, calls = KINDS[kind](game)
    env._holder.setdefault(None, -1)  # as if a thread were inside
    before = pickle.dumps(env)
    for name, call in calls.items():
        with pytest.raises(RuntimeError, match=f"{type(env).__name__}.{name}: another thread is inside"):
            call()
    assert pickle.dumps(env) == before
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert not twin._holder
    env._holder.leave()
    for call in calls.values():
        call()
        assert not env._holder


def test_batch_survives_four_threads(game: Game) -> None:
    """Each step happens whole or not at all: every table is one that can come about."""
    env = BatchEnv(game, B, options=short_options(game))
    played = []

    def play() -> None:
        for _ in range(200):
            with suppress(RuntimeError, IllegalMove):  # refused; or another thread has moved since the mask was read
                env.step(env.mask.argmax(axis=1))
                played.append(1)

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert played
    for state in env.states:
        game.view.from_view(game.view.view(state, int(state.seat)))


class Waits(ScriptedPolicy):
    """A policy that lets another thread come in between."""

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Any:
        inside.set()
        assert leave.wait(60)
        return super().act(decisions, rng)


inside, leave = threading.Event(), threading.Event()


@pytest.mark.parametrize("kind", [SingleSeatEnv, VectorSeatEnv])
def test_environments_are_kept_while_opponents_think(game: Game, kind: Any) -> None:
    if game.is_solitaire:
        pytest.skip("nobody else plays")
    inside.clear()
    leave.clear()
    env = kind(game.name, opponents=Waits("greedy"), seat=game.rules.NUM_SEATS - 1, **short_options(game))
    first = threading.Thread(target=lambda: env.reset(seed=1))
    first.start()
    assert inside.wait(60)
    with pytest.raises(RuntimeError, match="another thread"):
        env.reset(seed=2)
    leave.set()
    first.join()
    env.reset(seed=2)
