"""Several processes that train one policy: `torchrun` starts them, their gradients are averaged."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed

PATIENCE = timedelta(minutes=10)  # for a rank that measures strength while the others wait


class RankLost(RuntimeError):
    """Another process of this run has died; what was learned since the last checkpoint is lost."""


class Ranks:
    """This process among those of a run; without torchrun it is the only one and nothing is sent.

    Attributes:
        rank: the number of this process; 0 writes files and prints.
        count: how many there are.
    """

    def __init__(self, device: str = "cpu") -> None:
        """Find the other processes; gradients are on `device`, figures and checkpoints are exchanged on the CPU."""
        self.rank = int(os.environ.get("RANK", "0"))
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        if self.count > 1 and not distributed.is_initialized():
            backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
            distributed.init_process_group(backend, timeout=PATIENCE)

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def average_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replace each gradient by its mean over all ranks."""
        if self.count == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self._call(distributed.all_reduce, flat)
        flat /= self.count
        for gradient, mean in zip(gradients, torch.split(flat, [gradient.numel() for gradient in gradients])):
            gradient.copy_(mean.view_as(gradient))

    def total(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sums over all ranks of values on the gradients' device, which may be overwritten."""
        if self.count > 1:
            self._call(distributed.all_reduce, values)
        return values

    def sum(self, *values: float) -> NDArray[np.float64]:
        """Return the sums over all ranks."""
        return self.total(torch.tensor(values, dtype=torch.float64)).numpy()

    def from_first(self, value: float) -> float:
        """Return rank 0's value."""
        number = torch.tensor(value, dtype=torch.float64)
        if self.count > 1:
            self._call(distributed.broadcast, number, src=0)
        return float(number)

    def gather(self, thing: Any) -> list[Any]:
        """Return every rank's thing on rank 0, elsewhere an empty list. The processes trust each other."""
        if self.count == 1:
            return [thing]
        things: list[Any] | None = [None] * self.count if self.is_first else None
        self._call(distributed.gather_object, thing, things)
        return things or []

    def close(self) -> None:
        if self.count > 1 and distributed.is_initialized():
            distributed.destroy_process_group()

    def _call(self, function: Any, *arguments: Any, **named: Any) -> None:
        try:
            function(*arguments, **named)
        except RuntimeError as error:  # what gloo and NCCL raise when a peer is gone
            raise RankLost(f"rank {self.rank}: another process of this run has died ({error})") from error
