"""`card_envs.opponents.networks._sparse` as a function that torch can differentiate."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from card_envs.compiling import specialize
from card_envs.engine._sums import add_rows
from card_envs.game import Int64s
from card_envs.opponents.networks._sparse import SparseRows, sum_weights

AT_ONCE = 512  # rows whose gradients stay in the processor's cache


def _gather_gradient(
    starts: Any, entry: Any, value: Any, rows: Any, gradient: Any, ends: Any, row_of: Any, times: Any, out: Any
) -> None:
    """out += rows.T @ gradient: some rows at a time are turned into columns, whose sums then stay in registers.

    `ends` [D + 1], `row_of` and `times` [entries of AT_ONCE rows] are scratch.
    """
    for first in range(0, len(rows), AT_ONCE):
        last = min(first + AT_ONCE, len(rows))
        ends[:] = 0
        for i in range(first, last):
            for k in range(starts[rows[i]], starts[rows[i] + 1]):
                ends[entry[k] + 1] += 1
        for j in range(len(out)):
            ends[j + 1] += ends[j]  # where column j begins, until its entries are placed
        for i in range(first, last):
            for k in range(starts[rows[i]], starts[rows[i] + 1]):
                place = ends[entry[k]]
                row_of[place], times[place] = i, value[k]
                ends[entry[k]] = place + 1
        begin = 0
        for j in range(len(out)):
            add_rows(gradient, row_of, times, begin, ends[j], out[j])
            begin = ends[j]


class SparseLinear(torch.autograd.Function):
    """`sparse[rows] @ weight + bias` for sparse rows, some of them [n], and weight [D, H]."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, bias: torch.Tensor, sparse: SparseRows, rows: Int64s) -> torch.Tensor:
        ctx.sparse, ctx.rows = sparse, rows
        ctx.shape = weight.shape
        return torch.from_numpy(sum_weights(sparse, rows, weight.detach().numpy(), bias.detach().numpy()))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        gradient = gradients[0].contiguous()
        out = np.zeros(ctx.shape, np.float32)
        starts, entry, value = ctx.sparse
        most = AT_ONCE * int(np.diff(starts).max(initial=0))
        scratch = np.empty(len(out) + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.float32)
        specialize(_gather_gradient)(starts, entry, value, ctx.rows, gradient.numpy(), *scratch, out)
        return torch.from_numpy(out), gradient.sum(0), None, None
