"""Trained networks in NumPy, so that playing needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from card_envs.game import Field, Game, Rules, bounds
from card_envs.opponents.policy import Turn, sample

Weights = Mapping[str, NDArray[np.floating]]
ILLEGAL = np.float32(-1e9)


def input_fields(rules: Rules) -> tuple[Field, ...]:
    """What a network reads: the observation, then the mask; which moves are legal says a lot about a position."""
    return (*rules.OBS_FIELDS, Field("legal", rules.NUM_ACTIONS, 1))


def input_scale(fields: tuple[Field, ...]) -> NDArray[np.float32]:
    """What the input is multiplied with before the first layer: every entry ends up within [-1, 1]."""
    low, high = bounds(fields)
    return (1 / np.maximum(np.abs(low.astype(np.float32)), high)).astype(np.float32)


def weight_shapes(sizes: list[int]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors of a network with these layer sizes, input and output included."""
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        shapes[f"layer{i}.weight"] = (outputs, inputs)
        shapes[f"layer{i}.bias"] = (outputs,)
    return shapes


class NetworkPolicy:
    """A multi-layer perceptron with ReLU between its layers and a masked softmax at the end."""

    def __init__(self, game: Game, weights: Weights, sampled: bool = True) -> None:
        """Take weights named and shaped as in `weight_shapes`, in float16 or float32.

        Args:
            game: what it plays; gives the scale of the input.
            weights: `layer{i}.weight` [outputs, inputs] and `layer{i}.bias` [outputs].
            sampled: draw moves from the probabilities; False: play the likeliest.
        """
        self.game = game
        self.sampled = sampled
        self.weights = weights
        self._layers = [
            (weights[f"layer{i}.weight"].astype(np.float32).T, weights[f"layer{i}.bias"].astype(np.float32))
            for i in range(len(weights) // 2)
        ]
        first, bias = self._layers[0]
        self._layers[0] = (first * input_scale(input_fields(game.rules))[:, None], bias)

    def logits(self, obs: NDArray[np.int8], mask: NDArray[np.int8]) -> NDArray[np.float32]:
        """[n, A] scores of the actions, -1e9 where illegal."""
        x = np.concatenate([obs, mask], axis=1, dtype=np.float32)
        for weight, bias in self._layers[:-1]:
            x = np.maximum(x @ weight + bias, 0)
        weight, bias = self._layers[-1]
        return np.where(mask != 0, x @ weight + bias, ILLEGAL).astype(np.float32)

    def probabilities(self, turn: Turn) -> NDArray[np.float32]:
        logits = self.logits(turn.obs, turn.mask)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True)) * (turn.mask != 0)
        return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)

    def act(self, turn: Turn, rng: np.random.Generator) -> NDArray[np.int64]:
        if self.sampled:
            return sample(self.probabilities(turn), rng)
        return self.logits(turn.obs, turn.mask).argmax(axis=1)
