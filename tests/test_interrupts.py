"""Ctrl-C while a command imports ends it without a traceback; what imports us as a library is left alone."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Ctrl-C comes while this module is imported, which swallows every exception, as some do.
SWALLOWER = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass
except BaseException:
    pass
print("went on")
"""


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["-m", "card_envs", "games"], "gymnasium"),
        (["-m", "card_envs", "games"], "typer"),
        (["-m", "training.train", "--help"], "typer"),
        (["-m", "training.train", "--config", "configs/quickstart.toml", "runs={runs}"], "torch"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[1],
)
def test_ctrl_c_during_imports(words: list[str], module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text(SWALLOWER)
    done = subprocess.run(
        [sys.executable, *(word.format(runs=tmp_path / "runs") for word in words)],
        cwd=ROOT, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == -signal.SIGINT, done.stderr
    assert "Traceback" not in done.stderr and "went on" not in done.stdout


def test_libraries_users_keep_their_ctrl_c() -> None:
    code = "import signal, card_envs, training; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
