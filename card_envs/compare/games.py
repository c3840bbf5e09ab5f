"""Games in bulk: a plan, and the function that plays portions of it.

Scripted and random players play in compiled code, others are asked in batches. Comparisons, self-play statistics,
reviews and data sets are functions of the arrays that come out. Letters for shapes: `N` games, `T` decisions, `S`
seats, `P` players, `K` line-ups, `A` actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._tables import (
    LOG_SIZE,
    TimedPolicy,
    Watch,
    blank_ledger,
    measure_players,
    new_tables,
    play_out,
    seat_players,
)
from card_envs.engine.buffers import INT8, check_bool, check_game, check_int, checked, seed_number
from card_envs.game import Game, Int8s, Int64s
from card_envs.opponents.names import load_policy
from card_envs.opponents.policy import Policy, PolicyLike, hide_seed
from card_envs.system.files import short_repr

MOST_DEALS = 1 << 62  # so that their numbers are those of tables


@dataclass(frozen=True)
class Plan:
    """What is played; subclasses add what their task needs. A plan and the numbers of deals determine the games.

    Attributes:
        game: the game.
        players: P names, as for `load_opponent`, or policies.
        seed: of deals and players.
        options: of the game, as items.
        sampled: networks sample their actions, unless they were made to play the likeliest; False: they all play it.
    """

    game: Game
    players: Sequence[str | PolicyLike] = ()
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()
    sampled: bool = True

    def check(self) -> None:
        """Raise ValueError if an attribute is something else, or an option does not fit."""
        check_game(self.game)
        if not isinstance(self.players, (list, tuple)):
            raise ValueError(f"players: expected a list of names and policies, got {short_repr(self.players)}")
        seed_number(self.seed)
        if not isinstance(self.options, tuple) or not all(isinstance(item, tuple) for item in self.options):
            raise ValueError(f"options: expected items, tuple(options.items()), got {short_repr(self.options)}")
        check_bool(self.sampled, "sampled")
        self.validated()

    def validated(self) -> Any:
        """Return the options, validated. Raises ValueError."""
        return self.game.validated(dict(self.options))

    @property
    def names(self) -> tuple[str, ...]:
        """The players' names."""
        loaded = (name if isinstance(name, str) else load_policy(name, "players", self.game) for name in self.players)
        return tuple(policy if isinstance(policy, str) else policy.name for policy in loaded)

    def load(self) -> list[Policy]:
        """Return the players, loaded if they were given by name. Raises ValueError."""
        return [load_policy(player, "players", self.game, self.sampled) for player in self.players]

    def deal(self, numbers: Int64s) -> NDArray[Any]:
        """Return [B] States after the first deal of these numbers."""
        return new_tables(self.game, dict(self.options), self.seed, numbers)


