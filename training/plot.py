"""Learning curves as a picture: `python -m card_envs plot runs/a runs/b --out curves.png`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

from card_envs.compare.report import check_picture, save_picture
from card_envs.system.files import error_text

from .run_folder import RunFolder

# The panels: title, the figures of the log (with their names in the legend), and the label of the axis.
PANELS: list[tuple[str, dict[str, str], str]] = [
    ("Strength", {"win_share_trivial": "against trivial", "win_share_greedy": "against greedy"}, "win share"),
    ("Margin", {"margin_trivial": "against trivial", "margin_greedy": "against greedy"}, "points a deal"),
    ("Entropy", {"entropy": ""}, "share of the largest possible"),
    ("Error of the critic", {"value_error": ""}, "points, root mean square"),
]
MEASURED = ("win_share", "margin")  # measured now and then; all else comes from every update and is smoothed
MARKED_BELOW = 30  # points: fewer are marked, as one alone would not be seen
SMOOTHING = 0.02  # share of a run over which figures of every update are averaged


def draw(runs: list[Path], out: Path, hours: bool = False) -> None:
    """Write the picture.

    Raises:
        ValueError: a folder has no log, or an empty one; the picture can't be written.
    """
    check_picture(out)
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    names = {run: run.absolute().name for run in runs}
    counts = Counter(names.values())
    logs = {name if counts[name] == 1 else str(run): _entries(run) for run, name in names.items()}
    logged = {name for entries in logs.values() for entry in entries for name in entry if entry[name] is not None}
    panels = [panel for panel in PANELS if logged & panel[1].keys()]
    rows = -(-len(panels) // 2)
    figure, axes = plt.subplots(rows, 2, figsize=(11, 3.5 * rows), layout="constrained", squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    for axis, (title, figures, label) in zip(axes.flat, panels):
        for color, (run, entries) in enumerate(logs.items()):
            for style, (name, words) in zip(("-", "--"), figures.items()):
                points = [(entry, entry[name]) for entry in entries if entry.get(name) is not None]
                x = [entry["seconds"] / 3600 if hours else entry["decisions"] / 1e6 for entry, _ in points]
                values = [value for _, value in points]
                y = values if name.startswith(MEASURED) else _smooth(values)
                text = " ".join(part for part in (run if len(logs) > 1 else "", words) if part)
                marker = "." if len(x) < MARKED_BELOW else None
                axis.plot(x, y, style, color=f"C{color}", label=text, linewidth=1.6, marker=marker)
                if name.startswith(MEASURED):
                    _draw_measured(axis, f"C{color}", x, [entry for entry, _ in points], name, style == "-")
        axis.set_title(title, loc="left", fontweight="bold")
        axis.set_ylabel(label)
        axis.set_xlabel("hours" if hours else "million decisions")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        if axis.get_legend_handles_labels()[1] and any(axis.get_legend_handles_labels()[1]):
            axis.legend(frameon=False, fontsize="small")
    if len(logs) == 1:
        figure.suptitle(next(iter(logs)), fontweight="bold")
    save_picture(figure, out, dpi=120)
    plt.close(figure)


def _draw_measured(
    axis: Any, color: str, x: list[float], entries: list[dict[str, Any]], name: str, explain: bool
) -> None:
    """Draw the 95 % intervals of measurements as a band, and a ring around those that have a note.

    `explain`: put the notes into the legend.
    """
    bounds = [(place, entry.get(f"{name}_low"), entry.get(f"{name}_high")) for place, entry in zip(x, entries)]
    if known := [bound for bound in bounds if None not in bound]:
        axis.fill_between(*zip(*known), color=color, alpha=0.12, linewidth=0)
    for place, entry in zip(x, entries):
        if note := entry.get("note"):
            label = note if explain else None
            axis.plot([place], [entry[name]], "o", color=color, markerfacecolor="white", markersize=8, label=label)


def _entries(run: Path) -> list[dict[str, Any]]:
    folder = RunFolder(run)
    try:
        entries = folder.read_log()
    except OSError as error:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        why = f"it has no {folder.log.name}" if missing else error_text(error)
        raise ValueError(f"{run}: no folder of a run: {why}; expected one that training has made") from None
    if not entries:
        raise ValueError(f"{run}: its log is empty")
    return entries


def _smooth(values: list[float]) -> list[float]:
    """Return moving averages."""
    width = max(1, round(SMOOTHING * len(values)))
    return [fmean(values[max(0, i - width + 1) : i + 1]) for i in range(len(values))]
