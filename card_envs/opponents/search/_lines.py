"""Lines: all that a seat does before something hidden shows or its turn ends, as macro-actions from a given position.

A judge values a move by the best line that begins with it. Where another line can still be reached after a move, the
move is worth as much, by the rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import called
from card_envs.engine.seen import is_new
from card_envs.game import Game, Int8s, State, legal, observe, play, reveals, score_margin
from card_envs.opponents.macros import MAX_LENGTH, NO_ACTION, Macro, Macros, observation_hash
from card_envs.opponents.search._budget import ArmStats, Float64s
from card_envs.opponents.search._candidates import MacroExpansion, find_macros, new_expansion

MOST_POSITIONS = 1024  # positions that are tried to get to a line


class LineScratch(NamedTuple):
    """Workspace for the lines of one decision.

    Attributes:
        states: [2] the position after a move, and workspace to play lines out.
        expansion: positions that can be reached, and macros: [C, L] how.
        legal: [A] actions after the move.
    """

    states: NDArray[Any]
    expansion: MacroExpansion
    macros: Macros
    legal: Int8s


def new_line_scratch(game: Game) -> LineScratch:
    """Allocate the workspace of one decision."""
    most = max(MOST_POSITIONS, 2 * game.rules.NUM_ACTIONS)
    macros = np.zeros((most, MAX_LENGTH), np.int16)
    states, mask = np.zeros(2, game.rules.STATE), np.zeros(game.rules.NUM_ACTIONS, np.int8)
    return LineScratch(states, new_expansion(game, most, True), macros, mask)


def key_of_position(states: NDArray[Any], scratch: LineScratch) -> np.uint64:
    """Return a hash of what the seat to move sees in states[0]; the worlds of its search are keyed by it."""
    return hash_seen(states[0], states[0].seat, scratch)


@called
def hash_seen(state: State, seat: int, scratch: LineScratch) -> np.uint64:
    """Return a hash of what a seat sees."""
    expansion = scratch.expansion
    observe(state, seat, expansion.obs[: expansion.size])
    return observation_hash(expansion.obs)


def moves_on(states: NDArray[Any], action: int, scratch: LineScratch) -> bool:
    """Play an action of states[0] in scratch.states[0]; return whether its line can go on."""
    after = scratch.states[0]
    scratch.states[0] = states[0]
    seat = after.seat
    if reveals(after, action):
        return False
    play(after, action)
    return not after.needs_deal and after.seat == seat


def joins(states: NDArray[Any], line: Macro, scratch: LineScratch) -> bool:
    """Return whether a seat can still get to a line from states[0] after it played something else.

    Args:
        states: [1] the position before.
        line: a line that can be joined at any of its positions, the first and the last included.
        scratch: `moves_on` has left the position after the other action in `states[0]`.
    """
    after, expansion, seat = scratch.states[0], scratch.expansion, states[0].seat
    legal(after, scratch.legal)
    first = 0
    while scratch.legal[first] == 0:
        first += 1
    find_macros(after, first, scratch.legal, scratch.macros.shape[0], expansion, scratch.macros)
    scratch.states[1] = states[0]
    along = scratch.states[1]
    for step in range(line.shape[0] + 1):
        if not is_new(hash_seen(along, seat, scratch), expansion.seen):
            return True
        if step == line.shape[0] or line[step] == NO_ACTION or reveals(along, line[step]):
            return False
        play(along, line[step])
    return False


def write_cost(states: NDArray[Any], stats: ArmStats, best: int, played: int, cost: Float64s) -> None:
    """Write what a move cost, and the standard error of that.

    What did not happen in the worlds that were drawn may still happen. So the error counts one world more, in which the
    moves differ by as much as the rest of the deal brings.

    Args:
        states: [1] the position before the moves.
        stats: [1, A] statistics of two lines, the first the baseline.
        best, played: the actions that they begin with.
        cost: [2] written: cost and standard error.
    """
    now = float(score_margin(states[0], states[0].seat))
    n = stats.worlds[0, played]
    mean = stats.advantages[0, played] / n
    variance = (stats.advantage_squares[0, played] / n - mean * mean) * n / (n - 1)
    one_more = 1.0
    for action in (best, played):
        # The mean square of what the rest brings: of (result - now).
        brought = (stats.squares[0, action] - 2 * now * stats.sums[0, action]) / n + now * now
        one_more = max(one_more, brought)
    cost[0] = -mean
    cost[1] = np.sqrt(max(variance, 0.0) / n + one_more / (n * n))
