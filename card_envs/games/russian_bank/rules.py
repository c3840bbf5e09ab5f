"""Russian Bank, compiled. The rules are numbered in RULES.md; comments cite them.

Cards are coded `4 * rank + suit`: ranks 0 (ace) to 12 (king), suits C, D, H, S as 0 to 3; the two copies of a card have
the same code. So the next card of a suit is 4 codes up, and the top of a house, which is a descending run, is its
lowest code: a house is the set of its cards. `NO_CARD` is a bit beyond every set of cards, so that missing cards need
no branches; it is also stored below the first card of each reserve and waste.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.rng import advance, below, derive, shuffle
from card_envs.engine.sets import EMPTY, ONE, below_card, bit, copy, count, lowest, nth, spread
from card_envs.game import Cards, Field, Mask, Obs, Pack, Stat, State, Stats, Stream, offsets, state_dtype, total

if TYPE_CHECKING:
    from card_envs.games.russian_bank.options import Options

Houses: TypeAlias = np.uint64  # a set of houses
Moves: TypeAlias = np.uint64  # a set of the actions below ACTION.house_to_house
Pairs: TypeAlias = np.uint64  # a set of house-to-house moves, as 8 * house + house

NUM_SEATS = 2
ALL_SEE_ALIKE = True  # no seat looks at a card that lies face down
NUM_CARDS = 52
NUM_BOTH = 2 * NUM_CARDS
PACK_SIZE = NUM_BOTH + 1  # both packs, and the starting player or -1: the option decides
NO_CARD = 63

# RB-2: a pack is dealt to the reserve (its size is an option), to own houses, and the rest is the hand.
NUM_HOUSES = 8
OWN_HOUSES = 4

LOW_RESERVE, HIGH_RESERVE, RANDOM, PLAYER_0, PLAYER_1 = range(5)  # option `start`
STARTS = ("low_reserve", "high_reserve", "random", "player_0", "player_1")
POINTS, WIN, PENALTY = range(3)  # option `reward`
REWARDS = ("points", "win", "penalty")
FILLS = ("any", "reserve")  # option `fill_houses`
RUNNING, WON, STALEMATE, NO_PROGRESS = range(4)  # how the last game ended

MAX_HOUSE_MOVES = 16  # RB-18
MAX_IDLE = 200  # RB-20
WIN_POINTS = 30  # RB-21
MATCH_GAMES = 50  # RB-22
MAX_HUNDREDS = 3  # observed of a player's points
STATS = (
    Stat("games"),
    Stat("turns"),
    Stat("won"),
    Stat("stalemate"),
    Stat("no_progress"),
    Stat("cards_left"),
    Stat("reserve_left"),
)
COUNT = offsets(STATS)
WORST_SCORE = -(2.0 * NUM_BOTH + WIN_POINTS)  # a bound: a game lost with all cards in one's own reserve

# Actions: see RULES.md. The first 31 are in the order of the trivial player's list.
ACTION_FIELDS = (
    Field("reserve_to_foundation", 1, 1, meaning="`R-F`"),
    Field("hand_to_foundation", 1, 1, meaning="`D-F`"),
    Field("house_to_foundation", 8, 1, meaning="`H1-F` .. `H8-F`"),
    Field("reserve_to_opponent", 2, 1, meaning="`R-OR`, `R-OW`"),
    Field("reserve_to_house", 8, 1, meaning="`R-H1` .. `R-H8`"),
    Field("hand_to_opponent", 2, 1, meaning="`D-OR`, `D-OW`"),
    Field("hand_to_house", 8, 1, meaning="`D-H1` .. `D-H8`"),
    Field("advance", 1, 1, meaning="`turn`, `discard` or `end`, whichever it is: never two at once"),
    Field("house_to_reserve", 8, 1, meaning="`H1-OR` .. `H8-OR`"),
    Field("house_to_waste", 8, 1, meaning="`H1-OW` .. `H8-OW`"),
    Field("house_to_house", 56, 1, meaning="`H1-H2` .. `H1-H8`, `H2-H1`, `H2-H3` .. `H8-H7`"),
)
NUM_ACTIONS = total(ACTION_FIELDS)
NUM_STACK_MOVES = NUM_HOUSES * (NUM_HOUSES - 1)
NUM_CARD_MOVES = NUM_ACTIONS - NUM_STACK_MOVES
ACTION = offsets(ACTION_FIELDS)
RESERVE_OW, HAND_OW = ACTION.reserve_to_opponent + 1, ACTION.hand_to_opponent + 1
# Sources and targets: houses are 0 to 7.
RESERVE, HAND = 8, 9
FOUNDATION, OTHER_RESERVE, OTHER_WASTE = 8, 9, 10
PAIRS = (
    *((source, FOUNDATION) for source in (RESERVE, HAND, *range(8))),
    *((RESERVE, target) for target in (OTHER_RESERVE, OTHER_WASTE, *range(8))),
    *((HAND, target) for target in (OTHER_RESERVE, OTHER_WASTE, *range(8))),
    (-1, -1),
    *((house, target) for target in (OTHER_RESERVE, OTHER_WASTE) for house in range(8)),
    *((house, target) for house in range(8) for target in range(8) if house != target),
)
SOURCES = np.array([source for source, _ in PAIRS], np.int8)
TARGETS = np.array([target for _, target in PAIRS], np.int8)

ALL_CARDS = np.uint64((1 << NUM_CARDS) - 1)
ACES = np.uint64(0xF)
FOUR = np.uint64(4)
# Runs descend in rank and alternate in colour, so rank + colour has the same parity throughout a run. The key of a card
# is its rank, plus 16 for one of the parities: a card fits on the houses whose top has the next higher key (RB-8).
NO_KEY = 14  # of an empty house; not adjacent to any card's key
KEYS = np.full(64, NO_KEY, np.int8)
KEYS[:NUM_CARDS] = [c // 4 + 16 * ((c // 4 + (c % 4 in (1, 2))) % 2) for c in range(NUM_CARDS)]

STATE = state_dtype(
    NUM_SEATS,
    [
        # options; the first ones fit before the sets without padding
        ("match", np.bool_),
        ("start", np.int8),
        ("reward", np.int8),
        ("dealt_reserve", np.int8),  # cards of each reserve at the deal
        ("others_fill", np.uint8),  # RB-8: houses (bits) that other cards fill while there is a reserve: all or none
        # sets of cards
        ("houses", np.uint64, NUM_HOUSES),
        ("wanted", np.uint64),  # cards that fit a foundation
        ("unseen", np.uint64, 2),  # of each pack: the cards that lie face down and were never seen
        # the match
        ("match_target", np.int16),  # option
        ("game_number", np.int8),  # games begun before this one
        ("scores", np.int32, 2),
        ("game_end", np.int8),  # of the last game
        # the game
        ("starts", np.int8),  # the player who started
        ("turned", np.int8),  # the turned hand card of the seat to move, still counted in its hand
        ("house_moves", np.int8),  # RB-18: in a row
        ("progress", np.bool_),  # RB-20: in this turn
        ("idle", np.int16),  # RB-20
        ("turns", np.int16, 2),  # ended ones
        ("stale", np.int8, 2),  # RB-19
        ("lowest_reserves", np.int8, 2),  # RB-20; the cards below the top at that size were never seen
        ("foundations", np.int8, 8),  # heights, two for each suit, the higher first
        ("tops", np.int8, NUM_HOUSES),  # top cards of the houses
        ("landing", np.uint8, 32),  # houses (bits) by the key of their top card; empty ones at NO_KEY
        # piles, the top card last
        ("reserve_sizes", np.int8, 2),
        ("hand_sizes", np.int8, 2),
        ("waste_sizes", np.int8, 2),
        ("hand_next", np.int8, 2),  # index of the hand's top card
        ("first_pass", np.int8, 2),  # the hand was dealt; else it is a waste turned over
        ("reserves", np.int8, (2, NUM_BOTH + 1)),  # from index 1
        ("wastes", np.int8, (2, NUM_BOTH + 1)),  # from index 1
        ("hands", np.int8, (2, NUM_BOTH)),  # from `hand_next`, the next card first
        ("coming", np.int8, (2, NUM_BOTH)),  # the known cards of hand and waste, as in the field of that name below
        ("packs", np.int8, (2, NUM_CARDS)),  # as dealt
    ],
)

OBS_FIELDS = (
    Field("houses", 416, 1, meaning="cards of H1 .. H8 (52 each)"),
    Field("house_sizes", 8, 13, meaning="cards in H1 .. H8"),
    Field("house_ranks", 8, 13, meaning="rank of the top of H1 .. H8: 1 ace to 13 king, 0 empty"),
    Field("foundations", 8, 13, meaning="cards on the foundations of C, C, D, D, H, H, S, S, the higher pile first"),
    Field("wanted", 52, 1, meaning="cards that fit a foundation"),
    Field("reserve_top", 104, 1, meaning="top card of my, the opponent's reserve (52 each)"),
    Field("waste_top", 104, 1, meaning="top card of my, the opponent's waste (52 each)"),
    Field("turned", 52, 1, meaning="the turned hand card of the player to move"),
    Field("next", 104, 1, meaning="the card that I, the opponent would turn next, where it is known (52 each)"),
    Field(
        "coming", 208, 104,
        meaning="known cards of my, the opponent's hand and waste, in the order in which they come up: 105 - place; "
        "place 1 is the next card (each 52 for the nearer copy, 52 for a second one)",
    ),
    Field(
        "loaded", 208, 104,
        meaning="known cards below the top of my, the opponent's reserve: 105 - depth; 1 is the next one (as `coming`)",
    ),
    Field("unseen", 104, 1, meaning="never seen cards of my, the opponent's pack: they lie face down (52 each)"),
    Field("reserve_sizes", 2, 104, meaning="cards in my, the opponent's reserve"),
    Field("face_down", 2, 12, meaning="of these, cards never seen"),
    Field("hand_sizes", 2, 104, meaning="cards in my, the opponent's hand, a turned one included"),
    Field("waste_sizes", 2, 104, meaning="cards in my, the opponent's waste"),
    Field("first_pass", 2, 1, meaning="my, the opponent's hand is the dealt one: its order is unknown"),
    Field("lowest_reserves", 2, 13, meaning="lowest count so far of my, the opponent's reserve (RB-20)"),
    Field("stale", 2, 105, meaning="my, the opponent's turns without a hand or reserve card played (RB-19)"),
    Field("idle_tens", 1, 20, meaning="turns without progress (RB-20): tens"),
    Field("idle_units", 1, 9, meaning="turns without progress: the rest"),
    Field("progress", 1, 1, meaning="this turn has had a foundation play or a new lowest reserve (RB-20)"),
    Field("house_moves", 1, 16, meaning="house-to-house moves in a row (RB-18)"),
    Field("to_move", 1, 1, meaning="I am to move"),
    Field("games_left", 1, 50, meaning="this one included; 1 where an episode is one game"),
    Field("score_hundreds", 2, MAX_HUNDREDS, meaning="my, the opponent's points in the match: hundreds"),
    Field("score_units", 2, 99, meaning="my, the opponent's points in the match: the rest"),
)  # fmt: skip
FULL_FIELDS = (
    *OBS_FIELDS,
    Field(
        "face_down_reserve", 104, 12,
        meaning="hidden cards of my, the opponent's reserve: 13 - depth; 1 is the highest of them (52 each)",
    ),
    Field(
        "face_down_hand", 104, 35,
        meaning="hidden cards of my, the opponent's hand: 36 - place; 1 is the next card (52 each)",
    ),
)  # fmt: skip
AT = offsets(FULL_FIELDS)


def new_state(options: Options) -> State:
    """Return a State with these `Options` before its first deal."""
    state = np.zeros(1, STATE)[0]
    state.start = STARTS.index(options.start)
    state.match = options.match
    state.reward = REWARDS.index(options.reward)
    state.match_target = options.match_target
    state.dealt_reserve = options.reserve
    state.others_fill = 0 if options.fill_houses == "reserve" else 0xFF
    state.turned = NO_CARD
    state.tops[:] = NO_CARD
    state.over = state.needs_deal = True
    return state


# Dealing


@rule
def begin(state: State) -> None:
    """Begin an episode."""
    state.over = False
    state.scores[0] = state.scores[1] = 0
    state.game_number = 0


@rule
def deal(state: State) -> None:
    if state.over:
        begin(state)
    key = derive(state.rng, state.game_number)
    for owner in range(2):
        pack = state.packs[owner]
        for i in range(NUM_CARDS):
            pack[i] = i
        shuffle(pack, NUM_CARDS, NUM_CARDS, derive(key, owner))
    lay_out(state, -1)


@rule
def set_deal(state: State, pack: Pack) -> None:
    if state.over:
        begin(state)
    for i in range(NUM_CARDS):
        state.packs[0, i] = pack[i]
        state.packs[1, i] = pack[NUM_CARDS + i]
    lay_out(state, pack[NUM_BOTH])


@rule
def lay_out(state: State, starts: int) -> None:
    """Deal the packs in the state (RB-2, RB-3); with `starts` -1, RB-4 decides who starts."""
    for i in range(32):
        state.landing[i] = 0
    reserve_size = int(state.dealt_reserve)
    first_hand_card = reserve_size + OWN_HOUSES
    for owner in range(2):
        pack = state.packs[owner]
        hidden = ALL_CARDS & ~bit(pack[reserve_size - 1])
        state.reserves[owner, 0] = state.wastes[owner, 0] = NO_CARD
        for i in range(reserve_size):
            state.reserves[owner, 1 + i] = pack[i]
        for i in range(OWN_HOUSES):
            house = OWN_HOUSES * owner + i
            card = int(pack[reserve_size + i])
            hidden &= ~bit(card)
            state.houses[house] = bit(card)
            state.tops[house] = card
            state.landing[KEYS[card]] |= 1 << house
        for i in range(NUM_CARDS - first_hand_card):
            state.hands[owner, i] = pack[first_hand_card + i]
        state.unseen[owner] = hidden
        state.reserve_sizes[owner] = state.lowest_reserves[owner] = reserve_size
        state.hand_sizes[owner] = NUM_CARDS - first_hand_card
        state.hand_next[owner] = state.waste_sizes[owner] = state.stale[owner] = state.turns[owner] = 0
        state.first_pass[owner] = True
        for card in range(NUM_BOTH):
            state.coming[owner, card] = 0
        state.rewards[owner] = np.float32(0)
    for i in range(8):
        state.foundations[i] = 0
    state.wanted = ACES
    state.turned = NO_CARD
    state.house_moves = state.idle = state.game_end = 0
    state.progress = state.needs_deal = False
    state.seat = state.starts = starts if starts >= 0 else starter(state)


@rule
def starter(state: State) -> int:
    """Return the starting player (RB-4)."""
    start = int(state.start)
    if start >= PLAYER_0:
        return start - PLAYER_0
    if start != RANDOM:
        for i in range(1 + OWN_HOUSES):
            place = int(state.dealt_reserve) - 1 + i  # compare the reserve tops, then the four houses
            difference = (int(state.packs[0, place]) >> 2) - (int(state.packs[1, place]) >> 2)
            if difference != 0:
                return 0 if (difference < 0) == (start == LOW_RESERVE) else 1
    return below(derive(derive(state.rng, state.game_number), 2), 2)


# What is legal


@rule
def next_to(card: int) -> Cards:
    """Return the cards that may be loaded on a card (RB-9); none on `NO_CARD`."""
    this = bit(card)
    return (this << FOUR | this >> FOUR) & ALL_CARDS


@rule
def house_bits(state: State, cards: Cards) -> Houses:
    """Return the houses, as bits, whose top is one of these cards."""
    houses = EMPTY
    for house in range(NUM_HOUSES):
        houses |= ((cards >> np.uint64(state.tops[house])) & ONE) << np.uint64(house)
    return houses


@rule
def legal_moves(state: State) -> tuple[Moves, Pairs]:
    seat = int(state.seat)
    other = 1 - seat
    reserve_top = int(state.reserves[seat, int(state.reserve_sizes[seat])])
    turned = int(state.turned)
    wanted = state.wanted
    if bit(reserve_top) & wanted:
        return bit(ACTION.reserve_to_foundation), EMPTY  # RB-10 (a)
    tops = EMPTY
    for house in range(NUM_HOUSES):
        tops |= bit(state.tops[house])
    if (tops | bit(turned)) & wanted:  # RB-10 (b)
        moves = house_bits(state, wanted) << np.uint64(ACTION.house_to_foundation)
        return moves | ((wanted >> np.uint64(turned)) & ONE) << np.uint64(ACTION.hand_to_foundation), EMPTY
    moves = EMPTY
    empty = int(state.landing[NO_KEY])
    first_empty = empty & -empty  # RB-8
    fillable = empty  # by other cards than the reserve's
    if reserve_top != NO_CARD:
        houses = np.uint64(int(state.landing[int(KEYS[reserve_top]) + 1]) | first_empty)
        moves |= houses << np.uint64(ACTION.reserve_to_house)
        fillable &= int(state.others_fill)
    first_fillable = fillable & -fillable
    if turned != NO_CARD:
        houses = np.uint64(int(state.landing[int(KEYS[turned]) + 1]) | first_fillable)
        moves |= houses << np.uint64(ACTION.hand_to_house)
        moves |= bit(ACTION.advance)  # RB-13
    elif reserve_top == NO_CARD or empty == 0:  # RB-11, RB-15
        moves |= bit(ACTION.advance)
    on_reserve = next_to(state.reserves[other, int(state.reserve_sizes[other])])
    on_waste = next_to(state.wastes[other, int(state.waste_sizes[other])])
    if (tops | bit(reserve_top) | bit(turned)) & (on_reserve | on_waste):  # RB-9
        moves |= ((on_reserve >> np.uint64(reserve_top)) & ONE) << np.uint64(ACTION.reserve_to_opponent)
        moves |= ((on_waste >> np.uint64(reserve_top)) & ONE) << np.uint64(RESERVE_OW)
        moves |= ((on_reserve >> np.uint64(turned)) & ONE) << np.uint64(ACTION.hand_to_opponent)
        moves |= ((on_waste >> np.uint64(turned)) & ONE) << np.uint64(HAND_OW)
        moves |= house_bits(state, on_reserve) << np.uint64(ACTION.house_to_reserve)
        moves |= house_bits(state, on_waste) << np.uint64(ACTION.house_to_waste)
    if state.house_moves >= MAX_HOUSE_MOVES:
        return moves, EMPTY
    return moves, house_moves(state, fillable, first_fillable)


@rule
def house_moves(state: State, empty: int, first_empty: int) -> Pairs:
    """Return the legal house-to-house moves (RB-8, RB-17), if no compulsory move is pending.

    `empty` and `first_empty` are those empty houses, as bits, that cards of houses may fill.
    """
    moves = EMPTY
    for house in range(NUM_HOUSES):
        top = int(state.tops[house])
        key = int(KEYS[top])
        targets = int(state.landing[key + 1])
        if empty != 0 and top != NO_CARD:
            run = state.houses[house]
            size = count(run)
            if size > 1:
                targets |= first_empty
                most = min(size, 1 << count(np.uint64(empty)))
                stuck = run & state.wanted
                if stuck:
                    most = min(most, (lowest(stuck) >> 2) - (top >> 2))
                for number in range(2, most + 1):
                    targets |= int(state.landing[key + number])
        moves |= np.uint64(targets) << np.uint64(8 * house)
    return moves


@rule
def house_action(pair: int) -> int:
    """Return the action of a pair, 8 * house + house."""
    return ACTION.house_to_house + pair - pair // 9 - 1


@rule
def legal(state: State, mask: Mask) -> int:
    moves = pairs = EMPTY
    if not state.needs_deal:
        moves, pairs = legal_moves(state)
    stack_moves = EMPTY  # every ninth of the 64 pairs is a house with itself, which is not an action
    for i in range(7):
        stack_moves |= (pairs >> np.uint64(i + 1)) & (np.uint64(0xFF) << np.uint64(8 * i))
    spread(mask, 0, moves, NUM_CARD_MOVES)
    spread(mask, ACTION.house_to_house, stack_moves, NUM_STACK_MOVES)
    return count(moves) + count(pairs)


@rule
def random_move(state: State, stream: Stream) -> int:
    moves, pairs = legal_moves(state)
    num_moves = count(moves)
    num_legal = num_moves + count(pairs)
    choice = below(advance(stream), num_legal) if num_legal > 1 else 0
    if choice < num_moves:
        return nth(moves, choice)
    return house_action(nth(pairs, choice - num_moves))


# Moves


@rule
def num_turned(state: State, player: int) -> int:
    """Return 1 if a card of the player's hand is turned, else 0."""
    return 1 if state.turned != NO_CARD and state.seat == player else 0


