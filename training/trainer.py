"""One run of training: everything that lives between its first and its last decision."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.compare.match import PairResult, play_pairs
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.checkpoint import save_network
from card_envs.opponents.network import NetworkPolicy
from training.config import Config
from training.gae import advantages
from training.league import League
from training.network import HEAD_GAIN, Network, evaluate_in_parts
from training.ppo import Batch, Learner
from training.rollout import Rollout

GOLDEN_ROWS = 32
# Deals of the quick measurements and of the last one: what is watched during training is not what is reported.
QUICK_SEED, FINAL_SEED = 1, 2
LAST_LR = 0.1  # share of the learning rate that is left at the end


class Trainer:
    """The networks, the tables they play at, and the clock.

    Attributes:
        decisions: learned from so far.
        seconds: spent training so far.
    """

    def __init__(self, config: Config) -> None:
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        self.config = config
        self.game = get_game(config.game)
        rules = self.game.rules
        self.actor = Network(rules.OBS_FIELDS, config.hidden, rules.NUM_ACTIONS, HEAD_GAIN["policy"])
        self.critic = Network(rules.FULL_FIELDS, config.critic_hidden or config.hidden, 1, HEAD_GAIN["value"])
        self.learner = Learner(self.actor, self.critic, config)
        self.league = League(self.actor, config.past_selves, config.seed)
        self.rollout = Rollout(
            self.game, config.tables, config.steps, config.past_share, config.seed, dict(config.options)
        )
        self.decisions = 0
        self.seconds = 0.0

    @property
    def progress(self) -> float:
        """The share of the run that is done, by the budget that ends first."""
        config = self.config
        by_time = self.seconds / (60 * config.minutes) if config.minutes else 0.0
        return min(1.0, max(by_time, self.decisions / config.decisions if config.decisions else 0.0))

    def iterate(self, tick: Callable[[], None]) -> dict[str, float]:
        """Play T steps, learn from them, and return what to log; `tick` is called between the parts."""
        start = time.perf_counter()
        config, rollout, progress = self.config, self.rollout, self.progress
        self.league.offer(self.actor, progress)
        rollout.collect(self.actor, self.league.draw(), tick)
        played = time.perf_counter()
        batch = self._batch()
        valued = time.perf_counter()
        lr = config.lr * (1 + (LAST_LR - 1) * progress)
        entropy_weight = config.entropy + (config.entropy_end - config.entropy) * progress
        figures = self.learner.update(batch, lr, entropy_weight, tick)
        end = time.perf_counter()
        learned = len(batch.rows)
        self.decisions += learned
        self.seconds += end - start
        returns = batch.returns[batch.rows]
        return {
            "decisions": self.decisions,
            "seconds": round(self.seconds, 3),
            "decisions_a_second": learned / (end - start),
            **figures,
            "value_error": float(np.sqrt(np.mean(batch.advantages[batch.rows] ** 2)) / config.reward_scale),
            "return_spread": float(returns.std() / config.reward_scale),
            "margin_over_past": rollout.margin_over_past(),
            "past_selves": len(self.league.snapshots),
            "lr": lr,
            "seconds_playing": played - start,
            "seconds_valuing": valued - played,
            "seconds_updating": end - valued,
        }

    def _batch(self) -> Batch:
        """The decisions of the last rollout that are learned from, with advantages and returns."""
        config, rollout = self.config, self.rollout
        full = _flat(rollout.full)
        rows = np.flatnonzero(rollout.learned)
        values = np.zeros(rollout.seat.shape, np.float32)
        values.reshape(-1)[rows] = evaluate_in_parts(self.critic, full, rows)[:, 0]
        last_full = rollout.last_full()
        last_values = evaluate_in_parts(self.critic, last_full, np.arange(len(last_full)))
        gained = advantages(
            rollout.seat,
            rollout.learned,
            rollout.rewards * np.float32(config.reward_scale),
            rollout.done,
            values,
            last_values.reshape(config.tables, -1),
            config.gae_lambda,
        )
        return Batch(
            _flat(rollout.obs),
            full,
            _flat(rollout.mask),
            rollout.actions.reshape(-1),
            rollout.log_probabilities.reshape(-1),
            gained.reshape(-1),
            (values + gained).reshape(-1),
            rows,
        )

    def save(self, folder: Path, strength: list[dict[str, Any]] | None = None) -> None:
        """Write the actor as an opponent that `load_opponent` takes."""
        env = self.rollout.env
        golden = env.obs[:GOLDEN_ROWS].copy(), env.mask[:GOLDEN_ROWS].copy()
        training = {
            "algorithm": "ppo",
            "decisions": self.decisions,
            "seconds": round(self.seconds, 1),
            "config": self.config.model_dump(mode="json", exclude={"runs"}),
        }
        save_network(folder, self.game, self.actor.weights(), golden, training=training, strength=strength or [])

    def quick_strength(self, rival: str = "trivial") -> PairResult:
        """A rough measurement of the network as it is."""
        policy = NetworkPolicy(self.game, self.actor.weights())
        return play_pairs(self.game, policy, load_opponent(rival, self.game), self.config.quick_pairs, QUICK_SEED)

    def final_strength(self, folder: Path, rival: str) -> dict[str, Any]:
        """What the opponent in this folder, as it was saved, makes of a rival over the game's default episode."""
        pairs = self.config.final_pairs
        result = play_pairs(
            self.game, load_opponent(folder, self.game), load_opponent(rival, self.game), pairs, FINAL_SEED
        )
        return {"against": rival, "seed": FINAL_SEED, **result.as_dict()}


def _flat(buffer: NDArray[np.int8]) -> NDArray[np.int8]:
    return buffer.reshape(-1, buffer.shape[-1])
