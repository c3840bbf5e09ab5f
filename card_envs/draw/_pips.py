"""The four suits: colours, and pips as paths."""

from __future__ import annotations

INK = "#1d2230"
RED = "#c9192e"
COLOURS = {"C": INK, "D": RED, "H": RED, "S": INK}
SUIT_NAMES = {"C": "clubs", "D": "diamonds", "H": "hearts", "S": "spades"}
RANK_NAMES = {"A": "ace", "T": "10", "J": "jack", "Q": "queen", "K": "king"}
JOKER_NAMES = {"BB": "Big Blooper", "LB": "Little Blooper"}

# Coordinates from -50 to 50.
PIPS = {
    "C": "M-7 13C-14 28-34 31-43 21-55 8-46-15-27-15-24-15-20-14-17-13-27-22-26-50 0-50S27-22 17-13C20-14 24-15 27-15 "
    "46-15 55 8 43 21 34 31 14 28 7 13 7 33 12 44 22 50H-22C-12 44-7 33-7 13Z",
    "D": "M0-50C9-30 23-14 40 0 23 14 9 30 0 50-9 30-23 14-40 0-23-14-9-30 0-50Z",
    "H": "M0 50C-8 26-47 8-47-21-47-38-36-47-24-47-11-47-3-38 0-25 3-38 11-47 24-47 36-47 47-38 47-21 47 8 8 26 0 50Z",
    "S": "M0-50C7-30 46-8 46 16 46 29 37 36 26 36 17 36 9 31 5 23 6 36 11 45 21 50H-21C-11 45-6 36-5 23-9 31-17 36"
    "-26 36-37 36-46 29-46 16-46-8-7-30 0-50Z",
}


def card_name(card: str) -> str:
    """Return the name of a card for screen readers: "7 of spades"."""
    if card in JOKER_NAMES:
        return JOKER_NAMES[card]
    return f"{RANK_NAMES.get(card[0], card[0])} of {SUIT_NAMES[card[1]]}"
