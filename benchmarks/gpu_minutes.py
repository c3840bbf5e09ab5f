"""`benchmarks/gpu_minutes.sh MINUTES`: tests, rates, profiles and training on a GPU that is lent for minutes.

Needs no network: what this machine's Python lacks is installed from the wheels in WHEELS, if that folder is there.
Steps run one after the other, each within a limit of time, whatever became of the one before. All that they write is
in OUT at once; OUT/result.json sums it up after each step, and says what did not finish.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
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
SITE = ROOT / "build" / "site"
SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"}
PACKAGES = ("torch", "numba", "numba-cuda", "numpy")
GRACE = 15.0  # seconds that a step has to end in, once it was asked to, as by Ctrl-C
AROUND = 60.0  # seconds that training takes besides learning: it imports, compiles and measures
SAID = 5  # last lines of what a failed step wrote, in result.json
PROFILED = ("back_alley", "russian_bank")
# Of the minutes that are left when each begins, a share; the last takes what is left: 0.4, 0.25 and 0.35 in all.
TRAINED = {"russian_bank": 0.4, "back_alley_advantages": 0.42, "back_alley_playouts": 1.0}
PAIRS = ("quick_pairs=4", "final_pairs=20")  # a card waits while a processor measures, which it can do later
TINY = ("num_envs=4", "num_steps=2", "hidden=[8]", "minibatch_size=8", "quick_pairs=1", "final_pairs=1")


class Step(NamedTuple):
    """A process with a limit of time.

    Attributes:
        name: its kind and what it is about, such as "rates of high_card".
        command: called with the seconds that it may take; returns the process to start.
        share: of the seconds that are left when it begins, at most that many are its own.
        most: and no more seconds than that.
    """

    name: str
    command: Callable[[float], Iterable[str | Path]]
    share: float = 1.0
    most: float = float("inf")


def steps(out: Path, wheels: Path, tiny: bool) -> dict[str, list[Step]]:
    """Return what is to be done, by kind, in this order."""
    python = sys.executable
    games = sorted(file.parent.name for file in (ROOT / "card_envs" / "games").glob("*/rules.py"))
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--upgrade", "--target", SITE]
    workers = 1 if tiny else min(16, os.cpu_count() or 1)
    files = ["tests/test_gpu.py"] if tiny else ["tests/test_gpu.py", "tests/training"]
    tests = [python, "-m", "pytest", "-m", "gpu", "-v", "-n", str(workers), "-p", "tests.progress", "--durations=0"]
    tests += ["--progress", out / "tests.jsonl", *files]

    def rates(game: str) -> list[str | Path]:
        options = ["--seconds", "0.01" if tiny else "0.7", "--json", out / "rates" / f"{game}.json"]
        return [python, "-m", "card_envs", "bench", game, "--device", "cuda", *options]

    def profile(recipe: str, *overrides: str) -> list[str | Path]:
        words = [f"gpu/{recipe}", *(TINY if tiny else ()), *overrides]
        name = "-".join([recipe, *overrides])
        return [python, "-m", "benchmarks.gpu", "--profile", *words, "--json", out / "profiles" / f"{name}.json"]

    def train(recipe: str, seconds: float) -> list[str | Path]:
        minutes = 0.005 if tiny else max(seconds / 2, seconds - AROUND) / 60
        words = [f"minutes={minutes:.3f}", f"runs={out / 'runs'}", f"name={recipe}", *(TINY if tiny else PAIRS)]
        if recipe == "back_alley_playouts":
            before = out / "runs" / "back_alley_advantages"
            words.append(f"warm_start={before if (before / 'checkpoint.safetensors').is_file() else ''}")
        return [python, "-m", "training.train", "--config", f"gpu/{recipe}", *words]

    return {
        "wheels": [Step("wheels", lambda _: [*install, *sorted(wheels.glob("*.whl"))])] if wheels.is_dir() else [],
        "tests": [Step("tests", lambda _: tests, 0.25, 180)],
        "rates": [Step(f"rates of {game}", lambda _, game=game: rates(game), 0.1, 40) for game in games],
        "profiles": [
            Step(" ".join([f"profile of {recipe}", *more]), lambda _, words=(recipe, *more): profile(*words), 0.15, 75)
            for recipe in PROFILED
            for more in ([], ["graphs=false"])
        ],
        "training": [
            Step(f"training of {recipe}", lambda seconds, recipe=recipe: train(recipe, seconds), share)
            for recipe, share in TRAINED.items()
        ],
    }


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
        self.machine = machine()
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
        command = list(map(str, step.command(limit)))
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
        """Write result.json: whoever reads it sees a whole one."""
        result = {
            "minutes": self.minutes,
            "seconds": round(60 * self.minutes - self.left, 1),
            "machine": self.machine,
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


def machine() -> dict[str, Any]:
    """Return the card, its driver, and the versions of what runs on it."""
    facts: dict[str, Any] = {"python": platform.python_version(), "cores": os.cpu_count(), "card": None}
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        line = subprocess.run(query, check=True, capture_output=True, text=True, timeout=20).stdout.splitlines()[0]
        facts["card"], facts["driver"], facts["memory"] = line.split(", ")
    versions = {name: version_of(name) for name in PACKAGES}
    return facts | {name: version for name, version in versions.items() if version}


def version_of(package: str) -> str | None:
    """Return the version of a package that steps import, or None."""
    found = distributions(name=package, path=[str(SITE), *sys.path])
    return next((one.version for one in found), None)


def found_in(out: Path) -> dict[str, Any]:
    """Return what steps have found so far, from their files."""
    rates = {file.stem: known(file)["games"][file.stem] for file in sorted(out.glob("rates/*.json"))}
    profiles = {file.stem: known(file) for file in sorted(out.glob("profiles/*.json"))}
    runs = {folder.name: run_in(folder) for folder in sorted(out.glob("runs/*")) if folder.is_dir()}
    return {"tests": tests_in(out / "tests.jsonl"), "rates": rates, "profiles": profiles, "training": runs}


def tests_in(file: Path) -> dict[str, Any]:
    """Return how many tests passed, which failed, which were under way at the end, and the seconds of each."""
    last = {line["test"]: line for line in lines_of(file)}
    by: dict[str, list[str]] = {}
    for name, line in last.items():
        by.setdefault(line["outcome"], []).append(name)
    numbers = {outcome: len(by.get(outcome, [])) for outcome in ("passed", "skipped")}
    names = {"failed": by.get("failed", []), "under_way": by.get("began", [])}
    return {**numbers, **names, "seconds": {name: line["seconds"] for name, line in last.items() if "seconds" in line}}


def run_in(folder: Path) -> dict[str, Any]:
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu_minutes.sh", description=__doc__)
    parser.add_argument("minutes", type=float, help="for all steps together")
    kinds = tuple(steps(Path(), Path(), tiny=True))
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds, help="these steps alone")
    trial = "a trial in CUDA's simulator; SIZE=tiny as well"
    parser.add_argument("--tiny", action="store_true", default=os.environ.get("SIZE") == "tiny", help=trial)
    arguments = parser.parse_args()
    out = Path(os.environ.get("OUT") or ROOT / "build" / "gpu_minutes").resolve()
    wheels = Path(os.environ.get("WHEELS") or ROOT / "build" / "wheels-gpu").resolve()
    if (out / "result.json").exists():
        shutil.move(out, out.with_name(f"{out.name}-until-{time.strftime('%Y%m%d-%H%M%S')}"))
    # A process that is started in the background ignores Ctrl-C, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    minutes = Minutes(out, arguments.minutes, SIMULATOR if arguments.tiny else None)
    by_kind = steps(out, wheels, arguments.tiny)
    try:
        minutes.run(step for kind in arguments.only for step in by_kind[kind])
    except KeyboardInterrupt:
        return 130
    finally:
        minutes.write()
        print(out / "result.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
