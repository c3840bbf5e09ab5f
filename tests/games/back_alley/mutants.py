"""Ways to make Back Alley wrong, which the shared tests notice: `pytest tests/testing/test_mutants.py -m slow`."""

from __future__ import annotations

from card_envs.testing.mutants import REFEREE, WORLDS, Mutant

MUTANTS = [
    Mutant(
        "a void is ignored",
        "        state.lacks[seat] |= state.followers\n        return\n", "        return\n", WORLDS
    ),
    Mutant(
        "a lead of trumps tells nothing",
        "            state.lacks[seat] |= ALL_CARDS & ~state.trumps  # BA-12: nothing but trumps\n",
        "            pass\n", WORLDS,
    ),
    Mutant(
        "hands that may lack a suit are not drawn alike", "target = uniform(stream) * total", "target = 0.0", WORLDS
    ),
    Mutant("trumps may always be led", "return plain if plain != EMPTY else hand  # BA-12", "return hand", REFEREE),
]  # fmt: skip
