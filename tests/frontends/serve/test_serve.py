"""The server: games played over it, what it keeps secret, what it refuses, what it survives."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.envs._replay import verify
from card_envs.frontends.serve._advice_service import AdviceService
from card_envs.frontends.serve._asking import ServedOpponents, choose
from card_envs.frontends.serve._command import make_service
from card_envs.frontends.serve._limits import Limits
from card_envs.frontends.serve._messages import EventsRequest, Problem
from card_envs.frontends.serve._stdio import answer, serve_stdio
from card_envs.frontends.serve._table_service import TableService
from card_envs.frontends.serve._tables import Tables
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents import load_opponent, opponent_names
from card_envs.opponents._levels import levels
from card_envs.opponents.policy import Decisions
from card_envs.play.sitting import Course, Sitting
from card_envs.record import GameRecord
from card_envs.reviews import MoveJudge
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import FirstLegal, is_timed, redealt, short_options
from tests.frontends.serving import ask, events, expire

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")
pytest.importorskip("httpx", reason="what FastAPI's test client needs is not installed")
from fastapi.testclient import TestClient

from card_envs.frontends.serve.app import _as_events, make_app

# Time enough for every search, however busy the machine: with less, answers depend on it.
pytestmark = pytest.mark.anyio
LIMITS = Limits(body=1 << 16, seconds=600, searches=1, waiting=2)
smallest = pytest.mark.parametrize("game", [TINY], ids=[TINY.name])  # what the server does alike for every game


def seats_of(game: Game, folder: Path, limits: Limits = LIMITS, allow_deals: bool = True) -> TableService:
    return make_service(folder / "tables", [game.name], [], limits, allow_deals)


@pytest.fixture
def client(game: Game, tmp_path: Path) -> Iterator[TestClient]:
    """A client of a server for one game that takes deals."""
    with TestClient(make_app(seats_of(game, tmp_path))) as client:
        yield client


def sit_down(client: TestClient, game: Game, **how: Any) -> list[str]:
    """The links of a new table's persons."""
    reply = client.post("/v1/tables", json={"game": game.name, "options": short_options(game), **how})
    assert reply.status_code == 201, reply.text
    return [seat["link"] for seat in reply.json()["seats"]]


def at_turn(client: TestClient, link: str, **how: Any) -> dict[str, Any]:
    """The position once it is this seat's turn, or the game is over; opponents may have to be compiled first."""
    for _ in range(20):
        seen: dict[str, Any] = client.get(link, params={"wait": 30, **how}).json()
        if seen["your_turn"] or seen["outcome"]["over"]:
            return seen
    raise AssertionError(seen)


def play_on(client: TestClient, link: str, rng: random.Random, most: int = 10_000) -> dict[str, Any]:
    """Play random moves in a seat against opponents; returns the last position."""
    seen = at_turn(client, link)
    while not seen["outcome"]["over"] and most > 0:
        assert seen["your_turn"] and seen["view"]["legal"], seen
        move = rng.choice(seen["view"]["legal"])
        reply = client.post(f"{link}/moves", json={"move": move, "turn": seen["turn"]})
        assert reply.status_code == 200, reply.text
        before, seen = seen, reply.json()
        if not (seen["your_turn"] or seen["outcome"]["over"]):
            seen = at_turn(client, link, since=before["turn"])
        card = get_game(seen["game"]).view.moved_card(before["view"], move)
        played = {"seat": seen["seat"], "move": move, "deal": seen["moves"][0]["deal"], "card": card}
        assert seen["moves"][0] == played
        assert len(seen["moves"]) == seen["turn"] - before["turn"]
        most -= 1
    return seen


# Playing


