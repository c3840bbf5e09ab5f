"""The settings that come with the package, by name: `--config quickstart`."""

from __future__ import annotations

import difflib
from pathlib import Path

HERE = Path(__file__).parent
FOLDERS = (HERE / "configs", HERE.parent / "configs")  # in an installed package, in a checkout


def recipe(name: Path) -> Path:
    """The file of the settings of that name. Raises ValueError that lists the names where there is none."""
    files = {file.stem: file for folder in FOLDERS for file in sorted(folder.glob("*.toml"))}
    if str(name) in files:
        return files[str(name)]
    near = difflib.get_close_matches(name.stem, files, 1, 0.5)
    hint = f"did you mean --config {near[0]}? " if near else ""
    raise ValueError(f"{name}: no such file, and no settings of that name; {hint}there are: {', '.join(files)}")
