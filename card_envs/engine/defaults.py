"""What holds for a game that leaves out the optional functions of `card_envs/game.py`, compiled."""

from __future__ import annotations

from typing import Any

from card_envs.engine.jit import rule
from card_envs.game import State, States, Stats, Stream


@rule
def likelihood(state: State, seat: int) -> float:
    """Every world explains equally well what the others did."""
    return 1.0


@rule
def refine_world(states: States, seat: int, steps: int, stream: Stream) -> None:
    """Every world is as good as any other."""


@rule
def update_stats(state: State, seat: int, counts: Stats) -> None:
    """Nothing is counted besides the score."""


@rule
def reveals(state: State, action: int) -> bool:
    """Whatever is played may show a hidden card."""
    return True


# Games without a planner: the loop of search names these, and never gets to them.


@rule
def load(state: State, seat: int, scratch: Any) -> None:
    """Nothing is entered."""


@rule
def expand(scratch: Any, most: int, longest: int) -> int:
    """Nothing is reached."""
    return 0


@rule
def path_to(scratch: Any, k: int, line: Any) -> int:
    """Nor is there a way."""
    return 0


@rule
def is_chance_next(scratch: Any, k: int) -> bool:
    """Nothing hidden shows."""
    return False


@rule
def is_terminal(scratch: Any, k: int) -> bool:
    """No position is known."""
    return False


@rule
def final_margin(scratch: Any, k: int) -> float:
    """Nor its points."""
    return 0.0


@rule
def active_features(scratch: Any, k: int) -> int:
    """No weight counts."""
    return 0
