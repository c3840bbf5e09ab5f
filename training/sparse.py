"""The first layer of the networks as a function that torch can differentiate: see `card_envs.opponents.sparse`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from card_envs.engine.compile import bind
from card_envs.game import Int64s
from card_envs.opponents.sparse import SparseRows, sum_weights


def _scatter_gradient(starts: Any, entry: Any, value: Any, rows: Any, gradient: Any, out: Any) -> None:
    """out += rows.T @ gradient."""
    width = gradient.shape[1]
    for i in range(len(gradient)):
        row = gradient[i]
        for k in range(starts[rows[i]], starts[rows[i] + 1]):
            target = out[entry[k]]
            v = value[k]
            for h in range(width):
                target[h] += v * row[h]


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
        bind(_scatter_gradient)(starts, entry, value, ctx.rows, gradient.numpy(), out)
        return torch.from_numpy(out), gradient.sum(0), None, None
