"""Playing tables to the end of their episodes: scripted and random players in compiled code, others in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine import kernels
from card_envs.engine.cost import work_time
from card_envs.engine.dealing import deal_next
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
from card_envs.opponents.policy import Policy, decisions_at
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy

# Kinds of players: ask the policy, or play in compiled code.
BY_POLICY, AT_RANDOM, BY_TRIVIAL, BY_GREEDY = range(4)
LOG_SIZE = 512  # moves of an episode that there is room for at first
# What a player expected: tables [n], number of decisions before it in the game [n], margins [n, A].
ExpectedMargins: TypeAlias = tuple[Int64s, Int64s, NDArray[np.float32]]
SCRIPTED = {"trivial": BY_TRIVIAL, "greedy": BY_GREEDY}


def new_tables(game: Game, options: Mapping[str, Any], seed: int, numbers: Int64s) -> NDArray[Any]:
    """Return [B] States after the first deal of the tables with these numbers; equal numbers get equal deals."""
    table = np.array([game.rules.new_state(game.validated(dict(options)))], game.rules.STATE)
    states: NDArray[Any] = table.repeat(len(numbers))  # a plain assignment would copy field by field
    specialize(kernels.reset_tables, game)(0, len(states), states, table_keys(seed, numbers))
    return states


Watch: TypeAlias = Callable[[int], object]  # called with the number of moves made since the last call


class Players(NamedTuple):
    """P players at B tables.

    Attributes:
        seats: [B, S] the player in each seat.
        kinds: [P] `BY_POLICY`, `AT_RANDOM`, `BY_TRIVIAL` or `BY_GREEDY`.
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
        log: [B, L, 2] action and seat of each decision, -1 after the last; a table whose row is full waits. L is 0
            where they are not kept.
        stats: [deals, P, num_stats] `update_stats` of each player's seats; consecutive tables of a deal share a row.
    """

    moves: Int64s
    rewards: NDArray[np.float64]
    log: NDArray[np.int16]
    stats: Int64s


def play_on(
    first: int, last: int, states: NDArray[Any], actions: Int64s, players: Players, ledger: Ledger, mask: Int8s
) -> None:
    """Play each table to the end of its episode, to the next decision of a player that must be asked, or to a full log.

    Deals within an episode, but never after its end: an ended table keeps its last state.

    Args:
        first, last: range of tables.
        states: [B].
        actions: [B] the answer to the decision that a table waits for, or -1.
        players: one that is `BY_POLICY` is not asked if only one action is legal.
        ledger: updated.
        mask: [A] scratch.
    """
    seats, kinds, streams = players  # unpacked once: inside the loop it would cost reference counting
    moves, rewards, log, stats = ledger
    tables_per_row = states.shape[0] // stats.shape[0]
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
            seat = state.seat
            player = seats[i, seat]
            if action < 0:
                action = choose_action(state, kinds[player], stream, mask)
                if action < 0:
                    break
            play(state, action)
            for s in range(rewards.shape[1]):
                rewards[i, s] += state.rewards[s]
            moves[i, player] += 1
            if log.shape[1] > 0:
                log[i, num_moves, 0] = action
                log[i, num_moves, 1] = seat
            num_moves += 1
            if state.needs_deal:
                for s in range(rewards.shape[1]):
                    update_stats(state, s, stats[row, seats[i, s]])
            action = -1
            if num_moves == log.shape[1]:
                break


def choose_action(state: State, kind: int, stream: UInt64s, mask: Int8s) -> int:
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
    return SCRIPTED[policy.bot] if type(policy) is ScriptedPolicy else BY_POLICY


def play_out(
    game: Game, states: NDArray[Any], seated: Players, timed: Sequence[TimedPolicy], ledger: Ledger, watch: Watch | None
) -> tuple[Ledger, list[ExpectedMargins], float]:
    """Play each table to its end; return the ledger, what was expected of moves, and the time in compiled code.

    `watch` is called after every round of answers.
    """
    actions, mask = np.full(len(states), -1), np.zeros(game.rules.NUM_ACTIONS, np.int8)
    loop, expected = specialize(play_on, game, inline=False), list[ExpectedMargins]()
    loop(0, 0, states, actions, seated, ledger, mask)  # compile
    compiled_seconds, num_reported = 0.0, 0
    while True:
        start = work_time()
        loop(0, len(states), states, actions, seated, ledger, mask)
        compiled_seconds += work_time() - start
        if watch is not None:
            num_moves = int(ledger.moves.sum())
            watch(num_moves - num_reported)
            num_reported = num_moves
        actions[:] = -1
        if states["over"].all():
            return ledger, expected, compiled_seconds
        before, log = ledger.moves.sum(axis=1), ledger.log
        if log.size and before.max() == log.shape[1]:
            ledger = ledger._replace(log=np.pad(log, ((0, 0), (0, log.shape[1]), (0, 0)), constant_values=-1))
            continue
        for tables, answer, means in _ask_policies(timed, seated, states):
            actions[tables] = answer
            if means is not None:
                expected.append((tables, before[tables], means))


def seat_players(policies: Sequence[Policy], seats: Int8s, rngs: Sequence[np.random.Generator]) -> Players:
    """Return the players with streams for random moves, which the first compiled one's generator draws."""
    kinds = np.array([compiled_kind(policy) for policy in policies], np.int8)
    compiled = np.flatnonzero(kinds != BY_POLICY)
    rng = rngs[int(compiled[0]) if len(compiled) else 0]
    return Players(seats, kinds, rng.integers(0, 1 << 64, len(seats), np.uint64))


