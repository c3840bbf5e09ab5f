"""Picture of Big Ben: a clock with twelve foundations around its face, and the piles around them."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any, NamedTuple

from card_envs.cards import card_name
from card_envs.draw._pips import INK
from card_envs.draw.picture import ACROSS, CREAM, DOWN, Picture, fan_step
from card_envs.games.big_ben.rules import FULL_PILE, PACK_SIZE
from card_envs.games.big_ben.view import HOURS, PILES, RUNS

ROMAN = ("XII", "I", "II", "III", "IIII", "V", "VI", "VII", "VIII", "IX", "X", "XI")  # IIII, as on clocks
RING = 296  # distance of the foundations' centres from the middle
FACE = 196  # radius of the clock's face


class Layout(NamedTuple):
    """Positions.

    The anchor of a pile, relative to the middle, is the middle of its first three cards or its growing end.
    """

    width: int
    height: int
    middle: tuple[float, float]
    piles: tuple[tuple[float, float], ...]
    room: float  # for a pile
    stock: tuple[float, float]
    waste: tuple[float, float]  # its right end
    waste_shown: int
    placed: tuple[float, float]
    gaps: tuple[float, float]


def _on_clock(hour: int, across: float, down: float) -> tuple[float, float]:
    """Return the position of an hour on an ellipse around the origin."""
    return across * sin(hour * pi / 6), -down * cos(hour * pi / 6)


WIDE = Layout(
    width=1440,
    height=1120,
    middle=(720, 560),
    piles=tuple(_on_clock(hour, 520, 466) for hour in range(12)),
    room=220,
    stock=(40, 940),
    waste=(1400, 940),
    waste_shown=5,
    placed=(40, 66),
    gaps=(1400, 66),
)
# Piles above the middle grow upwards, those below it downwards, so that none covers the clock.
_RISE = (402, 366, 186, 0, -186, -366, -402, -366, -186, 0, 186, 366)
TALL = Layout(
    width=960,
    height=1500,
    middle=(480, 758),
    piles=tuple((_on_clock(hour, 415, 0)[0], -_RISE[hour]) for hour in range(12)),
    room=318,
    stock=(34, 1330),
    waste=(930, 1330),
    waste_shown=4,
    placed=(26, 44),
    gaps=(934, 44),
)


def draw(given: dict[str, Any], tall: bool) -> str:
    """Return a view as an SVG document."""
    at = TALL if tall else WIDE
    moves = {move: ("stock", "stock") if move == "deal" else tuple(move.split("-")) for move in given["legal"]}
    picture = Picture(f"Big Ben, {given['placed']} of {PACK_SIZE} cards placed", at.width, at.height, moves, "F")
    _face(picture, at, given["placed"] / PACK_SIZE)
    for i, hour in enumerate(HOURS):
        _foundation(picture, at, i, hour, given["foundations"][hour])
    for i, pile in enumerate(PILES):
        _pile(picture, at, i, pile, given["piles"][pile], tall)
    _stock_and_waste(picture, at, given)
    gaps = sum(max(0, FULL_PILE - len(pile)) for pile in given["piles"].values()) if given["stock_size"] else 0
    x, y = at.placed
    picture.text(str(given["placed"]), x, y, 44, "start", weight="bold")
    picture.text(f"of {PACK_SIZE}", x + picture.text_width(str(given["placed"]), 44) + 18, y + 8, 28, "start")
    x, y = at.gaps
    hops = f"{given['hops']} hop{'s' * (given['hops'] > 1)}" if given["hops"] else ""
    picture.text(f"{gaps} gap{'s' * (gaps > 1)}" if gaps else hops, x, y + 4, 28, "end")
    return picture.svg()


def _face(picture: Picture, at: Layout, done: float) -> None:
    """Draw the clock; its hands go around once, to twelve, as cards are placed."""
    minutes = "".join(
        f'<path d="M0 {-FACE + 9}V{-FACE + (22 if i % 5 == 0 else 15)}" transform="rotate({6 * i})" '
        f'stroke-width="{4.5 if i % 5 == 0 else 1.8}"/>'
        for i in range(60)
    )
    x, y = at.middle
    picture.raw(
        f'<g transform="translate({x:g} {y:g})"><circle r="{FACE}" fill="{CREAM}" stroke="#b58a2a" stroke-width="9"/>'
        f'<circle r="{FACE - 5}" fill="none" stroke="{INK}" stroke-width="1.6"/>'
        f'<circle r="{FACE - 66}" fill="none" stroke="#b58a2a" stroke-width="1.6"/><g stroke="{INK}">{minutes}</g>'
    )
    for i, numeral in enumerate(ROMAN):
        left, top = _on_clock(i, FACE - 44, FACE - 44)
        picture.text(numeral, left, top, 26, colour=INK, weight="bold")
    petals = "".join(
        f'<path d="M0-24C10-46 10-70 0-92-10-70-10-46 0-24Z" transform="rotate({30 * i})"/>' for i in range(12)
    )
    hour, minute = 360 * done, 360 * (12 * done % 1)
    picture.raw(
        f'<g fill="#b58a2a" fill-opacity=".22">{petals}</g>'
        f'<path d="M-7 20 -4.5-84 0-108 4.5-84 7 20Z" fill="{INK}" transform="rotate({hour:.1f})"/>'
        f'<path d="M-4.5 30-2.5-138 0-160 2.5-138 4.5 30Z" fill="{INK}" transform="rotate({minute:.1f})"/>'
        f'<circle r="12" fill="{INK}"/><circle r="5" fill="#b58a2a"/></g>'
    )


def _foundation(picture: Picture, at: Layout, i: int, hour: str, top: str) -> None:
    x, y = _on_clock(i, RING, RING)
    x, y = at.middle[0] + x - 50, at.middle[1] + y - 70
    left = len(RUNS[i]) - 1 - RUNS[i].index(top)
    with picture.place("F", f"hour {hour}: {card_name(top)}, {f'{left} to come' if left else 'complete'}"):
        if not left:
            picture.frame(x, y)
        picture.card(top, x, y)


def _pile(picture: Picture, at: Layout, i: int, name: str, cards: list[str], tall: bool) -> None:
    """Draw a pile as a fan across or down: its first three cards, then the run built on them, closer if it is long."""
    step, size = (DOWN - 2, 140) if tall else (ACROSS, 100)
    base = FULL_PILE - 1
    rest = fan_step(len(cards) - base, step, at.room - base * step, size)
    offsets = [k * step if k <= base else base * step + (k - base) * rest for k in range(max(len(cards), 1))]
    x, y = (anchor + middle for anchor, middle in zip(at.piles[i], at.middle))
    extra = max(offsets[-1] - base * step, 0)  # beyond three cards
    if tall:
        rises = y < at.middle[1]
        x -= 50
        y -= offsets[-1] + size if rises else (base * step + size + extra) / 2 if y == at.middle[1] else 0
    else:
        # Away from the clock.
        x -= (base * step + size) / 2 + (extra if i > 6 else extra / 2 if i % 6 == 0 else 0)
        y -= 70
    with picture.place(name, f"pile {HOURS[i]}: {', '.join(map(card_name, cards)) or 'empty'}"):
        if not cards:
            picture.slot(x, y)
        for card, offset in zip(cards, offsets):
            picture.card(card, x + (0 if tall else offset), y + (offset if tall else 0))
        picture.name(name, *((x + 50, y - 17) if tall else (x - 24, y + 70)))


def _stock_and_waste(picture: Picture, at: Layout, view: dict[str, Any]) -> None:
    x, y = at.stock
    size, waste = view["stock_size"], view["waste"]
    with picture.place("stock", f"stock: {size} cards"):
        picture.pile(size, x, y)
        picture.badge(str(size), x + 24, y + 134)
    x, y = at.waste
    top_cards = waste[-at.waste_shown :]
    left = x - 100 - max(len(top_cards) - 1, 0) * ACROSS
    with picture.place("W", f"waste: {len(waste)} cards" + (f", {card_name(waste[-1])} on top" if waste else "")):
        if not waste:
            picture.slot(left, y)
        picture.fan(top_cards, left, y, across=ACROSS)
        picture.badge(str(len(waste)), left + 24, y + 134)
