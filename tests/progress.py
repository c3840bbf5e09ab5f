"""A line of JSON for each test as soon as it ends, with its failure: `pytest -p tests.progress --progress FILE`.

What a run has found survives when it is cut off, as on a machine that is lent for minutes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--progress", metavar="FILE", type=Path, help="append a line of JSON for each test as it ends")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--progress")
    if path is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Progress(path))


class Progress:
    """Writes the reports of tests, those of xdist's workers as well."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a", encoding="utf-8")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write a report: of the test itself, or of what failed before or after it."""
        if report.when == "call" or report.outcome != "passed":
            line = {"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 1)}
            if report.outcome == "failed":
                line |= {"when": report.when, "failure": report.longreprtext}
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()
