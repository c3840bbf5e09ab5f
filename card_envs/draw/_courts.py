"""Kings, queens, jacks and jokers, drawn from plain shapes: half a figure, repeated upside down."""

from __future__ import annotations

from typing import NamedTuple

from card_envs.draw._pips import COLOURS, INK, PIPS, RED

GOLD, SKIN, CREAM = "#f0b429", "#fbe2c4", "#fff6df"


class Dress(NamedTuple):
    """The colours of a suit's court cards."""

    robe: str
    trim: str
    hair: str


DRESSES = {
    "C": Dress("#1f6a53", "#c9192e", "#4a3021"),
    "D": Dress("#c9192e", "#1d4f91", "#c98a2b"),
    "H": Dress("#b3122a", "#2b2f77", "#e0b04a"),
    "S": Dress("#1d3f80", "#c9192e", "#2c2a33"),
}
FRAME = (25, 13, 50, 114)  # x, y, width, height
# The upper half of the frame, cut diagonally through the centre of the card.
HALF = "M25 13H75V60L25 80Z"


def court(rank: str, suit: str) -> str:
    """Return the figure of a court card in its frame."""
    dress = DRESSES[suit]
    figure = {"K": _king, "Q": _queen, "J": _jack}[rank](dress, suit)
    x, y, width, height = FRAME
    pip = f'<path transform="translate(34 22.5) scale(.125)" fill="{COLOURS[suit]}" d="{PIPS[suit]}"/>'
    half = f'<g clip-path="url(#half-{rank}{suit})">{_robe(dress, suit)}{figure}{pip}</g>'
    return (
        # Slightly narrower than drawn, to keep clear of the indices.
        '<g transform="translate(4 0) scale(.92 1)">'
        f'<clipPath id="half-{rank}{suit}"><path d="{HALF}"/></clipPath>'
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{CREAM}"/>'
        f'{half}<g transform="rotate(180 50 70)">{half}</g>'
        f'<path d="M25 80 75 60" stroke="{GOLD}" stroke-width="5"/>'
        f'<path d="M25 77.3 75 57.3M25 82.7 75 62.7" stroke="{INK}" stroke-width=".9"/>'
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2" fill="none" stroke="{INK}" stroke-width="1.1"/></g>'
    )


def joker(big: bool) -> str:
    """Return a jester: the big one in red and gold, the little one in grey and blue."""
    main, other, bells = (RED, "#1d4f91", GOLD) if big else ("#5b6b86", "#a9b6cb", "#dfe5ee")
    size = 0.84 if big else 0.7
    face = (
        f'<path d="M-21 16C-8 27 8 27 21 16L17 35 8 28 0 39-8 28-17 35Z" fill="{main}" stroke="{INK}" stroke-width="1"/>'
        f'<ellipse cx="0" cy="6" rx="15" ry="18" fill="{SKIN}" stroke="{INK}" stroke-width="1.1"/>'
        f'<path d="M-16 2C-22-14-30-16-37-4-38-24-22-38-4-26-2-26 2-26 4-26 22-38 38-24 37-4 30-16 22-14 16 2 8-6-8-6-16 2Z" '
        f'fill="{main}" stroke="{INK}" stroke-width="1.1"/>'
        f'<path d="M-12-2C-12-22-6-34 0-44 6-34 12-22 12-2 6-5-6-5-12-2Z" fill="{other}" stroke="{INK}" stroke-width="1.1"/>'
        + "".join(
            f'<circle cx="{x}" cy="{y}" r="4.2" fill="{bells}" stroke="{INK}" stroke-width="1"/>'
            for x, y in ((-37, -2), (0, -46), (37, -2), (-17, 37), (0, 41), (17, 37))
        )
        + f'<g fill="{INK}"><circle cx="-5.5" cy="4" r="1.7"/><circle cx="5.5" cy="4" r="1.7"/></g>'
        f'<circle cx="-9" cy="11" r="2.6" fill="{RED}" fill-opacity=".35"/>'
        f'<circle cx="9" cy="11" r="2.6" fill="{RED}" fill-opacity=".35"/>'
        f'<path d="M-7 13C-3 19 3 19 7 13" fill="none" stroke="{INK}" stroke-width="1.5" stroke-linecap="round"/>'
        f'<path d="M0 5v4" stroke="{INK}" stroke-width="1" stroke-linecap="round"/>'
    )
    return f'<g transform="translate(50 75) scale({size})">{face}</g>'


def _robe(dress: Dress, suit: str) -> str:
    """Return shoulders, a front with the suit, and a collar."""
    pips = "".join(
        f'<path transform="translate({x} {y}) scale(.055)" fill="{GOLD}" d="{PIPS[suit]}"/>'
        for x, y in ((33, 66), (33, 74), (67, 60), (39, 70), (61, 63), (67, 66))
    )
    return (
        f'<path d="M25 82V62C28 56 36 53 43 52H57C64 53 72 56 75 62V82Z" fill="{dress.robe}" stroke="{INK}"/>{pips}'
        f'<path d="M44 51H56L58 82H42Z" fill="{dress.trim}" stroke="{INK}" stroke-width=".9"/>'
        f'<path d="M50 55V82" stroke="{GOLD}" stroke-width="2.4" stroke-dasharray="1.8 2.4"/>'
    )


