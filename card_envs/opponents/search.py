"""Searching opponents: every legal move is tried in worlds that fit what the seat knows, played out by `greedy`.

Perfect-information Monte Carlo (Ginsberg 2001), with the same worlds for all moves of a decision.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.compile import kernel
from card_envs.game import Game
from card_envs.opponents.policy import Evaluation, Turn

PLAYER = "greedy"  # who plays the worlds out
# Standard errors by which another move must be better than the player's own. Without doubt, noise decides between
# moves of equal worth; 1 was the best of 0, 0.5, 1, 2 in Big Ben, and 1 and 2 the best in Back Alley.
DOUBT = 1.0


class SearchPolicy:
    """Plays the move that is best on the mean of sampled worlds, in compiled code, on all cores where tables allow."""

    def __init__(self, game: Game, num_worlds: int, num_threads: int | None = None) -> None:
        """Search with a budget.

        Args:
            game: what it plays.
            num_worlds: for the moves that stay in the running; moves that fall behind are dropped earlier.
            num_threads: that share the tables of a turn (default: one for each core); the moves are the same.
        """
        if num_worlds < 1:
            raise ValueError(f"search: expected at least one world, got {num_worlds}")
        self.game = game
        self.num_worlds = num_worlds
        self.num_threads = num_threads or os.cpu_count() or 1

    def act(self, turn: Turn, rng: np.random.Generator) -> NDArray[np.int64]:
        return self._search(turn, rng)[0]

    def probabilities(self, turn: Turn) -> NDArray[np.float32]:
        chosen = self.act(turn, np.random.default_rng(0))
        return np.eye(turn.mask.shape[1], dtype=np.float32)[chosen]

    def evaluate(self, turn: Turn, rng: np.random.Generator) -> Evaluation:
        """What each move brings in points by the end of the deal; nan where it was not tried."""
        _, sums, squares, worlds = self._search(turn, rng)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(worlds > 0, sums / worlds, np.nan)
            variances = np.maximum(squares / worlds - means**2, 0) * worlds / (worlds - 1)
            return Evaluation(means, np.sqrt(variances / worlds), worlds)

    def _search(
        self, turn: Turn, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        states = turn.worlds(rng, 1)[:, 0].copy()
        n, num_actions = turn.mask.shape
        keys = rng.integers(0, 1 << 64, n, np.uint64)
        sums, squares, leads = (np.zeros((n, num_actions)) for _ in range(3))
        worlds = np.zeros((n, num_actions), np.int64)
        chosen = np.zeros(n, np.int64)
        search = kernel("search_tables", self.game, PLAYER)
        scratch, live = np.zeros(2 * n, states.dtype), np.zeros((n, num_actions), np.int8)
        arguments = states, keys, self.num_worlds, DOUBT, scratch, live, sums, squares, leads, worlds, chosen
        threads = min(self.num_threads, n)
        search(*arguments, 0, 0)  # compile
        bounds = [n * i // threads for i in range(threads + 1)]
        if threads == 1:
            search(*arguments, 0, n)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda i: search(*arguments, bounds[i], bounds[i + 1]), range(threads)))
        return chosen, sums, squares, worlds
