"""Start of a server from the command line."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO

from card_envs.frontends.serve._advice_service import AdviceService
from card_envs.frontends.serve._asking import ServedOpponents
from card_envs.frontends.serve._limits import Limits
from card_envs.frontends.serve._table_service import TableService
from card_envs.frontends.serve._tables import Tables
from card_envs.games import GAMES, get_game

if TYPE_CHECKING:
    import uvicorn

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ANYWHERE = ("0.0.0.0", "::")
BACKLOG = 2048
SECONDS_TO_END = 5
SECONDS_TO_KEEP = 75  # keep-alive of an idle connection


def make_service(
    folder: Path, games: Sequence[str], opponents: Sequence[str], limits: Limits, allow_deals: bool = False
) -> TableService:
    """Return the request handler, with everything loaded. Raises ValueError for an invalid argument.

    `games` are names, all if there are none; `opponents` are `GAME/NAME=WHAT`, offered under that name, where WHAT is
    an argument of `load_opponent`.
    """
    return TableService(AdviceService(registered(games, opponents), limits), Tables(folder, limits), allow_deals)


def registered(games: Sequence[str], opponents: Sequence[str]) -> ServedOpponents:
    """Return the games and opponents that clients may name; see `make_service`."""
    added = {}
    for opponent in opponents:
        name, equals, what = opponent.partition("=")
        if not equals:
            raise ValueError(f"opponent {opponent!r}: expected GAME/NAME=WHAT, a folder or module:Class")
        added[name] = what
    return ServedOpponents([get_game(name) for name in games] or list(GAMES.values()), added)


def listen(host: str, port: int) -> socket.socket:
    """Bind a port at a host's address; done before the opponents are loaded.

    Raises:
        ValueError: the port can't be bound; says why.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"serve: port {port} of {host} can't be had: {why}; take another --port or --host") from None


def names_of(host: str, hosts: Sequence[str]) -> list[str]:
    """Return the host names of a server that listens at a host, including the given ones.

    Raises:
        ValueError: a given one has an asterisk elsewhere than in `*.name`.
    """
    if wrong := [name for name in hosts if name != "*" and "*" in name.removeprefix("*.")]:
        raise ValueError(f"host name {wrong[0]!r:.80}: expected a name, *.NAME for all below it, or *")
    host, *hosts = (f"[{name}]" if ":" in name and name[0] != "[" else name for name in (host, *hosts))
    if host.strip("[]") not in ANYWHERE:
        return [*LOOPBACK, host, *hosts]
    from card_envs.frontends.serve._guard import ANY_ADDRESS

    own = socket.gethostname().lower()
    return [*LOOPBACK, ANY_ADDRESS, own, own.partition(".")[0], f"{own.partition('.')[0]}.local", *hosts]


def http_server(
    service: TableService, names: Sequence[str], origins: Sequence[str] = (), root_path: str = ""
) -> uvicorn.Server:
    """Return a server to run; the arguments are those of `serve_http`."""
    import uvicorn

    from card_envs.frontends.serve.app import make_app

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            service.end()  # streams and requests that wait, which uvicorn would wait for
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            make_app(service, origins, names, root_path),
            http="h11",  # bounds the head of a request
            ws="none",
            log_level="warning",
            access_log=False,  # the link of a seat is a secret
            server_header=False,
            timeout_graceful_shutdown=SECONDS_TO_END,
            timeout_keep_alive=SECONDS_TO_KEEP,
        )
    )


def serve_http(
    service: TableService,
    listener: socket.socket,
    names: Sequence[str],
    origins: Sequence[str],
    root_path: str,
    tell: Callable[[str], None],
) -> None:
    """Serve with what `listen` and `names_of` returned until the process is told to end; `tell` gets progress lines."""
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    server = http_server(service, names, origins, root_path)
    host, port, *_ = listener.getsockname()
    failures: list[Exception] = []

    def load() -> None:
        try:
            load_all(service, tell)
            tell(f"serving on http://{f'[{host}]' if ':' in host else host}:{port} (OpenAPI: /docs)")
        except Exception as error:
            failures.append(error)
            server.should_exit = True

    service.advice.opponents.loading += service.advice.opponents.games
    Thread(target=load, daemon=True).start()
    try:
        server.run([listener])
    except KeyboardInterrupt:
        tell("stopped; the games at its tables go on when it runs again")
        raise
    if failures:
        raise failures[0]


def load_all(service: TableService, tell: Callable[[str], None]) -> None:
    """Compile or load all games, while requests for those that are missing get 503 and the reason."""
    tell("loading; the first start on a machine compiles the games, which takes minutes")
    tell(f"tables: {service.tables.folder} ({len(service.tables)} there)")
    service.advice.warm_up(tell)
    gc.collect()
    gc.freeze()  # excludes loaded objects from garbage collection, which would otherwise pause all requests


def serve_parent(
    source: BinaryIO,
    target: BinaryIO,
    folder: Path | None,
    games: Sequence[str],
    opponents: Sequence[str],
    limits: Limits,
    allow_deals: bool,
) -> None:
    """Serve the parent process over its `streams`; without a folder, tables are not kept. Raises ValueError."""
    from card_envs.frontends.serve._stdio import serve_stdio

    with tempfile.TemporaryDirectory(prefix="card_envs-") as temporary:
        service = make_service(folder or Path(temporary), games, opponents, limits, allow_deals)
        asyncio.run(serve_stdio(service, source, target))


def serve_model(
    source: BinaryIO, target: BinaryIO, games: Sequence[str], opponents: Sequence[str], seconds: float
) -> None:
    """Serve the parent process as tools of a language model; raises like `serve_parent`."""
    from card_envs.frontends.serve import _mcp as mcp

    mcp.serve_mcp(mcp.ModelTables(registered(games, opponents), seconds), source, target)
