"""Back Alley, compiled. The rules are numbered in RULES.md; comments cite them.

Cards are coded relative to the trump suit, so that trumps are a constant and all deals look alike: `13 * suit + rank`
with rank 0 (two) to 12 (ace). Suit 3 is always trumps; the others precede it in the cyclic order C, D, H, S. 52 is the
Little and 53 the Big Blooper. So trumps are the codes from 39 up, in playing order (BA-2). In a deal without trumps,
suit 3 is spades, a plain suit. Packs hold true cards, coded likewise with C, D, H, S as 0 to 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.rng import advance, below, derive, shuffle, uniform
from card_envs.engine.sets import EMPTY, ONE, above_card, below_card, bit, copy, count, highest, lowest, nth, spread
from card_envs.game import Cards, Field, Mask, Obs, Pack, Stat, State, Stats, Stream, offsets, state_dtype

if TYPE_CHECKING:
    from card_envs.games.back_alley.options import Options

NUM_SEATS = 4
NUM_CARDS = 54
LITTLE_BLOOPER, BIG_BLOOPER = 52, 53
PACK_SIZE = NUM_CARDS + 2  # then the dealer and the size of a single deal, or -1: the rules decide
MATCH = (*range(13, 1, -1), *range(1, 14))  # hand sizes, BA-3
MAX_SIZE = 13
MAX_DEALS = 100
MAX_PASS_OUTS = 8  # BA-9
DEALER_STREAM, SIZE_STREAM = 1000, 1001  # streams below an episode's key; those of deals are numbered from 0

BOARD = 13  # as a bid; 0 is a pass
NUM_BIDS = 14
NO_BID = -1
ACTION_FIELDS = (
    Field("card", 54, 1, meaning="play the card with that relative code"),
    Field("bid", NUM_BIDS, 1, meaning="pass, 1 to 12, board"),
)
ACTION = offsets(ACTION_FIELDS)
SIDES = (0, 1, 0, 1)  # which seats win and lose together
STATS = (
    Stat("hands"),
    Stat("passed_out"),
    Stat("no_trumps"),
    Stat("laid_aside", meaning="a Blooper (BA-5)"),
    Stat("raised", meaning="second boards or later (BA-8)"),
    Stat("blooper_leads"),
    Stat("bids_made", 14, "by bid"),
    Stat("contracts_made", 14, "by bid, for the side"),
    Stat("tricks_over", 14, "by bid, beyond it"),
)
COUNT = offsets(STATS)
WORST_SCORE = -70.0 * MAX_SIZE  # a quadruple board failed against a triple board made

ALL_CARDS = np.uint64((1 << NUM_CARDS) - 1)
TRUMPS = np.uint64(0x7FFF << 39)
BLOOPERS = np.uint64(3 << 52)
ACES = np.uint64(sum(1 << (13 * suit + 12) for suit in range(4)))
SUIT_CARDS = np.uint64(0x1FFF)
PLAIN_CARDS = np.uint64((1 << 52) - 1)
# The cards that follow a lead of each card: its suit, the Bloopers being trumps.
FOLLOWERS = np.array([0x1FFF << (13 * (c // 13)) if c < 39 else 0x7FFF << 39 for c in range(NUM_CARDS)], np.uint64)
SORTED_PACK = np.arange(NUM_CARDS, dtype=np.int8)
MATCH_SIZES = np.array(MATCH, np.int8)
# CHOOSE[n, k]: number of k-subsets of n cards. Numbers of deals exceed 64 bits, so they are floats.
CHOOSE = np.zeros((NUM_CARDS + 1, MAX_SIZE + 1))
CHOOSE[:, 0] = 1
for _n in range(1, NUM_CARDS + 1):
    CHOOSE[_n, 1:] = CHOOSE[_n - 1, 1:] + CHOOSE[_n - 1, :-1]

STATE = state_dtype(
    NUM_SEATS,
    [
        # options
        ("reward_win", np.bool_),  # else points
        ("single", np.bool_),  # one deal, of a size drawn for each episode
        ("num_deals", np.int8),
        ("sizes", np.int8, MAX_DEALS),
        ("redraws", np.bool_),  # BA-5: when a Blooper is turned up, so is the next card; else there is no trump suit
        ("redrawn", np.int8),  # of the deal: which Bloopers were turned up and replaced; 1: Little, 2: Big, 3: both
        # the match
        ("scores", np.int32, 2),  # by team
        ("deal_number", np.int8),  # index into sizes
        ("pass_outs", np.int8),  # in a row at this size
        ("dealer", np.int8),
        # the deal
        ("hands", np.uint64, 4),
        ("played", np.uint64, 4),  # by seat
        ("lacks", np.uint64, 4),  # cards that a seat is publicly known not to hold
        ("trumps", np.uint64),  # TRUMPS, or empty
        ("pack", np.int8, NUM_CARDS),  # as dealt
        ("shift", np.int8),  # relative suit = true suit + shift, modulo 4
        ("hand_size", np.int8),  # cards a hand
        ("turned", np.int8),  # true card, the last one turned up
        ("laid_aside_by", np.int8),  # BA-5: the seat, or -1
        # bidding
        ("num_bids", np.int8),
        ("bids", np.int8, 4),  # by seat: NO_BID, 0 to 12, BOARD
        ("boards", np.int8),  # how many boards were bid
        ("levels", np.int8, 4),  # BA-8: of each seat's board, or 0
        ("high_bid", np.int8),
        ("contracts", np.int8, 2),  # BA-7, by team
        ("team_levels", np.int8, 2),
        # play
        ("leader", np.int8),  # of the trick; after the bidding, of the first trick
        ("best_seat", np.int8),  # who would take the trick as it stands
        ("best", np.int8),  # with which card
        ("followers", np.uint64),  # the cards that follow suit
        ("beats", np.uint64),  # the cards that would take the trick as it stands; none between tricks
        ("broken", np.bool_),  # BA-12: a trump was played in an earlier trick
        ("num_played", np.int8),
        ("history", np.int8, 4 * MAX_SIZE),  # cards in the order they were played
        ("leaders", np.int8, MAX_SIZE),  # by trick
        ("trick_of_card", np.int8, NUM_CARDS),  # the trick (from 1) in which a card was played, or 0
        ("on_table", np.uint64),  # the cards of the trick so far
        ("tricks", np.int8, 2),  # taken, by team
    ],
)

OBS_FIELDS = (
    Field("hand", 54, 1, meaning="own cards"),
    Field("played", 216, 1, meaning="cards played by me, left, partner, right (54 each)"),
    Field("trick_of_card", 54, 13, meaning="in which trick (1-13) a card was played"),
    Field("on_table", 54, 1, meaning="cards of the trick so far"),
    Field("winners", 54, 1, meaning="own cards that would take the trick as it stands"),
    Field("bids", 56, 1, meaning="bid of me, left, partner, right (14 each: pass, 1-12, board)"),
    Field("levels", 4, 4, meaning="level of the board that me, left, partner, right bid"),
    Field("dealer", 4, 1, meaning="me, left, partner, right"),
    Field("leader", 4, 1, meaning="who leads or led the trick: me, left, partner, right"),
    Field("best_seat", 4, 1, meaning="who would take the trick as it stands"),
    Field("position", 4, 1, meaning="cards in the trick: 0-3 (none set while bidding)"),
    Field("size", 13, 1, meaning="cards dealt to each hand: 1-13"),
    Field("turned", 15, 1, meaning="the turned card: rank 2-A, Little, Big Blooper"),
    Field("trump_suit", 5, 1, meaning="C, D, H, S, none"),
    Field("laid_aside_by", 4, 1, meaning="who laid a Blooper aside (BA-5)"),
    Field("voids", 12, 1, meaning="left, partner, right known to hold none of suit 0, 1, 2, 3 (3: trumps)"),
    Field("trumps_above", 3, 15, meaning="left, partner, right known to lack the highest n trumps"),
    Field("trumps_below", 3, 15, meaning="left, partner, right known to lack the lowest n trumps"),
    Field("broken", 1, 1, meaning="a trump was played in an earlier trick"),
    Field("tricks", 2, 13, meaning="taken by us, them"),
    Field("need", 2, 24, -13, meaning="contract minus tricks taken: us, them (0 while bidding)"),
    Field("team_levels", 2, 4, meaning="board level of us, them"),
    Field("deal_number", 1, 100, meaning="0 for the first deal of the episode"),
    Field("deals_left", 1, 100, meaning="this one included"),
    Field("pass_outs", 1, 7, meaning="deals passed out in a row at this size"),
    Field("score_hundreds", 2, 127, -127, meaning="score of us, them: hundreds, towards zero"),
    Field("score_units", 2, 99, -99, meaning="score of us, them: the rest"),
)
FULL_FIELDS = (*OBS_FIELDS, Field("other_hands", 162, 1, meaning="cards of left, partner, right (54 each)"))
AT = offsets(FULL_FIELDS)
ALL_BIDS, NUM_MARKS, NUM_VOIDS = 4 * NUM_BIDS, 53, 12  # number of entries: `bids`; `dealer` to `laid_aside_by`; `voids`
# The entries for rank and trump suit among these, by turned card.
TURNED_MARKS = np.array(
    [
        1 << (AT.turned + (c % 13 if c < LITTLE_BLOOPER else c - 39) - AT.dealer)
        | 1 << (AT.trump_suit + c // 13 - AT.dealer)
        for c in range(NUM_CARDS)
    ],
    np.uint64,
)


def new_state(options: Options) -> State:
    """Return a State with these `Options` before its first deal."""
    state = np.zeros(1, STATE)[0]
    state.single = options.deals == "single"
    sizes = MATCH[:1] if state.single else options.deals or MATCH
    state.num_deals = len(sizes)
    state.sizes[: len(sizes)] = sizes
    state.redraws = options.blooper_turned == "redraw"
    state.reward_win = options.reward == "win"
    state.over = state.needs_deal = True
    return state


# Dealing


@rule
def begin(state: State) -> None:
    """Begin an episode: the first dealer, the size of a single deal (BA-3)."""
    state.over = False
    state.scores[0] = state.scores[1] = 0
    state.deal_number = 0
    state.pass_outs = 0
    state.dealer = below(derive(state.rng, DEALER_STREAM), 4)
    if state.single:
        state.sizes[0] = MATCH_SIZES[below(derive(state.rng, SIZE_STREAM), len(MATCH_SIZES))]


@rule
def deal(state: State) -> None:
    if state.over:
        begin(state)
    pack = state.pack
    for i in range(NUM_CARDS):
        pack[i] = SORTED_PACK[i]
    key = derive(derive(state.rng, state.deal_number), state.pass_outs)
    shuffle(pack, NUM_CARDS, 4 * state.sizes[state.deal_number] + (3 if state.redraws else 2), key)
    deal_hands(state)


@rule
def set_deal(state: State, pack: Pack) -> None:
    if state.over:
        begin(state)
    for i in range(NUM_CARDS):
        state.pack[i] = pack[i]
    if pack[NUM_CARDS] >= 0:
        state.dealer = pack[NUM_CARDS]
    if pack[NUM_CARDS + 1] >= 0:
        state.sizes[0] = pack[NUM_CARDS + 1]
    deal_hands(state)


@rule
def deal_hands(state: State) -> None:
    """Deal the pack in the state (BA-4, BA-5)."""
    size = int(state.sizes[state.deal_number])
    place = 4 * size
    state.redrawn = 0
    while state.redraws and state.pack[place] >= LITTLE_BLOOPER and place < NUM_CARDS - 1:
        state.redrawn |= 1 << (int(state.pack[place]) - LITTLE_BLOOPER)
        place += 1
    turned = int(state.pack[place])
    state.hand_size = size
    state.turned = turned
    has_trump = turned < LITTLE_BLOOPER
    state.trumps = TRUMPS if has_trump else EMPTY
    state.shift = (3 - turned // 13) & 3 if has_trump else 0
    state.laid_aside_by = -1
    other_blooper = EMPTY if has_trump else BLOOPERS & ~bit(turned)
    for k in range(4):
        hand = EMPTY
        for i in range(size):
            hand |= bit(state.pack[4 * i + k])
        seat = (int(state.dealer) + 1 + k) & 3
        if hand & other_blooper:
            state.laid_aside_by = seat
            hand = (hand & ~other_blooper) | bit(state.pack[4 * size + 1])
        state.hands[seat] = relative(hand, state.shift)
        state.played[seat] = EMPTY
        state.bids[seat] = NO_BID
        state.levels[seat] = 0
    for seat in range(4):
        state.lacks[seat] = EMPTY if has_trump else BLOOPERS
    for team in range(2):
        state.contracts[team] = state.team_levels[team] = state.tricks[team] = 0
    state.num_bids = state.boards = state.high_bid = state.num_played = 0
    for card in range(NUM_CARDS):
        state.trick_of_card[card] = 0
    state.on_table = state.beats = EMPTY
    state.broken = False
    state.seat = state.leader = (int(state.dealer) + 1) & 3
    state.needs_deal = False


@rule
def relative(cards: Cards, shift: int) -> Cards:
    """Return a set of true cards in relative codes: the plain cards are rotated by `shift` suits."""
    plain = cards & PLAIN_CARDS
    turn = np.uint64(13 * shift)
    return ((plain << turn | plain >> (np.uint64(52) - turn)) & PLAIN_CARDS) | (cards & BLOOPERS)


@rule
def next_deal(state: State, passed_out: bool) -> None:
    """Pass the deal clockwise (BA-3); repeat the size after a pass-out, up to eight times (BA-9)."""
    state.needs_deal = True
    if passed_out and state.pass_outs < MAX_PASS_OUTS - 1:
        state.pass_outs += 1
    else:
        state.pass_outs = 0
        state.deal_number += 1
        state.over = state.deal_number == state.num_deals
    if not state.over:  # at the end, the last deal stays visible
        state.dealer = (int(state.dealer) + 1) & 3
    elif state.reward_win:  # BA-18
        margin = state.scores[0] - state.scores[1]
        for seat in range(4):
            side = margin if seat & 1 == 0 else -margin
            state.rewards[seat] = np.float32(1 if side > 0 else -1 if side < 0 else 0)


# Moves


@rule
def playable(state: State) -> Cards:
    """Return the cards that the seat to move may play."""
    seat = int(state.seat)
    hand = state.hands[seat]
    if state.num_played & 3 == 0:
        if state.broken or state.levels[seat] > 0:
            return hand
        plain = hand & ~state.trumps
        return plain if plain != EMPTY else hand  # BA-12
    same = hand & state.followers
    if same == EMPTY:
        return hand
    led = int(state.history[state.num_played & ~3])
    if led == BIG_BLOOPER:
        return bit(highest(same))  # BA-13
    if led == LITTLE_BLOOPER:
        return bit(lowest(same))
    return same


@rule
def legal(state: State, mask: Mask) -> int:
    cards = bids = EMPTY
    if not state.needs_deal:
        if state.num_bids < 4:
            bids = below_card(state.hand_size) | bit(BOARD)  # BA-6
        else:
            cards = playable(state)
    spread(mask, ACTION.card, cards, NUM_CARDS)
    spread(mask, ACTION.bid, bids, NUM_BIDS)
    return count(cards | bids)


@rule
def random_move(state: State, stream: Stream) -> int:
    if state.num_bids < 4:
        bid = below(advance(stream), int(state.hand_size) + 1)
        return ACTION.bid + (bid if bid < state.hand_size else BOARD)
    cards = playable(state)
    num_legal = count(cards)
    if num_legal == 1:
        return lowest(cards)
    return nth(cards, below(advance(stream), num_legal))


@rule
def play(state: State, action: int) -> None:
    for seat in range(4):
        state.rewards[seat] = np.float32(0)
    if action < ACTION.bid:
        play_card(state, action)
    else:
        make_bid(state, action - ACTION.bid)


@rule
def make_bid(state: State, bid: int) -> None:
    seat = int(state.seat)
    state.bids[seat] = bid
    state.num_bids += 1
    if bid == BOARD:
        state.boards += 1
        state.levels[seat] = state.boards  # BA-8
        state.leader = seat  # BA-10: the last board leads
    elif bid > state.high_bid and state.boards == 0:
        state.high_bid = bid
        state.leader = seat  # BA-10: else the first of the highest numbers
    if state.num_bids < 4:
        state.seat = (seat + 1) & 3
    elif state.boards == 0 and state.high_bid == 0:
        next_deal(state, True)
    else:
        for team in range(2):
            state.team_levels[team] = max(state.levels[team], state.levels[team + 2])
            boarded = state.team_levels[team] > 0
            state.contracts[team] = state.hand_size if boarded else state.bids[team] + state.bids[team + 2]  # BA-7
        state.seat = state.leader


@rule
def play_card(state: State, card: int) -> None:
    seat = int(state.seat)
    this = bit(card)
    num_played = int(state.num_played)
    state.hands[seat] &= ~this
    state.played[seat] |= this
    state.on_table |= this
    state.history[num_played] = card
    state.trick_of_card[card] = (num_played >> 2) + 1
    state.num_played = num_played + 1
    if num_played & 3 == 0:
        state.leader = seat
        state.leaders[num_played >> 2] = seat
        state.followers = FOLLOWERS[card]
        if this & state.trumps and not state.broken and state.levels[seat] == 0:
            state.lacks[seat] |= ALL_CARDS & ~state.trumps  # BA-12: nothing but trumps
        take_lead(state, seat, card)
    else:
        note_absent(state, seat, card)
        if this & state.beats:
            take_lead(state, seat, card)
    if num_played & 3 == 3:
        end_trick(state)
    else:
        state.seat = (seat + 1) & 3


@rule
def take_lead(state: State, seat: int, card: int) -> None:
    """Make a card the best of the trick (BA-11)."""
    state.best_seat = seat
    state.best = card
    higher = above_card(card) & ALL_CARDS
    if bit(card) & state.trumps:
        state.beats = higher & state.trumps
    else:
        state.beats = (higher & FOLLOWERS[card]) | state.trumps


@rule
def note_absent(state: State, seat: int, card: int) -> None:
    """Record what a card played to a trick reveals about the rest of the hand (BA-20)."""
    if bit(card) & state.followers == EMPTY:
        state.lacks[seat] |= state.followers
        return
    led = int(state.history[(int(state.num_played) - 1) & ~3])
    if led == BIG_BLOOPER:
        state.lacks[seat] |= above_card(card) & TRUMPS
    elif led == LITTLE_BLOOPER:
        state.lacks[seat] |= below_card(card) & TRUMPS


@rule
def end_trick(state: State) -> None:
    winner = int(state.best_seat)
    state.tricks[winner & 1] += 1
    state.seat = state.leader = winner
    state.on_table = state.beats = EMPTY
    played = state.played[0] | state.played[1] | state.played[2] | state.played[3]
    state.broken = played & state.trumps != EMPTY
    if state.num_played < 4 * state.hand_size:  # BA-14
        return
    for team in range(2):
        state.scores[team] += team_points(state, team)
    if not state.reward_win:
        margin = np.float32(team_points(state, 0) - team_points(state, 1))
        for seat in range(4):
            state.rewards[seat] = margin if seat & 1 == 0 else -margin
    next_deal(state, False)


@rule
def team_points(state: State, team: int) -> int:
    """Return a team's points after all tricks (BA-16, BA-17)."""
    taken = int(state.tricks[team])
    contract = int(state.contracts[team])
    level = int(state.team_levels[team])
    if level > 0:
        points = 10 * int(state.hand_size) * level
        return points if taken == state.hand_size else -points
    if taken < contract:
        return -5 * contract
    return 5 * contract + taken - contract


