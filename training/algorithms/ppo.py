"""Proximal policy optimization (Schulman et al. 2017) with masked actions, in self-play, and a critic of all cards."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.functional import huber_loss, log_softmax

from card_envs.games import get_game
from card_envs.opponents.networks.policies import ILLEGAL

from ..config import Config
from ..networks import ActorNetwork, Inputs, Observations, evaluate_in_parts, initial_networks
from ..ranks import Ranks
from ..rollout import Backend, backend_of
from .self_play import SelfPlay, Stopwatch

HUBER_DELTA = 2.0  # error of a value beyond which its loss is linear


@dataclass
class TrainingBatch:
    """N decisions and what to learn from them: views of the rollout's tensors.

    Attributes:
        inputs: inputs of the actor.
        full: observations of the critic.
        mask: [N, A] int8.
        actions, log_probs, advantages, returns: [N]; returns are scaled like the critic's values.
        expert: [N] the moves to clone, greedy's.
        rows: [n] the decisions to learn from.
    """

    inputs: Inputs
    full: Observations
    mask: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor
    expert: torch.Tensor
    rows: torch.Tensor

    def arrays(self) -> dict[str, torch.Tensor]:
        """Return the arrays to store for debugging if a loss is not finite."""
        names = ("mask", "actions", "log_probs", "advantages", "returns", "expert")
        observations = {"seen": self.inputs.seen.unpadded, "full": self.full.unpadded}
        return observations | {name: getattr(self, name) for name in names}


class PPO(SelfPlay):
    """Actor and critic.

    Attributes:
        now: numbers that all minibatches of an update read: `mean` and `std` of the advantages, and weights of losses.
    """

    def __init__(
        self,
        config: Config,
        ranks: Ranks,
        networks: dict[str, ActorNetwork] | None = None,
        backend: Backend | None = None,
    ) -> None:
        """Begin with these networks at tables of this backend; by default with those of the settings.

        Raises:
            ValueError: a warm start or an opponent of the pool does not fit, or there is no such device.
        """
        backend = backend or backend_of(config.device)
        networks = networks or initial_networks(get_game(config.game), config, critic=True)
        super().__init__(config, ranks, networks, backend)
        self.critic = networks["critic"]
        kinds = {"mean": torch.float64, "std": torch.float64, "ent_coef": torch.float32, "bc_coef": torch.float32}
        self.now = {name: torch.zeros((), dtype=kind, device=self.device) for name, kind in kinds.items()}

    def iterate(self, progress: float) -> dict[str, float]:
        """Play T steps, value them, and improve the networks: see `Algorithm`."""
        watch = Stopwatch()
        self.play(progress)
        watch.lap("playing")
        batch = self.batch()
        watch.lap("valuing")
        figures = self.update(batch, progress)
        watch.lap("updating")
        return {"learned": len(batch.rows), **figures, **self._calibration(batch), **self.figures(), **watch.seconds}

    def batch(self) -> TrainingBatch:
        """Return the decisions of the last rollout to learn from, with advantages and returns."""
        rollout, config = self.rollout, self.config
        full, last = rollout.full_states(), rollout.last_full_states()
        rows = rollout.learned.flatten().nonzero()[:, 0]
        values = torch.zeros_like(rollout.log_probs)
        values.view(-1)[rows] = evaluate_in_parts(self.critic, full, rows)[:, 0]
        last_values = evaluate_in_parts(self.critic, last, torch.arange(len(last.obs), device=self.device))
        rollout.advantages[:] = gae_advantages(
            rollout.seat, rollout.learned, rollout.rewards * config.reward_scale, rollout.done, values,
            last_values.view(config.num_envs, -1), config.gae_lambda,
        )  # fmt: skip
        torch.add(values, rollout.advantages, out=rollout.returns)
        return TrainingBatch(
            inputs=rollout.inputs(),
            full=full,
            mask=rollout.mask.flatten(0, 1),
            actions=rollout.actions.flatten(),
            log_probs=rollout.log_probs.flatten(),
            advantages=rollout.advantages.flatten(),
            returns=rollout.returns.flatten(),
            expert=rollout.baseline.flatten(),
            rows=rows,
        )

    def update(self, batch: TrainingBatch, progress: float) -> dict[str, float]:
        """Improve actor and critic on a batch; all ranks take the same steps.

        Returns:
            Means over the minibatches of this rank: `entropy` (1: uniform over the legal actions), also for each range
            of actions, `value_loss`, `approx_kl` (from the policy that played), `clip_fraction`; where used, `bc_loss`;
            and the learning rate.
        """
        self._set_now(batch, progress)
        learning_rate = self.set_learning_rate(progress)
        critic_alone, clones = progress < self.config.critic_first, bool(self.now["bc_coef"])

        def loss_of(rows: torch.Tensor) -> torch.Tensor:
            policy_loss = self._policy_loss(batch, rows, clones)
            values = self.critic(batch.full, rows)[:, 0]
            value_loss = huber_loss(values, batch.returns[rows], delta=HUBER_DELTA)
            self.tally.add(value_loss=value_loss)
            return value_loss if critic_alone else policy_loss + value_loss

        means = self.descend(loss_of, batch.rows, (critic_alone, clones), **batch.arrays())
        return {**means, "learning_rate": learning_rate}

    def _policy_loss(self, batch: TrainingBatch, rows: torch.Tensor, clones: bool) -> torch.Tensor:
        """Return the loss of the actor: clipped surrogate objective, entropy and, if so, behaviour cloning."""
        config, now = self.config, self.now
        advantages = ((batch.advantages[rows].double() - now["mean"]) / now["std"]).float()
        legal, actions = batch.mask.index_select(0, rows).bool(), batch.actions[rows]
        logits = self.actor.logits(batch.inputs, rows).masked_fill(~legal, float(ILLEGAL))
        log_all, probs = log_softmax(logits, dim=1), logits.softmax(dim=1)  # log_all.exp() is slow far below 0

        log_ratio = log_all.gather(1, actions[:, None])[:, 0] - batch.log_probs[rows]
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - config.clip_coef, 1 + config.clip_coef)
        loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()

        entropy = -(probs * log_all).sum(dim=1)
        entropy_share = entropy / legal.sum(dim=1, dtype=torch.float32).log().clamp_min(1e-3)
        loss = loss - now["ent_coef"] * entropy_share.mean()

        if clones:
            bc_loss = -log_all.gather(1, batch.expert[rows][:, None]).mean()
            loss = loss + now["bc_coef"] * bc_loss
            self.tally.add(bc_loss=bc_loss)
        self.tally.add_entropy(actions, entropy_share)
        self.tally.add(
            approx_kl=(ratio.detach() - 1 - log_ratio.detach()).mean(),  # http://joschu.net/blog/kl-approx.html
            clip_fraction=((ratio.detach() - 1).abs() > config.clip_coef).float().mean(),
        )
        return loss

    def _set_now(self, batch: TrainingBatch, progress: float) -> None:
        """Set `now`, in place, for an update."""
        config = self.config
        mean, std = self._moments(batch)
        self.now["mean"].copy_(mean)
        self.now["std"].copy_(std)
        self.now["ent_coef"].fill_(config.ent_coef + (config.ent_coef_end - config.ent_coef) * progress)
        self.now["bc_coef"].fill_(config.bc_coef * max(0.0, 1 - progress / config.bc_until))

    def _moments(self, batch: TrainingBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and standard deviation of the advantages in all ranks."""
        chosen = batch.advantages[batch.rows].double()
        sums = torch.stack([chosen.sum(), (chosen**2).sum(), torch.ones_like(chosen).sum()])
        total, squares, number = self.ranks.total(sums)
        number = number.clamp_min(1)
        mean = total / number
        return mean, (squares / number - mean**2).clamp_min(0).sqrt() + 1e-8

    def _calibration(self, batch: TrainingBatch) -> dict[str, float]:
        """Compare the critic's values with the returns (by GAE's lambda); return figures in points.

        Of fewer than two decisions there are no figures.
        """
        if len(batch.rows) < 2:
            return {}
        scale = self.config.reward_scale
        errors, returns = batch.advantages[batch.rows], batch.returns[batch.rows]
        (spread, shared), (_, varied) = torch.stack([returns, returns - errors]).double().cov().tolist()
        return {
            "value_error": float(errors.double().square().mean().sqrt()) / scale,
            "value_slope": shared / varied if varied > 0 else float("nan"),
            "return_spread": spread**0.5 / scale,
        }


