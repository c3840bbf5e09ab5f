"""Pictures of positions as SVG: `draw(game, view)`; `raster.py` converts them to images."""

from __future__ import annotations

from typing import Any

from card_envs.engine.buffers import check_game
from card_envs.game import Game
from card_envs.views import read


def draw(game: Game, view: dict[str, Any], tall: bool = False) -> str:
    """Return a seat's view as an SVG document that consists of shapes only: no fonts, images or scripts.

    Args:
        game: its drawing is used or, without one, the cards and numbers of the view, key by key.
        view: a seat's view, from `env.view(agent)` or `game.view.view(state, seat)`, or `game.public_view(state)`.
        tall: portrait format.

    Raises:
        ValueError: not a complete view of the game; the message begins with "view: ".
    """
    check_game(game)
    if not isinstance(view, dict) or "names" not in view:
        read(game.view.View, view)
    try:
        if game.drawing is not None:
            return game.drawing.draw(view, tall)
        from card_envs.draw._plain import draw_view

        return draw_view(game.title, view, tall)
    except (LookupError, TypeError, ValueError) as error:  # a missing optional key, or a contradiction
        raise ValueError(f"view: not a whole position of {game.title}: {type(error).__name__}: {error}") from error
