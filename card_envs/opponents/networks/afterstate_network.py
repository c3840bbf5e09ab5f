"""Networks that score moves, or lines of moves, by what they change, in compiled code: microseconds each.

What the position gives to the first layer is summed once for all its moves; each adds what it changes. Only weights of
what is not zero are added up, in the first layer and in the second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import FLOAT32, checked
from card_envs.engine.compile import specialize
from card_envs.engine.sums import Floats, add_rows
from card_envs.game import Game, Int8s, State, UInt64s, bot_move
from card_envs.opponents.lines import Lines, last_of
from card_envs.opponents.networks.afterstates import (
    ENDS_DEAL,
    GOES_ON,
    NO_SIGHT,
    PLAYER,
    Noted,
    Scratch,
    copy_all,
    draw_ahead,
    enter_reached,
    look_at,
    move_scale,
    new_scratch,
    note_decision,
    note_entry,
    note_flags,
    note_outcome,
    obs_size,
    room_for,
    settle,
    settling,
)
from card_envs.opponents.networks.sparse import add_row

ZERO = np.float32(0)


class AfterstateNetwork(NamedTuple):
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


class AfterstateScratch(NamedTuple):
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


def move_scores(
    game: Game, states: NDArray[Any], mover: AfterstateNetwork, scores: Floats, lookahead: bool = False
) -> None:
    """Score the moves [B, A] that `afterstates` shows of checked states; the other entries stay as they are.

    Raises ValueError where the network does not fit the game.
    """
    scratch = checked_scratch(game, mover)
    specialize(score_tables, game, PLAYER)(0, len(states), states, mover, settling(game, lookahead), scratch, scores)


def line_scores(game: Game, states: NDArray[Any], lines: Lines, live: Int8s, mover: AfterstateNetwork) -> Floats:
    """[B, C] scores of lines by where they settle; of lines that come to the same, the first alone stays live.

    Args:
        game: what is played.
        states: [B] checked.
        lines: [B, C, L]; the first is the one that `greedy` would play.
        live: [B, C] 1 for the first ones, which are lines.
        mover: a network that reads settled moves.

    Raises:
        ValueError: the network does not fit the game.
    """
    scratch = checked_scratch(game, mover)
    scores, reached = np.zeros(live.shape, np.float32), np.zeros(live.shape[1], np.uint64)
    specialize(score_line_tables, game, PLAYER)(
        0, len(states), states, lines, mover, settling(game, True), scratch, reached, live, scores
    )
    return scores


def checked_scratch(game: Game, mover: AfterstateNetwork) -> AfterstateScratch:
    """What one thread needs for a network. Raises ValueError where that does not fit the game."""
    rules, scale = game.rules, move_scale(game.rules)
    inner, outer = np.shape(mover.second) if np.ndim(mover.second) == 2 else (1, 1)
    seen, moves = rules.OBS_SIZE + rules.NUM_ACTIONS, len(scale)
    shapes = (seen, inner), (moves, inner), (inner,), (inner, outer), (outer,), (outer,), (2,)
    for name, weights, shape in zip(AfterstateNetwork._fields, mover, shapes, strict=True):
        checked(f"network: {name}", weights, shape, FLOAT32, written=False)
    base, one = np.zeros((2, inner), np.float32)
    two, active = np.zeros(outer, np.float32), np.zeros(inner, np.int32)
    room = room_for(rules.NUM_ACTIONS, moves)
    return AfterstateScratch(scale, new_scratch(game), room, base, one, two, active)


def score_tables(
    first: int,
    last: int,
    states: NDArray[Any],
    mover: AfterstateNetwork,
    how_far: int,
    scratch: AfterstateScratch,
    scores: Floats,
) -> None:
    """Score the moves at some tables."""
    for i in range(first, last):
        score_moves(states[i], bot_move(states[i]), mover, how_far, scratch, scores[i])


def score_moves(
    state: State, own: int, mover: AfterstateNetwork, how_far: int, scratch: AfterstateScratch, scores: Floats
) -> None:  # fmt: skip
    """Score the moves at a table; `own` is that of `greedy`."""
    noted = scratch.noted
    number = note_decision(state, own, how_far, scratch.scale, scratch.look, 0, noted)
    sum_position(mover, scratch)
    for move in range(number):
        action = noted.actions[move]
        scores[action] = score(mover, noted.starts[move], noted.starts[move + 1], action == own, scratch)


def score_line_tables(
    first: int, last: int, states: NDArray[Any], lines: Lines, mover: AfterstateNetwork, how_far: int,
    scratch: AfterstateScratch, reached: UInt64s, live: Int8s, scores: Floats,
) -> None:  # fmt: skip
    """Score the lines at some tables; `reached` [C] is scratch."""
    for i in range(first, last):
        score_lines(states[i], lines[i], mover, how_far, scratch, reached, live[i], scores[i])


def score_lines(
    state: State, lines: Lines, mover: AfterstateNetwork, how_far: int,
    scratch: AfterstateScratch, reached: UInt64s, live: Int8s, scores: Floats,
) -> None:  # fmt: skip
    """Score the lines at a table."""
    look, entry, value = scratch.look, scratch.noted.entry, scratch.noted.value
    num_actions = look.legal_now.shape[0]
    size = obs_size(scratch.scale, look)
    look_at(state, size, look)
    draw_ahead(state.seat, look)
    sum_position(mover, scratch)
    number = 0
    for c in range(live.shape[0]):
        if live[c] == 0:
            break
        line = lines[c]
        there, mark = settle(state, line, how_far, size, look)
        if not enter_reached(there, reached, number):
            live[c] = 0
            continue
        number += 1
        ends_deal = mark == ENDS_DEAL
        found = note_outcome(state, line, ends_deal, how_far, scratch.scale, look, entry, value, 0)
        if there == NO_SIGHT:
            found = note_entry(size + last_of(line), entry, value, found)
        found = note_flags(mark == GOES_ON, ends_deal, c == 0, size + 2 * num_actions, entry, value, found)
        scores[c] = score(mover, 0, found, c == 0, scratch)


def sum_position(mover: AfterstateNetwork, scratch: AfterstateScratch) -> None:
    """What the position that was looked at gives to the first layer."""
    base, look = scratch.base, scratch.look
    copy_all(mover.first, base)
    add_row(look.before, mover.seen, base)
    size = mover.seen.shape[0] - look.legal_now.shape[0]
    for action in range(look.legal_now.shape[0]):
        if look.legal_now[action]:
            weights = mover.seen[size + action]
            for h in range(base.shape[0]):
                base[h] += weights[h]


def score(mover: AfterstateNetwork, start: int, end: int, is_own: bool, scratch: AfterstateScratch) -> Any:
    """The score of what these entries change, added to what the position gives."""
    one, two, active = scratch.one, scratch.two, scratch.active
    copy_all(scratch.base, one)
    add_rows(mover.moves, scratch.noted.entry, scratch.noted.value, start, end, one)
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
    total += mover.ends[0]
    return total + mover.ends[1] if is_own else total
