"""WorkerPool: threads that share decisions, or the worlds of one, and keep to a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from card_envs.compiling import specialize
from card_envs.engine._cost import SHORTEST
from card_envs.game import Game
from card_envs.opponents.networks._ntuples import PLAYER
from card_envs.opponents.search._budget import WORLDS, Arms, ArmStats, Budget, budget_of, judge, new_stats
from card_envs.opponents.search._decide import (
    PREPARE,
    STAGE,
    WHOLE,
    Batch,
    Limits,
    Parts,
    Results,
    decide_tables,
    new_arms,
    new_scratch,
    write_result,
)

# Threads share decisions where each has this many, else the worlds of one once a stage takes that long.
MANY, WORTH_SHARING = 4, 5e-4  # seconds
FIRST_PLAYOUT = 5e-5  # seconds that a playout takes, until it is known

TryStage = Callable[[Batch, int, Arms, Budget, ArmStats], int]


class WorkerPool:
    """Scratch and threads of one search, used by one caller at a time.

    Attributes:
        process: id of the process that made it.
        in_python: tries the arms of a stage in place of compiled code, if it is set.
        playout_seconds: what a playout took in the last decision that kept to a time.
    """

    def __init__(self, game: Game, num_threads: int, parts: Parts, candidates: int, ranked: int, played: int) -> None:
        """Allocate for this many threads; for the other arguments see `new_scratch`."""
        self.parts = parts
        self.in_python: TryStage | None = None
        self.process = os.getpid()
        self.playout_seconds = FIRST_PLAYOUT
        self._loop: Callable[..., int] = specialize(decide_tables, game, PLAYER)
        self._judge, self._write_result = specialize(judge), specialize(write_result)
        num_actions = game.rules.NUM_ACTIONS
        self._scratches = [new_scratch(game, parts, candidates, ranked, played) for _ in range(num_threads)]
        self._all_arms = [new_arms(candidates, num_actions) for _ in range(num_threads)]
        self._all_stats = [new_stats(candidates or num_actions) for _ in range(num_threads)]
        self._threads: ThreadPoolExecutor | None = None

    def decide(self, batch: Batch, limits: Limits, budget: Budget, seconds: float | None, results: Results) -> int:
        """Decide; return how many actions were played in all worlds.

        Args:
            batch: the decisions.
            limits: on their arms.
            budget: in worlds.
            seconds: for each decision, which has all threads to itself; None: no bound.
            results: are written.
        """
        n, threads = len(batch.states), len(self._scratches)
        self._arms, self._stats = self.room(limits)
        if seconds is None and self.in_python is None and (threads == 1 or n >= MANY * threads):
            bounds = [n * k // threads for k in range(threads + 1)]

            def work(k: int) -> int:
                return self._run(
                    bounds[k], bounds[k + 1], WHOLE, 0, 1, batch, limits, budget, self._scratches[k], self._arms[k],
                    self._stats[k], results,
                )  # fmt: skip

            return sum(self._map(work))
        return sum(self._in_stages(i, batch, limits, budget, seconds, results) for i in range(n))

    def room(self, limits: Limits) -> tuple[list[Arms], list[ArmStats]]:
        """Return the arms and their statistics for each thread."""
        size = limits.arms if self.parts.prior_weights is not None else limits.candidates
        arms = [Arms(arms.macros[:size], arms.live[:size], arms.race) for arms in self._all_arms]
        return arms, [ArmStats._make(array[:size] for array in stats) for stats in self._all_stats]

    def _run(self, *arguments: Any) -> int:
        """Call the compiled loop, with the parts between the budget and the scratch."""
        *before, scratch, arms, stats, results = arguments
        return int(self._loop(*before, *self.parts[:-1], scratch, arms, stats, results))

    def _map(self, work: Callable[[int], int]) -> list[int]:
        """Do each thread's share."""
        if len(self._scratches) == 1:
            return [work(0)]
        if self._threads is None:
            self._threads = ThreadPoolExecutor(len(self._scratches), "card_envs")
        return list(self._threads.map(work, range(len(self._scratches))))

    def _in_stages(
        self, i: int, batch: Batch, limits: Limits, budget: Budget, seconds: float | None, results: Results
    ) -> int:
        """Make one decision, its stages shared among the threads, and look at the clock between them."""
        arms, stats, num_worlds = self._arms[0], self._stats[0], budget.max_worlds
        start = begun = time.perf_counter()
        self._run(i, i + 1, PREPARE, 0, 1, batch, limits, budget, self._scratches[0], arms, stats, results)
        moves, last, going = 0, 0.0, True
        while going:
            moves += self._try_stage(i, batch, limits, budget, last > WORTH_SHARING, results)
            going = self._judge(arms, stats, budget)
            now = time.perf_counter()
            last, begun = now - begun, now
            if seconds is not None:
                self.playout_seconds = (now - start) / max(1, int(stats.worlds.sum()))
                spent = max(now - start, SHORTEST) / seconds
                going = going and spent < 1
                budget = budget_of(min(num_worlds, int(arms.race[WORLDS] / spent)), budget.refine_steps)
        self._write_result(i, arms, stats, budget.z_threshold, results)
        return moves

    def _try_stage(self, i: int, batch: Batch, limits: Limits, budget: Budget, shared: bool, results: Results) -> int:
        """Try the arms in the worlds of a stage, in one thread or all."""
        arms, stats, threads = self._arms[0], self._stats[0], len(self._scratches)
        if self.in_python is not None:
            return self.in_python(batch, i, arms, budget, stats)
        if threads == 1 or not shared:
            return self._run(i, i + 1, STAGE, 0, 1, batch, limits, budget, self._scratches[0], arms, stats, results)
        found = [new_stats(len(arms.live)) for _ in range(threads)]

        def work(k: int) -> int:
            return self._run(
                i, i + 1, STAGE, k, threads, batch, limits, budget, self._scratches[k], arms, found[k], results
            )

        moves = sum(self._map(work))
        for share in found:
            for whole, part in zip(stats, share):
                np.add(whole, part, out=whole)
        return moves
