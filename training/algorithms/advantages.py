"""Learns the advantage of every legal move over the baseline action, greedy's, at tables of self-play.

Each move of a decision is tried, `greedy` or the actor itself playing on, and the actor learns by how much each beats
greedy's own. Its scores are these advantages, so that it plays another move where it promises more. Phases whose
results differ in spread (bidding and play) count alike: each in its own standard deviation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.special import entr

from card_envs.compare.pairs import play_pairs
from card_envs.game import GREEDY
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.policies import ILLEGAL, TrainedPolicy
from card_envs.opponents.policy import Policy

from ..config import Config
from ..networks import initial_networks
from ..ranks import Ranks
from ..rollout import Backend, backend_of
from .labels import MoveLabels, finish_by_greedy, phase_deviations, phases_of
from .playouts import LearnerPlayouts
from .self_play import SelfPlay, Stopwatch

SHARPNESS = 20.0  # of the policy: by how much a move's logit rises for an advantage of one standard deviation
MOST_SPREADS = 8.0  # advantages of more standard deviations are clipped
MARGIN_PAIRS = 1000  # mirrored pairs against `greedy` for each margin
MARGIN_SEED = 3  # of the deals that choose the margin, not those that report the strength


class Advantages(SelfPlay):
    """An actor whose scores, divided by SHARPNESS, are advantages in standard deviations of the best alternative's.

    Attributes:
        margin: extra bonus of the baseline action, chosen at the end; in the same unit.
    """

    def __init__(self, config: Config, ranks: Ranks, backend: Backend | None = None) -> None:
        """Create the actor, at tables of this backend; by default at those of the settings.

        Raises:
            ValueError: a warm start or an opponent of the pool does not fit, or there is no such device.
        """
        game, backend = get_game(config.game), backend or backend_of(config.device)
        networks = initial_networks(game, config, critic=False)
        learner = config.advantage_player == "learner"
        finish = LearnerPlayouts(game, backend, networks["actor"]) if learner else finish_by_greedy
        label = MoveLabels(game, config.advantage_worlds, finish)
        super().__init__(config, ranks, networks, backend, label)
        self.margin = 0.0
        self.phases = torch.from_numpy(phases_of(game)).to(backend.device)

    def iterate(self, progress: float) -> dict[str, float]:
        """Play T steps, label them, and improve the actor: see `Algorithm`."""
        watch = Stopwatch()
        self.play(progress)
        watch.lap("playing")
        figures = self.update(progress)
        watch.lap("updating")
        return {"learned": int(self.rollout.learned.sum()), **figures, **self.figures(), **watch.seconds}

    def update(self, progress: float) -> dict[str, float]:
        """Improve the actor on the last rollout; all ranks take the same steps.

        Returns:
            Means over the minibatches of this rank: `entropy` (1: uniform over the legal actions), also for each range
            of actions, and `advantage_loss`; and the learning rate.
        """
        rollout, inputs = self.rollout, self.rollout.inputs()
        rows = rollout.learned.flatten().nonzero()[:, 0]
        mask, baselines = rollout.mask.flatten(0, 1), rollout.baseline.flatten()
        advantages = rollout.labels.flatten(0, 1)
        self._scale_by_spread(advantages, mask, baselines, rows)
        actions, learning_rate = rollout.actions.flatten(), self.set_learning_rate(progress)

        def loss_of(chosen: torch.Tensor) -> torch.Tensor:
            legal, baseline = mask.index_select(0, chosen).bool(), baselines[chosen][:, None]
            target = advantages.index_select(0, chosen)
            logits = self.actor.logits(inputs, chosen).masked_fill(~legal, float(ILLEGAL))
            alternatives = (logits.detach() > float(ILLEGAL)).scatter(1, baseline, False)  # without merged moves
            predicted = ((logits - logits.gather(1, baseline)) / SHARPNESS).where(alternatives, target)
            # Differences between moves that the actor itself believes far behind count less.
            errors = (predicted - target) ** 2 / (1 + predicted.detach() ** 2)
            loss = errors.sum() / alternatives.sum().clamp_min(1)
            self.tally.add(advantage_loss=loss)
            entropy = entr(logits.detach().softmax(dim=1)).sum(dim=1)
            share = entropy / alternatives.sum(dim=1).add(1).log().clamp_min(1e-3)
            self.tally.add_entropy(actions[chosen], share)
            return loss

        arrays = {"seen": inputs.seen.unpadded, "mask": mask, "baseline": baselines, "advantages": advantages}
        return {**self.descend(loss_of, rows, None, **arrays), "learning_rate": learning_rate}

    def _scale_by_spread(
        self, points: torch.Tensor, mask: torch.Tensor, baselines: torch.Tensor, rows: torch.Tensor
    ) -> None:
        """Divide advantages [N, A] by the spread of the best alternative's in each phase, and clip them."""
        chosen = points.index_select(0, rows), baselines[rows], mask.index_select(0, rows)
        spread = torch.from_numpy(phase_deviations(*chosen, self.phases)).to(points.device)
        points.div_(spread[self.phases[baselines]][:, None]).clamp_(-MOST_SPREADS, MOST_SPREADS)

    def policy(self) -> Policy:
        return self.stored_policy() if self.margin else super().policy()

    def stored_policy(self) -> TrainedPolicy:
        policy = super().stored_policy()
        if not self.margin:
            return policy
        bonus = np.asarray(policy.weights["own"], np.float32) + np.float32(SHARPNESS * self.margin)
        return type(policy)(self.game, {**policy.weights, "own": bonus}, policy.sampled)

    def finish(self) -> dict[str, Any]:
        """Choose the margin with which the player does best against `greedy`."""
        margins = {}
        for margin in self.config.margins:
            self.margin = margin
            greedy = load_opponent(GREEDY, self.game)
            result = play_pairs(self.game, self.policy(), greedy, MARGIN_PAIRS, MARGIN_SEED)
            margins[margin] = result.margin_per_episode.mean
        self.margin = max(margins, key=lambda margin: margins[margin], default=0.0)
        return {"margin": self.margin, "margins": margins} if margins else {}
