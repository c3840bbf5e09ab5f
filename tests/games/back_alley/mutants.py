"""Ways to make Back Alley wrong, which the shared tests notice: `pytest tests/testing/test_mutants.py -m slow`."""

from __future__ import annotations

from card_envs.testing.mutants import CONTRACT, REFEREE, WORLDS, Mutant

MUTANTS = [
    Mutant(
        "no shuffle",
        "    shuffle(pack, NUM_CARDS, 4 * state.sizes[state.deal_number] + (3 if state.redraws else 2), key)\n",
        "", WORLDS,
    ),
    Mutant(
        "hidden cards are sorted after the third card", "place = int(below(advance(stream), left))",
        "place = int(below(advance(stream), left)) if state.num_played < 3 else 0", WORLDS,
    ),
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
    Mutant(
        "wrong seat redealt", "first, second, third = (int(seat) + 1) & 3, (int(seat) + 2) & 3, (int(seat) + 3) & 3",
        "first, second, third = (int(seat) + 1) & 3, (int(seat) + 2) & 3, int(seat)", CONTRACT,
    ),
    Mutant("trumps may always be led", "return plain if plain != EMPTY else hand  # BA-12", "return hand", REFEREE),
    Mutant(
        "reward to the wrong side", "state.rewards[seat] = margin if seat & 1 == 0 else -margin",
        "state.rewards[seat] = -margin if seat & 1 == 0 else margin", REFEREE,
    ),
]  # fmt: skip
