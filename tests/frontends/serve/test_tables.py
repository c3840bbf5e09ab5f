"""The folder of a server's tables: whose it is, what is deleted there, and long games that hold up nobody."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("pydantic")

from card_envs.frontends.serve import _tables as tables_module
from card_envs.frontends.serve._command import make_service
from card_envs.frontends.serve._limits import Limits
from card_envs.frontends.serve._messages import Problem
from card_envs.frontends.serve._table_service import TableService
from card_envs.frontends.serve._tables import Tables
from card_envs.game import Game
from card_envs.scaffold.high_card import GAME as TINY
from tests.frontends.serving import ask, events

pytestmark = pytest.mark.anyio
LIMITS = Limits(searches=1)
LONG_AGO = time.time() - 3600 * LIMITS.idle_hours - 60


def seats_of(folder: Path, game: Game = TINY) -> TableService:
    return make_service(folder, [game.name], [], LIMITS)


async def sit_down(seats: TableService) -> str:
    """The token of a person at a new table where only persons play."""
    made = await ask(seats, "table", game=TINY.name, players=[None] * TINY.rules.NUM_SEATS)
    token: str = made["seats"][0]["token"]
    return token


def foreign(folder: Path) -> dict[Path, bytes]:
    """Things that are no tables, some of which look like them; all of them old."""
    folder.mkdir()
    name = "0123456789abcde"
    contents = {
        "dataset.jsonl": b'{"x": 1}\n',
        f"{name}0.jsonl": b'{"x": 1}\n',
        f"{name}1.jsonl": b"",
        f"{name}2.jsonl": b'{"format": 1}\n',
        f"{name}4.jsonl.bak": b"1\n",
        "notes.txt": b"mine",
    }
    files = {folder / name: data for name, data in contents.items()}
    for file, data in files.items():
        file.write_bytes(data)
        file.chmod(0o644)
    (folder / f"{name}6.jsonl").mkdir()
    files[folder / f"{name}6.jsonl" / "within.jsonl"] = b"1\n"
    (folder / f"{name}6.jsonl" / "within.jsonl").write_bytes(b"1\n")
    for file in [*files, *folder.iterdir()]:
        os.utime(file, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    folder.chmod(0o755)
    return files


async def test_a_server_touches_only_what_it_made(tmp_path: Path) -> None:
    """Neither what others keep in its folder nor the folder's rights; of tables that are idle nothing else is left."""
    folder = tmp_path / "folder"
    files = foreign(folder)
    before = {path.name: path.lstat().st_mode for path in folder.iterdir()}

    seats = seats_of(folder)
    assert len(seats.tables) == 0
    token = await sit_down(seats)
    own = folder / f"{token[:16]}.jsonl"
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    tending = asyncio.create_task(seats.tend())
    await asyncio.sleep(0)
    assert own.exists()
    os.utime(own, (LONG_AGO, LONG_AGO))
    seats.tables.expire()
    assert not own.exists()
    for name in before:
        with pytest.raises(Problem):
            await ask(seats, "position", token=name[:16] + "0" * 32)
    tending.cancel()
    seats.stop()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert {file: file.read_bytes() for file in files} == files
    after = {path.name: path.lstat().st_mode for path in folder.iterdir() if path.name != tables_module.LOCK}
    assert after == before


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time of day, and the time that passes, in hours, as the tables see them; both stand still."""
    clocks = SimpleNamespace(day=time.time() / 3600, passed=7.0)
    seen = SimpleNamespace(time=lambda: 3600 * clocks.day, monotonic=lambda: 3600 * clocks.passed)
    monkeypatch.setattr(tables_module, "time", seen)
    return clocks


@pytest.mark.parametrize("step", [72, -72])
async def test_a_step_of_the_clock_deletes_no_table(step: float, clocks: SimpleNamespace, tmp_path: Path) -> None:
    """Such as where a machine wakes up three days later: only hours count in which the server ran."""

    seats = seats_of(tmp_path / "tables")
    tokens = [await sit_down(seats) for _ in range(2)]
    used, left = (seats.tables.find(token)[0].name for token in tokens)
    idle = seats.limits.idle_hours
    clocks.day += step
    seats.tables.expire()
    assert seats.tables.idle() == [] and len(seats.tables) == 2
    clocks.passed += idle - 1
    clocks.day += idle - 1
    await ask(seats, "position", token=tokens[0])
    clocks.day -= 2 * step
    clocks.passed += 2
    clocks.day += 2
    seats.tables.expire()
    assert [(seats.tables.folder / f"{name}.jsonl").exists() for name in (used, left)] == [True, False]
    clocks.passed += idle
    seats.tables.expire()
    assert len(seats.tables) == 0
    seats.stop()


@pytest.mark.parametrize("how", ["asks", "waits", "listens"])
async def test_who_waits_for_a_move_uses_the_table(how: str, clocks: SimpleNamespace, tmp_path: Path) -> None:
    seats = seats_of(tmp_path / "tables")
    token = await sit_down(seats)
    table, _ = seats.tables.find(token)
    waiting = asyncio.create_task(seats._until(table, lambda: False, 30)) if how == "waits" else None
    stream = await events(seats, token) if how == "listens" else None
    if stream:
        await anext(stream)
    for _ in range(30):
        clocks.passed += 0.9 * seats.limits.idle_hours
        if how == "asks":
            await ask(seats, "position", token=token)
        await asyncio.sleep(0)
        seats.tables.expire()
        assert len(seats.tables) == 1 and not table.gone
    if waiting:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    if stream:
        await stream.aclose()
        seats.tables.expire()
        assert len(seats.tables) == 1
    clocks.passed += 1.1 * seats.limits.idle_hours
    seats.tables.expire()
    assert len(seats.tables) == 0
    seats.stop()


async def test_a_machine_that_was_off_deletes_no_table_at_the_start(clocks: SimpleNamespace, tmp_path: Path) -> None:
    """Of the time before, of which only files tell, no more counts than half of what a table may be idle."""

    seats = seats_of(tmp_path / "tables")
    tokens = [await sit_down(seats) for _ in range(2)]
    idle = seats.limits.idle_hours
    seats.stop()
    clocks.day += 24 * 365
    again = seats_of(tmp_path / "tables")
    again.tables.expire()
    assert len(again.tables) == 2
    clocks.passed += 0.4 * idle
    await ask(again, "position", token=tokens[0])
    clocks.passed += 0.2 * idle
    again.tables.expire()
    assert [(tmp_path / "tables" / f"{token[:16]}.jsonl").exists() for token in tokens] == [True, False]
    again.stop()


def test_folders_are_for_their_owner_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A folder that the server makes is private; if others may write into an existing one, it warns."""
    Tables(tmp_path / "new" / "tables", LIMITS).close()
    assert stat.S_IMODE((tmp_path / "new" / "tables").stat().st_mode) == 0o700
    (tmp_path / "open").mkdir()
    for mode, told in ((0o755, False), (0o777, True)):
        (tmp_path / "open").chmod(mode)
        with caplog.at_level(logging.WARNING):
            Tables(tmp_path / "open", LIMITS).close()
        assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == mode
        assert ("other users may write to it" in caplog.text) == told


