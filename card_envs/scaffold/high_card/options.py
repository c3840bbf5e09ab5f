"""The options of High Card, validated and documented here alone."""

from typing import Literal

from card_envs.options import option, options


@options
class Options:
    """What `env(**options)` takes."""

    reward: Literal["points", "win"] = option(
        "points", '"points": a trick pays its winner 1 and the other -1; "win": 1 or -1 at the end'
    )
