"""Limits on what clients may use of a server, and its threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from card_envs.frontends.serve._messages import Problem
from card_envs.system.processes import cores

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Limits:
    """Limits on memory and time.

    Attributes:
        body: bytes of a request.
        tables: kept on disk.
        live_tables: of these, in memory; the others are read again when needed.
        idle_hours: after which an unused table is deleted.
        seconds: thinking time of an opponent per move.
        streams_per_table: open event streams of persons, and as many of watchers.
        searches: threads for slow opponents.
        waiting: requests for advice that wait for such a thread; further ones are refused.
    """

    body: int = 1 << 18
    tables: int = 10_000
    live_tables: int = 2_000
    idle_hours: float = 168.0
    seconds: float = 2.0
    streams_per_table: int = 16
    searches: int = field(default_factory=cores)
    waiting: int = 64


class Workers:
    """Threads for jobs, which wait in line. Compiled code uses the other cores for them."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._threads = CapacityLimiter(threads)
        self._most = threads + waiting
        self._impatient = 0  # jobs at work or waiting
        self._stopped = False

    async def run(self, work: Callable[[], Answer], *, patient: bool = False) -> Answer:
        """Do some work in a thread. Raises Problem if too many jobs are waiting, or the server is shutting down.

        `patient` work waits in any case: it is limited elsewhere, such as by the number of tables.
        """

        def begin() -> Answer:
            if self._stopped:
                raise Problem("busy", "the server is ending")
            return work()

        if not patient and self._impatient >= self._most:
            raise Problem("busy", "all threads are at work; try again")
        self._impatient += not patient
        try:
            return await to_thread.run_sync(begin, limiter=self._threads)
        finally:
            self._impatient -= not patient

    def stop(self) -> None:
        """Let running jobs finish and refuse the waiting ones."""
        self._stopped = True
