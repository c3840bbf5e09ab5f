"""The options of Russian Bank, declared, validated and documented only here."""

from __future__ import annotations

from typing import Literal

from card_envs.options import option, options


@options
class Options:
    """Options of `env(**options)`."""

    start: Literal["low_reserve", "high_reserve", "random", "player_0", "player_1"] = option(
        "low_reserve",
        "who starts each game (RB-4): the lower or the higher reserve top card, a seeded coin, or always "
        "the same player",
    )
    match: bool = option(
        False, "False: an episode is one game; True: a match to `match_target` points (RB-22)", strict=True
    )
    match_target: int = option(150, "points that end a match (RB-22): 50 to 300", ge=50, le=300, strict=True)
    reserve: Literal[13, 12, 11] = option(13, "cards dealt to each reserve (RB-2)")
    fill_houses: Literal["any", "reserve"] = option(
        "any",
        'what may fill an empty house (RB-8): "any": any available card; "reserve": only the top card of the player\'s '
        "reserve, until that is empty",
    )
    reward: Literal["points", "win", "penalty"] = option(
        "points",
        '"points": each scored game pays every seat its own points minus the opponent\'s; '
        '"win": 1, -1 or 0 at the end of the episode; '
        '"penalty": every move pays the change of the opponent\'s penalty points minus the own ones (RB-21), and the '
        "win's 30, so that the sum over a game is its score",
    )
