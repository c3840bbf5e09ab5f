"""Big Ben's scripted players, compiled. Both use only what the player may know."""

from __future__ import annotations

from typing import Any

import numpy as np

from card_envs.engine.jit import rule
from card_envs.engine.sets import ONE, bit, lowest
from card_envs.game import State
from card_envs.games.big_ben.rules import (
    DEAL,
    NUM_HOURS,
    PACK_SIZE,
    WASTE,
    count_moves,
    may_deal,
    move_action,
    next_lower,
    places_for,
    waste_top,
)


@rule
def piles_with(state: State, cards: Any) -> int:
    """The set of piles whose top card is among some cards."""
    piles = 0
    while cards:
        piles |= int(state.piles_of[lowest(cards)])
        cards &= cards - ONE
    return piles


@rule
def first_building(state: State, sources: int) -> int:
    """The move of the first of some piles that can build on another, to the first place for it."""
    source = lowest(np.uint64(sources))
    card = int(state.piles[source, int(state.heights[source]) - 1])
    return move_action(source, lowest(places_for(state, card)))


@rule
def trivial(state: State) -> int:
    """The fixed yardstick of RULES.md."""
    homing = state.tops & state.wanted
    if homing:
        return NUM_HOURS * lowest(np.uint64(piles_with(state, homing)))
    card = waste_top(state)
    if card >= 0:
        if state.wanted & bit(card):
            return WASTE
        targets = places_for(state, card)
        if targets:
            return WASTE + 1 + lowest(targets)
    sources = piles_with(state, state.tops & next_lower(state.open_tops))
    hopping = int(state.settled_piles)
    if sources & ~hopping:
        return first_building(state, sources & ~hopping)
    if state.num_dealt < PACK_SIZE and may_deal(state, count_moves(state)):
        return DEAL
    return first_building(state, sources)


@rule
def greedy(state: State) -> int:
    return trivial(state)