@rule
def play(state: State, action: int) -> None:
    state.rewards[0] = state.rewards[1] = np.float32(0)
    if action >= ACTION.house_to_house:
        state.house_moves += 1
        move_stack(state, int(SOURCES[action]), int(TARGETS[action]))
        return
    state.house_moves = 0
    if action == ACTION.advance:
        if state.turned != NO_CARD:
            discard(state)
        elif int(state.hand_sizes[state.seat]) + int(state.waste_sizes[state.seat]) > 0:
            turn(state)
        else:
            end_turn(state)  # RB-15
        return
    before = penalty_margin(state)
    source = int(SOURCES[action])
    put_card(state, take_card(state, source), int(TARGETS[action]))
    if state.reward == PENALTY:
        pay(state, penalty_margin(state) - before)
    if source >= RESERVE:
        state.stale[0] = state.stale[1] = 0  # RB-19
        seat = int(state.seat)
        if int(state.reserve_sizes[seat]) + int(state.hand_sizes[seat]) + int(state.waste_sizes[seat]) == 0:
            state.turns[seat] += 1
            end_game(state, WON)  # RB-5


@rule
def take_card(state: State, source: int) -> int:
    """Take the available card of a source (RB-6)."""
    seat = int(state.seat)
    if source == RESERVE:
        size = int(state.reserve_sizes[seat])
        card = int(state.reserves[seat, size])
        size -= 1
        state.reserve_sizes[seat] = size
        if size < state.lowest_reserves[seat]:
            state.lowest_reserves[seat] = size
            state.progress = True  # RB-20
            state.unseen[seat] &= ~bit(state.reserves[seat, size])  # RB-16
    elif source == HAND:
        card = int(state.turned)
        state.turned = NO_CARD
        state.hand_next[seat] += 1
        state.hand_sizes[seat] -= 1
    else:
        card = int(state.tops[source])
        state.houses[source] &= ~bit(card)
        show_top(state, source)
    return card


