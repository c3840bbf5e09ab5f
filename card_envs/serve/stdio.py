"""The same messages as JSON lines over stdin and stdout, for a server that is somebody's child process."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO

from pydantic import BaseModel, Field, ValidationError

from card_envs.serve.messages import (
    AdviseRequest,
    MoveRequest,
    Problem,
    ReplayRequest,
    Request,
    TableRequest,
    Turn,
    Wait,
    malformed,
)
from card_envs.serve.seats import Seats

AT_ONCE = 64  # lines that are being answered; more are not read before


class NoRequest(Request):
    """A body without keys."""


class GameRequest(Request):
    game: str


class MaybeGameRequest(Request):
    game: str | None = None


class TokenRequest(Request):
    token: str


class PositionRequest(TokenRequest):
    wait: Wait = 0.0
    since: Turn | None = None
    at: Turn | None = None


class SeatMoveRequest(TokenRequest, MoveRequest):
    """A move, and whose."""


class Line(Request):
    id: Any = None
    call: str
    body: dict[str, Any] = Field(default_factory=dict)


async def _now(reply: dict[str, Any]) -> dict[str, Any]:
    return reply


def calls(seats: Seats) -> dict[str, tuple[type[BaseModel], Callable[[Any], Awaitable[dict[str, Any]]]]]:
    """By the name of a call: its body, and what answers."""
    advisers = seats.advisers

    def move(body: SeatMoveRequest) -> Awaitable[dict[str, Any]]:
        return seats.move(body.token, MoveRequest(move=body.move, turn=body.turn, wait=body.wait))

    async def record(body: TokenRequest) -> dict[str, Any]:
        await seats.bring(body.token)
        return seats.record(body.token)

    async def leave(body: TokenRequest) -> dict[str, Any]:
        await seats.bring(body.token)
        return seats.leave(body.token)

    return {
        "games": (NoRequest, lambda body: _now(advisers.games())),
        "schema": (GameRequest, lambda body: _now(advisers.schema(body.game))),
        "opponents": (MaybeGameRequest, lambda body: _now(advisers.opponent_list(body.game))),
        "advise": (AdviseRequest, advisers.advise),
        "replay": (ReplayRequest, advisers.replay),
        "table": (TableRequest, lambda body: _now(seats.create(body))),
        "position": (PositionRequest, lambda body: seats.position(body.token, body.wait, body.since, body.at)),
        "move": (SeatMoveRequest, move),
        "undo": (TokenRequest, lambda body: seats.undo(body.token)),
        "record": (TokenRequest, record),
        "leave": (TokenRequest, leave),
    }


async def answer(seats: Seats, line: bytes) -> dict[str, Any]:
    """The answer to a line, whatever it is."""
    identity: Any = None
    try:
        if len(line) > seats.limits.body:
            raise Problem("too_large", f"expected a line of at most {seats.limits.body:,} bytes")
        try:
            given = json.loads(line)
            identity = given.get("id") if isinstance(given, dict) else None
            asked = Line.model_validate(given)
            known = calls(seats)
            if asked.call not in known:
                raise Problem("unknown", f"call: no {asked.call!r:.80}; there are: {', '.join(known)}", "call")
            model, handle = known[asked.call]
            return {"id": identity, "reply": await handle(model.model_validate(asked.body))}
        except ValidationError as error:
            raise malformed(error) from None
        except (ValueError, RecursionError) as error:
            raise Problem("bad_request", f"no JSON: {error}") from None
    except Problem as problem:
        return {"id": identity, **problem.as_dict()}


async def serve_stdio(seats: Seats, source: BinaryIO, target: BinaryIO) -> None:
    """Answer lines until there are no more."""
    room = asyncio.Semaphore(AT_ONCE)
    running: set[asyncio.Task[None]] = set()

    async def work(line: bytes) -> None:
        try:
            data = json.dumps(await answer(seats, line)).encode() + b"\n"
            target.write(data)
            target.flush()
        finally:
            room.release()

    def read() -> bytes:
        line = source.readline(seats.limits.body + 2)
        while len(line) > seats.limits.body + 1 and not line.endswith(b"\n"):  # too long: the rest is not kept
            rest = source.readline(1 << 16)
            if not rest or rest.endswith(b"\n"):
                break
        return line

    while True:
        await room.acquire()
        line = await asyncio.to_thread(read)
        if not line:
            break
        if not line.strip():
            room.release()
            continue
        task = asyncio.create_task(work(line))
        running.add(task)
        task.add_done_callback(running.discard)
    seats.end_waiting()
    await asyncio.gather(*running)  # what was asked is answered
    seats.stop()


def main(seats: Seats) -> None:
    """Serve the parent process; nothing else is written to stdout."""
    target, sys.stdout = sys.stdout.buffer, sys.stderr
    asyncio.run(serve_stdio(seats, sys.stdin.buffer, target))
