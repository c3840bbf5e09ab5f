"""A run's folder: settings, log, checkpoint, opponent; and whether there is room for them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, TextIO

from training.config import Config, as_toml

SETTINGS, LOG, CHECKPOINT, OPPONENT, BAD_BATCH = (
    "config.resolved.toml",
    "log.jsonl",
    "checkpoint.safetensors",
    "opponent",
    "bad_batch.npz",
)


def check_writable(runs: Path, needed: int) -> None:
    """Make sure before training that the folder can be written and the disk has room.

    Raises:
        OSError, ValueError: saying which folder, and what is missing.
    """
    runs.mkdir(parents=True, exist_ok=True)
    probe = runs / f".probe-{os.getpid()}"
    try:
        probe.write_bytes(b"")
    finally:
        probe.unlink(missing_ok=True)
    free = shutil.disk_usage(runs).free
    if free < needed:
        raise ValueError(f"{runs}: the run needs about {needed / 1e6:.0f} MB, the disk has {free / 1e6:.0f} MB left")


def prepare(config: Config) -> tuple[Path, Path | None]:
    """Make the run's folder and write the settings into it; returns it, and where an earlier one was moved to."""
    folder = config.runs / config.name
    aside = None
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        aside = next(p for i in range(1, 10**6) if not (p := folder.with_name(f"{folder.name}.{i}")).exists())
        folder.rename(aside)
    folder.mkdir(parents=True, exist_ok=True)
    write_settings(config, folder)
    return folder, aside


def write_settings(config: Config, folder: Path) -> None:
    """Write the settings as they are resolved, each with its description."""
    (folder / SETTINGS).write_text(as_toml(config))


def open_log(folder: Path, decisions: int) -> TextIO:
    """The log, to go on after that many decisions: entries of a lost stretch after the checkpoint are dropped."""
    path = folder / LOG
    kept = [entry for entry in read_log(folder) if entry["decisions"] <= decisions] if decisions else []
    unfinished = path.with_name(path.name + ".new")
    unfinished.write_text("".join(json.dumps(entry) + "\n" for entry in kept))
    unfinished.replace(path)
    return path.open("a")


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The entries of a run's log; a line that a killed run left half-written is passed over."""
    entries = []
    for line in (folder / LOG).read_text().splitlines():
        try:
            entries.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return entries
