"""The server's HTTP API."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from card_envs.draw import draw
from card_envs.serve import _messages as messages
from card_envs.serve._advisers import Advisers
from card_envs.serve._door import Bodies, Door
from card_envs.serve._episode import in_words
from card_envs.serve._messages import RETRY_AFTER, Problem
from card_envs.serve._seats import Seats

PAGE = Path(__file__).parent / "page"
Wait = Annotated[float, Query(ge=0, le=30, allow_inf_nan=False, description="seconds to wait for the seat's turn")]
Picture = Annotated[Literal["wide", "tall"] | None, Query(description="add a drawing (SVG), for such a screen")]
Number = Annotated[int | None, Query(ge=0, le=1 << 31)]
LastEvent = Annotated[str | None, Header()]
EVENTS: dict[str, Any] = {
    "response_class": StreamingResponse,
    "responses": {200: {"content": {"text/event-stream": {}}}, 204: {"description": "all was seen"}},
}


def make_app(seats: Seats, origins: Sequence[str] = (), hosts: Sequence[str] = ("*",), root_path: str = "") -> FastAPI:
    """Return the application.

    Args:
        seats: handles the requests.
        origins: other web origins that may send requests.
        hosts: host names of the server; others are refused, because a foreign page could reach a local server by a name
            of its own (DNS rebinding).
        root_path: path prefix behind a reverse proxy: `/cards`.
    """
    root_path = f"/{root_path.strip('/')}".rstrip("/")

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        tending = asyncio.create_task(seats.tend())
        yield
        tending.cancel()
        seats.stop()

    failures: dict[int | str, dict[str, Any]] = {
        status: {"model": messages.Failure} for status in sorted({*messages.STATUS.values(), 400, 405, 408, 431})
    }
    app = FastAPIOffline(
        redoc_url=None,
        favicon_url=f"{root_path}/icon.svg",
        title="card_envs",
        version="1",
        lifespan=life,
        responses=failures,
    )
    app.state.root_path = root_path
    app.add_middleware(Bodies, most=seats.limits.body)
    app.add_middleware(GZipMiddleware, minimum_size=4096)  # drawings compress to a tenth
    if origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"])
    app.add_middleware(
        Door, hosts=hosts, origins=origins, root_path=root_path, most=seats.limits.connections_per_client
    )
    app.add_exception_handler(Problem, _tell_problem)
    app.add_exception_handler(RequestValidationError, _tell_malformed)
    app.add_exception_handler(HTTPException, _tell_http)
    _add_games(app, seats)
    _add_seats(app, seats)
    _add_watching(app, seats)
    app.mount("/v1", _nowhere)
    if PAGE.is_dir():
        app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


# With `?text=1`.
AS_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


def _add_games(app: FastAPI, seats: Seats) -> None:
    """Add the stateless requests."""
    advisers = seats.advisers

    @app.get("/v1/games", response_model=messages.Games)
    async def games(picture: Picture = None) -> Response:
        return JSONResponse(advisers.games(picture))

    @app.get("/v1/games/{game}/schema", response_model=dict[str, Any])
    async def schema(game: str) -> Response:
        return JSONResponse(advisers.schema(game))

    @app.get("/v1/games/{game}/rules", response_model=messages.RulesInWords)
    async def rules(game: str) -> Response:
        return JSONResponse(advisers.rules(game))

    @app.get("/v1/opponents", response_model=messages.Opponents)
    async def opponents(game: str | None = None) -> Response:
        return JSONResponse(advisers.opponent_list(game))

    @app.post("/v1/advise", response_model=messages.Advice)
    async def advise(body: messages.AdviseRequest) -> Response:
        return JSONResponse(await advisers.advise(body))

    @app.post("/v1/judge", response_model=messages.Judgement)
    async def judge(body: messages.JudgeRequest) -> Response:
        return JSONResponse(await advisers.judge(body))

    @app.post("/v1/replay", response_model=messages.Position, responses=AS_TEXT)
    async def replay(body: messages.ReplayRequest, picture: Picture = None, text: bool = False) -> Response:
        return await _shown(advisers, await advisers.replay(body), picture, text)


def _add_seats(app: FastAPI, seats: Seats) -> None:
    """Add the requests of those who play at a table."""

    @app.post("/v1/tables", response_model=messages.NewTable, status_code=201)
    async def create(request: Request, body: messages.TableRequest) -> Response:
        made = seats.create(body)
        for seat in made["seats"]:
            seat["link"] = request.scope.get("root_path", "") + seat["link"]
        made["watch"]["link"] = request.scope.get("root_path", "") + made["watch"]["link"]
        return JSONResponse(made, 201)

    @app.get("/v1/seats/{token}", response_model=messages.Position, responses=AS_TEXT)
    async def position(
        token: str,
        wait: Wait = 0.0,
        since: Number = None,
        at: Number = None,
        picture: Picture = None,
        text: bool = False,
    ) -> Response:
        return await _shown(seats.advisers, await seats.position(token, wait, since, at), picture, text)

    @app.delete("/v1/seats/{token}", response_model=messages.Left)
    async def leave(token: str) -> Response:
        await seats.bring(token)
        return JSONResponse(seats.leave(token))

    @app.post("/v1/seats/{token}/moves", response_model=messages.Position, responses=AS_TEXT)
    async def move(token: str, body: messages.MoveRequest, picture: Picture = None, text: bool = False) -> Response:
        return await _shown(seats.advisers, await seats.move(token, body), picture, text)

    @app.post("/v1/seats/{token}/undo", response_model=messages.Position, responses=AS_TEXT)
    async def undo(
        token: str, body: messages.UndoRequest | None = None, picture: Picture = None, text: bool = False
    ) -> Response:
        turn = None if body is None else body.turn
        return await _shown(seats.advisers, await seats.undo(token, turn), picture, text)

    @app.get("/v1/seats/{token}/record", response_model=dict[str, Any])
    async def record(token: str) -> Response:
        await seats.bring(token)
        return JSONResponse(seats.record(token))

    @app.get("/v1/seats/{token}/events", **EVENTS)
    async def events(token: str, last_event_id: LastEvent = None) -> Response:
        await seats.bring(token)
        return _stream(seats.stream(token, _turn_in(last_event_id)))


def _add_watching(app: FastAPI, seats: Seats) -> None:
    """Add the requests of those who watch a table."""

    @app.get("/v1/watch/{token}", response_model=messages.Watched)
    async def watch(token: str, wait: Wait = 0.0, since: Number = None) -> Response:
        return JSONResponse(await seats.watch(token, wait, since))

    @app.get("/v1/watch/{token}/record", response_model=dict[str, Any])
    async def watched_record(token: str) -> Response:
        await seats.bring(token)
        return JSONResponse(seats.watched_record(token))

    @app.get("/v1/watch/{token}/events", **EVENTS)
    async def watched_events(token: str, last_event_id: LastEvent = None) -> Response:
        await seats.bring(token)
        return _stream(seats.watched_stream(token, _turn_in(last_event_id)))


def _turn_in(last_event_id: str | None) -> int | None:
    """Return the turn in the id of an event; None if it is none."""
    return int(last_event_id) if last_event_id and re.fullmatch("[0-9]{1,18}", last_event_id) else None


def _stream(stream: AsyncIterator[dict[str, Any] | None] | None) -> Response:
    """Return the reply with these events; 204 if there are none."""
    if stream is None:
        return Response(status_code=204)
    return StreamingResponse(_as_events(stream), media_type="text/event-stream")


async def _shown(advisers: Advisers, found: dict[str, Any], picture: Picture, text: bool) -> Response:
    """Return a position, with its drawing if requested, or in words alone."""
    game = advisers.opponents.game(found["game"])
    if text:
        return PlainTextResponse(in_words(game, found))
    if picture is not None:
        found["picture"] = await advisers.quick.run(lambda: draw(game, found["view"], picture == "tall"))
    return JSONResponse(found)


async def _as_events(stream: AsyncIterator[dict[str, Any] | None]) -> AsyncIterator[str]:
    async for position in stream:
        if position is None:
            yield ": still here\n\n"
        else:
            yield f"event: position\nid: {position['turn']}\ndata: {json.dumps(position, allow_nan=False)}\n\n"


async def _tell_problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    headers = {"Retry-After": RETRY_AFTER} if problem.status == 503 else None
    return JSONResponse(problem.as_dict(), problem.status, headers)


async def _tell_malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place, *path = first["loc"]  # "body", "query" or "path"
    field = None if first["type"] == "json_invalid" else ".".join(map(str, path)) or None
    what = Problem("bad_request", f"{field or place}: {first['msg']}", field)
    return JSONResponse(what.as_dict(), what.status)


async def _tell_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {status: code for code, status in messages.STATUS.items() if code in ("unknown", "forbidden", "too_large")}
    code = known.get(error.status_code, "failed" if error.status_code >= 500 else "bad_request")
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods(request))
    return JSONResponse(Problem(code, str(error.detail)).as_dict(), error.status_code, headers)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """Reply 404 for paths without a route, before static files are searched."""
    raise HTTPException(405 if _methods(Request(scope)) else 404)


def _methods(request: Request) -> list[str]:
    """Return the methods of a path; each route knows only its own."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    path = request.scope["path"].removeprefix(request.app.state.root_path)
    return sorted({name for route in routes if route.path_regex.match(path) for name in route.methods or ()})
