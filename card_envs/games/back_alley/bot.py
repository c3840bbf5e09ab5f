"""Back Alley's scripted players, compiled. Both use only what the seat to move may know."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.rng import advance, below, uniform
from card_envs.engine.sets import EMPTY, ONE, bit, count, highest, lowest, nth
from card_envs.game import Cards, Int64s, State, States, Stream
from card_envs.games.back_alley.rules import (
    ACES,
    ACTION,
    BLOOPERS,
    BOARD,
    MAX_SIZE,
    NO_BID,
    SUIT_CARDS,
    play_card,
    playable,
    rewrite_pack,
    unseen_by,
)

# The strongest at about 1 ms per move: see strength/README.md. No search of 100 ms is measurably better.
PRESETS = {"strong": "bidding=small+search:64", "champion": "bidding=small+search:64"}
# For people, the easiest first: each beats the one before in at least two games of three.
LEVELS = ("trivial", "bidding=trivial+greedy", "greedy", "strong")


@rule
def lowest_card(state: State, cards: Cards) -> int:
    """Return the lowest of some cards: plain suits before trumps, then by rank, then suits as C, D, H, S."""
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
def highest_plain(state: State, cards: Cards) -> int:
    """Return the highest of some plain cards: by rank, then suits as C, D, H, S."""
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
    """Return the action of the yardstick player in RULES.md."""
    if state.num_bids < 4:
        return ACTION.bid + min(count(state.hands[int(state.seat)] & (ACES | BLOOPERS)), int(state.hand_size) - 1)
    cards = playable(state)
    if state.num_played & 3 == 0:
        plain = cards & ~state.trumps
        return highest_plain(state, plain) if plain else highest(cards)
    winners = cards & state.beats
    return lowest_card(state, winners if winners else cards)


# The greedy player, described in RULES.md. Its numbers were tuned in mirrored matches against the trivial player and
# earlier versions of itself.

# Expected tricks of a trump in hundredths, by rank from two to ace, then the Bloopers.
TRUMP_WORTH = np.array([13, 13, 15, 16, 18, 20, 22, 26, 30, 35, 42, 48, 54, 64, 66])
# The same for plain cards, by hand size (0 to 13): in long deals aces and kings win more often.
PLAIN_WORTH = np.array([[-20] * 9 + [-15, -8, max(n * n // 5 - 10, -10), 4 * n - 8] for n in range(14)])
# Coefficients of the bid by hand size, in hundredths. First bidder of a side: a constant, a factor on the estimate, and
# a deduction per trick that the opponents bid. Second bidder: a constant, and the weight of the partner's bid. Both: a
# bonus for a void per trump, up to three trumps.
BIDDING = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [144, 106, 30, -1, 70, 1],
        [124, 90, 0, 101, -41, 3],
        [163, 66, 12, 95, 48, 4],
        [185, 61, 12, 119, 52, 6],
        [217, 78, 12, 138, 58, 7],
        [232, 95, 18, 186, 58, 9],
        [235, 120, 18, 229, 58, 10],
        [243, 138, 18, 276, 53, 7],
        [229, 150, 12, 318, 52, 8],
        [238, 161, 12, 354, 52, 15],
        [224, 190, 18, 402, 58, 10],
        [226, 194, 13, 428, 58, 13],
        [241, 194, 13, 458, 58, 19],
    ]
)
# A board is bid in deals of up to four cards if the hand's worth reaches a threshold.
LARGEST_BOARD = 4
BOARD_TRUMPS = np.array(  # one card, more cards
    [
        [50, 50, 50, 55, 60, 60, 60, 60, 65, 65, 70, 75, 85, 95, 100],
        [0, 0, 0, 5, 10, 10, 15, 20, 20, 20, 25, 25, 30, 30, 110],
    ]
)
BOARD_PLAINS = np.array([[0] * 11 + [5, 20], [-90] * 6 + [-75, -70, -60, -50, -45, -30, 0]])  # one card, more cards
# By hand size: thresholds of the first to the fourth bidder; bonus for a number and a board of the partner; deduction
# for a number and a board of an opponent.
BOARD_BIDDING = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0, 0],
        [48, 30, 30, 30, 10, 40, 0, 40],
        [30, 20, 30, 10, 20, 170, 80, 110],
        [60, 50, 60, 60, 0, 130, 40, 110],
        [90, 90, 50, 30, -40, 150, 40, 70],
    ]
)
# Likelihood of a bid relative to one that equals greedy's: by the difference in tricks, and if only one of the two is a
# board. Flatter distributions were weaker against `greedy`, and no stronger against `ppo` and `trivial`.
OFF_BY = np.array([1.0, 0.25, 0.05] + [0.02] * 10)
OTHER_KIND = 0.03
OTHER_CARD = 0.1  # relative likelihood of a card that differs from greedy's
DECISIONS = 1 + MAX_SIZE  # decisions of a seat in a deal: its bid, then its cards
REPLAYED = 4 * DECISIONS  # index into the states of `refine_world`: the deal during its replay
Shares: TypeAlias = tuple[float, float, float, float]
FIRST, FACTOR, OPPOSING, SECOND, PARTNERED, VOID = range(6)  # columns of BIDDING
KING, QUEEN = 11, 10
LITTLE = np.uint64(1 << 52)


def _keep(ranks: int) -> Cards:
    """Return all cards from a rank up in each suit; shifted down by that rank, they stay within their suit."""
    return np.uint64(sum(1 << c for c in range(54) if (c if c < 39 else c - 39) % (13 if c < 39 else 15) >= ranks))


KEEP_1, KEEP_2, KEEP_4, KEEP_8 = _keep(1), _keep(2), _keep(4), _keep(8)
SHIFT_1, SHIFT_2, SHIFT_4, SHIFT_8 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(8)


@rule
def lower_than(cards: Cards) -> Cards:
    """Return all cards lower than one of these in the same suit."""
    lower = (cards & KEEP_1) >> SHIFT_1
    lower |= (lower & KEEP_1) >> SHIFT_1
    lower |= (lower & KEEP_2) >> SHIFT_2
    lower |= (lower & KEEP_4) >> SHIFT_4
    return lower | (lower & KEEP_8) >> SHIFT_8


@rule
def suit_of(cards: Cards, suit: int) -> Cards:
    """Return the plain cards of a suit."""
    return cards & (SUIT_CARDS << np.uint64(13 * suit))


@rule
def may_ruff(held: Cards, suit: int, trumps: Cards) -> bool:
    """Return whether a seat that may hold these cards lacks the suit and may hold trumps."""
    return suit_of(held, suit) == EMPTY and held & trumps != EMPTY


@rule
def greedy(state: State) -> int:
    """Return the action of the scripted player in RULES.md."""
    if state.num_bids < 4:
        if state.hand_size <= LARGEST_BOARD and wants_board(state):
            return ACTION.bid + BOARD
        return ACTION.bid + number_to_bid(state)
    cards = playable(state)
    if cards & (cards - ONE) == EMPTY:
        return lowest(cards)
    return card_to_lead(state, cards) if state.num_played & 3 == 0 else card_to_follow(state, cards)


@rule
def likelihood(state: State, seat: int) -> float:
    """Return the likelihood of the others' bids and cards given the hidden hands.

    Each bid counts by its difference from greedy's bid, each card by whether `greedy` would have played it.
    """
    mover, num_bids = state.seat, int(state.num_bids)
    bids = int(state.bids[0]), int(state.bids[1]), int(state.bids[2]), int(state.bids[3])
    for k in range(4):
        state.bids[k] = NO_BID
    likely = 1.0
    for k in range(num_bids):
        bidder = (int(state.dealer) + 1 + k) & 3
        bid = bids[bidder]
        if bidder != seat:
            left = state.hands[bidder]
            state.hands[bidder] = left | state.played[bidder]
            state.seat, state.num_bids = bidder, k
            likely *= bid_share(bid, greedy(state) - ACTION.bid)
            state.hands[bidder] = left
        state.bids[bidder] = bid
    state.seat, state.num_bids = mover, num_bids
    return likely * card_likelihood(state, seat) if state.num_played > 0 else likely


@rule
def bid_share(bid: int, expected: int) -> float:
    """Return the likelihood of a bid, given the bid of `greedy`."""
    if bid == BOARD or expected == BOARD:
        return 1.0 if bid == expected else OTHER_KIND
    return OFF_BY[abs(bid - expected)]


@rule
def card_likelihood(state: State, seat: int) -> float:
    """Return the likelihood of the cards played.

    The deal is replayed from its first card, so the state is the same afterwards.
    """
    num_played = int(state.num_played)
    rewind(state)
    state.seat = state.leaders[0]
    likely = 1.0
    for k in range(num_played):
        card = int(state.history[k])
        if state.seat != seat and greedy(state) != card:
            likely *= OTHER_CARD
        play_card(state, card)
    return likely


@rule
def rewind(state: State) -> None:
    """Take all played cards back into the hands."""
    for k in range(4):
        state.hands[k] |= state.played[k]
        state.played[k] = EMPTY
        state.lacks[k] = EMPTY if state.trumps else BLOOPERS
    state.tricks[0] = state.tricks[1] = state.num_played = 0
    state.on_table = state.beats = EMPTY
    state.broken = False


@rule
def refine_world(states: States, seat: int, steps: int, stream: Stream) -> None:
    """Resample hidden hands by Metropolis steps.

    A step proposes to swap a card of a hidden hand with any other card that the seat can't see, unless a hand would get
    a card that it is known to lack. The proposal is symmetric, so it is accepted with probability min(1, new likelihood
    / old likelihood). Only the hands that change are evaluated again, and only until rejection is certain.
    """
    world, seat = states[0], int(seat)
    unseen = unseen_by(world, seat)
    held = world.hands[(seat + 1) & 3] | world.hands[(seat + 2) & 3] | world.hands[(seat + 3) & 3]
    if held == EMPTY or count(unseen) == 1:
        return
    note_decisions(states, seat)
    shares = (1.0, 1.0, 1.0, 1.0)  # of the undealt cards (index 0) and of the next seats
    for k in range(1, 4):
        shares = with_share(shares, k, share_of_hand(states, seat, k, world.hands[(seat + k) & 3], 0.0))
    for _ in range(steps):
        card = bit(nth(held, below(advance(stream), count(held))))
        other_card = bit(nth(unseen & ~card, below(advance(stream), count(unseen) - 1)))
        giver, taker = holder(world, seat, card), holder(world, seat, other_card)
        give, take = (seat + giver) & 3, (seat + taker) & 3
        if giver == taker or other_card & world.lacks[give] or (taker and card & world.lacks[take]):
            continue
        least, swapped = uniform(stream) * shares[giver] * shares[taker], card | other_card
        giver_share = share_of_hand(states, seat, giver, world.hands[give] ^ swapped, least)
        if giver_share < least:
            continue
        taker_share = 1.0
        if taker:
            taker_share = share_of_hand(states, seat, taker, world.hands[take] ^ swapped, least / giver_share)
        if giver_share * taker_share < least:
            continue
        shares = with_share(with_share(shares, giver, giver_share), taker, taker_share)
        world.hands[give] ^= swapped
        if taker:
            world.hands[take] ^= swapped
        else:
            held ^= swapped
    rewrite_pack(world)


@rule
def holder(state: State, seat: int, card: Cards) -> int:
    """Return how many seats after this one holds a hidden card; 0: it was not dealt."""
    for k in range(1, 4):
        if state.hands[(seat + k) & 3] & card:
            return k
    return 0


@rule
def with_share(shares: Shares, k: int, share: float) -> Shares:
    """Return the shares with entry k replaced."""
    return (
        share if k == 0 else shares[0],
        share if k == 1 else shares[1],
        share if k == 2 else shares[2],
        share if k == 3 else shares[3],
    )


@rule
def note_decisions(states: States, seat: int) -> None:
    """Write the public state at each bid and play of the other seats into states[1:], DECISIONS for each seat."""
    states[REPLAYED] = states[0]
    bids, state = states[0].bids, states[REPLAYED]
    num_bids, num_played = int(state.num_bids), int(state.num_played)
    rewind(state)
    for k in range(4):
        state.bids[k] = NO_BID
    for k in range(num_bids):
        state.seat, state.num_bids = (int(state.dealer) + 1 + k) & 3, k
        after = (int(state.seat) - seat) & 3
        if after > 0:
            states[DECISIONS * after] = state
        state.bids[int(state.seat)] = bids[int(state.seat)]
    state.num_bids = num_bids
    if num_played > 0:
        state.seat = state.leaders[0]
    for k in range(num_played):
        after = (int(state.seat) - seat) & 3
        if after > 0:
            states[DECISIONS * after + 1 + (k >> 2)] = state
        play_card(state, int(state.history[k]))


@rule
def share_of_hand(states: States, seat: int, after: int, hand: Cards, least: float) -> float:
    """Return a hand's factor in `likelihood`, for the seat `after` places after this one.

    Below `least`, any value below it may be returned.
    """
    world = states[0]
    other = (seat + after) & 3
    share = 1.0
    for k in range(0 if world.bids[other] != NO_BID else 1, count(world.played[other]) + 1):
        state = states[DECISIONS * after + k]
        state.hands[other] = hand | (world.played[other] & ~state.played[other])
        move = greedy(state)
        if k == 0:
            share = bid_share(int(world.bids[other]), move - ACTION.bid)
        elif move != int(world.history[int(state.num_played)]):
            share *= OTHER_CARD
        if share < least:
            break
    return share


@rule
def worth(state: State, trump_worth: Int64s, plain_worth: Int64s) -> int:
    """Return the total worth of the cards in hand."""
    total = 0
    cards = state.hands[int(state.seat)]
    while cards:
        card = lowest(cards)
        cards &= cards - ONE
        is_trump = card >= 39 and state.trumps != EMPTY
        total += trump_worth[card - 39] if is_trump else plain_worth[card % 13]
    return total


@rule
def wants_board(state: State) -> bool:
    seat, size = int(state.seat), int(state.hand_size)
    kind = min(size, 2) - 1
    total = worth(state, BOARD_TRUMPS[kind], BOARD_PLAINS[kind])
    for k in range(1, 4):
        bid = int(state.bids[(seat + k) & 3])
        if bid > 0:
            effect = BOARD_BIDDING[size, (4 if k == 2 else 6) + (1 if bid == BOARD else 0)]
            total += effect if k == 2 else -effect
    return total >= BOARD_BIDDING[size, int(state.num_bids)]


@rule
def number_to_bid(state: State) -> int:
    """Return the expected tricks of the hand, less those that the opponents claim."""
    seat, size = int(state.seat), int(state.hand_size)
    estimate = worth(state, TRUMP_WORTH, PLAIN_WORTH[size])
    hand = state.hands[seat]
    num_trumps = min(count(hand & state.trumps), 3)
    for suit in range(3):
        if suit_of(hand, suit) == EMPTY:
            estimate += BIDDING[size, VOID] * num_trumps
    claimed = max(int(state.bids[(seat + 1) & 3]), 0) + max(int(state.bids[(seat + 3) & 3]), 0)
    taken_off = min(claimed, size) * BIDDING[size, OPPOSING]
    partner = int(state.bids[(seat + 2) & 3])
    if partner == NO_BID:
        bid = (BIDDING[size, FIRST] + estimate * BIDDING[size, FACTOR] // 100 - taken_off) // 100
    else:
        bid = (BIDDING[size, SECOND] + estimate - taken_off + partner * BIDDING[size, PARTNERED]) // 100 - partner
    return max(0, min(bid, size - 1))


@rule
def card_to_lead(state: State, cards: Cards) -> int:
    """Return a card that no opponent can beat in its suit; else a low one from the best suit."""
    seat = int(state.seat)
    unseen = unseen_by(state, seat)
    left, right = unseen & ~state.lacks[(seat + 1) & 3], unseen & ~state.lacks[(seat + 3) & 3]
    partner = unseen & ~state.lacks[(seat + 2) & 3]
    opposing = left | right
    masters = cards & (~lower_than(opposing) | (LITTLE & state.trumps))
    top_trumps = masters & state.trumps
    if top_trumps and opposing & state.trumps:
        return highest(top_trumps)  # draw their trumps
    sure = masters & ~state.trumps
    for suit in range(4):
        if suit_of(sure, suit) and not (
            may_ruff(left, suit, state.trumps) or may_ruff(right, suit, state.trumps)
        ):  # fmt: skip
            return highest(suit_of(sure, suit))
    if sure:
        return highest_plain(state, sure)
    plain = cards & ~state.trumps
    if plain == EMPTY:
        return highest(top_trumps) if top_trumps else lowest(cards)
    best = -1000
    card = 0
    for suit in range(4):
        suit_cards = suit_of(plain, suit)
        if suit_cards:
            value = suit_to_lead(state, suit, suit_cards, left, right, partner) + 2 * count(suit_of(unseen, suit))
            if value > best:
                best = value
                card = lowest(suit_cards)
    return card


@rule
def suit_to_lead(state: State, suit: int, cards: Cards, left: Cards, right: Cards, partner: Cards) -> int:
    """Return a score for leading low from these cards of a plain suit."""
    value = lowest(cards) - 13 * suit
    length = count(cards)
    if length == 1:
        value += 12 if state.hands[int(state.seat)] & state.trumps else -65  # allows a ruff later
    elif length == 2:
        value -= 3
    else:
        value += 3 * length
    if length > 1:
        top = highest(cards) - 13 * suit
        value -= 73 if top == KING else 30 if top == QUEEN else 0  # would unguard an honour
    if may_ruff(partner, suit, state.trumps):
        value += 84
    if may_ruff(left, suit, state.trumps) or may_ruff(right, suit, state.trumps):
        value -= 18
    if suit_of(partner, suit) & ~lower_than(left | right):
        value += 40  # the partner may have the master
    return value


@rule
def card_to_follow(state: State, cards: Cards) -> int:
    """Return the cheapest card that probably wins; else the lowest card."""
    seat = int(state.seat)
    position = int(state.num_played) & 3
    partner_wins = (int(state.best_seat) ^ seat) & 1 == 0
    winners = cards & state.beats
    if winners == EMPTY or (position == 3 and partner_wins):
        return lowest_card(state, cards)
    if position == 3:
        return lowest_card(state, winners)
    next_seat = unseen_by(state, seat) & ~state.lacks[(seat + 1) & 3]
    if position == 2 and partner_wins and next_seat & state.beats & state.followers == EMPTY:
        return lowest_card(state, cards)
    if winners & state.followers == EMPTY:
        return lowest(winners)  # ruff
    safe = winners & ~lower_than(next_seat)
    if safe:
        return lowest_card(state, safe)
    return highest(winners) if position == 2 else lowest_card(state, winners)
