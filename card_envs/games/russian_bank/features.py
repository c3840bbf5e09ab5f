"""The features of an n-tuple network for positions of Russian Bank: about a hundred active ones of many.

Positions are those just before a card is revealed, or just after, before its face is used. Most features are about what
can be done with the cards available and the next ones, and about how far each is from its foundation. Face-down cards
count as the set of cards that they may be: nothing depends on their order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import EMPTY, ONE, bit, count, highest, lowest
from card_envs.game import Cards, Int64s, Stat, State, UInt64s, offsets, total
from card_envs.games.russian_bank.rules import ALL_CARDS, KEYS, NO_CARD, NO_KEY, NUM_HOUSES, next_to, penalty_points

# What comes next, seen from the seat that the position is valued for; every table has a part for each.
TO_TURN, UNCOVERED, THEIRS = 0, 1, 2  # a hand card is turned, a reserve card was uncovered; 2 and 3: the opponent's
NUM_KINDS = 4

RANKS = 14  # 13 ranks and none
FEW_CARDS, MANY_CARDS, FEW_POINTS = 16, 21, 40  # numbers of classes
SIZES, DEPTHS = 14, 36  # of houses; of positions of known cards to come
TENTHS = 11
NOTHING, TO_FOUNDATION, TO_OPPONENT, TO_HOUSE, NOWHERE = range(5)  # where a card could go
PLACES = 5
PLACE_VALUES = (PLACES * PLACES, PLACES, 1)  # of the next three known cards in a pattern
NUM_PLACES_OF_NEXT = 256
TABLES = (
    Stat("kind", meaning="what comes next"),
    Stat("reserves", MANY_CARDS**2, "cards of both reserves"),
    Stat("points", FEW_POINTS**2, "thirds of both players' penalty points"),
    Stat("hands", 4 * 10 * 10, "which hands are the dealt ones, quarters of their cards"),
    Stat("player", 2 * FEW_CARDS**2, "thirds of a player's hand and waste, cards of the reserve"),
    Stat("top", 2 * 9 * FEW_CARDS * (PLACES + 1), "empty houses, cards of a reserve, where its top could go"),
    Stat("top_rank", 2 * RANKS * RANKS * 3 * 2 * 4, "a reserve top: rank, cards missing below, houses for it, size"),
    Stat("top_house", 2 * 6 * RANKS * 3, "a reserve top: how deep the next house for it lies, rank, empty houses"),
    Stat("loads", 4 * RANKS * 3 * 4 * 2, "a reserve or waste: rank of its top, what could be loaded on it"),
    Stat("chains", 4 * 9 * 16, "a reserve or waste: how long the runs are that could be loaded on it"),
    Stat("coming", 2 * 6**3, "a player's cards to come: how many go to foundations, to houses, to the opponent"),
    Stat("playable", 2 * TENTHS * FEW_CARDS, "tenths of these cards that go anywhere, cards of the reserve"),
    Stat("chance", 2 * TENTHS * 11 * 4, "these tenths, how many cards come, empty houses"),
    Stat("next", 2 * PLACES**3, "where a player's next three known cards could go"),
    Stat("home", 2 * RANKS * 2, "a player's card to come: cards missing below, whether a house takes it"),
    Stat("queue", 2 * DEPTHS * PLACES * RANKS, "a known card to come: when, where it could go, cards missing below"),
    Stat("house", 52 * SIZES, "a house: top card, size"),
    Stat("run", RANKS * RANKS * 2, "a house: ranks of both ends, whether it could move as a whole"),
    Stat("distance", RANKS * SIZES, "a house: cards missing below its top, size"),
    Stat("houses", 9**3, "empty houses, houses that could move as a whole, houses of one card"),
    Stat("suit", RANKS**2, "both foundations of a suit"),
    Stat("wanted", 13 * NUM_PLACES_OF_NEXT, "a foundation: the next rank, where its copies may lie"),
    Stat("all_home", MANY_CARDS * 2 * 2, "cards that go home if all in houses could: how many, which reserve tops"),
)
MARKS = (Stat("point", meaning="of the result: 1"), *(Stat(t.name, NUM_KINDS * t.size, t.meaning) for t in TABLES))
AT, NUM_WEIGHTS = offsets(MARKS), total(MARKS)
MAX_MARKS = 384


class Marking(NamedTuple):
    """The workspace for features; entries for players are the seat's own (0) and the opponent's (1).

    Attributes:
        tops: [2, 2] of reserves and wastes; NO_CARD if there is none or it is unknown.
        sizes: [2, 2] cards of reserves, and of hands with wastes.
        loads: [2] the cards that a player could load.
        unseen: [2] the face-down cards of a player's pack.
        known: [2] the known cards of hand and waste.
    """

    tops: Int64s
    sizes: Int64s
    loads: UInt64s
    unseen: UInt64s
    known: UInt64s


def new_marking() -> Marking:
    """Return a workspace for one thread."""
    tops, sizes = np.zeros((2, 2, 2), np.int64)
    loads, unseen, known = np.zeros((3, 2), np.uint64)
    return Marking(tops, sizes, loads, unseen, known)


@rule
def active_features(state: State, seat: int, kind: int, marking: Marking, features: Int64s) -> int:
    """Write the indices of a position's active features into `features` [MAX_MARKS]; return their number."""
    note_players(state, seat, kind, marking)
    tops = in_houses = EMPTY
    for house in range(NUM_HOUSES):
        tops |= bit(state.tops[house]) & ALL_CARDS
        in_houses |= state.houses[house]
    empty = count(np.uint64(state.landing[NO_KEY]))
    taken = taken_by_houses(state)
    num = mark_counts(state, seat, kind, marking, features)
    for k in range(2):
        num = mark_top(state, k, kind, empty, taken, marking, features, num)
        num = mark_loads(k, kind, tops, in_houses, marking, features, num)
        num = mark_coming(state, seat, k, kind, taken, marking, features, num)
    num = mark_houses(state, kind, empty, features, num)
    return mark_foundations(state, kind, in_houses, marking, features, num)


