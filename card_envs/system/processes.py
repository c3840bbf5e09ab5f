"""Processes: the signals that end a program, workers that end with it, and the cores that it may use."""

from __future__ import annotations

import ast
import math
import os
import platform
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

ENDING = ("SIGTERM", "SIGHUP")  # of schedulers and containers, and of a terminal that is closed
AGAIN = 2.0  # seconds in which another of these says the same: a closed terminal sends two
PARENT = "CARD_ENVS_PARENT"  # environment variable: the process that a worker ends with
GLANCE = 0.5  # seconds between two looks at whether it lives
LOST_PARENT = 1  # exit code
CGROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


# Signals


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Do what Ctrl-C does at SIGTERM and at a hangup of the terminal, so that partial results are saved."""
    last = -math.inf

    def end(number: int, frame: Any) -> None:
        nonlocal last
        last, before = time.monotonic(), last
        if last - before > AGAIN:
            handler = signal.getsignal(signal.SIGINT)  # such as that of an event loop
            (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)

    with handled(end, *ENDING):
        yield


@contextmanager
def handled(handler: Callable[[int, Any], object], *names: str) -> Iterator[None]:
    """Call a function at these signals, in the main thread; not at ignored ones, such as a hangup under `nohup`."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, handler) for number in map(_signal_number, unignored(*names))}
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)


def unignored(*names: str) -> list[str]:
    """Return those of these signals that the system has and that are not ignored."""
    known = [name for name in names if hasattr(signal, name)]  # Windows has no SIGHUP
    return [name for name in known if signal.getsignal(_signal_number(name)) not in (signal.SIG_IGN, None)]


def _signal_number(name: str) -> signal.Signals:
    return signal.Signals[name]


# Workers


def begin_worker() -> None:
    """Make a worker ignore Ctrl-C, which reaches all processes of a command, and end with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def end_with_parent(end: Callable[[], object] = lambda: os._exit(LOST_PARENT)) -> None:
    """End this process as soon as the one that started it has ended, however it did.

    That is a parent of `multiprocessing`, the process that `CARD_ENVS_PARENT` names, or else the present parent.

    Args:
        end: is called then, in a thread.
    """
    parent = parent_process()
    number = int(os.environ.pop(PARENT, os.getppid()))

    def wait() -> None:
        if parent is not None:
            parent.join()  # which works on Windows, where a process keeps the number of its parent
        else:
            while os.getppid() == number:
                time.sleep(GLANCE)
        end()

    threading.Thread(target=wait, daemon=True).start()


def why_no_workers() -> str:
    """Return why multiprocessing's processes, which import this program's main module, can't work; empty: they can.

    Without `if __name__ == "__main__":` each of them would come to the same place again.
    """
    main = sys.modules["__main__"]
    file, name = getattr(main, "__file__", None), getattr(getattr(main, "__spec__", None), "name", "")
    if file is None or f".{name}".endswith(".__main__"):  # these are not imported
        return ""
    try:
        statements = ast.parse(Path(file).read_bytes()).body
    except OSError:
        return f"they can't import the program {file}; save it to a file"
    except (SyntaxError, ValueError):  # no source
        return ""
    line, frame = 0, sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_globals is vars(main) and frame.f_code.co_name == "<module>":
            line = frame.f_lineno  # in the end, of the outermost one
        frame = frame.f_back
    running = [part for part in statements if part.lineno <= line <= (part.end_lineno or 0)]
    if not running or any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(running[0])):
        return ""
    return f'they would run the program again; put line {line} of {file} under `if __name__ == "__main__":`'


# Cores


def cores() -> int:
    """Return the number of cores that this process may use: as its affinity and its control group allow."""
    allotted = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(allotted, _quota())))


def processor() -> str:
    """Return the name of this machine's processor, and whether it has the vectors that ratios depend on."""
    facts = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in _read_lines(Path("/proc/cpuinfo")) if ":" in line)
    name = facts.get("model name") or platform.processor() or platform.machine()
    return f"{name} {'with' if 'avx512f' in facts.get('flags', '').split() else 'without'} AVX-512"


def _quota() -> float:
    """Return the cores' worth of time that this process's control groups (version 2) allow; inf: there is no limit."""
    limits = [math.inf]
    own = next((line[3:] for line in _read_lines(OWN_GROUPS) if line.startswith("0::")), "")
    group = CGROUPS / own.lstrip("/")
    for folder in (group, *group.parents):  # each of them limits those in it
        for line in _read_lines(folder / "cpu.max"):
            quota, period = line.split()
            limits += [] if quota == "max" else [int(quota) / int(period)]
    return min(limits)


def _read_lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # not Linux, above all
        return []
