"""What a critic's outputs mean: a number, or a distribution over returns.

A distribution (Bellemare, Dabney & Munos 2017) bears rare huge scores: a far outlier moves one bin's probability, not
every weight. Targets are spread over the two nearest bins so that the mean is kept (Imani & White 2018).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional


class Values:
    """Translates between outputs of a critic and scaled returns."""

    def __init__(self, num_bins: int, limit: float, huber_delta: float) -> None:
        """Bins lie close around 0 and wide apart outside, as log(1 + |return|) does.

        Args:
            num_bins: how many, or 0: the critic's one output is the value itself.
            limit: the outermost bins; returns beyond them count as these.
            huber_delta: without bins, the error beyond which the loss is linear.
        """
        self.huber_delta = huber_delta
        ends = np.log1p(limit)
        steps = np.linspace(-ends, ends, num_bins)
        self.centres = (np.sign(steps) * np.expm1(np.abs(steps))).astype(np.float32)

    def decode(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """[n] values of outputs [n, one or a bin each]."""
        if not len(self.centres):
            return outputs[:, 0]
        weights = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        values: NDArray[np.float32] = (weights @ self.centres) / weights.sum(axis=1)
        return values

    def loss(self, outputs: torch.Tensor, returns: NDArray[np.float32]) -> torch.Tensor:
        """The mean error of outputs [n, one or a bin each] for returns [n]."""
        if not len(self.centres):
            return functional.huber_loss(outputs[:, 0], torch.from_numpy(returns), delta=self.huber_delta)
        inside = np.clip(returns, self.centres[0], self.centres[-1])
        above = np.clip(np.searchsorted(self.centres, inside), 1, len(self.centres) - 1)
        low, high = self.centres[above - 1], self.centres[above]
        share = torch.from_numpy(((inside - low) / (high - low)).astype(np.float32))
        log_all = functional.log_softmax(outputs, dim=1)
        at = torch.from_numpy(above)[:, None]
        likely = share * log_all.gather(1, at)[:, 0] + (1 - share) * log_all.gather(1, at - 1)[:, 0]
        return -likely.mean()
