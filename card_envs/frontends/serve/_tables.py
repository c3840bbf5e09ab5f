"""Tables that survive a restart: each has a file that grows by one line per move.

The first line says how the table was made; each further one is a move, or `{"undo": 12}`: back to twelve moves. The
file holds the seed of the deals, so only its owner may read it. Only such files are counted, read or deleted; other
files in the folder are left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import stat
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from card_envs.frontends.serve._limits import Limits
from card_envs.frontends.serve._messages import Problem
from card_envs.games import get_game
from card_envs.opponents.policy import Opponent
from card_envs.play.sitting import Course
from card_envs.system.files import AS_BYTES, MAX_JSON, check_output_folder, locked, read_file

log = logging.getLogger("card_envs.serve")

TOKEN = re.compile(r"([0-9a-f]{16})[0-9a-f]{32}")  # a table's name, then the secret of a seat or of watchers
FILE = re.compile(r"([0-9a-f]{16})\.jsonl")
LOCK = ".lock"
MAX_HEADER = 1 << 20  # bytes
NOTED_EVERY = 60.0  # seconds, after which a further use is noted on disk


class Header(BaseModel):
    """The settings of a table."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    game: str
    version: int
    options: dict[str, Any]
    seed: int
    deal: dict[str, Any] | None
    players: list[str | None]
    tokens: list[str]  # SHA-256 of each person's, "" for opponents
    key: int  # seed of the opponents' draws
    undo: bool
    seconds: float
    watch: Literal["nothing", "public"] = "nothing"  # what watchers see before the end
    watcher: str = ""  # SHA-256 of their token, "" at tables from before there were any


class SeatedTable:
    """A table with its players. `changed` is set and replaced after every change."""

    def __init__(self, name: str, header: Header) -> None:
        self.name = name
        self.header = header
        self.course = Course.dealt(get_game(header.game), header.options, header.seed, header.deal)
        self.problem: str | None = None
        self.gone = False
        self.streams = 0  # of persons at the table
        self.watchers = 0  # streams of watchers
        self.waiting = 0  # number of requests that wait for a turn
        self.thinking: asyncio.Task[None] | None = None
        self.changed = asyncio.Event()
        self.opponents: dict[str, Opponent] = {}  # by name

    @property
    def player(self) -> str | None:
        """The opponent to move; None if a person is, or the game is over."""
        seat = self.course.seat
        return None if seat is None else self.header.players[seat]

    @property
    def persons(self) -> list[int]:
        """The seats with a person."""
        return [seat for seat, player in enumerate(self.header.players) if player is None]

    def notify(self) -> None:
        """Wake all waiting requests."""
        self.changed.set()
        self.changed = asyncio.Event()

    def last_own(self, seat: int) -> int | None:
        """Return the number of moves to go back to so that a seat may move differently; None if it can't."""
        if not self.header.undo or self.persons != [seat] or self.course.over:
            return None
        return self.course.last_own(seat)


