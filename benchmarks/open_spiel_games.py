"""`python -m benchmarks.open_spiel_games`: OpenSpiel's card games, in Python, beside ours (extra `open-spiel`).

Its C++ is behind a Python call for each state, move and observation; `BatchEnv` has one for all tables.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyspiel

from benchmarks.c_reference import our_steps
from benchmarks.measuring import Row, Work, command, in_turns, timed
from benchmarks.pettingzoo_classic import our_turns
from card_envs import get_game
from card_envs._bench import TABLES, batch_out_of_step

DECISIONS = 200  # between looks at the clock
PAIRS = {"spades": "back_alley", "solitaire": "russian_bank"}  # like games, observations of like size


def their_moves(name: str) -> Work:
    """Random play of one state: observation, legal actions, a move; chance is drawn as it comes."""
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


def rows(seconds: float) -> Iterator[Row]:
    """Random play on one core with observation and legal actions."""
    for theirs, name in PAIRS.items():
        game = get_game(name)
        other = f"OpenSpiel's {theirs}, in Python"
        yield in_turns(f"PettingZoo loop, {game.title}", other, their_moves(theirs), our_turns(game), seconds)
        ours = our_steps(batch_out_of_step(game, TABLES))
        yield in_turns(f"`BatchEnv.step`, {game.title}", other, their_moves(theirs), ours, seconds)


if __name__ == "__main__":
    command(rows)
