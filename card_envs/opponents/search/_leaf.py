"""Leaf: where a playout stops. Either at the end of the deal, or at a chance event, with an n-tuple network's value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.game import State, bot_move, load, play, score_margin
from card_envs.opponents.networks._ntuples import worth_at

RESOLUTION = 64.0  # results are rounded to whole multiples of 1/64 point, so that sums of them are exact
MAX_ACTIONS = 512  # of a playout before the network is asked at the latest


class Leaf(NamedTuple):
    """An n-tuple network that values the position where a playout stops.

    Attributes:
        weights: [W] of the network.
        after: the playout stops before this many hidden cards or deals have shown (1: before the first).
        playout: share of the result that comes from the scripted player's play from there to the end of the deal.
    """

    weights: NDArray[np.float32]
    after: int
    playout: float


def value_of(state: State, seat: int, leaf: Leaf | None, planning: Any) -> tuple[int, float]:
    """Return how many actions were still played, and the result for a seat: points at the end of the deal."""
    moves = 0
    result = float(score_margin(state, seat))
    if leaf is not None:
        if not state.needs_deal:
            load(state, seat, planning)
            result = worth_at(0, leaf.weights, planning)
            if leaf.playout > 0:
                moves = play_to_end(state)
                result += leaf.playout * (float(score_margin(state, seat)) - result)
        result = np.rint(RESOLUTION * result) / RESOLUTION
    return moves, result


def play_to_end(state: State) -> int:
    """Let the scripted player finish the deal for all seats; return how many actions it played."""
    moves = 0
    while not state.needs_deal:
        play(state, bot_move(state))
        moves += 1
    return moves
