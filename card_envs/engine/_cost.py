"""What work costs: processor time, without what compiling takes the first time that something runs."""

from __future__ import annotations

import sys
import time
from typing import Any


def work_time() -> float:
    """Return the processor seconds of this process so far, less those in which Numba compiled or loaded code.

    Only differences mean something. Numba's import counts, and so does what it compiles before the next call.
    """
    return time.process_time() - _compiling_time()


def _compiling_time() -> float:
    global _compiling
    if _compiling is None and "numba" in sys.modules:
        _compiling = _listener()
    return float(_compiling.seconds) if _compiling else 0.0


_compiling: Any = None


def _listener() -> Any:
    """Return a listener that sums the processor seconds in which Numba's compiler is busy, from now on."""
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
