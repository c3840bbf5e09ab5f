"""The features of an n-tuple network for positions of Big Ben: a few hundred active ones of many.

Deals are lost if cards lie under others that are wanted later. So most features are about *needs* (how many cards of
its suit come before a card, see `beam.note_needs`), about the places of the next cards, and about what is *stuck*: what
would stay on the table if every card of the stock were available and everything possible were placed (a relaxed
problem, as in planning: Hoffmann & Nebel 2001), first without building, then with some.

If two copies of a card have several foundations to go to, the order of placing matters; here it is fixed. Features of
the stock depend only on its size and its set of cards, never on their order.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import EMPTY, bit, highest
from card_envs.game import Cards, Int8s, Int64s, Stat, offsets, total
from card_envs.games.big_ben.beam import NEEDS, note_needs
from card_envs.games.big_ben.position import Info, Node
from card_envs.games.big_ben.rules import (
    FIRST_HOUR,
    FULL_PILE,
    LASTS,
    MAX_TO_COME,
    NEXT_CARD,
    NUM_CARDS,
    NUM_HOURS,
    PACK_SIZE,
    STOCK_SIZE,
    UP,
)

NUM_NEEDS = MAX_TO_COME + 1  # 0: not needed any more
THREE_NEEDS = NUM_NEEDS**3
SUITS_ALIKE = 8  # which of three cards have the same suit
LEFTS, STOCKS = PACK_SIZE + 1, STOCK_SIZE + 1  # cards still to be placed, cards of the stock
PHASES, PARTS, HALVES = 4, 8, 2  # of the stock
LATE = 20  # the second half begins at this size of the stock
BUILT = 4  # cards of a pile above its third, at most 3

# Places of cards, easier ones first. In piles by the number of obstructing cards above, in the waste by depth.
NO_PLACE, STOCK_PLACE, NUM_PLACES = 0, 10, 12
PILE_PLACE = np.array([1, 3, 5, 7], np.int64)
WASTE_PLACE = np.array([2, 4, 6, 6, 8, 8, 8, *5 * [9], *(STOCK_SIZE - 12) * [11]], np.int64)
DEPTH_CLASS = np.array([0, 1, 2, 2, 3, 3, 3, *5 * [4], *(STOCK_SIZE - 12) * [5]], np.int64)
NUM_DEPTHS = 6
MOST_SUNK, MOST_IN_A_ROW = 14, 24  # classes of depth in the waste; number of its cards in triples
MOST_GAPS, MOST_LOW = 14, 40  # number of classes
STUCK_DEPTHS = 16  # of a wanted card that is stuck: 1 .. 7 in piles, 8 .. 14 in the waste
WASTE_STUCK = 30  # classes of depth
WAVES = 5
MARKS = (
    Stat("point", meaning="of the result: 1"),
    Stat("pile", PHASES * BUILT * SUITS_ALIKE * THREE_NEEDS, "the lowest three cards of a pile"),
    Stat("row", HALVES * NUM_DEPTHS * SUITS_ALIKE * THREE_NEEDS, "three cards of the waste, one on the other"),
    Stat("sunk", PHASES * MOST_SUNK * NUM_NEEDS, "a card of the waste: depth, need"),
    Stat("under", PHASES * NUM_DEPTHS * NUM_NEEDS**2, "a card of the waste: depth, latest need above, own need"),
    Stat("next", HALVES * NUM_NEEDS * NUM_PLACES**3, "a foundation: cards to come, places of the next three"),
    Stat("places", PHASES * NUM_NEEDS * NUM_PLACES**2, "a card: need, places of its copies"),
    Stat("takes", PHASES * BUILT * NUM_NEEDS * NUM_PLACES**2, "a pile: need of the top card, places of what it takes"),
    Stat("suit", PARTS * THREE_NEEDS, "cards to come on three foundations"),
    Stat("left", LEFTS * STOCKS, "cards still to be placed"),
    Stat("gaps", MOST_GAPS * STOCKS, "gaps"),
    Stat("stuck", LEFTS * STOCKS, "cards that are stuck"),
    Stat("stays", PHASES * (FULL_PILE + 1) * THREE_NEEDS, "a pile: how many of its lowest three are stuck, needs"),
    Stat("blocked", PHASES * NUM_NEEDS**2, "a foundation: cards to come, and how many of them are stuck"),
    Stat("suit_stuck", PARTS * THREE_NEEDS, "cards to come on three foundations, of what is stuck"),
    Stat("waste_stuck", HALVES * WASTE_STUCK * 4 * NUM_NEEDS, "a stuck card of the waste: depth in both, need"),
    Stat("where_stuck", PARTS * STOCKS * MOST_LOW, "stuck cards of the waste, and among the lowest three of piles"),
    Stat("pile_stuck", PHASES * BUILT * SUITS_ALIKE * THREE_NEEDS, "as `pile`, of what is stuck, by the needs then"),
    Stat("wanted", PHASES * NUM_NEEDS * STUCK_DEPTHS * NUM_NEEDS, "a foundation: how deep its next card is stuck"),
    Stat("top_stuck", 2 * PHASES * NUM_NEEDS * 9 * 10, "a stuck pile: need of its top card, height, who takes that"),
    Stat("waves", WAVES * LEFTS * STOCKS, "cards that are stuck after each pass through the stock"),
    Stat("built", LEFTS * STOCKS, "cards that are stuck with building"),
    Stat("helps", HALVES * LEFTS**2, "cards that are stuck without, and with building"),
    Stat("suit_built", PARTS * THREE_NEEDS, "as `suit_stuck`, with building"),
    Stat("where_built", PARTS * STOCKS * MOST_LOW, "as `where_stuck`, with building"),
)
AT, NUM_WEIGHTS = offsets(MARKS), total(MARKS)
MAX_MARKS = 400  # 4 per card of the waste, 6 per pile, 5 per foundation, 1 per card, 24 others


def _copies() -> Int8s:
    """Return the copies of each card still to be placed by suit, cards to come on its foundations, and rank."""
    copies = np.zeros((4, *3 * [NUM_NEEDS], 13), np.int8)
    for suit, hour in enumerate(FIRST_HOUR.tolist()):
        for lefts in product(range(NUM_NEEDS), repeat=3):
            for k, left in enumerate(lefts):
                for steps in range(left):
                    copies[(suit, *lefts, (int(LASTS[hour + 4 * k]) - left + 1 + steps) % 13)] += 1
    return copies


COPIES = _copies()
DOWN = np.array([card - 1 if card % 13 else card + 12 for card in range(NUM_CARDS)], np.int64)


class FeatureMarking(NamedTuple):
    """The workspace for features.

    Attributes:
        needs: [52] of each card.
        places: [2, 52] of its easier copy and of the other.
        stock: [52] copies in the stock.
        left: [12] cards to come on the foundations; this and the following change as cards are placed.
        heights: [12] of the piles.
        tops: [12] their top cards, if any.
        waste: [56] from the top.
        sizes: [3] cards still to be placed; first and last place of the remaining waste.
        waves: [WAVES] cards still to be placed after each.
    """

    needs: Int8s
    places: Int64s
    stock: Int64s
    left: Int64s
    heights: Int64s
    tops: Int64s
    waste: Int64s
    sizes: Int64s
    waves: Int64s


def new_marking() -> FeatureMarking:
    """Return a workspace for one thread."""
    shapes = (2, NUM_CARDS), NUM_CARDS, NUM_HOURS, NUM_HOURS, NUM_HOURS, STOCK_SIZE, 3, WAVES
    return FeatureMarking(np.zeros(NUM_CARDS, np.int8), *(np.zeros(shape, np.int64) for shape in shapes))


@rule
def active_features(node: Node, info: Info, marking: FeatureMarking, features: Int64s) -> int:
    """Write the indices of a position's active features into `features` [MAX_MARKS]; return their number."""
    stock = int(info.in_deck) - int(node.dealt)
    note_needs(node, marking.needs)
    note_no_places(marking)
    num, gaps = mark_piles(node, stock, marking, features)
    num = mark_waste(node, info, stock, marking, features, num)
    num = mark_cards(node, stock, marking, features, num)
    num = mark_foundations(node, stock, marking, features, num)
    num = mark_takers(node, stock, marking, features, num)
    lay_out(node, marking)
    place_all(node, False, marking)
    num = mark_stuck(node, stock, marking, features, num)
    stuck = int(marking.sizes[0])
    num = mark_blockers(node, stock, marking, features, num)
    place_all(node, True, marking)
    num = mark_built(stock, stuck, marking, features, num)
    features[num] = AT.left + int(node.left) * STOCKS + stock
    features[num + 1] = AT.gaps + min(gaps, MOST_GAPS - 1) * STOCKS + stock
    return num + 2


