"""Plans of games, and their decisions as arrays. Letters for shapes: `N` decisions, `G` games, `P` players."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._solving import SolveTask, solver_of
from card_envs.compare._tables import new_tables
from card_envs.compare.games import GamePlan, Games, play_games, portions
from card_envs.compiling import specialize
from card_envs.data._digest import digest_of
from card_envs.engine.buffers import check_bool, check_game, check_int, seed_number
from card_envs.engine.dealing import deal_next
from card_envs.game import Game, Int8s, Int64s, layout_digest, legal, observe, play
from card_envs.games import get_game
from card_envs.opponents.names import load_policy
from card_envs.opponents.policy import Policy
from card_envs.opponents.scripted import ScriptedPolicy
from card_envs.options import to_python
from card_envs.system.files import printable

MOST_GAMES = 1 << 32
ROWS_AT_ONCE = 1 << 16
GAMES_AT_ONCE = 16, 4096  # fewest and most of a part
TRIED = 16  # games that are played to estimate the length of one


class Rows(NamedTuple):
    """Decisions in the order of the games, and of the moves in each.

    Attributes:
        game: [N] int64 number of the game.
        deal: [N] int32 number of the deal in the game.
        seat: [N] int8 seat to move.
        player: [N] int8 its player: a number into the plan's names.
        action: [N] int16.
        reward: [N] float32, what the seat is paid until its next decision.
        last: [N] bool, whether it was the seat's last decision in the game.
        obs: [N, D] int8.
        mask: [N, A] int8.
        values: [N, A] float32, the margin that the player expects of each action; nan where it said nothing. None if
            nothing was asked.
        finals: [G, S, D] int8, what each seat sees when the game is over.
    """

    game: Int64s
    deal: NDArray[np.int32]
    seat: Int8s
    player: Int8s
    action: NDArray[np.int16]
    reward: NDArray[np.float32]
    last: NDArray[np.bool_]
    obs: Int8s
    mask: Int8s
    values: NDArray[np.float32] | None
    finals: Int8s


class _Columns(NamedTuple):
    """The arrays that the loop writes; see `Rows`."""

    deal: NDArray[np.int32]
    seat: Int8s
    reward: NDArray[np.float32]
    last: NDArray[np.bool_]
    obs: Int8s
    mask: Int8s


@dataclass(frozen=True)
class Plan:
    """Which games are played; everything that a process needs to play some of them.

    Attributes:
        game: the game, or its name.
        players: names, as for `load_opponent`; game i begins with player i modulo P on the first side, and so on.
        games: number of episodes.
        seed: of deals and players.
        options: of the game, as sorted items.
        sampled: networks sample their actions; False: they play the likeliest.
        values: keep what players expect of each action, if they search.
        solve_seconds: in a solitaire with a solver: play the line that it finds in that time of the processor, with all
            cards known, instead of players; deals that it does not win are left out. None: players play.
    """

    game: Game
    players: tuple[str, ...]
    games: int
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()
    sampled: bool = True
    values: bool = False
    solve_seconds: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.game, str):
            object.__setattr__(self, "game", get_game(self.game))
        check_game(self.game)

    def check(self) -> None:
        """Load the players again. Raises ValueError, before anything is played, for an argument that does not fit."""
        check_int(self.games, 1, MOST_GAMES, "games")
        seed_number(self.seed)
        check_bool(self.sampled, "sampled")
        check_bool(self.values, "values")
        self.game.validated(dict(self.options))
        if self.solve_seconds is not None:
            solver_of(self.game)
            self._solve_task()
            if self.players or self.values:
                raise ValueError("solved deals have no players, and no values")
        elif not self.players:
            raise ValueError("players: expected at least one name")
        for name in self.players:
            if name != printable(name):
                raise ValueError(f"players: expected UTF-8, as data has it, got {name!r:.200}; a relative path may do")
        self.digests()

    def digests(self) -> dict[str, str]:
        """Return a digest of each player by name; it changes with the player's weights and code."""
        return {name: digest_of(player, self.game) for name, player in self._load().items()}

    def _load(self) -> dict[str, Policy]:
        """Return the players by name; users' classes are constructed, since they may keep state."""
        return {name: load_policy(name, "players", self.game, self.sampled) for name in self.players}

    def as_dict(self) -> dict[str, Any]:
        """Return all that decides which rows come about, for JSON."""
        found = asdict(self) | {"game": self.game.name, "version": self.game.version}
        found |= {"options": to_python(dict(self.options))}
        return {
            **found,
            "players": list(self.players),
            "games_at_once": self.games_at_once,
            "digests": self.digests(),
            "layout": layout_digest(self.game.rules),
            "card_envs": version("card_envs"),
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
        played = self._play(np.arange(TRIED), [ScriptedPolicy("greedy")])
        return int(np.clip(ROWS_AT_ONCE * TRIED // max(1, len(played.action)), least, most))

    def play(self, part: range, digests: Mapping[str, str] | None = None) -> Rows:
        """Play some of the games.

        Args:
            part: their numbers.
            digests: of the players when the games were begun; None: there are no other games.

        Raises:
            IllegalMove, PolicyError: a player fails.
            ValueError: a player is another one by now.
        """
        numbers = np.array(part)
        if self.solve_seconds is not None:
            return self._rows(*self._solved(numbers))
        players = self._load()
        changed = [name for name, digest in (digests or {}).items() if digest_of(players[name], self.game) != digest]
        if changed:
            raise ValueError(f"{', '.join(changed)}: weights or code have changed since the games were begun")
        games = self._play(numbers, [players[name] for name in self.players])
        return self._rows(numbers, games.starts, games.action)._replace(player=games.player, values=games.values)

    def _play(self, numbers: Int64s, players: Sequence[Policy]) -> Games:
        sides = np.array(self.game.sides)
        lineups = ((np.arange(len(players))[:, None] + sides) % len(players)).astype(np.int8)
        plan = GamePlan(self.game, players, lineups, self.seed, self.options, keep_moves=True, keep_values=self.values)
        return play_games(plan, numbers)

    def _solve_task(self) -> SolveTask:
        """Return how deals are solved. Raises ValueError for seconds that are not above 0."""
        assert self.solve_seconds is not None
        return SolveTask(self.game, self.seed, self.options, self.solve_seconds)

    def _solved(self, numbers: Int64s) -> tuple[Int64s, Int64s, NDArray[np.int16]]:
        """Return the numbers of the deals that the solver wins, the first rows of their moves, and the moves."""
        task = self._solve_task()
        lines = {int(number): task.solve_number(int(number))[1].moves for number in numbers}
        won = {number: moves for number, moves in lines.items() if moves}
        starts = np.cumsum([0, *map(len, won.values())])
        return (
            np.array(list(won), np.int64),
            starts,
            np.array([move for line in won.values() for move in line], np.int16),
        )

    def _rows(self, numbers: Int64s, starts: Int64s, action: NDArray[np.int16]) -> Rows:
        """Replay these games and return their decisions, all by player 0, without values."""
        rules, n = self.game.rules, len(action)
        columns = _Columns(
            np.zeros(n, np.int32), np.zeros(n, np.int8), np.zeros(n, np.float32), np.zeros(n, np.bool_),
            np.empty((n, rules.OBS_SIZE), np.int8), np.empty((n, rules.NUM_ACTIONS), np.int8),
        )  # fmt: skip
        states = new_tables(self.game, dict(self.options), self.seed, numbers)
        finals = np.empty((len(numbers), rules.NUM_SEATS, rules.OBS_SIZE), np.int8)
        newest = np.full((len(numbers), rules.NUM_SEATS), -1)
        specialize(write_rows, self.game)(0, len(numbers), states, action, starts, columns, newest, finals)
        deal, seat, reward, last, obs, mask = columns
        number = np.repeat(numbers, np.diff(starts))
        return Rows(number, deal, seat, np.zeros(n, np.int8), action, reward, last, obs, mask, None, finals)


def write_rows(
    first: int, last: int, states: NDArray[Any], action: NDArray[np.int16], starts: Int64s, columns: _Columns,
    newest: Int64s, finals: Int8s,
) -> None:  # fmt: skip
    """Replay games and write a row for each decision.

    Args:
        first, last: range of games.
        states: [G] after their first deals; played to the end.
        action: [N] their moves.
        starts: [G + 1] first row of each.
        columns: written.
        newest: [G, S] -1; becomes the last row of each seat.
        finals: [G, S, D] written.
    """
    deals, seats, rewards, lasts, obs, masks = columns
    for i in range(first, last):
        state = states[i]
        deal = 0
        for row in range(starts[i], starts[i + 1]):
            while state.needs_deal:
                deal_next(state)
                deal += 1
            seat = state.seat
            deals[row] = deal
            seats[row] = seat
            legal(state, masks[row])
            observe(state, seat, obs[row])
            newest[i, seat] = row
            play(state, action[row])
            for s in range(newest.shape[1]):
                if newest[i, s] >= 0:
                    rewards[newest[i, s]] += state.rewards[s]
        for s in range(newest.shape[1]):
            observe(state, s, finals[i, s])
            if newest[i, s] >= 0:
                lasts[newest[i, s]] = True
