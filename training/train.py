"""`python -m training.train --config configs/quickstart.toml [key=value …]`, installed: `python -m card_envs train`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table as Sheet

from card_envs.system.console import silence
from card_envs.system.files import error_text
from card_envs.system.processes import ENDING, cores, end_with_parent, handled

from . import launch
from .command import command, compiling, complain, console, say
from .config import Config, load_config
from .launch import LOST
from .run_folder import RunFolder

if TYPE_CHECKING:
    from .run import Run

CTRL_C = 130  # exit code: what shells expect after SIGINT


def main(
    config: Annotated[Path, typer.Option(help="a TOML file of what differs from the defaults, or a name")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="settings, last")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on from the checkpoint of the run of this name")] = False,
    processes: Annotated[
        int, typer.Option(help="divide tables and minibatches among that many, one per core; 0: all cores")
    ] = 1,
    shared: Annotated[bool, typer.Option(hidden=True, help="under torchrun: as --processes divides a run")] = False,
) -> int:
    """Train a policy by self-play, measure it, and save it as an opponent. Ctrl-C saves and ends.

    Under `torchrun --nproc-per-node=K -m training.train ...` K processes train one policy together, each with all of
    the tables and minibatches of the settings.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torch's agent has started it, here or under torchrun
        end_with_parent()
    settings = load_config(config, overrides)
    if processes == 1 or "RANK" in os.environ:
        return train(settings, resume, int(os.environ.get("WORLD_SIZE", "1")) if shared else 1)
    number = launch.processes_for(settings, processes)
    say(f"training in {number} of {cores()} cores")
    if number == 1:
        return train(settings, resume)
    rest = ["--shared", *(["--resume"] if resume else []), *(overrides or [])]
    return launch.launch(["--config", str(config), *rest], number)


def train(config: Config, resume: bool, shared_by: int = 1) -> int:
    """Train until the budget is spent or Ctrl-C; return the exit code.

    Args:
        config: the settings as they were given.
        resume: go on from the run's checkpoint.
        shared_by: number of processes that tables and minibatches are divided among.

    Raises:
        ValueError, OSError: the run can't begin, or not go on; nothing was touched.
    """
    folder = RunFolder(config.runs / config.name)
    with folder.lock() if is_first() else nullcontext():
        run = begin_run(config, resume, shared_by, folder)
        try:
            return learn_to_end(run, folder)
        except OSError as error:  # a full disk, above all: complete files stay as they are
            return fail(folder, f"{folder.path}: {error_text(error)}")
        finally:
            run.ranks.close()


def begin_run(config: Config, resume: bool, shared_by: int, folder: RunFolder) -> Run:
    """Begin or resume the run in this process."""
    with compiling() if is_first() else nullcontext():
        from .run import Run  # torch takes seconds to import: not before the settings are right

        try:
            run = Run(config, shared_by)
        except (MemoryError, RuntimeError) as error:  # torch's is a RuntimeError
            if "memory" not in str(error) and "allocate" not in str(error):
                raise
            sizes = f"num_envs = {config.num_envs}, num_steps = {config.num_steps}, hidden = {config.hidden}"
            raise ValueError(f"{sizes}: expected less; there is not enough memory: {error}") from None
        changed = run.load_checkpoint(folder.checkpoint) if resume else ""
        if run.ranks.is_first:
            aside = folder.begin(config, run.algorithm.bytes_on_disk(), resume)
            if aside:
                say(f"{folder.path} was there: moved to {aside}")
            if resume:
                say(f"resuming {folder.path} after {run.decisions:,} decisions" + (changed and f"; {changed}"))
    return run


def learn_to_end(run: Run, folder: RunFolder) -> int:
    """Train to the end, save and measure; return the exit code."""
    from .algorithms import Diverged
    from .ranks import RankLost
    from .watcher import Watcher

    try:
        display = Watcher(folder, run.decisions) if run.ranks.is_first else nullcontext()
        with graceful_interrupt(run.ranks.is_first) as stop, display as watcher:
            ended = run.learn(folder, watcher, stop)
    except Diverged as diverged:
        return fail(folder, f"{diverged}; its decisions are in {folder.write_bad_batch(diverged.arrays)}")
    except RankLost as lost:
        return fail(folder, str(lost)) if run.ranks.is_first else LOST
    except KeyboardInterrupt:
        return fail(folder, "stopped in the middle of an update", CTRL_C)
    run.save_checkpoint(folder.checkpoint)
    if not run.ranks.is_first:
        return 0
    opponent = folder.opponent
    run.save(opponent)
    if not ended:
        say(f"stopped after {run.decisions:,} decisions; saved to {opponent}; --resume goes on")
        return CTRL_C
    try:
        with console.status("measuring strength"):
            run.finish()
            run.save(opponent)
            strength = run.final_strength(opponent)
    except KeyboardInterrupt:
        say(f"strength not measured; saved to {opponent}")
        return CTRL_C
    run.save(opponent, strength)
    print_strength(run, strength, opponent)
    return 0


def is_first() -> bool:
    """Return whether this is the process of a run that writes and talks."""
    return os.environ.get("RANK", "0") == "0"


def fail(folder: RunFolder, why: str, code: int = LOST) -> int:
    """Say why a run ended and where it can go on; return the exit code."""
    complain(f"{why}; {folder.next_step()}")
    return code


@contextmanager
def graceful_interrupt(speaks: bool) -> Iterator[Callable[[], bool]]:
    """Let the current update end after Ctrl-C, SIGTERM, or a hangup; a second Ctrl-C ends at once.

    Gives a function that returns whether the user has asked to stop.
    """
    signals: list[int] = []

    def on_signal(number: int, frame: Any) -> None:
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if number not in (signal.SIGINT, signal.SIGTERM):
            silence()  # a hangup: the terminal is gone
        if speaks and not signals:
            console.print("stopping after this update; Ctrl-C again: at once")
        signals.append(number)

    with handled(on_signal, "SIGINT", *ENDING):
        yield lambda: bool(signals)


def print_strength(run: Run, strength: list[dict[str, Any]], opponent: Path) -> None:
    """Print the table that ends a run, and how to use the opponent."""
    from card_envs.opponents.names import name_of_folder

    deals = strength[0]["deals_per_episode"]
    sheet = Sheet(
        title=f"{run.config.name}: {run.decisions:,} decisions in {run.seconds:.0f} s; "
        f"{strength[0]['pairs']} mirrored pairs of "
        + ("deals" if deals == 1 else f"matches of {deals} deals")
        + (", moves drawn from its probabilities" if run.algorithm.stored_policy().sampled else ", its likeliest moves")
    )
    won = "deals won" if deals == 1 else "matches won"
    for column in ("against", won, "95 % interval", "points a deal", "95 % interval"):
        sheet.add_column(column, justify="left" if column == "against" else "right")
    for result in strength:
        share, margin = result["win_share"], result["margin_per_deal"]
        sheet.add_row(
            result["against"],
            f"{share['mean']:.3f}",
            f"{share['low']:.3f} to {share['high']:.3f}",
            f"{margin['mean']:+z.3g}",
            "no interval" if margin["low"] is None else f"{margin['low']:+z.3g} to {margin['high']:+z.3g}",
        )
    console.print(sheet)
    name = name_of_folder(opponent)
    say(f'card_envs.load_opponent("{name}")')
    say(f"python -m card_envs play {run.game.name} --opponents {name}")


app = command(main)

if __name__ == "__main__":
    try:
        app()
    except SystemExit as end:
        if "RANK" in os.environ:
            launch.leave(int(end.code or 0))
        raise
