"""All positions that can be reached before the next unknown card, for learned value tables: see `game.Planner`.

Positions are the solver's compact ones, so that thousands can be examined in a millisecond. They contain the order of
the stock, but only its size is used here; features (`features.py`) depend only on what the player sees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from card_envs.compiling import noinline, rule
from card_envs.engine.seen import Seen, forget, is_new, new_seen, trace
from card_envs.game import Int64s, State
from card_envs.games.big_ben import features
from card_envs.games.big_ben.features import FeatureMarking
from card_envs.games.big_ben.position import (
    INFO,
    MAX_MOVES,
    NODE,
    Int16s,
    Records,
    has_gap,
    key_of,
    list_moves,
    move_on,
    read_state,
)
from card_envs.games.big_ben.proof import moves_to_try
from card_envs.games.big_ben.rules import DEAL, PACK_SIZE

NUM_WEIGHTS = features.NUM_WEIGHTS


class NodeWorkspace(NamedTuple):
    """The workspace of one thread.

    Attributes:
        nodes: [M] the positions reached; the first is the current one.
        infos: [1] the deal.
        parents: [M] the position from which each was reached.
        actions: [M] the action that reached it.
        depths: [M] its number of actions.
        moves: [MAX_MOVES] of a position.
        seen: keys of positions. Keys ignore hops, because the shortest path has the fewest.
        marks: indices of the active features of a position come first.
        marking: workspace for features.
    """

    nodes: Records
    infos: Records
    parents: Int64s
    actions: Int16s
    depths: Int64s
    moves: Int16s
    seen: Seen
    features: Int64s
    marking: FeatureMarking


def new_scratch(most: int) -> NodeWorkspace:
    """Return a workspace for `most` positions."""
    parents, depths = np.zeros((2, most), np.int64)
    return NodeWorkspace(
        np.zeros(most, NODE),
        np.zeros(1, INFO),
        parents,
        np.zeros(most, np.int16),
        depths,
        np.zeros(MAX_MOVES, np.int16),
        new_seen(most),
        np.zeros(features.MAX_MARKS, np.int64),
        features.new_marking(),
    )


read = rule(read_state)


@rule
def load(state: State, seat: int, scratch: NodeWorkspace) -> None:
    read(state, scratch.nodes, scratch.infos)


@noinline
def expand(scratch: NodeWorkspace, most: int, longest: int) -> int:
    nodes, info, moves = scratch.nodes, scratch.infos[0], scratch.moves
    room = len(nodes) if info.order_known else most
    forget(scratch.seen)
    scratch.depths[0] = 0
    is_new(key_of(nodes[0], info), scratch.seen)
    known = 1
    k = 0
    while k < known and known < room:
        number = moves_to_try(nodes[k], info, moves) if scratch.depths[k] < longest else 0
        for j in range(number):
            if (moves[j] == DEAL and not info.order_known) or known == room:
                continue
            nodes[known] = nodes[k]
            move_on(nodes[known], info, int(moves[j]))
            if is_new(key_of(nodes[known], info), scratch.seen):
                scratch.parents[known] = k
                scratch.actions[known] = moves[j]
                scratch.depths[known] = scratch.depths[k] + 1
                known += 1
        k += 1
    return known


@rule
def is_terminal(scratch: NodeWorkspace, k: int) -> bool:
    return scratch.nodes[k].left == 0 or scratch.infos[0].order_known


@rule
def is_chance_next(scratch: NodeWorkspace, k: int) -> bool:
    node, info = scratch.nodes[k], scratch.infos[0]
    if is_terminal(scratch, k):
        return False
    if not info.when_stuck or has_gap(node):
        return True
    number = list_moves(node, info, scratch.moves)
    return number > 0 and scratch.moves[number - 1] == DEAL


@rule
def final_margin(scratch: NodeWorkspace, k: int) -> float:
    left = int(scratch.nodes[k].left)
    return float(PACK_SIZE - left if left > 0 else 2 * PACK_SIZE)


@noinline
def active_features(scratch: NodeWorkspace, k: int) -> int:
    return features.active_features(scratch.nodes[k], scratch.infos[0], scratch.marking, scratch.features)


@rule
def path_to(scratch: NodeWorkspace, k: int, line: Int16s) -> int:
    number = int(scratch.depths[k])
    trace(k, number, scratch.parents, scratch.actions, line)
    if is_chance_next(scratch, k):
        line[number] = DEAL
        number += 1
    return number
