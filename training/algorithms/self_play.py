"""Networks that learn from tables that they play at, and the pool of their opponents: for `ppo` and `advantages`."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping
from math import fsum

import numpy as np
import torch
from torch import nn

from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents._names import folder_of
from card_envs.opponents.networks.policies import TrainedPolicy
from card_envs.opponents.policy import Policy

from .. import checkpoint
from ..checkpoint import Memory
from ..config import Config
from ..networks import ActorNetwork, AfterstateActor, has_bf16, stored_actor
from ..ranks import Ranks
from ..rollout import GREEDY, HOST, POOL, Backend, Labels, Rollout
from ..run_folder import RunFolder
from . import Algorithm, Diverged

LAST_LEARNING_RATE = 0.1  # share that is left at the end
OPPONENTS_SHARE = 0.5  # how often one of the pool's opponents is drawn where there are snapshots as well


class SelfPlay(Algorithm):
    """Networks, the tables that their actor plays at, and Adam; subclasses add a loss.

    Attributes:
        networks: all that the run resumes from, by name; actor: the learner.
        rollout: the tables, and the last steps at them.
        stage: of the settings that the tables are in.
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
            networks: to train; `actor` plays.
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
        self.optimizer = torch.optim.Adam(self.parameters, lr=config.learning_rate, eps=1e-5, fused=True)
        if config.warm_start:
            self._warm_start(config.warm_start)
        self.begin_stage(config.stage(0))

    def begin_stage(self, number: int, *more: int) -> None:
        """Deal the tables of a stage; numbers in `more` give other deals than those that it began with."""
        seed, options = [self.config.seed, 1, self.ranks.rank, number, *more], self.config.options_of_stage(number)
        self.rollout = Rollout(self.game, self.config, options, seed, self.backend, self.label)
        self.stage = number

    # An iteration

    def play(self, progress: float) -> None:
        """Play T steps at the tables."""
        if self.config.stage(progress) != self.stage:
            self.begin_stage(self.config.stage(progress))
        self.pool.offer(self.actor, progress)
        self.rollout.collect(self.actor, self.pool.draw())
        self.updates += 1

    def minibatches(self, rows: torch.Tensor) -> Iterator[torch.Tensor]:
        """Yield numbers of decisions, rows [n], in minibatches of random order, `update_epochs` times.

        Each process has as many minibatches as the others, of their own decisions.
        """
        number = self.ranks.sum(len(rows))[0] / self.ranks.count
        for _ in range(self.config.update_epochs):
            yield from self._shuffled(rows).tensor_split(max(1, round(number / self.config.minibatch_size)))

    def _shuffled(self, rows: torch.Tensor) -> torch.Tensor:
        if not self.backend.dense:
            return torch.from_numpy(self.rng.permutation(rows.numpy()))
        generator = torch.Generator(self.device).manual_seed(int(self.rng.integers(1 << 63)))  # nothing waits
        return rows[torch.randperm(len(rows), generator=generator, device=self.device)]

    def set_learning_rate(self, progress: float) -> float:
        """Set and return the learning rate at that share of the run."""
        rate = self.config.learning_rate * (1 + (LAST_LEARNING_RATE - 1) * progress)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

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
        arrays = checkpoint.under("optimizer", checkpoint.of_optimizer(self.optimizer))
        for name, network in self.networks.items():
            arrays |= checkpoint.under(name, checkpoint.of_module(network))
        for i, snapshot in enumerate(self.pool.snapshots):
            arrays |= checkpoint.under(f"pool{i}", {name: tensor.cpu().numpy() for name, tensor in snapshot.items()})
        facts = {"stage": self.stage, "updates": self.updates, "pool_snapshots": len(self.pool.snapshots)}
        return arrays, facts

    def own_memory(self) -> Memory:
        arrays, facts = self.rollout.memory()
        return arrays, facts | {"pool": self.pool.rng.bit_generator.state, "learner": self.rng.bit_generator.state}

    def restore(self, memory: Memory, own: Memory | None) -> None:
        arrays, facts = memory
        limits = {"stage": len(self.config.stages), "pool_snapshots": self.config.pool_size, "updates": 1 << 62}
        for name, most in limits.items():
            if type(facts.get(name)) is not int or not 0 <= facts[name] <= most:
                raise ValueError(f"{name}: expected a number from 0 to {most}, got {facts.get(name)!r}")
        self._take_networks(arrays, list(self.networks))
        like = checkpoint.of_module(self.actor)
        pool = [checkpoint.part_under(f"pool{i}", arrays) for i in range(facts["pool_snapshots"])]
        self.pool.snapshots = [
            checkpoint.tensors(checkpoint.check_arrays(snapshot, like, f"pool{i}")) for i, snapshot in enumerate(pool)
        ]
        self.updates = facts["updates"]
        if own is None:  # what the processes remember of tables and streams fits no other number of them
            self.begin_stage(facts["stage"], self.updates)
            return
        self.begin_stage(facts["stage"])
        self.rollout.restore(own)
        checkpoint.into_stream(self.pool.rng, own[1], "pool")
        checkpoint.into_stream(self.rng, own[1], "learner")

    def _take_networks(self, arrays: checkpoint.Arrays, names: list[str]) -> None:
        """Set these networks and Adam as they are in a checkpoint. Raises ValueError where they don't fit."""
        for name in names:
            checkpoint.into_module(self.networks[name], checkpoint.part_under(name, arrays), name)
        checkpoint.into_optimizer(self.optimizer, checkpoint.part_under("optimizer", arrays))

    def _warm_start(self, name: str) -> None:
        """Begin with the networks of a run, or the actor of an opponent. Raises ValueError where they don't fit."""
        try:
            folder = folder_of(name)
            path = RunFolder(folder).checkpoint if folder else None
            if path and path.is_file():
                arrays = checkpoint.part_under("algorithm", checkpoint.read_checkpoint(path)[0])
                names = [network for network in self.networks if checkpoint.part_under(network, arrays)]
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

    def stored(self) -> TrainedPolicy:
        policy = self.actor.stored(self.game)
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
            config: size and shares.
            seed: of the draws.
            opponents: in the pool from the beginning.
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
            if not isinstance(policy, TrainedPolicy):
                raise ValueError("expected a trained opponent")
            opponent = stored_actor(policy)
            if opponent.reads_moves and actor.reads_moves and opponent.lookahead != actor.lookahead:
                raise ValueError("it and the learner are networks of the kinds afterstates and lookahead")
        except ValueError as error:
            raise ValueError(f"pool_opponents: {name!r}: {error}") from None
        opponents.append(opponent)
    return opponents


