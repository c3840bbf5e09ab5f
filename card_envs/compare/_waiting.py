"""Long commands: a progress bar, Ctrl-C, and saving what there is now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

SAVE_SECONDS = 30.0  # between writes of partial results

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
def waiting(console: Console) -> Iterator[Progress]:
    """Show progress until the work ends or is interrupted."""
    columns = (BarColumn(20), TaskProgressColumn(), TimeElapsedColumn(), TimeLeft())
    text = TextColumn("{task.description}", markup=False)
    with Progress(text, *columns, console=console, transient=True) as progress:
        yield progress


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
