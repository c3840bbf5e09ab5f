"""Picture of Russian Bank: foundations in the middle, houses fanned beside or below them, one's own piles nearest."""

from __future__ import annotations

from typing import Any, NamedTuple

from card_envs.cards import ACE_LOW, SUIT_NAMES, SUITS, card_name
from card_envs.draw.picture import ACROSS, DOWN, Picture, fan_step
from card_envs.games.russian_bank.view import SEAT_NAMES

WASTE_SHOWN, RESERVE_ROOM = 5, 250


class Layout(NamedTuple):
    """Positions: corners of cards, and space for fans."""

    width: int
    height: int
    houses: tuple[tuple[float, float], ...]
    room: float  # for a house
    foundations: tuple[tuple[float, float], ...]
    rows: tuple[float, float]  # the opponent's and one's own
    reserve: float
    waste: float
    turned: float
    hand: float
    name: tuple[float, float]  # corner of the plate, from the row's
    name_size: tuple[float, float]


WIDE = Layout(
    width=1116,
    height=1016,
    houses=tuple((48 if house < 4 else 676, 194 + 157 * (house % 4)) for house in range(8)),
    room=392,
    foundations=tuple((452 + 112 * (pile % 2), 194 + 157 * (pile // 2)) for pile in range(8)),
    rows=(24, 846),
    reserve=26,
    waste=300,
    turned=564,
    hand=690,
    name=(864, 18),
    name_size=(228, 104),
)
TALL = Layout(
    width=920,
    height=1376,
    houses=tuple((20 + 113 * (house % 4) + 453 * (house // 4) - (1 if house > 3 else 0), 466) for house in range(8)),
    room=640,
    foundations=tuple((14 + 113.4 * pile, 284) for pile in range(8)),
    rows=(110, 1212),
    reserve=24,
    waste=296,
    turned=684,
    hand=800,
    name=(20, -90),
    name_size=(880, 64),
)


def draw(given: dict[str, Any], tall: bool) -> str:
    """Return a view as an SVG document."""
    at = TALL if tall else WIDE
    touched = {"turn": ("hand", "hand"), "discard": ("D", "waste"), "end": ("", "")}
    moves = {move: touched.get(move) or tuple(move.split("-")) for move in given["legal"]}
    picture = Picture("Russian Bank", at.width, at.height, moves, "F")
    for number, (x, y) in enumerate(at.foundations):
        _foundation(picture, x, y, SUITS[number // 2], given["foundations"][SUITS[number // 2]][number % 2])
    for number, cards in enumerate(given["houses"]):
        _house(picture, at, number, cards, tall)
    for row, player in enumerate((1 - given["seat"], given["seat"])):
        _player(picture, at, given, player, at.rows[row], is_own=row == 1)
    return picture.svg()


def _foundation(picture: Picture, x: float, y: float, suit: str, height: int) -> None:
    top = ACE_LOW[height - 1] + suit if height else ""
    with picture.place("F", f"foundation of {SUIT_NAMES[suit]}: {card_name(top) if top else 'empty'}"):
        if top:
            picture.card(top, x, y)
        else:
            picture.slot(x, y, suit)


def _house(picture: Picture, at: Layout, number: int, cards: list[str], tall: bool) -> None:
    """Draw a house, fanned down, or across; left of the foundations it grows towards them."""
    x, y = at.houses[number]
    with picture.place(f"H{number + 1}", f"house {number + 1}: {', '.join(map(card_name, cards)) or 'empty'}"):
        step = fan_step(len(cards), DOWN if tall else ACROSS, at.room, 140 if tall else 100)
        if not tall and number < 4:
            x += at.room - 100 - max(len(cards) - 1, 0) * step
        if not cards:
            picture.slot(x, y)
        picture.fan(cards, x, y, across=0 if tall else step, down=step if tall else 0)
        end = x + 100 + max(len(cards) - 1, 0) * step
        beside = (x + 50, y - 20) if tall else (x - 22 if number < 4 else end + 22, y + 70)
        picture.name(f"H{number + 1}", *beside)


def _player(picture: Picture, at: Layout, view: dict[str, Any], player: int, y: float, is_own: bool) -> None:
    """Draw a player's reserve, waste, turned card and hand."""
    seen = view["players"][player]
    reserve, waste, hand = seen["reserve"], seen["waste"], seen["hand"]
    names = view.get("names", SEAT_NAMES)
    name, moving = names[0 if is_own else 1], view["to_move"] == player
    whose = f"{name}'s" if "names" in view or not is_own else "your"
    number = reserve["face_down"] + len(reserve["cards"])
    top = f", {card_name(reserve['cards'][-1])} on top" if reserve["cards"] else ""
    with picture.place("R" if is_own else "OR", f"{whose} reserve: {number} cards{top}"):
        picture.pile(reserve["face_down"], at.reserve, y, player, reserve["cards"])
        step = fan_step(len(reserve["cards"]), ACROSS, RESERVE_ROOM, 100)
        picture.fan(reserve["cards"], at.reserve, y, across=step)
        if number:
            picture.badge(str(number), at.reserve + 24, y + 132)
    top = f", {card_name(waste[-1])} on top" if waste else ""
    with picture.place("waste" if is_own else "OW", f"{whose} waste: {len(waste)} cards{top}"):
        if not waste:
            picture.slot(at.waste, y)
        picture.fan(waste[-WASTE_SHOWN:], at.waste, y, across=ACROSS)
        if waste:
            picture.badge(str(len(waste)), at.waste + 24, y + 132)
    if view["turned"] and moving:
        with picture.place("D" if is_own else "turned", f"{whose} turned card: {card_name(view['turned'])}"):
            picture.card(view["turned"], at.turned, y)
    left = hand["size"] - bool(view["turned"] and moving)
    with picture.place("hand" if is_own else "other hand", f"{whose} hand: {left} cards"):
        picture.pile(left, at.hand, y, player)
        if left:
            picture.badge(str(left), at.hand + 24, y + 132)
    _name(picture, at, view, player, name, y, moving)


def _name(picture: Picture, at: Layout, view: dict[str, Any], player: int, name: str, y: float, moving: bool) -> None:
    """Draw a player's name, points in a match, and the cost of the cards left (RB-21)."""
    (x, down), (width, height) = at.name, at.name_size
    y += down
    cost = f"{view['players'][player]['penalty_points']} left"
    points = f"{view['scores'][player]} points" if view["options"].get("match") else ""
    with picture.place(f"seat {player}", f"{name}: {points or cost}"):
        picture.plate(x, y, width, height, bright=moving)
        if height > 80:
            picture.text(name, x + 18, y + height * 0.32, 28, "start", weight="bold")
            picture.text(points or cost, x + 18, y + height * 0.7, 26, "start")
        else:
            picture.text(name, x + 20, y + height / 2, 28, "start", weight="bold")
            picture.text(points or cost, x + width - 20, y + height / 2, 28, "end")
