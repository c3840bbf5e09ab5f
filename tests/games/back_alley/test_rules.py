"""Every numbered rule of Back Alley, from hand-made positions, through the public environment.

Unless a test says otherwise seat 0 deals, so that seat 1 bids first; moves are written as in RULES.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from card_envs import IllegalMove, back_alley_v0, load_opponent
from card_envs.envs.aec import CardEnv
from card_envs.frontends.text import TextEnv
from card_envs.games.back_alley import GAME, rules, view

PLAIN = [rank + suit for suit in "CDHS" for rank in "23456789TJQKA"]
PACK = [*PLAIN, "LB", "BB"]
MATCH = [13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
PASSES = "pass pass pass pass"


def pack_of(hands: Mapping[int, str], turned: str = "2H", dealer: int = 0, next_card: str = "") -> list[str]:
    """A pack that deals these hands (by seat; missing seats get what is left, lowest clubs first) and turns a card up.

    `next_card` follows the turned card: the replacement of BA-5.
    """
    size = len(next(iter(hands.values())).split())
    dealt = {seat: cards.split() for seat, cards in hands.items()}
    named = [card for cards in dealt.values() for card in cards] + [turned, next_card]
    rest = [card for card in PACK if card not in named]
    for seat in range(4):
        if seat not in dealt:
            dealt[seat], rest = rest[:size], rest[size:]
        assert len(dealt[seat]) == size
    order = [dealt[(dealer + 1 + k) % 4] for k in range(4)]
    after = [next_card] if next_card else []
    return [order[k][i] for i in range(size) for k in range(4)] + [turned, *after, *rest]


def random_pack(seed: int) -> list[str]:
    return Random(seed).sample(PACK, len(PACK))


def table(*packs: list[str], dealer: int = 0, seed: int = 0, **options: Any) -> CardEnv:
    env: CardEnv = back_alley_v0.env(**{"illegal_move": "raise", **options})
    env.reset(seed=seed, options={"deal": {"dealer": dealer, "packs": list(packs)}})
    return env


def dealt(hands: Mapping[int, str], turned: str = "2H", next_card: str = "", **options: Any) -> CardEnv:
    """A table with one deal of these hands."""
    size = len(next(iter(hands.values())).split())
    return table(pack_of(hands, turned, next_card=next_card), **{"deals": [size], **options})


def play(env: CardEnv, script: str) -> CardEnv:
    """Play moves; between them `=AC,3C` says which are legal then, and `@2` who is to move."""
    for word in script.split():
        if word[0] in "=@":
            held = legal(env) == set(word[1:].split(",")) if word[0] == "=" else to_move(env) == int(word[1:])
            assert held, f"{word}, but seat {to_move(env)} has {env.legal_moves()}"
            continue
        assert word in env.legal_moves(), f"{word} is not among {env.legal_moves()}"
        env.step(env.parse_move(word))
    return env


def play_on(env: CardEnv, rng: Random, moves: int = 1) -> CardEnv:
    for _ in range(moves):
        env.step(env.parse_move(rng.choice(env.legal_moves())))
    return env


def play_deal(env: CardEnv) -> CardEnv:
    """Play at random until the next deal."""
    number, rng = seen(env)["deal_number"], Random(0)
    while env.legal_moves() and seen(env)["deal_number"] == number:
        play_on(env, rng)
    return env


def to_move(env: CardEnv) -> int:
    return env.possible_agents.index(env.agent_selection)


def seen(env: CardEnv, seat: int = 0) -> dict[str, Any]:
    return env.view(env.possible_agents[seat])


def legal(env: CardEnv) -> set[str]:
    return set(env.legal_moves())


def rewards(env: CardEnv) -> list[float]:
    return [env.rewards[agent] for agent in env.possible_agents]


def scores(env: CardEnv) -> list[int]:
    found: list[int] = env.outcome()["scores"]
    return found


def observed(env: CardEnv, seat: int, field: str) -> list[int]:
    """A field of a seat's observation, by its name in RULES.md."""
    names = [each.name for each in rules.OBS_FIELDS]
    start = getattr(rules.AT, field)
    observation = env.observe(env.possible_agents[seat])["observation"]
    return [int(value) for value in observation[start : start + rules.OBS_FIELDS[names.index(field)].size]]


# Seats and cards


@pytest.mark.parametrize("dealer", range(4))
def test_ba_1_dealing_bidding_and_play_go_clockwise(dealer: int) -> None:
    env = table(random_pack(1), random_pack(2), dealer=dealer, deals=[2, 3])
    left = (dealer + 1) % 4
    for k, bid in enumerate(["1", "pass", "pass", "pass"]):
        play(env, f"@{(left + k) % 4} {bid}")
    for k in range(4):
        assert to_move(env) == (left + k) % 4
        play_on(env, Random(0))
    assert seen(play_deal(env))["dealer"] == left
    assert to_move(env) == (dealer + 2) % 4


@pytest.mark.parametrize("winner", range(4))
def test_ba_1_partners_sit_opposite(winner: int) -> None:
    aces = {seat: f"{'A' if seat == winner else 2 + seat}C" for seat in range(4)}
    env = dealt(aces, turned="KH")
    play(env, "pass pass pass board")  # seat 0 leads
    for k in range(4):
        play(env, aces[k])
    assert seen(env)["tricks_taken"] == [1 - winner % 2, winner % 2]
    assert scores(env)[0] == scores(env)[2] and scores(env)[1] == scores(env)[3]
    assert rewards(env)[0] == rewards(env)[2] == -rewards(env)[1] == -rewards(env)[3]


TRUMP_ORDER = ["3H", "4H", "5H", "6H", "7H", "8H", "9H", "TH", "JH", "QH", "KH", "AH", "LB", "BB"]


@pytest.mark.parametrize(
    ("low", "high"),
    [*pairwise(TRUMP_ORDER), ("2S", "3H"), ("AS", "3H"), ("AS", "LB"), ("AC", "BB")]
    + [pair for suit in "CDS" for pair in pairwise(rank + suit for rank in "23456789TJQKA")],
)  # fmt: skip
@pytest.mark.parametrize("low_leads", [True, False])
def test_ba_2_order_of_cards(low: str, high: str, low_leads: bool) -> None:
    """With hearts trump, the higher of two cards takes the trick, no matter who leads."""
    first, second = (low, high) if low_leads else (high, low)
    others = [card for card in ("2C", "3C", "2D", "3D", "2S", "3S") if card[1] not in (low[1], high[1])]
    env = dealt({1: first, 2: second, 3: others[0], 0: others[1]})
    play(env, f"board pass pass pass {first} {second} {others[0]} {others[1]}")
    assert seen(env)["tricks_taken"] == ([1, 0] if low_leads else [0, 1])


