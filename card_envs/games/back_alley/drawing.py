"""Picture of Back Alley: the trick in the middle, the four seats around it, one's own hand below."""

from __future__ import annotations

from typing import Any, NamedTuple

from card_envs.cards import ACE_HIGH, SUIT_NAMES, card_name
from card_envs.draw.picture import CREAM, Picture, fan_step
from card_envs.games.back_alley.view import BIDS, SEAT_NAMES, strength

SMALL = 0.6  # scale of the backs of the others' hands
Point = tuple[float, float]


class Layout(NamedTuple):
    """Positions; tuples of four are by seat, clockwise from one's own."""

    width: int
    height: int
    plates: tuple[Point, Point, Point, Point]
    plate_size: Point
    backs: tuple[Point, Point, Point]  # of the others
    backs_room: float
    trick: tuple[Point, Point, Point, Point]
    turned: Point
    teams: tuple[Point, Point]
    team_size: Point
    about: Point  # the deal: middle of the first line
    hand: Point  # middle of the first row's upper edge
    hand_room: float
    row: int  # cards in a row of the hand


WIDE = Layout(
    width=1080,
    height=850,
    plates=((390, 610), (20, 262), (390, 20), (760, 262)),
    plate_size=(300, 64),
    backs=((20, 338), (390, 94), (760, 338)),
    backs_room=300,
    trick=((490, 428), (356, 314), (490, 200), (624, 314)),
    turned=(36, 506),
    teams=((20, 20), (800, 20)),
    team_size=(260, 124),
    about=(930, 540),
    hand=(540, 692),
    hand_room=1040,
    row=13,
)
TALL = Layout(
    width=800,
    height=1240,
    plates=((250, 842), (20, 440), (250, 150), (590, 440)),
    plate_size=(300, 64),
    backs=((20, 552), (270, 226), (590, 552)),
    backs_room=190,
    trick=((350, 680), (228, 508), (350, 336), (472, 508)),
    turned=(40, 712),
    teams=((20, 20), (410, 20)),
    team_size=(370, 110),
    about=(680, 760),
    hand=(400, 930),
    hand_room=760,
    row=7,
)


def draw(given: dict[str, Any], tall: bool) -> str:
    """Return a view as an SVG document."""
    at = TALL if tall else WIDE
    moves = {move: ("", "") if move in BIDS else (move, "trick") for move in given["legal"]}
    picture = Picture(f"Back Alley, deal {given['deal_number'] + 1}", at.width, at.height, moves)
    seat = given["seat"]
    bidders = [(given["dealer"] + 1 + k) % 4 for k in range(len(given["bids"]))]
    bids = dict(zip(bidders, given["bids"], strict=True))
    for k in range(4):
        _seat(picture, at, given, (seat + k) % 4, bids, tall)
    _teams(picture, at, given)
    _turned(picture, at, given)
    _trick(picture, at, given)
    _hand(picture, at, given)
    return picture.svg()


def _seat(picture: Picture, at: Layout, view: dict[str, Any], seat: int, bids: dict[int, str], tall: bool) -> None:
    """Draw a seat's name, bid and, for the others, the number of cards."""
    k = (seat - view["seat"]) % 4
    name = view.get("names", SEAT_NAMES)[k]
    (x, y), (width, height) = at.plates[k], at.plate_size
    narrow = tall and k in (1, 3)  # two lines beside the trick
    if narrow:
        width, height = at.backs_room, 100
    level, bid, number = view["board_levels"][seat], bids.get(seat, ""), view["hand_sizes"][seat]
    bid_text = (
        f"{'' if bid in ('', 'pass', 'board') else 'bid '}{bid}{f' x{level}' if bid == 'board' and level > 1 else ''}"
    )
    dealer = ", dealer" if view["dealer"] == seat else ""
    with picture.place(f"seat {seat}", f"{name}: {bid_text or 'no bid yet'}, {number} cards{dealer}"):
        picture.plate(x, y, width, height, bright=view["to_move"] == seat)
        line = y + (32 if narrow else height / 2)
        picture.text(name, x + 20, line, 26, "start", weight="bold")
        if dealer:
            picture.raw(f'<circle cx="{x + width - 8:g}" cy="{y - 1:g}" r="17" fill="{CREAM}"/>')
            picture.text("D", x + width - 8, y - 1, 17, colour="#0a2f22", weight="bold")
        if narrow:
            picture.text(bid_text, x + 20, y + 72, 26, "start")
        else:
            picture.text(bid_text, x + width - 20, line, 26, "end")
        if k:
            left, top = at.backs[k - 1]
            step = fan_step(number, 17, width, 100 * SMALL)
            left += (width - 100 * SMALL - max(number - 1, 0) * step) / 2
            for i in range(number):
                picture.back(left + i * step, top, size=SMALL)


