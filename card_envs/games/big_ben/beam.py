"""One layer of a beam search: what can be reached with one more move, and the best of it.

Positions are scored by tables of weights (`solver_weights.json`, fitted by `fit.py`).
"""

from __future__ import annotations

from itertools import accumulate, product
from typing import NamedTuple

import numpy as np

from card_envs.engine.jit import rule
from card_envs.engine.sets import ONE, bit, highest
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
MAX_MARKS = 256  # 5 of the stock, 7 for a pile, 2 for a card of the waste, 2 for a foundation
CANDIDATE = np.dtype(
    (np.record, np.dtype([("score", np.int32), ("parent", np.int32), ("action", np.int16)], align=True))
)
STEP = np.dtype((np.record, np.dtype([("parent", np.int32), ("action", np.int16)], align=True)))
# What a position is scored by: tables of weights, one after the other. Needs (`note_needs`) go from 1 to 8.
FAR = 11  # cards above a card, at most; then come four classes of places in the stock
NUM_AHEAD = 5
TABLES = {
    "totals": 2,  # for each card still to be placed, for each card dealt
    "ahead": 9 * NUM_AHEAD,  # the next cards of the stock: place, need
    "height": 12,  # of a pile
    "covered": 4 * 9,  # the lowest three cards of a pile: cards above, need
    "pair": 3 * 81,  # two of these: other suits, one built on the other, else; need of the lower and of the upper one
    "sunk": 8 * 9,  # cards of the waste: cards above, need
    "under": 81,  # the same: the latest need above, own need
    "first": FAR + 5,  # the next card of each foundation: cards above its easier copy
    "second": FAR + 5,  # the next but one
}
_, AHEAD, HEIGHT, COVERED, PAIR, SUNK, UNDER, FIRST, SECOND, NUM_WEIGHTS = accumulate(TABLES.values(), initial=0)


class Judge(NamedTuple):
    """What positions are scored with.

    Attributes:
        distances: of `stock_distances`.
        weights: [NUM_WEIGHTS].
    """

    distances: Int8s
    weights: Int64s


class Scratch(NamedTuple):
    """What `expand` works with.

    Attributes:
        child: [1] a node.
        moves: [MAX_MOVES].
        needs: [52] of `note_needs`.
        depths: [52] how many cards lie above the easiest copy of each card.
        marks: [MAX_MARKS] which weights count for a position.
    """

    child: Records
    moves: Int16s
    needs: Int8s
    depths: Int8s
    marks: Int16s


def _needs() -> Int8s:
    """By suit, cards to come on its foundations and rank: after how many others that card is wanted (1: now)."""
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
    """For each card, after how many others of its suit the foundations take it (1: now; 0: no more)."""
    for suit in range(4):
        hour = int(FIRST_HOUR[suit])
        left, left_4, left_8 = int(node.to_come[hour]), int(node.to_come[hour + 4]), int(node.to_come[hour + 8])
        for rank in range(13):
            needs[13 * suit + rank] = NEEDS[suit, left, left_4, left_8, rank]


def stock_distances(info: Info) -> Int8s:
    """Return [dealt, 52] how far each card is when so many cards of the deck have been dealt, as far as the stock goes."""
    distances = np.full((STOCK_SIZE + 1, NUM_CARDS), FAR, np.int8)
    for dealt in range(int(info.in_deck)):
        for place in range(int(info.in_deck) - 1, dealt - 1, -1):
            distances[dealt, info.deck[place]] = FAR + 1 + sum(place - dealt >= limit for limit in (4, 10, 22))
    return distances


