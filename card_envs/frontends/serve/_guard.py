"""Middleware for all HTTP requests: host, origin, body size, and headers of every reply.

Slow clients, floods and fairness among strangers are a reverse proxy's: `examples/nginx.conf`.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from card_envs.frontends.serve._messages import Problem

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
ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+))(?::[0-9]{0,5})?")  # as a Host header
SAFE = ("GET", "HEAD", "OPTIONS")  # methods that change nothing


class RequestGuard:
    """The outermost middleware. Uncaught exceptions become JSON, too."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str], origins: Collection[str], root_path: str) -> None:
        """Take what answers requests, and the `hosts`, `origins` and `root_path` of `make_app`."""
        self.app = app
        self.hosts = hosts
        self.origins = [origin.lower() for origin in origins]
        self.root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
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

        try:
            refusal = await self._refusal(scope, receive)
            if refusal is None:
                await self.app(scope, receive, with_headers)
                return
        except Exception:
            log.exception("%s %r failed", scope["method"], scope["path"][:12])  # a seat's link is secret
            if started:
                raise
            refusal = _problem_response(500, Problem("failed", "the server failed; its log has more"))
        await refusal(scope, receive, with_headers)

    def _put_under_root(self, scope: Scope) -> None:
        """Add the root path if the reverse proxy has removed it."""
        if not self.root_path:
            return
        scope["root_path"] = self.root_path
        if not f"{scope['path']}/".startswith(f"{self.root_path}/"):
            scope["path"] = self.root_path + scope["path"]
            scope["raw_path"] = self.root_path.encode() + scope.get("raw_path", b"")

    async def _refusal(self, scope: Scope, receive: Receive) -> JSONResponse | None:
        """Return the reply to a refused request, or None."""
        method, headers = scope["method"], Headers(scope=scope)
        if "\0" in scope["path"]:  # invalid in file names
            return _problem_response(404, Problem("unknown", "Not Found"))
        host = headers.get("host", "")
        if not (ANY_ADDRESS in self.hosts and _is_address(host)) and not await self._is_trusted(scope, receive):
            what = f"Host: {host!r:.80} is not a name of this server (see --host-name)"
            return _problem_response(400, Problem("bad_request", what))
        requested = headers.get("access-control-request-method") if method == "OPTIONS" else None
        if (requested or method) not in SAFE and self._is_foreign(headers, host):
            what = "Origin: pages from elsewhere may not ask this (see --origin)"
            return _problem_response(403, Problem("forbidden", what))
        return None

    async def _is_trusted(self, scope: Scope, receive: Receive) -> bool:
        """Return whether Starlette's middleware lets the host name in; its own reply, a plain text, is not sent."""
        trusted = False

        async def let_in(*_: object) -> None:
            nonlocal trusted
            trusted = True

        async def ignore(message: Message) -> None:
            pass

        await TrustedHostMiddleware(let_in, self.hosts, www_redirect=False)(scope, receive, ignore)
        return trusted

    def _is_foreign(self, headers: Headers, host: str) -> bool:
        """Return whether a page of another origin sent the request: browsers say so; other clients need no origin."""
        origins = [origin.lower() for origin in headers.getlist("origin")]
        if "*" in self.origins or (origins and all(origin in self.origins for origin in origins)):
            return False
        sites = headers.getlist("sec-fetch-site")
        if sites:
            return any(site not in ("same-origin", "none") for site in sites)
        return any(_place(origin) != host.lower() for origin in origins)


def _problem_response(status: int, problem: Problem) -> JSONResponse:
    return JSONResponse(problem.as_dict(), status)


def _place(origin: str) -> str:
    """Return host and port of an origin."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    """Return whether a Host header is an IP address, with a port or without."""
    match = ADDRESS.fullmatch(host)
    try:
        return match is not None and bool(ipaddress.ip_address(match[1] or match[2]))
    except ValueError:
        return False


class BodyLimit:
    """Middleware that refuses bodies that are too long or not JSON."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app = app
        self.most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = int(headers.get("content-length", "0"))  # the protocol below has checked it
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        problem = None
        if length > self.most:
            problem = Problem("too_large", f"expected a body of at most {self.most:,} bytes")
        elif (length or "transfer-encoding" in headers) and scope["method"] not in SAFE and kind != "application/json":
            problem = Problem("not_json", f"Content-Type: expected application/json, got {kind!r:.80}")
        if problem is not None:
            await _problem_response(problem.status, problem)(scope, receive, send)
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
