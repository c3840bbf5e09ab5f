"""Levels of a game's players for people: easy, medium, hard, expert, each with how it fares against the one before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from card_envs.game import Game
from card_envs.opponents.about import comparisons

Figures: TypeAlias = dict[str, Any]

NAMES = ("easy", "medium", "hard", "expert")
PLAYERS = ("trivial", "greedy", "small", "strong", "champion")  # from weak to strong


class Level(NamedTuple):
    """A level.

    Attributes:
        name: for people: "medium".
        player: the name of the opponent that plays at it.
        strength: as it was measured: "beats easy in 88 of 100 games"; in a solitaire "wins 17 of 100 games"; empty if
            it was not measured.
    """

    name: str
    player: str
    strength: str


def levels(game: Game, offered: Collection[str], measured: Sequence[Figures] | None = None) -> list[Level]:
    """Return the levels of a game, the easiest first: its strongest players, at most four, none of them twice.

    Args:
        game: whose usual players they are; `presets` name them.
        offered: names of the opponents to choose from.
        measured: results of `compare`, those that count most last; None: those that are stored.
    """
    figures = comparisons(game) if measured is None else measured
    by_default = [one for one in figures if not one.get("options")]
    distinct = {game.presets.get(name, name): name for name in reversed(PLAYERS) if name in offered}
    players = [name for name in PLAYERS if name in distinct.values()][-len(NAMES) :]
    found: list[Level] = []
    for name, player in zip(NAMES, players):
        before = found[-1] if found else None
        strength = _alone(player, by_default) if game.is_solitaire else _over(before, player, by_default)
        found.append(Level(name, player, strength))
    return found


def _alone(player: str, figures: Sequence[Figures]) -> str:
    """Return how often a player wins a solitaire, in words: the figure that `figures_of` shows."""
    shares = [one["win_share"]["mean"] for part in figures for one in part["policies"] if one["name"] == player]
    return f"wins {_of_hundred(shares[-1])}" if shares else ""


def _over(before: Level | None, player: str, figures: Sequence[Figures]) -> str:
    """Return how often a player beats that of the level before, in words."""
    if before is None:
        return ""
    both = {before.player, player}
    met = [
        (one["pairs"], pair) for one in figures for pair in one["pairings"] if {pair["first"], pair["second"]} == both
    ]
    if not met:
        return ""
    pair = max(met, key=itemgetter(0))[1]  # of the comparison with the most pairs
    share = pair["win_share"]["mean"]  # of the first
    return f"beats {before.name} in {_of_hundred(share if pair['first'] == player else 1 - share)}"


def _of_hundred(share: float) -> str:
    return f"{100 * share:.0f} of 100 games"
