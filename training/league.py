"""The opponent pool: snapshots of the learner (fictitious self-play: Heinrich, Lanctot & Silver 2015) and opponents."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np
import torch

from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.policies import TrainedPolicy

from .config import Config
from .networks import Actor, stored_actor

OPPONENTS_SHARE = 0.5  # how often one of them is drawn where there are snapshots as well


class Pool:
    """Snapshots of the learner, evenly spaced over the run, and trained opponents that do not change."""

    def __init__(self, actor: Actor, config: Config, seed: list[int], opponents: list[Actor]) -> None:
        """Create a pool without snapshots.

        Args:
            actor: the learner; it is copied.
            config: size and shares.
            seed: of the draws.
            opponents: in the pool from the beginning.
        """
        self.config = config
        self.snapshots: list[Mapping[str, torch.Tensor]] = []
        self.opponents = opponents
        self.rng = np.random.default_rng(seed)
        self._snapshot = copy.deepcopy(actor)

    @property
    def networks(self) -> list[Actor]:
        """Return all networks that it can draw."""
        return [self._snapshot, *self.opponents]

    def offer(self, actor: Actor, progress: float) -> None:
        """Keep a snapshot if one is due; `progress` is the share of the run that is done."""
        size = self.config.pool_size
        if len(self.snapshots) < min(size, int(progress * (size + 1))):
            self.snapshots.append({name: tensor.clone() for name, tensor in actor.state_dict().items()})

    def draw(self) -> Actor | None:
        """Return an opponent or a snapshot, valid until the next draw; None while there is none."""
        if self.opponents and (not self.snapshots or self.rng.random() < OPPONENTS_SHARE):
            return self.opponents[self.rng.integers(len(self.opponents))]
        if not self.snapshots:
            return None
        self._snapshot.load_state_dict(self.snapshots[self.rng.integers(len(self.snapshots))])
        return self._snapshot


def pool_opponents(game: Game, config: Config, actor: Actor) -> list[Actor]:
    """Load `pool_opponents`. Raises ValueError, with the name, for one that can't play at the learner's tables."""
    opponents: list[Actor] = []
    for name in config.pool_opponents:
        try:
            policy = load_opponent(name, game).policy
            if not isinstance(policy, TrainedPolicy):
                raise ValueError("expected a trained opponent")
            opponent = stored_actor(policy)
            if opponent.reads_moves and config.device != "cpu":
                raise ValueError("its network reads what moves change, which needs device = 'cpu'")
            if opponent.reads_moves and actor.reads_moves and opponent.lookahead != actor.lookahead:
                raise ValueError("it and the learner are networks of the kinds afterstates and lookahead")
        except ValueError as error:
            raise ValueError(f"pool_opponents: {name!r}: {error}") from None
        opponents.append(opponent)
    return opponents
