"""Turns alternate strictly: each seat lays one of its five cards, and the higher of two scores its number."""

from __future__ import annotations

from card_envs.compiling import rule
from card_envs.engine.sets import bit, lowest
from card_envs.game import Cards, State
from tests import shapes
from tests.shapes import declare, end, knows, layout, places, show, write_move

NUM_SEATS, PACK_SIZE, WORST_SCORE = 2, 12, -50.0
MOVES = tuple(str(place) for place in range(10))
STATE, OBS_FIELDS, FULL_FIELDS = layout(NUM_SEATS, PACK_SIZE, 10, len(MOVES))


@rule
def begin(state: State) -> None:
    show(state, 0, 5, 0)
    show(state, 5, 10, 1)


@rule
def choices(state: State) -> Cards:
    hand = places(5 * int(state.seat), 5 * int(state.seat) + 5)
    for place in range(10):
        if knows(state, 0, place) and knows(state, 1, place):  # is played
            hand &= ~bit(place)
    return hand


@rule
def play(state: State, action: int) -> None:
    seat = int(state.seat)
    write_move(state, action)
    show(state, action, action + 1, 1 - seat)
    if seat == 1:
        led = int(state.moves[int(state.num_moves) - 2]) - 1
        state.scores[1 if state.pack[action] > state.pack[led] else 0] += max(state.pack[action], state.pack[led]) + 1
    state.seat = 1 - seat
    if state.num_moves == 10:
        end(state)


@rule
def greedy(state: State) -> int:
    """Beat what was led as cheaply as possible; else the lowest card."""
    least = state.pack[int(state.moves[int(state.num_moves) - 1]) - 1] if state.seat == 1 else -1
    best, lowest_card = -1, lowest(choices(state))
    for place in range(10):
        if choices(state) & bit(place):
            if state.pack[place] < state.pack[lowest_card]:
                lowest_card = place
            if state.pack[place] > least and (best < 0 or state.pack[place] < state.pack[best]):
                best = place
    return best if best >= 0 else lowest_card


class Referee(shapes.Referee):
    def moves(self) -> list[str]:
        return [move for move in MOVES[5 * self.seat :][:5] if move not in self.played]

    def move(self, move: str) -> None:
        if self.seat == 1:
            led, answer = (self.pack[int(move)] for move in self.played[-2:])
            self.scores[int(answer > led)] += max(answer, led)
        self.seat = 1 - self.seat
        if len(self.played) == 10:
            self.finish()


GAME = declare(__name__, "Alternating")
