"""Big Ben: each numbered rule of RULES.md, from hand-made positions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from card_envs.cards import ACE_LOW, deck
from card_envs.engine.table import Table
from card_envs.game import State
from card_envs.games.big_ben import GAME, rules, view
from card_envs.games.big_ben.options import Options

CARDS = deck(ACE_LOW)
PILES = ("T12", *(f"T{hour}" for hour in range(1, 12)))
BASES = {
    "12": "5D", "1": "6C", "2": "7H", "3": "8S", "4": "9D", "5": "TC",
    "6": "JH", "7": "QS", "8": "KD", "9": "2C", "10": "3H", "11": "4S",
}  # fmt: skip
LASTS = {
    "12": "QD", "1": "AC", "2": "2H", "3": "3S", "4": "4D", "5": "5C",
    "6": "6H", "7": "7S", "8": "8D", "9": "9C", "10": "TH", "11": "JS",
}  # fmt: skip


def higher(card: str) -> str:
    """The next card up in suit, an ace after the king."""
    return ACE_LOW[(ACE_LOW.index(card[0]) + 1) % 13] + card[1]


def run_to(hour: str, top: str) -> list[str]:
    """The cards placed at an hour up to that top card, without the base."""
    cards: list[str] = []
    while (cards or [BASES[hour]])[-1] != top:
        cards.append(higher((cards or [BASES[hour]])[-1]))
    return cards


def position(
    piles: dict[str, str],
    *,
    foundations: dict[str, str] | None = None,
    waste: str = "",
    stock: str | None = None,
    hops: int = 0,
    **options: Any,
) -> Table:
    """A table with these piles and foundations (the others: base cards, hour 11 complete).

    Piles not given hold three cards whose top card can neither be moved nor built on. What is left over lies at the
    bottom of the waste where the stock is given (its order is kept), else in the stock.
    """
    tops = {**BASES, "11": "JS", **(foundations or {})}
    given = {name: cards.split() for name, cards in piles.items()}
    left = Counter(CARDS * 2)
    left.subtract(BASES.values())
    for hour, top in tops.items():
        left.subtract(run_to(hour, top))
    for cards in (*given.values(), waste.split(), (stock or "").split()):
        left.subtract(cards)
    assert min(left.values()) >= 0, left
    wanted = {higher(top) for hour, top in tops.items() if top != LASTS[hour]}
    shown = [cards[-1] for cards in given.values() if cards] + waste.split()[-1:] + (stock or "").split()

    def idle_card() -> str:
        card = next(
            card
            for card in left.elements()
            if card not in wanted and not any(higher(card) == top or card == higher(top) for top in shown)
        )
        left[card] -= 1
        shown.append(card)
        return card

    for name in PILES:
        if name not in given:
            top = idle_card()
            under = [card for card in left.elements() if card != higher(top)][-2:]
            left.subtract(under)
            given[name] = [*under, top]
    rest = list(left.elements())
    if stock is not None and rest:
        rest.remove(last := idle_card())
        rest.append(last)
    seen = {
        "game": "big_ben",
        "seat": 0,
        "options": options,
        "foundations": tops,
        "piles": given,
        "waste": (rest if stock is not None else []) + waste.split(),
        "hops": hops,
    }
    table = Table(GAME, view.from_view(seen))
    if stock is not None:
        table.state.pack[int(table.state.num_dealt) :] = [CARDS.index(card) for card in stock.split()]
    return table


def legal(table: Table) -> set[str]:
    return {view.move_text(table.state, int(action)) for action in np.flatnonzero(table.legal())}


def play(table: Table, script: str) -> Table:
    """Play moves; between them `=T1-F,deal` says which are legal then."""
    for word in script.split():
        if word[0] == "=":
            assert legal(table) == set(word[1:].split(",")), f"{word}, but legal are {legal(table)}"
            continue
        assert word in legal(table), f"{word} is not among {legal(table)}"
        table.play(view.parse_move(table.state, word))
    return table


def seen(table: Table) -> dict[str, Any]:
    return view.view(table.state, 0)


def new_table(seed: int = 0, **options: Any) -> Table:
    table = Table(GAME, rules.new_state(Options(**options)))
    table.seed(seed)
    table.deal()
    return table


# The numbered rules


def test_bb_01_foundations() -> None:
    table = new_table()
    assert seen(table)["foundations"] == BASES
    assert {hour: run[-1] for hour, run in zip(view.HOURS, view.RUNS, strict=True)} == LASTS
    for hour in BASES:
        table.state.to_come[view.HOURS.index(hour)] = 0
    assert seen(table)["foundations"] == LASTS
    assert sum(len(run_to(hour, top)) for hour, top in LASTS.items()) == 92


def test_bb_02_layout() -> None:
    table = Table(GAME, rules.new_state(Options()))
    table.seed(7)
    table.deal()
    cards = view.deal_text([view.dealt_pack(table.state)])["pack"]
    assert Counter(cards) + Counter(BASES.values()) == Counter(CARDS * 2)
    order = cards[::-1]  # any other order of these
    table.set_deal(view.parse_deal(table.state, {"pack": order})[0])
    assert seen(table)["piles"] == {name: [order[i], order[12 + i], order[24 + i]] for i, name in enumerate(PILES)}
    assert seen(table)["stock"] == sorted(order[36:], key=CARDS.index)
    assert seen(table)["waste"] == [] and seen(table)["stock_size"] == 56
    kept = seen(table)["piles"]
    play(table, "deal")
    assert seen(table)["waste"] == [order[36]] and seen(table)["piles"] == kept


def test_bb_03_only_top_cards_move() -> None:
    table = position({"T12": "6D 2S 3S", "T1": "3C 7C 2H", "T2": ""}, waste="7C 9H")
    assert {"6D", "7C"} <= {higher(base) for base in BASES.values()}  # wanted, but covered
    assert legal(table) == {"deal"}
    table = position({"T12": "2S 3S 6D", "T1": "3C 2H 7C", "T2": ""}, waste="8H")
    assert legal(table) == {"T12-F", "T1-F", "W-F", "deal"}


def test_bb_04_foundations_are_built_up_in_suit_round_the_corner() -> None:
    table = position({"T12": "2S 9H KC", "T3": "2D 4D AC", "T5": "QH QH 2C"}, foundations={"1": "QC"})
    assert "T3-F" not in legal(table)
    play(table, "T12-F T3-F")  # ace on king
    assert seen(table)["foundations"]["1"] == "AC" and seen(table)["to_come"]["1"] == 0
    assert "T5-F" not in legal(table)  # hour 1 is complete, and no other hour wants 2C
    table = position({"T12": "2S 9C AH", "T3": "2D 4D 2H", "T5": "QH QC 3H"}, foundations={"2": "KH"})
    play(table, "T12-F T3-F")
    assert seen(table)["foundations"]["2"] == "2H" and "T5-F" not in legal(table)


def test_bb_05_piles_of_three_are_built_down_in_suit_round_the_corner() -> None:
    piles = {"T12": "5C 9H AC", "T1": "2S 3S KC", "T3": "5H 9S KH", "T4": "6H 3D", "T5": "9C 8H 2D"}
    table = position(piles)
    assert legal(table) == {"T1-T12", "deal"}  # king on ace, but in suit only, and nothing on the two cards of T4
    play(table, "T1-T12")
    assert seen(table)["piles"]["T12"] == ["5C", "9H", "AC", "KC"] and seen(table)["piles"]["T1"] == ["2S", "3S"]
    table = position({"T12": "5C 9H 4D", "T1": "2S 3S 5D", "T2": "9C 3D"})
    play(table, "T12-T1 T2-T1")  # the top card of a short pile may be played
    assert seen(table)["piles"]["T1"] == ["2S", "3S", "5D", "4D", "3D"]
    assert seen(table)["piles"]["T2"] == ["9C"]


def test_bb_05_any_pile_but_an_empty_one_may_be_built_on() -> None:
    piles = {"T12": "5C", "T1": "2S 4D", "T2": "", "T3": "2S 3S 3D", "T4": "9H 4C"}
    assert legal(position(piles)) == {"deal"}
    table = play(position(piles, build_on="any_pile"), "=T3-T1,T4-T12,deal T3-T1 T4-T12")
    shown = seen(table)["piles"]
    assert (shown["T1"], shown["T12"], shown["T3"], shown["T4"]) == (
        ["2S", "4D", "3D"],
        ["5C", "4C"],
        ["2S", "3S"],
        ["9H"],
    )
    assert [table.observe(0)[rules.AT.gaps + PILES.index(name)] for name in ("T1", "T12", "T2", "T3")] == [0, 1, 3, 1]
    stocked = seen(table)["stock_size"]
    play(table, "deal")  # the gaps that are left are filled
    assert all(len(pile) >= 3 for pile in seen(table)["piles"].values())
    assert seen(table)["stock_size"] == stocked - 1 - 3 - 1 - 2


def test_bb_06_the_foundation_with_more_to_come_takes_the_card() -> None:
    table = position({"T12": "2S 3S TD", "T1": "2S 4C TD"}, foundations={"12": "9D"})
    assert seen(table)["to_come"]["12"] == 3 and seen(table)["to_come"]["4"] == 8
    play(table, "T12-F")
    assert seen(table)["foundations"]["4"] == "TD" and seen(table)["foundations"]["12"] == "9D"
    play(table, "T1-F")
    assert seen(table)["foundations"]["12"] == "TD"
    # The later hour is not always the one: here hour 8 has 3 to come and hour 12 has 7.
    table = play(position({"T12": "2S 3S 6D"}, foundations={"8": "5D"}), "T12-F")
    assert seen(table)["foundations"]["12"] == "6D" and seen(table)["foundations"]["8"] == "5D"


@pytest.mark.parametrize(
    ("order", "filled"),
    [
        ("rounds", {"T12": "8C TH", "T3": "9C 2C 9D", "T5": "2D JC"}),
        ("pile_by_pile", {"T12": "8C 9D JC", "T3": "9C 2C TH", "T5": "2D"}),
    ],
)
def test_bb_07_gaps_are_filled(order: str, filled: dict[str, str]) -> None:
    short = {"T12": "", "T3": "9C 2C", "T5": "2D"}
    table = position(short, stock="8C 9D JC TH", fill_order=order, waste_deal="when_stuck")
    before = seen(table)["waste"]
    play(table, "deal")
    after = seen(table)
    assert {name: " ".join(after["piles"][name]) for name in filled} == filled
    assert after["stock_size"] == 0 and after["waste"] == before
    assert table.state.over or "deal" not in legal(table)  # gaps, but no stock


@pytest.mark.parametrize("order", ["rounds", "pile_by_pile"])
def test_bb_07_all_gaps_are_filled_at_any_time_in_one_move(order: str) -> None:
    short = {"T12": "KC", "T3": "9C 7C", "T11": ""}
    table = position(short, stock="8C 9D JC TH 2S 3S 5S", foundations={"2": "9H"}, fill_order=order)
    play(table, "=T3-F,deal deal")
    expected = {
        "rounds": {"T12": "KC 8C TH", "T3": "9C 7C 9D", "T11": "JC 2S 3S"},
        "pile_by_pile": {"T12": "KC 8C 9D", "T3": "9C 7C JC", "T11": "TH 2S 3S"},
    }
    assert {name: " ".join(seen(table)["piles"][name]) for name in short} == expected[order]
    assert seen(table)["stock_size"] == 1


@pytest.mark.parametrize("when", ["always", "when_stuck"])
def test_bb_08_a_card_to_the_waste(when: str) -> None:
    table = position({"T12": "2S 6H 4D", "T1": "2S 3S 3D"}, waste_deal=when)
    assert legal(table) == {"T1-T12"} | ({"deal"} if when == "always" else set())
    table = position({}, waste_deal=when)
    assert legal(table) == {"deal"}
    piles = seen(table)["piles"]
    play(table, "deal")
    assert len(seen(table)["waste"]) == 1 and seen(table)["piles"] == piles and seen(table)["stock_size"] == 48


def test_bb_08_a_barred_hop_is_no_legal_move() -> None:
    piles = {"T12": "2S 6H 4D", "T1": "2S 3S 4D 3D"}
    table = play(position(piles, hops=3, waste_deal="when_stuck"), "=T1-T12 T1-T12")
    assert legal(table) == {"deal"}  # the way back is barred


def test_bb_09_the_waste() -> None:
    piles = {"T12": "2S 6H 4D", "T1": "2S 4D", "T2": ""}
    table = position(piles, waste="8H 3D", stock="QC", foundations={"2": "8H"})
    assert legal(table) == {"W-T12", "deal"}  # neither to two cards nor to a gap
    play(table, "W-T12")
    assert seen(table)["piles"]["T12"] == ["2S", "6H", "4D", "3D"]
    assert seen(table)["waste"][-1] == "8H"
    table = position(piles, waste="9H", stock="QC", foundations={"2": "8H"})
    rest = seen(table)["waste"][:-1]
    play(table, "W-F")
    assert seen(table)["foundations"]["2"] == "9H" and seen(table)["waste"] == rest
    # No redeal: the waste stays where it is once the stock has run out.
    table = position({"T12": "2S 6H 9H", "T1": "5S 4C 7C"}, waste="QC", stock="QC", foundations={"2": "8H"})
    play(table, "deal")
    assert seen(table)["waste"][-2:] == ["QC", "QC"] and legal(table) == {"T12-F", "T1-F"}


def test_bb_09_waste_cards_to_foundations_only() -> None:
    piles = {"T12": "2S 6H 4D", "T1": "2S 4D"}
    for build_on in ("full_piles", "any_pile"):
        table = position(piles, waste="9H 3D", foundations={"2": "8H"}, waste_to="foundations", build_on=build_on)
        assert legal(table) == {"deal"}
    table = position(piles, waste="3D 9H", foundations={"2": "8H"}, waste_to="foundations")
    assert legal(table) == {"W-F", "deal"}
    for bot in ("trivial", "greedy"):
        assert view.move_text(table.state, table.bot_move(bot)) == "W-F"


def test_bb_09_the_waste_is_turned_over_once() -> None:
    table = position({"T12": "2S 6H 9H", "T1": "5S 4C 7C"}, waste="9C QC", stock="", foundations={"2": "8H"}, redeals=1)
    waste = seen(table)["waste"]
    assert legal(table) == {"T12-F", "T1-F", "deal"} and not seen(table)["redealt"]
    assert not rules.reveals(table.state, rules.DEAL)
    play(table, "deal")
    assert seen(table)["redealt"] and seen(table)["waste"] == [] and seen(table)["stock"] == waste
    assert seen(table)["stock_size"] == len(waste) == table.observe(0)[rules.AT.stock_size]
    for number, card in enumerate(waste):  # the oldest card first
        again = Table(GAME, view.from_view(seen(table)))
        assert seen(again) == seen(table) and np.array_equal(again.observe_all(0), table.observe_all(0))
        assert seen(table)["stock"] == waste[number:] and not rules.reveals(table.state, rules.DEAL)
        before = table.observe_all(0).tolist()
        table.determinize(0, number)  # the order is known
        assert table.observe_all(0).tolist() == before
        assert table.observe_all(0)[rules.AT.stock_next + CARDS.index(card)] == 1
        play(table, "deal")
        assert seen(table)["waste"] == waste[: number + 1]
    assert legal(table) == {"T12-F", "T1-F"}  # no second time
    play(table, "T12-F T1-F")
    assert table.over and view.outcome(table.state)[0] == "lost"


@pytest.mark.parametrize("when", ["always", "when_stuck"])
def test_bb_09_a_redeal_fills_gaps_afterwards(when: str) -> None:
    """It is legal with gaps and beside other moves; the stock then fills them from the oldest card on."""
    table = position({"T12": "2S 6H 9H", "T1": "5S"}, waste="9C QC", stock="", foundations={"2": "8H"},
                     redeals=1, waste_deal=when)  # fmt: skip
    waste = seen(table)["waste"]
    play(table, "deal")
    assert seen(table)["piles"]["T1"] == ["5S"] and legal(table) == {"T12-F", "deal"}
    play(table, "deal")
    assert seen(table)["piles"]["T1"] == ["5S", *waste[:2]] and seen(table)["stock"] == waste[2:]
    play(table, "deal" if when == "always" else "T12-F")
    assert seen(table)["waste"] == (waste[2:3] if when == "always" else [])


def test_bb_09_an_empty_waste_is_not_turned_over() -> None:
    nothing = dict.fromkeys(PILES, "")
    table = position({**nothing, "T7": "7S", "T3": "8D"}, foundations={**finish("7S", "7"), "8": "7D"}, redeals=1)
    assert legal(table) == {"T7-F", "T3-F"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": {}}, "redealt: the waste is turned over only"),
        ({"stock": None}, "stock: expected .* in the order"),
        ({"redealt": False}, "stock|redealt"),
    ],
)
def test_bb_09_contradictory_views_are_refused(change: dict[str, Any], message: str) -> None:
    shown = seen(play(position({"T12": "2S 6H 9H"}, waste="9C QC", stock="", redeals=1), "deal"))
    assert len(shown["stock"]) > 1
    if "redealt" in change:
        shown["stock"].sort()
        shown["stock"][:2] = shown["stock"][1::-1]
        shown["stock_size"] += 1
    with pytest.raises(ValueError, match=message):
        view.from_view({**shown, "legal": None, **change})


def test_bb_10_four_hops_in_a_row() -> None:
    piles = {"T12": "2S 6H 4D", "T1": "2S 3S 4D", "T2": "5H 6H 3D"}
    table = position(piles)
    play(table, "T2-T12")  # it lay on another card: no hop
    assert table.state.hops == 0
    for k, move in enumerate(("T12-T1", "T1-T12", "T12-T1", "T1-T12")):
        play(table, move)
        assert table.state.hops == k + 1
    assert not {"T12-T1", "T1-T12"} & legal(table)
    play(table, "deal")  # any other move resets the count
    assert table.state.hops == 0 and "T12-T1" in legal(table)
    # Between short piles as well, where they may be built on; then they are no longer short.
    table = play(position({"T12": "4D", "T1": "4D 3D"}, hops=3, build_on="any_pile"), "T1-T12")
    assert table.state.hops == 4 and "T12-T1" not in legal(table)
    # From a pile of two cards onto the other copy: a hop as well.
    table = position({"T12": "2S 6H 4D", "T2": "4D 3D"})
    assert table.state.hops == 0
    play(table, "T2-T12")
    assert table.state.hops == 1


def test_bb_10_only_the_copy_that_lies_on_it_is_barred() -> None:
    """In the waste 3D lies on one copy of 4D, and may go to the other even at the cap: the waste never hops."""
    piles = {"T12": "2S 6H 4D", "T1": "2S 3S 5C 4C", "T2": "5H 6H 5C"}
    table = play(position(piles, waste="4D 3D", hops=4), "=W-T12,deal W-T12")
    assert table.state.hops == 0 and "T1-T2" in legal(table)
    piles = {"T12": "2S 6H 4D", "T1": "2S 3S 4D 3D", "T2": "5H 6H 3D"}
    assert play(position(piles, hops=4), "=T2-T12,deal T2-T12").state.hops == 0


def finish(last_to_come: str, hour: str) -> dict[str, str]:
    """All foundations complete, but for the last card of one hour."""
    run = [BASES[hour], *run_to(hour, LASTS[hour])]
    assert run[-1] == last_to_come
    return {**LASTS, hour: run[-2]}


@pytest.mark.parametrize("reward", ["win", "cards"])
def test_bb_11_won_at_once(reward: str) -> None:
    nothing = dict.fromkeys(PILES, "")
    table = play(position({**nothing, "T7": "7S"}, foundations=finish("7S", "7"), reward=reward), "T7-F")
    assert table.state.over and table.state.needs_deal
    assert view.outcome(table.state) == ("won", [92])
    assert legal(table) == set() and seen(table)["to_move"] is None


def test_bb_11_not_lost_before_the_redeal() -> None:
    table = play(position({}, stock="QC", redeals=1), "deal")
    assert not table.over and legal(table) == {"deal"}


def test_bb_11_lost_at_once() -> None:
    # The last card of the stock goes to the waste, and nothing can be moved.
    table = position({}, stock="QC")
    assert not table.state.over
    play(table, "deal")
    assert table.state.over and table.state.needs_deal and view.outcome(table.state) == ("lost", [7])
    # Two hops are left, then the fifth is barred: lost although a card still has a place.
    table = play(position({"T12": "2S 6H 4D", "T1": "2S 3S 4D 3D"}, stock="", hops=2), "T1-T12")
    assert not table.state.over and legal(table) == {"T12-T1"}
    play(table, "T12-T1")
    assert table.state.over and view.outcome(table.state)[0] == "lost"


def test_bb_12_rewards() -> None:
    nothing = dict.fromkeys(PILES, "")
    for reward, paid in (("win", 1.0), ("cards", 1 / 92)):
        table = position({**nothing, "T7": "7S"}, foundations=finish("7S", "7"), reward=reward)
        assert play(table, "T7-F").state.rewards[0] == pytest.approx(paid)
        table = position({"T12": "KH QC 6D"}, reward=reward)
        assert play(table, "T12-F").state.rewards[0] == pytest.approx(0 if reward == "win" else paid)
        assert play(table, "deal").state.rewards[0] == 0
        assert view.outcome(table.state) == ("", [8])
        lost = play(position({}, stock="QC", reward=reward), "deal")
        assert lost.state.over and lost.state.rewards[0] == 0 == rules.WORST_SCORE


def test_bb_13_only_the_order_of_the_stock_is_hidden() -> None:
    table = position({"T12": "2S 6H 4D"}, stock="QC 9S QC")
    known = seen(table), table.observe(0).tolist()
    orders: Counter[tuple[str, ...]] = Counter()
    for key in range(3000):
        table.determinize(0, key)
        orders[tuple(CARDS[card] for card in view.stock_of(table.state))] += 1
        full = table.observe_all(0)
        assert full[: GAME.rules.OBS_SIZE].tolist() == known[1]
        place = int(full[rules.AT.stock_places + CARDS.index("9S")])
        assert CARDS[table.state.pack[int(table.state.num_dealt) + place - 1]] == "9S"
    assert (seen(table), table.observe(0).tolist()) == known
    assert set(orders) == {("QC", "9S", "QC"), ("9S", "QC", "QC"), ("QC", "QC", "9S")}
    assert all(880 < times < 1120 for times in orders.values())  # 1000 each, 4.6 standard deviations


# The players, the notation, what is kept at hand


def test_trivial_takes_the_first_of_its_list() -> None:
    def first(table: Table) -> str:
        return view.move_text(table.state, table.bot_move("trivial"))

    piles = {"T12": "2S 6H 4D", "T1": "2S 3S 4D 3D", "T2": "5H 3D", "T4": "5H KH 7C", "T5": "4C 6S 8H"}
    table = position(piles, waste="6D")
    for move in ("T4-F", "T5-F", "W-F", "T2-T12", "deal"):
        assert first(table) == move
        play(table, move)
    table = position({"T12": "2S 6H 4D", "T1": "2S 3S 4D 3D", "T2": "5H 3D"}, waste="2D")
    assert first(table) == "W-T1"
    table = position({"T12": "2S 6H 4D", "T1": "2S 3S 4D 3D"}, stock="QC")
    assert first(table) == "deal"
    play(table, "deal")
    assert first(table) == "T1-T12"  # hops last


def test_greedy_prefers_the_copy_that_exposes_a_wanted_card() -> None:
    table = position({"T12": "2S KH 6D", "T1": "2S 7C 6D"})
    assert view.move_text(table.state, table.bot_move("greedy")) == "T1-F"
    assert view.move_text(table.state, table.bot_move("trivial")) == "T12-F"


def test_every_action_has_one_text() -> None:
    state = rules.new_state(Options())
    texts = [view.move_text(state, action) for action in range(rules.NUM_ACTIONS)]
    assert len(set(texts)) == 158 == len(view.MOVES)
    assert [view.parse_move(state, text) for text in texts] == list(range(158))
    assert texts[0] == "T12-F" and texts[1] == "T12-T1" and texts[12] == "T1-F" and texts[13] == "T1-T12"
    assert texts[rules.WASTE] == "W-F" and texts[rules.WASTE + 1] == "W-T12" and texts[rules.DEAL] == "deal"
    for text in ("T3-T3", "t3-F", "T0-F", "T13-F", "W-W", "fill", "", "T3"):
        with pytest.raises(ValueError, match="not a move of Big Ben"):
            view.parse_move(state, text)


@pytest.mark.parametrize("build_on", ["full_piles", "any_pile"])
@pytest.mark.parametrize("fill_order", ["rounds", "pile_by_pile"])
def test_what_is_kept_at_hand_follows_from_the_table(fill_order: str, build_on: str) -> None:
    look_afresh = getattr(rules.look_afresh, "py_func", rules.look_afresh)
    rng = np.random.default_rng(0)
    for seed in range(4):
        table = new_table(seed, fill_order=fill_order, build_on=build_on, redeals=1)
        while not table.state.over:
            table.play(int(rng.choice(np.flatnonzero(table.legal()))))
            afresh: State = table.copy()
            look_afresh(afresh.state)
            assert afresh.states.tobytes() == table.states.tobytes()


# Views


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"piles": {"T12": ["5D"]}}, "piles: T1 is missing"),
        ({"foundations": {**BASES, "3": "7S"}}, "hour 3 shows one of 8S 9S"),
        ({"foundations": {"12": "5D"}}, "hour 1 shows one of"),
        ({"waste": ["5D", "5D"]}, "5D occurs too often"),
        ({"waste": ["1D"]}, "waste.0"),
        ({"hops": 5}, "hops"),
        ({"hops": 2}, "after a hop"),
        ({"stock_size": 12}, "stock_size: got 12"),
        ({"placed": 3}, "placed: got 3"),
        ({"legal": ["W-F"]}, "legal: got"),
        ({"stock": ["5D"]}, "stock: got"),
        ({"game": "back_alley"}, "game"),
        ({"seat": 1}, "seat"),
        ({"clock": 1}, "clock"),
        ({"options": {"reward": "points"}}, "reward"),
    ],
)
def test_contradictory_views_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        view.from_view({**seen(new_table(2)), **change})


def test_impossible_piles_are_refused() -> None:
    shown = seen(new_table(2))
    pile = shown["piles"]["T12"]
    wrong = next(card for card in shown["stock"] if higher(card) != pile[2])
    for key in ("stock", "stock_size", "legal"):
        shown[key] = None
    with pytest.raises(ValueError, match=f"{wrong} can't lie on {pile[2]} in T12"):
        view.from_view({**shown, "piles": {**shown["piles"], "T12": [*pile, wrong]}})
    with pytest.raises(ValueError, match="never have more than 56"):
        view.from_view({**shown, "piles": {**shown["piles"], "T12": pile[:2]}})


@pytest.mark.parametrize(
    ("deal", "message"),
    [
        (None, "deal: expected"),
        ({"packs": []}, "deal: expected"),
        ({"pack": [], "size": 3}, "unknown key 'size'"),
        ({"pack": "5D"}, "deal.pack: expected a list of 92 cards"),
        ({"pack": ["5D", "5D"]}, "card 1, '5D', occurs too often"),
        ({"pack": ["5D", "XX"]}, "card 1 is 'XX'"),
        ({"pack": ["5D"]}, "expected 92 cards, got 1"),
    ],
)
def test_malformed_deals_are_refused(deal: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        view.parse_deal(rules.new_state(Options()), deal)
