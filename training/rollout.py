"""Playing: T steps at B tables into buffers that are allocated once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.engine import kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.compile import specialize
from card_envs.engine.rng import table_keys
from card_envs.game import Game, Int64s
from card_envs.opponents.networks.afterstates import Afterstates, afterstates, joined
from card_envs.opponents.networks.policies import input_fields, input_scale
from training.checkpoint import into_stream
from training.config import Config
from training.episodes import Episodes
from training.leads import leads_over
from training.network import Actor, Inputs, Rows


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


CURRENT, PAST, SCRIPTED = range(3)  # who sits in a seat


class Rollout:
    """Tables at play, and the last T steps of all of them.

    At the first tables a past self has all seats of one side, at the next ones `greedy` has; the sides take turns.
    `learned` marks the current network's own decisions with a choice.

    Attributes:
        obs, full, mask: [T, B, …] int8, before the decision.
        seen: [T, B, D + A] int8, `obs` and `mask` side by side, as the actor reads them.
        seat, actions, log_probabilities, learned: [T, B].
        teacher: [T, B] what `greedy` would play.
        rewards: [T, B, S] float32, in points; done: [T, B].
        sitting: [B, S] CURRENT, PAST or SCRIPTED.
        leads: [T, B, A] float32, what moves of the current network would have gained: see `leads_over`; empty unless
            asked for.
        after: what the moves of all T * B decisions change, where the actor reads that.
    """

    def __init__(self, game: Game, config: Config, options: dict[str, Any], seed: list[int]) -> None:
        """Deal all tables.

        Args:
            game: what is played.
            config: tables, steps and who sits at them.
            options: of the game.
            seed: of deals and draws.
        """
        rules = game.rules
        self.game = game
        deals = seed_of_deals(seed)
        self.env = BatchEnv(game, config.tables, deals, options=options, skip_forced=config.skip_forced)
        self.episodes = Episodes(self.env, table_keys(deals, np.arange(config.tables)))
        self.learns_forced = not config.skip_forced
        self.leads_worlds = config.leads_worlds
        self.rng = np.random.default_rng(seed)
        shape = (config.steps, config.tables)
        self.seen = np.zeros((*shape, rules.OBS_SIZE + rules.NUM_ACTIONS), np.int8)
        self.obs, self.mask = self.seen[..., : rules.OBS_SIZE], self.seen[..., rules.OBS_SIZE :]
        self.full = np.zeros((*shape, rules.FULL_SIZE), np.int8)
        self.seat = np.zeros(shape, np.int8)
        self.actions = np.zeros(shape, np.int64)
        self.teacher = np.zeros(shape, np.int64)
        self.log_probabilities = np.zeros(shape, np.float32)
        self.learned = np.zeros(shape, np.bool_)
        self.rewards = np.zeros((*shape, rules.NUM_SEATS), np.float32)
        self.done = np.zeros(shape, np.bool_)
        self.leads = np.zeros((*shape, rules.NUM_ACTIONS if config.leads_until else 0), np.float32)
        self.sitting = sitting_at(game, config)
        self.after: Afterstates | None = None
        self.scale = input_scale(input_fields(rules))
        self.rows: list[Rows] = [Rows(seen, self.scale) for seen in self.seen]

    def collect(self, actor: Actor, past: Actor | None, leads: bool = False) -> None:
        """Play on from where the tables are.

        Args:
            actor: the current network.
            past: who sits at PAST seats; None: the current network does.
            leads: try all moves of every decision.
        """
        env = self.env
        all_tables = np.arange(env.num_tables)
        networks = [network for network in (actor, past) if network is not None]
        reads_moves = any(network.reads_moves for network in networks)
        lookahead = any(network.lookahead for network in networks)
        if any(network.reads_moves and network.lookahead != lookahead for network in networks):
            raise ValueError(
                "networks that read where moves settle can't sit at tables with those that read moves alone"
            )
        hint = lookahead or any(network.hint for network in networks)
        after = []
        for t in range(len(self.obs)):
            self.obs[t] = env.obs
            self.mask[t] = env.mask
            self.seat[t] = env.seat
            env.observe_all(self.full[t])
            env.bot_actions("greedy", self.teacher[t])
            self.actions[t] = self.teacher[t]
            network = self.sitting[all_tables, env.seat]
            if past is None:
                network = np.where(network == PAST, CURRENT, network)
            if reads_moves:
                own = self.teacher[t] if hint else np.full_like(self.teacher[t], -1)
                tables = np.flatnonzero(network != SCRIPTED)
                after.append(_moves_of_networks(self.game, env.states, tables, own, lookahead))
            if leads:
                self.leads[t] = self._leads(network == CURRENT, after[t] if lookahead else None, t)
            self.rows[t] = Rows(self.seen[t], self.scale)
            inputs = Inputs(self.rows[t], after[t] if after else None)
            for network, who in ((actor, CURRENT), (past, PAST)):
                tables = np.flatnonzero(network == who)
                if network is not None and len(tables):
                    self._decide(network, inputs, tables, t)
            self.learned[t] = network == CURRENT
            if not self.learns_forced:
                self.learned[t] &= env.mask.sum(axis=1, dtype=np.int32) > 1
            env.step(self.actions[t])
            self.episodes.note(self.actions[t])
            self.rewards[t] = env.rewards
            self.done[t] = env.done
        self.after = joined(after) if after else None

    def _leads(self, asked: NDArray[np.bool_], after: Afterstates | None, t: int) -> NDArray[np.float32]:
        """[B, A] the leads of all moves at the tables that are asked, or of those that are told apart there."""
        tried = np.where(asked[:, None], self.mask[t], np.int8(0))
        if after is not None:
            tried &= after.shown(tried.shape[1])
        worlds = self.leads_worlds
        seed = int(self.rng.integers(1 << 62)) if worlds > 1 else 0
        return leads_over(self.game, self.env.states, self.teacher[t], tried, worlds=worlds, seed=seed)

    def inputs(self) -> Inputs:
        """What actors read of all T * B decisions."""
        return Inputs(Rows(self.seen.reshape(-1, self.seen.shape[-1]), self.scale, self.rows), self.after)

    def _decide(self, network: Actor, inputs: Inputs, tables: NDArray[np.int64], t: int) -> None:
        with torch.no_grad():
            logits = network.logits(inputs, tables).numpy()
        draws = self.rng.random(len(tables), np.float32)
        specialize(_draw_actions)(logits, self.env.mask, tables, draws, self.actions[t], self.log_probabilities[t])

    def last_full(self) -> NDArray[np.int8]:
        """[B * S, FULL_SIZE] the full state of each table now, seen from each of its seats."""
        env = self.env
        num_seats = self.game.rules.NUM_SEATS
        full = np.zeros((env.num_tables, num_seats, self.game.rules.FULL_SIZE), np.int8)
        for seat in range(num_seats):
            seats = np.full(env.num_tables, seat, np.int8)
            view = np.zeros_like(full[:, seat])
            specialize(kernels.observe_all_tables, self.game)(0, env.num_tables, env.states, seats, view)
            full[:, seat] = view
        return full.reshape(-1, self.game.rules.FULL_SIZE)

    def states(self, number: int) -> NDArray[Any]:
        """States of the first tables, as they are now."""
        return self.env.states[:number]

    def margin_over(self, who: int) -> float:
        """Points an episode that the current network took from PAST or SCRIPTED, or nan where none ended."""
        tables = np.flatnonzero((self.sitting == who).any(axis=1))
        episodes = int(self.done[:, tables].sum())
        if not episodes:
            return float("nan")
        first_own = (self.sitting[tables] == CURRENT).argmax(axis=1)
        return float(self.rewards[:, tables, first_own].sum() / episodes)

    def memory(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """What the next `collect` depends on: arrays, and facts for JSON."""
        return self.episodes.memory(), {"rng": self.rng.bit_generator.state}

    def remember(self, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> None:
        """Go on from what `memory` gave. Raises ValueError where that is not of such tables."""
        self.episodes.remember(arrays)
        into_stream(self.rng, facts, "rng")


def _moves_of_networks(game: Game, states: NDArray[Any], tables: Int64s, own: Int64s, lookahead: bool) -> Afterstates:
    """What the moves at all tables change, but at these tables alone: nobody asks what scripted players could do."""
    found = afterstates(game, states, tables, own, lookahead)
    counts = np.zeros(len(states) + 1, np.int64)
    counts[tables + 1] = np.diff(found.first)
    return found._replace(first=np.cumsum(counts))


def seed_of_deals(seed: list[int]) -> int:
    """The seed of a rollout's tables."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))


def sitting_at(game: Game, config: Config) -> NDArray[np.int8]:
    """[B, S] who sits where: CURRENT, PAST or SCRIPTED."""
    sides = np.array(game.sides)
    num_sides = game.num_sides
    numbers = np.arange(config.tables)
    sitting = np.full((config.tables, len(sides)), CURRENT, np.int8)
    if num_sides > 1:
        num_past = round(config.past_share * config.tables)
        num_greedy = round(config.greedy_share * config.tables)
        other_side = sides == (numbers % num_sides)[:, None]  # [B, S]
        sitting[other_side & (numbers < num_past)[:, None]] = PAST
        sitting[other_side & ((numbers >= num_past) & (numbers < num_past + num_greedy))[:, None]] = SCRIPTED
    return sitting
