"""The documents: their code blocks run, their figures are those measured, and the front page is short."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
BLOCKS = [
    (language, code)
    for page in PAGES
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.M | re.S)
]
LINES = list(dict.fromkeys(line for language, code in BLOCKS if language == "bash" for line in code.splitlines()))
# What makes a training run short; everything else runs as it stands.
SHORT = ["minutes=0.05", "num_envs=64", "num_steps=16", "quick_pairs=2", "final_pairs=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the documents' commands leave behind, so that they can run in any order."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "configs").symlink_to(ROOT / "configs")
    for config in ("configs/quickstart.toml", "configs/russian_bank.toml"):
        run([sys.executable, "-m", "training.train", "--config", config, *SHORT], folder)
    run([sys.executable, "-m", "card_envs", "play", "back_alley", "--record", "game.json"], folder, text="quit\n")
    generate = ["generate", "back_alley", "--players", "greedy", "--games", "4", "--out", "games"]
    run([sys.executable, "-m", "card_envs", *generate, "--option", "deals=single", "--processes", "1"], folder)
    run([sys.executable, "-m", "card_envs", "export", "back_alley/ppo", "model.onnx"], folder)
    run([sys.executable, "-m", "card_envs", "import", "back_alley", "model.onnx", "runs/imported"], folder)
    return folder


def run(command: list[str], folder: Path, text: str | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_block_is_known() -> None:
    assert {language for language, _ in BLOCKS} <= {"bash", "python"}
    assert len(BLOCKS) > 5


@pytest.mark.processes
@pytest.mark.parametrize("code", [code for language, code in BLOCKS if language == "python"])
def test_python_blocks_run(code: str, folder: Path) -> None:
    run([sys.executable, "-c", code], folder)


@pytest.mark.processes
@pytest.mark.parametrize("line", LINES)
def test_commands_run(line: str, folder: Path) -> None:
    words = shlex.split(line, comments=True)
    if not words or words[0] in ("git", "cd", "pip"):
        return
    if words[0] == "make":  # what it would do, without doing it
        assert "python" in run(["make", "-n", "-C", str(ROOT), *words[1:]], folder)
        return
    assert words[:2] == ["python", "-m"], f"a document shows a command that this test does not know: {line}"
    extra: list[str] = []
    if {"training.train", "train"} & set(words):
        extra = SHORT
    if "compare" in words:
        extra = ["--pairs", "3", *["--review", "20"] * ("--review" in words)]
    if "solve" in words:
        extra = ["--packs", "2"]
    if "generate" in words:
        extra = ["--games", "4", "--out", f"written-{LINES.index(line)}"]
    if "survey" in words:
        extra = ["--episodes", "20"]
    if "bench" in words:
        extra = ["--seconds", "0.05"]
    run([sys.executable, *words[1:], *extra], folder, text="quit\n")


def test_the_front_page_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120  # a row of a table can't be broken


def test_figures_are_those_measured() -> None:
    """`make figures` writes them."""
    run([sys.executable, str(ROOT / "docs" / "figures.py"), "--check"], ROOT)


WITH_ANOTHER_SUM = """
import builtins, functools, math, operator, runpy, sys
whole = builtins.sum

def added(values, start=0):
    values = [start, *values]
    if not all(isinstance(value, float) for value in values[1:]):
        return whole(values[1:], start)
    return functools.reduce(operator.add, values) if sys.argv[1] == "in order" else math.fsum(values)

builtins.sum = added
found = runpy.run_path(sys.argv[2], run_name="figures")["tables"]()
for name, table in sorted(found.items()):
    print(name, table)
"""


def test_figures_do_not_depend_on_the_interpreter() -> None:
    """`sum` of floats rounds otherwise from Python 3.12 on."""
    found = [
        run([sys.executable, "-c", WITH_ANOTHER_SUM, way, str(ROOT / "docs" / "figures.py")], ROOT)
        for way in ("in order", "at once")
    ]
    assert found[0] == found[1] and "baselines-" in found[0]


def test_the_notebook_is_kept_without_outputs() -> None:
    """The site's build runs it."""
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text())["cells"]
    assert len(cells) > 5
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_broken_links_are_found(tmp_path: Path) -> None:
    faults = runpy.run_path(str(ROOT / "docs" / "links.py"))["faults"]
    (tmp_path / "a.html").write_text('<p id=here><a href="b.html#there"><a href="#here"><a href="https://x.org/">')
    (tmp_path / "b.html").write_text('<p id=there><img src="../c.png">')
    assert faults(tmp_path) == ["b.html: ../c.png: no such file"]
    (tmp_path / "b.html").write_text('<script src="https://x.org/x.js"></script>')
    assert (
        faults(tmp_path)
        == ["b.html: loads https://x.org/x.js", "a.html: b.html#there: no such place on that page"][::-1]
    )