# What a seat knows


@rule
def observe(state: State, seat: int, obs: Obs) -> None:
    seat = int(seat) & 3  # an index known to be nonnegative is faster
    spread(obs, AT.hand, state.hands[seat], NUM_CARDS)
    for k in range(4):
        spread(obs, AT.played + NUM_CARDS * k, state.played[(seat + k) & 3], NUM_CARDS)
    copy(obs, AT.trick_of_card, state.trick_of_card, NUM_CARDS)
    spread(obs, AT.on_table, state.on_table, NUM_CARDS)
    spread(obs, AT.winners, state.hands[seat] & state.beats, NUM_CARDS)
    bids = EMPTY
    for k in range(4):
        bid = int(state.bids[(seat + k) & 3])
        bids |= bit(NUM_BIDS * k + bid) if bid != NO_BID else EMPTY
        obs[AT.levels + k] = state.levels[(seat + k) & 3]
    spread(obs, AT.bids, bids, ALL_BIDS)
    spread(obs, AT.dealer, marks(state, seat), NUM_MARKS)
    voids = EMPTY
    for k in range(3):
        lacks = state.lacks[(seat + 1 + k) & 3]
        for suit in range(4):
            suit_cards = FOLLOWERS[13 * suit] if suit < 3 else FOLLOWERS[39] & (state.trumps | PLAIN_CARDS)
            voids |= bit(4 * k + suit) if lacks & suit_cards == suit_cards else EMPTY
        lacks &= state.trumps
        obs[AT.trumps_above + k] = 53 - highest((ONE << np.uint64(38)) | (~lacks & TRUMPS))
        obs[AT.trumps_below + k] = lowest((~lacks & TRUMPS) | (ONE << np.uint64(54))) - 39
    spread(obs, AT.voids, voids, NUM_VOIDS)
    obs[AT.broken] = state.broken
    for k in range(2):
        team = (seat + k) & 1
        obs[AT.tricks + k] = state.tricks[team]
        obs[AT.need + k] = state.contracts[team] - state.tricks[team]
        obs[AT.team_levels + k] = state.team_levels[team]
        score = int(state.scores[team])
        hundreds, units = abs(score) // 100, abs(score) % 100
        obs[AT.score_hundreds + k] = min(hundreds, 127) if score >= 0 else -min(hundreds, 127)
        obs[AT.score_units + k] = units if score >= 0 else -units
    obs[AT.deal_number] = state.deal_number
    obs[AT.deals_left] = state.num_deals - state.deal_number
    obs[AT.pass_outs] = state.pass_outs


