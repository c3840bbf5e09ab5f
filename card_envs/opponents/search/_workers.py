"""The workers of a search: workspaces, and threads that share decisions or the worlds of one, and keep to a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from card_envs.compiling import specialize
from card_envs.engine.cost import SHORTEST
from card_envs.game import GREEDY
from card_envs.opponents.search._budget import UNLIMITED, ArmStats, Budget, judge_arms, new_stats
from card_envs.opponents.search._decide import (
    SearchBatch,
    SearchResults,
    SearchWorkspace,
    WorldShare,
    decide_tables,
    new_workspace,
    write_result,
)
from card_envs.opponents.search._settings import SearchSettings

# Threads share decisions where each has this many, else the worlds of one once a stage takes that long.
MANY, WORTH_SHARING = 4, 5e-4  # seconds
FIRST_PLAYOUT = 5e-5  # seconds that a playout takes, until it is known
MOST_THREADS = 256  # that work at once for all searches of a process; there are no more than have been needed
WHOLE, ARMS_ALONE, STAGE = (WorldShare(stages, 0, 1) for stages in (UNLIMITED, 0, 1))


@cache
def threads_of_process() -> ThreadPoolExecutor:
    """Return the threads of all searches."""
    return ThreadPoolExecutor(MOST_THREADS, "card_envs")


if hasattr(os, "register_at_fork"):  # a forked child has none of its parent's threads
    os.register_at_fork(after_in_child=threads_of_process.cache_clear)


@dataclass
class Pace:
    """The pace of a search: seconds that a playout took in the last decision that kept to a time."""

    playout_seconds: float = FIRST_PLAYOUT

    def reset(self) -> None:
        """Forget the measured pace."""
        self.playout_seconds = FIRST_PLAYOUT


class ThreadWorkers(threading.local):
    """The workers of a search for the thread that calls it, made when first needed. Copies begin without."""

    workers: SearchWorkers | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return ThreadWorkers, ()

    @contextmanager
    def borrow(self, make: Callable[[], SearchWorkers]) -> Iterator[SearchWorkers]:
        """Lend the workers; those of a decision that was interrupted, which may still be at work, are left behind."""
        workers, self.workers = self.workers or make(), None
        yield workers
        self.workers = workers


class SearchWorkers:
    """Workspaces of one search for the threads that work for one caller.

    Attributes:
        workspaces: one for each thread.
    """

    def __init__(self, search: SearchSettings, most: Budget, num_threads: int) -> None:
        """Allocate for this many threads, and for decisions that cost that much at most."""
        parts = [new_workspace(search, most) for _ in range(num_threads)]
        functions = parts[0][0]
        self.workspaces = [workspace for _, workspace in parts]
        self._decide = specialize(decide_tables, search.game, GREEDY, functions=functions)
        self._judge, self._write_result = specialize(judge_arms), specialize(write_result)

    def decide(
        self, batch: SearchBatch, budget: Budget, seconds: float | None, results: SearchResults, pace: Pace
    ) -> int:
        """Decide; return how many actions were played in all worlds.

        Args:
            batch: the decisions.
            budget: the budget of each.
            seconds: bound on each decision, which has all threads to itself; None: no bound.
            results: written.
            pace: updated.
        """
        n, threads = len(batch.states), len(self.workspaces)
        self._limited = [limit_arms(workspace, budget.candidates) for workspace in self.workspaces]
        if seconds is None and (threads == 1 or n >= MANY * threads):
            bounds = [n * k // threads for k in range(threads + 1)]

            def work(k: int) -> int:
                return self._decide(bounds[k], bounds[k + 1], WHOLE, batch, budget, self._limited[k], results)

            return sum(self._map(work))
        return sum(self._in_stages(i, batch, budget, seconds, results, pace) for i in range(n))

    def _map(self, work: Callable[[int], int]) -> list[int]:
        """Call a function for each thread, in parallel; return the results."""
        if len(self.workspaces) == 1:
            return [work(0)]
        return list(threads_of_process().map(work, range(len(self.workspaces))))

    def _in_stages(
        self, i: int, batch: SearchBatch, budget: Budget, seconds: float | None, results: SearchResults, pace: Pace
    ) -> int:
        """Make one decision, its stages shared among the threads, and look at the clock between them."""
        workspace, max_worlds = self._limited[0], budget.max_worlds
        arms, stats = workspace.arms, workspace.stats
        start = begun = time.perf_counter()
        self._decide(i, i + 1, ARMS_ALONE, batch, budget, workspace, results)
        moves, last, going = 0, 0.0, True
        while going:
            if last > WORTH_SHARING and len(self.workspaces) > 1:
                moves += self._share_stage(i, batch, budget, results)
            else:
                moves += self._decide(i, i + 1, STAGE, batch, budget, workspace, results)
            going = self._judge(arms, stats, budget)
            now = time.perf_counter()
            last, begun = now - begun, now
            if seconds is not None:
                pace.playout_seconds = (now - start) / max(1, int(stats.worlds.sum()))
                spent = max(now - start, SHORTEST) / seconds
                going = going and spent < 1
                budget = budget.with_max_worlds(min(max_worlds, int(arms.progress[0].worlds / spent)))
        self._write_result(i, arms, stats, budget.z_threshold, results)
        return moves

    def _share_stage(self, i: int, batch: SearchBatch, budget: Budget, results: SearchResults) -> int:
        """Try the arms in the worlds of a stage in all threads."""
        arms, stats, threads = self._limited[0].arms, self._limited[0].stats, len(self._limited)
        shares = [new_stats(len(arms.live)) for _ in range(threads)]

        def work(k: int) -> int:
            workspace = self._limited[k]._replace(arms=arms, stats=shares[k])
            return self._decide(i, i + 1, WorldShare(1, k, threads), batch, budget, workspace, results)

        moves = sum(self._map(work))
        for share in shares:
            for total, part in zip(stats, share):
                np.add(total, part, out=total)
        return moves


def limit_arms(workspace: SearchWorkspace, most: int) -> SearchWorkspace:
    """Return views of the workspace for that many arms."""
    arms, stats = workspace.arms, workspace.stats
    arms = arms._replace(macros=arms.macros[:most], live=arms.live[:most])
    return workspace._replace(arms=arms, stats=ArmStats._make(array[:most] for array in stats))
