"""The picture of a game that has no drawing of its own: a row for each key of a view, with its cards or its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from card_envs.cards import ACE_HIGH, SUIT_NAMES, card_name, deck
from card_envs.draw._faces import JOKER_COLOURS
from card_envs.draw._pips import PIPS
from card_envs.draw.picture import MARGIN, Picture, fan_step

FACES = {*deck(ACE_HIGH), *JOKER_COLOURS}
HIDDEN_KEYS = ("version", "game", "options", "seat", "to_move", "legal", "names")  # keys that every view has
LARGEST = 1.6  # scale of cards and captions, where there is room
LONGEST = 3  # letters of a text in a list that is drawn as a card
SIZES = {False: (1080, 850), True: (800, 1240)}  # width and height, wide and tall
CAPTION, LINE, CARDS = 24, 52, 206  # height of capitals, and of rows without and with cards


class ViewRow(NamedTuple):
    """The value of one key of a view: cards (None: face down) or a text."""

    label: str
    cards: list[str | None] | None
    text: str = ""


def draw_view(title: str, view: dict[str, Any], tall: bool) -> str:
    """Return a view as an SVG document; the hand lies at the bottom, where its legal cards can be touched."""
    width, height = SIZES[tall]
    rows = [row for key, value in view.items() if key not in HIDDEN_KEYS for row in _view_rows(key, value)]
    rows.sort(key=lambda row: row.label == "hand")
    held = {card for row in rows if row.label == "hand" for card in row.cards or ()}
    picture = Picture(
        title, width, height, {move: (move, move) if move in held else ("", "") for move in view["legal"]}
    )
    needed = sum(LINE if row.cards is None else CARDS for row in rows)
    size = min(LARGEST, (height - 2 * MARGIN) / max(needed, 1))
    y = float(MARGIN)
    for row in rows:
        _draw_row(picture, row, y, size)
        y += size * (LINE if row.cards is None else CARDS)
    return picture.svg()


def _view_rows(label: str, value: Any) -> Iterator[ViewRow]:
    """Yield what a value of a view holds; those within it follow with longer labels."""
    label = label.replace("_", " ")
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _view_rows(f"{label} {key}", part)
    elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        for number, part in enumerate(value):
            yield from _view_rows(f"{label} {number + 1}", part)
    elif isinstance(value, list) and all(
        part is None or (isinstance(part, str) and len(part) <= LONGEST) for part in value
    ):
        yield ViewRow(label, value)
    elif isinstance(value, str) and value in FACES:
        yield ViewRow(label, [value])
    elif value is not None:
        yield ViewRow(label, None, ", ".join(map(str, value)) if isinstance(value, list) else str(value))


def _draw_row(picture: Picture, row: ViewRow, y: float, size: float) -> None:
    if row.cards is None:
        with picture.place(row.label, f"{row.label}: {SUIT_NAMES.get(row.text, row.text)}"):
            _caption(picture, f"{row.label}:", MARGIN, y, size)
            x = MARGIN + picture.text_width(f"{row.label}: ", CAPTION * size)
            if row.text in PIPS:
                picture.suit(row.text, x + CAPTION, y + LINE * size / 2, 30 * size)
            else:
                _caption(picture, row.text, x, y, size)
        return
    _caption(picture, row.label, MARGIN, y, size)
    y += LINE * size
    step = fan_step(len(row.cards), 106 * size, picture.width - 2 * MARGIN, 100 * size)
    if row.label == "hand":
        for number, card in enumerate(row.cards):
            with picture.place(card or "", _card_label(card)):
                _draw_card(picture, card, MARGIN + number * step, y, size)
        return
    with picture.place(row.label, f"{row.label}: {', '.join(map(_card_label, row.cards)) or 'empty'}"):
        if not row.cards and size >= 1:
            picture.slot(MARGIN, y)
        for number, card in enumerate(row.cards):
            _draw_card(picture, card, MARGIN + number * step, y, size)


def _caption(picture: Picture, text: str, x: float, y: float, size: float) -> None:
    """Draw a text into the room on the right of x."""
    room = (picture.width - MARGIN - x) / max(picture.text_width(text, 1), 1)
    picture.text(text, x, y + LINE * size / 2, min(CAPTION * size, room), "start")


def _draw_card(picture: Picture, card: str | None, x: float, y: float, size: float) -> None:
    if card is None:
        picture.back(x, y, size=size)
    elif card in FACES:
        picture.card(card, x, y, size)
    else:
        picture.plain_card(card, x, y, size)


def _card_label(card: str | None) -> str:
    return "face down" if card is None else card_name(card) if card in FACES else card
