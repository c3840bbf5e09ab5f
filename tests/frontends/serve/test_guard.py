"""Which requests the server refuses, and that every reply has the promised form."""

from __future__ import annotations

import asyncio
import io
import json
import math
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.serving import ENVIRONMENT
from card_envs import GameRecord, replay
from card_envs.frontends.serve._command import ANYWHERE, listen, make_service, names_of
from card_envs.frontends.serve._limits import Limits
from card_envs.frontends.serve._messages import STATUS
from card_envs.frontends.serve._operations import CALLS, OPERATIONS, Operation
from card_envs.frontends.serve._stdio import serve_stdio
from card_envs.frontends.serve._table_service import TableService
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.play.episode import Episode
from card_envs.scaffold.high_card import GAME as TINY
from card_envs.testing.malformed import mutated
from tests.conftest import table_of
from tests.frontends.serving import ask, bytes_waiting, serving

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
pytest.importorskip("httpx", reason="what FastAPI's test client needs is not installed")
from fastapi.testclient import TestClient
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from card_envs.frontends.serve.app import make_app

pytestmark = pytest.mark.anyio
LIMITS = Limits(searches=1, body=1 << 16)


def seats_of(folder: Path) -> TableService:
    return make_service(folder, [TINY.name], [], LIMITS, allow_deals=True)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(make_app(seats_of(tmp_path / "tables")), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a server with small limits."""
    seats = seats_of(tmp_path_factory.mktemp("tables") / "tables")
    with serving(seats, ["localhost", "*.cards.example"]) as port:
        yield port


def strict(text: bytes | str) -> Any:
    """JSON as a strict reader takes it."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    def finite(number: str) -> float:
        assert math.isfinite(float(number)), number
        return float(number)

    found = json.loads(text, parse_constant=refuse, parse_float=finite)
    json.dumps(found, ensure_ascii=False).encode()  # no half characters
    return found


def is_problem(found: Any) -> bool:
    error = found["error"]
    return found.keys() == {"error"} and error.keys() == {"code", "message", "field"} and error["code"] in STATUS


def exchange(port: int, data: bytes, seconds: float = 20.0) -> bytes:
    """All that comes back until the server hangs up, or a whole reply is there."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        try:
            connection.sendall(data)
            return received(connection)
        except ConnectionError:
            return b""


def received(connection: socket.socket) -> bytes:
    reply = b""
    while part := connection.recv(1 << 16):
        reply += part
        head, _, body = reply.partition(b"\r\n\r\n")
        lengths = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if lengths and len(body) >= lengths[0]:
            break
    return reply


def asked(line: str, *headers: str, body: str = "", host: str | None = "localhost") -> bytes:
    named = [] if host is None else [f"Host: {host}"]
    return "\r\n".join([f"{line} HTTP/1.1", *named, *headers, "", body]).encode("latin-1")


JSON = "Content-Type: application/json"
TOKEN = "0" * 48
REQUESTS = [
    (asked("GET /v1/nowhere"), 404),
    (asked("GET /a%00b"), 404),
    (asked("GET /..%2f..%2fetc/passwd"), 404),
    (asked("GET /%ff%ed%a0%80"), 404),
    (asked("POST /", "Content-Length: 0"), 405),
    (asked("PUT /v1/games", "Content-Length: 0"), 405),
    (asked("SING /v1/games"), 405),
    (asked(f"GET /v1/seats/{TOKEN}?since={'9' * 3000}"), 422),
    (asked(f"GET /v1/seats/{TOKEN}"), 404),
    (asked("GET /v1/games", host="elsewhere.example"), 400),
    (b"GET /v1/games HTTP/1.0\r\n\r\n", 400),
    (asked("GET /v1/games", host="[::1"), 400),
    (asked("POST /v1/advise", JSON, "Content-Length: " + "9" * 19), 413),
    (asked("POST /v1/tables", "Content-Length: 2", body="{}"), 415),
    (asked("POST /v1/tables", JSON, "Content-Length: 1", body="{"), 422),
    (asked("POST /v1/tables", JSON, "Origin: http://x", "Content-Length: 2", body="{}"), 403),
]


def test_every_error_is_the_promised_object(port: int) -> None:
    for request, status in REQUESTS:
        head, _, body = exchange(port, request).partition(b"\r\n\r\n")
        assert int(head.split()[1]) == status, (request, head, body)
        assert is_problem(strict(body)), body
        assert b"content-type: application/json" in head.lower()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_unknown_keys_are_refused_wherever_they_stand(operation: Operation, client: TestClient) -> None:
    """In a query, in a body and in JSON lines."""
    made = client.post("/v1/tables", json={"game": TINY.name}).json()
    token = made["watch"]["token"] if "watch" in operation.path else made["seats"][0]["token"]
    token = TOKEN if operation.streams else token  # else a stream that is opened would not end
    path = operation.path.format(game=TINY.name, token=token)
    body: dict[str, Any] = {"json": {}} if operation.method == "POST" else {}
    refused = client.request(operation.method, path, params={"nonsense": 1, "wait": 0}, **body)
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "nonsense") and is_problem(refused.json())
    if body:
        refused = client.post(path, json={"nonsense": 1})
        assert refused.status_code == 422 and is_problem(refused.json())
    assert client.get(made["seats"][0]["link"]).status_code == 200  # nothing was done: it is still there


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.streams], ids=lambda one: one.name)
def test_events_are_held_back_by_no_proxy(operation: Operation, port: int) -> None:
    body = json.dumps({"game": TINY.name, "watch": "public"})
    made = exchange(port, asked("POST /v1/tables", JSON, f"Content-Length: {len(body)}", body=body))
    table = strict(made.partition(b"\r\n\r\n")[2])
    token = table["watch"]["token"] if "watch" in operation.path else table["seats"][0]["token"]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as stream:
        stream.sendall(asked(f"GET {operation.path.format(token=token)}"))
        head = b""
        while b"\r\n\r\n" not in head:
            head += stream.recv(1)
    assert b"x-accel-buffering: no\r\n" in head.lower() and b"content-type: text/event-stream" in head.lower()


def test_what_fails_within_is_told(client: TestClient) -> None:
    def fail(request: Request) -> Response:
        raise RuntimeError("a secret")

    client.app.router.routes.insert(0, Route("/fails", fail))  # type: ignore[attr-defined]
    reply = client.get("/fails")
    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "failed") and "secret" not in reply.text


def test_who_is_turned_away_may_come_again(tmp_path: Path) -> None:
    seats = seats_of(tmp_path)
    with TestClient(make_app(seats)) as client:
        made = client.post("/v1/tables", json={"game": TINY.name}).json()["seats"][0]
        view = client.get(made["link"], params={"wait": 5}).json()["view"]
        seats.advice.stop()
        reply = client.post("/v1/advise", json={"game": TINY.name, "view": view})
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1") and is_problem(reply.json())


def test_what_is_not_compiled_yet_is_told(tmp_path: Path) -> None:
    """A request for a game gets 503 and what is being compiled; the game that it names comes next."""
    seats = make_service(tmp_path / "tables", [], [], LIMITS)
    opponents = seats.advice.opponents
    opponents.loading = list(opponents.games)
    first, *_, last = opponents.games.values()
    with TestClient(make_app(seats)) as client:
        assert client.get("/v1/games").status_code == 200
        reply = client.post("/v1/tables", json={"game": last.name})
        assert reply.status_code == 503 and reply.headers["Retry-After"]
        assert reply.json()["error"]["message"].startswith(f"compiling {first.title}, 1 of {len(opponents.games)}; ")
        assert opponents.loading[:2] == [first.name, last.name]
        opponents.loading = [first.name]  # the others are compiled
        assert client.post("/v1/tables", json={"game": last.name}).status_code == 201
        assert client.post("/v1/tables", json={"game": first.name}).status_code == 503


def test_every_reply_has_the_safe_headers(client: TestClient) -> None:
    """No other page shows it in a frame, guesses its kind, keeps it, or is told of it; errors, too."""
    for path in ("/", "/page.js", "/docs", "/openapi.json", "/v1/games", "/v1/nowhere", "/nowhere"):
        for headers in ({}, {"host": "elsewhere"}):
            found = client.get(path, headers=headers).headers
            assert found["x-frame-options"] == "DENY" and found["x-content-type-options"] == "nosniff", path
            assert "frame-ancestors 'none'" in found["content-security-policy"]
            assert found["referrer-policy"] == "no-referrer" and found["cache-control"] == "no-store"


# From where


FOREIGN = [
    {"origin": "http://elsewhere.example"},
    {"origin": "null"},
    {"origin": "http://testserver:81"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "origin": "http://testserver"},
]
OWN: list[dict[str, str]] = [
    {},
    {"origin": "http://testserver"},
    {"sec-fetch-site": "same-origin", "origin": "https://behind.a.proxy"},
    {"sec-fetch-site": "none"},
]
KINDS = ["application/json", "text/plain", None]


@pytest.mark.parametrize("kind", KINDS)
def test_pages_from_elsewhere_change_nothing(kind: str | None, client: TestClient, tmp_path: Path) -> None:
    """Whatever kind of body they send, to whatever path, and whatever FastAPI would make of it."""
    link = client.post("/v1/tables", json={"game": TINY.name}).json()["seats"][0]["link"]
    body = json.dumps({"game": TINY.name}).encode()
    posted = ["/v1/tables", "/v1/advise", "/v1/replay", f"{link}/moves", f"{link}/undo"]
    for headers in FOREIGN:
        sent = {**headers, **({} if kind is None else {"content-type": kind})}
        for method, path in (*(("POST", path) for path in posted), ("DELETE", link), ("PUT", "/v1/games")):
            refused = client.request(method, path, content=body, headers=sent)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden"), (method, path)
    assert client.get(link).status_code == 200 and len(list((tmp_path / "tables").glob("*.jsonl"))) == 1


def test_the_servers_own_page_and_programs_may_ask(client: TestClient) -> None:
    """In bodies that say that they are JSON."""
    body = json.dumps({"game": TINY.name}).encode()
    for headers in OWN:
        assert client.post("/v1/tables", json={"game": TINY.name}, headers=headers).status_code == 201
    for other in ({}, {"content-type": "text/plain"}):
        refused = client.post("/v1/tables", content=body, headers=other)
        assert refused.status_code == 415 and "application/json" in refused.json()["error"]["message"]
    for kind in ("application/json", "Application/JSON; charset=utf-8"):
        assert client.post("/v1/tables", content=body, headers={"content-type": kind}).status_code == 201


def test_pages_that_the_owner_names_may_ask(tmp_path: Path) -> None:
    app = make_app(seats_of(tmp_path), origins=["https://cards.example"])
    with TestClient(app) as client:
        named = {"origin": "https://cards.example", "sec-fetch-site": "cross-site"}
        made = client.post("/v1/tables", json={"game": TINY.name}, headers=named)
        assert made.status_code == 201 and made.headers["access-control-allow-origin"] == named["origin"]
        asking = {**named, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
        assert client.options("/v1/tables", headers=asking).status_code == 200
        other = {**asking, "origin": "https://other.example"}
        assert is_problem(client.options("/v1/tables", headers=other).json())
        assert client.post("/v1/tables", json={"game": TINY.name}, headers=other).status_code == 403


def test_which_names_of_the_host_are_known(tmp_path: Path) -> None:
    """A page can have any name lead to this machine, but no number."""
    own = socket.gethostname().lower()
    for host in ("127.0.0.1", "cards.example", *ANYWHERE):
        known = names_of(host, ["extra.example", "*.below.example", "2001:db8::8"])
        with TestClient(make_app(seats_of(tmp_path / host.replace(":", "-")), hosts=known)) as client:

            def status(name: str, client: TestClient = client) -> int:
                return client.get("/v1/games", headers={"host": name}).status_code

            for name in ("LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000", "a.below.example", "[2001:db8::8]"):
                assert status(name) == 200, (host, name)
            for name in ("localhost.elsewhere.example", "below.example", "127.0.0.1.nip.io", "", "x@y"):
                assert status(name) == 400, (host, name)
            anywhere = host in ANYWHERE
            for name in ("192.0.2.7:8000", "[2001:db8::7]", own, f"{own.partition('.')[0]}.local"):
                assert status(name) == (200 if anywhere else 400), (host, name)
    for name in ("*below.example", "a.*.example", "**"):
        with pytest.raises(ValueError, match=r"host name '.*': expected a name, \*\.NAME for all below it, or \*"):
            names_of("localhost", ["cards.example", name])


def test_behind_a_path(tmp_path: Path) -> None:
    """With and without the web server in front cutting the path off; the page's addresses are relative."""
    with TestClient(make_app(seats_of(tmp_path), root_path="cards/")) as client:
        for before in ("", "/cards"):
            made = client.post(f"{before}/v1/tables", json={"game": TINY.name}).json()["seats"][0]
            assert made["link"] == f"/cards/v1/seats/{made['token']}"
            assert client.get(made["link"]).status_code == 200
            assert client.get(made["link"].removeprefix("/cards")).status_code == 200
            for path in ("/", "/page.js", "/icon.svg", "/docs", "/openapi.json", "/static-offline-docs/swagger-ui.css"):
                assert client.get(before + path).status_code == 200, before + path
            assert client.put(f"{before}/v1/games").headers["allow"] == "GET"
            assert client.get(f"{before}/v1/nowhere").json()["error"]["code"] == "unknown"
            docs = client.get(f"{before}/docs")
            assert "'/cards/openapi.json'" in docs.text and "script-src" in docs.headers["content-security-policy"]
        assert client.get("/openapi.json").json()["servers"] == [{"url": "/cards"}]
    page = Path(make_app.__code__.co_filename).parent / "page"
    for file in page.iterdir():
        assert not re.search(r"[\"'`(]/\w", file.read_text()), file


# Those who ask badly


def test_a_port_in_use_is_found_first(tmp_path: Path) -> None:
    """Before anything is loaded or made."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} of 127.0.0.1 can't be had: .*in use"):
            listen("127.0.0.1", port)
        words = ["serve", "--port", str(port), "--folder", str(tmp_path / "tables")]
        command = [sys.executable, "-m", "card_envs", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False)
    assert done.returncode and "in use" in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "tables").exists()
    listen("localhost", 0).close()
    with pytest.raises(ValueError, match="can't be had"):
        listen("no.such.host.invalid", 80)


# JSON lines


def answers_to(seats: TableService, lines: list[bytes]) -> list[Any]:
    target = io.BytesIO()
    asyncio.run(serve_stdio(seats, io.BytesIO(b"".join(lines)), target))
    return [strict(line) for line in target.getvalue().splitlines()]


async def test_nobody_is_answered_once_both_pipes_are_closed(tmp_path: Path) -> None:
    """Pending requests are dropped then, however long they would take."""

    class Closed(io.BytesIO):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

    seats = seats_of(tmp_path)
    made = await ask(seats, "table", game=TINY.name, players=[None] * TINY.rules.NUM_SEATS)
    waiting = [{"id": 1, "call": "position", "body": {"token": seat["token"], "wait": 30}} for seat in made["seats"]]
    lines = [json.dumps(line).encode() + b"\n" for line in (*40 * waiting, {"id": 2, "call": "games"})]
    await asyncio.wait_for(serve_stdio(seats, io.BytesIO(b"".join(lines)), Closed()), 25)


def test_a_reader_that_sleeps_stops_nobody_else(tmp_path: Path) -> None:
    """Nothing is read while a table is asked for; then all answers come, one line each, in order."""
    begun, release = threading.Event(), threading.Event()
    heeded: list[bool] = []

    class Pipe(io.BytesIO):
        def write(self, data: Any) -> int:
            begun.set()
            heeded.append(release.wait(30))
            return super().write(data)

    async def served() -> bytes:
        seats, target = seats_of(tmp_path), Pipe()
        lines = b"".join(
            b'{"id": %d, "call": "schema", "body": {"game": "%s"}}\n' % (n, TINY.name.encode()) for n in range(9)
        )
        server = asyncio.create_task(serve_stdio(seats, io.BytesIO(lines), target))
        await asyncio.to_thread(begun.wait, 30)
        assert (await ask(seats, "table", game=TINY.name))["game"] == TINY.name
        release.set()
        await server
        return target.getvalue()

    answers = [strict(line) for line in asyncio.run(served()).splitlines()]
    assert heeded == [True] * 9 and [line["id"] for line in answers] == list(range(9))


def test_every_line_gets_one_answer(tmp_path: Path) -> None:
    """However strange it is; what has an id that can be sent back has it in the answer."""
    rng = random.Random(5)
    table = table_of(TINY, {}, 1)
    body = {
        "game": TINY.name,
        "view": TINY.view.view(table.state, table.seat),
        "options": {},
        "token": TOKEN,
        "move": "x",
    }
    lines = [b"", b"{", b"[" * 30_000, b"\xff", b"1" * 5000, b"NaN", b"[]", b'"\\ud800"', b"\xef\xbb\xbf{}"]
    ids = (b"1e400", b"NaN", b'"\\ud800"', b"[" * 900 + b"]" * 900, b"[" * 20_000 + b"]" * 20_000, b"9" * 4000)
    lines += [b'{"id": %s, "call": "games"}' % number for number in ids]
    lines += [b"x" * size for size in (LIMITS.body - 1, LIMITS.body, LIMITS.body + 1, 4 * LIMITS.body)]
    calls = [name for name in CALLS if name != "games"]
    for number in range(1000):
        asked = {"id": number, "call": rng.choice(calls), "body": mutated(body, rng)}
        lines.append(json.dumps(asked).encode())
    found = answers_to(seats_of(tmp_path / "tables"), [line + b"\n" for line in lines])
    assert len(found) == len(lines)
    assert all(one.keys() in ({"id", "reply"}, {"id", "error"}) for one in found)
    assert {one["id"] for one in found if isinstance(one["id"], int)} >= set(range(1000))
    assert not any(one["error"]["code"] == "failed" for one in found if "error" in one)
    assert len(answers_to(seats_of(tmp_path / "tables"), [b'{"call": "games"}'])) == 1  # without an end of the line


def test_what_fails_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be it in a handler, or an answer that is no JSON."""
    wrong: list[Any] = [lambda: 1 / 0, lambda: {"x": math.nan}, lambda: {"x": object()}, lambda: {"x": b""}]

    async def games(seats: TableService, asked: Any) -> Any:
        return wrong.pop()()

    monkeypatch.setitem(CALLS, "games", replace(CALLS["games"], handler=games))
    answers = answers_to(seats_of(tmp_path / "tables"), len(wrong) * [b'{"id": 7, "call": "games"}\n'])
    assert [answer["error"]["code"] for answer in answers] == 4 * ["failed"]


@pytest.mark.parametrize("way", ["SIGTERM", "stdin ends", "stdout ends", "SIGINT, unread"])
def test_a_child_process_ends(way: str) -> None:
    """At once, and without a traceback, though a line may be waited for, or a reader."""
    words = [sys.executable, "-m", "card_envs", "serve", "--stdio", "--game", next(iter(GAMES))]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, env=ENVIRONMENT, **pipes) as child:  # type: ignore[call-overload]
        child.stdin.write(b'{"id": 1, "call": "games"}\n')
        child.stdin.flush()
        assert strict(child.stdout.readline())["id"] == 1
        if way == "SIGINT, unread":
            child.stdin.write(b'{"id": 1, "call": "games"}\n' * 1000)  # more than the pipe holds is answered
            child.stdin.flush()
            while bytes_waiting(child.stdout) < 50_000:  # the child waits for somebody to read, or is about to
                pass
        if way.startswith("SIG"):
            child.send_signal(signal.Signals[way.partition(",")[0]])
        elif way == "stdin ends":
            child.stdin.close()
        else:
            child.stdout.close()
            child.stdin.write(b'{"id": 1, "call": "games"}\n')
            child.stdin.flush()
        try:
            child.wait(timeout=30)
        finally:
            child.kill()
        assert b"Traceback" not in child.stderr.read() and b"Fatal" not in child.stderr.read()


# Half a character, wherever text is


@pytest.mark.parametrize("half", ["a\udfff", {"x": {"\ud800": ["\udc00"]}}], ids=ascii)
def test_half_a_character_is_a_value_error(half: Any, client: TestClient) -> None:
    """In Python and over HTTP, in options, views, deals and records."""
    table, episode = table_of(TINY, {}, 1), Episode(TINY, TINY.options(), seed=1)
    view, record = TINY.view.view(table.state, table.seat), episode.record().model_dump()
    for key in view:
        with pytest.raises(ValueError, match="view"):
            load_opponent("greedy", TINY).rank_moves({**view, key: half})
    with pytest.raises(ValueError, match=r"\S"):
        replay(GameRecord.model_validate({**record, "deal": half}))
    bodies: list[tuple[str, dict[str, Any]]] = [
        *(("/v1/advise", {"game": TINY.name, "view": {**view, key: half}}) for key in view),
        *(("/v1/replay", {"record": {**record, key: half}}) for key in record),
        *(("/v1/tables", {"game": TINY.name, key: half}) for key in ("game", "options", "players", "deal")),
    ]
    for path, body in bodies:
        refused = client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        assert refused.status_code == 422 and is_problem(strict(refused.content)), refused.text
