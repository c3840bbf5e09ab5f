"""Every numbered rule of Russian Bank, from hand-made positions and custom deals.

Moves are written as in RULES.md. Unless a test says otherwise player 0 is to move, and all cards that a position does
not name lie in the hand of player 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.seeding import np_random

from card_envs.engine.table import Table
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.games.russian_bank import GAME, rules, view
from card_envs.testing import moves
from tests.conftest import new_env

CARDS = [rank + suit for rank in "KQJT98765432A" for suit in "CDHS"]
Both = tuple[str, str]
NOTHING: Both = ("", "")
FULL = dict(enumerate(["9C", "9S", "JC", "JS", "KC", "KS", "7C", "7S"], 1))  # no card fits another


def position(
    houses: Mapping[int, str] | None = None,
    *,
    reserves: Both = NOTHING,
    face_down: Both = NOTHING,
    hands: Both = NOTHING,
    wastes: Both = NOTHING,
    foundations: Mapping[str, tuple[int, int]] | None = None,
    turned: bool = False,
    rest: str = "hand 1",
    seat: int = 0,
    stale: tuple[int, int] = (0, 0),
    options: Mapping[str, Any] | None = None,
    **others: Any,
) -> Table:
    """A table at a decision of `seat`.

    Cards are texts such as "KS QH", the top card of a pile last and the next (or turned) card of a hand first. Hands
    are turned-over wastes. `face_down` are the hidden cards of the reserves. `rest` says which hand (after the named
    cards) or waste (under them) takes all other cards. `others` are more entries of the view.
    """
    left = Counter(dict.fromkeys(CARDS, 2))

    def take(text: str) -> list[str]:
        left.subtract(text.split())
        return text.split()

    heights = {suit: list((foundations or {}).get(suit, (0, 0))) for suit in "CDHS"}
    for suit, pair in heights.items():
        for height in pair:
            take(" ".join(rank + suit for rank in "A23456789TJQK"[:height]))
    runs = [take((houses or {}).get(house, "")) for house in range(1, 9)]
    piles: Any = {
        f"{place} {owner}": take(given[owner])
        for place, given in (("reserve", reserves), ("unseen", face_down), ("hand", hands), ("waste", wastes))
        for owner in (0, 1)
    }
    others_left = [card for card in CARDS for _ in range(left[card])]
    assert min(left.values()) >= 0, f"more than two of a card: {left}"
    piles[rest] = others_left + piles[rest] if rest.startswith("waste") else piles[rest] + others_left
    players = []
    for owner in (0, 1):
        reserve, unseen = piles[f"reserve {owner}"], piles[f"unseen {owner}"]
        hand = piles[f"hand {owner}"]
        lowest = len(unseen) + 1 if reserve else 0
        players.append(
            {
                "reserve": {"face_down": len(unseen), "cards": reserve, "lowest": lowest},
                "hand": {"size": len(hand), "cards": hand},
                "waste": piles[f"waste {owner}"],
                "unseen": unseen,
                "stale": stale[owner],
            }
        )
    given = {
        "game": "russian_bank",
        "options": dict(options or {}),
        "seat": seat,
        "scores": [0, 0],
        "starts": 0,
        "to_move": seat,
        "turned": piles[f"hand {seat}"][0] if turned else None,
        "players": players,
        "houses": runs,
        "foundations": heights,
        "house_moves": 0,
        "idle_turns": 0,
        "progress": False,
    }
    return Table(GAME, view.from_view(given | others))


def dealt(
    packs: list[list[str]],
    starts: int | None = 0,
    seed: int = 0,
    later: list[dict[str, Any]] | None = None,
    **options: Any,
) -> Table:
    """A table with these packs dealt; the deals `later` are for `next_game`."""
    table = Table(GAME, rules.new_state(GAME.validated(options)))
    table.seed(seed)
    deal: dict[str, Any] = {"packs": packs} | ({} if starts is None else {"starts": starts})
    table.set_deal(view.parse_deal(table.state, deal | ({"later": later} if later else {}))[0])
    return table


def both(seat: int, own: str, other: str) -> Both:
    """What the player in a seat has, and the other, in the order of the seats."""
    return (own, other) if seat == 0 else (other, own)


def shuffled(seed: int) -> list[str]:
    return Random(seed).sample(CARDS, 52)


def quiet_packs() -> list[list[str]]:
    """Packs with all aces face down in the reserves, so that nothing is compulsory for long."""
    return [sorted(shuffled(seed), key=lambda card: card[0] != "A") for seed in (1, 2)]


def legal(table: Table) -> set[str]:
    return {view.move_text(table.state, int(action)) for action in np.flatnonzero(table.legal())}


def play(table: Table, script: str) -> Table:
    """Play moves; between them `=R-H1,turn` says which are legal then, and `=` alone that there is none."""
    for word in script.split():
        if word[0] == "=":
            assert legal(table) == set(filter(None, word[1:].split(","))), f"{word}, but legal are {legal(table)}"
        else:
            moves.play(table, word)
    return table


def seen(table: Table, seat: int | None = None) -> dict[str, Any]:
    return view.view(table.state, table.seat if seat is None else seat)


def pile(table: Table, player: int, name: str) -> list[str]:
    """The cards of a player's reserve, hand or waste, as they are seen."""
    found: Any = seen(table)["players"][player][name]
    cards: list[str] = found if name == "waste" else found["cards"]
    return cards


def outcome(table: Table) -> tuple[str, list[int]]:
    return view.outcome(table.state)


