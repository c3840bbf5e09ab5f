"""Two things done in turns, by the time that this process has on its processor; and tables of what came of it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core each; before NumPy or torch is imported

from card_envs.engine._cost import per_second

Work = Callable[[], tuple[int, float]]  # does something, and returns how many decisions that were, and its CPU time
ROUNDS = 9


class Row(NamedTuple):
    """One comparison.

    Attributes:
        work: what was done.
        other: whose figure stands beside ours.
        other_rate, own_rate: decisions a second of CPU time, the best of all rounds.
        ratios: ours by theirs, in each round.
    """

    work: str
    other: str
    other_rate: float
    own_rate: float
    ratios: list[float]

    def cells(self) -> tuple[str, ...]:
        """The row as text: rates in thousands, the middle ratio with the least and the largest."""
        low, high = min(self.ratios), max(self.ratios)
        ratio = f"**{short(statistics.median(self.ratios))}** ({short(low)} to {short(high)})"
        return self.work, self.other, short(self.other_rate / 1e3), short(self.own_rate / 1e3), ratio


HEAD = ("measured", "beside", "theirs, k/s", "ours, k/s", "ours / theirs")
Benchmark = Callable[[float], Iterator[Row]]  # given the seconds of each work


def short(number: float) -> str:
    """Two or three digits that mean something."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def timed(play: Callable[[], int]) -> Work:
    """All that a function does."""

    def work() -> tuple[int, float]:
        start = time.process_time()
        done = play()
        return done, time.process_time() - start

    return work


def in_turns(work: str, other: str, theirs: Work, ours: Work, seconds: float, rounds: int = ROUNDS) -> Row:
    """Run both alternately after one warm-up run, each for about `seconds` in total."""
    both = theirs, ours
    for one in both:
        one()
    rates: list[list[float]] = [[], []]
    for _ in range(rounds):
        for one, found in zip(both, rates):
            decisions, spent, start = 0, 0.0, time.process_time()
            while decisions == 0 or time.process_time() - start < seconds / rounds:
                more, time_spent = one()
                decisions, spent = decisions + more, spent + time_spent
            found.append(per_second(decisions, spent))
    return Row(work, other, max(rates[0]), max(rates[1]), [own / their for their, own in zip(*rates)])


def markdown(rows: list[Row]) -> str:
    """Rows as a table in Markdown."""
    lines = [HEAD, ("---", "---", "--:", "--:", "--:"), *(row.cells() for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def command(benchmark: Benchmark, seconds: float = 5.0) -> None:
    """One benchmark as a program: prints its rows."""
    print(markdown(list(benchmark(seconds))), end="")