def _head() -> str:
    """Return a face from the front, with its chin at y = 51."""
    return (
        f'<path d="M46.5 46H53.5V54L50 56.5 46.5 54Z" fill="{SKIN}" stroke="{INK}" stroke-width=".7"/>'
        f'<path d="M41.5 36C41.5 30 45 28 50 28S58.5 30 58.5 36 55.5 50.5 50 50.5 41.5 42 41.5 36Z" fill="{SKIN}" '
        f'stroke="{INK}" stroke-width=".9"/>'
        f'<g fill="none" stroke="{INK}" stroke-width=".8" stroke-linecap="round">'
        f'<path d="M44 36.3C45 35.4 46.8 35.4 47.8 36.3M52.2 36.3C53.2 35.4 55 35.4 56 36.3M50.3 38.5 49.3 42.3H50.8"/></g>'
        f'<circle cx="46" cy="38.6" r=".95" fill="{INK}"/><circle cx="54" cy="38.6" r=".95" fill="{INK}"/>'
        f'<path d="M47.6 45.6C49 46.5 51 46.5 52.4 45.6" fill="none" stroke="{RED}" stroke-width="1.2" stroke-linecap="round"/>'
    )


def _king(dress: Dress, suit: str) -> str:
    beard = (
        f'<path d="M41.6 40C42.6 44 45 44 50 44S57.4 44 58.4 40C60 48 56.5 57 50 59.5 43.5 57 40 48 41.6 40Z" '
        f'fill="{dress.hair}" stroke="{INK}" stroke-width=".8"/>'
        f'<path d="M46.5 43.6C48 42.6 49.3 42.6 50 43.3 50.7 42.6 52 42.6 53.5 43.6" fill="none" stroke="{INK}" '
        'stroke-width=".8" stroke-linecap="round"/>'
        f'<path d="M48.3 46.6H51.7" stroke="{RED}" stroke-width="1.5" stroke-linecap="round"/>'
    )
    hair = "".join(
        f'<path d="M{x} 33C{x - 4 * s} 36 {x - 3 * s} 45 {x - 5.5 * s} 48 {x - 2 * s} 50 {x + 2 * s} 47 {x + 1.5 * s} 41Z" '
        f'fill="{dress.hair}" stroke="{INK}" stroke-width=".8"/>'
        for x, s in ((41.5, 1), (58.5, -1))
    )
    crown = (
        f'<path d="M39.5 31.5 37.5 18.5 44 24.5 50 15.5 56 24.5 62.5 18.5 60.5 31.5Z" fill="{GOLD}" stroke="{INK}" '
        'stroke-width=".9" stroke-linejoin="round"/>'
        f'<path d="M39.3 28.2H60.7V32H39.3Z" fill="{dress.trim}" stroke="{INK}" stroke-width=".8"/>'
        + "".join(
            f'<circle cx="{x}" cy="{y}" r="1.7" fill="{dress.trim}" stroke="{INK}" stroke-width=".7"/>'
            for x, y in ((37.5, 18), (50, 15.2), (62.5, 18))
        )
        + "".join(f'<circle cx="{x}" cy="30.1" r="1" fill="{GOLD}"/>' for x in (44, 50, 56))
    )
    sword = (
        f'<path d="M67.4 15 69.4 19V54H65.4V19Z" fill="#e8edf3" stroke="{INK}" stroke-width=".8"/>'
        f'<path d="M67.4 20V52" stroke="{INK}" stroke-width=".5"/>'
        f'<path d="M61.5 54H73.3" stroke="{GOLD}" stroke-width="2.6" stroke-linecap="round"/>'
        f'<path d="M61.5 52.4H73.3V55.6H61.5Z" fill="none" stroke="{INK}" stroke-width=".5"/>'
        f'<circle cx="67.4" cy="58.5" r="3" fill="{SKIN}" stroke="{INK}" stroke-width=".8"/>'
    )
    ermine = (
        f'<path d="M37 54.5C42 51.5 46 52 50 58.5 54 52 58 51.5 63 54.5 60 60.5 54 61 50 64 46 61 40 60.5 37 54.5Z" '
        f'fill="#fffdf6" stroke="{INK}" stroke-width=".8"/>'
        + "".join(
            f'<path d="M{x} {y}v1.8" stroke="{INK}" stroke-width="1"/>'
            for x, y in ((42, 55.5), (58, 55.5), (46, 58.5), (54, 58.5))
        )
    )
    return hair + _head() + ermine + beard + crown + sword


