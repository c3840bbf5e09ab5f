"""Ways to make Russian Bank wrong, which the shared tests notice: `pytest tests/testing/test_mutants.py -m slow`."""

from __future__ import annotations

from card_envs.testing.mutants import WORLDS, Mutant

DRAWN = "j = i + below(advance(stream), num_cards - i)"
EACH_PACK = "    for owner in range(2):\n        pack = state.packs[owner]\n        face_down"

MUTANTS = [
    Mutant("one pack stays as it lies", EACH_PACK, EACH_PACK.replace("range(2)", "range(1)"), WORLDS),
    Mutant("no hidden card stays in its place", DRAWN, "j = i + 1 + below(advance(stream), num_cards - i - 1)", WORLDS),
    Mutant("hidden cards are only rotated", DRAWN, "j = i + (1 if i else below(advance(stream), num_cards))", WORLDS),
]  # fmt: skip