def house_moves(table: Table) -> set[str]:
    return {move for move in legal(table) if move[0] == "H" and "-H" in move}


# Cards and places


def test_rb_1_each_player_has_a_pack_and_hidden_cards_are_of_it() -> None:
    packs = [shuffled(1), shuffled(2)]
    table = dealt(packs)
    for player, pack in enumerate(packs):
        assert set(seen(table)["players"][player]["unseen"]) == {*pack[:12], *pack[17:]}
    assert sorted(view.dealt_pack(table.state)[:52]) == sorted(view.dealt_pack(table.state)[52:104]) == [*range(52)]


def test_rb_1_copies_play_alike() -> None:
    houses = {1: "5H", 2: "5H", 3: "6S", 4: "6S"}
    assert house_moves(position(houses, hands=("9C", ""))) == {"H1-H3", "H1-H4", "H2-H3", "H2-H4"}


def test_rb_2_the_deal() -> None:
    packs = quiet_packs()
    table = dealt(packs)
    position_seen = seen(table)
    assert position_seen["houses"] == [[card] for pack in packs for card in pack[13:17]]
    for player, pack in enumerate(packs):
        shown = position_seen["players"][player]
        assert shown["reserve"] == {"face_down": 12, "cards": [pack[12]], "lowest": 13}
        assert shown["hand"] == {"size": 35, "cards": None}
        assert shown["waste"] == []
    for k in range(3):
        for pack in packs:
            play(table, "turn")
            assert seen(table)["turned"] == pack[17 + k]
            play(table, "discard")


@pytest.mark.parametrize("size", [11, 12, 13])
def test_rb_2_reserves_of_other_sizes(size: int) -> None:
    packs = quiet_packs()
    table = dealt(packs, reserve=size)
    position_seen = seen(table)
    assert position_seen["houses"] == [[card] for pack in packs for card in pack[size : size + 4]]
    for player, pack in enumerate(packs):
        shown = position_seen["players"][player]
        assert shown["reserve"] == {"face_down": size - 1, "cards": [pack[size - 1]], "lowest": size}
        assert shown["hand"] == {"size": 48 - size, "cards": None} and shown["penalty_points"] == 48 + size
        full = table.observe_all(player)
        hand = full[rules.AT.face_down_hand :][:52]
        assert [int(hand[view.CARDS.index(card)]) for card in pack[size + 4 :]] == [
            max(35 - i, 1) for i in range(48 - size)
        ]
        reserve = full[rules.AT.face_down_reserve :][:52]
        assert [int(reserve[view.CARDS.index(card)]) for card in pack[: size - 1]] == [*range(14 - size, 13)]
    for pack in packs:
        play(table, "turn")
        assert seen(table)["turned"] == pack[size + 4]
        play(table, "discard")
    world = table.copy()
    world.determinize(0, 3)
    for number, pack in enumerate(packs):
        again = [view.CARDS[card] for card in view.dealt_pack(world.state)[52 * number :][:52]]
        assert again[size - 1 : size + 5] == pack[size - 1 : size + 5] and again != pack
    with pytest.raises(ValueError, match="lowest count is not"):
        view.from_view(seen(dealt(packs)) | {"options": {"reserve": 11}, "legal": None})


def test_rb_3_eight_common_houses_and_two_foundations_a_suit() -> None:
    houses = dict(enumerate(["AC", "AC", "AD", "AH", "AS", "9H", "9H", "9D"], 1))
    table = position(houses, reserves=("8C", ""))
    play(table, "H1-F H2-F H3-F H4-F H5-F")
    assert seen(table)["foundations"] == {"C": [1, 1], "D": [1, 0], "H": [1, 0], "S": [1, 0]}
    assert legal(table) == {"R-H1", "R-H6", "R-H7", "R-H8"}
    for seat in (0, 1):  # any player's cards go to any house
        table = position({1: "9H", 8: "9H"}, reserves=both(seat, "8C", ""), seat=seat, hands=("KS", "KS"))
        assert {"R-H1", "R-H2", "R-H8"} <= legal(table)


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("start", ["low_reserve", "high_reserve"])
@pytest.mark.parametrize("low", [0, 1])
def test_rb_4_who_starts_by_the_first_difference(place: int, start: str, low: int) -> None:
    """Equal ranks up to that place: the reserve tops, then H1 and H5 .. H4 and H8."""
    packs = []
    for player in (0, 1):
        ranks = [*"TJQK5"]
        ranks[place] = "4" if player == low else "9"
        shown = [rank + "CDHS"[(player + i) % 4] for i, rank in enumerate(ranks)]
        rest = [card for card in CARDS if card not in shown]
        packs.append(rest[:12] + shown + rest[12:])
    assert dealt(packs, starts=None, start=start).seat == (low if start == "low_reserve" else 1 - low)
    for player in (0, 1):
        assert dealt(packs, starts=player, start=start).seat == player
        assert dealt(packs, starts=None, start=f"player_{player}").seat == player


def test_rb_4_a_coin_decides_a_full_tie_and_random_starts() -> None:
    same = shuffled(3)
    for packs, start in (([same, same], "low_reserve"), ([same, same], "high_reserve"), (quiet_packs(), "random")):
        coins = [dealt(packs, starts=None, seed=seed, start=start).seat for seed in range(200)]
        assert coins == [dealt(packs, starts=None, seed=seed, start=start).seat for seed in range(200)]
        assert 70 < sum(coins) < 130


# The goal


