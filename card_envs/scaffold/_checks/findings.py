"""Faults and their places in the files of a game."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import NamedTuple

import card_envs


class Finding(NamedTuple):
    """A fault and its place."""

    file: Path
    line: int
    text: str

    def __str__(self) -> str:
        here = Path.cwd()
        file = self.file.relative_to(here) if self.file.is_relative_to(here) else self.file
        return f"{file}:{self.line}: {self.text}"


def locate(file: Path, name: str, text: str) -> Finding:
    """Return a fault of what a file defines or assigns by this name; at its first line if it does not."""
    source = file.read_text(encoding="utf-8")
    match = re.search(rf"^(?:def |class |[\w, =]+[ ,=])?{name}\b", source, re.MULTILINE)
    return Finding(file, source.count("\n", 0, match.start()) + 1 if match else 1, text)


def blame(error: BaseException, folder: Path) -> Finding:
    """Return the deepest line of a game's folder that an exception passed through."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(folder):
        return Finding(
            Path(error.filename), error.lineno or 1, f"SyntaxError: {error.msg}: {(error.text or '').strip()}"
        )
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(folder):
            inside = "" if frame.name == "<module>" else f"{frame.name}: "
            return Finding(Path(frame.filename), frame.lineno or 1, inside + text)
    return Finding(folder, 1, text)


def checkout() -> Path | None:
    """Return the repository that contains this package, if it has configurations and tests."""
    root = Path(card_envs.__file__).parents[1]
    return root if all((root / part).is_dir() for part in ("configs", "tests/games")) else None
