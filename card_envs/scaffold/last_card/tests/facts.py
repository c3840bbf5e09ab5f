"""Facts about Last Card that the shared tests use: options, packs, public facts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from card_envs.scaffold.last_card.tests.referee import CARDS, PACK, Referee

OPTIONS: list[dict[str, Any]] = [{}, {"reward": "win"}]
EPISODES = {"random": 4000, "greedy": 1000}
SHORT_EPISODES = {"random": 64, "greedy": 16}
GOLDEN: dict[int, str] = {}  # once the rules are settled, tests/test_engine.py says what to write here
COUNTING: set[str] = set()

BRANCHES = {
    *(f"LC-{number}" for number in range(1, 8)),
    *("LC-3 suit", "LC-3 rank", "LC-4 pass", "LC-4 play"),
    *("LC-6 out", "LC-6 passed", "LC-6 won", "LC-6 nobody wins"),
}
ELSEWHERE = {"LC-7"}  # what the views show

STYLES: dict[str, Callable[[Referee, str], float]] = {
    "even": lambda referee, move: 1,
    "patient": lambda referee, move: 9 if move in ("draw", "pass") else 1,
    "hasty": lambda referee, move: 1 if move in ("draw", "pass") else 9,
}
STEADY: set[str] = set()


def rig(rng: Random, referee: Referee, style: str) -> dict[str, Any]:
    """Return a custom deal half of the time, else an empty one; any deal reaches every rule."""
    return {"pack": rng.sample(PACK, len(PACK))} if rng.random() < 0.5 else {}


def expected_view(referee: Referee, seat: int) -> dict[str, Any]:
    """Return the view that a seat should have (LC-7)."""
    return {
        "game": "last_card",
        "options": {"reward": referee.reward},
        "seat": seat,
        "scores": referee.scores,
        "hand": sorted(referee.hands[seat], key=CARDS.index),
        "turned_up": referee.pile[0],
        "moves": referee.moves,
        "top": referee.pile[-1],
        "hand_sizes": [len(hand) for hand in referee.hands],
        "stock_size": len(referee.stock),
        "to_move": None if referee.over else referee.seat,
        "legal": referee.legal() if seat == referee.seat else [],
    }


def seen(view: dict[str, Any]) -> dict[str, Any]:
    """Return a view as it is."""
    return view


def recount(view: dict[str, Any], reason: str, movers: list[int], seat: int) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the rates of a finished deal for a seat, as numerators and denominators."""
    points = view["scores"][seat]
    return {("won", "a deal"): (int(points > 0), 1), ("points", "a deal"): (points, 1)}
