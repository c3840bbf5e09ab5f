"""The options of Back Alley, validated and documented here alone."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

HandSize = Annotated[int, Field(ge=1, le=13, strict=True)]


class Options(BaseModel):
    """What `env(**options)` takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    deals: Literal["single"] | Annotated[tuple[HandSize, ...], Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="hand sizes of an episode, such as [13] or [7, 6, 5]; absent: the match of 25 deals (BA-3); "
        '"single": one deal, its size drawn anew each episode from those of the match',
    )
    reward: Literal["points", "win"] = Field(
        default="points",
        description="\"points\": each deal pays every seat its team's points minus the other team's; "
        '"win": 1, -1 or 0 at the end of the episode',
    )
