"""The policy of an n-tuple network: it plays a macro-action to the reachable position with the highest value."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.buffers import as_writable, check_int
from card_envs.game import GREEDY, Game, Int64s
from card_envs.opponents.macros import MAX_LENGTH, Macros, PlanCache
from card_envs.opponents.networks._ntuples import (
    NTupleNetwork,
    find_best_macros,
    ntuple_moves,
    planner_of,
    write_best,
    write_features,
)
from card_envs.opponents.networks._sparse import SparseRows
from card_envs.opponents.networks.afterstates import Afterstates
from card_envs.opponents.networks.policies import ILLEGAL, Architecture, Inputs, TrainedPolicy, Weights, afterstates_in
from card_envs.opponents.policy import Decisions

MAX_POSITIONS, MOST_POSITIONS = 2048, 1 << 16  # evaluated per decision: by default, and at most


class NTuplePolicy(TrainedPolicy):
    """Plays to the position with the highest value among those reachable before a chance event.

    Attributes:
        table: [NUM_WEIGHTS] float32 weights.
        max_positions: most positions evaluated per decision.
        plans: macro-actions under way.
    """

    architecture: ClassVar[Architecture] = "n-tuple"
    is_quick = True
    max_positions: int

    def __init__(self, game: Game, weights: Weights, sampled: bool = True, max_positions: int = MAX_POSITIONS) -> None:
        """Take weights named and shaped as in `shapes`, in float16 or float32."""
        super().__init__(game, weights, sampled)
        self.max_positions = check_int(max_positions, 1, MOST_POSITIONS, "max_positions")
        self.table = as_writable(np.ascontiguousarray(weights["weights"], np.float32))
        self.plans = PlanCache()

    @staticmethod
    def shapes(game: Game, hidden: list[int]) -> dict[str, tuple[int, ...]]:
        return {"weights": (planner_of(game).NUM_WEIGHTS,)}

    @property
    def num_entries(self) -> int:
        return len(self.table)

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Int64s:
        return super().act(decisions, rng) if self.sampled else self.plans.act(decisions, self._plan)

    def within(self, seconds: float, threads: int = 1) -> NTuplePolicy:
        """Return a copy with plans of its own; its time is bounded anyway."""
        twin = copy(self)
        twin.plans = PlanCache()
        return twin

    @property
    def is_compiled(self) -> bool:  # type: ignore[override]
        return not self.sampled

    def compiled_moves(self, positions: int | None = None) -> tuple[Any, Any]:
        return ntuple_moves, self.network(positions)

    def describe(self) -> str:
        return "looks up what it has learned"

    def reset(self) -> None:
        """Forget plans."""
        self.plans.clear()

    def _plan(self, decisions: Decisions) -> Int64s:
        states = decisions.worlds(np.random.default_rng(0), 1)[:, 0].copy()
        macros = self.best_macros(states, 1)[0][:, 0]
        self.plans.add(self.game, states, macros)
        return macros[:, 0].astype(np.int64)

    def best_macros(self, states: NDArray[Any], most: int) -> tuple[Macros, Int64s]:
        """Return macro-actions to the positions with the highest values at checked states, best first.

        Returns:
            macros [n, most, MAX_LENGTH], and their numbers [n].
        """
        macros, numbers = np.empty((len(states), most, MAX_LENGTH), np.int16), np.zeros(len(states), np.int64)
        order = np.zeros(most, np.int64)
        specialize(find_best_macros, self.game, GREEDY)(0, len(states), states, self.network(), order, macros, numbers)
        return macros, numbers

    def network(self, positions: int | None = None) -> NTupleNetwork:
        """Return the network with the workspace of one thread for that many positions (default: `max_positions`)."""
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
            specialize(write_best, game, GREEDY)(i, states, network, macro, best)
            for move in np.flatnonzero(best >= 0).tolist():
                number = specialize(write_features, game)(int(best[move]), network.planning, entry, value)
                action.append(move)
                entries.append(entry[:number].astype(np.int32))
                numbers.append(np.full(number, value[0], np.float32))
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
