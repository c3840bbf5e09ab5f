"""One layer of a beam search: all positions one move further, of which the best are kept.

Positions are scored by tables of weights (`solver_weights.json`, fitted by `strength/fit_big_ben.py`).
"""

from __future__ import annotations

from itertools import accumulate, product
from typing import NamedTuple

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import ONE, bit, count, highest, lowest
from card_envs.game import Int8s, Int64s, Key, UInt64s
from card_envs.games.big_ben.position import Info, Int16s, Node, Records, key_of, move_on
from card_envs.games.big_ben.proof import moves_to_try
from card_envs.games.big_ben.rules import (
    FIRST_HOUR,
    FULL_PILE,
    LASTS,
    MAX_TO_COME,
    NEXT_CARD,
    NUM_CARDS,
    NUM_HOURS,
    STOCK_SIZE,
    UP,
)

MAX_SCORE = 1 << 15
MAX_MARKS = 256  # 5 for the stock, 7 per pile, 2 per card of the waste, 2 per foundation
CANDIDATE = np.dtype(
    (np.record, np.dtype([("score", np.int32), ("parent", np.int32), ("action", np.int16)], align=True))
)
STEP = np.dtype((np.record, np.dtype([("parent", np.int32), ("action", np.int16)], align=True)))
# The tables of weights, concatenated, with their sizes. Needs (`note_needs`) go from 1 to 8.
FAR = 11  # classes of the number of cards above a card; four classes of places in the stock follow
NUM_AHEAD = 5
TABLES = {
    "totals": 2,  # for each card still to be placed, for each card dealt
    "ahead": 9 * NUM_AHEAD,  # the next cards of the stock: place, need
    "height": 12,  # of a pile
    "covered": 4 * 9,  # the lowest three cards of a pile: cards above, need
    "pair": 3 * 81,  # two of these: different suits, one built on the other, or neither; both needs
    "sunk": 8 * 9,  # cards of the waste: cards above, need
    "under": 81,  # cards of the waste: the latest need above, own need
    "first": FAR + 5,  # the next card of each foundation: cards above its easier copy
    "second": FAR + 5,  # the next but one
}
_, AHEAD, HEIGHT, COVERED, PAIR, SUNK, UNDER, FIRST, SECOND, NUM_WEIGHTS = accumulate(TABLES.values(), initial=0)


class Judge(NamedTuple):
    """Weights and tables for scoring positions.

    Attributes:
        distances: result of `stock_distances`.
        weights: [NUM_WEIGHTS].
    """

    distances: Int8s
    weights: Int64s


class BeamWorkspace(NamedTuple):
    """The workspace of `expand`.

    Attributes:
        child: [1] a node.
        moves: [MAX_MOVES].
        needs: [52] from `note_needs`.
        depths: [52] number of cards above the easiest copy of each card.
        marks: [MAX_MARKS] indices of the active features of a position.
        seen: [a power of two] keys of positions; older ones are forgotten if space is short.
    """

    child: Records
    moves: Int16s
    needs: Int8s
    depths: Int8s
    marks: Int16s
    seen: UInt64s


def _needs() -> Int8s:
    """Return each card's need by suit, cards to come on its foundations, and rank: see `note_needs`."""
    needs = np.zeros((4, *3 * [MAX_TO_COME + 1], 13), np.int8)
    for suit, hour in enumerate(FIRST_HOUR.tolist()):
        for lefts in product(range(MAX_TO_COME + 1), repeat=3):
            for k, left in enumerate(lefts):
                last = int(LASTS[hour + 4 * k])
                for steps in range(left):
                    rank = (last - left + 1 + steps) % 13
                    known = int(needs[(suit, *lefts, rank)])
                    needs[(suit, *lefts, rank)] = min(known, steps + 1) if known else steps + 1
    return needs


NEEDS = _needs()


@rule
def note_needs(node: Node, needs: Int8s) -> None:
    """Write each card's need: how many cards of its suit the foundations take up to it (1: it is next; 0: no more)."""
    for suit in range(4):
        hour = int(FIRST_HOUR[suit])
        left, left_4, left_8 = int(node.to_come[hour]), int(node.to_come[hour + 4]), int(node.to_come[hour + 8])
        for rank in range(13):
            needs[13 * suit + rank] = NEEDS[suit, left, left_4, left_8, rank]


