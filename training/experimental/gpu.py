"""EXPERIMENTAL: PPO where tables, networks and batches are on a GPU (`device = "cuda"`).

The counterpart of `training.data` in tensors. The same code runs on the CPU, where tests compare the two. On a GPU
nothing waits for it but the end of a rollout.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine import _kernels as kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.rng import table_keys
from card_envs.game import Game

from ..algorithms.ppo import PPO, Batch
from ..checkpoint import Arrays, Memory, into_stream
from ..config import Config
from ..data import GREEDY, LEARNER, POOL, players_of, seed_of_deals
from ..episodes import Episodes
from ..networks import Actor, DeviceRows, Inputs, Network
from ..ranks import Ranks

PART = 1 << 16  # rows that a network reads at once


class GpuPPO(PPO):
    """PPO at tables that are tensors."""

    def __init__(self, config: Config, ranks: Ranks) -> None:
        """See `PPO`. Raises ValueError where there is no such device."""
        super().__init__(config, ranks, device_of(config.device))

    def new_rollout(self, options: dict[str, Any], seed: list[int]) -> Any:
        """See `SelfPlay`."""
        return TensorRollout(self.game, self.config, options, seed, self.device)

    def batch(self) -> Batch:
        """See `PPO`."""
        rollout: Any = self.rollout
        found: Batch = rollout.batch(self.critic)
        return found


def device_of(name: str) -> torch.device:
    """Return the device of a setting; of the processes of torchrun each has its own GPU. Raises ValueError."""
    if name == "cpu":
        return torch.device(name)
    from card_envs.engine.gpu import usable

    found = usable(f"cuda:{os.environ['LOCAL_RANK']}" if name == "cuda" and "LOCAL_RANK" in os.environ else name)
    torch.cuda.set_device(found)
    return found


class Tables(Protocol):
    """The tables of a rollout: `GpuBatchEnv`, or `HostTables`."""

    obs: torch.Tensor
    mask: torch.Tensor
    seat: torch.Tensor
    rewards: torch.Tensor
    done: torch.Tensor

    @property
    def streams(self) -> torch.Tensor: ...
    def columns(self, size: int, dtype: torch.dtype = torch.int8) -> torch.Tensor: ...
    def step(self, actions: torch.Tensor) -> None: ...
    def check(self) -> None: ...
    def bot_actions(self, bot: str, actions: torch.Tensor) -> None: ...
    def observe_all(self, full: torch.Tensor, seat: int | None = None) -> None: ...
    def read_states(self, first: int = 0, last: int | None = None) -> NDArray[Any]: ...
    def write_states(self, states: NDArray[Any]) -> None: ...


class HostTables:
    """`BatchEnv` as tensors on the CPU that share its memory."""

    def __init__(self, env: BatchEnv) -> None:
        self.env = env
        self.obs, self.mask, self.seat, self.rewards, self.done = (
            torch.from_numpy(array) for array in (env.obs, env.mask, env.seat, env.rewards, env.done)
        )
        self.streams = torch.from_numpy(env.states["rng"].view(np.int64))

    def columns(self, size: int, dtype: torch.dtype = torch.int8) -> torch.Tensor:
        return torch.zeros((len(self.obs), size), dtype=dtype)

    def step(self, actions: torch.Tensor) -> None:
        self.env.step(actions.numpy())

    def check(self) -> None:
        """Do nothing: `step` has checked."""

    def bot_actions(self, bot: str, actions: torch.Tensor) -> None:
        self.env.bot_actions(bot, actions.numpy())

    def observe_all(self, full: torch.Tensor, seat: int | None = None) -> None:
        env = self.env
        seats = env.states["seat"].copy() if seat is None else np.full(len(full), seat, np.int8)
        specialize(kernels.observe_all_tables, env.game)(0, env.num_tables, env.states, seats, full.numpy())

    def read_states(self, first: int = 0, last: int | None = None) -> NDArray[Any]:
        return self.env.states[first:last].copy()

    def write_states(self, states: NDArray[Any]) -> None:
        self.env.states[:] = states
        self.env.observe()


class TensorRollout:
    """Tables at play, and the last T steps of all of them, as `Rollout` has them, in tensors of one device.

    Attributes:
        seen: [T, B, D + A] int8, observation and mask side by side; full: [T, B, FULL_SIZE] int8.
        seat, actions, log_probs, learned, baseline, done: [T, B].
        rewards: [T, B, S] float32, in points.
        players: [B, S] int8.
    """

    def __init__(
        self, game: Game, config: Config, options: dict[str, Any], seed: list[int], device: torch.device
    ) -> None:
        """Deal all tables; for the arguments see `Rollout`."""
        rules = game.rules
        self.game = game
        self.config = config
        self.device = device
        deals = seed_of_deals(seed)
        self._of_env: dict[str, Any] = {"options": options, "skip_forced": True}
        self._deals = deals
        if device.type == "cpu":
            self.env: Tables = HostTables(self._host_env())
        else:
            from card_envs.engine.gpu import GpuBatchEnv

            self.env = GpuBatchEnv(game, config.num_envs, deals, device=device, **self._of_env)
        self.rng = np.random.default_rng(seed)
        self.episodes = TensorEpisodes(self.env, table_keys(deals, np.arange(config.num_envs)), rules.NUM_ACTIONS)
        shape = (config.num_steps, config.num_envs)
        self.seen = self._zeros(*shape, rules.OBS_SIZE + rules.NUM_ACTIONS, dtype=torch.int8)
        self.full = self._zeros(*shape, rules.FULL_SIZE, dtype=torch.int8)
        self.seat = self._zeros(*shape, dtype=torch.int8)
        self.actions, self.baseline = (self._zeros(*shape, dtype=torch.int64) for _ in range(2))
        self.log_probs = self._zeros(*shape)
        self.learned, self.done = (self._zeros(*shape, dtype=torch.bool) for _ in range(2))
        self.rewards = self._zeros(*shape, rules.NUM_SEATS)
        players = players_of(game, config)
        self.players = torch.from_numpy(players).to(device)
        self._num_pool = int((players == POOL).any(axis=1).sum())  # they are the first tables
        self._full_now = self.env.columns(rules.FULL_SIZE)

    def _host_env(self) -> BatchEnv:
        return BatchEnv(self.game, self.config.num_envs, self._deals, **self._of_env)

    def _zeros(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.device)

    @torch.no_grad()
    def collect(self, actor: Actor, opponent: Actor | None) -> None:
        """Play on from where the tables are; for the arguments see `Rollout.collect`.

        Raises:
            IllegalMove: never, unless the engine or this file is wrong.
        """
        env, size = self.env, self.game.rules.OBS_SIZE
        generator = torch.Generator(self.device).manual_seed(int(self.rng.integers(1 << 63)))
        self.episodes.make_room(len(self.seen))
        everywhere, first = slice(None), slice(self._num_pool)
        for t in range(len(self.seen)):
            seen, actions = self.seen[t], self.actions[t]
            seen[:, :size], seen[:, size:] = env.obs, env.mask
            self.seat[t] = env.seat
            env.observe_all(self._full_now)
            self.full[t] = self._full_now
            env.bot_actions("greedy", self.baseline[t])
            mover = self.players.gather(1, env.seat.long()[:, None])[:, 0]
            inputs = Inputs(DeviceRows(seen), None)
            logits = actor.logits(inputs, everywhere)
            if opponent is None:
                mover = mover.masked_fill(mover == POOL, LEARNER)
            elif self._num_pool:
                of_pool = (mover[first] == POOL)[:, None]
                logits[first] = torch.where(of_pool, opponent.logits(inputs, first), logits[first])
            chosen, self.log_probs[t] = draw(logits, seen[:, size:], generator)
            actions.copy_(torch.where(mover == GREEDY, self.baseline[t], chosen))
            self.learned[t] = (mover == LEARNER) & (seen[:, size:].sum(dim=1, dtype=torch.int32) > 1)
            env.step(actions)
            self.episodes.note(actions)
            self.rewards[t] = env.rewards
            self.done[t] = env.done
        env.check()

    @torch.no_grad()
    def batch(self, critic: Network) -> Batch:
        """Return the decisions of the last rollout to learn from, with advantages and returns."""
        full = DeviceRows(self.full.flatten(0, 1))
        rows = self.learned.flatten().nonzero()[:, 0]
        expected = self._zeros(*self.seat.shape)
        for part in torch.split(rows, PART):
            expected.view(-1)[part] = critic(full, part)[:, 0]
        last = self._zeros(*self.rewards.shape[1:])
        for seat in range(last.shape[1]):
            self.env.observe_all(self._full_now, seat)
            for tables in torch.split(torch.arange(len(last), device=self.device), PART):
                last[tables, seat] = critic(DeviceRows(self._full_now), tables)[:, 0]
        config, size = self.config, self.game.rules.OBS_SIZE
        gained = gae_advantages(
            self.seat, self.learned, self.rewards * config.reward_scale, self.done, expected, last, config.gae_lambda
        )
        seen = self.seen.flatten(0, 1)
        return Batch(
            Inputs(DeviceRows(seen), None),
            full,
            seen[:, size:],
            self.actions.flatten(),
            self.log_probs.flatten(),
            gained.flatten(),
            (expected + gained).flatten(),
            self.baseline.flatten(),
            rows,
        )

    def margin_over(self, player: int) -> float:
        """Return points an episode that the learner took from POOL or GREEDY, or nan where none ended."""
        tables = (self.players == player).any(dim=1)
        episodes = int(self.done[:, tables].sum())
        if not episodes:
            return float("nan")
        first_own = (self.players[tables] == LEARNER).int().argmax(dim=1)
        paid = self.rewards[:, tables].sum(dim=0, dtype=torch.float64)
        return float(paid.gather(1, first_own[:, None]).sum() / episodes)

    def memory(self) -> Memory:
        """See `Rollout.memory`: a run may go on there."""
        return self.episodes.memory(), {"rng": self.rng.bit_generator.state}

    def restore(self, memory: Memory) -> None:
        """Go on from a memory. Raises ValueError where it is not of such tables."""
        arrays, facts = memory
        host = Episodes(self._host_env(), table_keys(self._deals, np.arange(self.config.num_envs)))
        host.restore(arrays)  # by the rules: only positions that can arise in play
        self.env.write_states(host.env.states)
        self.episodes.restore(arrays)
        into_stream(self.rng, facts, "rng")


class TensorEpisodes:
    """The moves at each table since its episode began: `Episodes` on a device."""

    def __init__(self, env: Tables, keys: NDArray[np.uint64], num_actions: int) -> None:
        """Follow tables whose first episodes have just been dealt from these keys [B]."""
        self.env = env
        device = env.obs.device
        self._dealt_from = torch.from_numpy(keys.view(np.int64)).to(device)
        self._keys = env.streams.clone()
        self._lengths = torch.zeros(len(keys), dtype=torch.int64, device=device)
        self._moves = torch.zeros((0, len(keys)), dtype=torch.int16, device=device)  # [longest, B]
        self._kind = np.min_scalar_type(num_actions - 1)

    def make_room(self, steps: int) -> None:
        """Make room for that many more moves at each table; waits."""
        missing = int(self._lengths.max()) + steps - len(self._moves)
        if missing > 0:
            self._moves = torch.cat([self._moves, self._moves.new_zeros((missing, self._moves.shape[1]))])

    def note(self, actions: torch.Tensor) -> None:
        """Remember what has just been played at all tables; ended episodes are forgotten."""
        done = self.env.done
        self._moves.scatter_(0, self._lengths[None], actions[None].short())
        self._lengths = (self._lengths + 1).masked_fill(done, 0)
        self._dealt_from = torch.where(done, self._keys, self._dealt_from)
        self._keys = torch.where(done, self.env.streams, self._keys)

    def memory(self) -> Arrays:
        """See `Episodes.memory`."""
        lengths = self._lengths.cpu()
        longest = int(lengths.max())
        moves = self._moves[:longest].t().cpu()
        return {
            "dealt_from": self._dealt_from.cpu().numpy().view(np.uint64).copy(),
            "lengths": lengths.numpy().copy(),
            "moves": moves[torch.arange(longest) < lengths[:, None]].numpy().astype(self._kind),
        }

    def restore(self, arrays: Arrays) -> None:
        """Go on from episodes that `Episodes.restore` has checked, at tables that are where they led."""
        device = self._keys.device
        lengths = torch.from_numpy(arrays["lengths"].copy())
        moves = torch.zeros((int(lengths.max()), len(lengths)), dtype=torch.int16).t()
        moves[torch.arange(moves.shape[1]) < lengths[:, None]] = torch.from_numpy(arrays["moves"].astype(np.int16))
        self._dealt_from = torch.from_numpy(arrays["dealt_from"].view(np.int64).copy()).to(device)
        self._lengths, self._moves = lengths.to(device), moves.t().contiguous().to(device)
        self._keys = self.env.streams.clone()


def draw(
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


def gae_advantages(
    seat: torch.Tensor, learned: torch.Tensor, rewards: torch.Tensor, done: torch.Tensor, values: torch.Tensor,
    last_values: torch.Tensor, decay: float,
) -> torch.Tensor:  # fmt: skip
    """Return what `training.gae` does, by the same operations in the same order, for all tables at once."""
    found = torch.zeros_like(values)
    next_value, next_advantage = last_values.clone(), torch.zeros_like(last_values)
    paid = torch.zeros_like(last_values)  # to each seat before its next decision
    for t in range(len(rewards) - 1, -1, -1):
        over = done[t][:, None]  # nothing later belongs to this episode
        next_value, next_advantage = next_value.masked_fill(over, 0), next_advantage.masked_fill(over, 0)
        paid = paid.masked_fill(over, 0) + rewards[t]
        network = seat[t].long()[:, None]
        error = (paid.gather(1, network) + next_value.gather(1, network))[:, 0] - values[t]
        advantage = error + decay * next_advantage.gather(1, network)[:, 0]
        found[t] = advantage.masked_fill(~learned[t], 0)
        own = torch.zeros_like(paid, dtype=torch.bool).scatter_(1, network, learned[t][:, None])
        next_value = torch.where(own, values[t][:, None], next_value)
        next_advantage = torch.where(own, advantage[:, None], next_advantage)
        paid = paid.masked_fill(own, 0)
    return found
