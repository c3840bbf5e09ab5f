"""Atomic writing of files, and readers that cannot hang or exhaust memory, whatever is in a folder.

Output goes to a temporary file or folder beside its destination first and replaces it in one step. Leftovers of a
killed process are named `.new-PID-…` and never conflict with anything. Only files that this package wrote and
recognizes are replaced or deleted; everything else in a folder stays.
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import errno
import json
import math
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TextIO, TypeAlias

LEFTOVER = re.compile(r"\.new-\d+-[0-9a-f]{16}")
HOLDER = re.compile(r"process \d+ on ")  # the start of a lock file's text
OLD = 3600.0  # seconds after which a temporary file is certainly abandoned
MAX_JSON = 64 << 20
CHUNK = 1 << 24  # bytes per read
LOCKED_BYTE = 1 << 30  # far behind the text, because a locked byte can't be read on Windows
AS_BYTES = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # Linux and Windows respectively
AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # do not wait for a writer of a pipe; Windows has no pipes in folders
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)  # a link is not followed; Windows has no such flag
NOREPLACE, EXCHANGE = 1, 2  # flags of Linux's renameat2
AT_FDCWD = -100
OwnFiles: TypeAlias = Callable[[Path], Collection[str]]  # returns the files of a folder that may be replaced
UNKNOWN_THERE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}  # not supported here


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
        path: destination; something else than a regular file, such as a terminal or a pipe, is written to directly.
        content: of the file.
        keep: another name beside it for the old file, if the file system has links.

    Raises:
        OSError: names the file; the old one is unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    named, path = (
        str(path),
        Path(os.path.realpath(user_path(path))),
    )  # the target of a link is replaced, not the link
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
        path.write_bytes(data)  # a bind-mounted file, as in containers, can't be replaced
    finally:
        fresh.unlink(missing_ok=True)


def replace_folder(folder: Path, files: Mapping[str, bytes], own_files: OwnFiles) -> None:
    """Write a folder atomically: old or new, it exists at every moment (except for an instant outside Linux).

    Other files in the old folder are carried over, and its permissions are kept.

    Args:
        folder: destination.
        files: content by file name, or by path within the folder.
        own_files: returns the names that may be replaced in an existing folder; none if it is not one of ours.

    Raises:
        OSError, ValueError: names the folder, which is unchanged.
    """
    folder = Path(os.path.realpath(user_path(folder)))
    folder.parent.mkdir(parents=True, exist_ok=True)
    check_replaceable(folder, own_files)
    fresh = _beside(folder)
    try:
        fresh.mkdir()
        for name, data in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            _write(fresh / name, data)
        if folder.exists():
            fresh.chmod(stat.S_IMODE(folder.stat().st_mode))
            replaced = {Path(name).parts[0] for name in files}
            for entry in folder.iterdir():
                if entry.name not in {*replaced, *own_files(folder)}:
                    _add_copy(entry, fresh / entry.name)
        if not _renamed(fresh, folder, EXCHANGE if folder.exists() else NOREPLACE):
            _swap_in_two_steps(fresh, folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # either the old folder or an unfinished new one
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
    for number in range(1, 10**6):
        aside = path.with_name(f"{path.name}.{number}")
        if aside.exists():
            continue
        if not _renamed(path, aside, NOREPLACE):
            if aside.exists():
                continue
            path.rename(aside)
        return aside
    raise OSError(errno.EEXIST, "a million earlier ones exist", str(path))


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


def _beside(path: Path) -> Path:
    """Return an unused name in the same folder; its length does not depend on the path's own name."""
    return path.with_name(f".new-{os.getpid()}-{secrets.token_hex(8)}")


