"""The options of Last Card, declared, validated and documented only here."""

from typing import Literal

from card_envs.options import option, options


@options
class Options:
    """Options of `env(**options)`."""

    reward: Literal["points", "win"] = option(
        "points", '"points": the winner\'s points, and minus as many for the other; "win": 1, -1 or 0'
    )
