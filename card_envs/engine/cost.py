"""Processor time of this process, excluding just-in-time compilation."""

from __future__ import annotations

import sys
import time
from functools import cache
from typing import Any

SHORTEST = 1e-6  # seconds


def work_time() -> float:
    """Return the processor seconds of this process so far, less those in which Numba compiled or loaded code.

    Only differences mean something. Numba's import counts, and so does what it compiles before the next call.
    """
    compiling = float(_compiling().seconds) if "numba" in sys.modules else 0.0
    return time.process_time() - compiling


def per_second(number: float, seconds: float) -> float:
    """Return a rate. By a coarse clock, what was fast took no time: it counts as a microsecond."""
    return number / max(seconds, SHORTEST)


@cache
def _compiling() -> Any:
    """Return a listener that sums the processor seconds of Numba's compiler, from the first call on."""
    from numba.core import event

    class Compiling(event.Listener):  # type: ignore[misc]
        seconds = 0.0
        depth = 0
        start = 0.0

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.start = time.process_time()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.process_time() - self.start

    listener = Compiling()
    event.register("numba:compiler_lock", listener)
    return listener