@rule
def marks(state: State, seat: int) -> Cards:
    """Return the entries from `dealer` to `laid_aside_by` as a set; branch-free.

    Each field has at most one, but `turned` may also have Bloopers that were replaced.
    """
    playing, in_trick = state.num_bids == 4, int(state.num_played) & 3
    return (
        mark(AT.dealer, (int(state.dealer) - seat) & 3, True)
        | mark(AT.leader, (int(state.leader) - seat) & 3, playing)
        | mark(AT.best_seat, (int(state.best_seat) - seat) & 3, in_trick > 0)
        | mark(AT.position, in_trick, playing)
        | mark(AT.size, int(state.hand_size) - 1, True)
        | TURNED_MARKS[int(state.turned)]
        | np.uint64(state.redrawn) << np.uint64(AT.turned + 13 - AT.dealer)
        | mark(AT.laid_aside_by, (int(state.laid_aside_by) - seat) & 3, state.laid_aside_by >= 0)
    )


@rule
def mark(field: int, entry: int, true: bool) -> Cards:
    return np.uint64(true) << np.uint64(field - AT.dealer + entry)


@rule
def observe_all(state: State, seat: int, obs: Obs) -> None:
    observe(state, seat, obs[: AT.other_hands])
    for k in range(3):
        spread(obs, AT.other_hands + NUM_CARDS * k, state.hands[(int(seat) + 1 + k) & 3], NUM_CARDS)