@rule
def put_card(state: State, card: int, target: int) -> None:
    other = 1 - int(state.seat)
    if target == FOUNDATION:
        put_on_foundation(state, card)
    elif target == OTHER_RESERVE:
        state.reserve_sizes[other] += 1
        state.reserves[other, int(state.reserve_sizes[other])] = card
    elif target == OTHER_WASTE:
        put_on_waste(state, other, card)
    else:
        state.houses[target] |= bit(card)
        show_top(state, target)


@rule
def put_on_waste(state: State, player: int, card: int) -> None:
    """Put a card on a waste; it comes up after the rest of the hand and the waste."""
    before = int(state.hand_sizes[player]) - num_turned(state, player) + int(state.waste_sizes[player])
    state.waste_sizes[player] += 1
    state.wastes[player, int(state.waste_sizes[player])] = card
    second = NUM_CARDS if state.coming[player, card] != 0 else 0
    state.coming[player, card + second] = NUM_BOTH - before


@rule
def put_on_foundation(state: State, card: int) -> None:
    """Put a card on a foundation (RB-7); the higher pile of a suit stays first."""
    rank = card >> 2
    pile = 2 * (card & 3)
    if state.foundations[pile] != rank:
        pile += 1
    state.foundations[pile] = rank + 1
    if state.foundations[pile ^ 1] != rank:
        state.wanted &= ~bit(card)
    state.wanted |= bit(card + 4) & ALL_CARDS
    state.progress = True