def _write(path: Path, data: bytes) -> None:
    """Write a new file and sync it to disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _keep(path: Path, kept: Path) -> None:
    """Give a file a second name, replacing an existing one."""
    link = _beside(kept)
    with contextlib.suppress(OSError):
        os.link(path, link)
        link.replace(kept)


def _add_copy(entry: Path, copy: Path) -> None:
    """Hard-link a file, or all files of a folder; copy them if the file system has no links."""
    if entry.is_dir() and not entry.is_symlink():
        shutil.copytree(entry, copy, symlinks=True, copy_function=_link)
    else:
        _link(entry, copy)


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except (OSError, NotImplementedError, AttributeError):  # not every system has links
        shutil.copy2(source, target, follow_symlinks=False)


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
    """Rename or exchange atomically; return False if unsupported, or if NOREPLACE found a target.

    Raises:
        OSError: as `os.rename`.
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
    """Return the C library's function, or None."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):
        return None
    function.argtypes = ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint
    return function


# Locking


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file exclusively; the system releases it when the process dies.

    The file names the holder. It stays after release: deleting it would let two processes lock it at once.

    Raises:
        BlockingIOError: another process holds it; the message names it.
        OSError: the file can't be opened, or is no lock file, such as a symbolic link.
    """
    if path.is_symlink():  # where NOFOLLOW says it less clearly, or does not exist
        raise OSError(errno.ELOOP, "is a symbolic link; expected a lock file of this package", str(path))
    with open(path, "a+", encoding="utf-8", errors="replace", opener=_open_itself) as file:
        found = os.fstat(file.fileno())
        if found.st_size and not HOLDER.match(_text_of(file)):
            raise FileExistsError(errno.EEXIST, "is not a lock file of this package", str(path))
        if not _takes(file.fileno()):
            raise BlockingIOError(errno.EAGAIN, f"is in use by {_text_of(file) or 'another process'}", str(path))
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _open_itself(path: str, flags: int) -> int:
    handle = os.open(path, flags | NOFOLLOW | AT_ONCE, 0o666)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "not a regular file; expected a lock file of this package", path)


def _text_of(file: TextIO) -> str:
    file.seek(0)
    return file.read(1000).strip()


def _takes(handle: int) -> bool:
    """Lock an open file unless another process has locked it; closing it releases the lock."""
    try:
        import fcntl
    except ImportError:  # Windows
        return _takes_byte(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _takes_byte(handle: int) -> bool:
    import msvcrt

    os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True


# Checks before long work


def check_output(path: Path | None) -> None:
    """Check before long work that a file can be written afterwards.

    Raises:
        ValueError: names the file, the problem and what was expected.
    """
    if path is None:
        return
    path = user_path(path)
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
    """Check that files can be written to a folder, and create it if needed. Raises ValueError."""
    if folder is None:
        return
    folder = user_path(folder)
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
    """Return a regular file of at most `limit` bytes, without waiting for anything else or reading more.

    Args:
        path: a regular file, or a link to one.
        limit: of its size.
        pipes: accept other files, such as `/dev/stdin`, up to the same limit.

    Raises:
        OSError: it can't be read.
        ValueError: it is larger, or not a regular file.
    """
    with open(user_path(path), "rb", opener=None if pipes else _open_at_once) as file:
        found = os.fstat(file.fileno())
        if not (stat.S_ISREG(found.st_mode) or pipes):
            raise ValueError(f"{path}: not a regular file")
        size = found.st_size  # meaningless for a pipe, and a lower bound for a growing file
        parts = []
        while size <= limit and (part := file.read(CHUNK)):
            parts.append(part)
            size = max(size, sum(map(len, parts)))
    if size > limit:
        raise ValueError(f"{path}: {size:,} bytes or more; expected at most {limit:,}")
    return b"".join(parts)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | AT_ONCE)


def read_utf8(path: str | Path, limit: int, *, pipes: bool = False) -> bytes:
    """Read a text file as `read_file` does, without a byte order mark."""
    return read_file(path, limit, pipes=pipes).removeprefix(codecs.BOM_UTF8)


def read_standard_input(limit: int) -> bytes:
    """Return standard input. Raises ValueError if it has more than `limit` bytes."""
    data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"standard input: expected at most {limit:,} bytes")
    return data


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or of standard input for `-`.

    Raises ValueError that names the file if it is not JSON, and OSError if it can't be read.
    """
    data = read_standard_input(MAX_JSON) if str(path) == "-" else read_utf8(path, MAX_JSON, pipes=True)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:  # wrong encodings and overlong numbers are ValueErrors, too
        raise ValueError(f"{path}: not JSON: {reason(error)}") from None


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
