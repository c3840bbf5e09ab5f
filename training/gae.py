"""Generalised advantage estimation along each seat's own decisions (Schulman et al. 2016, eq. 16; gamma is 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize


def _backward(
    seat: Any, learned: Any, rewards: Any, done: Any, values: Any, next_value: Any, next_advantage: Any, paid: Any,
    decay: Any, out: Any,
) -> None:  # fmt: skip
    """Go through the steps from the last one; `paid` [B, S] is what each seat gets before its next decision."""
    num_steps, num_tables, num_seats = rewards.shape
    for t in range(num_steps - 1, -1, -1):
        for i in range(num_tables):
            if done[t, i]:  # nothing later belongs to this episode
                next_value[i] = 0
                next_advantage[i] = 0
                paid[i] = 0
            for s in range(num_seats):
                paid[i, s] += rewards[t, i, s]
            if learned[t, i]:
                s = seat[t, i]
                error = paid[i, s] + next_value[i, s] - values[t, i]
                out[t, i] = error + decay * next_advantage[i, s]
                next_value[i, s] = values[t, i]
                next_advantage[i, s] = out[t, i]
                paid[i, s] = 0


def gae_advantages(
    seat: NDArray[np.int8],
    learned: NDArray[np.bool_],
    rewards: NDArray[np.float32],
    done: NDArray[np.bool_],
    values: NDArray[np.float32],
    last_values: NDArray[np.float32],
    decay: float,
) -> NDArray[np.float32]:
    """Return [T, B] advantages, zero where nothing is learned; the returns are `values` plus these.

    What a seat is paid between two of its decisions belongs to the earlier one. Decisions that are not
    learned (forced, or of an opponent) are passed over: what follows them belongs to the seat's decision before.

    Args:
        seat: [T, B] the mover.
        learned: [T, B] true where a decision is learned from.
        rewards: [T, B, S] paid to each seat after it and before the next.
        done: [T, B] true where the episode ended.
        values: [T, B] the critic's values of these decisions; read where `learned`.
        last_values: [B, S] its values for each seat of the state after the last step.
        decay: lambda.
    """
    out = np.zeros(seat.shape, np.float32)
    later = last_values.copy(), np.zeros_like(last_values), np.zeros_like(last_values)
    specialize(_backward)(seat, learned, rewards, done, values, *later, np.float32(decay), out)
    return out