@rule
def show_top(state: State, house: int) -> None:
    """Update the top card of a house."""
    run = state.houses[house]
    top = lowest(run) if run else NO_CARD
    state.landing[KEYS[state.tops[house]]] ^= 1 << house
    state.landing[KEYS[top]] ^= 1 << house
    state.tops[house] = top


@rule
def move_stack(state: State, source: int, target: int) -> None:
    """Move cards between houses (RB-17).

    Onto an empty house, the source's top card moves; else all its cards that are lower than the target's top.
    """
    top = int(state.tops[target])
    if top == NO_CARD:
        stack = bit(state.tops[source])
    else:
        stack = state.houses[source] & below_card(top & ~3)
    state.houses[source] &= ~stack
    state.houses[target] |= stack
    show_top(state, source)
    show_top(state, target)


@rule
def turn(state: State) -> None:
    """Turn a hand card (RB-11), or first the waste over (RB-14)."""
    seat = int(state.seat)
    if state.hand_sizes[seat] == 0:
        size = int(state.waste_sizes[seat])
        for i in range(size):
            state.hands[seat, i] = state.wastes[seat, 1 + i]
        state.hand_sizes[seat] = size
        state.hand_next[seat] = state.waste_sizes[seat] = 0
        state.first_pass[seat] = False
    card = int(state.hands[seat, int(state.hand_next[seat])])
    state.turned = card
    if state.first_pass[seat]:
        state.unseen[seat] &= ~bit(card)
    else:
        state.coming[seat, card] = state.coming[seat, NUM_CARDS + card]
        state.coming[seat, NUM_CARDS + card] = 0
    for i in range(NUM_BOTH):
        state.coming[seat, i] += state.coming[seat, i] != 0  # the other known cards come one place sooner


