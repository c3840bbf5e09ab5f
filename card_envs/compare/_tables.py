"""Playing tables to the end of their episodes: scripted and random players in compiled code, others in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine import _kernels as kernels
from card_envs.engine._buffers import INT8, check_seats, checked
from card_envs.engine._cost import work_time
from card_envs.engine._dealing import deal_next
from card_envs.engine.rng import table_keys
from card_envs.game import (
    Game,
    Int8s,
    Int64s,
    State,
    UInt64s,
    greedy,
    legal,
    play,
    random_move,
    total,
    trivial,
    update_stats,
)
from card_envs.opponents.policy import Policy, decisions_at, hide_seed
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy

# Kinds of players: ask the policy, or play in compiled code.
ASKED, AT_RANDOM, BY_TRIVIAL, BY_GREEDY = range(4)
LOG_SIZE = 512  # moves of an episode that there is room for at first
SCRIPTED = {"trivial": BY_TRIVIAL, "greedy": BY_GREEDY}


class Said(NamedTuple):
    """Estimates of a policy at n decisions.

    Attributes:
        tables: [n] where.
        numbers: [n] of moves before it in the episode.
        means: [n, A] margins, as `ActionValues.means`.
    """

    tables: Int64s
    numbers: Int64s
    means: NDArray[np.float32]


@dataclass(frozen=True)
class PlayedOut:
    """Ended episodes.

    Attributes:
        states: [B] the last State of each.
        rewards: [B, S] sums of rewards.
        moves: [B, P] number of moves of each policy, forced ones included.
        seconds: [P] processor time of each policy; for compiled players, the game's own time included.
        decisions: [P] made in that time: moves with a choice; for compiled players, all moves.
        log: [B, L] the moves of each episode, -1 after its end; L is 0 where they are not kept.
        said: what was expected of moves, in no particular order; empty where that is not kept.
        counts: [N, P, num_counts] statistics of `update_stats` and of the loop for each policy.
    """

    states: NDArray[Any]
    rewards: NDArray[np.float64]
    moves: NDArray[np.int64]
    seconds: NDArray[np.float64]
    decisions: NDArray[np.int64]
    log: NDArray[np.int16]
    said: list[Said]
    counts: Int64s

    def moves_of(self, table: int) -> list[int]:
        """Return the moves of an episode."""
        moves: list[int] = self.log[table][self.log[table] >= 0].tolist()
        return moves


def new_tables(game: Game, options: dict[str, Any], seed: int, numbers: NDArray[np.int64]) -> NDArray[Any]:
    """Return [B] States after the first deal of the tables with these numbers; equal numbers get equal deals."""
    one = np.array([game.rules.new_state(game.validated(options))], game.rules.STATE)
    states: NDArray[Any] = one.repeat(len(numbers))  # a plain assignment would copy field by field
    specialize(kernels.reset_tables, game)(0, len(states), states, table_keys(seed, numbers))
    return states


Watch: TypeAlias = Callable[[int], object]  # called with the number of moves made


class Players(NamedTuple):
    """P players at B tables.

    Attributes:
        seats: [B, S] the player in each seat.
        kinds: [P] `ASKED`, `AT_RANDOM`, `BY_TRIVIAL` or `BY_GREEDY`.
        streams: [B] for random moves; advanced.
    """

    seats: Int8s
    kinds: Int8s
    streams: UInt64s


class Ledger(NamedTuple):
    """Accumulators while tables are played.

    Attributes:
        moves: [B, P] number of moves of each player.
        rewards: [B, S] sums of rewards.
        log: [B, L] the moves of each episode; a table whose row is full waits. L is 0 where they are not kept.
        counts: [N, P, entries of STATS] `update_stats` of each player's seats, summed over deals; B / N consecutive
            tables share a row.
    """

    moves: Int64s
    rewards: NDArray[np.float64]
    log: NDArray[np.int16]
    counts: Int64s


def play_on(
    first: int, last: int, states: NDArray[Any], actions: Int64s, players: Players, ledger: Ledger, mask: Int8s
) -> None:
    """Play each table to the end of its episode, to the next decision of a player that must be asked, or to a full log.

    Deals within an episode, but never after its end: an ended table keeps its last state.

    Args:
        first, last: range of tables.
        states: [B].
        actions: [B] the answer to the decision that a table waits for, or -1.
        players: one that is `ASKED` is not asked if only one action is legal.
        ledger: updated.
        mask: [A] scratch.
    """
    seats, kinds, streams = players  # unpacked once: inside the loop it would cost reference counting
    moves, rewards, log, counts = ledger
    tables_per_row = states.shape[0] // counts.shape[0]
    for i in range(first, last):
        state = states[i]
        stream = streams[i : i + 1]
        row = i // tables_per_row
        num_moves = moves[i].sum()
        action = actions[i]
        while True:
            while state.needs_deal and not state.over:
                deal_next(state)
            if state.over:
                break
            player = seats[i, state.seat]
            if action < 0:
                action = found_move(state, kinds[player], stream, mask)
                if action < 0:
                    break
            play(state, action)
            for s in range(rewards.shape[1]):
                rewards[i, s] += state.rewards[s]
            moves[i, player] += 1
            if log.shape[1] > 0:
                log[i, num_moves] = action
            num_moves += 1
            if state.needs_deal:
                for s in range(rewards.shape[1]):
                    update_stats(state, s, counts[row, seats[i, s]])
            action = -1
            if num_moves == log.shape[1]:
                break


def found_move(state: State, kind: int, stream: UInt64s, mask: Int8s) -> int:
    """Return the action of a player of this kind; -1 if it must be asked."""
    if kind == BY_GREEDY:
        return greedy(state)
    if kind == BY_TRIVIAL:
        return trivial(state)
    if kind == AT_RANDOM:
        return random_move(state, stream)
    if legal(state, mask) > 1:
        return -1
    return int(mask.argmax())


def compiled_kind(policy: Policy) -> int:
    """Return how `play_on` plays this policy: in compiled code, or by asking."""
    if type(policy) is RandomPolicy:
        return AT_RANDOM
    return SCRIPTED[policy.bot] if type(policy) is ScriptedPolicy else ASKED


def play_out(
    game: Game,
    states: NDArray[Any],
    policies: Sequence[Policy],
    players: Int8s,
    rngs: Sequence[np.random.Generator],
    *,
    tables_per_deal: int = 1,
    keep_moves: bool = False,
    keep_values: bool = False,
    watch: Watch | None = None,
) -> PlayedOut:
    """Play each table to the end of its episode.

    Args:
        game: the game.
        states: [B] where to begin; modified in place.
        policies: P of them.
        players: [B, S] int8, the policy in each seat.
        rngs: [P] one for each policy.
        tables_per_deal: B / N, number of consecutive tables with the same deals; their statistics are summed.
        keep_moves: keep the moves of each episode.
        keep_values: keep what policies that must be asked expect of moves.
        watch: called after every answer of a policy that must be asked with the number of moves made at all tables.

    Raises:
        IllegalMove: a policy chose an illegal action.
        ValueError: `states` or `players` do not fit.
    """
    states, seats = _checked_seating(game, states, players, len(policies))
    num_tables, seated = len(states), _seated(policies, seats, rngs)
    actions = np.full(num_tables, -1)
    mask = np.zeros(game.rules.NUM_ACTIONS, np.int8)
    ledger = _blank_ledger(game, num_tables, len(policies), num_tables // tables_per_deal, LOG_SIZE * keep_moves)
    askers = [Asker(game, policy, hide_seed(rng), keep_values) for policy, rng in zip(policies, rngs)]
    loop, said = specialize(play_on, game, inline=False), list[Said]()
    loop(0, 0, states, actions, seated, ledger, mask)  # compile
    compiled_seconds = 0.0
    while True:
        start = work_time()
        loop(0, num_tables, states, actions, seated, ledger, mask)
        compiled_seconds += work_time() - start
        actions[:] = -1
        if states["over"].all():
            break
        numbers = ledger.moves.sum(axis=1)
        if keep_moves and numbers.max() == ledger.log.shape[1]:
            ledger = ledger._replace(log=np.pad(ledger.log, ((0, 0), (0, ledger.log.shape[1])), constant_values=-1))
            continue
        for tables, answer, means in _answers(askers, seated, states):
            actions[tables] = answer
            if means is not None:
                said.append(Said(tables, numbers[tables], means))
            if watch is not None:
                watch(int(ledger.moves.sum()))
    seconds, decisions = _times(askers, seated.kinds, ledger.moves, compiled_seconds)
    return PlayedOut(states, ledger.rewards, ledger.moves, seconds, decisions, ledger.log, said, ledger.counts)


def _seated(policies: Sequence[Policy], seats: Int8s, rngs: Sequence[np.random.Generator]) -> Players:
    """Return the players with streams for random moves, which the first compiled one's generator draws."""
    kinds = np.array([compiled_kind(policy) for policy in policies], np.int8)
    compiled = np.flatnonzero(kinds != ASKED)
    rng = rngs[int(compiled[0]) if len(compiled) else 0]
    return Players(seats, kinds, rng.integers(0, 1 << 64, len(seats), np.uint64))


