"""Proximal policy optimisation (Schulman et al. 2017) with masked actions and a critic of its own."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from card_envs.game import Field
from card_envs.opponents.networks.policies import ILLEGAL
from training.config import Config
from training.leads import SHARPNESS, leads_loss
from training.network import Actor, DeviceRows, Inputs, Network, Rows
from training.ranks import Ranks
from training.values import Values

Numbers: TypeAlias = NDArray[Any] | torch.Tensor


class Diverged(ArithmeticError):
    """A NaN or infinite loss.

    Attributes:
        rows: of the batch, in the minibatch that gave it.
    """

    def __init__(self, rows: Numbers) -> None:
        super().__init__("the loss is no longer a number: a lower lr or max_grad_norm may help")
        self.rows = rows


@dataclass
class Batch:
    """Decisions to learn from: rows of buffers that are not copied; arrays, or tensors where the networks are.

    Attributes:
        inputs: what the actor reads of N decisions.
        full: [N, F] what the critic reads of them.
        mask: [N, A] int8.
        actions, log_probabilities, advantages, returns: [N]; returns are scaled like the critic's values.
        teacher: [N] the moves of the player that is copied.
        leads: [N, A] what each move would have gained, to learn from instead of `advantages`; None: those it is.
        rows: [n] the decisions that are learned from.
    """

    inputs: Inputs
    full: Rows | DeviceRows
    mask: Numbers
    actions: Numbers
    log_probabilities: Numbers
    advantages: Numbers
    returns: Numbers
    teacher: Numbers
    rows: Numbers
    leads: Numbers | None = None


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
        self.ema_policy = copy.deepcopy(actor).requires_grad_(False)
        self.config = config
        self.ranks = ranks
        self.parameters = [*actor.parameters(), *critic.parameters()]
        device = self.parameters[0].device
        self.values = Values(config.value_bins, config.value_range, config.huber_delta, device)
        self.optimizer = torch.optim.Adam(self.parameters, lr=config.lr, eps=1e-5, fused=True)
        self.rng = np.random.default_rng([config.seed, 3, ranks.rank])
        self._field_names = [field.name for field in action_fields]
        field_of = np.repeat(np.arange(len(action_fields)), [field.size for field in action_fields])
        copied = [not config.imitation_fields or field.name in config.imitation_fields for field in action_fields]
        self._field_of = torch.from_numpy(field_of).to(device)  # [A]
        self._copied = torch.from_numpy(np.array(copied)[field_of].astype(np.float32)).to(device)  # [A]

    def update(self, batch: Batch, weights: LossWeights) -> dict[str, float]:
        """Improve actor and critic on a batch; all ranks take the same steps.

        Returns:
            Means over all minibatches of this rank: `entropy` (1: uniform over the legal actions), the same for each
            range of actions by what was taken (`entropy_<field>`), `kl` (approximate, from the policy that played),
            `clipped` (share of ratios), `value_loss`; where used, `leads_loss`, `kl_slow_copy` and `imitation_loss`.

        Raises:
            Diverged: a loss is NaN or infinite; the networks are as they were before that minibatch, except on a GPU,
                where nobody waits for a loss within an update.
        """
        chosen = torch.as_tensor(batch.advantages[batch.rows]).double()
        total, squares, number = self.ranks.sum(float(chosen.sum()), float((chosen**2).sum()), len(chosen))
        shift = total / max(number, 1)
        spread = max(squares / max(number, 1) - shift**2, 0) ** 0.5 + 1e-8
        for group in self.optimizer.param_groups:
            group["lr"] = weights.lr
        tally = Tally(self._field_names, chosen.device)
        num_parts = max(1, round(number / self.ranks.count / self.config.minibatch))
        losses = []
        for _ in range(self.config.epochs):
            for rows in self._shuffled(batch.rows, num_parts):
                advantages = ((torch.as_tensor(batch.advantages[rows]).double() - shift) / spread).float()
                loss = self._step(batch, rows, advantages, weights, tally)
                if loss.is_cuda:
                    losses.append((loss, rows))
        for loss, rows in losses:
            if not torch.isfinite(loss):
                raise Diverged(rows)
        if self.config.kl:
            with torch.no_grad():
                for slow, now in zip(self.ema_policy.parameters(), self.actor.parameters()):
                    slow.lerp_(now, self.config.kl_follow)
        return tally.means()

    def _shuffled(self, rows: Any, num_parts: int) -> Any:
        """The rows in so many parts, in an order that `rng` alone decides."""
        if isinstance(rows, np.ndarray):
            return np.array_split(self.rng.permutation(rows), num_parts)
        generator = torch.Generator(rows.device).manual_seed(int(self.rng.integers(1 << 63)))
        return rows[torch.randperm(len(rows), generator=generator, device=rows.device)].tensor_split(num_parts)

    def _step(
        self, batch: Batch, rows: Any, advantages: torch.Tensor, weights: LossWeights, tally: Tally
    ) -> torch.Tensor:
        value_loss = loss = self.values.loss(self.critic(batch.full, rows), torch.as_tensor(batch.returns[rows]))
        if batch.leads is None:
            policy_loss = self._policy_loss(batch, rows, advantages, weights, tally)
        else:
            policy_loss = self._leads_loss(batch, rows, tally)
        if not weights.critic_alone:
            loss = policy_loss + value_loss
        if not loss.is_cuda and not torch.isfinite(loss):
            raise Diverged(rows)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.ranks.average_gradients(self.parameters)
        for network in (self.actor, self.critic):
            nn.utils.clip_grad_norm_(network.parameters(), self.config.max_grad_norm, foreach=True)
        self.optimizer.step()
        tally.add(value_loss=value_loss)
        return loss.detach()

    def _policy_loss(
        self, batch: Batch, rows: Any, advantages: torch.Tensor, weights: LossWeights, tally: Tally
    ) -> torch.Tensor:
        config = self.config
        legal = torch.as_tensor(batch.mask[rows]).bool()
        logits = self.actor.logits(batch.inputs, rows).masked_fill(~legal, float(ILLEGAL))
        log_all = functional.log_softmax(logits, dim=1)
        taken = torch.as_tensor(batch.actions[rows])
        change = log_all.gather(1, taken[:, None])[:, 0] - torch.as_tensor(batch.log_probabilities[rows])
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
                slow = self.ema_policy.logits(batch.inputs, rows).masked_fill(~legal, float(ILLEGAL))
                log_slow = functional.log_softmax(slow, dim=1)
            kl_slow_copy = (probabilities * (log_all - log_slow)).sum(dim=1).mean()
            loss = loss + config.kl * kl_slow_copy
            tally.add(kl_slow_copy=kl_slow_copy)
        if weights.imitation:
            teacher = torch.as_tensor(batch.teacher[rows])
            unlike = -log_all.gather(1, teacher[:, None])[:, 0]
            imitation_loss = (unlike * self._copied[teacher]).mean()
            loss = loss + weights.imitation * imitation_loss
            tally.add(imitation_loss=imitation_loss)
        with torch.no_grad():
            tally.add(
                entropy=shares.mean(),
                kl=(ratio - 1 - change).mean(),  # http://joschu.net/blog/kl-approx.html
                clipped=((ratio - 1).abs() > clip).float().mean(),
            )
            tally.add_by_field(self._field_of[taken], shares)
        return loss

    def _leads_loss(self, batch: Batch, rows: Any, tally: Tally) -> torch.Tensor:
        """Of scores that tell by how much each move beats the teacher's."""
        assert batch.leads is not None
        own = torch.as_tensor(batch.teacher[rows])[:, None]
        legal = torch.as_tensor(batch.mask[rows]).bool()
        logits = self.actor.logits(batch.inputs, rows).masked_fill(~legal, float(ILLEGAL))
        rivals = (logits.detach() > float(ILLEGAL)).scatter(1, own, False)  # without moves that it does not tell apart
        wanted = torch.as_tensor(batch.leads[rows])
        found = ((logits - logits.gather(1, own)) / SHARPNESS).where(rivals, wanted)
        loss = leads_loss(found, wanted) / rivals.sum().clamp_min(1)
        with torch.no_grad():
            policy = functional.softmax(logits, dim=1)
            shares = torch.special.entr(policy).sum(dim=1) / rivals.sum(dim=1).add(1).log().clamp_min(1e-3)
            tally.add(leads_loss=loss, entropy=shares.mean())
            tally.add_by_field(self._field_of[torch.as_tensor(batch.actions[rows])], shares)
        return loss


class Tally:
    """Sums of figures over the minibatches of an update, kept where they arise: nobody waits for them."""

    def __init__(self, field_names: list[str], device: torch.device) -> None:
        self._sums: dict[str, list[torch.Tensor]] = {}
        self._names = field_names
        self._by_field = torch.zeros((2, len(field_names)), dtype=torch.float64, device=device)

    def add(self, **figures: torch.Tensor) -> None:
        for name, figure in figures.items():
            self._sums.setdefault(name, []).append(figure.detach())

    def add_by_field(self, fields: torch.Tensor, figures: torch.Tensor) -> None:
        """Figures of single decisions, by the range of actions that each fell into."""
        figures = figures.double()
        self._by_field.index_add_(1, fields, torch.stack([figures, torch.ones_like(figures)]))

    def means(self) -> dict[str, float]:
        means = {name: float(torch.stack(figures).double().mean()) for name, figures in self._sums.items()}
        sums, numbers = self._by_field.cpu().numpy()
        return means | {f"entropy_{self._names[i]}": float(sums[i] / numbers[i]) for i in np.flatnonzero(numbers)}
