"""All positions that can be reached in a turn, for learned value tables: see `game.Planner`.

From each position, `greedy` plays on for both seats, the opponent's turn included, until the next card is revealed. The
position there has the features (`features.py`); if nothing will be revealed any more, it is the end of the game.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import noinline, rule
from card_envs.engine.rng import mix
from card_envs.engine.seen import Seen, forget, is_new, new_seen, trace
from card_envs.engine.sets import ONE, lowest
from card_envs.game import Int64s, State
from card_envs.games.russian_bank import bot, features, rules
from card_envs.games.russian_bank.features import THEIRS, TO_TURN, UNCOVERED, Marking
from card_envs.games.russian_bank.rules import ACTION, NUM_HOUSES, STATE, house_action

NUM_WEIGHTS = features.NUM_WEIGHTS
MOST_SETTLING = 512  # most actions of `greedy`

GOES_ON, OVER = -1, 4  # other kinds of positions: `greedy` plays on, or the deal is over


class PlannerWorkspace(NamedTuple):
    """The workspace of one thread.

    Attributes:
        positions: [M + 1] the positions reached, and one to play on; the first is the current one.
        settled: [M] the positions after `greedy` has played on.
        nexts: [M] what comes next at `positions`.
        kinds: [M] what comes next at `settled`.
        alike: [M] whether an earlier position settles to the same one.
        parents: [M] the position from which each was reached.
        actions: [M] the action that reached it.
        depths: [M] its number of actions.
        seen: hashes of positions.
        settled_seen: hashes of settled positions.
        seat: [1] the seat that plans.
        marks: indices of the active features of a position come first.
        marking: workspace for features.
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


def new_scratch(most: int) -> PlannerWorkspace:
    """Return a workspace for `most` positions."""
    nexts, kinds, parents, actions, depths = np.zeros((5, most), np.int64)
    return PlannerWorkspace(
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


# Not inlined, because they are called in many places.
play, greedy, legal_moves = noinline(rules.play), noinline(bot.greedy), noinline(rules.legal_moves)


@noinline
def key_of(state: State, what: int) -> np.uint64:
    """Return a hash of a position and of what comes next; it ignores the order of houses."""
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
def load(state: State, seat: int, scratch: PlannerWorkspace) -> None:
    scratch.positions[0] = state
    scratch.seat[0] = seat
    scratch.nexts[0] = GOES_ON
    scratch.alike[0] = False
    scratch.depths[0] = 0
    settle(scratch, 0)


@noinline
def settle(scratch: PlannerWorkspace, k: int) -> None:
    """Let `greedy` play on from a position and record the result."""
    scratch.settled[k] = scratch.positions[k]
    kind = int(scratch.nexts[k])
    if kind in (GOES_ON, THEIRS):
        kind = play_on(scratch.settled[k], scratch.seat[0])
    scratch.kinds[k] = kind


@noinline
def play_on(state: State, seat: int) -> int:
    """Let `greedy` play for both seats; return what comes next then, for a seat."""
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
def go_on(scratch: PlannerWorkspace, k: int, action: int, known: int) -> int:
    """Record the position after an action at position k; return the number of positions then."""
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
def expand(scratch: PlannerWorkspace, most: int, longest: int) -> int:
    positions, nexts, depths = scratch.positions, scratch.nexts, scratch.depths
    forget(scratch.seen)
    is_new(key_of(positions[0], GOES_ON), scratch.seen)
    known = 1
    k = -1
    while k < known - 1 < most - 1 and nexts[known - 1] == GOES_ON and depths[known - 1] < longest:
        k = known - 1  # the path of `greedy` first, whatever its length
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
def is_chance_next(scratch: PlannerWorkspace, k: int) -> bool:
    return scratch.kinds[k] < OVER and not scratch.alike[k]


@rule
def is_terminal(scratch: PlannerWorkspace, k: int) -> bool:
    return scratch.kinds[k] == OVER and not scratch.alike[k]


@rule
def final_margin(scratch: PlannerWorkspace, k: int) -> float:
    return float(rules.score_margin(scratch.settled[k], scratch.seat[0]))


@noinline
def active_features(scratch: PlannerWorkspace, k: int) -> int:
    return features.active_features(
        scratch.settled[k], scratch.seat[0], scratch.kinds[k], scratch.marking, scratch.features
    )


@noinline
def path_to(scratch: PlannerWorkspace, k: int, line: NDArray[np.int16]) -> int:
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
