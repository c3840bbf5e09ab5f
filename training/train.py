"""`python -m training.train --config configs/quickstart.toml [key=value …]`"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Sheet

from card_envs.files import in_words
from training import launch, run_folder
from training.command import command, complain, console, say
from training.config import Config, load_config

if TYPE_CHECKING:
    from training.trainer import Trainer

ANCHORS = ("trivial", "greedy")
CTRL_C, LOST = 130, 3  # exit codes: what shells expect after SIGINT; the run failed, its checkpoint is good


def main(
    config: Annotated[Path, typer.Option(help="a TOML file of what differs from the defaults, or a name")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="settings, last")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on from the checkpoint of the run of this name")] = False,
    processes: Annotated[
        int,
        typer.Option(help="share tables and minibatches among so many, one a core; 0: all cores"),
    ] = 1,
    shared: Annotated[bool, typer.Option(hidden=True, help="under torchrun: as --processes divides a run")] = False,
) -> int:
    """Train a policy by self-play, measure it, and save it as an opponent. Ctrl-C saves and ends.

    Under `torchrun --nproc-per-node=K -m training.train ...` K processes train one policy together, each with all of
    the tables and minibatches of the settings.
    """
    settings = load_config(config, overrides)
    if processes == 1 or "RANK" in os.environ:
        return train(settings, resume, int(os.environ.get("WORLD_SIZE", "1")) if shared else 1)
    number = launch.processes_for(settings, processes)
    say(f"training in {number} of {launch.cores()} cores")
    if number == 1:
        return train(settings, resume)
    rest = ["--shared", *(["--resume"] if resume else []), *(overrides or [])]
    return launch.launch(["--config", str(config), *rest], number)


def train(config: Config, resume: bool, shared_by: int = 1) -> int:
    """Train until the budget is spent or Ctrl-C; returns the exit code.

    Args:
        config: the settings as they were given.
        resume: go on from the run's checkpoint.
        shared_by: number of processes that tables and minibatches are divided among.

    Raises:
        ValueError, OSError: the run can't begin, or not go on; nothing was touched.
    """
    if os.environ.get("RANK", "0") != "0":
        return begin(config, resume, shared_by)
    run_folder.check_writable(config.runs, 50_000_000)
    with run_folder.locked(config.runs, config.name):
        return begin(config, resume, shared_by)


def begin(config: Config, resume: bool, shared_by: int) -> int:
    """The same, for the only process that writes or one of those that help it."""
    folder = config.runs / config.name
    with console.status("compiling and dealing"):
        from training.trainer import Trainer  # torch takes seconds to import: not before the settings are right

        trainer = Trainer(config, shared_by=shared_by)
        is_first = trainer.ranks.is_first
        if is_first:
            run_folder.check_writable(config.runs, trainer.bytes_on_disk())
            if not resume:
                folder, aside = run_folder.prepare(config)
                if aside:
                    say(f"{folder} was there: moved to {aside}")
        if resume:
            changed = trainer.load_checkpoint(folder / run_folder.CHECKPOINT)
            if is_first:
                say(f"resuming {folder} after {trainer.decisions:,} decisions" + (changed and f"; {changed}"))
    try:
        return Run(trainer, folder).go()
    finally:
        trainer.ranks.close()


class Run:
    """A trainer with its folder and its display; every rank has one, rank 0 writes and prints."""

    def __init__(self, trainer: Trainer, folder: Path) -> None:
        self.trainer = trainer
        self.folder = folder
        self.is_first = trainer.ranks.is_first

    def go(self) -> int:
        """From here to the end; returns the exit code."""
        try:
            return self._go()
        except OSError as error:  # a disk that is full, above all: what was written before is whole
            return self.fail(f"{self.folder}: {in_words(error)}")

    def _go(self) -> int:
        from training.ppo import Diverged
        from training.ranks import RankLost

        trainer, opponent = self.trainer, self.folder / run_folder.OPPONENT
        stopped = False
        try:
            with ctrl_c_as_a_wish(self.is_first) as wished:
                stopped = self.learn(wished)
        except Diverged as diverged:
            bad = self.folder / run_folder.BAD_BATCH
            trainer.save_bad_batch(bad, diverged)
            return self.fail(f"{diverged}; its decisions are in {bad}")
        except RankLost as lost:
            return self.fail(str(lost)) if self.is_first else LOST
        except KeyboardInterrupt:
            return self.fail("stopped in the middle of an update", CTRL_C)
        trainer.save_checkpoint(self.folder / run_folder.CHECKPOINT)
        if not self.is_first:
            return 0
        trainer.save(opponent)
        if stopped:
            say(f"stopped after {trainer.decisions:,} decisions; saved to {opponent}; --resume goes on")
            return CTRL_C
        try:
            with console.status("measuring strength"):
                strength = [trainer.final_strength(opponent, anchor) for anchor in ANCHORS]
        except KeyboardInterrupt:
            say(f"strength not measured; saved to {opponent}")
            return CTRL_C
        trainer.save(opponent, strength)
        print_strength(trainer, strength)
        from card_envs.opponents.names import name_of_folder

        name = name_of_folder(opponent)
        say(f'card_envs.load_opponent("{name}")')
        say(f"python -m card_envs play {trainer.config.game} --opponents {name}")
        return 0

    def fail(self, why: str, code: int = LOST) -> int:
        """Say why a run ended and where it can go on."""
        checkpoint = self.folder / run_folder.CHECKPOINT
        rest = f"--resume goes on from {checkpoint}" if checkpoint.exists() else "there was no checkpoint yet"
        complain(f"{why}; {rest}")
        return code

    def learn(self, wished: Wish) -> bool:
        """The loop of play and learning; returns whether it was stopped before the budget was spent."""
        trainer, config, ranks = self.trainer, self.trainer.config, self.trainer.ranks
        checkpoint = self.folder / run_folder.CHECKPOINT
        with self.watcher() as watcher:
            saved = measured = time.monotonic()
            while ranks.from_first(trainer.progress) < 1:
                if ranks.sum(wished.to_stop)[0]:
                    return True
                entry: dict[str, Any] = trainer.iterate()
                now = time.monotonic()
                if ranks.from_first(now - measured > 60 * config.strength_minutes):
                    if self.is_first:
                        results = {anchor: trainer.quick_strength(anchor) for anchor in ANCHORS}
                        entry |= {f"win_share_{name}": result.win_share.mean for name, result in results.items()}
                        entry |= {f"margin_{name}": result.margin_per_episode.mean for name, result in results.items()}
                    measured = time.monotonic()
                if watcher is not None:
                    watcher.show(entry, trainer.progress)
                if ranks.from_first(now - saved > 60 * config.save_minutes):
                    trainer.save_checkpoint(checkpoint)
                    if self.is_first:
                        trainer.save(self.folder / run_folder.OPPONENT)
                    saved = now
        return False

    @contextmanager
    def watcher(self) -> Iterator[Any]:
        """The log, TensorBoard and the live display, on rank 0."""
        if not self.is_first:
            yield None
            return
        from training.watcher import Watcher

        run_folder.write_settings(self.trainer.settings, self.folder)
        with Watcher(self.trainer.settings, self.folder, self.trainer.decisions, console) as watcher:
            yield watcher


class Wish:
    """Whether the user has asked to stop."""

    to_stop = False


@contextmanager
def ctrl_c_as_a_wish(speaks: bool) -> Iterator[Wish]:
    """Let the update end that has begun: after Ctrl-C, SIGTERM, or a lost terminal; a second Ctrl-C ends at once."""
    wish = Wish()

    def on_signal(number: int, frame: Any) -> None:
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if speaks and not wish.to_stop:
            console.print("stopping after this update; Ctrl-C again: at once")
        wish.to_stop = True

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not so under nohup
        numbers.append(signal.SIGHUP)  # the terminal is gone
    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_strength(trainer: Trainer, strength: list[dict[str, Any]]) -> None:
    """The table that ends a run."""
    sheet = Sheet(
        title=f"{trainer.config.name}: {trainer.decisions:,} decisions in {trainer.seconds:.0f} s; "
        f"{strength[0]['pairs']} mirrored pairs, "
        + ("moves drawn from its probabilities" if trainer.config.sampled else "its likeliest moves")
    )
    for column in ("against", "win share", "95 % interval", "margin an episode", "95 % interval"):
        sheet.add_column(column, justify="left" if column == "against" else "right")
    for result in strength:
        share, margin = result["win_share"], result["margin_per_episode"]
        sheet.add_row(
            result["against"],
            f"{share['mean']:.3f}",
            f"{share['low']:.3f} to {share['high']:.3f}",
            f"{margin['mean']:+.3g}",
            "no interval" if margin["low"] is None else f"{margin['low']:+.3g} to {margin['high']:+.3g}",
        )
    console.print(sheet)


app = command(main)

if __name__ == "__main__":
    try:
        app()
    except SystemExit as end:
        if "RANK" in os.environ:
            launch.leave(int(end.code or 0))
        raise
