"""The shared tests on one game: run by pytest in a process of its own, with one line for each that fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from card_envs.game import Game
from card_envs.scaffold._checks.findings import Finding
from card_envs.system.processes import PARENT

# Tests of all games that run for one of another package, in their order.
SHARED = (
    "tests/test_contract.py", "tests/test_worlds.py", "tests/test_layout.py", "tests/testing/test_referee.py",
    "tests/engine/test_batch.py", "tests/envs/test_aec.py", "tests/envs/test_vector.py", "tests/test_record.py",
    "tests/compare/test_compare.py",
)  # fmt: skip
MOST_FAILURES = 5  # of a group
MOST_SECONDS = 180.0  # for one test, with what it compiles
SEARCHES_COMPILE = 4  # times as long, where tests of what is built on the rules run


def groups(game: Game, folder: Path, root: Path) -> dict[str, list[str]]:
    """Return the arguments of pytest for each group of tests, by what they test, in the order in which they run."""
    engine, game_tests = "tests/engine/test_batch.py", f"tests/games/{game.name}"
    is_local = folder.is_relative_to(root)
    if not (root / game_tests).is_dir() or not is_local:
        game_tests = str(folder / "tests")
    first = {
        # The first needs no compiler, and its errors name lines.
        "rules": [
            *("-x", "-m", ""),
            f"{engine}::test_interpreted_rules_get_the_same_bytes",
            f"{engine}::test_bounds_and_types",
        ],
        "positions, views and moves": ["tests/test_contract.py"],
        "worlds": ["tests/test_worlds.py"],
        "the rules of RULES.md": ["tests/test_layout.py", "tests/testing/test_referee.py", game_tests],
    }
    parts = {title: ["--game", game.package, *arguments] for title, arguments in first.items()}
    if is_local:  # some modules need a game of the package
        done = [argument for arguments in first.values() for argument in arguments if argument.endswith(".py")]
        rest = [*(f"--ignore={root / part}" for part in (*done, game_tests)), "tests"]
    else:
        rest = ["--game", game.package, *SHARED[4:]]
    return parts | {"what is built on the rules": ["-k", game.name, *rest]}


def run_tests(folder: Path, root: Path, arguments: list[str]) -> tuple[list[Finding], int, Counter[str]]:
    """Run a group of tests on the game in a folder.

    Returns:
        The first failures, one for each place, the number of tests that passed, and why others were skipped.
    """
    with tempfile.TemporaryDirectory(prefix="card_envs-check-") as scratch:
        events, output = Path(scratch, "events"), Path(scratch, "output")
        events.touch()
        command = [sys.executable, "-m", "pytest", "-q", "-c", str(root / "pyproject.toml"), "-p", "no:cacheprovider"]
        command += ["-p", "card_envs.scaffold._checks.reporting", f"--maxfail={MOST_FAILURES}"]
        command += [f"--events={events}", f"--sources={folder}"]
        builds = "-k" in arguments
        limit = MOST_SECONDS * (SEARCHES_COMPILE if builds else 1)
        if builds and find_spec("xdist") and os.name == "posix":
            command += ["-n", "2"]
        with output.open("wb") as file, _running([*command, *arguments], root, file) as process:
            while process.poll() is None and time.time() - events.stat().st_mtime < limit:
                time.sleep(0.1)
            status = process.poll()
        lines = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
        return _results(lines, status, output, folder, limit)


@contextmanager
def _running(command: list[str], root: Path, output: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that is ended afterwards, with those that it has started."""
    path = os.pathsep.join([*filter(None, sys.path), str(root)])
    # Not what pytest tells its own processes: the tests would run in another order.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    process = subprocess.Popen(
        command, cwd=root, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
        env=environment | {"PYTHONPATH": path, PARENT: str(os.getpid())}, start_new_session=os.name == "posix",
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            if hasattr(os, "killpg") and hasattr(signal, "SIGKILL"):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()


def _results(
    events: list[dict[str, Any]], status: int | None, output: Path, folder: Path, limit: float
) -> tuple[list[Finding], int, Counter[str]]:
    """Return the results that the events report; an early end of the process is a failure, too."""
    running: dict[str, Finding] = {}
    failed: dict[tuple[Path, int], Finding] = {}
    num_passed, done, skipped = 0, False, Counter[str]()
    for event in events:
        finding = Finding(Path(event["file"]), event["line"], event["text"])
        if event["what"] == "begun":
            running[event["test"]] = finding
        elif event["what"] == "done":
            done = True
        elif event["what"] == "failed":
            failed.setdefault(finding[:2], finding)
        elif event["what"] == "skipped":
            skipped[finding.text] += 1
        else:
            running.pop(event["test"], None)
            num_passed += event["what"] == "passed"
    findings = list(failed.values())
    if status is None or status < 0 or not done:
        if status is None:
            how = f"does not end within {limit:.0f} s"
        else:
            how = f"ends the process: {f'signal {-status}' if status < 0 else f'exit status {status}'}"
        findings += [finding._replace(text=f"{finding.text}: {how}") for finding in running.values()]
    if not findings and (status != 0 or not done):
        ended = f"does not begin within {limit:.0f} s" if status is None else f"ends with {status}"
        lines = output.read_text(encoding="utf-8", errors="replace").split("\n")
        ending = " / ".join(line.strip() for line in lines if line.strip())[-500:]
        findings.append(Finding(folder, 1, f"the tests can't run (pytest {ended}): {ending}"))
    return findings, num_passed, skipped
