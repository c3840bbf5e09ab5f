"""Cards as text, the same for every game: rank then suit, such as `AC` or `TD`; `BB` and `LB` are the jokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SUITS = "CDHS"
ACE_HIGH = "23456789TJQKA"
ACE_LOW = "A23456789TJQK"


def deck(ranks: str) -> tuple[str, ...]:
    """Return the 52 cards as text, ordered by suit (`CDHS`), then as in `ranks`: card `13 * suit + rank`."""
    return tuple(rank + suit for suit in SUITS for rank in ranks)


def parse_pack(pack: object, codes: Mapping[str, int], expected: Sequence[int], where: str) -> list[int]:
    """Return the card codes of a pack given as text, after checking every card.

    Args:
        pack: user input: a sequence of card texts in dealing order.
        codes: the code of each card's text.
        expected: the codes that the pack must hold, with repetitions.
        where: the name of the pack in error messages.

    Raises:
        ValueError: not a list, an unknown card, a wrong number of cards, or a card too often or missing.
    """
    if isinstance(pack, str) or not isinstance(pack, Sequence):
        raise ValueError(f"{where}: expected a list of {len(expected)} cards, got {pack!r}")
    left = {code: expected.count(code) for code in set(expected)}
    names = {code: name for name, code in codes.items()}
    cards = []
    for position, card in enumerate(pack):
        code = codes.get(card) if isinstance(card, str) else None
        if code is None or code not in left:
            known = " ".join(names[c] for c in sorted(left))
            raise ValueError(f"{where}: card {position} is {card!r}, expected one of {known}")
        if left[code] == 0:
            raise ValueError(f"{where}: card {position}, {card!r}, occurs too often")
        left[code] -= 1
        cards.append(code)
    if len(cards) != len(expected):
        missing = " ".join(names[code] for code, count in left.items() if count)
        raise ValueError(f"{where}: expected {len(expected)} cards, got {len(cards)}; missing: {missing}")
    return cards
