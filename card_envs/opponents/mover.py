"""Networks that score moves by what they change, in compiled code: a few microseconds a decision.

What the position gives to the first layer is summed once for all its moves; each adds what it changes. Only weights of
what is not zero are added up, in the first layer and in the second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import FLOAT32, checked
from card_envs.engine.compile import bind
from card_envs.engine.sums import Floats, add_rows
from card_envs.game import Game, State, bot_move
from card_envs.opponents.afterstates import (
    PLAYER,
    Noted,
    Scratch,
    copy_all,
    move_scale,
    new_scratch,
    note_decision,
    room_for,
    settling,
)
from card_envs.opponents.sparse import add_row

ZERO = np.float32(0)


class Mover(NamedTuple):
    """The weights of a network with two hidden layers.

    Attributes:
        seen: [D + A, H1] of the observation and the mask, scaled.
        moves: [M, H1] of what a move changes.
        first: [H1] biases.
        second: [H1, H2].
        second_bias: [H2].
        last: [H2].
        ends: [2] its bias, and what is added to the score of `greedy`'s choice.
    """

    seen: Floats
    moves: Floats
    first: Floats
    second: Floats
    second_bias: Floats
    last: Floats
    ends: Floats


class MoverScratch(NamedTuple):
    """What one thread works with.

    Attributes:
        scale: [M] of what a move changes.
        look: at the moves.
        noted: room for the moves of one decision.
        base: [H1] what the position gives to the first layer.
        one: [H1]; two: [H2] the layers.
        active: [H1] which units of the first layer are.
    """

    scale: Floats
    look: Scratch
    noted: Noted
    base: Floats
    one: Floats
    two: Floats
    active: NDArray[np.int32]


def move_scores(game: Game, states: NDArray[Any], mover: Mover, scores: Floats, settled: bool = False) -> None:
    """Score the moves [B, A] that `afterstates` shows of checked states; the other entries stay as they are.

    Raises ValueError where the network does not fit the game.
    """
    rules, scale = game.rules, move_scale(game.rules)
    inner, outer = np.shape(mover.second) if np.ndim(mover.second) == 2 else (1, 1)
    seen, moves = rules.OBS_SIZE + rules.NUM_ACTIONS, len(scale)
    shapes = (seen, inner), (moves, inner), (inner,), (inner, outer), (outer,), (outer,), (2,)
    for name, weights, shape in zip(Mover._fields, mover, shapes):
        checked(f"network: {name}", weights, shape, FLOAT32, written=False)
    base, one = np.zeros((2, inner), np.float32)
    two, active = np.zeros(outer, np.float32), np.zeros(inner, np.int32)
    room = room_for(rules.NUM_ACTIONS, moves)
    scratch = MoverScratch(scale, new_scratch(game), room, base, one, two, active)
    bind(score_tables, game, PLAYER)(0, len(states), states, mover, settling(game, settled), scratch, scores)


def score_tables(
    first: int, last: int, states: NDArray[Any], mover: Mover, how_far: int, scratch: MoverScratch, scores: Floats
) -> None:
    """Score the moves at some tables."""
    for i in range(first, last):
        score_moves(states[i], bot_move(states[i]), mover, how_far, scratch, scores[i])


def score_moves(
    state: State, own: int, mover: Mover, how_far: int, scratch: MoverScratch, scores: Floats
) -> None:  # fmt: skip
    """Score the moves at a table; `own` is that of `greedy`."""
    scale, look, noted, base, one, two, active = scratch
    number = note_decision(state, own, how_far, scale, look, 0, noted)
    copy_all(mover.first, base)
    add_row(look.before, mover.seen, base)
    size = mover.seen.shape[0] - look.legal_now.shape[0]
    for action in range(look.legal_now.shape[0]):
        if look.legal_now[action]:
            weights = mover.seen[size + action]
            for h in range(base.shape[0]):
                base[h] += weights[h]
    for move in range(number):
        copy_all(base, one)
        add_rows(mover.moves, noted.entry, noted.value, noted.starts[move], noted.starts[move + 1], one)
        value = mover.ends[0] + score(mover, one, two, active)
        action = noted.actions[move]
        scores[action] = value + mover.ends[1] if action == own else value


def score(mover: Mover, one: Floats, two: Floats, active: NDArray[np.int32]) -> Any:
    """What the layers after the first make of its sums, which are lost."""
    number = 0
    for h in range(one.shape[0]):
        value = one[h]
        active[number] = h
        one[number] = value
        number += value > ZERO
    copy_all(mover.second_bias, two)
    add_rows(mover.second, active, one, 0, number, two)
    total = ZERO
    for j in range(two.shape[0]):
        total += max(two[j], ZERO) * mover.last[j]
    return total