@rule
def discard(state: State) -> None:
    """Put the turned card on the waste (RB-13)."""
    seat = int(state.seat)
    put_on_waste(state, seat, take_card(state, HAND))
    end_turn(state)


@rule
def end_turn(state: State) -> None:
    seat = int(state.seat)
    state.seat = 1 - seat
    state.stale[seat] += 1
    state.turns[seat] += 1
    state.idle = 0 if state.progress else int(state.idle) + 1
    state.progress = False
    stalemate = True
    for player in range(2):  # RB-19
        cards = int(state.hand_sizes[player]) + int(state.waste_sizes[player])
        stalemate &= int(state.stale[player]) >= max(1, cards)
    if stalemate:
        end_game(state, STALEMATE)
    elif state.idle >= MAX_IDLE:
        end_game(state, NO_PROGRESS)  # RB-20


# Points


@rule
def penalty_points(state: State, player: int) -> int:
    """Return a player's penalty points (RB-21)."""
    return 2 * int(state.reserve_sizes[player]) + int(state.hand_sizes[player]) + int(state.waste_sizes[player])


@rule
def penalty_margin(state: State) -> int:
    """Return the penalty points of player 1 less those of player 0."""
    return penalty_points(state, 1) - penalty_points(state, 0)


@rule
def pay(state: State, margin: int) -> None:
    state.rewards[0] += np.float32(margin)
    state.rewards[1] -= np.float32(margin)


