"""`python -m benchmarks`: all benchmarks whose libraries are here, as a table; with `--write` into README.md beside it.

The table stands there between the marks `<!-- benchmarks -->` and `<!-- /benchmarks -->`.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
from pathlib import Path

from benchmarks.measuring import Row, markdown
from card_envs._files import replace_file

BENCHMARKS = {  # each with how long it takes, as a factor of --seconds
    "c_reference": 1.0,
    "open_spiel_games": 1.0,
    "pettingzoo_classic": 1.0,
    "maskable_ppo": 4.0,
    "games_as_data": 1.0,
}
FIRST, LAST = "<!-- benchmarks -->\n", "<!-- /benchmarks -->\n"
PAGE = Path(__file__).with_name("README.md")


def processor() -> str:
    """Return the name of this machine's processor, and whether it has the vectors that ratios depend on."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.is_file() else []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    if "model name" not in facts:
        return platform.processor() or platform.machine()
    return f"{facts['model name']} {'with' if 'avx512f' in facts.get('flags', '').split() else 'without'} AVX-512"


def rewritten(page: str, text: str, name: str) -> str:
    """A page with this text between the marks. Raises ValueError where they are missing."""
    before, found, rest = page.partition(FIRST)
    _, closed, after = rest.partition(LAST)
    if not found or not closed:
        raise ValueError(f"{name}: expected the lines {FIRST.strip()} and, after it, {LAST.strip()}")
    return before + FIRST + text + LAST + after


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each of the two, about (default 5)")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), help="these alone")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    arguments = parser.parse_args()
    if not 0 < arguments.seconds < 3600:
        parser.error(f"--seconds: expected a number above 0, got {arguments.seconds}")
    rows: list[Row] = []
    missing: list[str] = []
    for name in arguments.only:
        try:
            for row in importlib.import_module(f"benchmarks.{name}").rows(arguments.seconds * BENCHMARKS[name]):
                rows.append(row)
                print(f"{row.work} / {row.other}: {row.cells()[-1]}", file=sys.stderr, flush=True)
        except ModuleNotFoundError as error:
            missing.append(f"{name}: needs {error.name}")
    machine = f"one core of {processor()}, Python {platform.python_version()}"
    text = f"On {machine}, by CPU time, in turns:\n\n{markdown(rows)}"
    text += "".join(f"\nNot measured: {one}.\n" for one in missing)
    print(text, end="")
    if arguments.write:
        replace_file(PAGE, rewritten(PAGE.read_text(encoding="utf-8"), text, str(PAGE)))


if __name__ == "__main__":
    main()
