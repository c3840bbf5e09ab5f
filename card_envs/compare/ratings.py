"""Bradley-Terry ratings on an Elo scale, with intervals over the deals that all pairings share."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import Estimate, resampled_means

ANCHOR_RATING = 1000.0
ELO = 400 / np.log(10)
VIRTUAL_DRAWS = 1.0  # in every pairing, so that who wins every game keeps a finite rating
MAX_ROUNDS = 10_000
TOLERANCE = 1e-9


def bradley_terry(
    wins: NDArray[np.float64], anchor: int | None = None, draws: float = VIRTUAL_DRAWS
) -> NDArray[np.float64]:
    """The ratings under which these results are likeliest; 400 points are odds of ten to one.

    Ref: Hunter 2004, "MM algorithms for generalized Bradley-Terry models".

    Args:
        wins: [..., P, P] games that the row's player won against the column's, a draw counting one half for both.
        anchor: the player who has 1000; None: the mean has.
        draws: as many drawn games are added to every pairing.

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
    """The rating of each policy with its bootstrap interval.

    Args:
        num_policies: P.
        wins: [P * (P - 1) / 2, N] share of the two episodes of each pair that the first of the pairing (0, 1),
            (0, 2) .. won. Deals are drawn anew for all pairings at once: the same deals were used for all.
        anchor: the policy that has 1000; None: the mean has.
    """
    shares = np.concatenate([wins.mean(axis=1)[None], resampled_means(wins)])
    matrix = np.zeros((len(shares), num_policies, num_policies))
    for k, (i, j) in enumerate(combinations(range(num_policies), 2)):
        matrix[:, i, j] = shares[:, k]
        matrix[:, j, i] = 1 - shares[:, k]
    rated = bradley_terry(2 * wins.shape[1] * matrix, anchor)
    lows, highs = np.percentile(rated[1:], [2.5, 97.5], axis=0)
    return [Estimate(*figures) for figures in zip(rated[0].tolist(), lows.tolist(), highs.tolist())]
