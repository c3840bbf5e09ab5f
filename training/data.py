"""How experience comes about: T steps at B tables, written into buffers that are allocated once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine import _kernels as kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.rng import table_keys
from card_envs.game import Game, Int8s, Int64s
from card_envs.opponents.networks._afterstates import Afterstates, afterstates, joined
from card_envs.opponents.networks.policies import input_fields, input_scale

from .checkpoint import Memory, into_stream
from .config import Config
from .episodes import Episodes
from .networks import Actor, Inputs, Rows

LEARNER, POOL, GREEDY = range(3)  # players of a seat
# Labels [B, A] of the legal moves of states [B], from baseline actions [B] and the moves to label [B, A].
Labels: TypeAlias = Callable[[NDArray[Any], Int64s, Int8s], NDArray[np.float32]]


def _draw_actions(logits: Any, mask: Any, tables: Any, draws: Any, actions: Any, log_probs: Any) -> None:
    """Draw a legal action for each of these tables from its softmax, by the inverse of its distribution function."""
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
        log_probs[table] = logits[i, chosen] - highest - np.log(total)


class Rollout:
    """Tables at play, and the last T steps of all of them.

    At the first tables a policy of the pool has all seats of one side, at the next ones `greedy` has; the sides take
    turns. `learned` marks the learner's own decisions with a choice; of these, with labels, one in `advantage_stride`.

    Attributes:
        obs, mask: [T, B, …] int8, before the decision; `seen` [T, B, D + A] has them side by side, as the actor reads.
        full: [T, B, FULL_SIZE] int8, what a critic reads; FULL_SIZE is 0 where there is none.
        seat, actions, log_probs, learned: [T, B].
        baseline: [T, B] the baseline action: what `greedy` would play.
        rewards: [T, B, S] float32, in points; done: [T, B].
        players: [B, S] LEARNER, POOL or GREEDY.
        labels: [T, B, A] float32, of moves of decisions in `learned`; A is 0 where nothing gives labels.
        after: what the moves of all T * B decisions change, where the actor reads that.
    """

    def __init__(
        self, game: Game, config: Config, options: dict[str, Any], seed: list[int], label: Labels | None = None
    ) -> None:
        """Deal all tables.

        Args:
            game: what is played.
            config: number of tables and steps, and the players.
            options: of the game.
            seed: of deals and draws.
            label: gives the labels to learn from, where it is not the rewards that teach a critic.
        """
        rules = game.rules
        self.game = game
        self.config = config
        self.label = label
        deals = seed_of_deals(seed)
        self.env = BatchEnv(game, config.num_envs, deals, options=options, skip_forced=True)
        self.episodes = Episodes(self.env, table_keys(deals, np.arange(config.num_envs)))
        self.rng = np.random.default_rng(seed)
        shape = (config.num_steps, config.num_envs)
        self.seen = np.zeros((*shape, rules.OBS_SIZE + rules.NUM_ACTIONS), np.int8)
        self.obs, self.mask = self.seen[..., : rules.OBS_SIZE], self.seen[..., rules.OBS_SIZE :]
        self.full = np.zeros((*shape, rules.FULL_SIZE if label is None else 0), np.int8)
        self.seat = np.zeros(shape, np.int8)
        self.actions = np.zeros(shape, np.int64)
        self.baseline = np.zeros(shape, np.int64)
        self.log_probs = np.zeros(shape, np.float32)
        self.learned = np.zeros(shape, np.bool_)
        self.rewards = np.zeros((*shape, rules.NUM_SEATS), np.float32)
        self.done = np.zeros(shape, np.bool_)
        self.labels = np.zeros((*shape, 0 if label is None else rules.NUM_ACTIONS), np.float32)
        self.players = players_of(game, config)
        self.after: Afterstates | None = None
        self.scale = input_scale(input_fields(rules))
        self.rows: list[Rows] = [Rows(seen, self.scale) for seen in self.seen]

    def collect(self, actor: Actor, opponent: Actor | None) -> None:
        """Play on from the current positions.

        Args:
            actor: the learner.
            opponent: plays the POOL's seats; None: the learner does.
        """
        env = self.env
        all_tables = np.arange(env.num_tables)
        reading = Reading(self.game, actor, opponent)
        after = []
        for t in range(len(self.obs)):
            self.obs[t] = env.obs
            self.mask[t] = env.mask
            self.seat[t] = env.seat
            env.bot_actions("greedy", self.baseline[t])
            self.actions[t] = self.baseline[t]
            mover = self.players[all_tables, env.seat]
            if opponent is None:
                mover = np.where(mover == POOL, LEARNER, mover)
            self.learned[t] = (mover == LEARNER) & (env.mask.sum(axis=1, dtype=np.int32) > 1)
            if reading.moves:
                after.append(reading.of_tables(env.states, np.flatnonzero(mover != GREEDY), self.baseline[t]))
            if self.label is None:
                env.observe_all(self.full[t])
            else:
                self._label(t, after[t] if reading.lookahead else None)
            self.rows[t] = Rows(self.seen[t], self.scale)
            inputs = Inputs(self.rows[t], after[t] if after else None)
            for network, player in ((actor, LEARNER), (opponent, POOL)):
                tables = np.flatnonzero(mover == player)
                if network is not None and len(tables):
                    self._decide(network, inputs, tables, t)
            env.step(self.actions[t])
            self.episodes.note(self.actions[t])
            self.rewards[t] = env.rewards
            self.done[t] = env.done
        self.after = joined(after) if after else None

    def _label(self, t: int, after: Afterstates | None) -> None:
        """Label moves of the decisions to learn from; where moves with the same afterstate are merged, one of them."""
        assert self.label is not None
        if self.config.advantage_stride > 1:
            self.learned[t] &= self.rng.random(len(self.learned[t])) < 1 / self.config.advantage_stride
        moves = np.where(self.learned[t][:, None], self.mask[t], np.int8(0))
        if after is not None:
            moves &= after.shown(moves.shape[1])
        self.labels[t] = self.label(self.env.states, self.baseline[t], moves)

    def _decide(self, network: Actor, inputs: Inputs, tables: Int64s, t: int) -> None:
        with torch.no_grad():
            logits = network.logits(inputs, tables).numpy()
        draws = self.rng.random(len(tables), np.float32)
        specialize(_draw_actions)(logits, self.env.mask, tables, draws, self.actions[t], self.log_probs[t])

    def inputs(self) -> Inputs:
        """Return what actors read of all T * B decisions."""
        return Inputs(Rows(flat(self.seen), self.scale, self.rows), self.after)

    def last_full(self) -> Int8s:
        """Return [B * S, FULL_SIZE] the full state of each table now, seen from each of its seats."""
        env = self.env
        num_seats = self.game.rules.NUM_SEATS
        full = np.zeros((env.num_tables, num_seats, self.game.rules.FULL_SIZE), np.int8)
        for seat in range(num_seats):
            seats = np.full(env.num_tables, seat, np.int8)
            view = np.zeros_like(full[:, seat])
            specialize(kernels.observe_all_tables, self.game)(0, env.num_tables, env.states, seats, view)
            full[:, seat] = view
        return flat(full)

    def margin_over(self, player: int) -> float:
        """Return points an episode that the learner took from POOL or GREEDY, or nan where none ended."""
        tables = np.flatnonzero((self.players == player).any(axis=1))
        episodes = int(self.done[:, tables].sum())
        if not episodes:
            return float("nan")
        first_own = (self.players[tables] == LEARNER).argmax(axis=1)
        return float(self.rewards[:, tables, first_own].sum() / episodes)

    def memory(self) -> Memory:
        """Return what the next `collect` depends on."""
        return self.episodes.memory(), {"rng": self.rng.bit_generator.state}

    def restore(self, memory: Memory) -> None:
        """Go on from a memory. Raises ValueError where it is not of such tables."""
        arrays, facts = memory
        self.episodes.restore(arrays)
        into_stream(self.rng, facts, "rng")


class Reading:
    """The inputs about moves that the networks of a rollout read.

    Attributes:
        moves: they read what moves change; lookahead: after `greedy` has played on.
    """

    def __init__(self, game: Game, actor: Actor, opponent: Actor | None) -> None:
        """Raise ValueError for networks that can't play at the same tables."""
        networks = [network for network in (actor, opponent) if network is not None]
        self.game = game
        self.moves = any(network.reads_moves for network in networks)
        self.lookahead = any(network.lookahead for network in networks)
        if any(network.reads_moves and network.lookahead != self.lookahead for network in networks):
            raise ValueError("networks of the kinds afterstates and lookahead can't play at the same tables")
        self._shows_baseline = self.lookahead or any(network.shows_baseline for network in networks)

    def of_tables(self, states: NDArray[Any], tables: Int64s, baseline: Int64s) -> Afterstates:
        """Return what moves change, of all B decisions, but with moves at these tables alone."""
        shown = baseline if self._shows_baseline else np.full_like(baseline, -1)
        found = afterstates(self.game, states, tables, shown, self.lookahead)
        counts = np.zeros(len(states) + 1, np.int64)
        counts[tables + 1] = np.diff(found.first)
        return found._replace(first=np.cumsum(counts))


def flat(buffer: NDArray[Any]) -> NDArray[Any]:
    """Return [T * B, …] of [T, B, …]."""
    return buffer.reshape(-1, *buffer.shape[2:])


def seed_of_deals(seed: list[int]) -> int:
    """Return the seed of a rollout's tables."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))


def players_of(game: Game, config: Config) -> Int8s:
    """Return [B, S] the player of each seat: LEARNER, POOL or GREEDY."""
    sides = np.array(game.sides)
    numbers = np.arange(config.num_envs)
    players = np.full((config.num_envs, len(sides)), LEARNER, np.int8)
    if game.num_sides > 1:
        num_pool = round(config.pool_share * config.num_envs)
        num_greedy = round(config.greedy_share * config.num_envs)
        other_side = sides == (numbers % game.num_sides)[:, None]  # [B, S]
        players[other_side & (numbers < num_pool)[:, None]] = POOL
        players[other_side & ((numbers >= num_pool) & (numbers < num_pool + num_greedy))[:, None]] = GREEDY
    return players