async def test_a_folder_has_one_server(tmp_path: Path) -> None:
    """The second is refused and changes nothing; what has ended writes no more."""
    first = Tables(tmp_path / "tables", LIMITS)
    with pytest.raises(ValueError, match="tables: is in use by another process, which serves the tables there"):
        Tables(tmp_path / "tables", LIMITS)
    first.close()
    Tables(tmp_path / "tables", LIMITS).close()

    seats = seats_of(tmp_path / "tables")
    token = await sit_down(seats)
    (move, *_) = (await ask(seats, "position", token=token))["view"]["legal"] or [""]
    seats.stop()
    size = (tmp_path / "tables" / f"{token[:16]}.jsonl").stat().st_size
    with pytest.raises(Problem):
        await ask(seats, "move", token=token, move=move or "XX")
    with pytest.raises(Problem, match="ending"):
        await sit_down(seats)
    assert (tmp_path / "tables" / f"{token[:16]}.jsonl").stat().st_size == size


@pytest.mark.parametrize("text", ['"XX"', '{"undo": 7}', "{}", "[" * 50_000], ids=lambda text: text[:20])
async def test_broken_tables_are_told(text: str, tmp_path: Path) -> None:
    """Whatever stands after the first line; the file stays as it is."""

    seats = seats_of(tmp_path)
    token = await sit_down(seats)
    seats.stop()
    file = tmp_path / f"{token[:16]}.jsonl"
    with file.open("a") as broken:
        broken.write(text + "\n")
    before = file.read_bytes()
    seats = seats_of(tmp_path)
    with pytest.raises(Problem, match="the table's file can't be read"):
        await ask(seats, "position", token=token)
    assert file.read_bytes() == before
    seats.stop()