@rule
def end_game(state: State, how: int) -> None:
    """Score a game and end it (RB-21, RB-22).

    A winner has no penalty points, so every game is scored by the difference of penalty points.
    """
    margin = penalty_margin(state)
    bonus = 0
    if how == WON:
        bonus = WIN_POINTS if state.seat == 0 else -WIN_POINTS
    margin += bonus
    state.scores[0] += max(margin, 0)
    state.scores[1] += max(-margin, 0)
    state.game_end = how
    state.game_number += 1
    state.needs_deal = True
    state.over = (
        not state.match
        or max(state.scores[0], state.scores[1]) >= state.match_target
        or state.game_number == MATCH_GAMES
    )
    if state.reward == POINTS:
        pay(state, margin)
    elif state.reward == PENALTY:
        pay(state, bonus)  # the difference of penalty points was paid move by move
    elif state.over:
        lead = int(state.scores[0]) - int(state.scores[1])
        pay(state, 1 if lead > 0 else -1 if lead < 0 else 0)


# What a seat knows


@rule
def set_place(obs: Obs, start: int, card: int, value: int) -> None:
    """Write a card's place; a second copy goes to the second 52 entries."""
    if obs[start + card]:
        card += NUM_CARDS
    obs[start + card] = value


@rule
def observe(state: State, seat: int, obs: Obs) -> None:
    seat = int(seat)
    for house in range(NUM_HOUSES):
        spread(obs, AT.houses + NUM_CARDS * house, state.houses[house], NUM_CARDS)
    for house in range(NUM_HOUSES):
        obs[AT.house_sizes + house] = count(state.houses[house])
        obs[AT.house_ranks + house] = ((int(state.tops[house]) >> 2) + 1) & 15  # NO_CARD: 0
    copy(obs, AT.foundations, state.foundations, NUM_HOUSES)
    spread(obs, AT.wanted, state.wanted, NUM_CARDS)
    spread(obs, AT.turned, bit(state.turned), NUM_CARDS)
    for k in range(2):
        observe_player(state, seat ^ k, k, obs)
    obs[AT.idle_tens] = int(state.idle) // 10
    obs[AT.idle_units] = int(state.idle) % 10
    obs[AT.progress] = state.progress
    obs[AT.house_moves] = state.house_moves
    obs[AT.to_move] = state.seat == seat
    obs[AT.games_left] = MATCH_GAMES - int(state.game_number) if state.match else 1


