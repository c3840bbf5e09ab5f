"""Levels of a game's players for people: easy, medium, hard, expert, each with how it fares against the one before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from card_envs.game import Game
from card_envs.opponents.about import comparisons

Figures: TypeAlias = dict[str, Any]

LEVEL_NAMES = ("easy", "medium", "hard", "expert")
PLAYERS = ("trivial", "greedy", "small", "strong", "champion")  # from weak to strong


class Level(NamedTuple):
    """A level.

    Attributes:
        name: the level's name for people: "medium".
        player: the name of the opponent that plays at it.
        strength: as measured: "beats easy in 88 of 100 games"; in a solitaire "wins 17 of 100 games"; empty if
            it was not measured.
    """

    name: str
    player: str
    strength: str


def levels(game: Game, offered: Collection[str], measured: Sequence[Figures] | None = None) -> list[Level]:
    """Return the levels of a game, the easiest first, at most four.

    Their players are the game's `LEVELS` that are offered; without any, its strongest ones, none of them twice.

    Args:
        game: the game; its presets are among the players.
        offered: names of the opponents to choose from.
        measured: results of `compare`, the most relevant last; None: the stored ones.
    """
    figures = comparisons(game) if measured is None else measured
    by_default = [comparison for comparison in figures if not comparison.get("options")]
    distinct = {game.presets.get(name, name): name for name in reversed(PLAYERS) if name in offered}
    players = [name for name in game.bot.LEVELS if name in offered]
    players = players or [name for name in PLAYERS if name in distinct.values()][-len(LEVEL_NAMES) :]
    chosen: list[Level] = []
    for name, player in zip(LEVEL_NAMES, players):
        before = chosen[-1] if chosen else None
        strength = _alone(player, by_default) if game.is_solitaire else _over(before, player, by_default)
        chosen.append(Level(name, player, strength))
    return chosen


def _alone(player: str, figures: Sequence[Figures]) -> str:
    """Return how often a player wins a solitaire, in words: the figure that `figures_of` shows."""
    policies = [policy for comparison in figures for policy in comparison["policies"]]
    shares = [policy["win_share"]["mean"] for policy in policies if policy["name"] == player]
    return f"wins {_of_hundred(shares[-1])}" if shares else ""


def _over(before: Level | None, player: str, figures: Sequence[Figures]) -> str:
    """Return how often a player beats that of the level before, in words."""
    if before is None:
        return ""
    both = {before.player, player}
    pairings = [(comparison["pairs"], pair) for comparison in figures for pair in comparison["pairings"]]
    pairings = [(pairs, pair) for pairs, pair in pairings if {pair["first"], pair["second"]} == both]
    if not pairings:
        return ""
    pair = max(pairings, key=itemgetter(0))[1]  # of the comparison with the most pairs
    share = pair["win_share"]["mean"]  # of the first
    return f"beats {before.name} in {_of_hundred(share if pair['first'] == player else 1 - share)}"


def _of_hundred(share: float) -> str:
    return f"{100 * share:.0f} of 100 games"
