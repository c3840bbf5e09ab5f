"""Proximal policy optimisation (Schulman et al. 2017) with masked actions and a critic of its own."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from card_envs.game import Field, Int8s
from card_envs.opponents.network import ILLEGAL
from training.config import Config
from training.network import Actor, Inputs, Network, Rows
from training.ranks import Ranks
from training.values import Values


class Diverged(ArithmeticError):
    """A NaN or infinite loss.

    Attributes:
        rows: of the batch, in the minibatch that gave it.
    """

    def __init__(self, rows: NDArray[np.int64]) -> None:
        super().__init__("the loss is no longer a number: a lower lr or max_grad_norm may help")
        self.rows = rows


@dataclass
class Batch:
    """Decisions to learn from: rows of buffers that are not copied.

    Attributes:
        inputs: what the actor reads of N decisions.
        full: [N, F] what the critic reads of them.
        mask: [N, A] int8.
        actions, log_probabilities, advantages, returns: [N]; returns are scaled like the critic's values.
        teacher: [N] the moves of the player that is copied.
        rows: [n] the decisions that are learned from.
    """

    inputs: Inputs
    full: Rows
    mask: Int8s
    actions: NDArray[np.int64]
    log_probabilities: NDArray[np.float32]
    advantages: NDArray[np.float32]
    returns: NDArray[np.float32]
    teacher: NDArray[np.int64]
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class LossWeights:
    """What changes over a run: the learning rate, and the weights of terms of the loss.

    Attributes:
        lr: Adam's learning rate.
        entropy, imitation: weights of these terms.
        critic_alone: the actor is frozen.
    """

    lr: float
    entropy: float
    imitation: float = 0.0
    critic_alone: bool = False


class Learner:
    """Actor, critic, the slow copy of the actor, and the optimiser."""

    def __init__(
        self, actor: Actor, critic: Network, config: Config, action_fields: tuple[Field, ...], ranks: Ranks
    ) -> None:
        self.actor = actor
        self.critic = critic
        self.slow_copy = copy.deepcopy(actor).requires_grad_(False)
        self.config = config
        self.ranks = ranks
        self.values = Values(config.value_bins, config.value_range, config.huber_delta)
        self.parameters = [*actor.parameters(), *critic.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=config.lr, eps=1e-5, fused=True)
        self.rng = np.random.default_rng([config.seed, 3, ranks.rank])
        self._field_names = [field.name for field in action_fields]
        self._field_of = np.repeat(np.arange(len(action_fields)), [field.size for field in action_fields])
        copied = [not config.imitation_fields or field.name in config.imitation_fields for field in action_fields]
        self._copied = np.array(copied)[self._field_of].astype(np.float32)  # [A]

    def update(self, batch: Batch, weights: LossWeights) -> dict[str, float]:
        """Improve actor and critic on a batch; all ranks take the same steps.

        Returns:
            Means over all minibatches of this rank: `entropy` (1: uniform over the legal actions), the same for each
            range of actions by what was taken (`entropy_<field>`), `kl` (approximate, from the policy that played),
            `clipped` (share of ratios), `value_loss`; where used, `kl_slow_copy` and `imitation_loss`.

        Raises:
            Diverged: a loss is NaN or infinite; the networks are as they were before that minibatch.
        """
        chosen = batch.advantages[batch.rows].astype(np.float64)
        total, squares, number = self.ranks.sum(chosen.sum(), (chosen**2).sum(), len(chosen))
        shift = total / max(number, 1)
        spread = max(squares / max(number, 1) - shift**2, 0) ** 0.5 + 1e-8
        for group in self.optimizer.param_groups:
            group["lr"] = weights.lr
        tally = Tally(self._field_names)
        num_parts = max(1, round(number / self.ranks.count / self.config.minibatch))
        for _ in range(self.config.epochs):
            for rows in np.array_split(self.rng.permutation(batch.rows), num_parts):
                advantages = ((batch.advantages[rows] - shift) / spread).astype(np.float32)
                self._step(batch, rows, torch.from_numpy(advantages), weights, tally)
        if self.config.kl:
            with torch.no_grad():
                for slow, now in zip(self.slow_copy.parameters(), self.actor.parameters()):
                    slow.lerp_(now, self.config.kl_follow)
        return tally.means()

    def _step(
        self, batch: Batch, rows: NDArray[np.int64], advantages: torch.Tensor, weights: LossWeights, tally: Tally
    ) -> None:
        value_loss = loss = self.values.loss(self.critic(batch.full, rows), batch.returns[rows])
        policy_loss = self._policy_loss(batch, rows, advantages, weights, tally)
        if not weights.critic_alone:
            loss = policy_loss + value_loss
        if not torch.isfinite(loss):
            raise Diverged(rows)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.ranks.average_gradients(self.parameters)
        for network in (self.actor, self.critic):
            nn.utils.clip_grad_norm_(network.parameters(), self.config.max_grad_norm, foreach=True)
        self.optimizer.step()
        tally.add(value_loss=float(value_loss.detach()))

    def _policy_loss(
        self, batch: Batch, rows: NDArray[np.int64], advantages: torch.Tensor, weights: LossWeights, tally: Tally
    ) -> torch.Tensor:
        config = self.config
        legal = torch.from_numpy(batch.mask[rows]).bool()
        logits = self.actor.logits(batch.inputs, rows).masked_fill(~legal, float(ILLEGAL))
        log_all = functional.log_softmax(logits, dim=1)
        taken = batch.actions[rows]
        change = log_all.gather(1, torch.from_numpy(taken)[:, None])[:, 0] - torch.from_numpy(
            batch.log_probabilities[rows]
        )
        ratio = change.exp()
        clip = config.clip
        loss = -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages).mean()
        # Not log_all.exp(): far below zero that is ten times slower.
        probabilities = logits.softmax(dim=1)
        entropies = -(probabilities * log_all).sum(dim=1)
        shares = entropies / legal.sum(dim=1, dtype=torch.float32).log().clamp_min(1e-3)
        loss = loss - weights.entropy * (shares if config.entropy_by_width else entropies).mean()
        if config.kl:
            with torch.no_grad():
                slow = self.slow_copy.logits(batch.inputs, rows).masked_fill(~legal, float(ILLEGAL))
                log_slow = functional.log_softmax(slow, dim=1)
            kl_slow_copy = (probabilities * (log_all - log_slow)).sum(dim=1).mean()
            loss = loss + config.kl * kl_slow_copy
            tally.add(kl_slow_copy=float(kl_slow_copy.detach()))
        if weights.imitation:
            teacher = batch.teacher[rows]
            unlike = -log_all.gather(1, torch.from_numpy(teacher)[:, None])[:, 0]
            imitation_loss = (unlike * torch.from_numpy(self._copied[teacher])).mean()
            loss = loss + weights.imitation * imitation_loss
            tally.add(imitation_loss=float(imitation_loss.detach()))
        with torch.no_grad():
            tally.add(
                entropy=float(shares.mean()),
                kl=float((ratio - 1 - change).mean()),  # http://joschu.net/blog/kl-approx.html
                clipped=float(((ratio - 1).abs() > clip).float().mean()),
            )
            tally.add_by_field(self._field_of[taken], shares.numpy())
        return loss


class Tally:
    """Sums of figures over the minibatches of an update."""

    def __init__(self, field_names: list[str]) -> None:
        self._sums: dict[str, list[float]] = {}
        self._names = field_names
        self._by_field: NDArray[np.float64] = np.zeros((2, len(field_names)))

    def add(self, **figures: float) -> None:
        for name, figure in figures.items():
            self._sums.setdefault(name, []).append(figure)

    def add_by_field(self, fields: NDArray[Any], figures: NDArray[np.float32]) -> None:
        """Figures of single decisions, by the range of actions that each fell into."""
        size = len(self._names)
        self._by_field += [np.bincount(fields, figures, size), np.bincount(fields, minlength=size)]

    def means(self) -> dict[str, float]:
        means = {name: float(np.mean(figures)) for name, figures in self._sums.items()}
        sums, numbers = self._by_field
        return means | {f"entropy_{self._names[i]}": sums[i] / numbers[i] for i in np.flatnonzero(numbers)}
