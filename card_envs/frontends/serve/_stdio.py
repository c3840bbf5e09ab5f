"""The same messages as JSON lines over stdin and stdout, for a server that runs as a child process."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, Literal, TextIO, TypeVar

from pydantic import Field, ValidationError

from card_envs.frontends.serve._advice_service import log
from card_envs.frontends.serve._messages import Problem, Request, as_json, malformed, with_ints
from card_envs.frontends.serve._operations import CALLS
from card_envs.frontends.serve._table_service import TableService
from card_envs.system.files import reason

Answer = TypeVar("Answer")

AT_ONCE = 1024  # most lines answered concurrently; most of them wait for others


class Line(Request):
    id: Any = None
    call: str
    body: dict[str, Any] = Field(default_factory=dict)


async def answer(service: TableService, line: bytes) -> bytes:
    """Return the answer to a line, valid or not: a line of strict JSON."""
    identity: Any = None
    try:
        if len(line.rstrip(b"\r\n")) > service.limits.body:
            raise Problem("too_large", f"expected a line of at most {service.limits.body:,} bytes")
        try:
            given = json.loads(line)
            identity = _echo(given.get("id")) if isinstance(given, dict) else None
            asked = Line.model_validate(given)
            if asked.call not in CALLS:
                raise Problem("unknown", f"call: no {asked.call!r:.80}; there are: {', '.join(CALLS)}", "call")
            operation = CALLS[asked.call]
            reply = await operation.handler(service, operation.request.model_validate(asked.body))
        except ValidationError as error:
            raise malformed(error) from None
        except (ValueError, RecursionError) as error:
            raise Problem("bad_request", f"not JSON: {reason(error)}") from None
        return _as_line({"id": identity, "reply": as_json(reply)})
    except Problem as problem:
        return _as_line({"id": identity, **problem.as_dict()})
    except Exception:
        log.exception("a request failed")
        return _as_line({"id": identity, **Problem("failed", "the server failed; its log has more").as_dict()})


def _as_line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, allow_nan=False).encode() + b"\n"


def _echo(identity: Any) -> Any:
    """Return an `id` that can be sent back unchanged. Raises ValueError."""
    with_ints(identity)
    return identity


async def serve_stdio(service: TableService, source: BinaryIO, target: BinaryIO) -> None:
    """Answer each line with one, until the input ends or the output is closed."""
    room = asyncio.Semaphore(AT_ONCE)
    writing = asyncio.Lock()
    loop = asyncio.get_running_loop()
    gone = loop.create_future()  # set when the output is closed
    running: set[asyncio.Task[None]] = set()

    async def work(line: bytes) -> None:
        data = await answer(service, line)
        try:
            async with writing:
                await in_daemon(lambda: write(data))  # the parent may not be reading
        except OSError as error:
            if not gone.done():
                gone.set_result(error)
        finally:
            room.release()

    def write(data: bytes) -> None:
        target.write(data)
        target.flush()

    def read() -> bytes:
        line = source.readline(service.limits.body + 2)
        while len(line) > service.limits.body + 1 and not line.endswith(b"\n"):  # too long: the rest is dropped
            rest = source.readline(1 << 16)
            if not rest or rest.endswith(b"\n"):
                break
        return line

    try:
        while not gone.done():
            await room.acquire()
            line = in_daemon(read)
            await asyncio.wait([line, gone], return_when=asyncio.FIRST_COMPLETED)
            if gone.done() or not line.result():
                break
            task = asyncio.create_task(work(line.result()))
            running.add(task)
            task.add_done_callback(running.discard)
        service.end_waiting()
        answers = asyncio.gather(*running)  # to all pending requests, as long as somebody reads them
        await asyncio.wait([answers, gone], return_when=asyncio.FIRST_COMPLETED)
        answers.cancel()
    finally:
        service.stop()


def in_daemon(work: Callable[[], Answer]) -> asyncio.Future[Answer]:
    """Do some work in a daemon thread, for which the process does not wait at exit, unlike `to_thread`."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Answer] = loop.create_future()

    def settle(settle: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            settle(value)

    def run() -> None:
        try:
            result = work()
        except Exception as error:
            told = functools.partial(settle, done.set_exception, error)
        else:
            told = functools.partial(settle, done.set_result, result)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(told)

    threading.Thread(target=run, daemon=True).start()
    return done


def streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the requests and answers of the parent process, which nobody else reads or writes from now on.

    The standard descriptors become an empty input and stderr: for this process, what it loads, and its children.

    Raises:
        ValueError: stdin or stdout is closed.
    """
    target = _set_aside("stdout", sys.stdout, "wb")
    sys.stdout = sys.stderr
    return _set_aside("stdin", sys.stdin, "rb"), target


def _set_aside(name: str, stream: TextIO | None, mode: Literal["rb", "wb"]) -> BinaryIO:
    """Return a standard stream under a descriptor of its own, which children do not inherit."""
    try:
        if stream is None:
            raise ValueError
        descriptor = stream.fileno()
        own = os.dup(descriptor)
    except (AttributeError, OSError, ValueError):
        raise ValueError(f"serve: {name} is closed; expected the pipes of a parent process") from None
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, descriptor)
    os.close(empty)
    if mode == "wb":
        with contextlib.suppress(OSError):  # without stderr, what is written to stdout is lost
            os.dup2(2, descriptor)
    return os.fdopen(own, mode)
