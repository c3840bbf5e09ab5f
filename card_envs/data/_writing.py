"""Writes games to a folder, part by part: Parquet, lines of JSON, or a Minari data set."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np

from card_envs.compare.rows import Rows
from card_envs.compare.spread import Executor
from card_envs.data._card import CARD, card, describe_columns
from card_envs.data._plan import Plan
from card_envs.game import Int8s
from card_envs.system.files import (
    check_output_folder,
    clear_leftovers,
    locked,
    read_json,
    replace_file,
    user_path,
    write_json,
)

FORMATS = {"parquet": ".parquet", "jsonl": ".jsonl"}
PARTS = "data"  # the folder of the files; it has no others, as readers of Parquet folders would read them
SETTINGS = ".generate.json"  # of lines of JSON
METADATA = b"card_envs"  # a Parquet file's key of the settings
SOLVER = "solver"
MISSING = "this format needs pyarrow: pip install 'card_envs[data]'"


@dataclass(frozen=True)
class _Writer:
    """Plays parts of a plan, each for a file of its own.

    Attributes:
        plan: what is played.
        settings: of the plan when it began, for the files.
        folder, format: of the files.
    """

    plan: Plan
    settings: dict[str, Any]
    folder: Path
    format: str

    def path(self, part: range) -> Path:
        """Return the file of a part."""
        return self.folder / PARTS / f"games-{part.start:09d}{FORMATS[self.format]}"

    def is_written(self, part: range) -> bool:
        """Return whether a part is there, whole. Raises ValueError if it is of other games."""
        path = self.path(part)
        if not path.exists():
            return False
        if self.format == "jsonl":  # no deals may have been won
            return _last_byte(path) == b"\n" or (path.stat().st_size == 0 and self.plan.solve_seconds is not None)
        settings = _settings_in(path)
        if settings is not None:
            check_same(self.folder, settings, self.settings)
        return settings is not None

    def num_rows(self, part: range) -> int:
        """Return the number of rows in the file of a part."""
        path = self.path(part)
        if self.format == "jsonl":
            return path.read_bytes().count(b"\n")
        with path.open("rb") as file:
            return int(_arrow()[1].read_metadata(file).num_rows)

    def content(self, part: range) -> tuple[range, bytes, int]:
        """Play a part; return it, the content of its file, and the number of rows."""
        rows = self.plan.play(part, self.settings["digests"], keep_states=self.format == "jsonl")
        content = parquet(self.plan, rows, self.settings) if self.format == "parquet" else json_lines(self.plan, rows)
        return part, content, len(rows.seat)

    def write(self, workers: Executor, progress: Callable[[int, int], object] | None) -> int:
        """Write the parts that are missing, and the page; return the number of rows written."""
        parts = self.plan.parts()
        _check_folder(self, {self.path(part) for part in parts})
        missing = [part for part in parts if not self.is_written(part)]
        if self.format == "jsonl":
            write_json(self.folder / SETTINGS, self.settings)
        games, rows = sum(map(len, parts)) - sum(map(len, missing)), 0
        for part, content, count in workers.spread(self.content, missing):
            replace_file(self.path(part), content)  # here: workers on other machines have other folders
            games, rows = games + len(part), rows + count
            if progress is not None:
                progress(games, rows)
        if not os.path.lexists(self.folder / CARD):  # one of the user's stays, also a link
            num_rows = sum(map(self.num_rows, parts))
            replace_file(self.folder / CARD, card(self.plan, self.format, num_rows))
        return rows


def generate(
    plan: Plan,
    folder: str | Path,
    *,
    format: str = "parquet",
    processes: int = 1,
    ray_address: str = "",
    progress: Callable[[int, int], object] | None = None,
) -> int:
    """Play games and write a row for each decision; return the number of rows written.

    A folder that holds a part of the same games is completed: what is there stays, and is not counted. A file that is
    not whole is written again.

    Args:
        plan: what is played.
        folder: gets a page that describes the data, README.md, unless it has one, and a folder `data` with a file for
            every few thousand decisions. `~` is expanded.
        format: "parquet": the columns of `Rows`, without `finals`; "jsonl": one JSON object a line, with the position
            as text.
        processes: on this machine; the files do not depend on it.
        ray_address: of a Ray cluster that plays instead, as for `ray.init`; "local" starts one here.
        progress: called with the numbers of games done and of rows written so far.

    Raises:
        ValueError: an argument or a player does not fit, the folder holds other games, or pyarrow or Ray is missing.
        OSError: the cluster can't be reached, or something can't be written; whole files stay.
    """
    if not str(folder):
        raise ValueError("out: expected a folder, got an empty name")
    folder = user_path(folder)
    if format not in FORMATS:
        raise ValueError(f"format: expected {' or '.join(FORMATS)}, got {format!r:.80}")
    if format == "parquet":
        _arrow()
    workers = Executor(processes, ray_address)
    plan.check()
    settings = json.loads(json.dumps({**plan.as_dict(), "format": format}))
    with workers:
        check_output_folder(folder)
        check_output_folder(folder / PARTS)
        with locked(folder / ".lock"):
            clear_leftovers(folder)
            clear_leftovers(folder / PARTS)
            return _Writer(plan, settings, folder, format).write(workers, progress)


def _check_folder(writer: _Writer, files: set[Path]) -> None:
    """Raise ValueError if the folder holds other games than those of the writer."""
    folder, settings = writer.folder, folder_settings(writer.folder)
    if settings is not None:
        check_same(folder, settings, writer.settings)
    there = sorted((folder / PARTS).glob("games-*"))
    if settings is None and writer.format == "jsonl" and there:
        raise ValueError(f"{folder}: holds games of another format, or without their settings; take another folder")
    for file in there:
        if not S_ISREG(file.lstat().st_mode):
            raise ValueError(f"{folder}: holds {file.name}, which is no file of its own; take another folder")
        if file not in files:
            if before := _settings_in(file):
                check_same(folder, before, writer.settings)
            raise ValueError(f"{folder}: holds {file.name}, which is not of these games; take another folder")


def folder_settings(folder: Path) -> dict[str, Any] | None:
    """Return the settings in a folder of lines; None if there are none."""
    if not (folder / SETTINGS).exists():
        return None
    settings = read_json(folder / SETTINGS)
    return settings if isinstance(settings, dict) else {}


def check_same(folder: Path, before: dict[str, Any], settings: dict[str, Any]) -> None:
    """Raise ValueError that names what was different when the games in a folder were begun."""
    changed = {name for name in settings if before.get(name) != settings[name]}
    if not changed:
        return
    if changed == {"digests"} and isinstance(before["digests"], dict):
        names = [name for name, digest in settings["digests"].items() if before["digests"].get(name) != digest]
        whose = ", ".join(names)
        raise ValueError(f"{folder}: holds games of another {whose}: weights or code have changed; take another folder")
    differences = [f"{name} = {before.get(name)!r}" for name in settings if name in changed - {"digests"}]
    raise ValueError(f"{folder}: holds other games, of {', '.join(differences)}; take another folder")


def _settings_in(path: Path) -> dict[str, Any] | None:
    """Return the settings in a Parquet file; None if the file is not whole."""
    arrow, files = _arrow()
    try:
        with path.open("rb") as file:  # pyarrow itself opens no name that is not UTF-8
            settings = json.loads((files.read_schema(file).metadata or {}).get(METADATA, b"{}"))
    except (OSError, ValueError, arrow.ArrowException):
        return None
    return settings if isinstance(settings, dict) else {}


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        return file.read(1)


# Formats


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError(MISSING) from None
    return pyarrow, pyarrow.parquet


def parquet(plan: Plan, rows: Rows, settings: dict[str, Any] | None = None) -> bytes:
    """Return rows as a Parquet file: the columns of `Rows` without `finals`, the player by name, and the settings.

    `settings` are by default those of the plan as it is now.

    Observations and masks are binary values of D and A bytes, one int8 each, which `as_int8` opens. Lists of int8
    (`fixed_size_list`) take five times as long to write: Parquet keeps them as 32-bit integers.
    """
    arrow, files = _arrow()

    def binary(array: Int8s) -> Any:
        return arrow.FixedSizeBinaryArray.from_buffers(
            arrow.binary(array.shape[1]), len(array), [None, arrow.py_buffer(array)]
        )

    columns = {name: arrow.array(getattr(rows, name)) for name in ("game", "deal", "seat", "action", "reward", "last")}
    columns["player"] = arrow.DictionaryArray.from_arrays(rows.player, list(plan.names or (SOLVER,)))
    columns |= {"obs": binary(rows.obs), "mask": binary(rows.mask)}
    if rows.values is not None:
        flat = arrow.array(rows.values.reshape(-1))
        columns["values"] = arrow.FixedSizeListArray.from_arrays(flat, rows.values.shape[1])
    table = arrow.table(columns)
    about = {**(settings or plan.as_dict()), **describe_columns(plan)}
    table = table.replace_schema_metadata({METADATA: json.dumps(about)})
    file = BytesIO()
    files.write_table(table, file, compression="zstd", use_dictionary=["player"])
    return file.getvalue()


def as_int8(column: Any) -> Int8s:
    """Return `obs` or `mask`, a column of a pyarrow table, as [N, D] or [N, A] int8.

    A column of one chunk, such as that of one file, is not copied; the chunks of others are joined.
    """
    width = column.type.byte_width
    parts = [
        np.frombuffer(chunk.buffers()[1], np.int8, len(chunk) * width, chunk.offset * width).reshape(-1, width)
        for chunk in column.chunks
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, width), np.int8), *parts])


def json_lines(plan: Plan, rows: Rows) -> bytes:
    """Return rows with their States as lines of JSON.

    Position, legal moves and move are text, and values are in the order of `legal`.
    """
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(plan, rows)).encode()


def _lines(plan: Plan, rows: Rows) -> Iterator[dict[str, Any]]:
    view, names = plan.game.view, plan.names or (SOLVER,)
    for i, state in enumerate(rows.states):
        seat = int(rows.seat[i])
        seen = view.view(state, seat)
        legal = dict(zip(np.flatnonzero(rows.mask[i]).tolist(), seen["legal"], strict=True))
        line = {
            "game": int(rows.game[i]),
            "deal": int(rows.deal[i]),
            "seat": seat,
            "player": names[rows.player[i]],
            "text": view.picture(seen),
            "legal": seen["legal"],
            "move": legal[int(rows.action[i])],
            "reward": float(rows.reward[i]),
            "last": bool(rows.last[i]),
        }
        if rows.values is not None:
            margins = rows.values[i, list(legal)].tolist()  # a list, as readers of tables lose keys that come late
            line["values"] = [round(margin, 3) if math.isfinite(margin) else None for margin in margins]
        yield line
