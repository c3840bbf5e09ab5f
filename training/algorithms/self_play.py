"""Networks that learn from tables that they play at, and the pool of their opponents: for `ppo` and `advantages`."""

from __future__ import annotations

import copy
import time
import zlib
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from math import fsum
from typing import TypeAlias, TypeGuard

import numpy as np
import torch
from torch import nn

from card_envs.game import Field, Game
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.names import folder_of
from card_envs.opponents.networks.policies import ILLEGAL, TrainedPolicy
from card_envs.opponents.policy import Policy, decisions_at

from .. import checkpoint
from ..checkpoint import Memory
from ..config import Config
from ..moves import Selection
from ..networks import ActorNetwork, AfterstateActor, Inputs, has_bf16, stored_actor
from ..ranks import Ranks
from ..rollout import GREEDY, HOST, POOL, Backend, Labels, Rollout
from ..run_folder import RunFolder
from ..tables import TensorTables
from . import Algorithm, Diverged

LAST_LEARNING_RATE = 0.1  # share that is left at the end
OPPONENTS_SHARE = 0.5  # how often one of the pool's opponents is drawn where there are snapshots as well
OURS = ("mlp-relu", "afterstates", "lookahead")  # networks that play at the tables
Minibatches: TypeAlias = torch.Tensor | list[torch.Tensor]  # K of them: numbers of M decisions each, or about M


