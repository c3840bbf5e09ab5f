"""Ablations of a recipe: each part is changed alone, with the same budget and seeds.

`python -m training.ablate --config configs/back_alley/ppo.toml --variants configs/ablation/back_alley.json minutes=2`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table as Sheet

from card_envs import _files as files
from card_envs.compare._spread import spread

from .command import command, console, say
from .config import Config, load_config


def main(
    config: Annotated[Path, typer.Option(help="the recipe that is varied")],
    variants: Annotated[Path, typer.Option(help="JSON: the name of each variant, and the settings that it changes")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="settings, last")] = None,
    seeds: Annotated[int, typer.Option(min=2, help="runs of each variant")] = 2,
    processes: Annotated[int, typer.Option(min=1, help="runs at the same time, each on one core")] = 2,
    out: Annotated[Path | None, typer.Option(help="write the figures to this JSON file")] = None,
) -> None:
    """Train short runs of every variant and print how they compare. The budget is the config's: set `minutes=...`."""
    base = load_config(config, overrides)
    chosen: dict[str, dict[str, Any]] = files.read_json(variants)
    if not isinstance(chosen, dict) or not all(isinstance(change, dict) for change in chosen.values()):
        raise ValueError(f"{variants}: expected the settings that each variant changes, by its name")
    files.check_output(out)
    jobs = [(name, seed) for seed in range(seeds) for name in chosen]
    settings = [base.changed(**{**chosen[name], "seed": base.seed + seed}) for name, seed in jobs]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    try:
        for number, result in spread(train, list(enumerate(settings)), processes):
            name, seed = jobs[number]
            results[name].append(result)
            if out is not None:
                files.write_json(out, results)
            say(f"{name}, seed {seed}: {result}")
    except KeyboardInterrupt:
        console.print("stopped; this is known:")
        results = {name: runs for name, runs in results.items() if runs}
    show(base, results)


def train(numbered: tuple[int, Config]) -> tuple[int, dict[str, Any]]:
    """Train one run and measure it against `greedy` on the deals of the last measurement; return its number, too."""
    number, settings = numbered
    from card_envs.opponents import load_opponent

    from .run import Run

    run = Run(settings)
    entropy = float("nan")
    while run.progress < 1:
        entropy = run.iterate().get("entropy", entropy)
    run.finish()
    result = run.strength(load_opponent("greedy", run.game), run.config.final_pairs)
    return number, {
        "decisions": run.decisions,
        "win_share": round(result.win_share.mean, 4),
        "margin_per_episode": round(result.margin_per_episode.mean, 3),
        "entropy": round(entropy, 3),
    }


def show(base: Config, results: dict[str, list[dict[str, Any]]]) -> None:
    """Print the table: means over the seeds, with their spread."""
    sheet = Sheet(title=f"{base.game}: against greedy, {base.final_pairs} mirrored pairs; mean (spread over seeds)")
    for column in ("", "win share", "margin an episode", "million decisions", "entropy"):
        sheet.add_column(column, justify="right" if column else "left")
    for name, runs in results.items():

        def cell(key: str, digits: int, runs: list[dict[str, Any]] = runs) -> str:
            values = np.array([run[key] for run in runs], float)
            return f"{values.mean():.{digits}f} ({np.ptp(values):.{digits}f})"

        millions = np.mean([run["decisions"] for run in runs]) / 1e6
        sheet.add_row(name, cell("win_share", 3), cell("margin_per_episode", 2), f"{millions:.2f}", cell("entropy", 2))
    console.print(sheet)


app = command(main)

if __name__ == "__main__":
    app()
