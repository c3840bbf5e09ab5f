"""`determinize` against the referee, which lists every deal of the hidden cards that fits what a seat knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import comb, erfc, sqrt
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine import kernels
from card_envs.engine.rng import hash_each
from card_envs.engine.table import Table
from card_envs.games.back_alley import GAME, view
from tests.games.back_alley import facts
from tests.games.back_alley.referee import PACK, Referee, deal_from

DRAWS = 30  # for each world: the chance to miss a given one is e to the power -30
MANY_WORLDS, MOST_WORLDS = 2600, 17_000  # if nothing but the cards in sight told about the hidden ones
ENOUGH, ENOUGH_LARGE = 20, 12  # positions of each kind, and with up to three cards in each hand
FACTORS = np.random.default_rng(1).integers(1, 1 << 64, 4, np.uint64)  # for numbering worlds
KINDS = {
    "BA-5 joker laid aside", "BA-5 nobody holds it", "BA-5 redrawn", "BA-5 pack used up",
    "BA-11 void", "BA-12 only trumps", "BA-13 Big Blooper led",
    "BA-13 Little Blooper led", "BA-13 void", "BA-13 Big Blooper sole trump",
}  # fmt: skip


class Position(NamedTuple):
    """A decision, and what has happened in its deal by the referee's names of rules."""

    table: Table
    referee: Referee
    fired: set[str]


def bloopers_last(referee: Referee, move: str) -> float:
    return 0.02 if move == "BB" else 0.1 if move == "LB" else 1


def positions(number: int, size: int) -> Iterator[Position]:
    """All decisions of one random deal."""
    rng = Random(f"redeal {number}")
    blooper_turned = rng.choice(["no_trump", "redraw"])
    referee = Referee({"deals": [size], "blooper_turned": blooper_turned})
    table = Table(GAME, GAME.rules.new_state(GAME.options(deals=referee.sizes, blooper_turned=blooper_turned)))
    table.seed(number)
    given = {"packs": [rng.sample(PACK, 54)]} | facts.rig(rng, referee, "")
    table.set_deal(GAME.view.parse_deal(table.state, given)[0])
    deal_from(referee, GAME.view.deal_text([GAME.view.dealt_pack(table.state)]), given, table.seat)
    weight = rng.choice([*(facts.STYLES[style] for style in ("even", "boarding", "trumps first")), bloopers_last])
    while not referee.needs_deal and not referee.over:
        yield Position(table, referee, set(referee.fired))
        moves = referee.legal()
        move = rng.choices(moves, [weight(referee, move) for move in moves])[0]
        table.play(GAME.view.parse_move(table.state, move))
        referee.play(move)


def redealt(table: Table, seat: int, number: int, key: int) -> NDArray[np.uint64]:
    """[number, 4] the hands after as many draws from this position."""
    states = np.repeat(table.states, number)
    keys = np.random.default_rng(key).integers(0, 1 << 64, number, np.uint64)
    specialize(kernels.determinize_tables, GAME)(0, number, states, np.full(number, seat, np.int8), keys)
    hands: NDArray[np.uint64] = states["hands"]
    return hands


def most_worlds(referee: Referee, seat: int) -> int:
    """The number of worlds if nothing but the cards in sight restricted them."""
    sizes = [len(referee.hands[other]) for other in range(4) if other != seat]
    unseen = 53 - len(referee.hands[seat]) - sum(len(trick) for trick in referee.tricks)
    ways = 1
    for size in sizes:
        ways *= comb(unseen, size)
        unseen -= size
    return ways


def p_value(chi_square: float, freedom: int) -> float:
    """The chance of such a statistic or a larger one. Ref: Wilson & Hilferty 1931, "The Distribution of Chi-Square"."""
    spread = 2 / (9 * freedom)
    return erfc(((chi_square / freedom) ** (1 / 3) - (1 - spread)) / sqrt(2 * spread)) / 2


