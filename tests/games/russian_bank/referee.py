"""A slow, plain referee for Russian Bank, written from the game's rules page (RB-1 to RB-23).

Inside, a card copy is a string such as "AC0": rank, suit and the pack (player) it was dealt from.
Everything shown to the outside is the plain card "AC". Piles run from bottom to top, but in a hand
index 0 is the next card to be turned (or the turned card itself).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

RANKS = "A23456789TJQK"
SUITS = "CDHS"
FULL_PACK = {rank + suit for rank in RANKS for suit in SUITS}
STARTS = ("low_reserve", "high_reserve", "random", "player_0", "player_1")
REWARDS = ("points", "win", "penalty")
HOUSES = [f"H{number}" for number in range(1, 9)]
HOUSE_MOVE_CAP = 16  # RB-18
IDLE_TURNS = 200  # RB-20
WIN_BONUS = 30  # RB-21
MATCH_GAMES = 50  # RB-22


def rank_of(card: str) -> int:
    """0 for the ace to 12 for the king (RB-1)."""
    return RANKS.index(card[0])


def is_red(card: str) -> bool:
    return card[1] in "DH"


def fits_house(card: str, top: str) -> bool:
    """RB-8: down in rank, alternating colour."""
    return rank_of(card) == rank_of(top) - 1 and is_red(card) != is_red(top)


def fits_load(card: str, top: str) -> bool:
    """RB-9: the same suit, one rank higher or lower, no wrap."""
    return card[1] == top[1] and abs(rank_of(card) - rank_of(top)) == 1


def shown(piles: list[list[str]]) -> list[list[str]]:
    """The piles as plain cards, without the pack each copy came from."""
    return [[copy[:2] for copy in pile] for pile in piles]


class Referee:
    def __init__(self, options: Mapping[str, Any]) -> None:
        self.start = str(options.get("start", "low_reserve"))
        self.match = bool(options.get("match", False))
        self.reward = str(options.get("reward", "points"))
        assert self.start in STARTS and self.reward in REWARDS
        self.match_target = int(options.get("match_target", 150))
        self.reserve = int(options.get("reserve", 13))  # cards dealt to each
        self.fill_houses = str(options.get("fill_houses", "any"))
        assert self.reserve in (11, 12, 13) and self.fill_houses in ("any", "reserve")
        self.needs_deal = True
        self.over = False
        self.reason = ""
        self.game_reason = ""
        self.seat = 0  # once a game has ended: who made its last move
        self.rewards = [0.0, 0.0]
        self.scores = [0, 0]
        # In how many moves (or deals) each rule and each branch of it mattered.
        self.fired: Counter[str] = Counter()
        self.game_number = 0  # of the game in play: 1 after the first deal
        self._clear()

    def _clear(self) -> None:
        """An empty table."""
        self._reserves: list[list[str]] = [[], []]
        self._hands: list[list[str]] = [[], []]
        self._wastes: list[list[str]] = [[], []]
        self._houses: list[list[str]] = [[] for _ in range(8)]  # RB-3
        self._foundations: list[list[str]] = [[] for _ in range(8)]  # RB-3: CCDDHHSS
        self._public: set[str] = set()  # copies that have been face up: known for ever (RB-23)
        self._turns_of_hand = 0  # hand cards turned in this turn (RB-12)
        self._progress = False  # this turn had a foundation play or a new minimum (RB-20)
        self._lowest = [self.reserve, self.reserve]  # RB-20: the lowest reserve counts so far
        self.turned = False
        self.house_moves = 0
        self.stale = [0, 0]
        self.idle = 0

    # The public state.

    @property
    def reserves(self) -> list[list[str]]:
        return shown(self._reserves)

    @property
    def hands(self) -> list[list[str]]:
        """Index 0 is the next card to be turned, or the turned card."""
        return shown(self._hands)

    @property
    def wastes(self) -> list[list[str]]:
        return shown(self._wastes)

    @property
    def houses(self) -> list[list[str]]:
        return shown(self._houses)

    @property
    def foundations(self) -> list[list[str]]:
        """Two piles for each suit C, D, H, S; of two equal piles the first one grows."""
        return shown(self._foundations)

    def penalty(self, player: int) -> int:
        """RB-21: 2 for each reserve card, 1 for each card in hand and waste."""
        return 2 * len(self._reserves[player]) + self._hand_and_waste(player)

    def hidden(self, pack: int) -> tuple[set[str], list[tuple[str, int, int]]]:
        """RB-1, RB-23: the cards of a pack never seen face up, and the places where they lie."""
        cards: set[str] = set()
        places: list[tuple[str, int, int]] = []
        for name, piles in (("reserve", self._reserves), ("hand", self._hands)):
            for player, pile in enumerate(piles):
                for index, copy in enumerate(pile):
                    if copy not in self._public and copy[2] == str(pack):
                        assert player == pack  # RB-1: what nobody has seen is still its owner's
                        cards.add(copy[:2])
                        places.append((name, player, index))
        return cards, places

    # The deal.

    def deal(self, packs: list[list[str]], starts: int | None = None, coin: int = 0) -> None:
        """RB-2 and RB-4. `coin` is who starts where chance decides."""
        assert self.needs_deal and not self.over
        assert len(packs) == 2 and starts in (None, 0, 1) and coin in (0, 1)
        notes = {"RB-1", "RB-2", "RB-3"}
        self._clear()
        for player, pack in enumerate(packs):
            assert len(pack) == 52 and set(pack) == FULL_PACK  # RB-1
            copies = [f"{card}{player}" for card in pack]
            self._reserves[player] = copies[: self.reserve]
            for number, copy in enumerate(copies[self.reserve : self.reserve + 4]):
                self._houses[4 * player + number] = [copy]
            self._hands[player] = copies[self.reserve + 4 :]
        self.seat = self._starter(starts, coin, notes)
        self.needs_deal = False
        self.game_number += 1
        if self.game_number > 1:
            notes.add("RB-22 next game")
        self._look()
        self._count(notes)

    def _starter(self, starts: int | None, coin: int, notes: set[str]) -> int:
        """RB-4."""
        if starts is not None:
            notes.add("RB-4 custom deal")
            return starts
        if self.start in ("player_0", "player_1", "random"):
            notes.add(f"RB-4 {self.start}")
            return coin if self.start == "random" else int(self.start[-1])
        pairs = [("reserve", self._reserves[0][-1], self._reserves[1][-1])]
        for number in range(4):
            name = f"house {number + 1}"
            pairs.append((name, self._houses[number][-1], self._houses[number + 4][-1]))
        for name, mine, yours in pairs:
            if rank_of(mine) != rank_of(yours):
                notes.add(f"RB-4 {name}")
                notes.add(f"RB-4 {self.start}")
                lower = 0 if rank_of(mine) < rank_of(yours) else 1
                return lower if self.start == "low_reserve" else 1 - lower
        notes.add("RB-4 coin")
        return coin

    # The legal moves.

    def legal(self) -> list[str]:
        """The legal moves in text notation; none while no game is on."""
        return [] if self.over or self.needs_deal else self._moves(set())

    def _moves(self, notes: set[str]) -> list[str]:
        """The legal moves; the rules that mattered for them go into notes."""
        compulsory = self._compulsory(notes)
        if compulsory:  # RB-10: they come before every other move
            return compulsory
        moves = self._loads() + self._own_to_houses(notes) + self._between_houses(notes)
        return moves + self._turn_moves(notes)

    def _available(self) -> dict[str, str]:
        """RB-6: the available cards by their sources."""
        cards = {}
        if self._reserves[self.seat]:
            cards["R"] = self._reserves[self.seat][-1]
        if self.turned:
            cards["D"] = self._hands[self.seat][0]
        for name, house in zip(HOUSES, self._houses, strict=True):
            if house:
                cards[name] = house[-1]
        return cards

    def _foundation_for(self, card: str) -> int | None:
        """RB-7: the foundation that takes the card, the first if both do."""
        for index, pile in enumerate(self._foundations):
            if SUITS[index // 2] == card[1] and len(pile) == rank_of(card):
                return index
        return None

    def _fits_foundation(self, card: str) -> bool:
        return self._foundation_for(card) is not None

    def _compulsory(self, notes: set[str]) -> list[str]:
        """RB-10."""
        cards = self._available()
        fitting = [source for source, card in cards.items() if self._fits_foundation(card)]
        if "R" in fitting:
            notes.add("RB-10a")
            if len(fitting) > 1:
                notes.add("RB-10a before RB-10b")
            return ["R-F"]
        if fitting:
            notes.add("RB-10b")
            if len(fitting) > 1:
                notes.add("RB-10b choice")
        return [f"{source}-F" for source in fitting]

    def _loads(self) -> list[str]:
        """RB-9."""
        moves = []
        other = 1 - self.seat
        for source, card in self._available().items():
            for target, pile in (("OR", self._reserves[other]), ("OW", self._wastes[other])):
                if pile and fits_load(card, pile[-1]):
                    moves.append(f"{source}-{target}")
        return moves

    def _empty_houses(self) -> list[int]:
        return [index for index, house in enumerate(self._houses) if not house]

    def _may_fill(self, source: str, notes: set[str]) -> bool:
        """RB-8: may a card of this source go to an empty house?"""
        barred = self.fill_houses == "reserve" and bool(self._reserves[self.seat]) and source != "R"
        if barred and self._empty_houses():
            notes.add("RB-8 only the reserve fills")
        return not barred

    def _own_to_houses(self, notes: set[str]) -> list[str]:
        """RB-8 for the reserve top and the turned hand card."""
        moves = []
        own = {s: card for s, card in self._available().items() if s in ("R", "D")}
        for source, card in own.items():
            for index, house in enumerate(self._houses):
                offered = not house and self._is_offered(index, notes) and self._may_fill(source, notes)
                if offered or (house and fits_house(card, house[-1])):
                    moves.append(f"{source}-{HOUSES[index]}")
        return moves

    def _is_offered(self, index: int, notes: set[str]) -> bool:
        """RB-8: is this the lowest-numbered empty house?"""
        empty = self._empty_houses()
        if index in empty[1:]:
            notes.add("RB-8 higher empty house barred")
        return empty[:1] == [index]

    def _between_houses(self, notes: set[str]) -> list[str]:
        """RB-8 and RB-17, up to the cap of RB-18."""
        moves = [
            f"{HOUSES[source]}-{HOUSES[target]}"
            for source, house in enumerate(self._houses)
            for target in range(8)
            if source != target and house and self._may_move(source, target, notes)
        ]
        if moves and self.house_moves >= HOUSE_MOVE_CAP:
            notes.add("RB-18 cap")
            return []
        return moves

    def _may_move(self, source: int, target: int, notes: set[str]) -> bool:
        if self._houses[target]:
            return self._stack_size(source, target, notes) > 0
        if not self._is_offered(target, notes) or not self._may_fill(HOUSES[source], notes):
            return False
        if len(self._houses[source]) == 1:
            notes.add("RB-8 lone card barred")
            return False
        return True

    def _stack_size(self, source: int, target: int, notes: set[str]) -> int:
        """RB-17: how many cards move onto the top card of the target house; 0 if none may."""
        house, top = self._houses[source], self._houses[target][-1]
        assert all(fits_house(upper, lower) for lower, upper in pairwise(house))
        for size in range(1, len(house) + 1):
            if fits_house(house[-size], top):  # true for one size at most, as the ranks differ
                may_fill = self._may_fill(HOUSES[source], set())
                if size > 2 ** (len(self._empty_houses()) if may_fill else 0):
                    notes.add("RB-17 barred by size")
                    if not may_fill and size <= 2 ** len(self._empty_houses()):
                        notes.add("RB-17 empty houses closed")
                    return 0
                if any(self._fits_foundation(card) for card in house[-size:]):
                    notes.add("RB-17 barred by a foundation card")
                    return 0
                return size
        return 0

    def _hand_and_waste(self, player: int) -> int:
        return len(self._hands[player]) + len(self._wastes[player])

    def _turn_moves(self, notes: set[str]) -> list[str]:
        """turn (RB-11), discard (RB-13) and end (RB-15)."""
        if self.turned:
            return ["discard"]  # RB-13: whatever the houses
        house_empty = bool(self._empty_houses())
        if self._hand_and_waste(self.seat) == 0:
            if house_empty:
                notes.add("RB-15 barred by an empty house")
            return [] if house_empty else ["end"]
        if house_empty and self._reserves[self.seat]:
            notes.add("RB-11 gate")
            return []
        return ["turn"]

    # Playing a move.

    def play(self, move: str) -> None:
        notes: set[str] = set()
        assert not self.over and not self.needs_deal
        assert move in self._moves(notes), move
        lead = self._lead()
        if move == "turn":
            self._turn(notes)
        elif move == "discard":
            self._discard(notes)
        elif move == "end":
            notes.add("RB-15")
        else:
            source, target = move.split("-")
            self._play_card(source, target, notes)
        if move in ("turn", "discard", "end"):
            self.house_moves = 0  # RB-18
        self._look()
        gain = float(self._lead() - lead) if self.reward == "penalty" else 0.0
        self.rewards = [gain, 0.0 - gain]
        if self.penalty(self.seat) == 0:  # RB-5: no card in reserve, hand and waste
            self._win(move, notes)
        elif move in ("discard", "end"):
            self._end_turn(notes)
        self._count(notes)

    def _lead(self) -> int:
        """By how many penalty points (RB-21) player 0 is better off."""
        return self.penalty(1) - self.penalty(0)

    def _turn(self, notes: set[str]) -> None:
        """RB-11."""
        notes.add("RB-11")
        if self._empty_houses():
            notes.add("RB-11 empty house, empty reserve")
        if self._turns_of_hand:
            notes.add("RB-12 another turned")
        if not self._hands[self.seat]:  # RB-14: the oldest card, the bottom one, comes up first
            notes.add("RB-14")
            self._hands[self.seat] = self._wastes[self.seat]
            self._wastes[self.seat] = []
        self.turned = True
        self._turns_of_hand += 1

    def _discard(self, notes: set[str]) -> None:
        """RB-13."""
        notes.add("RB-13")
        if self._empty_houses() and self._reserves[self.seat]:
            notes.add("RB-13 gate ignored")
        self._wastes[self.seat].append(self._hands[self.seat].pop(0))
        self.turned = False

    def _play_card(self, source: str, target: str, notes: set[str]) -> None:
        """A move of one available card (RB-6), or of a stack (RB-17)."""
        if self.turned and source != "D":
            notes.add("RB-12 another card played")
        between_houses = source in HOUSES and target in HOUSES
        count = 1
        if between_houses and self._houses[HOUSES.index(target)]:
            count = self._stack_size(HOUSES.index(source), HOUSES.index(target), notes)
            if count > 1:
                notes.add(f"RB-17 stack k={len(self._empty_houses())} size={count}")
        copies = self._take(source, count, notes)
        self._target(target, copies[0], notes).extend(copies)
        self.house_moves = self.house_moves + 1 if between_houses else 0  # RB-18
        if source in ("R", "D"):
            if self.stale != [0, 0]:
                notes.add("RB-19 back to zero")
            self.stale = [0, 0]  # RB-19
        if target == "F":
            self._progress = True  # RB-20
        for player, reserve in enumerate(self._reserves):
            if len(reserve) < self._lowest[player]:  # RB-20: a new minimum
                self._lowest[player] = len(reserve)
                self._progress = True

    def _take(self, source: str, count: int, notes: set[str]) -> list[str]:
        """Takes the cards off their source, bottom first (RB-6, RB-17)."""
        if source == "D":
            notes.add("RB-6 hand")
            self.turned = False
            return [self._hands[self.seat].pop(0)]
        notes.add("RB-6 reserve" if source == "R" else "RB-6 house")
        pile = self._reserves[self.seat] if source == "R" else self._houses[HOUSES.index(source)]
        copies = pile[-count:]
        del pile[-count:]
        if source == "R" and not pile:
            notes.add("RB-16 emptied")
        elif source == "R":  # RB-16: the next card is face up now, if it was not known before
            notes.add("RB-16 known card" if pile[-1] in self._public else "RB-16 new card")
        return copies

    def _target(self, target: str, card: str, notes: set[str]) -> list[str]:
        """The pile the card goes to."""
        if target == "F":
            index = self._foundation_for(card)
            assert index is not None
            notes.add("RB-7 second pile" if index % 2 else "RB-7 first pile")
            return self._foundations[index]
        if target == "OR":
            notes.add("RB-9 reserve")
            return self._reserves[1 - self.seat]
        if target == "OW":
            notes.add("RB-9 waste")
            return self._wastes[1 - self.seat]
        house = self._houses[HOUSES.index(target)]
        notes.add("RB-8 onto a card" if house else "RB-8 empty house")
        return house

    def _look(self) -> None:
        """RB-23: whatever lies face up now is known from now on."""
        for pile in self._houses + self._foundations + self._wastes:
            self._public.update(pile)
        for reserve in self._reserves:
            self._public.update(reserve[-1:])
        if self.turned:
            self._public.add(self._hands[self.seat][0])

    # Ends.

    def _end_turn(self, notes: set[str]) -> None:
        """RB-19 and RB-20, then the other player's turn."""
        self.stale[self.seat] += 1
        self.idle = 0 if self._progress else self.idle + 1
        self._progress = False
        self._turns_of_hand = 0
        stale = all(self.stale[p] >= max(1, self._hand_and_waste(p)) for p in (0, 1))
        if stale:
            notes.add("RB-19")
        if self.idle >= IDLE_TURNS:
            notes.add("RB-19 and RB-20" if stale else "RB-20")
        if stale or self.idle >= IDLE_TURNS:
            self._draw_up("stalemate" if stale else "no_progress", notes)
        else:
            self.seat = 1 - self.seat

    def _win(self, move: str, notes: set[str]) -> None:
        """RB-5 and RB-21: the loser's penalty points plus 30."""
        source, target = move.split("-")
        notes.add("RB-5 by reserve" if source == "R" else "RB-5 by hand")
        ways = {"F": "foundation", "OR": "load", "OW": "load"}
        notes.add(f"RB-5 by {ways.get(target, 'house')}")
        notes.add("RB-21 win")
        points = [0, 0]
        points[self.seat] = self.penalty(1 - self.seat) + WIN_BONUS
        if self.reward == "penalty":
            self.rewards[self.seat] += WIN_BONUS
            self.rewards[1 - self.seat] -= WIN_BONUS
        self._score("win", points, notes)

    def _draw_up(self, reason: str, notes: set[str]) -> None:
        """RB-21 after a stalemate: the player with fewer penalty points scores the difference."""
        lead = self._lead()
        notes.add("RB-21 difference" if lead else "RB-21 equal")
        self._score(reason, [max(0, lead), max(0, -lead)], notes)

    def _score(self, game_reason: str, points: list[int], notes: set[str]) -> None:
        """Adds the points of a finished game; ends the episode or asks for a new deal (RB-22)."""
        self.game_reason = game_reason
        self.scores = [self.scores[0] + points[0], self.scores[1] + points[1]]
        if self.reward == "points":
            self.rewards = [float(points[0] - points[1]), float(points[1] - points[0])]
        if not self.match:
            self.over, self.reason = True, game_reason
        elif max(self.scores) >= self.match_target:
            notes.add("RB-22 enough points")
            self.over, self.reason = True, "match"
        elif self.game_number == MATCH_GAMES:
            drawn = self.scores[0] == self.scores[1]
            notes.update({"RB-22 50 games"} | ({"RB-22 draw"} if drawn else set()))
            self.over, self.reason = True, "match"
        else:
            self.needs_deal = True
        if self.over and self.reward == "win":
            sign = (self.scores[0] > self.scores[1]) - (self.scores[0] < self.scores[1])
            self.rewards = [float(sign), float(-sign)]

    def _count(self, notes: Iterable[str]) -> None:
        """Counts every noted branch, and the rule (or rules) it belongs to, once for this move."""
        rules = {f"RB-{part.rstrip('ab')}" for note in notes for part in rule_numbers(note)}
        self.fired.update(set(notes) | rules)


def rule_numbers(note: str) -> list[str]:
    """The numbers of the rules named in a note, such as "19" and "20" in "RB-19 and RB-20"."""
    return [word[3:] for word in note.split() if word.startswith("RB-")]


def trivial(referee: Referee) -> str:
    """The trivial player: the first legal move of its list."""
    wishes = ["R-F", "D-F"] + [f"{house}-F" for house in HOUSES]
    for source in ("R", "D"):
        wishes += [f"{source}-{target}" for target in ["OR", "OW", *HOUSES]]
    wishes += ["turn", "discard", "end"]
    legal = referee.legal()
    return next(wish for wish in wishes if wish in legal)


def deal_from(referee: Referee, dealt: Mapping[str, Any], given: Mapping[str, Any], seat: int) -> None:
    """Deal what lies on a table: a complete custom deal of the rules page.

    RB-4 decides who starts unless the test set it (`given`). Where chance decides, `seat`, who is to
    move at the table, shows how.
    """
    referee.deal([list(pack) for pack in dealt["packs"]], given.get("starts"), seat)
