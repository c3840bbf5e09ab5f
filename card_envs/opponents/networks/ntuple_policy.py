"""N-tuple networks: linear value functions over many binary features, in compiled code.

The value of a position is the sum of the weights of its active features, a few hundred of them (Lucas 2008; for 2048:
Szubert & Jaśkowski 2014). A game with a `planner.py` defines the features. Values are those of positions just before a
chance event, so all actions up to it form one decision: every reachable position is evaluated, and the path to the best
one is played.

`planning` is the planner's workspace of one thread, whose type is the game's.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine._buffers import check_int, for_loops
from card_envs.engine._sums import Floats
from card_envs.game import (
    Game,
    Int64s,
    Planner,
    State,
    active_features,
    bot_move,
    expand,
    final_margin,
    is_chance_next,
    is_terminal,
    load,
    path_to,
)
from card_envs.opponents._macros import MAX_LENGTH, NO_ACTION, UNKNOWN, Macro, Macros, PlanCache, select_best
from card_envs.opponents.networks._afterstates import PLAYER, Afterstates
from card_envs.opponents.networks._sparse import SparseRows
from card_envs.opponents.networks.policies import (
    ILLEGAL,
    Architecture,
    Inputs,
    TrainedPolicy,
    Weights,
    afterstates_in,
)
from card_envs.opponents.policy import Decisions

MAX_POSITIONS, MOST_POSITIONS = 2048, 1 << 16  # evaluated per decision: by default, and at most

Float64s = NDArray[np.float64]


class NTupleNetwork(NamedTuple):
    """A network, and what one thread needs to value the positions that can be reached.

    Attributes:
        weights: [W] of the network.
        planning: the planner's workspace.
        values: [M] of positions.
    """

    weights: Floats
    planning: Any
    values: Float64s


class NTuplePolicy(TrainedPolicy):
    """Plays to the position with the highest value among those reachable before a chance event.

    Attributes:
        table: [NUM_WEIGHTS] float32 weights.
        max_positions: most positions evaluated per decision.
        plans: macro-actions under way.
    """

    architecture: ClassVar[Architecture] = "n-tuple"

    def __init__(self, game: Game, weights: Weights, sampled: bool = True, max_positions: int = MAX_POSITIONS) -> None:
        """Take weights named and shaped as in `shapes`, in float16 or float32."""
        super().__init__(game, weights, sampled)
        self.max_positions = check_int(max_positions, 1, MOST_POSITIONS, "max_positions")
        self.table = for_loops(np.ascontiguousarray(weights["weights"], np.float32))
        self.plans = PlanCache(game)

    @staticmethod
    def shapes(game: Game, hidden: list[int]) -> dict[str, tuple[int, ...]]:
        return {"weights": (planner_of(game).NUM_WEIGHTS,)}

    @property
    def num_entries(self) -> int:
        return len(self.table)

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Int64s:
        return super().act(decisions, rng) if self.sampled else self.plans.act(decisions, self._plan)

    def reset(self) -> None:
        """Forget plans; see `Policy`."""
        self.plans.clear()

    def _plan(self, decisions: Decisions) -> Int64s:
        states = decisions.worlds(np.random.default_rng(0), 1)[:, 0].copy()
        macros = self.best_macros(states, 1)[0][:, 0]
        self.plans.add(states, macros)
        return macros[:, 0].astype(np.int64)

    def best_macros(self, states: NDArray[Any], most: int) -> tuple[Macros, Int64s]:
        """Return macro-actions to the positions with the highest values at checked states, best first.

        Returns:
            macros [n, most, MAX_LENGTH], and their numbers [n].
        """
        macros, numbers = np.empty((len(states), most, MAX_LENGTH), np.int16), np.zeros(len(states), np.int64)
        order = np.zeros(most, np.int64)
        specialize(find_best_macros, self.game, PLAYER)(0, len(states), states, self.network(), order, macros, numbers)
        return macros, numbers

    def network(self, positions: int | None = None) -> NTupleNetwork:
        """Return what one thread needs to value that many positions (default: `max_positions`)."""
        number = positions or self.max_positions
        return NTupleNetwork(self.table, planner_of(self.game).new_scratch(number), np.zeros(number))

    def afterstates(self, decisions: Decisions) -> Afterstates:
        """Return for each action the active features of the best position that it leads to."""
        game, states = self.game, decisions.worlds(np.random.default_rng(0), 1)[:, 0].copy()
        network, macro = self.network(), np.zeros(MAX_LENGTH, np.int16)
        features = network.planning.features
        best, entry, value = np.zeros(game.rules.NUM_ACTIONS, np.int64), np.zeros_like(features), np.zeros(1)
        first, action = [0], []
        entries, numbers = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
        for i in range(len(states)):
            specialize(write_best, game, PLAYER)(i, states, network, macro, best)
            for move in np.flatnonzero(best >= 0).tolist():
                found = specialize(write_features, game)(int(best[move]), network.planning, entry, value)
                action.append(move)
                entries.append(entry[:found].astype(np.int32))
                numbers.append(np.full(found, value[0], np.float32))
            first.append(len(action))
        starts = np.cumsum([len(part) for part in entries])
        rows = SparseRows(starts, np.concatenate(entries), np.concatenate(numbers))
        return Afterstates(np.array(first), np.array(action, np.int64), rows)

    def logits(self, inputs: Inputs) -> NDArray[np.float32]:
        after = afterstates_in(inputs)
        rows = after.rows
        sums = np.add.reduceat(self.table[rows.entry] * rows.value, rows.starts[:-1])
        logits = np.full((len(inputs["obs"]), self.game.rules.NUM_ACTIONS), ILLEGAL, np.float32)
        logits[after.decision(), after.action] = sums
        return logits


def planner_of(game: Game) -> Planner:
    """Return the game's planner. Raises ValueError if it has none."""
    if game.planner is None:
        raise ValueError(f"{game.name}: there is no planner for this game")
    return game.planner


