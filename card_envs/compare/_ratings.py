"""Bradley-Terry ratings on an Elo scale, with intervals over the deals that all pairings share."""

from __future__ import annotations

from itertools import combinations
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import Estimate, pseudo_pairs, share_of_trials

ANCHOR_RATING = 1000.0
ELO = 400 / np.log(10)
VIRTUAL_DRAWS = 1.0  # in every pairing, so that a policy that wins every game has a finite rating
MAX_ROUNDS = 10_000
TOLERANCE = 1e-9
NEGLIGIBLE = 1e-6  # a bound this close to 0 or 1 makes the rating's bound infinite
TINY = 1e-12


def bradley_terry(
    wins: NDArray[np.float64], anchor: int | None = None, draws: float = VIRTUAL_DRAWS
) -> NDArray[np.float64]:
    """Return maximum-likelihood ratings; a difference of 400 points means odds of ten to one.

    Ref: Hunter 2004, "MM algorithms for generalized Bradley-Terry models".

    Args:
        wins: [..., P, P] games that the row's player won against the column's; a draw counts one half for both.
        anchor: the player with rating 1000; None: the mean is 1000.
        draws: number of virtual draws added to every pairing.

    Returns:
        [..., P] ratings.
    """
    num_players = wins.shape[-1]
    wins = np.where(np.eye(num_players, dtype=bool), 0.0, wins + draws / 2)
    games = wins + np.swapaxes(wins, -1, -2)
    won = wins.sum(axis=-1)
    strength = won / np.maximum(games.sum(axis=-1) - won, 1e-12)
    for _ in range(MAX_ROUNDS):
        before = strength
        strength = won / (games / (strength[..., :, None] + strength[..., None, :])).sum(axis=-1)
        strength /= np.exp(np.log(strength).mean(axis=-1, keepdims=True))
        if np.abs(np.log(strength / before)).max() < TOLERANCE:
            break
    ratings = ELO * np.log(strength)
    pinned = ratings[..., anchor, None] if anchor is not None else ratings.mean(axis=-1, keepdims=True)
    return ANCHOR_RATING + (ratings - pinned)


def ratings(num_policies: int, wins: NDArray[np.float64], anchor: int | None = None) -> list[Estimate]:
    """Return the rating of each policy with its interval.

    A rating difference to the anchor (None: to the mean of the others) corresponds to a share of the points against it.
    That share gets the interval of a proportion for the effective number of trials that has the observed variance over
    pairs; with two policies it equals the interval of the win share. If a policy won (or lost) everything, that bound
    is infinite.

    Args:
        num_policies: P.
        wins: [P * (P - 1) / 2, N] share of the two episodes of each pair that the first policy of the pairing (0, 1),
            (0, 2) .. won. All pairings were played on the same deals.
        anchor: the policy with rating 1000; None: the mean is 1000.
    """
    pairs = wins.shape[1]
    rows, columns = np.array(list(combinations(range(num_policies), 2))).T
    matrix = np.zeros((num_policies, num_policies))
    matrix[rows, columns] = wins.sum(axis=1)
    matrix[columns, rows] = pairs - matrix[rows, columns]
    rated = bradley_terry(2 * matrix, anchor).tolist()
    above, scale = np.eye(num_policies) - 1 / num_policies, 1.0
    if anchor is None:
        scale = (num_policies - 1) / num_policies
    else:
        above = above - above[anchor]
    pseudo = max(pseudo_pairs(row) for row in wins)  # pseudo-pairs won and lost, as in `share`
    logits = bradley_terry(matrix, draws=2 * pseudo) / ELO
    expected = 1 / (1 + np.exp(logits[columns] - logits[rows]))
    gains = np.eye(num_policies)[rows] - np.eye(num_policies)[columns]  # +1 first, -1 second
    # The likelihood is highest where gains.T (wins - expected) = 0, whose derivative by the logits is -curvature. So a
    # change d of the results moves the logits by pinv(curvature) gains.T d (delta method).
    curvature = gains.T * (expected * (1 - expected)) @ gains
    moves = above / scale @ np.linalg.pinv(curvature) @ gains.T  # [P, pairings]
    squares = ((moves @ wins - (moves @ expected)[:, None]) ** 2).sum(axis=1)
    squares += moves**2 @ (pseudo * (expected**2 + (1 - expected) ** 2))
    all_pairs = pairs + 2 * pseudo
    shares = 1 / (1 + np.exp(-(above / scale @ logits)))
    trials = pairs * all_pairs / np.maximum(squares * shares * (1 - shares), TINY)
    seen = np.clip((shares * all_pairs - pseudo) / pairs, 0, 1)
    estimates = []
    for i, rating in enumerate(rated):
        if i == anchor:
            estimates.append(Estimate(rating, rating, rating))
            continue
        share = share_of_trials(float(seen[i]), float(trials[i]))
        low, high = (ANCHOR_RATING + scale * _points(bound) for bound in (share.low, share.high))
        estimates.append(Estimate(rating, min(low, rating), max(high, rating)))
    return estimates


def _points(share: float) -> float:
    """Return the rating difference at which a player has this share of the points; infinite near 0 and 1."""
    if NEGLIGIBLE < share < 1 - NEGLIGIBLE:
        return float(ELO) * log(share / (1 - share))
    return inf if share > 0.5 else -inf