# What a seat does not know


@rule
def replaced_bloopers(state: State) -> Cards:
    """Return the Bloopers that were turned up and replaced (BA-5)."""
    return np.uint64(state.redrawn) << np.uint64(LITTLE_BLOOPER)


@rule
def unseen_by(state: State, seat: int) -> Cards:
    """Return the cards whose place a seat does not know: not its own, not played, turned up or laid aside."""
    seen = state.hands[int(seat)] | state.played[0] | state.played[1] | state.played[2] | state.played[3]
    if state.trumps:
        seen |= bit(39 + int(state.turned) % 13)
    else:
        seen |= BLOOPERS if state.laid_aside_by >= 0 else bit(state.turned)
    return ALL_CARDS & ~(seen | replaced_bloopers(state))


@rule
def draw_cards(cards: Cards, number: int, stream: Stream) -> Cards:
    """Return a uniform subset of `number` cards; the smaller of the subset and its complement is drawn."""
    rest = cards
    left = count(cards)
    fewer = min(number, left - number)
    for _ in range(fewer):
        rest &= ~bit(nth(rest, below(advance(stream), left)))
        left -= 1
    return cards & ~rest if fewer == number else rest


@rule
def determinize(state: State, seat: int, stream: Stream) -> None:
    """Redeal the hidden hands, uniformly among the deals in which no seat gets a card that it is known to lack.

    Hands are drawn one after the other. A card's kind is the set of other seats that may hold it. The number of cards
    of each kind in a hand is drawn in proportion to the number of deals that it leaves; within a kind, cards are
    interchangeable.
    """
    unseen = unseen_by(state, seat)
    first, second, third = (int(seat) + 1) & 3, (int(seat) + 2) & 3, (int(seat) + 3) & 3
    for_first = unseen & ~state.lacks[first]
    for_second = unseen & ~state.lacks[second]
    for_third = unseen & ~state.lacks[third]
    if for_first == unseen and for_second == unseen and for_third == unseen:
        deal_anew(state, unseen, first, second, third, stream)
        rewrite_pack(state)
        return
    size_first, size_second, size_third = (
        count(state.hands[first]), count(state.hands[second]), count(state.hands[third]),
    )  # fmt: skip
    shares = split_first(for_first, for_second, for_third, size_first, size_second, size_third, stream)
    both, with_second, with_third = shares & 15, (shares >> 4) & 15, shares >> 8
    hand = (
        draw_cards(for_first & for_second & for_third, both, stream)
        | draw_cards(for_first & for_second & ~for_third, with_second, stream)
        | draw_cards(for_first & ~for_second & for_third, with_third, stream)
        | draw_cards(for_first & ~for_second & ~for_third, size_first - both - with_second - with_third, stream)
    )
    state.hands[first] = hand
    for_second &= ~hand
    for_third &= ~hand
    shared = for_second & for_third
    num_shared, num_own, num_third = count(shared), count(for_second & ~shared), count(for_third)
    target = uniform(stream) * ways_second(num_shared, num_own, num_third, size_second, size_third)
    taken = max(0, size_second - num_own)
    last = min(num_shared, size_second)
    while taken < last:
        target -= (
            choose(num_shared, taken) * choose(num_own, size_second - taken) * choose(num_third - taken, size_third)
        )
        if target < 0:
            break
        taken += 1
    hand = draw_cards(shared, taken, stream) | draw_cards(for_second & ~shared, size_second - taken, stream)
    state.hands[second] = hand
    state.hands[third] = draw_cards(for_third & ~hand, size_third, stream)
    rewrite_pack(state)


