"""Surveys and comparisons for people: tables at the terminal, pictures."""

from __future__ import annotations

from itertools import combinations
from math import floor, inf, log10
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Sheet

from card_envs.compare.estimates import Estimate
from card_envs.compare.standings import Figures
from card_envs.compare.survey import Survey
from card_envs.game import Game


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


def comparison_sheets(title: str, figures: Figures) -> list[Sheet]:
    """The standings, best first, and all pairings."""
    policies, pairings = figures["policies"], figures["pairings"]
    alone = "score" in policies[0]
    columns = {"win_share": percent, "score": interval} if alone else {"rating": whole, "win_share": percent}
    if not alone:
        columns["margin_an_episode"] = interval
    if "won_of_winnable" in policies[0]:
        columns["won_of_winnable"] = percent
    sheet = Sheet(title=title, show_lines=True)
    for column in ("", *(key.replace("_", " ") for key in columns), "us a move"):
        sheet.add_column(column, justify="right" if column else "left")
    for policy in sorted(policies, key=lambda policy: -policy[next(iter(columns))]["mean"]):
        cells = [show(Estimate(**policy[key])) for key, show in columns.items()]
        sheet.add_row(policy["name"], *cells, f"{policy['microseconds_a_move']:.3g}")
    if "solved" in figures:
        sheet.caption = f"winnable: the {figures['solved']['won']:,} deals that the solver won"
    rows = {"win_share": percent, "margin_an_episode": interval, "margin_a_deal": interval}
    if alone:
        rows = {"wins_more": percent, "score_more": interval}
    elif figures["deals_an_episode"] == 1:
        del rows["margin_a_deal"]
    pairs = Sheet(title="on the same deals" if alone else "against each other", show_lines=True)
    for column in ("", *(key.replace("_", " ") for key in rows), "pairs needed*"):
        pairs.add_column(column, justify="right" if column else "left")
    for pairing in pairings:
        cells = [show(Estimate(**pairing[key])) for key, show in rows.items()]
        between = "more than" if alone else "against"
        pairs.add_row(f"{pairing['first']}\n{between} {pairing['second']}", *cells, needed(pairing["pairs_needed"]))
    nearest = figures["nearest"]
    pairs.caption = (
        f"* to tell the two apart with 80 % power (score or margin / wins);\n"
        f"the nearest two are {nearest['first']} and {nearest['second']}"
    )
    return [sheet, pairs]


def figures_sheet(game: Game, by_policy: dict[str, Any]) -> Sheet:
    """The game's own figures: its rows, each for every policy; what never occurred is left out."""
    ratios = game.ratios
    columns = list(dict.fromkeys(ratio.column for ratio in ratios))
    in_percent = {(ratio.row, ratio.column) for ratio in ratios if ratio.percent}
    sheet = Sheet(title="beside the score (± half of the 95 % interval)")
    for column in ("", "", *columns):
        sheet.add_column(column, justify="right" if column else "left")
    for row in dict.fromkeys(ratio.row for ratio in ratios):
        shown = {
            name: figures[row]
            for name, figures in by_policy.items()
            if any(figure and figure["mean"] for figure in figures[row].values())
        }
        for number, (name, of) in enumerate(shown.items()):
            cells = [plus_minus(of.get(column), (row, column) in in_percent) for column in columns]
            sheet.add_row("" if number else row, name, *cells, end_section=number == len(shown) - 1)
    return sheet


def plus_minus(figure: dict[str, float] | None, percent: bool) -> str:
    """On one line, to the first digit of its interval."""
    if figure is None:
        return ""
    scale = 100 if percent else 1
    mean, low, high = (scale * figure[name] for name in ("mean", "low", "high"))
    half = max(high - mean, mean - low)
    unit = " %" if percent else ""
    if not 0 < half < inf:  # seen in one deal
        return f"{mean:.3g}{unit}"
    digits = min(max(-floor(log10(half)), 0), 4)
    return f"{mean:.{digits}f} ±{half:.{digits}f}{unit}"


def show_comparison(console: Console, title: str, game: Game, figures: Figures) -> None:
    """All of a contest's tables."""
    for sheet in comparison_sheets(title, figures):
        console.print(sheet)
    console.print(figures_sheet(game, {policy["name"]: policy["figures"] for policy in figures["policies"]}))


def whole(figure: Estimate) -> str:
    """A rating; that of the anchor has no interval."""
    fixed = figure.low == figure.high
    return f"{figure.mean:.0f}" + ("" if fixed else f"\n{figure.low:.0f} to {figure.high:.0f}")


def needed(pairs: dict[str, int | None]) -> str:
    return " / ".join("-" if count is None else f"{count:,}" for count in pairs.values())


def draw(title: str, figures: Figures, path: Path) -> None:
    """A picture for people: who beats whom by how much, beside ratings (for one: wins) with their intervals.

    Raises:
        ValueError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("pictures need matplotlib: pip install 'card_envs[plot]'") from None
    policies = figures["policies"]
    alone = "score" in policies[0]
    key, scale = ("win_share", 100) if alone else ("rating", 1)
    order = sorted(range(len(policies)), key=lambda i: -policies[i][key]["mean"])
    names = [policies[i]["name"] for i in order]
    figure = Figure(figsize=(4.2 + 1.9 * len(names), 2.2 + 0.75 * len(names)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[len(names) + 0.5, 2.2])
    _matrix(left, figures, order, names)
    mean, low, high = (scale * np.array([policies[i][key][name] for i in order]) for name in ("mean", "low", "high"))
    right.errorbar(mean, range(len(names)), xerr=[mean - low, high - mean], fmt="o", color="black", capsize=3)
    right.set_yticks(range(len(names)), [])
    right.set_ylim(len(names) - 0.5, -0.5)
    right.margins(x=0.15)
    right.grid(axis="x", alpha=0.3)
    right.set_xlabel("episodes won, %" if alone else "rating (400 points: odds of 10 to 1)")
    figure.suptitle(title)
    figure.savefig(path, dpi=150)


def _matrix(axes: Any, figures: Figures, order: list[int], names: list[str]) -> None:
    """Rows against columns; blue where the row is better."""
    alone = "score" in figures["policies"][0]
    key, even = ("wins_more", 0.0) if alone else ("win_share", 0.5)
    size = len(order)
    shares = np.full((size, size), np.nan)
    texts = {}
    for (i, j), pairing in zip(combinations(range(size), 2), figures["pairings"]):
        row, column = order.index(i), order.index(j)
        more = pairing[key]["mean"] - even
        points = pairing["score_more" if alone else "margin_an_episode"]
        half = (points["high"] - points["low"]) / 2
        shares[row, column], shares[column, row] = more, -more
        for at, sign in (((row, column), 1), ((column, row), -1)):
            share = f"{100 * (even + sign * more):{'+' if alone else ''}.1f} %"
            texts[at] = f"{share}\n{sign * points['mean']:+.3g} ± {half:.2g}"
    limit = max(float(np.nanmax(np.abs(shares))), 1e-9) if alone else 0.5
    axes.imshow(shares, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    for (row, column), text in texts.items():
        strong = abs(shares[row, column]) > 0.7 * limit
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color="white" if strong else "black")
    axes.set_xticks(range(size), names)
    axes.set_yticks(range(size), names)
    shown = "row more than column: wins, score" if alone else "row against column: episodes won, margin an episode"
    axes.set_title(f"{shown}; intervals: 95 %", fontsize=10)