@dataclass(frozen=True)
class GamePlan(Plan):
    """Games to play: with the numbers of some deals, it decides every move.

    Attributes:
        lineups: [K, S] the player in each seat; None: in line-up i, player i modulo P is on the first side, and so on.
        mirrored: each deal is played once with every line-up; False: deal i with line-up i modulo K.
        streams: of the players' random numbers, at least P; empty: 0, 1, ...
        keep_moves: keep the decisions.
        keep_values: keep what players that are asked expect of each action, and the decisions.
    """

    lineups: Int8s | None = None
    mirrored: bool = False
    streams: Sequence[int] = ()
    keep_moves: bool = False
    keep_values: bool = False

    def check(self) -> None:
        """Raise ValueError if an attribute is something else, or they do not fit together."""
        super().check()
        if not self.players:
            raise ValueError("players: expected a list of names and policies, got none")
        last, num_seats = len(self.players) - 1, self.game.rules.NUM_SEATS
        if self.lineups is not None:
            shape = max(1, np.size(self.lineups) // num_seats), num_seats
            lineups = checked("lineups", self.lineups, shape, INT8, written=False)
            if not 0 <= lineups.min() <= lineups.max() <= last:
                raise ValueError(f"lineups: expected 0 to {last}, got {lineups.min()} to {lineups.max()}")
        for name in ("mirrored", "keep_moves", "keep_values"):
            check_bool(getattr(self, name), name)
        if not isinstance(self.streams, (list, tuple)) or 0 < len(self.streams) <= last:
            raise ValueError(f"streams: expected {last + 1} numbers, got {short_repr(self.streams)}")
        for stream in self.streams:
            check_int(stream, 0, None, "streams")

    def seat(self, numbers: Int64s) -> tuple[Int64s, Int8s]:
        """Return the deal [N] and the line-up [N, S] of each table."""
        lineups = self.lineups
        if lineups is None:
            num_players = len(self.players)
            lineups = (np.add.outer(np.arange(num_players), self.game.sides) % num_players).astype(np.int8)
        if self.mirrored:
            return np.repeat(numbers, len(lineups)), np.tile(lineups, (len(numbers), 1))
        return numbers, lineups[numbers % len(lineups)]


@dataclass(frozen=True)
class Games:
    """N ended games and their T decisions, in the order of play in each game.

    Attributes:
        number: [N] number of the deal.
        lineup: [N, S] the player in each seat.
        first_seat: [N] seat of the first decision.
        states: [N] the last State.
        rewards: [N, S] sums of rewards.
        num_moves: [N, P] number of moves of each player, forced ones included.
        seconds: [P] processor time of each player; for compiled players, the game's own time included.
        decisions: [P] made in that time: moves with a choice; for compiled players, all moves.
        stats: [deals, P, num_stats] statistics of `update_stats` for each player, summed over the games of a deal.
        starts: [N + 1] game i has the decisions `starts[i]` to `starts[i + 1]`; T is 0 if they are not kept.
        seat: [T] int8.
        player: [T] int8.
        action: [T] int16.
        values: [T, A] float32, margins as `ActionValues.means`, nan where the player said nothing; None if not kept.
    """

    number: Int64s
    lineup: Int8s
    first_seat: Int8s
    states: NDArray[Any]
    rewards: NDArray[np.float64]
    num_moves: Int64s
    seconds: NDArray[np.float64]
    decisions: Int64s
    stats: Int64s
    starts: Int64s
    seat: Int8s
    player: Int8s
    action: NDArray[np.int16]
    values: NDArray[np.float32] | None

    def actions_of(self, game: int) -> list[int]:
        """Return the actions of a game."""
        actions: list[int] = self.action[self.starts[game] : self.starts[game + 1]].tolist()
        return actions


def portions(total: int, size: int) -> list[range]:
    """Return the numbers below `total` in portions."""
    return [range(start, min(start + size, total)) for start in range(0, total, size)]


def play_games(plan: GamePlan, numbers: Int64s, watch: Watch | None = None) -> Games:
    """Play the games of a plan on the deals with these numbers.

    Args:
        plan: what is played.
        numbers: of the deals. Deals depend on nothing else; random numbers of players depend on the first of them.
        watch: called after every round of answers with the number of moves made since the last call.

    Raises:
        IllegalMove: a policy chose an illegal action.
        PolicyError: a policy raised an exception.
        ValueError: an argument, a name or an option is invalid.
    """
    if not isinstance(plan, GamePlan):
        raise ValueError(f"plan: expected a GamePlan, got {short_repr(plan)}")
    if watch is not None and not callable(watch):
        raise ValueError(f"watch: expected a function of a number of moves, got {short_repr(watch)}")
    plan.check()
    game, deals = plan.game, np.asarray(numbers)
    if (
        deals.ndim != 1
        or deals.dtype.kind not in "iu"
        or not len(deals)
        or not 0 <= deals.min() <= deals.max() <= MOST_DEALS
    ):
        raise ValueError(
            f"numbers: expected whole numbers of deals, from 0 on, at least one, got {short_repr(numbers)}"
        )
    numbers = deals.astype(np.int64)
    deals, lineup = plan.seat(numbers)
    states = plan.deal(deals)
    first_seat = states["seat"].copy()
    rngs = [np.random.default_rng([plan.seed, int(numbers[0]), i]) for i in plan.streams or range(len(plan.players))]
    players = plan.load()
    for player in players:  # results must not depend on what this process played before
        player.reset()
    seated = seat_players(players, lineup, rngs)
    timed = [TimedPolicy(game, player, hide_seed(rng), plan.keep_values) for player, rng in zip(players, rngs)]
    log_size = LOG_SIZE * (plan.keep_moves or plan.keep_values)
    ledger = blank_ledger(game, len(states), len(plan.players), len(numbers), log_size)
    ledger, expected, compiled_seconds = play_out(game, states, seated, timed, ledger, watch)
    seconds, decisions = measure_players(timed, seated.kinds, ledger.moves, compiled_seconds)
    played = ledger.log[..., 0] >= 0
    action, seat = np.ascontiguousarray(ledger.log[played].T)
    starts = np.r_[0, np.cumsum(played.sum(axis=1))]
    values = None
    if plan.keep_values:
        values = np.full((len(action), game.rules.NUM_ACTIONS), np.nan, np.float32)
        for tables, before, means in expected:
            values[starts[tables] + before] = means
    player_of = lineup[np.repeat(np.arange(len(deals)), np.diff(starts)), seat]
    return Games(
        deals, lineup, first_seat, states, ledger.rewards, ledger.moves, seconds, decisions, ledger.stats, starts,
        seat.astype(np.int8), player_of, action, values,
    )  # fmt: skip
