"""N-tuple networks: what a position is worth, from tables of weights, in compiled code.

The value of a position is a sum of weights, a few hundred of them, each for something that holds there (Lucas 2008; as
a player of 2048: Szubert & Jaśkowski 2014). A game with a `planner.py` says which weights count. Values are those of
positions just before a chance event, so that all actions up to it are one decision: every position that can be reached
is valued, and the path to the best one is played.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.sums import Floats
from card_envs.game import (
    Game,
    Int64s,
    Planner,
    State,
    active_features,
    bot_move,
    expand,
    final_margin,
    is_chance_next,
    is_terminal,
    load,
    path_to,
)
from card_envs.opponents.macros import MAX_LENGTH, NO_ACTION, Macro, Macros

PLAYER = "greedy"  # the scripted player
UNKNOWN = -np.inf  # value of a position that is neither terminal nor just before a chance event

Float64s = NDArray[np.float64]


class NoScratch(NamedTuple):
    """Stands for a planner's scratch in games that have no planner."""

    features: Int64s


def planner_of(game: Game) -> Planner:
    """Return the game's planner. Raises ValueError where there is none."""
    if game.planner is None:
        raise ValueError(f"{game.name}: there is no planner for this game")
    return game.planner


def planning_scratch(game: Game, most: int) -> Any:
    """Return scratch of one thread for `most` positions."""
    return NoScratch(np.zeros(1, np.int64)) if game.planner is None else game.planner.new_scratch(most)


def value_at(k: int, weights: Floats, scratch: Any) -> float:
    """Return what position k is worth, if that is known: before a chance event, or where none will come."""
    return worth_at(k, weights, scratch) if is_terminal(scratch, k) or is_chance_next(scratch, k) else UNKNOWN


def worth_at(k: int, weights: Floats, scratch: Any) -> float:
    """Return what position k is worth, or would be if a chance event were next."""
    return final_margin(scratch, k) if is_terminal(scratch, k) else sum_at(k, weights, scratch)


def sum_at(k: int, weights: Floats, scratch: Any) -> float:
    """Return the sum of the weights that count for position k."""
    value = 0.0
    for j in range(active_features(scratch, k)):
        value += weights[scratch.features[j]]
    return value


def value_all(state: State, weights: Floats, scratch: Any, values: Float64s, macro: Macro) -> int:
    """Write the value [M] of each position that can be reached; return how many there are. `macro` is scratch."""
    load(state, state.seat, scratch)
    known = expand(scratch, values.shape[0], MAX_LENGTH - 1)
    for k in range(known):
        values[k] = value_at(k, weights, scratch)
    if path_to(scratch, 0, macro) == 0:
        values[0] = UNKNOWN
    if values[best_index(values, known)] == UNKNOWN:
        values[known - 1] = sum_at(known - 1, weights, scratch)
    return known


def best_index(values: Float64s, number: int) -> int:
    """Return where the greatest of the first `number` values is."""
    best = 0
    for k in range(number):
        if values[k] > values[best]:
            best = k
    return best


def path_or_baseline(k: int, state: State, scratch: Any, macro: Macro) -> int:
    """Write the path to position k, or the scripted player's move where it is empty; return its length."""
    number = path_to(scratch, k, macro)
    if number == 0:
        macro[0] = bot_move(state)
        number = 1
    return number


def write_best_macros(
    state: State, weights: Floats, most: int, scratch: Any, values: Float64s, order: Int64s, macros: Macros
) -> int:
    """Write the macro-actions to the `most` positions that are worth most, the best first; return how many there are.

    Args:
        state: stays as it is.
        weights: [W] of the network.
        most: positions, at most as many as `order` has room for.
        scratch: of this thread.
        values: [M] scratch.
        order: [C] scratch.
        macros: [C, MAX_LENGTH] is written.
    """
    known = value_all(state, weights, scratch, values, macros[0])
    number = 0
    for k in range(known):  # insertion into the best so far; equal ones keep their order
        if values[k] == UNKNOWN or (number == most and values[k] <= values[order[number - 1]]):
            continue
        place = number if number < most else number - 1
        while place > 0 and values[order[place - 1]] < values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
        number = min(number + 1, most)
    for c in range(number):
        length = path_or_baseline(order[c], state, scratch, macros[c])
        for step in range(length, macros.shape[1]):
            macros[c, step] = NO_ACTION
    return number


def find_best_macros(
    first: int, last: int, states: NDArray[Any], weights: Floats, scratch: Any, values: Float64s, order: Int64s,
    macros: Macros, numbers: Int64s,
) -> None:  # fmt: skip
    """Write the best macro-actions [B, C, MAX_LENGTH] of the tables first <= i < last, and how many there are [B]."""
    for i in range(first, last):
        numbers[i] = write_best_macros(states[i], weights, macros.shape[1], scratch, values, order, macros[i])


def write_best(
    first: int, last: int, states: NDArray[Any], weights: Floats, scratch: Any, values: Float64s, macro: Macro,
    best: Int64s,
) -> None:  # fmt: skip
    """Write the best position that each move [A] leads to, or -1, at one table; `macro` [MAX_LENGTH] is scratch."""
    for i in range(first, last):
        best[:] = -1
        for k in range(value_all(states[i], weights, scratch, values, macro)):
            if values[k] > UNKNOWN:
                path_or_baseline(k, states[i], scratch, macro)
                if best[macro[0]] < 0 or values[k] > values[best[macro[0]]]:
                    best[macro[0]] = k


def write_features(k: int, scratch: Any, entry: Int64s, value: Float64s) -> int:
    """Write which weights count for position k into `entry`, each times `value` [1]; return how many do."""
    if is_terminal(scratch, k):
        entry[0], value[0] = 0, final_margin(scratch, k)
        return 1
    number = active_features(scratch, k)
    value[0] = 1.0
    for j in range(number):
        entry[j] = scratch.features[j]
    return number
