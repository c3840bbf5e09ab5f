"""Distribution of work in portions: in this process, over local processes, or over a Ray cluster."""

from __future__ import annotations

import logging
import signal
import socket
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

from card_envs.engine.buffers import check_int
from card_envs.system.files import error_text
from card_envs.system.processes import begin_worker, handled, why_no_workers

Portion = TypeVar("Portion")
Result = TypeVar("Result")

RETRIES = 3  # per portion whose worker was lost


@dataclass(frozen=True)
class Executor:
    """Runs the portions of a task. Use it in a `with` statement, which connects to the cluster.

    Attributes:
        processes: on this machine; 1: this process.
        ray_address: of a Ray cluster instead, as for `ray.init`; "local" starts one here, unless this program is
            connected to one, which is used and stays connected.

    Raises:
        ValueError: both are given, or fewer than one process.
    """

    processes: int = 1
    ray_address: str = ""
    _at_exit: ExitStack = field(default_factory=ExitStack, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_int(self.processes, 1, None, "processes")
        if self.processes > 1 and self.ray_address:
            raise ValueError("processes and a Ray cluster: expected one of them, got both")
        if self.ray_address:  # before any other work
            _import_ray()

    def __enter__(self) -> Executor:
        """Connect to the cluster. Raises OSError if it can't be reached."""
        if self.ray_address:
            _connect(self.ray_address, self._at_exit)
        return self

    def __exit__(self, *_: object) -> None:
        self._at_exit.close()

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
        return map(work, portions) if self.is_here else over_processes(work, portions, self.processes)


THIS_PROCESS = Executor()


def over_processes(
    work: Callable[[Portion], Result], portions: Sequence[Portion], processes: int
) -> Generator[Result, None, None]:
    """Yield results as `Executor.spread` does, of new processes, which end when the generator is closed.

    Warns:
        UserWarning: the program can't have any; this process does the work.
    """
    if problem := why_no_workers():
        warnings.warn(f"this process works alone, without others: {problem}", stacklevel=2)
        yield from map(work, portions)
        return
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
    interrupts: list[Any] = []  # held back: one within `submit` can leave a lock of the pool taken for ever
    try:
        with handled(lambda *caught: interrupts.append(caught), "SIGINT"):
            numbers = {pool.submit(work, portion): number for number, portion in portions.items()}
        if interrupts:
            signal.raise_signal(signal.SIGINT)
        for future in as_completed(numbers):
            yield numbers[future], future.result()
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ValueError("a Ray cluster needs Ray: pip install 'card_envs[ray]'") from None
    return ray


def _connect(address: str, at_exit: ExitStack) -> None:
    ray = _import_ray()
    if ray.is_initialized():  # by the program that this is a part of
        known = ray.get_runtime_context().gcs_address
        if address not in ("local", "auto", known):
            raise OSError(
                f"Ray cluster {address}: this program is connected to {known}: ray.shutdown() leaves that one"
            )
        return
    try:
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if port.isdigit():  # Ray itself would retry for many minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
        at_exit.callback(ray.shutdown)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:  # OverflowError: of invalid ports
        raise OSError(f"Ray cluster {address}: {error_text(error)}; expected HOST:PORT, or local") from None


def _over_cluster(work: Callable[[Portion], Result], portions: Sequence[Portion], address: str) -> Iterator[Result]:
    import ray

    waiting: list[Any] = []
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
    finally:
        for portion in waiting:  # after an error or Ctrl-C
            ray.cancel(portion)


def _do(work: Callable[[Portion], Result], portion: Portion) -> Result:
    return work(portion)
