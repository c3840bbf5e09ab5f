"""Waiting for an opponent that thinks: elapsed seconds on the terminal, and Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from card_envs.system.console import error_console

Answer = TypeVar("Answer")

SHOWN_AFTER = 0.3  # seconds
LOOKED_AT_EVERY = 0.5  # seconds: on Windows, Ctrl-C does not end a wait without a limit


def thinking(who: str, work: Callable[[], Answer]) -> Answer:
    """Return the result of `work`; meanwhile stderr shows how long it has taken, if it is a terminal.

    The work has a thread of its own. So Ctrl-C ends the wait at once, in the middle of machine code, too: the thread
    goes on in the background, and its result is dropped.
    """
    result: Future[Answer] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="thinking", daemon=True).start()
    if not wait([result], SHOWN_AFTER).done:
        console = error_console()
        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            progress.add_task(f"{who} is thinking; Ctrl-C stops")
            while not wait([result], LOOKED_AT_EVERY).done:
                pass
    return result.result()
