"""Tables of figures as text for documents and programs. An interval is the second line of a cell."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table as Sheet

FOR_PEOPLE, FOR_PROGRAMS = ("table", "markdown", "latex"), ("csv", "json")  # formats
MARKDOWN = str.maketrans({"\n": " ", "|": r"\|"})
LATEX = str.maketrans({letter: f"\\{letter}" for letter in "&%$#_{}"} | {"µ": r"\textmu{}", "±": r"$\pm$", "\n": " "})


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
