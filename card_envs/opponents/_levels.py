"""Levels of a game's players for people: easy, medium, hard, expert, each with how it fares against the one before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from card_envs.game import Game
from card_envs.opponents._about import comparisons

Figures: TypeAlias = dict[str, Any]

NAMES = ("easy", "medium", "hard", "expert")
PLAYERS = ("trivial", "greedy", "small", "strong", "champion")  # from weak to strong


class Level(NamedTuple):
    """A level.

    Attributes:
        name: for people: "medium".
        player: the name of the opponent that plays at it.
        strength: as it was measured: "beats easy in 88 of 100 games"; in a solitaire "wins 21 of 100 games"; empty if
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
        measured: results of `compare`; None: those that are stored.
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
    """Return how often a player wins a solitaire, in words."""
    found = _largest(figures, "policies", lambda one: one["name"] == player)
    return f"wins {_of_hundred(found['win_share']['mean'])}" if found else ""


def _over(before: Level | None, player: str, figures: Sequence[Figures]) -> str:
    """Return how often a player beats that of the level before, in words."""
    if before is None:
        return ""
    pair = _largest(figures, "pairings", lambda one: {one["first"], one["second"]} == {before.player, player})
    if pair is None:
        return ""
    share = pair["win_share"]["mean"]  # of the first
    return f"beats {before.name} in {_of_hundred(share if pair['first'] == player else 1 - share)}"


def _largest(figures: Sequence[Figures], part: str, fits: Callable[[Figures], bool]) -> Figures | None:
    """Return what fits in the comparison with the most pairs, if there is one."""
    found = [(one["pairs"], entry) for one in figures for entry in one[part] if fits(entry)]
    return max(found, key=itemgetter(0))[1] if found else None


def _of_hundred(share: float) -> str:
    return f"{100 * share:.0f} of 100 games"
