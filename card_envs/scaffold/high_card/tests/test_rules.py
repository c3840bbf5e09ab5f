"""The numbered rules of RULES.md, one by one."""

from __future__ import annotations

from typing import Any

from card_envs.engine.table import Table
from card_envs.scaffold.high_card import GAME
from card_envs.testing.moves import legal, play


def dealt(first: str, second: str, **options: Any) -> Table:
    """Return a table at which the seats hold these cards."""
    table = Table(GAME, GAME.rules.new_state(GAME.options(**options)))
    hands = [*first.split(), *second.split()]
    rest = [str(card) for card in range(1, 13) if str(card) not in hands]
    table.set_deal(GAME.view.parse_deal(table.state, {"pack": [*hands, *rest]})[0])
    return table


def test_hc_1_three_of_twelve_cards_each() -> None:
    table = Table(GAME, GAME.rules.new_state(GAME.options()))
    for episode in range(20):
        table.seed(episode)
        table.deal()
        pack = GAME.view.deal_text([GAME.view.dealt_pack(table.state)])["pack"]
        hands = [GAME.view.view(table.state, seat)["hand"] for seat in range(2)]
        assert sorted(pack, key=int) == [str(card) for card in range(1, 13)]
        assert [len(hand) for hand in hands] == [3, 3] and not set(hands[0]) & set(hands[1])


def test_hc_2_seat_0_leads() -> None:
    assert dealt("1 2 3", "4 5 6").seat == dealt("4 5 6", "1 2 3").seat == 0


def test_hc_3_any_card_may_be_played_and_the_higher_one_wins() -> None:
    table = dealt("1 7 12", "2 8 9")
    assert legal(table) == ["1", "7", "12"]
    play(table, "7")
    assert table.seat == 1 and legal(table) == ["2", "8", "9"]
    assert GAME.view.outcome(play(table, "8").state) == ("", [0, 1])
    assert table.rewards == [-1, 1]
    assert GAME.view.outcome(play(dealt("1 7 12", "2 8 9"), "12 9").state) == ("", [1, 0])


def test_hc_4_the_winner_leads() -> None:
    assert play(dealt("1 7 12", "2 8 9"), "7 8").seat == 1
    assert play(dealt("1 7 12", "2 8 9"), "7 2").seat == 0


def test_hc_5_three_tricks_and_more_of_them_win() -> None:
    table = play(dealt("1 7 12", "2 8 9", reward="win"), "12 9 7 8")
    assert not table.over and table.rewards == [0, 0]
    assert play(table, "2 1").over
    assert GAME.view.outcome(table.state) == ("played", [1, 2])
    assert table.rewards == [-1, 1] and table.needs_deal


def test_hc_6_what_a_player_sees() -> None:
    table, other = (play(dealt("1 7 12", hand), "7 8") for hand in ("2 8 9", "3 8 10"))
    seen = GAME.view.view(table.state, 0)
    assert (seen["hand"], seen["played"], seen["scores"]) == (["1", "12"], ["7", "8"], [0, 1])
    assert seen == GAME.view.view(other.state, 0)
    assert GAME.view.view(table.state, 1) != GAME.view.view(other.state, 1)
