"""`python -m training.speed --config configs/back_alley/ppo.toml`: decisions a second, and the share of each part."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as Sheet

from card_envs.engine._cost import per_second

from .command import command, console
from .config import Config, load_config

VARIANTS: dict[str, dict[str, Any]] = {
    "as configured": {},
    "2x128": {"hidden": [128, 128]},
    "2x256": {"hidden": [256, 256]},
    "2x256, one epoch": {"hidden": [256, 256], "update_epochs": 1},
    "2x256, one epoch, 32 bits": {"hidden": [256, 256], "update_epochs": 1, "bf16": False},
    "2x256, one epoch, 16 bits": {"hidden": [256, 256], "update_epochs": 1, "bf16": True},
}
ITERATIONS = 3


def rate(config: Config, announce: bool = False) -> tuple[float, dict[str, float]]:
    """Return learned decisions a second over a few updates, and the seconds of each part of one."""
    from .run import Run

    run = Run(config)
    run.iterate()  # compiles
    before, start = run.decisions, time.perf_counter()
    parts: dict[str, float] = {}
    for _ in range(ITERATIONS):
        entry = run.iterate()
        parts = {name: entry[name] for name in entry if name.startswith("seconds_")}
    found = per_second(run.decisions - before, time.perf_counter() - start)
    if announce and run.ranks.is_first:
        print(f"together {found:.0f}", flush=True)
    run.ranks.close()
    return found, parts


def matrix_speed() -> float:
    """Return the processor's best speed in one thread: a product of large matrices, in GFLOP/s."""
    import torch

    torch.set_num_threads(1)
    one, other = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        one @ other
        best = max(best, per_second(2 * 1024**3, time.perf_counter() - start) / 1e9)
    return best


def main(
    config: Annotated[Path, typer.Option(help="the recipe that is measured")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="settings, last")] = None,
    device: Annotated[str | None, typer.Option(help="the same as device=...: cpu, cuda, cuda:1")] = None,
    together: Annotated[bool, typer.Option("--together", hidden=True)] = False,
) -> None:
    """Measure training: one process with parts changed, two that train one policy, two independent ones."""
    base = load_config(config, [*(overrides or []), *([f'device="{device}"'] if device else [])])
    if together:
        rate(base, announce=True)
        return
    sheet = Sheet(title=f"{base.game}: learned decisions a second; matrices at {matrix_speed():.0f} GFLOP/s")
    for column in ("one process", "decisions/s", "playing", "valuing", "updating"):
        sheet.add_column(column, justify="left" if column == "one process" else "right")
    for name, change in VARIANTS.items():
        if not all(map(base.reads, change)):
            continue
        found, parts = rate(base.changed(**change))
        whole = sum(parts.values())
        shares = (parts.get(f"seconds_{part}", 0.0) / whole for part in ("playing", "valuing", "updating"))
        sheet.add_row(name, f"{found:,.0f}", *(f"{share:.0%}" for share in shares))
    console.print(sheet)
    if base.device != "cpu":
        return
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        independent = sum(found for found, _ in pool.map(rate, [base] * 2))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m", f"{__package__}.speed"]
    command += ["--config", str(config), *(overrides or []), "--together"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    joined = float(re.findall(r"together (\d+)", output)[0])
    alone, _ = rate(base)
    console.print(
        f"two processes, one policy: {joined:,.0f}/s, {joined / alone:.2f} times one ({alone:,.0f}/s), "
        f"{joined / independent:.2f} of two independent ones ({independent:,.0f}/s)",
        highlight=False,
    )


app = command(main)

if __name__ == "__main__":
    app()
