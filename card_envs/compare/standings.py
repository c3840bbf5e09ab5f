"""The results of a contest: ratings, win shares, margins, and the sample size that would separate the closest two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._groups import group_figures
from card_envs.compare._ratings import ratings
from card_envs.compare._solving import Solved, count_verdicts, won_of_winnable
from card_envs.compare._tallies import Tallied, tallied
from card_envs.compare.contests import Contest, Part
from card_envs.compare.estimates import Estimate, as_json, estimate, few_warning, margin, pairs_needed, share
from card_envs.opponents.names import split_game
from card_envs.options import to_python

ANCHOR = "greedy"  # has rating 1000 if it takes part
LEVEL = 0.95  # of every interval


@dataclass(frozen=True, kw_only=True)
class PolicyFigures:
    """Results of a policy over all its episodes.

    Attributes:
        name: as given.
        sampled: as of `Policy`: whether a network drew its moves; None: it isn't one.
        rating: with two sides; points on an Elo scale.
        win_share: of the episodes.
        margin_per_episode: with two sides; points.
        score: in a solitaire; points.
        microseconds_per_move: processor time.
        decisions: made in that time.
        figures: the game's rates.
        won_of_winnable: share of the deals that a solver won, if one was asked.
    """

    name: str
    sampled: bool | None = None
    rating: Estimate | None = None
    win_share: Estimate
    margin_per_episode: Estimate | None = None
    score: Estimate | None = None
    microseconds_per_move: float
    decisions: int
    figures: Tallied
    won_of_winnable: Estimate | None = None

    @property
    def place(self) -> float:
        """Sort key of the standings: the rating; in a solitaire, the share of episodes won."""
        return (self.rating or self.win_share).mean


@dataclass(frozen=True)
class PairsNeeded:
    """Pairs that show a difference with 80 % power at 5 %, judged by the observed variance; None if unknown."""

    by_margin: int | None
    by_wins: int | None


@dataclass(frozen=True, kw_only=True)
class PairingFigures:
    """Results of two policies on the same deals, from the first one's perspective.

    Attributes:
        first, second: their names.
        win_share, margin_per_episode, margin_per_deal: with two sides.
        wins_more, score_more: in a solitaire: difference in share of wins, and in points.
        pairs_needed: to show a difference.
    """

    first: str
    second: str
    win_share: Estimate | None = None
    margin_per_episode: Estimate | None = None
    margin_per_deal: Estimate | None = None
    wins_more: Estimate | None = None
    score_more: Estimate | None = None
    pairs_needed: PairsNeeded


@dataclass(frozen=True)
class Standings:
    """All results of a contest.

    Attributes:
        contest: what was played.
        pairs: of each pairing; in a solitaire, deals of each policy.
        deals_per_episode: scored deals.
        policies: in the order given.
        pairings: (0, 1), (0, 2) .. (1, 2) ..
        nearest: the pairing of the two closest policies.
        solved: number of deals that a solver won, lost and left open, if one was asked.
        stopped: whether the contest was stopped early.
        groups: of methods with several trainings.
    """

    contest: Contest
    pairs: int
    deals_per_episode: int
    policies: list[PolicyFigures]
    pairings: list[PairingFigures]
    nearest: PairingFigures
    solved: Mapping[str, int] | None = None
    stopped: bool = False
    groups: Sequence[dict[str, Any]] = ()

    @property
    def best_first(self) -> list[int]:
        """Numbers of the policies, best first."""
        return _best_first(self.policies)

    @property
    def anchor(self) -> str | None:
        """Name of the policy with rating 1000; None: the mean of the ratings is 1000."""
        anchor = anchor_of(self.contest.names)
        return None if anchor is None else self.contest.names[anchor]

    @property
    def warning(self) -> str | None:
        """A warning if there are few pairs, else None."""
        return few_warning(self.pairs, "deals" if self.contest.game.is_solitaire else "pairs")

    @property
    def intervals(self) -> dict[str, Any]:
        """The number of intervals, and a lower bound of the probability that all of them hold (Bonferroni)."""
        of_policies = sum(isinstance(each, Estimate) for policy in self.policies for each in vars(policy).values())
        number = of_policies - (self.anchor in self.contest.names) + 2 * len(self.pairings) + 3 * len(self.groups)
        return {"each": LEVEL, "number": number, "all_at_least": max(0.0, round(1 - number * (1 - LEVEL), 4))}

    def notes(self) -> list[str]:
        """Return what a reader of the tables must know."""
        number, least = self.intervals["number"], 100 * self.intervals["all_at_least"]
        together = f"all {number} in at least {least:.0f} %" if least else f"about {number / 20:.0f} of {number} miss"
        notes = [f"Each interval holds in 95 % of such comparisons, {together}."]
        if self.contest.partner:
            notes.append(f"{self.contest.partner} plays beside each player, who has the first seat of its side.")
        elif self.contest.game.num_sides < self.contest.game.rules.NUM_SEATS:
            notes.append("A player has all seats of its side; with --partner NAME it has one, and NAME the others.")
        return [*notes, *filter(None, [self.warning])]

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON; an `Estimate` is {"mean", "low", "high"}, with None for an infinite bound.

        Figures that a kind of game does not have are omitted, as is the warning if there is none. `anchor` is the
        policy with rating 1000; if it is None, the mean of the ratings is 1000.
        """
        contest = self.contest
        return {
            "game": contest.game.name,
            "version": contest.game.version,
            "options": to_python(dict(contest.options)),
            "seed": contest.seed,
            "sampled": contest.sampled,
            "partner": contest.partner or None,
            "frame": list(contest.frame),
            **({} if contest.game.is_solitaire else {"anchor": self.anchor}),
            "pairs": self.pairs,
            "deals_per_episode": self.deals_per_episode,
            "policies": [_present(policy) for policy in self.policies],
            "pairings": [_present(pairing) for pairing in self.pairings],
            "nearest": {key: _present(self.nearest)[key] for key in ("first", "second", "pairs_needed")},
            "stopped": self.stopped,
            **({"groups": [_present(group) for group in self.groups]} if self.groups else {}),
            **({} if self.warning is None else {"warning": self.warning}),
            **({} if self.solved is None else {"solved": dict(self.solved)}),
        }


