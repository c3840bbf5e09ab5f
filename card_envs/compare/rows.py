"""The decisions of games that were played, as arrays. Letters for shapes: `N` decisions, `G` games, `P` players."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.games import Games, Plan
from card_envs.compiling import specialize
from card_envs.engine.dealing import deal_next
from card_envs.game import Int8s, Int64s, legal, observe, play


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
        states: [N] the State before each decision, hidden cards included; empty if they are not kept.
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
    states: NDArray[Any]


def read_rows(plan: Plan, games: Games, keep_states: bool = False) -> Rows:
    """Return the decisions of games that were played with their moves kept."""
    rows = replay_rows(plan, games.number, games.starts, games.action, keep_states)
    return rows._replace(player=games.player, values=games.values)


def replay_rows(
    plan: Plan, numbers: Int64s, starts: Int64s, action: NDArray[np.int16], keep_states: bool = False
) -> Rows:
    """Return the decisions of some games, all by player 0 and without values.

    Args:
        plan: what was played.
        numbers: [G] the games' numbers.
        starts: [G + 1] first row of each.
        action: [N] their moves.
        keep_states: keep the States, too.
    """
    rules, n, num_games = plan.game.rules, len(action), len(numbers)
    rows = Rows(
        np.repeat(numbers, np.diff(starts)), np.zeros(n, np.int32), np.zeros(n, np.int8), np.zeros(n, np.int8), action,
        np.zeros(n, np.float32), np.zeros(n, np.bool_), np.empty((n, rules.OBS_SIZE), np.int8),
        np.empty((n, rules.NUM_ACTIONS), np.int8), np.empty((0, rules.NUM_ACTIONS), np.float32),
        np.empty((num_games, rules.NUM_SEATS, rules.OBS_SIZE), np.int8), np.empty(n * keep_states, rules.STATE),
    )  # fmt: skip
    newest = np.full((num_games, rules.NUM_SEATS), -1)
    specialize(write_rows, plan.game)(0, num_games, plan.deal(numbers), starts, rows, newest)
    return rows._replace(values=None)


def write_rows(first: int, last: int, states: NDArray[Any], starts: Int64s, rows: Rows, newest: Int64s) -> None:
    """Replay games and write a row for each decision.

    Args:
        first, last: range of games.
        states: [G] after their first deals; played to the end.
        starts: [G + 1] first row of each.
        rows: with the moves; the rest is written.
        newest: [G, S] -1; becomes the last row of each seat.
    """
    _, deals, seats, _, action, rewards, lasts, obs, masks, _, finals, before = rows
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
            if len(before) > 0:
                before[row] = state
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
