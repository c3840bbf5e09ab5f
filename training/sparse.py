"""The first layer of the networks: observations are mostly zeros, so only the others are multiplied.

Of Back Alley's 577 entries some 50 are set: the sum of their weight rows takes a quarter of the dense product's time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.engine.compile import bind
from card_envs.engine.sets import lowest
from card_envs.game import Int8s

Floats = NDArray[np.float32]
BYTE = np.uint64(0xFF)


class SparseRows(NamedTuple):
    """The entries of n observations that are not zero: row i has those from starts[i] to starts[i + 1]."""

    starts: NDArray[np.int64]  # [n + 1]
    entry: NDArray[np.int32]  # which entry of the observation each is
    value: Floats  # scaled


def _compress(obs: Any, rows: Any, scale: Any) -> Any:
    """What is not zero in these rows; eight bytes at a time are skipped where they are."""
    size = obs.shape[1]
    whole = size - size % 8
    starts = np.empty(len(rows) + 1, np.int64)
    entry = np.empty(len(rows) * size, np.int32)  # memory that is never touched costs nothing
    value = np.empty(len(rows) * size, np.float32)
    found = 0
    for i in range(len(rows)):
        starts[i] = found
        row = obs[rows[i]]
        words = row[:whole].view(np.uint64)
        for w in range(len(words)):
            word = words[w]
            while word:
                byte = lowest(word) >> 3
                word &= ~(BYTE << np.uint64(8 * byte))
                j = 8 * w + byte
                entry[found] = j
                value[found] = row[j] * scale[j]
                found += 1
        for j in range(whole, size):
            if row[j] != 0:
                entry[found] = j
                value[found] = row[j] * scale[j]
                found += 1
    starts[len(rows)] = found
    return starts, entry, value


def _sum_weights(starts: Any, entry: Any, value: Any, weight: Any, bias: Any, out: Any) -> None:
    """out = rows @ weight + bias; four weight rows at a time keep `out` in registers longer."""
    width = weight.shape[1]
    for i in range(len(out)):
        row = out[i]
        for h in range(width):
            row[h] = bias[h]
        k = starts[i]
        while k + 4 <= starts[i + 1]:
            w0, w1, w2, w3 = weight[entry[k]], weight[entry[k + 1]], weight[entry[k + 2]], weight[entry[k + 3]]
            v0, v1, v2, v3 = value[k], value[k + 1], value[k + 2], value[k + 3]
            for h in range(width):
                row[h] += (v0 * w0[h] + v1 * w1[h]) + (v2 * w2[h] + v3 * w3[h])
            k += 4
        while k < starts[i + 1]:
            w0 = weight[entry[k]]
            v0 = value[k]
            for h in range(width):
                row[h] += v0 * w0[h]
            k += 1


def _scatter_gradient(starts: Any, entry: Any, value: Any, gradient: Any, out: Any) -> None:
    """out += rows.T @ gradient."""
    width = gradient.shape[1]
    for i in range(len(gradient)):
        row = gradient[i]
        for k in range(starts[i], starts[i + 1]):
            target = out[entry[k]]
            v = value[k]
            for h in range(width):
                target[h] += v * row[h]


def compress(obs: Int8s, rows: NDArray[np.int64], scale: Floats) -> SparseRows:
    """The entries of `obs[rows]` that are not zero, times `scale` [D].

    Args:
        obs: [N, D] int8, contiguous.
        rows: [n] which of them, in any order.
        scale: [D] float32.
    """
    if rows.min(initial=0) < 0 or rows.max(initial=-1) >= len(obs):  # the loop would read out of bounds in silence
        raise IndexError(f"rows from {rows.min()} to {rows.max()} of {len(obs)} observations")
    return SparseRows(*bind(_compress)(obs, rows, scale))


class SparseLinear(torch.autograd.Function):
    """`rows @ weight + bias` for sparse rows and weight [D, H]."""

    @staticmethod
    def forward(ctx: Any, weight: torch.Tensor, bias: torch.Tensor, rows: SparseRows) -> torch.Tensor:
        ctx.rows = rows
        ctx.shape = weight.shape
        out = np.empty((len(rows.starts) - 1, weight.shape[1]), np.float32)
        bind(_sum_weights)(*rows, weight.detach().numpy(), bias.detach().numpy(), out)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        gradient = gradients[0].contiguous()
        out = np.zeros(ctx.shape, np.float32)
        bind(_scatter_gradient)(ctx.rows.starts, ctx.rows.entry, ctx.rows.value, gradient.numpy(), out)
        return torch.from_numpy(out), gradient.sum(0), None
