"""The decorators of compiled functions. Importing them imports no compiler: Numba is loaded when it has to compile.

Rules (`rule`) are compiled as parts of loops; `specialize` turns loops into machine code. Where a library that was
built ahead of time has a loop, Numba is never imported (`engine/_library.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from card_envs.engine._compilable import INTERPRETED as INTERPRETED
from card_envs.engine._compilable import Rule, plain

Function = TypeVar("Function", bound=Callable[..., Any])


def checks_bounds() -> bool:
    """Return whether code compiled now raises IndexError for an index out of bounds."""
    config = getattr(sys.modules.get("numba"), "config", None)
    return bool(config.BOUNDSCHECK) if config else os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")


def rule(function: Function) -> Function:
    """Compile a rule function: no allocation, no exceptions, no Python objects inside."""
    return cast(Function, function if INTERPRETED else Rule(function, inline=True))


def noinline(function: Function) -> Function:
    """Compile a rule function that is called, not inlined: inlining many large ones takes minutes to compile."""
    return cast(Function, plain(function) if INTERPRETED else Rule(plain(function), inline=False))


def loop(function: Function) -> Function:
    """Compile a loop over tables: cached on disk, releases the GIL."""
    from card_envs.engine import _numba

    return cast(Function, _numba.compiled_loop(function))


def threads(function: Function) -> Any:
    """Return a loop as a CUDA kernel, `kernel[blocks, threads, stream](number, *arguments)`.

    Thread i runs the loop for table i alone: the kernel sets the loop's first two parameters, the ends of the range.
    """
    from card_envs.engine import _numba

    return _numba.compiled_kernel(function, INTERPRETED)