def stock_distances(info: Info) -> Int8s:
    """Return [dealt, 52] the distance of each card in the stock, by the number of cards dealt."""
    distances = np.full((STOCK_SIZE + 1, NUM_CARDS), FAR, np.int8)
    for dealt in range(int(info.in_deck)):
        for place in range(int(info.in_deck) - 1, dealt - 1, -1):
            distances[dealt, info.deck[place]] = FAR + 1 + sum(place - dealt >= limit for limit in (4, 10, 22))
    return distances


@rule
def distance_class(ahead: int) -> int:
    """Return the class of a card's distance in the stock, by the number of cards before it."""
    return FAR + 1 + (1 if ahead >= 4 else 0) + (1 if ahead >= 10 else 0) + (1 if ahead >= 22 else 0)


@rule
def note_stock(node: Node, info: Info, depths: Int8s) -> None:
    """Write what `stock_distances` has for a stock that is a waste turned over."""
    for card in range(NUM_CARDS):
        depths[card] = FAR
    stock = node.stock
    while stock:
        place = highest(stock)
        stock &= ~bit(place)
        depths[int(info.deck[place])] = distance_class(count(stock))


@rule
def marks_of(node: Node, info: Info, distances: Int8s, scratch: BeamWorkspace) -> int:
    """Write the indices of a position's active features, except the totals, into `scratch.marks`; return their number.

    `scratch` must hold the needs of the position; its depths become those of the easiest copy of each card.
    """
    needs, depths, marks = scratch.needs, scratch.depths, scratch.marks
    for card in range(NUM_CARDS):
        depths[card] = distances[int(node.dealt), card]
    if node.redeals < info.redeals:
        note_stock(node, info, depths)
    num = mark_stock(node, info, needs, marks)
    for pile in range(NUM_HOURS):
        num = mark_pile(node, pile, needs, depths, marks, num)
    num = mark_waste(node, info, needs, depths, marks, num)
    return mark_foundations(node, depths, marks, num)


@rule
def mark_stock(node: Node, info: Info, needs: Int8s, marks: Int16s) -> int:
    """Add the features of the next cards of the stock.

    This and the following functions add features from `num` on and return their number.
    """
    stock = node.stock
    ahead = 0
    while stock and ahead < NUM_AHEAD:
        marks[ahead] = AHEAD + 9 * ahead + needs[int(info.deck[lowest(stock)])]
        stock &= stock - ONE
        ahead += 1
    return ahead


@rule
def mark_pile(node: Node, pile: int, needs: Int8s, depths: Int8s, marks: Int16s, num: int) -> int:
    """Add a pile's height, and its lowest three cards with what covers them."""
    height = int(node.heights[pile])
    marks[num] = HEIGHT + min(height, 11)
    num += 1
    if height == 0:
        return num
    card = int(node.tops[pile])
    depths[card] = 0
    for over in range(1, height - FULL_PILE):
        card = int(UP[card])
        depths[card] = min(int(depths[card]), over, FAR)
    for k in range(min(height, FULL_PILE)):
        card = int(node.low[pile, k])
        need = int(needs[card])
        over = height - 1 - k
        depths[card] = min(int(depths[card]), over, FAR)
        marks[num] = COVERED + 9 * min(over, 3) + need
        num += 1
        for i in range(k):
            lower = int(node.low[pile, i])
            case = 0 if lower // 13 != card // 13 else 1 if UP[card] == lower and i == k - 1 else 2
            marks[num] = PAIR + 81 * case + 9 * int(needs[lower]) + need
            num += 1
    return num


@rule
def mark_waste(node: Node, info: Info, needs: Int8s, depths: Int8s, marks: Int16s, num: int) -> int:
    """Add each card of the waste, with what lies on it."""
    latest = 0
    depth = 0
    waste = node.waste
    while waste:
        place = highest(waste)
        waste &= ~bit(place)
        card = int(info.deck[place])
        need = int(needs[card])
        depths[card] = min(int(depths[card]), depth, FAR)
        marks[num] = SUNK + 9 * min(depth, 7) + need
        marks[num + 1] = UNDER + 9 * latest + need
        num += 2
        latest = max(latest, need)
        depth += 1
    return num


