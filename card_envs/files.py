"""Files that are whole or not there, and readers that nothing in a folder can hang or fill up.

Whatever is written goes to a temporary file or folder beside its place first and takes the place in one step. What a
killed process leaves behind is called `.new-…`, has a name of its own, and is in nobody's way.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

LEFTOVER = ".new-"
OLD = 3600.0  # seconds after which nobody is still writing a leftover
MAX_JSON = 64 << 20
CHUNK = 1 << 24  # bytes read at once
NOREPLACE, EXCHANGE = 1, 2  # flags of Linux's renameat2
AT_FDCWD = -100
UNKNOWN_THERE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}  # to some systems and file systems


# Writing


def replace_file(path: str | Path, content: bytes | str, *, keep: Path | None = None) -> None:
    """Write a file in one step: whoever looks finds the old content or the new, also after a crash.

    Args:
        path: its place; what is no regular file there, such as a terminal or a pipe, is written to as it is.
        content: of the file.
        keep: another name beside it, under which the old one stays where the file system has links.

    Raises:
        OSError: naming the file; what was there before is still there.
    """
    data = content.encode() if isinstance(content, str) else content
    named, path = str(path), Path(os.path.realpath(path))  # behind a link, what it points to is replaced, not the link
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(data)
        return
    fresh = _beside(path)
    try:
        _write(fresh, data)
        if path.exists():
            fresh.chmod(stat.S_IMODE(path.stat().st_mode))
        if keep is not None and path.exists():
            _keep(path, keep)
        fresh.replace(path)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise OSError(error.errno, error.strerror, named) from None
        path.write_bytes(data)  # a file that is mounted by itself, as containers do, can't be replaced
    finally:
        fresh.unlink(missing_ok=True)


def replace_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder in one step: old or new, it is there at every moment (but for an instant outside Linux).

    Raises:
        OSError, ValueError: naming it; what was there before is still there.
    """
    folder = Path(os.path.realpath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    check_replaceable(folder, files)
    fresh = _beside(folder)
    try:
        fresh.mkdir()
        for name, data in files.items():
            _write(fresh / name, data)
        if not _renamed(fresh, folder, EXCHANGE if folder.exists() else NOREPLACE):
            _swap_in_two_steps(fresh, folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # whatever is there by now: the old one, or what was not finished
    clear_leftovers(folder.parent, OLD)


def check_replaceable(folder: Path, names: Iterable[str]) -> None:
    """Raises ValueError where `replace_folder` would delete what it did not write."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder, found a file; not replaced")
    if folder.is_dir() and any(folder.iterdir()) and not any((folder / name).exists() for name in names):
        raise ValueError(f"{folder}: holds other things than {' and '.join(names)}; not replaced")


def move_aside(path: Path) -> Path:
    """Rename what is there to the first name that is free, `path.1`, `path.2`, …; returns it."""
    for number in range(1, 10**6):
        aside = path.with_name(f"{path.name}.{number}")
        if aside.exists():
            continue
        if not _renamed(path, aside, NOREPLACE):
            if aside.exists():
                continue
            path.rename(aside)
        return aside
    raise OSError(errno.EEXIST, "a million earlier ones are there", str(path))


def clear_leftovers(folder: Path, age: float = 0) -> None:
    """Delete what killed processes left half-written in a folder, as far as it is that many seconds old."""
    for leftover in folder.glob(f"{LEFTOVER}*"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.lstat().st_mtime < age:
                continue
            if leftover.is_dir() and not leftover.is_symlink():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink()


def _beside(path: Path) -> Path:
    """A name in the same folder that nobody else uses, however long the path's own name is."""
    return path.with_name(f"{LEFTOVER}{os.getpid()}-{secrets.token_hex(8)}")


def _write(path: Path, data: bytes) -> None:
    """A new file, on the disk when this returns."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _keep(path: Path, kept: Path) -> None:
    """Give a file a second name, in place of what had it."""
    link = _beside(kept)
    with contextlib.suppress(OSError):
        os.link(path, link)
        link.replace(kept)


def _swap_in_two_steps(fresh: Path, folder: Path) -> None:
    old = _beside(folder)
    if folder.exists():
        folder.rename(old)
    try:
        fresh.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _renamed(source: Path, target: Path, flag: int) -> bool:
    """Rename or exchange in one step; False where the system can't, or where NOREPLACE found a target.

    Raises:
        OSError: as `os.rename` does.
    """
    rename = _renameat2()
    if rename is None:
        return False
    if rename(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNKNOWN_THERE or (flag == NOREPLACE and number == errno.EEXIST):
        return False
    raise OSError(number, os.strerror(number), str(target))


@cache
def _renameat2() -> Any:
    """The C library's function, or None."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):
        return None
    function.argtypes = ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint
    return function


# Names of files


def expanded(path: str | Path) -> Path:
    """A path with the home folder in place of `~`, where there is one."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # nobody of that name
        return Path(path)


# Checks before long work


def check_output(path: Path | None) -> None:
    """Make sure that a file can be written: better before the work than after it.

    Raises:
        ValueError: naming the file, what is wrong, and what would be right.
    """
    if path is None:
        return
    try:
        if not path.parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.parent}; expected a file in an existing folder")
        with contextlib.suppress(FileNotFoundError):
            kind = path.stat().st_mode
            if stat.S_ISDIR(kind):
                raise ValueError(f"{path}: is a folder; expected a file in an existing folder")
            if not stat.S_ISREG(kind):
                return  # a terminal or a pipe
        _probe(_beside(Path(os.path.realpath(path))))
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror}") from None


def check_output_folder(folder: Path | None) -> None:
    """Make sure that files can be written into a folder, which is made if it is missing. Raises ValueError."""
    if folder is None:
        return
    try:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder}: no files can be written there: it is a file; expected a folder")
        folder.mkdir(parents=True, exist_ok=True)
        _probe(_beside(folder / "file"))
    except OSError as error:
        raise ValueError(f"{folder}: no files can be written there: {error.strerror}") from None


def _probe(path: Path) -> None:
    path.open("xb").close()
    path.unlink()


# Reading


def read_file(path: str | Path, limit: int, *, pipes: bool = False) -> bytes:
    """A regular file of at most `limit` bytes; nothing else is waited for, and no more is read.

    Args:
        path: where it is; a link to a regular file will do.
        limit: of its size.
        pipes: what is no regular file, such as `/dev/stdin`, may be read as well, up to the same limit.

    Raises:
        OSError: it can't be read.
        ValueError: it is larger, or no regular file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if pipes else os.O_NONBLOCK))
    with open(handle, "rb") as file:  # noqa: PTH123 (a path opened again may be another file by now)
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not (stat.S_ISREG(found.st_mode) or pipes):
            raise ValueError(f"{path}: no regular file")
        size = found.st_size  # which says nothing of a pipe, and little of a file that grows
        parts = []
        while size <= limit and (part := file.read(CHUNK)):
            parts.append(part)
            size = max(size, sum(map(len, parts)))
    if size > limit:
        raise ValueError(f"{path}: {size:,} bytes or more; expected at most {limit:,}")
    return b"".join(parts)


def read_standard_input(limit: int) -> bytes:
    """All of it. Raises ValueError where it is more than that many bytes."""
    data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"standard input: expected at most {limit:,} bytes")
    return data


def read_json(path: Path) -> Any:
    """What a file says, or standard input for `-`.

    Raises ValueError naming it if that is no JSON, OSError if it can't be read.
    """
    data = read_standard_input(MAX_JSON) if str(path) == "-" else read_file(path, MAX_JSON, pipes=True)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:  # wrong encodings and endless numbers are ValueErrors, too
        raise ValueError(f"{path}: no JSON: {reason(error)}") from None


def write_json(path: Path, figures: Any) -> None:
    """Write figures as JSON, in one step."""
    replace_file(path, json.dumps(figures, indent=1) + "\n")


def reason(error: Exception) -> str:
    """What a parser's exception says, in words also where it only ran out of stack."""
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def brief(value: object) -> str:
    """A value for an error message, however large or deep it is."""
    try:
        return f"{value!r:.200}"
    except (RecursionError, ValueError):  # whole numbers of thousands of digits are ValueErrors
        return f"a {type(value).__name__} beyond all measure"
