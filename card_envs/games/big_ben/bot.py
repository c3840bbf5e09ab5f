"""Big Ben's scripted players, compiled. Both use only what the player may know."""

from __future__ import annotations

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import ONE, bit, lowest
from card_envs.game import Cards, State
from card_envs.games.big_ben.rules import (
    DEAL,
    FLOOR,
    NUM_HOURS,
    WASTE,
    count_moves,
    may_deal,
    move_action,
    next_higher,
    next_lower,
    places_for,
    places_for_waste,
    waste_top,
)

# The strongest at about 0.1, 1 and 100 ms per move: see strength/README.md.
PRESETS = {
    "small": "ntuple",
    "strong": "search:128,moves=turn,prior=ntuple,leaf=ntuple,leaf_playout=0.3",
    "champion": "search:4096,moves=turn,prior=ntuple,leaf=ntuple,leaf_playout=0.3",
}
# For people, the easiest first: they win about 5, 10, 20 and 45 deals of 100. Hints come from `strong` by default.
LEVELS = ("trivial", "greedy", "small", "strong")


@rule
def piles_with(state: State, cards: Cards) -> int:
    """Return the piles whose top card is in a set."""
    piles = 0
    while cards:
        piles |= int(state.piles_of[lowest(cards)])
        cards &= cards - ONE
    return piles


@rule
def first_building(state: State, sources: int) -> int:
    """Return the first possible building move from some piles."""
    source = lowest(np.uint64(sources))
    card = int(state.piles[source, FLOOR + int(state.heights[source]) - 1])
    return move_action(source, lowest(places_for(state, card)))


@rule
def trivial(state: State) -> int:
    """Return the action of the yardstick player in RULES.md."""
    homing = state.tops & state.wanted
    if homing:
        return NUM_HOURS * lowest(np.uint64(piles_with(state, homing)))
    card = waste_top(state)
    if card >= 0:
        if state.wanted & bit(card):
            return WASTE
        targets = places_for_waste(state, card)
        if targets:
            return WASTE + 1 + lowest(targets)
    sources = piles_with(state, state.tops & next_lower(state.open_tops))
    hopping = int(state.settled_piles)
    if sources & ~hopping:
        return first_building(state, sources & ~hopping)
    if may_deal(state, count_moves(state)):
        return DEAL
    return first_building(state, sources)


@rule
def buildable(state: State) -> Cards:
    """Return the cards on which a top card of a pile or of the waste could be built."""
    cards = state.tops
    if state.num_waste > 0 and state.waste_piles:
        cards |= bit(waste_top(state))
    return next_higher(cards)


@rule
def exposing(state: State, pile: int) -> int:
    """Return the points for the card that is exposed when a pile loses its top card."""
    height = int(state.heights[pile])
    if height == 1:
        return 0
    card = int(state.piles[pile, FLOOR + height - 2])
    points = int(state.nearness[card])
    if places_for(state, card):
        points += 8
    if height > 2 and state.wanted & bit(int(state.piles[pile, FLOOR + height - 3])):
        points += 3
    return points


@rule
def best_homing(state: State, piles: int) -> int:
    """Return the move to a foundation with most points, from some piles or from the waste."""
    best = -100
    move = DEAL
    usable = buildable(state)
    sources = np.uint64(piles)
    while sources:
        pile = lowest(sources)
        sources &= sources - ONE
        height = int(state.heights[pile])
        card = int(state.piles[pile, FLOOR + height - 1])
        points = 4 * height + exposing(state, pile)
        if height >= state.open_from and usable & bit(card):
            points -= 6
        if points > best:
            best = points
            move = NUM_HOURS * pile
    card = waste_top(state)
    if card >= 0 and state.wanted & bit(card) and uncovering(state) > best:
        move = WASTE
    return move


@rule
def best_building(state: State, piles: int) -> int:
    """Return the building move with most points, from some piles or from the waste.

    If there is none, return the deal.
    """
    best = -1
    move = DEAL
    sources = np.uint64(piles)
    while sources:
        pile = lowest(sources)
        sources &= sources - ONE
        points = exposing(state, pile)
        if points > best:
            best = points
            card = int(state.piles[pile, FLOOR + int(state.heights[pile]) - 1])
            move = move_action(pile, lowest(places_for(state, card)))
    card = waste_top(state)
    if card >= 0:
        targets = places_for_waste(state, card)
        if targets and uncovering(state) > best:
            move = WASTE + 1 + lowest(targets)
    return move


@rule
def uncovering(state: State) -> int:
    """Return the points for the card beneath the top of the waste."""
    num_waste = int(state.num_waste)
    return 2 * int(state.nearness[int(state.waste[num_waste - 2])]) if num_waste > 1 else 0


@rule
def greedy(state: State) -> int:
    """Return the action of the scripted player in RULES.md."""
    card = waste_top(state)
    homing = state.tops & state.wanted
    if homing or (card >= 0 and state.wanted & bit(card)):
        return best_homing(state, piles_with(state, homing))
    sources = piles_with(state, state.tops & next_lower(state.open_tops))
    hopping = int(state.settled_piles)
    move = best_building(state, sources & ~hopping)
    if move != DEAL or may_deal(state, count_moves(state)):
        return move
    return best_building(state, sources)
