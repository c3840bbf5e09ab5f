"""Weighted sums of weight rows, kept in registers: the hot loop of networks with sparse inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling._rules import instruction

Floats = NDArray[np.float32]
WIDE, NARROW = 64, 16  # columns per tile; 64 fill four to sixteen registers


def add_rows(weights: Floats, entry: NDArray[np.int32], value: Floats, first: int, last: int, sums: Floats) -> None:
    """Add value[k] * weights[entry[k]] to the sums, for first <= k < last.

    Each column is summed in the order of k whatever the vector width and the processor, so that rounding never differs.

    Args:
        weights: [D, H].
        entry: row numbers.
        value: the factor of each row.
        first, last: range of k.
        sums: [H].
    """
    width = sums.shape[0]
    column = 0
    while column + WIDE <= width:
        add_tile(weights, entry, value, first, last, sums, column, WIDE)
        column += WIDE
    while column + NARROW <= width:
        add_tile(weights, entry, value, first, last, sums, column, NARROW)
        column += NARROW
    add_tile(weights, entry, value, first, last, sums, column, width - column)


@instruction
def add_tile(
    weights: Floats, entry: NDArray[np.int32], value: Floats, first: int, last: int, sums: Floats, column: int,
    size: int,
) -> None:  # fmt: skip
    """Do `add_rows` for `size` columns from `column` on; in vector instructions if `size` is a constant.

    The compiler would use none by itself, because `sums` might alias the weights.
    """
    for k in range(first, last):
        for h in range(column, column + size):
            sums[h] += value[k] * weights[entry[k], h]