@rule
def deal_anew(state: State, unseen: Cards, first: int, second: int, third: int, stream: Stream) -> None:
    """Deal hands of the same sizes uniformly, for the case that any seat may hold any card.

    One pass over the cards: each goes to a hand with a probability proportional to the places left there (selection
    sampling: Knuth, TAOCP 2, 3.4.2). Branch-free, because the branches could not be predicted.
    """
    up_to_first = count(state.hands[first])  # places left in this hand and the previous ones
    up_to_second = up_to_first + count(state.hands[second])
    up_to_third = up_to_second + count(state.hands[third])
    left = count(unseen)
    hand_first = hand_second = hand_third = EMPTY
    while up_to_third > 0:
        card = unseen & ~(unseen - ONE)
        unseen ^= card
        place = int(below(advance(stream), left))
        left -= 1
        in_first, in_second, in_third = int(place < up_to_first), int(place < up_to_second), int(place < up_to_third)
        hand_first |= card * np.uint64(in_first)
        hand_second |= card * np.uint64(in_second - in_first)
        hand_third |= card * np.uint64(in_third - in_second)
        up_to_first -= in_first
        up_to_second -= in_second
        up_to_third -= in_third
    state.hands[first], state.hands[second], state.hands[third] = hand_first, hand_second, hand_third


