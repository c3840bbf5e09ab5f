"""Who else sits at the tables: past selves (fictitious self-play: Heinrich, Lanctot & Silver 2015), trained rivals."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.policies import TrainedPolicy
from training.network import Actor, stored_actor


class League:
    """Snapshots of the network, evenly spaced over the run, and rivals that stay as they are."""

    def __init__(
        self, network: Actor, size: int, seed: list[int], rivals: Sequence[Actor] = (), rivals_share: float = 0.0
    ) -> None:
        """A pool without snapshots.

        Args:
            network: whose past is kept; it is not changed.
            size: how many snapshots a whole run leaves; 0: none, ever.
            seed: of the draws.
            rivals: who sits there, too.
            rivals_share: how often one of them is drawn where there are snapshots as well.
        """
        self.size = size
        self.snapshots: list[Mapping[str, torch.Tensor]] = []
        self.rivals = list(rivals)
        self.rivals_share = rivals_share
        self.rng = np.random.default_rng(seed)
        self._past = copy.deepcopy(network)

    def to(self, device: torch.device) -> None:
        """Play on this device."""
        for network in (self._past, *self.rivals):
            network.to(device)

    def offer(self, network: Actor, progress: float) -> None:
        """Keep a snapshot if one is due; `progress` is the share of the run that is done."""
        if len(self.snapshots) < min(self.size, int(progress * (self.size + 1))):
            self.snapshots.append({name: tensor.clone() for name, tensor in network.state_dict().items()})

    def draw(self) -> Actor | None:
        """A rival or a past self, each drawn uniformly, valid until the next draw; None while there is none."""
        if self.rivals and (not self.snapshots or self.rng.random() < self.rivals_share):
            return self.rivals[self.rng.integers(len(self.rivals))]
        if not self.snapshots:
            return None
        self._past.load_state_dict(self.snapshots[self.rng.integers(len(self.snapshots))])
        return self._past


def rivals_of(game: Game, names: Sequence[str], network: Actor, in_tensors: bool) -> list[Actor]:
    """The networks of trained opponents, for tables that this network learns at, as on a GPU or not.

    Raises ValueError, with the name, where one is no network that can sit there.
    """
    rivals: list[Actor] = []
    for name in names:
        try:
            policy = load_opponent(name, game).policy
            if not isinstance(policy, TrainedPolicy):
                raise ValueError("expected a trained opponent")
            rival = stored_actor(policy)
            if rival.reads_moves and in_tensors:
                raise ValueError("its network sees what moves do, which needs device = 'cpu'")
            if rival.reads_moves and network.reads_moves and rival.lookahead != network.lookahead:
                raise ValueError("of its network and this one, one reads where moves settle, the other moves alone")
        except ValueError as error:
            raise ValueError(f"rivals: {name!r}: {error}") from None
        rivals.append(rival)
    return rivals
