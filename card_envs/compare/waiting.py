"""Long commands: a progress bar, Ctrl-C, and saving what there is now and then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from threading import Event, Thread
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from card_envs.system import QUIET
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


class ProgressBar:
    """Shows how far the steps of a command are: as bars at a terminal, otherwise as a line now and then.

    Use it in a `with` statement.

    Attributes:
        stopped: whether Ctrl-C ended `collect`.
    """

    def __init__(self, console: Console, first: float = FIRST_LINE, last: float = LAST_LINE) -> None:
        """Prepare the display.

        Args:
            console: the command's; if it is not a terminal, stderr shows the progress.
            first: seconds until the first line; the time to the next one doubles.
            last: most seconds between lines.
        """
        self.stopped = False
        self._console = console if console.is_terminal else error_console()
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            *(BarColumn(20), TaskProgressColumn(), TimeElapsedColumn(), TimeLeft()),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._pause, self._longest = first, last
        self._ended = Event()

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        if not self._console.is_terminal and not os.environ.get(QUIET):
            Thread(target=self._print_lines, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._progress.stop()

    def begin(self, label: str, total: float) -> None:
        """Begin a step, which `advance`, `update` and `collect` are about from now on."""
        self._task = self._progress.add_task(label, total=total)

    def advance(self, amount: float = 1) -> None:
        """Add to what is done of the step."""
        self._progress.advance(self._task, amount)

    def update(self, completed: float, label: str | None = None) -> None:
        """Say how much of the step is done, perhaps under another label."""
        self._progress.update(self._task, completed=completed, description=label)

    def collect(
        self,
        results: Iterable[Result],
        show: Callable[[Result], object] | None = None,
        save: Callable[[list[Result]], object] | None = None,
    ) -> list[Result]:
        """Return the results of the step until its end or Ctrl-C.

        Args:
            results: as they are finished.
            show: called with each, to advance; None: each is 1 of the total.
            save: called with all so far, periodically.
        """
        collected: list[Result] = []
        saved = time.monotonic()
        try:
            for result in results:
                collected.append(result)
                if show is None:
                    self.advance()
                else:
                    show(result)
                if save is not None and time.monotonic() - saved > SAVE_SECONDS:
                    with suppress(OSError):  # there may be room again at the end
                        save(collected)
                    saved = time.monotonic()
        except KeyboardInterrupt:
            self.stopped = True
        return collected

    def _print_lines(self) -> None:
        pause = self._pause
        while not self._ended.wait(pause):
            pause = min(2 * pause, self._longest)
            for task in [task for task in self._progress.tasks if not task.finished][-1:]:  # the step at work
                done = [f"{task.percentage:.0f} %"] if task.total else []
                spent = str(timedelta(seconds=round(task.elapsed or 0)))
                line = f"{task.description}: {', '.join([*done, spent, str(TimeLeft().render(task))])}"
                self._console.print(line, soft_wrap=True)
