"""What one server lends to strangers at most, and the threads that it lends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from card_envs.serve.messages import Problem

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Limits:
    """Bounds of memory and time.

    Attributes:
        body: bytes of a request.
        tables: that are kept on disk.
        live_tables: of these, in memory; the others are read again when somebody comes.
        idle_hours: after which a table that nobody has played at is deleted.
        seconds: that an opponent may think about a move.
        streams: of events, open at the same time.
        streams_per_table: of these.
        searches: threads for opponents that take their time.
        waiting: requests for advice that wait for a thread; more are turned away.
    """

    body: int = 1 << 18
    tables: int = 10_000
    live_tables: int = 2_000
    idle_hours: float = 24.0
    seconds: float = 2.0
    streams: int = 2_000
    streams_per_table: int = 16
    searches: int = os.cpu_count() or 1
    waiting: int = 64


class Workers:
    """Some threads, and a queue of bounded length before them. Compiled code gives them the other cores."""

    def __init__(self, threads: int, waiting: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + waiting
        self._taken = 0
        self._stopped = False

    async def run(self, work: Callable[[], Answer], *, patient: bool = False) -> Answer:
        """Do some work.

        Args:
            work: what to call in a thread.
            patient: queue up in any case: for what is bounded elsewhere, such as by the number of tables.

        Raises:
            Problem: the queue is full.
        """
        if self._stopped or (self._taken >= self._most and not patient):
            raise Problem("busy", "all threads are at work; try again")
        self._taken += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except asyncio.CancelledError:
            if self._stopped:
                raise Problem("busy", "the server is ending") from None
            raise
        finally:
            self._taken -= 1

    def stop(self) -> None:
        """Let what has begun finish, and nothing else begin."""
        self._stopped = True
        self._pool.shutdown(wait=False, cancel_futures=True)
