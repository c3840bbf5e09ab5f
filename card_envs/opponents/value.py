"""What a position is worth: a small trained perceptron on the full state, for search in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import FLOAT32, check_game, checked
from card_envs.game import Game, Int8s
from card_envs.opponents.networks.policies import (
    STEADY,
    Weights,
    check_weights,
    hidden_sizes,
    input_scale,
    weight_shapes,
)
from card_envs.opponents.networks.sparse import add_row

HIDDEN_LAYERS = 2
ZERO = np.float32(0)


class Net(NamedTuple):
    """The weights of a value network as `value_of` reads them, biases in the last rows; D is a multiple of 8.

    Attributes:
        first: [D + 1, H1] by input, scaled.
        second: [H1 + 1, H2].
        last: [H2 + 1].
    """

    first: NDArray[np.float32]
    second: NDArray[np.float32]
    last: NDArray[np.float32]


NO_NET = Net(np.zeros((9, 1), np.float32), np.zeros((2, 1), np.float32), np.zeros(2, np.float32))


def checked_net(game: Game, net: Net) -> Net:
    """The network, if `value_of` can read it for full states of this game. Raises ValueError."""
    inputs = -(-game.rules.FULL_SIZE // 8) * 8
    sizes = np.shape(net.second) if np.ndim(net.second) == 2 else (1, 1)
    shapes = (inputs + 1, sizes[0] - 1), sizes, (sizes[1] + 1,)
    return Net(
        *(
            checked(f"value network: {name}", weights, shape, FLOAT32, written=False)
            for name, weights, shape in zip(Net._fields, net, shapes, strict=True)
        )
    )


def value_of(full: Int8s, net: Net, layers: NDArray[np.float32]) -> float:
    """The value of one position, in compiled code, so that search can ask by the million.

    A full state, as `observe_all` writes it, is mostly zeros: only the weights of the others are added up.

    Args:
        full: [D].
        net: the network.
        layers: [2, at least H1 and H2] scratch.
    """
    size, width = net.second.shape[0] - 1, net.second.shape[1]
    one, two = layers[0], layers[1]
    for h in range(size):
        one[h] = net.first[full.shape[0], h]
    add_row(full, net.first, one[:size])
    for k in range(width):
        two[k] = net.second[size, k]
    for h in range(size):
        if one[h] > ZERO:
            for k in range(width):
                two[k] += one[h] * net.second[h, k]
    value: Any = net.last[width]
    for k in range(width):
        value += max(two[k], ZERO) * net.last[k]
    return value


class ValueNetwork:
    """Expected points that a seat's side gains from here to the end of the deal, from the full state seen from it."""

    def __init__(self, game: Game, weights: Weights) -> None:
        """Take weights named and shaped as in `weight_shapes` for [FULL_SIZE, H1, H2, 1], in float16 or float32."""
        check_game(game)
        hidden = hidden_sizes(weights)
        if len(hidden) != HIDDEN_LAYERS:
            raise ValueError(f"value network: expected {HIDDEN_LAYERS} hidden layers, got {len(hidden)}")
        check_weights(weights, weight_shapes([game.rules.FULL_SIZE, *hidden, 1]), "value network")
        self.weights = weights
        scale = input_scale(game.rules.FULL_FIELDS)
        padding = np.zeros((-len(scale) % 8, len(weights["layer0.bias"])), np.float32)
        first, second, last = (weights[f"layer{i}.weight"].astype(np.float32).T for i in range(HIDDEN_LAYERS + 1))
        biases = [weights[f"layer{i}.bias"].astype(np.float32) for i in range(HIDDEN_LAYERS + 1)]
        layers = (
            [first * scale[:, None], padding, biases[0][None]],
            [second, biases[1][None]],
            [last[:, 0], biases[2]],
        )
        self.net = Net(*(np.ascontiguousarray(np.concatenate(parts)) for parts in layers))

    @STEADY
    def values(self, full: Int8s) -> NDArray[np.float32]:
        """[n] points for full states [n, FULL_SIZE]."""
        first, second, last = self.net
        x = np.maximum(full.astype(np.float32) @ first[: full.shape[1]] + first[-1], 0)
        x = np.maximum(x @ second[:-1] + second[-1], 0)
        values: NDArray[np.float32] = x @ last[:-1] + last[-1]
        return values