class Stopwatch:
    """The seconds of an iteration's parts, as the log has them; a GPU may still work for the part before."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    def lap(self, part: str) -> None:
        """Count the time that no part has yet as that of this one."""
        self.seconds[f"seconds_{part}"] = time.perf_counter() - self._start - fsum(self.seconds.values())


class Tally:
    """Sums of figures over the minibatches of an update, kept on the device: nothing waits for them."""

    def __init__(self, owner: SelfPlay) -> None:
        fields = owner.action_fields
        self._names = [field.name for field in fields]
        number_of = np.repeat(np.arange(len(fields)), [field.size for field in fields])
        self._is_of_field = torch.from_numpy(np.eye(len(fields))[number_of]).to(owner.device)  # [A, F]
        self._sums: dict[str, list[torch.Tensor]] = {}
        self._by_field = torch.zeros((2, len(fields)), dtype=torch.float64, device=owner.device)

    def add(self, **figures: torch.Tensor) -> None:
        for name, figure in figures.items():
            self._sums.setdefault(name, []).append(figure.detach())

    def add_entropy(self, actions: torch.Tensor, shares: torch.Tensor) -> None:
        """Add the entropies of decisions, also by the range of actions that each action is of."""
        shares = shares.detach()
        self.add(entropy=shares.mean())
        shares = shares.double()
        # A product: adding to a few sums by number, a GPU's threads would wait for each other.
        self._by_field += torch.stack([shares, torch.ones_like(shares)]) @ self._is_of_field.index_select(0, actions)

    def means(self) -> dict[str, float]:
        means = {name: float(torch.stack(figures).double().mean()) for name, figures in self._sums.items()}
        sums, numbers = self._by_field.cpu().numpy()
        return means | {f"entropy_{self._names[i]}": float(sums[i] / numbers[i]) for i in np.flatnonzero(numbers)}


def check_losses(losses: list[tuple[torch.Tensor, torch.Tensor]], **tensors: torch.Tensor) -> None:
    """Raise Diverged for a loss that is not finite, with those rows of the tensors that it is of."""
    for loss, rows in losses:
        if not torch.isfinite(loss):
            raise Diverged({name: tensor[rows].cpu().numpy() for name, tensor in tensors.items()})
