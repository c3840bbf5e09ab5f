"""`python -m training.ablate --config configs/back_alley.toml --minutes 2`: which parts of the recipe earn their place.

Each part is switched off (or on) alone, with the same budget and seeds, and the result is measured against `greedy`.
"""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as Sheet

from training.config import Config, load_config

# What changes in each variant; a variant that changes nothing in the config at hand is left out.
VARIANTS: dict[str, dict[str, Any]] = {
    "as configured": {},
    "no past selves": {"past_share": 0.0},
    "no tables with greedy": {"greedy_share": 0.0},
    "no imitation": {"imitation": 0.0},
    "imitation": {"imitation": 1.0},
    "slow copy (kl 0.05)": {"kl": 0.05},
    "value in 51 bins": {"value_bins": 51},
    "value as a number": {"value_bins": 0},
    "entropy not by width": {"entropy_by_width": False},
    "forced decisions learned": {"skip_forced": False},
    "no stages": {"stages": []},
    "rewards as points": {"options": {}},
    "one epoch": {"epochs": 1},
    "two epochs": {"epochs": 2},
}
console = Console()


def main(
    config: Annotated[Path, typer.Option(help="the recipe that is varied")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="settings, last")] = None,
    variants: Annotated[Path | None, typer.Option(help="JSON: name of a variant to its changes")] = None,
    seeds: Annotated[int, typer.Option(min=2, help="runs of each variant")] = 2,
    processes: Annotated[int, typer.Option(min=1, help="runs at once, each on one core")] = 2,
    out: Annotated[Path | None, typer.Option(help="write the figures to this JSON file")] = None,
) -> None:
    """Train short runs of every variant and print how they compare. The budget is the config's: set `minutes=…`."""
    base = load_config(config, overrides)
    changes = json.loads(variants.read_text()) if variants else VARIANTS
    chosen = {name: change for name, change in changes.items() if not change or _differs(base, change)}
    jobs = [(name, seed) for seed in range(seeds) for name in chosen]
    settings = [{**base.model_dump(), **chosen[name], "seed": base.seed + seed} for name, seed in jobs]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for (name, seed), result in zip(jobs, pool.map(run, settings)):
            results[name].append(result)
            console.print(f"{name}, seed {seed}: {result}", highlight=False)
    show(base, results)
    if out is not None:
        out.write_text(json.dumps(results, indent=1) + "\n")


def _differs(config: Config, change: dict[str, Any]) -> bool:
    return any(getattr(config, key) != value for key, value in change.items())


def run(settings: dict[str, Any]) -> dict[str, Any]:
    """Train one run and measure it against `greedy` on the deals that are kept for that."""
    from card_envs.compare.match import play_pairs
    from card_envs.opponents import load_opponent
    from card_envs.opponents.network import NetworkPolicy
    from training.trainer import FINAL_SEED, Trainer

    trainer = Trainer(Config(**settings))
    entropy = 0.0
    while trainer.progress < 1:
        entropy = trainer.iterate()["entropy"]
    policy = NetworkPolicy(trainer.game, trainer.actor.weights())
    rival = load_opponent("greedy", trainer.game)
    result = play_pairs(trainer.game, policy, rival, trainer.config.final_pairs, FINAL_SEED)
    return {
        "decisions": trainer.decisions,
        "win_share": round(result.win_share.mean, 4),
        "margin_an_episode": round(result.margin.mean, 3),
        "entropy": round(entropy, 3),
    }


def show(base: Config, results: dict[str, list[dict[str, Any]]]) -> None:
    """The table: means over the seeds, with their spread."""
    sheet = Sheet(title=f"{base.game}: against greedy, {base.final_pairs} mirrored pairs; mean (spread over seeds)")
    for column in ("", "win share", "margin an episode", "million decisions", "entropy"):
        sheet.add_column(column, justify="right" if column else "left")
    for name, runs in results.items():

        def cell(key: str, digits: int, runs: list[dict[str, Any]] = runs) -> str:
            values = np.array([run[key] for run in runs], float)
            return f"{values.mean():.{digits}f} ({np.ptp(values):.{digits}f})"

        millions = np.mean([run["decisions"] for run in runs]) / 1e6
        sheet.add_row(name, cell("win_share", 3), cell("margin_an_episode", 2), f"{millions:.2f}", cell("entropy", 2))
    console.print(sheet)


if __name__ == "__main__":
    typer.run(main)
