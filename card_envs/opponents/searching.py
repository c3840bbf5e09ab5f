"""The loop of search: draw a world, play every move out in it, drop what falls behind, halve the rest, choose.

The own move stands against all others. These lose their worse half in each of as many rounds as leave one of them
(sequential halving: Karnin, Koren & Somekh 2013), whoever is clearly behind leaves earlier (racing: Maron & Moore
1994), and the last one is played if it is better beyond doubt. All moves are tried in the same worlds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.dealing import draw_world
from card_envs.engine.rng import uniform
from card_envs.game import Int8s, Int64s, State, UInt64s, bot_move, observe_all, plausibility, play, standing
from card_envs.opponents.value import Net, value_of

# The first count of worlds after which moves are judged, the standard errors that decide then, and the worlds in which
# a move must have had the same results as another to count as the same.
FIRST_LOOK, CLEARLY, ALIKE = 8, 3.0, 32
MOST_DRAWS = 12  # for a world that explains what the others did
DECIDED = -1

Floats = NDArray[np.float64]


class Budget(NamedTuple):
    """How much a search does.

    Attributes:
        worlds: for the moves that stay to the end.
        doubt: standard errors by which another move must be better than the own one.
        horizon: moves after the first that are played out at most; then a network says what the position is worth.
    """

    worlds: int
    doubt: float
    horizon: int


class Trials(NamedTuple):
    """What became of the moves: of each table [B, A] or of one [A].

    Attributes:
        sums: of the results (`standing` of the mover).
        squares: of these, summed.
        worlds: in which the move was tried.
    """

    sums: Floats
    squares: Floats
    worlds: Int64s


class Scratch(NamedTuple):
    """What one thread works with.

    Attributes:
        states: [2] the world, and what a move makes of it.
        full: [D] a full state, padded to a multiple of 8.
        layers: [2, widest] of the value network.
        leads: [A] sums of squared leads over the own move.
    """

    states: NDArray[Any]
    full: Int8s
    layers: NDArray[np.float32]
    leads: Floats


def search_tables(
    first: int, last: int, states: NDArray[Any], keys: UInt64s, own: Int64s, live: Int8s, budget: Budget, net: Net,
    scratch: Scratch, trials: Trials, chosen: Int64s,
) -> int:  # fmt: skip
    """Choose a move at each table, from what the seat to move knows.

    Args:
        first, last: which tables.
        states: [B]; they stay as they are.
        keys: [B] streams of the worlds; they move on.
        own: [B] the moves that need no reason.
        live: [B, A] the moves to try, the own one among them; those that fell behind are taken out.
        budget: how much is done.
        net: of positions at the horizon.
        scratch: to work with.
        trials: [B, A] grow.
        chosen: [B] gets the moves.

    Returns:
        how many moves were made in all worlds.
    """
    moves = 0
    for i in range(first, last):
        found = Trials(trials.sums[i], trials.squares[i], trials.worlds[i])
        moves += search_table(states[i], keys[i : i + 1], own[i], live[i], budget, net, scratch, found)
        chosen[i] = best_move(own[i], live[i], budget.doubt, found, scratch.leads)
    return moves


def search_table(
    state: State, key: UInt64s, own: int, live: Int8s, budget: Budget, net: Net, scratch: Scratch, trials: Trials
) -> int:
    """Try the moves of one table until one rival of the own move is left, or the worlds are used up."""
    live[own] = 0  # it is tried everywhere, and never dropped
    scratch.leads[:] = 0
    rivals = 0
    for action in range(live.shape[0]):
        rivals += live[action]
    rounds = 1
    while (1 << rounds) < rivals:
        rounds += 1
    moves = halved = 0
    for world in range(1, budget.worlds + 1 if rivals > 0 else 0):
        draw_likely_world(state, key, scratch.states)
        moves += try_moves(own, live, budget.horizon, net, scratch, trials)
        if world >= FIRST_LOOK and world & (world - 1) == 0:  # 8, 16, 32 …
            rivals = drop_clear_cases(world, own, live, rivals, trials, scratch.leads)
            if rivals <= 0:
                break
        while halved < rounds and world * rounds >= budget.worlds * (halved + 1):
            halved += 1
            drop_worst(live, rivals // 2, trials.sums)
            rivals -= rivals // 2
    return moves


def draw_likely_world(state: State, key: UInt64s, states: NDArray[Any]) -> None:
    """A world into states[0], kept the more often the better it explains what the others did."""
    for _ in range(MOST_DRAWS):
        states[0] = state
        draw_world(states[0], state.seat, key)
        likely = plausibility(states[0], state.seat)
        if likely == 1 or uniform(key) < likely:
            break


def try_moves(own: int, live: Int8s, horizon: int, net: Net, scratch: Scratch, trials: Trials) -> int:
    """Play the own move and its rivals out in the world at hand; returns how many moves that took."""
    seat = scratch.states[0].seat
    own_result = 0.0
    moves = 0
    for turn in range(live.shape[0] + 1):
        action = turn - 1 if turn else own
        if turn and live[action] == 0:
            continue
        scratch.states[1] = scratch.states[0]
        state = scratch.states[1]
        play(state, action)
        left = horizon
        while left > 0 and not state.needs_deal:
            play(state, bot_move(state))
            left -= 1
        moves += horizon - left + 1
        result = float(standing(state, seat))
        if not state.needs_deal:
            observe_all(state, seat, scratch.full)
            result += value_of(scratch.full, net, scratch.layers)
        if turn == 0:
            own_result = result
        trials.sums[action] += result
        trials.squares[action] += result * result
        scratch.leads[action] += (result - own_result) ** 2
        trials.worlds[action] += 1
    return moves


def drop_clear_cases(world: int, own: int, live: Int8s, rivals: int, trials: Trials, leads: Floats) -> int:
    """Take out who is clearly behind or like the own move; returns the rivals left, or `DECIDED`."""
    decided = False
    for action in range(live.shape[0]):
        if live[action]:
            lead = trials.sums[action] - trials.sums[own]
            clear = lead * lead >= CLEARLY * CLEARLY * (leads[action] - lead * lead / world)
            if lead > 0:
                decided |= clear and rivals == 1
            elif clear and (lead < 0 or world >= ALIKE):
                live[action] = 0
                rivals -= 1
    return DECIDED if decided else rivals


def drop_worst(live: Int8s, number: int, sums: Floats) -> None:
    """Take out that many of the moves with the lowest sums."""
    for _ in range(number):
        worst = -1
        for action in range(live.shape[0]):
            if live[action] and (worst < 0 or sums[action] <= sums[worst]):
                worst = action
        live[worst] = 0


def best_move(own: int, live: Int8s, doubt: float, trials: Trials, leads: Floats) -> int:
    """The rival that is left, if it is better beyond doubt; else the own move."""
    best = own
    for action in range(live.shape[0]):  # at most one, and like the own move it has been in all worlds
        if live[action]:
            lead = trials.sums[action] - trials.sums[own]
            if lead > 0 and lead * lead >= doubt * doubt * (leads[action] - lead * lead / trials.worlds[action]):
                best = action
    return best
