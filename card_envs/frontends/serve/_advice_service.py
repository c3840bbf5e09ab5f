"""Stateless requests: games, opponents, advice, and viewing records."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from card_envs.draw import draw
from card_envs.frontends.serve import _messages as messages
from card_envs.frontends.serve._asking import ServedOpponents, advice, choose
from card_envs.frontends.serve._limits import Answer, Limits, Workers
from card_envs.frontends.serve._messages import Position, Problem, wrong
from card_envs.frontends.serve._positions import position
from card_envs.game import Game
from card_envs.opponents._levels import levels
from card_envs.opponents.about import about, measured
from card_envs.opponents.policy import Opponent, PolicyError
from card_envs.options import adapter
from card_envs.play.episode import read_episode
from card_envs.play.sitting import Course
from card_envs.record import parse_record
from card_envs.reviews import MoveJudge
from card_envs.reviews._judge import searches_of
from card_envs.system.files import finite
from card_envs.views import VERSION, in_words

log = logging.getLogger("card_envs.serve")
TRYING_SECONDS = 0.01  # of a search, before the first request


class AdviceService:
    """The opponents and their threads. All methods run in one event loop."""

    def __init__(self, opponents: ServedOpponents, limits: Limits) -> None:
        self.opponents = opponents
        self.limits = limits
        self.quick = Workers(2, 4 * limits.waiting)
        self.searches = Workers(limits.searches, limits.waiting)

    async def games(self, request: messages.GamesRequest, allow_deals: bool) -> messages.Games:
        games = [self._described(game, request.picture) for game in self.opponents.games.values()]
        return messages.Games(version=VERSION, deals=allow_deals, games=games)

    def _described(self, game: Game, picture: str | None) -> messages.OneGame:
        names = self.opponents.names(game)
        found = messages.OneGame(
            name=game.name,
            title=game.title,
            seats=game.rules.NUM_SEATS,
            sides=list(game.sides),
            seat_names=list(game.view.SEAT_NAMES),
            options=adapter(game.options).json_schema(),
            **in_words(game),
            opponents=names,
            about_opponents={name: about(self.opponents.opponent(game, name)) for name in names},
            levels=[messages.OneLevel(**level._asdict()) for level in levels(game, names)],
            judges=[name for name in names if searches_of(self.opponents.opponent(game, name))],
        )
        if picture is not None and game.name not in self.opponents.loading:  # no cards before the rules are compiled
            found.picture = _first_picture(game, picture == "tall")
        return found

    async def schema(self, request: messages.GameRequest) -> dict[str, Any]:
        return self.opponents.known(request.game).view.SCHEMA

    async def rules(self, request: messages.GameRequest) -> messages.RulesInWords:
        page = self.opponents.known(request.game).rules_page
        if not page.is_file():
            raise Problem("unknown", f"game: {request.game} comes without its rules in words", "game")
        return messages.RulesInWords(rules=page.read_text(encoding="utf-8"))

    async def opponent_list(self, request: messages.OpponentsRequest) -> messages.Opponents:
        games = [*self.opponents.games.values()] if request.game is None else [self.opponents.known(request.game)]
        found = []
        for game in games:
            for name in self.opponents.names(game):
                strength = measured(game).get(name, [])
                time = strength[-1]["microseconds_per_move"] if strength else None
                found.append(
                    messages.OneOpponent(name=name, game=game.name, strength=strength, microseconds_per_move=time)
                )
        return messages.Opponents(opponents=found)

    async def advise(self, request: messages.AdviseRequest) -> messages.Advice:
        opponent = self._opponent(request)
        workers = self.quick if opponent.policy.is_quick else self.searches
        seconds = self.seconds(request.seconds)
        moves = await self._answer(opponent, workers, lambda: advice(opponent, request.view, request.seed, seconds))
        return messages.Advice(**self._about(opponent, request), moves=moves)

    async def judge(self, request: messages.JudgeRequest) -> messages.Judgement:
        opponent = self._opponent(request)
        try:
            judge = MoveJudge(opponent, seconds=self.seconds(request.seconds))
        except ValueError as problem:
            raise Problem("bad_request", f"opponent: {problem}", "opponent") from None
        cost = await self._answer(opponent, self.searches, lambda: judge.cost(request.view, request.move, request.seed))
        return messages.Judgement(
            **self._about(opponent, request), **finite(dict(zip(("best", "cost", "error"), cost)))
        )

    def _opponent(self, request: messages.AdviseRequest) -> Opponent:
        return self.opponents.opponent(self.opponents.game(request.game), request.opponent)

    def _about(self, opponent: Opponent, request: messages.AdviseRequest) -> dict[str, Any]:
        return {"game": opponent.game.name, "opponent": opponent.name, "seat": request.view["seat"]}

    async def _answer(self, opponent: Opponent, workers: Workers, work: Callable[[], Answer]) -> Answer:
        """Let an opponent look at a view; raise a `Problem` for what is wrong with that, or with the opponent."""
        try:
            return await workers.run(work)
        except PolicyError:
            raise self.failed(f"{opponent.game.name}/{opponent.name}") from None
        except ValueError as problem:
            if str(problem).startswith("move: "):
                raise Problem("illegal_move", str(problem), "move") from None
            raise wrong("bad_view", problem) from None

    def seconds(self, asked: float | None) -> float:
        return min(asked or self.limits.seconds, self.limits.seconds)

    def failed(self, name: str) -> Problem:
        """Log the current exception and return a problem without its message.

        The message is only for the owner: it may hold hidden information.
        """
        log.exception("opponent %s failed", name)
        return Problem("failed", f"opponent {name} failed; the server's log has more")

    async def replay(self, request: messages.ReplayRequest) -> Position:
        def work() -> Position:
            record = parse_record(request.record, "record")
            game = self.opponents.game(record.game)
            _seat_of(game, request.seat)
            episode, actions = read_episode(record, game, request.at)
            course = Course(episode)
            for action in actions:
                course.play(action)
            return position(course, request.seat, [None] * game.rules.NUM_SEATS, request.since)

        try:
            return await self.quick.run(work)
        except ValueError as error:
            raise wrong("bad_request", error) from None

    def warm_up(self, tell: Callable[[str], None] = lambda line: None) -> None:
        """Compile or load everything needed; until then, requests for a game get 503 and the reason."""
        seconds = min(self.limits.seconds, TRYING_SECONDS)  # for searches
        loading = self.opponents.loading
        while loading:
            game = self.opponents.games[loading[0]]
            tell(f"{game.title}: {', '.join(self.opponents.names(game))}")
            course = Course.dealt(game, {}, 0)
            view = course.view(course.seat or 0)
            for name in self.opponents.names(game):
                opponent = self.opponents.opponent(game, name)
                choose(opponent.within(seconds), course, 0)()
                advice(opponent, view, 0, seconds)
                with suppress(ValueError):  # it does not search
                    MoveJudge(opponent, seconds=seconds).prepare(view)
            measured(game)
            for tall in (False, True):
                _first_picture(game, tall)
            del loading[0]

    def stop(self) -> None:
        """Refuse jobs that no thread has begun."""
        self.quick.stop()
        self.searches.stop()


@cache
def _first_picture(game: Game, tall: bool) -> str:
    """Return the picture of a game's beginning, by the cards of seed 0."""
    course = Course.dealt(game, {}, 0)
    return draw(game, course.view(course.seat or 0), tall)


def _seat_of(game: Game, seat: int) -> int:
    if seat >= game.rules.NUM_SEATS:
        raise ValueError(f"seat: expected 0 to {game.rules.NUM_SEATS - 1}, got {seat}")
    return seat
