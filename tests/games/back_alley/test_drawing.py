"""What a picture tells about cards."""

from __future__ import annotations

import re

from card_envs.cards import card_name
from card_envs.draw import draw
from card_envs.draw.picture import GOLD
from card_envs.games.back_alley import GAME, view
from tests.conftest import positions, some


def test_only_trumps_are_called_trumps() -> None:
    views = [view.view(state, int(state["seat"])) for state in some(positions(GAME), 200)]
    assert {None} < {given["trump"] for given in views}
    for given in views:
        trumps = [card for card in given["hand"] if card[1] == given["trump"] or card in ("LB", "BB")]
        assert draw(GAME, given).count(', a trump"') == len(trumps)


def test_the_winning_card_is_framed_in_gold() -> None:
    """The one whose player leads next, once the trick is complete; and nothing else is gold."""
    framed = 0
    for state in some(positions(GAME), 300):
        given = view.view(state, int(state["seat"]))
        for trick, following in zip(given["tricks"], given["tricks"][1:]):
            part = {**given, "tricks": [trick]}
            drawn = re.sub("<defs>.*</defs>", "", draw(GAME, part))
            (winner,) = re.findall(f'fill="{GOLD}"/><use href="#card-(..)[^"]*"', drawn)
            assert winner == trick["cards"][(following["leader"] - trick["leader"]) % 4]
            assert drawn.count(GOLD) == 1 and f"{card_name(winner)}, the best" in drawn
            framed += 1
    assert framed > 100