def _times(
    askers: Sequence[Asker], kinds: Int8s, moves: Int64s, compiled_seconds: float
) -> tuple[NDArray[np.float64], Int64s]:
    """Return seconds [P] and decisions [P]; compiled players share their time by their numbers of moves."""
    seconds = np.array([asker.seconds for asker in askers])
    decisions = np.array([asker.decisions for asker in askers], np.int64)
    compiled = np.flatnonzero(kinds != ASKED)
    decisions[compiled] = moves[:, compiled].sum(axis=0)
    seconds[compiled] = compiled_seconds * decisions[compiled] / max(decisions[compiled].sum(), 1)
    return seconds, decisions


def _answers(
    askers: Sequence[Asker], seated: Players, states: NDArray[Any]
) -> Iterator[tuple[Int64s, Int64s, NDArray[np.float32] | None]]:
    """Ask each policy that must be asked; yield the tables that waited for it, and its actions and values there."""
    player = np.where(states["over"], -1, seated.seats[np.arange(len(states)), states["seat"]])
    for which in np.flatnonzero(seated.kinds == ASKED).tolist():
        tables = np.flatnonzero(player == which)
        if len(tables):
            yield tables, *askers[which].ask(states.take(tables))  # indexing copies by field


def _checked_seating(game: Game, states: NDArray[Any], players: Int8s, num_policies: int) -> tuple[NDArray[Any], Int8s]:
    """Return the tables and their players, checked for compiled code."""
    states = checked("states", states, (len(states),), game.rules.STATE)
    check_seats(game, states)
    players = checked("players", players, (len(states), game.rules.NUM_SEATS), INT8, written=False)
    if players.size and not 0 <= players.min() <= players.max() < num_policies:
        raise ValueError(f"players: expected 0 to {num_policies - 1}, got {players.min()} to {players.max()}")
    return states, players


