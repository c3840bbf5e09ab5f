"""Pictures of positions as SVG: `draw(game, view)`; `raster.py` makes images of them."""

from __future__ import annotations

from typing import Any

from card_envs.engine.buffers import check_game
from card_envs.game import Game
from card_envs.views import read


def draw(game: Game, view: dict[str, Any], tall: bool = False) -> str:
    """What a seat sees, as an SVG document of shapes alone: no fonts, no images, no scripts.

    Args:
        game: whose drawing is used, or, where it has none, its picture as text.
        view: of a seat, as `env.view(agent)` and `game.view.view(state, seat)` give it.
        tall: for a screen that is higher than wide.

    Raises:
        ValueError: that is no whole view of the game; the message begins with "view: ", then the key that is wrong.
    """
    check_game(game)
    read(game.view.View, view)
    try:
        if game.drawing is not None:
            return game.drawing.draw(view, tall)
        from card_envs.draw.plain import text_page

        return text_page(game.title, game.view.picture(view), view["legal"])
    except (LookupError, TypeError, ValueError) as error:  # a key that may be left out elsewhere, or a contradiction
        raise ValueError(f"view: shows no whole position of {game.title}: {type(error).__name__}: {error}") from error
