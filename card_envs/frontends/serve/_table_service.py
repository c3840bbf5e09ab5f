"""Requests of clients at tables: each learns what its seat may see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import takewhile
from typing import TypeAlias

from card_envs.draw import draw
from card_envs.engine.buffers import new_seed
from card_envs.frontends.serve import _messages as messages
from card_envs.frontends.serve._advice_service import AdviceService, log
from card_envs.frontends.serve._asking import choose
from card_envs.frontends.serve._messages import Position, Problem, Watched, wrong
from card_envs.frontends.serve._positions import position, watched
from card_envs.frontends.serve._tables import Header, SeatedTable, Tables
from card_envs.play.sitting import Move
from card_envs.record import GameRecord

Shown: TypeAlias = Position | Watched
Events: TypeAlias = AsyncIterator[Shown | None]

KEEP_ALIVE = 15.0  # seconds between signs of life of an event stream
EXPIRE_EVERY = 60.0  # seconds


class TableService:
    """Tables, the clients at them, and the opponents' play. All methods run in one event loop."""

    def __init__(self, advice: AdviceService, tables: Tables, allow_deals: bool = False) -> None:
        self.advice = advice
        self.opponents = advice.opponents
        self.limits = advice.limits
        self.tables = tables
        self.allow_deals = allow_deals
        self.root_path = ""  # of links in replies, behind a reverse proxy
        self.stopping = asyncio.Event()
        self._reading: dict[str, asyncio.Future[None]] = {}  # tables being read, by name

    async def create(self, request: messages.TableRequest) -> messages.NewTable:
        game = self.opponents.game(request.game)
        for name in ("seed", "deal"):
            if getattr(request, name) is not None and not self.allow_deals:
                raise Problem("forbidden", f"{name}: this server deals by itself (see --allow-deals)", name)
        num_seats = game.rules.NUM_SEATS
        players = [None, *["greedy"] * (num_seats - 1)] if request.players is None else request.players
        if len(players) != num_seats or None not in players:
            raise Problem(
                "bad_request", f"players: expected {num_seats}, null for each person, one at least", "players"
            )
        for number, player in enumerate(players):
            if player is not None:
                self.opponents.opponent(game, player, f"players.{number}")
        if request.undo and players.count(None) > 1:
            raise Problem("bad_request", "undo: only where there is one person", "undo")
        try:
            game.validated(request.options)
        except ValueError as error:
            raise Problem("bad_request", f"options: {error}", "options") from None
        # A seed that is given decides the whole game.
        seed, key = (new_seed(), new_seed()) if request.seed is None else (request.seed, request.seed)
        header = Header(
            game=game.name,
            version=game.version,
            options=request.options,
            seed=seed,
            deal=request.deal,
            players=players,
            tokens=[],
            key=key,
            undo=request.undo,
            seconds=self.advice.seconds(request.seconds),
            watch=request.watch,
        )
        try:
            table, tokens, watcher = self.tables.create(header)
        except ValueError as error:
            raise wrong("bad_deal", error) from None
        self._start_opponents(table)
        return messages.NewTable(
            game=game.name,
            seats=[
                messages.Chair(seat=seat, token=token, link=f"{self.root_path}/v1/seats/{token}")
                for seat, token in enumerate(tokens)
                if token
            ],
            watch=messages.WatchLink(token=watcher, link=f"{self.root_path}/v1/watch/{watcher}"),
        )

    async def position(self, request: messages.PositionRequest) -> Position:
        table, seat = await self._find(request.token)
        course, moves, at = table.course, table.course.moves, request.at
        if at is not None:
            if at > len(moves):
                raise Problem("bad_request", f"at: {len(moves)} moves were played", "at")
            players = table.header.players
            return await self.advice.quick.run(lambda: position(course.after(at), seat, players, request.since))
        await self._until(table, lambda: course.seat in (seat, None), request.wait)
        return self._position(table, seat, _first_new_move(request.since, moves, table))

    async def move(self, request: messages.MoveRequest) -> Position:
        table, seat = await self._find(request.token)
        course, moves = table.course, table.course.moves
        number = len(moves)
        _check_turn(request.turn, table)
        if course.over:
            raise Problem("over", "the game is over")
        if course.seat != seat:
            raise Problem("not_your_turn", f"it is the turn of seat {course.seat}")
        try:
            action = course.action(request.move)
        except ValueError as error:
            raise Problem("illegal_move", f"move: {error}", "move") from None
        self.tables.play(table, action)
        self._start_opponents(table)
        await self._until(table, lambda: course.seat in (seat, None), request.wait)
        return self._position(table, seat, _first_new_move(number, moves, table))

    async def undo(self, request: messages.UndoRequest) -> Position:
        table, seat = await self._find(request.token)
        _check_turn(request.turn, table)
        number = table.last_own(seat)
        if number is None:
            raise Problem("no_undo", "nothing can be taken back here")
        self.tables.undo(table, number)
        return self._position(table, seat)

    async def watch(self, request: messages.WatchRequest) -> Watched:
        table = await self._find_watched(request.token)
        course, moves = table.course, table.course.moves
        known = len(moves) if request.since is None else request.since
        public = table.header.watch == "public"
        await self._until(table, lambda: course.over or (public and len(course.moves) != known), request.wait)
        watched = self._watched(table, _first_new_move(request.since, moves, table))
        view, tall = watched.view, request.picture == "tall"
        if request.picture and view:
            watched.picture = await self.advice.quick.run(lambda: draw(course.game, view, tall))
        return watched

    async def record(self, request: messages.TokenRequest) -> GameRecord:
        return self._record((await self._find(request.token))[0])

    async def watched_record(self, request: messages.TokenRequest) -> GameRecord:
        return self._record(await self._find_watched(request.token))

    def _record(self, table: SeatedTable) -> GameRecord:
        if not table.course.over:
            raise Problem("not_over", "the record shows all cards: it is there when the game is over")
        return table.course.episode.record()

    async def leave(self, request: messages.TokenRequest) -> messages.Left:
        table, seat = await self._find(request.token)
        if table.persons != [seat]:
            raise Problem("not_alone", "others play here")
        self.tables.remove(table)
        return messages.Left(left=True)

    async def events(self, request: messages.EventsRequest) -> Events | None:
        """Return the positions from now on as they come, with None as a keep-alive between them.

        Returns None if the client has seen everything.
        """
        table, seat = await self._find(request.token)
        return self._stream(table, lambda since: self._position(table, seat, since), request.last, False)

    async def watched_events(self, request: messages.EventsRequest) -> Events | None:
        """Return what watchers see from now on, like `events`."""
        table = await self._find_watched(request.token)
        if table.header.watch == "nothing" and not table.course.over:  # when moves are played is no secret elsewhere
            raise Problem("not_over", "this table shows nothing before its end")
        return self._stream(table, lambda since: self._watched(table, since), request.last, True)

    def _stream(
        self, table: SeatedTable, look: Callable[[int | None], Shown], last: int | None, watching: bool
    ) -> Events | None:
        if last is not None and table.course.over and last == len(table.course.moves):
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
            moves = table.course.moves
            while not table.gone and not self.stopping.is_set():
                changed = table.changed
                position = look(_first_new_move(last, moves, table))
                last, moves = position.turn, table.course.moves
                yield position
                if position.outcome is not None and position.outcome.over:
                    return
                while not changed.is_set() and not self.stopping.is_set():
                    if not await _is_set_within(changed, KEEP_ALIVE):
                        yield None
        finally:
            table.streams -= not watching
            table.watchers -= watching
            if not watching:
                self.tables.use(table)

    async def _load_table(self, token: str) -> None:
        """Read the table of a token, if necessary, in a thread: a long game takes a second.

        Raises:
            Problem: it is damaged.
        """
        name = self.tables.missing(token)
        if name is None:
            return
        self.advice.opponents.check_loaded()  # reading replays it
        if name not in self._reading:
            self._reading[name] = asyncio.ensure_future(self._read(name))
        await asyncio.shield(self._reading[name])

    async def _read(self, name: str) -> None:
        try:
            table = await self.advice.quick.run(lambda: self.tables.read(name))
            if table is not None:
                self.tables.keep(table)
        finally:
            del self._reading[name]

    async def _find(self, token: str) -> tuple[SeatedTable, int]:
        await self._load_table(token)
        table, seat = self.tables.find(token)
        self.tables.use(table)
        self._start_opponents(table)  # after a restart, it may be an opponent's turn
        return table, seat

    async def _find_watched(self, token: str) -> SeatedTable:
        await self._load_table(token)
        return self.tables.find_watched(token)

    def _position(self, table: SeatedTable, seat: int, since: int | None = None) -> Position:
        can_undo = table.last_own(seat) is not None
        return position(table.course, seat, table.header.players, since, can_undo, table.problem)

    def _watched(self, table: SeatedTable, since: int | None) -> Watched:
        return watched(table.course, table.header.players, table.header.watch == "public", since, table.problem)

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

    def _start_opponents(self, table: SeatedTable) -> None:
        """Let the opponents play while it is their turn."""
        if table.player is not None and not (table.thinking or table.problem or self.stopping.is_set()):
            table.thinking = asyncio.get_running_loop().create_task(self._play_opponents(table))

    async def _play_opponents(self, table: SeatedTable) -> None:
        course = table.course
        try:
            for name in course.take_turns(table.header.players):
                moves, action = course.moves, await self._choose(table, name)
                if table.gone:
                    return
                if course.moves is moves:  # no move was taken back meanwhile
                    self.tables.play(table, action)
        except Problem as problem:  # disk full: tried again at the next request
            if not self.stopping.is_set():  # at shutdown, the move is played after the next start
                log.error("%s", problem)
        except Exception:  # of a policy
            table.problem = str(self.advice.failed(f"{table.header.game}/{table.player}"))
            table.notify()
        finally:
            table.thinking = None

    async def _choose(self, table: SeatedTable, name: str) -> int:
        """Return the action of an opponent of this name, whose turn it is."""
        opponent = table.opponents.get(name)
        if opponent is None:  # an instance per table, which remembers its plans
            seconds = min(table.header.seconds, self.limits.seconds)
            opponent = table.opponents[name] = self.opponents.opponent(table.course.game, name).within(seconds)
        work = choose(opponent, table.course, table.header.key)
        if not opponent.policy.is_quick:  # a thread pays
            return await self.advice.searches.run(work, patient=True)
        action = work()
        await asyncio.sleep(0)  # others have their turn
        return action

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
        self.advice.stop()

    def stop(self) -> None:
        """End, and release the tables for another server."""
        self.end()
        self.tables.close()


def _check_turn(turn: int | None, table: SeatedTable) -> None:
    """Raise Problem if a request is about a position other than the one at the table."""
    number = len(table.course.moves)
    if turn is not None and turn != number:
        raise Problem("stale_turn", f"turn: {number} moves were played, not {turn}; nothing was done", "turn")


def _first_new_move(since: int | None, seen: Sequence[Move], table: SeatedTable) -> int | None:
    """Return the number of the first move to list: `since`, or less if moves of those `seen` were taken back since."""
    moves = table.course.moves
    if since is None or moves is seen:
        return since
    return min(since, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(seen, moves))))


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
