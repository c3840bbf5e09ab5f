"""Cards at the terminal: red suits in red and, where the terminal can show them, suits as ♣ ♦ ♥ ♠."""

from __future__ import annotations

import os
import re

from rich.console import Console
from rich.text import Text

from card_envs.cards import ACE_LOW, SUITS

SYMBOLS = str.maketrans(SUITS, "♣♦♥♠")
LETTERS = str.maketrans("♣♦♥♠♧♢♡♤", SUITS + SUITS)  # also the hollow ones, for what is typed
CARD = re.compile(rf"(?<!\w)([{ACE_LOW}])([{SUITS}])(?!\w)")
RED = rf"(?<!\w)[{ACE_LOW}][DH♦♥](?!\w)"


def with_suits(text: str, console: Console, symbols: bool = True) -> Text:
    """Return a text with its cards dressed for this console: as wide as before, and plain where it goes to a file.

    With `symbols` off suits stay letters, as they are typed. Colours follow the console: none with NO_COLOR or on a
    dumb terminal; symbols need a terminal that takes UTF-8.
    """
    if symbols and console.is_terminal and not console.is_dumb_terminal and _takes_utf8(console):
        text = CARD.sub(lambda card: card[1] + card[2].translate(SYMBOLS), text)
    dressed = Text(text)
    dressed.highlight_regex(RED, "red")
    return dressed


def _takes_utf8(console: Console) -> bool:
    """Python writes UTF-8 in the locale "C", too (and sets LC_CTYPE itself): whoever names that one gets letters."""
    named = os.environ.get("LC_ALL") or os.environ.get("LANG") or "UTF-8"
    return console.encoding.startswith("utf") and "utf" in named.lower()
