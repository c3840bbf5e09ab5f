"""Rendering, the same for all environments."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import check_choice
from card_envs.game import Game

RenderMode = Literal["ansi", "human", "rgb_array"]
RENDER_MODES: tuple[RenderMode, ...] = ("ansi", "human", "rgb_array")
WIDTH = 1000  # of pictures, in pixels


def check_render_mode(mode: object) -> None:
    """Raise ValueError for an unknown mode, or if the packages for pictures are missing."""
    check_choice(mode, (None, *RENDER_MODES), "render_mode")
    if mode == "rgb_array":
        from card_envs.draw.raster import check_libraries

        check_libraries()


def rendered(game: Game, view: dict[str, Any], mode: RenderMode | None, below: str = "") -> Any:
    """Return a view as text for "ansi" or as [H, W, 3] uint8 for "rgb_array"; print it for "human".

    Args:
        game: the game.
        view: of a seat.
        mode: see above; None returns None.
        below: another line of text below it.
    """
    if mode is None:
        return None
    if mode == "rgb_array":
        return picture(game, view)
    text = game.view.picture(view) + below
    if mode == "ansi":
        return text
    print(text, end="\n\n")
    return None


def drawn(game: Game, view: dict[str, Any]) -> str:
    """Return a view as an SVG document."""
    from card_envs.draw import draw

    return draw(game, view)


def picture(game: Game, view: dict[str, Any]) -> NDArray[np.uint8]:
    """Return a view as pixels, [H, W, 3] uint8; the size is the same for all views of a game."""
    from card_envs.draw.raster import pixels

    return pixels(drawn(game, view), WIDTH)
