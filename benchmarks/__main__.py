"""`python -m benchmarks`: rates beside those of others, as a table; `--write` puts it into README.md beside it."""

from __future__ import annotations

import argparse
import importlib
import platform
import re
import sys
from pathlib import Path

from benchmarks.measuring import Row, markdown, processor
from card_envs._files import replace_file

BENCHMARKS = ("step", "libraries", "training")
PAGE = Path(__file__).with_name("README.md")
MARKED = re.compile(r"(<!-- benchmarks -->\n).*(<!-- /benchmarks -->\n)", re.S)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each of the two, about (default 5)")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, help="these alone")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    arguments = parser.parse_args()
    rows: list[Row] = []
    missing = ""
    for name in arguments.only:
        try:
            for row in importlib.import_module(f"benchmarks.{name}").rows(arguments.seconds):
                rows.append(row)
                print(f"{row.work} / {row.other}: {row.cells()[-1]}", file=sys.stderr, flush=True)
        except ModuleNotFoundError as error:
            missing += f"\nNot measured: {name}: needs {error.name}.\n"
    machine = f"one core of {processor()}, Python {platform.python_version()}"
    text = f"On {machine}, by CPU time, in turns:\n\n{markdown(rows)}{missing}"
    print(text, end="")
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        replace_file(PAGE, MARKED.sub(lambda marked: marked[1] + text + marked[2], page))


if __name__ == "__main__":
    main()
