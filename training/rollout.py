"""How experience comes about: T steps at B tables, written into tensors of any device that are allocated once.

Three things differ between devices, and a `Backend` names them: the tables, how the networks' first layers read
observations, and how moves are drawn. On a GPU nothing waits between two steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from card_envs.compiling import specialize
from card_envs.engine.buffers import row_size
from card_envs.engine.rng import table_keys
from card_envs.game import Game, Int8s

from .checkpoint import Memory, restore_stream
from .config import Config
from .graphs import CudaGraphs, Graphs, NoGraphs
from .moves import DeviceRecorder, HostRecorder, MoveReading, MoveSource
from .networks import CPU, ActorNetwork, Inputs, Observations
from .tables import EpisodeLog, HostTables, TensorTables

LEARNER, POOL, GREEDY = range(3)  # players of a seat
Players: TypeAlias = list[tuple[ActorNetwork, int]]  # networks and the seats that they have: LEARNER, then POOL
# Labels [B, A] of moves at tables, from baseline actions [B], the moves to label [B, A] and a stream.
Labels: TypeAlias = Callable[[TensorTables, torch.Tensor, torch.Tensor, np.random.Generator], torch.Tensor]


class Moment(NamedTuple):
    """A decision at each of B tables.

    Attributes:
        mask: [B, A] int8.
        mover: [B] int8, the player whose turn it is.
        actions, log_probs: [B], written where a network decides; elsewhere the actions are there already.
    """

    mask: torch.Tensor
    mover: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor


class CompiledSampler:
    """Scores the tables of each network alone, and draws by the inverse of the distribution function."""

    generators: tuple[torch.Generator, ...] = ()  # that it draws from

    def __init__(self, rng: np.random.Generator, pool: slice, device: torch.device) -> None:
        self.rng = rng

    def begin(self) -> None:
        """Do nothing: draws come from the stream one by one."""

    def decide(self, players: Players, inputs: Inputs, moment: Moment) -> None:
        """Choose the networks' moves and write them into `moment`."""
        mask, mover, actions, log_probs = (tensor.numpy() for tensor in moment)
        rows, start = inputs.seen.obs.numpy(), inputs.seen.size - mask.shape[1]
        for network, player in players:
            tables = np.flatnonzero(mover == player)
            if len(tables):
                logits = network.logits(inputs, torch.from_numpy(tables)).numpy()
                draws = self.rng.random(len(tables), np.float32)
                specialize(_draw_actions)(logits, rows, start, tables, draws, actions, log_probs)


class GumbelSampler:
    """Scores all tables, and draws by the highest of scores with Gumbel noise: nothing waits for a device."""

    def __init__(self, rng: np.random.Generator, pool: slice, device: torch.device) -> None:
        """Take seeds from `rng`; at the tables `pool`, the pool may have seats."""
        self.rng = rng
        self.pool = pool
        self.generator = torch.Generator(device)
        self.generators: tuple[torch.Generator, ...] = (self.generator,)

    def begin(self) -> None:
        """Begin a rollout: all that its draws depend on comes from the stream now."""
        self.generator.manual_seed(int(self.rng.integers(1 << 63)))

    def decide(self, players: Players, inputs: Inputs, moment: Moment) -> None:
        mask, mover, actions, log_probs = moment
        (actor, _), *others = players
        logits = actor.logits(inputs, slice(None))
        for network, player in others:
            theirs = (mover[self.pool] == player)[:, None]
            logits[self.pool] = torch.where(theirs, network.logits(inputs, self.pool), logits[self.pool])
        drawn, probabilities = draw_by_noise(logits, mask, self.generator)
        log_probs.copy_(probabilities)
        actions.copy_(torch.where(mover == GREEDY, actions, drawn))


