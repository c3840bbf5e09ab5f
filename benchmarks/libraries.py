"""`python -m benchmarks --only libraries`: the games of other libraries beside ours, played at random on one core.

OpenSpiel's C++ is behind a Python call for each state, move and observation (extra `open-spiel`); `BatchEnv` has one
for all tables. PettingZoo's own games run in the same loop as ours (`pip install 'pettingzoo[classic]'`).
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from typing import Any

from benchmarks.measuring import Row, Work, in_turns, timed
from benchmarks.step import our_steps
from card_envs import get_game
from card_envs._bench import TABLES, batch_out_of_step
from card_envs.envs.aec import CardEnv

DECISIONS = 200  # between readings of the clock
OPEN_SPIEL = {"spades": "back_alley", "solitaire": "russian_bank"}  # similar games, observations of similar size
CLASSIC = ("leduc_holdem_v4", "texas_holdem_v4", "connect_four_v3", "tictactoe_v3")


def open_spiel_moves(name: str) -> Work:
    """Play one state of OpenSpiel: observation, legal actions, a move; chance is drawn as it comes."""
    import pyspiel

    game, draw = pyspiel.load_game(name), random.Random(0)
    state = game.new_initial_state()

    def play() -> int:
        nonlocal state
        for _ in range(DECISIONS):
            while state.is_chance_node() or state.is_terminal():
                if state.is_terminal():
                    state = game.new_initial_state()
                else:
                    actions, shares = zip(*state.chance_outcomes())
                    state.apply_action(draw.choices(actions, shares)[0])
            state.observation_tensor(state.current_player())
            state.apply_action(draw.choice(state.legal_actions()))
        return DECISIONS

    return timed(play)


def turns_of(env: Any) -> Work:
    """Play a PettingZoo environment: `last`, a random legal action, `step`; `reset` after an episode."""
    draw = random.Random(0).random
    env.reset(seed=0)

    def turns() -> int:
        for _ in range(DECISIONS):
            observation, _, over, cut, _ = env.last()
            if over or cut:
                env.reset()
                observation = env.last()[0]
            legal = observation["action_mask"].nonzero()[0]
            env.step(int(legal[int(draw() * len(legal))]))
        return DECISIONS

    return timed(turns)


def rows(seconds: float) -> Iterator[Row]:
    """Yield OpenSpiel's games beside both of our loops, then PettingZoo's beside the same loop."""
    for theirs, name in OPEN_SPIEL.items():
        game, other = get_game(name), f"OpenSpiel's {theirs}, in Python"
        loop, steps = turns_of(CardEnv(game)), our_steps(batch_out_of_step(game, TABLES))
        yield in_turns(f"PettingZoo loop, {game.title}", other, open_spiel_moves(theirs), loop, seconds)
        yield in_turns(f"`BatchEnv.step`, {game.title}", other, open_spiel_moves(theirs), steps, seconds)
    game = get_game("back_alley")
    for name in CLASSIC:
        classic = turns_of(importlib.import_module(f"pettingzoo.classic.{name}").env())
        ours = turns_of(CardEnv(game))
        yield in_turns(f"PettingZoo loop, {game.title}", f"PettingZoo's `{name}`", classic, ours, seconds)
