"""Back Alley's scripted players, compiled. Both use only what the seat to move may know."""

from __future__ import annotations

from typing import Any

import numpy as np

from card_envs.engine.jit import rule
from card_envs.engine.sets import EMPTY, count, highest, lowest
from card_envs.game import State
from card_envs.games.back_alley.rules import ACES, BID, BLOOPERS, SUIT_CARDS, playable


@rule
def lowest_card(state: State, cards: Any) -> int:
    """The lowest of some cards: plain before trump, then by rank, then suits as C, D, H, S."""
    plain = cards & ~state.trumps
    if plain == EMPTY:
        return lowest(cards)
    best = 64
    card = 0
    for suit in range(4):
        ranks = (plain >> np.uint64(13 * suit)) & SUIT_CARDS
        if ranks:
            rank = lowest(ranks)
            order = 4 * rank + ((suit - int(state.shift)) & 3)
            if order < best:
                best = order
                card = 13 * suit + rank
    return card


@rule
def highest_plain(state: State, cards: Any) -> int:
    """The highest of some plain cards: by rank, then suits as C, D, H, S."""
    best = -1
    card = 0
    for suit in range(4):
        ranks = (cards >> np.uint64(13 * suit)) & SUIT_CARDS
        if ranks:
            rank = highest(ranks)
            order = 4 * rank + ((suit - int(state.shift)) & 3)
            if order > best:
                best = order
                card = 13 * suit + rank
    return card


@rule
def trivial(state: State) -> int:
    """The fixed yardstick of RULES.md."""
    if state.num_bids < 4:
        return BID + min(count(state.hands[int(state.seat)] & (ACES | BLOOPERS)), int(state.hand_size) - 1)
    cards = playable(state)
    if state.num_played & 3 == 0:
        plain = cards & ~state.trumps
        return highest_plain(state, plain) if plain else highest(cards)
    winners = cards & state.beats
    return lowest_card(state, winners if winners else cards)


@rule
def greedy(state: State) -> int:
    return trivial(state)
