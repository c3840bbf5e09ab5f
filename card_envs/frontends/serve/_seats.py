"""Requests of clients at tables: each learns what its seat may see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from card_envs.engine.buffers import new_seed
from card_envs.frontends.serve import _messages as messages
from card_envs.frontends.serve._advisers import Advisers, log
from card_envs.frontends.serve._asking import choose, is_quick
from card_envs.frontends.serve._messages import Position, Problem, Watched, wrong
from card_envs.frontends.serve._positions import position, watched
from card_envs.frontends.serve._tables import Header, SeatedTable, Tables
from card_envs.play.sitting import Sitting
from card_envs.record import GameRecord

Shown: TypeAlias = Position | Watched
Events: TypeAlias = AsyncIterator[Shown | None]

KEEP_ALIVE = 15.0  # seconds between signs of life of an event stream
EXPIRE_EVERY = 60.0  # seconds


class Seats:
    """Tables, the clients at them, and the opponents' play. All methods run in one event loop."""

    def __init__(self, advisers: Advisers, tables: Tables, allow_deals: bool = False) -> None:
        self.advisers = advisers
        self.opponents = advisers.opponents
        self.limits = advisers.limits
        self.tables = tables
        self.allow_deals = allow_deals
        self.root_path = ""  # of links in replies, behind a reverse proxy
        self.stopping = asyncio.Event()
        self._reading: dict[str, asyncio.Future[None]] = {}  # tables being read, by name

    async def create(self, asked: messages.TableRequest) -> messages.NewTable:
        game = self.opponents.game(asked.game)
        for name in ("seed", "deal"):
            if getattr(asked, name) is not None and not self.allow_deals:
                raise Problem("forbidden", f"{name}: this server deals by itself (see --allow-deals)", name)
        num_seats = game.rules.NUM_SEATS
        players = [None, *["greedy"] * (num_seats - 1)] if asked.players is None else asked.players
        if len(players) != num_seats or None not in players:
            raise Problem(
                "bad_request", f"players: expected {num_seats}, null for each person, one at least", "players"
            )
        for number, player in enumerate(players):
            if player is not None:
                self.opponents.opponent(game, player, f"players.{number}")
        if asked.undo and players.count(None) > 1:
            raise Problem("bad_request", "undo: only where there is one person", "undo")
        try:
            game.validated(asked.options)
        except ValueError as error:
            raise Problem("bad_request", f"options: {error}", "options") from None
        # A seed that is given decides the whole game.
        seed, key = (new_seed(), new_seed()) if asked.seed is None else (asked.seed, asked.seed)
        header = Header(
            game=game.name,
            version=game.version,
            options=asked.options,
            seed=seed,
            deal=asked.deal,
            players=players,
            tokens=[],
            key=key,
            undo=asked.undo,
            seconds=self.advisers.seconds(asked.seconds),
            watch=asked.watch,
        )
        try:
            table, tokens, watcher = self.tables.create(header)
        except ValueError as error:
            raise wrong("bad_deal", error) from None
        self._go_on(table)
        return messages.NewTable(
            game=game.name,
            seats=[
                messages.Chair(seat=seat, token=token, link=f"{self.root_path}/v1/seats/{token}")
                for seat, token in enumerate(tokens)
                if token
            ],
            watch=messages.WatchLink(token=watcher, link=f"{self.root_path}/v1/watch/{watcher}"),
        )

    async def position(self, asked: messages.PositionRequest) -> Position:
        table, seat = await self._find(asked.token)
        sitting, at = table.sitting, asked.at
        if at is not None:
            if at > len(sitting.moves):
                raise Problem("bad_request", f"at: {len(sitting.moves)} moves were played", "at")
            players = table.header.players
            return await self.advisers.quick.run(lambda: position(sitting.after(at), seat, players, asked.since))
        await self._until(table, lambda: table.sitting.seat in (seat, None), asked.wait)
        return self._position(table, seat, _still(asked.since, sitting, table))

    async def move(self, asked: messages.MoveRequest) -> Position:
        table, seat = await self._find(asked.token)
        sitting, number = table.sitting, len(table.sitting.moves)
        _check_turn(asked.turn, table)
        if sitting.over:
            raise Problem("over", "the game is over")
        if sitting.seat != seat:
            raise Problem("not_your_turn", f"it is the turn of seat {sitting.seat}")
        try:
            action = sitting.action(asked.move)
        except ValueError as error:
            raise Problem("illegal_move", f"move: {error}", "move") from None
        self.tables.play(table, action)
        self._go_on(table)
        await self._until(table, lambda: table.sitting.seat in (seat, None), asked.wait)
        return self._position(table, seat, _still(number, sitting, table))

    async def undo(self, asked: messages.UndoRequest) -> Position:
        table, seat = await self._find(asked.token)
        _check_turn(asked.turn, table)
        number = table.last_own(seat)
        if number is None:
            raise Problem("no_undo", "nothing can be taken back here")
        self.tables.undo(table, table.sitting.after(number))
        return self._position(table, seat)

    async def watch(self, asked: messages.WatchRequest) -> Watched:
        table = await self._find_watched(asked.token)
        known = len(table.sitting.moves) if asked.since is None else asked.since
        public, sitting = table.header.watch == "public", table.sitting
        await self._until(
            table, lambda: table.sitting.over or (public and len(table.sitting.moves) != known), seconds=asked.wait
        )
        return self._watched(table, _still(asked.since, sitting, table))

    async def record(self, asked: messages.TokenRequest) -> GameRecord:
        return self._record((await self._find(asked.token))[0])

    async def watched_record(self, asked: messages.TokenRequest) -> GameRecord:
        return self._record(await self._find_watched(asked.token))

    def _record(self, table: SeatedTable) -> GameRecord:
        if not table.sitting.over:
            raise Problem("not_over", "the record shows all cards: it is there when the game is over")
        return table.sitting.episode.record()

    async def leave(self, asked: messages.TokenRequest) -> messages.Left:
        table, seat = await self._find(asked.token)
        if table.persons != [seat]:
            raise Problem("not_alone", "others play here")
        self.tables.remove(table)
        return messages.Left(left=True)

    async def events(self, asked: messages.EventsRequest) -> Events | None:
        """Return the positions from now on as they come, with None as a keep-alive between them.

        Returns None if the client has seen everything.
        """
        table, seat = await self._find(asked.token)
        return self._stream(table, lambda since: self._position(table, seat, since), asked.last, False)

    async def watched_events(self, asked: messages.EventsRequest) -> Events | None:
        """Return what watchers see from now on, like `events`."""
        table = await self._find_watched(asked.token)
        if table.header.watch == "nothing" and not table.sitting.over:  # when moves are played is no secret elsewhere
            raise Problem("not_over", "this table shows nothing before its end")
        return self._stream(table, lambda since: self._watched(table, since), asked.last, True)

    def _stream(
        self, table: SeatedTable, look: Callable[[int | None], Shown], last: int | None, watching: bool
    ) -> Events | None:
        if last is not None and table.sitting.over and last == len(table.sitting.moves):
            return None
        if (table.watchers if watching else table.streams) >= self.limits.streams_per_table:
            raise Problem("busy", "too many event streams are open at this table")
        return self._follow(table, look, last, watching)

    async def _follow(
        self, table: SeatedTable, look: Callable[[int | None], Shown], last: int | None, watching: bool
    ) -> Events:
        table.streams += not watching
        table.watchers += watching
        try:
            sitting = table.sitting
            while not table.gone and not self.stopping.is_set():
                changed = table.changed
                found = look(_still(last, sitting, table))
                last, sitting = found.turn, table.sitting
                yield found
                if found.outcome is not None and found.outcome.over:
                    return
                while not changed.is_set() and not self.stopping.is_set():
                    if not await _is_set_within(changed, KEEP_ALIVE):
                        yield None
        finally:
            table.streams -= not watching
            table.watchers -= watching
            if not watching:
                self.tables.use(table)

    async def _bring(self, token: str) -> None:
        """Read the table of a token, if necessary, in a thread: a long game takes a second.

        Raises:
            Problem: it is damaged.
        """
        name = self.tables.missing(token)
        if name is None:
            return
        self.advisers.opponents.check_loaded()  # reading replays it
        if name not in self._reading:
            self._reading[name] = asyncio.ensure_future(self._read(name))
        await asyncio.shield(self._reading[name])

    async def _read(self, name: str) -> None:
        try:
            table = await self.advisers.quick.run(lambda: self.tables.read(name))
            if table is not None:
                self.tables.keep(table)
        finally:
            del self._reading[name]

    async def _find(self, token: str) -> tuple[SeatedTable, int]:
        await self._bring(token)
        table, seat = self.tables.find(token)
        self.tables.use(table)
        self._go_on(table)  # after a restart, it may be an opponent's turn
        return table, seat

    async def _find_watched(self, token: str) -> SeatedTable:
        await self._bring(token)
        return self.tables.find_watched(token)

    def _position(self, table: SeatedTable, seat: int, since: int | None = None) -> Position:
        can_undo = table.last_own(seat) is not None
        return position(table.sitting, seat, table.header.players, since, can_undo, table.problem)

    def _watched(self, table: SeatedTable, since: int | None) -> Watched:
        return watched(table.sitting, table.header.players, table.header.watch == "public", since, table.problem)

    async def _until(self, table: SeatedTable, reached: Callable[[], bool], seconds: float) -> None:
        """Wait until something is reached, the game is stuck or gone, or the time is up."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        table.waiting += 1
        try:
            while not (reached() or table.problem or table.gone):
                left = end - loop.time()
                if left <= 0 or self.stopping.is_set() or not await _is_set_within(table.changed, left):
                    return
        finally:
            table.waiting -= 1

    def _go_on(self, table: SeatedTable) -> None:
        """Let the opponents play while it is their turn."""
        if table.player is not None and not (table.thinking or table.problem or self.stopping.is_set()):
            table.thinking = asyncio.get_running_loop().create_task(self._play(table))

    async def _play(self, table: SeatedTable) -> None:
        try:
            while table.player is not None and not table.gone:
                await self._play_one(table)
        except Problem as problem:  # disk full: tried again at the next request
            if not self.stopping.is_set():  # at shutdown, the move is played after the next start
                log.error("%s", problem)
        except Exception:  # of a policy
            table.problem = str(self.advisers.failed(f"{table.header.game}/{table.player}"))
            table.notify()
        finally:
            table.thinking = None

    async def _play_one(self, table: SeatedTable) -> None:
        sitting, name = table.sitting, table.player or ""
        opponent = table.opponents.get(name)
        if opponent is None:  # an instance per table, which remembers its plans
            seconds = min(table.header.seconds, self.limits.seconds)
            opponent = table.opponents[name] = self.opponents.opponent(sitting.game, name).within(seconds)
        work = choose(opponent, sitting, table.header.key)
        if is_quick(opponent):
            action = work()
            await asyncio.sleep(0)  # others have their turn
        else:
            action = await self.advisers.searches.run(work, patient=True)
        if table.sitting is sitting and not table.gone:  # no move was taken back meanwhile
            self.tables.play(table, action)

    async def tend(self) -> None:
        """Delete idle tables periodically, until cancelled."""
        while True:
            for name in await asyncio.to_thread(self.tables.idle):
                if name not in self._reading:
                    self.tables.expire_one(name)
                await asyncio.sleep(0)  # others have their turn
            await asyncio.sleep(EXPIRE_EVERY)

    def end_waiting(self) -> None:
        """End streams, and answer requests that wait for a turn."""
        self.stopping.set()
        self.tables.wake()

    def end(self) -> None:
        """End everything; jobs that wait for a thread are refused. Tables are on disk already."""
        self.end_waiting()
        self.advisers.stop()

    def stop(self) -> None:
        """End, and release the tables for another server."""
        self.end()
        self.tables.close()


def _check_turn(turn: int | None, table: SeatedTable) -> None:
    """Raise Problem if a request is about a position other than the one at the table."""
    number = len(table.sitting.moves)
    if turn is not None and turn != number:
        raise Problem("stale_turn", f"turn: {number} moves were played, not {turn}; nothing was done", "turn")


def _still(since: int | None, asked: Sitting, table: SeatedTable) -> int | None:
    """Return the number of the first move to list: `since`, asked for when the sitting was `asked`, or an undo's."""
    now = table.sitting
    return since if since is None or now is asked else min(since, now.num_common(asked))


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