class SelfPlay(Algorithm):
    """Networks, the tables that their actor plays at, and Adam; subclasses add a loss.

    Attributes:
        networks: all that the run resumes from, by name; actor: the learner.
        rollout: the tables, and the last steps at them.
        stage: number of the stage in which the tables are.
        updates: number of iterations so far.
    """

    rollout: Rollout
    stage: int

    def __init__(
        self,
        config: Config,
        ranks: Ranks,
        networks: dict[str, ActorNetwork],
        backend: Backend = HOST,
        label: Labels | None = None,
    ) -> None:
        """Deal the tables, and create the optimizer and the pool.

        Args:
            config: the settings.
            ranks: the processes.
            networks: the networks to train; `actor` plays.
            backend: what differs between devices.
            label: see `Rollout`.

        Raises:
            ValueError: a warm start or an opponent of the pool does not fit.
        """
        self.config = config
        self.ranks = ranks
        self.networks = networks
        self.backend = backend
        self.label = label
        self.device = backend.device
        self.game = get_game(config.game)
        self.actor = networks["actor"]
        self.action_fields = self.game.rules.ACTION_FIELDS
        self.rng = np.random.default_rng([config.seed, 3, ranks.rank])
        self.updates = 0
        opponents = pool_opponents(self.game, config, self.actor)
        self.pool = PolicyPool(self.actor, config, [config.seed, 2, ranks.rank], opponents)
        bf16 = has_bf16(self.device) if config.bf16 is None else config.bf16
        for network in (*networks.values(), *self.pool.networks):
            network.to(self.device).bf16 = bf16
        self.parameters = [parameter for network in networks.values() for parameter in network.parameters()]
        on_gpu = self.device.type == "cuda"
        rate = torch.tensor(config.learning_rate, device=self.device) if backend.dense else config.learning_rate
        self.optimizer = torch.optim.Adam(self.parameters, lr=rate, eps=1e-5, fused=True, capturable=on_gpu)
        if config.warm_start:
            self._warm_start(config.warm_start)
        self.begin_stage(config.stage(0))

    def begin_stage(self, number: int, *more: int) -> None:
        """Deal the tables of a stage; numbers in `more` give other deals than those that it began with."""
        seed, options = [self.config.seed, 1, self.ranks.rank, number, *more], self.config.options_of_stage(number)
        self.rollout = Rollout(self.game, self.config, options, seed, self.backend, self.label)
        for opponent in self.pool.opponents:
            if isinstance(opponent, AskedPlayer):
                opponent.tables = self.rollout.tables
        self.stage = number

    # An iteration

    def play(self, progress: float) -> None:
        """Play T steps at the tables."""
        if self.config.stage(progress) != self.stage:
            self.begin_stage(self.config.stage(progress))
        self.pool.offer(self.actor, progress)
        self.rollout.collect(self.actor, self.pool.draw())
        self.updates += 1

    def minibatches(self, rows: torch.Tensor) -> Minibatches:
        """Return numbers of decisions, rows [n], in minibatches of random order, `update_epochs` times each.

        A single process on a GPU has minibatches of one size, a tensor [K, M]: what does not fill one goes to the next
        epoch, and in the last is left out. Else their sizes are alike, and each process has as many as the others, some
        of them empty if it has too few decisions; none has any if nobody has a decision.
        """
        config = self.config
        if self.backend.dense and self.ranks.count == 1:
            shuffled = torch.cat([self._shuffle(rows) for _ in range(config.update_epochs)])
            size = max(1, min(config.minibatch_size, len(shuffled)))
            return shuffled[: len(shuffled) // size * size].view(-1, size)
        total = self.ranks.sum(len(rows))[0]
        if not total:
            return []
        number = max(1, round(total / self.ranks.count / config.minibatch_size))
        return [part for _ in range(config.update_epochs) for part in self._shuffle(rows).tensor_split(number)]

    def _shuffle(self, rows: torch.Tensor) -> torch.Tensor:
        if not self.backend.dense:
            return torch.from_numpy(self.rng.permutation(rows.numpy()))
        generator = torch.Generator(self.device).manual_seed(int(self.rng.integers(1 << 63)))  # nothing waits
        return rows[torch.randperm(len(rows), generator=generator, device=self.device)]

    def set_learning_rate(self, progress: float) -> float:
        """Set and return the learning rate at that share of the run."""
        rate = self.config.learning_rate * (1 + (LAST_LEARNING_RATE - 1) * progress)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        return rate

    def descend(
        self, loss_of: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor, kind: Hashable,
        **arrays: torch.Tensor,
    ) -> dict[str, float]:  # fmt: skip
        """Take a step down the gradient for each minibatch of some decisions; all ranks take as many.

        Args:
            loss_of: returns the loss of a minibatch, of its rows [M], and adds figures to `tally`.
            rows: [n] decisions.
            kind: the loss's kind: `loss_of` does the same whenever it is the same, with tensors at the same places.
            arrays: [N, …] stored for debugging if a loss is not finite.

        Returns:
            The means of the figures.

        Raises:
            Diverged: a loss is not finite; on a CPU, nothing was learned from it.
        """
        self.tally.clear()
        minibatches = self.minibatches(rows)
        if self._can_replay(minibatches):
            self._descend_replayed(loss_of, minibatches, kind, arrays)
            return self.tally.means()
        losses = []
        for part in minibatches:
            loss = loss_of(part) if len(part) else self._no_loss()
            losses.append(loss.detach()[None])
            if self.device.type == "cpu":  # a GPU would have to wait
                check_losses(losses[-1], [part], arrays)
            self.gradient_step(loss)
        if losses:
            check_losses(torch.cat(losses), minibatches, arrays)
        return self.tally.means()

    def _can_replay(self, minibatches: Minibatches) -> TypeGuard[torch.Tensor]:
        """Return whether a minibatch is work that is always the same."""
        alike = isinstance(minibatches, torch.Tensor) and minibatches.shape[1] == self.config.minibatch_size
        return alike and self.rollout.graphs.replays and all(network.replayable for network in self.networks.values())

    def _descend_replayed(
        self, loss_of: Callable[[torch.Tensor], torch.Tensor], minibatches: torch.Tensor, kind: Hashable,
        arrays: Mapping[str, torch.Tensor],
    ) -> None:  # fmt: skip
        """Take the steps of `descend` as a graph; all tensors stay in place, the minibatch's number included."""
        number, order, losses = self._replay_memory
        number.zero_()
        order[: len(minibatches)] = minibatches

        def step() -> None:
            loss = loss_of(order.index_select(0, number)[0])
            losses.index_copy_(0, number, loss.detach()[None])
            self.gradient_step(loss)
            number.add_(1)

        for _ in range(len(minibatches)):
            self.rollout.graphs.repeat(("step", kind), step)
        check_losses(losses[: len(minibatches)], minibatches, arrays)

    @cached_property
    def _replay_memory(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """[1] the number of a minibatch, [K, M] the rows of all, and [K] their losses."""
        config = self.config
        most = config.update_epochs * config.num_envs * config.num_steps // config.minibatch_size
        order = torch.zeros((most, config.minibatch_size), dtype=torch.int64, device=self.device)
        return order.new_zeros(1), order, torch.zeros(most, device=self.device)

    @cached_property
    def tally(self) -> Tally:
        """Means of the figures of an update."""
        return Tally(self.action_fields, self.device)

    def _no_loss(self) -> torch.Tensor:
        """Return a loss of 0 that leaves the gradients to the other processes."""
        return torch.stack([parameter.sum() for parameter in self.parameters]).sum() * 0

    def gradient_step(self, loss: torch.Tensor) -> None:
        """Take a step down the gradient; all ranks take the same."""
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.ranks.average_gradients(self.parameters)
        for network in self.networks.values():
            nn.utils.clip_grad_norm_(network.parameters(), self.config.max_grad_norm, foreach=True)
        self.optimizer.step()

    def figures(self) -> dict[str, float]:
        """Return figures of the tables, for the log."""
        return {
            "margin_over_pool": self.rollout.margin_over(POOL),
            "margin_over_greedy": self.rollout.margin_over(GREEDY),
            "pool_snapshots": len(self.pool.snapshots),
            "stage": self.stage,
        }

    # Memory

    def memory(self) -> Memory:
        arrays = checkpoint.with_prefix("optimizer", checkpoint.optimizer_arrays(self.optimizer))
        for name, network in self.networks.items():
            arrays |= checkpoint.with_prefix(name, checkpoint.module_arrays(network))
        for i, snapshot in enumerate(self.pool.snapshots):
            weights = {name: tensor.cpu().numpy() for name, tensor in snapshot.items()}
            arrays |= checkpoint.with_prefix(f"pool{i}", weights)
        facts = {"stage": self.stage, "updates": self.updates, "pool_snapshots": len(self.pool.snapshots)}
        return arrays, facts

    def rank_memory(self) -> Memory:
        arrays, facts = self.rollout.memory()
        return arrays, facts | {"pool": self.pool.rng.bit_generator.state, "learner": self.rng.bit_generator.state}

    def restore(self, memory: Memory, rank_memory: Memory | None) -> None:
        arrays, facts = memory
        limits = {"stage": len(self.config.stages), "pool_snapshots": self.config.pool_size, "updates": 1 << 62}
        for name, most in limits.items():
            if type(facts.get(name)) is not int or not 0 <= facts[name] <= most:
                raise ValueError(f"{name}: expected a number from 0 to {most}, got {facts.get(name)!r}")
        self._take_networks(arrays, list(self.networks))
        like = checkpoint.module_arrays(self.actor)
        pool = [checkpoint.without_prefix(f"pool{i}", arrays) for i in range(facts["pool_snapshots"])]
        self.pool.snapshots = [
            checkpoint.tensors(checkpoint.check_arrays(snapshot, like, f"pool{i}")) for i, snapshot in enumerate(pool)
        ]
        self.updates = facts["updates"]
        if rank_memory is None:  # what the processes remember of tables and streams fits no other number of them
            self.begin_stage(facts["stage"], self.updates)
            return
        self.begin_stage(facts["stage"])
        self.rollout.restore(rank_memory)
        checkpoint.restore_stream(self.pool.rng, rank_memory[1], "pool")
        checkpoint.restore_stream(self.rng, rank_memory[1], "learner")

    def _take_networks(self, arrays: checkpoint.Arrays, names: list[str]) -> None:
        """Set these networks and Adam as they are in a checkpoint. Raises ValueError where they don't fit."""
        for name in names:
            checkpoint.restore_module(self.networks[name], checkpoint.without_prefix(name, arrays), name)
        checkpoint.restore_optimizer(self.optimizer, checkpoint.without_prefix("optimizer", arrays))

    def _warm_start(self, name: str) -> None:
        """Begin with the networks of a run, or the actor of an opponent. Raises ValueError where they don't fit."""
        try:
            folder = folder_of(name)
            path = RunFolder(folder).checkpoint if folder else None
            if path and path.is_file():
                arrays = checkpoint.without_prefix("algorithm", checkpoint.read_checkpoint(path)[0])
                names = [network for network in self.networks if checkpoint.without_prefix(network, arrays)]
                self._take_networks(arrays, names or ["actor"])
            else:
                policy = load_opponent(name, self.game).policy
                if not isinstance(policy, TrainedPolicy):
                    raise ValueError("expected the folder of a run, or a trained opponent")
                self.actor.set_weights(policy.weights)
            if isinstance(self.actor, AfterstateActor):
                self.actor.check_baseline()
        except ValueError as error:
            raise ValueError(f"warm_start = {name!r}: {error}") from None

    # What was learned

    def policy(self) -> Policy:
        policy = self.actor.policy(self.game)
        policy.sampled = self.config.sampled
        return policy

    def stored_policy(self) -> TrainedPolicy:
        policy = self.actor.stored_policy(self.game)
        policy.sampled = self.config.sampled
        return policy

    def bytes_on_disk(self) -> int:
        sizes = {name: sum(p.numel() for p in network.parameters()) for name, network in self.networks.items()}
        weights = sizes["actor"] * (self.config.pool_size + 1) + 3 * sum(sizes.values())
        return 4 * weights + self.config.num_envs * self.game.rules.STATE.itemsize * self.ranks.count


class PolicyPool:
    """Snapshots of the learner, evenly spaced over the run, and trained opponents that do not change."""

    def __init__(self, actor: ActorNetwork, config: Config, seed: list[int], opponents: list[ActorNetwork]) -> None:
        """Create a pool without snapshots.

        Args:
            actor: the learner; it is copied.
            config: its size and shares.
            seed: seed of the draws.
            opponents: members from the beginning.
        """
        self.config = config
        self.snapshots: list[Mapping[str, torch.Tensor]] = []
        self.opponents = opponents
        self.rng = np.random.default_rng(seed)
        self._snapshot = copy.deepcopy(actor)

    @property
    def networks(self) -> list[ActorNetwork]:
        """Return all networks that it can draw."""
        return [self._snapshot, *self.opponents]

    def offer(self, actor: ActorNetwork, progress: float) -> None:
        """Keep a snapshot if one is due; `progress` is the share of the run that is done."""
        size = self.config.pool_size
        if len(self.snapshots) < min(size, int(progress * (size + 1))):
            self.snapshots.append({name: tensor.clone() for name, tensor in actor.state_dict().items()})

    def draw(self) -> ActorNetwork | None:
        """Return an opponent or a snapshot, valid until the next draw; None while there is none."""
        if self.opponents and (not self.snapshots or self.rng.random() < OPPONENTS_SHARE):
            return self.opponents[self.rng.integers(len(self.opponents))]
        if not self.snapshots:
            return None
        self._snapshot.load_state_dict(self.snapshots[self.rng.integers(len(self.snapshots))])
        return self._snapshot


def pool_opponents(game: Game, config: Config, actor: ActorNetwork) -> list[ActorNetwork]:
    """Load `pool_opponents`. Raises ValueError, with the name, for one that can't play at the learner's tables."""
    opponents: list[ActorNetwork] = []
    for name in config.pool_opponents:
        try:
            policy = load_opponent(name, game).policy
            opponent: ActorNetwork = AskedPlayer(policy)
            if isinstance(policy, TrainedPolicy) and policy.architecture in OURS:
                opponent = stored_actor(policy)
            if opponent.reads_moves and actor.reads_moves and opponent.lookahead != actor.lookahead:
                raise ValueError("it and the learner are networks of the kinds afterstates and lookahead")
        except ValueError as error:
            raise ValueError(f"pool_opponents: {name!r}: {error}") from None
        opponents.append(opponent)
    return opponents


class AskedPlayer(ActorNetwork):
    """A player that is no network of ours; it is asked at the tables, and its draws follow from what it sees."""

    replayable = False
    tables: TensorTables

    def __init__(self, policy: Policy) -> None:
        """Take any policy."""
        super().__init__()
        self.player = policy

    def logits(self, inputs: Inputs, rows: Selection) -> torch.Tensor:
        """Return [n, A] 0 for the action that it chooses, -1e9 for all others."""
        numbers = np.arange(len(inputs.seen.obs))[rows if isinstance(rows, slice) else rows.cpu().numpy()]
        decisions = decisions_at(self.tables.game, self.tables.read_states().take(numbers))
        actions = self.player.act(decisions, np.random.default_rng(zlib.crc32(decisions.obs.tobytes())))
        logits = np.full((len(numbers), self.tables.game.rules.NUM_ACTIONS), ILLEGAL, np.float32)
        logits[np.arange(len(numbers)), actions] = 0
        return torch.from_numpy(logits).to(inputs.seen.obs.device)


class Stopwatch:
    """The seconds of an iteration's parts, as the log has them; a GPU may still work for the part before."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    def lap(self, part: str) -> None:
        """Count the time that no part has yet as that of this one."""
        self.seconds[f"seconds_{part}"] = time.perf_counter() - self._start - fsum(self.seconds.values())


class Tally:
    """Means of figures over the minibatches of an update, kept on the device: nothing waits for them."""

    def __init__(self, fields: tuple[Field, ...], device: torch.device) -> None:
        """Begin without figures; `fields` are ranges of actions."""
        self._names = [field.name for field in fields]
        number_of = np.repeat(np.arange(len(fields)), [field.size for field in fields])
        self._is_of_field = torch.from_numpy(np.eye(len(fields))[number_of]).to(device)  # [A, F]
        self._sums: dict[str, torch.Tensor] = {}  # [2] sum and number
        self._by_field = torch.zeros((2, len(fields)), dtype=torch.float64, device=device)

    def clear(self) -> None:
        """Reset all figures, in place."""
        for sums in (self._by_field, *self._sums.values()):
            sums.zero_()

    def add(self, **figures: torch.Tensor) -> None:
        for name, figure in figures.items():
            if name not in self._sums:
                self._sums[name] = torch.zeros(2, dtype=torch.float64, device=figure.device)
            self._sums[name] += torch.stack([figure.detach(), torch.ones_like(figure)])

    def add_entropy(self, actions: torch.Tensor, shares: torch.Tensor) -> None:
        """Add the entropies of decisions, also by the range of actions that each action is of."""
        shares = shares.detach()
        self.add(entropy=shares.mean())
        shares = shares.double()
        # A product: adding to a few sums by number, a GPU's threads would wait for each other.
        self._by_field += torch.stack([shares, torch.ones_like(shares)]) @ self._is_of_field.index_select(0, actions)

    def means(self) -> dict[str, float]:
        totals = {name: sums.tolist() for name, sums in self._sums.items()}
        means = {name: total / number for name, (total, number) in totals.items() if number}
        sums, numbers = self._by_field.cpu().numpy()
        return means | {f"entropy_{self._names[i]}": float(sums[i] / numbers[i]) for i in np.flatnonzero(numbers)}


def check_losses(losses: torch.Tensor, minibatches: Minibatches, tensors: Mapping[str, torch.Tensor]) -> None:
    """Raise Diverged for the first of K losses that is not finite, with those rows of the tensors that it is of."""
    finite = torch.isfinite(losses).cpu()
    if not finite.all():
        rows = minibatches[int(finite.int().argmin())]
        raise Diverged({name: tensor[rows].cpu().numpy() for name, tensor in tensors.items()})
