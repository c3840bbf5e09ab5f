"""The text picture of a game that has no drawing, as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from card_envs.draw._lettering import stroke
from card_envs.draw.picture import MARGIN, Picture

COLUMNS, LINES = 80, 40  # the maximum of a text picture, so that all positions of a game have the same size
CELL, LINE, CAPITAL = 16, 32, 17  # size of a letter, the same for all: monospaced


def text_page(title: str, text: str, moves: Sequence[str] = ()) -> str:
    """Return lines of text as an SVG document."""
    width, height = COLUMNS * CELL + 2 * MARGIN, LINES * LINE + 2 * MARGIN
    picture = Picture(title, width, height, dict.fromkeys(moves, ("", "")))
    with picture.place("text", text):
        for row, line in enumerate(text.splitlines()):
            for column, letter in enumerate(line):
                if letter != " ":
                    size = min(CAPITAL, 100 * (CELL - 4) / max(stroke(letter)[0], 1))
                    x, y = MARGIN + (column + 0.5) * CELL, MARGIN + (row + 0.5) * LINE
                    picture.text(letter, x, y + (CAPITAL - size) / 2, size)
    return picture.svg()
