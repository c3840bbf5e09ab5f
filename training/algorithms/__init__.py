"""The algorithms: how data comes about, what is learned and with which loss. All else is `training.run`'s."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from card_envs.opponents.networks.policies import TrainedPolicy
from card_envs.opponents.policy import Policy

from ..checkpoint import Memory
from ..config import Config
from ..ranks import Ranks

if TYPE_CHECKING:
    from ..rollout import Backend

MODULES = {"ppo": ".ppo:PPO", "advantages": ".advantages:Advantages", "td": ".td:TemporalDifferences"}


class Diverged(ArithmeticError):
    """A NaN or infinite loss.

    Attributes:
        arrays: the decisions of that minibatch, to debug it.
    """

    def __init__(self, arrays: dict[str, Any]) -> None:
        advice = "a new run with a lower learning_rate or max_grad_norm may help; warm_start takes this one's networks"
        super().__init__(f"the loss is no longer a number: {advice}")
        self.arrays = arrays


class Algorithm(Protocol):
    """The interface between a run and its algorithm."""

    def iterate(self, progress: float) -> dict[str, float]:
        """Play and learn for a while.

        Args:
            progress: the share of the run that is done.

        Returns:
            `learned`, the number of decisions that this process learned from, then figures for the log.

        Raises:
            Diverged, RankLost: this iteration is lost; the last checkpoint is good.
        """
        ...

    def memory(self) -> Memory:
        """Return the state that all processes share and resume from."""
        ...

    def rank_memory(self) -> Memory:
        """Return the state that only this process resumes from; default: nothing."""
        return {}, {}

    def restore(self, memory: Memory, rank_memory: Memory | None) -> None:
        """Go on exactly from these; without `rank_memory`, with new deals. Raises ValueError if they do not fit."""
        ...

    def policy(self) -> Policy:
        """Return the player that it has learned so far, to measure it."""
        ...

    def stored_policy(self) -> TrainedPolicy:
        """Return that player as an opponent's folder stores it."""
        ...

    def finish(self) -> dict[str, Any]:
        """Take the last step, once the run is over; returns facts about it for the opponent's folder; default: none."""
        return {}

    def bytes_on_disk(self) -> int:
        """Return about the size of a checkpoint."""
        ...


def create(config: Config, ranks: Ranks, backend: Backend | None = None) -> Algorithm:
    """Create the algorithm of the settings, at the beginning of its run. Raises ValueError where they do not fit."""
    module, _, kind = MODULES[config.algorithm].partition(":")
    more = {"backend": backend} if backend else {}
    algorithm: Algorithm = getattr(import_module(module, __package__), kind)(config, ranks, **more)
    return algorithm