@rule
def marks_of(node: Node, info: Info, distances: Int8s, scratch: Scratch) -> int:
    """Write which weights count for a position, besides the totals, into `scratch.marks`, and return how many.

    `scratch` must hold the needs of the position; its depths become those of the easiest copy of each card.
    """
    needs, depths, marks = scratch.needs, scratch.depths, scratch.marks
    for card in range(NUM_CARDS):
        depths[card] = distances[int(node.dealt), card]
    num = mark_stock(node, info, needs, marks)
    for pile in range(NUM_HOURS):
        num = mark_pile(node, pile, needs, depths, marks, num)
    num = mark_waste(node, info, needs, depths, marks, num)
    return mark_foundations(node, depths, marks, num)


@rule
def mark_stock(node: Node, info: Info, needs: Int8s, marks: Int16s) -> int:
    """Return the next cards of the stock. This and the following enter marks from `num` on and return how many there are."""
    dealt = int(node.dealt)
    ahead = min(NUM_AHEAD, int(info.in_deck) - dealt)
    for place in range(ahead):
        marks[place] = AHEAD + 9 * place + needs[int(info.deck[dealt + place])]
    return ahead


@rule
def mark_pile(node: Node, pile: int, needs: Int8s, depths: Int8s, marks: Int16s, num: int) -> int:
    """Height, and the lowest three cards with what covers them."""
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
    """Return each card of the waste, with what lies on it."""
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
    """Return how easily the next two cards of each foundation are reached."""
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
def score_of(node: Node, info: Info, judge: Judge, scratch: Scratch) -> int:
    """Return how promising a position is: from 0 to 2 MAX_SCORE - 1."""
    note_needs(node, scratch.needs)
    weights = judge.weights
    score = int(weights[0]) * int(node.left) + int(weights[1]) * int(node.dealt)
    for k in range(marks_of(node, info, judge.distances, scratch)):
        score += int(weights[scratch.marks[k]])
    return min(max(score + MAX_SCORE, 0), 2 * MAX_SCORE - 1)


@rule
def enter_again(seen: UInt64s, key: Key) -> bool:
    """Enter a key into a table that forgets the older of two in a place; whether it was not there."""
    slot = key & np.uint64(len(seen) - 1)
    if seen[slot] == key or seen[slot ^ ONE] == key:
        return False
    seen[slot ^ ONE] = seen[slot]
    seen[slot] = key
    return True


def expand(
    first: int, last: int, parents: Records, infos: Records, judge: Judge, scratch: Scratch, seen: UInt64s,
    candidates: Records, progress: Int64s,
) -> int:  # fmt: skip
    """Score what is new among the children of the parents first <= i < last.

    Args:
        first, last: which parents.
        parents: [W] nodes.
        infos: [1] the deal.
        judge: what positions are scored with.
        scratch: to work with.
        seen: [a power of two] keys of positions, the older ones forgotten when room is short.
        candidates: [C] CANDIDATE; gets what was found as long as there is room.
        progress: [2] grows by the number of candidates and of new positions.

    Returns:
        1 if the last candidate entered is a won position, else 0.
    """
    info, nodes, moves = infos[0], scratch.child, scratch.moves
    child = nodes[0]
    num, positions = int(progress[0]), int(progress[1])
    won = 0
    for i in range(first, last):
        for k in range(moves_to_try(parents[i], info, moves)):
            nodes[0] = parents[i]
            move_on(child, info, int(moves[k]))
            if not enter_again(seen, key_of(child, info)):
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
    """Make nodes of the best candidates, as many as `children` [W] takes.

    Args:
        parents, children: [W] nodes.
        infos: [1] the deal.
        candidates: [C] CANDIDATE, of which the first `num` count.
        num: how many.
        tally: [2 MAX_SCORE] scratch.
        trail: [W] STEP, gets how each child was made.

    Returns:
        how many were kept.
    """
    tally[:] = 0
    for j in range(num):
        tally[candidates[j].score] += 1
    above = 0  # candidates with a better score than the bar's
    bar = len(tally) - 1
    while bar > 0 and above + tally[bar] < len(children):
        above += tally[bar]
        bar -= 1
    at_bar = len(children) - above  # how many of those with the bar's score have room
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
