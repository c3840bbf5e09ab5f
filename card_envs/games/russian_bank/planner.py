"""What can be reached in a stretch of own moves, for players that learn what positions are worth: see `game.Planner`.

A position is worth what becomes of it where `greedy` plays on for both, the opponent's turn included, until the next
card shows: there, tables (`features.py`) say what counts. Where nothing will show any more that is the end of the game.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.jit import noinline, rule
from card_envs.engine.rng import mix
from card_envs.engine.seen import Seen, forget, is_new, new_seen, trace
from card_envs.engine.sets import ONE, lowest
from card_envs.game import Int64s, State
from card_envs.games.russian_bank import bot, features, rules
from card_envs.games.russian_bank.features import THEIRS, TO_TURN, UNCOVERED, Marking
from card_envs.games.russian_bank.rules import ACTION, NUM_HOUSES, STATE, house_action

NUM_WEIGHTS = features.NUM_WEIGHTS
MOST_SETTLING = 512  # moves of `greedy`

GOES_ON, OVER = -1, 4  # what else comes next at a position: `greedy` goes on, or the deal is over


class Scratch(NamedTuple):
    """What one thread plans with.

    Attributes:
        positions: [M + 1] that were reached, and room to play on; the first is where the seat stands.
        settled: [M] what becomes of them.
        nexts: [M] what comes next at positions.
        kinds: [M] what does at what becomes of them.
        alike: [M] whether an earlier one comes to the same.
        parents: [M] from which position each was reached.
        actions: [M] by which move.
        depths: [M] after how many.
        seen: positions.
        settled_seen: what became of them.
        seat: [1] whose positions they are.
        marks: which weights count for a position, in the first of these.
        marking: what that is worked out with.
    """

    positions: NDArray[Any]
    settled: NDArray[Any]
    nexts: Int64s
    kinds: Int64s
    alike: NDArray[np.bool_]
    parents: Int64s
    actions: Int64s
    depths: Int64s
    seen: Seen
    settled_seen: Seen
    seat: Int64s
    features: Int64s
    marking: Marking


def new_scratch(most: int) -> Scratch:
    """For so many positions."""
    nexts, kinds, parents, actions, depths = np.zeros((5, most), np.int64)
    return Scratch(
        np.zeros(most + 1, STATE),
        np.zeros(most, STATE),
        nexts,
        kinds,
        np.zeros(most, np.bool_),
        parents,
        actions,
        depths,
        new_seen(most),
        new_seen(most),
        np.zeros(1, np.int64),
        np.zeros(features.MAX_MARKS, np.int64),
        features.new_marking(),
    )


# Called, not inlined: the functions below name them often.
play, greedy, legal_moves = noinline(rules.play), noinline(bot.greedy), noinline(rules.legal_moves)


@noinline
def key_of(state: State, what: int) -> np.uint64:
    """Return a hash of a position that is alike where houses have changed places, and of what comes next there."""
    key = np.uint64(what + 1)
    for house in range(NUM_HOUSES):
        key += mix(state.houses[house])
    key = mix(key)
    for pile in range(8):
        key = key << np.uint64(4) | key >> np.uint64(60)
        key ^= np.uint64(state.foundations[pile])
    key = mix(key)
    for player in range(2):
        reserve_size, waste_size = int(state.reserve_sizes[player]), int(state.waste_sizes[player])
        sizes = (reserve_size << 7 | waste_size) << 7 | int(state.hand_sizes[player])
        tops = int(state.reserves[player, reserve_size]) << 6 | int(state.wastes[player, waste_size])
        key = mix(key ^ np.uint64(sizes << 12 | tops))
    return mix(key ^ np.uint64(state.turned))


@noinline
def load(state: State, seat: int, scratch: Scratch) -> None:
    scratch.positions[0] = state
    scratch.seat[0] = seat
    scratch.nexts[0] = GOES_ON
    scratch.alike[0] = False
    scratch.depths[0] = 0
    settle(scratch, 0)


@noinline
def settle(scratch: Scratch, k: int) -> None:
    """Find out what becomes of a position."""
    scratch.settled[k] = scratch.positions[k]
    kind = int(scratch.nexts[k])
    if kind in (GOES_ON, THEIRS):
        kind = play_on(scratch.settled[k], scratch.seat[0])
    scratch.kinds[k] = kind


@noinline
def play_on(state: State, seat: int) -> int:
    """`greedy` plays on for both; returns what comes next then, for a seat."""
    kind = TO_TURN
    for _ in range(MOST_SETTLING):
        kind = TO_TURN if state.seat == seat else THEIRS + TO_TURN
        action = greedy(state)
        shows = rules.reveals(state, action)
        if shows and action == ACTION.advance:
            return kind
        play(state, action)
        if state.needs_deal:
            return OVER
        if shows:
            return kind + UNCOVERED
    return kind


@noinline
def go_on(scratch: Scratch, k: int, action: int, known: int) -> int:
    """Note what a move leads to from position k; returns how many positions are known then."""
    positions, nexts = scratch.positions, scratch.nexts
    shows = rules.reveals(positions[k], action)
    if shows and action == ACTION.advance:
        nexts[k] = TO_TURN
        return known
    positions[known] = positions[k]
    play(positions[known], action)
    if positions[known].needs_deal:
        what = OVER
    elif shows:
        what = UNCOVERED
    else:
        what = GOES_ON if positions[known].seat == scratch.seat[0] else THEIRS
    if not is_new(key_of(positions[known], what), scratch.seen):
        return known
    nexts[known] = what
    scratch.parents[known] = k
    scratch.actions[known] = action
    scratch.depths[known] = scratch.depths[k] + 1
    return known + 1


@noinline
def expand(scratch: Scratch, most: int, longest: int) -> int:
    positions, nexts, depths = scratch.positions, scratch.nexts, scratch.depths
    forget(scratch.seen)
    is_new(key_of(positions[0], GOES_ON), scratch.seen)
    known = 1
    k = -1
    while k < known - 1 < most - 1 and nexts[known - 1] == GOES_ON and depths[known - 1] < longest:
        k = known - 1  # `greedy`'s own line first, however long
        known = go_on(scratch, k, greedy(positions[k]), known)
    k = 0
    while k < known < most:
        if nexts[k] <= TO_TURN and depths[k] < longest:
            moves, pairs = legal_moves(positions[k])
            while moves and known < most:
                known = go_on(scratch, k, lowest(moves), known)
                moves &= moves - ONE
            while pairs and known < most:
                known = go_on(scratch, k, house_action(lowest(pairs)), known)
                pairs &= pairs - ONE
        k += 1
    forget(scratch.settled_seen)
    for k in range(known):
        settle(scratch, k)
        scratch.alike[k] = not is_new(key_of(scratch.settled[k], scratch.kinds[k]), scratch.settled_seen)
    return known


@rule
def is_chance_next(scratch: Scratch, k: int) -> bool:
    return scratch.kinds[k] < OVER and not scratch.alike[k]


@rule
def is_terminal(scratch: Scratch, k: int) -> bool:
    return scratch.kinds[k] == OVER and not scratch.alike[k]


@rule
def final_margin(scratch: Scratch, k: int) -> float:
    return float(rules.score_margin(scratch.settled[k], scratch.seat[0]))


@noinline
def active_features(scratch: Scratch, k: int) -> int:
    return features.active_features(
        scratch.settled[k], scratch.seat[0], scratch.kinds[k], scratch.marking, scratch.features
    )


@noinline
def path_to(scratch: Scratch, k: int, line: NDArray[np.int16]) -> int:
    number = int(scratch.depths[k])
    trace(k, number, scratch.parents, scratch.actions, line)
    if scratch.nexts[k] == TO_TURN:
        line[number] = ACTION.advance
        return number + 1
    going = scratch.nexts[k] == GOES_ON
    rest = len(scratch.positions) - 1
    scratch.positions[rest] = scratch.positions[k]
    while going and number < len(line):
        action = greedy(scratch.positions[rest])
        line[number] = action
        number += 1
        going = not rules.reveals(scratch.positions[rest], action)
        play(scratch.positions[rest], action)
        going &= not scratch.positions[rest].needs_deal and scratch.positions[rest].seat == scratch.seat[0]
    return number
