"""Compiled code on disk: broken files are compiled again, and it is kept wherever there is room for it."""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from card_envs.compiling import _cache as cache
from card_envs.compiling import _library
from card_envs.compiling import _specialize as specializing
from card_envs.compiling._rules import INTERPRETED
from card_envs.engine.legality import find_illegal
from tests.conftest import ROOT, run_python

USE_IT = """
import numpy as np
from card_envs.compiling import specialize
from card_envs.engine.legality import find_illegal
loop = specialize(find_illegal)
print(loop(0, 2, np.array([[3], [1]], np.uint64), 5, np.array([1, 1])))
print(loop.stats.cache_path, sum(loop.stats.cache_hits.values()))
"""

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")


@pytest.fixture(autouse=True)
def without_libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No library has what is compiled here."""
    monkeypatch.setenv("CARD_ENVS_NATIVE", "0")
    _library.chosen_target.cache_clear()
    yield
    _library.chosen_target.cache_clear()
    specializing._specialized.cache_clear()


def bound_anew() -> Any:
    """The loop as a fresh process would bind it; says that action 1 is illegal at table 1."""
    specializing._specialized.cache_clear()
    loop: Any = specializing.specialize(find_illegal)
    assert loop(0, 2, np.array([[3], [1]], np.uint64), 5, np.array([1, 1])) == 1
    return loop


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process has its cache for a while."""
    from numba.core import config

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def test_broken_files_are_compiled_anew(folder: Path) -> None:
    bound_anew()
    assert sum(bound_anew().stats.cache_hits.values()) == 1
    rng = random.Random(0)
    for suffix in (".nbi", ".nbc"):
        (file,) = folder.rglob(f"*{suffix}")
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        noise = rng.randbytes(len(whole))
        broken = [whole[:length] for length in (0, 1, 20, len(whole) // 2, len(whole) - 1)]
        broken += [noise, whole[:-100] + b"\0" * 100]
        broken += [bytes(flipped)] if suffix == ".nbc" else []
        for content in broken:
            (file,) = folder.rglob(f"*{suffix}")
            file.write_bytes(content)
            bound_anew()
            assert sum(bound_anew().stats.cache_hits.values()) == 1  # repaired


def test_a_full_disk_stops_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache._CheckedFiles, "_save_data", full)
    bound_anew()
    assert not list(folder.rglob("*.nbc"))


def test_compiling_is_announced_once(tmp_path: Path) -> None:
    """With what avoids it; not where the code is in the cache, or where it is unwanted."""
    told = []
    for quiet, folder in (("1", "one"), ("", "other"), ("", "other")):
        done = run_python("-c", USE_IT, NUMBA_CACHE_DIR=str(tmp_path / folder), CARD_ENVS_QUIET=quiet)
        told.append(done.stderr)
    unwanted, first, second = told
    assert unwanted == second == ""
    (line,) = first.splitlines()
    assert line.startswith("card_envs: compiling ") and "card_envs build" in line


@pytest.mark.processes
@pytest.mark.parametrize("taken", [False, True])
def test_where_nothing_can_be_written_a_temporary_folder_is(tmp_path: Path, taken: bool) -> None:
    """Neither beside the source, where a file is in the way of the folder, nor at home."""
    root, temporary = tmp_path / "root", tmp_path / "temporary"
    shutil.copytree(ROOT / "card_envs", root / "card_envs", ignore=shutil.ignore_patterns("__pycache__", "models"))
    (root / "card_envs" / "engine" / "__pycache__").touch()
    temporary.mkdir()
    mine = temporary / f"card_envs-{os.getuid()}"
    if taken:  # by somebody who would like us to execute what lies there
        mine.mkdir(mode=0o777)
        mine.chmod(0o777)
    places: Any = {"HOME": "/proc/none", "TMPDIR": str(temporary), "NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": ""}

    def run(code: str) -> list[str]:
        return run_python("-c", code, folder=root, paths=(root,), **places).stdout.split()

    answer, place, hits = run(USE_IT)
    assert (answer, hits) == ("1", "0") and Path(place).parent.parent == temporary
    if taken:
        assert not list(mine.iterdir()) and list(temporary.iterdir()) == [mine]
    else:
        assert stat.S_IMODE(mine.stat().st_mode) == 0o700
        assert run(USE_IT) == ["1", place, "1"]
    nowhere = "import tempfile; tempfile.gettempdir = lambda: '/proc/none'"
    assert run(nowhere + USE_IT) == ["1", "None", "0"]
