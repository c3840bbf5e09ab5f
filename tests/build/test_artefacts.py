"""All that is built, as in a fresh clone: no file that git ignores, no libraries, and nothing in Numba's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from card_envs.compiling._library import TARGET, machine
from card_envs.compiling._rules import INTERPRETED
from card_envs.scaffold.high_card import GAME as TINY
from tests.build.test_js import PORTED
from tests.conftest import program

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(INTERPRETED, reason="nothing is compiled"),
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of what a clone would have, with what is not committed yet."""
    if find_spec("ziglang") is None:
        program("zig")
    listed = subprocess.run(
        [program("git"), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a checkout")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / "clone" / name)
    return tmp_path / "clone"


def run(clone: Path, *words: str, folder: str = ".", **more: str) -> None:
    """Run a program in a clone that must succeed, with this environment's packages."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CARD_ENVS_")}
    environment |= {"PYTHONPATH": str(clone), "NUMBA_CACHE_DIR": str(clone.parent / "numba"), **more}
    done = subprocess.run(words, cwd=clone / folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def make(clone: Path, *words: str) -> None:
    """Make targets; the packages that they need are there."""
    are_there = ["-o", ".venv/train", "-o", ".venv/wheels"]
    run(clone, program("make"), *are_there, f"BIN={Path(sys.executable).parent}", *words)


def test_libraries_and_a_wheel(clone: Path) -> None:
    """Of the smallest game."""
    make(clone, "build", "native", f"GAME={TINY.package}", "WITH=--opponent greedy")
    built = clone / "card_envs" / "native" / "native"
    api = clone / "build" / "api" / "native"
    assert {"high_card.so", "engine.so", TARGET} <= {file.name for file in built.iterdir()}
    assert {"libcard_envs_high_card.so", "card_envs_high_card.h"} <= {file.name for file in api.iterdir()}
    tag = f"{machine().replace('-', '_')}:native"
    run(clone, sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist", CARD_ENVS_WHEEL=tag)
    (wheel,) = (clone / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "card_envs/native/native/high_card.so" in archive.namelist()


def test_the_package_for_javascript_and_the_page(clone: Path) -> None:
    """Of all games, with a player whose loading compiles; what is wrong with a call is said."""
    program("npm")
    make(clone, "page-static", "WITH=--opponent small")
    assert list((clone / "build").glob("card-envs-*.tgz"))
    page = clone / "build" / "page"
    assert (page / "index.html").exists() and (page / "sw.js").exists()
    assert all((page / "built" / "wasm32" / f"{game.name}.small.player").exists() for game in PORTED)
    run(clone, program("node"), "--test", "test/wrong.test.mjs", folder="js")


@pytest.mark.slow
def test_all_games_with_all_players(clone: Path) -> None:
    npm = program("npm")
    make(clone, "build", "native", "page-static")
    run(clone, npm, "test", folder="js")
