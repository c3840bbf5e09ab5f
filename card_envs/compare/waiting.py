"""How long commands take: a bar with the time that has passed, and an estimate of what is left."""

from __future__ import annotations

from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text


class TimeLeft(ProgressColumn):
    """From the share that is done; rich's own column forgets steps that are minutes apart."""

    def render(self, task: Task) -> Text:
        """The estimate, once there is anything to go by."""
        if not task.completed or not task.total or task.elapsed is None:
            return Text("time left: not known yet")
        left = task.elapsed * (task.total - task.completed) / task.completed
        return Text(f"about {timedelta(seconds=round(left))} left")


def waiting(console: Console) -> Progress:
    """A progress display that is gone when it ends."""
    columns = (BarColumn(20), TaskProgressColumn(), TimeElapsedColumn(), TimeLeft())
    return Progress(TextColumn("{task.description}"), *columns, console=console, transient=True)