class Tables:
    """All tables of a folder; the most recently used ones are also in memory. A file's time is that of its last use."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        """Open the folder, which is created for its owner only if missing.

        Raises:
            ValueError: it can't be written to, or another server uses it.
        """
        with contextlib.suppress(OSError):
            folder.mkdir(0o700, parents=True)
        check_output_folder(folder)
        self.folder = folder
        self.limits = limits
        self._held = contextlib.ExitStack()
        try:
            self._held.enter_context(locked(folder / LOCK))
        except BlockingIOError as error:
            raise ValueError(
                f"{folder}: {error.strerror}, which serves the tables there; stop it, or take another --folder"
            ) from None
        except OSError as error:
            raise ValueError(f"{folder}: {LOCK} can't be locked: {error.strerror}") from None
        self._closed = False
        files = [file for file in folder.iterdir() if FILE.fullmatch(file.name)]
        self._names = {file.stem for file in files if _is_table(file)}
        self._live: OrderedDict[str, SeatedTable] = OrderedDict()

    def close(self) -> None:
        """Release the folder; nothing is written afterwards."""
        self._closed = True
        self._held.close()

    def __len__(self) -> int:
        return len(self._names)

    def create(self, header: Header) -> tuple[SeatedTable, list[str | None], str]:
        """Return a new table, the token of each seat with a person, and the token of watchers.

        Raises:
            Problem: too many tables, or it can't be saved.
            ValueError: invalid options or deal.
        """
        if len(self._names) >= self.limits.tables:
            raise Problem("busy", f"there are {len(self._names)} tables already; try again later")
        name = secrets.token_hex(8)
        tokens = [name + secrets.token_hex(16) if player is None else None for player in header.players]
        watcher = name + secrets.token_hex(16)
        digests = [_token_digest(token) if token else "" for token in tokens]
        header = header.model_copy(update={"tokens": digests, "watcher": _token_digest(watcher)})
        table = SeatedTable(name, header)
        self._append(name, header.model_dump(mode="json"), os.O_CREAT | os.O_EXCL)
        self._names.add(name)
        self._keep(table)
        return table, tokens, watcher

    def find(self, token: str) -> tuple[SeatedTable, int]:
        """Return the table and the seat of a token. Raises Problem for an unknown token."""
        table = self._named_in(token)
        if table is not None:
            digest = _token_digest(token)
            for seat, known in enumerate(table.header.tokens):
                if hmac.compare_digest(known, digest):
                    return table, seat
        raise Problem("unknown", "no such seat, or the table is gone")

    def find_watched(self, token: str) -> SeatedTable:
        """Return the table of a watcher's token. Raises Problem for an unknown token."""
        table = self._named_in(token)
        if table is None or not hmac.compare_digest(table.header.watcher, _token_digest(token)):
            raise Problem("unknown", "nothing to watch here, or the table is gone")
        return table

    def _named_in(self, token: str) -> SeatedTable | None:
        match = TOKEN.fullmatch(token)
        return self._table(match[1]) if match else None

    def missing(self, token: str) -> str | None:
        """Return the name of a token's table if it may be on disk but is not in memory; else None."""
        match = TOKEN.fullmatch(token)
        return match[1] if match and match[1] not in self._live else None

    def read(self, name: str) -> SeatedTable | None:
        """Return a table from its file, in any thread; None if there is none. Raises Problem if it is damaged."""
        return _read_table(self._path(name))

    def keep(self, table: SeatedTable) -> None:
        """Keep a table in memory after reading it, unless it is there already or was deleted meanwhile."""
        if table.name not in self._live and self._path(table.name).exists():
            self._names.add(table.name)
            self._keep(table)

    def play(self, table: SeatedTable, action: int) -> None:
        """Play a legal action and save it. Raises Problem, without side effects, if it can't be saved."""
        self._append(table.name, table.course.move_text(action))
        table.course.play(action)
        table.notify()

    def undo(self, table: SeatedTable, num_moves: int) -> None:
        """Take back all but the first moves. Raises Problem, without side effects, if it can't be saved."""
        self._append(table.name, {"undo": num_moves})
        table.course.go_back(num_moves)
        table.notify()

    def remove(self, table: SeatedTable) -> None:
        """Forget a table and delete its file."""
        table.gone = True
        table.notify()
        self._live.pop(table.name, None)
        self._delete(table.name)

    def wake(self) -> None:
        """Wake the waiting requests of all tables."""
        for table in self._live.values():
            table.notify()

    def use(self, table: SeatedTable) -> None:
        """Note that a person uses a table, if only to wait."""
        if not table.gone and not self._closed and self._seconds_unused(table.name) > NOTED_EVERY:
            with contextlib.suppress(OSError):
                os.utime(self._path(table.name))

    def idle(self) -> list[str]:
        """Return the tables idle for too long; runs in any thread, because there may be thousands."""
        return [name for name in list(self._names) if self._is_idle(name)]

    def expire_one(self, name: str) -> None:
        """Delete a table unless it was used meanwhile, has a client, or is gone."""
        table = self._live.get(name)
        if not self._is_idle(name) or (table and (table.streams or table.waiting or table.thinking)):
            return
        if not _is_table(self._path(name)):
            self._names.discard(name)
        elif table:
            self.remove(table)
        else:
            self._delete(name)

    def _is_idle(self, name: str) -> bool:
        return self._seconds_unused(name) > 3600 * self.limits.idle_hours

    def _seconds_unused(self, name: str) -> float:
        """Return the seconds since the last use of a table; 0 if it is gone."""
        try:
            return time.time() - self._path(name).lstat().st_mtime
        except OSError:
            return 0.0

    def _delete(self, name: str) -> None:
        self._names.discard(name)
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def _keep(self, table: SeatedTable) -> None:
        """Keep a table in memory, and drop others if there are too many; those in use stay."""
        self._live[table.name] = table
        for name in list(self._live):
            if len(self._live) <= self.limits.live_tables:
                return
            other = self._live[name]
            if not (other is table or other.streams or other.watchers or other.waiting or other.thinking):
                del self._live[name]

    def _table(self, name: str) -> SeatedTable | None:
        if name in self._live:
            self._live.move_to_end(name)
            return self._live[name]
        table = self.read(name)
        if table is None:
            self._names.discard(name)
        else:
            self.keep(table)
        return table

    def _append(self, name: str, line: Any, flags: int = 0) -> None:
        """Append a line to a table's file, all of it or nothing."""
        if self._closed:
            raise Problem("busy", "the server is ending")
        data = json.dumps(line).encode() + b"\n"
        try:
            handle = os.open(self._path(name), os.O_WRONLY | os.O_APPEND | AS_BYTES | flags, 0o600)
            try:
                size = os.fstat(handle).st_size
                if os.write(handle, data) != len(data):
                    os.ftruncate(handle, size)
                    raise OSError("the disk is full")
            finally:
                os.close(handle)
        except OSError as error:
            raise Problem("busy", f"the table can't be saved: {error.strerror or error}") from None


def _token_digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _is_table(path: Path) -> bool:
    """Return whether a file is a table of this package: a regular file with a header line."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            line = file.readline(MAX_HEADER)
        Header.model_validate_json(line)
    except (OSError, ValueError):
        return False
    return line.endswith(b"\n")


def _read_table(path: Path) -> SeatedTable | None:
    """Return a table from its file; None if it is gone. A last line cut off by a crash is dropped.

    Raises:
        Problem: it is damaged, or was made under other rules.
    """
    try:
        if path.is_symlink():
            raise ValueError("a link, which no server made")
        data = read_file(path, MAX_JSON)
        whole = data.rfind(b"\n") + 1
        first, *lines = data[:whole].splitlines()
        header = Header.model_validate_json(first)
        if get_game(header.game).version != header.version:
            raise ValueError("made under other rules")
        table = SeatedTable(path.stem, header)
        moves: list[str] = []
        for line in map(json.loads, lines):
            if isinstance(line, dict):
                if line["undo"] not in range(len(moves)):
                    raise ValueError(f"undo: expected 0 to {len(moves) - 1}")
                del moves[line["undo"] :]
            else:
                moves.append(line)
        for move in moves:
            table.course.play(table.course.action(move))
        if whole < len(data):
            os.truncate(path, whole)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise Problem("failed", "the table's file can't be read") from error
    return table