def test_rb_5_the_last_reserve_card_wins() -> None:
    """Also as a load."""
    for table, move in (
        (position({1: "9H"}, reserves=("8C", "")), "R-H1"),
        (position({1: "KS"}, reserves=("8C", "7C")), "R-OR"),
    ):
        assert play(table, move).over and outcome(table)[0] == "win"


@pytest.mark.parametrize("last", ["D-F", "D-H1", "D-H2", "D-OW"])
def test_rb_5_the_last_hand_card_wins(last: str) -> None:
    aces: Any = {"foundations": {"C": (7, 0)}} if last == "D-F" else {}
    table = position({1: "9H"}, hands=("8C", ""), wastes=("", "9C"), rest="hand 1", **aces)
    play(table, f"turn {last}")
    assert table.over and outcome(table)[0] == "win"


@pytest.mark.parametrize("left", ["turned", "hand", "waste"])
def test_rb_5_a_card_left_anywhere_is_no_win(left: str) -> None:
    hands = ("3D", "") if left != "waste" else NOTHING
    wastes = ("3D" if left == "waste" else "", "")
    table = position({1: "9H"}, reserves=("8C", ""), hands=hands, wastes=wastes, turned=left == "turned")
    play(table, "R-H1")
    assert not table.over and not table.needs_deal


def test_rb_5_house_cards_win_nothing_for_the_player_to_move() -> None:
    """Player 0 has one card left; neither its own house moves nor those of player 1 end the game."""
    table = position({1: "AH", 2: "KS", 3: "QD"}, hands=("5C", ""))
    play(table, "H1-F H3-H2 turn discard turn")
    assert not table.needs_deal


# A turn


def test_rb_6_available_cards() -> None:
    """Tops of reserve and houses, and the turned card; no buried card, no waste, no unturned hand card."""
    houses = {1: "9S 8H", 2: "6D", 3: "QC", 4: "QC", 5: "QS", 6: "QS", 7: "KC", 8: "KC"}
    table = position(houses, reserves=("JD", ""), hands=("7C 2C", ""), wastes=("7S", ""))
    always = "=R-H3,R-H4,R-H5,R-H6,"
    play(table, f"{always}turn turn {always}D-H1,discard D-H1 {always}H2-H1,turn")
    table = position({1: "8H"}, hands=("KC", ""), wastes=("7C", "6C"))
    assert not any(move.startswith(("D", "W", "R")) for move in legal(table))


def test_rb_7_foundations_go_up_in_suit_and_keep_their_cards() -> None:
    table = position({1: "3C", 2: "4C", 3: "2D", 4: "AC"}, hands=("KC", ""), foundations={"C": (2, 0)})
    play(table, "=H1-F,H4-F H1-F =H2-F,H4-F H4-F H2-F")
    assert seen(table)["foundations"]["C"] == [4, 1]
    assert not any("F" in move for move in legal(table))  # 2D needs its ace; nothing comes back
    table = play(position({1: "KC"}, hands=("5D", ""), foundations={"C": (12, 12)}), "H1-F")
    assert seen(table)["foundations"]["C"] == [13, 12]


@pytest.mark.parametrize("card", ["8C", "8S", "8H", "8D", "7C", "9C", "TS", "KC"])
def test_rb_8_houses_go_down_in_alternating_colours(card: str) -> None:
    houses = {1: "9H", 2: "2C", 3: "2C", 4: "KD", 5: "KD", 6: "KH", 7: "KH", 8: "QH"}
    table = position(houses, hands=(f"{card} 5D", ""), turned=True)
    expected = {"D-H1"} if card in ("8C", "8S") else set()
    assert {move for move in legal(table) if move[0] == "D"} == expected


def test_rb_8_any_card_goes_to_the_first_empty_house() -> None:
    table = position({1: "9H", 4: "3D 2C", 8: "6H"}, reserves=("JC", ""), hands=("5D 4D", ""), turned=True)
    assert legal(table) == {"R-H2", "D-H2", "H4-H2", "discard"}  # neither H3, nor a lone card


def test_rb_8_only_the_reserve_fills_empty_houses() -> None:
    """Without a reserve any card does; the other player's reserve does not matter."""
    only = {"fill_houses": "reserve"}
    houses = {1: "9H", 4: "3D 2C", 8: "6H"}
    table = position(houses, reserves=("JC QC", ""), hands=("5D 4D", ""), turned=True, options=only)
    play(table, "=R-H2,discard R-H2 =R-H3,discard R-H3 =D-H5,H4-H5,discard")
    table = position(houses, seat=1, reserves=("JC", ""), hands=("", "5D 4D"), turned=True, options=only)
    play(table, "=D-H2,H4-H2,discard")


def test_rb_9_loads_on_both_piles() -> None:
    table = position(
        {1: "7C", 2: "9C", 3: "5D", 4: "7D"}, reserves=("9D", "8C"), hands=("3D", ""), wastes=("", "4D"), turned=True
    )
    loads = {move for move in legal(table) if "O" in move}
    assert loads == {"H1-OR", "H2-OR", "D-OW", "H3-OW"}
    play(table, "H1-OR")
    assert pile(table, 1, "reserve") == ["8C", "7C"]
    assert {move for move in legal(table) if "O" in move} == {"D-OW", "H3-OW"}
    play(table, "D-OW")
    assert pile(table, 1, "waste") == ["4D", "3D"]


