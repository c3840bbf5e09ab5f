"""Shared by the commands of this package: wrong input ends in one line, not in a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import typer
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from card_envs.system.console import Program, complain, console, errors_in_words, say

__all__ = ["command", "compiling", "complain", "console", "say"]

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


@contextmanager
def compiling() -> Iterator[None]:
    """Show that loops are compiled, which takes up to a minute on a machine that has not run them yet."""
    if not console.is_terminal:
        say("compiling and dealing")
        yield
        return
    columns = SpinnerColumn(), "compiling and dealing", TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task("", total=None)
        yield
