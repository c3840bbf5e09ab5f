"""Writing in one step, reading what may be anything, and checks before long work."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import pytest

from card_envs import _files as files
from card_envs._files import check_output, check_output_folder, read_file, read_json, replace_file, replace_folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def disk_full(*arguments: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figures.json"
    replace_file(path, "old")
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    replace_file(link, b"new")
    assert path.read_text() == "new" and link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk_full)
        with pytest.raises(OSError, match=r"No space left.*figures\.json"):
            replace_file(path, "half")
    assert path.read_text() == "new" and names(tmp_path) == ["figures.json", "link"]
    replace_file("/dev/null", "nothing")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    long = tmp_path / ("x" * 255)
    replace_file(long, "names as long as they may be")
    assert long.exists()


def own_files(folder: Path) -> list[str]:
    """List the files that the folders of these tests are made of."""
    return [name for name in ("a", "b") if (folder / name).is_file()]


def test_a_folder_is_there_at_every_moment(tmp_path: Path) -> None:
    """A reader that looks all the time while it is replaced a hundred times always finds it whole."""
    folder = tmp_path / "opponent"
    replace_folder(folder, {"a": b"0"}, own_files)
    missing = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            if not folder.is_dir():
                missing.append(time.monotonic())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(100):
            replace_folder(folder, {"a": str(number).encode()}, own_files)
    finally:
        done.set()
        watcher.join()
    assert not missing and (folder / "a").read_bytes() == b"99" and names(tmp_path) == ["opponent"]


@pytest.mark.parametrize("known", [True, False])
def test_folders_are_replaced_on_every_system(tmp_path: Path, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not known:
        monkeypatch.setattr(files, "_renameat2", lambda: None)
    folder = tmp_path / "opponent"
    for content in (b"old", b"new"):
        replace_folder(folder, {"a": content}, own_files)
        assert (folder / "a").read_bytes() == content and names(tmp_path) == ["opponent"]
    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(OSError, match=r"No space left.*opponent"):
        replace_folder(folder, {"a": b"half"}, own_files)
    assert (folder / "a").read_bytes() == b"new" and names(tmp_path) == ["opponent"]


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


def test_only_regular_files_of_bounded_size_are_read(tmp_path: Path) -> None:
    fifo, large, link = tmp_path / "fifo", tmp_path / "large", tmp_path / "link"
    os.mkfifo(fifo)
    large.write_bytes(b"12345")
    link.symlink_to(large)
    assert read_file(link, 5) == b"12345"
    with pytest.raises(ValueError, match=r"large: 5 bytes or more; expected at most 4"):
        read_file(large, 4)
    for path in (fifo, Path("/dev/zero")):
        with pytest.raises(ValueError, match=f"{path}: not a regular file"):
            read_file(path, 100)
    with pytest.raises(ValueError, match="bytes or more; expected at most 100"):
        read_file("/dev/zero", 100, pipes=True)
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path, 100)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe{}", b"[" * 200_000, b"1" * 10_000, b'{"a": }'])
def test_what_is_no_json(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=rf"{path}: not JSON: \w"):
        read_json(path)


def test_outputs_are_checked_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_output(None)
    check_output(tmp_path / "new.json")
    check_output(Path("/dev/null"))
    assert names(tmp_path) == []
    (tmp_path / "file").touch()
    check_output(tmp_path / "file")
    for path, said in (
        (tmp_path / "no" / "a.json", "there is no folder"),
        (tmp_path / "file" / "a.json", "there is no folder"),
        (tmp_path, "is a folder"),
        (tmp_path / ("x" * 300), "too long"),
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
from card_envs._files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    """Others are told who has it; the system takes it back from a process that is killed."""
    path = tmp_path / ".lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError, match=f"process {holder.pid} on .*lock"), files.locked(path):
            pass
        holder.kill()
    with files.locked(path), pytest.raises(BlockingIOError) as error, files.locked(path):
        pass
    assert re.search(
        rf"\.lock: is in use by process {os.getpid()} on \S+, since [-\d]+ [:\d]+$", files.error_text(error.value)
    )
    assert path.read_text() == ""


@pytest.mark.parametrize("content", ["", "process 1 on host,", "the only copy\n"])
def test_a_lock_is_no_link(tmp_path: Path, content: str) -> None:
    """Else locking would empty the file that it leads to."""
    other, path = tmp_path / "other", tmp_path / ".lock"
    other.write_text(content)
    path.symlink_to(other)
    with pytest.raises(OSError, match="symbolic link; expected a lock file"), files.locked(path):
        pass
    assert other.read_text() == content
    other.unlink()
    with pytest.raises(OSError, match="symbolic link"), files.locked(path):
        pass
    assert not other.exists()


def test_a_lock_is_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(OSError, match="not a regular file; expected a lock file"), files.locked(tmp_path / ".lock"):
        pass


def test_a_lock_without_posix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, where a byte is locked that is not of the text."""
    taken: set[tuple[int, int]] = set()

    def locking(handle: int, mode: int, size: int) -> None:
        place = os.fstat(handle).st_ino, os.lseek(handle, 0, os.SEEK_CUR)
        if place in taken:
            raise OSError(errno.EACCES, "taken")
        taken.add(place)

    windows = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setitem(sys.modules, "fcntl", None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "msvcrt", windows)  # type: ignore[arg-type]
    path = tmp_path / ".lock"
    with files.locked(path), pytest.raises(BlockingIOError, match="process"), files.locked(path):
        pass
    assert {place for _, place in taken} == {files.LOCKED_BYTE}
