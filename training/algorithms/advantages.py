"""Learns the advantage of every legal move over the baseline action, greedy's, at tables of self-play.

Each move of a decision is tried, `greedy` playing on, and the actor learns by how much each beats greedy's own. Its
scores are these advantages, so that it plays another move where it promises more. Phases whose results differ in
spread (bidding and play) count alike: each in its own standard deviation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.special import entr

from card_envs.compare.pairs import play_pairs
from card_envs.game import Int8s, Int64s
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.policies import ILLEGAL, TrainedPolicy
from card_envs.opponents.policy import Policy

from ..config import Config
from ..networks import initial_networks
from ..ranks import Ranks
from . import Diverged
from .labels import BASELINE, advantages_over_baseline, phases_of, spreads
from .self_play import SelfPlay, Stopwatch, Tally, arrays_at

SHARPNESS = 20.0  # of the policy: by how much a move's logit rises for an advantage of one standard deviation
MOST_SPREADS = 8.0  # advantages of more standard deviations are clipped
MARGIN_PAIRS = 1000  # mirrored pairs against `greedy` for each margin
MARGIN_SEED = 3  # of the deals that choose the margin, not those that report the strength


class Advantages(SelfPlay):
    """An actor whose scores, divided by SHARPNESS, are advantages in standard deviations of the best alternative's.

    Attributes:
        margin: extra bonus of the baseline action, chosen at the end; in the same unit.
    """

    def __init__(self, config: Config, ranks: Ranks) -> None:
        """Create the actor. Raises ValueError where a warm start or an opponent of the pool does not fit."""
        game = get_game(config.game)

        def label(
            states: NDArray[Any], baseline: Int64s, moves: Int8s, rng: np.random.Generator
        ) -> NDArray[np.float32]:
            worlds = config.advantage_worlds
            seed = int(rng.integers(1 << 62)) if worlds > 1 else 0
            return advantages_over_baseline(game, states, baseline, moves, worlds, seed)

        super().__init__(config, ranks, initial_networks(game, config, critic=False), label=label)
        self.margin = 0.0
        self.phases = phases_of(game)

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
        advantages = self._in_spreads(rollout.labels.flatten(0, 1), mask, baselines, rows)
        learning_rate = self.set_learning_rate(progress)
        tally = Tally(self)
        for chosen in self.minibatches(rows):
            legal, baseline = mask.index_select(0, chosen).bool(), baselines[chosen][:, None]
            target = advantages.index_select(0, chosen)
            logits = self.actor.logits(inputs, chosen).masked_fill(~legal, float(ILLEGAL))
            alternatives = (logits.detach() > float(ILLEGAL)).scatter(1, baseline, False)  # without merged moves
            predicted = ((logits - logits.gather(1, baseline)) / SHARPNESS).where(alternatives, target)
            # Differences between moves that the actor itself believes far behind count less.
            errors = (predicted - target) ** 2 / (1 + predicted.detach() ** 2)
            loss = errors.sum() / alternatives.sum().clamp_min(1)
            if not torch.isfinite(loss):
                raise Diverged(
                    arrays_at(chosen, seen=inputs.seen.unpadded, mask=mask, baseline=baselines, advantages=advantages)
                )
            self.gradient_step(loss)
            entropy = entr(logits.detach().softmax(dim=1)).sum(dim=1)
            tally.add(advantage_loss=loss)
            share = entropy / alternatives.sum(dim=1).add(1).log().clamp_min(1e-3)
            tally.add_entropy(rollout.actions.flatten()[chosen], share)
        return {**tally.means(), "learning_rate": learning_rate}

    def _in_spreads(
        self, points: torch.Tensor, mask: torch.Tensor, baselines: torch.Tensor, rows: torch.Tensor
    ) -> torch.Tensor:
        """Return [N, A] advantages in standard deviations of the best alternative's, for each phase, within a limit."""
        phase = torch.from_numpy(self.phases)[baselines]
        chosen = points.index_select(0, rows), baselines[rows], mask.index_select(0, rows)
        advantages, baseline, legal = (tensor.numpy() for tensor in chosen)
        spread = torch.from_numpy(spreads(advantages, baseline, legal, self.phases))
        return (points / spread[phase][:, None]).clamp(-MOST_SPREADS, MOST_SPREADS)

    def policy(self) -> Policy:
        return self.stored() if self.margin else super().policy()

    def stored(self) -> TrainedPolicy:
        policy = super().stored()
        if not self.margin:
            return policy
        bonus = np.asarray(policy.weights["own"], np.float32) + np.float32(SHARPNESS * self.margin)
        return type(policy)(self.game, {**policy.weights, "own": bonus}, policy.sampled)

    def finish(self) -> dict[str, Any]:
        """Choose the margin with which the player does best against `greedy`."""
        margins = {}
        for margin in self.config.margins:
            self.margin = margin
            greedy = load_opponent(BASELINE, self.game)
            result = play_pairs(self.game, self.policy(), greedy, MARGIN_PAIRS, MARGIN_SEED)
            margins[margin] = result.margin_per_episode.mean
        self.margin = max(margins, key=lambda margin: margins[margin], default=0.0)
        return {"margin": self.margin, "margins": margins} if margins else {}
