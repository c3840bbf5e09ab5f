"""Russian Bank's scripted players, compiled. Both use only what the seat to move may know."""

from __future__ import annotations

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import ONE, below_card, bit, count, lowest
from card_envs.game import Cards, State
from card_envs.games.russian_bank.rules import (
    ACTION,
    KEYS,
    NO_CARD,
    NUM_HOUSES,
    Moves,
    Pairs,
    house_action,
    legal_moves,
    next_to,
)

FIRST_MOVES = np.uint64((1 << ACTION.reserve_to_house) - 1)  # to foundations, and loads from the reserve
HOUSE_LOADS = np.uint64(0xFFFF << ACTION.house_to_reserve)


# The strongest at about 0.1, 1 and 100 ms per move: see strength/README.md.
PRESETS = {
    "small": "ntuple",
    "strong": "search:256,moves=turn,prior=ntuple,leaf=ntuple,leaf_after=8,arms=16",
    "champion": "search:128,moves=turn,prior=ntuple,rollout=ntuple,leaf=ntuple,leaf_after=8,arms=16",
}
# For people, the easiest first: `small` and `champion` are too close to `strong` to be levels.
LEVELS = ("trivial", "greedy", "search:64", "strong")


@rule
def trivial(state: State) -> int:
    """Return the action of the yardstick player in RULES.md: its list is the order of the first actions."""
    moves, _ = legal_moves(state)
    return lowest(moves)


@rule
def greedy(state: State) -> int:
    """Return the action of the scripted player in RULES.md, which numbers its rules."""
    moves, pairs = legal_moves(state)
    if moves & FIRST_MOVES:  # 1
        return lowest(moves)
    if moves & HOUSE_LOADS:  # 2
        return house_load(state, moves & HOUSE_LOADS)
    if pairs:
        pair = useful_pair(state, pairs)  # 3
        if pair >= 0:
            return house_action(pair)
    return lowest(moves)  # 4


@rule
def house_load(state: State, loads: Moves) -> int:
    """Return a load from a house with one card, else the first load."""
    first = lowest(loads)
    while loads:
        action = lowest(loads)
        if count(state.houses[(action - ACTION.house_to_reserve) % NUM_HOUSES]) == 1:
            return action
        loads &= loads - ONE
    return first


@rule
def useful_pair(state: State, pairs: Pairs) -> int:
    """Return the best house-to-house move, as 8 * house + house, or -1 if none is useful."""
    other = 1 - int(state.seat)
    loadable = next_to(state.reserves[other, int(state.reserve_sizes[other])])
    loadable |= next_to(state.wastes[other, int(state.waste_sizes[other])])
    best = -1
    most = 0
    while pairs:
        pair = lowest(pairs)
        pairs &= pairs - ONE
        run = state.houses[pair >> 3]
        target = int(state.tops[pair & 7])
        if target != NO_CARD:
            use = use_of_uncovering(state, run & ~below_card(target & ~3), loadable, True)
        elif count(run) == 2:  # an empty house is used only if it is regained at once
            use = use_of_uncovering(state, run & (run - ONE), loadable, False)
        else:
            use = 0
        if use > most:
            most = use
            best = pair
    return best


@rule
def use_of_uncovering(state: State, cards: Cards, loadable: Cards, may_move: bool) -> int:
    """Return the value of uncovering these cards of a house; 0 for none.

    With `may_move`, they may move to other houses until the relevant one is on top.
    """
    steps = 0
    while cards:
        top = lowest(cards)
        if bit(top) & loadable:
            return 32 - steps
        if bit(top) & state.wanted:
            return 16 - steps
        if not may_move or state.landing[int(KEYS[top]) + 1] == 0:
            return 0
        steps += 1
        cards &= cards - ONE
    return 48 - steps
