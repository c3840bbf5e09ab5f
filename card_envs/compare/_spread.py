"""Distribution of work in portions: in this process, over local processes, or over a Ray cluster."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from typing import TypeVar

from card_envs._files import in_words
from card_envs.engine._buffers import check_int

Portion = TypeVar("Portion")
Result = TypeVar("Result")

RETRIES = 3  # per portion whose worker was lost


@dataclass(frozen=True)
class Executor:
    """Runs the portions of a task. Use it in a `with` statement, which connects to the cluster.

    Attributes:
        processes: on this machine; 1: this process.
        ray_address: of a Ray cluster instead, as for `ray.init`; "local" starts one here.

    Raises:
        ValueError: both are given, or fewer than one process.
    """

    processes: int = 1
    ray_address: str = ""

    def __post_init__(self) -> None:
        check_int(self.processes, 1, None, "processes")
        if self.processes > 1 and self.ray_address:
            raise ValueError("processes and a Ray cluster: expected one of them, got both")

    def __enter__(self) -> Executor:
        """Connect to the cluster. Raises ValueError if Ray is missing, OSError if the cluster can't be reached."""
        if self.ray_address:
            _connect(self.ray_address)
        return self

    def __exit__(self, *_: object) -> None:
        if self.ray_address:
            import ray

            ray.shutdown()  # also cancels running tasks

    @property
    def is_here(self) -> bool:
        """True if this process does the work."""
        return self.processes == 1 and not self.ray_address

    def spread(self, work: Callable[[Portion], Result], portions: Sequence[Portion]) -> Iterator[Result]:
        """Yield the result of each portion as it is finished.

        Args:
            work: can be pickled, and depends only on its portion, because lost portions are done again.
            portions: of the task.

        Raises:
            OSError: a portion's worker was lost repeatedly.
        """
        if self.ray_address:
            return _over_cluster(work, portions, self.ray_address)
        return map(work, portions) if self.is_here else _over_processes(work, portions, self.processes)


THIS_PROCESS = Executor()


def _over_processes(work: Callable[[Portion], Result], portions: Sequence[Portion], processes: int) -> Iterator[Result]:
    waiting = dict(enumerate(portions))
    losses = 0  # in a row
    while waiting:
        left = len(waiting)
        try:
            for number, result in _over_pool(work, waiting, processes):
                del waiting[number]
                yield result
        except BrokenProcessPool:  # one process died, which ends the pool
            losses = 1 if len(waiting) < left else losses + 1
            if losses > RETRIES:
                raise OSError(
                    f"a worker process died {losses} times in a row: killed, for lack of memory perhaps; "
                    "fewer processes need less"
                ) from None


def _over_pool(
    work: Callable[[Portion], Result], portions: dict[int, Portion], processes: int
) -> Iterator[tuple[int, Result]]:
    """Yield number and result of each portion as they are finished. Raises BrokenProcessPool if a worker dies."""
    others = set(active_children())
    pool = ProcessPoolExecutor(processes, get_context("spawn"), begin_worker)
    try:
        numbers = {pool.submit(work, portion): number for number, portion in portions.items()}
        for future in as_completed(numbers):
            yield numbers[future], future.result()
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def begin_worker() -> None:
    """Make a worker ignore Ctrl-C, which reaches all processes of a command, and end with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when its parent dies; it holds both ends of its work pipe and would wait forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _connect(address: str) -> None:
    try:
        import ray
    except ImportError:
        raise ValueError("a Ray cluster needs Ray: pip install 'card_envs[ray]'") from None
    try:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if port.isdigit():  # Ray itself would retry for many minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:  # OverflowError: of invalid ports
        raise OSError(f"Ray cluster {address}: {in_words(error)}; expected HOST:PORT, or local") from None


def _over_cluster(work: Callable[[Portion], Result], portions: Sequence[Portion], address: str) -> Iterator[Result]:
    import ray

    try:
        task = ray.remote(max_retries=RETRIES)(_do)
        shared = ray.put(work)
        waiting = [task.remote(shared, portion) for portion in portions]
        while waiting:
            done, waiting = ray.wait(waiting)
            yield ray.get(done[0])
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # the same error as without Ray
    except ray.exceptions.RayError as error:
        raise OSError(f"Ray cluster {address}: {str(error).splitlines()[0]}") from None


def _do(work: Callable[[Portion], Result], portion: Portion) -> Result:
    return work(portion)
