"""`python -m benchmarks.packing`: how long `Packing` takes beside the step whose observations and masks it packs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measuring import Row, command, in_turns, timed
from card_envs import GAMES, Packing
from card_envs._bench import batch_out_of_step
from card_envs.game import Game

TABLES = 1024


def row(game: Game, seconds: float) -> Row:
    """Random steps, and the packing of what they showed."""
    env, packing = batch_out_of_step(game, TABLES), Packing(game)
    streams, actions = np.arange(TABLES, dtype=np.uint64), np.zeros(TABLES, np.int64)

    def step() -> int:
        env.random_actions(streams, actions)
        env.step(actions)
        return TABLES

    def pack() -> int:
        packing.pack(env.obs)
        packing.pack_mask(env.mask)
        return TABLES

    return in_turns(f"packing, {game.title}", "`BatchEnv.step`", timed(step), timed(pack), seconds)


def rows(seconds: float) -> Iterator[Row]:
    """Every game."""
    return (row(game, seconds) for game in GAMES.values())


if __name__ == "__main__":
    command(rows)
