"""A run's folder: settings, log, checkpoint, opponent; its lock, and room on the disk."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from card_envs import _files as files
from card_envs._files import check_output_folder, clear_leftovers, move_aside, replace_file

from .config import Config, as_toml

SETTINGS, LOG = "config.resolved.toml", "log.jsonl"
CHECKPOINT, OPPONENT, BAD_BATCH = "checkpoint.safetensors", "opponent", "bad_batch.npz"


def check_writable(runs: Path, needed: int) -> None:
    """Check before training that the folder can be written and the disk has room.

    Raises:
        ValueError: naming the folder, and what is missing.
    """
    check_output_folder(runs)
    free = shutil.disk_usage(runs).free
    if free < needed:
        raise ValueError(f"{runs}: the run needs about {needed / 1e6:.0f} MB, the disk has {free / 1e6:.0f} MB left")


@contextmanager
def owned(config: Config) -> Iterator[None]:
    """Lock the run for this process, and remove what earlier ones left half-written.

    The lock is a file beside the folder, for the folder itself may be moved; the system takes it back from a process
    that dies.

    Raises:
        ValueError: another process has it, which is named; or the folder of runs can't be written.
    """
    runs, name = config.runs, config.name
    check_writable(runs, 50_000_000)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(files.locked(runs / f".{name}.lock"))
        except BlockingIOError as error:
            raise ValueError(
                f"{runs / name}: {error.strerror}, which trains this run; wait for it, stop it with Ctrl-C, or "
                "take another name="
            ) from None
        clear_leftovers(runs / name)
        yield


def prepare(config: Config, folder: Path) -> Path | None:
    """Make the run's folder and write the settings into it; returns where an earlier one was moved to.

    Raises:
        ValueError: something else has the name; it is left as it is.
    """
    aside = None
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not (folder / SETTINGS).is_file():
            raise ValueError(f"{folder}: is there already and is no run: take another name= or runs=")
        aside = move_aside(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_settings(config, folder)
    return aside


def write_settings(config: Config, folder: Path) -> None:
    """Write the resolved settings, each with its description."""
    replace_file(folder / SETTINGS, as_toml(config))


def open_log(folder: Path, decisions: int) -> TextIO:
    """Open the log to go on after that many decisions; entries after the checkpoint are dropped."""
    path = folder / LOG
    kept = []
    if decisions:
        with contextlib.suppress(FileNotFoundError):
            kept = [entry for entry in read_log(folder) if entry["decisions"] <= decisions]
    replace_file(path, "".join(json.dumps(entry) + "\n" for entry in kept))
    return path.open("a", encoding="utf-8")


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of a run's log; lines that a killed run or a full disk left incomplete are skipped."""
    entries = []
    for line in (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, dict) and isinstance(entry.get("decisions"), int):
                entries.append(entry)
    return entries
