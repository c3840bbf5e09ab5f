"""Outputs of a critic as values: a number, or a distribution over returns.

A distribution (Bellemare, Dabney & Munos 2017) is robust against rare huge scores: an outlier moves one bin's
probability, not every weight. Targets are spread over the two nearest bins, which keeps the mean (Imani & White 2018).
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional


class Values:
    """Translates between outputs of a critic and scaled returns."""

    def __init__(self, num_bins: int, limit: float, huber_delta: float, device: torch.device | None = None) -> None:
        """Place the bins: close around 0 and sparse outside, as log(1 + |return|) does.

        Args:
            num_bins: their number, or 0: the critic's one output is the value itself.
            limit: the outermost bins; returns beyond them count as these.
            huber_delta: without bins, the error beyond which the loss is linear.
            device: of the outputs (default: the CPU).
        """
        self.huber_delta = huber_delta
        ends = np.log1p(limit)
        steps = np.linspace(-ends, ends, num_bins)
        self.centres = torch.from_numpy((np.sign(steps) * np.expm1(np.abs(steps))).astype(np.float32)).to(device)

    def decode(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return [n] values of outputs [n, one or a bin each]."""
        if not len(self.centres):
            return outputs[:, 0]
        return outputs.softmax(dim=1) @ self.centres

    def loss(self, outputs: torch.Tensor, returns: torch.Tensor) -> torch.Tensor:
        """Return the mean error of outputs [n, one or a bin each] for returns [n]."""
        if not len(self.centres):
            return functional.huber_loss(outputs[:, 0], returns, delta=self.huber_delta)
        centres = self.centres
        inside = torch.clamp(returns, centres[0], centres[-1])
        above = torch.searchsorted(centres, inside).clamp(1, len(centres) - 1)
        low, high = centres[above - 1], centres[above]
        share = (inside - low) / (high - low)
        log_all = functional.log_softmax(outputs, dim=1)
        at = above[:, None]
        likely = share * log_all.gather(1, at)[:, 0] + (1 - share) * log_all.gather(1, at - 1)[:, 0]
        return -likely.mean()
