"""Shared by the commands of this package: wrong input ends in one line, not in a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from typing import Any

import typer
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task
from rich.text import Text

from card_envs.system.console import Program, complain, console, errors_in_words, say

__all__ = ["CompilingColumn", "command", "compiling", "complain", "console", "say"]

EXTRA = ("torch", "tensorboard", "matplotlib")  # what the extra `train` installs
MISSING = {name: f"training needs {name}: pip install 'card_envs[train]'" for name in EXTRA}


def command(function: Callable[..., Any]) -> Program:
    """Return a function as a program; an integer that it returns is the exit code."""

    @wraps(function)
    def guarded(*arguments: Any, **named: Any) -> None:
        with errors_in_words(MISSING):
            code = function(*arguments, **named)
        raise typer.Exit(code or 0)

    app = Program(MISSING, add_completion=False)
    app.command()(guarded)
    return app


class CompilingColumn(ProgressColumn):
    """Shows how many functions Numba has compiled, and the time; nothing once a task has progressed."""

    def __init__(self) -> None:
        """Count from now on, or from Numba's import, which is left to those who need it."""
        super().__init__()
        self._compiled: Any = None

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        events: Any = sys.modules.get("numba.core.event")
        if self._compiled is None and hasattr(events, "RecordingListener") and hasattr(events, "register"):
            self._compiled = events.RecordingListener()
            events.register("numba:compile", self._compiled)
        if task.completed:
            return Text("")
        number = 0 if self._compiled is None else sum(event.is_end for _, event in self._compiled.buffer)
        count = f"{number} functions compiled, " if number else ""
        return Text(f"{count}{timedelta(seconds=round(task.elapsed or 0))}")


@contextmanager
def compiling() -> Iterator[None]:
    """Show that loops are compiled, which takes up to a minute on a machine that has not run them yet."""
    if not console.is_terminal:
        say("compiling and dealing")
        yield
        return
    with Progress(
        SpinnerColumn(), "compiling and dealing", CompilingColumn(), console=console, transient=True
    ) as progress:
        progress.add_task("", total=None)
        yield