def test_ba_2_the_pack_has_52_cards_and_two_jokers() -> None:
    env = table(random_pack(3), deals=[13])
    play(env, "pass pass pass 1")
    cards = {card for seat in range(4) for card in seen(env, seat)["hand"]} | {seen(env)["turned"]}
    assert len(cards) == 53 and cards < set(PACK)
    for card in PACK:
        assert env.move_text(env.parse_move(card)) == card
    assert len({env.parse_move(card) for card in PACK}) == 54


def test_ba_2_bloopers_belong_to_the_trump_suit() -> None:
    """They follow trumps, are barred with them, and trump plain suits."""
    hands = {1: "5H 2C 3C", 2: "LB AC 4D", 3: "BB KD QD", 0: "6H AS KS"}
    play(dealt(hands), "board pass pass pass 5H =LB LB =BB BB 6H @3")
    play(dealt(hands), "pass 1 pass pass =AC,4D")
    play(dealt(hands), "1 pass pass pass 2C AC =BB,KD,QD BB KS @3")


def test_ba_3_a_match_of_25_deals_with_the_deal_passing_on() -> None:
    env = back_alley_v0.env()
    env.reset(seed=5)
    rng = Random(5)
    dealer = seen(env)["dealer"]
    sizes = [seen(env)["size"]]
    deals = [seen(env)["deal_number"]]
    while env.legal_moves():
        moves = env.legal_moves()
        env.step(env.parse_move("pass" if "pass" in moves and rng.random() < 0.8 else rng.choice(moves)))
        view = seen(env)
        if env.legal_moves() and not view["bids"]:
            dealer = (dealer + 1) % 4  # after pass-outs as well
            assert view["dealer"] == dealer
            assert to_move(env) == (dealer + 1) % 4
            if view["deal_number"] != deals[-1]:
                deals.append(view["deal_number"])
                sizes.append(view["size"])
            assert view["size"] == sizes[-1]
            assert {len(seen(env, seat)["hand"]) for seat in range(4)} == {view["size"]}
    assert sizes == MATCH and deals == list(range(25))
    assert env.outcome()["over"] and env.outcome()["reason"] == "played"


def test_ba_3_the_first_dealer_is_random_and_seeded() -> None:
    env = back_alley_v0.env()
    dealers = []
    for seed in range(400):
        env.reset(seed=seed)
        dealers.append(seen(env)["dealer"])
    assert all(70 < dealers.count(seat) < 130 for seat in range(4))  # 100 each: 3.5 standard deviations
    env.reset(seed=7)
    assert seen(env)["dealer"] == dealers[7]


@pytest.mark.parametrize("size", [1, 2, 7, 12, 13])
@pytest.mark.parametrize("dealer", range(4))
def test_ba_4_one_card_at_a_time_from_the_dealers_left(size: int, dealer: int) -> None:
    pack = random_pack(size)
    joker_free = [card for card in pack if card in PLAIN]
    pack = [*joker_free[: 4 * size + 1], *(card for card in pack if card not in joker_free[: 4 * size + 1])]
    if size == 13:
        pack = [*joker_free, "LB", "BB"]
        pack[20], pack[52] = pack[52], pack[20]  # a Blooper is dealt, a plain card turned
    env = table(pack, dealer=dealer, deals=[size])
    for k in range(4):
        assert set(seen(env, (dealer + 1 + k) % 4)["hand"]) == set(pack[k : 4 * size : 4])
    for seat in range(4):
        assert seen(env, seat)["turned"] == pack[4 * size]
        assert seen(env, seat)["trump"] == pack[4 * size][1]
        assert pack[4 * size] not in seen(env, seat)["hand"]


@pytest.mark.parametrize(("turned", "other"), [("BB", "LB"), ("LB", "BB")])
@pytest.mark.parametrize("holder", range(4))
def test_ba_5_the_other_joker_is_laid_aside(turned: str, other: str, holder: int) -> None:
    hands = {seat: f"{rank}C {rank}D" for seat, rank in enumerate("2345")}
    hands[holder] = f"{other} AC"
    env = dealt(hands, turned, next_card="9S")
    for seat in range(4):
        view = seen(env, seat)
        assert view["turned"] == turned and view["trump"] is None
        assert view["laid_aside"] == {"seat": holder, "card": other}  # publicly
        assert set(view["hand"]) == ({"9S", "AC"} if seat == holder else set(hands[seat].split()))
        assert ("9S" in str(view)) == (seat == holder)  # privately
    assert to_move(env) == 1 and legal(env) == {"pass", "1", "board"}  # before the bidding


@pytest.mark.parametrize("next_card", ["LB", "9S"])
def test_ba_5_nobody_holds_the_other_joker(next_card: str) -> None:
    hands = {seat: f"{rank}C {rank}D" for seat, rank in enumerate("2345")}
    env = dealt(hands, "BB", next_card=next_card)
    for seat in range(4):
        assert seen(env, seat)["laid_aside"] is None
        assert seen(env, seat)["trump"] is None
        assert set(seen(env, seat)["hand"]) == set(hands[seat].split())


def turned_marks(*cards: str) -> list[int]:
    """The observed field `turned` with these cards."""
    order = [*"23456789TJQKA", "LB", "BB"]
    marked = [order.index(card if card in order else card[0]) for card in cards]
    return [int(place in marked) for place in range(15)]


@pytest.mark.parametrize(("turned", "other"), [("BB", "LB"), ("LB", "BB")])
def test_ba_5_a_turned_blooper_may_be_replaced(turned: str, other: str) -> None:
    hands = {1: "AS 2C", 2: f"{other} 3C", 3: "4C 4D", 0: "5C 5D"}
    env = dealt(hands, turned, next_card="9S", blooper_turned="redraw")
    for seat in range(4):
        view = seen(env, seat)
        assert (view["turned"], view["redrawn"], view["trump"], view["laid_aside"]) == ("9S", [turned], "S", None)
        assert set(view["hand"]) == set(hands[seat].split())
        assert observed(env, seat, "turned") == turned_marks("9S", turned)
        assert observed(env, seat, "trump_suit") == [0, 0, 0, 1, 0]
        assert observed(env, seat, "laid_aside_by") == [0, 0, 0, 0]
    play(env, f"board pass pass pass AS {other} 4C 5C")  # the other one is in play
    assert seen(env)["tricks_taken"] == [1, 0]


