"""Proximal policy optimization (Schulman et al. 2017) with masked actions, in self-play, and a critic of all cards."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import huber_loss, log_softmax

from card_envs.opponents.networks.policies import ILLEGAL

from ..config import Config
from ..data import flat
from ..gae import gae_advantages
from ..networks import CPU, HEAD_GAIN, DeviceRows, Inputs, Network, Rows, evaluate_in_parts
from ..ranks import Ranks
from . import Diverged
from .self_play import SelfPlay, Tally, arrays_at

HUBER_DELTA = 2.0  # error of a value beyond which its loss is linear
Numbers: TypeAlias = NDArray[Any] | torch.Tensor


@dataclass
class Batch:
    """Decisions to learn from: buffers that are not copied; arrays, or tensors on the networks' device.

    Attributes:
        inputs: of the actor, for N decisions.
        full: [N, F] of the critic.
        mask: [N, A] int8.
        actions, log_probs, advantages, returns: [N]; returns are scaled like the critic's values.
        expert: [N] the moves to clone, greedy's.
        rows: [n] the decisions to learn from.
    """

    inputs: Inputs
    full: Rows | DeviceRows
    mask: Numbers
    actions: Numbers
    log_probs: Numbers
    advantages: Numbers
    returns: Numbers
    expert: Numbers
    rows: Numbers


class PPO(SelfPlay):
    """Actor and critic."""

    def __init__(self, config: Config, ranks: Ranks, device: torch.device = CPU) -> None:
        """Create the networks. Raises ValueError where a warm start or an opponent of the pool does not fit."""
        super().__init__(config, ranks, device)
        self.critic = Network(self.game.rules.FULL_FIELDS, config.hidden, 1, HEAD_GAIN["value"])
        self.begin()

    def begin(self) -> None:
        """See `SelfPlay`."""
        self.networks["critic"] = self.critic
        super().begin()

    def iterate(self, progress: float) -> dict[str, float]:
        """Play T steps, value them, and improve the networks: see `Algorithm`."""
        start = time.perf_counter()
        self.play(progress)
        played = time.perf_counter()
        batch = self.batch()
        valued = time.perf_counter()
        figures = self.update(batch, progress)
        return {
            "learned": len(batch.rows),
            **figures,
            **self._calibration(batch),
            **self.figures(),
            "seconds_playing": played - start,
            "seconds_valuing": valued - played,
            "seconds_updating": time.perf_counter() - valued,
        }

    def batch(self) -> Batch:
        """Return the decisions of the last rollout to learn from, with advantages and returns."""
        config, rollout = self.config, self.rollout
        full = Rows(flat(rollout.full), self.critic.scale)
        rows = np.flatnonzero(rollout.learned)
        values = np.zeros(rollout.seat.shape, np.float32)
        values.reshape(-1)[rows] = evaluate_in_parts(self.critic, full, rows)[:, 0]
        last_full = Rows(rollout.last_full(), self.critic.scale)
        last_values = evaluate_in_parts(self.critic, last_full, np.arange(len(last_full.obs)))
        advantages = gae_advantages(
            rollout.seat,
            rollout.learned,
            rollout.rewards * np.float32(config.reward_scale),
            rollout.done,
            values,
            last_values.reshape(config.num_envs, -1),
            config.gae_lambda,
        )
        return Batch(
            inputs=rollout.inputs(),
            full=full,
            mask=flat(rollout.seen)[:, self.game.rules.OBS_SIZE :],
            actions=flat(rollout.actions),
            log_probs=flat(rollout.log_probs),
            advantages=flat(advantages),
            returns=flat(values + advantages),
            expert=flat(rollout.baseline),
            rows=rows,
        )

    def update(self, batch: Batch, progress: float) -> dict[str, float]:
        """Improve actor and critic on a batch; all ranks take the same steps.

        Returns:
            Means over the minibatches of this rank: `entropy` (1: uniform over the legal actions), also for each range
            of actions, `value_loss`, `approx_kl` (from the policy that played), `clip_fraction`; where used, `bc_loss`;
            and the learning rate.
        """
        config = self.config
        learning_rate = self.set_learning_rate(progress)
        ent_coef = config.ent_coef + (config.ent_coef_end - config.ent_coef) * progress
        bc_coef = config.bc_coef * max(0.0, 1 - progress / config.bc_until)
        mean, std, number = self._moments(batch)
        tally, losses = Tally(self), []
        for rows in self.minibatches(batch.rows, number):
            legal, actions = torch.as_tensor(batch.mask[rows]).bool(), torch.as_tensor(batch.actions[rows])
            logits = self.actor.logits(batch.inputs, rows).masked_fill(~legal, float(ILLEGAL))
            log_all, probs = log_softmax(logits, dim=1), logits.softmax(dim=1)  # log_all.exp() is slow far below 0

            log_ratio = log_all.gather(1, actions[:, None])[:, 0] - torch.as_tensor(batch.log_probs[rows])
            ratio = log_ratio.exp()
            clipped = ratio.clamp(1 - config.clip_coef, 1 + config.clip_coef)
            advantages = ((torch.as_tensor(batch.advantages[rows]).double() - mean) / std).float()
            policy_loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()

            entropy = -(probs * log_all).sum(dim=1)
            entropy_share = entropy / legal.sum(dim=1, dtype=torch.float32).log().clamp_min(1e-3)
            policy_loss = policy_loss - ent_coef * entropy_share.mean()

            if bc_coef:
                bc_loss = -log_all.gather(1, torch.as_tensor(batch.expert[rows])[:, None]).mean()
                policy_loss = policy_loss + bc_coef * bc_loss
                tally.add(bc_loss=bc_loss)

            values, returns = self.critic(batch.full, rows)[:, 0], torch.as_tensor(batch.returns[rows])
            value_loss = huber_loss(values, returns, delta=HUBER_DELTA)
            loss = value_loss if progress < config.critic_first else policy_loss + value_loss
            losses.append((loss.detach(), rows))
            if not loss.is_cuda:  # on a GPU it would have to wait
                self._check(losses, batch)
                losses.clear()
            self.gradient_step(loss)
            tally.add_entropy(actions, entropy_share)
            tally.add(
                value_loss=value_loss,
                approx_kl=(ratio.detach() - 1 - log_ratio.detach()).mean(),  # http://joschu.net/blog/kl-approx.html
                clip_fraction=((ratio.detach() - 1).abs() > config.clip_coef).float().mean(),
            )
        self._check(losses, batch)
        return {**tally.means(), "learning_rate": learning_rate}

    def _moments(self, batch: Batch) -> tuple[float, float, int]:
        """Return mean and standard deviation of the advantages in all ranks, and their number."""
        chosen = torch.as_tensor(batch.advantages[batch.rows]).double()
        total, squares, number = self.ranks.sum(float(chosen.sum()), float((chosen**2).sum()), len(chosen))
        mean = total / max(number, 1)
        return mean, max(squares / max(number, 1) - mean**2, 0) ** 0.5 + 1e-8, int(number)

    def _check(self, losses: list[tuple[torch.Tensor, Any]], batch: Batch) -> None:
        """Raise Diverged for a loss that is not finite; on the CPU before the step is taken."""
        for loss, rows in losses:
            if not torch.isfinite(loss):
                names = ("mask", "actions", "log_probs", "advantages", "returns", "expert")
                arrays: dict[str, Any] = {name: getattr(batch, name) for name in names}
                raise Diverged(arrays_at(rows, seen=batch.inputs.seen.obs, full=batch.full.obs, **arrays))

    def _calibration(self, batch: Batch) -> dict[str, float]:
        """Return how the critic's values agree with what followed (returns by GAE's lambda), in points."""
        scale = self.config.reward_scale
        errors, returns = (torch.as_tensor(of[batch.rows]) for of in (batch.advantages, batch.returns))
        (spread, shared), (_, varied) = torch.stack([returns, returns - errors]).double().cov().tolist()
        return {
            "value_error": float(errors.double().square().mean().sqrt()) / scale,
            "value_slope": shared / varied if varied > 0 else float("nan"),
            "return_spread": spread**0.5 / scale,
        }
