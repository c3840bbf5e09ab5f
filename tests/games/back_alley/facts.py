"""What the differential test needs to know of Back Alley: options, packs, ways to play, public facts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.games.back_alley.referee import BLOOPERS, MATCH, PACK, Referee, bid_value

# Every other episode is a whole match.
OPTIONS: list[dict[str, Any]] = [
    {}, {"deals": "single"}, {"reward": "win"}, {"deals": [1]},
    {}, {"deals": [2, 1, 3]}, {"reward": "win"}, {"deals": [13]},
    {"blooper_turned": "redraw"}, {"deals": "single", "reward": "win"},
    {"deals": [13, 1, 13], "blooper_turned": "redraw"}, {"deals": [3, 2], "reward": "win"},
    {}, {"deals": [1, 1, 2], "reward": "win"}, {"reward": "win"}, {"deals": [7, 6, 5]},
]  # fmt: skip
RARE = {"blooper_turned"}
EPISODES = {"random": 1000, "greedy": 250}  # half of them matches
SHORT_EPISODES = {"random": 64, "greedy": 16}
GOLDEN = {0: "bac5df96c91fe025"}
FROZEN_PRIORS = ("greedy", "ppo", "small")
COUNTING: set[str] = {
    "determinize",
    "split_first",
    "choose",
    "ways_second",
    "uniform",
}  # there are more deals than 64 bits hold

BRANCHES = {
    *(f"BA-{number}" for number in range(1, 21)),
    "BA-2 Blooper follows a trump", "BA-2 Blooper wins",
    "BA-5 joker laid aside", "BA-5 nobody holds it", "BA-5 redrawn", "BA-5 redrawn twice", "BA-5 pack used up",
    "BA-6 one card",
    "BA-7 more than the tricks", "BA-7 partner's number does not count",
    "BA-8 level 1", "BA-8 level 2", "BA-8 level 3", "BA-8 level 4", "BA-8 both partners",
    "BA-9 re-deal", "BA-9 eighth pass-out", "BA-9 eighth pass-out at the last size",
    "BA-10 board", "BA-10 several boards", "BA-10 number", "BA-10 tie",
    "BA-11 follow", "BA-11 void", "BA-11 trumped",
    "BA-12 trump lead barred", "BA-12 partner's board", "BA-12 own board", "BA-12 broken", "BA-12 only trumps",
    "BA-13 Big Blooper led", "BA-13 Little Blooper led", "BA-13 void", "BA-13 Big Blooper sole trump",
    "BA-16 made", "BA-16 failed", "BA-16 zero",
    "BA-17 made", "BA-17 failed",
    "BA-18 win", "BA-18 draw",
    "BA-19 match", "BA-19 list", "BA-19 single",
}  # fmt: skip
ELSEWHERE = {"BA-20"}  # test_redeal.py


def _passing(referee: Referee, move: str) -> float:
    return 300 if move == "pass" else 1


def _boarding(referee: Referee, move: str) -> float:
    return 8 if move == "board" else 1


def _trumps_first(referee: Referee, move: str) -> float:
    return 8 if move in BLOOPERS or move[1:] == referee.trump else 1


# How likely a random player is to choose a move, compared with others.
STYLES: dict[str, Callable[[Referee, str], float]] = {
    "even": lambda referee, move: 1,
    "passing": _passing,
    "boarding": _boarding,
    "trumps first": _trumps_first,
}
STEADY: set[str] = set()  # styles that last a whole episode


def rig(rng: Random, referee: Referee, style: str) -> dict[str, Any]:
    """A custom deal, often with a joker turned up and the other one dealt; empty: the table deals itself."""
    if rng.random() < 0.5:
        return {}
    given: dict[str, Any] = {}
    first = referee.dealer < 0
    if first and rng.random() < 0.5:
        given["dealer"] = rng.randrange(4)
    if first and referee.single:
        size = given["size"] = rng.choice(MATCH)
    elif referee.single:
        size = referee.size
    else:
        size = referee.sizes[referee.deal_number + referee.size_done]
    pack = rng.sample(PACK, len(PACK))
    if rng.random() < 0.5:
        held = rng.randrange(4 * size)
        for joker, place in zip(rng.sample(BLOOPERS, 2), (4 * size, rng.choice([held, held, 4 * size + 1, 53]))):
            other = pack.index(joker)
            pack[place], pack[other] = pack[other], pack[place]
    given["packs"] = [pack]
    return given


def contracts(referee: Referee) -> list[int]:
    """BA-7, by team; zero while bidding is on and after four passes."""
    found = [0, 0]
    if len(referee.bids) == 4:
        for team in (0, 1):
            bids = [bid for seat, bid in referee.bids if seat % 2 == team]
            found[team] = referee.size if "board" in bids else sum(bid_value(bid) for bid in bids)
    return found


def board_levels(referee: Referee) -> list[int]:
    """BA-8, by seat."""
    levels = [0, 0, 0, 0]
    boards = [seat for seat, bid in referee.bids if bid == "board"]
    for level, seat in enumerate(boards, 1):
        levels[seat] = level
    return levels


def expected_view(referee: Referee, seat: int) -> dict[str, Any]:
    """What a seat should see at a decision and at the end (BA-20)."""
    laid_aside = referee.laid_aside
    expected = {
        "game": "back_alley",
        "seat": seat,
        "deal_number": referee.deal_number,
        "pass_outs": referee.pass_outs,
        "size": referee.size,
        "dealer": referee.dealer,
        "scores": referee.scores,
        "turned": referee.turned,
        "redrawn": referee.redrawn,
        "laid_aside": {"seat": laid_aside[0], "card": laid_aside[1]} if laid_aside else None,
        "hand": sorted(referee.hands[seat], key=PACK.index),
        "bids": [bid for _, bid in referee.bids],
        "tricks": [{"leader": trick[0][0], "cards": [card for _, card in trick]} for trick in referee.tricks],
        "trump": referee.trump,
        "hand_sizes": [len(hand) for hand in referee.hands],
        "tricks_taken": referee.tricks_taken,
        "contracts": contracts(referee),
        "board_levels": board_levels(referee),
        "to_move": None if referee.over else referee.seat,
        "legal": sorted(referee.legal()) if seat == referee.seat else [],
    }
    if referee.over:
        del expected["pass_outs"]  # the count is over as well
    return expected


def seen(view: dict[str, Any]) -> dict[str, Any]:
    """A view with the legal moves in alphabetical order."""
    view["legal"].sort()
    return view


def recount(view: dict[str, Any], reason: str, movers: list[int], seat: int) -> dict[tuple[str, str], tuple[int, int]]:
    """The figures of a finished deal for a seat, as count and what it is divided by, from its last view."""
    bids = dict(zip(((view["dealer"] + 1 + k) % 4 for k in range(4)), view["bids"]))
    own, side, trump = bids[seat], seat % 2, view["trump"]
    leads = [trick["leader"] for trick in view["tricks"]]
    over = view["tricks_taken"][side] - view["contracts"][side]
    boards = [bidder for bidder in bids if bids[bidder] == "board"]
    found = {
        ("second board or later (BA-8)", "of hands"): (int(seat in boards[1:]), 1),
        ("passed out (BA-9)", "of hands"): (int(not leads), 1),
        ("no trumps (BA-5)", "of hands"): (int(trump is None), 1),
        ("Blooper laid aside (BA-5)", "of hands"): (int((view["laid_aside"] or {"seat": -1})["seat"] == seat), 1),
        ("Blooper led (BA-13)", "of hands"): (
            sum(trick["leader"] == seat and trick["cards"][0] in BLOOPERS for trick in view["tricks"]),
            1,
        ),
    }
    if leads:
        beyond = over
        if own != "board":
            beyond = [*leads[1:], _winner(view["tricks"][-1], trump)].count(seat) - bid_value(own)
        found[own, "of hands"] = (1, 1)
        found[own, "contract made"] = (int(over >= 0), 1)
        found[own, "tricks - bid"] = (beyond, 1)
    for bid in ("pass", *map(str, range(1, 13)), "board"):
        found.setdefault((bid, "of hands"), (0, 1))
    return found


def _winner(trick: dict[str, Any], trump: str | None) -> int:
    def value(card: str) -> tuple[int, int]:
        if card in BLOOPERS:
            return 3, BLOOPERS.index(card)
        return (2 if card[1] == trump else card[1] == trick["cards"][0][1]), "23456789TJQKA".index(card[0])

    best = max(trick["cards"], key=value)
    return int(trick["leader"] + trick["cards"].index(best)) % 4
