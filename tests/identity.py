"""Prints digests of play that are the same on every machine: `python -m tests.identity > here.txt`, then `diff`.

Decisions, observations, masks and rewards of random play, and the moves of every kind of opponent at many positions.
For wheels of other processors, other versions of Python, libraries against Numba (`CARD_ENVS_NATIVE=0`).
"""

from __future__ import annotations

import hashlib
import platform
import sys
from typing import Annotated

import numpy as np
import typer

import card_envs
from card_envs import BatchEnv, Game
from card_envs.opponents.policy import decisions_at

TABLES, POSITIONS = 256, 1000
SLOW = {"champion": 50}  # positions of players that think for long
PLAYERS = ("trivial", "greedy", "small", "search:64", "strong", "champion")
MOVES_BEFORE = 37  # of the positions


def random_legal(env: BatchEnv, rng: np.random.Generator) -> np.ndarray:
    """Return a random legal action at each table."""
    return np.argmax(env.mask * rng.random(env.mask.shape), axis=1)


def play(game: Game, decisions: int) -> str:
    """Return the digest of random play."""
    env = BatchEnv(game, TABLES, seed=5)
    rng = np.random.default_rng(1)
    digest = hashlib.sha256()
    for _ in range(decisions // TABLES):
        actions = random_legal(env, rng)
        env.step(actions)
        for array in (actions, env.obs, env.mask, env.seat, env.rewards, env.done):
            digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def answers(game: Game, name: str) -> str:
    """Return the digest of an opponent's moves."""
    env = BatchEnv(game, SLOW.get(name, POSITIONS), seed=6)
    rng = np.random.default_rng(2)
    for _ in range(MOVES_BEFORE):
        env.step(random_legal(env, rng))
    actions = card_envs.load_opponent(name, game).act(decisions_at(game, env.states), np.random.default_rng(3))
    return hashlib.sha256(actions.astype(np.int64).tobytes()).hexdigest()[:16]


def main(decisions: Annotated[int, typer.Argument(help="of random play in each game")] = 1_000_000) -> None:
    """Print a line for each game and opponent, and on stderr where they come from."""
    for game in card_envs.GAMES.values():
        print(game.name, f"{decisions:,} decisions", play(game, decisions), flush=True)
        for name in PLAYERS:
            print(game.name, name, answers(game, name), flush=True)
    compiled = "Numba" if "numba" in sys.modules else "library"
    print(f"Python {platform.python_version()}, {platform.machine()}, {compiled}", file=sys.stderr)


if __name__ == "__main__":
    typer.run(main)
