"""What can be reached before the next deal, for players that value positions by learned tables: see `game.Planner`.

Positions are the solver's compact ones, so that thousands of them are looked at in a millisecond. The stock is among
them as it lies, but no more is made of it than `show` does; tables (`marks.py`) see what the player sees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from card_envs.engine.jit import apart, rule
from card_envs.game import Int64s, State, UInt64s
from card_envs.games.big_ben import marks
from card_envs.games.big_ben.marks import Marking
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

NUM_WEIGHTS = marks.NUM_WEIGHTS


class Scratch(NamedTuple):
    """What one thread plans with.

    Attributes:
        nodes: [M] the positions that were reached; the first is where the player stands.
        infos: [1] the deal.
        parents: [M] from which position each was reached.
        actions: [M] by which move.
        depths: [M] after how many.
        moves: [MAX_MOVES] of a position.
        seen: [a power of two] keys of positions.
        entered: [the same] when each was: keys of an earlier time are forgotten.
        clock: [1] that time.
        marks: which weights count for a position, in the first of these.
        marking: what that is worked out with.
    """

    nodes: Records
    infos: Records
    parents: Int64s
    actions: Int16s
    depths: Int64s
    moves: Int16s
    seen: UInt64s
    entered: Int64s
    clock: Int64s
    marks: Int64s
    marking: Marking


def new_scratch(most: int) -> Scratch:
    """For so many positions."""
    slots = 1 << (2 * most).bit_length()
    parents, depths = np.zeros((2, most), np.int64)
    return Scratch(
        np.zeros(most, NODE),
        np.zeros(1, INFO),
        parents,
        np.zeros(most, np.int16),
        depths,
        np.zeros(MAX_MOVES, np.int16),
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.int64),
        np.zeros(1, np.int64),
        np.zeros(marks.MAX_MARKS, np.int64),
        marks.new_marking(),
    )


read = rule(read_state)


@rule
def enter(state: State, scratch: Scratch) -> None:
    read(state, scratch.nodes, scratch.infos)


@rule
def is_new(scratch: Scratch, k: int) -> bool:
    """Note a position; whether it was not reached before. Hops don't count: the shortest way has the fewest."""
    slots = len(scratch.seen) - 1
    key = key_of(scratch.nodes[k], scratch.infos[0])
    now = scratch.clock[0]
    slot = np.int64(key & np.uint64(slots))
    while scratch.entered[slot] == now:
        if scratch.seen[slot] == key:
            return False
        slot = (slot + 1) & slots
    scratch.entered[slot] = now
    scratch.seen[slot] = key
    return True


@apart
def reach(scratch: Scratch, most: int, longest: int) -> int:
    nodes, info, moves = scratch.nodes, scratch.infos[0], scratch.moves
    room = len(nodes) if nodes[0].dealt == info.in_deck else most
    scratch.clock[0] += 1
    scratch.depths[0] = 0
    is_new(scratch, 0)
    known = 1
    k = 0
    while k < known and known < room:
        number = moves_to_try(nodes[k], info, moves) if scratch.depths[k] < longest else 0
        for j in range(number):
            if moves[j] == DEAL or known == room:
                continue
            nodes[known] = nodes[k]
            move_on(nodes[known], info, int(moves[j]))
            if is_new(scratch, known):
                scratch.parents[known] = k
                scratch.actions[known] = moves[j]
                scratch.depths[known] = scratch.depths[k] + 1
                known += 1
        k += 1
    return known


@rule
def is_final(scratch: Scratch, k: int) -> bool:
    return scratch.nodes[k].left == 0 or scratch.nodes[k].dealt == scratch.infos[0].in_deck


@rule
def may_show(scratch: Scratch, k: int) -> bool:
    node, info = scratch.nodes[k], scratch.infos[0]
    if is_final(scratch, k):
        return False
    if not info.when_stuck or has_gap(node):
        return True
    number = list_moves(node, info, scratch.moves)
    return number > 0 and scratch.moves[number - 1] == DEAL


@rule
def points(scratch: Scratch, k: int) -> float:
    left = int(scratch.nodes[k].left)
    return float(PACK_SIZE - left if left > 0 else 2 * PACK_SIZE)


@apart
def mark(scratch: Scratch, k: int) -> int:
    return marks.mark(scratch.nodes[k], scratch.infos[0], scratch.marking, scratch.marks)


@rule
def show(scratch: Scratch, k: int) -> None:
    shows = may_show(scratch, k)
    scratch.nodes[0] = scratch.nodes[k]
    if shows:
        move_on(scratch.nodes[0], scratch.infos[0], DEAL)


@rule
def way(scratch: Scratch, k: int, line: Int16s) -> int:
    depth = int(scratch.depths[k])
    number = depth
    if may_show(scratch, k):
        line[depth] = DEAL
        number += 1
    while depth > 0:
        depth -= 1
        line[depth] = scratch.actions[k]
        k = int(scratch.parents[k])
    return number
