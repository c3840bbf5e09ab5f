"""Compact positions for the solver: the rules' State of a deal whose stock is known.

A node is a seventh of the size of a State and several times faster to play on. Its actions have the rules' numbers, and
tests play both side by side. All cards that are not on the table at the start of the search come from the *deck*: the
waste as it lay then, followed by the stock. So the waste is a set of places in the deck, the last of which is on top.
The stock is another one, the first of which is next, also after the waste was turned over (BB-9).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import rule
from card_envs.engine.rng import GOLDEN_RATIO, mix
from card_envs.engine.sets import EMPTY, ONE, bit, count, highest, lowest
from card_envs.game import Cards, Key, State
from card_envs.games.big_ben.rules import (
    DEAL,
    FIRST_HOUR,
    FLOOR,
    FULL_PILE,
    MAX_HOPS,
    NEXT_CARD,
    NUM_HOURS,
    PACK_SIZE,
    STOCK_SIZE,
    UP,
    WASTE,
    move_action,
)

NODE = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("waste", np.uint64),  # places in the deck
                ("stock", np.uint64),  # places in the deck
                ("dealt", np.int16),  # cards of the deck that are not in the stock
                ("redeals", np.int8),  # BB-9: left
                ("hops", np.int8),  # BB-10: in a row
                ("left", np.int8),  # cards still to be placed
                ("heights", np.int8, NUM_HOURS),
                ("tops", np.int8, NUM_HOURS),  # -1: none
                ("low", np.int8, (NUM_HOURS, FULL_PILE)),  # the lowest three; 0 for a missing card
                ("to_come", np.int8, NUM_HOURS),
            ],
            align=True,
        ),
    )
)
INFO = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("deck", np.int8, STOCK_SIZE),
                ("in_deck", np.int16),  # cards in the deck
                ("pile_by_pile", np.bool_),  # BB-7
                ("when_stuck", np.bool_),  # BB-8
                ("waste_builds", np.bool_),  # BB-9
                ("open_from", np.int8),  # BB-5: cards of the smallest piles that may be built on
                ("redeals", np.int8),  # BB-9: left at the first node
                ("order_known", np.bool_),  # to the player as well: nothing is hidden
                ("endless_hops", np.bool_),  # BB-10 does not hold: for proofs
            ],
            align=True,
        ),
    )
)
Node: TypeAlias = Any  # one record of NODE
Info: TypeAlias = Any  # one record of INFO
Records: TypeAlias = NDArray[np.void]  # an array of either
Int16s: TypeAlias = NDArray[np.int16]

MAX_MOVES = NUM_HOURS * NUM_HOURS + NUM_HOURS + 2
SHIFT_8, SHIFT_16, SHIFT_24, SHIFT_32, SHIFT_56 = (np.uint64(shift) for shift in (8, 16, 24, 32, 56))


def read_state(state: State, nodes: Records, infos: Records) -> None:
    """Enter a State of the rules as the first node, and its deck; works in plain Python and compiled."""
    node, info = nodes[0], infos[0]
    num_waste, num_dealt, num_stock = (
        int(state.num_waste),
        int(state.num_dealt),
        int(state.stock_end) - int(state.num_dealt),
    )
    for place in range(num_waste):
        info.deck[place] = state.waste[place]
    redealt = state.stock_end > PACK_SIZE
    for place in range(num_stock):
        info.deck[num_waste + place] = (
            state.waste[num_dealt - PACK_SIZE + place] if redealt else state.pack[num_dealt + place]
        )
    info.in_deck = num_waste + num_stock
    info.pile_by_pile = state.pile_by_pile
    info.when_stuck = state.when_stuck
    info.waste_builds = state.waste_piles != 0
    info.open_from = state.open_from
    info.redeals = node.redeals = 0 if redealt else state.redeals
    info.order_known = num_stock == 0 or redealt
    node.waste = np.uint64((1 << num_waste) - 1)
    node.stock = np.uint64((1 << num_waste + num_stock) - (1 << num_waste))
    node.dealt = num_waste
    node.hops = state.hops
    node.left = PACK_SIZE - int(state.num_placed)
    for pile in range(NUM_HOURS):
        height = int(state.heights[pile])
        node.to_come[pile] = state.to_come[pile]
        node.heights[pile] = height
        node.tops[pile] = state.piles[pile, FLOOR + height - 1] if height > 0 else -1
        for k in range(FULL_PILE):
            node.low[pile, k] = state.piles[pile, FLOOR + k] if k < height else 0


# The functions below correspond to those of rules.py.


@rule
def waste_card(node: Node, info: Info) -> int:
    """Return the top card of the waste, or -1."""
    return int(info.deck[highest(node.waste)]) if node.waste else -1


@rule
def lay_on(node: Node, pile: int, card: int) -> None:
    height = int(node.heights[pile])
    if height < FULL_PILE:
        node.low[pile, height] = card
    node.heights[pile] = height + 1
    node.tops[pile] = card


@rule
def lift_off(node: Node, pile: int) -> int:
    card = int(node.tops[pile])
    height = int(node.heights[pile]) - 1
    node.heights[pile] = height
    if height >= FULL_PILE:
        node.tops[pile] = UP[card]
    else:
        node.low[pile, height] = 0
        node.tops[pile] = node.low[pile, height - 1] if height > 0 else -1
    return card


@rule
def put_home(node: Node, card: int) -> None:
    """Place a card on its foundation (BB-4, BB-6)."""
    hour = int(FIRST_HOUR[card // 13])
    taker = 0
    most = 0
    for k in range(3):
        left = int(node.to_come[hour + 4 * k])
        if NEXT_CARD[hour + 4 * k, left] == card and left > most:
            taker = hour + 4 * k
            most = left
    node.to_come[taker] = most - 1
    node.left -= 1


@rule
def is_hop(node: Node, pile: int) -> bool:
    """Return whether moving the top card is a hop: it lies on the next higher of its suit (BB-10)."""
    height = int(node.heights[pile])
    if height > FULL_PILE:
        return True
    return height >= 2 and node.low[pile, height - 2] == UP[int(node.tops[pile])]


@rule
def has_gap(node: Node) -> bool:
    gap = False
    for pile in range(NUM_HOURS):
        gap |= node.heights[pile] < FULL_PILE
    return gap


@rule
def draw_place(node: Node) -> int:
    """Take the next card of the stock and return its place in the deck."""
    place = lowest(node.stock)
    node.stock &= node.stock - ONE
    node.dealt += 1
    return place


@rule
def may_turn_over(node: Node) -> bool:
    """Return whether the waste may be turned over once the stock is empty (BB-9)."""
    return node.redeals > 0 and node.waste != EMPTY


@rule
def turn_over(node: Node) -> None:
    """Turn the waste over to form the stock (BB-9)."""
    node.stock = node.waste
    node.dealt -= count(node.waste)
    node.waste = EMPTY
    node.redeals -= 1


@rule
def move_on(node: Node, info: Info, action: int) -> None:
    """Play an action, like `play` of the rules."""
    hops = 0
    if action == DEAL:
        if node.dealt == info.in_deck:
            turn_over(node)
        elif has_gap(node):
            fill(node, info)
        else:
            node.waste |= bit(draw_place(node))
    elif action >= WASTE:
        card = waste_card(node, info)
        node.waste &= ~bit(highest(node.waste))
        if action == WASTE:
            put_home(node, card)
        else:
            lay_on(node, action - WASTE - 1, card)
    else:
        source = action // NUM_HOURS
        target = action - NUM_HOURS * source
        if target == 0:
            put_home(node, lift_off(node, source))
        else:
            if target <= source:
                target -= 1
            if is_hop(node, source):
                hops = min(int(node.hops) + 1, MAX_HOPS + 1)  # saturates; beyond MAX_HOPS only in proofs
            lay_on(node, target, lift_off(node, source))
    node.hops = hops


@rule
def fill(node: Node, info: Info) -> None:
    """Fill gaps (BB-7)."""
    rounds, at_once = (1, FULL_PILE) if info.pile_by_pile else (FULL_PILE, 1)
    for _ in range(rounds):
        for pile in range(NUM_HOURS):
            for _ in range(at_once):
                if node.heights[pile] < FULL_PILE and node.dealt < info.in_deck:
                    lay_on(node, pile, int(info.deck[draw_place(node)]))


@rule
def wanted_cards(node: Node) -> Cards:
    """Return the cards that foundations take."""
    wanted = EMPTY
    for hour in range(NUM_HOURS):
        left = int(node.to_come[hour])
        if left > 0:
            wanted |= bit(int(NEXT_CARD[hour, left]))
    return wanted


@rule
def list_moves(node: Node, info: Info, moves: Int16s) -> int:
    """Write the legal actions into `moves` [MAX_MOVES] and return their number.

    With `endless_hops`, hops do not count as moves for a deal that waits until the player is stuck. Then every action
    that is legal under BB-10 is legal here, too.
    """
    num_moves = 0
    num_hops = 0
    wanted = wanted_cards(node)
    open_cards = EMPTY
    gap = False
    for pile in range(NUM_HOURS):
        gap |= node.heights[pile] < FULL_PILE
        if node.heights[pile] >= info.open_from:
            open_cards |= bit(int(node.tops[pile]))
    for source in range(NUM_HOURS + 1):
        card = waste_card(node, info) if source == NUM_HOURS else int(node.tops[source])
        if card < 0:
            continue
        if wanted & bit(card):
            moves[num_moves] = NUM_HOURS * source
            num_moves += 1
        under = int(UP[card])
        if not open_cards & bit(under) or (source == NUM_HOURS and not info.waste_builds):
            continue
        hop = source < NUM_HOURS and is_hop(node, source)
        if hop and node.hops == MAX_HOPS and not info.endless_hops:
            continue
        for target in range(NUM_HOURS):
            if node.tops[target] == under and node.heights[target] >= info.open_from:
                moves[num_moves] = move_action(source, target) if source < NUM_HOURS else WASTE + 1 + target
                num_moves += 1
                if hop:
                    num_hops += 1
    if node.dealt < info.in_deck:
        waits_for = num_moves - num_hops if info.endless_hops else num_moves
        if gap or not info.when_stuck or waits_for == 0:
            moves[num_moves] = DEAL
            num_moves += 1
    elif may_turn_over(node):
        moves[num_moves] = DEAL
        num_moves += 1
    return num_moves


@rule
def key_of(node: Node, info: Info) -> Key:
    """Return a hash of the position without its hops.

    If no gap will be filled any more, it ignores the order of piles.
    """
    key = mix(node.waste + (np.uint64(node.dealt) << SHIFT_56) + GOLDEN_RATIO)
    if info.redeals > 0:  # the size of the stock does not determine its cards
        key ^= mix(node.stock + (np.uint64(node.redeals) << SHIFT_56))
    ordered = np.uint64(1) if node.dealt < info.in_deck or may_turn_over(node) else EMPTY
    for pile in range(NUM_HOURS):
        packed = (
            np.uint64(node.low[pile, 0]) | np.uint64(node.low[pile, 1]) << SHIFT_8
            | np.uint64(node.low[pile, 2]) << SHIFT_16 | np.uint64(node.heights[pile]) << SHIFT_24
            | (np.uint64(pile + 1) * ordered) << SHIFT_32
        )  # fmt: skip
        key += mix(packed + GOLDEN_RATIO)
    for suit in range(4):
        hour = int(FIRST_HOUR[suit])
        packed = (
            np.uint64(node.to_come[hour]) | np.uint64(node.to_come[hour + 4]) << SHIFT_8
            | np.uint64(node.to_come[hour + 8]) << SHIFT_16 | np.uint64(suit + 1) << SHIFT_56
        )  # fmt: skip
        key += mix(packed)
    return key
