"""Long commands: a progress bar, Ctrl-C, and saving what there is now and then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event, Thread
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from card_envs.compiling._cache import QUIET
from card_envs.system.console import error_console

SAVE_SECONDS = 30.0  # between writes of partial results
FIRST_LINE, LAST_LINE = 10.0, 120.0  # seconds between lines about progress where there is no bar

Result = TypeVar("Result")


class TimeLeft(ProgressColumn):
    """Remaining time, from the share that is done; rich forgets steps with minutes between them."""

    def render(self, task: Task) -> Text:
        """Return the estimate, once one is possible."""
        if not task.completed or not task.total or task.elapsed is None:
            return Text("time left: not known yet")
        left = task.elapsed * (task.total - task.completed) / task.completed
        return Text(f"about {timedelta(seconds=round(left))} left")


@contextmanager
def waiting(console: Console, first: float = FIRST_LINE, last: float = LAST_LINE) -> Iterator[Progress]:
    """Show progress until the work ends or is interrupted: a bar at a terminal, otherwise a line now and then.

    Args:
        console: of the command; if it is no terminal, stderr shows the progress.
        first: seconds until the first line; the time to the next one doubles.
        last: most seconds between lines.
    """
    shown = console if console.is_terminal else error_console()
    columns = (BarColumn(20), TaskProgressColumn(), TimeElapsedColumn(), TimeLeft())
    text = TextColumn("{task.description}", markup=False)
    progress = Progress(text, *columns, console=shown, transient=True, disable=not shown.is_terminal)
    ended = Event()

    def say_lines() -> None:
        pause = first
        while not ended.wait(pause):
            pause = min(2 * pause, last)
            for task in [task for task in progress.tasks if not task.finished][-1:]:  # the one at work
                done = [f"{task.percentage:.0f} %"] if task.total else []
                spent = str(timedelta(seconds=round(task.elapsed or 0)))
                line = f"{task.description}: {', '.join([*done, spent, str(TimeLeft().render(task))])}"
                shown.print(line, soft_wrap=True)

    speaker = Thread(target=say_lines, daemon=True)
    with progress:
        if not shown.is_terminal and not os.environ.get(QUIET):
            speaker.start()
        try:
            yield progress
        finally:
            ended.set()


def collect(
    results: Iterable[Result],
    show: Callable[[Result], object],
    save: Callable[[list[Result]], object] = lambda found: None,
) -> tuple[list[Result], bool]:
    """Return results until the end or Ctrl-C, and whether Ctrl-C stopped them.

    Args:
        results: as they are finished.
        show: called with each.
        save: called with all so far, periodically.
    """
    found: list[Result] = []
    saved = time.monotonic()
    try:
        for result in results:
            found.append(result)
            show(result)
            if time.monotonic() - saved > SAVE_SECONDS:
                with suppress(OSError):  # there may be room again at the end
                    save(found)
                saved = time.monotonic()
    except KeyboardInterrupt:
        return found, True
    return found, False