@pytest.mark.parametrize(("pairs", "fits"), [("QC-KC 2C-3C 3C-2C", True), ("4C-2C KC-AC QS-KC QH-KS KS-KS", False)])
def test_rb_9_the_same_suit_and_no_wrap(pairs: str, fits: bool) -> None:
    """An ace on a king is no case: it has to go to its foundation. Nothing is loaded on empty piles."""
    for card, top in (pair.split("-") for pair in pairs.split()):
        table = position({1: "JS"}, reserves=(card, top), hands=("6D", ""), foundations={"C": (int(top == "AC"), 0)})
        assert ("R-OR" in legal(table)) == fits, (card, top)
    assert not any("O" in move for move in legal(position({1: "7C"}, hands=("8C", ""), turned=True)))


def test_rb_9_loads_belong_to_the_opponent_and_are_unlimited() -> None:
    """Five loads in a turn; on the reserve they can be played, with the waste they come back as the hand."""
    houses = {1: "7C", 2: "9C", 3: "TC", 4: "4D", 5: "6D", 6: "7D", 7: "8D"}
    table = position(houses, reserves=("", "8C"), hands=("KS QS JS", "3H"), wastes=("", "5D"), rest="hand 0")
    play(table, "H2-OR H3-OR")
    assert pile(table, 1, "reserve") == ["8C", "9C", "TC"]
    play(table, "H5-OW H6-OW H7-OW turn discard")
    assert pile(table, 1, "waste") == ["5D", "6D", "7D", "8D"]
    assert "R-H2" in legal(table)  # the loaded ten is now the top of player 1's reserve
    play(table, "R-H2 R-H3 R-H5 turn discard turn discard")
    play(table, "turn")
    assert pile(table, 1, "hand") == ["5D", "6D", "7D", "8D", "3H"]


def test_rb_10_the_reserve_before_all_others() -> None:
    """Then the player's choice; and all before houses, loads and the discard."""
    table = position({1: "AD", 2: "9H", 3: "8C"}, reserves=("AC", ""), hands=("AH 4C", ""), turned=True)
    play(table, "=R-F R-F =D-F,H1-F H1-F =D-F D-F")
    assert "H3-H2" in legal(table)
    for house, hand, move in (("2C", "KD", "H1-F"), ("", "2C", "D-F")):
        table = position(
            {1: house, 2: "3D"}, reserves=("9S", "8S"), hands=(hand, ""), turned=True, foundations={"C": (1, 0)}
        )
        assert legal(table) == {move}


def test_rb_11_turning_is_a_move_of_its_own() -> None:
    """One card at a time, and not while a foundation waits."""
    table = play(position(FULL, reserves=("5C", ""), hands=("2D 3D", "")), "=turn turn =discard")
    assert seen(table)["turned"] == "2D"
    for card in ("AC", "2C"):
        play(position({1: card}, hands=("3D", ""), foundations={"C": (1, 0)}), "=H1-F")


def test_rb_11_empty_houses_must_be_filled_first() -> None:
    seven = {**FULL, 8: ""}
    table = position(seven, reserves=("5C", ""), face_down=("2H", ""), hands=("2D 3D", ""))
    assert "turn" in legal(play(table, "=R-H8 R-H8"))
    play(position(seven, hands=("2D 3D", "")), "=turn")  # without a reserve there is no gate


@pytest.mark.parametrize("hands", [("2D 3D", ""), ("", "2D")])
def test_rb_11_the_reserve_can_always_fill_a_house(hands: Both) -> None:
    """With hand and waste, and without (RB-15), even after the last house-to-house move in a row (RB-18)."""
    options = {"fill_houses": "reserve"}
    table = position({**FULL, 8: ""}, reserves=("5C", ""), face_down=("2H", ""), hands=hands, options=options)
    assert legal(changed(table, house_moves=16)) == legal(table) == {"R-H8"}


def test_rb_12_other_cards_play_while_one_is_turned_and_then_another_turns() -> None:
    houses = {1: "9H", 2: "8C", 3: "TS", 4: "QH", 5: "4C", 6: "6C", 7: "2C", 8: "KC"}
    table = position(houses, reserves=("JC", ""), face_down=("KD", ""), hands=("9D 3C 3D", ""), turned=True)
    play(table, "H2-H1 R-H4")
    assert "turn" not in legal(table)
    assert pile(table, 0, "reserve") == ["KD"]
    play(table, "R-H2 D-H3 turn")
    assert seen(table)["turned"] == "3C"


def test_rb_13_discarding_ends_the_turn() -> None:
    table = position({1: "9H"}, reserves=("3C", ""), hands=("9D 5C", ""), wastes=("KC", ""), turned=True)
    assert "discard" in legal(table)  # though H2 is empty: that gate is for turning
    play(table, "discard")
    assert pile(table, 0, "waste") == ["KC", "9D"]
    assert pile(table, 0, "hand") == ["5C"]
    assert table.seat == 1


def test_rb_13_not_unturned_and_not_before_a_foundation() -> None:
    table = position({1: "9H"}, hands=("9D 5C", ""))
    assert "discard" not in legal(table)
    with pytest.raises(ValueError, match="turn"):
        view.parse_move(table.state, "discard")
    play(position({1: "AH"}, hands=("9D 5C", ""), turned=True), "=H1-F")


def test_rb_14_the_waste_is_turned_over_in_the_same_move() -> None:
    """No earlier than it is needed; the opponent can load it until then."""
    table = play(position({1: "9H"}, hands=("9D", ""), wastes=("4C 7D JH", "")), "turn")
    assert seen(table)["turned"] == "9D"
    assert pile(play(table, "discard turn discard"), 0, "waste") == ["4C", "7D", "JH", "9D"]
    assert seen(play(table, "turn"))["turned"] == "4C"
    assert pile(table, 0, "hand") == ["4C", "7D", "JH", "9D"] and pile(table, 0, "waste") == []
    table = position({1: "8D", 2: "7D"}, hands=("9D", "KC"), wastes=("4C", ""), rest="waste 1")
    play(table, "turn discard H1-OW H2-OW turn discard turn discard")
    assert pile(table, 0, "hand")[:3] == ["9D", "8D", "7D"]