def _present(figures: PolicyFigures | PairingFigures | dict[str, Any]) -> dict[str, Any]:
    if isinstance(figures, dict):
        return {key: as_json(each) if isinstance(each, Estimate) else each for key, each in figures.items()}
    return {key: figure for key, figure in as_json(figures).items() if figure is not None}


def standings(
    contest: Contest, part: Part, solved: Sequence[Solved] | None = None, *, stopped: bool = False
) -> Standings:
    """Return the results of a contest, whose deals a solver may have `solved`, all of them."""
    deals_per_episode = contest.deals_per_episode
    names = contest.names
    policies = _policies(contest, part, solved)
    if contest.game.is_solitaire:
        pairings = _pairings_alone(names, part)
    else:
        pairings = _pairings(contest, part)
    order = _best_first(policies)
    two = min(pairwise(order), key=lambda two: policies[two[0]].place - policies[two[1]].place)
    nearest = list(combinations(range(len(names)), 2)).index((min(two), max(two)))
    verdicts = count_verdicts(solved) if solved else None
    return Standings(
        contest, part.num_deals, deals_per_episode, policies, pairings, pairings[nearest], verdicts, stopped,
        group_figures(contest, part),
    )  # fmt: skip


def _best_first(policies: Sequence[PolicyFigures]) -> list[int]:
    return sorted(range(len(policies)), key=lambda i: -policies[i].place)


def _policies(contest: Contest, part: Part, solved: Sequence[Solved] | None) -> list[PolicyFigures]:
    game, names = contest.game, contest.names
    won = won_of_winnable(part.wins, solved) if solved else []
    seconds = part.seconds_per_move
    strength = (_strength_alone if game.is_solitaire else _strength)(contest, part)
    return [
        PolicyFigures(
            name=name,
            sampled=contest.modes[i],
            **strength[i],
            microseconds_per_move=round(1e6 * seconds[i], 3),
            decisions=int(part.decisions[i]),
            figures=tallied(game, part.tallies[i]),
            won_of_winnable=won[i] if won else None,
        )
        for i, name in enumerate(names)
    ]


def _strength(contest: Contest, part: Part) -> list[dict[str, Estimate]]:
    """Return the figures of each policy from its pairings."""
    names = contest.names
    rated = ratings(len(names), part.wins, anchor_of(names))
    return [
        {
            "rating": rating,
            "win_share": share(wins + 0.5),
            "margin_per_episode": margin(margins, wins + 0.5, contest.counts_wins),
        }
        for rating, wins, margins in zip(
            rated, _by_policy(part.wins - 0.5, len(names)), _by_policy(part.margins, len(names))
        )
    ]


def _strength_alone(contest: Contest, part: Part) -> list[dict[str, Estimate]]:
    """Return the figures of each policy in a solitaire."""
    return [{"win_share": share(wins), "score": estimate(scores)} for wins, scores in zip(part.wins, part.margins)]


def anchor_of(names: Sequence[str]) -> int | None:
    """Return the policy with rating 1000: the first `greedy`; None: the mean has it."""
    return next((i for i, name in enumerate(names) if split_game(name)[1] == ANCHOR), None)


def _by_policy(values: NDArray[np.float64], num_policies: int) -> NDArray[np.float64]:
    """Return [P, N], the means over each policy's pairings.

    The values change their sign when the pairing is swapped.
    """
    signed: list[list[NDArray[np.float64]]] = [[] for _ in range(num_policies)]
    for row, (first, second) in zip(values, combinations(range(num_policies), 2)):
        signed[first].append(row)
        signed[second].append(-row)
    return np.array([np.mean(rows, axis=0) for rows in signed])


def _pairings(contest: Contest, part: Part) -> list[PairingFigures]:
    """Return the figures of all pairings of two sides."""
    pairings = []
    for (first, second), wins, margins in zip(combinations(contest.names, 2), part.wins, part.margins):
        per_episode = margin(margins, wins, contest.counts_wins)
        needed = PairsNeeded(pairs_needed(margins), pairs_needed(wins - 0.5))
        per_deal = per_episode.scaled(1 / contest.deals_per_episode)
        pairings.append(
            PairingFigures(
                first=first,
                second=second,
                win_share=share(wins),
                margin_per_episode=per_episode,
                margin_per_deal=per_deal,
                pairs_needed=needed,
            )
        )
    return pairings


def _pairings_alone(names: Sequence[str], part: Part) -> list[PairingFigures]:
    """Return the figures of all pairings in a solitaire: differences on the same deals."""
    first, second = np.array(list(combinations(range(len(names)), 2))).T
    wins, scores = (rows[first] - rows[second] for rows in (part.wins, part.margins))
    return [
        PairingFigures(
            first=first_name,
            second=second_name,
            wins_more=share(wins_more, least=-1),
            score_more=estimate(score_more),
            pairs_needed=PairsNeeded(pairs_needed(score_more), pairs_needed(wins_more)),
        )
        for (first_name, second_name), wins_more, score_more in zip(combinations(names, 2), wins, scores)
    ]
