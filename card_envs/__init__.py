"""Reinforcement-learning environments for card games.

from card_envs import back_alley_v0                   # PettingZoo: back_alley_v0.env()
gymnasium.make("card_envs/BackAlley-v0")              # one seat against opponents
card_envs.BatchEnv(card_envs.get_game("back_alley"), 1024)   # many tables at once
card_envs.load_opponent("back_alley/greedy")          # opponents
card_envs.replay(card_envs.GameRecord.load("game.json"))     # a saved episode
card_envs.review(card_envs.GameRecord.load("game.json"))     # what each of its moves cost
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from card_envs.envs._registration import register_all
from card_envs.game import Game
from card_envs.games import GAMES, get_game
from card_envs.system.moved import MovedModules

if TYPE_CHECKING:
    from card_envs.engine.batch import BatchEnv
    from card_envs.engine.legality import IllegalMove
    from card_envs.envs._replay import replay, verify
    from card_envs.opponents import load_opponent
    from card_envs.opponents.policy import Decisions, Opponent, Policy
    from card_envs.record import GameRecord
    from card_envs.reviews import Review, review

# Imported on first use, because they import Numba; `import card_envs` stays fast.
_LAZY = {
    "BatchEnv": "card_envs.engine.batch",
    "IllegalMove": "card_envs.engine.legality",
    "load_opponent": "card_envs.opponents",
    "Opponent": "card_envs.opponents.policy",
    "Policy": "card_envs.opponents.policy",
    "Decisions": "card_envs.opponents.policy",
    "GameRecord": "card_envs.record",
    "Review": "card_envs.reviews",
    "review": "card_envs.reviews",
    "replay": "card_envs.envs._replay",
    "verify": "card_envs.envs._replay",
}

__all__ = [
    "GAMES", "BatchEnv", "Decisions", "Game", "GameRecord", "IllegalMove", "Opponent", "Policy",
    "Review", "get_game", "load_opponent", "replay", "review", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


sys.meta_path.insert(0, MovedModules())
register_all()
