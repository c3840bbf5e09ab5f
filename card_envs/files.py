"""Files that are whole or not there, and readers that nothing in a folder can hang or fill up.

Whatever is written goes to a temporary file or folder beside its place first and takes the place in one step. What a
killed process leaves behind is called `.new-PID-…`, has a name of its own, and is in nobody's way. What is replaced or
deleted is what was made here and can be recognised; all else in a folder stays.
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import errno
import json
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
HOLDER = re.compile(r"process \d+ on ")  # what a lock file begins with while it is held
OLD = 3600.0  # seconds after which nobody is still writing a leftover
MAX_JSON = 64 << 20
CHUNK = 1 << 24  # bytes read at once
LOCKED_BYTE = 1 << 30  # of a lock file on Windows, where a locked byte can't be read: far behind the text
AS_BYTES = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # Linux has the one, Windows the other
AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer is not waited for; Windows has none in folders
NOREPLACE, EXCHANGE = 1, 2  # flags of Linux's renameat2
AT_FDCWD = -100
OwnFiles: TypeAlias = Callable[[Path], Collection[str]]  # which files of a folder were made here; none: not that folder
UNKNOWN_THERE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}  # to some systems and file systems


def user_path(path: str | Path) -> Path:
    """Return a path with the home folder in place of `~`. Raises ValueError where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path}: no such user has a home folder; a file of that name is ./{path}") from None


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
    named, path = (
        str(path),
        Path(os.path.realpath(user_path(path))),
    )  # behind a link, what it points to is replaced, not the link
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


def replace_folder(folder: Path, files: Mapping[str, bytes], own_files: OwnFiles) -> None:
    """Write a folder in one step: old or new, it is there at every moment (but for an instant outside Linux).

    What somebody else has put into the old one is in the new one as well, and its access rights stay.

    Args:
        folder: its place.
        files: what is written into it, by name.
        own_files: the names of what it may replace in a folder that is there; none if it did not make that folder.

    Raises:
        OSError, ValueError: naming it; what was there before is still there.
    """
    folder = Path(os.path.realpath(user_path(folder)))
    folder.parent.mkdir(parents=True, exist_ok=True)
    check_replaceable(folder, own_files)
    fresh = _beside(folder)
    try:
        fresh.mkdir()
        for name, data in files.items():
            _write(fresh / name, data)
        if folder.exists():
            fresh.chmod(stat.S_IMODE(folder.stat().st_mode))
            for entry in folder.iterdir():
                if entry.name not in {*files, *own_files(folder)}:
                    _add_copy(entry, fresh / entry.name)
        if not _renamed(fresh, folder, EXCHANGE if folder.exists() else NOREPLACE):
            _swap_in_two_steps(fresh, folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # whatever is there by now: the old one, or what was not finished
    clear_leftovers(folder.parent, OLD)


def check_replaceable(folder: Path, own_files: OwnFiles) -> None:
    """Raise ValueError where `replace_folder` would replace a file, or a folder that it did not make."""
    folder = user_path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder, found a file; not replaced")
    if folder.is_dir() and any(folder.iterdir()) and not own_files(folder):
        raise ValueError(f"{folder}: holds other things than what is written there; not replaced: take another name")


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
    for leftover in folder.glob(".new-*"):
        with contextlib.suppress(OSError):
            if not LEFTOVER.fullmatch(leftover.name) or time.time() - leftover.lstat().st_mtime < age:
                continue
            if leftover.is_dir() and not leftover.is_symlink():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink()


def _beside(path: Path) -> Path:
    """Return a name in the same folder that nobody else uses, however long the path's own name is."""
    return path.with_name(f".new-{os.getpid()}-{secrets.token_hex(8)}")


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


def _add_copy(entry: Path, copy: Path) -> None:
    """Give a file a second name, and all files of a folder; where the file system has no links they are copied."""
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
    """Be the only process that has a lock file open; the system takes it back from a process that dies.

    The file says who has it, and stays when it is given back: to delete it would let two others in at once.

    Raises:
        BlockingIOError: another process has it; its text says which.
        OSError: the file can't be opened.
    """
    with path.open("a+", encoding="utf-8", errors="replace") as file:
        if path.stat().st_size and not HOLDER.match(_text_of(file)):
            raise FileExistsError(errno.EEXIST, "is no lock file of this package", str(path))
        if not _takes(file.fileno()):
            raise BlockingIOError(errno.EAGAIN, _text_of(file) or "another process", str(path))
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}, since {time.strftime('%Y-%m-%d %H:%M:%S')},\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _text_of(file: TextIO) -> str:
    file.seek(0)
    return file.read(1000).strip()


def _takes(handle: int) -> bool:
    """Lock an open file, unless another process has; closing it gives the lock back."""
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
    """Make sure that a file can be written: better before the work than after it.

    Raises:
        ValueError: naming the file, what is wrong, and what would be right.
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
    """Make sure that files can be written into a folder, which is made if it is missing. Raises ValueError."""
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
    """Return a regular file of at most `limit` bytes; nothing else is waited for, and no more is read.

    Args:
        path: where it is; a link to a regular file will do.
        limit: of its size.
        pipes: what is no regular file, such as `/dev/stdin`, may be read as well, up to the same limit.

    Raises:
        OSError: it can't be read.
        ValueError: it is larger, or no regular file.
    """
    with open(user_path(path), "rb", opener=None if pipes else _open_at_once) as file:
        found = os.fstat(file.fileno())
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


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | AT_ONCE)


def read_utf8(path: str | Path, limit: int, *, pipes: bool = False) -> bytes:
    """Read a file of text as `read_file` does, without the byte order mark that some editors begin it with."""
    return read_file(path, limit, pipes=pipes).removeprefix(codecs.BOM_UTF8)


def read_standard_input(limit: int) -> bytes:
    """Return all of it. Raises ValueError where it is more than that many bytes."""
    data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"standard input: expected at most {limit:,} bytes")
    return data


def read_json(path: Path) -> Any:
    """What a file says, or standard input for `-`.

    Raises ValueError naming it if that is no JSON, OSError if it can't be read.
    """
    data = read_standard_input(MAX_JSON) if str(path) == "-" else read_utf8(path, MAX_JSON, pipes=True)
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


def in_words(error: Exception) -> str:
    """Return what an exception says; of the system's errors what, where, and what would be right."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    what = SAID.get(error.errno, error.strerror or type(error).__name__) if error.filename else error.strerror
    return ": ".join(str(part) for part in (error.filename, error.filename2, what) if part)


def short_repr(value: object) -> str:
    """Return a value for an error message, however large or deep it is."""
    try:
        return f"{value!r:.200}"
    except (RecursionError, ValueError):  # whole numbers of thousands of digits are ValueErrors
        return f"a {type(value).__name__} beyond all measure"
