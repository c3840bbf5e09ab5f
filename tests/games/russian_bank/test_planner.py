"""What counts for a position, worked out once more from the rules, slowly; and what becomes of positions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.table import Table
from card_envs.game import Int64s, active_features, final_margin, is_terminal, load
from card_envs.games.russian_bank import GAME, rules
from card_envs.games.russian_bank.features import (
    AT,
    FEW_POINTS,
    MANY_CARDS,
    MARKS,
    MAX_MARKS,
    NUM_KINDS,
    NUM_WEIGHTS,
    RANKS,
)
from card_envs.opponents.networks._ntuples import planner_of
from tests.conftest import positions, some

NAMES = [count.name for count in MARKS]


def mark_tables(
    first: int, last: int, states: NDArray[Any], scratch: Any, features: Int64s, numbers: Int64s, settled: NDArray[Any],
    ends: NDArray[np.float64],
) -> None:  # fmt: skip
    for i in range(first, last):
        load(states[i], states[i].seat, scratch)
        settled[i] = scratch.settled[0]
        ends[i] = final_margin(scratch, 0) if is_terminal(scratch, 0) else np.nan
        numbers[i] = active_features(scratch, 0)
        for j in range(numbers[i]):
            features[i, j] = scratch.features[j]


class Marked:
    """Positions, what becomes of them, and which weights count."""

    def __init__(self, states: NDArray[Any]) -> None:
        n = len(states)
        features, numbers, self.ends = np.zeros((n, MAX_MARKS), np.int64), np.zeros(n, np.int64), np.zeros(n)
        self.settled = np.zeros(n, rules.STATE)
        scratch = planner_of(GAME).new_scratch(1)
        specialize(mark_tables, GAME)(0, n, states, scratch, features, numbers, self.settled, self.ends)
        assert numbers.max() < MAX_MARKS
        self.features = [row[:number].tolist() for row, number in zip(features, numbers)]
        self.kinds = [(row[0] - AT.kind) % NUM_KINDS for row in self.features]


def within(features: list[int], name: str) -> list[int]:
    """The indices of a table that count, as if there were one kind."""
    start, size = getattr(AT, name), MARKS[NAMES.index(name)].size
    return [(this - start) // NUM_KINDS for this in features if start <= this < start + size]


@pytest.fixture(scope="module")
def states() -> NDArray[Any]:
    found = some(positions(GAME), 400, seed=1)
    return found[~found["needs_deal"]]


def test_greedy_plays_on_until_a_card_shows(states: NDArray[Any]) -> None:
    marked, kinds = Marked(states), set()
    for state, settled, end, kind in zip(states, marked.settled, marked.ends, marked.kinds):
        table, seat = Table(GAME, state), int(state["seat"])
        while not table.needs_deal:
            move = table.bot_move("greedy")
            at = table.state
            shows = (
                at.turned == rules.NO_CARD and at.first_pass[at.seat] and at.hand_sizes[at.seat] > 0
                if move == rules.ACTION.advance
                else move < rules.ACTION.house_to_house
                and rules.SOURCES[move] == rules.RESERVE
                and at.reserve_sizes[at.seat] == at.lowest_reserves[at.seat]
            )  # fmt: skip
            if shows:
                by = 0 if at.seat == seat else 2
                if move != rules.ACTION.advance:
                    table.play(move)
                    by += 1
                break
            table.play(move)
        if table.needs_deal:
            assert end == table.state.scores[seat] - table.state.scores[1 - seat]
        else:
            assert np.isnan(end) and kind == by
            kinds.add(by)
        assert (settled["houses"] == table.state.houses).all()
        assert (settled["foundations"] == table.state.foundations).all()
    assert kinds == {0, 1, 2, 3}


def cards_of(cards: int) -> list[int]:
    return [card for card in range(52) if int(cards) >> card & 1]


class Slow:
    """A position as somebody sees it."""

    def __init__(self, state: Any, seat: int, kind: int) -> None:
        self.houses = [cards_of(house) for house in state["houses"]]
        self.foundations = state["foundations"].tolist()
        self.reserves, self.coming, self.tops = [], [], []
        for k, player in enumerate((seat, 1 - seat)):
            size = int(state["reserve_sizes"][player])
            top = int(state["reserves"][player, size]) if size else None
            waste = state["wastes"][player, 1 : 1 + state["waste_sizes"][player]].tolist()
            first = int(state["hand_next"][player])
            hand = state["hands"][player, first : first + state["hand_sizes"][player]].tolist()
            unseen = set(cards_of(state["unseen"][player]))
            if kind == 1 + 2 * k and top is not None:
                unseen.add(top)
                top = None
            known = set(waste) if state["first_pass"][player] else set(waste + hand)
            self.reserves.append(size)
            self.coming.append((unseen, known, len(waste) + len(hand)))
            self.tops.append((top, waste[-1] if waste else None))

    def missing(self, card: int) -> int:
        heights = self.foundations[2 * (card % 4) :][:2]
        return next((card // 4 - height for height in heights if height <= card // 4), 13)

    def housed(self, card: int) -> bool:
        red = card % 4 in (1, 2)
        tops = [house[0] for house in self.houses if house]
        return any(top // 4 == card // 4 + 1 and (top % 4 in (1, 2)) != red for top in tops)


def test_what_counts_is_what_holds(states: NDArray[Any]) -> None:
    marked = Marked(states)
    for state, settled, features, kind, end in zip(states, marked.settled, marked.features, marked.kinds, marked.ends):
        if not np.isnan(end):
            continue
        slow = Slow(settled, int(state["seat"]), kind)
        mine, theirs = slow.reserves
        most = MANY_CARDS - 1
        assert within(features, "reserves") == [min(mine, most) * MANY_CARDS + min(theirs, most)]
        third = [min((2 * slow.reserves[k] + slow.coming[k][2]) // 3, FEW_POINTS - 1) for k in range(2)]
        assert within(features, "points") == [third[0] * FEW_POINTS + third[1]]
        home: Counter[int] = Counter()
        for k, (unseen, known, _) in enumerate(slow.coming):
            for card in unseen | known:
                home[(k * RANKS + slow.missing(card)) * 2 + slow.housed(card)] += 1
        assert Counter(within(features, "home")) == home
        filled = [house for house in slow.houses if house]
        assert sorted(this // 14 for this in within(features, "house")) == sorted(house[0] for house in filled)
        empty, single = 8 - len(filled), sum(len(house) == 1 for house in filled)
        assert within(features, "houses")[0] // 81 == empty and within(features, "houses")[0] % 9 == single
        at_hand = {card for house in filled for card in house} | {slow.tops[0][0]}
        goes = 0
        for pile, height in enumerate(slow.foundations):
            while height < 13 and 4 * height + pile // 2 in at_hand:
                goes, height = goes + 1, height + 1
        assert within(features, "all_home")[0] // 4 == min(goes, most)
        tops = {house[0] for house in filled}
        loads = []
        for k, pile in ((0, 0), (0, 1), (1, 0), (1, 1)):
            card = slow.tops[k][pile]
            near = [] if card is None else [c for c in (card - 4, card + 4) if 0 <= c < 52]
            loads.append((13 if card is None else card // 4, sum(c in tops for c in near)))
        assert [(this // 24 % RANKS, this // 8 % 3) for this in within(features, "loads")] == loads


def test_every_weight_has_one_place() -> None:
    sizes = [count.size for count in MARKS]
    starts = [getattr(AT, count.name) for count in MARKS]
    assert starts == [sum(sizes[:k]) for k in range(len(sizes))] and sum(sizes) == NUM_WEIGHTS
