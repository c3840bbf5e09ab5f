"""A progress bar for long commands, with elapsed time and an estimate of the remaining time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text


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