@rule
def rewrite_pack(state: State) -> None:
    """Put the hands into the pack in card order, so that a determinization does not reveal the true order."""
    size = int(state.hand_size)
    turned = int(state.turned)
    dealt = bit(turned) | replaced_bloopers(state)
    position = 4 * size + count(dealt)  # after the cards turned up, which stay where they are
    for k in range(4):
        seat = (int(state.dealer) + 1 + k) & 3
        cards = relative(state.hands[seat] | state.played[seat], (4 - int(state.shift)) & 3)
        if state.laid_aside_by == seat:  # any of its cards may have been the replacement
            replacement = highest(cards)
            state.pack[position] = replacement
            position += 1
            dealt |= bit(replacement)
            cards = (cards & ~bit(replacement)) | (BLOOPERS & ~bit(turned))
        dealt |= cards
        for i in range(size):
            state.pack[4 * i + k] = lowest(cards)
            cards &= cards - ONE
    rest = ALL_CARDS & ~dealt
    while rest:
        state.pack[position] = lowest(rest)
        position += 1
        rest &= rest - ONE


@rule
def choose(n: int, k: int) -> float:
    """Return the number of k-subsets of n cards: a function, so that a GPU's program holds the table once."""
    return CHOOSE[n, k]  # type: ignore[no-any-return]


