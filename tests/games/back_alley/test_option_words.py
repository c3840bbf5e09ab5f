"""Options in the words of a text environment."""

from __future__ import annotations

from card_envs.frontends.text import TextEnv


def test_unusual_options_are_told() -> None:
    """In a card player's words, or, where the game has none, by name and meaning."""
    single, listed, usual = (TextEnv("back_alley", **given) for given in ({"deals": "single"}, {"deals": [7, 6]}, {}))
    assert "Options of this game: length: one deal, of any size." in single.reset(1)
    assert "Options of this game: deals: [7, 6] (hand sizes of an episode" in listed.reset(1)
    assert "Options of this game" not in usual.reset(1)
