"""The server behind a real nginx with the guide's file: slow clients and floods leave others served."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from card_envs.frontends.serve._command import make_service
from card_envs.frontends.serve._limits import Limits
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import program

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
from tests.frontends.serving import serving

pytestmark = pytest.mark.slow
CONFIGURATION = Path(__file__).parents[3] / "examples" / "nginx.conf"
MAIN = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1000; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    include {folder}/cards.conf;
}}
"""
ONE, OTHER = "127.0.0.1", "127.0.0.2"  # addresses of clients
MANY = 300  # connections of one address, several times what the file permits
HEAD = "{} HTTP/1.1\r\nHost: cards.example\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """nginx's, with nothing but the ports changed in the file."""
    nginx, folder = program("nginx"), tmp_path_factory.mktemp("nginx")
    seats = make_service(folder / "tables", [TINY.name], [], Limits())
    with socket.create_server((ONE, 0)) as free:
        port = free.getsockname()[1]
    with serving(seats, ["cards.example"]) as upstream:
        text = CONFIGURATION.read_text()
        for before, after in (("listen 80;", f"listen {port};"), (f"{ONE}:8000", f"{ONE}:{upstream}")):
            assert before in text
            text = text.replace(before, after)
        (folder / "cards.conf").write_text(text)
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder))
        words = [nginx, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
        subprocess.run([*words, "-t"], check=True, capture_output=True)
        with subprocess.Popen(words) as process:
            try:
                while True:
                    assert process.poll() is None, (folder / "error.log").read_text()
                    try:
                        socket.create_connection((ONE, port)).close()
                        break
                    except ConnectionRefusedError:
                        pass
                yield port
            finally:
                process.terminate()


def connect(port: int, source: str) -> socket.socket:
    return socket.create_connection((ONE, port), timeout=60, source_address=(source, 0))


def ask(port: int, source: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = HTTPConnection(ONE, port, timeout=60, source_address=(source, 0))
    headers = {"Host": "cards.example", "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    reply = connection.getresponse()
    status, text = reply.status, reply.read()
    connection.close()
    return status, json.loads(text) if reply.headers.get_content_type() == "application/json" else text


def assert_others_play(port: int) -> None:
    """A whole game by another address."""
    status, made = ask(port, OTHER, "POST", "/v1/tables", {"game": TINY.name})
    assert status == 201
    link = made["seats"][0]["link"]
    status, seen = ask(port, OTHER, "GET", f"{link}?wait=30")
    while not seen["outcome"]["over"]:
        status, seen = ask(port, OTHER, "POST", f"{link}/moves", {"move": seen["view"]["legal"][0], "wait": 30})
        assert status == 200, seen


@pytest.mark.parametrize(
    ("start", "more"),
    [
        pytest.param(HEAD.format("GET /v1/games") + "X: ", "y", id="a head byte by byte"),
        pytest.param(
            HEAD.format("POST /v1/tables") + "Content-Type: application/json\r\nContent-Length: 50\r\n\r\n",
            "",
            id="a body that never comes",
        ),
        pytest.param("", "", id="nothing"),
    ],
)
def test_slow_clients_are_hung_up_on_and_others_served(start: str, more: str, port: int) -> None:
    with ExitStack() as held:
        slow = [held.enter_context(connect(port, ONE)) for _ in range(MANY)]
        for connection in slow:
            connection.sendall(start.encode())
        assert_others_play(port)
        for connection in slow[:3]:
            connection.settimeout(1)
            reply = b""
            for _ in range(60):
                try:
                    part = connection.recv(1 << 16)
                except TimeoutError:
                    connection.sendall(more.encode())
                    continue
                except ConnectionError:
                    break
                if not part:
                    break
                reply += part
            else:
                raise AssertionError("it waits for ever")
            assert reply == b"" or re.match(rb"HTTP/1.1 (408|429) ", reply), reply
        assert_others_play(port)


def test_a_flood_of_one_address_leaves_others_served(port: int) -> None:
    """Requests that wait, and event streams, beyond what an address may have are refused; so are too many at once."""
    status, made = ask(port, OTHER, "POST", "/v1/tables", {"game": TINY.name, "players": [None, None]})
    assert status == 201
    links = [seat["link"] for seat in made["seats"]]
    waiting = next(link for link in links if not ask(port, OTHER, "GET", link)[1]["your_turn"])
    with ExitStack() as held:
        flood = [held.enter_context(connect(port, ONE)) for _ in range(MANY)]
        for connection in flood:
            connection.sendall((HEAD.format(f"GET {waiting}?wait=30") + "\r\n").encode())
        assert_others_play(port)
        assert any(connection.recv(12) == b"HTTP/1.1 429" for connection in reversed(flood))
    assert_others_play(port)


def test_events_come_at_once(port: int) -> None:
    """nginx holds none of them back."""
    _, made = ask(port, OTHER, "POST", "/v1/tables", {"game": TINY.name, "players": [None, None]})
    link = made["seats"][0]["link"]
    with connect(port, OTHER) as stream:
        stream.sendall((HEAD.format(f"GET {link}/events") + "\r\n").encode())
        seen = b""
        while b"event: position" not in seen:
            part = stream.recv(1 << 16)
            assert part
            seen += part
