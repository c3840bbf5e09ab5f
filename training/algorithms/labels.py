"""The advantage of every legal move over the baseline action: what it gains where `greedy` plays the deal to its end.

The hidden cards are those of the deal as it was played, so that what the others did needs no model; where it tells
nothing of hidden cards, the mean over several drawn worlds has less noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.rng import derive, table_keys
from card_envs.game import SCRATCH_STATES, Game, Int8s, Int64s, UInt64s, play, score_margin
from card_envs.opponents.search._decide import draw_likely_world
from card_envs.opponents.search._parts import finish_deal

BASELINE = "greedy"


class MoveTrials(NamedTuple):
    """Moves to try at B tables.

    Attributes:
        keys: [B] of the streams of drawn worlds.
        baseline: [B] the baseline actions.
        live: [B, A] marks the moves to try, without the baseline action.
        sums: [B, A] of their advantages, which grow.
        stream: [1] scratch.
    """

    keys: UInt64s
    baseline: Int64s
    live: Int8s
    sums: NDArray[np.float64]
    stream: UInt64s


def try_tables(
    first: int, last: int, states: NDArray[Any], worlds: int, trials: MoveTrials, scratch: NDArray[Any]
) -> None:
    """Try moves at each table, first in the deal itself, and sum their advantages up.

    Args:
        first, last: which tables.
        states: [B]; they are not changed.
        worlds: in which moves are tried.
        trials: at the tables.
        scratch: [SCRATCH_STATES] states.
    """
    keys, baseline, live, sums, stream = trials
    for i in range(first, last):
        alternatives = 0
        for action in range(live.shape[1]):
            alternatives += live[i, action]
        if alternatives == 0:
            continue
        seat = states[i].seat
        for world in range(worlds):
            scratch[0] = states[i]
            if world:
                stream[0] = derive(keys[i], world)
                draw_likely_world(states[i], 0, stream, scratch)
            baseline_result = 0
            for number in range(live.shape[1] + 1):
                action = number - 1 if number else baseline[i]
                if number and live[i, action] == 0:
                    continue
                scratch[1] = scratch[0]
                play(scratch[1], action)
                finish_deal(scratch[1])
                result = score_margin(scratch[1], seat)
                if number == 0:
                    baseline_result = result
                else:
                    sums[i, action] += result - baseline_result


def advantages_over_baseline(
    game: Game, states: NDArray[Any], baseline: Int64s, moves: Int8s, worlds: int = 1, seed: int = 0
) -> NDArray[np.float32]:
    """Return [B, A] points that each move brings the mover's side beyond what the baseline action does; else 0.

    Args:
        game: what is played.
        states: [B]; they are not changed.
        baseline: [B] the moves of `greedy`.
        moves: [B, A] the legal moves to try.
        worlds: in which they are tried, the deal itself among them; the mean counts.
        seed: of the drawn worlds.
    """
    live = moves.copy()
    live[np.arange(len(baseline)), baseline] = 0
    sums, scratch = np.zeros(moves.shape), np.zeros(SCRATCH_STATES, game.rules.STATE)
    keys = table_keys(seed, np.arange(len(baseline)))
    trials = MoveTrials(keys, baseline, live, sums, np.zeros(1, np.uint64))
    specialize(try_tables, game, BASELINE)(0, len(baseline), states, worlds, trials, scratch)
    return (sums / worlds).astype(np.float32)


def phases_of(game: Game) -> Int64s:
    """Return [A] the number of the game's phase (`phases`, such as bidding) that each action belongs to."""
    numbers = np.zeros(game.rules.NUM_ACTIONS, np.int64)
    for number, actions in enumerate(game.view.PHASES.values()):
        numbers[actions.start : actions.stop] = number
    return numbers


def spreads(advantages: NDArray[np.float32], baseline: Int64s, mask: Int8s, phases: Int64s) -> NDArray[np.float32]:
    """Return [K] the standard deviation of the best alternative's advantage in each phase; 1 where there is none.

    Args:
        advantages: [n, A].
        baseline: [n] the moves of `greedy`.
        mask: [n, A] legal moves.
        phases: [A] the phase that an action belongs to, below K.
    """
    alternatives = mask != 0
    alternatives[np.arange(len(baseline)), baseline] = False
    best = np.where(alternatives, advantages, -np.inf).max(axis=1)
    phase = np.where(np.isfinite(best), phases[baseline], -1)
    found = [float(best[phase == k].std()) if (phase == k).any() else 0.0 for k in range(int(phases.max()) + 1)]
    return np.array([spread or 1.0 for spread in found], np.float32)
