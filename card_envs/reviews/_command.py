"""The command `review`: judge with a progress bar, then show a table, the costliest moves and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Sheet
from rich.text import Text

from card_envs.compare.contests import Contest
from card_envs.compare.estimates import FEW
from card_envs.compare.games import Plan
from card_envs.compare.report import check_picture, save_picture
from card_envs.compare.spread import Executor
from card_envs.compare.waiting import ProgressBar
from card_envs.game import Game
from card_envs.play.suits import with_suits
from card_envs.reviews._review import JUDGE, LEAST, LEVEL, Review, ReviewedMove, ReviewTask, load_judge, review_task

NONE_WORSE = "no move was clearly worse than the judge's"
NONE_JUDGED = "stopped before the first decisions were judged"
PRESETS = ("small", "strong", "champion")  # from weak to strong


def judge_all(work: Mapping[str, ReviewTask], workers: Executor, console: Console) -> tuple[dict[str, Review], bool]:
    """Judge, with a progress bar for each name; return the reviews, and whether Ctrl-C stopped them."""
    reviews = {}
    with ProgressBar(console) as bar:
        for name, task in work.items():
            bar.begin(name, len(task))
            reviews[name] = task.review(bar.collect(task.judge(workers), lambda part: bar.advance(len(part.moves))))
            if bar.stopped:
                break
    return reviews, bar.stopped


def check_review(game: Game, number: int, by: str | None) -> str:
    """Return the name of the judge; raise ValueError, before anything is played, if there is none."""
    if by is not None and not number:
        raise ValueError("by: there is nothing to judge without --review N")
    judge = by or JUDGE
    if number:
        load_judge(game, judge)
    return judge


def review_policies(
    contest: Contest, number: int, games: int, by: str, workers: Executor, console: Console
) -> tuple[dict[str, Any], bool]:
    """Judge decisions of each player of a contest; show and return the reviews, and whether Ctrl-C stopped it.

    Args:
        contest: of the players.
        number: of decisions of each.
        games: that each plays against itself, on the same deals.
        by: name of the judge.
        workers: who judges.
        console: to print to.
    """
    game, work = contest.game, dict[str, ReviewTask]()
    try:
        for name in contest.names:
            with console.status(f"{name} plays {games} games"):
                plan = Plan(game, [name], contest.seed, contest.options, contest.sampled)
                work[name] = review_task(plan, number, by, games)
    except KeyboardInterrupt:
        work = {}
    judged, stopped = judge_all(work, workers, console) if work else ({}, True)
    reviews = {name: review for name, review in judged.items() if review.moves}
    if not reviews:
        console.print(NONE_JUDGED)
        return {}, stopped
    fewest, most = (bound(map(len, work.values())) for bound in (min, max))
    decisions = f"{fewest} decisions" if fewest == most else f"{fewest} to {most} decisions"
    title = f"{game.title}: {decisions} of each from {games} games against itself, judged by {by}"
    title += ", stopped before all were judged" if stopped else ""
    console.print(review_sheet(title, reviews, by_seat=False))
    for name, review in reviews.items():
        lines = [f"\n  {cost_text(review, move)}" for move in review.costliest()]
        console.print(Text(f"{name}: costliest moves{''.join(lines)}" if lines else f"{name}: {NONE_WORSE}"))
    for name in reviews:
        if by in PRESETS and name in PRESETS[PRESETS.index(by) :]:
            console.print(
                f"{name} is no weaker than its judge: part of what it seems to lose is the judge's own error."
            )
    return {name: review.as_dict() for name, review in reviews.items()}, stopped


def review_sheet(title: str, reviews: Mapping[str, Review], by_seat: bool) -> Sheet:
    """Return a table with a row for each phase of each review, or of each of its seats."""
    some = next(iter(reviews.values()))
    few = "" if by_seat else f"; means have errors from {FEW} games and {LEAST} decisions on"
    sheet = Sheet(title=title, caption=f"costs in {some.game.view.MARGIN_UNIT}; worse: {LEVEL}{few}")
    sheet.add_column("seat" if by_seat else "policy")
    sheet.add_column("phase")
    for column in ("judged", "cost of a decision", "of a game" if by_seat else "of a game, to a side", "not worse"):
        sheet.add_column(column, justify="right")
    for name, review in reviews.items():
        seats = sorted({move.seat for move in review.moves}) if by_seat else [None]
        for seat in seats:
            label = name if seat is None else f"{seat}"
            for phase, part in review.phases(seat).items():
                share = f"{100 * part.within_error:.0f} %"
                figures = with_error(part.cost, part.error, 2), with_error(part.total, part.total_error, 1), share
                sheet.add_row(label, phase, str(part.decisions), *figures, end_section=phase == "all")
                label = ""
    return sheet


def with_error(figure: float, error: float, digits: int) -> str:
    """Return a figure with its error, if it has one."""
    return f"{figure:z.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")


def show_costliest(console: Console, review: Review) -> None:
    """Print the moves that cost most, each with the position as its seat saw it."""
    costliest = review.costliest()
    if not costliest:
        console.print(NONE_WORSE)
    for move in costliest:
        console.print(Text(f"\n{cost_text(review, move)}"))
        console.print(with_suits(review.game.view.picture(move.view), console), highlight=False)


def cost_text(review: Review, move: ReviewedMove) -> str:
    """Return in a line what a move cost."""
    figures = f"{move.cost:z.2f} ± {move.error:.2f} {review.game.view.MARGIN_UNIT}"
    where = f"Deal {move.game}, move {move.number + 1}" if review.games > 1 else f"Move {move.number + 1}"
    return f"{where}, seat {move.seat}: {move.played} instead of {move.best} cost {figures}."


def draw_costs(title: str, review: Review, path: Path) -> None:
    """Draw the costs of each seat, summed over the game. Raises ValueError as `check_picture` does."""
    check_picture(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for seat in sorted({move.seat for move in review.moves}):
        numbers, costs = zip(*((move.number + 1, move.cost) for move in review.moves if move.seat == seat))
        axes.step(numbers, np.cumsum(costs), where="post", label=f"seat {seat}")
    axes.set_xlabel("move")
    axes.set_ylabel(f"cost so far, {review.game.view.MARGIN_UNIT}")
    axes.grid(alpha=0.3)
    if review.moves:
        axes.legend()
    figure.suptitle(title)
    save_picture(figure, path, 150)
