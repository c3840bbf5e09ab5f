"""Command-line programs: console, standard streams, and messages about invalid input."""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from importlib import metadata
from pathlib import Path
from typing import Any

import rich.console
import typer
from rich.segment import Segment
from rich.text import Text

from card_envs.system import files
from card_envs.system.processes import ended_as_by_ctrl_c

LOST_OUTPUT, WRONG_INPUT = 1, 2  # exit codes
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # but tabs and line breaks


# The console


class Console(rich.console.Console):
    """Rich's console, without markup and emoji codes: names may look like them."""

    def __init__(self, **settings: Any) -> None:
        """Take rich's settings."""
        super().__init__(**{"emoji": False, "markup": False, "highlight": False, **settings})

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """Yield what is printed; control characters, which names of files may have, are spelled out."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(spelled_out(segment.text), segment.style)


console = Console()


def say(text: str) -> None:
    """Print a line without wrapping."""
    console.print(text, soft_wrap=True)


def error_console() -> Console:
    """Return a console on stderr, as that is now."""
    return Console(stderr=True)


def spelled_out(text: str) -> str:
    """Return a text with each control character as its code in hexadecimal digits."""
    return CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def complain(text: str) -> None:
    """Print an error on stderr; control characters, which files may bring along, are spelled out."""
    error_console().print(Text.assemble(("error:", "bold red"), " ", spelled_out(text)), soft_wrap=True)


def warn_of_copies() -> None:
    """Warn on stderr if this runs in a checkout while another copy of the package is installed."""
    here = Path(__file__).resolve().parents[1]
    with contextlib.suppress(metadata.PackageNotFoundError):
        installed = Path(str(metadata.distribution("card_envs").locate_file("card_envs"))).resolve()
        if (installed / "__init__.py").is_file() and installed != here:
            error_console().print(
                f"warning: this command runs {here}, but scripts elsewhere import the copy in {installed}; "
                "`pip install -e .` in the checkout makes them one",
                soft_wrap=True,
            )


# The standard streams


def prepare_streams() -> None:
    """Print "?" in place of what the encoding of a stream lacks."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(io.UnsupportedOperation):  # it was read from already
                stream.reconfigure(errors="replace")


def silence() -> None:
    """Let what is printed from now on lead to nowhere, since nobody can read it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# Programs


class Program(typer.Typer):
    """A typer program in plain text; it expands `~` in paths.

    Invalid input ends it with one line instead of a traceback.
    """

    def __init__(self, packages: Mapping[str, str], **settings: Any) -> None:
        """Take typer's settings, and the message for each of these packages if it is missing."""
        super().__init__(rich_markup_mode=None, pretty_exceptions_enable=False, **settings)
        self._packages = packages

    def command(self, *arguments: Any, **settings: Any) -> Any:
        """Register a function, as `typer.Typer.command` does."""
        register = super().command(*arguments, **settings)

        def registered(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(function)
            def expanded(**given: Any) -> Any:
                return function(**{name: _check_argument(name, value) for name, value in given.items()})

            register(expanded)
            return function

        return registered

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the program and exit; SIGTERM and a hangup end it as Ctrl-C does."""
        prepare_streams()
        code: Any = 0
        with ended_as_by_ctrl_c():
            try:
                warn_of_copies()
                with errors_in_words(self._packages):
                    super().__call__(*arguments, **named)
            except SystemExit as end:
                code = end.code
        try:
            print(end="", flush=True)  # which needs no stdout
        except OSError:  # nobody reads it, or the disk is full
            code = code or LOST_OUTPUT
            silence()  # else Python says it again at exit
        raise SystemExit(code)


def _check_argument(name: str, value: Any) -> Any:
    """Return an argument with `~` expanded. Raises ValueError for nan and infinity, which pass typer's bounds."""
    if isinstance(value, list):
        return [_check_argument(name, one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"--{name.replace('_', '-')}: expected a finite number, got {value}")
    return files.user_path(value) if isinstance(value, Path) else value


@contextlib.contextmanager
def errors_in_words(packages: Mapping[str, str]) -> Iterator[None]:
    """End a program with one line on invalid input; `packages` has the message for each missing package."""
    try:
        yield
    except BrokenPipeError:  # the reader has left, as `head` does
        raise SystemExit(LOST_OUTPUT) from None
    except (ValueError, OSError) as error:
        complain(files.error_text(error))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in packages:
            raise
        complain(packages[missing])
    else:
        return
    raise SystemExit(WRONG_INPUT)