def test_ba_5_both_bloopers_replaced() -> None:
    hands = {1: "AS 2C", 2: "3S 3C", 3: "4C 4D", 0: "5C 5D"}
    pack = pack_of(hands, "BB", next_card="LB")
    env = table(pack, deals=[2], blooper_turned="redraw")
    for seat in range(4):
        view = seen(env, seat)
        assert (view["turned"], view["redrawn"], view["trump"]) == (pack[10], ["BB", "LB"], pack[10][1])
        assert observed(env, seat, "turned") == turned_marks(pack[10], "BB", "LB")


@pytest.mark.parametrize(("turned", "last"), [("BB", "LB"), ("LB", "BB"), ("BB", "9S")])
def test_ba_5_at_the_end_of_the_pack(turned: str, last: str) -> None:
    """With 13 cards each only two are left: if both are Bloopers, there is no trump suit."""
    dealt_cards = [card for card in PACK if card not in (turned, last)]
    hands = {seat: " ".join(dealt_cards[seat::4]) for seat in range(4)}
    env = dealt(hands, turned, next_card=last, blooper_turned="redraw")
    for seat in range(4):
        view = seen(env, seat)
        assert (view["turned"], view["redrawn"], view["laid_aside"]) == (last, [turned], None)
        assert view["trump"] == (None if last in ("BB", "LB") else "S")
        assert observed(env, seat, "turned") == turned_marks(last, turned)
        assert set(view["hand"]) == set(hands[seat].split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": {}}, "redrawn: only with"),
        ({"turned": "LB", "redrawn": ["BB"]}, "turned: with blooper_turned"),
        ({"turned": "BB"}, "turned: with blooper_turned"),
        ({"redrawn": ["BB", "BB"]}, "BB occurs twice"),
        ({"laid_aside": {"seat": 1, "card": "LB"}}, "laid_aside: only where"),
    ],
)
def test_ba_5_contradictory_views_are_refused(change: dict[str, Any], message: str) -> None:
    hands = {1: "AS 2C", 2: "3S 3C", 3: "4C 4D", 0: "5C 5D"}
    shown = seen(dealt(hands, "BB", next_card="9S", blooper_turned="redraw"), 1)
    assert view.view(view.from_view(shown), 1) == shown
    with pytest.raises(ValueError, match=message):
        view.from_view({**shown, "trump": None, "legal": None, **change})


# Bidding


@pytest.mark.parametrize("size", range(1, 14))
def test_ba_6_bids_from_pass_to_board(size: int) -> None:
    env = table(random_pack(4), deals=[size])
    bids = {"pass", "board", *map(str, range(1, size))}
    for bid in (str(size - 1) if size > 1 else "board", "pass", "board"):  # none need exceed an earlier one
        assert legal(env) == bids
        play(env, bid)
    assert legal(env) == bids
    if size > 2:
        play(env, "1")
        assert seen(env)["bids"] == [str(size - 1), "pass", "board", "1"]


def test_ba_6_one_card() -> None:
    play(table(random_pack(4), deals=[1]), "=pass,board")


def test_ba_6_each_player_bids_once_and_nothing_else() -> None:
    env = table(random_pack(4), deals=[5])
    for card in seen(env, 1)["hand"]:
        with pytest.raises(IllegalMove):
            env.step(env.parse_move(card))
    with pytest.raises(IllegalMove):
        env.step(env.parse_move("5"))
    play(env, "4 1 pass 2")
    assert to_move(env) == 1
    for bid in ("pass", "1", "4", "board"):
        with pytest.raises(IllegalMove):
            env.step(env.parse_move(bid))


# In these hands, with nothing turned trump, seat 1 takes two tricks when it leads clubs, then seat 2 the last.
TWO_TO_ONE = {1: "AC KC 2D", 2: "3C 4C AD", 3: "5C 6C 3D", 0: "7C 8C 4D"}
TWO_TO_ONE_PLAY = "AC 3C 5C 7C KC 4C 6C 8C 2D AD 3D 4D"


@pytest.mark.parametrize(
    ("bids", "contracts"),
    [
        ("1 pass pass pass", [0, 1]),
        ("2 1 2 2", [3, 4]),
        ("2 2 2 2", [4, 4]),
        ("pass 1 pass 1", [2, 0]),
        ("board 2 pass 2", [4, 3]),
        ("board 2 2 1", [3, 3]),
        ("2 1 board pass", [1, 3]),
        ("board pass board board", [3, 3]),
    ],
)
def test_ba_7_contracts(bids: str, contracts: list[int]) -> None:
    first, _, last = bids.rpartition(" ")
    env = play(dealt(TWO_TO_ONE, "BB"), first)
    assert seen(env)["contracts"] == [0, 0]
    assert seen(play(env, last))["contracts"] == contracts


def test_ba_7_a_contract_above_the_tricks_must_fail() -> None:
    """Beside a board the partner's number does not count."""
    env = dealt({1: "AC KC", 2: "2C 3C", 3: "AD KD", 0: "2D 3D"}, "BB", deals=[2])
    assert scores(play(env, "1 pass 1 pass AC 2C KD 2D KC 3C AD 3D")) == [0, 10, 0, 10]
    env = dealt({1: "AC KC QC", 2: "2C 3C 4C", 3: "AD KD QD", 0: "2D 3D 4D"}, "BB")
    play(env, "2 pass 2 pass AC 2C KD 2D KC 3C AD 3D QC 4C QD 4D")
    assert seen(env)["tricks_taken"] == [0, 3] and scores(env) == [0, -20, 0, -20]
    env = play(dealt(TWO_TO_ONE, "BB"), f"board pass 2 pass {TWO_TO_ONE_PLAY}")
    assert scores(env) == [1, -30, 1, -30]  # two tricks would have made the partner's bid


