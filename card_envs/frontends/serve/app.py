"""The server's HTTP API."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Query
from fastapi import Path as PathParameter
from fastapi import Request as HttpRequest
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel, create_model
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from card_envs.draw import draw
from card_envs.frontends.serve import _messages as messages
from card_envs.frontends.serve._advice_service import AdviceService
from card_envs.frontends.serve._guard import BodyLimit, RequestGuard
from card_envs.frontends.serve._messages import RETRY_AFTER, EventsRequest, Picture, Position, Problem, Request, as_json
from card_envs.frontends.serve._operations import OPERATIONS, Operation
from card_envs.frontends.serve._positions import in_words
from card_envs.frontends.serve._table_service import Events, TableService

PAGE = Path(__file__).parent / "page"
SHOWING: dict[str, tuple[Any, Any]] = {  # ways to show a position, with their defaults
    "picture": (None, Annotated[Picture, Query(description="add a drawing (SVG), for such a screen")]),
    "text": (False, Annotated[bool, Query(description="in words, as plain text")]),
}


def make_app(
    service: TableService, origins: Sequence[str] = (), hosts: Sequence[str] = ("*",), root_path: str = ""
) -> FastAPI:
    """Return the application.

    Args:
        service: handles the requests.
        origins: other web origins that may send requests.
        hosts: host names of the server (`*.name`: all below a name, `*`: any); others are refused, because a foreign
            page could reach a local server by a name of its own (DNS rebinding).
        root_path: path prefix behind a reverse proxy: `/cards`.
    """
    root_path = f"/{root_path.strip('/')}".rstrip("/")

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        tending = asyncio.create_task(service.tend())
        yield
        tending.cancel()
        service.stop()

    failures: dict[int | str, dict[str, Any]] = {
        status: {"model": messages.Failure} for status in sorted({*messages.STATUS.values(), 400, 405})
    }
    app = FastAPIOffline(
        redoc_url=None,
        favicon_url=f"{root_path}/icon.svg",
        title="card_envs",
        version="1",
        lifespan=life,
        responses=failures,
    )
    app.state.root_path = service.root_path = root_path
    app.add_middleware(BodyLimit, most=service.limits.body)
    app.add_middleware(GZipMiddleware, minimum_size=4096)  # drawings compress to a tenth
    if origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"])
    app.add_middleware(RequestGuard, hosts=hosts, origins=origins, root_path=root_path)
    app.add_exception_handler(Problem, _tell_problem)
    app.add_exception_handler(RequestValidationError, _tell_malformed)
    app.add_exception_handler(HTTPException, _tell_http)
    for operation in OPERATIONS:
        _add(app, operation, service)
    app.mount("/v1", _nowhere)
    if PAGE.is_dir():
        app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


def _add(app: FastAPI, operation: Operation, service: TableService) -> None:
    """Add the route of an operation."""
    extra: dict[str, Any] = {"response_model": operation.reply}
    if operation.streams:
        extra = {
            "response_class": StreamingResponse,
            "responses": {200: {"content": {"text/event-stream": {}}}, 204: {"description": "all was seen"}},
        }
    elif operation.reply is Position:  # with `?text=1`
        extra["responses"] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
    app.add_api_route(
        operation.path,
        _streaming(operation, service) if operation.streams else _replying(operation, service),
        methods=[operation.method],
        name=operation.name,
        description=operation.sentence,
        status_code=operation.status,
        dependencies=[Depends(_query_check(operation))],
        **extra,
    )


def _query_check(operation: Operation) -> Callable[[HttpRequest], None]:
    """Return a function that refuses unknown keys of a query, as bodies and JSON lines do."""
    known = {*operation.names_in_query(), *(SHOWING if operation.reply is Position and not operation.streams else ())}

    def check(request: HttpRequest) -> None:
        if unknown := sorted(request.query_params.keys() - known):
            takes = ", ".join(sorted(known)) or "nothing"
            raise Problem("bad_request", f"{unknown[0]:.80}: unknown; the query takes {takes}", unknown[0][:80])

    return check


def _replying(operation: Operation, service: TableService) -> Callable[..., Awaitable[Response]]:
    """Return the function that answers a request, with the parameters that FastAPI reads and documents."""

    async def answer(body: BaseModel | None = None, **given: Any) -> Response:
        how = {name: given.pop(name) for name in SHOWING} if operation.reply is Position else {}
        asked = operation.request.model_construct(**given, **dict(body or ()))
        reply = await operation.handler(service, asked)
        if isinstance(reply, Position):
            return await _shown(service.advice, reply, **how)
        return JSONResponse(as_json(reply), operation.status)

    keyword = partial(Parameter, kind=Parameter.KEYWORD_ONLY)
    parameters, in_body = [], {}
    for name, field in operation.request.model_fields.items():
        place = PathParameter if name in operation.names_in_path() else Query
        if place is Query and name not in operation.names_in_query():
            in_body[name] = field
            continue
        kind: Any = Annotated[(field.annotation, *field.metadata, place(description=field.description))]
        default = Parameter.empty if field.is_required() else field.default
        parameters.append(keyword(name, default=default, annotation=kind))
    if operation.reply is Position:
        parameters += [keyword(name, default=default, annotation=kind) for name, (default, kind) in SHOWING.items()]
    if in_body:
        fields: Any = {name: (field.annotation, field) for name, field in in_body.items()}
        model = create_model(operation.request.__name__, __base__=Request, **fields)
        is_needed = any(field.is_required() for field in in_body.values())
        default = Parameter.empty if is_needed else None
        parameters.append(keyword("body", default=default, annotation=model if is_needed else model | None))
    answer.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return answer


def _streaming(operation: Operation, service: TableService) -> Callable[..., Awaitable[Response]]:
    """Return the function that answers a request with events, or 204 if there are none."""

    async def answer(token: str, last_event_id: Annotated[str | None, Header()] = None) -> Response:
        stream = await operation.handler(service, EventsRequest(token=token, last=_turn_in(last_event_id)))
        if stream is None:
            return Response(status_code=204)
        unbuffered = {"X-Accel-Buffering": "no"}  # by nginx and others in front
        return StreamingResponse(_as_events(stream), media_type="text/event-stream", headers=unbuffered)

    return answer


def _turn_in(last_event_id: str | None) -> int | None:
    """Return the turn in the id of an event; None if it is none."""
    return int(last_event_id) if last_event_id and re.fullmatch("[0-9]{1,18}", last_event_id) else None


async def _shown(advice: AdviceService, found: Position, picture: str | None, text: bool) -> Response:
    """Return a position, with its drawing if requested, or in words alone."""
    game = advice.opponents.game(found.game)
    if text:
        return PlainTextResponse(in_words(game, found))
    if picture is not None:
        found.picture = await advice.quick.run(lambda: draw(game, found.view, picture == "tall"))
    return JSONResponse(as_json(found))


async def _as_events(stream: Events) -> AsyncIterator[str]:
    async for found in stream:
        if found is None:
            yield ": still here\n\n"
        else:
            yield f"event: position\nid: {found.turn}\ndata: {json.dumps(as_json(found), allow_nan=False)}\n\n"


async def _tell_problem(request: HttpRequest, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    headers = {"Retry-After": RETRY_AFTER} if problem.status == 503 else None
    return JSONResponse(problem.as_dict(), problem.status, headers)


async def _tell_malformed(request: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place, *path = first["loc"]  # "body", "query" or "path"
    field = None if first["type"] == "json_invalid" else ".".join(map(str, path)) or None
    what = Problem("bad_request", f"{field or place}: {first['msg']}", field)
    return JSONResponse(what.as_dict(), what.status)


async def _tell_http(request: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {status: code for code, status in messages.STATUS.items() if code in ("unknown", "forbidden", "too_large")}
    code = known.get(error.status_code, "failed" if error.status_code >= 500 else "bad_request")
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods(request))
    return JSONResponse(Problem(code, str(error.detail)).as_dict(), error.status_code, headers)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """Reply 404 for paths without a route, before static files are searched."""
    raise HTTPException(405 if _methods(HttpRequest(scope)) else 404)


def _methods(request: HttpRequest) -> list[str]:
    """Return the methods of a path; each route knows only its own."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    path = request.scope["path"].removeprefix(request.app.state.root_path)
    return sorted({name for route in routes if route.path_regex.match(path) for name in route.methods or ()})