@rule
def note_players(state: State, seat: int, kind: int, marking: Marking) -> None:
    for k in range(2):
        player = int(seat) ^ k
        reserve_size = int(state.reserve_sizes[player])
        waste_size = int(state.waste_sizes[player])
        hand_size = int(state.hand_sizes[player])
        unseen = state.unseen[player]
        known = EMPTY
        for i in range(waste_size):
            known |= bit(state.wastes[player, 1 + i])
        if not state.first_pass[player]:
            first = int(state.hand_next[player])
            for i in range(hand_size):
                known |= bit(state.hands[player, first + i])
        top = int(state.reserves[player, reserve_size])
        if kind == UNCOVERED + k * THEIRS and reserve_size > 0:
            unseen |= bit(top)
            top = NO_CARD
        marking.tops[k, 0], marking.tops[k, 1] = top, state.wastes[player, waste_size]
        marking.sizes[k, 0], marking.sizes[k, 1] = reserve_size, hand_size + waste_size
        marking.unseen[k], marking.known[k] = unseen, known
    for k in range(2):
        marking.loads[k] = next_to(marking.tops[1 - k, 0]) | next_to(marking.tops[1 - k, 1])


@rule
def taken_by_houses(state: State) -> Cards:
    """Return the cards that fit on the tops of houses."""
    cards = EMPTY
    for house in range(NUM_HOUSES):
        top = int(state.tops[house])
        if top != NO_CARD and top >= 4:
            cards |= other_colour(top) << np.uint64((top & ~3) - 4)
    return cards


@rule
def other_colour(card: int) -> Cards:
    """Return the suits of the other colour, as bits."""
    red = (card & 3) == 1 or (card & 3) == 2
    return np.uint64(0b1001 if red else 0b0110)


@rule
def missing_below(state: State, card: int) -> int:
    """Return the number of cards missing below one on the nearer of its foundations; 13 if no copy is to come."""
    pile = 2 * (card & 3)
    rank = card >> 2
    if state.foundations[pile] <= rank:
        return rank - int(state.foundations[pile])
    if state.foundations[pile + 1] <= rank:
        return rank - int(state.foundations[pile + 1])
    return 13


@rule
def place_for(card: int, wanted: Cards, loads: Cards, taken: Cards) -> int:
    """Return where a card could go; empty houses are ignored."""
    this = bit(card)
    if this & wanted:
        return TO_FOUNDATION
    if this & loads:
        return TO_OPPONENT
    return TO_HOUSE if this & taken else NOWHERE


@rule
def put(at: int, index: int, kind: int, features: Int64s, num: int) -> int:
    """Append a feature; return the number of features then."""
    features[num] = at + NUM_KINDS * index + kind
    return num + 1


