"""Self-play statistics and comparisons as tables at the terminal and as pictures."""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO, StringIO
from itertools import combinations
from math import floor, inf, isfinite, log10
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Sheet

from card_envs.compare._solving import SolvingFigures
from card_envs.compare._tallies import Tallied
from card_envs.compare.estimates import Estimate, few_warning, span
from card_envs.compare.standings import PairsNeeded, Standings
from card_envs.compare.survey import Survey
from card_envs.game import Game
from card_envs.system.console import error_console
from card_envs.system.files import check_output, printable, replace_file

Show = Callable[[Estimate], str]
ENDLESS = 400.0  # length in points of an infinite error bar in a picture
FOR_PEOPLE, FOR_PROGRAMS = ("table", "markdown", "latex"), ("csv", "json")  # formats
MARKDOWN = str.maketrans({"\n": " ", "|": r"\|"})
LATEX = str.maketrans({letter: f"\\{letter}" for letter in "&%$#_{}"} | {"µ": r"\textmu{}", "±": r"$\pm$", "\n": " "})


def interval(figure: Estimate) -> str:
    """Return the figure, with its interval on a second line."""
    return f"{figure.mean:z.4g}\n{span(figure, 'z.4g')}"


def percent(share: Estimate) -> str:
    """Return a proportion and its interval in percent, with two decimals near 0 and 100 %."""
    digits = 1 if 0.05 < share.mean < 0.95 else 2
    return f"{100 * share.mean:z.{digits}f} %\n{span(share.scaled(100), f'z.{digits}f')}"


def survey_sheet(title: str, surveys: dict[str, Survey]) -> Sheet:
    """Return a table with a column for each player."""
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
    if all(part.first_side_wins for part in parts):
        sheet.add_row(
            "won by the side that\ndecides first",
            *(percent(part.first_side_wins) for part in parts if part.first_side_wins),
        )
    sheet.add_row("score of seat 0", *(interval(part.score_of_seat_0) for part in parts))
    sheet.caption = few_warning(min(part.episodes for part in parts), "episodes")
    sheet.add_row("a decision,\ngame included", *(duration(part.microseconds_per_decision) for part in parts))
    return sheet


def standings_sheet(title: str, results: Standings) -> Sheet:
    """Return a table with a row for each policy."""
    columns: dict[str, Show] = {"rating": whole, "win_share": percent, "margin_per_episode": interval}
    if results.contest.game.is_solitaire:
        columns = {"win_share": percent, "score": interval}
    if results.policies[0].won_of_winnable:
        columns["won_of_winnable"] = percent
    rows = []
    for policy in (results.policies[i] for i in results.best_first):
        cells = [show(getattr(policy, name)) for name, show in columns.items()]
        rows.append([policy.name, *cells, duration(policy.microseconds_per_move)])
    sheet = sheet_of(title, [*columns, "a move"], rows)
    if not results.contest.game.is_solitaire:
        sheet.caption = anchor_in_words(results)
    if results.solved is not None:
        sheet.caption = f"winnable: the {results.solved['won']:,} deals that the solver won"
    return sheet


def anchor_in_words(results: Standings) -> str:
    """Say what has rating 1000."""
    return "the mean of the ratings is 1000" if results.anchor is None else f"{results.anchor} has rating 1000"


def pairings_sheet(results: Standings) -> Sheet:
    """Return a table with a row for each pairing."""
    alone = results.contest.game.is_solitaire
    columns: dict[str, Show] = {"win_share": percent, "margin_per_deal": interval}
    if alone:
        columns = {"wins_more": percent, "score_more": interval}
    elif results.deals_per_episode == 1:
        columns = {"win_share": percent, "margin_per_episode": interval}
    rows, between = [], "more than" if alone else "against"
    for pairing in results.pairings:
        cells = [show(getattr(pairing, name)) for name, show in columns.items()]
        rows.append([f"{pairing.first}\n{between} {pairing.second}", *cells, needed(pairing.pairs_needed)])
    sheet = sheet_of("on the same deals" if alone else "against each other", [*columns, "pairs needed*"], rows)
    sheet.caption = (
        f"* to show a difference with 80 % power (score or margin / wins);\n"
        f"the nearest two are {results.nearest.first} and {results.nearest.second}"
    )
    return sheet


