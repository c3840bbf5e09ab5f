"""Fitting the weights of the solver's beams: `python strength/fit_big_ben.py FILE`.

Beams solve deals with the current weights. In each layer of a winning beam, the position on the winning path should
have scored best: a softmax over it and some of the others is fitted, and the next round's beams use the result (Xu,
Fern & Yoon 2009). The shipped weights are from four rounds, starting with `rough_weights`; more rounds, longer ones and
wider beams won fewer deals.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from card_envs.compiling import specialize
from card_envs.engine.table import Table
from card_envs.game import Int8s, Int64s
from card_envs.games.big_ben import GAME, beam, rules
from card_envs.games.big_ben.beam import marks_of, note_needs
from card_envs.games.big_ben.options import Options
from card_envs.games.big_ben.position import Records, move_on
from card_envs.games.big_ben.solver import Beam, SolverLimits
from card_envs.system.files import check_output, write_json

RIVALS = 8  # other positions sampled from each layer
KEPT = 0.5  # share of the layers
SCALE = 20  # of the shipped weights, which are integers
STEPS = 1000
BATCH = 1024
RATE = 0.01
PULL = 1e-4  # regularization towards the previous weights


def rough_weights() -> Int64s:
    """Return initial weights: place cards, leave none above others that are wanted sooner."""
    weights = np.zeros(beam.NUM_WEIGHTS, np.int64)
    weights[:2] = -40, -10
    for need in range(1, 9):
        for cards in range(8):
            if cards < 4:
                weights[beam.COVERED + 9 * cards + need] = -6 - (9 - need) * cards * 0.7
            weights[beam.SUNK + 9 * cards + need] = -5 - (9 - need) * cards
        for later in range(need + 1, 9):
            weights[beam.UNDER + 9 * later + need] = -10
            for case, points in enumerate((-20, -30, -30)):
                weights[beam.PAIR + 81 * case + 9 * need + later] = points
        weights[beam.PAIR + 81 + 9 * need : beam.PAIR + 81 + 9 * need + 9] += 3
    for cards in range(beam.FAR + 5):
        weights[beam.FIRST + cards] = -3 * min(cards, 12)
        weights[beam.SECOND + cards] = -2 * min(cards, 12)
    return weights


def mark_line(
    nodes: Records, infos: Records, distances: Int8s, actions: Int64s, scratch: beam.BeamWorkspace, row: Int8s
) -> None:
    """Play some actions on `nodes` [1] and count the active features of the score in `row` [NUM_WEIGHTS]."""
    node, info = nodes[0], infos[0]
    for action in actions:
        move_on(node, info, action)
    note_needs(node, scratch.needs)
    row[:] = 0
    row[0], row[1] = node.left, node.dealt
    for k in range(marks_of(node, info, distances, scratch)):
        row[scratch.marks[k]] += 1


def layers_of(search: Beam, root: Records, line: list[int], rng: np.random.Generator) -> list[Int8s]:
    """Return [1 + RIVALS, NUM_WEIGHTS] for some layers of a winning beam, the winning path first."""
    mark = specialize(mark_line)
    layers = []
    for layer in range(len(line) - 1):
        size = search.starts[layer + 1] - search.starts[layer]
        if size < RIVALS or rng.random() > KEPT:
            continue
        rows = np.zeros((1 + RIVALS, beam.NUM_WEIGHTS), np.int8)
        ways = [line[: layer + 1], *(search.way_to(layer, int(at)) for at in rng.integers(0, size, RIVALS))]
        for way, row in zip(ways, rows):
            mark(root.copy(), search.infos, search.judge.distances, np.array(way), search.scratch, row)
        layers.append(rows)
    return layers


def fitted(layers: Int8s, before: Int64s, rng: np.random.Generator) -> Int64s:
    """Return weights that score the first position of each layer best: Adam on the log loss of the softmax."""
    start = before.astype(np.float32) / SCALE
    weights, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step in range(1, STEPS + 1):
        rows = layers[rng.integers(0, len(layers), BATCH)].astype(np.float32)
        scores = rows @ weights
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[:, 0] -= 1
        slope = np.einsum("nk,nkf->f", shares, rows) / BATCH + PULL * (weights - start)
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        rate = RATE * min(1, 2 * (1 - step / STEPS))
        weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-6)
    return np.round(SCALE * weights).astype(np.int64)


def fit(rounds: int, deals: int, width: int, seed: int) -> Int64s:
    """Fit weights on the deals of a seed that must not be used to report results."""
    rng = np.random.default_rng(seed)
    weights = rough_weights()
    before: list[Int8s] = []
    table = Table(GAME, rules.new_state(Options()))
    for number in range(rounds):
        found: list[Int8s] = []
        won = 0
        for deal in range(deals):
            table.seed(seed + number, deal)
            table.deal()
            search = Beam(table.state, width, weights)
            root: Records = search.layers[0, :1].copy()
            line = search.run(SolverLimits(float("inf"), None))
            won += bool(line)
            found += layers_of(search, root, line, rng)
        print(f"round {number + 1}: won {won} of {deals}", flush=True)
        weights = fitted(np.array(before + found), weights, rng)
        before = found
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    for name, value in (("rounds", 4), ("deals", 200), ("width", 300), ("seed", 9000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    check_output(given.file)
    weights = fit(given.rounds, given.deals, given.width, given.seed)
    cuts = np.cumsum(list(beam.TABLES.values()))[:-1]
    tables = {name: part.tolist() for name, part in zip(beam.TABLES, np.split(weights, cuts))}
    write_json(given.file, tables)


if __name__ == "__main__":
    main()
