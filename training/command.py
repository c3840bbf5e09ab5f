"""What the commands of this package share: wrong input ends in one line, not in a traceback."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

WRONG_INPUT = 2  # exit code
EXTRA = ("torch", "tensorboard", "matplotlib")  # what the extra `train` installs
console = Console()


def command(function: Callable[..., Any]) -> typer.Typer:
    """A function as a program; a whole number that it returns is the exit code."""

    @wraps(function)
    def guarded(*arguments: Any, **named: Any) -> None:
        try:
            code = function(*arguments, **named)
        except (ValueError, OSError) as error:
            complain(str(error))
            raise typer.Exit(WRONG_INPUT) from None
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in EXTRA:
                raise
            complain(f"training needs {missing}: pip install 'card_envs[train]'")
            raise typer.Exit(WRONG_INPUT) from None
        raise typer.Exit(code or 0)

    app = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
    app.command()(guarded)
    return app


def complain(text: str) -> None:
    """Print an error as it is."""
    console.print(f"[bold red]error:[/] {escape(text)}", highlight=False, soft_wrap=True)
