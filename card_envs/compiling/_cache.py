"""Numba's cache on disk, which recompiles truncated files and says what is being compiled.

It is in NUMBA_CACHE_DIR, beside the source or else below HOME. Where it can write to none of them, every process
compiles.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache

from card_envs.system import QUIET


class CheckedCache(FunctionCache):
    """Numba's cache, except that truncated files are recompiled and a full disk is tolerated."""

    def __init__(self, function: Any, label: str, may_be_kept: Callable[[], bool]) -> None:
        super().__init__(function)
        self._label = label
        self._may_be_kept = may_be_kept

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