@pytest.mark.parametrize("size", [1, 5, 13])
def test_ba_7_the_question_for_a_bid_is_what_it_is_added_to(size: int) -> None:
    """The partner's bid, and by each bid the contract that the team then has."""
    for first in ("pass", "1", "4", "board"):
        env = table(random_pack(size), deals=[size])
        if first not in env.legal_moves():
            continue
        assert GAME.question(seen(env, to_move(env))) == "How many tricks do you bid? Your partner's bid is added."
        assert GAME.move_notes(seen(env, to_move(env))) == {}
        play(env, f"{first} pass")
        seat = to_move(env)
        question, notes = GAME.question(seen(env, seat)), GAME.move_notes(seen(env, seat))
        assert ("Your partner passed." if first == "pass" else f"Your partner bid {first}") in question
        assert list(notes) == env.legal_moves()
        for bid, note in notes.items():
            after = env.clone()
            play(after, f"{bid} board")  # so that it is not passed out
            contract = seen(after)["contracts"][seat % 2]
            is_board = any(seen(after)["board_levels"][seat % 2 :: 2])
            expected = f"together {contract}{', too many' if contract > size else ''}"
            assert note == ("every trick" if is_board else expected)
        play(env, "pass board")
        assert GAME.question(seen(env, to_move(env))) == "Your turn: play a card."
        assert GAME.move_notes(seen(env, to_move(env))) == {}


def test_ba_7_a_prompt_in_words_asks_for_what_is_added() -> None:
    """With the contract by each bid, once the partner has bid."""
    texts = [TextEnv(GAME, "trivial", seat, deals=[5]).reset(seed=1) for seat in range(4)]
    assert sum("How many tricks do you bid? Your partner's bid is added." in text for text in texts) == 2
    later = [text for text in texts if re.search(r"Your partner (passed|bid \d)", text)]
    assert len(later) == 2 and all(re.search(r"\b2:\s+together\s+\d", text) for text in later)


@pytest.mark.parametrize(
    ("bids", "levels", "team_levels"),
    [
        ("board pass pass pass", [0, 1, 0, 0], [0, 1]),
        ("pass pass 1 board", [1, 0, 0, 0], [1, 0]),
        ("board 1 board pass", [0, 1, 0, 2], [0, 2]),
        ("board board pass pass", [0, 1, 2, 0], [2, 1]),
        ("board board board pass", [0, 1, 2, 3], [2, 3]),
        ("board board board board", [4, 1, 2, 3], [4, 3]),
        ("1 board pass board", [2, 0, 1, 0], [2, 0]),
        ("pass board board board", [3, 0, 1, 2], [3, 2]),
    ],
)
def test_ba_8_levels_of_boards(bids: str, levels: list[int], team_levels: list[int]) -> None:
    env = dealt(TWO_TO_ONE, "BB")
    play(env, bids)
    assert seen(env)["board_levels"] == levels
    assert observed(env, 0, "team_levels") == team_levels
    assert observed(env, 1, "team_levels") == team_levels[::-1]


def test_ba_9_the_next_dealer_deals_the_same_size_again() -> None:
    packs = [random_pack(seed) for seed in range(3)]
    env = play(table(*packs, deals=[4, 3]), PASSES)
    view = seen(env)
    assert (view["dealer"], view["deal_number"], view["size"], view["pass_outs"]) == (1, 0, 4, 1)
    assert view["bids"] == [] and to_move(env) == 2
    assert set(seen(env, 2)["hand"]) == set(packs[1][0:16:4])
    assert rewards(env) == [0, 0, 0, 0] and not env.outcome()["over"]
    assert set(seen(play(env, PASSES), 3)["hand"]) == set(packs[2][0:16:4])
    view = seen(play_deal(play(env, "1 pass pass pass")))
    assert (view["dealer"], view["deal_number"], view["size"], view["pass_outs"]) == (3, 1, 3, 0)


def test_ba_9_eight_pass_outs_in_a_row_count_nothing() -> None:
    env = table(random_pack(1), deals=[5, 2, 1], dealer=2)
    for number in range(1, 8):
        play(env, PASSES)
        view = seen(env)
        assert (view["pass_outs"], view["deal_number"], view["size"]) == (number, 0, 5)
        assert view["dealer"] == (2 + number) % 4
    play(env, PASSES)
    view = seen(env)
    assert (view["pass_outs"], view["deal_number"], view["size"], view["dealer"]) == (0, 1, 2, 2)
    assert scores(env) == [0, 0, 0, 0] and rewards(env) == [0, 0, 0, 0]
    for _ in range(7):  # the count began again
        play(env, PASSES)
        assert seen(env)["deal_number"] == 1
    play(env, PASSES)
    assert (seen(env)["deal_number"], seen(env)["size"]) == (2, 1)


def test_ba_9_a_played_deal_begins_the_count_again() -> None:
    env = table(random_pack(1), deals=[2, 2])
    play_deal(play(env, f"{' '.join([PASSES] * 7)} 1 pass pass pass"))
    for number in range(7):
        assert (seen(env)["pass_outs"], seen(env)["deal_number"]) == (number, 1)
        play(env, PASSES)
    assert not env.outcome()["over"]


@pytest.mark.parametrize("reward", ["points", "win"])
def test_ba_9_eight_pass_outs_at_the_last_size_end_the_episode(reward: str) -> None:
    env = dealt(TWO_TO_ONE, "BB", deals=[3, 4], reward=reward)
    play(env, f"2 pass pass pass {TWO_TO_ONE_PLAY}")
    assert scores(env) == [1, 10, 1, 10]
    assert rewards(env) == ([-9, 9, -9, 9] if reward == "points" else [0, 0, 0, 0])
    for _ in range(7):
        play(env, PASSES)
        assert rewards(env) == [0, 0, 0, 0]
    assert not env.outcome()["over"]
    play(env, PASSES)
    assert env.outcome() == {"over": True, "reason": "played", "scores": [1, 10, 1, 10]}
    assert rewards(env) == ([0, 0, 0, 0] if reward == "points" else [-1, 1, -1, 1])
    assert all(env.terminations.values()) and env.legal_moves() == []


@pytest.mark.parametrize("reward", ["points", "win"])
def test_ba_9_eight_pass_outs_of_a_single_deal(reward: str) -> None:
    env = back_alley_v0.env(deals="single", reward=reward)
    env.reset(seed=3)
    size = seen(env)["size"]
    for number in range(8):
        assert (seen(env)["pass_outs"], seen(env)["size"]) == (number, size)
        play(env, PASSES)
    assert env.outcome() == {"over": True, "reason": "played", "scores": [0, 0, 0, 0]}
    assert rewards(env) == [0, 0, 0, 0]


# Play


FIRST_LEADS = """
    1 pass pass pass @1
    pass pass pass 1 @0
    1 2 pass pass @2
    2 1 pass 1 @1
    1 2 2 1 @2                  equal numbers: the earliest
    pass 2 1 2 @2
    2 board 2 2 @2              board above any number
    board 2 pass pass @1
    board board pass pass @2    several boards: the last
    board 2 board 1 @3
    board pass 2 board @0
    board board board board @0
"""


