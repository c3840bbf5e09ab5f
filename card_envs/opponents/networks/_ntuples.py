"""N-tuple networks: linear value functions over many binary features, in compiled code.

The value of a position is the sum of the weights of its active features, a few hundred of them (Lucas 2008; for 2048:
Szubert & Jaśkowski 2014). A game with a `planner.py` defines the features. Values are those of positions just before a
chance event, so all actions up to it form one decision: every reachable position is evaluated, and the path to the best
one is played.

`planning` is the planner's workspace of one thread, whose type is the game's.
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
from card_envs.opponents.macros import MAX_LENGTH, NO_ACTION, UNKNOWN, Macro, Macros, select_best

Float64s = NDArray[np.float64]


class NTupleNetwork(NamedTuple):
    """A network, and what one thread needs to value the positions that can be reached.

    Attributes:
        weights: [W] the network's weights.
        planning: the planner's workspace.
        values: [M] the value of each position.
    """

    weights: Floats
    planning: Any
    values: Float64s


def planner_of(game: Game) -> Planner:
    """Return the game's planner. Raises ValueError if it has none."""
    if game.planner is None:
        raise ValueError(f"{game.name}: there is no planner for this game")
    return game.planner


def value_at(k: int, weights: Floats, planning: Any) -> float:
    """Return the value of position k if a chance event is next or none is left, else UNKNOWN."""
    return worth_at(k, weights, planning) if is_terminal(planning, k) or is_chance_next(planning, k) else UNKNOWN


def worth_at(k: int, weights: Floats, planning: Any) -> float:
    """Return the value of position k, or the one that it would have if a chance event were next."""
    return final_margin(planning, k) if is_terminal(planning, k) else sum_at(k, weights, planning)


def sum_at(k: int, weights: Floats, planning: Any) -> float:
    """Return the sum of the weights of the active features of position k."""
    value = 0.0
    for j in range(active_features(planning, k)):
        value += weights[planning.features[j]]
    return value


def value_all(state: State, network: NTupleNetwork, macro: Macro) -> int:
    """Write the value of each reachable position; return their number. `macro` is scratch."""
    weights, planning, values = network
    known = value_reachable(state, weights, values.shape[0], planning, values)
    if path_to(planning, 0, macro) == 0:
        values[0] = UNKNOWN
    best_or_last(values, known, weights, planning)
    return known


def value_reachable(state: State, weights: Floats, most: int, planning: Any, values: Float64s) -> int:
    """Write the value [M], or UNKNOWN, of the state and at most `most` reachable positions; return their number."""
    load(state, state.seat, planning)
    known = expand(planning, most, MAX_LENGTH - 1)
    for k in range(known):
        values[k] = value_at(k, weights, planning)
    return known


def best_or_last(values: Float64s, number: int, weights: Floats, planning: Any) -> int:
    """Return the index of the greatest value; if all are UNKNOWN, that of the last position, whose sum is written."""
    best = best_index(values, number)
    if values[best] == UNKNOWN:
        best = number - 1
        values[best] = sum_at(best, weights, planning)
    return best


def best_index(values: Float64s, number: int) -> int:
    """Return the index of the greatest of the first `number` values."""
    best = 0
    for k in range(number):
        if values[k] > values[best]:
            best = k
    return best


def path_or_baseline(k: int, state: State, planning: Any, macro: Macro) -> int:
    """Write the path to position k, or the action of `greedy` if the path is empty; return its length."""
    number = path_to(planning, k, macro)
    if number == 0:
        macro[0] = bot_move(state)
        number = 1
    return number


def ntuple_moves(state: State, network: NTupleNetwork, macro: Macro) -> int:
    """Write the macro-action to the position with the highest value; return its length."""
    best = best_index(network.values, value_all(state, network, macro))
    return path_or_baseline(best, state, network.planning, macro)


def write_best_macros(state: State, most: int, network: NTupleNetwork, order: Int64s, macros: Macros) -> int:
    """Write the macro-actions to the `most` positions with the highest values, best first; return their number.

    Args:
        state: not modified.
        most: number of positions.
        network: the network, with this thread's workspace.
        order: [most] scratch.
        macros: [C, MAX_LENGTH] written.
    """
    number = select_best(network.values, value_all(state, network, macros[0]), most, order)
    for c in range(number):
        length = path_or_baseline(order[c], state, network.planning, macros[c])
        for step in range(length, macros.shape[1]):
            macros[c, step] = NO_ACTION
    return number


def find_best_macros(
    first: int, last: int, states: NDArray[Any], network: NTupleNetwork, order: Int64s, macros: Macros, numbers: Int64s
) -> None:
    """Write the best macro-actions [B, C, MAX_LENGTH] at the tables first <= i < last, and their numbers [B]."""
    for i in range(first, last):
        numbers[i] = write_best_macros(states[i], macros.shape[1], network, order, macros[i])


def write_best(i: int, states: NDArray[Any], network: NTupleNetwork, macro: Macro, best: Int64s) -> None:
    """Write the best position that each action [A] leads to, or -1, at one table; `macro` [MAX_LENGTH] is scratch."""
    values = network.values
    best[:] = -1
    for k in range(value_all(states[i], network, macro)):
        if values[k] > UNKNOWN:
            path_or_baseline(k, states[i], network.planning, macro)
            if best[macro[0]] < 0 or values[k] > values[best[macro[0]]]:
                best[macro[0]] = k


def write_features(k: int, planning: Any, entry: Int64s, value: Float64s) -> int:
    """Write the active features of position k into `entry`, each to be counted `value` [1] times; return their number.

    A terminal position has one, number 0, whose weight is 1: it is counted as often as there are points.
    """
    if is_terminal(planning, k):
        entry[0], value[0] = 0, final_margin(planning, k)
        return 1
    number = active_features(planning, k)
    value[0] = 1.0
    for j in range(number):
        entry[j] = planning.features[j]
    return number