def _draw_actions(
    logits: Any, rows: Any, start: int, tables: Any, draws: Any, actions: Any, log_probs: Any
) -> None:  # fmt: skip
    """Draw a legal action for each of these tables from its softmax, by the inverse of its distribution function.

    The mask of a table lies in its row from `start` on.
    """
    for i in range(len(tables)):
        table = tables[i]
        highest = np.float32(-np.inf)
        for a in range(logits.shape[1]):
            if rows[table, start + a] and logits[i, a] > highest:
                highest = logits[i, a]
        total = np.float32(0)
        for a in range(logits.shape[1]):
            if rows[table, start + a]:
                total += np.exp(logits[i, a] - highest)
        left = draws[i] * total
        chosen = 0
        for a in range(logits.shape[1]):
            if rows[table, start + a]:
                chosen = a  # the last legal one where rounding leaves a rest
                left -= np.exp(logits[i, a] - highest)
                if left < 0:
                    break
        actions[table] = chosen
        log_probs[table] = logits[i, chosen] - highest - np.log(total)


def draw_by_noise(
    logits: torch.Tensor, mask: torch.Tensor, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return [n] a legal action each from the softmax of logits [n, A], and [n] the logarithms of their probabilities.

    The highest of logits with Gumbel noise has the softmax's distribution (Gumbel 1954).
    """
    illegal = mask == 0
    log_all = logits.masked_fill(illegal, -torch.inf).log_softmax(dim=1)
    noise = torch.empty_like(log_all).exponential_(generator=generator).log()
    actions = (log_all - noise).masked_fill(illegal, -torch.inf).argmax(dim=1)
    return actions, log_all.gather(1, actions[:, None])[:, 0]


class Backend(NamedTuple):
    """What differs between devices.

    Attributes:
        device: where all tensors are.
        tables: deals them; called like `BatchEnv`.
        dense: first layers read dense rows, not sparse ones: see `Observations`.
        sampler: called with a stream, the tables where the pool may have seats, and the device.
        recorder: finds what moves change.
        graphs: repeats what always does the same; called with the generators that it draws from.
    """

    device: torch.device
    tables: Callable[..., TensorTables]
    dense: bool
    sampler: Callable[[np.random.Generator, slice, torch.device], CompiledSampler | GumbelSampler]
    recorder: Callable[[Game, MoveReading, int, Any], HostRecorder | DeviceRecorder]
    graphs: Callable[..., Graphs] = NoGraphs


HOST = Backend(CPU, HostTables, False, CompiledSampler, HostRecorder)


def backend_of(name: str) -> Backend:
    """Return the backend of a `device` setting; each of torchrun's processes has its own GPU. Raises ValueError."""
    if name == "cpu":
        return HOST
    from card_envs.engine.gpu import SIMULATED, GpuBatchEnv, usable

    if SIMULATED:
        return Backend(CPU, GpuBatchEnv, True, GumbelSampler, DeviceRecorder)
    device = usable(f"cuda:{os.environ['LOCAL_RANK']}" if name == "cuda" and "LOCAL_RANK" in os.environ else name)
    torch.cuda.set_device(device)
    return Backend(device, partial(GpuBatchEnv, device=device), True, GumbelSampler, DeviceRecorder, CudaGraphs)


class Rollout:
    """B tables, and the last T steps at them.

    At the first tables a policy of the pool has all seats of one side, at the next ones `greedy` has; the sides take
    turns. `learned` marks the learner's own decisions with a choice; of these, with labels, one in `advantage_stride`.

    Attributes:
        obs, mask: [T, B, …] int8, before the decision; `seen` [T, B, W] has them side by side, as the actor reads.
        full: [T, B, W] int8, what a critic reads; W is 0 where there is none. Rows end with zeros, so that they begin
            at multiples of 16 bytes.
        seat, actions, log_probs, learned: [T, B].
        baseline: [T, B] the baseline action: what `greedy` would play.
        rewards: [T, B, S] float32, in points; done: [T, B].
        advantages, returns: [T, B], for PPO, which writes them.
        players: [B, S] LEARNER, POOL or GREEDY.
        labels: [T, B, A] float32, of moves of decisions in `learned`; A is 0 where nothing gives labels.
        after: what the moves of all T * B decisions change, where the actor reads that.
        graphs: repeats what is done with these tensors, which stay where they are.
    """

    def __init__(
        self, game: Game, config: Config, options: dict[str, Any], seed: list[int], backend: Backend = HOST,
        label: Labels | None = None,
    ) -> None:  # fmt: skip
        """Deal all tables; `label` gives the labels to learn from, where it is not the rewards that teach a critic."""
        rules = game.rules
        self.game, self.config, self.backend, self.label = game, config, backend, label
        deals = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> np.uint64(1))
        self.rng = np.random.default_rng(seed)
        players = players_of(game, config)
        self.players = torch.from_numpy(players).to(backend.device)
        pool_tables = slice(int((players == POOL).any(axis=1).sum()))  # they are the first
        self.sampler = backend.sampler(self.rng, pool_tables, backend.device)

        def zeros(*size: int, dtype: torch.dtype = torch.float32, more: int = 0) -> torch.Tensor:
            shape = config.num_steps + more, config.num_envs, *size
            return torch.zeros(shape, dtype=dtype, device=backend.device)

        start, self._seen_size = rules.OBS_SIZE, rules.OBS_SIZE + rules.NUM_ACTIONS
        # The tables write here, step t to [t + 1]; [0] is what they show before.
        out = {
            "seen": zeros(row_size(self._seen_size), dtype=torch.int8, more=1),
            "seat": zeros(dtype=torch.int8, more=1),
            "rewards": zeros(rules.NUM_SEATS, more=1),
            "done": zeros(dtype=torch.bool, more=1),
        }
        self.tables = backend.tables(game, config.num_envs, deals, options=options, skip_forced=True, out=out)
        self.episodes = EpisodeLog(self.tables, table_keys(deals, np.arange(config.num_envs)))
        self.seen, self.seat = out["seen"][:-1], out["seat"][:-1]
        self.rewards, self.done = out["rewards"][1:], out["done"][1:]
        self.obs, self.mask = self.seen[..., :start], self.seen[..., start : self._seen_size]
        full_size = row_size(rules.FULL_SIZE)
        self.full = zeros(full_size if label is None else 0, dtype=torch.int8)
        self._full_now = torch.zeros((config.num_envs, full_size), dtype=torch.int8, device=backend.device)
        self.actions, self.baseline = zeros(dtype=torch.int64), zeros(dtype=torch.int64)
        self.log_probs, self.learned = zeros(), zeros(dtype=torch.bool)
        self.advantages, self.returns = zeros(), zeros()
        self.labels = zeros(0 if label is None else rules.NUM_ACTIONS)
        self.steps: list[Observations] = []
        self.after: MoveSource | None = None
        self.graphs = backend.graphs(*self.sampler.generators) if config.graphs else NoGraphs()

    @torch.no_grad()
    def collect(self, actor: ActorNetwork, opponent: ActorNetwork | None) -> None:
        """Play on from the current positions.

        Args:
            actor: the learner.
            opponent: plays the POOL's seats; None: the learner does.

        Raises:
            ValueError: the two can't play at the same tables.
        """
        tables = self.tables
        networks: Players = [(actor, LEARNER)] if opponent is None else [(actor, LEARNER), (opponent, POOL)]
        reading, recorder = reading_of([network for network, _ in networks]), None
        self.after = None  # the memory of the last rows is needed for the next
        if reading is not None:
            recorder = self.backend.recorder(self.game, reading, len(self.seen), tables)
        self.steps = [Observations(seen, self.backend.dense, size=self._seen_size) for seen in self.seen]
        if self.episodes.make_room(len(self.seen)):
            self.graphs.forget()
        self.sampler.begin()
        always_alike = self.label is None and all(network.replayable for network, _ in networks)
        graphs = self.graphs if always_alike else NoGraphs()
        graphs.repeat(("play", opponent), lambda: self._play(networks, recorder))
        tables.check()
        self.after = None if recorder is None else recorder.all(self.baseline, self.mask)

    def _play(self, networks: Players, recorder: HostRecorder | DeviceRecorder | None) -> None:
        """Play T steps."""
        tables = self.tables
        tables.observe(0)
        for t in range(len(self.seen)):
            mask = self.mask[t]
            tables.bot_actions("greedy", self.baseline[t])
            self.actions[t] = self.baseline[t]
            mover = self.players.gather(1, self.seat[t].long()[:, None])[:, 0]
            if len(networks) == 1:
                mover.masked_fill_(mover == POOL, LEARNER)
            self.learned[t] = (mover == LEARNER) & (mask.sum(dim=1, dtype=torch.int32) > 1)
            after = None if recorder is None else recorder.step(mover != GREEDY, self.baseline[t], mask)
            if self.label is None:
                tables.observe_all(self.full[t])
            else:
                self._label(t, after if recorder is not None and recorder.reading.lookahead else None)
            inputs = Inputs(self.steps[t], after)
            self.sampler.decide(networks, inputs, Moment(mask, mover, self.actions[t], self.log_probs[t]))
            tables.step(self.actions[t], t + 1)
            self.episodes.record(self.actions[t], self.done[t])

    def _label(self, t: int, merged: MoveSource | None) -> None:
        """Label moves of the decisions to learn from; where moves with the same afterstate are merged, one of them."""
        assert self.label is not None
        learned = self.learned[t]
        if self.config.advantage_stride > 1:
            chosen = self.rng.random(len(learned)) < 1 / self.config.advantage_stride
            learned &= torch.from_numpy(chosen).to(learned.device)
        moves = self.mask[t] * learned[:, None]
        if merged is not None:
            moves &= merged.action_mask()
        self.labels[t] = self.label(self.tables, self.baseline[t], moves, self.rng)

    def inputs(self) -> Inputs:
        """Return the actors' inputs of all T * B decisions."""
        seen = Observations(self.seen.flatten(0, 1), self.backend.dense, self.steps, self._seen_size)
        return Inputs(seen, self.after)

    def full_states(self) -> Observations:
        """Return the critics' inputs of all T * B decisions."""
        return Observations(self.full.flatten(0, 1), self.backend.dense, size=self.game.rules.FULL_SIZE)

    def last_full_states(self) -> Observations:
        """Return [B * S] the full state of each table now, seen from each of its seats."""
        full = self._full_now[:, None].repeat(1, self.game.rules.NUM_SEATS, 1)
        for seat in range(full.shape[1]):
            self.tables.observe_all(self._full_now, seat)
            full[:, seat] = self._full_now
        return Observations(full.flatten(0, 1), self.backend.dense, size=self.game.rules.FULL_SIZE)

    def margin_over(self, player: int) -> float:
        """Return points an episode that the learner took from POOL or GREEDY, or NaN if none ended."""
        tables = (self.players == player).any(dim=1)
        episodes = int(self.done[:, tables].sum())
        if not episodes:
            return float("nan")
        first_seat = (self.players[tables] == LEARNER).int().argmax(dim=1)
        paid = self.rewards[:, tables].sum(dim=0, dtype=torch.float64)
        return float(paid.gather(1, first_seat[:, None]).sum() / episodes)

    def memory(self) -> Memory:
        """Return the state that the next `collect` depends on."""
        return self.episodes.memory(), {"rng": self.rng.bit_generator.state}

    def restore(self, memory: Memory) -> None:
        """Go on from a memory, of any device. Raises ValueError where it is not of such tables."""
        arrays, facts = memory
        self.episodes.restore(arrays)
        self.graphs.forget()
        restore_stream(self.rng, facts, "rng")


def reading_of(networks: list[ActorNetwork]) -> MoveReading | None:
    """Return what networks read about moves, or None. Raises ValueError if they can't share tables."""
    readers = [network for network in networks if network.reads_moves]
    if not readers:
        return None
    if len({network.lookahead for network in readers}) > 1:
        raise ValueError("networks of the kinds afterstates and lookahead can't play at the same tables")
    lookahead = readers[0].lookahead
    return MoveReading(lookahead, lookahead or any(network.shows_baseline for network in readers))


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
