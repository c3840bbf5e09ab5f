"""Several threads in one object: refused with a clear error, and never corrupted."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from card_envs import BatchEnv
from card_envs.engine._legality import IllegalMove
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game
from card_envs.opponents.policy import Decisions
from card_envs.opponents.scripted import ScriptedPolicy
from tests.conftest import short_options

pytestmark = pytest.mark.mechanics


def test_batch_survives_four_threads(game: Game) -> None:
    """Each step happens whole or not at all: every table is one that can come about."""
    env = BatchEnv(game, 512, options=short_options(game))
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
    for call, name in ((lambda: env.reset(seed=2), "reset"), (lambda: env.step(env.action_space.sample()), "step")):
        with pytest.raises(RuntimeError, match=f"{kind.__name__}.{name}: another thread is inside"):
            call()
    leave.set()
    first.join()
    env.reset(seed=2)