@rule
def phase_of(stock: int) -> int:
    return stock * PHASES // STOCKS


@rule
def half_of(stock: int) -> int:
    return 0 if stock > LATE else 1


@rule
def part_of(stock: int) -> int:
    """Return the part of the stock's size; the last part is an empty stock."""
    return min((stock + PARTS - 1) // PARTS, PARTS - 1)


@rule
def whole_part_of(stock: int) -> int:
    """Return the part of the stock's size; the last part has fewer than PARTS cards."""
    return min(stock // PARTS, PARTS - 1)


@rule
def three(first: int, second: int, third: int) -> int:
    """Return three needs, or three numbers of cards to come, as one number."""
    return (first * NUM_NEEDS + second) * NUM_NEEDS + third


@rule
def alike(first: int, second: int) -> int:
    """Return 1 for two cards of one suit, else 0; -1 stands for no card."""
    return 1 if first >= 0 and second >= 0 and first // 13 == second // 13 else 0


@rule
def pile_pattern(node: Node, pile: int, height: int, needs: Int8s) -> int:
    """Return the pattern of the lowest three cards of a pile: cards above them, suits, needs."""
    first = int(node.low[pile, 0]) if height > 0 else -1
    second = int(node.low[pile, 1]) if height > 1 else -1
    third = int(node.low[pile, 2]) if height > 2 else -1
    suits = alike(first, second) + 2 * alike(second, third) + 4 * alike(first, third)
    over = min(max(height - FULL_PILE, 0), BUILT - 1)
    return (over * SUITS_ALIKE + suits) * THREE_NEEDS + low_needs(node, pile, height, needs)


@rule
def low_needs(node: Node, pile: int, height: int, needs: Int8s) -> int:
    """Return the needs of the lowest three cards of a pile; 0 for a missing card."""
    return three(
        int(needs[node.low[pile, 0]]) if height > 0 else 0,
        int(needs[node.low[pile, 1]]) if height > 1 else 0,
        int(needs[node.low[pile, 2]]) if height > 2 else 0,
    )


# Where cards lie


@rule
def note_no_places(marking: FeatureMarking) -> None:
    for card in range(NUM_CARDS):
        marking.places[0, card] = marking.places[1, card] = NO_PLACE
        marking.stock[card] = 0


@rule
def note_place(card: int, place: int, marking: FeatureMarking) -> None:
    """Record the place of a copy of a card that was counted in `stock` although it is not in the stock."""
    first, second = marking.places[0], marking.places[1]
    marking.stock[card] += 1
    if first[card] == NO_PLACE:
        first[card] = place
    elif place < first[card]:
        second[card] = first[card]
        first[card] = place
    elif second[card] == NO_PLACE or place < second[card]:
        second[card] = place


@rule
def in_the_way(card: int, above: int, needs: Int8s) -> int:
    """Return 0 if the card above has the same suit and is wanted no later, else 1."""
    return 1 if above // 13 != card // 13 or needs[above] > needs[card] else 0


@rule
def mark_piles(node: Node, stock: int, marking: FeatureMarking, features: Int64s) -> tuple[int, int]:
    """Add the features of the piles; return their number, and the gaps.

    The following functions add theirs from `num` on.
    """
    needs = marking.needs
    gaps = 0
    for pile in range(NUM_HOURS):
        height = int(node.heights[pile])
        gaps += max(FULL_PILE - height, 0)
        features[pile] = AT.pile + phase_of(stock) * (BUILT * SUITS_ALIKE * THREE_NEEDS)
        features[pile] += pile_pattern(node, pile, height, needs)
        card = int(node.tops[pile])
        for _ in range(height - FULL_PILE):
            note_place(card, int(PILE_PLACE[0]), marking)
            card = int(UP[card])
        for k in range(min(height, FULL_PILE)):
            card = int(node.low[pile, k])
            covers = 0
            for j in range(k + 1, min(height, FULL_PILE)):
                covers += in_the_way(card, int(node.low[pile, j]), needs)
            if height > FULL_PILE and node.low[pile, FULL_PILE - 1] // 13 != card // 13:
                covers += 1  # all built cards
            note_place(card, int(PILE_PLACE[covers]), marking)
    return NUM_HOURS, gaps


@rule
def mark_waste(node: Node, info: Info, stock: int, marking: FeatureMarking, features: Int64s, num: int) -> int:
    needs = marking.needs
    latest = depth = 0
    above = higher = -1
    waste = node.waste
    while waste:
        place = highest(waste)
        waste &= ~bit(place)
        card = int(info.deck[place])
        need = int(needs[card])
        marking.waste[depth] = card
        note_place(card, int(WASTE_PLACE[depth]), marking)
        features[num] = AT.sunk + (phase_of(stock) * MOST_SUNK + min(depth, MOST_SUNK - 1)) * NUM_NEEDS + need
        under = phase_of(stock) * NUM_DEPTHS + DEPTH_CLASS[depth]
        features[num + 1] = AT.under + (under * NUM_NEEDS + latest) * NUM_NEEDS + need
        num += 2
        if 0 < depth < MOST_IN_A_ROW:
            suits = alike(above, card) + 2 * alike(higher, card) + 4 * alike(higher, above)
            row = (half_of(stock) * NUM_DEPTHS + DEPTH_CLASS[depth - 1]) * SUITS_ALIKE + suits
            over = int(needs[higher]) if higher >= 0 else 0
            features[num] = AT.row + row * THREE_NEEDS + three(need, int(needs[above]), over)
            num += 1
        latest = max(latest, need)
        higher = above
        above = card
        depth += 1
    marking.sizes[2] = depth
    return num


@rule
def mark_cards(node: Node, stock: int, marking: FeatureMarking, features: Int64s, num: int) -> int:
    """Add the features of suits and cards; from here on, `stock` of the workspace holds only cards in the stock."""
    first, second = marking.places[0], marking.places[1]
    for suit in range(4):
        hour = int(FIRST_HOUR[suit])
        left, left_4, left_8 = int(node.to_come[hour]), int(node.to_come[hour + 4]), int(node.to_come[hour + 8])
        features[num] = AT.suit + whole_part_of(stock) * THREE_NEEDS + three(left, left_4, left_8)
        num += 1
        for rank in range(13):
            card = 13 * suit + rank
            copies = int(COPIES[suit, left, left_4, left_8, rank])
            marking.stock[card] = copies - marking.stock[card]
            if copies == 0:
                continue
            if first[card] == NO_PLACE:
                first[card] = STOCK_PLACE
            if copies > 1:
                if second[card] == NO_PLACE:
                    second[card] = STOCK_PLACE
                if second[card] < first[card]:
                    first[card], second[card] = second[card], first[card]
            places = (phase_of(stock) * NUM_NEEDS + int(marking.needs[card])) * NUM_PLACES + first[card]
            features[num] = AT.places + places * NUM_PLACES + second[card]
            num += 1
    return num


@rule
def mark_foundations(node: Node, stock: int, marking: FeatureMarking, features: Int64s, num: int) -> int:
    for hour in range(NUM_HOURS):
        left = int(node.to_come[hour])
        if left == 0:
            continue
        place = half_of(stock) * NUM_NEEDS + left
        card = int(NEXT_CARD[hour, left])
        for k in range(3):
            place = place * NUM_PLACES + (int(marking.places[0, card]) if k < left else NO_PLACE)
            card = int(UP[card])
        features[num] = AT.next + place
        num += 1
    return num


@rule
def mark_takers(node: Node, stock: int, marking: FeatureMarking, features: Int64s, num: int) -> int:
    """Add the features of piles that may be built on."""
    for pile in range(NUM_HOURS):
        height = int(node.heights[pile])
        if height >= FULL_PILE:
            card = int(node.tops[pile])
            lower = int(DOWN[card])
            built = phase_of(stock) * BUILT + min(height - FULL_PILE, BUILT - 1)
            places = (built * NUM_NEEDS + int(marking.needs[card])) * NUM_PLACES + marking.places[0, lower]
            features[num] = AT.takes + places * NUM_PLACES + marking.places[1, lower]
            num += 1
    return num


# What is stuck


@rule
def lay_out(node: Node, marking: FeatureMarking) -> None:
    """Copy piles and foundations before everything possible is placed; `mark_waste` has copied the waste."""
    for hour in range(NUM_HOURS):
        marking.left[hour] = node.to_come[hour]
        marking.heights[hour] = node.heights[hour]
        marking.tops[hour] = node.tops[hour]
    marking.sizes[0], marking.sizes[1] = node.left, 0


@rule
def put(card: int, wanted: Cards, marking: FeatureMarking) -> Cards:
    """Place a wanted card as in BB-6; return the cards wanted then."""
    left = marking.left
    hour = int(FIRST_HOUR[card // 13])
    taker = hour
    most = 0
    for k in range(3):
        to_come = int(left[hour + 4 * k])
        if to_come > most and NEXT_CARD[hour + 4 * k, to_come] == card:
            taker = hour + 4 * k
            most = to_come
    left[taker] = most - 1
    marking.sizes[0] -= 1
    wanted &= ~bit(card)
    for k in range(3):
        to_come = int(left[hour + 4 * k])
        if to_come > 0:
            wanted |= bit(int(NEXT_CARD[hour + 4 * k, to_come]))
    return wanted


@rule
def take(node: Node, pile: int, marking: FeatureMarking) -> None:
    """Take the top card off a pile."""
    height = int(marking.heights[pile]) - 1
    marking.heights[pile] = height
    if height >= FULL_PILE:
        marking.tops[pile] = UP[marking.tops[pile]]
    elif height > 0:
        marking.tops[pile] = node.low[pile, height - 1]


@rule
def place_table(node: Node, wanted: Cards, marking: FeatureMarking) -> Cards:
    """Place everything possible from piles and waste without the stock; return the cards wanted then."""
    before = -1
    while marking.sizes[0] != before:
        before = marking.sizes[0]
        for pile in range(NUM_HOURS):
            while marking.heights[pile] > 0 and wanted & bit(int(marking.tops[pile])):
                card = int(marking.tops[pile])
                take(node, pile, marking)
                wanted = put(card, wanted, marking)
        while marking.sizes[1] < marking.sizes[2]:
            card = int(marking.waste[marking.sizes[1]])
            if not wanted & bit(card):
                break
            marking.sizes[1] += 1
            wanted = put(card, wanted, marking)
    return wanted


@rule
def build_one(node: Node, marking: FeatureMarking) -> bool:
    """Build one of the lowest three cards of a pile, or the top of the waste, if possible."""
    heights, tops = marking.heights, marking.tops
    for source in range(NUM_HOURS + 1):
        if source < NUM_HOURS:
            if heights[source] == 0 or heights[source] > FULL_PILE:
                continue
            card = int(tops[source])
        else:
            if marking.sizes[1] == marking.sizes[2]:
                continue
            card = int(marking.waste[marking.sizes[1]])
        for target in range(NUM_HOURS):
            if target != source and heights[target] >= FULL_PILE and tops[target] == UP[card]:
                if source < NUM_HOURS:
                    take(node, source, marking)
                else:
                    marking.sizes[1] += 1
                heights[target] += 1
                tops[target] = card
                return True
    return False


@rule
def place_all(node: Node, builds: bool, marking: FeatureMarking) -> None:
    """Place everything possible with every card of the stock available; and build, where that helps."""
    wanted = EMPTY
    for hour in range(NUM_HOURS):
        to_come = int(marking.left[hour])
        if to_come > 0:
            wanted |= bit(int(NEXT_CARD[hour, to_come]))
    in_stock = EMPTY
    for card in range(NUM_CARDS):
        if marking.stock[card] > 0:
            in_stock |= bit(card)
    wave = 0
    while True:
        wanted = place_table(node, wanted, marking)
        if not builds and wave < WAVES:
            marking.waves[wave] = marking.sizes[0]
            wave += 1
        hits = wanted & in_stock
        if hits == EMPTY:
            if builds and marking.sizes[0] > 0 and build_one(node, marking):
                continue
            break
        while hits:
            card = highest(hits)
            hits &= ~bit(card)
            marking.stock[card] -= 1
            if marking.stock[card] == 0:
                in_stock &= ~bit(card)
            wanted = put(card, wanted, marking)
    if not builds:
        for later in range(wave, WAVES):
            marking.waves[later] = marking.sizes[0]


@rule
def low_cards_left(marking: FeatureMarking) -> int:
    """Return how many of the lowest three cards of piles are left."""
    left = 0
    for pile in range(NUM_HOURS):
        left += min(int(marking.heights[pile]), FULL_PILE)
    return left


@rule
def mark_where(at: int, stock: int, marking: FeatureMarking, features: Int64s, num: int) -> int:
    """Add the number of cards left in waste and piles."""
    in_waste = int(marking.sizes[2] - marking.sizes[1])
    features[num] = at + (part_of(stock) * STOCKS + in_waste) * MOST_LOW + low_cards_left(marking)
    return num + 1


@rule
def mark_suits_left(at: int, stock: int, marking: FeatureMarking, features: Int64s, num: int) -> int:
    """Add the cards left to come, by suit."""
    left = marking.left
    for suit in range(4):
        hour = int(FIRST_HOUR[suit])
        lefts = three(int(left[hour]), int(left[hour + 4]), int(left[hour + 8]))
        features[num + suit] = at + whole_part_of(stock) * THREE_NEEDS + lefts
    return num + 4


@rule
def mark_stuck(node: Node, stock: int, marking: FeatureMarking, features: Int64s, num: int) -> int:
    """Add how much is stuck, and where."""
    for wave in range(WAVES):
        features[num + wave] = AT.waves + (wave * LEFTS + int(marking.waves[wave])) * STOCKS + stock
    features[num + WAVES] = AT.stuck + int(marking.sizes[0]) * STOCKS + stock
    num += WAVES + 1
    for pile in range(NUM_HOURS):
        height = int(node.heights[pile])
        if height > 0:
            stays = phase_of(stock) * (FULL_PILE + 1) + min(int(marking.heights[pile]), FULL_PILE)
            features[num] = AT.stays + stays * THREE_NEEDS + low_needs(node, pile, height, marking.needs)
            num += 1
    for hour in range(NUM_HOURS):
        to_come = int(node.to_come[hour])
        if to_come > 0:
            features[num] = AT.blocked + (phase_of(stock) * NUM_NEEDS + to_come) * NUM_NEEDS + int(marking.left[hour])
            num += 1
    num = mark_suits_left(AT.suit_stuck, stock, marking, features, num)
    first = int(marking.sizes[1])
    for depth in range(first, int(marking.sizes[2])):
        place = (half_of(stock) * WASTE_STUCK + min(depth, WASTE_STUCK - 1)) * 4 + min(depth - first, 3)
        features[num] = AT.waste_stuck + place * NUM_NEEDS + int(marking.needs[marking.waste[depth]])
        num += 1
    return mark_where(AT.where_stuck, stock, marking, features, num)


@rule
def note_depth(card: int, depth: int, marking: FeatureMarking) -> None:
    """Record the depth, from 1, of the easiest copy of a stuck card."""
    depths = marking.places[0]
    if depths[card] == NO_PLACE or depths[card] > depth:
        depths[card] = depth


@rule
def mark_blockers(node: Node, stock: int, marking: FeatureMarking, features: Int64s, num: int) -> int:
    """Add what is stuck and why. From here on, the workspace holds needs and depths of what is stuck."""
    left, heights, tops, needs = marking.left, marking.heights, marking.tops, marking.needs
    for suit in range(4):
        hour = int(FIRST_HOUR[suit])
        for rank in range(13):
            card = 13 * suit + rank
            marking.places[0, card] = NO_PLACE
            needs[card] = NEEDS[suit, left[hour], left[hour + 4], left[hour + 8], rank]
    for pile in range(NUM_HOURS):
        height = int(heights[pile])
        if height == 0:
            continue
        features[num] = AT.pile_stuck + phase_of(stock) * (BUILT * SUITS_ALIKE * THREE_NEEDS)
        features[num] += pile_pattern(node, pile, height, needs)
        top = int(tops[pile])
        takers = 0
        for other in range(NUM_HOURS):
            takers += other != pile and heights[other] >= FULL_PILE and tops[other] == UP[top]
        was = min(max(int(node.heights[pile]) - FULL_PILE + 1, 0), 2)  # 0: gaps, 1: three cards, 2: more
        place = (phase_of(stock) * NUM_NEEDS + int(needs[top])) * NUM_NEEDS + min(height, NUM_NEEDS - 1)
        features[num + 1] = AT.top_stuck + place * 10 + 3 * min(takers, 2) + was
        num += 2
        for k in range(min(height, FULL_PILE)):
            note_depth(int(node.low[pile, k]), height - k, marking)
        note_depth(top, 1, marking)
    first = int(marking.sizes[1])
    for depth in range(first, int(marking.sizes[2])):
        note_depth(int(marking.waste[depth]), STUCK_DEPTHS // 2 + min(depth - first, 6), marking)
    for hour in range(NUM_HOURS):
        to_come = int(left[hour])
        if to_come > 0:
            depth = min(int(marking.places[0, NEXT_CARD[hour, to_come]]), STUCK_DEPTHS - 1)
            place = (phase_of(stock) * NUM_NEEDS + to_come) * STUCK_DEPTHS + depth
            features[num] = AT.wanted + place * NUM_NEEDS + int(node.to_come[hour])
            num += 1
    return num


@rule
def mark_built(stock: int, stuck: int, marking: FeatureMarking, features: Int64s, num: int) -> int:
    """Add what is stuck with building."""
    built = int(marking.sizes[0])
    features[num] = AT.built + built * STOCKS + stock
    features[num + 1] = AT.helps + (half_of(stock) * LEFTS + stuck) * LEFTS + built
    num = mark_where(AT.where_built, stock, marking, features, num + 2)
    return mark_suits_left(AT.suit_built, stock, marking, features, num)