def value_at(k: int, weights: Floats, planning: Any) -> float:
    """Return the value of position k if a chance event is next or none is left, else UNKNOWN."""
    return worth_at(k, weights, planning) if is_terminal(planning, k) or is_chance_next(planning, k) else UNKNOWN


def worth_at(k: int, weights: Floats, planning: Any) -> float:
    """Return the value of position k, or the one that it would have if a chance event were next."""
    return final_margin(planning, k) if is_terminal(planning, k) else sum_at(k, weights, planning)


def sum_at(k: int, weights: Floats, planning: Any) -> float:
    """Return the sum of the weights of the active features of position k."""
    value = 0.0
    for j in range(active_features(planning, k)):
        value += weights[planning.features[j]]
    return value


def value_all(state: State, network: NTupleNetwork, macro: Macro) -> int:
    """Write the value of each reachable position; return their number. `macro` is scratch."""
    weights, planning, values = network
    known = value_reachable(state, weights, values.shape[0], planning, values)
    if path_to(planning, 0, macro) == 0:
        values[0] = UNKNOWN
    best_or_last(values, known, weights, planning)
    return known


def value_reachable(state: State, weights: Floats, most: int, planning: Any, values: Float64s) -> int:
    """Write the value [M], or UNKNOWN, of the state and at most `most` reachable positions; return their number."""
    load(state, state.seat, planning)
    known = expand(planning, most, MAX_LENGTH - 1)
    for k in range(known):
        values[k] = value_at(k, weights, planning)
    return known


def best_or_last(values: Float64s, number: int, weights: Floats, planning: Any) -> int:
    """Return the index of the greatest value; if all are UNKNOWN, that of the last position, whose sum is written."""
    best = best_index(values, number)
    if values[best] == UNKNOWN:
        best = number - 1
        values[best] = sum_at(best, weights, planning)
    return best


def best_index(values: Float64s, number: int) -> int:
    """Return the index of the greatest of the first `number` values."""
    best = 0
    for k in range(number):
        if values[k] > values[best]:
            best = k
    return best


def path_or_baseline(k: int, state: State, planning: Any, macro: Macro) -> int:
    """Write the path to position k, or the action of `greedy` if the path is empty; return its length."""
    number = path_to(planning, k, macro)
    if number == 0:
        macro[0] = bot_move(state)
        number = 1
    return number


def ntuple_moves(state: State, network: NTupleNetwork, macro: Macro) -> int:
    """Write the macro-action to the position with the highest value; return its length."""
    best = best_index(network.values, value_all(state, network, macro))
    return path_or_baseline(best, state, network.planning, macro)


def write_best_macros(state: State, most: int, network: NTupleNetwork, order: Int64s, macros: Macros) -> int:
    """Write the macro-actions to the `most` positions with the highest values, best first; return their number.

    Args:
        state: not modified.
        most: number of positions.
        network: of this thread.
        order: [most] scratch.
        macros: [C, MAX_LENGTH] written.
    """
    number = select_best(network.values, value_all(state, network, macros[0]), most, order)
    for c in range(number):
        length = path_or_baseline(order[c], state, network.planning, macros[c])
        for step in range(length, macros.shape[1]):
            macros[c, step] = NO_ACTION
    return number


def find_best_macros(
    first: int, last: int, states: NDArray[Any], network: NTupleNetwork, order: Int64s, macros: Macros, numbers: Int64s
) -> None:
    """Write the best macro-actions [B, C, MAX_LENGTH] at the tables first <= i < last, and their numbers [B]."""
    for i in range(first, last):
        numbers[i] = write_best_macros(states[i], macros.shape[1], network, order, macros[i])


def write_best(i: int, states: NDArray[Any], network: NTupleNetwork, macro: Macro, best: Int64s) -> None:
    """Write the best position that each action [A] leads to, or -1, at one table; `macro` [MAX_LENGTH] is scratch."""
    values = network.values
    best[:] = -1
    for k in range(value_all(states[i], network, macro)):
        if values[k] > UNKNOWN:
            path_or_baseline(k, states[i], network.planning, macro)
            if best[macro[0]] < 0 or values[k] > values[best[macro[0]]]:
                best[macro[0]] = k


def write_features(k: int, planning: Any, entry: Int64s, value: Float64s) -> int:
    """Write the active features of position k into `entry`, each to be counted `value` [1] times; return their number.

    A terminal position has one, number 0, whose weight is 1: it is counted as often as there are points.
    """
    if is_terminal(planning, k):
        entry[0], value[0] = 0, final_margin(planning, k)
        return 1
    number = active_features(planning, k)
    value[0] = 1.0
    for j in range(number):
        entry[j] = planning.features[j]
    return number
