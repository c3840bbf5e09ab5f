"""Faces and backs of cards as SVG, 100 wide and 140 high, without images or fonts.

A face is a group, so that a picture contains each face once, however often it is used.
"""

from __future__ import annotations

from functools import cache

from card_envs.draw._courts import court, joker
from card_envs.draw._lettering import stroke
from card_envs.draw._pips import COLOURS, INK, PIPS, RED

WIDTH, HEIGHT = 100, 140
CORNER = 8
PAPER = "#fffdf6"
EDGE = "#b9b3a2"
BACK_COLOURS = (("#1f3f7a", "#d9e2f3"), ("#8c1d2c", "#f6dcd9"))  # background and lines, by pack
JOKER_COLOURS = {"BB": RED, "LB": INK}

LEFT, MIDDLE, RIGHT = 37.0, 50.0, 63.0
_TOP, _BOTTOM = 29, 111
# Positions of the pips of a number card; those below the middle are upside down.
_COLUMN: dict[int, tuple[float, ...]] = {2: (_TOP, _BOTTOM), 3: (_TOP, 70, _BOTTOM), 4: (_TOP, 56.3, 83.7, _BOTTOM)}
PLACES: dict[str, list[tuple[float, float]]] = {
    rank: [(x, y) for x in sides for y in _COLUMN[number]] + [(MIDDLE, y) for y in between]
    for rank, sides, number, between in (
        ("2", (MIDDLE,), 2, ()),
        ("3", (MIDDLE,), 3, ()),
        ("4", (LEFT, RIGHT), 2, ()),
        ("5", (LEFT, RIGHT), 2, (70,)),
        ("6", (LEFT, RIGHT), 3, ()),
        ("7", (LEFT, RIGHT), 3, (49.5,)),
        ("8", (LEFT, RIGHT), 3, (49.5, 90.5)),
        ("9", (LEFT, RIGHT), 4, (70,)),
        ("T", (LEFT, RIGHT), 4, (42.6, 97.4)),
    )
}


def pip(suit: str, x: float, y: float, size: float, upside_down: bool = False) -> str:
    """Return a pip centred on (x, y)."""
    turn = " rotate(180)" if upside_down else ""
    placed = f"translate({x:g} {y:g}){turn} scale({size / 100:g})"
    return f'<path transform="{placed}" fill="{COLOURS[suit]}" d="{PIPS[suit]}"/>'


def letters(text: str, x: float, y: float, height: float, colour: str, weight: float, squeeze: float = 1) -> str:
    """Return a text as strokes from its top left corner; `weight` is the width of the pen."""
    scale = height / 100
    return (
        f'<path transform="translate({x:g} {y:g}) scale({scale * squeeze:g} {scale:g})" fill="none" stroke="{colour}" '
        f'stroke-width="{weight / scale:g}" stroke-linecap="round" stroke-linejoin="round" d="{stroke(text)[1]}"/>'
    )


@cache
def face(card: str) -> str:
    """Return the face of a card such as `AC`, `TD`, `BB`."""
    if card in JOKER_COLOURS:
        index, middle = _joker_index(card), joker(card == "BB")
    else:
        rank, suit = card[0], card[1]
        index, middle = _index(rank, suit), _middle(rank, suit)
    turned = f'<g transform="rotate(180 {WIDTH / 2:g} {HEIGHT / 2:g})">{index}</g>'
    return _sheet(PAPER) + middle + index + turned


@cache
def plain_face(text: str) -> str:
    """Return the face of a card with a short text, for games with cards of their own."""
    width = stroke(text)[0]
    middle, corner = (min(height, 84 / max(width, 1) * 100) for height in (52, 20))
    return (
        _sheet(PAPER)
        + letters(text, MIDDLE - width * middle / 200, 70 - middle / 2, middle, INK, 7)
        + letters(text, CORNER, 9, corner, INK, 3.6)
    )


@cache
def back(pack: int = 0) -> str:
    """Return the back of the cards of a pack; two packs have different colours."""
    ground, line = BACK_COLOURS[pack % 2]
    net = "".join(f"M{x} 12 {x + 116} 128M{x + 116} 12 {x} 128" for x in range(-98, 92, 15))
    rose = "".join(
        f'<path transform="translate(50 70) rotate({angle}) translate(0 -13) scale(.17)" d="{PIPS["S"]}"/>'
        for angle in (0, 90, 180, 270)
    )
    return (
        _sheet(PAPER)
        + f'<clipPath id="net-{pack % 2}"><rect x="12" y="12" width="76" height="116" rx="3"/></clipPath>'
        + f'<rect x="7" y="7" width="86" height="126" rx="4" fill="{ground}"/>'
        + f'<path clip-path="url(#net-{pack % 2})" fill="none" stroke="{line}" stroke-opacity=".55" '
        + f'stroke-width="1.3" d="{net}"/>'
        + f'<rect x="10.5" y="10.5" width="79" height="119" rx="3" fill="none" stroke="{line}" stroke-width="1.4"/>'
        + f'<circle cx="50" cy="70" r="27" fill="{ground}" stroke="{line}" stroke-width="1.6"/>'
        + f'<circle cx="50" cy="70" r="23.5" fill="none" stroke="{line}" stroke-width=".8"/>'
        + f'<g fill="{line}">{rose}<circle cx="50" cy="70" r="2.4"/></g>'
    )


def _sheet(colour: str) -> str:
    return (
        f'<rect x=".6" y=".6" width="{WIDTH - 1.2:g}" height="{HEIGHT - 1.2:g}" rx="{CORNER}" fill="{colour}" '
        f'stroke="{EDGE}" stroke-width="1.2"/>'
    )


def _index(rank: str, suit: str) -> str:
    """Return rank above suit in a column 24 wide, the visible part of covered cards in a fan."""
    text = "10" if rank == "T" else rank
    width = stroke(text)[0]
    squeeze = min(1.0, 64 / width)
    height = 25
    left = 14 - width * squeeze * height / 200
    return letters(text, left, 9, height, COLOURS[suit], 5 if text == "10" else 4.4, squeeze) + pip(suit, 14, 50, 17.5)


def _joker_index(card: str) -> str:
    colour = JOKER_COLOURS[card]
    top, bottom = (letters(letter, 8, y, 19, colour, 4.2) for letter, y in ((card[0], 9), (card[1], 35)))
    return top + bottom


def _middle(rank: str, suit: str) -> str:
    if rank in "JQK":
        return court(rank, suit)
    if rank == "A":
        return pip(suit, 50, 70, 52)
    return "".join(pip(suit, x, y, 18.5, upside_down=y > 70) for x, y in PLACES[rank])
