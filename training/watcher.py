"""Watching a run: its log, TensorBoard, and a calm display in the terminal."""

from __future__ import annotations

import json
import math
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch.utils.tensorboard import SummaryWriter

from .command import console
from .run_folder import RunFolder

# The group in which TensorBoard shows a figure of the log: that of the first prefix that fits its name.
GROUPS = {
    "win_share": "strength",
    "margin": "strength",
    "entropy_": "entropy by range of actions",
    "entropy": "policy",
    "approx_kl": "policy",
    "clip_fraction": "policy",
    "bc_loss": "policy",
    "advantage_loss": "policy",
    "value": "value",
    "return": "value",
    "decisions_per": "speed",
    "seconds_": "speed",
}
HEADLINE = ("entropy", "value_error", "advantage_loss", "deals")  # what the terminal shows, where there is one
SURE_SECONDS = 5.0  # of training after which the time left is said
BAR = 20  # letters
BOUNDS = ("_low", "_high")  # ends of the names of an interval's bounds


class Watcher:
    """Logs and displays the figures of every iteration. Use as a context manager."""

    def __init__(self, folder: RunFolder, decisions: int) -> None:
        """Open a run's log to go on after that many decisions."""
        self._log = folder.open_log(decisions)
        self._board = SummaryWriter(str(folder.path / "tensorboard"), purge_step=decisions + 1 if decisions else None)
        self._start: tuple[float, float] | None = None  # seconds and progress of the first entry, which may compile
        self._said: set[str] = set()
        columns = ("{task.fields[rate]}", "{task.fields[left]}", "{task.fields[figures]}")
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(BAR),
            TimeElapsedColumn(),
            *map(TextColumn, columns),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task(folder.path.name, total=1.0, rate="", left="", figures="")

    def __enter__(self) -> Watcher:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._progress.stop()
        try:
            self._board.close()
        finally:
            self._log.close()

    def show(self, entry: dict[str, Any], progress: float, measuring: float = 0.0) -> None:
        """Log and display one iteration's figures.

        Args:
            entry: the figures by name; and perhaps a `note`, text about them.
            progress: share of the run that is done.
            measuring: seconds that the rest of the run will take to measure; 0: not known.
        """
        self._log.write(json.dumps({name: _short(figure) for name, figure in entry.items()}) + "\n")
        self._log.flush()
        for name, figure in entry.items():
            group = next((group for prefix, group in GROUPS.items() if name.startswith(prefix)), None)
            if group is not None and math.isfinite(figure):
                self._board.add_scalar(f"{group}/{name}", figure, entry["decisions"])
        if entry["decisions"]:
            self._show_pace(entry, progress, measuring)
        shares = [name for name in entry if name.startswith("win_share_") and not name.endswith(BOUNDS)]
        anchors = [name.removeprefix("win_share_") for name in shares]
        if anchors:
            self._say_once("measured now and then: share of episodes won (points a deal) ± 95 %, against …", "strength")
            done = f"{entry['decisions']:>13,} decisions {entry['seconds'] / 60:5.1f} min"
            results = [
                f"{anchor} {_with_error(entry, f'win_share_{anchor}', '.2f')} "
                f"({_with_error(entry, f'margin_{anchor}', '+z.1f')})"
                for anchor in anchors
            ]
            note = [entry["note"]] if "note" in entry else []
            self._say("  ".join([done, *results, _bar(entry, anchors[-1]), *note]))

    def _show_pace(self, entry: dict[str, Any], progress: float, measuring: float) -> None:
        """Display how far the run is, how fast, and what is left of it."""
        seconds = entry["seconds"]
        self._start = self._start or (seconds, progress)
        trained, gained = seconds - self._start[0], progress - self._start[1]
        left = trained * (1 - progress) / gained if gained > 0 else 0.0
        rate = f"{entry['decisions_per_second'] / 1e3:.1f} k decisions per second"
        headline = [f"{name.replace('_', ' ')} {entry[name]:.3g}" for name in HEADLINE if name in entry]
        self._progress.update(
            self._task,
            completed=progress,
            rate=f"{entry['decisions'] / 1e6:.2f} M, {rate}",
            left=f"{left // 60:.0f}:{left % 60:02.0f} left" if left else "",
            figures=", ".join(headline),
        )
        if trained > SURE_SECONDS:
            more = f"about {max(measuring, 6) / 60:.1f} of measuring" if measuring else "measuring"
            self._say_once(f"{rate}, so about {max(left, 6) / 60:.1f} minutes of training left, plus {more}", "time")

    def _say_once(self, text: str, what: str) -> None:
        """Print a line, unless one of this kind was printed."""
        if what not in self._said:
            self._said.add(what)
            self._say(text)

    def _say(self, text: str) -> None:
        """Print a line above the display."""
        self._progress.console.print(text, highlight=False, soft_wrap=True)


def _bar(entry: dict[str, Any], anchor: str) -> str:
    """Return the share of wins as a bar; those of all lines make the curve."""
    full = round(BAR * entry[f"win_share_{anchor}"])
    return "█" * full + "░" * (BAR - full)


def _with_error(entry: dict[str, Any], name: str, form: str) -> str:
    """Return a figure with half of its 95 % interval, if that is finite."""
    mean = entry[name]
    half = max(entry.get(f"{name}_high", math.inf) - mean, mean - entry.get(f"{name}_low", -math.inf))
    return f"{mean:{form}}" + (f" ±{half:{form.lstrip('+z')}}" if math.isfinite(half) else "")


def _short(figure: Any) -> Any:
    """Round to seven digits; nan and infinity, which JSON lacks, become null."""
    if not isinstance(figure, float):
        return figure
    return float(f"{figure:.7g}") if math.isfinite(figure) else None
