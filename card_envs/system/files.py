"""Atomic writing of files, and readers that cannot exhaust memory, whatever is in a folder.

Output goes to a temporary file or folder beside its destination first, which is then renamed. Leftovers of a killed
process are named `.new-PID-…`; a folder that it was about to replace, `.old-PID-…`. Only files that this package wrote
and recognizes are replaced or deleted; everything else in a folder stays.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

LEFTOVER = re.compile(r"\.new-\d+-[0-9a-f]{16}")
OLD = 3600.0  # seconds after which a temporary file is certainly abandoned
MAX_JSON = 64 << 20
AS_BYTES = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # Linux and Windows respectively
OwnFiles: TypeAlias = Callable[[Path], Collection[str]]  # returns the files of a folder that may be replaced


def user_path(path: str | Path) -> Path:
    """Return a path with `~` expanded. Raises ValueError for an unknown user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path}: no such user has a home folder; a file of that name is ./{path}") from None


# Writing


def replace_file(path: str | Path, content: bytes | str, *, keep: Path | None = None) -> None:
    """Write a file atomically: readers see the old content or the new, even after a crash.

    Args:
        path: destination; something else than a regular file, such as a terminal or a pipe, is opened and written to.
        content: of the file.
        keep: another name beside it for the old file, if the file system has links.

    Raises:
        OSError: names the file; the old one is unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    named, path = str(path), _resolve(path)
    mode, fresh = _mode_of(path), _beside(path)
    if mode and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        path.write_bytes(data)
        return
    try:
        _write(fresh, data)
        if mode:
            fresh.chmod(stat.S_IMODE(mode))
        if mode and keep is not None:
            with contextlib.suppress(OSError):
                second = _beside(keep)
                os.link(path, second)
                second.replace(keep)
        fresh.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, named) from None
    finally:
        fresh.unlink(missing_ok=True)


def replace_folder(folder: Path, files: Mapping[str, bytes], own_files: OwnFiles) -> None:
    """Write a folder whole: it is the old one or the new one at every moment but that between two renames.

    Other files in the old folder move to the new one, and its permissions are kept.

    Args:
        folder: destination.
        files: content by file name, or by path within the folder.
        own_files: returns the names that may be replaced in an existing folder; none if it is not one of ours.

    Raises:
        OSError, ValueError: names the folder; nothing is lost.
    """
    folder = _resolve(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    check_replaceable(folder, own_files)
    fresh, old = _beside(folder), _beside(folder, ".old")
    replaced = {Path(name).parts[0] for name in files}
    try:
        for name, data in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            _write(fresh / name, data)
        try:
            if folder.exists():
                replaced.update(own_files(folder))
                fresh.chmod(stat.S_IMODE(folder.stat().st_mode))
                folder.rename(old)
            fresh.rename(folder)
        finally:
            if old.exists() and not folder.exists():
                old.rename(folder)
        if old.exists():
            for entry in old.iterdir():
                if entry.name not in replaced:
                    entry.rename(folder / entry.name)
            shutil.rmtree(old)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    clear_leftovers(folder.parent, OLD)


def check_replaceable(folder: Path, own_files: OwnFiles) -> None:
    """Raise ValueError if `replace_folder` would replace a file, or a folder that is not one of ours."""
    folder = user_path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder, found a file; not replaced")
    if folder.is_dir() and any(folder.iterdir()) and not own_files(folder):
        raise ValueError(f"{folder}: contains other files; not replaced: choose another name")


def move_aside(path: Path) -> Path:
    """Rename a file or folder to the first free name of `path.1`, `path.2`, …; return that."""
    names = (path.with_name(f"{path.name}.{number}") for number in count(1))
    return path.rename(next(name for name in names if not os.path.lexists(name)))


def clear_leftovers(folder: Path, age: float = 0) -> None:
    """Delete temporary files of killed processes in a folder that are at least `age` seconds old."""
    for leftover in folder.glob(".new-*"):
        with contextlib.suppress(OSError):
            if not LEFTOVER.fullmatch(leftover.name) or time.time() - leftover.lstat().st_mtime < age:
                continue
            if leftover.is_dir() and not leftover.is_symlink():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink()


def _resolve(path: str | Path) -> Path:
    """Return the file or folder that a path leads to: links stay what they are."""
    return Path(os.path.realpath(user_path(path)))


def _beside(path: Path, prefix: str = ".new") -> Path:
    """Return an unused name in the same folder; its length does not depend on the path's own name."""
    return path.with_name(f"{prefix}-{os.getpid()}-{secrets.token_hex(8)}")


