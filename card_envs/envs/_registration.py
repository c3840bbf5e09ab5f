"""Registration of every game with PettingZoo and Gymnasium."""

from __future__ import annotations

import gymnasium
import pettingzoo

from card_envs.games import GAMES


def register_all() -> None:
    """Register `card_envs/back_alley-v0` with PettingZoo (from 1.27 on), `card_envs/BackAlley-v0` with Gymnasium."""
    for game in GAMES.values():
        if hasattr(pettingzoo, "register") and game.id not in pettingzoo.aec_registry:
            pettingzoo.register("aec", game.id, entry_point="card_envs.envs.aec:CardEnv", kwargs={"game": game})
        if game.gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                game.gymnasium_id,
                entry_point="card_envs.envs.single_agent:SingleSeatEnv",
                vector_entry_point="card_envs.envs.vector:VectorSeatEnv",
                kwargs={"game": game.name},
                order_enforce=True,
            )
