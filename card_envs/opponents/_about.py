"""Say what an opponent is, and how strong it was measured to be."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from card_envs._files import read_json
from card_envs.game import Game
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.policies import TrainedPolicy
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import Opponent, Policy
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy
from card_envs.opponents.search import SearchPolicy


def about(opponent: Opponent) -> str:
    """Return what an opponent is, in a few words, with its measured time per move if that is no less than 1 ms."""
    found = measured(opponent.game).get(opponent.name)
    milliseconds = round(found[-1]["microseconds_per_move"] / 1000) if found else 0
    return ", ".join(part for part in (_kind(opponent), f"{milliseconds} ms" if milliseconds else "") if part)


def figures_of(opponent: Opponent) -> tuple[str, str, float | None]:
    """Return what an opponent is, its rating or share of deals won, and microseconds per move, as far as measured."""
    found = measured(opponent.game).get(opponent.name)
    if not found:
        return _kind(opponent), "", None
    last = found[-1]
    won = f"wins {100 * last['win_share']['mean']:.0f} %"
    strength = f"rating {last['rating']['mean']:.0f}" if "rating" in last else won
    return _kind(opponent), strength, last["microseconds_per_move"]


def _kind(policy: Policy) -> str:
    match policy:
        case Opponent():
            return _kind(policy.policy)
        case RandomPolicy():
            return "plays at random"
        case ScriptedPolicy():
            return "plays by simple rules"
        case PhasedPolicy():
            return _kind(policy.outside)
        case SearchPolicy(seconds=float() as seconds):
            return f"searches for {1000 * seconds:g} ms"
        case SearchPolicy():
            return f"searches {policy.worlds:,} possible worlds"
        case NTuplePolicy():
            return "looks up what it has learned"
        case TrainedPolicy():
            return "asks a neural network"
        case _:
            return ""


@cache
def measured(game: Game) -> dict[str, list[dict[str, Any]]]:
    """Return the results of `compare` for each opponent of a game: rating or share of wins, margin, time per move."""
    package = Path(__file__).parents[1]
    folder = next((place for place in (package / "strength", package.parent / "strength") if place.is_dir()), None)
    found: dict[str, list[dict[str, Any]]] = {}
    comparisons = [read_json(file) for file in sorted(folder.glob(f"{game.name}-*.json"))] if folder else []
    # The last one counts most: the largest of those whose ratings have `greedy` as their anchor.
    for figures in sorted(comparisons, key=_weight):
        if figures.get("game") != game.name or figures.get("version") != game.version:
            continue
        about = {key: figures[key] for key in ("options", "pairs") if key in figures}
        for one in figures.get("policies", []):
            shown = ("rating", "win_share", "microseconds_per_move")
            found.setdefault(one["name"], []).append({**about, **{key: one[key] for key in shown if key in one}})
    return found


def _weight(figures: dict[str, Any]) -> tuple[bool, int]:
    names = [one["name"] for one in figures.get("policies", [])]
    return "greedy" in names, len(names)
