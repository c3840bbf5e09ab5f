"""Cards as text, the same for every game: rank then suit, such as `AC` or `TD`; `BB` and `LB` are the jokers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

SUITS = "CDHS"
SUIT_NAMES = {"C": "clubs", "D": "diamonds", "H": "hearts", "S": "spades"}
RANK_NAMES = {"A": "ace", "T": "10", "J": "jack", "Q": "queen", "K": "king"}
JOKER_NAMES = {"BB": "Big Blooper", "LB": "Little Blooper"}
ACE_HIGH = "23456789TJQKA"
ACE_LOW = "A23456789TJQK"
READABLE = re.compile(r"[ -~\s♣♦♥♠♧♢♡♤→–—−…“”‘’]*")  # other characters are no spelling of a move
SUIT_SYMBOLS = str.maketrans("♣♦♥♠♧♢♡♤", SUITS + SUITS)
OPENING, CLOSING = " \"'“”‘’`*_([", " \"'“”‘’`*_)].,;:!?…"
WORDS = re.compile(r"(?:[^\W_]+(?:(?: |(?: ?(?:->|[-–—−→]) ?))[^\W_]+)*)?")
TEN = re.compile(r"(?i)\b10(?= ?(?:of )?[cdhs])")
SPOKEN = {
    "ace": "A", "two": "2", "deuce": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "T", "jack": "J", "queen": "Q", "king": "K", "clubs": "C", "club": "C",
    "diamonds": "D", "diamond": "D", "hearts": "H", "heart": "H", "spades": "S", "spade": "S", "little": "L",
    "big": "B", "blooper": "B", "joker": "B", "foundation": "F", "foundations": "F",
} | dict.fromkeys(("from", "to", "of", "the", "on", "onto", "i", "play", "bid"), "")  # fmt: skip


def deck(ranks: str) -> tuple[str, ...]:
    """Return the 52 cards as text, ordered by suit (`CDHS`), then as in `ranks`: card `13 * suit + rank`."""
    return tuple(rank + suit for suit in SUITS for rank in ranks)


def card_name(card: str) -> str:
    """Return the name of a card, given as text: "7 of spades"."""
    if card in JOKER_NAMES:
        return JOKER_NAMES[card]
    return f"{RANK_NAMES.get(card[0], card[0])} of {SUIT_NAMES[card[1]]}"


def codes_of(cards: int) -> list[int]:
    """Return the codes in a set of cards, ascending."""
    codes = []
    while cards:
        lowest = cards & -cards
        codes.append(lowest.bit_length() - 1)
        cards ^= lowest
    return codes


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
        raise ValueError(f"{where}: expected a list of {len(expected)} cards, got {pack!r:.80}")
    left = {code: expected.count(code) for code in set(expected)}
    names = {code: name for name, code in codes.items()}
    cards = []
    for position, card in enumerate(pack):
        code = codes.get(card) if isinstance(card, str) else None
        if code is None or code not in left:
            known = " ".join(names[c] for c in sorted(left))
            raise ValueError(f"{where}: card {position} is {card!r:.80}, expected one of {known}")
        if left[code] == 0:
            raise ValueError(f"{where}: card {position}, {card!r}, occurs too often")
        left[code] -= 1
        cards.append(code)
    if len(cards) != len(expected):
        missing = " ".join(names[code] for code, count in left.items() if count)
        raise ValueError(f"{where}: expected {len(expected)} cards, got {len(cards)}; missing: {missing}")
    return cards


def squeezed(text: str) -> str:
    """Return what remains of a move in any spelling: `10 of diamonds`, `td` and `T♦` are all `td`.

    Case, spaces, dashes and arrows between words, and punctuation around them do not count, nor do words such as "of"
    and "to"; ranks and suits may be spelled out or symbols, and a ten may be `10` before a suit. Numbers alone stay as
    they are: they may be bids. With any other sign, as in `-1`, `1.0` or `1 0`, a text is no spelling: it remains
    itself.
    """
    spelled = " ".join(text.translate(SUIT_SYMBOLS).split()).lstrip(OPENING).rstrip(CLOSING)
    if not READABLE.fullmatch(text) or not WORDS.fullmatch(spelled):
        return text.lower()
    words = re.findall(r"[^\W_]+", TEN.sub("T", spelled))
    kept = list(filter(None, (SPOKEN.get(word.lower(), word) for word in words)))
    if any(word[-1].isdigit() and next_word[0].isdigit() for word, next_word in pairwise(kept)):
        return text.lower()
    return "".join(kept).lower()
