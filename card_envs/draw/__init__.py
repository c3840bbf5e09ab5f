"""Pictures of positions as SVG: `draw(game, view)`; `raster.py` makes images of them."""

from __future__ import annotations

from typing import Any

from card_envs.game import Game


def draw(game: Game, view: dict[str, Any], tall: bool = False) -> str:
    """What a seat sees, as an SVG document of shapes alone: no fonts, no images, no scripts.

    Args:
        game: whose drawing is used, or, where it has none, its picture as text.
        view: of a seat, as `env.view(agent)` and `game.view.view(state, seat)` give it.
        tall: for a screen that is higher than wide.
    """
    if game.drawing is not None:
        return game.drawing.draw(view, tall)
    from card_envs.draw.plain import text_page

    return text_page(game.title, game.view.picture(view), view["legal"])
