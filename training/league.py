"""Past selves to play against (fictitious self-play: Heinrich, Lanctot & Silver 2015)."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np
import torch

from training.network import Actor


class League:
    """Snapshots of the network, evenly spaced over the run."""

    def __init__(self, network: Actor, size: int, seed: list[int]) -> None:
        """An empty pool.

        Args:
            network: whose past is kept; it is not changed.
            size: how many snapshots a whole run leaves; 0: none, ever.
            seed: of the draws.
        """
        self.size = size
        self.snapshots: list[Mapping[str, torch.Tensor]] = []
        self.rng = np.random.default_rng(seed)
        self._past = copy.deepcopy(network)

    def to(self, device: torch.device) -> None:
        """Play on this device."""
        self._past.to(device)

    def offer(self, network: Actor, progress: float) -> None:
        """Keep a snapshot if one is due; `progress` is the share of the run that is done."""
        if len(self.snapshots) < min(self.size, int(progress * (self.size + 1))):
            self.snapshots.append({name: tensor.clone() for name, tensor in network.state_dict().items()})

    def draw(self) -> Actor | None:
        """A past self drawn uniformly, valid until the next draw; None while there is none."""
        if not self.snapshots:
            return None
        self._past.load_state_dict(self.snapshots[self.rng.integers(len(self.snapshots))])
        return self._past


class FixedRival(League):
    """A league of one: the same rival all the time, as a best response trains against it."""

    def __init__(self, rival: Actor) -> None:
        super().__init__(rival, 0, [0])
        self._past = rival

    def draw(self) -> Actor | None:
        return self._past
