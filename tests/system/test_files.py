"""Writing in one step, reading what may be anything, and checks before long work."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from card_envs.system import files
from card_envs.system.files import (
    LEFTOVER,
    check_output,
    check_output_folder,
    read_file,
    read_json,
    replace_file,
    replace_folder,
)
from tests.conftest import interrupted


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def disk_full(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figures.json"
    replace_file(path, "old")
    path.chmod(0o640)
    replace_file(path, b"new")
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o640
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk_full)
        with pytest.raises(OSError, match=r"No space left.*figures\.json"):
            replace_file(path, "half")
    assert path.read_text() == "new" and names(tmp_path) == ["figures.json"]


def own_files(folder: Path) -> list[str]:
    """List the files that the folders of these tests are made of."""
    return [name for name in ("a", "b") if (folder / name).is_file()]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "opponent"
    for content in (b"old", b"new"):
        replace_folder(folder, {"a": content, "deep/b": content}, own_files)
        assert (folder / "a").read_bytes() == content and names(tmp_path) == ["opponent"]
    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match=r"No space left.*opponent"):
        replace_folder(folder, {"a": b"half"}, own_files)
    assert (folder / "a").read_bytes() == b"new" and names(tmp_path) == ["opponent"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it may come in a destructor
def test_wherever_ctrl_c_comes_a_folder_is_whole_and_nothing_of_others_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # which takes long
    folder = tmp_path / "opponent"
    replace_folder(folder, {"a": b"0", "b": b"0"}, own_files)
    (folder / "notes").write_text("years of work")

    def replace(number: int) -> None:
        content = str(number).encode()
        with suppress(OSError):  # of a handle that was closed just then
            replace_folder(folder, {"a": content, "b": content}, own_files)

    event = 1
    while interrupted(partial(replace, event), event):
        event += 1
        assert (folder / "a").read_bytes() == (folder / "b").read_bytes()
        (notes,) = tmp_path.glob("*/notes")
        assert notes.read_text() == "years of work"
        notes.replace(folder / "notes")
    assert event > 30 and (folder / "a").read_bytes() == str(event).encode()


def test_only_what_was_written_here_is_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "thesis"
    mine.mkdir()
    (mine / "chapter1").write_text("two years of work")
    with pytest.raises(ValueError, match=r"contains other files; not replaced"):
        replace_folder(mine, {"a": b""}, own_files)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ValueError, match="expected a folder, found a file"):
        replace_folder(tmp_path / "file", {"a": b""}, own_files)
    assert names(tmp_path) == ["file", "thesis"] and names(mine) == ["chapter1"]


def test_what_is_moved_aside_covers_nothing(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / str(number)).touch()
        assert files.move_aside(tmp_path / "run") == tmp_path / f"run.{number + 1}"
    assert [names(tmp_path / f"run.{number}") for number in (1, 2, 3)] == [["0"], ["1"], ["2"]]


def test_leftovers_are_cleared_by_age(tmp_path: Path) -> None:
    old, new, file = (f".new-{number}-{number:016x}" for number in (1, 2, 3))
    for name in (old, new, ".new-project", ".new-1-notes"):
        (tmp_path / name).mkdir()
    (tmp_path / file).touch()
    os.utime(tmp_path / old, (0, 0))
    os.utime(tmp_path / ".new-project", (0, 0))
    files.clear_leftovers(tmp_path, 60)
    assert names(tmp_path) == [".new-1-notes", new, file, ".new-project"]
    files.clear_leftovers(tmp_path)
    assert names(tmp_path) == [".new-1-notes", ".new-project"]


def test_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"12345")
    assert read_file(large, 5) == b"12345"
    with pytest.raises(ValueError, match=r"large: 5 bytes or more; expected at most 4"):
        read_file(large, 4)
    with pytest.raises(ValueError, match="bytes or more; expected at most 100"):
        read_file("/dev/zero", 100)
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path, 100)


@pytest.mark.parametrize("text", [b"{", b"\xff\xfe{}", b"[" * 200_000, b"1" * 10_000, b'{"a": -Infinity}'])
def test_what_is_no_json(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=rf"{path}: not JSON: \w"):
        read_json(path)


def test_values_beyond_all_measure_are_named_in_messages() -> None:
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    assert files.short_repr("x" * 10**6) == repr("x" * 10**6)[:200]
    assert files.short_repr(deep) == "a list too large to show"
    assert files.short_repr(10**5000) == "a int too large to show"


def test_outputs_are_checked_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_output(None)
    check_output(tmp_path / "new.json")
    assert names(tmp_path) == []
    (tmp_path / "file").touch()
    check_output(tmp_path / "file")
    for path, said in (
        (tmp_path / "no" / "a.json", "there is no folder"),
        (tmp_path / "file" / "a.json", "there is no folder"),
        (tmp_path, "is a folder"),
        (Path("/proc/a.json"), "cannot be written"),
    ):
        with pytest.raises(ValueError, match=said) as error:
            check_output(path)
        assert str(path) in str(error.value)
    check_output_folder(tmp_path / "deep" / "er")
    assert names(tmp_path / "deep" / "er") == []
    for path in (tmp_path / "file", tmp_path / "file" / "a", Path("/proc/a")):
        with pytest.raises(ValueError, match=f"{path}: no files can be written there"):
            check_output_folder(path)


HOLD = """
import sys, time
from pathlib import Path
from card_envs.system.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    """The system takes it back from a process that is killed."""
    path = tmp_path / ".lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError, match="in use by another process"), files.locked(path):
            pass
        holder.kill()
    with files.locked(path), pytest.raises(BlockingIOError) as error, files.locked(path):
        pass
    assert files.error_text(error.value) == f"{path}: is in use by another process"
    assert path.read_text() == ""


def test_what_is_no_lock_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.write_text("the only copy")
    with pytest.raises(FileExistsError, match="is not an empty lock file"), files.locked(path):
        pass
    assert names(tmp_path) == [".lock"] and path.read_text() == "the only copy"


def kill_at_random(work: Callable[[], object], longest: float, rng: random.Random) -> None:
    """Let a child process do some work again and again, and kill it."""
    child = os.fork()
    if child == 0:
        try:
            while True:
                work()
        finally:
            os._exit(1)
    time.sleep(rng.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)  # it was still at it


@pytest.mark.slow
def test_kills_while_saving(tmp_path: Path) -> None:
    """A file and a folder are whole at every moment, the old ones or the new."""
    folder, path = tmp_path / "opponent", tmp_path / "game.json"
    contents = [bytes([number]) * (1 << 20) for number in (1, 2)]

    def save() -> None:
        for content in contents:
            replace_folder(folder, {"a": content, "b": content}, own_files)
            replace_file(path, content)

    save()
    rng, half_written = random.Random(0), 0
    for _ in range(40):
        kill_at_random(save, 0.05, rng)
        if not folder.exists():  # between two renames: the old one is beside, perhaps with an older one's remains
            next(old for old in tmp_path.glob(".old-*") if own_files(old) == ["a", "b"]).rename(folder)
        first, second = ((folder / name).read_bytes() for name in "ab")
        assert first == second and {first, path.read_bytes()} <= {*contents}
        half_written += any(LEFTOVER.fullmatch(path.name) for path in tmp_path.iterdir())
    assert half_written
