"""Players that need no training: uniformly random, and the scripted ones of each game's `bot.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling._specialize import BOTS
from card_envs.engine.buffers import check_choice
from card_envs.opponents.policy import Decisions, Policy, sample


class RandomPolicy(Policy):
    """Plays uniformly at random among the legal actions."""

    is_quick = True

    def describe(self) -> str:
        return "plays at random"

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return sample(self.probabilities(decisions), rng)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        return (decisions.mask / decisions.mask.sum(axis=1, keepdims=True)).astype(np.float32)


class ScriptedPolicy(Policy):
    """Plays like `trivial` or `greedy` of the game's `bot.py`. Deterministic."""

    is_quick = True

    def __init__(self, bot: str) -> None:
        """Take the player's name. Raises ValueError for an unknown name."""
        check_choice(bot, BOTS, "bot")
        self.bot = bot

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return decisions.bot_moves(self.bot)

    @property
    def bot_name(self) -> str:  # type: ignore[override]
        return self.bot

    def describe(self) -> str:
        return "plays by simple rules"
