"""Surveys and comparisons for people: tables at the terminal, pictures."""

from __future__ import annotations

from rich.table import Table as Sheet

from card_envs.compare.estimates import Estimate
from card_envs.compare.survey import Survey


def interval(figure: Estimate) -> str:
    """The figure, and its interval on a line below."""
    return f"{figure.mean:.4g}\n{figure.low:.4g} to {figure.high:.4g}"


def percent(share: Estimate) -> str:
    """The same for a share in percent, with two digits near the ends of the scale."""
    digits = 1 if 0.05 < share.mean < 0.95 else 2
    mean, low, high = (f"{100 * value:.{digits}f}" for value in (share.mean, share.low, share.high))
    return f"{mean} %\n{low} to {high}"


def survey_sheet(title: str, surveys: dict[str, Survey]) -> Sheet:
    """One column for each player."""
    sheet = Sheet(title=title, show_lines=True)
    sheet.add_column("")
    for name in surveys:
        sheet.add_column(name, justify="right")
    parts = surveys.values()
    sheet.add_row("decisions an episode", *(interval(part.decisions) for part in parts))
    for reason in sorted({reason for part in parts for reason in part.endings}):
        sheet.add_row(
            f"end: {reason}",
            *(percent(part.endings[reason]) if reason in part.endings else "never" for part in parts),
        )
    if all(part.first_wins for part in parts):
        sheet.add_row(
            "won by the side that\ndecides first", *(percent(part.first_wins) for part in parts if part.first_wins)
        )
    sheet.add_row("score of seat 0", *(interval(part.score) for part in parts))
    sheet.add_row("us a decision,\ngame included", *(f"{part.microseconds:.3g}" for part in parts))
    return sheet
