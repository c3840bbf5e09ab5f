"""One move: the parity of the first card, which all see, decides who picks one of three cards to beat a hidden one."""

from __future__ import annotations

from card_envs.compiling import rule
from card_envs.engine.sets import bit, lowest
from card_envs.game import Cards, State
from tests import shapes
from tests.shapes import declare, end, layout, places, show, write_move

NUM_SEATS, PACK_SIZE, WORST_SCORE = 2, 12, -1.0
MOVES = tuple(str(place) for place in range(PACK_SIZE))
STATE, OBS_FIELDS, FULL_FIELDS = layout(NUM_SEATS, PACK_SIZE, 1, len(MOVES))
HIDDEN = 7  # place of the card to beat


@rule
def begin(state: State) -> None:
    state.seat = state.pack[0] & 1
    for seat in range(NUM_SEATS):
        show(state, 0, 1, seat)
        show(state, 1 + 3 * seat, 4 + 3 * seat, seat)


@rule
def choices(state: State) -> Cards:
    return places(1 + 3 * int(state.seat), 4 + 3 * int(state.seat))


@rule
def play(state: State, action: int) -> None:
    write_move(state, action)
    winner = int(state.seat) if state.pack[action] > state.pack[HIDDEN] else 1 - int(state.seat)
    state.scores[winner] = 1
    for seat in range(NUM_SEATS):
        show(state, action, action + 1, seat)
        show(state, HIDDEN, HIDDEN + 1, seat)
    end(state)


@rule
def greedy(state: State) -> int:
    best = lowest(choices(state))
    for place in range(PACK_SIZE):
        if choices(state) & bit(place) and state.pack[place] > state.pack[best]:
            best = place
    return best


class Referee(shapes.Referee):
    def begin(self) -> None:
        self.seat = 1 - self.pack[0] % 2

    def moves(self) -> list[str]:
        return ["1", "2", "3"] if self.seat == 0 else ["4", "5", "6"]

    def move(self, move: str) -> None:
        self.scores[self.seat if self.pack[int(move)] > self.pack[7] else 1 - self.seat] = 1
        self.finish()


GAME = declare(__name__, "One Move")
