"""Big Ben, compiled. The rules are numbered in RULES.md; comments cite them.

Cards are `13 * suit + rank`, suits C, D, H, S and rank 0 (ace) to 12 (king); the two copies of a card are identical.
Hours are numbered 0 (twelve o'clock) to 11, for the piles T12, T1 .. T11 and the foundations beside them.

Legality is cheap because three sets of cards are updated whenever a top card changes: those that foundations want,
those on top of piles, and those on top of *open* piles, which may be built on. For the latter two, a second set holds
the cards of which both copies lie there. All cards of a pile above its third were built (BB-5), so a pile is determined
by its lowest three cards and its height.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from card_envs.cards import ACE_LOW, deck
from card_envs.compiling import rule
from card_envs.engine.rng import advance, below, shuffle
from card_envs.engine.sets import EMPTY, ONE, bit, copy, count, highest, lowest, nth, spread
from card_envs.game import Cards, Field, Mask, Obs, Pack, Stat, State, Stats, Stream, offsets, state_dtype, total

if TYPE_CHECKING:
    from card_envs.games.big_ben.options import Options

Piles: TypeAlias = np.uint64  # a set of piles
Moves: TypeAlias = np.uint64  # a set of the actions with one source

NUM_SEATS = 1
NUM_CARDS = 52  # different ones
NUM_HOURS = 12
PACK_SIZE = 92  # BB-2
NUM_LAID_OUT = 36  # BB-2; the rest is the stock
STOCK_SIZE = PACK_SIZE - NUM_LAID_OUT
FULL_PILE = 3  # BB-7: a smaller pile has gaps; BB-5: it may not be built on, unless an option allows it
MAX_HEIGHT = 25  # two cards, and all 23 of a suit that are not base cards
NO_CARD = 63
FLOOR = 3  # entries of NO_CARD below each pile, so that reading its top three cards needs no branches
MAX_HOPS = 4  # BB-10

ACTION_FIELDS = (
    Field("T12", 12, 1, meaning="its top card to F, T1, T2 .. T11"),
    *(Field(f"T{hour}", 12, 1, meaning="its top card to F, T12, T1 .. T11 without itself") for hour in range(1, 12)),
    Field("W", 13, 1, meaning="the top card of the waste to F, T12, T1 .. T11"),
    Field("deal", 1, 1, meaning="fill the gaps if there are any (BB-7), else deal one card to the waste (BB-8)"),
)
NUM_ACTIONS = total(ACTION_FIELDS)
ACTION = offsets(ACTION_FIELDS)
WASTE, DEAL = ACTION.W, ACTION.deal  # the first action of the waste, the deal
WASTE_AND_DEAL = NUM_ACTIONS - WASTE
STATS = (
    Stat("lost", meaning="games; the others are of them"),
    Stat("placed", meaning="cards"),
    Stat("complete", meaning="foundations"),
    Stat("in_waste", meaning="cards"),
)
COUNT = offsets(STATS)
WORST_SCORE = 0.0  # no reward is negative
CARD_REWARD = np.float32(1 / PACK_SIZE)  # BB-12

# BB-1: base card and last card of each hour.
FOUNDATIONS = (
    ("5D", "QD"), ("6C", "AC"), ("7H", "2H"), ("8S", "3S"), ("9D", "4D"), ("TC", "5C"),
    ("JH", "6H"), ("QS", "7S"), ("KD", "8D"), ("2C", "9C"), ("3H", "TH"), ("4S", "JS"),
)  # fmt: skip
_CODES = {card: code for code, card in enumerate(deck(ACE_LOW))}
BASES = np.array([_CODES[base] for base, _ in FOUNDATIONS], np.int8)
LASTS = np.array([_CODES[last] for _, last in FOUNDATIONS], np.int8)
ALL_TO_COME = (LASTS - BASES) % 13  # base and last card are of one suit
MAX_TO_COME = int(ALL_TO_COME.max())
FIRST_HOUR = np.array([1, 0, 2, 3], np.int8)  # by suit: its foundations are at this hour, and 4 and 8 hours later
UP = np.full(NO_CARD + 1, NO_CARD, np.int8)
UP[:NUM_CARDS] = [13 * (card // 13) + (card + 1 - 13 * (card // 13)) % 13 for card in range(NUM_CARDS)]

IN_PACK = np.full(NUM_CARDS, 2, np.int8)  # how often each card is in the pack
IN_PACK[BASES] = 1
SORTED_PACK = np.repeat(np.arange(NUM_CARDS, dtype=np.int8), IN_PACK)
ALL_PILES = (1 << NUM_HOURS) - 1
SUIT_CARDS = np.array([0x1FFF << (13 * suit) for suit in range(4)], np.uint64)
ACES = np.uint64(sum(1 << (13 * suit) for suit in range(4)))
NOT_KINGS = np.uint64(((1 << NUM_CARDS) - 1) & ~sum(1 << (13 * suit + 12) for suit in range(4)))
TO_KING = np.uint64(12)

# By hour and cards to come: the next card, also as a set, and for each rank how soon it is wanted.
NEXT_CARD = np.full((NUM_HOURS, MAX_TO_COME + 1), -1, np.int8)
NEXT_SET = np.zeros((NUM_HOURS, MAX_TO_COME + 1), np.uint64)
NEARNESS = np.zeros((NUM_HOURS, MAX_TO_COME + 1, 13), np.int8)
for _hour in range(NUM_HOURS):
    for _left in range(1, MAX_TO_COME + 1):
        _suit, _last = divmod(int(LASTS[_hour]), 13)
        for _steps in range(_left):
            NEARNESS[_hour, _left, (_last - _left + 1 + _steps) % 13] = MAX_TO_COME - _steps
        NEXT_CARD[_hour, _left] = 13 * _suit + (_last - _left + 1) % 13
        NEXT_SET[_hour, _left] = 1 << int(NEXT_CARD[_hour, _left])

# By card: suit (4) and rank (13) as bits, one of each set.
SUIT_AND_RANK = np.zeros(NO_CARD + 1, np.uint64)
SUIT_AND_RANK[:NUM_CARDS] = [1 << card // 13 | 1 << (4 + card % 13) for card in range(NUM_CARDS)]
NUM_KINDS = 17
KINDS_OF_3 = 3 * NUM_KINDS

STATE = state_dtype(
    NUM_SEATS,
    [
        # options
        ("pile_by_pile", np.bool_),  # BB-7, else in rounds
        ("when_stuck", np.bool_),  # BB-8, else always
        ("reward_win", np.bool_),  # BB-12, else cards
        ("redeals", np.int8),  # BB-9
        ("open_from", np.int8),  # BB-5: cards of the smallest piles that may be built on
        # the table
        ("pack", np.int8, PACK_SIZE),  # as dealt
        ("piles", np.int8, (NUM_HOURS, FLOOR + MAX_HEIGHT)),  # from the bottom, at FLOOR; NO_CARD where none lies
        ("heights", np.int8, NUM_HOURS),
        ("waste", np.int8, STOCK_SIZE),  # from the bottom; when it is turned over, its cards stay in place as the stock
        ("num_waste", np.int8),
        ("to_come", np.int8, NUM_HOURS),  # cards still to come on each foundation
        ("num_placed", np.int8),
        ("hops", np.int8),  # BB-10: in a row
        # The stock: pack[num_dealt:stock_end], or waste[num_dealt - PACK_SIZE:stock_end - PACK_SIZE] after a redeal.
        ("num_dealt", np.int16),
        ("stock_end", np.int16),
        # derived from the table, updated incrementally
        ("wanted", np.uint64),  # cards that a foundation takes
        ("tops", np.uint64),  # cards on top of piles
        ("twin_tops", np.uint64),  # both copies are on top
        ("open_tops", np.uint64),  # cards that may be built on
        ("open_twins", np.uint64),  # both copies may be built on
        ("settled_tops", np.uint64),  # top cards that lie on the next higher of their suit: their moves are hops
        ("settled_piles", np.int16),  # the same as a set of piles
        ("open_piles", np.int16),  # that may be built on
        ("waste_piles", np.int16),  # option: those on which waste cards may be built (BB-9), all or none
        ("piles_of", np.int16, NO_CARD + 1),  # the set of piles with that card on top; none for NO_CARD
        ("nearness", np.int8, NO_CARD + 1),  # 8: wanted now, 7: after one other card, .. 0: both copies placed
        ("in_stock", np.int8, NUM_CARDS),  # copies
        ("in_waste", np.int8, NUM_CARDS),  # copies
    ],
)

NUM_NEAR = 3  # cards of the waste that are observed in order
NUM_NEXT = 6  # cards of the stock that the full state shows one by one
OBS_FIELDS = (
    Field("tops", 624, 1, meaning="top card of T12, T1 .. T11 (52 each)"),
    Field("bottoms", 204, 1, meaning="lowest card of each pile (17 each: C, D, H, S, A-K)"),
    Field("seconds", 204, 1, meaning="second lowest card of each pile (17 each)"),
    Field("heights", 12, MAX_HEIGHT, meaning="cards in each pile"),
    Field("gaps", 12, 3, meaning="cards that each pile lacks to three (BB-7)"),
    Field("settled", 12, 1, meaning="the top card lies on the next higher of its suit: moving it is a hop"),
    Field("pile_nearness", 36, 8, meaning="nearness (below) of the top three cards of each pile (3 each, top first)"),
    Field("to_come", 12, 8, meaning="cards still to come on the foundations of hours 12, 1 .. 11"),
    Field("wanted", 52, 1, meaning="cards that a foundation takes next"),
    Field("nearness", 52, 8, meaning="8: wanted now, 7: after one other card, .. 0: both copies placed"),
    Field("waste_near", 156, 1, meaning="top, second and third card of the waste (52 each)"),
    Field("waste_nearness", 3, 8, meaning="nearness of these"),
    Field("waste", 52, 2, meaning="copies of each card in the waste"),
    Field("waste_size", 1, STOCK_SIZE, meaning="cards in the waste"),
    Field("stock", 52, 2, meaning="copies of each card in the stock"),
    Field("stock_size", 1, STOCK_SIZE, meaning="cards in the stock"),
    Field("hops", 1, MAX_HOPS, meaning="hops in a row (BB-10)"),
    Field("pile_by_pile", 1, 1, meaning="option fill_order"),
    Field("when_stuck", 1, 1, meaning="option waste_deal"),
)
FULL_FIELDS = (
    *OBS_FIELDS,
    Field("stock_next", 312, 1, meaning="the next six cards of the stock (52 each)"),
    Field("stock_places", 104, STOCK_SIZE, meaning="place in the stock (1: next) of each card's first, second copy"),
    Field("stock_nearness", 56, 8, meaning="nearness of the cards of the stock, in order"),
)
AT = offsets(FULL_FIELDS)


def new_state(options: Options) -> State:
    """Return a State with these `Options` before its first deal."""
    state = np.zeros(1, STATE)[0]
    state.pile_by_pile = options.fill_order == "pile_by_pile"
    state.when_stuck = options.waste_deal == "when_stuck"
    state.reward_win = options.reward == "win"
    state.redeals = options.redeals
    state.open_from = 1 if options.build_on == "any_pile" else FULL_PILE
    state.waste_piles = ALL_PILES if options.waste_to == "anywhere" else 0
    state.over = state.needs_deal = True
    return state


# Dealing


@rule
def deal(state: State) -> None:
    for i in range(PACK_SIZE):
        state.pack[i] = SORTED_PACK[i]
    shuffle(state.pack, PACK_SIZE, PACK_SIZE, state.rng)
    lay_out(state)


@rule
def set_deal(state: State, pack: Pack) -> None:
    for i in range(PACK_SIZE):
        state.pack[i] = pack[i]
    lay_out(state)


@rule
def lay_out(state: State) -> None:
    """Lay out the pack in the state (BB-1, BB-2)."""
    for card in range(NUM_CARDS):
        state.in_stock[card] = IN_PACK[card]
        state.in_waste[card] = 0
    for pile in range(NUM_HOURS):
        for i in range(FLOOR + MAX_HEIGHT):
            state.piles[pile, i] = NO_CARD
    for i in range(NUM_LAID_OUT):
        card = int(state.pack[i])
        state.piles[i % NUM_HOURS, FLOOR + i // NUM_HOURS] = card
        state.in_stock[card] -= 1
    for hour in range(NUM_HOURS):
        state.heights[hour] = FULL_PILE
        state.to_come[hour] = ALL_TO_COME[hour]
    state.num_dealt = NUM_LAID_OUT
    state.stock_end = PACK_SIZE
    state.num_waste = state.num_placed = state.hops = 0
    look_afresh(state)
    state.seat = 0
    state.over = state.needs_deal = False


@rule
def look_afresh(state: State) -> None:
    """Compute the derived fields from piles and foundations, which `show_top` and `note_wanted` update step by step.

    It calls no other rule, so that plain Python can run it too when a view is turned into a state.
    """
    state.wanted = state.tops = state.twin_tops = state.open_tops = state.open_twins = state.settled_tops = EMPTY
    state.settled_piles = state.open_piles = 0
    for card in range(NUM_CARDS):
        state.piles_of[card] = state.nearness[card] = 0
    for hour in range(NUM_HOURS):
        left = int(state.to_come[hour])
        state.wanted |= NEXT_SET[hour, left]
        first = int(BASES[hour]) // 13 * 13
        for rank in range(13):
            state.nearness[first + rank] = max(state.nearness[first + rank], NEARNESS[hour, left, rank])
    for pile in range(NUM_HOURS):
        height = int(state.heights[pile])
        if height == 0:
            continue
        card = int(state.piles[pile, FLOOR + height - 1])
        this, here = ONE << np.uint64(card), 1 << pile
        state.piles_of[card] |= here
        state.twin_tops |= state.tops & this
        state.tops |= this
        if height >= state.open_from:
            state.open_twins |= state.open_tops & this
            state.open_tops |= this
            state.open_piles |= here
        if height >= 2 and state.piles[pile, FLOOR + height - 2] == UP[card]:
            state.settled_tops |= this
            state.settled_piles |= here


# Piles and foundations


@rule
def pile_card(state: State, pile: int, height: int, down: int) -> int:
    """Return the card that lies `down` cards below the top of a pile of that height, or NO_CARD."""
    return int(state.piles[pile, FLOOR - 1 + height - down]) & 63  # an index known to be nonnegative is faster


@rule
def show_top(state: State, pile: int) -> None:
    """Add the top card of a pile, if any, to the sets."""
    height = int(state.heights[pile])
    if height == 0:
        return
    card = int(state.piles[pile, FLOOR + height - 1])
    this, here = bit(card), 1 << pile
    state.piles_of[card] |= here
    state.twin_tops |= state.tops & this
    state.tops |= this
    if height >= state.open_from:
        state.open_twins |= state.open_tops & this
        state.open_tops |= this
        state.open_piles |= here
    if height >= 2 and state.piles[pile, FLOOR + height - 2] == UP[card]:
        state.settled_tops |= this
        state.settled_piles |= here


@rule
def hide_top(state: State, pile: int) -> None:
    """Remove the top card of a pile, if any, from the sets."""
    height = int(state.heights[pile])
    if height == 0:
        return
    card = int(state.piles[pile, FLOOR + height - 1])
    this, others = bit(card), ~(1 << pile)
    state.piles_of[card] &= others
    state.tops &= state.twin_tops | ~this
    state.twin_tops &= ~this
    if height >= state.open_from:
        state.open_tops &= state.open_twins | ~this
        state.open_twins &= ~this
        state.open_piles &= others
    state.settled_piles &= others
    if int(state.piles_of[card]) & int(state.settled_piles) == 0:
        state.settled_tops &= ~this


@rule
def lift(state: State, pile: int) -> int:
    """Take the top card off a pile."""
    hide_top(state, pile)
    height = int(state.heights[pile]) - 1
    card = int(state.piles[pile, FLOOR + height])
    state.piles[pile, FLOOR + height] = NO_CARD
    state.heights[pile] = height
    show_top(state, pile)
    return card


@rule
def lay(state: State, pile: int, card: int) -> None:
    """Put a card on a pile."""
    hide_top(state, pile)
    height = int(state.heights[pile])
    state.piles[pile, FLOOR + height] = card
    state.heights[pile] = height + 1
    show_top(state, pile)


@rule
def note_wanted(state: State, suit: int) -> None:
    """Update which cards of a suit are wanted now, and how soon the others."""
    hour = int(FIRST_HOUR[suit])
    left, left_4, left_8 = int(state.to_come[hour]), int(state.to_come[hour + 4]), int(state.to_come[hour + 8])
    state.wanted = (
        (state.wanted & ~SUIT_CARDS[suit])
        | NEXT_SET[hour, left] | NEXT_SET[hour + 4, left_4] | NEXT_SET[hour + 8, left_8]
    )  # fmt: skip
    for rank in range(13):
        state.nearness[13 * suit + rank] = max(
            NEARNESS[hour, left, rank], NEARNESS[hour + 4, left_4, rank], NEARNESS[hour + 8, left_8, rank]
        )


@rule
def place(state: State, card: int) -> None:
    """Put a wanted card on its foundation."""
    suit = card // 13
    taker = 0
    most = 0
    for k in range(3):
        hour = int(FIRST_HOUR[suit]) + 4 * k
        left = int(state.to_come[hour])
        if NEXT_CARD[hour, left] == card and left > most:  # BB-6
            taker = hour
            most = left
    state.to_come[taker] = most - 1
    note_wanted(state, suit)
    state.num_placed += 1
    if not state.reward_win:
        state.rewards[0] = CARD_REWARD
    if state.num_placed == PACK_SIZE:  # BB-11
        state.over = state.needs_deal = True
        if state.reward_win:
            state.rewards[0] = np.float32(1)


# The stock


@rule
def stock_card(state: State, place: int) -> int:
    """Return a card of the stock; place 0 is the next one."""
    place += int(state.num_dealt)
    return int(state.pack[place] if state.stock_end == PACK_SIZE else state.waste[place - PACK_SIZE])


@rule
def draw(state: State) -> int:
    card = stock_card(state, 0)
    state.num_dealt += 1
    state.in_stock[card] -= 1
    return card


@rule
def short_piles(state: State) -> Piles:
    """Return the piles that have gaps (BB-7)."""
    if state.open_from == FULL_PILE:
        return np.uint64(ALL_PILES & ~int(state.open_piles))
    short = EMPTY
    for pile in range(NUM_HOURS):
        short |= np.uint64(state.heights[pile] < FULL_PILE) << np.uint64(pile)
    return short


@rule
def may_turn_over(state: State) -> bool:
    """Return whether the waste may be turned over once the stock is empty (BB-9)."""
    return state.redeals > 0 and state.stock_end == PACK_SIZE and state.num_waste > 0


@rule
def turn_over(state: State) -> None:
    """Turn the waste over to form the stock (BB-9); its order is known from then on."""
    size = int(state.num_waste)
    for i in range(size):
        card = int(state.waste[i])
        state.in_waste[card] -= 1
        state.in_stock[card] += 1
    state.num_waste = 0
    state.stock_end = PACK_SIZE + size


@rule
def fill_gaps(state: State) -> None:
    """Fill gaps (BB-7).

    Every pile gets three times three chances to be filled: rounds use one each in turn, pile by pile the first three at
    once.
    """
    rounds, at_once = (1, FULL_PILE) if state.pile_by_pile else (FULL_PILE, 1)
    for _ in range(rounds):
        short = short_piles(state)
        while short:
            pile = lowest(short)
            short &= short - ONE
            for _ in range(at_once):
                if state.heights[pile] < FULL_PILE and state.num_dealt < state.stock_end:
                    lay(state, pile, draw(state))


# Moves


@rule
def next_lower(cards: Cards) -> Cards:
    """Return the cards that may be built on some cards: next lower in suit, kings on aces (BB-5)."""
    return ((cards >> ONE) & NOT_KINGS) | ((cards & ACES) << TO_KING)


@rule
def next_higher(cards: Cards) -> Cards:
    """Return the cards on which some cards may be built: the inverse of `next_lower`."""
    return ((cards & NOT_KINGS) << ONE) | ((cards >> TO_KING) & ACES)


@rule
def barred_piles(state: State) -> int:
    """Return the piles whose top card may not move to another pile: a fifth hop in a row (BB-10)."""
    return int(state.settled_piles) if state.hops == MAX_HOPS else 0


@rule
def building_cards(state: State) -> tuple[Cards, Cards]:
    """Return the top cards that may be built on another pile, and those of which both copies may, regarding BB-10.

    If both copies of a card are settled, no copy of the next higher card is open. So it is enough to ask for one copy
    that is not settled.
    """
    if state.hops == MAX_HOPS:
        return state.tops & (state.twin_tops | ~state.settled_tops), state.twin_tops & ~state.settled_tops
    return state.tops, state.twin_tops


@rule
def places_for(state: State, card: int) -> Piles:
    """Return the piles on which a card may be built (BB-5)."""
    return np.uint64(int(state.piles_of[int(UP[card])]) & int(state.open_piles))


@rule
def places_for_waste(state: State, card: int) -> Piles:
    """Return the piles on which the top card of the waste may be built (BB-5, BB-9)."""
    return places_for(state, card) & np.uint64(state.waste_piles)


@rule
def waste_top(state: State) -> int:
    """Return the top card of the waste, or -1."""
    return int(state.waste[int(state.num_waste) - 1]) if state.num_waste > 0 else -1


@rule
def move_action(source: int, target: int) -> int:
    """Return the action that moves the top card of one pile to another."""
    return NUM_HOURS * source + target + (1 if target < source else 0)


@rule
def count_moves(state: State) -> int:
    """Return the number of legal actions besides the deal."""
    cards, twins = building_cards(state)
    fitting, fitting_twice = next_lower(state.open_tops), next_lower(state.open_twins)
    num_moves = (
        count(state.tops & state.wanted) + count(state.twin_tops & state.wanted)
        + count(cards & fitting) + count(cards & fitting_twice)
        + count(twins & fitting) + count(twins & fitting_twice)
    )  # fmt: skip
    card = waste_top(state)
    if card >= 0:
        num_moves += count(state.wanted & bit(card)) + count(places_for_waste(state, card))
    return num_moves


@rule
def may_deal(state: State, num_moves: int) -> bool:
    """Return whether the deal is legal (BB-7 to BB-9), given the number of other legal moves."""
    if state.num_dealt == state.stock_end:
        return may_turn_over(state)
    return not state.when_stuck or num_moves == 0 or short_piles(state) != EMPTY


@rule
def legal(state: State, mask: Mask) -> int:
    mask[:] = 0
    if state.needs_deal:
        return 0
    num_moves = 0
    barred = barred_piles(state)
    moving = state.tops & (state.wanted | next_lower(state.open_tops))
    while moving:
        card = lowest(moving)
        moving &= moving - ONE
        sources = np.uint64(state.piles_of[card])
        while sources:
            pile = lowest(sources)
            sources &= sources - ONE
            targets = EMPTY if barred >> pile & 1 else places_for(state, card)
            moves = moves_to(state, card, without(targets, pile))
            spread(mask, NUM_HOURS * pile, moves, NUM_HOURS)
            num_moves += count(moves)
    moves = EMPTY
    card = waste_top(state)
    if card >= 0:
        moves = moves_to(state, card, places_for_waste(state, card))
        num_moves += count(moves)
    if may_deal(state, num_moves):
        num_moves += 1
        moves |= bit(DEAL - WASTE)
    spread(mask, WASTE, moves, WASTE_AND_DEAL)
    return num_moves


@rule
def moves_to(state: State, card: int, targets: Piles) -> Moves:
    """Return the moves of a card to its foundation, if that takes it, and to the given piles."""
    return (state.wanted >> np.uint64(card) & ONE) | targets << ONE


@rule
def without(piles: Piles, pile: int) -> Piles:
    """Return a set of piles with one removed, and those after it shifted down by one."""
    before = bit(pile) - ONE
    return (piles & before) | (piles >> ONE & ~before)


@rule
def random_move(state: State, stream: Stream) -> int:
    num_moves = count_moves(state)
    num_legal = num_moves + (1 if may_deal(state, num_moves) else 0)
    index = below(advance(stream), num_legal) if num_legal > 1 else 0
    if index == num_moves:
        return DEAL
    return nth_move(state, index)


@rule
def nth_move(state: State, index: int) -> int:
    """Return the legal action with this index, in the order of `count_moves`: first copies, then second ones."""
    homing = state.tops & state.wanted
    number = count(homing)
    if index < number:
        return NUM_HOURS * lowest(np.uint64(state.piles_of[nth(homing, index)]))
    index -= number
    homing = state.twin_tops & state.wanted
    number = count(homing)
    if index < number:
        return NUM_HOURS * highest(np.uint64(state.piles_of[nth(homing, index)]))
    index -= number
    cards, twins = building_cards(state)
    fitting, fitting_twice = next_lower(state.open_tops), next_lower(state.open_twins)
    for case in range(4):
        building = (twins if case & 1 else cards) & (fitting_twice if case & 2 else fitting)
        number = count(building)
        if index < number:
            card = nth(building, index)
            sources = np.uint64(int(state.piles_of[card]) & ~barred_piles(state))
            targets = places_for(state, card)
            return move_action(
                highest(sources) if case & 1 else lowest(sources), highest(targets) if case & 2 else lowest(targets)
            )
        index -= number
    card = waste_top(state)
    if state.wanted & bit(card):
        if index == 0:
            return WASTE
        index -= 1
    return WASTE + 1 + nth(places_for_waste(state, card), index)


@rule
def play(state: State, action: int) -> None:
    state.rewards[0] = np.float32(0)
    hops = 0
    if action == DEAL:
        if state.num_dealt == state.stock_end:
            turn_over(state)
        elif short_piles(state):
            fill_gaps(state)
        else:
            card = draw(state)  # BB-8
            state.waste[int(state.num_waste)] = card
            state.num_waste += 1
            state.in_waste[card] += 1
    elif action >= WASTE:
        card = waste_top(state)
        state.num_waste -= 1
        state.in_waste[card] -= 1
        if action == WASTE:
            place(state, card)
        else:
            lay(state, action - WASTE - 1, card)
    else:
        source = action // NUM_HOURS
        target = action - NUM_HOURS * source
        if target == 0:
            place(state, lift(state, source))
        else:
            if target <= source:
                target -= 1
            if int(state.settled_piles) >> source & 1:  # BB-10: a hop from one copy to the other
                hops = int(state.hops) + 1
            lay(state, target, lift(state, source))
    state.hops = hops
    if state.num_dealt == state.stock_end and not state.over:  # with a stock there is always a move
        if not may_turn_over(state) and count_moves(state) == 0:
            state.over = state.needs_deal = True  # BB-11


# What the player knows


@rule
def observe(state: State, seat: int, obs: Obs) -> None:
    for pile in range(NUM_HOURS):
        height = int(state.heights[pile]) & 31
        spread(obs, AT.tops + NUM_CARDS * pile, bit(pile_card(state, pile, height, 0)), NUM_CARDS)
        for k in range(3):
            obs[AT.pile_nearness + 3 * pile + k] = state.nearness[pile_card(state, pile, height, k)]
        obs[AT.gaps + pile] = max(0, FULL_PILE - height)
    for first in range(0, NUM_HOURS, 3):
        bottoms = seconds = EMPTY
        for k in range(3):
            shift = np.uint64(NUM_KINDS * k)
            bottoms |= SUIT_AND_RANK[pile_card(state, first + k, 1, 0)] << shift
            seconds |= SUIT_AND_RANK[pile_card(state, first + k, 2, 0)] << shift
        spread(obs, AT.bottoms + NUM_KINDS * first, bottoms, KINDS_OF_3)
        spread(obs, AT.seconds + NUM_KINDS * first, seconds, KINDS_OF_3)
    copy(obs, AT.heights, state.heights, NUM_HOURS)
    spread(obs, AT.settled, np.uint64(state.settled_piles), NUM_HOURS)
    copy(obs, AT.to_come, state.to_come, NUM_HOURS)
    spread(obs, AT.wanted, state.wanted, NUM_CARDS)
    copy(obs, AT.nearness, state.nearness, NUM_CARDS)
    num_waste = int(state.num_waste)
    for k in range(NUM_NEAR):
        card = int(state.waste[max(num_waste - 1 - k, 0)]) & 63
        spread(obs, AT.waste_near + NUM_CARDS * k, bit(card) if num_waste > k else EMPTY, NUM_CARDS)
        obs[AT.waste_nearness + k] = state.nearness[card] if num_waste > k else 0
    copy(obs, AT.waste, state.in_waste, NUM_CARDS)
    copy(obs, AT.stock, state.in_stock, NUM_CARDS)
    obs[AT.waste_size] = num_waste
    obs[AT.stock_size] = state.stock_end - state.num_dealt
    obs[AT.hops] = state.hops
    obs[AT.pile_by_pile] = state.pile_by_pile
    obs[AT.when_stuck] = state.when_stuck


@rule
def observe_all(state: State, seat: int, obs: Obs) -> None:
    observe(state, seat, obs[: AT.stock_next])
    obs[AT.stock_next :] = 0
    for i in range(int(state.stock_end) - int(state.num_dealt)):
        card = stock_card(state, i)
        if i < NUM_NEXT:
            obs[AT.stock_next + NUM_CARDS * i + card] = 1
        copy = 0 if obs[AT.stock_places + card] == 0 else NUM_CARDS
        obs[AT.stock_places + copy + card] = i + 1
        obs[AT.stock_nearness + i] = state.nearness[card]


# What the player does not know


@rule
def determinize(state: State, seat: int, stream: Stream) -> None:
    """Shuffle the stock uniformly (BB-13), unless it is a waste turned over."""
    if state.stock_end > PACK_SIZE:
        return
    num_dealt = int(state.num_dealt)
    i = num_dealt
    for card in range(NUM_CARDS):
        for _ in range(int(state.in_stock[card])):
            state.pack[i] = card
            i += 1
    num_left = PACK_SIZE - num_dealt
    shuffle(state.pack[num_dealt:], num_left, num_left, advance(stream))


@rule
def reveals(state: State, action: int) -> bool:
    return action == DEAL and state.num_dealt < PACK_SIZE


@rule
def score_margin(state: State, seat: int) -> int:
    """Return the number of cards placed; a won game counts twice."""
    placed = int(state.num_placed)
    return 2 * placed if placed == PACK_SIZE else placed


@rule
def update_stats(state: State, seat: int, counts: Stats) -> None:
    if state.num_placed == PACK_SIZE:
        return
    counts[COUNT.lost] += 1
    counts[COUNT.placed] += state.num_placed
    counts[COUNT.in_waste] += state.num_waste
    for hour in range(NUM_HOURS):
        counts[COUNT.complete] += state.to_come[hour] == 0
