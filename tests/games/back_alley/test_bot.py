"""What Back Alley's players make of hidden hands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compiling import rule
from card_envs.engine.batch import BatchEnv
from card_envs.engine.rng import advance, below, uniform
from card_envs.engine.sets import EMPTY, bit, count, nth
from card_envs.game import SCRATCH_STATES
from card_envs.games.back_alley import GAME, bot, rules
from card_envs.opponents.policy import decisions_at


def test_bids_and_cards_tell_about_hidden_hands() -> None:
    """Where all play like `greedy`, the true hands explain it fully, at every stage; hands drawn again mostly don't."""
    env = BatchEnv(GAME, 100, seed=5, options={"deals": "single"})
    told = []
    for _ in range(30):
        env.bot_playout("greedy", 1)
        decisions = decisions_at(GAME, env.states)
        assert all(bot.likelihood(state, state.seat) == 1 for state in env.states.copy())
        for state, world in zip(env.states, decisions.worlds(np.random.default_rng(0), 1)[:, 0]):
            if state.num_bids == 4 and state.hand_size > 1:
                told.append(bot.likelihood(world, state.seat))
    assert len(told) > 1000 and np.mean(told) < 0.5


def test_what_bids_say_is_a_matter_of_distance() -> None:
    """A bid is the less likely the farther it is from greedy's, and a board for a number is unlikely."""
    env = BatchEnv(GAME, 200, seed=6, options={"deals": [7]})
    env.bot_playout("greedy", 1)
    for state in env.states:
        bidder = (int(state.dealer) + 1) & 3
        bid = int(state.bids[bidder])
        shares = []
        for other in (bid, bid + 1, bid + 2, bid + 3):
            state.bids[bidder] = other
            shares.append(bot.likelihood(state, state.seat))
        assert shares == [1.0, 0.25, 0.05, 0.02]
        state.bids[bidder] = rules.BOARD
        assert bot.likelihood(state, state.seat) == 0.03
        assert bot.likelihood(state, bidder) == 1  # who bid knows its own hand


def test_every_card_that_greedy_would_not_have_played_tells() -> None:
    env = BatchEnv(GAME, 200, seed=7, options={"deals": [5]})
    env.bot_playout("greedy", 4)
    surprises = np.zeros((len(env.states), 4), int)
    streams = np.arange(200, dtype=np.uint64)
    own, random = np.zeros((2, 200), np.int64)
    env.observe()
    for _ in range(8):
        env.bot_actions("greedy", own)
        env.random_actions(streams, random)
        surprises[np.arange(200), env.seat] += own != random
        env.step(random)
    playing = (env.states["num_played"] > 0).nonzero()[0]
    assert len(playing) > 100
    for i in playing:
        for seat in range(4):
            others = int(surprises[i].sum() - surprises[i, seat])
            assert bot.likelihood(env.states[i], seat) == pytest.approx(bot.OTHER_CARD**others)


def test_a_world_improves_as_if_it_were_judged_anew_at_every_step() -> None:
    """The chain judges the hands that change, and stops early. One that judges whole worlds makes the same moves."""
    env = BatchEnv(GAME, 300, seed=8, options={"deals": "single"})
    env.bot_playout("greedy", 20)
    stream, again = np.array([[3], [3]], np.uint64)
    room = np.zeros(SCRATCH_STATES, GAME.rules.STATE)
    accepted = 0
    for state in decisions_at(GAME, env.states).worlds(np.random.default_rng(0), 1)[:, 0]:
        seat = int(state.seat)
        room[0] = state
        bot.refine_world(room, seat, 25, stream)
        hands = [int(hand) for hand in state.hands]
        for _ in range(25):
            accepted += one_step(state, seat, again)
        assert room[0].hands.tolist() == state.hands.tolist() and stream == again
        rules.rewrite_pack(state)
        assert room[0] == state and int(state.hands[seat]) == hands[seat]
    assert accepted > 100


@rule
def one_step(state: Any, seat: int, stream: NDArray[np.uint64]) -> bool:
    """Two cards that the seat can't see change places with a chance of how much likelier that makes the world."""
    unseen = rules.unseen_by(state, seat)
    held = state.hands[(seat + 1) & 3] | state.hands[(seat + 2) & 3] | state.hands[(seat + 3) & 3]
    if held == EMPTY or count(unseen) == 1:
        return False
    one = bit(nth(held, below(advance(stream), count(held))))
    other = bit(nth(unseen & ~one, below(advance(stream), count(unseen) - 1)))
    before = bot.likelihood(state, seat)
    if swap(state, seat, one, other) and uniform(stream) * before <= bot.likelihood(state, seat):
        return True
    swap(state, seat, one, other)
    return False


@rule
def swap(state: Any, seat: int, one: Any, other: Any) -> bool:
    """Done twice it changes nothing; whether it changes hands, and nobody gets what it lacks."""
    changed = fits = False
    for k in range(1, 4):
        holder = (seat + k) & 3
        if (state.hands[holder] & one != EMPTY) != (state.hands[holder] & other != EMPTY):
            state.hands[holder] ^= one | other
            fits = (fits or not changed) and state.hands[holder] & state.lacks[holder] == EMPTY
            changed = True
    return changed and fits
