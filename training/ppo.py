"""Proximal policy optimisation (Schulman et al. 2017) with masked actions and a critic of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from card_envs.game import Int8s
from card_envs.opponents.network import ILLEGAL
from training.config import Config
from training.network import Network


@dataclass
class Batch:
    """Decisions to learn from: rows of buffers that are not copied.

    Attributes:
        obs, full, mask: [N, …] int8.
        actions, log_probabilities, advantages, returns: [N]; returns are scaled like the critic's values.
        rows: [n] the decisions that are learned from.
    """

    obs: Int8s
    full: Int8s
    mask: Int8s
    actions: NDArray[np.int64]
    log_probabilities: NDArray[np.float32]
    advantages: NDArray[np.float32]
    returns: NDArray[np.float32]
    rows: NDArray[np.int64]


class Learner:
    """Actor, critic and their optimiser."""

    def __init__(self, actor: Network, critic: Network, config: Config) -> None:
        self.actor = actor
        self.critic = critic
        self.config = config
        self.optimizer = torch.optim.Adam(
            [*actor.parameters(), *critic.parameters()], lr=config.lr, eps=1e-5, fused=True
        )
        self._rng = np.random.default_rng([config.seed, 3])

    def update(self, batch: Batch, lr: float, entropy_weight: float, tick: Callable[[], None]) -> dict[str, float]:
        """Improve actor and critic on a batch.

        Args:
            batch: the decisions; advantages are normalised here.
            lr: learning rate.
            entropy_weight: of the entropy in the loss.
            tick: called before each minibatch.

        Returns:
            Means over all minibatches: `entropy` (1: uniform over the legal actions), `kl` (approximate, from the
            policy that played), `clipped` (share of ratios), `value_loss`.
        """
        chosen = batch.advantages[batch.rows]
        shift, spread = float(chosen.mean()), float(chosen.std()) + 1e-8
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        sums: dict[str, float] = {}
        num_parts = max(1, round(len(batch.rows) / self.config.minibatch))
        for _ in range(self.config.epochs):
            for rows in np.array_split(self._rng.permutation(batch.rows), num_parts):
                tick()
                advantages = torch.from_numpy((batch.advantages[rows] - shift) / spread)
                policy_loss, figures = self._policy_loss(batch, rows, advantages, entropy_weight)
                value_loss = self._value_loss(batch, rows)
                self.optimizer.zero_grad()
                (policy_loss + value_loss).backward()  # type: ignore[no-untyped-call]
                for network in (self.actor, self.critic):
                    nn.utils.clip_grad_norm_(network.parameters(), self.config.max_grad_norm, foreach=True)
                self.optimizer.step()
                for name, figure in {**figures, "value_loss": value_loss.detach()}.items():
                    sums[name] = sums.get(name, 0.0) + float(figure)
        return {name: total / (num_parts * self.config.epochs) for name, total in sums.items()}

    def _policy_loss(
        self, batch: Batch, rows: NDArray[np.int64], advantages: torch.Tensor, entropy_weight: float
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        legal = torch.from_numpy(batch.mask[rows]).bool()
        logits = self.actor(batch.obs, rows).masked_fill_(~legal, float(ILLEGAL))
        log_all = functional.log_softmax(logits, dim=1)
        log_taken = log_all.gather(1, torch.from_numpy(batch.actions[rows])[:, None])[:, 0]
        change = log_taken - torch.from_numpy(batch.log_probabilities[rows])
        ratio = change.exp()
        clip = self.config.clip
        gain = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages).mean()
        # Divided by its largest value, so that wide and narrow decisions weigh the same.
        num_legal = legal.sum(dim=1, dtype=torch.float32)
        # Not log_all.exp(): far below zero that is ten times slower.
        entropy = -((logits.softmax(dim=1) * log_all).sum(dim=1) / num_legal.log().clamp_min(1e-3)).mean()
        with torch.no_grad():
            figures = {
                "entropy": entropy.detach(),
                "kl": (ratio - 1 - change).mean(),  # http://joschu.net/blog/kl-approx.html
                "clipped": ((ratio - 1).abs() > clip).float().mean(),
            }
        return -gain - entropy_weight * entropy, figures

    def _value_loss(self, batch: Batch, rows: NDArray[np.int64]) -> torch.Tensor:
        values = self.critic(batch.full, rows)[:, 0]
        # Huber: a failed quadruple board scores fifteen times the usual deal and must not shake the critic.
        return functional.huber_loss(values, torch.from_numpy(batch.returns[rows]), delta=self.config.huber_delta)
