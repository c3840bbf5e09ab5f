"""Positions to learn from: tables at any stage of their deals, where some moves are random."""

from __future__ import annotations

from typing import Any

import numpy as np

from card_envs.engine import kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.compile import specialize
from card_envs.engine.rng import table_keys
from card_envs.game import Game, Int64s
from training.leads import PLAYER

TEST_SEED = 1 << 40  # its deals are not those that are learned from


class Tables:
    """Tables out of step with each other.

    Attributes:
        env: the tables.
        noise: share of random moves.
        rng: of what is drawn besides deals and random moves.
    """

    def __init__(
        self,
        game: Game,
        number: int,
        seed: int,
        noise: float,
        options: dict[str, Any] | None = None,
        skip_forced: bool = False,
    ) -> None:
        self.env = BatchEnv(game, number, seed, options=options, skip_forced=skip_forced)
        self.noise = noise
        self.rng = np.random.default_rng(seed)
        self._streams = table_keys(seed, np.arange(number))
        for table, moves in enumerate(self.rng.integers(0, 1000, number)):  # at different stages from the start
            specialize(kernels.bot_playout, game, PLAYER)(table, table + 1, self.env.states, moves)
        self.env.observe()

    def own(self) -> Int64s:
        """[B] what `greedy` plays."""
        moves = np.zeros(self.env.num_tables, np.int64)
        self.env.bot_actions(PLAYER, moves)
        return moves

    def play_on(self, moves: Int64s) -> None:
        """Play these moves [B], some of them exchanged for random ones."""
        random = np.zeros(len(moves), np.int64)
        self.env.random_actions(self._streams, random)
        self.env.step(np.where(self.rng.random(len(moves)) < self.noise, random, moves))
