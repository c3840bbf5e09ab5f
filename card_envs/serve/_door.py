"""Middleware for all HTTP requests: host, origin, body size, and headers of every reply."""

from __future__ import annotations

import ipaddress
import logging
import re
from collections import Counter
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from card_envs.serve._limits import CLIENT, ROOT_PATH, client_of
from card_envs.serve._messages import RETRY_AFTER, Problem

log = logging.getLogger("card_envs.serve")

ANY_ADDRESS = "any address"  # as a host name: accept any IP address, which is safe from DNS rebinding
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # a seat's link is a secret
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
DOCS = "/docs"  # FastAPI's page, which has an inline script
DOCS_POLICY = f"{POLICY}; script-src 'self' 'unsafe-inline'"
HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s/?#@:\\\[\]]+)(?::[0-9]{0,5})?")  # nothing but a name and a port
SAFE = ("GET", "HEAD", "OPTIONS")  # methods that change nothing


class Door:
    """The outermost middleware. Uncaught exceptions become JSON, too."""

    def __init__(
        self, app: ASGIApp, hosts: Collection[str], origins: Collection[str], root_path: str, most: int
    ) -> None:
        """Let requests in.

        Args:
            app: what answers them.
            hosts: names of this server.
            origins: other web origins that may send requests.
            root_path: path prefix behind a reverse proxy.
            most: requests of a client that are answered at a time; behind a proxy, its connections do not limit them.
        """
        self.app = app
        self.most = most
        self._answered: Counter[str] = Counter()  # requests being answered, by client
        self.hosts = [host.lower() for host in hosts]
        self.origins = [origin.lower() for origin in origins]
        self.root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        client = client_of(scope["client"][0]) if scope.get("client") else ""
        CLIENT.set(client)
        ROOT_PATH.set(self.root_path)
        self._put_under_root(scope)
        policy = DOCS_POLICY if scope["path"] == self.root_path + DOCS else POLICY
        extra = {**HEADERS, "Content-Security-Policy": policy}
        added = [(name.lower().encode(), value.encode()) for name, value in extra.items()]
        started = False

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *added]
            await send(message)

        self._answered[client] += 1
        try:
            refusal = self._refusal(scope, client)
            if refusal is None:
                await self.app(scope, receive, with_headers)
                return
        except Exception:
            log.exception("%s %r failed", scope["method"], scope["path"][:12])  # a seat's link is secret
            if started:
                raise
            refusal = JSONResponse(Problem("failed", "the server failed; its log has more").as_dict(), 500)
        finally:
            self._answered[client] -= 1
            if not self._answered[client]:
                del self._answered[client]
        await refusal(scope, receive, with_headers)

    def _put_under_root(self, scope: Scope) -> None:
        """Add the root path if the reverse proxy has removed it."""
        if not self.root_path:
            return
        scope["root_path"] = self.root_path
        if not f"{scope['path']}/".startswith(f"{self.root_path}/"):
            scope["path"] = self.root_path + scope["path"]
            scope["raw_path"] = self.root_path.encode() + scope.get("raw_path", b"")

    def _refusal(self, scope: Scope, client: str) -> JSONResponse | None:
        """Return the reply to a refused request, or None."""
        if self._answered[client] > self.most:
            return _told(503, Problem("busy", f"{self.most} requests of this client are being answered; try again"))
        method, headers = scope["method"], Headers(scope=scope)
        if "\0" in scope["path"]:  # invalid in file names
            return _told(404, Problem("unknown", "Not Found"))
        host = headers.get("host", "")
        if not is_known(host, self.hosts):
            return _told(400, Problem("bad_request", f"Host: {host!r:.80} is no name of this server (see --host-name)"))
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy may read another request in it
            return _told(400, Problem("bad_request", "Content-Length: not beside Transfer-Encoding"))
        asked = headers.get("access-control-request-method") if method == "OPTIONS" else None
        if (asked or method) not in SAFE and self._is_foreign(headers, host):
            return _told(403, Problem("forbidden", "Origin: pages from elsewhere may not ask this (see --origin)"))
        return None

    def _is_foreign(self, headers: Headers, host: str) -> bool:
        """Return whether a page of another origin sent the request: browsers say so; other clients need no origin."""
        origins = [origin.lower() for origin in headers.getlist("origin")]
        if "*" in self.origins or (origins and all(origin in self.origins for origin in origins)):
            return False
        sites = headers.getlist("sec-fetch-site")
        if sites:
            return any(site not in ("same-origin", "none") for site in sites)
        return any(_place(origin) != host.lower() for origin in origins)


def _told(status: int, problem: Problem) -> JSONResponse:
    return JSONResponse(problem.as_dict(), status, {"Retry-After": RETRY_AFTER} if status == 503 else None)


def _place(origin: str) -> str:
    """Return host and port of an origin."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def is_known(host: str, hosts: Sequence[str]) -> bool:
    """Return whether a Host header names this server: a name, or `*.name` for all subdomains; `*` is any."""
    found = HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].lower().strip("[]").rstrip(".")
    if "*" in hosts or name in hosts or f"[{name}]" in hosts:
        return True
    if any(pattern.startswith("*.") and name.endswith(pattern[1:]) for pattern in hosts):
        return True
    return ANY_ADDRESS in hosts and _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Bodies:
    """Middleware that refuses bodies that are too long or not JSON."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        declared = headers.get("content-length", "0").strip()
        has_body = declared.strip("0") != "" or "transfer-encoding" in headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        problem = None
        if declared.isascii() and declared.isdigit() and _is_more(declared, self.most):
            problem = Problem("too_large", f"expected a body of at most {self.most:,} bytes")
        elif has_body and scope["method"] not in SAFE and kind != "application/json":
            problem = Problem("not_json", f"Content-Type: expected application/json, got {kind!r:.80}")
        if problem is not None:
            await JSONResponse(problem.as_dict(), problem.status)(scope, receive, send)
            return
        left = self.most

        async def bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, f"expected a body of at most {self.most:,} bytes")
            return message

        await self.app(scope, bounded, send)


def _is_more(digits: str, most: int) -> bool:
    """Return whether a number, given by any number of digits, exceeds another."""
    return len(digits.lstrip("0")) > 18 or int(digits[-18:]) > most
