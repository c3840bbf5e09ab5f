"""The opponents of a server, by name, and calling one with a time limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from card_envs.frontends.serve._messages import OneMove, Problem
from card_envs.game import Game
from card_envs.opponents import load_opponent, opponent_names
from card_envs.opponents.policy import Opponent, decisions_at
from card_envs.play.sitting import Course
from card_envs.system.files import finite


class ServedOpponents:
    """Opponents by game and short name: those of the package, and those that the owner adds.

    Attributes:
        games: by name.
        loading: names of games that are not compiled yet; the first is being compiled.
    """

    def __init__(self, games: Sequence[Game], added: Mapping[str, str] | None = None) -> None:
        """Load them.

        Args:
            games: to offer.
            added: argument of `load_opponent` by the name to offer it under: `back_alley/mine`.

        Raises:
            ValueError: one of them can't be loaded.
        """
        self.games = {game.name: game for game in games}
        self.loading: list[str] = []
        self._all: dict[str, dict[str, Opponent]] = {
            game.name: {name: load_opponent(f"{game.name}/{name}", game) for name in opponent_names(game)}
            for game in games
        }
        for name, what in (added or {}).items():
            game_name, _, short = name.partition("/")
            if game_name not in self.games or not short:
                raise ValueError(f"opponent {name!r}: expected GAME/NAME=WHAT, with one of {', '.join(self.games)}")
            if short in self._all[game_name]:
                raise ValueError(f"opponent {name!r}: there is one of this name; choose another")
            self._all[game_name][short] = replace(load_opponent(what, game_name), name=short)

    def known(self, name: str) -> Game:
        """Return a game by name, compiled or not. Raises Problem."""
        if name not in self.games:
            raise Problem("unknown", f"game: no {name!r:.80}; there are: {', '.join(self.games)}", "game")
        return self.games[name]

    def game(self, name: str) -> Game:
        """Return a game by name. Raises Problem, also while it is being compiled; it is the next one then."""
        game = self.known(name)
        if name in self.loading[1:]:
            self.loading.insert(1, self.loading.pop(self.loading.index(name)))
        if name in self.loading:
            self.check_loaded()
        return game

    def check_loaded(self) -> None:
        """Raise Problem if a game is being compiled: which, and how many there are."""
        left = len(self.loading)
        if left:
            now = self.games[self.loading[0]].title
            raise Problem(
                "busy", f"compiling {now}, {len(self.games) - left + 1} of {len(self.games)}; ask again later"
            )

    def names(self, game: Game) -> list[str]:
        """Return the short names of the opponents of a game."""
        return list(self._all[game.name])

    def opponent(self, game: Game, name: str, field: str = "opponent") -> Opponent:
        """Return an opponent of a game. Raises Problem; paths and classes are never looked up."""
        if name not in self._all[game.name]:
            raise Problem("unknown", f"{field}: no {name!r:.80}; there are: {', '.join(self.names(game))}", field)
        return self._all[game.name][name]


def choose(opponent: Opponent, course: Course, key: int) -> Callable[[], int]:
    """Return a function, for any thread, that returns the opponent's action.

    It decides in a world drawn from what its seat knows: never in the true one.

    Args:
        opponent: to move, with its time limit set.
        course: its current position is captured now, not when the function is called.
        key: seed of the opponent's random draws.
    """
    rng = np.random.default_rng([key, len(course.moves)])
    decisions = decisions_at(course.game, course.decisions().worlds(rng, 1)[:, 0])
    seed = int(rng.integers(1 << 63))

    return lambda: int(opponent.policy.act(decisions, np.random.default_rng(seed))[0])


def advice(opponent: Opponent, view: dict[str, Any], seed: int, seconds: float) -> list[OneMove]:
    """Return an opponent's evaluation of the legal moves; a search that would exceed the time uses fewer worlds.

    Raises ValueError as `Opponent.rank_moves` does.
    """
    ranked = opponent.within(seconds).rank_moves(view, seed)
    return [OneMove(**finite(move._asdict())) for move in ranked]
