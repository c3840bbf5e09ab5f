"""Means and shares with their 95 % intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
MOST_DRAWN = 10_000  # columns
Z_95 = 1.959964  # of a two-sided 95 % interval
Z_80 = 0.841621  # of 80 % power


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def estimate(values: NDArray[np.float64], seed: int = 0) -> Estimate:
    """The mean of independent values, with a percentile bootstrap interval (Efron & Tibshirani 1993)."""
    return estimates(values[None], seed)[0]


def estimates(values: NDArray[np.float64], seed: int = 0) -> list[Estimate]:
    """The means of the rows of [K, N] values, with intervals: the columns are independent, the rows need not be."""
    means = values.mean(axis=1)
    lows, highs = np.percentile(resampled_means(values, seed), [2.5, 97.5], axis=0)
    return [Estimate(*figures) for figures in zip(means.tolist(), lows.tolist(), highs.tolist())]


def resampled_means(values: NDArray[np.float64], seed: int = 0) -> NDArray[np.float64]:
    """[RESAMPLES, K] the means of the rows of [K, N] values over columns drawn anew, the same for all rows.

    Of many columns, neighbours are drawn together: they are independent, so that changes no interval.
    """
    rng = np.random.default_rng(seed)
    starts = np.arange(0, values.shape[1], ceil(values.shape[1] / MOST_DRAWN))
    sums, sizes = np.add.reduceat(values, starts, axis=1), np.diff(starts, append=values.shape[1])
    size = len(starts)
    drawn = (np.bincount(rng.integers(0, size, size), minlength=size) for _ in range(RESAMPLES))
    return np.array([sums @ times / (sizes @ times) for times in drawn])


def normal_interval(values: NDArray[np.float64]) -> Estimate:
    """The mean of many independent values, with its normal interval."""
    mean = float(values.mean())
    half = Z_95 * float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else float("inf")
    return Estimate(mean, mean - half, mean + half)


def wilson(successes: float, trials: int) -> Estimate:
    """A share with its score interval (Wilson 1927). Draws may count half: then it is a little too wide."""
    share = successes / trials
    spread = Z_95**2 / trials
    centre = (share + spread / 2) / (1 + spread)
    half = sqrt(spread * share * (1 - share) + spread**2 / 4) / (1 + spread)
    return Estimate(share, max(centre - half, 0.0), min(centre + half, 1.0))


def pairs_needed(values: NDArray[np.float64]) -> int | None:
    """How many values would show with 80 % power that their mean is not 0, judged by these; None if nothing hints.

    The two-sided test at 5 %: ((z_95 + z_80) * deviation / mean)^2.
    """
    mean = float(values.mean())
    if mean == 0:
        return None
    return max(1, int(np.ceil(((Z_95 + Z_80) * float(values.std()) / mean) ** 2)))
