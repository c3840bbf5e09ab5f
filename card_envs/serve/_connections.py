"""Connections to the server: their number, and time limits for each phase of a request.

Uvicorn limits only the head of a request. It waits forever for a body to arrive or for a reply to be read, and its
limit on connections ignores clients. Here, a new connection replaces an idle one if there are too many, so that active
clients are served however many idle connections others hold.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from card_envs.serve._limits import Limits, Proxies, client_of, is_within, proxies_of
from card_envs.serve._messages import RETRY_AFTER, Problem

END_OF_HEAD = re.compile(rb"\n\r?\n")
MOST_IGNORED = 1 << 20  # bytes read from a refused connection before it is dropped
LINGER = 1.0  # seconds that a refused client has to read the reply


class Connections:
    """All open connections by client, oldest first."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._by_client: dict[str, dict[Connection, None]] = {}
        self._number = 0

    def admit(self, connection: Connection) -> bool:
        """Count a connection; return False if there are too many and none of them is idle."""
        is_full = self._number >= self.limits.connections
        if is_full:
            crowd = max(self._by_client.values(), key=len)
        else:
            crowd = self._by_client.setdefault(connection.whose, {})
        if is_full or (len(crowd) >= self.limits.connections_per_client and not connection.is_of_proxy):
            idle = next((other for other in crowd if other.is_idle), None)
            if idle is None:
                return False
            self.leave(idle)
            idle.transport.abort()
        self._by_client.setdefault(connection.whose, {})[connection] = None
        self._number += 1
        return True

    def leave(self, connection: Connection) -> None:
        """Remove a connection, if it was counted."""
        crowd = self._by_client.get(connection.whose, {})
        if connection in crowd:
            del crowd[connection]
            self._number -= 1
        if not crowd:
            self._by_client.pop(connection.whose, None)


class Connection(H11Protocol):
    """Uvicorn's protocol with limits."""

    others: ClassVar[Connections]
    proxies: ClassVar[Proxies] = ()
    whose = ""
    _has_asked = False
    _is_refused = False
    _ignored = 0  # bytes received since it was refused
    _waits_for = ""  # the phase with a time limit: a part of a request, or sending a reply
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.whose = client_of(self.client[0]) if self.client else ""
        if self.others.admit(self):
            self._watch()
        else:
            self._refuse(503, Problem("busy", "too many connections are open; try again"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.others.leave(self)
        self._wait_for("")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            self._ignored += len(data)
            if self._ignored > MOST_IGNORED:
                self.transport.pause_reading()
        elif self._is_too_long(data):
            most = self.others.limits.head
            self._refuse(431, Problem("too_large", f"expected at most {most:,} bytes of address and headers"))
        else:
            super().data_received(data)
            self._watch()

    def _is_too_long(self, data: bytes) -> bool:
        """Return whether the head of a request exceeds its limit, before parsing it."""
        if self.conn.their_state is not h11.IDLE:
            return False
        end = END_OF_HEAD.search(data)
        return len(self.conn.trailing_data[0]) + (end.start() if end else len(data)) > self.others.limits.head

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for("reply")

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, Problem("bad_request", "this is not HTTP/1.1"))

    @property
    def is_of_proxy(self) -> bool:
        """Return whether a proxy forwards the requests: these are limited by client, the connection is not."""
        return is_within(self.client[0] if self.client else "", self.proxies)

    @property
    def is_idle(self) -> bool:
        """Return whether no request is being answered."""
        return bool(self._waits_for) or self.conn.their_state is h11.IDLE

    def _watch(self) -> None:
        """Set the time limit for what the client has to do now."""
        self._has_asked |= self.conn.their_state is not h11.IDLE
        if self.flow.write_paused:
            self._wait_for("reply")
        elif self.conn.their_state is h11.SEND_BODY:
            self._wait_for("body")
        elif self.conn.their_state is h11.IDLE and (not self._has_asked or self.conn.trailing_data[0]):
            self._wait_for("head")
        else:
            self._wait_for("")  # a reply is due, or keep-alive, which uvicorn limits

    def _wait_for(self, part: str) -> None:
        if part == self._waits_for:
            return
        self._waits_for = part
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if part:
            self._timer = self.loop.call_later(self.others.limits.patience, self._end)

    def _end(self) -> None:
        part = self._waits_for
        if part == "reply":
            self.transport.abort()
        else:
            self._refuse(408, Problem("bad_request", f"the request's {part} took too long"))

    def _refuse(self, status: int, problem: Problem) -> None:
        """Send a problem, unless a reply has begun, and close the connection."""
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        self._wait_for("")
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = json.dumps(problem.as_dict()).encode()
            head = [
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
                "content-type: application/json",
                f"content-length: {len(body)}",
                "connection: close",
                *([f"retry-after: {RETRY_AFTER}"] if status == 503 else []),
            ]
            self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        if self.cycle is not None:  # cancel the handler: its reply has no receiver
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.abort)  # close after reading: a reset would lose the reply


def bounded(limits: Limits, proxies: Sequence[str] = ()) -> type[Connection]:
    """Return the protocol class of one server."""

    class Bounded(Connection):
        others = Connections(limits)

    Bounded.proxies = proxies_of(proxies)
    return Bounded


def uvicorn_options(limits: Limits, proxies: Sequence[str] = ()) -> dict[str, Any]:
    """Return the options for uvicorn, which trusts the client address that these proxies forward."""
    return {
        "http": bounded(limits, proxies),
        "h11_max_incomplete_event_size": limits.head,
        "ws": "none",
        "proxy_headers": bool(proxies),
        "forwarded_allow_ips": list(proxies),
    }


class Server(uvicorn.Server):
    """A server that ends streams and waiting requests before uvicorn waits for them."""

    def __init__(self, config: uvicorn.Config, end: Callable[[], object]) -> None:
        super().__init__(config)
        self.end = end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.end()
        await super().shutdown(sockets)
