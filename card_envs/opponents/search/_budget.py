"""Budget: how many worlds each arm of a decision gets, and which arm is chosen.

An arm is a candidate action or macro-action. All arms are tried in the same worlds and compared by their advantage: the
result less that of the baseline arm in the same world, whose variance is far below that of the results.

Sequential halving (Karnin, Koren & Somekh 2013): the arms are judged after 8, 16, 32 … worlds, and after n of W worlds
W / n rivals of the baseline are left, so that every doubling costs the same.

Racing (Maron & Moore 1994): let m be the mean advantage after n worlds, s its standard deviation in one world and N the
most worlds that an arm can get. An arm is chosen at the end if its mean then is at least z s / sqrt(N) (the
`z_threshold` z; noise must not decide between arms of equal worth). The mean of N worlds differs from m by about
s sqrt(1/n - 1/N): its prediction given the first n has that standard deviation. So with c = `racing_margin`
    m + c s sqrt(1/n - 1/N) <= z s / sqrt(N)    the arm is dropped: even luck would not get it chosen;
    m - c s sqrt(1/n - 1/N) >= z s / sqrt(N)    the last rival left is chosen: even bad luck would not prevent it.
The last rival may get `max_worlds`, more than W, while it is between the two.

Results are whole multiples of 1/64 point, so sums are exact: sharing worlds among threads changes no bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.game import Int8s, Int64s
from card_envs.opponents.macros import NO_ACTION, Macros

FIRST_BATCH = 8  # worlds before the arms are judged for the first time
UNLIMITED = 1 << 40  # worlds, or stages
# 1 was the best z of 0, 0.5, 1, 2 in Big Ben, and 1 and 2 the best in Back Alley.
Z_THRESHOLD = 1.0
RACING_MARGIN = 0.25  # for each time the number of worlds is doubled: the more looks, the surer each must be
LONGER = 4  # times as many worlds for the last rival
# Metropolis steps that refine a world, where the game has them: twice as many as there are worlds, which takes about as
# long as the playouts; beyond the most, worlds hardly get better.
STEPS_PER_WORLD, MAX_STEPS = 2, 512
STEPS_IN_A_SECOND = 1e7  # the square of what a timed search does in a second: twice its worlds, again

Float64s = NDArray[np.float64]

NOT_BEGUN = -1
# Where a search is: the number of the decision in its batch, or NOT_BEGUN; the baseline arm; how many rivals of it are
# left (0: nothing more to find out); in how many worlds they were tried.
PROGRESS_FIELDS = ("decision", "baseline", "rivals", "worlds")
PROGRESS = np.dtype((np.record, np.dtype([(name, np.int64) for name in PROGRESS_FIELDS], align=True)))


class Budget(NamedTuple):
    """Bounds on the cost of a decision.

    Attributes:
        worlds: W of sequential halving.
        max_worlds: N, the worlds of the last rival.
        z_threshold: standard errors by which an arm must beat the baseline.
        racing_margin: c, standard deviations.
        refine_steps: Metropolis steps for each world.
        candidates: most macro-actions to find: C of `Arms`.
    """

    worlds: int
    max_worlds: int
    z_threshold: float
    racing_margin: float
    refine_steps: int
    candidates: int

    def with_max_worlds(self, max_worlds: int) -> Budget:
        """Return the budget with another `max_worlds`, and the other bounds to match."""
        worlds = max(max_worlds // LONGER, 1)
        return self._replace(worlds=worlds, max_worlds=max_worlds, racing_margin=RACING_MARGIN * math.log2(worlds))

    def of_lines(self, number: int, worlds: int) -> Budget:
        """Return the budget of two given arms or fewer that are tried in that many worlds, whatever comes out."""
        return self._replace(
            worlds=worlds, max_worlds=worlds, z_threshold=0.0, racing_margin=math.inf, candidates=number
        )


class Arms(NamedTuple):
    """The arms of one decision.

    Attributes:
        macros: [C, L] what each arm does; L is 1 where arms are single actions.
        live: [C] 1 for the rivals of the baseline that are left.
        progress: [1] PROGRESS.
    """

    macros: Macros
    live: Int8s
    progress: NDArray[Any]


class ArmStats(NamedTuple):
    """Results of arms [C], or of actions [B, A].

    Attributes:
        sums: sums of the results (`score_margin` of the mover).
        squares: sums of their squares.
        advantages: sums of the advantages over the baseline in the same worlds.
        advantage_squares: sums of their squares.
        worlds: number of worlds in which the arm was tried.
    """

    sums: Float64s
    squares: Float64s
    advantages: Float64s
    advantage_squares: Float64s
    worlds: Int64s


def new_arms(number: int, length: int) -> Arms:
    """Allocate the arms of one decision."""
    progress = np.zeros(1, PROGRESS)
    progress["decision"] = NOT_BEGUN
    return Arms(np.full((number, length), NO_ACTION, np.int16), np.zeros(number, np.int8), progress)


def new_stats(*shape: int) -> ArmStats:
    """Allocate statistics, all zero."""
    sums, squares, advantages, advantage_squares = np.zeros((4, *shape))
    return ArmStats(sums, squares, advantages, advantage_squares, np.zeros(shape, np.int64))


def stage_end(progress: Any, budget: Budget) -> int:
    """Return the number of worlds after which the arms are judged next."""
    tried = progress.worlds
    if progress.rivals == 0:
        return tried
    end = FIRST_BATCH
    while end <= tried:
        end *= 2
    return max(tried, min(end, budget.worlds if tried < budget.worlds else budget.max_worlds))


def judge_arms(arms: Arms, stats: ArmStats, budget: Budget) -> bool:
    """Drop arms after a stage; return whether there is more to find out."""
    progress = arms.progress[0]
    tried = stage_end(progress, budget)
    if tried > progress.worlds:
        progress.worlds = tried
        if tried >= FIRST_BATCH and tried & (tried - 1) == 0:
            progress.rivals = drop_clear_cases(tried, arms.live, progress.rivals, stats, budget)
        room = max(budget.worlds // tried, 1)
        if progress.rivals > room:
            drop_worst(arms.live, progress.rivals - room, stats.advantages)
            progress.rivals = room
    return progress.rivals > 0 and tried < budget.max_worlds


def drop_clear_cases(tried: int, live: Int8s, rivals: int, stats: ArmStats, budget: Budget) -> int:
    """Drop the arms that even luck would not get chosen; return how many rivals are left.

    Return 0 as well where the last rival, which stays live, is sure to be chosen.
    """
    decided = False
    left = rivals
    for arm in range(live.shape[0]):
        if live[arm]:
            mean = stats.advantages[arm] / tried
            variance = max(stats.advantage_squares[arm] / tried - mean * mean, 0.0)
            still = budget.racing_margin * np.sqrt(variance * (1 / tried - 1 / budget.max_worlds))
            wanted = budget.z_threshold * np.sqrt(variance / budget.max_worlds)
            if mean + still <= wanted:  # an arm that did as the baseline did everywhere is one of these
                live[arm] = 0
                left -= 1
            elif mean - still >= wanted:
                decided = rivals == 1
    return 0 if decided else left


def drop_worst(live: Int8s, number: int, advantages: Float64s) -> None:
    """Drop `number` live arms with the lowest advantages; of equal ones the last."""
    for _ in range(number):
        worst = -1
        for arm in range(live.shape[0]):
            if live[arm] and (worst < 0 or advantages[arm] <= advantages[worst]):
                worst = arm
        live[worst] = 0


def choose_arm(baseline: int, live: Int8s, stats: ArmStats, z_threshold: float) -> int:
    """Return the best rival left if it beats the baseline by `z_threshold` standard errors, else the baseline."""
    best = -1
    for arm in range(live.shape[0]):
        if live[arm] and (best < 0 or stats.advantages[arm] > stats.advantages[best]):
            best = arm
    if best >= 0:
        total, worlds = stats.advantages[best], max(stats.worlds[best], 1)
        variance = stats.advantage_squares[best] - total * total / worlds
        if total > 0 and total * total >= z_threshold * z_threshold * variance:
            return best
    return baseline
