"""Players that need no training: uniformly random, and the scripted ones of each game's `bot.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import one_of
from card_envs.engine.compile import BOTS
from card_envs.opponents.policy import Turn, sample


class RandomPolicy:
    """Every legal action is equally likely."""

    def act(self, turn: Turn, rng: np.random.Generator) -> NDArray[np.int64]:
        return sample(self.probabilities(turn), rng)

    def probabilities(self, turn: Turn) -> NDArray[np.float32]:
        return (turn.mask / turn.mask.sum(axis=1, keepdims=True)).astype(np.float32)


class ScriptedPolicy:
    """The player of that name in the game's `bot.py`: `trivial` or `greedy`. Deterministic."""

    def __init__(self, bot: str) -> None:
        """Take the player's name. Raises ValueError where there is none of that name."""
        one_of(bot, BOTS, "bot")
        self.bot = bot

    def act(self, turn: Turn, rng: np.random.Generator) -> NDArray[np.int64]:
        return turn.bot_moves(self.bot)

    def probabilities(self, turn: Turn) -> NDArray[np.float32]:
        return np.eye(turn.mask.shape[1], dtype=np.float32)[turn.bot_moves(self.bot)]
