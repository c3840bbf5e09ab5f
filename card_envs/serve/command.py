"""Starting a server from the command line."""

from __future__ import annotations

import gc
import logging
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from socket import socket

from card_envs.games import GAMES, get_game
from card_envs.serve.advisers import Advisers
from card_envs.serve.asking import Opponents
from card_envs.serve.limits import Limits
from card_envs.serve.seats import Seats
from card_envs.serve.tables import Tables

LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")
ANYWHERE = ("0.0.0.0", "::")
SECONDS_TO_END = 5
SECONDS_TO_KEEP = 75  # a connection on which nothing comes


def make_seats(
    folder: Path, games: Sequence[str], opponents: Sequence[str], limits: Limits, allow_deals: bool = False
) -> Seats:
    """What answers, ready to.

    Args:
        folder: of the tables.
        games: by name; none: all.
        opponents: `GAME/NAME=WHAT`: added under that name, from what `load_opponent` takes.
        limits: of the server.
        allow_deals: whether seeds and custom deals are taken.

    Raises:
        ValueError: of these.
    """
    added = {}
    for opponent in opponents:
        name, equals, what = opponent.partition("=")
        if not equals:
            raise ValueError(f"opponent {opponent!r}: expected GAME/NAME=WHAT, a folder or module:Class")
        added[name] = what
    chosen = [get_game(name) for name in games] or list(GAMES.values())
    return Seats(Advisers(Opponents(chosen, added), limits), Tables(folder, limits), allow_deals)


def serve_http(
    seats: Seats, host: str, port: int, origins: Sequence[str], hosts: Sequence[str], tell: Callable[[str], None]
) -> None:
    """Serve until the process is told to end."""
    try:
        import uvicorn

        from card_envs.serve.app import make_app
    except ImportError as error:
        raise ValueError(f"serve: {error.name} is missing: pip install 'card_envs[serve]'") from None
    known = ["*"] if host in ANYWHERE and not hosts else [*LOOPBACK, host, *hosts]
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")

    class Server(uvicorn.Server):
        """Ends streams and waiting requests before uvicorn waits for them."""

        async def shutdown(self, sockets: list[socket] | None = None) -> None:
            seats.end()
            await super().shutdown(sockets)

    # A seat's link is a secret: requests are not logged.
    config = uvicorn.Config(
        make_app(seats, origins, known),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SECONDS_TO_END,
        timeout_keep_alive=SECONDS_TO_KEEP,
        limit_concurrency=2 * seats.limits.streams,
    )
    tell("loading; the first start on a machine compiles the games, which takes minutes")
    seats.advisers.warm_up(tell)
    gc.collect()
    gc.freeze()  # what is loaded stays; to look at it again in each collection would hold up everybody
    tell(f"tables: {seats.tables.folder} ({len(seats.tables)} there)")
    tell(f"serving on http://{host}:{port} (OpenAPI: /docs)")
    Server(config).run()


def serve_stdio(
    folder: Path | None, games: Sequence[str], opponents: Sequence[str], limits: Limits, allow_deals: bool
) -> None:
    """Serve the parent process; without a folder, tables are forgotten at the end."""
    from card_envs.serve.stdio import main

    with tempfile.TemporaryDirectory(prefix="card_envs-") as temporary:
        main(make_seats(folder or Path(temporary), games, opponents, limits, allow_deals))
