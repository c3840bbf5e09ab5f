"""Big Ben with a known stock: finds a win, or proves that there is none.

Beams of increasing width look for a win. A layer is a move; positions are scored by tables fitted to rank positions on
a winning path above others of the same layer (Xu, Fern & Yoon 2009, "Learning Linear Ranking Functions for Beam
Search"). Between beams, a depth-first search visits everything that can be reached, within its share of the time. If it
ends, the deal is proved lost, unless two positions have the same 64-bit key.
"""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.table import Table
from card_envs.game import Solution, State, Verdict
from card_envs.games.big_ben import GAME, beam, proof, rules
from card_envs.games.big_ben.options import Options
from card_envs.games.big_ben.position import INFO, MAX_MOVES, NODE, read_state
from card_envs.games.big_ben.rules import NUM_CARDS, PACK_SIZE

FIRST_WIDTH = 256
GROWTH = 4  # factor of the width from beam to beam
PARENTS_AT_ONCE = 2048  # between looks at the clock
CHILDREN = 12  # candidates for each node of a layer
KEYS = 32  # remembered for each node of a layer
LAYERS = 200  # steps kept for each node of a layer
PROOF_SHARE = 0.3  # positions of the proof per position of the beams
MIN_GROWTH = 0.5  # the beams end if the next one would be narrower than this share of the last
ALL = 1 << 62
POSITIONS_AT_ONCE = 65536  # between looks at the clock
MIN_MEMORY_MB = 4


def solve(state: State, seconds: float = 10.0, memory_mb: int = 512, max_positions: int | None = None) -> Solution:
    """Find a win from a state with its stock as it lies, or prove that there is none.

    Args:
        state: a State of the rules with a decision due.
        seconds: limit of processor time, the only influence of the machine on the answer.
        memory_mb: MiB of tables. Less of it limits the widest beam and the longest proof.
        max_positions: approximate limit on positions; the result is then the same everywhere, given enough seconds.

    Raises:
        ValueError: no decision is due, or a bound is too low.
    """
    if state.needs_deal:
        raise ValueError("solve: expected a state in which a decision is due; this one is over or not dealt yet")
    if not seconds > 0:
        raise ValueError(f"seconds: expected a positive number, got {seconds!r}")
    if memory_mb < MIN_MEMORY_MB:
        raise ValueError(f"memory_mb: expected at least {MIN_MEMORY_MB}, got {memory_mb!r}")
    if max_positions is not None and max_positions < 1:
        raise ValueError(f"max_positions: expected at least 1, got {max_positions!r}")
    _compile()
    limits = SolverLimits(seconds, max_positions)
    verdict, moves = _search(state, limits, memory_mb << 20)
    if verdict == "won" and not _wins(state, moves):
        raise AssertionError("the solver's line does not win by the rules")
    return Solution(verdict, moves, limits.positions, limits.elapsed())


class SolverLimits:
    """The remaining budget."""

    def __init__(self, seconds: float, max_positions: int | None) -> None:
        self.start = time.thread_time()
        self.seconds = seconds
        self.max_positions = max_positions
        self.positions = 0

    def left(self) -> float:
        """Return about how many more positions may be examined."""
        elapsed = self.elapsed()
        positions = self.positions * max(self.seconds - elapsed, 0) / max(elapsed, 1e-9)
        return positions if self.max_positions is None else min(positions, self.max_positions - self.positions)

    def elapsed(self) -> float:
        return time.thread_time() - self.start

    def reached(self) -> bool:
        return self.elapsed() > self.seconds or (
            self.max_positions is not None and self.positions >= self.max_positions
        )


