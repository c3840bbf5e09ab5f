"""Ways to make Big Ben wrong, which the shared tests notice: `pytest tests/testing/test_mutants.py -m slow`."""

from __future__ import annotations

from card_envs.testing.mutants import REFEREE, WORLDS, Mutant

DRAWN_ANEW = "shuffle(state.pack[num_dealt:], num_left, num_left, advance(stream))"

MUTANTS = [
    Mutant(
        "the next card stays where it lies", DRAWN_ANEW,
        "shuffle(state.pack[num_dealt + 1 :], num_left - 1, num_left - 1, advance(stream))", WORLDS,
    ),
    Mutant(
        "half of the stock is shuffled", DRAWN_ANEW,
        "shuffle(state.pack[num_dealt:], num_left, num_left // 2, advance(stream))", WORLDS,
    ),
    Mutant("one hop too many", "MAX_HOPS = 4", "MAX_HOPS = 5", REFEREE),
]  # fmt: skip
