"""Ways to make High Card wrong, which the shared tests notice: `pytest tests/testing/test_mutants.py -m slow`."""

from __future__ import annotations

from card_envs.testing.mutants import REFEREE, TALLIES, WORLDS, Mutant

REDRAWN = "    state.hands[other] = draw(unseen, count(state.hands[other]), advance(stream))\n"

MUTANTS = [
    Mutant("no shuffle", "below(derive(key, i), count(cards) - i)", "0", WORLDS),
    Mutant(
        "hidden cards are sorted after the third move", REDRAWN,
        REDRAWN + "    if state.num_played >= 3:\n"
        "        number = count(state.hands[other])\n"
        "        state.hands[other] = EMPTY\n"
        "        for _ in range(number):\n"
        "            state.hands[other] |= bit(lowest(unseen & ~state.hands[other]))\n",
        WORLDS,
    ),
    Mutant("wrong seat redealt", "other = 1 - int(seat)\n    unseen", "other = int(seat)\n    unseen"),
    Mutant("one card never redealt", REDRAWN, "    unseen &= unseen - ONE\n" + REDRAWN, WORLDS),
    Mutant(
        "one card stays where it lies", REDRAWN,
        "    pinned = state.hands[other] & bit(11)\n"
        "    unseen &= ~bit(11)\n"
        "    state.hands[other] = pinned | draw(unseen, count(state.hands[other] & ~bit(11)), advance(stream))\n",
        WORLDS,
    ),
    Mutant(
        "observation shows a hidden card", "spread(obs, AT.hand, state.hands[int(seat)], PACK_SIZE)",
        "spread(obs, AT.hand, state.hands[int(seat)] | (state.hands[1 - int(seat)] & bit(11)), PACK_SIZE)",
    ),
    Mutant(
        "view shows a hidden card", '"hand": card_texts(state.hands[seat])',
        '"hand": card_texts(state.hands[seat] | (state.hands[1 - seat] & np.uint64(1)))', file="view.py",
    ),
    Mutant(
        "events show hidden cards", 'SEAT_NAMES = ("you", "opponent")\n',
        'SEAT_NAMES = ("you", "opponent")\n\n\ndef event_text(state, action, names):\n'
        '    return f"{int(state.hands[1 - state.seat])} are held"\n', WORLDS, file="view.py",
    ),
    Mutant(
        "picture shows what the view does not", "def picture(given: dict[str, Any]) -> str:\n    lines = (\n",
        "LAST = []\nplain_view = view\n\n\ndef view(state, seat):\n    LAST[:] = [int(state.hands[1 - seat])]\n"
        "    return plain_view(state, seat)\n\n\ndef picture(given):\n    lines = (\n        f'{LAST}',\n",
        file="view.py",
    ),
    Mutant(
        "one legal move less", "spread(mask, 0, state.hands[int(state.seat)], PACK_SIZE)\n",
        "hand = state.hands[int(state.seat)]\n"
        "    spread(mask, 0, hand & (hand - ONE) if count(hand) > 1 else hand, PACK_SIZE)\n",
    ),
    Mutant("lower card wins", "action > state.history", "action < state.history", REFEREE),
    Mutant("reward to the wrong side", "pay(state, int(state.seat))", "pay(state, 1 - int(state.seat))"),
    Mutant(
        "random moves prefer high cards", "nth(hand, below(advance(stream), count(hand)))",
        "nth(hand, min(below(advance(stream), count(hand) + 1), count(hand) - 1))",
    ),
    Mutant(
        "deal depends on earlier play", "draw(ALL_CARDS, HAND_SIZE, derive(state.rng, 0))",
        "draw(ALL_CARDS, HAND_SIZE, derive(state.rng + np.uint64(state.history[0]), 0))",
    ),
    Mutant(
        "score_margin of the wrong side", "int(state.scores[int(seat)]) - int(state.scores[1 - int(seat)])",
        "int(state.scores[1 - int(seat)]) - int(state.scores[int(seat)])",
    ),
    Mutant("update_stats of the wrong side", "+= state.scores[seat]\n", "+= state.scores[1 - seat]\n", TALLIES),
    Mutant(
        "bot peeks", "        return highest(hand)\n",
        "        return highest(hand) if highest(hand) > highest(state.hands[1 - int(state.seat)]) else lowest(hand)\n",
        file="bot.py",
    ),
]  # fmt: skip
