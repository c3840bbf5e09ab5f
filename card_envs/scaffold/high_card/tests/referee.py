"""High Card from the rules page only, slow and plain: cards are texts, hands are lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

PACK = [str(number) for number in range(1, 13)]  # HC-1


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
        self.played: list[str] = []  # in order
        self.fired: Counter[str] = Counter()

    def deal(self, pack: list[str]) -> None:
        """Deal three cards to seat 0 and three to seat 1; the others stay aside (HC-1)."""
        assert self.needs_deal and sorted(pack) == sorted(PACK)
        self.hands = [pack[:3], pack[3:6]]
        self.needs_deal = False
        self.fired.update(["HC-1", "HC-2"])

    def legal(self) -> list[str]:
        """Return the cards in hand: any may be played (HC-3)."""
        return [] if self.over or self.needs_deal else list(self.hands[self.seat])

    def play(self, move: str) -> None:
        assert move in self.legal()
        self.rewards = [0.0, 0.0]
        self.hands[self.seat].remove(move)
        self.played.append(move)
        self.fired["HC-3"] += 1
        if len(self.played) % 2 == 1:
            self.seat = 1 - self.seat
            return
        led, follower = self.played[-2], self.seat
        won = follower if int(move) > int(led) else 1 - follower
        self.fired.update(["HC-4", "HC-4 leader wins" if won != follower else "HC-4 other wins", "HC-6"])
        self.scores[won] += 1
        self.seat = won
        if self.reward == "points":
            self._pay(won)
        if len(self.played) == 6:
            self.over, self.reason = True, "played"
            self.fired["HC-5"] += 1
            if self.reward == "win":
                self._pay(0 if self.scores[0] > self.scores[1] else 1)

    def _pay(self, winner: int) -> None:
        self.rewards[winner], self.rewards[1 - winner] = 1.0, -1.0


def deal_from(referee: Referee, dealt: Mapping[str, Any], given: Mapping[str, Any], seat: int) -> None:
    """Deal what was dealt at a table: nothing but the pack is random."""
    referee.deal(list(dealt["pack"]))


def trivial(referee: Referee) -> str:
    """Return the highest card."""
    return max(referee.legal(), key=int)
