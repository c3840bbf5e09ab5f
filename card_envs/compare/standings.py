"""What a contest shows: ratings, win shares, margins, and how many pairs would tell the nearest two apart."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import estimates, normal_interval, pairs_needed, wilson
from card_envs.compare.match import Contest, Part, num_deals
from card_envs.compare.ratings import ratings
from card_envs.compare.tallies import tallied

Figures = dict[str, Any]  # ready for JSON; a figure with an interval is {"mean", "low", "high"}


def standings(contest: Contest, part: Part) -> Figures:
    """All figures of a contest, ready for JSON: by policy, in the order given, and by pairing.

    `pairs_needed` is for 80 % power in a test at 5 %, judged by the spread seen; null where no difference was seen.
    """
    game, options = contest.game, dict(contest.options)
    alone = max(game.sides) == 0
    policies, pairings = (_alone if alone else _between_sides)(contest, part)
    seconds = part.seconds / np.maximum(part.decisions, 1)
    deals = part.wins.shape[1]
    for i, policy in enumerate(policies):
        policy |= {"microseconds_a_move": round(1e6 * float(seconds[i]), 3), "decisions": int(part.decisions[i])}
        policy["figures"] = tallied(game, part.tallies[i], deals)
    key = "win_share" if alone else "rating"
    order = sorted(range(len(policies)), key=lambda i: -policies[i][key]["mean"])
    nearest = min(pairwise(order), key=lambda two: policies[two[0]][key]["mean"] - policies[two[1]][key]["mean"])
    index = list(combinations(range(len(policies)), 2)).index((min(nearest), max(nearest)))
    return {
        "game": game.name,
        "version": game.version,
        "options": options,
        "seed": contest.seed,
        "sampled": contest.sampled,
        "partner": contest.partner or None,
        "frame": list(contest.frame),
        "pairs": deals,
        "deals_an_episode": num_deals(game, options),
        "policies": policies,
        "pairings": pairings,
        "nearest": {key: pairings[index][key] for key in ("first", "second", "pairs_needed")},
    }


def _between_sides(contest: Contest, part: Part) -> tuple[list[Figures], list[Figures]]:
    names = contest.names
    deals = num_deals(contest.game, dict(contest.options))
    by_policy = [np.concatenate([_of_policy(part.wins - 0.5, i, len(names)) + 0.5 for i in range(len(names))])]
    by_policy.append(np.concatenate([_of_policy(part.margins, i, len(names)) for i in range(len(names))]))
    shares, margins = (estimates(values) for values in by_policy)
    rated = ratings(names, part.wins)
    policies = [
        {"name": name, "rating": vars(rated[i]), "win_share": vars(shares[i]), "margin_an_episode": vars(margins[i])}
        for i, name in enumerate(names)
    ]
    pairings = []
    each = zip(combinations(names, 2), estimates(part.wins), estimates(part.margins), estimates(part.margins / deals))
    for k, ((first, second), share, margin, margin_a_deal) in enumerate(each):
        pairings.append(
            {
                "first": first,
                "second": second,
                "win_share": vars(share),
                "margin_an_episode": vars(margin),
                "margin_a_deal": vars(margin_a_deal),
                "pairs_needed": {
                    "by_margin": pairs_needed(part.margins[k]),
                    "by_wins": pairs_needed(part.wins[k] - 0.5),
                },
            }
        )
    return policies, pairings


def _of_policy(values: NDArray[np.float64], policy: int, num_policies: int) -> NDArray[np.float64]:
    """[1, N] the mean over a policy's pairings of values that change their sign with the side looked from."""
    rows = [
        values[k] if policy == i else -values[k]
        for k, (i, j) in enumerate(combinations(range(num_policies), 2))
        if policy in (i, j)
    ]
    return np.mean(rows, axis=0)[None]


def _alone(contest: Contest, part: Part) -> tuple[list[Figures], list[Figures]]:
    names = contest.names
    size = part.wins.shape[1]
    policies = [
        {
            "name": name,
            "win_share": vars(wilson(float(wins.sum()), size)),
            "score": vars(normal_interval(scores)),
        }
        for name, wins, scores in zip(names, part.wins, part.margins)
    ]
    two = np.array(list(combinations(range(len(names)), 2)))
    wins_more, score_more = (rows[two[:, 0]] - rows[two[:, 1]] for rows in (part.wins, part.margins))
    pairings = [
        {
            "first": names[i],
            "second": names[j],
            "wins_more": vars(wins),
            "score_more": vars(score),
            "pairs_needed": {"by_margin": pairs_needed(score_more[k]), "by_wins": pairs_needed(wins_more[k])},
        }
        for k, ((i, j), wins, score) in enumerate(zip(two.tolist(), estimates(wins_more), estimates(score_more)))
    ]
    return policies, pairings
