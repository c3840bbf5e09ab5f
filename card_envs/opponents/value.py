"""What a position is worth: a small trained perceptron on the full state, for search in compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from card_envs.game import Game, Int8s
from card_envs.opponents.network import Weights, input_scale

HIDDEN_LAYERS = 2
Net = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]  # as `engine.value.value_of` takes them
NO_NET: Net = (np.zeros((9, 1), np.float32), np.zeros((2, 1), np.float32), np.zeros(2, np.float32))


class ValueNetwork:
    """Expected points that a seat's side gains from here to the end of the deal, from the full state seen from it."""

    def __init__(self, game: Game, weights: Weights) -> None:
        """Take weights named and shaped as in `weight_shapes` for [FULL_SIZE, H1, H2, 1], in float16 or float32."""
        if len(weights) != 2 * (HIDDEN_LAYERS + 1):
            raise ValueError(f"value network: expected {HIDDEN_LAYERS} hidden layers, got {len(weights) // 2 - 1}")
        self.weights = weights
        scale = input_scale(game.rules.FULL_FIELDS)
        padding = np.zeros((-len(scale) % 8, len(weights["layer0.bias"])), np.float32)
        first, second, last = (weights[f"layer{i}.weight"].astype(np.float32).T for i in range(HIDDEN_LAYERS + 1))
        biases = [weights[f"layer{i}.bias"].astype(np.float32) for i in range(HIDDEN_LAYERS + 1)]
        self.net: Net = (
            np.concatenate([first * scale[:, None], padding, biases[0][None]]),
            np.concatenate([second, biases[1][None]]),
            np.concatenate([last[:, 0], biases[2]]),
        )

    def values(self, full: Int8s) -> NDArray[np.float32]:
        """[n] points for full states [n, FULL_SIZE]."""
        first, second, last = self.net
        x = np.maximum(full.astype(np.float32) @ first[: full.shape[1]] + first[-1], 0)
        x = np.maximum(x @ second[:-1] + second[-1], 0)
        values: NDArray[np.float32] = x @ last[:-1] + last[-1]
        return values
