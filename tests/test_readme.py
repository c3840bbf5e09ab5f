"""Every code block of the README runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
# What makes a training run short; everything else runs as it stands.
SHORT = ["minutes=0.05", "tables=64", "steps=16", "quick_pairs=2", "final_pairs=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the README's trained opponent and saved game in it, so that its commands can run in any order."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "configs").symlink_to(ROOT / "configs")
    run([sys.executable, "-m", "training.train", "--config", "configs/quickstart.toml", *SHORT], folder)
    run([sys.executable, "-m", "card_envs", "play", "back_alley", "--record", "game.json"], folder, text="quit\n")
    return folder


def run(command: list[str], folder: Path, text: str | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_block_is_known() -> None:
    assert {language for language, _ in BLOCKS} <= {"bash", "python"}
    assert len(BLOCKS) > 5


@pytest.mark.parametrize("code", [code for language, code in BLOCKS if language == "python"])
def test_python_blocks_run(code: str, folder: Path) -> None:
    run([sys.executable, "-c", code], folder)


@pytest.mark.parametrize(
    "line", [line for language, code in BLOCKS if language == "bash" for line in code.splitlines()]
)
def test_commands_run(line: str, folder: Path) -> None:
    words = shlex.split(line, comments=True)
    if not words or words[0] in ("git", "cd", "pip"):
        return
    if words[0] == "make":  # what it would do, without doing it
        assert "python" in run(["make", "-n", "-C", str(ROOT), *words[1:]], folder)
        return
    assert words[:2] == ["python", "-m"], f"the README shows a command that this test does not know: {line}"
    extra: list[str] = []
    if words[2] == "training.train":
        extra = SHORT
    if "compare" in words:
        extra = ["--pairs", "10"]
    if "solve" in words:
        extra = ["--packs", "2"]
    if "survey" in words:
        extra = ["--episodes", "20"]
    if "bench" in words:
        extra = ["--seconds", "0.05"]
    run([sys.executable, *words[1:], *extra], folder, text="quit\n")
