"""Exhaustive depth-first search: if it ends without a win, the deal is proved lost."""

from __future__ import annotations

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import ONE, bit
from card_envs.game import Int64s, Key, UInt64s
from card_envs.games.big_ben.position import (
    Info,
    Int16s,
    Node,
    Records,
    key_of,
    list_moves,
    move_on,
    wanted_cards,
    waste_card,
)
from card_envs.games.big_ben.rules import FIRST_HOUR, FULL_PILE, NEXT_CARD, NUM_HOURS

GOING, FOUND, NONE_LEFT, FULL = range(4)
MAX_DEPTH = 2048


@rule
def still_needed(node: Node, card: int) -> tuple[int, int]:
    """Return how many foundations still need a card, and how many want it now."""
    hour = int(FIRST_HOUR[card // 13])
    needing = wanting = 0
    for k in range(3):
        left = int(node.to_come[hour + 4 * k])
        if left > 0:
            steps = (card - int(NEXT_CARD[hour + 4 * k, left])) % 13
            if steps < left:
                needing += 1
            if steps == 0:
                wanting += 1
    return needing, wanting


@rule
def safe_move(node: Node, info: Info) -> int:
    """Return a move that needs no alternatives, or -1: if a win exists, one exists after this move.

    It places a card X if no card is left that could be built on X, and every foundation that still needs an X wants it
    now, so that the other copy has its place as well. Proof: take any winning sequence and place X first instead. Its
    moves of X drop out, and no other move needs X. The card under X is free earlier, which allows more moves and
    forbids none: X is above the third card of its pile or in the waste (so that no gap appears that would take a card
    meant for the waste), or the stock is empty. With some options that does not hold, so there the stock has to be
    empty, and to stay so: a deal that waits until the player is stuck (BB-8) could be delayed; X could have filled a
    gap by being built (BB-5), or be part of a waste that is turned over (BB-9).
    """
    done = node.dealt == info.in_deck
    if node.redeals > 0 and (node.waste or not done):
        return -1
    if (info.when_stuck or info.open_from < FULL_PILE) and not done:
        return -1
    wanted = wanted_cards(node)
    for source in range(NUM_HOURS + 1):
        card = waste_card(node, info) if source == NUM_HOURS else int(node.tops[source])
        if card < 0 or not wanted & bit(card):
            continue
        if source < NUM_HOURS and not done and node.heights[source] <= FULL_PILE:
            continue
        needing, wanting = still_needed(node, card)
        if needing > wanting:
            continue
        lower = card - 1 if card % 13 > 0 else card + 12
        if still_needed(node, lower)[0] == 0:
            return NUM_HOURS * source
    return -1


@rule
def moves_to_try(node: Node, info: Info, moves: Int16s) -> int:
    """Write the moves that a search must try into `moves` and return their number: a safe one alone, or all."""
    move = safe_move(node, info)
    if move < 0:
        return list_moves(node, info, moves)
    moves[0] = move
    return 1


@rule
def enter(seen: UInt64s, key: Key) -> bool:
    """Add a key other than 0 to a hash table with free space; return whether it is new."""
    slots = np.uint64(len(seen) - 1)
    slot = key >> np.uint64(20) & slots
    while seen[slot] != 0 and seen[slot] != key:
        slot = (slot + ONE) & slots
    if seen[slot] == key:
        return False
    seen[slot] = key
    return True


def search_all(
    frames: Records, infos: Records, moves: Int16s, sizes: Int16s, seen: UInt64s, progress: Int64s, budget: int
) -> int:
    """Continue the search for some positions; return GOING, FOUND, NONE_LEFT, or FULL if the tables are.

    Args:
        frames: [MAX_DEPTH] nodes on the path to the current one, from the root.
        infos: [1] the deal.
        moves: [MAX_DEPTH, MAX_MOVES] moves of each still to be tried, followed by the one just tried.
        sizes: [MAX_DEPTH] number of moves still to be tried; -1: not listed yet.
        seen: [a power of two] keys of visited positions.
        progress: [2] depth, and positions visited so far.
        budget: number of positions.
    """
    info = infos[0]
    depth, visited = int(progress[0]), int(progress[1])
    last, room = visited + budget, len(seen) // 4 * 3
    status = GOING
    while visited < last:
        if sizes[depth] < 0:
            sizes[depth] = moves_to_try(frames[depth], info, moves[depth])
        if sizes[depth] == 0:
            if depth == 0:
                status = NONE_LEFT
                break
            depth -= 1
            continue
        sizes[depth] -= 1
        if depth + 1 == len(frames) or visited == room:
            status = FULL
            break
        frames[depth + 1] = frames[depth]
        child = frames[depth + 1]
        move_on(child, info, int(moves[depth, sizes[depth]]))
        if child.left == 0:
            depth += 1
            status = FOUND
            break
        if enter(seen, key_of(child, info) | ONE):
            visited += 1
            depth += 1
            sizes[depth] = -1
    progress[0], progress[1] = depth, visited
    return status
