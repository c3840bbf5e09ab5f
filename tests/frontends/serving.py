"""A server in the same process: its operations, with replies as JSON has them, and at a port."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from card_envs.frontends.serve._command import http_server
from card_envs.frontends.serve._messages import EventsRequest, as_json
from card_envs.frontends.serve._operations import CALLS
from card_envs.frontends.serve._table_service import TableService
from card_envs.frontends.serve._tables import Tables


async def ask(seats: TableService, call: str, **body: Any) -> dict[str, Any]:
    """What an operation of this name replies. Raises Problem."""
    operation = CALLS[call]
    return as_json(await operation.handler(seats, operation.request(**body)))


async def events(
    seats: TableService, token: str, last: int | None = None, watching: bool = False
) -> AsyncGenerator[dict[str, Any] | None, None] | None:
    """What a stream of events brings, None for a sign of life; or None, if all was seen."""
    asked = EventsRequest(token=token, last=last)
    stream = await (seats.watched_events(asked) if watching else seats.events(asked))

    async def replies() -> AsyncGenerator[dict[str, Any] | None, None]:
        assert stream is not None
        try:
            async for reply in stream:
                yield None if reply is None else as_json(reply)
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    return None if stream is None else replies()


def expire(tables: Tables) -> None:
    """Delete the tables that are idle, as the server does now and then."""
    for name in tables.idle():
        tables.expire_one(name)


def bytes_waiting(pipe: Any) -> int:
    termios, fcntl = pytest.importorskip("termios"), pytest.importorskip("fcntl")
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@contextmanager
def serving(seats: TableService, hosts: Sequence[str] = ("*",)) -> Iterator[int]:
    """Serve at this port, as the command does."""
    server = http_server(seats, hosts)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
