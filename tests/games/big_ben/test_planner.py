"""What counts for a position, worked out once more from the rules, slowly."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.game import Int64s, active_features, load
from card_envs.games.big_ben import GAME, rules, view
from card_envs.games.big_ben.features import AT, MARKS, MAX_MARKS, NUM_WEIGHTS, STOCKS
from card_envs.games.big_ben.options import Options
from card_envs.opponents.networks._ntuples import planner_of
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.policy import decisions_at
from tests.conftest import positions, some


def mark_tables(first: int, last: int, states: NDArray[Any], scratch: Any, features: Int64s, numbers: Int64s) -> None:
    for i in range(first, last):
        load(states[i], states[i].seat, scratch)
        numbers[i] = active_features(scratch, 0)
        for j in range(numbers[i]):
            features[i, j] = scratch.features[j]


def marks_of(states: NDArray[Any]) -> list[list[int]]:
    features, numbers = np.zeros((len(states), MAX_MARKS), np.int64), np.zeros(len(states), np.int64)
    specialize(mark_tables, GAME)(0, len(states), states, planner_of(GAME).new_scratch(1), features, numbers)
    assert numbers.max() < MAX_MARKS
    return [row[:number].tolist() for row, number in zip(features, numbers)]


def within(features: list[int], name: str) -> list[int]:
    """The marks of a table, counted from its start."""
    names = [count.name for count in MARKS]
    start = getattr(AT, name)
    end = start + MARKS[names.index(name)].size
    return [this - start for this in features if start <= this < end]


class Slow:
    """A position whose stock is at hand."""

    def __init__(self, state: Any) -> None:
        self.piles = [state.piles[p, rules.FLOOR : rules.FLOOR + state.heights[p]].tolist() for p in range(12)]
        self.waste = state.waste[: state.num_waste].tolist()
        self.stock = Counter(view.stock_of(state))
        self.to_come = state.to_come.tolist()

    @property
    def left(self) -> int:
        return sum(self.to_come)

    def put(self, card: int) -> bool:
        """Place a card if a foundation wants it."""
        hours = [h for h in range(12) if self.to_come[h] and rules.NEXT_CARD[h, self.to_come[h]] == card]
        if hours:
            self.to_come[max(hours, key=lambda hour: self.to_come[hour])] -= 1
        return bool(hours)

    def put_all(self) -> bool:
        """Place what can be placed from the table, pile after pile, or else from the stock; whether anything was."""
        before = self.left
        for pile in [*self.piles, self.waste]:
            while pile and self.put(pile[-1]):
                pile.pop()
        return self.left < before

    def stuck(self) -> int:
        while True:
            if self.put_all():
                continue
            wanted = {int(rules.NEXT_CARD[h, left]) for h, left in enumerate(self.to_come) if left}
            hits = sorted(wanted & set(+self.stock), reverse=True)
            for card in hits:
                self.stock[card] -= self.put(card)
            if not hits:
                return self.left


def test_what_counts_is_what_holds() -> None:
    states = some(positions(GAME), 300, seed=1)
    states = states[~states["needs_deal"]]
    found = set()
    for state, features in zip(states, marks_of(states)):
        slow = Slow(state)
        stock = sum(slow.stock.values())
        assert within(features, "left") == [slow.left * STOCKS + stock]
        gaps = sum(max(0, 3 - len(pile)) for pile in slow.piles)
        assert within(features, "gaps") == [min(gaps, 13) * STOCKS + stock]
        assert len(within(features, "pile")) == 12 and len(within(features, "sunk")) == len(slow.waste)
        assert len(within(features, "next")) == sum(left > 0 for left in slow.to_come)
        stuck = slow.stuck()
        found.add(stuck)
        assert within(features, "stuck") == [stuck * STOCKS + stock]
        built = within(features, "built")[0] // STOCKS
        assert built <= stuck and within(features, "helps")[0] % 93**2 == 93 * stuck + built
        low = sum(min(len(pile), 3) for pile in slow.piles)
        assert within(features, "where_stuck")[0] % (STOCKS * 40) == len(slow.waste) * 40 + low
        waves = [this // STOCKS % 93 for this in within(features, "waves")]
        assert waves == sorted(waves, reverse=True) and waves[-1] >= stuck
    assert len(found) > 10 and 0 in found


def test_every_weight_has_one_place() -> None:
    sizes = [count.size for count in MARKS]
    starts = [getattr(AT, count.name) for count in MARKS]
    assert starts == [sum(sizes[:k]) for k in range(len(sizes))] and sum(sizes) == NUM_WEIGHTS


def test_where_every_move_comes_to_the_same_one_is_made() -> None:
    state = rules.new_state(Options())
    state.num_dealt = state.stock_end = rules.PACK_SIZE
    state.over = state.needs_deal = False
    state.piles[:] = rules.NO_CARD
    for pile, cards in enumerate(([10, 23, 4, 3], [10, 23, 4])):  # a hop from one to the other, no card being left
        state.piles[pile, rules.FLOOR : rules.FLOOR + len(cards)] = cards
        state.heights[pile] = len(cards)
    state.to_come[2] = 1  # hearts
    rules.look_afresh(state)
    decisions = decisions_at(GAME, np.array([state], rules.STATE))
    assert decisions.mask[0].sum() == 1
    weights = np.zeros(NUM_WEIGHTS, np.float32)
    policy = NTuplePolicy(GAME, {"weights": weights}, sampled=False)
    assert decisions.mask[0, policy.act(decisions, np.random.default_rng(0))[0]]
    assert policy.logits_at(decisions)[0].argmax() == decisions.mask[0].argmax()
