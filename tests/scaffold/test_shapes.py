"""Games of unusual shapes (`tests/shapes`) pass the shared tests as any game does; what they lack is skipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from card_envs.scaffold._checks.tested import SHARED

ROOT = Path(__file__).parents[2]
NO_RATES = "comparisons show no statistics of it"
SHAPES = dict.fromkeys(("alternating", "one_move", "draw_pile", "one_seat", "simultaneous", "three_phases"), NO_RATES)
SHAPES["one_move"] = "every deal is over after a move"  # why a test is skipped that the shape can't have
QUICK = ("alternating", "one_move")


def test_every_shape_is_tested() -> None:
    files = [path for path in (ROOT / "tests" / "shapes").glob("*.py") if path.stem != "__init__"]
    assert {path.stem for path in files} == set(SHAPES)
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 120


@pytest.mark.parametrize(
    "shape",
    [pytest.param(shape, marks=pytest.mark.processes if shape in QUICK else pytest.mark.slow) for shape in SHAPES],
)
def test_shapes_pass_the_shared_tests(shape: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", shape, "-rs"]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, "--game", f"tests.shapes.{shape}", *SHARED], cwd=ROOT, env=alone, capture_output=True, text=True
    )
    print(done.stdout)
    assert done.returncode == 0 and SHAPES[shape] in done.stdout, done.stdout[-4000:] + done.stderr[-1000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 105