def _teams(picture: Picture, at: Layout, view: dict[str, Any]) -> None:
    """Draw points, tricks and contract of both sides."""
    sides = ("seats 1, 3", "seats 2, 4") if "names" in view else ("we", "they")
    for number, (name, (x, y)) in enumerate(zip(sides, at.teams)):
        team = (view["seat"] + number) % 2
        width, height = at.team_size
        contract = f" of {view['contracts'][team]}" if len(view["bids"]) == 4 else ""
        points, taken = str(view["scores"][team]), f"took {view['tricks_taken'][team]}{contract}"
        with picture.place(f"team {team}", f"{name}: {points} points, {taken}"):
            picture.plate(x, y, width, height)
            picture.text(name, x + 20, y + height * 0.32, 28, "start", weight="bold")
            picture.text(points, x + width - 20, y + height * 0.32, 34, "end", weight="bold")
            picture.text(taken, x + 20, y + height * 0.72, 25, "start")


def _turned(picture: Picture, at: Layout, view: dict[str, Any]) -> None:
    """Draw the turned card, which determines the trumps, jokers laid aside or replaced, and the number of the deal."""
    (x, y), card, aside = at.turned, view["turned"], view["laid_aside"]
    trump = SUIT_NAMES[view["trump"]] + " are trumps" if view["trump"] else "no trumps"
    with picture.place("turned", f"{card_name(card)} was turned: {trump}"):
        picture.text("trump" if view["trump"] else "no trump", x, y - 26, 26, "start", weight="bold")
        picture.card(card, x, y)
    for number, joker in enumerate(view["redrawn"]):
        with picture.place(f"redrawn {number}", f"{card_name(joker)} was turned before and replaced"):
            picture.card(joker, x + 108, y + 22 - 44 * number, 0.7)
    if aside:
        name = view.get("names", SEAT_NAMES)[(aside["seat"] - view["seat"]) % 4]
        with picture.place("aside", f"{card_name(aside['card'])} was laid aside by {name}"):
            picture.card(aside["card"], x + 108, y + 22, 0.7)
    x, y = at.about
    picture.text(f"deal {view['deal_number'] + 1}", x, y, 26)
    picture.text(f"{view['size']} card{'s' * (view['size'] > 1)}", x, y + 48, 26)


def _trick(picture: Picture, at: Layout, view: dict[str, Any]) -> None:
    """Draw the trick on the table; the last one, paler, until the next begins."""
    (left, middle), (x, top), (right, _), (_, bottom) = at.trick[1], at.trick[2], at.trick[3], at.trick[0]
    trick: dict[str, Any] = view["tricks"][-1] if view["tricks"] else {"leader": 0, "cards": []}
    complete = len(trick["cards"]) == 4 and view["to_move"] is not None
    seats = [(trick["leader"] + k - view["seat"]) % 4 for k in range(4)]
    best = max(trick["cards"], default="", key=lambda card: strength(card, trick["cards"][0][1], view["turned"][1]))
    words = ", ".join(
        f"{view.get('names', SEAT_NAMES)[k]} {card_name(card)}{', the best' if card == best else ''}"
        for k, card in zip(seats, trick["cards"])
    )
    with picture.place("trick", f"{'last trick' if complete else 'trick'}: {words or 'not begun'}"):
        # Drop target for playing a card.
        picture.raw(
            f'<rect x="{left}" y="{top}" width="{right + 100 - left}" height="{bottom + 140 - top}" fill-opacity="0"/>'
            f'<g opacity="{0.55 if complete else 1}">'
        )
        for k, card in zip(seats, trick["cards"]):
            across, down = at.trick[k]
            if card == best:
                picture.frame(across, down)
            picture.card(card, across, down)
        picture.raw("</g>")
        if complete:
            picture.text("last trick", x + 50, middle + 70, 24)


def _hand(picture: Picture, at: Layout, view: dict[str, Any]) -> None:
    """Draw one's own cards: trumps first, then the suits in alternating colours."""
    trump = view["trump"] or ""
    suits = "SHCD"[(start := "SHCD".find(trump)) :] + "SHCD"[:start] if trump else "SHCD"

    def order(card: str) -> tuple[int, int]:
        if card in ("BB", "LB"):
            return (-1, card == "LB")
        return (suits.index(card[1]), -ACE_HIGH.index(card[0]))

    cards = sorted(view["hand"], key=order)
    x, y = at.hand
    for start in range(0, len(cards), at.row):
        row = cards[start : start + at.row]
        step = fan_step(len(row), 106, at.hand_room, 100)
        left = x - (100 + (len(row) - 1) * step) / 2
        for i, card in enumerate(row):
            is_trump = card[1] == trump or card in ("BB", "LB")
            with picture.place(card, card_name(card) + (", a trump" if is_trump else "")):
                picture.card(card, left + i * step, y + start // at.row * 152)
