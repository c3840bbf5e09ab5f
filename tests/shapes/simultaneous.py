"""A simultaneous end: each seat lays two of its four cards face down, then all are turned up; equal sums are a tie."""

from __future__ import annotations

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import bit
from card_envs.game import Cards, State
from tests import shapes
from tests.shapes import declare, end, layout, places, show, write_move

NUM_SEATS, PACK_SIZE, WORST_SCORE = 2, 10, -16.0
MOVES = tuple(str(place) for place in range(8))
STATE, OBS_FIELDS, FULL_FIELDS = layout(NUM_SEATS, PACK_SIZE, 4, len(MOVES), ("hands", np.uint64, 2))


@rule
def begin(state: State) -> None:
    for seat in range(2):
        state.hands[seat] = places(4 * seat, 4 * seat + 4)
        show(state, 4 * seat, 4 * seat + 4, seat)


@rule
def choices(state: State) -> Cards:
    return state.hands[int(state.seat)]


@rule
def play(state: State, action: int) -> None:
    write_move(state, action)
    state.hands[int(state.seat)] &= ~bit(action)
    state.seat = 1 - int(state.seat)
    if state.num_moves < 4:
        return
    for k in range(4):
        place = int(state.moves[k]) - 1
        state.scores[k & 1] += state.pack[place] + 1
        for seat in range(2):
            show(state, place, place + 1, seat)
    end(state)


@rule
def greedy(state: State) -> int:
    """Lay the highest card."""
    best = -1
    for place in range(8):
        if choices(state) & bit(place) and (best < 0 or state.pack[place] > state.pack[best]):
            best = place
    return best


class Referee(shapes.Referee):
    def moves(self) -> list[str]:
        return [move for move in MOVES[4 * self.seat :][:4] if move not in self.played]

    def move(self, move: str) -> None:
        self.seat = 1 - self.seat
        if len(self.played) == 4:
            cards = [self.pack[int(place)] for place in self.played]
            self.scores = [cards[0] + cards[2], cards[1] + cards[3]]
            self.finish()


GAME = declare(__name__, "Simultaneous")
