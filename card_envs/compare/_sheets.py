"""Tables of figures for the terminal, in Markdown, LaTeX and CSV. An interval is the second line of a cell."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table as Sheet

from card_envs.system.files import finite

FORMATS = ("table", "markdown", "latex", "csv", "json")
FOR_PROGRAMS = ("csv", "json")
ESCAPES = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "µ": r"\textmu{}"}
    | {"±": r"$\pm$", "\n": " "}
)


def show_sheets(console: Console, sheets: Sequence[Sheet], form: str, notes: Iterable[str] = ()) -> None:
    """Print tables, and below them some notes, for people: in one of the first three FORMATS."""
    for sheet in sheets:
        if form == "table":
            console.print(sheet)
        else:
            console.out((as_latex if form == "latex" else as_markdown)(sheet), highlight=False)
    for note in notes:
        line = f"% {note}" if form == "latex" else f"{note}\n" if form == "markdown" else note
        console.print(line, soft_wrap=form != "table")


def show_figures_as(console: Console, form: str, figures: Any, records: Sequence[Mapping[str, Any]]) -> None:
    """Print figures for programs: as JSON, or records as CSV."""
    text = as_csv(records) if form == "csv" else json.dumps(finite(figures), indent=1, allow_nan=False) + "\n"
    console.out(text, end="", highlight=False)


def rows_of(sheet: Sheet) -> list[list[str]]:
    """Return the cells of a table on one line each, its head first."""
    head = [str(column.header) for column in sheet.columns]
    names, *columns = (list(map(str, column.cells)) for column in sheet.columns)
    cells = [[" (".join(lines) + ")" * (len(lines) > 1) for lines in map(str.splitlines, column)] for column in columns]
    return [head, *map(list, zip(names, *cells))]


def as_markdown(sheet: Sheet) -> str:
    """Return a table in Markdown."""
    head, *body = ([" ".join(cell.replace("|", "\\|").split("\n")) for cell in row] for row in rows_of(sheet))
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    title, note = (" ".join(str(text or "").split()) for text in (sheet.title, sheet.caption))
    return "\n".join([f"**{title}**\n", table, *[f"{note}\n"] * bool(note)])


def as_latex(sheet: Sheet) -> str:
    """Return a table in LaTeX; it needs the package booktabs."""
    head, *body = (" & ".join(cell.translate(ESCAPES) for cell in row) + r" \\" for row in rows_of(sheet))
    title, note = (str(text or "").translate(ESCAPES) for text in (sheet.title, sheet.caption))
    columns = "l" + "r" * (len(sheet.columns) - 1)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{title}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, *[rf"\par\footnotesize {note}"] * bool(note), r"\end{table}", ""])


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Return figures as comma-separated values: a line for each record, three columns for a figure with an interval."""
    rows, file = [dict(_columns(record)) for record in records], StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _columns(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if isinstance(value, Mapping):
            names = {"mean": key, "low": f"{key}_low", "high": f"{key}_high"}
            yield from ((names[part], number) for part, number in value.items() if part in names)
        elif not isinstance(value, list):
            yield key, value