@rule
def ways_second(num_shared: int, num_own: int, num_third: int, size_second: int, size_third: int) -> float:
    """Return the number of ways to fill the second and third hand.

    Only the second may hold `num_own` cards; the third may hold `num_third`, and both `num_shared` of those. If the
    second hand takes k of the shared cards, it takes size_second - k of its own and leaves num_third - k: sum over k.
    """
    ways = 0.0
    for taken in range(max(0, size_second - num_own), min(num_shared, size_second) + 1):
        ways += choose(num_shared, taken) * choose(num_own, size_second - taken) * choose(num_third - taken, size_third)
    return ways


@rule
def split_first(
    for_first: Cards, for_second: Cards, for_third: Cards, size_first: int, size_second: int, size_third: int,
    stream: Stream,
) -> int:  # fmt: skip
    """Return how many cards the first hand takes of those that others may hold, too.

    The three kinds are: both others, only the second, only the third. Drawn in proportion to the number of deals;
    packed as both + 16 * second + 256 * third.
    """
    num_both = count(for_first & for_second & for_third)
    num_with_second = count(for_first & for_second & ~for_third)
    num_with_third = count(for_first & ~for_second & for_third)
    num_alone = count(for_first & ~for_second & ~for_third)
    num_shared = count(for_second & for_third)
    num_second = count(for_second & ~for_third)
    num_third = count(for_third)
    total = 0.0
    target = -1.0
    shares = 0
    for draw in range(2):  # first the total, then the split at a random part of it
        if draw == 1:
            target = uniform(stream) * total
        for both in range(min(num_both, size_first) + 1):
            for with_second in range(min(num_with_second, size_first - both) + 1):
                for with_third in range(min(num_with_third, size_first - both - with_second) + 1):
                    alone = size_first - both - with_second - with_third
                    if alone > num_alone:
                        continue
                    ways = (
                        choose(num_both, both)
                        * choose(num_with_second, with_second)
                        * choose(num_with_third, with_third)
                        * choose(num_alone, alone)
                        * ways_second(
                            num_shared - both, num_second - with_second, num_third - both - with_third,
                            size_second, size_third,
                        )
                    )  # fmt: skip
                    if draw == 0:
                        total += ways
                    elif ways > 0:
                        shares = both + 16 * with_second + 256 * with_third
                        target -= ways
                        if target < 0:
                            return shares
    return shares


