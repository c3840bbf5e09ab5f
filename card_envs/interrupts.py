"""Ctrl-C while a command is still importing: it ends at once, without a traceback.

A KeyboardInterrupt in the middle of an import is no use: some libraries swallow it, others leave half a module behind,
and what is imported before the command's own code runs is shown as a traceback.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

COMMANDS = ("card_envs", "training")
SCRIPT = "card-envs"
IMPORTING = "<frozen importlib._bootstrap>"
SHOW_CURSOR = "\x1b[?25h"  # a spinner hides it


def end_imports_quietly() -> None:
    """From now on, and only in a process that is a command of ours: a program that imports us decides for itself."""
    in_charge = threading.current_thread() is threading.main_thread()
    if _is_command() and in_charge and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _on_ctrl_c)


def _is_command() -> bool:
    words = sys.orig_argv
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1].partition(".")[0] in COMMANDS
    return len(words) > 1 and os.path.basename(words[1]) == SCRIPT  # noqa: PTH119 (what pathlib imports takes a while)


def _on_ctrl_c(number: int, frame: FrameType | None) -> None:
    at = frame
    while at is not None and at.f_code.co_filename != IMPORTING:
        at = at.f_back
    if at is None:
        signal.default_int_handler(number, frame)
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), SHOW_CURSOR.encode())
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


end_imports_quietly()
