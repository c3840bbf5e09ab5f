"""`python -m benchmarks.pettingzoo_classic`: PettingZoo's own games beside ours, in the same loop.

Needs `pip install 'pettingzoo[classic]'`.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from typing import Any

from benchmarks.measuring import Row, Work, command, in_turns, timed
from card_envs import get_game
from card_envs.envs.aec import CardEnv
from card_envs.game import Game

TURNS = 200  # between looks at the clock
GAMES = ("leduc_holdem_v4", "texas_holdem_v4", "connect_four_v3", "tictactoe_v3")


def turns_of(env: Any) -> Work:
    """`last`, a random legal action, `step`; `reset` when an episode is over."""
    draw = random.Random(0).random
    env.reset(seed=0)

    def turns() -> int:
        for _ in range(TURNS):
            observation, _, over, cut, _ = env.last()
            if over or cut:
                env.reset()
                observation = env.last()[0]
            legal = observation["action_mask"].nonzero()[0]
            env.step(int(legal[int(draw() * len(legal))]))
        return TURNS

    return timed(turns)


def our_turns(game: Game) -> Work:
    return turns_of(CardEnv(game))


def rows(seconds: float) -> Iterator[Row]:
    """Random play through `last` and `step`, as PettingZoo's documentation has it."""
    ours = get_game("back_alley")
    work = f"PettingZoo loop, {ours.title}"
    for name in GAMES:
        theirs = turns_of(importlib.import_module(f"pettingzoo.classic.{name}").env())
        yield in_turns(work, f"PettingZoo's `{name}`", theirs, our_turns(ours), seconds)


if __name__ == "__main__":
    command(rows)