@rule
def mark_counts(state: State, seat: int, kind: int, marking: Marking, features: Int64s) -> int:
    num = put(AT.kind, 0, kind, features, 0)
    most = MANY_CARDS - 1
    reserves = min(marking.sizes[0, 0], most) * MANY_CARDS + min(marking.sizes[1, 0], most)
    num = put(AT.reserves, reserves, kind, features, num)
    most = FEW_POINTS - 1
    thirds = min(penalty_points(state, seat) // 3, most)
    thirds = thirds * FEW_POINTS + min(penalty_points(state, 1 - int(seat)) // 3, most)
    num = put(AT.points, thirds, kind, features, num)
    hands = 0
    for k in range(2):
        hands = 2 * hands + (1 if state.first_pass[int(seat) ^ k] else 0)
    for k in range(2):
        hands = 10 * hands + min(int(state.hand_sizes[int(seat) ^ k]) // 4, 9)
    return put(AT.hands, hands, kind, features, num)


# Reserves and wastes


@rule
def mark_top(
    state: State, k: int, kind: int, empty: int, taken: Cards, marking: Marking, features: Int64s, num: int
) -> int:
    """Add the features of a player's reserve."""
    top = int(marking.tops[k, 0])
    size, others = int(marking.sizes[k, 0]), int(marking.sizes[k, 1])
    few = min(size, FEW_CARDS - 1)
    num = put(AT.player, (k * FEW_CARDS + min(others // 3, FEW_CARDS - 1)) * FEW_CARDS + few, kind, features, num)
    if top == NO_CARD:
        place = NOTHING if size == 0 else PLACES
        rank, distance, houses, depth = RANKS - 1, 0, 0, 0
    else:
        place = place_for(top, state.wanted, marking.loads[k], taken)
        rank, distance = top >> 2, missing_below(state, top)
        houses = min(count(np.uint64(state.landing[int(KEYS[top]) + 1])), 2)
        depth = depth_of_key(state, int(KEYS[top]) + 1)
    num = put(AT.top, ((k * 9 + empty) * FEW_CARDS + few) * (PLACES + 1) + place, kind, features, num)
    index = (((k * RANKS + rank) * RANKS + distance) * 3 + houses) * 2 + min(empty, 1)
    num = put(AT.top_rank, index * 4 + min(max(size - 1, 0) // 4, 3), kind, features, num)
    return put(AT.top_house, ((k * 6 + depth) * RANKS + rank) * 3 + min(empty, 2), kind, features, num)


@rule
def depth_of_key(state: State, key: int) -> int:
    """Return how many cards of a house lie on one with this key: at most 3; 5 if there is none that high."""
    least = 5
    for house in range(NUM_HOUSES):
        run = state.houses[house]
        for depth in range(4):
            if run == EMPTY:
                break
            if int(KEYS[lowest(run)]) == key:
                least = min(least, depth)
            run &= run - ONE
    return least


@rule
def mark_loads(k: int, kind: int, tops: Cards, in_houses: Cards, marking: Marking, features: Int64s, num: int) -> int:
    """Add what the other player could load on a player's reserve and waste."""
    for pile in range(2):
        card = int(marking.tops[k, pile])
        which = 2 * k + pile
        if card == NO_CARD:
            num = put(AT.loads, (which * RANKS + RANKS - 1) * 24, kind, features, num)
            continue
        next_cards = next_to(card)
        index = (which * RANKS + (card >> 2)) * 3 + min(count(next_cards & tops), 2)
        from_reserve = 1 if next_cards & bit(marking.tops[1 - k, 0]) else 0
        num = put(AT.loads, (index * 4 + count(next_cards & in_houses)) * 2 + from_reserve, kind, features, num)
        now = min(run_from(card, 4, tops), 2) * 3 + min(run_from(card, -4, tops), 2)
        later = run_from(card, 4, in_houses) * 4 + run_from(card, -4, in_houses)
        num = put(AT.chains, (which * 9 + now) * 16 + later, kind, features, num)
    return num


@rule
def run_from(card: int, step: int, cards: Cards) -> int:
    """Return how many of the next three cards of the suit are there, consecutively."""
    long = 0
    card += step
    while long < 3 and 0 <= card < 52 and cards & bit(card):
        long += 1
        card += step
    return long


# Cards to come


@rule
def mark_coming(
    state: State, seat: int, k: int, kind: int, taken: Cards, marking: Marking, features: Int64s, num: int
) -> int:
    """Add the features of a player's hand and waste, and of the face-down cards."""
    player = int(seat) ^ k
    empty = count(np.uint64(state.landing[NO_KEY]))
    wanted, loads = state.wanted, marking.loads[k]
    in_order = not state.first_pass[player]
    coming = marking.unseen[k] | marking.known[k] if in_order else marking.unseen[k]  # the cards of this pass
    number = count(coming)
    if number > 0:
        index = k * 6 + min(10 * count(coming & wanted) // number, 5)
        index = index * 6 + min(8 * count(coming & taken) // number, 5)
        num = put(AT.coming, index * 6 + min(10 * count(coming & loads) // number, 5), kind, features, num)
        tenths = k * TENTHS + 10 * count(coming & (wanted | taken | loads)) // number
        reserve = min(int(marking.sizes[k, 0]), FEW_CARDS - 1)
        num = put(AT.playable, tenths * FEW_CARDS + reserve, kind, features, num)
        num = put(AT.chance, (tenths * 11 + min(number // 4, 10)) * 4 + min(empty, 3), kind, features, num)
    cards = marking.unseen[k] | marking.known[k]
    while cards:
        card = lowest(cards)
        cards &= cards - ONE
        index = (k * RANKS + missing_below(state, card)) * 2 + (1 if taken & bit(card) else 0)
        num = put(AT.home, index, kind, features, num)
    return mark_queue(state, player, k, kind, taken, marking, features, num)


@rule
def mark_queue(
    state: State, player: int, k: int, kind: int, taken: Cards, marking: Marking, features: Int64s, num: int
) -> int:
    """Add the cards that a player is known to turn, next one first.

    A waste has no order of turning before it is turned over.
    """
    in_order = not state.first_pass[player]
    in_hand = int(state.hand_sizes[player]) if in_order else 0
    first = int(state.hand_next[player])
    pattern = 0
    for i in range(in_hand + int(state.waste_sizes[player])):
        card = int(state.hands[player, first + i] if i < in_hand else state.wastes[player, 1 + i - in_hand])
        place = place_for(card, state.wanted, marking.loads[k], taken)
        if i < min(3, in_hand):
            pattern += place * PLACE_VALUES[i]
        when = min(i, DEPTHS - 1) if in_order else DEPTHS - 1
        index = (k * DEPTHS + when) * PLACES + place
        num = put(AT.queue, index * RANKS + missing_below(state, card), kind, features, num)
    if in_hand > 0:
        num = put(AT.next, k * PLACES**3 + pattern, kind, features, num)
    return num


# Houses and foundations


@rule
def mark_houses(state: State, kind: int, empty: int, features: Int64s, num: int) -> int:
    movable = single = 0
    for house in range(NUM_HOUSES):
        run = state.houses[house]
        if run == EMPTY:
            continue
        top, end = lowest(run), highest(run)
        size = count(run)
        moves = 1 if int(state.landing[int(KEYS[end]) + 1]) & ~(1 << house) else 0
        movable += moves
        single += 1 if size == 1 else 0
        num = put(AT.house, top * SIZES + size, kind, features, num)
        num = put(AT.run, ((end >> 2) * RANKS + (top >> 2)) * 2 + moves, kind, features, num)
        num = put(AT.distance, missing_below(state, top) * SIZES + size, kind, features, num)
    return put(AT.houses, (empty * 9 + movable) * 9 + single, kind, features, num)


@rule
def mark_foundations(state: State, kind: int, in_houses: Cards, marking: Marking, features: Int64s, num: int) -> int:
    mine, theirs = int(marking.tops[0, 0]), int(marking.tops[1, 0])
    at_hand = in_houses | bit(mine) & ALL_CARDS
    home = mine_too = theirs_too = 0
    for suit in range(4):
        high, low = int(state.foundations[2 * suit]), int(state.foundations[2 * suit + 1])
        num = put(AT.suit, high * RANKS + low, kind, features, num)
        for pile in range(2):
            rank = high if pile == 0 else low
            if rank < 13 and (pile == 0 or low != high):
                places = places_of(state, 4 * rank + suit, in_houses, marking)
                num = put(AT.wanted, rank * NUM_PLACES_OF_NEXT + places, kind, features, num)
            while rank < 13 and at_hand & bit(4 * rank + suit):
                home += 1
                mine_too |= 1 if 4 * rank + suit == mine else 0
                rank += 1
            theirs_too |= 1 if rank < 13 and 4 * rank + suit == theirs else 0
    return put(AT.all_home, (min(home, MANY_CARDS - 1) * 2 + mine_too) * 2 + theirs_too, kind, features, num)


@rule
def places_of(state: State, card: int, in_houses: Cards, marking: Marking) -> int:
    """Return the places of a card's copies: how deep in a house, whether on or in the piles of each player."""
    this = bit(card)
    index = 0
    if in_houses & this:
        index = 3
        for house in range(NUM_HOUSES):
            if state.houses[house] & this:
                depth = count(state.houses[house] & (this - ONE))
                index = min(index, 1 if depth == 0 else 2 if depth <= 2 else 3)
    for k in range(2):
        index = 2 * index + (1 if marking.unseen[k] & this else 0)
        index = 2 * index + (1 if marking.tops[k, 0] == card else 0)
        index = 2 * index + (1 if marking.known[k] & this else 0)
    return index
