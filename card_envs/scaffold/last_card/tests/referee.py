"""Last Card from the rules page only, slow and plain: cards are texts, hands and piles are lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

CARDS = [rank + suit for suit in "CDHS" for rank in "JQKA"]
PACK = [*CARDS, *CARDS]  # LC-1


class Referee:
    """One episode, which is one deal."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.reward = options.get("reward", "points")
        self.needs_deal = True
        self.over = False
        self.reason = ""
        self.seat = 0
        self.scores = [0, 0]
        self.rewards = [0.0, 0.0]
        self.hands: list[list[str]] = [[], []]
        self.pile: list[str] = []
        self.stock: list[str] = []  # the next card first
        self.moves: list[str] = []
        self.fired: Counter[str] = Counter()

    def deal(self, pack: list[str]) -> None:
        """Deal five cards to each seat and turn one up (LC-1)."""
        assert self.needs_deal and sorted(pack) == sorted(PACK)
        self.hands, self.pile, self.stock = [pack[:5], pack[5:10]], pack[10:11], pack[11:]
        self.needs_deal = False
        self.fired.update(["LC-1", "LC-2"])

    def legal(self) -> list[str]:
        """Return the cards that fit (LC-3), and `draw` (LC-4) or `pass` (LC-4, LC-5)."""
        if self.over or self.needs_deal:
            return []
        top = self.pile[-1]
        cards = [card for card in CARDS if card in self.hands[self.seat] and set(card) & set(top)]
        return [*cards, "draw" if self.stock and not self._has_drawn() else "pass"]

    def _has_drawn(self) -> bool:
        return self.moves[-1:] == ["draw"]

    def play(self, move: str) -> None:
        assert move in self.legal()
        self.rewards = [0.0, 0.0]
        hand, before = self.hands[self.seat], self.moves[-1:]
        self.moves.append(move)
        if move == "draw":
            hand.append(self.stock.pop(0))
            self.fired["LC-4"] += 1
            return
        if move == "pass":
            self.fired["LC-4 pass" if before == ["draw"] else "LC-5"] += 1
            if before == ["pass"] and self.moves[-3:-2] != ["draw"]:
                self._settle("passed")
        else:
            self.fired.update(["LC-3", "LC-3 suit" if move[1] == self.pile[-1][1] else "LC-3 rank"])
            self.fired["LC-4 play"] += before == ["draw"]
            hand.remove(move)
            self.pile.append(move)
            if not hand:
                self._settle("out")
        self.seat = 1 - self.seat

    def _settle(self, reason: str) -> None:
        self.over, self.reason = True, reason
        margin = len(self.hands[1]) - len(self.hands[0])
        self.scores = [max(margin, 0), max(-margin, 0)]
        self.fired.update(["LC-6", f"LC-6 {reason}", "LC-6 nobody wins" if margin == 0 else "LC-6 won"])
        if self.reward == "win":
            margin = (margin > 0) - (margin < 0)
        self.rewards = [float(margin), float(-margin)]


def deal_from(referee: Referee, dealt: Mapping[str, Any], given: Mapping[str, Any], seat: int) -> None:
    """Deal what was dealt at a table: nothing but the pack is random."""
    referee.deal(list(dealt["pack"]))


def trivial(referee: Referee) -> str:
    """Return the first card that fits, else `draw` or `pass`."""
    return referee.legal()[0]
