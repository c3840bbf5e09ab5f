"""A small perceptron that says what a position is worth, in compiled code, so that search can ask it by the million.

Its input, a full state as `observe_all` writes it, is mostly zeros: only the weights of the others are added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from card_envs.engine.jit import rule
from card_envs.engine.sets import lowest

BYTE = np.uint64(0xFF)
ZERO = np.float32(0)


@rule
def value_of(full: Any, first: Any, second: Any, last: Any, layers: Any) -> Any:
    """The value of one position.

    Args:
        full: [D] int8, D a multiple of 8.
        first: [D + 1, H1] float32, the first layer's weights by input, scaled; its bias in the last row.
        second: [H1 + 1, H2] the second layer's, likewise.
        last: [H2 + 1] the weights of the output, then its bias.
        layers: [2, at least H1 and H2] scratch.
    """
    size, width = second.shape[0] - 1, second.shape[1]
    one, two = layers[0], layers[1]
    for h in range(size):
        one[h] = first[full.shape[0], h]
    words = full.view(np.uint64)
    for w in range(words.shape[0]):
        word = words[w]
        while word:
            byte = lowest(word) >> 3
            word &= ~(BYTE << np.uint64(8 * byte))
            scale = np.float32(full[8 * w + byte])
            for h in range(size):
                one[h] += scale * first[8 * w + byte, h]
    for k in range(width):
        two[k] = second[size, k]
    for h in range(size):
        if one[h] > ZERO:
            for k in range(width):
                two[k] += one[h] * second[h, k]
    value = last[width]
    for k in range(width):
        value += max(two[k], ZERO) * last[k]
    return value
