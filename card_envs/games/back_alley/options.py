"""The options of Back Alley, declared, validated and documented only here."""

from __future__ import annotations

from typing import Annotated, Literal

from card_envs.options import Constraint, option, options

HandSize = Annotated[int, Constraint(ge=1, le=13, strict=True)]


@options
class Options:
    """Options of `env(**options)`."""

    deals: Literal["single"] | Annotated[tuple[HandSize, ...], Constraint(min_length=1, max_length=100)] | None = (
        option(
            None,
            "hand sizes of an episode, such as [13] or [7, 6, 5]; absent: the match of 25 deals (BA-3); "
            '"single": one deal, its size drawn for each episode from those of the match',
        )
    )
    blooper_turned: Literal["no_trump", "redraw"] = option(
        "no_trump",
        'what happens when a Blooper is turned up (BA-5): "no_trump": the deal has no trump suit; "redraw": it stays '
        "out of play, and the next card is turned up instead",
    )
    reward: Literal["points", "win"] = option(
        "points",
        "\"points\": each deal pays every seat its team's points minus the other team's; "
        '"win": 1, -1 or 0 at the end of the episode',
    )