def gae_advantages(
    seat: torch.Tensor, learned: torch.Tensor, rewards: torch.Tensor, done: torch.Tensor, values: torch.Tensor,
    last_values: torch.Tensor, decay: float,
) -> torch.Tensor:  # fmt: skip
    """Return [T, B] generalised advantages along each seat's own decisions (Schulman et al. 2016, eq. 16; gamma is 1).

    They are zero where nothing is learned; the returns are `values` plus these. What a seat is paid between two of its
    decisions belongs to the earlier one. Decisions that are not learned (forced, or of an opponent) are passed over:
    what follows them belongs to the seat's decision before.

    Args:
        seat: [T, B] the mover.
        learned: [T, B] true where a decision is learned from.
        rewards: [T, B, S] paid to each seat after it and before the next.
        done: [T, B] true where the episode ended.
        values: [T, B] the critic's values of these decisions; read where `learned`.
        last_values: [B, S] its values for each seat of the state after the last step.
        decay: lambda.
    """
    advantages = torch.zeros_like(values)
    # Of each seat at each table: value and advantage of its next decision, and what it is paid before that.
    later = torch.stack([last_values, torch.zeros_like(last_values), torch.zeros_like(last_values)])
    movers = seat.long()[:, None, :, None].expand(-1, 3, -1, 1)  # [T, 3, B, 1]
    over = done[:, None, :, None]
    for t in range(len(rewards) - 1, -1, -1):
        later.masked_fill_(over[t], 0)  # nothing later belongs to this episode
        later[2] += rewards[t]
        before = later.gather(2, movers[t])
        next_value, next_advantage, paid = before[..., 0]
        advantage = (paid + next_value - values[t]) + decay * next_advantage
        now = torch.stack([values[t], advantage, torch.zeros_like(advantage)])[..., None]
        later.scatter_(2, movers[t], torch.where(learned[t][:, None], now, before))
        advantages[t] = advantage
    return advantages.masked_fill_(~learned, 0)
