"""Export the shapes of pictures as data, for JavaScript to place at the same positions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from card_envs.cards import ACE_HIGH, SUIT_NAMES, card_name, deck
from card_envs.draw._faces import JOKER_COLOURS, back, face
from card_envs.draw._lettering import STROKES
from card_envs.draw._pips import COLOURS, PIPS
from card_envs.game import Game


def drawings(games: Sequence[Game]) -> dict[str, Any]:
    """Return cards, letters, suits, and the layouts of these games' pictures, ready for JSON."""
    cards = (*deck(ACE_HIGH), *JOKER_COLOURS)
    return {
        "cards": {card: {"name": card_name(card), "face": face(card)} for card in cards},
        "backs": [back(0), back(1)],
        "letters": STROKES,
        "suits": {suit: {"name": SUIT_NAMES[suit], "colour": COLOURS[suit], "pip": PIPS[suit]} for suit in PIPS},
        "layouts": {
            game.name: {shape.lower(): getattr(game.drawing, shape)._asdict() for shape in ("WIDE", "TALL")}
            for game in games
            if game.drawing is not None
        },
    }


def drawings_module(games: Sequence[Game]) -> str:
    """Return the text of `js/built/wasm32/shapes.js`, a module of them."""
    return f"export default {json.dumps(drawings(games), separators=(',', ':'))};\n"
