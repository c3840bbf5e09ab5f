"""N-tuple networks that learn what positions are worth, by temporal differences (Sutton 1988).

The network plays deals by itself, each stretch of moves towards the position that it values most, and learns from the
end of the deal backwards. Each weight has a rate of its own, which falls as its errors cancel out (temporal coherence:
Beal & Smith 1999; in n-tuple networks: Jaśkowski 2018). For games with a `planner.py`, which says which weights count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine import kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.dealing import deal_next
from card_envs.engine.rng import advance, below, table_keys, uniform
from card_envs.game import (
    GREEDY,
    Int64s,
    State,
    UInt64s,
    active_features,
    bot_move,
    is_terminal,
    path_to,
    play,
    score_margin,
)
from card_envs.games import get_game
from card_envs.opponents.macros import MAX_LENGTH
from card_envs.opponents.networks._ntuples import best_or_last, planner_of, value_reachable
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy

from .. import checkpoint
from ..checkpoint import Memory
from ..config import Config
from ..ranks import Ranks
from . import Algorithm

MOST_POSITIONS = 512  # learned from, of a deal and a seat
ALL = -1  # seats learn
POSITIONS = 64  # examined between two looks at hidden cards
TD_LAMBDA = 0.5  # 0: learn from the next position, 1: from the deal's end; no value from 0 to 0.8 differs measurably
DEALS = 1000  # of an iteration: between two entries of the log
ROOM = 512  # positions to examine where nothing more will show

Floats = NDArray[np.float32]


class Learner(NamedTuple):
    """The weights, and the errors that set their rates.

    Attributes:
        weights: [W] the network's weights.
        sums: [W] sums of the errors at each.
        sizes: [W] sums of their absolute values.
    """

    weights: Floats
    sums: Floats
    sizes: Floats


class Trail(NamedTuple):
    """The positions of a deal that each of S seats went to.

    Attributes:
        features: [S, T, M] the weights that count.
        numbers: [S, T] their number.
        values: [S, T] the position's value when it was chosen.
        lengths: [S] number of positions.
    """

    features: NDArray[np.int32]
    numbers: Int64s
    values: NDArray[np.float64]
    lengths: Int64s


class TDWorkspace(NamedTuple):
    """Memory of one thread.

    Attributes:
        planning: the planner's workspace.
        values: [M] values of positions.
        line: [MAX_LENGTH] moves.
        stream: [1] decides which seats learn.
        trail: the positions of the deal.
    """

    planning: Any
    values: NDArray[np.float64]
    line: NDArray[np.int16]
    stream: UInt64s
    trail: Trail


def learn_deals(
    first: int, last: int, states: NDArray[Any], learner: Learner, greedy_share: float, workspace: TDWorkspace,
    results: NDArray[np.float64],
) -> int:  # fmt: skip
    """Play and learn from deals; return the number of positions learned from.

    Args:
        first, last: numbers of the deals, all at the first table.
        states: [1] that table.
        learner: modified.
        greedy_share: share of the deals in which one seat learns and `greedy` has the others; in the rest all learn.
        workspace: scratch.
        results: [B] written: the points of the only seat that learned, else NaN.
    """
    trail, stream = workspace.trail, workspace.stream
    num_seats = trail.lengths.shape[0]
    learned = 0
    for i in range(first, last):
        deal_next(states[0])
        alone = below(advance(stream), num_seats)
        if num_seats > 1 and uniform(stream) >= greedy_share:
            alone = ALL
        play_deal(states[0], alone, learner.weights, workspace)
        results[i] = np.nan
        for seat in range(num_seats):
            if alone in (ALL, seat):
                result = float(score_margin(states[0], seat))
                learn_trail(seat, result, learner, trail)
                learned += trail.lengths[seat]
                if alone == seat:
                    results[i] = result
        states[0].over = states[0].needs_deal = True
    return learned


def play_deal(state: State, alone: int, weights: Floats, workspace: TDWorkspace) -> None:
    """Play a deal by the network, or one seat of it, and note the positions; to the end or until nothing changes."""
    planning, values, line, _, trail = workspace
    for seat in range(trail.lengths.shape[0]):
        trail.lengths[seat] = 0
    while not state.needs_deal:
        seat = state.seat
        if alone != ALL and seat != alone:
            play(state, bot_move(state))
            continue
        best = best_or_last(values, value_reachable(state, weights, POSITIONS, planning, values), weights, planning)
        number = path_to(planning, best, line)
        if number == 0:  # no continuation was found that brings more
            return
        if not is_terminal(planning, best):
            note_position(seat, values[best], active_features(planning, best), planning.features, trail)
        for step in range(number):
            play(state, line[step])


def note_position(seat: int, value: float, number: int, features: Int64s, trail: Trail) -> None:
    """Append a position that a seat goes to, while there is room."""
    t = trail.lengths[seat]
    if t < trail.numbers.shape[1]:
        for j in range(number):
            trail.features[seat, t, j] = features[j]
        trail.numbers[seat, t], trail.values[seat, t] = number, value
        trail.lengths[seat] = t + 1


def learn_trail(seat: int, result: float, learner: Learner, trail: Trail) -> None:
    """Learn from a seat's result, from the end of the deal backwards."""
    goal = result
    for t in range(trail.lengths[seat] - 1, -1, -1):
        number = trail.numbers[seat, t]
        value = 0.0
        for j in range(number):
            value += learner.weights[trail.features[seat, t, j]]
        error = np.float32(goal - value)
        for j in range(number):
            w = trail.features[seat, t, j]
            rate = abs(learner.sums[w]) / learner.sizes[w] if learner.sizes[w] > 0 else np.float32(1)
            learner.weights[w] += error * rate / np.float32(number)
            learner.sums[w] += error
            learner.sizes[w] += abs(error)
        goal = (1 - TD_LAMBDA) * trail.values[seat, t] + TD_LAMBDA * goal


