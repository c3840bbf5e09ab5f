"""Several trainings as one method: means over trainings and deals, their spread, and the probability of improvement."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob
from itertools import combinations, product
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._intervals import student
from card_envs.compare.contests import Contest, Part
from card_envs.compare.estimates import Estimate, estimate, share_of_trials
from card_envs.compiling import specialize
from card_envs.opponents.names import RUNS_FOLDER, name_of_folder, split_names

Group = tuple[str, tuple[str, ...]]  # name of a method, and players, its trainings


def parse_groups(texts: Sequence[str]) -> tuple[Group, ...]:
    """Return the groups of NAME=PLAYER,PLAYER or NAME=FOLDER*; folders may be those of runs. Raises ValueError."""
    groups = []
    for text in texts:
        name, _, members = text.partition("=")
        lists = (sorted(glob(part)) if "*" in part else [part] for part in split_names(members))  # noqa: PTH207
        paths = [Path(path) for paths in lists for path in paths if path]
        networks = [path / RUNS_FOLDER if (path / RUNS_FOLDER).is_dir() else path for path in paths]
        if not name or len(paths) < 2:
            raise ValueError(f"group: expected NAME=FOLDER* with two trainings or more, {len(paths)} are {text!r}")
        groups.append((name, tuple(name_of_folder(path) if path.is_dir() else str(path) for path in networks)))
    return tuple(groups)


def over_trainings(values: NDArray[np.float64]) -> Estimate:
    """Return the mean of [R, N] results over trainings and deals with its 95 % interval; [R1, R2, N]: of two methods.

    All trainings play the same deals, so both are random: the squares of Student's intervals along each axis are added
    (Zou & Donner 2008). That counts the chance of a single game twice, and so errs to the safe side.
    """
    if values.size == values.shape[-1]:
        return estimate(values.reshape(-1))
    mean, axes, half = float(values.mean()), range(values.ndim), 0.0
    for axis in axes:
        means = values.mean(axis=tuple(other for other in axes if other != axis))
        if len(means) > 1:
            half += float(means.var(ddof=1)) / len(means) * specialize(student)(len(means) - 1) ** 2
    half = sqrt(half) or inf
    return Estimate(mean, mean - half, mean + half)


def improvement(ahead: NDArray[np.float64]) -> Estimate:
    """Return how probable it is that a training of one method is better than one of another, by margins [R1, R2].

    P(X > Y) of Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice". Its
    variance is at most that of as many trials as the smaller method has trainings (Birnbaum & Klose 1957).
    """
    return share_of_trials(float((np.sign(ahead).mean() + 1) / 2), min(size for size in ahead.shape if size > 1))


def leads(
    contest: Contest, figures: NDArray[np.float64], first: Sequence[int], second: Sequence[int]
) -> NDArray[np.float64]:
    """Return [R1, R2, N] by how much each of some players is ahead of each of others, from figures of a `Part`."""
    if contest.game.is_solitaire:
        return figures[first][:, None] - figures[second]
    rows = dict(zip(combinations(range(len(contest.names)), 2), figures))
    return np.array([[rows[i, j] if i < j else -rows[j, i] for j in second] for i in first])


def group_figures(contest: Contest, part: Part) -> list[dict[str, Any]]:
    """Return the figures of each group against each other group, and against each player that belongs to none.

    They are those of a pairing over all trainings, in a solitaire how much more, with the least and the largest margin
    of a training, and the probability of improvement.
    """
    start = len(contest.names) - sum(len(players) for _, players in contest.groups)  # groups come last
    others, groups = [(name, range(i, i + 1)) for i, name in enumerate(contest.names[:start])], []
    for name, players in contest.groups:
        groups.append((name, range(start, start := start + len(players))))
    even, rows_of_groups = 0.0 if contest.game.is_solitaire else 0.5, []
    for (first, ours), (second, theirs) in [*combinations(groups, 2), *product(groups, others)]:
        margins, wins = (leads(contest, of, ours, theirs) for of in (part.margins, part.wins - even))
        means, won = margins.mean(axis=-1), over_trainings(wins).scaled(1, even)
        rows_of_groups.append({
            "first": first, "second": second, "trainings": [len(ours), len(theirs)],
            "win_share": Estimate(won.mean, max(won.low, 2 * even - 1), min(won.high, 1.0)),
            "margin": over_trainings(margins), "lowest": means.mean(axis=1).min(), "highest": means.mean(axis=1).max(),
            "improvement": improvement(means),
        })  # fmt: skip
    return rows_of_groups