@rule
def observe_player(state: State, player: int, k: int, obs: Obs) -> None:
    """Write the piles and counts of a player; `k` is 0 for the observer, 1 for the opponent."""
    reserve_size = int(state.reserve_sizes[player])
    hand_size = int(state.hand_sizes[player])
    waste_size = int(state.waste_sizes[player])
    face_down = num_face_down(state, player)
    spread(obs, AT.reserve_top + NUM_CARDS * k, bit(state.reserves[player, reserve_size]), NUM_CARDS)
    spread(obs, AT.waste_top + NUM_CARDS * k, bit(state.wastes[player, waste_size]), NUM_CARDS)
    first = first_hidden(state, player)
    following = EMPTY
    if first < int(state.hand_next[player]) + hand_size:
        if not state.first_pass[player]:
            following = bit(state.hands[player, first])
    elif waste_size:
        following = bit(state.wastes[player, 1])
    spread(obs, AT.next + NUM_CARDS * k, following, NUM_CARDS)
    copy(obs, AT.coming + NUM_BOTH * k, state.coming[player], NUM_BOTH)
    spread(obs, AT.loaded + NUM_BOTH * k, EMPTY, NUM_CARDS)
    spread(obs, AT.loaded + NUM_BOTH * k + NUM_CARDS, EMPTY, NUM_CARDS)
    for i in range(reserve_size - 1, face_down, -1):
        set_place(obs, AT.loaded + NUM_BOTH * k, int(state.reserves[player, i]), 105 - (reserve_size - i))
    spread(obs, AT.unseen + NUM_CARDS * k, state.unseen[player], NUM_CARDS)
    obs[AT.reserve_sizes + k] = reserve_size
    obs[AT.face_down + k] = face_down
    obs[AT.hand_sizes + k] = hand_size
    obs[AT.waste_sizes + k] = waste_size
    obs[AT.first_pass + k] = state.first_pass[player]
    obs[AT.lowest_reserves + k] = state.lowest_reserves[player]
    obs[AT.stale + k] = state.stale[player]
    score = int(state.scores[player])
    obs[AT.score_hundreds + k] = min(score // 100, MAX_HUNDREDS)
    obs[AT.score_units + k] = score % 100


@rule
def observe_all(state: State, seat: int, obs: Obs) -> None:
    observe(state, seat, obs[: AT.face_down_reserve])
    obs[AT.face_down_reserve :] = 0
    for k in range(2):
        player = int(seat) ^ k
        face_down = num_face_down(state, player)
        start = AT.face_down_reserve + NUM_CARDS * k
        for i in range(1, face_down + 1):
            obs[start + int(state.reserves[player, i])] = 12 - face_down + i
        start = AT.face_down_hand + NUM_CARDS * k
        first = first_hidden(state, player)
        for i in range(num_hidden(state, player)):
            obs[start + int(state.hands[player, first + i])] = max(35 - i, 1)


# What no seat knows


@rule
def num_face_down(state: State, player: int) -> int:
    """Return how many cards of a reserve were never seen: those below its smallest size so far."""
    return max(int(state.lowest_reserves[player]) - 1, 0)


@rule
def first_hidden(state: State, player: int) -> int:
    """Return the index of the first hidden card in a hand."""
    return int(state.hand_next[player]) + num_turned(state, player)


@rule
def num_hidden(state: State, player: int) -> int:
    """Return how many cards of a hand are hidden: those of the first pass, except a turned one."""
    if not state.first_pass[player]:
        return 0
    return int(state.hand_sizes[player]) - num_turned(state, player)


@rule
def determinize(state: State, seat: int, stream: Stream) -> None:
    """Shuffle each pack's unseen cards over their possible places; both seats know the same cards (RB-23)."""
    for owner in range(2):
        pack = state.packs[owner]
        face_down = num_face_down(state, owner)
        first = first_hidden(state, owner)
        first_in_pack = int(state.dealt_reserve) + OWN_HOUSES + first
        shift = first_in_pack - face_down  # from the index of a hidden hand card to its place in the pack
        num_cards = face_down + num_hidden(state, owner)
        cards = state.unseen[owner]
        for i in range(num_cards):
            pack[i if i < face_down else i + shift] = lowest(cards)
            cards &= cards - ONE
        for i in range(num_cards - 1):
            j = i + below(advance(stream), num_cards - i)
            place = i if i < face_down else i + shift
            other = j if j < face_down else j + shift
            card = pack[place]
            pack[place] = pack[other]
            pack[other] = card
        for i in range(face_down):
            state.reserves[owner, 1 + i] = pack[i]
        for i in range(num_cards - face_down):
            state.hands[owner, first + i] = pack[first_in_pack + i]


@rule
def reveals(state: State, action: int) -> bool:
    """Return whether the action turns a card of the first pass or uncovers a reserve card that was never the top."""
    seat = int(state.seat)
    if action == ACTION.advance:
        return state.turned == NO_CARD and state.first_pass[seat] and state.hand_sizes[seat] > 0
    if action >= ACTION.house_to_house or int(SOURCES[action]) != RESERVE:
        return False
    return state.reserve_sizes[seat] == state.lowest_reserves[seat]


@rule
def text_index(state: State, action: int) -> int:
    """Return the action, or for an advance how it is called now: the view's last three texts."""
    if action != ACTION.advance:
        return action
    if state.turned != NO_CARD:
        return NUM_ACTIONS + 1
    seat = int(state.seat)
    return NUM_ACTIONS if int(state.hand_sizes[seat]) + int(state.waste_sizes[seat]) > 0 else NUM_ACTIONS + 2


@rule
def score_margin(state: State, seat: int) -> int:
    return int(state.scores[int(seat)]) - int(state.scores[1 - int(seat)])


@rule
def update_stats(state: State, seat: int, counts: Stats) -> None:
    counts[COUNT.games] += 1
    counts[COUNT.turns] += state.turns[seat]
    counts[COUNT.won + int(state.game_end) - WON] += 1  # the counts are in the order of the ends
    counts[COUNT.reserve_left] += state.reserve_sizes[seat]
    counts[COUNT.cards_left] += penalty_points(state, seat) - int(state.reserve_sizes[seat])