@pytest.mark.mechanics
def test_a_whole_game_over_http(game: Game, client: TestClient) -> None:
    (link,) = sit_down(client, game)
    assert client.get(f"{link}/record").json()["error"]["code"] == "not_over"
    seen = play_on(client, link, random.Random(1))
    record = GameRecord.model_validate(client.get(f"{link}/record").json())
    verify(record)
    assert record.outcome == seen["outcome"] and len(record.moves) == seen["turn"]
    refused = client.post(f"{link}/moves", json={"move": record.moves[-1]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "over")
    half = seen["turn"] // 2
    stepped = client.post("/v1/replay", json={"record": record.model_dump(), "seat": seen["seat"], "at": half}).json()
    own = client.get(link, params={"at": half, "since": 0}).json()
    assert own["view"] == stepped["view"] and own["turn"] == stepped["turn"] == half
    assert [move["move"] for move in own["moves"]] == record.moves[:half]


@pytest.mark.mechanics
def test_a_game_as_text(game: Game, client: TestClient) -> None:
    """With `?text=1`, all that a player needs, in a tenth of the letters, and moves in any spelling."""
    (link,) = sit_down(client, game)
    rng = random.Random(4)
    seen = at_turn(client, link, since=0)
    for _ in range(5):
        text = client.get(link, params={"text": True, "since": 0})
        assert text.headers["content-type"].startswith("text/plain")
        assert game.view.picture(seen["view"]) in text.text and len(text.text) < len(json.dumps(seen))
        assert text.text.endswith(f"Your legal moves: {', '.join(seen['view']['legal'])}\n")
        assert all(move["move"] in text.text for move in seen["moves"])
        assert seen["question"] == game.question(seen["view"]) and seen["move_notes"] == game.move_notes(seen["view"])
        plain = " ".join(text.text.split())
        assert all(said in plain for said in (seen["question"], *seen["move_notes"].values()))
        move = rng.choice(seen["view"]["legal"])
        reply = client.post(f"{link}/moves", json={"move": f" {move.lower()}."}, params={"text": True})
        assert reply.status_code == 200 and f"you: {move}" in reply.text.replace("\u00a0", " ")
        seen = at_turn(client, link, since=0)
        if seen["outcome"]["over"]:
            assert "Game over" in client.get(link, params={"text": True}).text
            break


@pytest.mark.mechanics
def test_advice_is_what_evaluate_says(game: Game, client: TestClient) -> None:
    (link,) = sit_down(client, game)
    view = at_turn(client, link)["view"]
    for name in ("random", "search:64"):
        body = {"game": game.name, "opponent": name, "view": view, "seed": 3}
        moves = client.post("/v1/advise", json=body).json()["moves"]
        expected = [one._asdict() for one in load_opponent(name, game).rank_moves(view, 3)]
        for one in expected:
            one.update({key: None for key, value in one.items() if value != value})
        assert moves == expected


@pytest.mark.mechanics
def test_what_a_move_cost(game: Game, client: TestClient) -> None:
    """As Python's judge says; and what is wrong where there is no answer."""
    (link,) = sit_down(client, game)
    view = at_turn(client, link)["view"]
    asked = {"game": game.name, "opponent": "search:64", "view": view, "seed": 3}
    judge = MoveJudge(load_opponent("search:64", game))
    for move in view["legal"]:
        found = client.post("/v1/judge", json={**asked, "move": move.lower()}).json()
        best, cost, error = judge.cost(view, move, 3)
        assert found == {**dict.fromkeys(found), "game": game.name, "opponent": "search:64", "seat": view["seat"],
                         "best": best, "cost": cost, "error": error}  # fmt: skip
        assert move != best or cost == error == 0
    for wrong, code, field in (
        ({"move": "nonsense"}, "illegal_move", "move"),
        ({"move": view["legal"][0], "opponent": "greedy"}, "bad_request", "opponent"),
        ({"move": view["legal"][0], "view": {"seat": 9}}, "bad_view", "view.seat"),
        ({}, "bad_request", "move"),
    ):
        refused = client.post("/v1/judge", json={**asked, **wrong})
        assert refused.status_code == 422, refused.text
        assert (refused.json()["error"]["code"], refused.json()["error"]["field"]) == (code, field), refused.text


def test_a_game_is_told_in_words(game: Game, client: TestClient) -> None:
    """Its rules; and the options that people are offered, each with the default first, are options."""
    listed = client.get("/v1/games?picture=tall").json()["games"]
    (told,) = [one for one in listed if one["name"] == game.name]
    assert told["picture"].startswith("<svg") and "picture" not in client.get("/v1/games").json()["games"][0]
    assert told["margin_unit"] == game.view.MARGIN_UNIT
    assert told["goal"] == game.view.GOAL and told["minutes"] == game.view.MINUTES and told["ends"] == game.view.ENDS
    for text, moves in told["questions"]:
        assert text and set(moves) <= set(game.move_texts)
    assert not told["questions"] or told["questions"][-1][1] == []  # one fits every position
    assert list(told["about_opponents"]) == told["opponents"]
    assert told["about_opponents"]["search:64"].startswith("searches 64 possible worlds")
    assert told["levels"] == [level._asdict() for level in levels(game, told["opponents"])]
    assert "search:64" in told["judges"] and not {"random", "greedy"} & {*told["judges"]}
    for text, words in told["words"].items():
        assert text in game.move_texts and words == game.view.move_words(text) != text
    assert told["legend"] == [list(entry) for entry in game.view.LEGEND]
    for choice in told["choices"]:
        found = [getattr(game.validated({choice["option"]: value}), choice["option"]) for value, _ in choice["values"]]
        assert found[0] == getattr(game.options(), choice["option"])
        assert len({words for _, words in choice["values"]}) == len(found)
    rules = client.get(f"/v1/games/{game.name}/rules").json()
    assert rules["rules"].startswith(f"# {game.title}\n") if game.rules_page.exists() else "error" in rules
    assert client.get("/v1/games/bridge/rules").status_code == 404


@smallest
def test_moves_can_be_taken_back_where_one_person_plays(game: Game, client: TestClient) -> None:
    (link,) = sit_down(client, game, undo=True)
    first = at_turn(client, link)
    assert not first["can_undo"]
    assert client.post(f"{link}/undo").json()["error"]["code"] == "no_undo"
    seen = play_on(client, link, random.Random(3), most=1)
    assert seen["can_undo"]
    for turn in (seen["turn"] - 1, seen["turn"] + 1):
        assert client.post(f"{link}/undo", json={"turn": turn}).json()["error"]["code"] == "stale_turn"
    assert client.post(f"{link}/undo", json={"turn": seen["turn"]}).json()["view"] == first["view"]
    assert client.post(f"{link}/undo", json={"turn": seen["turn"]}).json()["error"]["code"] == "stale_turn"
    play_on(client, link, random.Random(3), most=1)
    assert client.post(f"{link}/undo").json()["view"] == first["view"]
    (other,) = sit_down(client, game)
    play_on(client, other, random.Random(3), most=1)
    assert client.post(f"{other}/undo").json()["error"]["code"] == "no_undo"


@smallest
async def test_events_follow_the_game(game: Game, tmp_path: Path) -> None:
    seats = seats_of(game, tmp_path)
    created = await ask(seats, "table", game=game.name, options=short_options(game))
    token = created["seats"][0]["token"]
    stream = await events(seats, token)
    assert stream is not None
    seen, rng, moves = None, random.Random(4), []
    async for seen in stream:
        assert seen is not None
        moves += seen["moves"]
        if seen["your_turn"]:
            await ask(seats, "move", token=token, move=rng.choice(seen["view"]["legal"]), wait=0.0)
    assert seen is not None and seen["outcome"]["over"]
    whole = await ask(seats, "position", token=token, since=0)
    assert moves == whole["moves"][len(whole["moves"]) - len(moves) :] and len(moves) >= len(whole["moves"]) - 60
    assert await events(seats, token, whole["turn"]) is None
    seats.stop()


@smallest
async def test_moves_that_replace_others_are_told(game: Game, tmp_path: Path) -> None:
    """Those who wait while moves are taken back learn all that stands in their place."""

    seats = seats_of(game, tmp_path)
    asked: dict[str, Any] = {"game": game.name, "options": short_options(game), "undo": True, "watch": "public"}
    asked["seed"] = 2  # deals in which the last two moves of each game could have been others
    made = await ask(seats, "table", **asked)
    token, rng = made["seats"][0]["token"], random.Random(5)
    seen = await ask(seats, "position", token=token, wait=30)
    table, _ = seats.tables.find(token)
    for number in range(4):
        if number < 2 or len(table.course.moves) < 4:
            seen = await ask(seats, "move", token=token, move=rng.choice(seen["view"]["legal"]), wait=30.0)
    course, before = table.course, table.course.moves
    stream = await events(seats, token)
    assert stream is not None and not course.over
    await anext(stream)

    def replace() -> list[dict[str, Any]]:
        """Take two moves back, and play others up to the same turn."""
        number = len(course.moves)
        seats.tables.undo(table, number - 2)
        while len(course.moves) < number:
            legal, played = course.legal_moves(), before[len(course.moves)].move
            course.play(course.action(next((move for move in legal if move != played), legal[0])))
        table.notify()
        return [move._asdict() for move in course.moves[number - 2 :]]

    number = len(before)
    expected = replace()
    assert expected != [move._asdict() for move in before[number - 2 :]]
    told = await anext(stream)
    assert told is not None and told["moves"] == expected and told["turn"] == number

    seats.stop()


# Secrets


def worlds(
    game: Game, seed: int, num_moves: int, shift: int
) -> tuple[int, list[dict[str, Any]], list[tuple[int, str]]]:
    """A seat, two deals that look the same to it after some moves within the first deal, and these moves."""
    rng = random.Random(seed)
    sitting = Course.dealt(game, short_options(game), seed)
    while len(sitting.moves) < num_moves:
        before = sitting.after(len(sitting.moves))
        seat = sitting.seat
        assert seat is not None
        sitting.play(sitting.action(rng.choice(sitting.view(seat)["legal"])))
        if sitting.over or len(sitting.episode.dealt) > 1:
            sitting = before
            break
    seat = ((sitting.seat or 0) + shift) % game.rules.NUM_SEATS
    state = redealt(game, np.array([sitting.episode.table.state], game.rules.STATE), np.array([seat], np.int8), seed)[0]
    deals = [game.view.deal_text([pack]) for pack in (sitting.episode.packs()[0], game.view.dealt_pack(state))]
    return seat, deals, [(move.seat, move.move) for move in sitting.moves]


@pytest.mark.parametrize("seed", [0, 1, pytest.param(3, marks=pytest.mark.slow)])
def test_replies_events_and_errors_hold_no_hidden_card(game: Game, seed: int, tmp_path: Path) -> None:
    """The same visible game over different hidden cards: equal bytes for a seat, whatever it asks."""
    seat, deals, moves = worlds(game, seed, 6 + 8 * seed, seed)
    assert deals[0] != deals[1] or game.rules.NUM_SEATS > 1

    def asked(deal: dict[str, Any]) -> list[bytes]:
        found: list[bytes] = []
        app_seats = seats_of(game, tmp_path / str(len(list(tmp_path.iterdir()))))
        with TestClient(make_app(app_seats)) as client:
            links = sit_down(client, game, players=[None] * game.rules.NUM_SEATS, seed=seed, deal=deal)
            own = links[seat]
            for mover, move in moves:
                found.append(client.get(own, params={"since": 0}).content)
                wrong = ["XX", ""] if mover == seat else ["XX", "", move]
                found += [client.post(f"{own}/moves", json={"move": text}).content for text in wrong]
                seen = client.get(own).json()["view"]
                for view in (seen, {**seen, "seat": 1 - seat}, {**seen, "legal": ["?"]}):
                    asking = {"game": game.name, "opponent": "search:64", "view": view}
                    if mover == seat:
                        found.append(client.post("/v1/advise", json=asking).content)
                played = client.post(f"{links[mover]}/moves", json={"move": move, "wait": 0})
                assert played.status_code == 200, played.text
                if mover == seat:
                    found.append(played.content)
            found += [client.get(own + path).content for path in ("", "?at=3", "/record")]
            found.append(client.post(f"{own}/undo").content)
            found += asyncio.run(first_events(app_seats, own.rpartition("/")[2]))
        return found

    async def first_events(app_seats: TableService, token: str) -> list[bytes]:
        found = []
        for last in (None, 0, 2):
            stream = await app_seats.events(EventsRequest(token=token, last=last))
            assert stream is not None
            found.append((await anext(_as_events(stream))).encode())  # type: ignore[call-overload]
        return found

    one, other = (asked(deal) for deal in deals)
    assert one == other
    assert len(one) > len(moves)


@pytest.mark.mechanics
@pytest.mark.parametrize("seed", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_opponents_at_tables_know_what_their_seat_knows(game: Game, seed: int) -> None:
    seat, deals, moves = worlds(game, seed, 10 * seed, 0)
    sittings = [Sitting.dealt(game, short_options(game), seed, deal) for deal in deals]
    for sitting in sittings:
        for _, move in moves:
            sitting.play(sitting.action(move))
    assert sittings[0].view(seat) == sittings[1].view(seat)
    for name in opponent_names(game):
        if is_timed(game, name) or (name in ("champion", "search:1024") and not seed):  # which take long
            continue
        opponent = load_opponent(name, game)
        one, other = (choose(opponent.within(1e6), sitting, 7)() for sitting in sittings)  # never cut short
        assert one == other, name


@pytest.mark.mechanics
def test_seats_are_secret(game: Game, client: TestClient, tmp_path: Path) -> None:
    links = sit_down(client, game, players=[None] * game.rules.NUM_SEATS)
    assert len({link[:-32] for link in links}) == 1 and len(set(links)) == len(links)
    for wrong in (links[0][:-1] + "x", links[0][:-32], links[0][:-32] + "0" * 32, "/v1/seats/" + "0" * 48):
        assert client.get(wrong).status_code == 404
    (file,) = (tmp_path / "tables").glob("*.jsonl")
    assert all(link[-32:] not in file.read_text() for link in links)
    assert file.stat().st_mode & 0o77 == 0 and file.parent.stat().st_mode & 0o77 == 0


@smallest
def test_deals_and_seeds_only_where_they_are_allowed(game: Game, tmp_path: Path) -> None:
    with TestClient(make_app(seats_of(game, tmp_path, allow_deals=False))) as client:
        for key, value in (("seed", 1), ("deal", {})):
            refused = client.post("/v1/tables", json={"game": game.name, key: value})
            assert (refused.status_code, refused.json()["error"]["field"]) == (403, key)


class Failing(FirstLegal):
    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        raise RuntimeError("a secret")

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        raise RuntimeError("a secret")


@smallest
def test_a_failing_opponent_tells_nothing(game: Game, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its exception may hold cards: only the owner's log has it."""
    seats = make_service(tmp_path, [game.name], [f"{game.name}/failing={__name__}:Failing"], LIMITS, True)
    with TestClient(make_app(seats)) as client:
        (link,) = sit_down(client, game, players=[None, "failing"])
        seen = client.get(link, params={"wait": 1}).json()
        advice = client.post("/v1/advise", json={"game": game.name, "opponent": "failing", "view": seen["view"]})
        if seen["your_turn"]:
            seen = client.post(f"{link}/moves", json={"move": seen["view"]["legal"][0], "wait": 5}).json()
    assert "secret" not in json.dumps(seen) + advice.text
    assert "failed" in seen["problem"] and advice.json()["error"]["code"] == "failed"
    assert "a secret" in caplog.text


# What is refused


@smallest
def test_opponents_are_taken_by_registered_name_alone(game: Game, client: TestClient, tmp_path: Path) -> None:
    (link,) = sit_down(client, game)
    view = at_turn(client, link)["view"]
    names = (str(tmp_path), "os:system", "search:63", f"{game.name}/greedy", "search:7,prior=greedy")
    for name in names:
        refused = client.post("/v1/advise", json={"game": game.name, "opponent": name, "view": view})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown"), refused.text
        refused = client.post(
            "/v1/tables", json={"game": game.name, "players": [None] * (game.rules.NUM_SEATS - 1) + [name]}
        )
        assert refused.status_code in (404, 422)


@smallest
def test_the_owner_may_add_opponents(game: Game, tmp_path: Path) -> None:
    opponents = ServedOpponents([game], {f"{game.name}/calm": "trivial"})
    assert opponents.names(game)[-1] == "calm"
    seats = TableService(AdviceService(opponents, LIMITS), Tables(tmp_path / "tables", LIMITS))
    with TestClient(make_app(seats)) as client:
        players = [None] + ["calm"] * (game.rules.NUM_SEATS - 1)
        play_on(client, sit_down(client, game, players=players)[0], random.Random(1), most=2)
    with pytest.raises(ValueError, match="GAME/NAME=WHAT"):
        ServedOpponents([game], {"calm": "trivial"})
    with pytest.raises(ValueError, match="there is one of this name"):
        ServedOpponents([game], {f"{game.name}/greedy": "trivial"})


@smallest
def test_what_is_malformed_is_told_where(game: Game, client: TestClient) -> None:
    (link,) = sit_down(client, game)
    view = at_turn(client, link)["view"]
    cases: list[tuple[str, Any, int, str | None]] = [
        ("/v1/advise", {"game": game.name}, 422, "view"),
        ("/v1/advise", {"game": "bridge", "view": view}, 404, "game"),
        ("/v1/advise", {"game": game.name, "view": {**view, "seat": "x"}}, 422, "view.seat"),
        ("/v1/advise", {"game": game.name, "view": {**view, "surprise": 1}}, 422, "view.surprise"),
        ("/v1/advise", {"game": game.name, "view": view, "seconds": -1}, 422, "seconds"),
        ("/v1/tables", {"game": game.name, "options": {"reward": "gold"}}, 422, "options"),
        ("/v1/tables", {"game": game.name, "options": {"x": 1}}, 422, "options"),
        ("/v1/tables", {"game": game.name, "players": []}, 422, "players"),
        ("/v1/tables", {"game": game.name, "players": ["greedy"] * game.rules.NUM_SEATS}, 422, "players"),
        ("/v1/tables", {"game": game.name, "deal": {"packs": 3}}, 422, None),
        (f"{link}/moves", {"move": "XX"}, 422, "move"),
        (f"{link}/moves", {"move": 7}, 422, "move"),
        (f"{link}/moves", {"move": "XX", "turn": 999}, 409, "turn"),
        ("/v1/replay", {"record": {}}, 422, "record.game"),
    ]
    for path, body, status, field in cases:
        reply = client.post(path, json=body)
        assert reply.status_code == status, (path, body, reply.text)
        assert field is None or reply.json()["error"]["field"] == field, reply.text
    for junk in (b"", b"{", b"[" * 60_000, b"\xff", b"1" * 5000, b'{"game": NaN}'):
        reply = client.post("/v1/advise", content=junk, headers={"content-type": "application/json"})
        error = reply.json()["error"]
        assert reply.status_code in (400, 422) and error["field"] is None and "body" in error["message"], reply.text


@smallest
def test_bodies_are_bounded(game: Game, client: TestClient) -> None:
    long = json.dumps({"game": game.name, "view": {"x": "y" * LIMITS.body}}).encode()
    headers = {"content-type": "application/json"}
    assert client.post("/v1/advise", content=long, headers=headers).status_code == 413

    def parts() -> Iterator[bytes]:
        for start in range(0, len(long), 1000):
            yield long[start : start + 1000]

    assert client.post("/v1/advise", content=parts(), headers=headers).status_code == 413


@smallest
async def test_tables_and_streams_are_bounded(game: Game, tmp_path: Path) -> None:
    limits = replace(LIMITS, tables=3, streams_per_table=1)

    seats = seats_of(game, tmp_path, limits)
    asked = {"game": game.name}
    tokens = [(await ask(seats, "table", **asked))["seats"][0]["token"] for _ in range(3)]
    with pytest.raises(Problem, match="3 tables"):
        await ask(seats, "table", **asked)
    stream = await events(seats, tokens[0])
    assert stream is not None
    await anext(stream)
    with pytest.raises(Problem, match="streams"):
        await events(seats, tokens[0])
    assert await ask(seats, "leave", token=tokens[1]) == {"left": True}
    together = await ask(seats, "table", **asked, players=[None] * game.rules.NUM_SEATS)
    with pytest.raises(Problem, match="others play here"):
        await ask(seats, "leave", token=together["seats"][0]["token"])
    seats.stop()


@smallest
async def test_idle_tables_are_deleted(game: Game, tmp_path: Path) -> None:
    seats = seats_of(game, tmp_path)
    token = (await ask(seats, "table", game=game.name, players=[None] * game.rules.NUM_SEATS))["seats"][0]["token"]
    expire(seats.tables)
    assert len(seats.tables) == 1
    (file,) = seats.tables.folder.glob("*.jsonl")
    long_ago = time.time() - 3600 * LIMITS.idle_hours - 60
    os.utime(file, (long_ago, long_ago))
    expire(seats.tables)
    assert len(seats.tables) == 0 and not file.exists()
    with pytest.raises(Problem, match="gone"):
        await ask(seats, "position", token=token)
    seats.stop()


# Restarts, and other requests meanwhile


@smallest
def test_tables_survive_a_restart(game: Game, tmp_path: Path) -> None:
    rng = random.Random(8)
    with TestClient(make_app(seats_of(game, tmp_path))) as client:
        (link,) = sit_down(client, game, undo=True)
        play_on(client, link, rng, most=4)
        client.post(f"{link}/undo")
        before = at_turn(client, link, since=0)
    (file,) = (tmp_path / "tables").glob("*.jsonl")
    with file.open("ab") as half_a_line:
        half_a_line.write(b'"XX')
    with TestClient(make_app(seats_of(game, tmp_path))) as client:
        assert at_turn(client, link, since=0) == before
        play_on(client, link, rng)
        verify(GameRecord.model_validate(client.get(f"{link}/record").json()))


@smallest
def test_only_so_many_tables_are_in_memory(game: Game, tmp_path: Path) -> None:
    with TestClient(make_app(seats_of(game, tmp_path, replace(LIMITS, live_tables=2)))) as client:
        links = [sit_down(client, game, players=[None] * game.rules.NUM_SEATS)[0] for _ in range(6)]
        first = [client.get(link).json() for link in links]
        assert [client.get(link).json() for link in links] == first


@smallest
def test_a_broken_file_is_told_and_others_go_on(game: Game, tmp_path: Path) -> None:
    with TestClient(make_app(seats_of(game, tmp_path))) as client:
        broken, whole = (sit_down(client, game)[0] for _ in range(2))
    name = broken.rpartition("/")[2][:16]
    (tmp_path / "tables" / f"{name}.jsonl").write_text('{"format": 1}\n')
    with TestClient(make_app(seats_of(game, tmp_path))) as client:
        assert client.get(broken).json()["error"]["code"] == "failed"
        assert client.get(whole).status_code == 200


@smallest
async def test_a_long_search_holds_up_nobody(game: Game, tmp_path: Path) -> None:
    """While a search thinks, other requests are answered; too many searches are turned away."""
    seats = seats_of(game, tmp_path)
    release = threading.Event()

    created = await ask(seats, "table", game=game.name, players=[None] * game.rules.NUM_SEATS)
    blocked = [
        asyncio.create_task(seats.advice.searches.run(release.wait)) for _ in range(LIMITS.searches + LIMITS.waiting)
    ]
    await asyncio.sleep(0)
    with pytest.raises(Problem, match="at work"):
        await seats.advice.searches.run(release.wait)
    blocked.append(asyncio.create_task(seats.advice.searches.run(release.wait, patient=True)))  # an opponent's
    assert (await ask(seats, "position", token=created["seats"][0]["token"]))["turn"] == 0
    release.set()
    assert all(await asyncio.gather(*blocked))
    seats.stop()


class Slow(FirstLegal):
    """Thinks until it is told to move, one search at a time: of the last legal move first, then of the first one."""

    turns = 0
    begun, release = threading.Event(), threading.Event()
    lock = threading.Lock()

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        assert self.lock.acquire(blocking=False)
        self.begun.set()
        assert self.release.wait(30)
        self.lock.release()
        self.turns += 1
        last = decisions.mask.shape[1] - 1 - decisions.mask[:, ::-1].argmax(axis=1)
        return last if self.turns == 1 else super().act(decisions, rng)


async def test_a_move_is_not_played_where_others_were_taken_back_meanwhile(tmp_path: Path) -> None:
    """What is thought of then is dropped, and the opponent looks at the position that there is."""
    Slow.begun.clear()
    Slow.release.clear()

    limits = replace(LIMITS, searches=2)
    seats = make_service(tmp_path, [TINY.name], [f"{TINY.name}/slow={__name__}:Slow"], limits, True)
    expected = Sitting.dealt(TINY, {}, 1)
    players = [None if seat == expected.seat else "slow" for seat in range(TINY.rules.NUM_SEATS)]
    made = await ask(seats, "table", game=TINY.name, players=players, seed=1, undo=True)
    token = next(seat["token"] for seat in made["seats"])
    one, other, *_ = (await ask(seats, "position", token=token))["view"]["legal"]
    await ask(seats, "move", token=token, move=one, wait=0.0)
    assert await asyncio.to_thread(Slow.begun.wait, 30)
    assert (await ask(seats, "undo", token=token))["turn"] == 0
    await ask(seats, "move", token=token, move=other, wait=0.0)
    Slow.release.set()
    seen = await ask(seats, "position", token=token, wait=30, since=0)
    expected.play(expected.action(other))
    reply, *others = expected.legal_moves()
    assert others and [move["move"] for move in seen["moves"][:2]] == [other, reply] and not seen["problem"]
    seats.stop()


# JSON lines


def lines_of(seats: TableService, *requests: Any) -> list[dict[str, Any]]:
    """What is answered to these lines."""
    target = io.BytesIO()
    source = io.BytesIO(
        b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in requests)
    )
    asyncio.run(serve_stdio(seats, source, target))
    return [json.loads(line) for line in target.getvalue().splitlines()]


@pytest.mark.mechanics
def test_json_lines_have_the_same_messages(game: Game, tmp_path: Path) -> None:
    with TestClient(make_app(seats_of(game, tmp_path))) as client:
        (link,) = sit_down(client, game)
        view = at_turn(client, link)["view"]
        asked = {"game": game.name, "opponent": "greedy", "view": view}
        expected = [client.get("/v1/games").json(), client.post("/v1/advise", json=asked).json()]
        error = client.post("/v1/advise", json={**asked, "view": {"seat": 9}}).json()["error"]
    answers = lines_of(
        seats_of(game, tmp_path / "other"),
        {"id": "a", "call": "games"},
        {"id": [1], "call": "advise", "body": asked},
        {"id": None, "call": "advise", "body": {**asked, "view": {"seat": 9}}},
        {"id": 4, "call": "sing"},
        {"id": 5, "call": "advise", "body": {}},
        {"id": 6, "call": "position", "body": {"token": "x"}},
        b"no json\n",
        b"[" * (LIMITS.body + 10) + b"\n",
        b"\n",
        {"id": 9, "call": "schema", "body": {"game": game.name}},
    )
    by_id = {json.dumps(one["id"]): one for one in answers if one["id"] is not None}
    assert by_id['"a"']["reply"] == expected[0] and by_id["[1]"]["reply"] == expected[1]
    assert error in [one.get("error") for one in answers if one["id"] is None]
    assert by_id["4"]["error"]["code"] == "unknown" and by_id["5"]["error"]["field"] == "game"
    assert by_id["6"]["error"]["code"] == "unknown"
    assert {"too_large", "bad_request"} <= {one["error"]["code"] for one in answers if one["id"] is None}
    assert by_id["9"]["reply"] == json.loads(json.dumps(game.view.SCHEMA))


@smallest
async def test_a_table_over_json_lines(game: Game, tmp_path: Path) -> None:
    seats = seats_of(game, tmp_path)
    made = await ask(seats, "table", game=game.name, players=[None, "search:64"])
    token = made["seats"][0]["token"]

    async def call(name: str, **body: Any) -> dict[str, Any]:
        line = json.dumps({"id": 1, "call": name, "body": {"token": token, **body}}).encode()
        return json.loads(await answer(seats, line))["reply"]  # type: ignore[no-any-return]

    seen = await call("position", wait=30)
    while not seen["outcome"]["over"]:
        if seen["your_turn"]:
            seen = await call("move", move=seen["view"]["legal"][0])
        else:
            seen = await call("position", wait=30)
    verify(GameRecord.model_validate(await call("record")))
    assert await call("leave") == {"left": True}
    seats.stop()


async def test_streams_show_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("card_envs.frontends.serve._table_service.KEEP_ALIVE", 0.01)

    seats = seats_of(TINY, tmp_path)
    made = await ask(seats, "table", game=TINY.name, players=[None, None])
    stream = await events(seats, made["seats"][0]["token"])
    assert stream is not None and await anext(stream) is not None and await anext(stream) is None
    seats.stop()
    assert [one async for one in stream] == []


@pytest.mark.mechanics
def test_the_openapi_document_gives_whole_bounds(client: TestClient) -> None:
    """Its numbers are floats, which the bound of a seed is not."""
    text = client.get("/openapi.json").text
    assert "uint64" in text and not re.search(r"[0-9]e[+-]?[0-9]", text)
    for schema in client.get("/openapi.json").json()["components"]["schemas"].values():
        if seed := schema.get("properties", {}).get("seed"):
            kinds = seed.get("anyOf", [seed])
            assert {"type": "integer", "format": "uint64"}.items() <= kinds[0].items() and "2 ** 64" in seed[
                "description"
            ]


@pytest.mark.mechanics
def test_the_openapi_page_names_nobody_else(client: TestClient) -> None:
    page = client.get("/docs")
    scripts = re.findall(r"(?:src|href)=\"([^\"]+)\"", page.text)
    assert len(scripts) >= 3 and all(script.startswith("/") for script in scripts)
    assert all(client.get(script).status_code == 200 for script in scripts)
    assert "default-src 'self'" in page.headers["content-security-policy"]