def test_rb_15_end_with_hand_and_waste_empty() -> None:
    table = play(position(FULL, reserves=("5C", "")), "=end end")
    assert table.seat == 1 and seen(table)["players"][0]["stale"] == 1
    play(position({**FULL, 8: ""}, reserves=("5C", "")), "=R-H8")
    play(position({**FULL, 8: "AH"}, reserves=("5C", "")), "=H8-F")


def test_rb_16_the_next_reserve_card_is_turned_face_up_at_once() -> None:
    table = position({1: "9H"}, reserves=("8C", ""), face_down=("7D", ""), hands=("KC", ""))
    assert seen(table)["players"][0]["unseen"] == ["7D"]
    play(table, "R-H1")
    assert pile(table, 0, "reserve") == ["7D"]
    assert seen(table)["players"][0]["unseen"] == []
    assert "R-H1" in legal(table)
    play(table, "R-H1 turn discard turn")
    assert pile(table, 0, "reserve") == []
    assert not any(move.endswith("-OR") for move in legal(table))  # an emptied reserve stays empty


STACK = "9S 8H 7S 6H 5S 4H 3S 2H"


@pytest.mark.parametrize("empty", range(4))
@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("whole", [False, True])
def test_rb_17_stacks_up_to_two_to_the_number_of_empty_houses(empty: int, size: int, whole: bool) -> None:
    """The stack's size is forced by the card it goes on; it may be a whole house."""
    cards = STACK.split()[-size:]
    rank = "3456789T"[size - 1]
    target = rank + ("D" if cards[0][1] == "S" else "C")
    base = [] if whole or size == 8 else STACK.split()[-size - 1 : -size]
    houses = {1: " ".join(base + cards), 2: target}
    houses |= {house: ["KD", "KH", "KD", "KH", "QD", "QH"][house - 3] for house in range(3, 9 - empty)}
    table = position(houses, hands=("JD", ""))
    fits = size <= 2**empty
    assert ("H1-H2" in legal(table)) == fits
    if fits:
        play(table, "H1-H2")
        assert seen(table)["houses"][:2] == [base, [target, *cards]]


def test_rb_17_no_card_of_a_stack_may_fit_a_foundation() -> None:
    houses = {1: "9S 8H 7S", 2: "9C", 3: "KD", 4: "KD", 5: "KH", 6: "KH"}
    for foundations, fits in (({}, True), ({"H": (7, 0)}, False), ({"S": (8, 0)}, True)):  # 9S stays where it is
        assert ("H1-H2" in legal(position(houses, hands=("JD", ""), foundations=foundations))) == fits


def test_rb_17_only_single_cards_go_to_an_empty_house() -> None:
    table = position({1: "9S 8H 7S", 2: "KH"}, hands=("JD", ""))
    play(table, "H1-H3")
    assert seen(table)["houses"][:3] == [["9S", "8H"], ["KH"], ["7S"]]


@pytest.mark.parametrize("reserves", [("JD", ""), ("", "JD")])
def test_rb_17_stacks_use_no_house_that_they_may_not_fill(reserves: Both) -> None:
    houses = {1: "9S 8H", 2: "9C", 3: "TH", 4: "QD"}
    table = position(houses, reserves=reserves, hands=("JD", ""), options={"fill_houses": "reserve"})
    assert house_moves(table) == ({"H1-H2", "H2-H3"} if reserves[0] else {"H1-H2", "H1-H3", "H1-H5", "H2-H3"})


def to_and_fro(table: Table, times: int) -> Table:
    """Move the 6H between the sevens in H1 and H2."""
    return play(table, " ".join(("H1-H2", "H2-H1")[k % 2] for k in range(times)))


def test_rb_18_sixteen_house_moves_in_a_row() -> None:
    houses = {1: "7S 6H", 2: "7C", 3: "3D", 4: "4C"}
    table = play(to_and_fro(position(houses, hands=("9D KS", "")), 16), "=turn turn")
    assert "H1-H2" in legal(table)
    assert house_moves(play(to_and_fro(table, 15), "H3-H4")) == set()
    assert house_moves(play(table, "discard")) != set()


def test_rb_18_a_stack_counts_as_one_and_other_moves_start_anew() -> None:
    table = position({1: "7S 6H 5C", 2: "7C", 3: "9H"}, reserves=("KC", ""), hands=("8C", ""), turned=True)
    to_and_fro(table, 15)
    assert seen(table)["house_moves"] == 15
    play(table, "D-H3")
    assert seen(table)["house_moves"] == 0
    to_and_fro(play(table, "H2-H1"), 15)
    assert house_moves(table) == set()
    table = position({1: "7S 6H", 2: "7C", 3: "9H", 4: "8H"}, reserves=("KC", "9D"), hands=("8C", ""))
    to_and_fro(table, 16)
    play(table, "R-H5")
    assert house_moves(table) != set()


# Ends


def idle_turns(table: Table, turns: int) -> Table:
    for _ in range(turns):
        assert not table.needs_deal
        play(table, "turn discard")
    return table