def measure_players(
    timed: Sequence[TimedPolicy], kinds: Int8s, moves: Int64s, compiled_seconds: float
) -> tuple[NDArray[np.float64], Int64s]:
    """Return seconds [P] and decisions [P]; compiled players share their time by their numbers of moves."""
    seconds = np.array([policy.seconds for policy in timed])
    decisions = np.array([policy.decisions for policy in timed], np.int64)
    compiled = np.flatnonzero(kinds != BY_POLICY)
    decisions[compiled] = moves[:, compiled].sum(axis=0)
    seconds[compiled] = compiled_seconds * decisions[compiled] / max(decisions[compiled].sum(), 1)
    return seconds, decisions


def _ask_policies(
    timed: Sequence[TimedPolicy], seated: Players, states: NDArray[Any]
) -> Iterator[tuple[Int64s, Int64s, NDArray[np.float32] | None]]:
    """Ask each policy that must be asked; yield the tables that waited for it, and its actions and values there."""
    player = np.where(states["over"], -1, seated.seats[np.arange(len(states)), states["seat"]])
    for i in np.flatnonzero(seated.kinds == BY_POLICY).tolist():
        tables = np.flatnonzero(player == i)
        if len(tables):
            yield tables, *timed[i].ask(states.take(tables))  # indexing copies by field


def blank_ledger(game: Game, num_tables: int, num_players: int, num_rows: int, log_size: int) -> Ledger:
    """Return a ledger of zeros."""
    return Ledger(
        np.zeros((num_tables, num_players), np.int64),
        np.zeros((num_tables, game.rules.NUM_SEATS)),
        np.full((num_tables, log_size, 2), -1, np.int16),
        np.zeros((num_rows, num_players, total(game.rules.STATS)), np.int64),
    )


@dataclass
class TimedPolicy:
    """Asks a policy for its actions and measures the processor time, without the first answer's if there are more.

    The first may load something. What an answer compiles does not count either.

    Attributes:
        game: the game.
        policy: the policy.
        rng: of all its actions.
        keep_values: ask what it expects of moves as well.
        clock: returns the processor time.
        seconds: processor time so far.
        decisions: made in that time.
        answers: number of them.
    """

    game: Game
    policy: Policy
    rng: np.random.Generator
    keep_values: bool = False
    clock: Callable[[], float] = work_time
    seconds: float = 0.0
    decisions: int = 0
    answers: int = 0

    def ask(self, states: NDArray[Any]) -> tuple[Int64s, NDArray[np.float32] | None]:
        """Return [n] actions at these tables, and [n, A] margins expected if they are kept and known.

        Raises IllegalMove.
        """
        decisions, means = decisions_at(self.game, states), None
        start = self.clock()
        if self.keep_values:
            actions, values = self.policy.act_and_evaluate(decisions, self.rng)
            means = None if values is None else values.means.astype(np.float32)
        else:
            actions = self.policy.act(decisions, self.rng)
        if self.answers == 1:
            self.seconds, self.decisions = 0.0, 0
        self.seconds += self.clock() - start
        self.decisions += len(states)
        self.answers += 1
        return actions, means
