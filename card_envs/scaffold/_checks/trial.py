"""Import the modules of a game in a process of its own first: whatever they do there, `check` goes on.

`python -m card_envs.scaffold._checks.trial PACKAGE FOLDER SECONDS FILE` writes to the file the name of each module,
then as JSON the place of the first error and what it is, or null; or Python's traceback if importing takes longer.
"""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import NoReturn, TextIO

from card_envs.scaffold._checks.findings import Finding, blame
from card_envs.scaffold._checks.reporting import PLACES
from card_envs.system.processes import PARENT, end_with_parent

MODULES = ("__init__", "rules", "bot", "view", "options")
MOST_SECONDS = 60.0


def try_import(package: str, folder: Path) -> Finding | None:
    """Return why a package's modules can't be imported, or None."""
    with tempfile.TemporaryDirectory(prefix="card_envs-check-") as scratch:
        file = Path(scratch, "found")
        path = os.pathsep.join(map(os.path.abspath, sys.path))
        command = [sys.executable, "-m", __name__, package, str(folder), f"{MOST_SECONDS}", str(file)]
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path, PARENT: str(os.getpid())}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        output = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    *begun, last = output.split("\n")
    try:
        fault = json.loads(last)
    except ValueError:
        module = next((name for name in reversed(begun) if name in MODULES), "__init__")
        places = [(Path(match[2]), int(match[3])) for match in PLACES.findall(output)]
        places = [place for place in places if place[0].is_relative_to(folder)]
        file, line = places[0] if places else (folder / f"{module}.py", 1)  # the most recent call comes first
        slow = any(name.startswith("Timeout") for name in begun)  # as faulthandler begins
        how = f"takes more than {MOST_SECONDS:.0f} s" if slow else f"ends the process with {done.returncode}"
        return Finding(file, line, f"importing this {how}")
    return None if fault is None else Finding(Path(fault[0]), fault[1], fault[2])


def main(package: str, folder: str, seconds: str, name: str) -> None:
    """Import the modules of a package, and write the first error."""
    end_with_parent()
    with Path(name).open("w", encoding="utf-8") as file:
        faulthandler.dump_traceback_later(float(seconds), exit=True, file=file)
        fault = _import_all(package, Path(folder), file)
        faulthandler.cancel_dump_traceback_later()
        json.dump(fault and [str(fault.file), fault.line, fault.text], file)


def _import_all(package: str, folder: Path, file: TextIO) -> Finding | None:
    def end(status: int) -> NoReturn:
        raise SystemExit(f"os._exit({status})")

    os._exit = end  # so that the line is known
    try:
        for module in MODULES:
            print(module, file=file, flush=True)
            import_module(package if module == "__init__" else f"{package}.{module}")
    except BaseException as error:  # the game's code may raise anything
        return blame(error, folder)
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