@rule
def reveals(state: State, action: int) -> bool:
    """Return whether the mover may see a new card: never, since new cards show only when others play."""
    return False


@rule
def text_index(state: State, action: int) -> int:
    """Return the true card, whose suit depends on the one that was turned, or the bid."""
    return action if action >= LITTLE_BLOOPER else (action - 13 * int(state.shift)) % 52


@rule
def score_margin(state: State, seat: int) -> int:
    return int(state.scores[int(seat) & 1]) - int(state.scores[1 - (int(seat) & 1)])


@rule
def update_stats(state: State, seat: int, counts: Stats) -> None:
    counts[COUNT.hands] += 1
    counts[COUNT.no_trumps] += state.trumps == EMPTY
    counts[COUNT.laid_aside] += state.laid_aside_by == seat
    counts[COUNT.raised] += state.levels[seat] > 1
    num_tricks = int(state.num_played) >> 2
    if num_tricks == 0:
        counts[COUNT.passed_out] += 1
        return
    taken = 1 if state.leader == seat else 0  # the last one
    bloopers = 0
    for trick in range(num_tricks):
        leads = state.leaders[trick] == seat
        taken += leads & (trick > 0)
        bloopers += leads & (state.history[4 * trick] >= LITTLE_BLOOPER)
    counts[COUNT.blooper_leads] += bloopers
    bid = int(state.bids[seat])
    over = int(state.tricks[seat & 1]) - int(state.contracts[seat & 1])
    counts[COUNT.bids_made + bid] += 1
    counts[COUNT.contracts_made + bid] += over >= 0
    counts[COUNT.tricks_over + bid] += over if bid == BOARD else taken - bid