def test_rb_19_stalemate_when_both_hands_were_gone_through() -> None:
    table = idle_turns(dealt(quiet_packs()), 69)
    assert [player["stale"] for player in seen(table)["players"]] == [35, 34]
    idle_turns(table, 1)
    assert table.over and outcome(table) == ("stalemate", [0, 0])


@pytest.mark.parametrize("source", ["reserve", "hand"])
@pytest.mark.parametrize("target", ["F", "H1", "OW"])
def test_rb_19_a_card_played_from_reserve_or_hand_starts_anew(source: str, target: str) -> None:
    reserves, hands = (("8C", ""), ("2S", "KC")) if source == "reserve" else (("2S", ""), ("8C", "KC"))
    foundations = {"C": (7, 0)} if target == "F" else {}
    table = position(
        {1: "9H"}, reserves=reserves, face_down=("3S", ""), hands=hands, wastes=("", "9C"), stale=(1, 1),
        turned=source == "hand", foundations=foundations, rest="waste 0",
    )  # fmt: skip
    play(table, f"{'R' if source == 'reserve' else 'D'}-{target}")
    assert [player["stale"] for player in seen(table)["players"]] == [0, 0]


def test_rb_19_house_cards_and_discards_do_not() -> None:
    table = position(
        {1: "8C", 2: "9H", 3: "AD", 4: "TC"}, hands=("5S", "6S"), wastes=("", "9C"), stale=(1, 1), rest="waste 0"
    )
    play(table, "H3-F H1-OW H2-H4 turn discard")
    assert [player["stale"] for player in seen(table)["players"]] == [2, 1]


def num_cards(table: Table, player: int) -> int:
    """Cards in a player's hand and waste."""
    shown = seen(table)["players"][player]
    return int(shown["hand"]["size"]) + len(shown["waste"])


def changed(table: Table, stale: tuple[int, int] | None = None, **entries: Any) -> Table:
    """The same position with other entries of the view."""
    given = seen(table) | entries
    for player, count in zip(given["players"], stale or ()):
        player["stale"] = count
    return Table(GAME, view.from_view(given))


@pytest.mark.parametrize("loaded", [False, True])
def test_rb_19_each_player_counts_own_cards(loaded: bool) -> None:
    """Player 0 has neither hand nor waste and needs one turn end; player 1 needs one for each card, loads included."""
    houses = {**FULL, 1: "TC 9D"}
    table = position(houses, reserves=("5C", ""), hands=("", "2S"), wastes=("", "TD"), rest="waste 1")
    number = num_cards(table, 1)
    table = changed(table, stale=(number - 2, number - 1))
    play(table, "H1-OW end turn" if loaded else "end turn")
    assert not table.needs_deal
    play(table, "discard")
    assert table.needs_deal != loaded


@pytest.mark.parametrize("stale", [0, 1])
def test_rb_19_both_counts_are_needed(stale: int) -> None:
    table = position(FULL, seat=1, reserves=("5C", "5D"), hands=("", "2S"), rest="waste 0")
    number = num_cards(table, 0)
    assert num_cards(table, 1) == 1
    play(changed(table, stale=(stale, stale)), "turn discard")
    assert number > 50 and not table.needs_deal


def test_rb_20_200_turns_without_progress() -> None:
    """The stalemate of RB-19 goes first."""
    table = changed(idle_turns(dealt(quiet_packs()), 3), idle_turns=198)
    assert seen(idle_turns(table, 1))["idle_turns"] == 199 and not table.over
    assert idle_turns(table, 1).over and outcome(table) == ("no_progress", [0, 0])
    table = changed(idle_turns(dealt(quiet_packs()), 69), idle_turns=199)
    assert outcome(idle_turns(table, 1))[0] == "stalemate"


@pytest.mark.parametrize(
    ("moves", "progress"),
    [("R-H1", True), ("H2-F", True), ("H2-F R-H1", True), ("D-H1", False), ("H3-H1", False), ("H3-OW", False)],
)
def test_rb_20_what_progress_is(moves: str, progress: bool) -> None:
    ace = "AD" if "H2-F" in moves else "KD"
    table = position(
        {1: "9H", 2: ace, 3: "8S"}, reserves=("8C", ""), face_down=("7D", ""), hands=("8S 2C", "3H"), wastes=("", "9S"),
        turned=True, idle_turns=50, rest="waste 0",
    )  # fmt: skip
    play(table, moves)
    assert seen(table)["progress"] == progress
    if "D" not in moves:
        play(table, "discard")
        assert seen(table)["idle_turns"] == (0 if progress else 51)


def test_rb_20_a_loaded_card_played_is_no_new_minimum() -> None:
    table = position({1: "9H", 2: "TH"}, reserves=("8C 9C", ""), face_down=("7D", ""), hands=("2S", ""), turned=True)
    play(table, "R-H2")
    assert not seen(table)["progress"]
    play(table, "R-H1")
    assert seen(table)["progress"]


def test_rb_21_a_win_scores_the_loser_s_penalty_points_and_30() -> None:
    table = play(one_from_winning([0, 0]), "R-F")
    assert outcome(table) == ("win", [2 + 2 + 2 + 30, 0])
    assert table.rewards == [36, -36]


@pytest.mark.parametrize("seat", [0, 1])
def test_rb_21_after_a_stalemate_the_lower_penalty_scores_the_difference(seat: int) -> None:
    table = position(
        FULL, seat=seat, reserves=both(seat, "", "5C"), face_down=both(seat, "", "3D 4D"), hands=both(seat, "2D", ""),
        rest=f"hand {seat}",
    )  # fmt: skip
    number = num_cards(table, seat)
    table = changed(table, stale=(number - 1, number - 1))
    play(table, "turn discard")
    points = number - 2 * 3
    assert outcome(table) == ("stalemate", [0, points] if seat == 0 else [points, 0])
    assert table.rewards == ([-points, points] if seat == 0 else [points, -points])


