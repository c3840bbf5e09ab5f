"""Means and proportions with 95 % intervals.

They hold for small samples and near the ends of the scale; a bound is infinite where the data do not limit the figure.
`tests/compare/test_coverage.py` measures their coverage.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf, isfinite, isinf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._intervals import share_bounds, student
from card_envs.compiling import specialize

FEW = 30  # below this sample size, comparisons show a warning
PSEUDO = 0.75  # pseudo-clusters of all successes and of all failures, added before estimating the variance
FEWEST_SHOWN = 6  # values of one sign that differ significantly from 0: p = 2 / 2^6 < 5 %, with nothing else assumed
Z_95 = 1.959964  # of a two-sided 95 % interval
Z_80 = 0.841621  # quantile for 80 % power


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; a bound may be infinite."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def scaled(self, factor: float, offset: float = 0.0) -> Estimate:
        """Return the estimate in another unit; the factor is positive."""
        return Estimate(*(factor * value + offset for value in (self.mean, self.low, self.high)))


def span(figure: Estimate, digits: str) -> str:
    """Return the bounds as text, as far as they are finite."""
    low, high = (f"{bound:{digits}}" for bound in (figure.low, figure.high))
    if isfinite(figure.low):
        return f"{low} to {high}" if isfinite(figure.high) else f"at least {low}"
    return f"at most {high}" if isfinite(figure.high) else "no interval"


def margin(values: NDArray[np.float64], win_shares: NDArray[np.float64], counts_wins: bool) -> Estimate:
    """Return the mean margin of pairs; one that counts wins has their interval.

    Args:
        values: [N] margins of the pairs.
        win_shares: [N] of the same pairs.
        counts_wins: whether a margin is the difference in episodes won, not in points.
    """
    return share(win_shares).scaled(2, -1) if counts_wins else estimate(values)


def as_json(figures: Any) -> dict[str, Any]:
    """Return a dataclass of figures as a dict for JSON; infinite bounds become None."""
    return asdict(figures, dict_factory=_without_infinities)


def _without_infinities(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and isinf(value) else value for key, value in items}


def few_warning(size: int, unit: str) -> str | None:
    """Return a warning about figures from few pairs, deals or episodes; None if there are enough."""
    if size >= FEW:
        return None
    return f"few {unit} ({size}): intervals are wide and unreliable; from {FEW} on they are reliable"


def estimate(values: NDArray[np.float64]) -> Estimate:
    """Return the mean of independent values with Student's interval, widened towards the long tail.

    Small samples of a skewed distribution rarely show its tail. The bound on that side is shifted as in Johnson (1978,
    "Modified t Tests and Confidence Intervals for Asymmetrical Populations"), who shifts both; the other one is kept,
    because in small samples skewness is often an accident. Both bounds are infinite for values that do not limit the
    mean: equal ones, however many, and fewer than six, whose range the next one may leave by any distance.
    """
    size = len(values)
    mean = float(values.mean())
    off = values - mean
    variance = float(off @ off) / size
    if size < FEWEST_SHOWN or (values == values[0]).all() or variance == 0:
        return Estimate(mean, -inf, inf)
    skewness = float(off * off @ off) / size / variance**1.5
    deviation = sqrt(variance * size / (size - 1))
    reach = specialize(student)(size - 1.0)
    half = reach * deviation / sqrt(size)
    # Johnson adds m3 / (6 s^2 n) + m3 d^2 / (3 s^4) to the distance d of the mean from a bound; with the third central
    # moment m3 = skewness s^3 and d = reach s / sqrt(n), this is skewness s (1 + 2 reach^2) / (6 n).
    moved = skewness * deviation * (1 + 2 * reach**2) / (6 * size)
    return Estimate(mean, mean - half + min(moved, 0.0), mean + half + max(moved, 0.0))


def share(values: NDArray[np.float64], least: float = 0.0) -> Estimate:
    """Return the mean of independent values between `least` and 1, with its interval.

    A pair of episodes is one value.
    """
    unit = (values - least) / (1 - least)
    size = len(values)
    sums = (float(unit.sum()), size, float(unit @ unit), float(unit.sum()), size)
    return share_of_clusters(*sums, pseudo_pairs(values)).scaled(1 - least, least)


def pseudo_pairs(values: NDArray[np.float64]) -> float:
    """Return the number of pseudo-pairs at each end of the scale: one if these pairs show no variance.

    Nearly equal players differ in few pairs. The more pairs differ, the fewer are added.
    """
    middle = np.partition(values, len(values) // 2)[len(values) // 2]
    return 0.4 + 0.6 / (1 + 2 * float((values != middle).sum()))


def share_of(successes: int, trials: int) -> Estimate:
    """Return the proportion of successes in independent trials."""
    return share_of_clusters(successes, trials, successes, successes, trials)


def share_of_clusters(x: float, y: float, xx: float, xy: float, yy: float, pseudo: float = PSEUDO) -> Estimate:
    """Return a proportion from independent clusters, given sums over them: x successes of y trials each.

    The interval is the one for independent trials, for the effective number of trials that has the observed variance.
    Few clusters may show too little variance or none; so before it is estimated, `pseudo` typical clusters of all
    successes and `pseudo` of all failures are added.
    """
    size = yy / y
    mean = x / y
    all_trials = y + 2 * pseudo * size
    expected = (x + pseudo * size) / all_trials
    # With p = expected, Var(x / y) is about sum((x_i - p y_i)^2) / y^2 (linearized ratio); the clusters that are added
    # have (size - p size)^2 and (p size)^2. n independent trials have the variance p (1 - p) / n: solve for n.
    squares = xx - 2 * expected * xy + expected**2 * yy + pseudo * size**2 * (expected**2 + (1 - expected) ** 2)
    trials = expected * (1 - expected) * all_trials * y / squares
    return share_of_trials(mean, trials)


def share_of_trials(mean: float, trials: float) -> Estimate:
    """Return a proportion of an effective, perhaps fractional, number of trials."""
    low, high = specialize(share_bounds)(mean, trials)
    return Estimate(mean, low, high)


def pairs_needed(values: NDArray[np.float64]) -> int | None:
    """Return the sample size at which a test shows with 80 % power that the mean is not 0; None if unknown.

    Two-sided test at 5 %, judged by these values. The mean of n values exceeds z_95 * deviation / sqrt(n) with 80 %
    probability if it is (z_95 + z_80) * deviation / sqrt(n); so n = ((z_95 + z_80) * deviation / mean)^2.
    """
    mean = float(values.mean())
    if mean == 0 or len(values) == 1:
        return None
    return max(FEWEST_SHOWN, int(np.ceil(((Z_95 + Z_80) * float(values.std()) / mean) ** 2)))
