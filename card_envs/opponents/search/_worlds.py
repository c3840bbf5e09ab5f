"""Worlds: states that fit what a seat knows, drawn in proportion to how well they explain what the others did."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from card_envs.engine._dealing import draw_world
from card_envs.engine.rng import uniform
from card_envs.game import State, UInt64s, likelihood, refine_world

MAX_DRAWS = 12  # until one is accepted


def draw_likely_world(state: State, refine_steps: int, stream: UInt64s, states: NDArray[Any]) -> None:
    """Draw a world into states[0] with a probability in proportion to its likelihood L.

    A uniform determinization is accepted with probability L, which is exact (rejection sampling). If none of MAX_DRAWS
    is accepted, one of them stands, chosen in proportion to L (sampling, importance resampling: Rubin 1987), and
    `refine_steps` Metropolis steps lead on from there.

    Args:
        state: whose hidden part is drawn; stays as it is.
        refine_steps: of the Markov chain.
        stream: [1] moves on.
        states: [SCRATCH_STATES], of which the first gets the world.
    """
    total = 0.0
    for _ in range(MAX_DRAWS):
        states[1] = state
        draw_world(states[1], state.seat, stream)
        weight = likelihood(states[1], state.seat)
        total += weight
        accepted = weight == 1 or uniform(stream) < weight
        if accepted or uniform(stream) * total < weight:  # stands with probability weight / total so far
            states[0] = states[1]
        if accepted:
            return
    refine_world(states, states[0].seat, refine_steps, stream)
