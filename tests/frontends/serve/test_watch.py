"""Watchers of a server's tables: what they see before and after the end, and that they can do nothing else."""

from __future__ import annotations

import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx", reason="what FastAPI's test client needs is not installed")
from fastapi.testclient import TestClient

from card_envs.frontends.serve._messages import Problem
from card_envs.frontends.serve.app import make_app
from card_envs.game import Game
from card_envs.record import GameRecord
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import short_options
from tests.frontends.serve.test_serve import LIMITS, play_on, seats_of, worlds
from tests.frontends.serving import ask, events, expire

pytestmark = pytest.mark.anyio


def new_table(client: TestClient, game: Game, **how: Any) -> tuple[list[str], str]:
    """The links of a new table's persons, and that of its watchers."""
    made = client.post("/v1/tables", json={"game": game.name, "options": short_options(game), **how}).json()
    return [seat["link"] for seat in made["seats"]], made["watch"]["link"]


@pytest.mark.mechanics
@pytest.mark.parametrize("watch", ["nothing", "public"])
def test_watchers_see_what_the_owner_allows_and_all_after_the_end(game: Game, tmp_path: Path, watch: str) -> None:
    with TestClient(make_app(seats_of(game, tmp_path))) as client:
        (link,), watching = new_table(client, game, watch=watch)
        seen = play_on(client, link, random.Random(1), most=2)
        if not seen["outcome"]["over"]:
            told = client.get(watching, params={"since": 0}).json()
            own = client.get(link, params={"since": 0}).json()
            public = {key: own[key] for key in ("turn", "moves", "outcome", "problem")} | {"view": told["view"]}
            nothing: dict[str, Any] = {"turn": None, "moves": [], "outcome": None, "problem": None, "view": None}
            shown = public if watch == "public" else nothing
            assert told == {"game": game.name, "players": own["players"], "views": None, **shown}
            for path in ("/record", "/events") if watch == "nothing" else ("/record",):
                refused = client.get(watching + path)
                assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_over"), path
        play_on(client, link, random.Random(2))
        told, own = (client.get(one, params={"since": 0}).json() for one in (watching, link))
        assert told["outcome"]["over"] and told["moves"] == own["moves"] and told["views"][own["seat"]] == own["view"]
        assert [view["seat"] for view in told["views"]] == list(range(game.rules.NUM_SEATS))
        record = client.get(f"{watching}/record").json()
        assert record == client.get(f"{link}/record").json()
        assert GameRecord.model_validate(record).outcome == told["outcome"]
        with client.stream("GET", f"{watching}/events") as stream:
            data = [line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: ")]
        assert [json.loads(one)["views"] for one in data] == [told["views"]]
        last = {"last-event-id": str(told["turn"])}
        assert client.get(f"{watching}/events", headers=last).status_code == 204


@pytest.mark.parametrize(("seed", "watch"), [(0, "nothing"), (1, "public")])
def test_watchers_get_no_hidden_card(game: Game, seed: int, watch: str, tmp_path: Path) -> None:
    """The same moves over different hidden cards: equal bytes before the end, whichever seat's cards they are."""
    _, deals, moves = worlds(game, seed, 6 + 8 * seed, seed)

    def asked(deal: dict[str, Any]) -> list[bytes]:
        found = []
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        with TestClient(make_app(seats_of(game, folder))) as client:
            players = [None] * game.rules.NUM_SEATS
            links, watching = new_table(client, game, players=players, seed=seed, deal=deal, watch=watch)
            for mover, move in moves:
                found += [client.get(watching + path).content for path in ("?picture=wide", "?since=0", "/record")]
                assert client.post(f"{links[mover]}/moves", json={"move": move, "wait": 0}).status_code == 200
        return found

    one, other = map(asked, deals)
    assert one == other and len(one) == 3 * len(moves)


def test_links_are_for_one_purpose(tmp_path: Path) -> None:
    """Neither do watchers play nor do seats' secrets open the watchers' door; no secret is stored."""
    with TestClient(make_app(seats_of(TINY, tmp_path))) as client:
        links, watching = new_table(client, TINY, players=[None] * TINY.rules.NUM_SEATS)
        token = watching.rpartition("/")[2]
        as_seat, (first, *_) = f"/v1/seats/{token}", links
        move = client.get(first).json()["view"]["legal"][0]
        refused = [
            client.get(as_seat),
            client.get(f"{as_seat}/record"),
            client.get(f"{as_seat}/events"),
            client.post(f"{as_seat}/moves", json={"move": move}),
            client.post(f"{as_seat}/undo"),
            client.delete(as_seat),
            *(client.get(link.replace("seats", "watch")) for link in links),
            client.get(first.replace("seats", "watch") + "/record"),
            client.get(first.replace("seats", "watch") + "/events"),
            client.get(watching[:-32] + "0" * 32),
            client.get(watching[:-32]),
        ]
        assert {one.status_code for one in refused} == {404}
        assert client.delete(watching).status_code == client.post(watching).status_code == 405
        assert client.get(first).json()["turn"] == 0
        (file,) = (tmp_path / "tables").glob("*.jsonl")
        assert token[16:] not in file.read_text(encoding="utf-8")
        for wrong in ("all", None, 1):
            asked = {"game": TINY.name, "watch": wrong}
            refusal = client.post("/v1/tables", json=asked)
            assert (refusal.status_code, refusal.json()["error"]["field"]) == (422, "watch")


def test_links_hold_after_a_restart_and_older_tables_have_none(tmp_path: Path) -> None:
    with TestClient(make_app(seats_of(TINY, tmp_path))) as client:
        (link,), watching = new_table(client, TINY, watch="public")
        before = client.get(watching).json()
    with TestClient(make_app(seats_of(TINY, tmp_path))) as client:
        assert client.get(watching).json() == before
    (file,) = (tmp_path / "tables").glob("*.jsonl")
    first, *rest = file.read_text(encoding="utf-8").splitlines(keepends=True)
    header = {key: value for key, value in json.loads(first).items() if not key.startswith("watch")}
    file.write_text(json.dumps(header) + "\n" + "".join(rest), encoding="utf-8")
    with TestClient(make_app(seats_of(TINY, tmp_path))) as client:
        assert client.get(link).status_code == 200 and client.get(watching).status_code == 404


async def test_watchers_follow_events_and_leave_room_for_persons(tmp_path: Path) -> None:
    """As many of them as a table may have take no stream from the persons; a table left alone goes in spite of them."""
    limits = replace(LIMITS, streams_per_table=1)

    seats = seats_of(TINY, tmp_path, limits)
    made = await ask(seats, "table", game=TINY.name, watch="public")
    token, watcher = made["seats"][0]["token"], made["watch"]["token"]
    watching = await events(seats, watcher, watching=True)
    assert watching is not None
    first = await anext(watching)
    own = await events(seats, token)
    assert own is not None
    assert first is not None and first["views"] is None
    with pytest.raises(Problem, match="too many event streams"):
        await events(seats, watcher, watching=True)
    seen = await anext(own)
    moves: list[Any] = list(first["moves"])
    while seen is not None and not seen["outcome"]["over"]:
        if seen["your_turn"]:
            await ask(seats, "move", token=token, move=seen["view"]["legal"][0], wait=0.0)
        seen = await anext(own)
    async for told in watching:
        assert told is not None
        moves += told["moves"]
    assert told is not None and told["outcome"]["over"] and told["views"]
    whole = (await ask(seats, "watch", token=watcher, since=0))["moves"]
    assert moves == whole[len(whole) - len(moves) :] and len(moves) >= len(whole) - 1
    again = await ask(seats, "table", game=TINY.name, watch="public")
    idle = await events(seats, again["watch"]["token"], watching=True)
    assert idle is not None
    await anext(idle)
    (file,) = seats.tables.folder.glob(f"{again['watch']['token'][:16]}.jsonl")
    long_ago = time.time() - 3600 * limits.idle_hours - 60
    os.utime(file, (long_ago, long_ago))
    expire(seats.tables)
    assert not file.exists() and [one async for one in idle] == []
    seats.stop()
