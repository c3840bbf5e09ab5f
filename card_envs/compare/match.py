"""Mirrored pairs: the unit of every comparison.

A pair is one episode played twice on the same deals, with the policies' sides swapped; what the cards give to one side
they give to the other as well, so only play is left in the difference. In a game for one, both play the same deals.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.batch import BatchEnv
from card_envs.game import Game
from card_envs.opponents.policy import Policy, Turn

PAIRS_AT_ONCE = 1024
RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A mean over pairs with its 95 % interval (percentile bootstrap over pairs, Efron & Tibshirani 1993)."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True)
class PairResult:
    """What the first policy made of its pairs against the second.

    Attributes:
        margins: [P] the first's score minus the second's, the mean of a pair's two episodes.
        win_shares: [P] share of the pair's episodes that the first won, a draw counting one half.
        num_deals: deals in an episode.
        seconds_a_move: thinking time of (first, second) for one decision.
        decisions: how many each of them made.
    """

    margins: NDArray[np.float64]
    win_shares: NDArray[np.float64]
    num_deals: int
    seconds_a_move: tuple[float, float]
    decisions: tuple[int, int]

    @property
    def margin(self) -> Estimate:
        """The first's margin an episode."""
        return estimate(self.margins)

    @property
    def margin_a_deal(self) -> Estimate:
        """The first's margin a deal."""
        return estimate(self.margins / self.num_deals)

    @property
    def win_share(self) -> Estimate:
        """The first's share of the episodes."""
        return estimate(self.win_shares)

    def as_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
        return {
            "pairs": len(self.margins),
            "deals_an_episode": self.num_deals,
            "win_share": vars(self.win_share),
            "margin_an_episode": vars(self.margin),
            "margin_a_deal": vars(self.margin_a_deal),
            "microseconds_a_move": [round(1e6 * seconds, 3) for seconds in self.seconds_a_move],
            "decisions": list(self.decisions),
        }


def estimate(values: NDArray[np.float64], seed: int = 0) -> Estimate:
    """The mean of independent values, with its bootstrap interval."""
    rng = np.random.default_rng(seed)
    means = [values[rng.integers(0, len(values), len(values))].mean() for _ in range(RESAMPLES)]
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(float(values.mean()), float(low), float(high))


def play_pairs(
    game: Game,
    first: Policy,
    second: Policy,
    pairs: int,
    seed: int = 0,
    *,
    options: dict[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> PairResult:
    """Play mirrored pairs of episodes. Same seed, same result.

    Args:
        game: what is played.
        first: the policy whose margin is reported.
        second: its rival.
        pairs: P, how many deals (each played twice).
        seed: of deals and policies.
        options: of the game; rewards are in points unless they say otherwise.
        progress: called with the number of pairs finished since the last call.
    """
    if pairs < 1:
        raise ValueError(f"pairs: expected at least 1, got {pairs}")
    parts = []
    for start in range(0, pairs, PAIRS_AT_ONCE):
        numbers = np.arange(start, min(start + PAIRS_AT_ONCE, pairs))
        parts.append(_play(game, (first, second), numbers, seed, options or {}))
        if progress is not None:
            progress(len(numbers))
    margins, win_shares = (np.concatenate([part[i] for part in parts]) for i in range(2))
    seconds, decisions = (np.sum([part[i] for part in parts], axis=0) for i in (2, 3))
    per_move = seconds / np.maximum(decisions, 1)
    state = game.rules.new_state(game.validated(options or {}))
    return PairResult(
        margins,
        win_shares,
        game.view.num_deals(state),
        (float(per_move[0]), float(per_move[1])),
        (int(decisions[0]), int(decisions[1])),
    )


def _play(
    game: Game, policies: tuple[Policy, Policy], numbers: NDArray[np.int64], seed: int, options: dict[str, Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Margins and win shares of these pairs; seconds and decisions of the two policies."""
    num_tables = 2 * len(numbers)
    env = BatchEnv(game, num_tables, seed, options=options, tables=np.repeat(numbers, 2), skip_forced=True)
    rngs = [np.random.default_rng([seed, int(numbers[0]), which]) for which in range(2)]
    sides = np.array(game.rules.SIDES)
    swapped = np.arange(num_tables) % 2
    seat_of_first = np.array([int(np.argmax(sides == min(side, sides[-1]))) for side in swapped])
    scores = np.zeros(num_tables)
    finished = np.zeros(num_tables, np.bool_)
    seconds = np.zeros(2)
    decisions = np.zeros(2, np.int64)
    while not finished.all():
        actions = env.mask.argmax(axis=1)  # tables that wait for others play anything
        mover = sides[env.seat] ^ swapped
        for which, policy in enumerate(policies):
            tables = np.flatnonzero((mover == which) & ~finished)
            if len(tables):
                turn = Turn(game, env.states[tables], env.obs[tables], env.mask[tables], env.seat[tables])
                start = time.perf_counter()
                actions[tables] = policy.act(turn, rngs[which])
                seconds[which] += time.perf_counter() - start
                decisions[which] += len(tables)
        env.step(actions)
        scores += np.where(finished, 0, env.rewards[np.arange(num_tables), seat_of_first])
        finished |= env.done
    if sides.max() == 0:  # a game for one: the second policy's score stands at the swapped tables
        margins = scores[0::2] - scores[1::2]
        return margins, (np.sign(margins) + 1) / 2, seconds, decisions
    wins = (np.sign(scores) + 1) / 2
    return (scores[0::2] + scores[1::2]) / 2, (wins[0::2] + wins[1::2]) / 2, seconds, decisions