@pytest.mark.parametrize("script", [line.split("  ")[0] for line in FIRST_LEADS.strip().split("\n    ")])
def test_ba_10_first_lead(script: str) -> None:
    play(dealt(TWO_TO_ONE, "BB"), script)


def test_ba_11_follow_suit_or_play_any_card() -> None:
    env = dealt({1: "KC 2S 9H", 2: "3C QC 5H", 3: "AD LB 7S", 0: "2C 4C AC"})
    play(env, "1 pass pass pass KC =3C,QC 3C =AD,LB,7S AD =2C,4C,AC")
    with pytest.raises(IllegalMove, match=r"9H.*player_0"):
        env.step(env.parse_move("9H"))


@pytest.mark.parametrize(
    ("cards", "winner"),
    [
        ("KC 3C 4C 5C", 1),
        ("KC 3C AC 5C", 3),
        ("2C AD AS 3C", 0),  # the highest of the suit led, not of another
        ("2C AD AS KD", 1),
        ("AC 3H KC QC", 2),  # any trump beats it
        ("AC 3H 4H QC", 3),  # the highest trump
        ("AC 9H 4H LB", 0),
        ("AC LB 4H BB", 0),
        ("AC BB LB AH", 2),
    ],
)
def test_ba_11_who_takes_the_trick_and_leads_next(cards: str, winner: int) -> None:
    first = dict(zip((1, 2, 3, 0), cards.split()))
    second = dict(zip((1, 2, 3, 0), ("6S", "7S", "8S", "9S")))
    env = dealt({seat: f"{first[seat]} {second[seat]}" for seat in range(4)})
    play(env, f"1 pass pass pass {cards}")
    assert to_move(env) == winner
    assert seen(env)["tricks_taken"][winner % 2] == 1
    play(env, " ".join(second[(winner + k) % 4] for k in range(4)))
    assert seen(env)["tricks"][1]["leader"] == winner


LEADS = {1: "AC 3C 9H BB", 2: "KC 4D 8H 7H", 3: "KD 5D 5C 6H", 0: "QD QC 6S AH"}


def test_ba_12_no_trump_lead_at_first() -> None:
    """Nor later while no trump was played; a player with nothing but trumps leads one, which all then know."""
    play(dealt(LEADS), "1 pass pass pass =AC,3C AC KC 5C QC =3C")
    env = play(dealt({1: "LB 9H 5H", 2: "2C 6D 8H", 3: "6S 5D 5S", 0: "QC QD 7S"}), "1 pass pass pass =LB,9H,5H")
    assert observed(env, 2, "voids")[8:11] == [0, 0, 0]  # seat 1 is right of seat 2
    play(env, "9H")
    assert observed(env, 2, "voids")[8:] == [1, 1, 1, 0]  # which the table has now learnt
    later = {1: "AC 9H 5H", 2: "2C 6D 8H", 3: "6C 5D 5S", 0: "QC QD 7S"}
    play(dealt(later), "1 pass pass pass AC 2C 6C QC =9H,5H")  # later in the deal as well


def test_ba_12_own_board_allows_it_from_the_first_trick_on() -> None:
    """And at any later lead; the partner's board does not count."""
    play(dealt(LEADS), "board 2 pass pass =AC,3C,9H,BB")
    play(dealt({**LEADS, 2: "2C 4D 8H 7H"}), "board board pass pass 2C 5C QC AC @1 =3C,9H,BB")
    env = dealt({1: "3C 4D 9H BB", 2: "2C 6D 8H 7H", 3: "KC 5D 5S 6H", 0: "QC QD 6S AH"})
    play(env, "board pass 1 pass 3C 2C KC QC @3 =5D,5S")


def test_ba_12_a_trump_or_blooper_in_an_earlier_trick_breaks_it() -> None:
    hands = {1: "3C 4D 9H 5H", 2: "2C 6D 8H 7H", 3: "6H 5D 5S 4S", 0: "QC QD 6S AH"}
    script = "1 pass pass pass 3C 2C 6H QC @3 =5D,5S,4S 5D QD 4D 6D @0 =6S,AH"  # seat 3 has no trump left
    play(dealt(hands), script)
    play(dealt({**hands, 3: "BB 5D 5S 6H"}), "1 pass pass pass 3C 2C BB QC =5D,5S,6H")


def test_ba_12_a_trump_in_the_last_deal_does_not_break_it() -> None:
    first = pack_of({1: "3H", 2: "4H", 3: "5H", 0: "6H"})
    second = pack_of({1: "9H 2C", 2: "8H 3C", 3: "7H 4C", 0: "TH 5C"}, dealer=1)
    env = table(first, second, deals=[1, 2])
    play(env, "board pass pass pass 3H 4H 5H 6H 1 pass pass pass @2 =3C")


BLOOPERS = {1: "BB LB 2C", 2: "3H 9H AC", 3: "QH 4H KC", 0: "AS KS 5C"}


def test_ba_13_big_blooper_led() -> None:
    """The highest trump must be played, also another Blooper; who has none plays any card."""
    play(dealt(BLOOPERS), "board pass pass pass BB =9H 9H =QH QH =AS,KS,5C")
    play(dealt({1: "BB 6H 2C", 2: "LB AH 5H", 3: "QH 4H KC", 0: "AS KS 5C"}), "board pass pass pass BB =LB")


def test_ba_13_little_blooper_led() -> None:
    """The lowest trump must be played, and be it the Big Blooper, which takes the trick; only for the card led."""
    hands = {1: "LB 6H 2C", 2: "BB AH 5H", 3: "8H 4H KC", 0: "AS KS 5C"}
    play(dealt(hands), "board pass pass pass LB =5H 5H =4H 4H =AS,KS,5C 5C @1")
    play(dealt({**hands, 2: "BB AC 5D"}), "board pass pass pass LB =BB BB 4H AS @2")
    env = dealt({1: "6H 7H 2C", 2: "BB AC 5C", 3: "8H 4H KC", 0: "LB TH 7C"})
    play(env, "board pass pass pass 6H BB =8H,4H 8H =LB,TH")


def test_ba_14_all_tricks_are_played_out() -> None:
    env = dealt({1: "2C 2D 2S", 2: "AC AD AS", 3: "3C 3D 3S", 0: "4C 4D 4S"}, "KH", deals=[3, 1])
    play(env, "board pass pass pass 2C AC 3C 4C AD 3D 4D 2D")  # the board is lost at once
    assert seen(env)["tricks_taken"] == [2, 0] and rewards(env) == scores(env) == [0, 0, 0, 0]
    assert seen(play(env, "AS 3S 4S"))["deal_number"] == 0
    assert seen(play(env, "2S"))["deal_number"] == 1
    assert scores(env) == [3, -30, 3, -30] and rewards(env) == [33, -33, 33, -33]


