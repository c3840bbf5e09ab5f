"""The folder of a run: its lock, settings, log, checkpoint, and the opponent that it trains."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from card_envs.system.files import check_output_folder, clear_leftovers, locked, move_aside, replace_file

from .config import Config, as_toml

LEAST_SPACE = 50_000_000  # bytes free on the disk before anything is loaded
CHECKPOINTS = 3  # that exist at once: the last one, the one before it, and the one that is being written
REST = 10_000_000  # bytes of all else in a folder


class RunFolder:
    """Names, locks, writes and reads the files of a run.

    Attributes:
        path: the folder; runs: the one that it is in.
        settings, log, checkpoint, bad_batch: files.
        opponent: the folder that `load_opponent` takes.
    """

    def __init__(self, path: Path) -> None:
        """Name the files; nothing is read or written."""
        self.path, self.runs = path, path.parent
        self.settings, self.log = path / "config.resolved.toml", path / "log.jsonl"
        self.checkpoint, self.opponent = path / "checkpoint.safetensors", path / "opponent"
        self.bad_batch = path / "bad_batch.npz"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the run for this process, and remove what earlier ones left half-written.

        The lock is a file beside the folder, for the folder itself may be moved; the system takes it back from a
        process that dies.

        Raises:
            ValueError: another process has it, which is named; or the folder of runs can't be written.
        """
        self._check_space(LEAST_SPACE)
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(locked(self.runs / f".{self.path.name}.lock"))
            except BlockingIOError as error:
                raise ValueError(
                    f"{self.path}: {error.strerror}, which trains this run; wait for it, stop it with Ctrl-C, or "
                    "take another name="
                ) from None
            clear_leftovers(self.path)
            yield

    def begin(self, config: Config, checkpoint_bytes: int, resume: bool) -> Path | None:
        """Make the folder, unless the run is resumed, and write the resolved settings, each with its description.

        Returns where an earlier run of that name was moved to. Raises ValueError if there is too little space, or
        something else has the name, which is left as it is.
        """
        self._check_space(CHECKPOINTS * checkpoint_bytes + REST)
        aside = None
        if not resume and self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            if not self.settings.is_file():
                raise ValueError(f"{self.path}: is there already and is no run: take another name= or runs=")
            aside = move_aside(self.path)
        self.path.mkdir(exist_ok=True)
        replace_file(self.settings, as_toml(config))
        return aside

    def _check_space(self, needed: int) -> None:
        """Check that the folder of runs can be written and the disk has room. Raises ValueError."""
        check_output_folder(self.runs)
        free = shutil.disk_usage(self.runs).free
        if free < needed:
            problem = f"the run needs about {needed / 1e6:.0f} MB, the disk has {free / 1e6:.0f} MB left"
            raise ValueError(f"{self.runs}: {problem}")

    def open_log(self, decisions: int) -> TextIO:
        """Open the log to go on after that many decisions; entries after the checkpoint are dropped."""
        entries = []
        if decisions:
            with contextlib.suppress(FileNotFoundError):
                entries = [entry for entry in self.read_log() if entry["decisions"] <= decisions]
        replace_file(self.log, "".join(json.dumps(entry) + "\n" for entry in entries))
        return self.log.open("a", encoding="utf-8")

    def read_log(self) -> list[dict[str, Any]]:
        """Return the entries of the log; lines that a killed run or a full disk left incomplete are skipped."""
        entries = []
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                entry = json.loads(line)
                if isinstance(entry, dict) and isinstance(entry.get("decisions"), int):
                    entries.append(entry)
        return entries

    def write_bad_batch(self, arrays: Mapping[str, Any]) -> Path:
        """Write the minibatch whose loss was NaN or infinite, to debug it; return the file."""
        file = io.BytesIO()
        np.savez_compressed(file, allow_pickle=False, **arrays)
        replace_file(self.bad_batch, file.getvalue())
        return self.bad_batch

    def next_step(self) -> str:
        """Return how to go on after the run has failed, for the end of a message."""
        has_checkpoint = self.checkpoint.exists()
        return f"--resume goes on from {self.checkpoint}" if has_checkpoint else "there was no checkpoint yet"