def test_rb_21_equal_penalty_points_score_nothing() -> None:
    table = idle_turns(dealt(quiet_packs(), reward="win"), 70)
    assert [player["penalty_points"] for player in seen(table)["players"]] == [61, 61]
    assert outcome(table) == ("stalemate", [0, 0]) and table.rewards == [0, 0]


def test_rb_21_penalty_points_as_rewards() -> None:
    """Every move pays what it changes, and the win its 30."""
    table = position(
        {1: "9H", 2: "8C", 3: "6C", 4: "TD"},
        reserves=("7C", "7D"), face_down=("7S", ""), hands=("6D", ""), turned=True,
        wastes=("", "9D"), options={"reward": "penalty"},
    )  # fmt: skip
    for move, change in {"H2-H1": 0, "H4-OW": 1, "D-OR": 3, "R-H2": 2}.items():
        play(table, move)
        assert table.rewards == [change, -change]
    play(table, "R-H4")
    assert table.rewards == [32, -32]


@pytest.mark.parametrize("reward", ["points", "win", "penalty"])
@pytest.mark.parametrize("bot", ["trivial", "greedy"])
def test_rb_21_rewards_of_a_game_add_up(reward: str, bot: str) -> None:
    for seed in range(20):
        table = dealt([shuffled(seed), shuffled(seed + 100)], seed=seed, reward=reward)
        total = 0.0
        while not table.over:
            table.play(table.bot_move(bot))
            assert table.rewards[0] == -table.rewards[1]
            total += table.rewards[0]
        margin = outcome(table)[1][0] - outcome(table)[1][1]
        assert total == (np.sign(margin) if reward == "win" else margin)


def one_from_winning(scores: list[int], **others: Any) -> Table:
    """Player 0 wins with its next move and scores 36."""
    foundations = {"C": (13, 6), "D": (13, 13), "H": (13, 13), "S": (13, 13)}
    return position(
        {1: "8C"}, reserves=("7C", "9C"), hands=("", "TC JC"), wastes=("", "KC QC"), foundations=foundations,
        scores=scores, **others,
    )  # fmt: skip


@pytest.mark.parametrize("reward", ["points", "win", "penalty"])
def test_rb_22_a_match_ends_at_150_points(reward: str) -> None:
    options = {"match": True, "reward": reward}
    table = play(one_from_winning([113, 149], options=options), "R-F")
    assert table.needs_deal and not table.over and outcome(table) == ("", [149, 149])
    assert table.rewards == {"points": [36, -36], "win": [0, 0], "penalty": [32, -32]}[reward]
    table = play(one_from_winning([114, 149], options=options), "R-F")
    assert table.over and outcome(table) == ("match", [150, 149])
    assert table.rewards == {"points": [36, -36], "win": [1, -1], "penalty": [32, -32]}[reward]


@pytest.mark.parametrize("target", [50, 300])
def test_rb_22_a_match_to_other_targets(target: int) -> None:
    options = {"match": True, "match_target": target}
    table = play(one_from_winning([target - 37, target - 1], options=options), "R-F")
    assert table.needs_deal and not table.over
    table = play(one_from_winning([target - 36, target - 1], options=options), "R-F")
    assert table.over and outcome(table) == ("match", [target, target - 1])
    with pytest.raises(ValueError, match=f"expected 0 to {target - 1} while a match runs"):
        one_from_winning([target, 0], options=options)


def test_rb_22_points_beyond_the_observation_are_clipped() -> None:
    foundations = {"C": (7, 6)}
    table = position(
        {1: "8C"}, reserves=("7C", "KC"), scores=[299, 250], foundations=foundations, rest="waste 1",
        options={"match": True, "match_target": 300},
    )  # fmt: skip
    play(table, "R-F")
    points = outcome(table)[1][0]
    assert table.over and points >= 400
    assert observed(table, 0, "score_hundreds") == [3, 2]
    assert observed(table, 0, "score_units") == [points % 100, 50]