@pytest.mark.parametrize("suit", "CDHS")
def test_ba_15_without_trump_any_card_is_led_and_none_trumps(suit: str) -> None:
    """Suits are followed all the same, and no other suit beats the one led."""
    low, high, third = [other for other in "CDHS" if other != suit]
    hands = {1: f"5{suit} A{low} K{high}", 2: f"9{suit} A{high} 2{low}", 3: f"A{third} K{third} 3{low}"}
    env = dealt({**hands, 0: f"Q{third} J{third} 4{low}"}, "LB")
    first, last = (hands[seat].replace(" ", ",") for seat in (1, 3))
    play(env, f"1 pass pass pass ={first} 5{suit} =9{suit} 9{suit} ={last} A{third} Q{third} @2 =A{high},2{low}")


# Scoring


@pytest.mark.parametrize(
    ("bids", "points"),
    [
        ("2 pass pass pass", [1, 10]),  # made exactly; a team without a contract scores its tricks
        ("1 pass pass pass", [1, 6]),  # one over
        ("1 1 pass pass", [5, 6]),
        ("1 pass 1 1", [5, 10]),
        ("2 1 1 pass", [5, -15]),
        ("2 pass 2 2", [-10, -20]),
        ("2 2 pass 2", [-20, 10]),
    ],
)
def test_ba_16_contracts_made_and_failed(bids: str, points: list[int]) -> None:
    env = dealt(TWO_TO_ONE, "BB")
    play(env, f"{bids} {TWO_TO_ONE_PLAY}")
    assert seen(env)["tricks_taken"] == [1, 2]
    assert scores(env) == points * 2
    margin = points[0] - points[1]
    assert rewards(env) == [margin, -margin, margin, -margin]


def test_ba_16_no_contract_scores_the_tricks() -> None:
    env = dealt(TWO_TO_ONE, "BB")
    play(env, "pass 1 pass pass 3C 5C 7C AC KC 4C 6C 8C 2D AD 3D 4D")
    assert scores(env) == [5, 2, 5, 2]
    env = dealt({1: "2C 3C", 2: "AC KC", 3: "4C 5C", 0: "6C 7C"}, "BB")
    play(env, "1 pass pass pass 2C AC 4C 6C KC 5C 7C 3C")
    assert scores(env) == [2, -5, 2, -5]


@pytest.mark.parametrize(
    ("bids", "points"),
    [
        ("board pass pass pass", [0, 30]),
        ("board 1 pass pass", [-5, 30]),
        ("board 1 2 pass", [-5, 30]),  # neither the number nor overtricks count
        ("1 pass board pass", [0, 30]),
        ("board pass board pass", [0, 60]),
        ("pass board board pass", [-30, 60]),
        ("board board board pass", [-60, 90]),
        ("board board pass board", [-90, 30]),
        ("board board board board", [-120, 90]),
    ],
)
def test_ba_17_boards(bids: str, points: list[int]) -> None:
    """Seats 1 and 3 take all three tricks, no matter who leads."""
    env = dealt({1: "AC AD AS", 2: "2C 2D 2S", 3: "KC KD KS", 0: "3C 3D 3S"}, "BB")
    assert seen(play_deal(play(env, bids)))["tricks_taken"] == [0, 3]
    assert scores(env) == points * 2


def test_ba_17_a_made_quadruple_board_and_one_trick_short() -> None:
    env = dealt({1: "2C 2D", 2: "AC AD", 3: "3C 3D", 0: "KC KD"}, "LB")
    play(env, "board board board board KC 2C AC 3C AD 3D KD 2D")
    assert scores(env) == [80, -60, 80, -60]
    assert rewards(env) == [140, -140, 140, -140]
    env = dealt(TWO_TO_ONE, "BB")  # the second board leads
    play(env, "board pass board pass @3 5C 7C AC 3C KC 4C 6C 8C 2D AD 3D 4D")
    assert seen(env)["tricks_taken"] == [1, 2]
    assert scores(env) == [1, -60, 1, -60]


def test_ba_18_more_points_win_the_match() -> None:
    results = set()
    for seed in range(6):
        env = back_alley_v0.env(reward="win")
        env.reset(seed=seed)
        rng = Random(seed)
        while env.legal_moves():
            assert rewards(env) == [0, 0, 0, 0]  # until the end
            play_on(env, rng)
        lead = scores(env)[0] - scores(env)[1]
        sign = (lead > 0) - (lead < 0)
        results.add(sign)
        assert rewards(env) == [sign, -sign, sign, -sign]
    assert results >= {1, -1}


def test_ba_18_equal_totals_are_a_draw() -> None:
    hands = {1: "AC 2D", 2: "2C AD", 3: "3C 3D", 0: "4C 4D"}
    for reward in ("win", "points"):
        env = dealt(hands, "BB", reward=reward)
        play(env, "1 1 pass pass AC 2C 3C 4C 2D AD 3D 4D")
        assert env.outcome() == {"over": True, "reason": "played", "scores": [5, 5, 5, 5]}
        assert rewards(env) == [0, 0, 0, 0]


def test_ba_18_the_last_deal_alone_does_not_decide() -> None:
    aces = {1: "AC AD AS", 2: "2C 2D 2S", 3: "KC KD KS", 0: "3C 3D 3S"}
    one = {1: "2C", 2: "AC", 3: "3C", 0: "4C"}
    env = table(pack_of(aces, "BB"), pack_of(one, "BB", dealer=1), deals=[3, 1], reward="win")
    play(play_deal(play(env, "board pass pass pass")), "board pass pass pass AC 3C 4C 2C")
    assert scores(env) == [10, 30, 10, 30] and rewards(env) == [-1, 1, -1, 1]


@pytest.mark.parametrize(("deals", "sizes"), [(None, MATCH), ([13], [13]), ([7, 6, 5], [7, 6, 5]), ((1, 1), [1, 1])])
def test_ba_19_episodes(deals: Any, sizes: list[int]) -> None:
    env = back_alley_v0.env(**({} if deals is None else {"deals": deals}))
    env.reset(seed=1)
    rng = Random(1)
    played = [seen(env)["size"]]
    while env.legal_moves():
        if seen(env)["deal_number"] == len(played):
            played.append(seen(env)["size"])
        play(env, "1") if not seen(env)["bids"] and "1" in legal(env) else play_on(env, rng)
    assert played == sizes


