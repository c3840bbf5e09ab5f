"""Means and shares with their 95 % intervals.

They hold for few values and at the ends of the scale: a bound is infinite where nothing bounds the figure.
`tests/test_coverage.py` measures how often they hold what is true.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf, isinf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.intervals import share_bounds, student
from card_envs.engine.compile import specialize

FEW = 30  # with fewer values than these, comparisons come with a warning
PSEUDO = 0.75  # clusters of nothing but successes, and of failures, that are imagined where spread is judged
FEWEST_SHOWN = 6  # values of one sign that differ from 0 at 5 %: 2 / 2^6
Z_95 = 1.959964  # of a two-sided 95 % interval
Z_80 = 0.841621  # of 80 % power


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; a bound may be infinite."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def scaled(self, factor: float, offset: float = 0.0) -> Estimate:
        """Return the same in another unit; the factor is positive."""
        return Estimate(*(factor * value + offset for value in (self.mean, self.low, self.high)))


def as_json(figures: Any) -> dict[str, Any]:
    """Return a dataclass of figures as a dict for JSON, which has no infinite numbers: such a bound is None."""
    return asdict(figures, dict_factory=_without_infinities)


def _without_infinities(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and isinf(value) else value for key, value in items}


def few_warning(size: int, unit: str) -> str | None:
    """What to say about figures from few pairs, deals or episodes; None if they are enough."""
    if size >= FEW:
        return None
    return f"few {unit} ({size}): intervals are wide and rest on little; from {FEW} on they can be trusted"


def estimate(values: NDArray[np.float64]) -> Estimate:
    """Return the mean of independent values, with Student's interval, widened towards the long tail.

    Few values of a skewed kind rarely show its tail. The bound on that side is moved as Johnson (1978, "Modified t
    Tests and Confidence Intervals for Asymmetrical Populations") moves both; the other stays, for among few values
    skewness is often an accident. One value, or few that are all the same, bound nothing.
    """
    size = len(values)
    mean = float(values.mean())
    if size == 1 or (size < FEW and (values == values[0]).all()):
        return Estimate(mean, -inf, inf)
    off = values - mean
    variance = float(off @ off) / size
    if variance == 0:
        return Estimate(mean, mean, mean)
    skewness = float(off * off @ off) / size / variance**1.5
    deviation = sqrt(variance * size / (size - 1))
    reach = specialize(student)(size - 1.0)
    half = reach * deviation / sqrt(size)
    moved = skewness * deviation * (1 + 2 * reach**2) / (6 * size)
    return Estimate(mean, mean - half + min(moved, 0.0), mean + half + max(moved, 0.0))


def share(values: NDArray[np.float64], least: float = 0.0) -> Estimate:
    """Return the mean of independent values between `least` and 1, a pair of episodes being one value, with its interval."""
    unit = (values - least) / (1 - least)
    size = len(values)
    sums = (float(unit.sum()), size, float(unit @ unit), float(unit.sum()), size)
    return share_of_clusters(*sums, pseudo_pairs(values)).scaled(1 - least, least)


def pseudo_pairs(values: NDArray[np.float64]) -> float:
    """Return how many pairs at each end of the scale are imagined where spread is judged: one if these pairs show none.

    Mostly equal players differ in few pairs. The more do, the less is imagined.
    """
    middle = np.partition(values, len(values) // 2)[len(values) // 2]
    return 0.4 + 0.6 / (1 + 2 * float((values != middle).sum()))


def share_of(successes: int, trials: int) -> Estimate:
    """What share of independent trials succeeded."""
    return share_of_clusters(successes, trials, successes, successes, trials)


def share_of_clusters(x: float, y: float, xx: float, xy: float, yy: float, pseudo: float = PSEUDO) -> Estimate:
    """Return a share of what comes in independent clusters, from sums over them: x successes of y trials in each.

    The interval is that of a share of single trials, as many of them as would have the spread that was seen. Few
    clusters may show too little of it, or none; so where it is judged, typical clusters of nothing but successes and
    of nothing but failures are imagined besides, `pseudo` of each.
    """
    size = yy / y
    mean = x / y
    all_trials = y + 2 * pseudo * size
    expected = (x + pseudo * size) / all_trials
    squares = xx - 2 * expected * xy + expected**2 * yy + pseudo * size**2 * (expected**2 + (1 - expected) ** 2)
    trials = expected * (1 - expected) * all_trials * y / squares
    return share_of_trials(mean, trials)


def share_of_trials(mean: float, trials: float) -> Estimate:
    """Return a share that was seen in so many single trials, a broken number perhaps."""
    low, high = specialize(share_bounds)(mean, trials)
    return Estimate(mean, low, high)


def pairs_needed(values: NDArray[np.float64]) -> int | None:
    """Return how many values would show with 80 % power that their mean is not 0, judged by these; None if nothing hints.

    The two-sided test at 5 %: ((z_95 + z_80) * deviation / mean)^2.
    """
    mean = float(values.mean())
    if mean == 0 or len(values) == 1:
        return None
    return max(FEWEST_SHOWN, int(np.ceil(((Z_95 + Z_80) * float(values.std()) / mean) ** 2)))
