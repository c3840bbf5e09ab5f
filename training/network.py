"""The networks that training improves: the same perceptrons as `card_envs.opponents.network` runs in NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from card_envs.game import Field, Int8s
from card_envs.opponents.network import Weights, input_scale
from training.sparse import SparseLinear, compress

HEAD_GAIN = {"policy": 0.01, "value": 1.0}  # a small policy head begins near uniform play


class Network(nn.Module):
    """A perceptron with ReLU that reads int8 observations as they are stored.

    Attributes:
        bf16: multiply in 16 bits between the first layer and the outputs, which stay in 32.
    """

    bf16 = False

    def __init__(self, fields: tuple[Field, ...], hidden: list[int], outputs: int, head_gain: float) -> None:
        """Orthogonal weights, biases zero.

        Args:
            fields: of the observation; they give its size and scale.
            hidden: sizes of the hidden layers, at least one.
            outputs: size of the last layer.
            head_gain: gain of the last layer's weights.
        """
        super().__init__()
        self.scale = input_scale(fields)
        self.num_outputs = outputs
        self.sizes = [*hidden, outputs]
        sizes = [len(self.scale), *hidden, outputs]
        layers = [nn.Linear(inputs, size) for inputs, size in pairwise(sizes)]
        for layer in layers:
            nn.init.orthogonal_(layer.weight, head_gain if layer is layers[-1] else 2**0.5)
            nn.init.zeros_(layer.bias)
        # The first layer's weight stands transposed, [D, H], so that an entry's weights are adjacent.
        self.first_weight = nn.Parameter(layers[0].weight.detach().t().contiguous())
        self.first_bias = layers[0].bias
        self.rest = nn.ModuleList(layers[1:])

    def forward(self, obs: Int8s, rows: NDArray[np.int64]) -> torch.Tensor:
        """[n, outputs] for the observations `obs[rows]`, without copying them."""
        sparse = compress(obs, rows, self.scale)
        x: torch.Tensor = SparseLinear.apply(self.first_weight, self.first_bias, sparse)  # type: ignore[no-untyped-call]
        if self.bf16:
            x = functional.pad(x, (0, 0, 0, few_sizes(len(x)) - len(x)))
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            for layer in self.rest:
                assert isinstance(layer, nn.Linear)
                x = functional.linear(torch.relu_(x), layer.weight, layer.bias)
        return x[: len(rows)].float()

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Copies of the weights, named and shaped as `NetworkPolicy` takes them."""
        tensors = {"layer0.weight": self.first_weight.t(), "layer0.bias": self.first_bias}
        for i, layer in enumerate(self.rest, start=1):
            assert isinstance(layer, nn.Linear)
            tensors |= {f"layer{i}.weight": layer.weight, f"layer{i}.bias": layer.bias}
        return {name: tensor.detach().contiguous().numpy().copy() for name, tensor in tensors.items()}

    def set_weights(self, weights: Weights) -> None:
        """Take over such weights, of a network with the same layers.

        Raises:
            ValueError: the layers differ.
        """
        own = self.weights()
        if {name: weight.shape for name, weight in own.items()} != {name: w.shape for name, w in weights.items()}:
            shapes = [weight.shape[0] for name, weight in weights.items() if name.endswith("bias")]
            raise ValueError(f"warm_start: its layers have sizes {shapes}, those of this run {self.sizes}")
        tensors = {name: torch.from_numpy(np.asarray(weight, np.float32)) for name, weight in weights.items()}
        with torch.no_grad():
            self.first_weight.copy_(tensors["layer0.weight"].t())
            self.first_bias.copy_(tensors["layer0.bias"])
            for i, layer in enumerate(self.rest, start=1):
                assert isinstance(layer, nn.Linear)
                layer.weight.copy_(tensors[f"layer{i}.weight"])
                layer.bias.copy_(tensors[f"layer{i}.bias"])


def few_sizes(rows: int) -> int:
    """That many rows or up to a sixteenth more: one of few numbers, sixteen between a power of two and the next.

    oneDNN, which multiplies in 16 bits, makes code for each number of rows that it has not seen yet, in milliseconds,
    and keeps that of thousands, in hundreds of megabytes.
    """
    step = 1 << max(0, rows.bit_length() - 5)
    return -(-rows // step) * step


def processor_has_bf16() -> bool:
    """Whether 16-bit products are faster here; elsewhere they are emulated, and slower."""
    return bool(torch.cpu.get_capabilities().get("avx512_bf16") or torch.cpu.get_capabilities().get("amx_bf16"))


def evaluate_in_parts(network: Network, obs: Int8s, rows: NDArray[np.int64], part: int = 2048) -> NDArray[np.float32]:
    """[n, outputs] without gradients, in parts that stay in the processor's cache."""
    with torch.no_grad():
        parts = [network(obs, rows[i : i + part]).numpy() for i in range(0, len(rows), part)]
    return np.concatenate(parts) if parts else np.zeros((0, network.num_outputs), np.float32)
