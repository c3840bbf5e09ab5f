"""Three phases: each seat bids on the tricks that it will take, lays a card aside, and three tricks are played."""

from __future__ import annotations

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import bit, lowest
from card_envs.game import Cards, State
from tests import shapes
from tests.shapes import declare, end, layout, places, show, write_move

NUM_SEATS, PACK_SIZE, WORST_SCORE = 2, 10, -7.0
ASIDE, PLAY = 4, 12  # actions before: bids from 0 to 3; to lay the card of each place aside; to play it
MOVES = (*(f"bid{bid}" for bid in range(4)), *(f"aside{place}" for place in range(8)), *map(str, range(8)))
PHASES = {"bid": range(ASIDE), "aside": range(ASIDE, PLAY), "play": range(PLAY, len(MOVES))}
MORE = (("hands", np.uint64, 2), ("bids", np.int8, 2), ("tricks", np.int8, 2))
STATE, OBS_FIELDS, FULL_FIELDS = layout(NUM_SEATS, PACK_SIZE, 10, len(MOVES), *MORE)


@rule
def begin(state: State) -> None:
    for seat in range(2):
        state.hands[seat] = places(4 * seat, 4 * seat + 4)
        state.bids[seat] = state.tricks[seat] = 0
        show(state, 4 * seat, 4 * seat + 4, seat)


@rule
def choices(state: State) -> Cards:
    if state.num_moves < 2:
        return places(0, ASIDE)
    return state.hands[int(state.seat)] << np.uint64(ASIDE if state.num_moves < 4 else PLAY)


@rule
def play(state: State, action: int) -> None:
    seat = int(state.seat)
    write_move(state, action)
    state.seat = 1 - seat
    if action < ASIDE:
        state.bids[seat] = action
        return
    if action < PLAY:
        state.hands[seat] &= ~bit(action - ASIDE)
        return
    state.hands[seat] &= ~bit(action - PLAY)
    show(state, action - PLAY, action - PLAY + 1, 1 - seat)
    if state.num_moves & 1 == 0:
        led = int(state.moves[int(state.num_moves) - 2]) - 1 - PLAY
        state.seat = seat if state.pack[action - PLAY] > state.pack[led] else 1 - seat  # who wins leads
        state.tricks[int(state.seat)] += 1
    if state.num_moves == 10:
        for each in range(2):
            state.scores[each] = state.tricks[each] + 4 * (state.tricks[each] == state.bids[each])
        end(state)


@rule
def greedy(state: State) -> int:
    """Bid 2, lay the lowest card aside, play the highest."""
    if state.num_moves < 2:
        return 2
    first = ASIDE if state.num_moves < 4 else PLAY
    best = lowest(choices(state)) - first
    for place in range(8):
        if state.hands[int(state.seat)] & bit(place):
            is_higher = state.pack[place] > state.pack[best]
            best = place if is_higher == (first == PLAY) else best
    return best + first


class Referee(shapes.Referee):
    def begin(self) -> None:
        self.hands = [["0", "1", "2", "3"], ["4", "5", "6", "7"]]
        self.bids, self.tricks = [0, 0], [0, 0]

    def moves(self) -> list[str]:
        if len(self.played) < 2:
            return ["bid0", "bid1", "bid2", "bid3"]
        return [f"aside{place}" if len(self.played) < 4 else place for place in self.hands[self.seat]]

    def move(self, move: str) -> None:
        seat, self.seat = self.seat, 1 - self.seat
        if move.startswith("bid"):
            self.bids[seat] = int(move[3:])
            return
        self.hands[seat].remove(move.removeprefix("aside"))
        if move in MOVES[12:] and len(self.played) % 2 == 0:
            led, answer = (self.pack[int(move)] for move in self.played[-2:])
            self.seat = seat if answer > led else 1 - seat
            self.tricks[self.seat] += 1
        if len(self.played) == 10:
            self.scores = [tricks + 4 * (tricks == bid) for tricks, bid in zip(self.tricks, self.bids)]
            self.finish()


GAME = declare(__name__, "Three Phases")
