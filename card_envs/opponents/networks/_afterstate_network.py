"""Compiled inference for networks that score actions by their afterstates: microseconds each.

The first layer is linear, so its sum over the position is computed once and shared by all actions; each action adds
only the entries that it changes. Zeros are skipped in the first and the second layer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.buffers import FLOAT32, checked
from card_envs.engine.sums import Floats, add_rows
from card_envs.game import GREEDY, Game, State, bot_move
from card_envs.opponents.macros import Macro
from card_envs.opponents.networks._sparse import add_row
from card_envs.opponents.networks.afterstates import (
    AfterstateWorkspace,
    MoveRows,
    copy_all,
    new_afterstate_workspace,
    new_rows,
    write_afterstates,
    write_decision,
    write_lookahead,
    writer_of,
)

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


class NetworkScorer(NamedTuple):
    """A network, and the workspace of one thread to score moves in.

    Attributes:
        network: its weights.
        moves: workspace of `afterstates`.
        rows: the rows of one decision.
        base: [H1] the position's share of the first layer.
        first_layer: [H1]; second_layer: [H2] activations.
        active: [H1] indices of the active units of the first layer.
    """

    network: AfterstateNetwork
    moves: AfterstateWorkspace
    rows: MoveRows
    base: Floats
    first_layer: Floats
    second_layer: Floats
    active: NDArray[np.int32]


def move_scores(
    game: Game, states: NDArray[Any], network: AfterstateNetwork, scores: Floats, lookahead: bool = False
) -> None:
    """Write scores of the moves [B, A] in `afterstates` of checked states; other entries are left as they are.

    Raises ValueError if the network does not fit the game.
    """
    loop = specialize(score_tables, game, GREEDY, functions=((write_decision, writer_of(lookahead)),))
    loop(0, len(states), states, new_scorer(game, network), scores)


def new_scorer(game: Game, network: AfterstateNetwork) -> NetworkScorer:
    """Return a network with the workspace of one thread. Raises ValueError if it does not fit the game."""
    rules, moves = game.rules, new_afterstate_workspace(game)
    num_moves = len(moves.scale)
    inner, outer = np.shape(network.second) if np.ndim(network.second) == 2 else (1, 1)
    seen = rules.OBS_SIZE + rules.NUM_ACTIONS
    shapes = (seen, inner), (num_moves, inner), (inner,), (inner, outer), (outer,), (outer,), (2,)
    for name, weights, shape in zip(AfterstateNetwork._fields, network, shapes, strict=True):
        checked(f"network: {name}", weights, shape, FLOAT32, written=False)
    base, first_layer = np.zeros((2, inner), np.float32)
    second_layer, active = np.zeros(outer, np.float32), np.zeros(inner, np.int32)
    rows = new_rows(rules.NUM_ACTIONS, num_moves)
    return NetworkScorer(network, moves, rows, base, first_layer, second_layer, active)


def score_tables(first: int, last: int, states: NDArray[Any], scorer: NetworkScorer, scores: Floats) -> None:
    """Score the moves at the tables first <= i < last."""
    for i in range(first, last):
        baseline = bot_move(states[i])
        number = write_decision(states[i], baseline, scorer.moves, scorer.rows, 0)
        sum_position(scorer)
        for move in range(number):
            scores[i, scorer.rows.actions[move]] = score_row(move, baseline, scorer)


def network_moves(state: State, scorer: NetworkScorer, macro: Macro) -> int:
    """Write the action with the highest score of a network without lookahead; of equal ones, the first. Return 1."""
    baseline = bot_move(state)
    macro[0] = best_of(write_afterstates(state, baseline, scorer.moves, scorer.rows, 0), baseline, scorer)
    return 1


def lookahead_moves(state: State, scorer: NetworkScorer, macro: Macro) -> int:
    """Write the action with the highest score of a network with lookahead; of equal ones, the first. Return 1."""
    baseline = bot_move(state)
    macro[0] = best_of(write_lookahead(state, baseline, scorer.moves, scorer.rows, 0), baseline, scorer)
    return 1


def best_of(number: int, baseline: int, scorer: NetworkScorer) -> int:
    """Return the action of the row with the highest score of those written; of equal ones, the first."""
    sum_position(scorer)
    best, highest = baseline, ZERO
    for move in range(number):
        value = score_row(move, baseline, scorer)
        if move == 0 or value > highest:
            best, highest = scorer.rows.actions[move], value
    return best


def score_row(move: int, baseline: int, scorer: NetworkScorer) -> Any:
    """Return the score of a move whose row is written."""
    rows = scorer.rows
    return score(rows.starts[move], rows.starts[move + 1], rows.actions[move] == baseline, scorer)


def sum_position(scorer: NetworkScorer) -> None:
    """Compute the position's share of the first layer."""
    network, base, moves = scorer.network, scorer.base, scorer.moves
    copy_all(network.first, base)
    add_row(moves.before, network.seen, base)
    size = network.seen.shape[0] - moves.legal_now.shape[0]
    for action in range(moves.legal_now.shape[0]):
        if moves.legal_now[action]:
            weights = network.seen[size + action]
            for h in range(base.shape[0]):
                base[h] += weights[h]


def score(start: int, end: int, is_baseline: bool, scorer: NetworkScorer) -> Any:
    """Return the score of a move: its entries [start, end) are added to the position's share."""
    network, first_layer, second_layer, active = scorer.network, scorer.first_layer, scorer.second_layer, scorer.active
    copy_all(scorer.base, first_layer)
    add_rows(network.moves, scorer.rows.entry, scorer.rows.value, start, end, first_layer)
    number = 0
    for h in range(first_layer.shape[0]):
        value = first_layer[h]
        active[number] = h
        first_layer[number] = value
        number += value > ZERO
    copy_all(network.second_bias, second_layer)
    add_rows(network.second, active, first_layer, 0, number, second_layer)
    total = ZERO
    for j in range(second_layer.shape[0]):
        total += max(second_layer[j], ZERO) * network.last[j]
    total += network.ends[0]
    return total + network.ends[1] if is_baseline else total
