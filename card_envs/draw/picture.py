"""A picture of a table: cards, piles, fans and captions at places, combined into one SVG document."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape

from card_envs.cards import card_name
from card_envs.draw._faces import HEIGHT, WIDTH, back, face, letters, plain_face
from card_envs.draw._lettering import stroke
from card_envs.draw._pips import COLOURS, PIPS

CREAM = "#f3ead2"
GOLD = "#f2c14e"  # around cards that win, and nothing else
TURN = "#a8f0c6"  # around the seat to move
DARK = "#0a2f22"
QUIET = "#d3e6dc"
FELT = "#1d6f4e"  # where it is brightest
MARGIN = 20
# Offsets between the cards of a fan, if there is space, at which rank and suit of each are visible.
ACROSS, DOWN = 26, 48
PENS = {"light": 10, "bold": 14}  # relative to a capital 100 high
# An id, where it is given or referred to; one pattern for all three would take four times as long.
NAMED = [re.compile(pattern) for pattern in (r' id="[^"]+', r'href="#[^"]+', r"url\(#[^)]+")]


class Picture:
    """A felt table of size `width` x `height`; a card is 100 x 140."""

    def __init__(
        self, title: str, width: int, height: int, moves: Mapping[str, tuple[str, str]], home: str = ""
    ) -> None:
        """Begin with an empty table.

        Args:
            title: a text for screen readers.
            width, height: size in units in which a card is 100 x 140.
            moves: the legal moves: source and target place of each; equal if a place is only touched, empty if there is
                nothing to touch. They become `data-moves` of the SVG.
            home: the place to which a double click sends a card, if it may go there: `data-home` of the SVG.
        """
        self.title, self.width, self.height, self.moves, self.home = title, width, height, moves, home
        self._parts: list[str] = []
        self._defined: dict[str, str] = {}  # by id

    @contextmanager
    def place(self, name: str, label: str) -> Iterator[None]:
        """Group everything drawn inside as a place of the game, with a label for screen readers."""
        escaped = escape(label).replace("\n", "&#10;")  # in an attribute, XML reads a line break as a space
        self._parts.append(f'<g data-place="{escape(name)}" role="img" aria-label="{escaped}">')
        yield
        self._parts.append("</g>")

    def card(self, card: str, x: float, y: float, size: float = 1, turn: float = 0) -> None:
        """Draw a card's face with its top left corner at (x, y); `turn` degrees around its centre."""
        self._use(f"card-{card}", face(card), x, y, size, turn, card_name(card))

    def plain_card(self, text: str, x: float, y: float, size: float = 1) -> None:
        """Draw a card with a text: see `plain_face`."""
        self._use(f"plain-{escape(text)}", plain_face(text), x, y, size, 0, "")

    def back(self, x: float, y: float, pack: int = 0, size: float = 1, turn: float = 0) -> None:
        """Draw a card's back."""
        self._use(f"back-{pack % 2}", back(pack), x, y, size, turn, "")

    def frame(self, x: float, y: float) -> None:
        """Draw the gold frame of a card that wins, which is drawn next, at (x, y)."""
        self._parts.append(f'<rect x="{x - 6:g}" y="{y - 6:g}" width="112" height="152" rx="13" fill="{GOLD}"/>')

    def slot(self, x: float, y: float, suit: str = "") -> None:
        """Draw an empty place for a card, optionally for one suit."""
        self._parts.append(
            f'<rect x="{x + 2:g}" y="{y + 2:g}" width="{WIDTH - 4}" height="{HEIGHT - 4}" rx="9" fill="{DARK}" '
            f'fill-opacity=".28" stroke="{CREAM}" stroke-opacity=".45" stroke-width="2.5" stroke-dasharray="9 7"/>'
        )
        if suit:
            self._parts.append(
                f'<path transform="translate({x + WIDTH / 2:g} {y + HEIGHT / 2:g}) scale(.46)" fill="{CREAM}" '
                f'fill-opacity=".4" d="{PIPS[suit]}"/>'
            )

    def fan(self, cards: Sequence[str], x: float, y: float, across: float = 0, down: float = 0) -> None:
        """Draw cards from the first at (x, y), each offset from the one below."""
        for number, card in enumerate(cards):
            self.card(card, x + number * across, y + number * down)

    def pile(self, size: int, x: float, y: float, pack: int = 0, cards: Sequence[str] = ()) -> None:
        """Draw a pile of `size` face-down cards, thicker if it has more, with these cards face up on it."""
        if size + len(cards) == 0:
            self.slot(x, y)
        for layer in range(min(4, (size + 7) // 8)):
            self.back(x - 2 * layer, y - 2 * layer, pack)
        if cards:
            self.card(cards[-1], x, y)

    def name(self, text: str, x: float, y: float) -> None:
        """Draw the notation's name of a place, centred on (x, y)."""
        self.text(text, x, y, 17, colour=QUIET)

    def badge(self, text: str, x: float, y: float) -> None:
        """Draw a short text on a dark plate centred on (x, y), such as a number of cards."""
        width = self.text_width(text, 20) + 22
        self._parts.append(
            f'<rect x="{x - width / 2:g}" y="{y - 18:g}" width="{width:g}" height="36" rx="18" fill="{DARK}" '
            f'stroke="{CREAM}" stroke-opacity=".7" stroke-width="1.5"/>'
        )
        self.text(text, x, y, 20, weight="bold")

    def text(
        self,
        text: str,
        x: float,
        y: float,
        height: float = 24,
        anchor: str = "middle",
        colour: str = CREAM,
        weight: str = "light",
    ) -> None:
        """Draw a caption with capitals of this height, centred on y; x is its `start`, `middle` or `end`."""
        left = x - {"start": 0, "middle": 0.5, "end": 1}[anchor] * self.text_width(text, height)
        pen = PENS[weight] * height / 100
        self._parts.append(letters(text, left, y - height / 2, height, colour, pen))

    @staticmethod
    def text_width(text: str, height: float) -> float:
        """Return the width of a caption."""
        return stroke(text)[0] * height / 100

    def suit(self, suit: str, x: float, y: float, size: float) -> None:
        """Draw a pip centred on (x, y), on paper, so that black ones are as visible as red ones."""
        self._parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{size * 0.78:g}" fill="#fffdf6"/>'
            f'<path transform="translate({x:g} {y:g}) scale({size / 100:g})" fill="{COLOURS[suit]}" d="{PIPS[suit]}"/>'
        )

    def plate(self, x: float, y: float, width: float, height: float, bright: bool = False) -> None:
        """Draw a dark plate for captions; a bright edge marks the seat to move."""
        edge, wide, clear = (TURN, 5, 1) if bright else (CREAM, 1.5, 0.35)
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="14" fill="{DARK}" fill-opacity=".62" '
            f'stroke="{edge}" stroke-opacity="{clear:g}" stroke-width="{wide:g}"/>'
        )

    def raw(self, svg: str) -> None:
        """Add any SVG."""
        self._parts.append(svg)

    def define(self, name: str, svg: str) -> None:
        """Define a group that `<use href="#name"/>` inserts.

        In the document, this and every other id ends with a digest of it: two pictures on one page share ids only if
        they are the same.
        """
        self._defined[name] = svg

    def svg(self) -> str:
        """Return the document."""
        groups = "".join(f'<g id="{name}">{shapes}</g>' for name, shapes in self._defined.items())
        moves = escape(json.dumps(self.moves, separators=(",", ":")))
        home = f' data-home="{escape(self.home)}"' if self.home else ""
        drawing = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" style="max-width:100%;height:auto" role="group" aria-label="{escape(self.title)}" '
            f'data-moves="{moves}"{home}>'
            f'<defs><radialGradient id="felt" cx="50%" cy="42%" r="75%"><stop offset="0" stop-color="{FELT}"/>'
            f'<stop offset="1" stop-color="#0f4a35"/></radialGradient>{groups}</defs>'
            f'<rect width="{self.width}" height="{self.height}" rx="22" fill="url(#felt)"/>'
            f"{''.join(self._parts)}</svg>\n"
        )
        ending = f"-{zlib.crc32(drawing.encode()):08x}"
        for pattern in NAMED:
            drawing = pattern.sub(lambda name: name[0] + ending, drawing)
        return drawing

    def _use(self, name: str, shapes: str, x: float, y: float, size: float, turn: float, label: str) -> None:
        self._defined[name] = shapes
        scaled = f" scale({size:g})" if size != 1 else ""
        turned = f" rotate({turn:g} {WIDTH / 2:g} {HEIGHT / 2:g})" if turn else ""
        named = f' data-card="{name[5:]}"' if label else ""
        self._parts.append(f'<use href="#{name}" transform="translate({x:g} {y:g}){scaled}{turned}"{named}/>')


def fan_step(number: int, step: float, room: float, card: float) -> float:
    """Return the offset between cards of a fan that fits into `room`; at most `step`."""
    return min(step, (room - card) / (number - 1)) if number > 1 else step
