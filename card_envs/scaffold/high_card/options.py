"""The options of High Card, validated and documented here alone."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Options(BaseModel):
    """What `env(**options)` takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reward: Literal["points", "win"] = Field(
        default="points", description='"points": a trick pays its winner 1 and the other -1; "win": 1 or -1 at the end'
    )
