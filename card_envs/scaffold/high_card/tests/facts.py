"""Facts about High Card that the shared tests use: options, packs, public facts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from card_envs.scaffold.high_card.tests.referee import PACK, Referee

OPTIONS: list[dict[str, Any]] = [{}, {"reward": "win"}]
EPISODES = {"random": 1000, "greedy": 250}
SHORT_EPISODES = {"random": 64, "greedy": 16}
GOLDEN = {0: "f06cde388ab4581a"}
COUNTING: set[str] = set()

BRANCHES = {*(f"HC-{number}" for number in range(1, 7)), "HC-4 leader wins", "HC-4 other wins"}
ELSEWHERE: set[str] = set()

STYLES: dict[str, Callable[[Referee, str], float]] = {
    "even": lambda referee, move: 1,
    "high cards first": lambda referee, move: int(move),
}
STEADY: set[str] = set()


def rig(rng: Random, referee: Referee, style: str) -> dict[str, Any]:
    """Return a custom deal half of the time, else an empty one; any deal reaches every rule."""
    return {"pack": rng.sample(PACK, len(PACK))} if rng.random() < 0.5 else {}


def expected_view(referee: Referee, seat: int) -> dict[str, Any]:
    """Return the view that a seat should have (HC-6)."""
    return {
        "game": "high_card",
        "options": {"reward": referee.reward},
        "seat": seat,
        "scores": referee.scores,
        "hand": sorted(referee.hands[seat], key=int),
        "played": referee.played,
        "to_move": None if referee.over else referee.seat,
        "legal": sorted(referee.legal(), key=int) if seat == referee.seat else [],
    }


def seen(view: dict[str, Any]) -> dict[str, Any]:
    """Return a view as it is."""
    return view


def recount(view: dict[str, Any], reason: str, movers: list[int], seat: int) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the rates of a finished deal for a seat, as numerators and denominators."""
    score, other_score = view["scores"][seat], view["scores"][1 - seat]
    return {("won", "a deal"): (int(score > other_score), 1), ("tricks", "a deal"): (score, 1)}
