"""Steps with limits of time, each a process of its own, and what became of them in one JSON: for `gpu_minutes.py`."""

from __future__ import annotations

import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NamedTuple

# The standard library alone, so that a step that can't import the package is told like any other failure.
ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"  # where wheels are installed
PACKAGES = ("torch", "numba", "numba-cuda", "numpy")
GRACE = 15.0  # seconds that a step has to end in, once it was asked to, as by Ctrl-C
SAID = 5  # last lines of what a failed step wrote, in result.json


class Step(NamedTuple):
    """A process with a limit of time.

    Attributes:
        name: its kind and what it is about, such as "rates of high_card".
        arguments: of Python, called with the seconds that it may take.
        share: of the seconds that are left when it begins, at most that many are its own.
        most: and no more seconds than that.
    """

    name: str
    arguments: Callable[[float], list[str]]
    share: float = 1.0
    most: float = float("inf")


class Minutes:
    """Runs steps until the time is over, and keeps OUT/result.json up to date."""

    def __init__(self, out: Path, minutes: float, more: dict[str, str] | None = None) -> None:
        """Begin now.

        Args:
            out: the folder of all that is found.
            minutes: until the last step is ended.
            more: of the environment of all steps.
        """
        self.out, self.minutes = out, minutes
        self.begun = time.monotonic()
        path = os.pathsep.join(filter(None, [str(SITE), os.environ.get("PYTHONPATH")]))
        self.environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path, **(more or {})}
        self.card = card()
        self.done: dict[str, dict[str, Any]] = {}
        for folder in ("logs", "rates", "profiles", "runs"):
            (out / folder).mkdir(parents=True, exist_ok=True)

    @property
    def left(self) -> float:
        """Return the seconds that are left."""
        return self.begun + 60 * self.minutes - time.monotonic()

    def run(self, all_steps: Iterable[Step]) -> None:
        """Run steps one after the other; `done` and result.json say what became of each."""
        for step in all_steps:
            limit = min(step.most, step.share * self.left)
            self.done[step.name] = {"outcome": "began", "limit": round(limit, 1)}
            self.write()
            try:
                self.done[step.name] |= self.outcome(step, limit)
            except OSError as error:
                self.done[step.name] |= {"outcome": "failed", "said": [str(error)]}
            self.write()
            print(f"{60 * self.minutes - self.left:6.0f} s  {step.name}: {self.done[step.name]['outcome']}", flush=True)

    def outcome(self, step: Step, limit: float) -> dict[str, Any]:
        """Run a step and return what became of it."""
        if limit < 1:
            return {"outcome": "no time was left"}
        start = time.monotonic()
        log = self.out / "logs" / f"{step.name.replace(' ', '-')}.log"
        command = [sys.executable, *step.arguments(limit)]
        with log.open("wb") as said:
            process = subprocess.Popen(
                command, cwd=ROOT, env=self.environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            )  # fmt: skip
        grace = min(GRACE, limit / 4)
        try:
            status = process.wait(limit - grace)
            outcome = "done" if status == 0 else "failed"
        except subprocess.TimeoutExpired:
            outcome = "cut off"
        finally:
            end(process, grace)
        seconds = round(time.monotonic() - start, 1)
        found: dict[str, Any] = {"outcome": outcome, "seconds": seconds, "command": shlex.join(command)}
        if outcome != "done":
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            found |= {"status": process.returncode, "said": lines[-SAID:]}
        return found

    def write(self) -> None:
        """Write result.json, in one step: readers see a whole one."""
        result = {
            "minutes": self.minutes,
            "seconds": round(60 * self.minutes - self.left, 1),
            "machine": {**self.card, **versions()},  # which wheels change
            "steps": self.done,
            "unfinished": [name for name, step in self.done.items() if step["outcome"] != "done"],
        }
        try:
            result |= found_in(self.out)
        except (OSError, ValueError, LookupError) as error:  # the steps matter more than their sum
            result["not_summed_up"] = repr(error)
        new = self.out / "result.json.new"
        new.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        new.replace(self.out / "result.json")


def end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End a process and all that it has started; one that still runs is asked to first, as by Ctrl-C."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def card() -> dict[str, str | None]:
    """Return the card's name, driver and memory, as nvidia-smi has them."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, check=True, capture_output=True, text=True, timeout=20).stdout
        name, driver, memory = said.splitlines()[0].split(", ")
    except (OSError, subprocess.SubprocessError, LookupError, ValueError):
        return {"card": None}
    return {"card": name, "driver": driver, "memory": memory}


def versions() -> dict[str, Any]:
    """Return the number of cores, and the versions of Python and of those packages that steps find."""
    path = [str(SITE), *sys.path]
    found = {name: one.version for name in PACKAGES for one in list(distributions(name=name, path=path))[:1]}
    return {"python": platform.python_version(), "cores": os.cpu_count(), **found}


def found_in(out: Path) -> dict[str, Any]:
    """Return what steps have found so far, from their files."""
    rates = {file.stem: known(file)["games"][file.stem] for file in sorted(out.glob("rates/*.json"))}
    profiles = {file.stem: known(file) for file in sorted(out.glob("profiles/*.json"))}
    runs = {folder.name: found_by_run(folder) for folder in sorted(out.glob("runs/*")) if folder.is_dir()}
    return {"tests": found_by_tests(out / "tests.jsonl"), "rates": rates, "profiles": profiles, "training": runs}


def found_by_tests(file: Path) -> dict[str, Any]:
    """Return how many tests passed, which failed, which were under way at the end, and the seconds of each."""
    last = {line["test"]: line for line in lines_of(file)}
    by: dict[str, list[str]] = {}
    for name, line in last.items():
        by.setdefault(line["outcome"], []).append(name)
    numbers = {outcome: len(by.get(outcome, [])) for outcome in ("passed", "skipped")}
    names = {"failed": by.get("failed", []), "under_way": by.get("began", [])}
    return {**numbers, **names, "seconds": {name: line["seconds"] for name, line in last.items() if "seconds" in line}}


def found_by_run(folder: Path) -> dict[str, Any]:
    """Return what a run of training has come to: the last entry of its log, and its strength, once it is measured."""
    entries = lines_of(folder / "log.jsonl")
    opponent = folder / "opponent" / "opponent.json"
    strength = known(opponent)["strength"] if opponent.is_file() else []
    return {"iterations": len(entries), **(entries[-1] if entries else {}), "strength": strength}


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of JSON lines; one that is not whole yet is left out."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def known(file: Path) -> dict[str, Any]:
    """Return what is in a JSON file, which is replaced in one step."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found