def test_ba_19_single_draws_its_size_from_the_match() -> None:
    env = back_alley_v0.env(deals="single")
    env.reset(seed=2)
    counts: Counter[int] = Counter()
    for _ in range(5000):
        env.reset()
        counts[observed(env, 0, "size").index(1) + 1] += 1
    expected = {size: 200 * MATCH.count(size) for size in range(1, 14)}
    chi_square = sum((counts[size] - expected[size]) ** 2 / expected[size] for size in expected)
    assert chi_square < 39.1  # 12 degrees of freedom: p > 1e-4
    env.reset()
    size = observed(env, 0, "size").index(1) + 1
    assert play_on(play(env, "board pass pass pass"), Random(0), 4 * size).outcome()["over"]
    env.reset(options={"deal": {"size": 3, "dealer": 0, "packs": [pack_of(TWO_TO_ONE, "BB")]}})  # or that is set
    play(env, f"2 pass pass pass {TWO_TO_ONE_PLAY}")
    assert env.outcome() == {"over": True, "reason": "played", "scores": [1, 10, 1, 10]}


@pytest.mark.parametrize("deals", [[], [0], [14], [7, -1], [1.5], "double", 7, [1] * 101])
def test_ba_19_malformed_options(deals: Any) -> None:
    with pytest.raises(ValueError, match="back_alley: option deals"):
        back_alley_v0.env(deals=deals)


def test_ba_19_points_are_paid_after_each_deal() -> None:
    env = back_alley_v0.env(deals=[3, 2, 1])
    env.reset(seed=4)
    rng = Random(4)
    before = scores(env)
    while env.legal_moves():
        play_on(env, rng)
        gains = [after - earlier for after, earlier in zip(scores(env), before)]
        before = scores(env)
        assert rewards(env) == [gains[seat] - gains[seat ^ 1] for seat in range(4)]


# What a player may know


def test_ba_20_what_a_view_shows() -> None:
    env = dealt({1: "AC 3C 9H", 2: "LB 4D 8H", 3: "KD 5D 6H", 0: "QD QC AH"}, "BB", "7S", deals=[3, 2])
    play(env, "pass 1 2 1 KD QD AC")
    for seat in range(4):
        view = seen(env, seat)
        assert view["seat"] == seat
        assert view["hand"] == [["QC", "AH"], ["3C", "9H"], ["4D", "8H", "7S"], ["5D", "6H"]][seat]
        assert view["turned"] == "BB" and view["laid_aside"] == {"seat": 2, "card": "LB"}
        assert (view["dealer"], view["bids"]) == (0, ["pass", "1", "2", "1"])
        assert view["tricks"] == [{"leader": 3, "cards": ["KD", "QD", "AC"]}]
        assert view["hand_sizes"] == [2, 2, 3, 2] and view["tricks_taken"] == [0, 0]
        assert (view["deal_number"], view["scores"], view["to_move"]) == (0, [0, 0, 0, 0], 2)
        assert view["legal"] == (["4D"] if seat == 2 else [])
        hidden = {card for other in range(4) if other != seat for card in seen(env, other)["hand"]}
        assert not hidden & set(str(view).replace("'", " ").split())
    play(env, "4D")
    assert [seen(env, seat)["tricks_taken"] for seat in range(4)] == [[0, 1]] * 4


def test_ba_20_the_finished_deal_at_the_end() -> None:
    env = dealt(TWO_TO_ONE, "BB")
    play(env, f"2 1 pass pass {TWO_TO_ONE_PLAY}")
    view = seen(env, 2)
    assert (view["dealer"], view["bids"], view["deal_number"]) == (0, ["2", "1", "pass", "pass"], 0)
    assert [card for trick in view["tricks"] for card in trick["cards"]] == TWO_TO_ONE_PLAY.split()
    assert view["scores"] == [5, 10, 5, 10] and view["to_move"] is None


def test_ba_20_who_failed_to_follow_a_suit() -> None:
    env = dealt({1: "KC 2S 9H", 2: "3C QC 5H", 3: "AD LB 7S", 0: "2C 4C AC"})
    play(env, "1 pass pass pass KC 3C")
    assert observed(env, 2, "voids") == [0] * 12
    play(env, "AD")
    # Relative suits with hearts trump: spades, clubs, diamonds, hearts. Seat 3 is left of seat 2.
    assert observed(env, 2, "voids") == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert observed(env, 1, "voids") == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_ba_20_who_had_no_higher_or_lower_trump() -> None:
    env = dealt({1: "BB LB 2C", 2: "3H 9H AC", 3: "QH 4H KC", 0: "AS KS 5C"})
    play(env, "board pass pass pass BB 9H QH AS")
    above = observed(env, 1, "trumps_above")
    assert above == [7, 4, 15]  # none above 9H, none above QH, none at all
    assert observed(env, 1, "trumps_below") == [0, 0, 15]
    assert observed(env, 1, "voids")[8:] == [0, 0, 0, 1]
    play(env, "LB 3H 4H KS")
    assert observed(env, 1, "trumps_below") == [1, 2, 15]  # none below 3H, none below 4H: of 2H, 3H


# Custom deals

FAIR = random_pack(9)


