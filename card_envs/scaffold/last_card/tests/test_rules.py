"""The numbered rules of RULES.md, one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from card_envs.engine.table import Table
from card_envs.scaffold.last_card import GAME
from card_envs.testing.moves import legal, play

CARDS = [rank + suit for suit in "CDHS" for rank in "JQKA"]
FIRST, SECOND = "JH QH KH AH AS", "JH QH KH AH AD"
ALL_DRAWN = "draw pass " * 21


def dealt(first: str = FIRST, second: str = SECOND, turned_up: str = "JS", stock: str = "", **options: Any) -> Table:
    """Return a table at which the seats hold these cards; the stock begins with those named."""
    table = Table(GAME, GAME.rules.new_state(GAME.options(**options)))
    named = [*first.split(), *second.split(), turned_up, *stock.split()]
    rest = Counter([*CARDS, *CARDS]) - Counter(named)
    table.set_deal(GAME.view.parse_deal(table.state, {"pack": [*named, *rest.elements()]})[0])
    return table


def seen(table: Table, seat: int = 0) -> dict[str, Any]:
    return GAME.view.view(table.state, seat)


def test_lc_1_five_of_two_packs_each_and_one_turned_up() -> None:
    table = Table(GAME, GAME.rules.new_state(GAME.options()))
    for episode in range(20):
        table.seed(episode)
        table.deal()
        pack = GAME.view.deal_text([GAME.view.dealt_pack(table.state)])["pack"]
        assert Counter(pack) == Counter([*CARDS, *CARDS])
        assert seen(table, 0)["hand"] == sorted(pack[:5], key=CARDS.index)
        assert seen(table, 1)["hand"] == sorted(pack[5:10], key=CARDS.index)
        assert seen(table)["turned_up"] == seen(table)["top"] == pack[10] and seen(table)["stock_size"] == 21


def test_lc_2_seat_0_begins() -> None:
    assert dealt(FIRST, SECOND).seat == dealt(SECOND, FIRST).seat == 0


def test_lc_3_a_card_fits_by_suit_or_rank() -> None:
    table = dealt("JD JD KS QC AC")
    assert legal(table) == ["JD", "KS", "draw"]
    assert legal(play(table, "KS")) == ["KH", "draw"] and seen(table)["top"] == "KS"


def test_lc_4_draw_then_play_or_pass() -> None:
    table = play(dealt(stock="QS QD"), "draw")
    assert table.seat == 0 and legal(table) == ["JH", "QS", "AS", "pass"]
    assert "QS" in seen(table)["hand"] and seen(table)["stock_size"] == 20
    assert play(table.copy(), "QS").seat == play(table, "pass").seat == 1
    assert legal(play(table, "draw")) == ["JH", "pass"]


def test_lc_5_without_a_stock_a_player_passes() -> None:
    assert "pass" not in legal(dealt())
    table = play(dealt(), ALL_DRAWN)
    assert seen(table)["stock_size"] == 0 and {"draw", "pass"} & set(legal(table)) == {"pass"}


def test_lc_6_the_one_with_fewer_cards_wins_the_difference() -> None:
    moves = "JH QH QH KH KH AH AH AD AS"
    for reward in ("points", "win"):
        table = play(dealt(reward=reward), moves)
        assert table.over and table.needs_deal and table.rewards == [1, -1]
        assert GAME.view.outcome(table.state) == ("out", [1, 0])


def test_lc_6_the_deal_ends_when_both_pass() -> None:
    table = play(dealt(), ALL_DRAWN + "pass")
    assert not table.over
    assert GAME.view.outcome(play(table, "pass").state) == ("passed", [0, 1])
    assert not play(dealt(), ALL_DRAWN + "pass JH pass").over  # in turn


def test_lc_7_what_a_player_sees() -> None:
    moves = "JH draw QH"
    table, other = (
        play(dealt(second=hand, stock=drawn), moves) for hand, drawn in ((SECOND, "KC"), ("KC KC QD QD AD", "QH"))
    )
    assert seen(table) == seen(other) and seen(table, 1) != seen(other, 1)
    assert seen(table)["hand"] == ["QH", "KH", "AH", "AS"] and seen(table)["hand_sizes"] == [4, 5]
    assert seen(table)["moves"] == moves.split()


def test_lc_7_worlds_are_as_likely_as_deals() -> None:
    """Seat 0 played a jack of clubs: of all places for two of them, both are in its hand at 10 of 10 + 5 * 21."""
    table = play(dealt("JC JD QD KD AD", "JH QH KH AH AH", "JS"), "JC")
    draws, held = 4000, 0
    for key in range(draws):
        world = table.copy()
        world.determinize(1, key)
        held += "JC" in seen(world)["hand"]
    assert abs(held / draws - 10 / 115) < 5 * (10 / 115 / draws) ** 0.5
