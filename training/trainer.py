"""One run of training: everything that lives between its first and its last decision."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.compare.pairs import PairResult, play_pairs
from card_envs.files import replace_file
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.names import Folder, parse
from card_envs.opponents.networks.folder import NUM_GOLDEN_ROWS, save_network
from card_envs.opponents.networks.policies import TrainedPolicy
from card_envs.opponents.policy import Policy, decisions_at
from training import checkpoint
from training.config import Config
from training.gae import advantages
from training.launch import share
from training.leads import kinds_of, spreads
from training.league import League, rivals_of
from training.network import HEAD_GAIN, AfterstateActor, Network, Rows, evaluate_in_parts, has_bf16, new_actor
from training.ppo import Batch, Diverged, Learner, LossWeights
from training.ranks import Ranks
from training.rollout import PAST, SCRIPTED, Rollout
from training.run_folder import CHECKPOINT
from training.tensors import TensorRollout, device_of

# Deals of the quick measurements and of the last one: what is watched during training is not what is reported.
QUICK_SEED, FINAL_SEED = 1, 2
MOST_SPREADS = 8.0  # leads of more standard deviations count as so many
LAST_LR = 0.1  # share of the learning rate that is left at the end
# Settings that a resumed run may change: when it ends, how it is watched.
FREE_SETTINGS = {
    "minutes",
    "decisions",
    "save_minutes",
    "strength_minutes",
    "quick_pairs",
    "final_pairs",
    "sampled",
    "runs",
    "name",
    "device",
}


class Trainer:
    """The networks, the tables they play at, and the clock.

    Attributes:
        settings: of the run as they were given.
        config: those of this process, with its share of tables and minibatches.
        decisions: learned from so far, by all ranks.
        seconds: spent training so far.
        last_batch: of the last update; what a run that diverged leaves behind.
    """

    def __init__(
        self,
        config: Config,
        ranks: Ranks | None = None,
        in_tensors: bool | None = None,
        shared_by: int = 1,
    ) -> None:
        """Begin a run.

        Args:
            config: its settings.
            ranks: the processes that share it (default: as torchrun says).
            in_tensors: play and value as on a GPU (default: on a GPU).
            shared_by: number of processes that tables and minibatches are divided among.

        Raises:
            ValueError: there is no such device, or what to begin with or a rival does not fit.
        """
        self.settings, config = config, share(config, shared_by)
        self.device = device_of(config.device)
        self.in_tensors = self.device.type != "cpu" if in_tensors is None else in_tensors
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)  # the same first weights on all ranks
        self.config = config
        self.ranks = ranks or Ranks(self.device)
        self.game = get_game(config.game)
        rules = self.game.rules
        self.actor = new_actor(self.game, config)
        outputs = max(1, config.value_bins)
        self.critic = Network(rules.FULL_FIELDS, config.critic_hidden or config.hidden, outputs, HEAD_GAIN["value"])
        for network in (self.actor, self.critic):
            network.to(self.device)
        self.learner = Learner(self.actor, self.critic, config, rules.ACTION_FIELDS, self.ranks)
        rivals = rivals_of(self.game, config.rivals, self.actor, self.in_tensors)
        seed = [config.seed, 2, self.ranks.rank]
        self.league = League(self.actor, config.past_selves, seed, rivals, config.rivals_share)
        self.league.to(self.device)
        bf16 = has_bf16(self.device) if config.bf16 is None else config.bf16
        for network in (self.actor, self.critic, self.learner.ema_policy, *rivals):
            network.bf16 = bf16
        if config.warm_start:
            self._begin_with(config.warm_start)
        self.decisions = 0
        self.seconds = 0.0
        self.last_batch: Batch | None = None
        self._begin_stage(config.stage(0))

    def _begin_with(self, name: str) -> None:
        """Take over the networks of a run, or the actor from an opponent. Raises ValueError where they don't fit."""
        try:
            player = parse(name).player
            path = player.path / CHECKPOINT if isinstance(player, Folder) else None
            if path and path.is_file():
                arrays, _ = checkpoint.read(path)
                self._take_networks(arrays)
            else:
                first = load_opponent(name, self.game).policy
                if not isinstance(first, TrainedPolicy):
                    raise ValueError("expected the folder of a run, or a trained opponent")
                self.actor.set_weights(first.weights)
                self.learner.ema_policy.load_state_dict(self.actor.state_dict())
            if isinstance(self.actor, AfterstateActor):
                self.actor.check_hint()
        except ValueError as error:
            raise ValueError(f"warm_start = {name!r}: {error}") from None

    def _take_networks(self, arrays: checkpoint.Arrays) -> None:
        """Take over what the networks and Adam are like in a checkpoint. Raises ValueError where they don't fit."""
        for name, module in (("actor", self.actor), ("critic", self.critic), ("ema_policy", self.learner.ema_policy)):
            checkpoint.into_module(module, checkpoint.below(name, arrays), name)
        checkpoint.into_optimizer(self.learner.optimizer, checkpoint.below("optimizer", arrays))

    def _begin_stage(self, number: int, *again: int) -> None:
        """Deal the tables of a stage; numbers in `again` make the deals others than those that it began with."""
        seed = [self.config.seed, 1, self.ranks.rank, number, *again]
        arguments = (self.game, self.config, self.config.options_of_stage(number), seed)
        self.rollout = TensorRollout(*arguments, self.device) if self.in_tensors else Rollout(*arguments)
        self.stage = number

    @property
    def progress(self) -> float:
        """The share of the run that is done, by the budget that ends first."""
        config = self.config
        by_time = self.seconds / (60 * config.minutes) if config.minutes else 0.0
        return min(1.0, max(by_time, self.decisions / config.decisions if config.decisions else 0.0))

    def iterate(self) -> dict[str, float]:
        """Play T steps, learn from them, and return what to log.

        Raises:
            Diverged, RankLost: this iteration is lost; the last checkpoint is good.
        """
        start = time.perf_counter()
        config, progress = self.config, self.progress
        if config.stage(progress) != self.stage:
            self._begin_stage(config.stage(progress))
        rollout = self.rollout
        self.league.offer(self.actor, progress)
        trying = progress < config.leads_until
        if trying:
            assert isinstance(rollout, Rollout)
            rollout.collect(self.actor, self.league.draw(), leads=True)
        else:
            rollout.collect(self.actor, self.league.draw())
        played = time.perf_counter()
        batch = self.last_batch = self._batch(trying)
        valued = time.perf_counter()
        weights = LossWeights(
            lr=config.lr * (1 + (LAST_LR - 1) * progress),
            entropy=config.entropy + (config.entropy_end - config.entropy) * progress,
            imitation=config.imitation * max(0.0, 1 - progress / config.imitation_until),
            critic_alone=progress < config.critic_first,
        )
        figures = self.learner.update(batch, weights)
        updated = time.perf_counter()
        learned = int(self.ranks.sum(len(batch.rows))[0])
        self.decisions += learned
        seconds = self.ranks.from_first(time.perf_counter() - start)
        self.seconds += seconds
        return {
            "decisions": self.decisions,
            "seconds": round(self.seconds, 3),
            "decisions_per_second": learned / seconds,
            **figures,
            **self._calibration(batch),
            "margin_over_past": rollout.margin_over(PAST),
            "margin_over_greedy": rollout.margin_over(SCRIPTED),
            "past_selves": len(self.league.snapshots),
            "stage": self.stage,
            "lr": weights.lr,
            "seconds_playing": played - start,
            "seconds_valuing": valued - played,
            "seconds_updating": updated - valued,
        }

    def _calibration(self, batch: Batch) -> dict[str, float]:
        """How the critic's values agree with what followed (returns by GAE's lambda), in points."""
        scale = self.config.reward_scale
        errors, returns = (torch.as_tensor(of[batch.rows]) for of in (batch.advantages, batch.returns))
        (spread, shared), (_, varied) = torch.stack([returns, returns - errors]).double().cov().tolist()
        return {
            "value_error": float(errors.double().square().mean().sqrt()) / scale,
            "value_slope": shared / varied if varied > 0 else float("nan"),
            "return_spread": spread**0.5 / scale,
        }

    def _values(self, full: Rows, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.learner.values.decode(torch.from_numpy(evaluate_in_parts(self.critic, full, rows))).numpy()

    def _batch(self, trying: bool) -> Batch:
        """The decisions of the last rollout that are learned from, with advantages, returns and what was tried."""
        config, rollout = self.config, self.rollout
        if isinstance(rollout, TensorRollout):
            return rollout.batch(self.critic, self.learner.values)
        full = Rows(_flat(rollout.full), self.critic.scale)
        rows = np.flatnonzero(rollout.learned)
        values = np.zeros(rollout.seat.shape, np.float32)
        values.reshape(-1)[rows] = self._values(full, rows)
        last_full = rollout.last_full()
        last_values = self._values(Rows(last_full, self.critic.scale), np.arange(len(last_full)))
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
            rollout.inputs(),
            full,
            _flat(rollout.seen)[:, self.game.rules.OBS_SIZE :],
            rollout.actions.reshape(-1),
            rollout.log_probabilities.reshape(-1),
            gained.reshape(-1),
            (values + gained).reshape(-1),
            rollout.teacher.reshape(-1),
            rows,
            self._leads(rollout, rows) if trying else None,
        )

    def _leads(self, rollout: Rollout, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """[N, A] the leads of moves in their kind's spread, so that bids and cards count alike."""
        leads, mask = rollout.leads.reshape(-1, rollout.leads.shape[-1]), _flat(rollout.mask)
        own, kinds = rollout.teacher.reshape(-1), kinds_of(self.game)
        spread = spreads(leads[rows], own[rows], mask[rows], kinds)
        return np.clip(leads / spread[kinds[own]][:, None], -MOST_SPREADS, MOST_SPREADS)

    def save_checkpoint(self, path: Path) -> None:
        """Write all that the run goes on from; every rank must call it, rank 0 writes."""
        own_arrays, facts = self.rollout.memory()
        facts |= {"league": self.league.rng.bit_generator.state, "learner": self.learner.rng.bit_generator.state}
        gathered = self.ranks.gather((own_arrays, facts))
        if not self.ranks.is_first:
            return
        arrays = {
            **checkpoint.under("actor", checkpoint.of_module(self.actor)),
            **checkpoint.under("critic", checkpoint.of_module(self.critic)),
            **checkpoint.under("ema_policy", checkpoint.of_module(self.learner.ema_policy)),
            **checkpoint.under("optimizer", checkpoint.of_optimizer(self.learner.optimizer)),
        }
        for i, snapshot in enumerate(self.league.snapshots):
            arrays |= checkpoint.under(f"past{i}", {name: tensor.cpu().numpy() for name, tensor in snapshot.items()})
        for rank, (rank_arrays, _) in enumerate(gathered):
            arrays |= checkpoint.under(f"rank{rank}", rank_arrays)
        whole = {
            "decisions": self.decisions,
            "seconds": self.seconds,
            "stage": self.stage,
            "past_selves": len(self.league.snapshots),
            "ranks": [rank_facts for _, rank_facts in gathered],
            "settings": self.settings.model_dump(mode="json", exclude=FREE_SETTINGS),
            "tables": self.config.tables,
        }
        checkpoint.write(path, arrays, whole)

    def load_checkpoint(self, path: Path) -> str:
        """Go on from a checkpoint, with as many processes as it had exactly as if the run had never stopped.

        Returns:
            Why the run is from here on another one than it would have been; empty where it is the same.

        Raises:
            ValueError: it is missing or broken, or belongs to other settings.
        """
        arrays, facts = checkpoint.read(path)
        settings = self.settings.model_dump(mode="json", exclude=FREE_SETTINGS)
        before = {key: field.default for key, field in Config.model_fields.items()} | facts["settings"]
        changed = [key for key in settings if settings[key] != before[key]]
        if changed:
            was = ", ".join(f"{key} = {before[key]!r}" for key in changed)
            raise ValueError(f"{path}: the run had {was}; only {', '.join(sorted(FREE_SETTINGS))} may change")
        had = len(facts["ranks"]), facts["tables"] or facts["settings"]["tables"]
        has = self.ranks.count, self.config.tables
        try:
            self._go_on_from(arrays, facts, exactly=had == has)
        except ValueError as error:
            raise ValueError(f"{path}: no checkpoint of such a run: {error}; {checkpoint.way_out(path)}") from None
        if had == has:
            return ""
        then, now = (f"{count} x {tables} tables" for count, tables in (had, has))
        return f"it had {then} in as many processes, now {now}: they are dealt again, so it is no longer bit-exact"

    def _go_on_from(self, arrays: checkpoint.Arrays, facts: dict[str, Any], *, exactly: bool) -> None:
        self._take_networks(arrays)
        if facts["past_selves"] > self.league.size:
            raise ValueError(f"past_selves: expected at most {self.league.size}, got {facts['past_selves']}")
        if facts["stage"] > len(self.config.stages):
            raise ValueError(f"stage: expected at most {len(self.config.stages)}, got {facts['stage']}")
        like = checkpoint.of_module(self.actor)
        pasts = (checkpoint.below(f"past{i}", arrays) for i in range(facts["past_selves"]))
        self.league.snapshots = [
            checkpoint.tensors(checkpoint.checked(past, like, f"past{i}")) for i, past in enumerate(pasts)
        ]
        self.decisions, self.seconds = facts["decisions"], facts["seconds"]
        if not exactly:  # what the processes remember of tables and streams fits no other number of them
            self._begin_stage(facts["stage"], self.decisions)
            return
        self._begin_stage(facts["stage"])
        own = facts["ranks"][self.ranks.rank]
        self.rollout.remember(checkpoint.below(f"rank{self.ranks.rank}", arrays), own)
        checkpoint.into_stream(self.league.rng, own, "league")
        checkpoint.into_stream(self.learner.rng, own, "learner")

    def bytes_on_disk(self) -> int:
        """About what the run's folder will need, with three checkpoints at once."""
        actor, critic = (sum(p.numel() for p in network.parameters()) for network in (self.actor, self.critic))
        weights = actor * (self.config.past_selves + 2) + critic + 2 * (actor + critic)
        states = self.config.tables * self.game.rules.STATE.itemsize
        return 3 * (4 * weights + states * self.ranks.count) + 10_000_000

    def save_bad_batch(self, path: Path, diverged: Diverged) -> None:
        """Write the minibatch whose loss was NaN or infinite, to debug it."""
        assert self.last_batch is not None
        batch, rows = self.last_batch, diverged.rows
        arrays = {name: array for name, array in vars(batch).items() if name not in ("inputs", "full", "rows", "leads")}
        arrays |= {"seen": batch.inputs.seen.obs, "full": batch.full.obs}
        arrays = {name: torch.as_tensor(array[rows]).cpu().numpy() for name, array in arrays.items()}
        file = io.BytesIO()
        np.savez_compressed(file, allow_pickle=False, **arrays)
        replace_file(path, file.getvalue())

    def save(self, folder: Path, strength: list[dict[str, Any]] | None = None) -> None:
        """Write the actor as an opponent that `load_opponent` takes."""
        golden = decisions_at(self.game, self.rollout.states(NUM_GOLDEN_ROWS))
        training = {
            "algorithm": "ppo",
            "processes": self.ranks.count,
            "decisions": self.decisions,
            "seconds": round(self.seconds, 1),
            "config": self.settings.model_dump(mode="json", exclude={"runs"}),
        }
        policy = self.actor.stored(self.game)
        policy.sampled = self.config.sampled
        save_network(folder, policy, golden, training=training, strength=strength or [])

    def quick_strength(self, rival: str) -> PairResult:
        """A rough measurement of the network as it is."""
        return self.strength(load_opponent(rival, self.game), self.config.quick_pairs, QUICK_SEED)

    def strength(self, rival: Policy, pairs: int, seed: int = FINAL_SEED) -> PairResult:
        """What the network as it is makes of a rival on mirrored deals."""
        policy = self.actor.policy(self.game)
        policy.sampled = self.config.sampled
        return play_pairs(self.game, policy, rival, pairs, seed)

    def final_strength(self, folder: Path, rival: str) -> dict[str, Any]:
        """What the opponent in this folder, as it was saved, makes of a rival over the game's default episode."""
        pairs = self.config.final_pairs
        result = play_pairs(
            self.game,
            load_opponent(folder, self.game),
            load_opponent(rival, self.game),
            pairs,
            FINAL_SEED,
        )
        return {"against": rival, "seed": FINAL_SEED, **result.as_dict()}


def _flat(buffer: NDArray[np.int8]) -> NDArray[np.int8]:
    return buffer.reshape(-1, buffer.shape[-1])
