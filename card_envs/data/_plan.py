"""Plans of data sets: which games are played, and who plays them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from card_envs.compare._provenance import digest_of, provenance
from card_envs.compare._solving import SolveTask, solver_of
from card_envs.compare.games import GamePlan, play_games, portions
from card_envs.compare.games import Plan as GeneralPlan
from card_envs.compare.rows import Rows, read_rows, replay_rows
from card_envs.engine.buffers import check_bool, check_game, check_int
from card_envs.game import Game, Int64s
from card_envs.games import get_game
from card_envs.opponents.policy import Policy

MOST_GAMES = 1 << 32
ROWS_AT_ONCE = 1 << 16
GAMES_AT_ONCE = 16, 4096  # fewest and most of a part
SAMPLE_GAMES = 16  # played to estimate the length of a game


@dataclass(frozen=True, init=False)
class Plan(GeneralPlan):
    """A `card_envs.compare.games.Plan` of a data set; the game may be given by its name.

    Attributes:
        players: names, as for `load_opponent`; game i begins with player i modulo P on the first side, and so on.
        games: number of episodes.
        values: keep what players expect of each action, if they search.
        solve_seconds: in a solitaire with a solver: play the line that it finds in that time of the processor, with all
            cards known, instead of players; deals that it does not win are left out. None: players play.
    """

    games: int = 1
    values: bool = False
    solve_seconds: float | None = None

    def __init__(
        self, game: Game | str, players: tuple[str, ...], games: int, seed: int = 0,
        options: tuple[tuple[str, Any], ...] = (), sampled: bool = True, values: bool = False,
        solve_seconds: float | None = None,
    ) -> None:  # fmt: skip
        """Take the attributes. Raises ValueError for something else than a game."""
        game = get_game(game) if isinstance(game, str) else game
        check_game(game)
        super().__init__(game, players, seed, options, sampled)
        vars(self).update(games=games, values=values, solve_seconds=solve_seconds)

    def check(self) -> None:
        """Load the players again. Raises ValueError, before anything is played, for an argument that does not fit."""
        super().check()
        check_int(self.games, 1, MOST_GAMES, "games")
        check_bool(self.values, "values")
        if self.solve_seconds is not None:
            solver_of(self.game)
            self._solve_task()
            if self.players or self.values:
                raise ValueError("solved deals have no players, and no values")
        elif not self.players:
            raise ValueError("players: expected at least one name")
        self.digests()

    def digests(self) -> dict[str, str]:
        """Return a digest of each player by name; it changes with the player's weights and code."""
        digests: dict[str, str] = provenance(self)["digests"]
        return digests

    def _load_by_name(self) -> dict[str, Policy]:
        return dict(zip(self.names, self.load()))

    def as_dict(self) -> dict[str, Any]:
        """Return all that decides which rows come about, for JSON."""
        return {
            **provenance(self),
            "players": list(self.players),
            "games": self.games,
            "values": self.values,
            "solve_seconds": self.solve_seconds,
            "games_at_once": self.games_at_once,
        }

    def parts(self) -> list[range]:
        """Return the numbers of the games in portions, which depend on nothing but the plan."""
        return portions(self.games, self.games_at_once)

    @cached_property
    def games_at_once(self) -> int:
        """The number of games with about ROWS_AT_ONCE decisions; some are played to estimate it."""
        least, most = GAMES_AT_ONCE
        if self.solve_seconds is not None:
            return least
        sample = play_games(GamePlan(self.game, ["greedy"], self.seed, self.options), np.arange(SAMPLE_GAMES))
        return int(np.clip(ROWS_AT_ONCE * SAMPLE_GAMES // sample.num_moves.sum(), least, most))

    def play(self, part: range, digests: Mapping[str, str] | None = None, keep_states: bool = False) -> Rows:
        """Play some of the games.

        Args:
            part: their numbers.
            digests: of the players when the games were begun; None: there are no other games.
            keep_states: keep the States, too.

        Raises:
            IllegalMove, PolicyError: a player fails.
            ValueError: a player is another one by now.
        """
        numbers = np.array(part)
        if self.solve_seconds is not None:
            return self._solve(numbers, keep_states)
        players = self._load_by_name()
        changed = [name for name, digest in (digests or {}).items() if digest_of(players[name], self.game) != digest]
        if changed:
            raise ValueError(f"{', '.join(changed)}: weights or code have changed since the games were begun")
        policies = [players[name] for name in self.names]
        plan = GamePlan(
            self.game, policies, self.seed, self.options, keep_moves=True, keep_values=self.values
        )  # `sampled` is settled
        return read_rows(self, play_games(plan, numbers), keep_states)

    def _solve_task(self) -> SolveTask:
        """Return how deals are solved. Raises ValueError for seconds that are not above 0."""
        assert self.solve_seconds is not None
        return SolveTask(self.game, seed=self.seed, options=self.options, seconds=self.solve_seconds)

    def _solve(self, numbers: Int64s, keep_states: bool) -> Rows:
        """Return the decisions of the lines that the solver finds, in the deals that it wins."""
        task = self._solve_task()
        lines = {number: task.solve_number(number)[1].moves for number in numbers.tolist()}
        won = {number: moves for number, moves in lines.items() if moves}
        actions = np.array([move for moves in won.values() for move in moves], np.int16)
        starts = np.cumsum([0, *map(len, won.values())])
        return replay_rows(self, np.array(list(won), np.int64), starts, actions, keep_states)
