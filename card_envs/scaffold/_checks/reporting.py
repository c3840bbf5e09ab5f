"""A plugin for pytest that writes the beginning, end and failure of each test as a line of JSON."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from card_envs.scaffold._checks.findings import Finding
from card_envs.system.processes import LOST_PARENT, end_with_parent

ROOT = Path(__file__).parents[3]
PLACES = re.compile(r" at (\S.*?\.py) \((\d+)\)|^ *File \"(.*?\.py)\", line (\d+)(?:, in (\w+))?", re.MULTILINE)


class Events:
    """The pytest plugin: writes events to a file."""

    def __init__(self, file: str, folder: Path) -> None:
        self.file = file
        self.folder = folder

    def write(self, what: str, test: str, finding: Finding) -> None:
        """Append an event; several processes may do so."""
        line = {"what": what, "test": test, "file": str(finding.file), "line": finding.line, "text": finding.text}
        with Path(self.file).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        file, line, name = location
        self.write("begun", nodeid, Finding(ROOT / file, (line or 0) + 1, name))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "teardown":
            self.write("ended", report.nodeid, Finding(ROOT, 1, ""))
        elif report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
            self.write("passed", report.nodeid, Finding(ROOT, 1, ""))
        elif isinstance(report.longrepr, tuple) and "PYTEST_XDIST_WORKER" not in os.environ:  # is skipped, and why
            self.write("skipped", report.nodeid, Finding(ROOT, 1, str(report.longrepr[2]).removeprefix("Skipped: ")))

    def pytest_sessionfinish(self) -> None:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            self.write("done", "", Finding(ROOT, 1, ""))

    def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
        file, line, name = getattr(node, "location", (node.nodeid, 0, node.name))
        finding = locate_error(call.excinfo.value, Finding(ROOT / file, (line or 0) + 1, name), self.folder)
        self.write("failed", node.nodeid, finding)


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--events", metavar="FILE", help="write events there")
    parser.addoption("--sources", metavar="FOLDER", help="of the game that is tested")


def pytest_configure(config: Any) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        end_with_parent(_end_all)
    config.pluginmanager.register(Events(config.getoption("--events"), Path(config.getoption("--sources"))))


def _end_all() -> None:
    """End this process and those that it has started."""
    if sys.platform != "win32" and os.getpgrp() == os.getpid():  # as `check` starts it
        os.killpg(0, signal.SIGKILL)
    os._exit(LOST_PARENT)


def locate_error(error: BaseException, test: Finding, folder: Path) -> Finding:
    """Return an exception in one line, at the line of the game that it names or passed through, or else of the test."""
    text = str(error).split("\nassert ")[0]  # what follows explains the expression
    message = " | ".join((_in_a_line(error, text), *getattr(error, "__notes__", ())))
    named = re.match(r"(.+\.py):(\d+): (.*)", message)
    if named and Path(named[1]).is_relative_to(folder):
        return Finding(Path(named[1]), int(named[2]), f"{named[3]} ({test.text})")
    frames = [(frame.filename, frame.lineno or 1, frame.name) for frame in traceback.extract_tb(error.__traceback__)]
    places = [(place[1] or place[3], int(place[2] or place[4]), place[5] or "") for place in PLACES.finditer(text)]
    if "Traceback (most recent call last)" in text:  # of another process: the innermost place comes last
        places.reverse()
    for file, line, function in (*places, *reversed(frames)):
        file = os.path.normpath(ROOT / file)  # Numba's are relative to where it runs
        if Path(file).is_relative_to(folder):
            return Finding(Path(file), line, f"{function + ': ' if function else ''}{message} ({test.text})")
    test_lines = [line for file, line, _ in frames if Path(file) == test.file]
    return Finding(test.file, test_lines[-1] if test_lines else test.line, f"{test.text}: {message}")


def _in_a_line(error: BaseException, text: str) -> str:
    """Return an exception's message without the text that pytest, Numba or another process put around it."""
    if "nopython" in text:
        return _of_numba(re.sub(r"Record\(.*?[,;] ?\d+[,;] ?True\)", "State", text))
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    if "Traceback (most recent call last)" in text:
        return lines[-1]
    if isinstance(error, AssertionError) or type(error).__name__ == "Failed":
        return lines[0]
    return f"{type(error).__name__}: {lines[0]}"


def _of_numba(text: str) -> str:
    if "NRT required" in text or "Only accept returning of array passed" in text:
        return "this allocates memory: rules have no lists, texts or new arrays"
    patterns = (r"(Cannot unify .*)", r"due to \"(.*)\"", r"(NameError: .*)", r">>> (.*)", r"(Unknown attribute .*)")
    for pattern in patterns:
        match = re.search(pattern, text)
        if match:
            reason = match[1].strip()
            return f"Numba has no {reason}" if pattern.startswith(">>>") else reason
    lines = (line.strip() for line in text.splitlines())
    around = ("Failed in", "During: Pass", "^", "File")
    return "Numba: " + next((line for line in lines if line and not line.startswith(around)), "")  # the reason is first
