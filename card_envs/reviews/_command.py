"""The command `review`: judge with a progress bar, then show a table, the costliest moves and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Sheet
from rich.text import Text

from card_envs.compare._contest import Contest
from card_envs.compare._report import check_picture, save_picture
from card_envs.compare._spread import Executor
from card_envs.compare._waiting import waiting
from card_envs.opponents import load_opponent
from card_envs.reviews._review import Review, ReviewedMove, Reviewing, sampled_positions
from card_envs.terminal._suits import with_suits

PRESETS = ("small", "strong", "champion")  # from weak to strong


def run(work: Mapping[str, Reviewing], workers: Executor, console: Console) -> bool:
    """Judge, with a progress bar for each name. Ctrl-C stops; return whether it did."""
    try:
        with waiting(console) as progress:
            for name, reviewing in work.items():
                bar = progress.add_task(name, total=reviewing.total)
                for judged in reviewing.judge(workers):
                    progress.advance(bar, judged)
    except KeyboardInterrupt:
        return True
    return False


def review_policies(
    contest: Contest, number: int, by: str, workers: Executor, console: Console
) -> tuple[dict[str, Any], bool]:
    """Judge decisions of each player of a contest; show and return the reviews, and whether Ctrl-C stopped it.

    Args:
        contest: of the players.
        number: of decisions of each.
        by: name of the judge.
        workers: who judges.
        console: to print to.
    """
    game, options = contest.game, dict(contest.options)
    work = {}
    with console.status("playing"):
        for name in contest.names:
            opponent = load_opponent(name, game, sampled=contest.sampled)
            work[name] = Reviewing(game, by, sampled_positions(opponent, number, options, contest.seed), contest.seed)
    stopped = run(work, workers, console)
    reviews = {name: reviewing.review for name, reviewing in work.items() if reviewing.review.moves}
    title = f"{game.title}: {number} decisions of each, judged by {by}, in {game.margin_unit}"
    console.print(sheet_of(title, reviews, by_seat=False))
    for name in reviews:
        if by in PRESETS and name in PRESETS[PRESETS.index(by) :]:
            console.print(
                f"{name} is no weaker than its judge: part of what it seems to lose is the judge's own error."
            )
    return {name: {**review.as_dict(), "moves": []} for name, review in reviews.items()}, stopped


def sheet_of(title: str, reviews: Mapping[str, Review], by_seat: bool) -> Sheet:
    """Return a table with a row for each phase of each review, or of each of its seats."""
    sheet = Sheet(title=title)
    sheet.add_column("seat" if by_seat else "policy")
    sheet.add_column("phase")
    for column in ("decisions", "mean cost", "± error", "all together", "within error of the best"):
        sheet.add_column(column, justify="right")
    for name, review in reviews.items():
        seats = sorted({move.seat for move in review.moves}) if by_seat else [None]
        for seat in seats:
            label = name if seat is None else f"{seat}"
            for phase, part in review.phases(seat).items():
                share = f"{100 * part.within_error:.0f} %"
                error = "" if np.isnan(part.error) else f"{part.error:.2f}"
                figures = f"{part.cost:.2f}", error, f"{part.total:.1f}", share
                sheet.add_row(label, phase, str(part.decisions), *figures, end_section=phase == "all")
                label = ""
    return sheet


def show_costliest(console: Console, review: Review) -> None:
    """Print the moves that cost most, each with the position as its seat saw it."""
    shown = review.costliest()
    if not shown:
        console.print("No move was clearly worse than the judge's.")
    for move in shown:
        console.print(Text(described(review, move)))
        console.print(with_suits(review.game.view.picture(move.view), console), highlight=False)


def described(review: Review, move: ReviewedMove) -> str:
    """Return in a line what a move cost."""
    figures = f"{move.cost:.2f} ± {move.error:.2f} {review.game.margin_unit}"
    return f"\nMove {move.number + 1}, seat {move.seat}: {move.played} instead of {move.best} cost {figures}."


def draw_costs(title: str, review: Review, path: Path) -> None:
    """Draw the costs of each seat, summed over the game. Raises ValueError as `check_picture` does."""
    check_picture(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for seat in sorted({move.seat for move in review.moves}):
        own = [move for move in review.moves if move.seat == seat]
        axes.step(
            [move.number + 1 for move in own],
            np.cumsum([move.cost for move in own]),
            where="post",
            label=f"seat {seat}",
        )
    axes.set_xlabel("move")
    axes.set_ylabel(f"cost so far, {review.game.margin_unit}")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.suptitle(title)
    save_picture(figure, path, 150)
