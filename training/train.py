"""`python -m training.train --config configs/quickstart.toml [key=value …]`"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table as Sheet

from training.config import Config, as_toml, load_config

if TYPE_CHECKING:
    from training.trainer import Trainer

RIVALS = ("trivial", "greedy")
CTRL_C = 130  # the exit code that shells expect after SIGINT
console = Console()
app = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)


class Stopped(Exception):
    """The user pressed Ctrl-C; raised between steps, where everything is whole."""


@app.command()
def main(
    config: Annotated[Path, typer.Option(help="a TOML file of what differs from the defaults")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="settings, last")] = None,
) -> None:
    """Train a policy by self-play, measure it, and save it as an opponent. Ctrl-C saves and ends."""
    try:
        settings = load_config(config, overrides)
        folder = prepare_folder(settings)
    except (ValueError, OSError) as error:
        console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
    raise typer.Exit(train(settings, folder))


def prepare_folder(config: Config) -> Path:
    """Make the run's folder and write the settings into it; an earlier run of that name is moved aside."""
    folder = config.runs / config.name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        aside = next(p for i in range(1, 10**6) if not (p := folder.with_name(f"{folder.name}.{i}")).exists())
        folder.rename(aside)
        console.print(f"{folder} was there: moved to {aside}", highlight=False)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.resolved.toml").write_text(as_toml(config))
    return folder


def train(config: Config, folder: Path) -> int:
    """Train until the budget is spent or Ctrl-C; returns the exit code."""
    with console.status("compiling and dealing"):
        from training.trainer import Trainer  # torch takes seconds to import: not before the settings are right

        trainer = Trainer(config)
    opponent = folder / "opponent"
    try:
        with stopping_between_steps() as check, progress_display() as display, (folder / "log.jsonl").open("w") as log:
            run(trainer, opponent, check, display, log)
        trainer.save(opponent)
        strength = measure(trainer, opponent)
    except (Stopped, KeyboardInterrupt):
        trainer.save(opponent)
        console.print(f"stopped after {trainer.decisions:,} decisions; saved to {opponent}", highlight=False)
        return CTRL_C
    trainer.save(opponent, strength)
    print_strength(trainer, strength)
    game = config.game
    console.print(f'card_envs.load_opponent("{opponent}")', highlight=False, soft_wrap=True)
    console.print(f"python -m card_envs play {game} --opponents {opponent}", highlight=False, soft_wrap=True)
    return 0


def run(trainer: Trainer, opponent: Path, check: Any, display: Progress, log: Any) -> None:
    """The loop of play and learning, with its log, saves and measurements."""
    config = trainer.config
    task = display.add_task(config.name, total=1.0, rate="", left="", figures="", strength="")
    saved = measured = time.monotonic()
    while trainer.progress < 1:
        entry: dict[str, Any] = trainer.iterate(check)
        now = time.monotonic()
        if now - measured > 60 * config.strength_minutes:
            result = trainer.quick_strength(RIVALS[0])
            entry["win_share"] = result.win_share.mean
            display.update(task, strength=f"{RIVALS[0]}: {result.win_share.mean:.0%}")
            measured = time.monotonic()
            display.console.print(
                f"{trainer.decisions:>13,} decisions, {trainer.seconds / 60:5.1f} min: entropy {entry['entropy']:.2f}, "
                f"win share against {RIVALS[0]} {result.win_share.mean:.2f}, margin {result.margin.mean:+.1f}",
                highlight=False,
            )
        if now - saved > 60 * config.save_minutes:
            trainer.save(opponent)
            saved = now
        log.write(json.dumps({k: _short(v) for k, v in entry.items()}) + "\n")
        log.flush()
        left = trainer.seconds * (1 / max(trainer.progress, 1e-9) - 1)
        display.update(
            task,
            completed=trainer.progress,
            rate=f"{trainer.decisions / 1e6:.2f} M, {entry['decisions_a_second'] / 1e3:.1f} k/s",
            left=f"{left // 60:.0f}:{left % 60:02.0f} left",
            figures=f"entropy {entry['entropy']:.2f} value error {entry['value_error']:.1f}",
        )


def _short(figure: float) -> float | None:
    """Seven digits; JSON knows no nan."""
    return None if figure != figure else float(f"{figure:.7g}") if isinstance(figure, float) else figure


def measure(trainer: Trainer, opponent: Path) -> list[dict[str, Any]]:
    """The saved opponent against the scripted players, on mirrored deals."""
    with console.status("measuring strength"):
        return [trainer.final_strength(opponent, rival) for rival in RIVALS]


def print_strength(trainer: Trainer, strength: list[dict[str, Any]]) -> None:
    """The table that ends a run."""
    sheet = Sheet(
        title=f"{trainer.config.name}: {trainer.decisions:,} decisions in {trainer.seconds:.0f} s; "
        f"{strength[0]['pairs']} mirrored pairs, moves drawn from its probabilities"
    )
    for column in ("against", "win share", "95 % interval", "margin an episode", "95 % interval"):
        sheet.add_column(column, justify="left" if column == "against" else "right")
    for result in strength:
        share, margin = result["win_share"], result["margin_an_episode"]
        sheet.add_row(
            result["against"],
            f"{share['mean']:.3f}",
            f"{share['low']:.3f} to {share['high']:.3f}",
            f"{margin['mean']:+.1f}",
            f"{margin['low']:+.1f} to {margin['high']:+.1f}",
        )
    console.print(sheet)


@contextmanager
def stopping_between_steps() -> Iterator[Any]:
    """Gives a function that raises `Stopped` after a Ctrl-C; a second Ctrl-C ends at once."""
    pressed = False

    def on_signal(number: int, frame: Any) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def check() -> None:
        if pressed:
            raise Stopped

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


def progress_display() -> Progress:
    """The line that shows how a run goes."""
    fields = ("{task.fields[rate]}", "{task.fields[left]}", "{task.fields[figures]}", "{task.fields[strength]}")
    return Progress(
        TextColumn("{task.description}"), BarColumn(20), *map(TextColumn, fields), console=console, transient=True
    )


if __name__ == "__main__":
    app()
