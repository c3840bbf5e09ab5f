"""Writes games to a folder, part by part: Parquet, lines of JSON, or a Minari data set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from card_envs._files import check_output_folder, locked, read_json, replace_file, write_json
from card_envs.compare._spread import spread
from card_envs.data._plan import Plan, Rows
from card_envs.episode import Episode
from card_envs.game import Int8s

SETTINGS = "_generate.json"  # readers of Parquet folders skip such names
FORMATS = {"parquet": ".parquet", "jsonl": ".jsonl"}
SOLVER = "solver"
MISSING = "this format needs pyarrow: pip install 'card_envs[data]'"


@dataclass(frozen=True)
class _Writer:
    """Plays parts of a plan and writes each to its file."""

    plan: Plan
    folder: Path
    format: str

    def path(self, part: range) -> Path:
        """Return the file of a part."""
        return self.folder / f"games-{part.start:09d}{FORMATS[self.format]}"

    def write(self, part: range) -> tuple[range, int]:
        """Play a part, write it, and return it with its number of rows."""
        rows = self.plan.play(part)
        content = (parquet if self.format == "parquet" else json_lines)(self.plan, rows)
        replace_file(self.path(part), content)
        return part, len(rows.seat)


def generate(
    plan: Plan,
    folder: str | Path,
    *,
    format: str = "parquet",
    processes: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> int:
    """Play games and write a row for each decision; return the number of rows written.

    A folder that holds a part of the same games is completed: what is there stays, and is not counted.

    Args:
        plan: what is played.
        folder: gets `_generate.json` and a file for every few thousand decisions.
        format: "parquet": the columns of `Rows`, without `finals`; "jsonl": one JSON object a line, with the position
            as text.
        processes: on this machine; the files do not depend on it.
        progress: called with the numbers of games done and of rows written so far.

    Raises:
        ValueError: an argument or a player does not fit, the folder holds other games, or pyarrow is missing.
        OSError: something can't be written; whole files stay.
    """
    folder = Path(folder)
    if format not in FORMATS:
        raise ValueError(f"format: expected {' or '.join(FORMATS)}, got {format!r:.80}")
    if format == "parquet":
        _arrow()
    plan.check()
    check_output_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        _check_settings(folder, {**plan.as_dict(), "format": format})
        writer = _Writer(plan, folder, format)
        parts = plan.parts()
        missing = [part for part in parts if not writer.path(part).exists()]
        games, rows = sum(map(len, parts)) - sum(map(len, missing)), 0
        for part, count in spread(writer.write, missing, processes):
            games, rows = games + len(part), rows + count
            if progress is not None:
                progress(games, rows)
    return rows


def _check_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write the settings, or compare them with those that are there."""
    path = folder / SETTINGS
    settings = json.loads(json.dumps(settings))
    if path.exists():
        before = read_json(path)
        known = before if isinstance(before, dict) else {}
        changed = [f"{name} = {known.get(name)!r}" for name in settings if known.get(name) != settings[name]]
        if changed:
            raise ValueError(f"{folder}: holds other games, of {', '.join(changed)}; take another folder")
    elif any(folder.glob("games-*")):
        raise ValueError(f"{folder}: holds games without {SETTINGS}; take another folder")
    write_json(path, settings)


# Formats


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError(MISSING) from None
    return pyarrow, pyarrow.parquet


def parquet(plan: Plan, rows: Rows) -> bytes:
    """Return rows as a Parquet file: the columns of `Rows` without `finals`, the player by name.

    Observations and masks are binary values of D and A bytes, one int8 each: columns of lists would take ten times as
    long to write and to read, and more space.
    """
    arrow, files = _arrow()

    def binary(array: Int8s) -> Any:
        return arrow.FixedSizeBinaryArray.from_buffers(
            arrow.binary(array.shape[1]), len(array), [None, arrow.py_buffer(array)]
        )

    columns = {name: arrow.array(getattr(rows, name)) for name in ("game", "deal", "seat", "action", "reward", "last")}
    columns["player"] = arrow.DictionaryArray.from_arrays(rows.player, list(plan.players or (SOLVER,)))
    columns |= {"obs": binary(rows.obs), "mask": binary(rows.mask)}
    if rows.values is not None:
        flat = arrow.array(rows.values.reshape(-1))
        columns["values"] = arrow.FixedSizeListArray.from_arrays(flat, rows.values.shape[1])
    table = arrow.table(columns)
    table = table.replace_schema_metadata({"card_envs": json.dumps(plan.as_dict())})
    file = BytesIO()
    files.write_table(table, file, compression="zstd", use_dictionary=["player"])
    return file.getvalue()


def json_lines(plan: Plan, rows: Rows) -> bytes:
    """Return rows as lines of JSON: numbers as in Parquet, and position, legal moves and move as text."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(plan, rows)).encode()


def _lines(plan: Plan, rows: Rows) -> Iterator[dict[str, Any]]:
    view = plan.game.view
    options = plan.game.validated(dict(plan.options))
    ends = np.r_[np.flatnonzero(np.diff(rows.game)) + 1, len(rows.game)]
    for start, end in zip(np.r_[0, ends[:-1]], ends):
        number = int(rows.game[start])
        episode = Episode(plan.game, options, seed=plan.seed, number=number)
        for i in range(int(start), int(end)):
            state, seat = episode.table.state, int(rows.seat[i])
            seen = view.view(state, seat)
            legal = dict(zip(np.flatnonzero(rows.mask[i]).tolist(), seen["legal"], strict=True))
            line = {
                "game": number,
                "deal": int(rows.deal[i]),
                "seat": seat,
                "player": (plan.players or (SOLVER,))[rows.player[i]],
                "text": view.picture(seen),
                "legal": seen["legal"],
                "move": legal[int(rows.action[i])],
                "reward": float(rows.reward[i]),
                "last": bool(rows.last[i]),
            }
            if rows.values is not None:
                line["values"] = {
                    text: round(float(rows.values[i, action]), 3)
                    for action, text in legal.items()
                    if np.isfinite(rows.values[i, action])
                }
            yield line
            episode.play(int(rows.action[i]))
