"""A slow and plain referee for Back Alley, written from the rules page only.

It shares no code with the library: cards are strings ("AC", "TD", "BB", "LB"), hands are lists.
Differential tests play the same packs and moves through this referee and the implementation.

Between two deals (`needs_deal`) all public facts are still those of the finished deal; `deal`
moves the dealer, the deal number and the size on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

Trick = list[tuple[int, str]]

RANKS = "23456789TJQKA"
SUITS = "CDHS"
BLOOPERS = ("LB", "BB")
PACK = [rank + suit for suit in SUITS for rank in RANKS] + list(BLOOPERS)  # BA-2
MATCH = [*range(13, 1, -1), *range(1, 14)]  # BA-3: 13, 12 .. 2, 1, 2 .. 13
MAX_PASS_OUTS = 8  # BA-9
BARRED = "BA-12 trump lead barred"


# --- Cards ------------------------------------------------------------------------------------


def strength(card: str) -> int:
    """Rank within one suit, higher is better (BA-2)."""
    if card in BLOOPERS:
        return len(RANKS) + BLOOPERS.index(card)
    return RANKS.index(card[0])


def suit_of(card: str, trump: str | None) -> str:
    """The suit a card belongs to; the Bloopers belong to the trump suit (BA-2)."""
    if card in BLOOPERS:
        assert trump is not None, "BA-5: no joker is in play in a deal without trump"
        return trump
    return card[1]


def is_trump(card: str, trump: str | None) -> bool:
    return trump is not None and suit_of(card, trump) == trump


def winner(trick: Trick, trump: str | None) -> int:
    """The seat that wins these cards: the highest trump, else the highest of the suit led."""
    trumps = [(strength(card), seat) for seat, card in trick if is_trump(card, trump)]  # BA-11
    led = suit_of(trick[0][1], trump)
    followed = [(strength(card), seat) for seat, card in trick if suit_of(card, trump) == led]
    return max(trumps or followed)[1]


# --- Legal plays: the cards, and the names of the rules that mattered ----------------------------


def lead_rule(hand: list[str], trump: str | None, earlier: list[Trick], own_board: bool) -> tuple[list[str], list[str]]:
    if trump is None:
        return hand, ["BA-15"]
    plain = [card for card in hand if not is_trump(card, trump)]
    if len(plain) == len(hand):
        return hand, []
    if any(is_trump(card, trump) for trick in earlier for _, card in trick):
        return hand, ["BA-12 broken"]
    if own_board:
        return hand, ["BA-12 own board"]
    if not plain:
        return hand, ["BA-12 only trumps"]
    return plain, [BARRED]


def follow_rule(hand: list[str], trump: str | None, trick: Trick) -> tuple[list[str], list[str]]:
    led = trick[0][1]
    same = [card for card in hand if suit_of(card, trump) == suit_of(led, trump)]
    if led in BLOOPERS:
        names = ["BA-13 Big Blooper led" if led == "BB" else "BA-13 Little Blooper led"]
        if not same:
            return hand, [*names, "BA-13 void"]
        card = max(same, key=strength) if led == "BB" else min(same, key=strength)
        return [card], names + ["BA-13 Big Blooper sole trump"] * (card == "BB")
    if not same:
        return hand, ["BA-11 void"]
    blooper = any(card in BLOOPERS for card in same)
    return same, ["BA-11 follow"] + ["BA-2 Blooper follows a trump"] * blooper


def play_rule(hand: list[str], trump: str | None, tricks: list[Trick], own_board: bool) -> tuple[list[str], list[str]]:
    """What this hand may play next after these tricks (the last one may be incomplete)."""
    if tricks and len(tricks[-1]) < 4:
        return follow_rule(hand, trump, tricks[-1])
    return lead_rule(hand, trump, tricks, own_board)


# --- Bids ---------------------------------------------------------------------------------------


def bid_value(bid: str) -> int:
    """The number of a bid that is not board (BA-6)."""
    return 0 if bid == "pass" else int(bid)


def first_leader(bids: list[tuple[int, str]]) -> tuple[int, str]:
    """Who leads to the first trick, and the branch of BA-10."""
    boards = [seat for seat, bid in bids if bid == "board"]
    if boards:
        return boards[-1], "BA-10 several boards" if len(boards) > 1 else "BA-10 board"
    highest = max(bid_value(bid) for _, bid in bids)
    seats = [seat for seat, bid in bids if bid_value(bid) == highest]
    return seats[0], "BA-10 tie" if len(seats) > 1 else "BA-10 number"


# --- The referee --------------------------------------------------------------------------------


class Referee:
    def __init__(self, options: Mapping[str, Any]) -> None:
        self.fired: Counter[str] = Counter()
        deals = options.get("deals")
        self.single = deals == "single"  # BA-19
        self.sizes: list[int] = []
        if not self.single:
            self.sizes = list(MATCH) if deals is None else [int(size) for size in deals]
        branch = "match" if deals is None else "single" if self.single else "list"
        self._fire(f"BA-19 {branch}")
        self.blooper_turned = str(options.get("blooper_turned", "no_trump"))
        assert self.blooper_turned in ("no_trump", "redraw")
        self.reward: str = options.get("reward", "points")
        assert self.reward in ("points", "win")
        self.needs_deal = True
        self.over = False
        self.reason = ""
        self.seat = 0
        self.rewards = [0.0] * 4
        self.scores = [0] * 4
        self.dealer = -1  # nobody yet
        self.size = 0
        self.deal_number = 0
        self.pass_outs = 0  # deals passed out in a row at this size (BA-9)
        self.size_done = False  # the next deal is of the next size, not the first or a re-deal
        self._clear()

    def _clear(self) -> None:
        self.hands: list[list[str]] = [[], [], [], []]
        self.turned = ""
        self.redrawn: list[str] = []  # BA-5: turned up before, and replaced
        self.laid_aside: tuple[int, str] | None = None
        self.trump: str | None = None
        self.bids: list[tuple[int, str]] = []
        self.levels = [0, 0]
        self.tricks: list[Trick] = []
        self.tricks_taken = [0, 0]

    def _fire(self, *names: str) -> None:
        """Count sub-keys ("BA-9 re-deal") once each and the rules they belong to once each."""
        self.fired.update(set(names) | {name.split()[0] for name in names})

    # --- Dealing

    def deal(self, pack: list[str], dealer: int, size: int) -> None:
        assert self.needs_deal and sorted(pack) == sorted(PACK)
        self._clear()
        self._next_dealer_and_size(dealer, size)
        for i in range(4 * self.size):  # BA-4: one at a time, from the dealer's left
            self.hands[(self.dealer + 1 + i) % 4].append(pack[i])
        rest = pack[4 * self.size :]
        if self.blooper_turned == "redraw":
            rest = self._redraw(rest)
        self.turned = rest[0]
        if self.turned in BLOOPERS and self.blooper_turned == "redraw":
            self._fire("BA-5 pack used up")
        elif self.turned in BLOOPERS:
            self._joker_turned(pack[4 * self.size + 1])
        else:
            self.trump = self.turned[1]
            self._fire("BA-4")
        self.seat = (self.dealer + 1) % 4  # BA-6
        self.needs_deal = False

    def _redraw(self, rest: list[str]) -> list[str]:
        """BA-5: what is left of the pack, from the card that stays turned up."""
        while rest[0] in BLOOPERS and len(rest) > 1:
            self.redrawn.append(rest[0])
            rest = rest[1:]
            self._fire("BA-5 redrawn" if len(self.redrawn) == 1 else "BA-5 redrawn twice")
        return rest

    def _next_dealer_and_size(self, dealer: int, size: int) -> None:
        if self.dealer < 0:
            self.dealer = dealer
            if self.single:
                self.sizes = [size]
        else:
            self.dealer = (self.dealer + 1) % 4  # BA-3, BA-9
        if self.size_done:
            self.deal_number += 1
            self.pass_outs = 0
            self.size_done = False
        self.size = self.sizes[self.deal_number]
        assert 1 <= self.size <= 13
        self._fire("BA-1", "BA-3")

    def _joker_turned(self, replacement: str) -> None:  # BA-5
        other = "LB" if self.turned == "BB" else "BB"
        for seat, hand in enumerate(self.hands):
            if other in hand:
                self.laid_aside = (seat, other)
                hand.remove(other)
                hand.append(replacement)
        self._fire("BA-5 joker laid aside" if self.laid_aside else "BA-5 nobody holds it")

    # --- Moves

    def has_board(self, seat: int) -> bool:
        return (seat, "board") in self.bids

    def legal(self) -> list[str]:
        if self.over or self.needs_deal:
            return []
        if len(self.bids) < 4:  # BA-6
            return ["pass", *(str(number) for number in range(1, self.size)), "board"]
        own_board = self.has_board(self.seat)
        return list(play_rule(self.hands[self.seat], self.trump, self.tricks, own_board)[0])

    def play(self, move: str) -> None:
        assert move in self.legal(), (move, self.legal())
        self.rewards = [0.0] * 4
        self._fire("BA-1")
        if len(self.bids) < 4:
            self._bid(move)
        else:
            self._card(move)

    def _bid(self, bid: str) -> None:
        self._fire("BA-6 one card" if self.size == 1 else "BA-6")
        self.bids.append((self.seat, bid))
        if bid == "board":  # BA-8: the level counts all boards of the deal so far
            level = sum(1 for _, each in self.bids if each == "board")
            team = self.seat % 2
            self._fire(f"BA-8 level {level}", *["BA-8 both partners"] * (self.levels[team] > 0))
            self.levels[team] = max(self.levels[team], level)
        self.seat = (self.seat + 1) % 4
        if len(self.bids) == 4:
            if all(each == "pass" for _, each in self.bids):
                self._passed_out()
            else:
                self.seat, branch = first_leader(self.bids)
                self._fire(branch)

    def _passed_out(self) -> None:  # BA-9
        self.pass_outs += 1
        if self.pass_outs < MAX_PASS_OUTS:
            self._fire("BA-9 re-deal")
            self.needs_deal = True
            return
        last = self.deal_number + 1 == len(self.sizes)
        self._fire("BA-9 eighth pass-out", *["BA-9 eighth pass-out at the last size"] * last)
        self._count([0, 0])

    def _card(self, card: str) -> None:
        hand = self.hands[self.seat]
        self._fire_play(card)
        hand.remove(card)
        if not self.tricks or len(self.tricks[-1]) == 4:
            self.tricks.append([])
        trick = self.tricks[-1]
        trick.append((self.seat, card))
        self.seat = (self.seat + 1) % 4
        if len(trick) == 4:
            self.seat = winner(trick, self.trump)  # BA-11: the winner leads next
            self._fire_trick(trick)
            self.tricks_taken[self.seat % 2] += 1
            if len(self.tricks) == self.size:  # BA-14
                self._fire("BA-14")
                self._count([self._team_points(0), self._team_points(1)])

    def _fire_play(self, card: str) -> None:
        own_board = self.has_board(self.seat)
        _, names = play_rule(self.hands[self.seat], self.trump, self.tricks, own_board)
        if names == [BARRED] and self.has_board((self.seat + 2) % 4):
            names = [*names, "BA-12 partner's board"]
        allows = names and names[0].startswith("BA-12") and names[0] != BARRED
        if names and (not allows or is_trump(card, self.trump)):  # a leave counts when it is used
            self._fire(*names)

    def _fire_trick(self, trick: Trick) -> None:
        best = dict(trick)[self.seat]
        if best in BLOOPERS:
            self._fire("BA-2 Blooper wins")
        if is_trump(best, self.trump) and not is_trump(trick[0][1], self.trump):
            self._fire("BA-11 trumped")

    # --- Scoring

    def _team_points(self, team: int) -> int:
        bids = [bid for seat, bid in self.bids if seat % 2 == team]
        taken = self.tricks_taken[team]
        if "board" in bids:  # BA-7, BA-17
            if any(bid not in ("pass", "board") for bid in bids):
                self._fire("BA-7 partner's number does not count")
            made = taken == self.size
            self._fire("BA-17 made" if made else "BA-17 failed")
            return (10 if made else -10) * self.size * self.levels[team]
        contract = sum(bid_value(bid) for bid in bids)  # BA-7
        self._fire("BA-7 more than the tricks" if contract > self.size else "BA-7")
        if contract == 0:  # BA-16
            self._fire("BA-16 zero")
            return taken
        self._fire("BA-16 made" if taken >= contract else "BA-16 failed")
        return 5 * contract + (taken - contract) if taken >= contract else -5 * contract

    def _count(self, points: list[int]) -> None:
        """Enter the points of this size (per team); go on to the next size or end the episode."""
        self.scores = [self.scores[seat] + points[seat % 2] for seat in range(4)]
        if self.reward == "points":
            self.rewards = [float(points[seat % 2] - points[1 - seat % 2]) for seat in range(4)]
        if self.deal_number + 1 < len(self.sizes):
            self.needs_deal = True
            self.size_done = True
            return
        self.over = True
        self.reason = "played"
        ahead = self.scores[0] - self.scores[1]  # BA-18
        self._fire("BA-18 win" if ahead else "BA-18 draw")
        if self.reward == "win" and ahead:
            self.rewards = [1.0 if (seat % 2 == 0) == (ahead > 0) else -1.0 for seat in range(4)]

    # --- What a player may know (BA-20)

    def worlds(self, seat: int) -> list[tuple[frozenset[str], ...]]:
        """All assignments of the current hands that are consistent with what `seat` may know."""
        self._fire("BA-20")
        seen = {self.turned, *self.redrawn, *self.hands[seat]}
        seen |= {card for trick in self.tricks for _, card in trick}
        seen |= {self.laid_aside[1]} if self.laid_aside else set()
        if self.turned in BLOOPERS:  # BA-5: nobody holds the other joker, wherever it is
            seen |= set(BLOOPERS)
        unseen = [card for card in PACK if card not in seen]
        candidates = [
            [frozenset(self.hands[seat])] if other == seat else list(self._possible(other, unseen))
            for other in range(4)
        ]
        found: list[tuple[frozenset[str], ...]] = [()]
        for hands in candidates:  # no card is in two hands; what is left over was not dealt
            found = [
                (*before, hand) for before in found for hand in hands if all(hand.isdisjoint(each) for each in before)
            ]
        return found

    def _possible(self, other: int, unseen: list[str]) -> Iterator[frozenset[str]]:
        """The hands from `unseen` with which every card `other` has played was legal.

        Nothing but the mover's own hand and public facts decides what is legal, so each hand is
        checked alone. (Any bid is legal with any hand, BA-6.)
        """
        for hand in combinations(unseen, len(self.hands[other])):
            if self._replays(other, list(hand)):
                yield frozenset(hand)

    def _replays(self, other: int, current: list[str]) -> bool:
        played = [card for trick in self.tricks for who, card in trick if who == other]
        hand = current + played  # as it was after BA-5, before the first trick
        for number, trick in enumerate(self.tricks):
            for place, (who, card) in enumerate(trick):
                if who != other:
                    continue
                before = self.tricks[:number] + ([trick[:place]] if place else [])
                if card not in play_rule(hand, self.trump, before, self.has_board(other))[0]:
                    return False
                hand.remove(card)
        return True


# --- The trivial player -------------------------------------------------------------------------


def trivial(referee: Referee) -> str:
    """The move of the page's fixed yardstick for the seat to move."""
    seat, trump = referee.seat, referee.trump
    if len(referee.bids) < 4:
        good = sum(1 for card in referee.hands[seat] if card in BLOOPERS or card[0] == "A")
        number = min(good, referee.size - 1)
        return str(number) if number else "pass"

    def order(card: str) -> tuple[bool, int, int]:
        suit = -1 if card in BLOOPERS else SUITS.index(card[1])
        return is_trump(card, trump), strength(card), suit

    legal = referee.legal()
    if not referee.tricks or len(referee.tricks[-1]) == 4:
        plain = [card for card in legal if not is_trump(card, trump)]
        return max(plain or legal, key=order)
    trick = referee.tricks[-1]
    winning = [card for card in legal if winner([*trick, (seat, card)], trump) == seat]
    return min(winning or legal, key=order)


def deal_from(referee: Referee, dealt: Mapping[str, Any], given: Mapping[str, Any], seat: int) -> None:
    """Deal what lies on a table: a custom deal of the rules page, complete and of one pack.

    What the test set itself (`given`) and the seat to move do not matter here: chance decides on
    nothing but the cards, the first dealer and the size of a single deal.
    """
    referee.deal(list(dealt["packs"][0]), dealt["dealer"], dealt.get("size", 0))
