"""Labels of the cards in a picture's hand."""

from __future__ import annotations

from card_envs.draw import draw
from card_envs.games.back_alley import GAME, view
from tests.conftest import positions, some


def test_only_trumps_are_called_trumps() -> None:
    views = [view.view(state, int(state["seat"])) for state in some(positions(GAME), 200)]
    assert {None} < {given["trump"] for given in views}
    for given in views:
        trumps = [card for card in given["hand"] if card[1] == given["trump"] or card in ("LB", "BB")]
        assert draw(GAME, given).count(', a trump"') == len(trumps)