def _blank_ledger(game: Game, num_tables: int, num_players: int, num_rows: int, log_size: int) -> Ledger:
    """Return a ledger of zeros."""
    return Ledger(
        np.zeros((num_tables, num_players), np.int64),
        np.zeros((num_tables, game.rules.NUM_SEATS)),
        np.full((num_tables, log_size), -1, np.int16),
        np.zeros((num_rows, num_players, total(game.rules.STATS)), np.int64),
    )


@dataclass
class Asker:
    """Asks a policy for its actions and measures the processor time, without the first answer's if there are more.

    The first may load something. What an answer compiles does not count either.

    Attributes:
        game: the game.
        policy: the policy.
        rng: of all its actions.
        keep_values: ask what it expects of moves as well.
        seconds: processor time so far.
        decisions: made in that time.
        answers: number of them.
    """

    game: Game
    policy: Policy
    rng: np.random.Generator
    keep_values: bool = False
    seconds: float = 0.0
    decisions: int = 0
    answers: int = 0

    def ask(self, states: NDArray[Any]) -> tuple[Int64s, NDArray[np.float32] | None]:
        """Return [n] actions at these tables, and [n, A] margins expected if they are kept and known.

        Raises IllegalMove.
        """
        decisions, means = decisions_at(self.game, states), None
        start = work_time()
        if self.keep_values:
            actions, found = self.policy.choose_and_evaluate(decisions, self.rng)
            means = None if found is None else found.means.astype(np.float32)
        else:
            actions = self.policy.choose(decisions, self.rng)
        if self.answers == 1:
            self.seconds, self.decisions = 0.0, 0
        self.seconds += work_time() - start
        self.decisions += len(states)
        self.answers += 1
        return actions, means
