"""Russian Bank's scripted players, compiled. Both use only what the seat to move may know."""

from __future__ import annotations

from typing import Any

import numpy as np

from card_envs.engine.jit import rule
from card_envs.engine.sets import EMPTY, ONE, below_card, bit, count, lowest
from card_envs.game import State
from card_envs.games.russian_bank.rules import (
    HAND_HOUSE,
    HAND_OR,
    HOUSE_OR,
    KEYS,
    NO_CARD,
    NO_KEY,
    NUM_HOUSES,
    RESERVE_HOUSE,
    house_action,
    legal_moves,
    next_to,
)

FIRST_MOVES = np.uint64((1 << RESERVE_HOUSE) - 1 | 3 << HAND_OR)  # to foundations; loads from reserve and hand
HOUSE_LOADS = np.uint64(0xFFFF << HOUSE_OR)
ALL_HOUSES = 0xFF


@rule
def trivial(state: State) -> int:
    """The fixed yardstick of RULES.md: its list is the order of the first actions."""
    moves, _ = legal_moves(state)
    return lowest(moves)


@rule
def greedy(state: State) -> int:
    """The scripted player of RULES.md, which numbers its rules."""
    moves, pairs = legal_moves(state)
    if moves & FIRST_MOVES:  # 1, 2
        return lowest(moves & FIRST_MOVES)
    if moves & HOUSE_LOADS:  # 3
        return house_load(state, moves & HOUSE_LOADS)
    if pairs:
        pair = useful_pair(state, pairs)  # 4
        if pair >= 0:
            return house_action(pair)
    filled = np.uint64(ALL_HOUSES & ~int(state.landing[NO_KEY]))
    builds = moves & (filled << np.uint64(RESERVE_HOUSE) | filled << np.uint64(HAND_HOUSE))
    return lowest(builds if builds else moves)  # 5, 6


@rule
def house_load(state: State, loads: Any) -> int:
    """A load from a house of one card, else the first."""
    first = lowest(loads)
    while loads:
        action = lowest(loads)
        if count(state.houses[(action - HOUSE_OR) % NUM_HOUSES]) == 1:
            return action
        loads &= loads - ONE
    return first


@rule
def useful_pair(state: State, pairs: Any) -> int:
    """The best house-to-house move, as 8 * house + house, or -1 where none has a use."""
    seat = int(state.seat)
    other = 1 - seat
    loadable = next_to(state.reserves[other, int(state.reserve_sizes[other])])
    loadable |= next_to(state.wastes[other, int(state.waste_sizes[other])])
    reserve_key = int(KEYS[state.reserves[seat, int(state.reserve_sizes[seat])]]) + 1
    hand_key = int(KEYS[state.turned]) + 1
    reserve_lands = int(state.landing[reserve_key]) != 0
    hand_lands = int(state.landing[hand_key]) != 0
    best = -1
    most = 0
    while pairs:
        pair = lowest(pairs)
        pairs &= pairs - ONE
        run = state.houses[pair >> 3]
        target = int(state.tops[pair & 7])
        rest = run & ~below_card(target & ~3) if target != NO_CARD else run & (run - ONE)
        use = 0
        if rest == EMPTY:
            use = 5
        else:
            top = lowest(rest)
            key = int(KEYS[top])
            if bit(top) & loadable:
                use = 2
            elif bit(top) & state.wanted:
                use = 1
            if target == NO_CARD:
                use = use if count(run) == 2 else 0
            elif key == reserve_key and not reserve_lands:
                use = 4
            elif key == hand_key and not hand_lands:
                use = 3
        if use > most:
            most = use
            best = pair
    return best