@pytest.mark.parametrize(
    ("deal", "says"),
    [
        ({"packs": [[*FAIR[:53], FAIR[0]]]}, rf"packs\[0\]: card 53, '{FAIR[0]}', occurs too often"),
        ({"packs": [FAIR[:53]]}, r"packs\[0\]: expected 54 cards, got 53"),
        ({"packs": [[*FAIR, "AC"]]}, r"packs\[0\]: card 54"),
        ({"packs": [FAIR, [*FAIR[:53], "1C"]]}, r"packs\[1\]: card 53 is '1C'"),
        ({"packs": [[*FAIR[:53], 7]]}, r"packs\[0\]: card 53 is 7"),
        ({"packs": []}, "packs: expected a list"),
        ({"packs": "AC"}, "packs: expected a list"),
        ({"packs": ["AC"]}, r"packs\[0\]: expected a list"),
        ({"dealer": 0}, "expected .*packs"),
        ([FAIR], "deal: expected"),
        (None, "deal: expected"),
        ({"packs": [FAIR], "trump": "H"}, "unknown key 'trump'"),
        ({"packs": [FAIR], "dealer": 4}, "dealer: expected a whole number from 0 to 3, got 4"),
        ({"packs": [FAIR], "dealer": -1}, "dealer: expected a whole number from 0 to 3, got -1"),
        ({"packs": [FAIR], "dealer": "0"}, "dealer: expected a whole number"),
        ({"packs": [FAIR], "dealer": 1.0}, "dealer: expected a whole number"),
        ({"packs": [FAIR], "dealer": None}, "dealer: expected a whole number"),
        ({"packs": [FAIR], "size": 3}, "size: only for"),
    ],
)
def test_bad_custom_deals_are_refused(deal: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        view.parse_deal(rules.new_state(GAME.validated({"deals": [3, 3]})), deal)


@pytest.mark.parametrize("size", [0, 14, "3", None])
def test_bad_sizes_of_a_single_deal(size: object) -> None:
    env = back_alley_v0.env(deals="single")
    with pytest.raises(ValueError, match="size: expected a whole number from 1 to 13"):
        env.reset(options={"deal": {"packs": [FAIR], "size": size}})


def test_packs_of_a_custom_deal_are_used_up_then_deals_are_random() -> None:
    packs = [random_pack(seed) for seed in (11, 12, 13)]
    env, twin = (table(*packs, deals=[2, 1], seed=seed) for seed in (1, 2))
    for each in (env, twin):
        play_deal(play(each, f"{PASSES} board pass pass pass"))
        assert {seen(each, seat)["hand"][0] for seat in range(4)} <= {*packs[2][:4], packs[2][5]}
        play(each, PASSES)
    assert [seen(env, seat)["hand"] for seat in range(4)] != [seen(twin, seat)["hand"] for seat in range(4)]


# The trivial player


def trivial(env: CardEnv) -> str:
    """The trivial player's move, from the view of the seat to move alone."""
    return load_opponent("back_alley/trivial").advise(env.view(env.agent_selection))[0][0]


@pytest.mark.parametrize(
    ("hand", "turned", "bid"),
    [
        ("2C KD QH 3S", "2H", "pass"),
        ("AC KD QH 3S", "2H", "1"),
        ("AC AD LB 3S", "2H", "3"),
        ("BB AD LB 3S", "2H", "3"),
        ("BB AD LB AS", "2H", "3"),  # at most cards minus one
        ("AC AD", "2H", "1"),
        ("AC", "2H", "pass"),
        ("BB", "2H", "pass"),
        ("AC AH 2D", "BB", "2"),  # aces count without trump as well
    ],
)
def test_trivial_bids_aces_and_bloopers(hand: str, turned: str, bid: str) -> None:
    env = dealt({1: hand}, turned)
    assert trivial(env) == bid


def test_trivial_counts_the_hand_after_a_joker_was_laid_aside() -> None:
    assert trivial(dealt({1: "LB AD 3S"}, "BB", next_card="2H")) == "1"
    assert trivial(dealt({1: "LB AD 3S"}, "BB", next_card="AH")) == "2"


@pytest.mark.parametrize(
    ("hand", "turned", "bid", "lead"),
    [
        ("KC 3D 9H BB", "2H", "1", "KC"),  # no trump while there is another card
        ("KC 3D 9H BB", "2H", "board", "KC"),
        ("KC KD QS AH", "2H", "1", "KD"),  # equal ranks: the later suit
        ("KC KD KS AH", "2H", "1", "KS"),
        ("AC KD KS 2C", "2H", "1", "AC"),  # rank before suit
        ("JC JH QH 2S", "3S", "1", "QH"),
        ("JC JH TD 2S", "3S", "1", "JH"),
        ("9H AH LB 3H", "2H", "1", "LB"),  # all are trumps: the highest
        ("9H BB LB 3H", "2H", "board", "BB"),
        ("AC AD AH AS", "BB", "1", "AS"),  # no trump suit
        ("AC AD AH KS", "LB", "1", "AH"),
    ],
)
def test_trivial_leads(hand: str, turned: str, bid: str, lead: str) -> None:
    env = dealt({1: hand}, turned)
    play(env, f"{bid} pass pass pass")
    assert trivial(env) == lead


@pytest.mark.parametrize(
    ("led", "hand", "turned", "card"),
    [
        ("9C", "TC KC 2C 5H", "2H", "TC"),  # the lowest that wins
        ("QC", "TC JC 5C 6H", "2H", "5C"),  # none wins: the lowest
        ("9C", "AD 7H 5H KS", "2H", "5H"),  # a trump wins
        ("9C", "AD BB LB KS", "2H", "LB"),
        ("9C", "AD KD QD KS", "2H", "QD"),  # nothing wins: the lowest rank
        ("9C", "5S 5D AD AS", "2H", "5D"),  # of equal rank the earlier suit
        ("9S", "4D 4C 5D AC", "2H", "4C"),
        ("9C", "4H 4D 5D AS", "BB", "4D"),  # without trump hearts are a suit like others
        ("9C", "4S 4H AS KS", "BB", "4H"),
    ],
)
def test_trivial_follows(led: str, hand: str, turned: str, card: str) -> None:
    env = dealt({1: f"{led} {led[0].translate(str.maketrans('9Q', '87'))}C 3S 2S", 2: hand}, turned)
    play(env, f"1 pass pass pass {led}")
    assert trivial(env) == card


@pytest.mark.parametrize(
    ("hands", "played", "card"),
    [
        ({1: "9C 2D", 2: "5H 3D", 3: "3H 8H", 0: "KC TC"}, "9C 5H", "8H"),  # over the trump on the table
        ({1: "9C 2D", 2: "5H 3D", 3: "3H 8H", 0: "KC TC"}, "9C 5H 8H", "TC"),  # no card of the suit led wins any more
        ({1: "9C 2D", 2: "5H 3D", 3: "3H 4H", 0: "KC TC"}, "9C 5H", "3H"),
        ({1: "9C 2D", 2: "TC KC", 3: "3C QC", 0: "KD TD"}, "9C KC", "3C"),
        ({1: "9C 2D", 2: "TC KC", 3: "3C QC", 0: "KD TD"}, "9C TC", "QC"),  # the partner's card is beaten as well
        (BLOOPERS, "BB", "9H"),  # forced
        (BLOOPERS, "BB 9H QH AS LB", "3H"),
    ],
)
def test_trivial_sees_who_takes_the_trick_as_it_stands(hands: dict[int, str], played: str, card: str) -> None:
    bid = "board" if hands is BLOOPERS else "1"
    assert trivial(play(dealt(hands), f"{bid} pass pass pass {played}")) == card
