"""A draw pile: one may draw, then plays a card; who is out first scores the highest card that the other holds."""

from __future__ import annotations

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import EMPTY, bit, lowest
from card_envs.game import Cards, State
from tests import shapes
from tests.shapes import declare, end, layout, places, show, write_move

NUM_SEATS, PACK_SIZE, WORST_SCORE = 2, 12, -12.0
DRAW = PACK_SIZE
MOVES = (*(str(place) for place in range(PACK_SIZE)), "draw")
MORE = (("hands", np.uint64, 2), ("next_place", np.int8), ("has_drawn", np.bool_))
STATE, OBS_FIELDS, FULL_FIELDS = layout(NUM_SEATS, PACK_SIZE, 18, len(MOVES), *MORE)


@rule
def begin(state: State) -> None:
    state.next_place, state.has_drawn = 6, False
    for seat in range(2):
        show(state, 3 * seat, 3 * seat + 3, seat)
        state.hands[seat] = places(3 * seat, 3 * seat + 3)


@rule
def choices(state: State) -> Cards:
    may_draw = not state.has_drawn and state.next_place < PACK_SIZE
    return state.hands[int(state.seat)] | (bit(DRAW) if may_draw else EMPTY)


@rule
def play(state: State, action: int) -> None:
    seat = int(state.seat)
    write_move(state, action)
    if action == DRAW:
        place = int(state.next_place)
        show(state, place, place + 1, seat)
        state.hands[seat] |= bit(place)
        state.next_place, state.has_drawn = place + 1, True
        return
    show(state, action, action + 1, 1 - seat)
    state.hands[seat] &= ~bit(action)
    state.seat, state.has_drawn = 1 - seat, False
    if state.hands[seat] == EMPTY:
        for place in range(PACK_SIZE):
            if state.hands[1 - seat] & bit(place):
                state.scores[seat] = max(int(state.scores[seat]), int(state.pack[place]) + 1)
        end(state)


@rule
def greedy(state: State) -> int:
    """Play the highest card, and do not draw."""
    best = lowest(choices(state))
    for place in range(PACK_SIZE):
        if choices(state) & bit(place) and state.pack[place] > state.pack[best]:
            best = place
    return best


@rule
def reveals(state: State, action: int) -> bool:
    return action == DRAW


class Referee(shapes.Referee):
    def begin(self) -> None:
        self.hands = [["0", "1", "2"], ["3", "4", "5"]]
        self.pile = [str(place) for place in range(6, 12)]

    def moves(self) -> list[str]:
        may_draw = self.pile and self.played[-1:] != ["draw"]
        return [*self.hands[self.seat], *(["draw"] if may_draw else [])]

    def move(self, move: str) -> None:
        hand, other = self.hands[self.seat], self.hands[1 - self.seat]
        if move == "draw":
            hand.append(self.pile.pop(0))
            return
        hand.remove(move)
        if not hand:
            self.scores[self.seat] = max(self.pack[int(place)] for place in other)
            self.finish()
        self.seat = 1 - self.seat


GAME = declare(__name__, "Draw Pile")
