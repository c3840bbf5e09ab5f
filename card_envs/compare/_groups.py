"""Several trainings as one method: means over trainings and deals, their spread, and the probability of improvement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from itertools import combinations, product
from math import inf, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._intervals import student
from card_envs.compare.contests import Contest, Part
from card_envs.compare.estimates import Estimate, estimate, share_of_trials
from card_envs.compiling import specialize
from card_envs.opponents.names import RUNS_FOLDER, name_of_folder, split_names


@dataclass(frozen=True)
class GroupFigures:
    """A method against another one or a player: as a pairing, over all their trainings; in a solitaire, how much more.

    Attributes:
        first, second: their names.
        trainings: number of each.
        win_share, margin: of the first, per episode.
        lowest, highest: margin of one of its trainings.
        improvement: see `improvement`; a training is better that is ahead on these deals.
    """

    first: str
    second: str
    trainings: tuple[int, int]
    win_share: Estimate
    margin: Estimate
    lowest: float
    highest: float
    improvement: Estimate


def parse_groups(texts: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return name and players of each NAME=PLAYER,PLAYER or NAME=FOLDER*. Raises ValueError."""
    groups = []
    for text in texts:
        name, _, members = text.partition("=")
        lists = (sorted(glob(part)) if "*" in part else [part] for part in split_names(members))  # noqa: PTH207
        players = [_network_of(path) for paths in lists for path in paths if path]
        if not name or len(players) < 2:
            raise ValueError(
                f"group: expected NAME=FOLDER* with two trainings or more, got {text!r} with {len(players)}"
            )
        groups.append((name, tuple(players)))
    return tuple(groups)


def _network_of(path: str) -> str:
    folder = next((folder for folder in (Path(path) / RUNS_FOLDER, Path(path)) if folder.is_dir()), None)
    return name_of_folder(folder) if folder else path


def over_trainings(values: NDArray[np.float64]) -> Estimate:
    """Return the mean over trainings and deals with its 95 % interval.

    All trainings play the same deals, so both are random: the variances of the means along each axis are added, which
    counts the chance of a single game twice and so errs to the safe side, with Satterthwaite's degrees of freedom.

    Args:
        values: [R, N] results of R trainings, or [R1, R2, N] of two methods; with one training, as `estimate`.
    """
    mean, parts = float(values.mean()), []
    if values.size == values.shape[-1]:
        return estimate(values.reshape(-1))
    for axis in range(values.ndim):
        means = values.mean(axis=tuple(other for other in range(values.ndim) if other != axis))
        parts += [(float(means.var(ddof=1)) / len(means), len(means) - 1)] if len(means) > 1 else []
    variance = sum(part for part, _ in parts)
    if not variance:
        return Estimate(mean, -inf, inf)
    freedom = variance**2 / sum(part**2 / size for part, size in parts)
    half = specialize(student)(freedom) * sqrt(variance)
    return Estimate(mean, mean - half, mean + half)


def improvement(ahead: NDArray[np.float64]) -> Estimate:
    """Return how probable it is that a training of one method is better than one of another, by margins [R1, R2].

    P(X > Y) of Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice". Its
    variance is at most that of as many trials as the smaller method has trainings (Birnbaum & Klose 1957).
    """
    better = float((np.sign(ahead).mean() + 1) / 2)
    return share_of_trials(better, min(size for size in ahead.shape if size > 1))


def leads(
    contest: Contest, figures: NDArray[np.float64], first: Sequence[int], second: Sequence[int]
) -> NDArray[np.float64]:
    """Return [R1, R2, N] by how much each of some players is ahead of each of others, from figures of a `Part`."""
    rows = {pair: number for number, pair in enumerate(combinations(range(len(contest.names)), 2))}

    def lead(i: int, j: int) -> NDArray[np.float64]:
        if contest.game.is_solitaire:
            return figures[i] - figures[j]
        return figures[rows[i, j]] if i < j else -figures[rows[j, i]]

    return np.array([[lead(i, j) for j in second] for i in first])


def group_figures(contest: Contest, part: Part) -> list[GroupFigures]:
    """Return the figures of each group against each other group, and against each player that belongs to none."""
    single = len(contest.names) - sum(len(players) for _, players in contest.groups)  # groups come last
    others, groups, start = [(name, range(i, i + 1)) for i, name in enumerate(contest.names[:single])], [], single
    for name, players in contest.groups:
        groups.append((name, range(start, start := start + len(players))))
    even, found = 0.0 if contest.game.is_solitaire else 0.5, []
    for (first, ours), (second, theirs) in [*combinations(groups, 2), *product(groups, others)]:
        margins, share = leads(contest, part.margins, ours, theirs), leads(contest, part.wins - even, ours, theirs)
        won, means = over_trainings(share).scaled(1, even), margins.mean(axis=-1)
        won = Estimate(won.mean, max(won.low, 2 * even - 1), min(won.high, 1.0))
        ends = float(means.mean(axis=1).min()), float(means.mean(axis=1).max())
        sizes = len(ours), len(theirs)
        found.append(GroupFigures(first, second, sizes, won, over_trainings(margins), *ends, improvement(means)))
    return found
