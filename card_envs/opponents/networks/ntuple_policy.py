"""The player of an n-tuple network: it goes where that promises most, and plans a stretch of moves at once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import for_loops
from card_envs.engine.compile import specialize
from card_envs.game import Game, Int8s, Int64s
from card_envs.opponents.lines import LONGEST, Lines
from card_envs.opponents.networks.afterstates import PLAYER, Afterstates
from card_envs.opponents.networks.ntuples import find_best_lines, note_best, note_marks, planner_of, planning_scratch
from card_envs.opponents.networks.policies import ILLEGAL, Architecture, Inputs, TrainedPolicy, Weights, afterstates_in
from card_envs.opponents.networks.sparse import SparseRows
from card_envs.opponents.policy import Decisions
from card_envs.opponents.remembered import Remembered


class NTuplePolicy(TrainedPolicy):
    """Plays towards the position, of all that can be reached before something shows, that is worth most.

    Attributes:
        table: [NUM_WEIGHTS] its weights in float32.
    """

    architecture: ClassVar[Architecture] = "n-tuple"

    def __init__(self, game: Game, weights: Weights, sampled: bool = True) -> None:
        """Take weights named and shaped as in `shapes`, in float16 or float32."""
        super().__init__(game, weights, sampled)
        self.table = for_loops(np.ascontiguousarray(weights["weights"], np.float32))
        self.remembered = Remembered(game)

    @staticmethod
    def shapes(game: Game, hidden: list[int]) -> dict[str, tuple[int, ...]]:
        return {"weights": (planner_of(game).NUM_WEIGHTS,)}

    @property
    def num_entries(self) -> int:
        return len(self.table)

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Int64s:
        return super().act(decisions, rng) if self.sampled else self.remembered.act(decisions, self._plan)

    def reset(self) -> None:
        """Forget plans; see `Policy`."""
        self.remembered.clear()

    def _plan(self, decisions: Decisions) -> Int64s:
        states = decisions.worlds(np.random.default_rng(0), 1)[:, 0].copy()
        lines = self.best_lines(states, 1)[0][:, 0]
        self.remembered.note(states, lines)
        return lines[:, 0].astype(np.int64)

    def best_lines(self, states: NDArray[Any], most: int) -> tuple[Lines, Int8s]:
        """The lines to the positions that are worth most at checked states, the best first.

        Returns:
            lines [n, most, LONGEST] and `live` [n, most], 1 where there is one.
        """
        lines, live = np.empty((len(states), most, LONGEST), np.int16), np.zeros((len(states), most), np.int8)
        scratch, values = self._scratch()
        specialize(find_best_lines, self.game, PLAYER)(0, len(states), states, self.table, scratch, values, lines, live)
        return lines, live

    def _scratch(self) -> tuple[Any, NDArray[np.float64]]:
        """What to plan with, and room for values."""
        most = planner_of(self.game).MOST_REACHED
        return planning_scratch(self.game, most), np.zeros(most)

    def afterstates(self, decisions: Decisions) -> Afterstates:
        """By move, of the best position that it leads to, what counts there."""
        game, states = self.game, decisions.worlds(np.random.default_rng(0), 1)[:, 0].copy()
        (scratch, values), line = self._scratch(), np.zeros(LONGEST, np.int16)
        best, entry, value = np.zeros(game.rules.NUM_ACTIONS, np.int64), np.zeros_like(scratch.features), np.zeros(1)
        first, action = [0], []
        entries, numbers = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
        for i in range(len(states)):
            specialize(note_best, game, PLAYER)(i, i + 1, states, self.table, scratch, values, line, best)
            for move in np.flatnonzero(best >= 0).tolist():
                found = specialize(note_marks, game)(int(best[move]), scratch, entry, value)
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