def groups_sheet(results: Standings) -> Sheet:
    """Return a table with a row for each two methods, or a method and a player."""
    alone = results.contest.game.is_solitaire
    rows, unit = [], "score more" if alone else "margin"
    for group in results.groups:
        sizes = " and ".join(str(number) for number in group["trainings"] if number > 1)
        name = f"{group['first']}\n{'more than' if alone else 'against'} {group['second']}"
        spread = f"{group['lowest']:z.4g} to {group['highest']:z.4g}\n{sizes} trainings"
        margin, won, better = interval(group["margin"]), percent(group["win_share"]), percent(group["improvement"])
        rows.append([name, won, margin, spread, better])
    columns = ["wins more" if alone else "won", unit, f"{unit} of\ntrainings", "improvement*"]
    sheet = sheet_of("several trainings, one method: means over trainings and deals", columns, rows)
    sheet.caption = "* probability that a training of the first is better than one of the second"
    return sheet


def figures_sheet(game: Game, by_policy: Mapping[str, Tallied]) -> Sheet:
    """Return a table of the game's rates for every policy, without those that never occurred."""
    columns = list(dict.fromkeys(ratio.column for ratio in game.view.RATES))
    kinds = {column: {ratio.percent for ratio in game.view.RATES if ratio.column == column} for column in columns}
    in_percent = {(ratio.row, ratio.column) for ratio in game.view.RATES if ratio.percent}
    sheet = Sheet(title="beside the score (with 95 % intervals)")
    sheet.add_column("")
    sheet.add_column("", overflow="fold")
    for column in columns:
        sheet.add_column(f"{column}, %" if kinds[column] == {True} else column, justify="right", no_wrap=True)
    for row in dict.fromkeys(ratio.row for ratio in game.view.RATES):
        rows = {
            name: figures[row]
            for name, figures in by_policy.items()
            if any(figure and figure.mean for figure in figures[row].values())
        }
        for number, (name, of) in enumerate(rows.items()):
            cells = [
                on_one_line(of.get(column), (row, column) in in_percent, unit=kinds[column] != {True})
                for column in columns
            ]
            sheet.add_row("" if number else row, name, *cells, end_section=number == len(rows) - 1)
    return sheet


def solving_sheet(title: str, figures: SolvingFigures) -> Sheet:
    """Return a table with a row for each verdict, and bounds on the share that can be won."""
    sheet = Sheet("", "packs", "share", "95 % interval", title=title)
    for name, packs in (figures.verdicts | figures.bounds).items():
        share = figures.share(packs)
        sheet.add_row(worded(name), f"{packs:,}", f"{share.mean:.1%}", f"{share.low:.1%} to {share.high:.1%}")
    return sheet


def on_one_line(figure: Estimate | None, percent: bool, unit: bool = True) -> str:
    """Return a figure on one line, rounded to the first digit of its interval: a share with its bounds, else with ±.

    `unit`: with a sign for percent.
    """
    if figure is None:
        return ""
    scale = 100 if percent else 1
    mean, low, high = (scale * value for value in (figure.mean, figure.low, figure.high))
    half = max(high - mean, mean - low)
    sign = " %" if percent and unit else ""
    if not 0 < half < inf:  # no interval: seen in one deal
        return f"{mean:z.3g}{sign}"
    digits = min(max(-floor(log10(half)), 0), 4)
    if percent:  # near 0 and 100 % the bounds are not equally far
        return f"{mean:z.{digits}f} ({low:z.{digits}f} to {high:z.{digits}f}){sign}"
    return f"{mean:z.{digits}f} ±{half:.{digits}f}"


def duration(microseconds: float) -> str:
    """Return a time in the unit that fits it."""
    if microseconds < 1:
        return "under 1 µs"
    for factor, unit in ((1, "µs"), (1e3, "ms"), (1e6, "s")):
        if microseconds < 333 * factor or unit == "s":
            break
    return f"{microseconds / factor:.1f} {unit}"


def show_sheets(console: Console, sheets: Iterable[Sheet], form: str, notes: Iterable[str]) -> None:
    """Print tables and notes in a format for people."""
    for sheet in sheets:
        console.print(sheet) if form == "table" else console.out(as_text(sheet, form == "latex"), highlight=False)
    for note in notes:
        console.print({"latex": f"% {note}", "markdown": f"{note}\n"}.get(form, note), soft_wrap=form != "table")


