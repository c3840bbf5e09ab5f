"""What the differential test needs to know of Big Ben: options, packs, ways to play, public facts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.games.big_ben.referee import HOURS, RANKS, Referee, full_pack

OPTIONS: list[dict[str, Any]] = [
    {"fill_order": fill_order, "waste_deal": waste_deal, "reward": reward}
    for reward in ("win", "cards")
    for waste_deal in ("always", "when_stuck")
    for fill_order in ("rounds", "pile_by_pile")
]
OPTIONS[2:2] = [
    {"waste_to": "foundations", "redeals": 1},
    {"redeals": 1, "build_on": "any_pile", "fill_order": "pile_by_pile", "waste_deal": "when_stuck"},
]
RARE = {"waste_to", "redeals", "build_on"}
EPISODES = {"random": 1250, "greedy": 500}
SHORT_EPISODES = {"random": 24, "greedy": 24}
GOLDEN = {0: "79044433d7f8fb4b"}
FROZEN_PRIORS = ("ntuple",)
COUNTING: set[str] = set()

BRANCHES = {
    *(f"BB-{number}" for number in range(1, 14)),
    "BB-4 wrap king to ace", "BB-4 complete",
    "BB-5 empty pile barred", "BB-5 short pile barred", "BB-5 short pile played from", "BB-5 wrap",
    "BB-5 short pile built on",
    "BB-7 rounds", "BB-7 rounds differs", "BB-7 several rounds",
    "BB-7 pile_by_pile", "BB-7 pile_by_pile differs", "BB-7 several to a pile",
    "BB-7 short stock", "BB-7 gaps but no stock",
    "BB-8 always", "BB-8 always with other moves",
    "BB-8 when_stuck dealt", "BB-8 when_stuck barred", "BB-8 when_stuck barred by hops alone",
    "BB-9 foundation", "BB-9 pile", "BB-9 short pile barred", "BB-9 no redeal",
    "BB-9 barred from piles", "BB-9 redealt", "BB-9 redealt with gaps", "BB-9 no second redeal",
    "BB-10 hop", "BB-10 capped", "BB-10 pile at the cap", "BB-10 waste at the cap",
    "BB-10 waste like a hop at the cap", "BB-10 reset", "BB-10 reset by a deal", "BB-10 reset at the cap",
    "BB-11 won", "BB-11 lost", "BB-11 lost at the cap",
    "BB-12 win", "BB-12 cards",
}  # fmt: skip
ELSEWHERE = {"BB-10 waste like a hop at the cap"}  # takes a hand-made position: see test_rules.py


def _patient(referee: Referee, move: str) -> float:
    return 0.02 if move == "deal" else 1


def _hopping(referee: Referee, move: str) -> float:
    return 30 if move != "deal" and referee.is_hop(*move.split("-")) else 0.1 if move == "deal" else 1


def _building(referee: Referee, move: str) -> float:
    return 0.05 if move.endswith("-F") else 1


def _hasty(referee: Referee, move: str) -> float:
    return 8 if move == "deal" else 1


def _thrifty(referee: Referee, move: str) -> float:
    if move == "deal":
        return 0.2
    return 40 if move.endswith("-F") else 6 if move[0] == "W" else 0.02 if referee.is_hop(*move.split("-")) else 1


# How likely a random player is to choose a move, compared with others.
STYLES: dict[str, Callable[[Referee, str], float]] = {
    "even": lambda referee, move: 1,
    "patient": _patient,
    "hopping": _hopping,
    "building": _building,
    "hasty": _hasty,
    "thrifty": _thrifty,
}
STEADY: set[str] = set()


def _steps(card: str) -> int:
    """How soon a card is wanted: after how many others, or sooner on the other foundations of its suit."""
    bases = [base for base, _ in HOURS.values() if base[1] == card[1]]
    return min((RANKS.index(card[0]) - RANKS.index(base[0])) % 13 for base in bases)


STEPS = {card: _steps(card) for card in full_pack()}


def rig(rng: Random, referee: Referee, style: str) -> dict[str, Any]:
    """A custom deal, sometimes in the order the foundations want, or the reverse; empty: the table deals itself."""
    kind = rng.random()
    if kind < 0.5:
        return {}
    pack = rng.sample(full_pack(), 92)
    if kind < 0.7:
        pack.sort(key=lambda card: STEPS[card] + 4 * rng.random())
    elif kind < 0.8:
        pack.sort(key=lambda card: 3 * rng.random() - STEPS[card])
    return {"pack": pack}


def expected_view(referee: Referee, seat: int) -> dict[str, Any]:
    """What the player should see (BB-13), in the form of `seen`."""
    return {
        "game": "big_ben",
        "options": {
            "fill_order": referee.fill_order,
            "waste_deal": referee.waste_deal,
            "waste_to": referee.waste_to,
            "redeals": referee.redeals,
            "build_on": referee.build_on,
            "reward": referee.reward,
        },
        "seat": 0,
        "foundations": {str(hour): cards[-1] for hour, cards in referee.foundations.items()},
        "piles": referee.piles,
        "waste": referee.waste,
        "hops": referee.hops,
        "redealt": referee.redealt > 0,
        "stock": referee.stock if referee.redealt else sorted(referee.stock),
        "stock_size": len(referee.stock),
        "to_come": {str(hour): referee.to_come(hour) for hour in referee.foundations},
        "placed": referee.scores[0],
        "to_move": None if referee.over else 0,
        "legal": sorted(referee.legal()),
    }


def seen(view: dict[str, Any]) -> dict[str, Any]:
    """A view with its sets in alphabetical order."""
    if not view["redealt"]:
        view["stock"].sort()
    view["legal"].sort()
    return view


def recount(view: dict[str, Any], reason: str, movers: list[int], seat: int) -> dict[tuple[str, str], tuple[int, int]]:
    """The figures of a finished deal, as count and what it is divided by, from its last view."""
    lost = int(reason == "lost")
    found = {
        "cards placed": lost * view["placed"],
        "foundations complete": lost * sum(view["foundations"][str(hour)] == last for hour, (_, last) in HOURS.items()),
        "cards left in the waste": lost * len(view["waste"]),
    }
    return {(row, "a lost deal"): (count, lost) for row, count in found.items()}
