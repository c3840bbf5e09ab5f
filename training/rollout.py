"""Playing: T steps at B tables into buffers that are allocated once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.engine.batch import BatchEnv
from card_envs.engine.compile import kernel
from card_envs.engine.jit import loop
from card_envs.game import Game
from training.network import Network


@loop
def _draw_actions(logits: Any, mask: Any, tables: Any, draws: Any, actions: Any, log_probabilities: Any) -> None:
    """A legal action for each of these tables from its softmax, by the inverse of its distribution function."""
    for i in range(len(tables)):
        table = tables[i]
        highest = np.float32(-np.inf)
        for a in range(mask.shape[1]):
            if mask[table, a] and logits[i, a] > highest:
                highest = logits[i, a]
        total = np.float32(0)
        for a in range(mask.shape[1]):
            if mask[table, a]:
                total += np.exp(logits[i, a] - highest)
        left = draws[i] * total
        chosen = 0
        for a in range(mask.shape[1]):
            if mask[table, a]:
                chosen = a  # the last legal one where rounding leaves a rest
                left -= np.exp(logits[i, a] - highest)
                if left < 0:
                    break
        actions[table] = chosen
        log_probabilities[table] = logits[i, chosen] - highest - np.log(total)


class Rollout:
    """Tables at play, and the last T steps of all of them.

    The first tables, `past_share` of them, have a past self in all seats of one side. `learned` marks the current
    network's own decisions with a choice.

    Attributes:
        obs, full, mask: [T, B, …] int8, before the decision.
        seat, actions, log_probabilities, learned: [T, B].
        rewards: [T, B, S] float32, in points; done: [T, B].
    """

    def __init__(
        self, game: Game, num_tables: int, num_steps: int, past_share: float, seed: int, options: dict[str, Any]
    ) -> None:
        rules = game.rules
        self.game = game
        self.env = BatchEnv(game, num_tables, seed, options=options, skip_forced=True)
        self.rng = np.random.default_rng([seed, 1])
        shape = (num_steps, num_tables)
        self.obs = np.zeros((*shape, rules.OBS_SIZE), np.int8)
        self.full = np.zeros((*shape, rules.FULL_SIZE), np.int8)
        self.mask = np.zeros((*shape, rules.NUM_ACTIONS), np.int8)
        self.seat = np.zeros(shape, np.int8)
        self.actions = np.zeros(shape, np.int64)
        self.log_probabilities = np.zeros(shape, np.float32)
        self.learned = np.zeros(shape, np.bool_)
        self.rewards = np.zeros((*shape, rules.NUM_SEATS), np.float32)
        self.done = np.zeros(shape, np.bool_)
        sides = np.array(rules.SIDES)
        num_sides = len(set(rules.SIDES))
        self.num_past = round(past_share * num_tables) if num_sides > 1 else 0
        past_side = np.arange(num_tables) % num_sides
        self.past_seats = (sides == past_side[:, None]) & (np.arange(num_tables) < self.num_past)[:, None]  # [B, S]

    def collect(self, actor: Network, past: Network | None, tick: Callable[[], None]) -> None:
        """Play on from where the tables are.

        Args:
            actor: the current network.
            past: who sits at `past_seats`; None: the current network does.
            tick: called before each step.
        """
        env = self.env
        all_tables = np.arange(env.num_tables)
        for t in range(len(self.obs)):
            tick()
            self.obs[t] = env.obs
            self.mask[t] = env.mask
            self.seat[t] = env.seat
            env.observe_all(self.full[t])
            is_past = self.past_seats[all_tables, env.seat] if past is not None else np.zeros(len(all_tables), np.bool_)
            for network, tables in ((actor, np.flatnonzero(~is_past)), (past, np.flatnonzero(is_past))):
                if network is not None and len(tables):
                    self._decide(network, tables, t)
            self.learned[t] = ~is_past & (env.mask.sum(axis=1, dtype=np.int32) > 1)
            env.step(self.actions[t])
            self.rewards[t] = env.rewards
            self.done[t] = env.done

    def _decide(self, network: Network, tables: NDArray[np.int64], t: int) -> None:
        with torch.no_grad():
            logits = network(self.env.obs, tables).numpy()
        draws = self.rng.random(len(tables), np.float32)
        _draw_actions(logits, self.env.mask, tables, draws, self.actions[t], self.log_probabilities[t])

    def last_full(self) -> NDArray[np.int8]:
        """[B * S, FULL_SIZE] the full state of each table now, seen from each of its seats."""
        env = self.env
        num_seats = self.game.rules.NUM_SEATS
        full = np.zeros((env.num_tables, num_seats, self.game.rules.FULL_SIZE), np.int8)
        for seat in range(num_seats):
            seats = np.full(env.num_tables, seat, np.int8)
            view = np.zeros_like(full[:, seat])
            kernel("observe_all_tables", self.game)(env.states, seats, view, 0, env.num_tables)
            full[:, seat] = view
        return full.reshape(-1, self.game.rules.FULL_SIZE)

    def margin_over_past(self) -> float:
        """Points an episode that the current network took from the past self, or nan."""
        episodes = int(self.done[:, : self.num_past].sum())
        if not episodes:
            return float("nan")
        first_own = (~self.past_seats[: self.num_past]).argmax(axis=1)
        return float(self.rewards[:, np.arange(self.num_past), first_own].sum() / episodes)
