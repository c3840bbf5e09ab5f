"""Searching opponents: moves are tried in worlds that fit what the seat knows, played out by `greedy`.

Perfect-information Monte Carlo (Ginsberg 2001), with the same worlds for all moves of a decision. Worlds that don't
explain what the other seats did are drawn less often: in Back Alley search believes the bids that it heard.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import UINT64, check_game, checked, whole_number
from card_envs.engine.compile import bind
from card_envs.game import Game, Int8s, Int64s
from card_envs.opponents.policy import Advice, Evaluation, Policy, Turn, name_of, probabilities_of
from card_envs.opponents.searching import Budget, Scratch, Trials, search_tables
from card_envs.opponents.value import NO_NET, ValueNetwork, checked_net

PLAYER = "greedy"  # who plays the worlds out
# Standard errors by which another move must be better than the player's own. Without doubt, noise decides between
# moves of equal worth; 1 was the best of 0, 0.5, 1, 2 in Big Ben, and 1 and 2 the best in Back Alley.
DOUBT = 1.0
TO_THE_END = 1 << 40  # moves: no deal is as long
HORIZON = 60  # moves that are played out before a value network is asked
LEAST_PROBABILITY = 0.01  # moves that a trained guide thinks less likely are not tried


@dataclass(frozen=True)
class Guide:
    """Who helps a search.

    Attributes:
        policy: its likeliest move is the one to beat; of a trained one, moves that it hardly ever plays are not tried.
        value: what positions are worth.
        horizon: moves that are played out before `value` is asked.
    """

    policy: Policy
    value: ValueNetwork
    horizon: int = HORIZON

    def __post_init__(self) -> None:
        whole_number(self.horizon, 0, TO_THE_END, "horizon")


class SearchResult(NamedTuple):
    """What a search found out.

    Attributes:
        chosen: [n] the moves.
        trials: [n, A] what became of each move.
        moves: made in all worlds.
    """

    chosen: Int64s
    trials: Trials
    moves: int


class SearchPolicy:
    """Plays the move that is best on average over sampled worlds, in compiled code, on all cores where tables allow."""

    def __init__(self, game: Game, num_worlds: int, num_threads: int | None = None, guide: Guide | None = None) -> None:
        """Search with a budget.

        Args:
            game: what it plays.
            num_worlds: for the moves that stay in the running; moves that fall behind are dropped earlier.
            num_threads: that share the tables of a turn (default: one for each core); the moves are the same.
            guide: proposes moves and cuts playouts short; None: all moves, played out to the end of the deal.
        """
        check_game(game)
        self.game = game
        self.num_worlds = whole_number(num_worlds, 1, TO_THE_END, "num_worlds")
        threads = (os.cpu_count() or 1) if num_threads is None else num_threads
        self.num_threads = whole_number(threads, 1, None, "num_threads")
        self.guide = guide

    def act(self, turn: Turn, rng: np.random.Generator) -> NDArray[np.int64]:
        return self.search(turn, rng).chosen

    def probabilities(self, turn: Turn) -> NDArray[np.float32]:
        chosen = self.act(turn, np.random.default_rng(0))
        return np.eye(turn.mask.shape[1], dtype=np.float32)[chosen]

    def evaluate(self, turn: Turn, rng: np.random.Generator) -> Evaluation:
        """What each move brings in points by the end of the deal; nan where it was not tried."""
        chosen, (sums, squares, worlds), _ = self.search(turn, rng)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(worlds > 0, sums / worlds, np.nan)
            variances = np.maximum(squares / worlds - means**2, 0) * worlds / (worlds - 1)
            return Evaluation(means, np.sqrt(variances / worlds), worlds, chosen)

    def _proposals(self, turn: Turn) -> tuple[NDArray[np.int64], Int8s]:
        """[n] the moves to beat, and [n, A] those to try, all of them legal."""
        if self.guide is None:
            return turn.bot_moves(PLAYER), turn.mask
        probabilities = probabilities_of(self.guide.policy, turn.anew())  # it may write into what it gets
        certain = probabilities.max(axis=1, keepdims=True) == 1  # such as scripted players, who rank no other moves
        likely = turn.mask * (certain | (probabilities >= LEAST_PROBABILITY))
        return turn.check(probabilities.argmax(axis=1), f"guide {name_of(self.guide.policy)}"), likely

    def search(self, turn: Turn, rng: np.random.Generator) -> SearchResult:
        """Try the moves at all tables. Raises ValueError or IllegalMove where the guide is of no use."""
        if turn.game != self.game:
            raise ValueError(f"search: it plays {self.game.name}, not {turn.game.name}")
        turn = turn.anew()
        states = turn.worlds(rng, 1)[:, 0].copy()
        n, num_actions = turn.mask.shape
        keys = checked("rng.integers", rng.integers(0, 1 << 64, n, np.uint64), (n,), UINT64)
        shape = turn.mask.shape
        trials = Trials(np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64))
        chosen = np.zeros(n, np.int64)
        own, live = self._proposals(turn)
        horizon, net = TO_THE_END, NO_NET
        if self.guide is not None:
            horizon, net = self.guide.horizon, checked_net(self.game, self.guide.value.net)
        budget = Budget(self.num_worlds, DOUBT, horizon)
        loop = bind(search_tables, self.game, PLAYER)

        def work(first: int, last: int) -> int:
            scratch = Scratch(
                np.zeros(2, states.dtype),
                np.zeros(len(net.first) - 1, np.int8),
                np.zeros((2, max(net.second.shape)), np.float32),
                np.zeros(num_actions),
            )
            return loop(first, last, states, keys, own, live, budget, net, scratch, trials, chosen)

        threads = min(self.num_threads, n)
        bounds = [n * i // threads for i in range(threads + 1)]
        work(0, 0)  # compile
        if threads == 1:
            moves = work(0, n)
        else:
            with ThreadPoolExecutor(threads) as pool:
                moves = sum(pool.map(work, bounds[:-1], bounds[1:]))
        return SearchResult(chosen, trials, moves)


def why_not(best: Advice, other: Advice) -> str:
    """Why a search does not play a move, in words; empty where its margin says it."""
    assert best.margin is not None and other.margin is not None
    if other.worlds == 0:
        return "not tried, for its guide finds it unlikely"
    if other.worlds < best.worlds:
        return f"dropped after {other.worlds} of {best.worlds} worlds: no better"
    if (other.margin, other.error) == (best.margin, best.error):
        return f"the same in all worlds as {best.move}"
    return "more perhaps by chance alone" if other.margin > best.margin else ""
