"""The options of Big Ben, declared, validated and documented only here."""

from __future__ import annotations

from typing import Literal

from card_envs.options import option, options


@options
class Options:
    """Options of `env(**options)`."""

    fill_order: Literal["rounds", "pile_by_pile"] = option(
        "rounds",
        'how gaps are filled (BB-7), clockwise from T12: "rounds": one card to each short pile in turn; '
        '"pile_by_pile": each pile up to three cards before the next',
    )
    waste_deal: Literal["always", "when_stuck"] = option(
        "always",
        'when a card may be dealt to the waste (BB-8): "always": whenever no pile has a gap; '
        '"when_stuck": only if, besides, no other move is legal',
    )
    reward: Literal["win", "cards"] = option(
        "win",
        '"win": 1 at the end of a won game, else 0; "cards": 1/92 for each card placed on a foundation',
    )
