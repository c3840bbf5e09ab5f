"""Intervals and ratings by hand."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compare._intervals import beta_cdf, student
from card_envs.compare._ratings import bradley_terry, ratings
from card_envs.compare._tallies import estimated
from card_envs.compare.estimates import Estimate, estimate, pairs_needed, share, share_of
from card_envs.compare.standings import anchor_of
from card_envs.compiling import specialize
from card_envs.game import Rate


def bounds(figure: Estimate | None) -> tuple[float, float]:
    assert figure is not None
    return figure.low, figure.high


def test_intervals_by_hand() -> None:
    values = np.random.default_rng(0).normal(3, 2, 400)
    values = np.concatenate([values, 2 * values.mean() - values])  # symmetric: Student's interval alone
    half = 1.9629 * values.std(ddof=1) / np.sqrt(800)
    assert bounds(estimate(values)) == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-4)
    skewed = estimate(np.array([0.0] * 9 + [10]))  # mean 1, deviation sqrt(10), skewness 8/3, t of 9: 2.2622
    assert skewed.low == pytest.approx(1 - 2.2622, abs=1e-3)
    assert skewed.high == pytest.approx(1 + 2.2622 + 8 / 3 * np.sqrt(10) * (1 + 2 * 2.2622**2) / 60, abs=1e-3)
    assert bounds(estimate(-values)) == pytest.approx([-bound for bound in bounds(estimate(values))[::-1]])
    # No wins of 10: 0.975 = (1 - p)^10 as with Clopper and Pearson. All trials the same, in one cluster or in ten.
    assert bounds(share_of(0, 10)) == pytest.approx((0, 1 - 0.025 ** (1 / 10)))
    assert bounds(share_of(20, 20)) == pytest.approx((1 - bounds(share_of(0, 20))[1], 1))
    assert bounds(share(np.array([1.0, 0, 0, 1]))) == pytest.approx(bounds(share_of(2, 4)))
    for wins, tail in ((10, 0.025), (2, 0.036)):  # half of P(wins) and P(more wins) of 20
        low, high = bounds(share_of(wins, 20))
        chance = [comb(20, k) * low**k * (1 - low) ** (20 - k) for k in range(wins, 21)]
        assert sum(chance) - chance[0] / 2 == pytest.approx(tail)
        assert bounds(share_of(20 - wins, 20)) == pytest.approx((1 - high, 1 - low))
    both_ways = share(np.array([-1.0, 0, 0, 1, 1, 1]), least=-1)
    halves = share(np.array([0, 0.5, 0.5, 1, 1, 1]))
    assert bounds(both_ways) == pytest.approx((2 * halves.low - 1, 2 * halves.high - 1))


def test_special_functions() -> None:
    """Student's quantiles from a printed table, and the incomplete beta function as sums of binomial chances."""
    table = {1: 12.7062, 2: 4.3027, 5: 2.5706, 10: 2.2281, 19: 2.0930, 30: 2.0423, 120: 1.9799, 1e6: 1.9600}
    for freedom, reach in table.items():
        assert specialize(student)(float(freedom)) == pytest.approx(reach, abs=5e-5)
    for trials in (1, 7, 40, 300):
        for wins in {1, trials // 3 + 1, trials}:
            for chance in (0.001, 0.2, 0.5, 0.93):
                terms = [comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(wins, trials + 1)]
                found = specialize(beta_cdf)(chance, float(wins), float(trials - wins + 1))
                assert found == pytest.approx(sum(terms), rel=1e-9, abs=1e-12)


def test_few_pairs_bound_little() -> None:
    """One pair, or a clean sweep, is never the whole truth."""
    assert bounds(estimate(np.array([7.0]))) == (-np.inf, np.inf)
    assert bounds(estimate(np.array([7.0, 7.0]))) == (-np.inf, np.inf)
    assert bounds(estimate(np.zeros(100))) == (-np.inf, np.inf)
    assert bounds(estimate(np.arange(5.0))) == (-np.inf, np.inf)  # the next may be anywhere
    for outcome in (0, 0.5, 1):
        low, high = bounds(share(np.array([outcome])))
        assert (low == 0) == (outcome == 0) and (high == 1) == (outcome == 1) and high - low > 0.95
    assert bounds(share(np.ones(20))) == pytest.approx((0.8316, 1), abs=1e-4)
    assert bounds(share(np.ones(1))) == pytest.approx((0.036, 1))
    assert bounds(share(np.full(20, 0.5))) == pytest.approx((0.4341, 0.5659), abs=1e-4)
    sweep, anchor = ratings(2, np.ones((1, 20)), anchor=1)
    odds = np.log10(0.8316 / (1 - 0.8316))
    assert sweep.low == pytest.approx(1000 + 400 * odds, abs=0.5) and sweep.high == np.inf
    assert bounds(anchor) == (1000, 1000) and 1000 < sweep.low < sweep.mean < np.inf
    assert bounds(ratings(2, np.zeros((1, 20)))[0])[0] == -np.inf
    assert pairs_needed(np.array([3.0])) is None
    assert pairs_needed(np.array([1.0, 1.0])) == 6
    assert pairs_needed(np.array([3.0, -1.0])) == 32  # (2.8016 * 2 / 1)^2 = 31.4
    assert pairs_needed(np.array([1.0, -1.0])) is None


def test_ratings_by_hand() -> None:
    two = bradley_terry(np.array([[0.0, 3], [1, 0]]), anchor=1, draws=0)
    assert two == pytest.approx([1000 + 400 * np.log10(3), 1000])
    strength = np.array([1.0, 2, 4])  # results in exactly these proportions
    wins = 100 * strength[:, None] / (strength[:, None] + strength[None])
    three = bradley_terry(wins, draws=0)
    step = 400 * np.log10(2)
    assert three == pytest.approx([1000 - step, 1000, 1000 + step], abs=1e-4)
    assert bradley_terry(np.array([wins, wins.T]), draws=0)[1] == pytest.approx(three[::-1], abs=1e-4)
    spotless = bradley_terry(np.array([[0.0, 9], [0, 0]]), anchor=1)  # and one draw: 9.5 to 0.5
    assert spotless[0] == pytest.approx(1000 + 400 * np.log10(19))


def test_ratings_are_pinned_and_resampled() -> None:
    wins = np.random.default_rng(1).binomial(2, [[0.7], [0.8], [0.6]], (3, 500)) / 2
    better, pinned, worse = ratings(3, wins, anchor=1)
    assert (pinned.mean, pinned.low, pinned.high) == (1000, 1000, 1000)
    assert worse.low < worse.mean < worse.high < 1000 < better.low < better.mean < better.high
    unpinned = ratings(3, wins)
    assert sum(rating.mean for rating in unpinned) == pytest.approx(3000)
    assert unpinned[0].mean - unpinned[2].mean == pytest.approx(better.mean - worse.mean)
    assert anchor_of(["ppo", "high_card/greedy", "greedy"]) == 1
    assert anchor_of(["ppo", "runs/greedy", "search:greedy-8"]) is None


def test_intervals_of_ratios_by_hand() -> None:
    def sums(x: Any, y: Any) -> NDArray[np.float64]:
        return np.array([np.sum(values) for values in (x, y, x * x, x * y, y * y)])

    ratio = Rate("", "", "", "")
    values = np.random.default_rng(0).normal(3, 2, 400)
    mean = estimated(ratio, sums(values, np.ones(400)))
    half = 1.9659 * values.std(ddof=1) / 20
    assert bounds(mean) == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-4)
    deals = np.random.default_rng(1)
    size = deals.integers(1, 30, 400)  # what is counted comes in clusters: a deal is the unit
    hits = np.where(deals.random(400) < 0.5, size, 0)
    found = estimated(ratio, sums(hits, size))
    drawn = deals.integers(0, 400, (2000, 400))
    low, high = np.percentile(hits[drawn].sum(axis=1) / size[drawn].sum(axis=1), [2.5, 97.5])
    assert found is not None and found.mean == pytest.approx(hits.sum() / size.sum())
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01) and high - low > 0.1
    assert estimated(ratio, np.zeros(5)) is None
    percent = Rate("", "", "", "", percent=True)
    assert estimated(percent, np.array([0.0, 10, 0, 0, 10])) == share_of(0, 10)
    clustered = estimated(percent, sums(hits, size))
    assert bounds(clustered) == pytest.approx((low, high), abs=0.01)
    assert bounds(estimated(percent, sums(np.array([0, 9]), np.array([0, 9])))) == pytest.approx((0.036, 1))  # one deal
    assert bounds(estimated(ratio, sums(np.array([0, 9]), np.array([0, 1])))) == (-np.inf, np.inf)
