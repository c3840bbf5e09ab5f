"""Defaults of the optional compiled functions of `card_envs/game.py`."""

from __future__ import annotations

from card_envs.compiling._rules import rule
from card_envs.game import State, States, Stats, Stream


@rule
def likelihood(state: State, seat: int) -> float:
    """Return 1: every world explains the observed actions equally well."""
    return 1.0


@rule
def refine_world(states: States, seat: int, steps: int, stream: Stream) -> None:
    """Leave the world as it is."""


@rule
def update_stats(state: State, seat: int, counts: Stats) -> None:
    """Count nothing."""


@rule
def reveals(state: State, action: int) -> bool:
    """Return True: any action may show a hidden card."""
    return True


@rule
def text_index(state: State, action: int) -> int:
    """Return the action: it has the same text in every state."""
    return action