def _queen(dress: Dress, suit: str) -> str:
    hair = (
        f'<path d="M50 24C40 24 36.5 31 37 40 37.3 47 35.5 52 36 57 41 59 45 56 45.5 52L44 34H56L54.5 52C55 56 59 59 64 57 '
        f'64.5 52 62.7 47 63 40 63.5 31 60 24 50 24Z" fill="{dress.hair}" stroke="{INK}" stroke-width=".8"/>'
    )
    fringe = (
        f'<path d="M41.3 37C41 30 45 27.5 50 27.5S59 30 58.7 37C56.5 35 53 33 50 29.8 47 33 43.5 35 41.3 37Z" '
        f'fill="{dress.hair}" stroke="{INK}" stroke-width=".7"/>'
    )
    crown = (
        f'<path d="M41 27.5 39.5 19.5 44.5 22.5 47 17.5 50 21.5 53 17.5 55.5 22.5 60.5 19.5 59 27.5C53 25.5 47 25.5 41 27.5Z" '
        f'fill="{GOLD}" stroke="{INK}" stroke-width=".8" stroke-linejoin="round"/>'
        + "".join(
            f'<circle cx="{x}" cy="{y}" r="1.3" fill="{dress.trim}" stroke="{INK}" stroke-width=".5"/>'
            for x, y in ((39.5, 19), (47, 17), (53, 17), (60.5, 19))
        )
    )
    lace = (
        f'<path d="M40 54C45 59.5 55 59.5 60 54L62.5 58.5C56 66 44 66 37.5 58.5Z" fill="#fffdf6" stroke="{INK}" stroke-width=".8"/>'
        + "".join(
            f'<circle cx="{x}" cy="{y}" r="1.25" fill="{GOLD}" stroke="{INK}" stroke-width=".4"/>'
            for x, y in ((43.5, 58.8), (50, 61), (56.5, 58.8))
        )
    )
    flower = (
        f'<path d="M68 58C67 50 66.5 44 67.5 37" fill="none" stroke="#2f7a3f" stroke-width="1.3"/>'
        f'<path d="M67 48C71 47 72.5 44.5 72.5 42 69.5 42.5 67.5 44.5 67 48Z" fill="#2f7a3f" stroke="{INK}" stroke-width=".4"/>'
        + "".join(
            f'<circle cx="{x}" cy="{y}" r="2.7" fill="{dress.trim}" stroke="{INK}" stroke-width=".6"/>'
            for x, y in ((67.5, 30.6), (71, 33.2), (69.7, 37.2), (65.3, 37.2), (64, 33.2))
        )
        + f'<circle cx="67.5" cy="34.3" r="2.2" fill="{GOLD}" stroke="{INK}" stroke-width=".6"/>'
        f'<circle cx="67.6" cy="58.6" r="2.8" fill="{SKIN}" stroke="{INK}" stroke-width=".8"/>'
    )
    return hair + _head() + fringe + lace + crown + flower


def _jack(dress: Dress, suit: str) -> str:
    hair = "".join(
        f'<path d="M{x} 31C{x - 5 * s} 34 {x - 3.5 * s} 42 {x - 5 * s} 47.5 {x - 1 * s} 49.5 {x + 2.4 * s} 47 {x + 1.6 * s} 36Z" '
        f'fill="{dress.hair}" stroke="{INK}" stroke-width=".8"/>'
        for x, s in ((42, 1), (58, -1))
    )
    cap = (
        f'<path d="M37 31.5C36 22 42 18.5 51 18.5 60 18.5 64.5 22.5 63 31.5 55 27.6 45 27.6 37 31.5Z" fill="{dress.robe}" '
        f'stroke="{INK}" stroke-width=".9"/>'
        f'<path d="M36.6 32.4C45 28 55 28 63.4 32.4L63 28.8C55 25 45 25 37 28.8Z" fill="{GOLD}" stroke="{INK}" stroke-width=".7"/>'
        f'<path d="M58 26C60 18.5 66 15.5 72 17.5 71.5 23 66 27 59.5 27Z" fill="{dress.trim}" stroke="{INK}" stroke-width=".7"/>'
        f'<path d="M58.8 26.5C62 22.5 66 19.5 71 18" fill="none" stroke="{CREAM}" stroke-width=".8"/>'
    )
    collar = (
        f'<path d="M40.5 54.5 46.5 51.5 50 57 53.5 51.5 59.5 54.5 55.5 60.5 50 57.6 44.5 60.5Z" fill="{GOLD}" stroke="{INK}" '
        'stroke-width=".8" stroke-linejoin="round"/>'
    )
    staff = (
        f'<path d="M30.8 33V78" stroke="#8a5a2b" stroke-width="2.2"/>'
        f'<path d="M30.8 30.5 33.4 38 30.8 41.5 28.2 38Z" fill="#e8edf3" stroke="{INK}" stroke-width=".7"/>'
        f'<path d="M32 42C37.5 40.5 38.6 46 37.4 50 35.2 48 34 47.6 32 48Z" fill="#e8edf3" stroke="{INK}" stroke-width=".7"/>'
        f'<circle cx="31" cy="61.5" r="2.8" fill="{SKIN}" stroke="{INK}" stroke-width=".8"/>'
    )
    return hair + _head() + cap + collar + staff