def as_text(sheet: Sheet, latex: bool) -> str:
    """Return a table in LaTeX, for which it needs the package booktabs, or in Markdown."""

    def escape(cell: object) -> str:
        return str(cell or "").translate(LATEX if latex else MARKDOWN)

    rows = [[escape(column.header) for column in sheet.columns]]
    for name, *cells in zip(*(column.cells for column in sheet.columns)):
        lines = [str(cell).split("\n") for cell in cells]
        rows.append([escape(name), *(escape(" (".join(each) + ")" * (len(each) > 1)) for each in lines)])
    title, note, width = escape(sheet.title), escape(sheet.caption), len(rows[0]) - 1
    if not latex:
        table = "".join(f"| {' | '.join(row)} |\n" for row in [rows[0], ["---", *["---:"] * width], *rows[1:]])
        return f"**{title}**\n\n{table}" + f"\n{note}\n" * bool(note)
    head, *body = (" & ".join(row) + r" \\" for row in rows)
    return "\n".join([
        r"\begin{table}", r"\centering", rf"\caption{{{title}}}", rf"\begin{{tabular}}{{l{'r' * width}}}",
        r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}",
        *[rf"\par\footnotesize {note}"] * bool(note), r"\end{table}", "",
    ])  # fmt: skip


def for_programs(form: str, figures: Any, records: Sequence[Mapping[str, Any]]) -> str:
    """Return all figures as JSON, or records as CSV: a line for each, three columns for a figure with an interval."""
    if form == "json":
        return json.dumps(figures, indent=1, allow_nan=False) + "\n"
    rows, file = [dict[str, Any]() for _ in records], StringIO()
    for row, record in zip(rows, records):
        for key, value in record.items():
            if isinstance(value, Mapping) and "mean" in value:
                row.update({key: value["mean"], f"{key}_low": value["low"], f"{key}_high": value["high"]})
            elif not isinstance(value, (Mapping, list)):
                row[key] = value
    writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def sheet_of(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Sheet:
    """Return a table with these columns after that of names."""
    sheet = Sheet(title=title, show_lines=True)
    sheet.add_column("", overflow="fold")
    for column in columns:
        sheet.add_column(worded(column), justify="right", no_wrap=True)
    for row in rows:
        sheet.add_row(*row)
    return sheet


def show_comparison(
    console: Console, title: str, results: Standings, brief: bool, details: bool = False, form: str = "table"
) -> None:
    """Print the tables of a contest in a format for people: without those of pairings, or with rates."""
    game = results.contest.game
    sheets = [standings_sheet(title, results)] + [pairings_sheet(results)] * (not brief)
    sheets += [groups_sheet(results)] * bool(results.groups)
    if details and game.view.RATES:
        sheets.append(figures_sheet(game, {policy.name: policy.figures for policy in results.policies}))
    show_sheets(console, sheets, form, results.notes())


def show_figures(console: Console, game: Game, by_policy: Mapping[str, Tallied]) -> None:
    """Print the game's rates, if it has any."""
    if game.view.RATES:
        console.print(figures_sheet(game, by_policy))


def show_solving(console: Console, title: str, figures: SolvingFigures) -> None:
    """Print how many deals can be won, and the time taken."""
    console.print(solving_sheet(title, figures))
    times = ", ".join(f"{share} {took:.2f} s" for share, took in figures.seconds.items())
    console.print(f"processor time: {times}; {figures.positions_per_second:,} positions a second")


def worded(name: str) -> str:
    """Return an identifier as words."""
    return name.replace("_", " ")


def whole(figure: Estimate) -> str:
    """Return a rating as a whole number; the anchor has no interval."""
    fixed = figure.low == figure.high
    return f"{figure.mean:z.0f}" + ("" if fixed else f"\n{span(figure, 'z.0f')}")


def needed(pairs: PairsNeeded) -> str:
    return " / ".join("-" if count is None else f"{count:,}" for count in (pairs.by_margin, pairs.by_wins))


def check_picture(path: Path | None) -> None:
    """Check before long work that a picture can be drawn to a file. Raises ValueError."""
    if path is None:
        return
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise ValueError(f"{path}: pictures need matplotlib: pip install 'card_envs[plot]'") from None
    kinds = FigureCanvasBase.get_supported_filetypes()
    if _kind(path) not in kinds:
        raise ValueError(f"{path}: expected a name that ends in .{', .'.join(sorted(kinds))}")
    check_output(path)


def save_picture(figure: Any, path: Path, dpi: int) -> None:
    """Write a matplotlib Figure atomically, in the format of the file's suffix."""
    picture = BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        figure.savefig(picture, dpi=dpi, format=_kind(path))
    for text in dict.fromkeys(str(warning.message) for warning in caught):  # such as letters that its font lacks
        error_console().print(f"{path}: {text}", soft_wrap=True)
    replace_file(path, picture.getvalue())


def _kind(path: Path) -> str:
    return path.suffix[1:].lower() or "png"


def draw(title: str, results: Standings, path: Path) -> None:
    """Draw a matrix of all pairings beside ratings (in a solitaire: wins) with their intervals.

    Raises:
        ValueError: matplotlib is missing, or it does not support the format.
    """
    check_picture(path)
    from matplotlib.figure import Figure

    alone = results.contest.game.is_solitaire
    policies = [results.policies[i] for i in results.best_first]
    names = [printable(policy.name) for policy in policies]
    strengths = [policy.rating or policy.win_share for policy in policies]
    scale = 100 if alone else 1
    figure = Figure(figsize=(4.2 + 1.9 * len(names), 2.2 + 0.75 * len(names)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[len(names) + 0.5, 2.2])
    _matrix(left, results)
    mean, low, high = scale * np.array([(each.mean, each.low, each.high) for each in strengths]).T
    reach = np.array([mean - low, high - mean])
    endless = np.isinf(reach)
    reach[endless] = reach[~endless].max(initial=0) or ENDLESS  # an arrow
    right.errorbar(mean, range(len(names)), xerr=reach, fmt="o", color="black", capsize=3)
    for side, arrow, sign in ((0, "<", -1), (1, ">", 1)):
        rows = np.flatnonzero(endless[side])
        right.plot(mean[rows] + sign * reach[side, rows], rows, arrow, color="black")
    right.set_yticks(range(len(names)), [])
    right.set_ylim(len(names) - 0.5, -0.5)
    right.margins(x=0.15)
    right.grid(axis="x", alpha=0.3)
    scale_of_ratings = f"rating (400 points: odds of 10 to 1)\n{anchor_in_words(results)}"
    right.set_xlabel("episodes won, %" if alone else scale_of_ratings)
    figure.suptitle(printable(title))
    save_picture(figure, path, dpi=150)


def _matrix(axes: Any, results: Standings) -> None:
    """Draw the matrix of rows against columns; blue where the row is better."""
    alone = results.contest.game.is_solitaire
    even = 0.0 if alone else 0.5
    order = results.best_first
    names = [printable(results.policies[i].name) for i in order]
    size = len(order)
    shares = np.full((size, size), np.nan)
    texts = {}
    for (i, j), pairing in zip(combinations(range(size), 2), results.pairings):
        row, column = order.index(i), order.index(j)
        share, points = (pairing.win_share or pairing.wins_more), (pairing.margin_per_episode or pairing.score_more)
        assert share and points
        more = share.mean - even
        half = (points.high - points.low) / 2
        reach = f" ± {half:.2g}" if isfinite(half) else ""
        shares[row, column], shares[column, row] = more, -more
        for at, sign in (((row, column), 1), ((column, row), -1)):
            won = f"{100 * (even + sign * more):{'+' if alone else ''}z.1f} %"
            texts[at] = f"{won}\n{sign * points.mean:+z.3g}{reach}"
    limit = max(float(np.nanmax(np.abs(shares))), 1e-9) if alone else 0.5
    axes.imshow(shares, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    for (row, column), text in texts.items():
        strong = abs(shares[row, column]) > 0.7 * limit
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color="white" if strong else "black")
    axes.set_xticks(range(size), names)
    axes.set_yticks(range(size), names)
    title = "row more than column: wins, score" if alone else "row against column: episodes won, margin an episode"
    axes.set_title(f"{title}; intervals: 95 %", fontsize=10)