def test_rb_22_each_game_deals_afresh_and_rb_4_decides_who_starts() -> None:
    table = dealt([shuffled(1), shuffled(2)], match=True, seed=3)
    other = dealt([shuffled(3), shuffled(4)], match=True, seed=3)
    starts = []
    for game in range(6):
        if game > 0:
            assert np.array_equal(view.dealt_pack(table.state), view.dealt_pack(other.state))  # random, from the seed
            packs = view.dealt_pack(table.state)
            low = [packs[52 * player + 12] // 4 for player in (0, 1)]
            if low[0] != low[1]:
                assert table.seat == (0 if low[0] < low[1] else 1)
            starts.append(table.seat)
            assert seen(table)["game_number"] == game
            assert seen(table)["houses"] == [[view.CARDS[packs[52 * p + 13 + i]]] for p in (0, 1) for i in range(4)]
        for each in (table, other):
            while not each.needs_deal:
                each.play(each.bot_move("trivial"))
            assert not each.over
            each.deal()
    assert set(starts) == {0, 1}


def test_rb_22_later_games_of_a_custom_deal() -> None:
    games = [{"packs": [shuffled(2 * i), shuffled(2 * i + 1)], "starts": i % 2} for i in range(3)]
    deal = games[0] | {"later": games[1:]}
    state = rules.new_state(GAME.validated({"match": True}))
    packs = view.parse_deal(state, deal)
    assert len(packs) == 3 and view.deal_text(packs) == deal
    with pytest.raises(ValueError, match=r"deal\.later"):
        view.parse_deal(rules.new_state(GAME.validated({})), deal)


@pytest.mark.parametrize(("scores", "winner"), [([20, 10], 0), ([10, 20], 1), ([20, 20], None)])
def test_rb_22_at_most_50_games(scores: list[int], winner: int | None) -> None:
    for number, over in ((48, False), (49, True)):
        table = dealt(quiet_packs(), match=True, reward="win")
        table = changed(idle_turns(table, 69), game_number=number, scores=scores)
        idle_turns(table, 1)
        assert table.over == over and table.needs_deal
    assert outcome(table) == ("match", scores)
    assert table.rewards == ([0, 0] if winner is None else [1, -1] if winner == 0 else [-1, 1])


# What a player may know


def observed(table: Table, seat: int, field: str) -> list[int]:
    """A field of a seat's observation, by its name in RULES.md."""
    names = [each.name for each in rules.OBS_FIELDS]
    start = getattr(rules.AT, field)
    return [int(value) for value in table.observe(seat)[start : start + rules.OBS_FIELDS[names.index(field)].size]]


def planes(table: Table, seat: int, field: str) -> list[dict[str, int]]:
    """A field of planes of 52 as the cards that are not 0."""
    values = observed(table, seat, field)
    return [
        {card: value for card, value in zip(view.CARDS, values[start : start + 52]) if value}
        for start in range(0, len(values), 52)
    ]


def test_rb_23_both_players_see_the_same_piles() -> None:
    table = dealt([shuffled(1), shuffled(2)], seed=3)
    while not table.needs_deal:
        one, other = seen(table, 0), seen(table, 1)
        assert {key for key in one if one[key] != other[key]} <= {"seat", "legal"}
        assert one["legal"] == [] or other["legal"] == []
        table.play(table.bot_move("trivial"))


def test_rb_23_the_first_pass_is_hidden_and_the_second_known_in_order() -> None:
    table = idle_turns(dealt(quiet_packs()), 68)
    assert seen(table)["players"][0]["hand"] == {"size": 1, "cards": None}
    assert planes(table, 0, "next") == [{}, {}]
    first = pile(table, 0, "waste")
    card = seen(play(table, "turn"))["turned"]
    play(table, "discard")
    assert planes(table, 0, "next") == planes(table, 1, "next")[::-1] == [{first[0]: 1}, {}]
    order = {name: 104 - i for i, name in enumerate([*first, card])}
    assert planes(table, 0, "coming")[0] == planes(table, 1, "coming")[2] == order


def test_rb_23_known_orders_loads_and_copies() -> None:
    table = position(
        {1: "9H", 2: "4D"}, reserves=("8C 7C 8C", "QD"), face_down=("7D 2C", ""), hands=("KC 3C KC", "TC"),
        wastes=("3C JD", ""), turned=True, rest="waste 1",
    )  # fmt: skip
    coming = [{"KC": 103, "3C": 104, "JD": 101}, {"3C": 102}]
    loaded = [{"7C": 104, "8C": 103}, {}]
    for seat in (0, 1):
        mine, theirs = (slice(0, 2), slice(2, 4)) if seat == 0 else (slice(2, 4), slice(0, 2))
        assert planes(table, seat, "coming")[mine] == coming
        assert planes(table, seat, "coming")[theirs][0]["TC"] == 104
        assert planes(table, seat, "loaded")[mine] == loaded
        assert planes(table, seat, "turned") == [{"KC": 1}]
        assert planes(table, seat, "unseen")[seat] == {"7D": 1, "2C": 1}
        assert planes(table, seat, "reserve_top")[seat] == {"8C": 1}
        assert observed(table, seat, "reserve_sizes") == ([5, 1] if seat == 0 else [1, 5])


def test_rb_23_hidden_cards_move_and_known_ones_stay() -> None:
    """Drawn again, each pack's unseen cards lie in its hidden places, in all orders alike."""
    table = dealt([shuffled(1), shuffled(2)], starts=0)
    play(table, "turn")
    before = seen(table)
    tops: Counter[str] = Counter()
    for key in range(3000):
        world = table.copy()
        world.determinize(0, key)
        if key < 50:
            assert seen(world) == before and seen(world, 1) == seen(table, 1)
        for player in (0, 1):
            size = int(world.state.hand_next[player]) + (1 if player == 0 else 0)
            hidden = [*world.state.reserves[player, 1:13], *world.state.hands[player, size:35]]
            assert sorted(view.CARDS[card] for card in hidden) == sorted(before["players"][player]["unseen"])
        tops[view.CARDS[world.state.reserves[0, 12]]] += 1
    expected = 3000 / len(before["players"][0]["unseen"])
    assert len(tops) == len(before["players"][0]["unseen"])
    assert sum((number - expected) ** 2 / expected for number in tops.values()) < 90  # 45 degrees of freedom


def test_games_that_end_before_the_learners_first_turn_are_skipped() -> None:
    """One of 16,000 against greedy; a deal that was given is dealt even so."""
    seed = 83068
    env = SingleSeatEnv(GAME.name, opponents="greedy")
    env.reset(seed=seed)
    assert env.action_masks().any()
    raw = new_env(GAME, int(np_random(seed)[0].integers(1 << 63, dtype=np.uint64)))
    env.reset(seed=0, options={"deal": raw.record().deal})
    assert not env.action_masks().any() and env._env.outcome()["reason"] == "win"
