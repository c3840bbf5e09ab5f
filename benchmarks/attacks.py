"""Attacks on a server, and what another client notices of them: `python -m benchmarks.attacks`. Prints a line for each.

- *one endless header line*, *200 MB of headers*: how long another client waits, and the server's memory.
- *4,300 requests that never end*: whether others are let in, and what is left open after half a minute.
- *120 tables that think*: `champion` has the other seat; how long search advice and another table's search wait.

Attackers and clients run on the same machine, in another process than the server.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import tempfile
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.serving import Server
from card_envs.games import GAMES

SENT_AT_MOST = 200 << 20
BUSIEST = max(GAMES.values(), key=lambda game: (not game.is_solitaire, -game.rules.NUM_SEATS)).name


def ask(server: Server, path: str, body: Any = None) -> tuple[float, Any, Any]:
    """Seconds, status (or the error's name) and reply of a request."""
    began = time.monotonic()
    status: Any = 200
    reply = None
    try:
        reply = server.ask(path, body)
    except urllib.error.HTTPError as error:
        status = error.code
    except OSError as error:
        status = type(error).__name__
    return time.monotonic() - began, status, reply


@contextlib.contextmanager
def repeated(call: Callable[[], Any], pause: float) -> Iterator[list[Any]]:
    """Call again and again beside what is done here; yields the results."""
    results: list[Any] = []
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(pause):
            results.append(call())

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield results
    finally:
        done.set()
        thread.join()


def send(server: Server, head: bytes, more: bytes, seconds: float = 20) -> str:
    """Begin a request and go on with its head for ever, again and again as the server hangs up."""
    host, _, port = server.address.removeprefix("http://").partition(":")
    sent, connections, end = 0, 0, time.monotonic() + seconds
    while sent < SENT_AT_MOST and time.monotonic() < end:
        connections += 1
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=30) as line:
            line.sendall(head)
            while sent < SENT_AT_MOST and time.monotonic() < end:
                sent += line.send(more)
    return f"{sent >> 20} MiB sent over {connections} connections"


def endless_line(server: Server) -> str:
    return send(server, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"x" * 65536)


def many_headers(server: Server) -> str:
    return send(server, b"GET /v1/games HTTP/1.1\r\nHost: localhost\r\n", (b"X: " + b"y" * 8000 + b"\r\n") * 32)


def unfinished(server: Server) -> str:
    """Begin 4,300 requests and wait for half a minute."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 20_000)), hard))
    host, _, port = server.address.removeprefix("http://").partition(":")
    lines = []
    for _ in range(4300):
        with contextlib.suppress(OSError):
            line = socket.create_connection((host, int(port)), timeout=5)
            line.sendall(b"GET /v1/ga")
            lines.append(line)
    time.sleep(30)
    still = sum(is_open(line) for line in lines)
    return f"{len(lines)} begun, {still} still open after 30 s"


def is_open(line: socket.socket) -> bool:
    line.setblocking(False)
    try:
        while line.recv(4096):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    line.close()
    return False


def starve(server: Server) -> str:
    """Have 120 tables think, and ask for advice and play at another meanwhile."""

    def table(opponent: str | None) -> str:
        _, _, made = ask(server, "/v1/tables", {"game": BUSIEST, "players": [None, opponent]})
        return str(made["seats"][0]["link"])

    def advise() -> tuple[float, Any]:
        return ask(server, "/v1/advise", {"game": BUSIEST, "opponent": "search:64", "view": view})[:2]

    view = next(seen["view"] for link in iter(lambda: table(None), "") if (seen := ask(server, link)[2])["your_turn"])
    alone = advise()[0]
    began = time.monotonic()
    for _ in range(120):
        table("champion")
    made = time.monotonic() - began
    thinking: list[float] = []
    with repeated(advise, 0.5) as advices:
        while time.monotonic() - began < 40:
            link = table("search:64")
            asked, _, seen = ask(server, f"{link}?wait=20")
            thinking.append(asked)
            for _ in range(8):
                if not seen["your_turn"]:
                    break
                asked, _, seen = ask(server, f"{link}/moves", {"move": seen["view"]["legal"][-1], "wait": 20})
                thinking.append(asked)
    statuses = dict(Counter(status for _, status in advices))
    slowest = max(seconds for seconds, _ in advices)
    return (
        f"made in {made:.1f} s; search advice {statuses}, slowest {slowest:.2f} s (alone {alone:.2f} s); at another "
        f"table {len(thinking)} answers, slowest {max(thinking):.2f} s"
    )


ATTACKS: dict[str, Callable[[Server], str]] = {
    "one endless header line": endless_line,
    "200 MB of headers": many_headers,
    "4,300 requests that never end": unfinished,
    "120 tables that think": starve,
}


def noticed(server: Server, attack: Callable[[Server], str]) -> str:
    """Attack a server; returns what came of it, and what another client noticed."""
    before = server.memory()
    with repeated(partial(ask, server, "/v1/games"), 0.05) as waits, repeated(server.memory, 0.05) as sizes:
        said = attack(server)
    statuses = dict(Counter(status for _, status, _ in waits))
    slowest = max(seconds for seconds, _, _ in waits)
    grown = f"memory {before:.0f} MiB before, {max(sizes):.0f} at most"
    return f"{said}; another client {statuses}, slowest {slowest:.2f} s; {grown}"


def main() -> None:
    """Try every attack on a server of its own."""
    for name, attack in ATTACKS.items():
        with tempfile.TemporaryDirectory() as folder:
            server = Server(Path(folder) / "tables", "--game", BUSIEST)
            try:
                print(f"{name}: {noticed(server, attack)}", flush=True)
            finally:
                server.stop()


if __name__ == "__main__":
    main()
