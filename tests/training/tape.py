"""CUDA graphs without a GPU: what a function did is recorded once, and then done again with the same memory.

Like a graph, a tape keeps the operations, the tensors that they read and write, and all numbers that came from Python.
So a function that does something in Python each time differs from its replay. What can't be captured, such as asking
for a number on the device, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from training.graphs import ReplayedGraphs
from training.moves import HostRecorder
from training.networks import CPU
from training.rollout import Backend, GumbelSampler
from training.tables import HostTables

# They ask the device.
WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "is_nonzero")
NO_LAUNCH = (
    "view", "_unsafe_view", "_reshape_alias", "t", "transpose", "permute", "expand", "slice", "select", "unsqueeze",
    "squeeze", "detach", "alias", "as_strided", "split", "unbind", "empty", "empty_like", "empty_strided", "new_empty",
)  # fmt: skip
Step = Callable[[], Any]


class Tape(TorchDispatchMode):
    """Counts what a GPU would launch: torch's operations, kernels of tables and replays.

    Attributes:
        launches: so far.
        steps: what was done, if it is recorded.
    """

    def __init__(self, records: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.launches = 0
        self.steps: list[Step] | None = [] if records else None

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = function.overloadpacket.__name__
        by_truth = name == "index" and any(one is not None and one.dtype == torch.bool for one in args[1])
        if self.steps is not None and (name in WAITING or by_truth):
            raise RuntimeError(f"{name} can't be captured")
        found = function(*args, **kwargs)
        self.launches += name not in NO_LAUNCH
        if self.steps is not None:
            self.steps.append(lambda: copy_all(function(*args, **kwargs), found))
        return found

    def kernel(self, step: Step) -> Any:
        """Launch a kernel of tables."""
        self.launches += 1
        if self.steps is not None:
            self.steps.append(step)
        return step()


def copy_all(made: Any, into: Any) -> None:
    """Copy tensors that an operation has returned, but for views, into those that it returned before."""
    for new, old in zip(tree_leaves(made), tree_leaves(into)):
        if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
            old.copy_(new)


class TapedGraphs(ReplayedGraphs):
    """`CudaGraphs` with tapes. A tape's first replay is its recording, which on a CPU has done it all."""

    counting: Tape | None = None  # of the whole run

    def warm_up(self, function: Step) -> None:
        function()

    def capture(self, function: Step) -> Step:
        counting, TapedGraphs.counting = TapedGraphs.counting, Tape(records=True)
        try:
            with _disable_current_modes(), TapedGraphs.counting as tape:  # type: ignore[no-untyped-call]
                function()
        finally:
            TapedGraphs.counting = counting
        assert tape.steps
        is_first = [True]

        def replay() -> None:
            if TapedGraphs.counting is not None:
                TapedGraphs.counting.launches += 1
            if is_first and is_first.pop():
                return
            with _disable_current_modes(), torch.no_grad():  # type: ignore[no-untyped-call]
                for step in tape.steps or []:
                    step()

        return replay


class TapedTables(HostTables):
    """Tables whose kernels are on the tape."""

    def _on_tape(self, step: Step) -> None:
        tape = TapedGraphs.counting
        step() if tape is None else tape.kernel(step)

    def observe(self, t: int | None = None) -> None:
        self._on_tape(lambda: super(TapedTables, self).observe(t))

    def step(self, actions: torch.Tensor, t: int | None = None) -> None:
        self._on_tape(lambda: super(TapedTables, self).step(actions, t))

    def bot_actions(self, bot: str, actions: torch.Tensor) -> None:
        self._on_tape(lambda: super(TapedTables, self).bot_actions(bot, actions))

    def observe_all(self, full: torch.Tensor, seat: int | None = None) -> None:
        self._on_tape(lambda: super(TapedTables, self).observe_all(full, seat))


TAPED = Backend(CPU, TapedTables, True, GumbelSampler, HostRecorder, TapedGraphs)  # as on a GPU, but for the kernels


@contextmanager
def counted() -> Iterator[Tape]:
    """Count the launches in a `with` block."""
    try:
        with Tape() as TapedGraphs.counting:
            yield TapedGraphs.counting
    finally:
        TapedGraphs.counting = None