def _write(path: Path, data: bytes) -> None:
    """Write a new file and sync it to disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, which is empty and stays; the system releases it when the process dies.

    Raises:
        BlockingIOError: another process holds it.
        OSError: the file can't be opened, or is not an empty file.
    """
    from filelock import FileLock, Timeout  # here: most programs lock nothing

    if os.path.lexists(path) and (path.is_symlink() or not path.is_file() or path.stat().st_size):
        raise FileExistsError(errno.EEXIST, "is not an empty lock file; remove it if nobody needs it", str(path))
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BlockingIOError(errno.EAGAIN, "is in use by another process", str(path)) from None
    try:
        yield
    finally:
        lock.release()


# Checks before long work


def check_output(path: Path | None) -> None:
    """Check before long work that a file can be written afterwards. Raises ValueError."""
    if path is None:
        return
    path = user_path(path)
    try:
        if not path.parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.parent}; expected a file in an existing folder")
        if stat.S_ISDIR(mode := _mode_of(path)):
            raise ValueError(f"{path}: is a folder; expected a file in an existing folder")
        if not mode or stat.S_ISREG(mode):  # not a terminal or a pipe
            _try_writing(_resolve(path))
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror}") from None


def check_output_folder(folder: Path | None) -> None:
    """Check that files can be written to a folder, and create it if needed. Raises ValueError."""
    if folder is None:
        return
    folder = user_path(folder)
    try:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder}: no files can be written there: it is a file; expected a folder")
        folder.mkdir(parents=True, exist_ok=True)
        _try_writing(folder / "file")
    except OSError as error:
        raise ValueError(f"{folder}: no files can be written there: {error.strerror}") from None


def _mode_of(path: Path) -> int:
    """Return the mode of a file; 0: there is none."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return 0


def _try_writing(path: Path) -> None:
    fresh = _beside(path)
    fresh.open("xb").close()
    fresh.unlink()


# Reading


def read_file(path: str | Path, limit: int) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it can't be read.
        ValueError: it has more than `limit` bytes.
    """
    path = user_path(path)
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        size = status.st_size  # 0 of a pipe; `read` reserves as much memory as it may return
        most = size if stat.S_ISREG(status.st_mode) else limit + 1
        data = file.read(most) if size <= limit else b""
    if max(size, len(data)) > limit:
        raise ValueError(f"{path}: {max(size, len(data)):,} bytes or more; expected at most {limit:,}")
    return data


def read_utf8(path: str | Path, limit: int) -> bytes:
    """Read a text file as `read_file` does, without a byte order mark."""
    return read_file(path, limit).removeprefix(codecs.BOM_UTF8)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or of standard input for `-`.

    Raises ValueError that names the file if it is not JSON, and OSError if it can't be read.
    """
    data = sys.stdin.buffer.read(MAX_JSON + 1) if str(path) == "-" else read_utf8(path, MAX_JSON)
    if len(data) > MAX_JSON:
        raise ValueError(f"standard input: expected at most {MAX_JSON:,} bytes")
    try:
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:  # wrong encodings and overlong numbers are ValueErrors, too
        raise ValueError(f"{path}: not JSON: {reason(error)}") from None


def _refuse(number: str) -> None:
    raise ValueError(f"expected finite numbers, got {number}")


def write_json(path: Path, figures: Any) -> None:
    """Write figures as JSON, atomically."""
    replace_file(path, json.dumps(finite(figures), indent=1, allow_nan=False) + "\n")


def finite(figures: Any) -> Any:
    """Return figures with None in place of numbers that JSON does not have, such as those of moves not tried."""
    if isinstance(figures, dict):
        return {key: finite(value) for key, value in figures.items()}
    if isinstance(figures, (list, tuple)):
        return [finite(value) for value in figures]
    return None if isinstance(figures, float) and not math.isfinite(figures) else figures


def reason(error: Exception) -> str:
    """Return the message of a parser's exception, also if it ran out of stack."""
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


SAID = {
    errno.ENOENT: "there is no such file or folder; expected one that exists",
    errno.EEXIST: "exists already; expected a new name",
    errno.EISDIR: "is a folder; expected a file",
    errno.ENOTDIR: "there is a file where a folder should be; expected a path through folders",
    errno.EACCES: "permission denied; expected one that you may read or write",
    errno.EPERM: "permission denied; expected one that you may read or write",
    errno.EROFS: "can't be written: the file system is read-only",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "no space left on the disk",
}


def error_text(error: Exception) -> str:
    """Return the message of an exception; for system errors the problem, the file and what was expected."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    what = SAID.get(error.errno, error.strerror or type(error).__name__) if error.filename else error.strerror
    return ": ".join(str(part) for part in (error.filename, error.filename2, what) if part)


def printable(text: str) -> str:
    """Return a text with "?" for what UTF-8 lacks: parts of a path whose name has another encoding."""
    return text.encode(errors="replace").decode()


def short_repr(value: object) -> str:
    """Return an abbreviated `repr` for error messages, however large or deep the value is."""
    try:
        return f"{value!r:.200}"
    except (RecursionError, ValueError):  # the `repr` of an int with thousands of digits raises ValueError
        return f"a {type(value).__name__} too large to show"
