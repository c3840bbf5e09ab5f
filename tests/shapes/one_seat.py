"""One seat with forced moves: turn a card, keep or drop it. Half may be dropped, and kept cards must rise."""

from __future__ import annotations

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.sets import EMPTY, bit
from card_envs.game import Cards, State
from tests import shapes
from tests.shapes import declare, end, layout, show, write_move

NUM_SEATS, PACK_SIZE, WORST_SCORE = 1, 10, -1.0
KEEP, DROP, TURN = range(3)
MOVES = ("keep", "drop", "turn")
MORE = (("turned", np.int8), ("dropped", np.int8), ("highest", np.int8))  # the highest card kept, from 1
STATE, OBS_FIELDS, FULL_FIELDS = layout(NUM_SEATS, PACK_SIZE, 2 * PACK_SIZE, len(MOVES), *MORE)


@rule
def begin(state: State) -> None:
    state.turned = state.dropped = state.highest = 0


@rule
def choices(state: State) -> Cards:
    if state.num_moves & 1 == 0:
        return bit(TURN)  # forced
    return bit(KEEP) | (bit(DROP) if state.dropped < PACK_SIZE // 2 else EMPTY)


@rule
def play(state: State, action: int) -> None:
    write_move(state, action)
    if action == TURN:
        show(state, int(state.turned), int(state.turned) + 1, 0)
        state.turned = int(state.turned) + 1
        return
    card = int(state.pack[int(state.turned) - 1]) + 1
    if action == DROP:
        state.dropped = int(state.dropped) + 1
    elif card < state.highest:
        state.scores[0] = -1
        end(state)
        return
    else:
        state.highest = card
    if state.turned == PACK_SIZE:
        state.scores[0] = 1
        end(state)


@rule
def greedy(state: State) -> int:
    """Keep what is a little higher than what was kept; drop other cards as long as possible."""
    if state.num_moves & 1 == 0:
        return TURN
    step = int(state.pack[int(state.turned) - 1]) + 1 - int(state.highest)
    return DROP if state.dropped < PACK_SIZE // 2 and (step < 0 or step > 3) else KEEP


class Referee(shapes.Referee):
    num_seats = 1

    def begin(self) -> None:
        self.kept: list[int] = []

    def moves(self) -> list[str]:
        if self.played[-1:] != ["turn"]:
            return ["turn"]
        return ["keep", "drop"] if self.played.count("drop") < 5 else ["keep"]

    def move(self, move: str) -> None:
        number = self.played.count("turn")
        if move == "keep":
            self.kept.append(self.pack[number - 1])
        if self.kept != sorted(self.kept):
            self.scores = [-1]
            self.finish()
        elif move != "turn" and number == 10:
            self.scores = [1]
            self.finish()


GAME = declare(__name__, "One Seat")
