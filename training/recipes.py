"""The settings that come with the package, by name: `--config quickstart`, `--config back_alley/small`."""

from __future__ import annotations

import difflib
from pathlib import Path

HERE = Path(__file__).parent
FOLDERS = (HERE / "configs", HERE.parent / "configs")  # in an installed package, in a checkout


def recipes() -> dict[str, Path]:
    """Return the files of settings by name; those that train a shipped network are called as it is, after its game."""
    found = {
        file.relative_to(folder).with_suffix("").as_posix(): file
        for folder in FOLDERS
        for file in sorted(folder.rglob("*.toml"))
    }
    return dict(sorted(found.items(), key=lambda one: ("/" in one[0], one[0])))


def recipe(name: Path) -> Path:
    """Return the file of the settings of that name. Raises ValueError that lists the names where there is none."""
    files = recipes()
    if name.as_posix() in files:
        return files[name.as_posix()]
    near = difflib.get_close_matches(name.stem, files, 1, 0.5)
    hint = f"did you mean --config {near[0]}? " if near else ""
    raise ValueError(f"{name}: no such file, and no settings of that name; {hint}there are: {', '.join(files)}")
