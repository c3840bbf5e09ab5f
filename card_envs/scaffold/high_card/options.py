"""The options of High Card, declared, validated and documented only here."""

from typing import Literal

from card_envs.options import option, options


@options
class Options:
    """Options of `env(**options)`."""

    reward: Literal["points", "win"] = option(
        "points", '"points": a trick pays its winner 1 and the other -1; "win": 1 or -1 at the end'
    )