def _search(state: State, limits: SolverLimits, memory: int) -> tuple[Verdict, list[int]]:
    """Run beams of increasing width; after each, continue the proof for its share of the time."""
    proof_search = Proof(state, memory // 4)
    widest = max((memory - memory // 4) // Beam.BYTES, 1)
    width = min(FIRST_WIDTH, widest)
    while True:
        before = limits.positions
        if moves := Beam(state, width, shipped_weights()).run(limits):
            return "won", moves
        spent = limits.positions - before
        verdict = proof_search.go_on(limits, int(PROOF_SHARE * spent))
        if verdict != "unknown":
            return verdict, proof_search.line() if verdict == "won" else []
        growth = min(limits.left() / max(spent, 1), GROWTH)
        if limits.reached() or width == widest or growth < MIN_GROWTH:
            break
        width = min(int(width * growth), widest)
    verdict = proof_search.go_on(limits, ALL)
    return verdict, proof_search.line() if verdict == "won" else []


class Beam:
    """A beam: its arrays, and the loop over layers."""

    BYTES = 2 * NODE.itemsize + CHILDREN * beam.CANDIDATE.itemsize + KEYS * 8 + LAYERS * beam.STEP.itemsize

    def __init__(self, state: State, width: int, weights: NDArray[np.int64]) -> None:
        self.layers = np.zeros((2, width), NODE)
        self.infos = np.zeros(1, INFO)
        read_state(state, self.layers[0], self.infos)
        self.judge = beam.Judge(beam.stock_distances(self.infos[0]), weights)
        self.candidates = np.zeros(CHILDREN * width, beam.CANDIDATE)
        self.trail = np.zeros(LAYERS * width, beam.STEP)
        self.starts = [0]  # start of each layer in the trail
        self.scratch = beam.BeamWorkspace(
            np.zeros(1, NODE),
            np.zeros(MAX_MOVES, np.int16),
            np.zeros(NUM_CARDS, np.int8),
            np.zeros(NUM_CARDS, np.int8),
            np.zeros(beam.MAX_MARKS, np.int16),
            np.zeros(1 << (KEYS * width // 2).bit_length(), np.uint64),
        )
        self.tally = np.zeros(2 * beam.MAX_SCORE, np.int64)

    def run(self, limits: SolverLimits) -> list[int]:
        """Return the moves of a win; empty if a layer is empty, the trail is full or a limit is reached."""
        expand, keep_best = specialize(beam.expand), specialize(beam.keep_best)
        size = 1
        while size > 0:
            parents, children = self.layers
            progress = np.zeros(2, np.int64)
            for first in range(0, size, PARENTS_AT_ONCE):
                last = min(first + PARENTS_AT_ONCE, size)
                looked_at = progress[1]
                won = expand(first, last, parents, self.infos, self.judge, self.scratch, self.candidates, progress)
                limits.positions += int(progress[1] - looked_at)
                if won:
                    last_step = self.candidates[int(progress[0]) - 1]
                    way = self.way_to(len(self.starts) - 2, int(last_step["parent"])) if len(self.starts) > 1 else []
                    return [*way, int(last_step["action"])]
                if limits.reached():
                    return []
            start = self.starts[-1]
            if start + len(children) > len(self.trail):
                return []
            size = keep_best(
                parents, children, self.infos, self.candidates, int(progress[0]), self.tally, self.trail[start:]
            )
            self.starts.append(start + size)
            self.layers = self.layers[::-1]
        return []

    def way_to(self, layer: int, at: int) -> list[int]:
        """Return the moves to a node of a layer; 0 is the layer after the first move."""
        moves = []
        for start in self.starts[layer::-1]:
            step = self.trail[start + at]
            moves.append(int(step["action"]))
            at = int(step["parent"])
        return moves[::-1]


class Proof:
    """The depth-first search for a proof, which can be interrupted and continued."""

    def __init__(self, state: State, memory: int) -> None:
        self.state = state
        self.frames = np.zeros(proof.MAX_DEPTH, NODE)
        self.infos = np.zeros(1, INFO)
        read_state(state, self.frames, self.infos)
        self.infos["endless_hops"] = True
        self.moves = np.zeros((proof.MAX_DEPTH, MAX_MOVES), np.int16)
        self.sizes = np.full(proof.MAX_DEPTH, -1, np.int16)
        self.seen = np.zeros(1 << (memory // 8).bit_length() - 1, np.uint64)
        self.progress = np.zeros(2, np.int64)
        self.status = proof.GOING

    def go_on(self, limits: SolverLimits, positions: int) -> Verdict:
        """Examine some more positions."""
        search_all = specialize(proof.search_all)
        while positions > 0 and self.status == proof.GOING and not limits.reached():
            before = int(self.progress[1])
            budget = min(positions, POSITIONS_AT_ONCE)
            self.status = search_all(self.frames, self.infos, self.moves, self.sizes, self.seen, self.progress, budget)
            limits.positions += int(self.progress[1]) - before
            positions -= budget
        if self.status == proof.NONE_LEFT:
            return "lost"
        # With endless hops, a line may hop too often, or deal where a hop has to come first (BB-8).
        if self.status == proof.FOUND and _wins(self.state, self.line()):
            return "won"
        return "unknown"

    def line(self) -> list[int]:
        """Return the moves to the current position of the search."""
        depth = int(self.progress[0])
        return [int(self.moves[k, self.sizes[k]]) for k in range(depth)]


def _wins(state: State, moves: list[int]) -> bool:
    """Return whether the moves are legal and win, by the rules."""
    table = Table(GAME, state)
    for move in moves:
        if not table.legal()[move]:
            return False
        table.play(move)
    return int(table.state.num_placed) == PACK_SIZE


@cache
def shipped_weights() -> NDArray[np.int64]:
    """Return [NUM_WEIGHTS] the shipped weights."""
    tables = json.loads((Path(__file__).parent / "solver_weights.json").read_bytes())
    return np.concatenate([tables[name] for name in beam.TABLES])


@cache
def _compile() -> None:
    """Compile or load the loops, so that it does not count as time of a deal."""
    table = Table(GAME, rules.new_state(Options()))
    table.seed(0)
    table.deal()
    Beam(table.state, 2, shipped_weights()).run(SolverLimits(3600, None))
    Proof(table.state, 1024).go_on(SolverLimits(3600, None), 1)
    table.play(int(table.legal().argmax()))