@rule
def mark_foundations(node: Node, depths: Int8s, marks: Int16s, num: int) -> int:
    """Add the ease of reaching the next two cards of each foundation."""
    for hour in range(NUM_HOURS):
        left = int(node.to_come[hour])
        if left > 0:
            card = int(NEXT_CARD[hour, left])
            marks[num] = FIRST + int(depths[card])
            num += 1
            if left > 1:
                marks[num] = SECOND + int(depths[int(UP[card])])
                num += 1
    return num


@rule
def score_of(node: Node, info: Info, judge: Judge, scratch: BeamWorkspace) -> int:
    """Return the score of a position, 0 to 2 MAX_SCORE - 1; higher is better."""
    note_needs(node, scratch.needs)
    weights = judge.weights
    score = int(weights[0]) * int(node.left) + int(weights[1]) * int(node.dealt)
    for k in range(marks_of(node, info, judge.distances, scratch)):
        score += int(weights[scratch.marks[k]])
    return min(max(score + MAX_SCORE, 0), 2 * MAX_SCORE - 1)


@rule
def enter_again(seen: UInt64s, key: Key) -> bool:
    """Add a key to a table that forgets the older of two keys in a slot; return whether it was new."""
    slot = key & np.uint64(len(seen) - 1)
    if seen[slot] == key or seen[slot ^ ONE] == key:
        return False
    seen[slot ^ ONE] = seen[slot]
    seen[slot] = key
    return True


def expand(
    first: int, last: int, parents: Records, infos: Records, judge: Judge, scratch: BeamWorkspace, candidates: Records,
    progress: Int64s,
) -> int:  # fmt: skip
    """Score the new positions among the children of the parents first <= i < last.

    Args:
        first, last: range of parents.
        parents: [W] nodes.
        infos: [1] the deal.
        judge: what positions are scored with.
        scratch: workspace; positions in `seen` are not new.
        candidates: [C] CANDIDATE; filled as far as there is space.
        progress: [2] incremented by the numbers of candidates and of new positions.

    Returns:
        1 if the last candidate is a won position, else 0.
    """
    info, nodes, moves = infos[0], scratch.child, scratch.moves
    child = nodes[0]
    num, positions = int(progress[0]), int(progress[1])
    won = 0
    for i in range(first, last):
        for k in range(moves_to_try(parents[i], info, moves)):
            nodes[0] = parents[i]
            move_on(child, info, int(moves[k]))
            if not enter_again(scratch.seen, key_of(child, info)):
                continue
            positions += 1
            if child.left == 0 and num == len(candidates):
                num -= 1
            if num < len(candidates):
                candidates[num].score = score_of(child, info, judge, scratch)
                candidates[num].parent = i
                candidates[num].action = moves[k]
                num += 1
            if child.left == 0:
                won = 1
                break
        if won:
            break
    progress[0], progress[1] = num, positions
    return won


def keep_best(
    parents: Records, children: Records, infos: Records, candidates: Records, num: int, tally: Int64s, trail: Records
) -> int:  # fmt: skip
    """Turn the best candidates into nodes, as many as fit into `children` [W].

    Args:
        parents, children: [W] nodes.
        infos: [1] the deal.
        candidates: [C] CANDIDATE, of which the first `num` are valid.
        num: number of candidates.
        tally: [2 MAX_SCORE] scratch.
        trail: [W] STEP, written: how each child was reached.

    Returns:
        number of children.
    """
    tally[:] = 0
    for j in range(num):
        tally[candidates[j].score] += 1
    above = 0  # number of candidates above the threshold score
    bar = len(tally) - 1
    while bar > 0 and above + tally[bar] < len(children):
        above += tally[bar]
        bar -= 1
    at_bar = len(children) - above  # number of candidates kept at the threshold score
    size = 0
    for j in range(num):
        score = int(candidates[j].score)
        if score < bar:
            continue
        if score == bar:
            if at_bar == 0:
                continue
            at_bar -= 1
        children[size] = parents[candidates[j].parent]
        move_on(children[size], infos[0], int(candidates[j].action))
        trail[size].parent = candidates[j].parent
        trail[size].action = candidates[j].action
        size += 1
    return size
