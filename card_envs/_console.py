"""Command-line programs: console, standard streams, and messages about invalid input."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import math
import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from importlib import metadata
from pathlib import Path
from typing import Any

import rich.console
import typer
from rich.segment import Segment
from rich.text import Text

from card_envs import _files as files
from card_envs._processes import ended_as_by_ctrl_c

LOST_OUTPUT, WRONG_INPUT = 1, 2  # exit codes
WIDTH, HEIGHT = 80, 25  # used if the environment specifies an unusable size
MIN_SIZE = {"COLUMNS": 20, "LINES": 2}
PATIENCE = 0.2  # seconds to wait for a reader of the stream
PLAIN = str.maketrans({"±": "+-", "–": "-", "—": "-", "×": "x", "→": "->", "≤": "<=", "≥": ">=", "█": "#", "░": "."})
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # but tabs and line breaks


# The console


class Console(rich.console.Console):
    """Rich's console, without markup and emoji codes: names may look like them."""

    def __init__(self, **settings: Any) -> None:
        """Take rich's settings."""
        if not all(_usable(os.environ.get(name, str(least)), least) for name, least in MIN_SIZE.items()):
            settings = {"width": WIDTH, "height": HEIGHT, **settings}
        super().__init__(**{"emoji": False, "markup": False, "highlight": False, **settings})

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """Yield what is printed; control characters, which names of files may have, are spelled out."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(spelled_out(segment.text), segment.style)


def _usable(size: str, least: int) -> bool:
    """Return whether a size is usable; rich accepts any digits, such as ², and any number, such as 0."""
    return not size.isdigit() or (size.isdecimal() and len(size) < 6 and int(size) >= least)


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
    here = Path(__file__).resolve().parent
    with contextlib.suppress(metadata.PackageNotFoundError):
        installed = Path(str(metadata.distribution("card_envs").locate_file("card_envs"))).resolve()
        if (installed / "__init__.py").is_file() and installed != here:
            error_console().print(
                f"warning: this command runs {here}, but scripts elsewhere import the copy in {installed}; "
                "`pip install -e .` in the checkout makes them one",
                soft_wrap=True,
            )


# The standard streams


class Lasting(io.RawIOBase):
    """A standard stream that drops output after the first error.

    So a closed pipe (`| head`), a full disk or a lost terminal does not keep a command from writing its files.
    """

    def __init__(self, raw: Any, error: OSError | None = None) -> None:
        """Write to a raw stream until the first error, or not at all if `error` is given."""
        self._raw = raw
        self.error = error

    def write(self, data: Any) -> int:
        """Write some of the bytes, or drop them all; return how many."""
        began = time.monotonic()
        while self.error is None:
            try:
                written: int | None = self._raw.write(data)
                if written is not None:
                    return written
                time.sleep(0.01)  # a full pipe in non-blocking mode
            except OSError as error:
                self.error = error
            except KeyboardInterrupt:
                if time.monotonic() - began > PATIENCE:  # the reader is stuck: do not wait for it again at exit
                    self.error = OSError(errno.EPIPE, os.strerror(errno.EPIPE))
                raise
        return len(data)

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor of the raw stream."""
        return int(self._raw.fileno())

    def isatty(self) -> bool:
        """Return whether the raw stream is a terminal."""
        return bool(self._raw.isatty())


@contextlib.contextmanager
def lasting_streams() -> Iterator[None]:
    """Keep a program running whatever its standard streams are; replace what their encoding lacks by plain text.

    A closed stream reads as empty and accepts all output; like a notebook's, it has no `fileno`.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    for stream in before:
        if stream is None and (handle := os.open(os.devnull, os.O_RDWR)) > 2:
            os.close(handle)  # descriptors up to 2 stay reserved, so that no other file gets one
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BytesIO(), "utf-8")
    elif isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors == "strict":
        with contextlib.suppress(io.UnsupportedOperation):  # it was read from already
            sys.stdin.reconfigure(errors="replace")
    sys.stdout, sys.stderr = _lasting(sys.stdout), _lasting(sys.stderr)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdin, sys.stdout, sys.stderr = before


def _lasting(stream: Any) -> Any:
    """Return the same text stream on a raw stream that drops output after an error."""
    if stream is None:
        closed = Lasting(io.BytesIO(), OSError(errno.EBADF, os.strerror(errno.EBADF)))
        return io.TextIOWrapper(io.BufferedWriter(closed), "utf-8", "replace")
    if not isinstance(stream, io.TextIOWrapper):
        return stream  # in a notebook or a test
    stream.flush()
    raw = Lasting(getattr(stream.buffer, "raw", stream.buffer))
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        stream.encoding,
        "card_envs.plain",
        line_buffering=stream.line_buffering or stream.write_through,  # unbuffered ones have no buffer of bytes
    )


def _plain_letters(error: UnicodeError) -> tuple[str, int]:
    """Return plain letters for characters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = unicodedata.normalize("NFKD", error.object[error.start : error.end].translate(PLAIN))
    plain = letters.encode("ascii", "ignore").decode()
    return plain or "?", error.end


codecs.register_error("card_envs.plain", _plain_letters)


def lost_output() -> OSError | None:
    """Return the error because of which printed output is lost, or None."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.error if isinstance(raw, Lasting) else None


def is_lost() -> bool:
    """Return whether printed output is lost."""
    return lost_output() is not None


# Programs


class Program(typer.Typer):
    """A typer program in plain text that survives lost streams; it expands `~` in paths.

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
        """Run the program and exit; output that can't be printed is dropped and reported at the end.

        SIGTERM and a hangup end it as Ctrl-C does.
        """
        with lasting_streams(), ended_as_by_ctrl_c():
            code: Any = 0
            try:
                warn_of_copies()
                with errors_in_words(self._packages):
                    super().__call__(*arguments, **named)
            except SystemExit as end:
                code = end.code
            sys.stdout.flush()
            lost = lost_output()
            if lost is not None and lost.errno != errno.EBADF:  # closed from the start: nobody wants the output
                code = code or LOST_OUTPUT
                if lost.errno not in (errno.EPIPE, errno.EINVAL):  # a reader that has left; on Windows EINVAL
                    complain(f"standard output: {files.error_text(lost)}")
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
