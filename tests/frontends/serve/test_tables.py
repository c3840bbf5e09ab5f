"""The folder of a server's tables: whose it is, what is deleted there, and long games that hold up nobody."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path

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
from tests.frontends.serving import ask, events, expire

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


def age(folder: Path, token: str, hours: float) -> None:
    """Let so much time pass since the last use of a token's table."""
    then = time.time() - 3600 * hours
    os.utime(folder / f"{token[:16]}.jsonl", (then, then))


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
    expire(seats.tables)
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


@pytest.mark.parametrize("how", ["asks", "waits", "listens"])
async def test_who_waits_for_a_move_uses_the_table(how: str, tmp_path: Path) -> None:
    seats = seats_of(tmp_path / "tables")
    token = await sit_down(seats)
    table, _ = seats.tables.find(token)
    waiting = asyncio.create_task(seats._until(table, lambda: False, 30)) if how == "waits" else None
    stream = await events(seats, token) if how == "listens" else None
    if stream:
        await anext(stream)
    for _ in range(3):
        age(seats.tables.folder, token, (0.9 if how == "asks" else 1.1) * LIMITS.idle_hours)
        if how == "asks":
            await ask(seats, "position", token=token)
            assert seats.tables.idle() == []
        await asyncio.sleep(0)
        expire(seats.tables)
        assert len(seats.tables) == 1 and not table.gone
    if waiting:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    if stream:
        await stream.aclose()
        expire(seats.tables)
        assert len(seats.tables) == 1
    age(seats.tables.folder, token, 1.1 * LIMITS.idle_hours)
    expire(seats.tables)
    assert len(seats.tables) == 0
    seats.stop()


async def test_tables_that_nobody_uses_are_deleted(tmp_path: Path) -> None:
    """Also those of a server before this one; what was used meanwhile stays."""
    seats = seats_of(tmp_path)
    used, left = [await sit_down(seats) for _ in range(2)]
    seats.stop()
    for token in (used, left):
        age(tmp_path, token, 1.1 * LIMITS.idle_hours)
    again = seats_of(tmp_path)
    idle = again.tables.idle()
    assert len(idle) == 2
    await ask(again, "position", token=used)
    for name in idle:
        again.tables.expire_one(name)
    assert [(tmp_path / f"{token[:16]}.jsonl").exists() for token in (used, left)] == [True, False]
    again.stop()


def test_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    """A folder that the server makes is private; the rights of an existing one stay."""
    Tables(tmp_path / "new" / "tables", LIMITS).close()
    assert stat.S_IMODE((tmp_path / "new" / "tables").stat().st_mode) == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    Tables(tmp_path / "open", LIMITS).close()
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o777


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


async def test_tables_are_not_read_through_links(tmp_path: Path) -> None:
    seats = seats_of(tmp_path / "tables")
    token = await sit_down(seats)
    seats.stop()
    file = tmp_path / "tables" / f"{token[:16]}.jsonl"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    seats = seats_of(tmp_path / "tables")
    with pytest.raises(Problem, match="the table's file can't be read"):
        await ask(seats, "position", token=token)
    seats.stop()
