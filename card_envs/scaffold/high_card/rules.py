"""High Card, compiled. Comments cite the rules of RULES.md. Card 0 is the lowest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from card_envs.compiling import rule
from card_envs.engine.rng import advance, below, derive
from card_envs.engine.sets import EMPTY, bit, count, nth, spread
from card_envs.game import Cards, Field, Key, Mask, Obs, Pack, Stat, State, Stats, Stream, offsets, state_dtype

if TYPE_CHECKING:
    from card_envs.scaffold.high_card.options import Options

NUM_SEATS = 2
PACK_SIZE = 12
HAND_SIZE = 3
WORST_SCORE = -3.0  # every trick lost
ALL_CARDS = np.uint64((1 << PACK_SIZE) - 1)
ACTION_FIELDS = (Field("card", 12, 1, meaning="play the card"),)

STATE = state_dtype(
    NUM_SEATS,
    [
        ("reward_win", np.bool_),  # option; else points
        ("scores", np.int8, 2),
        ("hands", np.uint64, 2),
        ("played", np.uint64, 2),  # by seat
        ("history", np.int8, 2 * HAND_SIZE),  # cards in the order they were played
        ("num_played", np.int8),
    ],
)

OBS_FIELDS = (
    Field("hand", 12, 1, meaning="own cards"),
    Field("played", 24, 1, meaning="cards played by me, the other (12 each)"),
    Field("led", 12, 1, meaning="the card to beat, if one was led"),
    Field("scores", 2, 3, meaning="tricks taken by me, the other"),
)
FULL_FIELDS = (*OBS_FIELDS, Field("other_hand", 12, 1, meaning="cards of the other"))
AT = offsets(FULL_FIELDS)

STATS = (Stat("deals"), Stat("wins"), Stat("tricks"))
COUNT = offsets(STATS)


def new_state(options: Options) -> State:
    """Return a State with these `Options` before its first deal."""
    state = np.zeros(1, STATE)[0]
    state.reward_win = options.reward == "win"
    state.over = state.needs_deal = True
    return state


@rule
def draw(cards: Cards, number: int, key: Key) -> Cards:
    """Return a uniform subset of `number` cards."""
    drawn = EMPTY
    for i in range(number):
        drawn |= bit(nth(cards & ~drawn, below(derive(key, i), count(cards) - i)))
    return drawn


@rule
def begin(state: State, first_hand: Cards, second_hand: Cards) -> None:
    state.over = state.needs_deal = False
    state.seat = state.num_played = state.scores[0] = state.scores[1] = 0
    state.hands[0] = first_hand
    state.hands[1] = second_hand
    state.played[0] = state.played[1] = EMPTY


@rule
def deal(state: State) -> None:
    hand = draw(ALL_CARDS, HAND_SIZE, derive(state.rng, 0))
    begin(state, hand, draw(ALL_CARDS & ~hand, HAND_SIZE, derive(state.rng, 1)))


@rule
def set_deal(state: State, pack: Pack) -> None:
    begin(state, bit(pack[0]) | bit(pack[1]) | bit(pack[2]), bit(pack[3]) | bit(pack[4]) | bit(pack[5]))


@rule
def legal(state: State, mask: Mask) -> int:
    mask[:] = 0
    if state.needs_deal:
        return 0
    spread(mask, 0, state.hands[int(state.seat)], PACK_SIZE)
    return count(state.hands[int(state.seat)])


@rule
def random_move(state: State, stream: Stream) -> int:
    hand = state.hands[int(state.seat)]
    return nth(hand, below(advance(stream), count(hand)))


@rule
def play(state: State, action: int) -> None:
    seat = int(state.seat)
    num_played = int(state.num_played)
    state.rewards[0] = state.rewards[1] = np.float32(0)
    state.hands[seat] &= ~bit(action)
    state.played[seat] |= bit(action)
    state.history[num_played] = action
    state.num_played = num_played + 1
    state.seat = 1 - seat
    if num_played & 1 == 0:
        return
    state.seat = seat if action > state.history[num_played - 1] else 1 - seat  # HC-3, HC-4
    state.scores[int(state.seat)] += 1
    if not state.reward_win:
        pay(state, int(state.seat))
    if num_played + 1 == 2 * HAND_SIZE:  # HC-5
        state.over = state.needs_deal = True
        if state.reward_win:
            pay(state, 0 if state.scores[0] > state.scores[1] else 1)


@rule
def pay(state: State, winner: int) -> None:
    state.rewards[winner] = np.float32(1)
    state.rewards[1 - winner] = np.float32(-1)


@rule
def observe(state: State, seat: int, obs: Obs) -> None:
    spread(obs, AT.hand, state.hands[int(seat)], PACK_SIZE)
    for k in range(2):
        other = (int(seat) + k) & 1
        spread(obs, AT.played + PACK_SIZE * k, state.played[other], PACK_SIZE)
        obs[AT.scores + k] = state.scores[other]
    led = bit(state.history[int(state.num_played) - 1]) if state.num_played & 1 else EMPTY
    spread(obs, AT.led, led, PACK_SIZE)


@rule
def observe_all(state: State, seat: int, obs: Obs) -> None:
    observe(state, seat, obs[: AT.other_hand])
    spread(obs, AT.other_hand, state.hands[1 - int(seat)], PACK_SIZE)


@rule
def determinize(state: State, seat: int, stream: Stream) -> None:
    other = 1 - int(seat)
    unseen = ALL_CARDS & ~(state.hands[int(seat)] | state.played[0] | state.played[1])
    state.hands[other] = draw(unseen, count(state.hands[other]), advance(stream))


@rule
def score_margin(state: State, seat: int) -> int:
    return int(state.scores[int(seat)]) - int(state.scores[1 - int(seat)])


@rule
def update_stats(state: State, seat: int, counts: Stats) -> None:
    counts[COUNT.deals] += 1
    counts[COUNT.wins] += state.scores[seat] > state.scores[1 - seat]
    counts[COUNT.tricks] += state.scores[seat]
