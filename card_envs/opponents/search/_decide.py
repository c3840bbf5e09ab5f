"""One decision, compiled: find the arms, draw worlds, play every arm out in each, drop what falls behind, choose.

`decide_tables` makes whole decisions, one table after the other, in one thread. Threads that share the worlds of one
table, and searches that keep to a time, run the same code stage by stage (`_workers.py`). World number w of a table has
a random stream of its own, so that the result is the same in any case.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.rng import derive
from card_envs.game import SCRATCH_STATES, Game, Int8s, Int64s, State, UInt64s, play
from card_envs.opponents._macros import MAX_LENGTH, NO_ACTION, UNKNOWN, Macro, Macros, select_best
from card_envs.opponents.networks._afterstate_network import (
    AfterstateNetwork,
    checked_scratch,
    score_macros,
)
from card_envs.opponents.networks._afterstates import follow_mode
from card_envs.opponents.networks._ntuples import planning_scratch, write_best_macros
from card_envs.opponents.search._budget import (
    BASELINE,
    RIVALS,
    WORLDS,
    Arms,
    ArmStats,
    Budget,
    Float64s,
    chosen_arm,
    judge,
    new_stats,
    stage_end,
)
from card_envs.opponents.search._candidates import Expansion, find_macros, new_expansion
from card_envs.opponents.search._leaf import MAX_ACTIONS, Leaf, play_to_end, value_of
from card_envs.opponents.search._rollout import NEVER, play_on
from card_envs.opponents.search._worlds import draw_likely_world

WHOLE, PREPARE, STAGE = range(3)  # what `decide_tables` does: a whole decision, find its arms, or try them for a stage

Weights = NDArray[np.float32]


class Batch(NamedTuple):
    """Decisions to make.

    Attributes:
        states: [n]; they stay as they are.
        keys: [n] of the random streams of their worlds.
        baselines: [n] the action to beat.
        tried: [n, A] 1 for the actions to try.
    """

    states: NDArray[Any]
    keys: UInt64s
    baselines: Int64s
    tried: Int8s


class Limits(NamedTuple):
    """Bounds on the arms.

    Attributes:
        candidates: macro-actions that are found, at most.
        arms: those of them that a ranking network keeps.
        goes_on: whether the baseline is what the scripted player does up to the end of the stretch; else one action.
        follow: how far a ranking network follows moves.
    """

    candidates: int
    arms: int
    goes_on: bool
    follow: int


class Parts(NamedTuple):
    """The compiled parts of a search; None is compiled away.

    Attributes:
        prior_weights: [W] of an n-tuple network that ranks macro-actions.
        prior_network: that ranks macro-actions.
        rollout_weights: [W] of an n-tuple network that plays on.
        rollout_network: that plays on.
        leaf: where playouts stop.
        follows: whether the network that plays on reads moves with lookahead.
    """

    prior_weights: Weights | None = None
    prior_network: AfterstateNetwork | None = None
    rollout_weights: Weights | None = None
    rollout_network: AfterstateNetwork | None = None
    leaf: Leaf | None = None
    follows: bool = False


class Scratch(NamedTuple):
    """The workspace of one thread.

    Attributes:
        states: [SCRATCH_STATES] the world, what an arm makes of it, and room to refine the world in.
        stream: [1] of the world.
        sides: [S] of the seats.
        expansion: to find macro-actions with; None where arms are single actions.
        ranking: to rank macro-actions with, by an n-tuple network.
        ranking_values: [M] of positions; [0] where none ranks.
        planning: to ask an n-tuple network with after a playout, or on the way.
        values: [M] of positions.
        macro: [MAX_LENGTH] actions.
        ranker: to rank macro-actions with, by a network; None where none does.
        network: to ask a network with that plays on; None where there is none.
        follow: how far that follows moves.
        reached: [C] hashes.
        scores: [C] of macro-actions.
        order: [C] of arms.
    """

    states: NDArray[Any]
    stream: UInt64s
    sides: Int64s
    expansion: Expansion | None
    ranking: Any
    ranking_values: Float64s
    planning: Any
    values: Float64s
    macro: Macro
    ranker: Any
    network: Any
    follow: int
    reached: UInt64s
    scores: Weights
    order: Int64s


class Results(NamedTuple):
    """The outcome of decisions.

    Attributes:
        macros: [n, L] the actions to play, one after the other; NO_ACTION after the last.
        baselines: [n] the baseline's first action.
        expected: [n] points that the baseline brings on average.
        stats: [n, A] of each action: those of the macro-action with it that got furthest.
    """

    macros: Macros
    baselines: Int64s
    expected: Float64s
    stats: ArmStats


def new_scratch(game: Game, parts: Parts, candidates: int, ranked: int, played: int) -> Scratch:
    """Return scratch for one thread.

    Args:
        game: what is played.
        parts: of the search.
        candidates: macro-actions at most; 0 where arms are single actions.
        ranked: positions that an n-tuple network ranks.
        played: positions that an n-tuple network looks at in playouts.
    """
    has_tables = parts.prior_weights is not None
    capacity = candidates or game.rules.NUM_ACTIONS
    return Scratch(
        np.zeros(SCRATCH_STATES, game.rules.STATE),
        np.zeros(1, np.uint64),
        np.array(game.sides),
        new_expansion(game, candidates) if candidates and not has_tables else None,
        planning_scratch(game, ranked if has_tables else 1),
        np.zeros(ranked if has_tables else 0),
        planning_scratch(game, played),
        np.zeros(played),
        np.zeros(MAX_LENGTH, np.int16),
        None if parts.prior_network is None else checked_scratch(game, parts.prior_network),
        None if parts.rollout_network is None else checked_scratch(game, parts.rollout_network),
        follow_mode(game, parts.follows),
        np.zeros(capacity, np.uint64),
        np.zeros(capacity, np.float32),
        np.zeros(capacity, np.int64),
    )


def new_results(n: int, length: int, num_actions: int) -> Results:
    """Return room for n decisions, of macro-actions of at most that length."""
    macros = np.full((n, length), NO_ACTION, np.int16)
    return Results(macros, np.zeros(n, np.int64), np.zeros(n), new_stats(n, num_actions))


def new_arms(candidates: int, num_actions: int) -> Arms:
    """Return room for the arms of one decision: macro-actions, or single actions where `candidates` is 0."""
    macros = np.full((candidates, MAX_LENGTH) if candidates else (num_actions, 1), NO_ACTION, np.int16)
    return Arms(macros, np.zeros(len(macros), np.int8), np.zeros(3, np.int64))


def decide_tables(
    first: int, last: int, mode: int, share: int, num_shares: int, batch: Batch, limits: Limits, budget: Budget,
    prior_weights: Weights | None, prior_network: AfterstateNetwork | None, rollout_weights: Weights | None,
    rollout_network: AfterstateNetwork | None, leaf: Leaf | None, scratch: Scratch, arms: Arms, stats: ArmStats,
    results: Results,
) -> int:  # fmt: skip
    """Decide at the tables first <= i < last; return how many actions were played in all worlds.

    Args:
        first, last: which tables.
        mode: WHOLE; or, for one table, PREPARE or STAGE.
        share, num_shares: in a STAGE, which share of its worlds.
        batch: the decisions.
        limits, budget: what they may cost.
        prior_weights, prior_network, rollout_weights, rollout_network, leaf: see `Parts`.
        scratch: of this thread.
        arms: of the decision at hand.
        stats: [C] of the arms.
        results: are written for whole decisions.
    """
    moves = 0
    for i in range(first, last):
        state = batch.states[i]
        if mode != STAGE:
            prepare(
                state, batch.baselines[i], batch.tried[i], limits, scratch.expansion, prior_weights, prior_network,
                scratch, arms,
            )  # fmt: skip
            clear(stats)
        going = mode != PREPARE
        while going:
            moves += try_stage(
                state, batch.keys[i], share, num_shares, budget, rollout_weights, rollout_network, leaf, scratch, arms,
                stats,
            )  # fmt: skip
            going = mode == WHOLE and judge(arms, stats, budget)
        if mode == WHOLE:
            write_result(i, arms, stats, budget.z_threshold, results)
    return moves


def prepare(
    state: State, baseline: int, tried: Int8s, limits: Limits, expansion: Expansion | None,
    prior_weights: Weights | None, prior_network: AfterstateNetwork | None, scratch: Scratch, arms: Arms,
) -> None:  # fmt: skip
    """Find the arms of a decision. (What is None is a parameter of its own: Numba compiles its branch away.)"""
    race, live = arms.race, arms.live
    race[WORLDS] = 0
    if prior_weights is not None:
        number = write_best_macros(
            state, prior_weights, limits.arms, scratch.ranking, scratch.ranking_values, scratch.order, arms.macros
        )
        race[BASELINE] = 0
        mark_live(number, live)
    elif expansion is None:
        for action in range(live.shape[0]):
            arms.macros[action, 0] = action
            live[action] = tried[action]
        race[BASELINE] = baseline
    else:
        number = find_macros(state, baseline, tried, limits.goes_on, limits.candidates, expansion, arms.macros)
        race[BASELINE] = 0
        mark_live(number, live)
        if prior_network is not None:
            score_macros(
                state, arms.macros, number, prior_network, limits.follow, scratch.ranker, scratch.reached, live,
                scratch.scores,
            )  # fmt: skip
            race[BASELINE] = keep_best(limits.arms, scratch.scores, scratch.order, live)
    live[race[BASELINE]] = 0
    race[RIVALS] = 0
    for arm in range(live.shape[0]):
        race[RIVALS] += live[arm]


def mark_live(number: int, live: Int8s) -> None:
    """Mark the first `number` arms."""
    for arm in range(live.shape[0]):
        live[arm] = arm < number


def keep_best(most: int, scores: Weights, order: Int64s, live: Int8s) -> int:
    """Leave `most` live arms with the highest scores, of equal ones the first; return the best of all."""
    number = live.shape[0]
    for arm in range(number):
        if live[arm] == 0:
            scores[arm] = UNKNOWN
        live[arm] = 0
    for place in range(select_best(scores, number, most, order)):
        live[order[place]] = 1
    return order[0]


def clear(stats: ArmStats) -> None:
    """Forget all results."""
    for arm in range(stats.worlds.shape[0]):
        stats.sums[arm] = stats.squares[arm] = stats.advantages[arm] = stats.advantage_squares[arm] = 0.0
        stats.worlds[arm] = 0


def try_stage(
    state: State, key: np.uint64, share: int, num_shares: int, budget: Budget, rollout_weights: Weights | None,
    rollout_network: AfterstateNetwork | None, leaf: Leaf | None, scratch: Scratch, arms: Arms, stats: ArmStats,
) -> int:  # fmt: skip
    """Try the arms in a share of the worlds of the stage at hand; return how many actions were played."""
    begin = arms.race[WORLDS]
    number = stage_end(arms.race, budget) - begin
    moves = 0
    for world in range(begin + number * share // num_shares, begin + number * (share + 1) // num_shares):
        scratch.stream[0] = derive(key, world)
        draw_likely_world(state, budget.refine_steps, scratch.stream, scratch.states)
        moves += try_arms(rollout_weights, rollout_network, leaf, scratch, arms, stats)
    return moves


def try_arms(
    rollout_weights: Weights | None, rollout_network: AfterstateNetwork | None, leaf: Leaf | None, scratch: Scratch,
    arms: Arms, stats: ArmStats,
) -> int:  # fmt: skip
    """Play the baseline and then its rivals out in the world at hand, scratch.states[0]; return the actions played."""
    seat = scratch.states[0].seat
    baseline = arms.race[BASELINE]
    baseline_result = 0.0
    moves = 0
    for number in range(arms.live.shape[0] + 1):
        arm = number - 1 if number else baseline
        if number and arms.live[arm] == 0:
            continue
        scratch.states[1] = scratch.states[0]
        state = scratch.states[1]
        for step in range(arms.macros.shape[1]):
            if arms.macros[arm, step] == NO_ACTION:
                break
            play(state, arms.macros[arm, step])
            moves += 1
        played, result = play_out(state, seat, rollout_weights, rollout_network, leaf, scratch)
        moves += played
        if number == 0:
            baseline_result = result
        advantage = result - baseline_result
        stats.sums[arm] += result
        stats.squares[arm] += result * result
        stats.advantages[arm] += advantage
        stats.advantage_squares[arm] += advantage * advantage
        stats.worlds[arm] += 1
    return moves


def play_out(
    state: State, seat: int, rollout_weights: Weights | None, rollout_network: AfterstateNetwork | None,
    leaf: Leaf | None, scratch: Scratch,
) -> tuple[int, float]:  # fmt: skip
    """Play on in the world at hand; return how many actions that took, and the result."""
    moves = 0
    if leaf is not None:
        moves = play_on(state, seat, leaf.after, MAX_ACTIONS, rollout_weights, rollout_network, scratch)
    elif rollout_weights is not None or rollout_network is not None:
        moves = play_on(state, seat, NEVER, NEVER, rollout_weights, rollout_network, scratch)
    else:
        moves = play_to_end(state)
    played, result = value_of(state, seat, leaf, scratch.planning)
    return moves + played, result


def write_result(i: int, arms: Arms, stats: ArmStats, z_threshold: float, results: Results) -> None:
    """Choose an arm of decision i, and write what became of each action."""
    baseline = arms.race[BASELINE]
    chosen = chosen_arm(arms, stats, z_threshold)
    for step in range(arms.macros.shape[1]):
        results.macros[i, step] = arms.macros[chosen, step]
    results.baselines[i] = arms.macros[baseline, 0]
    results.expected[i] = stats.sums[baseline] / stats.worlds[baseline]
    of = results.stats
    for arm in range(arms.live.shape[0]):
        worlds = stats.worlds[arm]
        if worlds == 0:
            continue
        action = arms.macros[arm, 0]
        mean = stats.advantages[arm] / worlds
        if worlds > of.worlds[i, action] or (
            worlds == of.worlds[i, action] and mean >= of.advantages[i, action] / worlds
        ):
            of.sums[i, action], of.squares[i, action] = stats.sums[arm], stats.squares[arm]
            of.advantages[i, action] = stats.advantages[arm]
            of.advantage_squares[i, action] = stats.advantage_squares[arm]
            of.worlds[i, action] = worlds
