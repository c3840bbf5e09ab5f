"""N-tuple networks: what a position is worth, from tables of weights, in compiled code.

The value of a position is a sum of weights, a few hundred of them, each for something that holds there (Lucas 2008; as
a player of 2048: Szubert & Jaśkowski 2014). A game with a `planner.py` says which weights count. Values are those of
positions just before something hidden shows, so that a stretch of moves is one decision: all that can be reached is
looked at, and the best of it is played without another look on the way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.sums import Floats
from card_envs.game import (
    Game,
    Int8s,
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
from card_envs.opponents.lines import LONGEST, NO_MOVE, Line, Lines

NOWHERE = -np.inf
NO_WEIGHTS = np.zeros(0, np.float32)  # no network


class NoScratch(NamedTuple):
    """Stands for a planner's scratch in games that have no planner."""

    features: Int64s


def planner_of(game: Game) -> Planner:
    """The game's planner. Raises ValueError where there is none."""
    if game.planner is None:
        raise ValueError(f"{game.name}: there is no planner for this game")
    return game.planner


def planning_scratch(game: Game, most: int) -> Any:
    """What one thread plans with, for so many positions."""
    return NoScratch(np.zeros(1, np.int64)) if game.planner is None else game.planner.new_scratch(most)


def value_at(k: int, weights: Floats, scratch: Any) -> float:
    """What position k is worth, if that is known: before something shows, or where nothing will."""
    return worth_at(k, weights, scratch) if is_terminal(scratch, k) or is_chance_next(scratch, k) else NOWHERE


def worth_at(k: int, weights: Floats, scratch: Any) -> float:
    """What position k is worth, or would be if something could show there."""
    return final_margin(scratch, k) if is_terminal(scratch, k) else sum_at(k, weights, scratch)


def sum_at(k: int, weights: Floats, scratch: Any) -> float:
    """The weights that count for position k."""
    value = 0.0
    for j in range(active_features(scratch, k)):
        value += weights[scratch.features[j]]
    return value


def value_all(state: State, weights: Floats, scratch: Any, values: NDArray[np.float64], line: Line) -> int:
    """Write what each position is worth that a move leads towards; how many positions there are. `line` is scratch."""
    load(state, state.seat, scratch)
    known = expand(scratch, values.shape[0], LONGEST - 1)
    for k in range(known):
        values[k] = value_at(k, weights, scratch)
    if path_to(scratch, 0, line) == 0:
        values[0] = NOWHERE
    if values[most_of(values, known)] == NOWHERE:
        values[known - 1] = sum_at(known - 1, weights, scratch)
    return known


def most_of(values: NDArray[np.float64], number: int) -> int:
    """Where the greatest of the first so many values is."""
    best = 0
    for k in range(number):
        if values[k] > values[best]:
            best = k
    return best


def way_to(k: int, state: State, scratch: Any, line: Line) -> int:
    """Write the moves to a position; how many they are. Where no move leads on, it is the one of `greedy`."""
    number = path_to(scratch, k, line)
    if number == 0:
        line[0] = bot_move(state)
        number = 1
    return number


def find_best_lines(
    first: int, last: int, states: NDArray[Any], weights: Floats, scratch: Any, values: NDArray[np.float64],
    lines: Lines, live: Int8s,
) -> None:  # fmt: skip
    """Write the lines of the tables first <= i < last that lead to the positions worth most, the best one first.

    Args:
        first, last: which tables.
        states: [B]; they stay as they are.
        weights: of the tables of values.
        scratch: to work with.
        values: [M] scratch.
        lines: [B, C, LONGEST] is written.
        live: [B, C] gets 1 for each line.
    """
    for i in range(first, last):
        known = value_all(states[i], weights, scratch, values, lines[i, 0])
        order = np.argsort(-values[:known], kind="mergesort")  # stable
        for c in range(lines.shape[1]):
            live[i, c] = c < known and values[order[c]] > NOWHERE
            if live[i, c]:
                number = way_to(order[c], states[i], scratch, lines[i, c])
                for step in range(number, lines.shape[2]):
                    lines[i, c, step] = NO_MOVE


def note_best(
    first: int, last: int, states: NDArray[Any], weights: Floats, scratch: Any, values: NDArray[np.float64],
    line: NDArray[np.int16], best: Int64s,
) -> None:  # fmt: skip
    """Enter the best position that each move [A] leads to, or -1, at one table; `line` [LONGEST] is scratch."""
    for i in range(first, last):
        best[:] = -1
        for k in range(value_all(states[i], weights, scratch, values, line)):
            if values[k] > NOWHERE:
                way_to(k, states[i], scratch, line)
                if best[line[0]] < 0 or values[k] > values[best[line[0]]]:
                    best[line[0]] = k


def note_marks(k: int, scratch: Any, entry: Int64s, value: NDArray[np.float64]) -> int:
    """Write which weights count for position k into `entry` and how much each does into `value` [1]; how many do."""
    if is_terminal(scratch, k):
        entry[0], value[0] = 0, final_margin(scratch, k)
        return 1
    number = active_features(scratch, k)
    value[0] = 1.0
    for j in range(number):
        entry[j] = scratch.features[j]
    return number
