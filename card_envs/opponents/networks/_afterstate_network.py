"""Compiled inference for networks that score actions or macro-actions by their afterstates: microseconds each.

The first layer is linear, so its sum over the position is computed once and shared by all actions; each action adds
only the entries that it changes. Zeros are skipped in the first and the second layer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine._buffers import FLOAT32, checked
from card_envs.engine._sums import Floats, add_rows
from card_envs.game import Game, Int8s, State, UInt64s, bot_move
from card_envs.opponents._macros import Macros, last_of
from card_envs.opponents.networks._afterstates import (
    ENDS_DEAL,
    GOES_ON,
    NO_SIGHT,
    PLAYER,
    MoveRows,
    Scratch,
    copy_all,
    draw_worlds,
    follow_macro,
    follow_mode,
    is_first_reached,
    load_decision,
    move_scale,
    new_rows,
    new_scratch,
    obs_size,
    write_decision,
    write_entry,
    write_flags,
    write_outcome,
)
from card_envs.opponents.networks._sparse import add_row

ZERO = np.float32(0)


class AfterstateNetwork(NamedTuple):
    """The weights of a network with two hidden layers.

    Attributes:
        seen: [D + A, H1] for the scaled observation and mask.
        moves: [M, H1] for the entries of `move_fields`.
        first: [H1] biases.
        second: [H1, H2].
        second_bias: [H2].
        last: [H2].
        ends: [2] bias of the output, and a bonus for the action that `greedy` would play.
    """

    seen: Floats
    moves: Floats
    first: Floats
    second: Floats
    second_bias: Floats
    last: Floats
    ends: Floats


class AfterstateScratch(NamedTuple):
    """The workspace of one thread.

    Attributes:
        scale: [M] of the entries of `move_fields`.
        moves: workspace of `afterstates`.
        rows: the rows of one decision.
        base: [H1] the position's share of the first layer.
        one: [H1]; two: [H2] the layers.
        active: [H1] indices of the active units of the first layer.
    """

    scale: Floats
    moves: Scratch
    rows: MoveRows
    base: Floats
    one: Floats
    two: Floats
    active: NDArray[np.int32]


def move_scores(
    game: Game, states: NDArray[Any], network: AfterstateNetwork, scores: Floats, lookahead: bool = False
) -> None:
    """Write scores of the moves [B, A] in `afterstates` of checked states; other entries are left as they are.

    Raises ValueError if the network does not fit the game.
    """
    scratch = checked_scratch(game, network)
    specialize(score_tables, game, PLAYER)(
        0, len(states), states, network, follow_mode(game, lookahead), scratch, scores
    )


def checked_scratch(game: Game, network: AfterstateNetwork) -> AfterstateScratch:
    """Return the workspace of one thread for a network. Raises ValueError if it does not fit the game."""
    rules, scale = game.rules, move_scale(game.rules)
    inner, outer = np.shape(network.second) if np.ndim(network.second) == 2 else (1, 1)
    seen, moves = rules.OBS_SIZE + rules.NUM_ACTIONS, len(scale)
    shapes = (seen, inner), (moves, inner), (inner,), (inner, outer), (outer,), (outer,), (2,)
    for name, weights, shape in zip(AfterstateNetwork._fields, network, shapes, strict=True):
        checked(f"network: {name}", weights, shape, FLOAT32, written=False)
    base, one = np.zeros((2, inner), np.float32)
    two, active = np.zeros(outer, np.float32), np.zeros(inner, np.int32)
    room = new_rows(rules.NUM_ACTIONS, moves)
    return AfterstateScratch(scale, new_scratch(game), room, base, one, two, active)


def score_tables(
    first: int,
    last: int,
    states: NDArray[Any],
    network: AfterstateNetwork,
    mode: int,
    scratch: AfterstateScratch,
    scores: Floats,
) -> None:
    """Score the moves at the tables first <= i < last."""
    for i in range(first, last):
        score_moves(states[i], bot_move(states[i]), network, mode, scratch, scores[i])


def score_moves(
    state: State, baseline: int, network: AfterstateNetwork, mode: int, scratch: AfterstateScratch, scores: Floats
) -> None:  # fmt: skip
    """Score the moves at a table; `baseline` is the action of `greedy`."""
    for move in range(load_moves(state, baseline, network, mode, scratch)):
        scores[scratch.rows.actions[move]] = score_row(move, baseline, network, scratch)


def best_move(state: State, network: AfterstateNetwork, mode: int, scratch: AfterstateScratch) -> int:
    """Return the legal action with the highest score; of equal ones, the first."""
    baseline = bot_move(state)
    best, highest = baseline, ZERO
    for move in range(load_moves(state, baseline, network, mode, scratch)):
        value = score_row(move, baseline, network, scratch)
        if move == 0 or value > highest:
            best, highest = scratch.rows.actions[move], value
    return best


def load_moves(state: State, baseline: int, network: AfterstateNetwork, mode: int, scratch: AfterstateScratch) -> int:
    """Write the rows of a decision's moves, and the position's share of the first layer; return how many moves."""
    number = write_decision(state, baseline, mode, scratch.scale, scratch.moves, 0, scratch.rows)
    sum_position(network, scratch)
    return number


def score_row(move: int, baseline: int, network: AfterstateNetwork, scratch: AfterstateScratch) -> Any:
    """Return the score of a move that `load_moves` has written."""
    rows = scratch.rows
    return score(network, rows.starts[move], rows.starts[move + 1], rows.actions[move] == baseline, scratch)


def score_macros(
    state: State, macros: Macros, number: int, network: AfterstateNetwork, mode: int, scratch: AfterstateScratch,
    reached: UInt64s, live: Int8s, scores: Floats,
) -> None:  # fmt: skip
    """Score the first `number` macro-actions of a table; the first is the baseline.

    Macro-actions with the same afterstate are merged: only the first stays live.

    Args:
        state: not modified.
        macros: [C, L].
        number: of macro-actions.
        network: one with lookahead.
        mode: how far actions are followed.
        scratch: of this thread.
        reached: [C] scratch.
        live: [C] set to 0 for those merged into another.
        scores: [C] written where live.
    """
    moves, entry, value = scratch.moves, scratch.rows.entry, scratch.rows.value
    num_actions = moves.legal_now.shape[0]
    size = obs_size(scratch.scale, moves)
    load_decision(state, size, moves)
    draw_worlds(state.seat, moves)
    sum_position(network, scratch)
    different = 0
    for c in range(number):
        there, mark = follow_macro(state, macros[c], mode, size, moves)
        if not is_first_reached(there, reached, different):
            live[c] = 0
            continue
        different += 1
        ends_deal = mark == ENDS_DEAL
        found = write_outcome(state, macros[c], ends_deal, mode, scratch.scale, moves, entry, value, 0)
        if there == NO_SIGHT:
            found = write_entry(size + last_of(macros[c]), entry, value, found)
        found = write_flags(mark == GOES_ON, ends_deal, c == 0, size + 2 * num_actions, entry, value, found)
        scores[c] = score(network, 0, found, c == 0, scratch)


def sum_position(network: AfterstateNetwork, scratch: AfterstateScratch) -> None:
    """Compute the position's share of the first layer."""
    base, moves = scratch.base, scratch.moves
    copy_all(network.first, base)
    add_row(moves.before, network.seen, base)
    size = network.seen.shape[0] - moves.legal_now.shape[0]
    for action in range(moves.legal_now.shape[0]):
        if moves.legal_now[action]:
            weights = network.seen[size + action]
            for h in range(base.shape[0]):
                base[h] += weights[h]


def score(network: AfterstateNetwork, start: int, end: int, is_baseline: bool, scratch: AfterstateScratch) -> Any:
    """Return the score of a move: its entries [start, end) are added to the position's share."""
    one, two, active = scratch.one, scratch.two, scratch.active
    copy_all(scratch.base, one)
    add_rows(network.moves, scratch.rows.entry, scratch.rows.value, start, end, one)
    number = 0
    for h in range(one.shape[0]):
        value = one[h]
        active[number] = h
        one[number] = value
        number += value > ZERO
    copy_all(network.second_bias, two)
    add_rows(network.second, active, one, 0, number, two)
    total = ZERO
    for j in range(two.shape[0]):
        total += max(two[j], ZERO) * network.last[j]
    total += network.ends[0]
    return total + network.ends[1] if is_baseline else total
