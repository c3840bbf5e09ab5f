"""A run of training with any algorithm: clock, log, checkpoints, exact resume, strength, the opponent's folder."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from card_envs.compare.pairs import PairResult, play_pairs
from card_envs.engine.cost import per_second, work_time
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.folder import golden_decisions, save_network
from card_envs.opponents.policy import PolicyLike

from . import checkpoint
from .algorithms import create
from .config import Config
from .ranks import Ranks
from .run_folder import RunFolder

if TYPE_CHECKING:
    from .rollout import Backend
    from .watcher import Watcher

ANCHORS = ("trivial", "greedy")
# Deals of the quick measurements and of the last one, so that the reported figures are not those that were watched.
QUICK_SEED, FINAL_SEED = 1, 2
# A run is measured at its start and its end, and on the way after a share of the time so far, within these seconds;
# measuring takes at most its share of the time. So that every run has a curve, it is measured this often at least,
# unless that would take more than the larger share.
LEAST_SECONDS, MOST_SECONDS, ELAPSED_SHARE, MEASURING_SHARE = 15.0, 120.0, 0.4, 0.05
MEASUREMENTS, MOST_MEASURING_SHARE = 8, 0.5
# Settings that a resumed run may change.
FREE_SETTINGS = {
    "minutes", "decisions", "save_minutes", "quick_pairs", "final_pairs", "sampled", "runs", "name", "device", "graphs",
}  # fmt: skip


class Run:
    """An algorithm with its clock. Every process of a run has one; the first one writes and measures.

    Attributes:
        config: the settings as they were given.
        num_envs: number of tables of this process.
        decisions: number learned from so far, by all processes.
        seconds: time spent training so far.
    """

    def __init__(self, config: Config, shared_by: int = 1, backend: Backend | None = None) -> None:
        """Begin a run.

        Args:
            config: its settings.
            shared_by: number of processes that tables and minibatches are divided among.
            backend: the backend of the tables; None: that of the settings.

        Raises:
            ValueError: the settings do not fit this machine, or what they name.
        """
        self.config = config
        self.ranks = Ranks(config.device)
        self.game = get_game(config.game)
        share = config.shared_by(shared_by)
        self.num_envs = share.num_envs
        self.algorithm = create(share, self.ranks, backend)
        self.decisions = 0
        self.seconds = 0.0
        self.finish_facts: dict[str, Any] = {}

    # The clock

    @property
    def progress(self) -> float:
        """Return the share of the run that is done, by the budget that ends first."""
        config = self.config
        by_time = self.seconds / (60 * config.minutes) if config.minutes else 0.0
        return min(1.0, max(by_time, self.decisions / config.decisions if config.decisions else 0.0))

    def iterate(self) -> dict[str, Any]:
        """Play and learn for a while, and return what to log.

        Raises:
            Diverged, RankLost: this iteration is lost; the last checkpoint is good.
        """
        start = time.perf_counter()
        figures = self.algorithm.iterate(self.progress)
        learned = int(self.ranks.sum(figures.pop("learned"))[0])
        seconds = self.ranks.from_first(time.perf_counter() - start)
        self.decisions += learned
        self.seconds += seconds
        return {
            "decisions": self.decisions,
            "seconds": round(self.seconds, 3),
            "decisions_per_second": per_second(learned, seconds),
            **figures,
        }

    def learn(self, folder: RunFolder, watcher: Watcher | None, stop: Callable[[], bool]) -> bool:
        """Train until the budget is spent, with checkpoints and measurements on the way.

        Args:
            folder: the run's folder.
            watcher: shows each entry of the log; None in all processes but the first.
            stop: returns true to end the run after an update.

        Returns:
            Whether it has reached its end.
        """
        saved, measured, took = time.monotonic(), self.seconds, 0.0
        if watcher is not None and not self.decisions:
            begun = work_time()
            note = {"note": self.config.start} if self.config.start else {}
            watcher.show({"decisions": 0, "seconds": 0.0, **self.quick_strength(), **note}, 0.0)
            took = work_time() - begun
        while self.ranks.from_first(self.progress) < 1:
            if self.ranks.sum(stop())[0]:
                return False
            entry = self.iterate()
            is_due = (
                self.seconds - measured > measuring_interval(self.seconds, self.progress, took) or self.progress >= 1
            )
            if self.ranks.from_first(is_due):
                begun = work_time()
                if self.ranks.is_first:
                    entry |= self.quick_strength()
                measured, took = self.seconds, work_time() - begun
            if watcher is not None:
                watcher.show(entry, self.progress, self.seconds_of_measuring(took))
            now = time.monotonic()
            if self.ranks.from_first(now - saved > 60 * self.config.save_minutes):
                self.save_checkpoint(folder.checkpoint)
                if self.ranks.is_first:
                    self.save(folder.opponent)
                saved = now
        return True

    # Checkpoints

    def save_checkpoint(self, path: Path) -> None:
        """Write all that the run resumes from; every process must call it, the first one writes."""
        gathered = self.ranks.gather(self.algorithm.rank_memory())
        if not self.ranks.is_first:
            return
        arrays, facts = self.algorithm.memory()
        arrays = checkpoint.with_prefix("algorithm", arrays)
        for rank, (rank_arrays, _) in enumerate(gathered):
            arrays |= checkpoint.with_prefix(f"rank{rank}", rank_arrays)
        content = {
            "decisions": self.decisions,
            "seconds": self.seconds,
            "settings": fixed_settings(self.config),
            "num_envs": self.num_envs,
            "algorithm": facts,
            "ranks": [rank_facts for _, rank_facts in gathered],
        }
        checkpoint.write(path, arrays, content)

    def load_checkpoint(self, path: Path) -> str:
        """Go on from a checkpoint, with as many processes as it had exactly as if the run had never stopped.

        Returns:
            Why the run is no longer bit-exact; empty where it is.

        Raises:
            ValueError: it is missing or broken, or belongs to other settings.
        """
        arrays, facts = checkpoint.read_checkpoint(path)
        settings, before = fixed_settings(self.config), self._defaults() | facts["settings"]
        keys = sorted({*settings, *before} - FREE_SETTINGS)
        changed = [key for key in keys if settings.get(key) != before.get(key)]
        if changed:
            was = ", ".join(f"{key} = {before.get(key)!r}" for key in changed)
            raise ValueError(f"{path}: the run had {was}; only {', '.join(sorted(FREE_SETTINGS))} may change")
        had, has = (len(facts["ranks"]), facts["num_envs"]), (self.ranks.count, self.num_envs)
        rank_memory = None
        if had == has:
            rank_memory = checkpoint.without_prefix(f"rank{self.ranks.rank}", arrays), facts["ranks"][self.ranks.rank]
        try:
            self.algorithm.restore((checkpoint.without_prefix("algorithm", arrays), facts["algorithm"]), rank_memory)
        except ValueError as error:
            raise ValueError(f"{path}: not a checkpoint of such a run: {error}; {checkpoint.way_out(path)}") from None
        self.decisions, self.seconds = facts["decisions"], facts["seconds"]
        if rank_memory is not None:
            return ""
        then, now = (f"{count} x {envs} tables" for count, envs in (had, has))
        return f"it had {then} in as many processes, now {now}: new deals, so it is no longer bit-exact"

    def _defaults(self) -> dict[str, Any]:
        """Return the settings of a run that has none of its own; those that a version adds do what it did without."""
        return fixed_settings(Config(game=self.config.game, algorithm=self.config.algorithm, minutes=1))

    # What was learned

    def save(self, folder: Path, strength: list[dict[str, Any]] | None = None) -> None:
        """Write what was learned as an opponent that `load_opponent` takes."""
        settings = self.config.as_dict("json")
        settings.pop("runs")
        training = {
            "algorithm": settings["algorithm"],
            "processes": self.ranks.count,
            "decisions": self.decisions,
            "seconds": round(self.seconds, 1),
            "config": settings,
            **self.finish_facts,
        }
        golden = golden_decisions(self.game, self.config.options)
        save_network(folder, self.algorithm.stored_policy(), golden, training=training, strength=strength or [])

    def finish(self) -> None:
        """Take the algorithm's last step, once the budget is spent."""
        self.finish_facts = self.algorithm.finish()

    def strength(self, opponent: PolicyLike, pairs: int, seed: int = FINAL_SEED) -> PairResult:
        """Play mirrored deals against an opponent with what was learned so far."""
        return play_pairs(self.game, self.algorithm.policy(), opponent, pairs, seed)

    def seconds_of_measuring(self, took: float) -> float:
        """Estimate how long the rest of the run measures, if the last time took so many seconds; 0: not known."""
        if not self.progress:
            return 0.0
        left = self.seconds * (1 - self.progress) / self.progress
        often = left / measuring_interval(self.seconds, self.progress, took)
        return took * (often + self.config.final_pairs / self.config.quick_pairs)

    def quick_strength(self) -> dict[str, float]:
        """Measure roughly against each anchor, for the log: figures with the bounds of their intervals."""
        figures: dict[str, float] = {}
        for anchor in ANCHORS:
            result = self.strength(load_opponent(anchor, self.game), self.config.quick_pairs, QUICK_SEED)
            for kind, figure in (("win_share", result.win_share), ("margin", result.margin_per_deal)):
                name = f"{kind}_{anchor}"
                figures |= {name: figure.mean, f"{name}_low": figure.low, f"{name}_high": figure.high}
        return figures

    def final_strength(self, folder: Path) -> list[dict[str, Any]]:
        """Measure the opponent in this folder against each anchor over the game's default episode."""
        policy, strength = load_opponent(folder, self.game), []
        for anchor in ANCHORS:
            other = load_opponent(anchor, self.game)
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # trained for parts of the episode
                result = play_pairs(self.game, policy, other, self.config.final_pairs, FINAL_SEED)
            strength.append({"against": anchor, "seed": FINAL_SEED, **result.as_dict()})
        return strength


def fixed_settings(config: Config) -> dict[str, Any]:
    """Return the settings that a resumed run must not change."""
    return {key: value for key, value in config.as_dict("json").items() if key not in FREE_SETTINGS}


def measuring_interval(seconds: float, progress: float, took: float) -> float:
    """Return the seconds of training between quick measurements.

    Args:
        seconds: time spent training so far.
        progress: the share of the run that is done; 0 as long as nothing was learned, and the run has no other budget.
        took: processor seconds of the last measurement, without compiling.
    """
    calm = min(max(LEAST_SECONDS, ELAPSED_SHARE * seconds), MOST_SECONDS)
    often = max(seconds / progress / MEASUREMENTS, took / MOST_MEASURING_SHARE) if progress else math.inf
    return min(max(calm, took / MEASURING_SHARE), often)
