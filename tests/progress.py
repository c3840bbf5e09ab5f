"""A line of JSON for each test as soon as it begins or ends: `pytest -p tests.progress --progress FILE`.

What a run has found survives when it is cut off, as on a machine that is lent for minutes: failures, and what was under
way.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--progress", metavar="FILE", type=Path, help="append a line of JSON as a test begins or ends")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--progress")
    if path is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Progress(path))


class Progress:
    """Writes the reports of tests, those of xdist's workers as well."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a", encoding="utf-8")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Write that a test begins."""
        self._write({"test": nodeid, "outcome": "began"})

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write a report: of the test itself, or of what failed before or after it."""
        if report.when == "call" or report.outcome != "passed":
            seconds = round(report.duration, 1)
            line: dict[str, Any] = {"test": report.nodeid, "outcome": report.outcome, "seconds": seconds}
            if report.outcome == "failed":
                line |= {"when": report.when, "failure": report.longreprtext}
            self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()
