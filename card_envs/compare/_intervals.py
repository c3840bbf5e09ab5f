"""Bounds of 95 % intervals, as plain functions for `specialize`: SciPy would be a heavy dependency for these."""

from __future__ import annotations

from math import exp, inf, lgamma, log, log1p, sqrt

HALVINGS = 60
MOST_TERMS = 100_000
TINY = 1e-300
EXACT = 1e-15
NOTHING = 1e-9  # fewer wins than this are rounding errors
EACH_TAIL = 0.025
LONE_TAIL = 0.036  # tail probability of a bound if the other one can't fail


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b).

    Computed by its continued fraction (DLMF 8.17.22; Lentz 1976).
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    turned = x > (a + 1) / (a + b + 2)  # use I_x(a, b) = 1 - I_(1-x)(b, a) where it would converge slowly
    if turned:
        x, a, b = 1 - x, b, a
    log_front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)
    value, above, below = 1.0, 1.0, 0.0
    for term in range(MOST_TERMS):
        m = term // 2
        if term == 0:
            step = 1.0
        elif term % 2 == 0:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        below = 1 + step * below
        below = 1 / (below if abs(below) > TINY else TINY)
        above = 1 + step / above
        above = above if abs(above) > TINY else TINY
        value *= above * below
        if abs(above * below - 1) < EXACT:
            break
    share = exp(log_front) * (value - 1) / a
    return 1 - share if turned else share


def student(freedom: float) -> float:
    """Return the two-sided 95 % quantile of Student's t distribution with these degrees of freedom."""
    low, high = 0.0, 1.0  # t^2 / (t^2 + freedom) has a beta distribution: bisect for its quantile
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if beta_cdf(middle, 0.5, freedom / 2) < 1 - 2 * EACH_TAIL:
            low = middle
        else:
            high = middle
    return inf if low > 1 - EXACT else sqrt(freedom * low / (1 - low))


def share_bounds(mean: float, trials: float) -> tuple[float, float]:
    """Return bounds of a proportion: mid-P bounds (Lancaster 1961), corrected near 0 and 1.

    Counts may be fractional. At a mid-P bound, the probability of the observed count or a more extreme one is 2.5 %,
    where the observed count itself has half weight. With full weight (Clopper and Pearson) intervals are too wide;
    Wilson's fail near 0 and 1. There, mid-P bounds are corrected:

    - a proportion so small that no wins would be no surprise can only be missed on one side, which gets 3.6 %;
    - no wins have full weight and a single win three quarters, because half would make bounds fail too often.

    The same holds for losses.
    """
    return least_share(mean * trials, (1 - mean) * trials), 1 - least_share((1 - mean) * trials, mean * trials)


def least_share(wins: float, losses: float) -> float:
    """Return the lower bound of a proportion."""
    if wins <= NOTHING:
        return 0.0
    trials = wins + losses
    choices = lgamma(trials + 1) - lgamma(wins + 1) - lgamma(losses + 1)
    left_out = min(0.5, wins / 4, losses / 2)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        share = (low + high) / 2
        exactly = exp(choices + wins * log(share) + losses * log1p(-share))
        chance = beta_cdf(share, wins, losses + 1) - left_out * exactly
        lone = trials * log1p(-share) > log(EACH_TAIL)
        if chance < (LONE_TAIL if lone else EACH_TAIL):
            low = share
        else:
            high = share
    return low
