"""Russian Bank's scripted players, compiled. Both use only what the seat to move may know."""

from __future__ import annotations

from card_envs.engine.jit import rule
from card_envs.engine.sets import lowest
from card_envs.game import State
from card_envs.games.russian_bank.rules import legal_moves


@rule
def trivial(state: State) -> int:
    """The fixed yardstick of RULES.md: its list is the order of the first actions."""
    moves, _ = legal_moves(state)
    return lowest(moves)


@rule
def greedy(state: State) -> int:
    return trivial(state)
