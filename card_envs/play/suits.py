"""Cards at the terminal: red suits in red, and suits as ♣ ♦ ♥ ♠ if the terminal can show them."""

from __future__ import annotations

import os
import re

from rich.console import Console
from rich.text import Text

from card_envs.cards import ACE_LOW, SUITS

SYMBOLS = str.maketrans(SUITS, "♣♦♥♠")
LETTERS = str.maketrans("♣♦♥♠♧♢♡♤", SUITS + SUITS)  # also the hollow ones, for input
CARD = re.compile(rf"(?<!\w)([{ACE_LOW}])([{SUITS}])(?!\w)")
RED = rf"(?<!\w)[{ACE_LOW}][DH♦♥](?!\w)"


def with_suits(text: str, console: Console, symbols: bool = True) -> Text:
    """Return a text with its cards formatted for this console; its width is unchanged, and files get plain text.

    With `symbols` off, suits stay letters, as typed. Colours follow the console: none with NO_COLOR or on a dumb
    terminal; symbols require UTF-8.
    """
    if symbols and console.is_terminal and not console.is_dumb_terminal and _takes_utf8(console):
        text = CARD.sub(lambda card: card[1] + card[2].translate(SYMBOLS), text)
    dressed = Text(text)
    dressed.highlight_regex(RED, "red")
    return dressed


def _takes_utf8(console: Console) -> bool:
    """Return whether the terminal takes UTF-8; not in the locale "C", although Python writes UTF-8 there, too."""
    named = os.environ.get("LC_ALL") or os.environ.get("LANG") or "UTF-8"
    return console.encoding.startswith("utf") and "utf" in named.lower()
