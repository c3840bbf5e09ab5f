"""Last Card, compiled. Comments cite the rules of RULES.md. Card `4 * suit + rank` is there twice.

A hand is two sets: the cards in it, and those that are in it twice. The state keeps the pack in the order of the deal,
because the moves played and the pack are what leads to a position: see `determinize`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.rng import advance, below, derive, shuffle
from card_envs.engine.sets import EMPTY, bit, copy, count, nth, spread
from card_envs.game import (
    Cards,
    Field,
    Mask,
    Obs,
    Pack,
    Stat,
    State,
    Stats,
    Stream,
    UInt64s,
    offsets,
    state_dtype,
)

if TYPE_CHECKING:
    from card_envs.scaffold.last_card.options import Options

Hand: TypeAlias = UInt64s  # [2] the cards in it, and those that are in it twice

NUM_SEATS = 2
NUM_CARDS = 16  # different ones
PACK_SIZE = 32
HAND_SIZE = 5
FIRST_OF_STOCK = 2 * HAND_SIZE + 1  # place in the pack
STOCK_SIZE = PACK_SIZE - FIRST_OF_STOCK
MOST_CARDS = HAND_SIZE + STOCK_SIZE  # in one hand
MOST_MOVES = 4 * PACK_SIZE  # every card drawn, passed on and played, and a pass after each
DRAW, PASS, NUM_ACTIONS = NUM_CARDS, NUM_CARDS + 1, NUM_CARDS + 2
WORST_SCORE = -float(MOST_CARDS)
SUIT = np.uint64(0b1111)  # clubs
RANK = np.uint64(0b0001_0001_0001_0001)  # jacks
ACTION_FIELDS = (
    Field("card", NUM_CARDS, 1, meaning="play the card"),
    Field("draw", 1, 1, meaning="draw the top card of the stock"),
    Field("pass", 1, 1, meaning="pass"),
)

STATE = state_dtype(
    NUM_SEATS,
    [
        ("reward_win", np.bool_),  # option; else points
        ("scores", np.int8, 2),
        ("pack", np.int8, PACK_SIZE),  # in the order of the deal: the stock is what lies from `next_place` on
        ("next_place", np.int8),
        ("hands", np.uint64, (2, 2)),
        ("pile", np.uint64, 2),  # a Hand as well
        ("top", np.int8),  # of the pile
        ("has_drawn", np.bool_),  # the seat to move, in this turn
        ("has_passed", np.bool_),  # the other one, just now, without drawing
        ("moves", np.int8, MOST_MOVES),  # all actions
        ("num_moves", np.int16),
    ],
)

OBS_FIELDS = (
    Field("hand", 2 * NUM_CARDS, 1, meaning="own cards; those of them that are there twice"),
    Field("pile", 2 * NUM_CARDS, 1, meaning="cards on the pile; those of them that are there twice"),
    Field("top", NUM_CARDS, 1, meaning="the top card of the pile"),
    Field("other_size", 1, MOST_CARDS, meaning="how many cards the other has"),
    Field("stock_size", 1, STOCK_SIZE, meaning="how many cards the stock has"),
    Field("has_drawn", 1, 1, meaning="the seat to move has drawn in this turn"),
    Field("has_passed", 1, 1, meaning="the seat before has passed without drawing"),
)
FULL_FIELDS = (
    *OBS_FIELDS,
    Field("other_hand", 2 * NUM_CARDS, 1, meaning="cards of the other; those of them that are there twice"),
    Field("stock", STOCK_SIZE, NUM_CARDS - 1, -1, meaning="cards of the stock, the next one last; -1 if it is gone"),
)
AT = offsets(FULL_FIELDS)

STATS = (Stat("deals"), Stat("wins"), Stat("points"))
COUNT = offsets(STATS)


def new_state(options: Options) -> State:
    """Return a State with these `Options` before its first deal."""
    state = np.zeros(1, STATE)[0]
    state.reward_win = options.reward == "win"
    state.over = state.needs_deal = True
    return state


# Hands


@rule
def add(hand: Hand, card: int) -> None:
    hand[1] |= hand[0] & bit(card)
    hand[0] |= bit(card)


@rule
def remove(hand: Hand, card: int) -> None:
    hand[0] &= ~bit(card) | hand[1]
    hand[1] &= ~bit(card)


@rule
def size(hand: Hand) -> int:
    return count(hand[0]) + count(hand[1])


@rule
def copies(hand: Hand, card: int) -> int:
    return count(hand[0] & bit(card)) + count(hand[1] & bit(card))


@rule
def fitting(card: int) -> Cards:
    """Return the cards with the suit or the rank of this one."""
    return (SUIT << np.uint64(card & 12)) | (RANK << np.uint64(card & 3))


# The deal


@rule
def deal(state: State) -> None:
    for place in range(PACK_SIZE):
        state.pack[place] = place >> 1
    shuffle(state.pack, PACK_SIZE, PACK_SIZE, derive(state.rng, 0))
    begin(state)


@rule
def set_deal(state: State, pack: Pack) -> None:
    copy(state.pack, 0, pack, PACK_SIZE)
    begin(state)


@rule
def begin(state: State) -> None:
    """Begin a deal from the pack in the state."""
    state.over = state.needs_deal = state.has_drawn = state.has_passed = False
    state.seat = state.num_moves = state.scores[0] = state.scores[1] = 0
    state.moves[:] = 0
    state.hands[:] = EMPTY
    state.pile[:] = EMPTY
    for place in range(2 * HAND_SIZE):  # LC-1
        add(state.hands[place // HAND_SIZE], state.pack[place])
    state.top = state.pack[2 * HAND_SIZE]
    add(state.pile, state.top)
    state.next_place = FIRST_OF_STOCK


# Moves


@rule
def choices(state: State) -> Cards:
    """Return the legal actions as a set."""
    actions = state.hands[int(state.seat), 0] & fitting(state.top)  # LC-3
    if not state.has_drawn and state.next_place < PACK_SIZE:  # LC-4
        return actions | bit(DRAW)
    return actions | bit(PASS)  # LC-4, LC-5


@rule
def legal(state: State, mask: Mask) -> int:
    mask[:] = 0
    if state.needs_deal:
        return 0
    spread(mask, 0, choices(state), NUM_ACTIONS)
    return count(choices(state))


@rule
def random_move(state: State, stream: Stream) -> int:
    actions = choices(state)
    return nth(actions, below(advance(stream), count(actions)))


@rule
def play(state: State, action: int) -> None:
    seat = int(state.seat)
    state.rewards[0] = state.rewards[1] = np.float32(0)
    state.moves[int(state.num_moves)] = action
    state.num_moves = int(state.num_moves) + 1
    if action == DRAW:  # LC-4: the turn goes on
        add(state.hands[seat], state.pack[int(state.next_place)])
        state.next_place = int(state.next_place) + 1
        state.has_drawn = True
        return
    passed = action == PASS and not state.has_drawn
    if action != PASS:
        remove(state.hands[seat], action)
        add(state.pile, action)
        state.top = action
    if size(state.hands[seat]) == 0 or (passed and state.has_passed):  # LC-6
        settle(state)
    state.has_passed = passed
    state.has_drawn = False
    state.seat = 1 - seat


@rule
def settle(state: State) -> None:
    """End the deal: who has fewer cards wins the difference (LC-6)."""
    state.over = state.needs_deal = True
    margin = size(state.hands[1]) - size(state.hands[0])
    state.scores[0] = max(margin, 0)
    state.scores[1] = max(-margin, 0)
    if state.reward_win:
        margin = min(max(margin, -1), 1)
    state.rewards[0] = np.float32(margin)
    state.rewards[1] = np.float32(-margin)


# What a seat knows


@rule
def write(obs: Obs, start: int, hand: Hand) -> None:
    spread(obs, start, hand[0], NUM_CARDS)
    spread(obs, start + NUM_CARDS, hand[1], NUM_CARDS)


@rule
def observe(state: State, seat: int, obs: Obs) -> None:
    write(obs, AT.hand, state.hands[int(seat)])
    write(obs, AT.pile, state.pile)
    spread(obs, AT.top, bit(state.top), NUM_CARDS)
    obs[AT.other_size] = size(state.hands[1 - int(seat)])
    obs[AT.stock_size] = PACK_SIZE - int(state.next_place)
    obs[AT.has_drawn] = state.has_drawn
    obs[AT.has_passed] = state.has_passed


@rule
def observe_all(state: State, seat: int, obs: Obs) -> None:
    observe(state, seat, obs[: AT.other_hand])
    write(obs, AT.other_hand, state.hands[1 - int(seat)])
    for k in range(STOCK_SIZE):
        place = PACK_SIZE - 1 - k
        obs[AT.stock + k] = state.pack[place] if place >= state.next_place else -1


@rule
def determinize(state: State, seat: int, stream: Stream) -> None:
    """Draw the pack again, as far as the seat does not know it: from it, the same moves lead to the same view."""
    while not draw_pack(state, int(seat), stream):
        pass


@rule
def draw_pack(state: State, seat: int, stream: Stream) -> bool:
    """Draw a pack for `determinize`; return False if it is to be drawn again.

    Which place in the pack each card came from that the other played is hidden, too (LC-7). It may be any place whose
    card the other had by then: as many ways whatever was chosen before, so choosing in the order of play is uniform.
    But where the other had both copies of a card, there are two ways to the same pack. Only the one in which the copy
    played first also came first counts.
    """
    other = 1 - seat
    places = EMPTY  # of all cards that the other has had
    for place in range(HAND_SIZE * other, HAND_SIZE * other + HAND_SIZE):
        places |= bit(place)
    in_hand = places
    first_copies = played = EMPTY  # places and cards
    mover, next_place = 0, FIRST_OF_STOCK
    for k in range(int(state.num_moves)):
        action = int(state.moves[k])
        if action == DRAW:
            if mover == other:
                places |= bit(next_place)
                in_hand |= bit(next_place)
            next_place += 1
            continue
        if mover == other and action != PASS:
            place = nth(in_hand, below(advance(stream), count(in_hand)))
            in_hand &= ~bit(place)
            state.pack[place] = action
            if played & bit(action) == EMPTY:
                first_copies |= bit(place)
            played |= bit(action)
        mover = 1 - mover
    draw_rest(state, seat, in_hand, next_place, stream)
    met = EMPTY
    for place in range(PACK_SIZE):
        if places & bit(place):
            card = bit(state.pack[place])
            if first_copies & bit(place) and met & card:
                return False
            met |= card
    return True


@rule
def draw_rest(state: State, seat: int, in_hand: Cards, next_place: int, stream: Stream) -> None:
    """Draw the cards at the places of the other's hand and in the stock."""
    hidden = in_hand
    for place in range(next_place, PACK_SIZE):
        hidden |= bit(place)
    hand = state.hands[1 - seat]
    hand[0] = hand[1] = EMPTY
    for card in range(NUM_CARDS):
        for _ in range(2 - copies(state.hands[seat], card) - copies(state.pile, card)):
            place = nth(hidden, below(advance(stream), count(hidden)))
            hidden &= ~bit(place)
            state.pack[place] = card
            if in_hand & bit(place):
                add(hand, card)


@rule
def reveals(state: State, action: int) -> bool:
    return action == DRAW


@rule
def score_margin(state: State, seat: int) -> int:
    return int(state.scores[int(seat)]) - int(state.scores[1 - int(seat)])


@rule
def update_stats(state: State, seat: int, counts: Stats) -> None:
    counts[COUNT.deals] += 1
    counts[COUNT.wins] += state.scores[seat] > 0
    counts[COUNT.points] += state.scores[seat]
