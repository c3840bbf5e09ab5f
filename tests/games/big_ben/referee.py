"""A slow, plain referee for Big Ben, written from the rules page alone (rules BB-1 to BB-13).

Cards are strings such as "AC" and "TD". Every list runs from the card that was there first:
the top card of a pile, of the waste or of a foundation is its last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

RANKS = "A23456789TJQK"
SUITS = "CDHS"
PILES = 12
PILE_CARDS = 3
STARTING_CARDS = 36
CARDS_TO_PLACE = 92
MAX_HOPS = 4

# BB-1: for each hour the base card and the card that completes the foundation.
HOURS: dict[int, tuple[str, str]] = {
    1: ("6C", "AC"),
    2: ("7H", "2H"),
    3: ("8S", "3S"),
    4: ("9D", "4D"),
    5: ("TC", "5C"),
    6: ("JH", "6H"),
    7: ("QS", "7S"),
    8: ("KD", "8D"),
    9: ("2C", "9C"),
    10: ("3H", "TH"),
    11: ("4S", "JS"),
    12: ("5D", "QD"),
}

# BB-2: clockwise from T12.
CLOCKWISE = ["T12", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11"]


def full_pack() -> list[str]:
    """The 92 cards of BB-2, sorted: two packs less the twelve base cards."""
    cards = [rank + suit for rank in RANKS for suit in SUITS] * 2
    for base, _ in HOURS.values():
        cards.remove(base)
    return sorted(cards)


def above(card: str) -> str:
    """The next higher card of the suit; above the king comes the ace (BB-4, BB-5)."""
    return RANKS[(RANKS.index(card[0]) + 1) % len(RANKS)] + card[1]


class Referee:
    """One game: the cards, the legal moves, and what a move does."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Start a game without cards; other options than those read here are ignored."""
        self.fill_order = str(options.get("fill_order", "rounds"))
        self.waste_deal = str(options.get("waste_deal", "always"))
        self.reward = str(options.get("reward", "win"))
        assert self.fill_order in ("rounds", "pile_by_pile")
        assert self.waste_deal in ("always", "when_stuck")
        assert self.reward in ("win", "cards")
        self.waste_to = str(options.get("waste_to", "anywhere"))
        self.build_on = str(options.get("build_on", "full_piles"))
        self.redeals = int(options.get("redeals", 0))
        assert self.waste_to in ("anywhere", "foundations") and self.build_on in ("full_piles", "any_pile")
        assert self.redeals in (0, 1)
        self.redealt = 0  # BB-9: how often the waste was turned over
        self.needs_deal = True
        self.over = False
        self.reason = ""
        self.seat = 0
        self.rewards = [0.0]
        self.scores = [0]
        self.fired: Counter[str] = Counter()
        self.piles: dict[str, list[str]] = {name: [] for name in CLOCKWISE}
        self.waste: list[str] = []
        self.stock: list[str] = []  # index 0 is dealt next
        self.foundations: dict[int, list[str]] = {hour: [HOURS[hour][0]] for hour in sorted(HOURS)}
        self.hops = 0  # BB-10: in a row, up to now
        self._legal: list[str] = []

    def deal(self, pack: list[str]) -> None:
        """Lay out the game from the 92 cards in dealing order."""
        assert self.needs_deal
        assert sorted(pack) == full_pack()
        self.needs_deal = False
        self._fire("BB-1")
        self._fire("BB-2")
        # BB-2: three rounds of one card to each pile, clockwise from T12; the rest is the stock.
        for index, card in enumerate(pack[:STARTING_CARDS]):
            self.piles[CLOCKWISE[index % PILES]].append(card)
        self.stock = list(pack[STARTING_CARDS:])
        self._settle()

    def legal(self) -> list[str]:
        """The legal moves in text notation, each once."""
        return list(self._legal)

    def play(self, move: str) -> None:
        """Carry out a legal move."""
        assert move in self._legal, move
        self._count_hops(move)
        placed = 0
        if move == "deal":
            self._deal_cards()
        else:
            source, target = move.split("-")
            card = self._take(source)
            if target == "F":
                self._place(card)
                placed = 1
            else:
                self._build(card, target)
            self._fire_source(source, target)
        self._settle()
        self._pay(placed)

    # Questions about the position.

    def top(self, place: str) -> str:
        """The top card of the waste "W" or of a pile, "" if it has none."""
        cards = self.waste if place == "W" else self.piles[place]
        return cards[-1] if cards else ""

    def gaps(self) -> int:
        """BB-7: a pile with n < 3 cards has 3 - n gaps."""
        return sum(max(0, PILE_CARDS - len(cards)) for cards in self.piles.values())

    def complete(self, hour: int) -> bool:
        """BB-4: whether a foundation shows its hour's rank."""
        return self.foundations[hour][-1] == HOURS[hour][1]

    def to_come(self, hour: int) -> int:
        """How many cards a foundation still takes."""
        card, count = self.foundations[hour][-1], 0
        while card != HOURS[hour][1]:
            card, count = above(card), count + 1
        return count

    def takers(self, card: str) -> list[int]:
        """BB-4: the hours whose foundations take the card now."""
        return [
            hour for hour, cards in self.foundations.items() if not self.complete(hour) and above(cards[-1]) == card
        ]

    def is_hop(self, source: str, target: str) -> bool:
        """BB-10: a pile's top card lies on a copy of the card it is moved to; never from W."""
        if source == "W" or target == "F":
            return False
        cards = self.piles[source]
        return len(cards) > 1 and cards[-2] == self.top(target)

    def unseen(self) -> list[str]:
        """BB-13: the cards in the stock, sorted, worked out from the face-up cards alone."""
        cards = full_pack()
        for pile in [*self.piles.values(), self.waste, *(f[1:] for f in self.foundations.values())]:
            for card in pile:
                cards.remove(card)
        return cards

    # The legal moves. They are worked out once for each position, so that `fired` is exact.

    def _settle(self) -> None:
        """Work out the legal moves of a new position and whether the game is over."""
        assert self.unseen() == sorted(self.stock)
        self._fire("BB-13")
        self.scores = [sum(len(cards) - 1 for cards in self.foundations.values())]
        self._legal = self._foundation_moves() + self._pile_moves()
        if self._may_deal():
            self._legal.append("deal")
        if all(self.complete(hour) for hour in self.foundations):  # BB-11
            assert self.scores == [CARDS_TO_PLACE] and not self._legal
            self._finish("won")
        elif not self._legal:  # BB-11
            self._finish("lost")

    def _finish(self, reason: str) -> None:
        self.over = True
        self.reason = reason
        self._fire("BB-11", reason)
        if reason == "lost" and self.hops == MAX_HOPS:
            self._fire("BB-11", "lost at the cap")

    def _foundation_moves(self) -> list[str]:
        # BB-3, BB-4, BB-9: the top card of any pile, however short, or of the waste.
        return [f"{place}-F" for place in [*CLOCKWISE, "W"] if self.takers(self.top(place))]

    def _pile_moves(self) -> list[str]:
        # BB-3, BB-5, BB-9: onto piles only, and there only where BB-5 allows it.
        if any(not cards for cards in self.piles.values()):
            self._fire("BB-5", "empty pile barred")
        return [
            f"{source}-{target}"
            for source in ["W", *CLOCKWISE]
            for target in CLOCKWISE
            if source != target and self._may_build(source, target) and self._may_hop(source, target)
        ]

    def _may_build(self, source: str, target: str) -> bool:
        """BB-5: down in suit, king on ace, on a pile of at least three cards."""
        if not self.top(source) or above(self.top(source)) != self.top(target):
            return False
        if len(self.piles[target]) < PILE_CARDS and self.build_on == "full_piles":
            self._fire("BB-9" if source == "W" else "BB-5", "short pile barred")
            return False
        if source == "W" and self.waste_to == "foundations":
            self._fire("BB-9", "barred from piles")
            return False
        return True

    def _may_hop(self, source: str, target: str) -> bool:
        """BB-10: false only for a hop after four hops in a row."""
        if self.hops < MAX_HOPS:
            return True
        if self.is_hop(source, target):
            self._fire("BB-10", "capped")
            return False
        self._fire("BB-10", "waste at the cap" if source == "W" else "pile at the cap")
        if source == "W" and self.waste[-2:-1] == [self.top(target)]:
            self._fire("BB-10", "waste like a hop at the cap")
        return True

    def _may_deal(self) -> bool:
        """Whether `deal` is legal; the other legal moves are known by now."""
        if not self.stock:
            if self.waste and self.redealt < self.redeals:  # BB-9
                return True
            if self.gaps():
                self._fire("BB-7", "gaps but no stock")
            elif self.waste:
                self._fire("BB-9", "no second redeal" if self.redeals else "no redeal")
            return False
        if self.gaps():  # BB-7: at any time
            return True
        if self.waste_deal == "always" or not self._legal:  # BB-8
            return True
        self._fire("BB-8", "when_stuck barred")
        if all(self.is_hop(*move.split("-")) for move in self._legal):
            self._fire("BB-8", "when_stuck barred by hops alone")
        return False

    # What the moves do.

    def _count_hops(self, move: str) -> None:
        """BB-10: a hop counts one more, any other move starts afresh."""
        if move != "deal" and self.is_hop(*move.split("-")):
            self.hops += 1
            self._fire("BB-10", "hop")
            return
        if self.hops:
            self._fire("BB-10", "reset by a deal" if move == "deal" else "reset")
        if self.hops == MAX_HOPS:
            self._fire("BB-10", "reset at the cap")
        self.hops = 0

    def _take(self, source: str) -> str:
        return self.waste.pop() if source == "W" else self.piles[source].pop()

    def _place(self, card: str) -> None:
        """Put a card on a foundation (BB-4, BB-6)."""
        hours = self.takers(card)
        # BB-6: the most cards to come. Foundations that take the same card show the same rank;
        # no two of a suit end on the same rank, so there is never a tie.
        hour = max(hours, key=self.to_come)
        if len(hours) > 1:
            assert len({self.to_come(one) for one in hours}) == len(hours)
            self._fire("BB-6")
        self.foundations[hour].append(card)
        self._fire("BB-4")
        if card[0] == "A":
            self._fire("BB-4", "wrap king to ace")
        if self.complete(hour):
            self._fire("BB-4", "complete")

    def _build(self, card: str, target: str) -> None:
        """Put a card on a pile (BB-5)."""
        self._fire("BB-5")
        if card[0] == "K":
            self._fire("BB-5", "wrap")
        if len(self.piles[target]) < PILE_CARDS:
            self._fire("BB-5", "short pile built on")
        self.piles[target].append(card)

    def _fire_source(self, source: str, target: str) -> None:
        self._fire("BB-3")
        if source == "W":
            self._fire("BB-9", "foundation" if target == "F" else "pile")
        elif len(self.piles[source]) < PILE_CARDS - 1:
            self._fire("BB-5", "short pile played from")

    def _deal_cards(self) -> None:
        """`deal` turns the waste over (BB-9), fills the gaps if there are any (BB-7), or deals to the waste (BB-8)."""
        if not self.stock:
            self._fire("BB-9", "redealt with gaps" if self.gaps() else "redealt")
            self.stock, self.waste = self.waste, []
            self.redealt += 1
            return
        if self.gaps():
            self._fill_gaps()
            return
        self._fire("BB-8", "always" if self.waste_deal == "always" else "when_stuck dealt")
        if len(self._legal) > 1:
            self._fire("BB-8", "always with other moves")
        self.waste.append(self.stock.pop(0))

    def _fill_gaps(self) -> None:
        rounds, pile_by_pile = self._gaps_in_rounds(), self._gaps_pile_by_pile()
        order = rounds if self.fill_order == "rounds" else pile_by_pile
        dealt = min(len(order), len(self.stock))
        self._fire("BB-7", self.fill_order)
        if rounds[:dealt] != pile_by_pile[:dealt]:
            self._fire("BB-7", f"{self.fill_order} differs")
        if len(set(order[:dealt])) < dealt:
            self._fire("BB-7", "several rounds" if order is rounds else "several to a pile")
        if dealt < len(order):
            self._fire("BB-7", "short stock")
        for name in order[:dealt]:
            self.piles[name].append(self.stock.pop(0))

    def _gaps_in_rounds(self) -> list[str]:
        """BB-7: in each round one card to every pile that still has fewer than three."""
        sizes = {name: len(self.piles[name]) for name in CLOCKWISE}
        order: list[str] = []
        while min(sizes.values()) < PILE_CARDS:
            for name in CLOCKWISE:
                if sizes[name] < PILE_CARDS:
                    sizes[name] += 1
                    order.append(name)
        return order

    def _gaps_pile_by_pile(self) -> list[str]:
        """BB-7: each pile is filled to three before the next."""
        order: list[str] = []
        for name in CLOCKWISE:
            order += [name] * (PILE_CARDS - len(self.piles[name]))
        return order

    def _pay(self, placed: int) -> None:
        """BB-12: what the last move earned."""
        self._fire("BB-12", self.reward)
        if self.reward == "win":
            self.rewards = [1.0 if self.reason == "won" else 0.0]
        else:
            self.rewards = [placed / CARDS_TO_PLACE]

    def _fire(self, rule: str, branch: str = "") -> None:
        self.fired[rule] += 1
        if branch:
            self.fired[f"{rule} {branch}"] += 1


def trivial(referee: Referee) -> str:
    """The move of the trivial player: the first legal one of the list on the rules page."""
    between = [f"{a}-{b}" for a in CLOCKWISE for b in CLOCKWISE if a != b]
    hops = [move for move in between if referee.is_hop(*move.split("-"))]
    wishes = [f"{place}-F" for place in [*CLOCKWISE, "W"]]
    wishes += [f"W-{target}" for target in CLOCKWISE]
    wishes += [move for move in between if move not in hops]
    wishes += ["deal", *hops]
    legal = referee.legal()
    return next(move for move in wishes if move in legal)


def deal_from(referee: Referee, dealt: Mapping[str, Any], given: Mapping[str, Any], seat: int) -> None:
    """Lay out what lies on a table: a complete custom deal of the rules page.

    What the test set itself (`given`) and the seat to move do not matter here.
    """
    referee.deal(list(dealt["pack"]))
