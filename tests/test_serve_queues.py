"""Searches take turns: nobody waits for all that somebody else has asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any

import pytest

from card_envs.serve._limits import CLIENT, Queue, Workers, client_of
from card_envs.serve._messages import Problem


class Crowd:
    """One thread that is held up, and what waits for it; `order` tells who was served."""

    def __init__(self, waiting: int = 8) -> None:
        self.workers = Workers(1, waiting, "test")
        self.held, self.release = threading.Event(), threading.Event()
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[Any]] = []

    def task(self, client: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        context = copy_context()
        context.run(CLIENT.set, client)
        self.tasks.append(asyncio.get_running_loop().create_task(work, context=context))
        return self.tasks[-1]

    async def ask(self, client: str, name: str, table: Queue | None = None) -> asyncio.Task[Any]:
        """Queue up for advice, or for a table's opponent."""
        queue: Callable[[], Queue] | None = None if table is None else lambda: table
        run = self.workers.run(lambda: self.order.append(name), queue=queue, patient=table is not None)
        task = self.task(client, run)
        await asyncio.sleep(0)
        return task

    async def hold(self) -> None:
        def work() -> None:
            self.held.set()
            assert self.release.wait(30)

        self.task("holder", self.workers.run(work))
        await asyncio.sleep(0)
        assert await asyncio.to_thread(self.held.wait, 30)

    async def end(self) -> list[Any]:
        self.release.set()
        found = await asyncio.wait_for(asyncio.gather(*self.tasks, return_exceptions=True), 30)
        self.workers.stop()
        return found


def test_tables_and_advice_take_turns() -> None:
    """Of one client, too: 120 tables of his keep neither his advice waiting nor another client's table."""

    async def crowd() -> list[str]:
        crowd = Crowd()
        await crowd.hold()
        for number in range(120):
            await crowd.ask("one", f"table {number}", ("one", "tables left alone", str(number)))
        await crowd.ask("one", "advice")
        await crowd.ask("one", "awaited", ("one", "tables", "x"))
        await crowd.ask("two", "other advice")
        await crowd.ask("three", "other table", ("three", "tables", "y"))
        await crowd.end()
        return crowd.order

    order = asyncio.run(crowd())
    assert len(order) == 124
    assert set(order[:6]) >= {"advice", "awaited", "other advice", "other table"}, order[:10]
    assert [name for name in order if name.startswith("table")] == [f"table {number}" for number in range(120)]


def test_tables_of_a_client_take_turns() -> None:
    """A table that asks again and again stands behind one that has asked once."""

    async def crowd() -> list[str]:
        crowd = Crowd()
        await crowd.hold()
        for number in range(5):
            await crowd.ask("one", f"busy {number}", ("one", "tables", "busy"))
        await crowd.ask("one", "quiet", ("one", "tables", "quiet"))
        await crowd.end()
        return crowd.order

    assert asyncio.run(crowd())[:2] == ["busy 0", "quiet"]


def test_full_queues_turn_away_who_has_most() -> None:
    async def crowd() -> tuple[list[str], list[Any]]:
        crowd = Crowd(waiting=8)
        await crowd.hold()
        for number in range(8):
            await crowd.ask("one", f"one {number}")
        refused = await crowd.ask("one", "one too many")
        assert isinstance(refused.exception(), Problem)
        await crowd.ask("two", "two")
        return crowd.order, await crowd.end()

    order, found = asyncio.run(crowd())
    assert order == ["one 0", "two", *(f"one {number}" for number in range(1, 7))]
    assert [str(one) for one in found if isinstance(one, Problem)] == ["all threads are at work; try again"] * 2


def test_who_has_gone_waits_no_more() -> None:
    async def crowd() -> list[str]:
        crowd = Crowd(waiting=1)
        await crowd.hold()
        (await crowd.ask("one", "gone")).cancel()
        await asyncio.sleep(0)
        await crowd.ask("one", "next")
        await crowd.end()
        return crowd.order

    assert asyncio.run(crowd()) == ["next"]


def test_the_end_is_told_to_who_waits() -> None:
    async def crowd() -> list[Any]:
        crowd = Crowd()
        await crowd.hold()
        await crowd.ask("one", "waiting")
        crowd.workers.stop()
        crowd.release.set()
        with pytest.raises(Problem, match="ending"):
            await crowd.workers.run(lambda: None)
        return await crowd.end()

    found = asyncio.run(crowd())
    assert [str(one) for one in found if one is not None] == ["the server is ending"]


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_clients_are_known_by_address(address: str, client: str) -> None:
    assert client_of(address) == client
