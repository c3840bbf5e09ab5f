"""A game's rates, computed from the statistics of `update_stats`, with intervals over independent deals."""

from __future__ import annotations

from math import inf, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._intervals import student
from card_envs.compare.estimates import Estimate, share_of_clusters
from card_envs.compiling import specialize
from card_envs.game import Game, Int64s, Rate

ROUNDING = 1e-12
Tallied: TypeAlias = dict[str, dict[str, Estimate | None]]  # by row and column


def sums_of(game: Game, counts: Int64s) -> NDArray[np.float64]:
    """Return [R, 5], sums of x, y, xx, xy, yy over the statistics [N, num_counts] of independent deals.

    R are the game's rates, x the numerator of each and y the denominator. Sums of parts add up.
    """
    sums = np.zeros((len(game.view.RATES), 5))
    specialize(sum_counts)(counts, game.rate_entries, sums)
    return sums


def sum_counts(counts: Int64s, entries: Int64s, sums: NDArray[np.float64]) -> None:
    """Add x, y, xx, xy, yy of each rate to `sums` [R, 5].

    Args:
        counts: [N, num_counts].
        entries: [R, 2] entries of x and y of each rate.
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
    """Return a rate from its sums over independent deals, with its interval; None if it is 0/0.

    A proportion has the interval of `share_of_clusters`. Any other ratio has Student's interval (Cochran 1977, 6.4) for
    the effective number of deals, sum(y)^2 / sum(y^2) (Kish 1965).
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
    if deals <= 1 or squares == 0:
        return Estimate(mean, -inf, inf)
    half = specialize(student)(deals - 1) * sqrt(squares * deals / (deals - 1)) / y
    return Estimate(mean, mean - half, mean + half)


def tallied(game: Game, sums: NDArray[np.float64]) -> Tallied:
    """Return all rates; None where the denominator is 0."""
    figures: Tallied = {ratio.row: {} for ratio in game.view.RATES}
    for ratio, of_ratio in zip(game.view.RATES, sums):
        figures[ratio.row][ratio.column] = estimated(ratio, of_ratio)
    return figures
