"""Say what an opponent is, how strong it was measured to be, and whether it was trained for other options."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from card_envs.game import GREEDY, Game
from card_envs.opponents.names import parse
from card_envs.opponents.networks.folder import NETWORK_CLASSES, load_card
from card_envs.opponents.networks.onnx import OnnxPolicy
from card_envs.opponents.networks.policies import TrainedPolicy
from card_envs.opponents.policy import Opponent, Policy
from card_envs.system.files import read_json

REWARD = "reward"  # an option of every game
FRONT = ("champion", "front")  # the comparisons that the README shows


def about(opponent: Opponent) -> str:
    """Describe an opponent in a few words, with its measured time per move if that is at least 1 ms."""
    results = measured(opponent.game).get(opponent.name)
    kind = opponent.policy.describe()
    milliseconds = round(results[-1]["microseconds_per_move"] / 1000) if results else 0
    return ", ".join(part for part in (kind, f"{milliseconds} ms" if milliseconds else "") if part)


def figures_of(name: str, game: Game) -> tuple[str, str, float | None]:
    """Return the description of an opponent by its short name, its measured strength, and microseconds per move.

    Strength is the margin over `greedy` per deal, or the share of deals won, with the 95 % interval. No weights
    are loaded: this reads the name and the stored facts.
    """
    kind = parse(name, game, load=_without_weights).describe()
    for comparison in reversed(comparisons(game)):
        policy = next((policy for policy in comparison["policies"] if policy["name"] == name), None)
        if policy is None:
            continue
        if game.is_solitaire:
            strength = _interval(policy["win_share"], 100, ".0f", " %")
        else:
            pairing = (pair for pair in comparison["pairings"] if {pair["first"], pair["second"]} == {name, GREEDY})
            over = next((_margin_of(name, pair) for pair in pairing), None)
            strength = "" if over is None else _interval(over, 1 / comparison["deals_per_episode"], "+z.1f")
        return kind, strength, policy["microseconds_per_move"]
    return kind, "", None


def _margin_of(name: str, pair: dict[str, Any]) -> dict[str, float]:
    """Return the margin of a player in one of its pairings."""
    margin: dict[str, float] = pair["margin_per_episode"]
    if pair["first"] == name:
        return margin
    return {"mean": -margin["mean"], "low": -margin["high"], "high": -margin["low"]}


def _interval(figure: dict[str, float], scale: float, form: str, unit: str = "") -> str:
    mean, low, high = (f"{scale * figure[key]:{form}}" for key in ("mean", "low", "high"))
    return f"{mean} ({low} to {high}){unit}"


def _without_weights(folder: Path, game: Game | None, sampled: bool) -> TrainedPolicy:
    """Return the network in a folder without its weights: it says what it is, but it can't play."""
    architecture = load_card(folder).architecture
    kind = OnnxPolicy if architecture == OnnxPolicy.architecture else NETWORK_CLASSES[architecture]
    return kind.__new__(kind)


def unlike_training(name: str, policy: Policy, game: Game, options: Mapping[str, Any]) -> str:
    """Return a warning if a policy, or a part of it, was trained under other options of the game; empty if not.

    The reward does not count: a network does not see it. The folders of networks hold their options in training.
    """
    played = asdict(game.validated(dict(options))) | {REWARD: None}
    for network in policy.parts():
        try:
            trained = asdict(game.validated(network.trained_options or {})) | {REWARD: None}
        except ValueError:  # options of another version of the game
            continue
        if network.trained_options is not None and trained != played:
            differing = [option for option in played if trained[option] != played[option]]
            there, here = (", ".join(f"{name}={of[name]!r}" for name in differing) for of in (trained, played))
            words = " ".join(f"-o {option}={option_text(trained[option])}" for option in differing)
            return f"{name} was trained with {there}, and plays here with {here}; as trained: {words}"
    return ""


def option_text(value: Any) -> str:
    """Return the value of an option as commands take it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def warn_if_unlike_training(policy: Policy, game: Game, options: Mapping[str, Any]) -> None:
    """Warn the caller's caller if a policy was trained under other options."""
    if warning := unlike_training(policy.name, policy, game, options):
        readable = (letter if letter.isprintable() else ascii(letter)[1:-1] for letter in warning)
        warnings.warn("".join(readable), UserWarning, stacklevel=3)


def strength_folder() -> Path:
    """Return the folder of what was measured: within the package where it is installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    return next((place for place in (package / "strength", package.parent / "strength") if place.is_dir()), package)


@cache
def comparisons(game: Game) -> list[dict[str, Any]]:
    """Return the stored results of `compare` for a game, those that count most last.

    That is the one that the README shows, then the largest of those with `greedy`.
    """
    files = sorted(strength_folder().glob(f"{game.name}-*.json"))
    read = [(file.stem.removeprefix(f"{game.name}-"), read_json(file)) for file in files]
    fitting = [entry for entry in read if (entry[1].get("game"), entry[1].get("version")) == (game.name, game.version)]
    return [figures for _, figures in sorted(fitting, key=_weight) if figures.get("policies")]


def _weight(comparison: tuple[str, dict[str, Any]]) -> tuple[bool, bool, int]:
    label, figures = comparison
    names = [policy["name"] for policy in figures.get("policies", [])]
    return GREEDY in names, label in FRONT, len(names)


@cache
def measured(game: Game) -> dict[str, list[dict[str, Any]]]:
    """Return the results of `compare` for each opponent of a game: rating or share of wins, margin, time per move."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for figures in comparisons(game):
        conditions: dict[str, Any] = {key: figures[key] for key in ("options", "pairs") if key in figures}
        for policy in figures["policies"]:
            results = {key: policy[key] for key in ("rating", "win_share", "microseconds_per_move") if key in policy}
            by_name.setdefault(policy["name"], []).append(conditions | results)
    return by_name