def test_p_value() -> None:
    assert p_value(10.0, 10) == pytest.approx(0.4405, abs=2e-3)
    assert p_value(18.307, 10) == pytest.approx(0.05, abs=1e-3)
    assert p_value(1267.6, 1000) == pytest.approx(1.8e-8, rel=0.3)


def test_redeal_is_uniform_over_all_worlds() -> None:
    """Chi-square over positions with few hidden cards: late in small deals, or in the last tricks of large ones."""
    statistics: Counter[str] = Counter()
    freedoms: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for number, size in enumerate(200 * [1, 2, 3, 11, 12, 13]):
        rng = Random(f"redeal at {number}")
        for table, referee, fired in positions(number, size):
            seat = rng.randrange(4)
            large = most_worlds(referee, seat) > MANY_WORLDS
            kinds = {"large"} if large else {"any"} | fired & KINDS
            wanted = any(found[kind] < (ENOUGH_LARGE if large else ENOUGH) for kind in kinds)
            if not wanted or len(referee.bids) < 4 or not 1 < most_worlds(referee, seat) <= MOST_WORLDS:
                continue
            worlds = world_keys(table, referee.worlds(seat))
            drawn = keys_of(redealt(table, seat, DRAWS * len(worlds), rng.getrandbits(63)))
            places = np.minimum(np.searchsorted(worlds, drawn), len(worlds) - 1)
            assert np.array_equal(worlds[places], drawn), "a world that the referee rules out"
            counts = np.bincount(places, minlength=len(worlds))
            assert counts.all(), "a world that is never drawn"
            found.update(kinds)
            if len(worlds) > 1:
                chi_square = float(((counts - DRAWS) ** 2).sum() / DRAWS)
                assert p_value(chi_square, len(worlds) - 1) > 1e-6
                statistics.update(dict.fromkeys(kinds, chi_square))
                freedoms.update(dict.fromkeys(kinds, len(worlds) - 1))
    assert min(found[kind] for kind in KINDS) >= ENOUGH
    for kind, freedom in freedoms.items():
        assert p_value(statistics[kind], freedom) > 1e-4, kind


def world_keys(table: Table, worlds: list[tuple[frozenset[str], ...]]) -> NDArray[np.uint64]:
    """The worlds of the referee as numbers, sorted; each occurs once."""
    sets = {card_hand: view.card_set(table.state, list(card_hand)) for world in worlds for card_hand in set(world)}
    keys = np.unique(keys_of(np.array([[sets[hand] for hand in world] for world in worlds], np.uint64)))
    assert len(keys) == len(worlds)
    return keys


def keys_of(hands: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """[n] one number for the four hands of each row."""
    keys: NDArray[np.uint64] = hash_each(hands + FACTORS).sum(axis=1, dtype=np.uint64)
    return keys


def test_no_redealt_hand_contradicts_what_its_seat_has_played() -> None:
    """In deals of all sizes, where the worlds are too many to list, each hand is checked for itself."""
    checked = 0
    for number, size in enumerate(8 * list(range(1, 14))):
        rng = Random(f"redealt hands {number}")
        for table, referee, _ in positions(1000 + number, size):
            if rng.random() > 0.2:
                continue
            seat = rng.randrange(4)
            seen = {referee.turned, *referee.redrawn, *referee.hands[seat]}
            seen |= {card for trick in referee.tricks for _, card in trick}
            if referee.trump is None:
                seen |= {"BB", "LB"}
            for hands in redealt(table, seat, 3, rng.getrandbits(63)):
                cards = [view.card_texts(table.state, hand) for hand in hands]
                assert set(cards[seat]) == set(referee.hands[seat])
                hidden = [card for other in range(4) if other != seat for card in cards[other]]
                assert len(set(hidden)) == len(hidden) and not seen & set(hidden)
                for other in range(4):
                    assert len(cards[other]) == len(referee.hands[other])
                    assert referee._replays(other, cards[other])
                checked += 1
    assert checked > 1000
