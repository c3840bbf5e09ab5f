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
    waste_to: Literal["anywhere", "foundations"] = option(
        "anywhere",
        'where the top card of the waste may go (BB-9): "anywhere": to foundations and piles; "foundations": only to '
        "foundations",
    )
    redeals: Literal[0, 1] = option(0, "how often the waste is turned over when the stock is empty (BB-9)")
    build_on: Literal["full_piles", "any_pile"] = option(
        "full_piles",
        'which piles may be built on (BB-5): "full_piles": those of at least three cards; "any_pile": those of one or '
        "two as well",
    )
    reward: Literal["win", "cards"] = option(
        "win", '"win": 1 at the end of a won game, else 0; "cards": 1/92 for each card placed on a foundation'
    )
