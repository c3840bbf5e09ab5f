"""Speed beside that of others, measured in turns by the time that this process has on its processor: see README.md.

NumPy and torch are imported later, since a program here sets their threads first.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

Work = Callable[[], tuple[int, float]]  # does something, and returns how many decisions that were, and its CPU time
ROUNDS = 9


class Row(NamedTuple):
    """One comparison.

    Attributes:
        work, other: what was done, and whose figure stands beside ours.
        other_rate, our_rate: decisions a second of CPU time, the best of all rounds.
        ratios: ours by theirs, in each round.
    """

    work: str
    other: str
    other_rate: float
    our_rate: float
    ratios: list[float]

    def cells(self) -> tuple[str, ...]:
        """Return the row as text: rates in thousands, the middle ratio with the least and the largest."""
        low, high = min(self.ratios), max(self.ratios)
        ratio = f"**{short(statistics.median(self.ratios))}** ({short(low)} to {short(high)})"
        return self.work, self.other, short(self.other_rate / 1e3), short(self.our_rate / 1e3), ratio


HEAD = ("measured", "beside", "theirs, k/s", "ours, k/s", "ours / theirs")


def short(number: float) -> str:
    """Return a number with two or three digits that mean something."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def as_work(play: Callable[[], int]) -> Work:
    """Return a function with the CPU time that it takes, as `Work`."""

    def work() -> tuple[int, float]:
        start = time.process_time()
        done = play()
        return done, time.process_time() - start

    return work


def in_turns(work: str, other: str, theirs: Work, ours: Work, seconds: float, rounds: int = ROUNDS) -> Row:
    """Run both alternately after one warm-up run, each for about `seconds` in total."""
    from card_envs.engine.cost import per_second

    both = theirs, ours
    for run in both:
        run()
    rates: list[list[float]] = [[], []]
    for _ in range(rounds):
        for run, samples in zip(both, rates):
            decisions, spent, start = 0, 0.0, time.process_time()
            while decisions == 0 or time.process_time() - start < seconds / rounds:
                more, time_spent = run()
                decisions, spent = decisions + more, spent + time_spent
            samples.append(per_second(decisions, spent))
    return Row(work, other, max(rates[0]), max(rates[1]), [our / their for their, our in zip(*rates)])


def markdown(rows: list[Row]) -> str:
    """Return rows as a table in Markdown."""
    lines = [HEAD, ("---", "---", "--:", "--:", "--:"), *(row.cells() for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
