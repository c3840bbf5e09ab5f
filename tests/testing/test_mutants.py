"""Mutants: copies of games with one thing made wrong, each of which the shared tests must notice.

A game's mutants stand beside its other tests, in `mutants.py`. Each becomes a package of its own, tested like anybody's
game: `pytest --game`. The table of what noticed which: `pytest tests/testing/test_mutants.py -m slow -n 2 -rP`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from card_envs.game import Game
from card_envs.testing.mutants import SHARED, Mutant
from card_envs.testing.referee import home_of_tests
from tests.conftest import games_under_test

ROOT = Path(__file__).parents[2]


AS_IT_IS = Mutant("as it is", "", "", SHARED)


def mutants() -> Iterator[Any]:
    """Each game as it is, then its mutants."""
    for game in games_under_test():
        module = f"{home_of_tests(game)}.mutants"
        if find_spec(module):
            for mutant in (AS_IT_IS, *import_module(module).MUTANTS):
                yield pytest.param(game, mutant, id=f"{game.name}: {mutant.name}")


def copied(game: Game, folder: Path) -> str:
    """Copy a game and its tests into a package of another name, under another name; returns that.

    Without presets and levels, for they name networks, which have not been trained on the copy.
    """
    name = f"mutant_{game.name}"
    package = folder / name
    shutil.copytree(Path(game.rules.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    (tests,) = import_module(home_of_tests(game)).__path__
    shutil.copytree(tests, package / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for file in package.rglob("*.py"):
        text = file.read_text().replace(home_of_tests(game), f"{name}.tests").replace(game.package, name)
        text = text.replace(f'"{game.name}"', f'"{name}"').replace(f'"{game.title}"', f'"Mutant {game.title}"')
        text = re.sub(r"^LEVELS = .*$", "LEVELS = ()", text, flags=re.MULTILINE)
        file.write_text(re.sub(r"^PRESETS = \{.*?\}$", "PRESETS = {}", text, flags=re.MULTILINE | re.DOTALL))
    return name


MUTANTS = list(mutants())


def test_mutants_apply(game: Game, tmp_path: Path) -> None:
    """The text that each replaces is in its file once, in a copy under another name."""
    described = [case.values[1] for case in MUTANTS if case.values[0] is game]
    if not described:
        pytest.skip("no mutants of it are described, in mutants.py beside its tests")
    folder = tmp_path / copied(game, tmp_path)
    for mutant in described:
        count = (folder / mutant.file).read_text().count(mutant.old)
        assert mutant is AS_IT_IS or count == 1, f"{mutant.name}: {mutant.old!r} is there {count} times"


@pytest.mark.slow
@pytest.mark.parametrize(("game", "mutant"), MUTANTS)
def test_mutants_are_noticed(game: Game, mutant: Mutant, tmp_path: Path) -> None:
    name = copied(game, tmp_path)
    file = tmp_path / name / mutant.file
    text = file.read_text()
    if mutant is not AS_IT_IS:
        assert mutant.old in text
        file.write_text(text.replace(mutant.old, mutant.new))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider", "--game", name]
    began = time.perf_counter()
    done = subprocess.run([*command, *mutant.tests], cwd=ROOT, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    noticed = re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
    print(f"\n| {game.title} | {mutant.name} | {' '.join(noticed)} | {seconds:.0f} s |")
    expected = (0, 0) if mutant is AS_IT_IS else (1, 1)
    assert (done.returncode, len(noticed)) == expected, done.stdout[-3000:] + done.stderr[-1000:]