class TemporalDifferences(Algorithm):
    """A network that plays by itself.

    Attributes:
        learner: what it has learned.
        deals: number played so far; deals_each: number in an iteration.
    """

    def __init__(self, config: Config, ranks: Ranks) -> None:
        """Create a network that values nothing. Raises ValueError in several processes."""
        if ranks.count > 1:
            raise ValueError("algorithm = 'td': expected one process")
        self.game = get_game(config.game)
        self.config = config
        planner = planner_of(self.game)
        self.env = BatchEnv(self.game, 1, config.seed, options=config.options)
        self.learner = Learner(*np.zeros((3, planner.NUM_WEIGHTS), np.float32))
        self.learner.weights[0] = 1
        self.deals, self.deals_each = 0, DEALS
        planning = planner.new_scratch(ROOM)
        shape = self.game.rules.NUM_SEATS, MOST_POSITIONS
        features, lengths = np.zeros((*shape, len(planning.features)), np.int32), np.zeros(shape[0], np.int64)
        trail = Trail(features, np.zeros(shape, np.int64), np.zeros(shape), lengths)
        line, stream = np.zeros(MAX_LENGTH, np.int16), np.zeros(1, np.uint64)
        self.workspace = TDWorkspace(planning, np.zeros(ROOM), line, stream, trail)

    def iterate(self, progress: float) -> dict[str, float]:
        """Play and learn from deals that depend on the seed and on `deals` alone: see `Algorithm`."""
        config, results = self.config, np.zeros(self.deals_each)
        keys = table_keys(config.seed, np.array([2 * self.deals, 2 * self.deals + 1]))
        specialize(kernels.reset_tables, self.game)(0, 1, self.env.states, keys[:1])
        self.workspace.stream[0] = keys[1]
        learned = specialize(learn_deals, self.game, GREEDY)(
            0, len(results), self.env.states, self.learner, config.greedy_share, self.workspace, results
        )
        self.deals += len(results)
        measured = results[~np.isnan(results)]
        margin = float(measured.mean()) if len(measured) else float("nan")
        return {"learned": int(learned), "margin_over_greedy": margin, "deals": self.deals}

    def memory(self) -> Memory:
        return self.learner._asdict(), {"deals": self.deals}

    def restore(self, memory: Memory, rank_memory: Memory | None) -> None:
        arrays, facts = memory
        deals = facts.get("deals")
        if type(deals) is not int or not 0 <= deals < 1 << 62:
            raise ValueError(f"deals: expected a number, got {deals!r}")
        checkpoint.check_arrays(arrays, self.learner._asdict(), "td")
        for name, array in arrays.items():
            getattr(self.learner, name)[:] = array
        self.deals = deals

    def policy(self) -> NTuplePolicy:
        return NTuplePolicy(self.game, {"weights": self.learner.weights.copy()}, sampled=False)

    def stored_policy(self) -> NTuplePolicy:
        return self.policy()

    def bytes_on_disk(self) -> int:
        return sum(array.nbytes for array in self.learner)
