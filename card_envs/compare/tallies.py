"""Rates of a game beside its score, from what its `update_stats` counts, with intervals over independent deals."""

from __future__ import annotations

from math import inf, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import FEW, Estimate, share_of_clusters
from card_envs.compare.intervals import student
from card_envs.engine.compile import specialize
from card_envs.game import Game, Int64s, Rate

ROUNDING = 1e-12
Tallied: TypeAlias = dict[str, dict[str, Estimate | None]]  # by row and column


def sums_of(game: Game, counts: Int64s) -> NDArray[np.float64]:
    """Return [R, 5] sums of x, y, xx, xy, yy over the [N, num_counts] counts of independent deals.

    R are the game's ratios, x the count of each, y what it is divided by. Sums of parts add up.
    """
    sums = np.zeros((len(game.rates), 5))
    specialize(sum_counts)(counts, game.rate_entries, sums)
    return sums


def sum_counts(counts: Int64s, entries: Int64s, sums: NDArray[np.float64]) -> None:
    """Add up x, y, xx, xy, yy of each ratio into `sums` [R, 5].

    Args:
        counts: [N, num_counts].
        entries: [R, 2] which counts are x and y of each ratio.
        sums: [R, 5].
    """
    for i in range(counts.shape[0]):
        for r in range(len(sums)):
            x = counts[i, entries[r, 0]]
            y = counts[i, entries[r, 1]]
            sums[r, 0] += x
            sums[r, 1] += y
            sums[r, 2] += x * x
            sums[r, 3] += x * y
            sums[r, 4] += y * y


def estimated(ratio: Rate, sums: NDArray[np.float64]) -> Estimate | None:
    """Return a ratio from its sums over independent deals, with its interval; None if it is 0/0.

    Unless it is a share: Student's interval (Cochran 1977, 6.4), for as many deals as would have counted for as much
    if each of them had the same y (Kish 1965).
    """
    x, y, xx, xy, yy = sums.tolist()
    if y == 0:
        return None
    mean = x / y
    if ratio.percent and 0 <= mean <= 1:
        return share_of_clusters(x, y, xx, xy, yy)
    deals = y * y / yy
    squares = xx - 2 * mean * xy + mean * mean * yy
    squares = squares if squares > ROUNDING * xx else 0.0
    if deals <= 1 or (squares == 0 and deals < FEW):
        return Estimate(mean, -inf, inf)
    half = specialize(student)(deals - 1) * sqrt(squares * deals / (deals - 1)) / y
    return Estimate(mean, mean - half, mean + half)


def tallied(game: Game, sums: NDArray[np.float64]) -> Tallied:
    """Return all ratios; None where there was nothing to divide by."""
    figures: Tallied = {ratio.row: {} for ratio in game.rates}
    for ratio, of_ratio in zip(game.rates, sums):
        figures[ratio.row][ratio.column] = estimated(ratio, of_ratio)
    return figures
