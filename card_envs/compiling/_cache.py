"""A robust cache on disk for Numba: damaged files are recompiled, and there is always somewhere to write.

Numba caches beside the source or else below HOME, and gives up if it can write to neither, as in a container with a
random user. Here, a private folder below the system's temporary folder comes next. Numba also writes without syncing to
disk and unpickles whatever it finds; here, every file has a digest.
"""

from __future__ import annotations

import atexit
import glob
import hashlib
import os
import pickle
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, UserWideCacheLocator

QUIET = "CARD_ENVS_QUIET"  # environment variable
DIGEST_BYTES = hashlib.sha256().digest_size


@cache
def private_folder() -> Path:
    """Return a folder that only this user can write to, because its contents are executed.

    Raises:
        OSError: there is no temporary folder.
    """
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    folder = Path(tempfile.gettempdir()) / f"card_envs-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    is_own = not hasattr(os, "getuid") or (status.st_uid == user and not status.st_mode & 0o077)
    if stat.S_ISDIR(status.st_mode) and is_own:
        return folder
    fresh = Path(tempfile.mkdtemp(prefix="card_envs-"))  # another user owns the name: use a fresh folder, not kept
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return fresh


class _HomeLocator(UserWideCacheLocator):
    def ensure_cache_path(self) -> None:
        if not Path(self.get_cache_path()).is_absolute():  # "~" of a user without a home
            raise OSError("no home")
        super().ensure_cache_path()


class _TemporaryLocator(UserWideCacheLocator):
    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._cache_path = str(private_folder() / self.get_suitable_cache_subpath(file))

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        try:
            return super().from_function(function, file)
        except OSError:
            return None


class _Places(CompileResultCacheImpl):
    _locator_classes: ClassVar[list[Any]] = [
        _HomeLocator if locator is UserWideCacheLocator else locator
        for locator in (*CompileResultCacheImpl._locator_classes, _TemporaryLocator)
    ]


class _CheckedFiles(IndexDataCacheFile):
    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(content).digest() + content)

    def _load_data(self, name: str) -> Any:
        data = Path(self._data_path(name)).read_bytes()
        if hashlib.sha256(data[DIGEST_BYTES:]).digest() != data[:DIGEST_BYTES]:
            raise ValueError(f"{name}: checksum mismatch: truncated or modified")
        return pickle.loads(data[DIGEST_BYTES:])


class CheckedCache(FunctionCache):
    """Numba's cache, except that damaged files are recompiled and a full disk is tolerated."""

    _impl_class = _Places

    def __init__(self, function: Any, label: str, may_be_kept: Callable[[], bool]) -> None:
        super().__init__(function)
        self._label = label
        self._may_be_kept = may_be_kept
        source_stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, source_stamp)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        overload = None
        try:
            overload = super().load_overload(signature, target_context)
        except Exception:  # pickle may raise anything for a damaged file
            self._discard()
        if overload is None:
            announce(self._label)
        return overload

    def save_overload(self, signature: Any, result: Any) -> None:
        if not self._may_be_kept():
            return
        try:
            super().save_overload(signature, result)
        except OSError:
            self._discard()  # the compiled code still serves this process

    def _discard(self) -> None:
        for file in Path(self._cache_path).glob(f"{glob.escape(self._impl.filename_base)}.*"):
            with suppress(OSError):
                file.unlink(missing_ok=True)


def with_cache(dispatcher: Any, label: str, may_be_kept: Callable[[], bool]) -> Any:
    """Add a disk cache to a compiled function if there is somewhere to write.

    Args:
        dispatcher: the function.
        label: what it is compiled for, for the message.
        may_be_kept: returns whether its name still describes it; called when it has been compiled.
    """
    with suppress(RuntimeError):  # otherwise every process compiles it
        dispatcher._cache = CheckedCache(dispatcher.py_func, label, may_be_kept)
    return dispatcher


@cache
def announce(label: str) -> None:
    """Say on stderr that a game is being compiled, once per process, unless the variable CARD_ENVS_QUIET is set."""
    if not os.environ.get(QUIET):
        print(
            f"card_envs: compiling {label}: about ten seconds for the rules, up to a minute for a search, once (it is "
            f"kept on disk). `python -m card_envs build` does it ahead of time; {QUIET}=1 hides this line.",
            file=sys.stderr,
        )
