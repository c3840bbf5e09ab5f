"""Limits on what clients may use of a server, and its threads."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from card_envs._processes import cores
from card_envs.serve._messages import Problem

Answer = TypeVar("Answer")
Proxies = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]
Queue = tuple[str, ...]  # name of a queue: the client, the purpose, and further subdivisions

MOST_REMEMBERED = 10_000  # most queues whose last turn is remembered
CLIENT: ContextVar[str] = ContextVar("client", default="")  # the client, in the request's task and its child tasks
ROOT_PATH: ContextVar[str] = ContextVar("root_path", default="")  # of links in replies, behind a reverse proxy


def client_of(address: str) -> str:
    """Return the client of an address: in IPv6 its /64, since one client has 2^64 addresses."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def proxies_of(addresses: Sequence[str]) -> Proxies:
    """Return addresses and networks of proxies. Raises ValueError for anything else."""
    try:
        return [ipaddress.ip_network(address) for address in addresses]
    except ValueError:
        wrong = next(address for address in addresses if not _is_network(address))
    why = "; if any address were trusted, clients could name others as themselves" if wrong == "*" else ""
    raise ValueError(f"proxy: expected an IP address or a network such as 10.0.0.0/8, got {wrong!r:.80}{why}")


def _is_network(address: str) -> bool:
    try:
        ipaddress.ip_network(address)
    except ValueError:
        return False
    return True


def is_within(address: str, proxies: Proxies) -> bool:
    """Return whether an address is one of the proxies'."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in network for network in proxies)


@dataclass(frozen=True)
class Limits:
    """Limits on memory and time.

    Attributes:
        body: bytes of a request.
        tables: kept on disk.
        live_tables: of these, in memory; the others are read again when needed.
        idle_hours: after which an unused table is deleted.
        seconds: thinking time of an opponent per move.
        streams: open event streams.
        streams_per_client, streams_per_table: of these.
        searches: threads for slow opponents.
        waiting: queued requests for advice; beyond that, the client with the most is refused.
        connections: open at the same time.
        connections_per_client: of these, or of the requests that a proxy forwards for a client.
        head: bytes of a request's first line and headers.
        patience: seconds for a request to arrive, or for a reply to be read, before the connection is closed.
    """

    body: int = 1 << 18
    tables: int = 10_000
    live_tables: int = 2_000
    idle_hours: float = 24.0
    seconds: float = 2.0
    streams: int = 2_000
    streams_per_client: int = 1_000
    streams_per_table: int = 16
    searches: int = field(default_factory=cores)
    waiting: int = 64
    connections: int = 4_000
    connections_per_client: int = 2_000
    head: int = 1 << 15
    patience: float = 20.0


class Job:
    """Work that waits for a thread.

    Attributes:
        work: the function to call.
        queue: returns its queue; evaluated again whenever a thread is free.
        patient: never refused.
        done: the result.
    """

    def __init__(
        self, work: Callable[[], Any], queue: Callable[[], Queue], patient: bool, done: asyncio.Future[Any]
    ) -> None:
        self.work = work
        self.queue = queue
        self.patient = patient
        self.done = done


class Workers:
    """Threads with fair queues. Compiled code uses the other cores for them.

    A free thread takes the job whose client was served longest ago; among those, the one whose next part of the queue's
    name was served longest ago, and so on; then the oldest. So no client waits for all jobs of another.
    """

    def __init__(self, threads: int, waiting: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._threads = threads
        self._most = waiting
        self._busy = 0
        self._waiting: list[Job] = []
        self._served: OrderedDict[Queue, int] = OrderedDict()  # by prefix of a queue's name: its last turn
        self._turn = 0
        self._stopped = False

    async def run(
        self, work: Callable[[], Answer], *, queue: Callable[[], Queue] | None = None, patient: bool = False
    ) -> Answer:
        """Do some work in a thread.

        Args:
            work: the function to call.
            queue: returns its queue; default: one for all requests of a client.
            patient: queue in any case: for work that is limited elsewhere, such as by the number of tables.

        Raises:
            Problem: the queues are full and no client has more jobs waiting than this one; or the server is shutting
                down.
        """
        if self._stopped:
            raise Problem("busy", "the server is ending")
        client = CLIENT.get()
        job = Job(work, queue or (lambda: (client, "")), patient, asyncio.get_running_loop().create_future())
        if not patient and self._busy >= self._threads:
            self._make_room(job)
        self._waiting.append(job)
        self._start()
        try:
            return await job.done  # type: ignore[no-any-return]
        finally:
            if job in self._waiting:  # cancelled
                self._waiting.remove(job)

    def _make_room(self, job: Job) -> None:
        """Refuse the newest job of the client with the most waiting jobs, which may be this one."""
        jobs = [other for other in self._waiting if not other.patient]
        if len(jobs) < self._most:
            return
        waiting = Counter(other.queue()[0] for other in jobs)
        client, most = waiting.most_common(1)[0]
        problem = Problem("busy", "all threads are at work; try again")
        if waiting[job.queue()[0]] + 1 >= most:
            raise problem
        newest = next(other for other in reversed(jobs) if other.queue()[0] == client)
        self._waiting.remove(newest)
        newest.done.set_exception(problem)

    def _start(self) -> None:
        """Give work to free threads."""
        while self._busy < self._threads and self._waiting and not self._stopped:
            job = self._next()
            self._busy += 1
            started = self._pool.submit(job.work)
            started.add_done_callback(partial(_call, asyncio.get_running_loop(), self._finish, job))

    def _next(self) -> Job:
        """Remove and return the next job."""
        jobs = [(job.queue(), job) for job in self._waiting]
        self._turn += 1
        for depth in range(1, 1 + max(len(queue) for queue, _ in jobs)):
            turn = min(self._served.get(queue[:depth], 0) for queue, _ in jobs)
            first = next(queue[:depth] for queue, _ in jobs if self._served.get(queue[:depth], 0) == turn)
            jobs = [(queue, job) for queue, job in jobs if queue[:depth] == first]
            self._served[first] = self._turn
            self._served.move_to_end(first)
        while len(self._served) > MOST_REMEMBERED:
            self._served.popitem(last=False)
        job = jobs[0][1]
        self._waiting.remove(job)
        return job

    def _finish(self, job: Job, done: Future[Any]) -> None:
        self._busy -= 1
        if not job.done.done():
            if error := done.exception():
                job.done.set_exception(error)
            else:
                job.done.set_result(done.result())
        self._start()

    def stop(self) -> None:
        """Let running jobs finish and refuse the waiting ones."""
        self._stopped = True
        for job in self._waiting:
            if not job.done.done():
                job.done.set_exception(Problem("busy", "the server is ending"))
        self._waiting.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in the loop's thread, unless the loop has ended."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)
