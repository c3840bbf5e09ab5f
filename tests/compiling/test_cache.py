"""Compiled code on disk: broken files are compiled again, and a full disk stops nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from card_envs.compiling import _library
from card_envs.compiling import _specialize as specializing
from card_envs.compiling._rules import INTERPRETED
from card_envs.engine.legality import find_illegal
from tests.conftest import run_python

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
        broken = [whole[:length] for length in (0, 1, 20, len(whole) // 2, len(whole) - 1)]
        broken += [rng.randbytes(len(whole)), whole[:-100] + b"\0" * 100]
        for content in broken:
            (file,) = folder.rglob(f"*{suffix}")
            file.write_bytes(content)
            bound_anew()
            assert sum(bound_anew().stats.cache_hits.values()) == 1  # repaired


def test_a_full_disk_stops_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
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
