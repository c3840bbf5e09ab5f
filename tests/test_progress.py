"""What tests found is in the file when the run is cut off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = """
import os

def test_good():
    pass

def test_wrong():
    assert 1 + 1 == 3

def test_cut_off():
    os._exit(9)
"""


def test_a_run_that_is_cut_off_has_told_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    file = tmp_path / "new" / "progress.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.progress", "--progress", str(file), str(tmp_path)]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    lines = list(map(json.loads, file.read_text().splitlines()))
    outcomes = [(line["test"].partition("::")[2], line["outcome"]) for line in lines]
    ends = [("test_good", "passed"), ("test_wrong", "failed")]
    assert outcomes == [*((name, told) for name, end in ends for told in ("began", end)), ("test_cut_off", "began")]
    wrong = lines[3]
    assert "assert (1 + 1) == 3" in wrong["failure"]
