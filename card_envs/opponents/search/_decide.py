"""One decision, compiled: find the arms, draw worlds, play every arm out in each, drop what falls behind, choose.

`decide_tables` makes whole decisions, one table after the other, in one thread. Threads that share the worlds of one
table, and searches that keep to a time, run the same code stage by stage (`_workers.py`). World number
w of a table has a random stream of its own, so that the result is the same in any case.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling._specialize import Functions
from card_envs.engine.dealing import draw_world
from card_envs.engine.rng import derive, uniform
from card_envs.game import SCRATCH_STATES, Int8s, Int64s, State, UInt64s, likelihood, play, refine_world
from card_envs.opponents.macros import MAX_LENGTH, NO_ACTION, Macros
from card_envs.opponents.search._budget import (
    NOT_BEGUN,
    Arms,
    ArmStats,
    Budget,
    Float64s,
    choose_arm,
    judge_arms,
    new_arms,
    new_stats,
    stage_end,
)
from card_envs.opponents.search._parts import (
    Arrays,
    arms_part,
    find_arms,
    leaf_part,
    leaf_value,
    roll_out,
    rollout_part,
)
from card_envs.opponents.search._settings import SearchSettings

MAX_DRAWS = 12  # of a world, until one is accepted


class SearchBatch(NamedTuple):
    """Decisions to make.

    Attributes:
        states: [n]; they stay as they are.
        keys: [n] keys of the random streams of their worlds.
        baselines: [n] the action to beat.
        tried: [n, A] 1 for the actions to try.
        lines: [n, K, L] macro-actions to try instead of those that `find_arms` finds, the first the baseline; K is 0
            where it finds them.
    """

    states: NDArray[Any]
    keys: UInt64s
    baselines: Int64s
    tried: Int8s
    lines: NDArray[np.int16]


class WorldShare(NamedTuple):
    """The work of one call: at most `stages` stages of a decision, and in each part `number` of `of` of the worlds."""

    stages: int
    number: int
    of: int


class SearchWorkspace(NamedTuple):
    """The workspace of one thread.

    Attributes:
        states: [SCRATCH_STATES] the world, the world after an arm, and workspace to refine worlds.
        stream: [1] the world's random stream.
        arms: the arms of the current decision.
        stats: [C] the arms' statistics.
        finding, rollout, leaf: arrays of `find_arms`, `roll_out` and `leaf_value`.
    """

    states: NDArray[Any]
    stream: UInt64s
    arms: Arms
    stats: ArmStats
    finding: Arrays
    rollout: Arrays
    leaf: Arrays


class SearchResults(NamedTuple):
    """The outcome of decisions.

    Attributes:
        macros: [n, L] the actions to play, one after the other; NO_ACTION after the last.
        baselines: [n] the baseline's first action.
        expected: [n] points that the baseline brings on average; NaN if it is the only candidate.
        stats: [n, A] statistics by action, of the macro-action beginning with it that was tried in most worlds.
        moves: number of actions played in all worlds.
    """

    macros: Macros
    baselines: Int64s
    expected: Float64s
    stats: ArmStats
    moves: int = 0

    @property
    def chosen(self) -> Int64s:
        """[n] the actions to play now."""
        return self.macros[:, 0].astype(np.int64)


def new_workspace(search: SearchSettings, budget: Budget) -> tuple[Functions, SearchWorkspace]:
    """Return the functions of a search, and a workspace for one thread that is enough for this budget."""
    find, finding = arms_part(search, budget)
    playing, rollout = rollout_part(search)
    value, leaf = leaf_part(search)
    rules, is_single = search.game.rules, search.moves == "single"
    arms = new_arms(rules.NUM_ACTIONS, 1) if is_single else new_arms(budget.candidates, MAX_LENGTH)
    states, stream, stats = np.zeros(SCRATCH_STATES, rules.STATE), np.zeros(1, np.uint64), new_stats(len(arms.live))
    functions = (find_arms, find), *playing, (leaf_value, value)
    return functions, SearchWorkspace(states, stream, arms, stats, finding, rollout, leaf)


def new_results(n: int, length: int, num_actions: int) -> SearchResults:
    """Allocate results of n decisions, with macro-actions of at most that length."""
    macros = np.full((n, length), NO_ACTION, np.int16)
    return SearchResults(macros, np.zeros(n, np.int64), np.zeros(n), new_stats(n, num_actions))


def decide_tables(
    first: int, last: int, share: WorldShare, batch: SearchBatch, budget: Budget, workspace: SearchWorkspace,
    results: SearchResults,
) -> int:  # fmt: skip
    """Decide at the tables first <= i < last; return how many actions were played in all worlds.

    Args:
        first, last: which tables.
        share: this call's part of the work. With a limit on the stages, there is one table; the caller judges the arms
            after the last stage, calls again to go on, and writes the result.
        batch: the decisions.
        budget: what they may cost.
        workspace: this thread's workspace.
        results: written for whole decisions.
    """
    moves = 0
    arms, stats = workspace.arms, workspace.stats
    for i in range(first, last):
        if arms.progress[0].decision != i:
            begin_decision(i, batch, budget, workspace)
        left = share.stages
        going = left > 0
        while going:
            moves += try_stage(batch.states[i], batch.keys[i], share, budget, workspace)
            left -= 1
            going = left > 0 and judge_arms(arms, stats, budget)
        if left > 0:
            write_result(i, arms, stats, budget.z_threshold, results)
    return moves


def begin_decision(i: int, batch: SearchBatch, budget: Budget, workspace: SearchWorkspace) -> None:
    """Find the arms of decision i, and reset their statistics."""
    arms, stats = workspace.arms, workspace.stats
    live, progress = arms.live, arms.progress[0]
    if batch.lines.shape[1] > 0:
        baseline = take_lines(batch.lines[i], arms)
    else:
        baseline = find_arms(batch.states[i], batch.baselines[i], batch.tried[i], budget, workspace.finding, arms)
    live[baseline] = 0
    rivals = 0
    for arm in range(live.shape[0]):
        rivals += live[arm]
        stats.sums[arm] = stats.squares[arm] = stats.advantages[arm] = stats.advantage_squares[arm] = 0.0
        stats.worlds[arm] = 0
    progress.decision, progress.baseline, progress.rivals, progress.worlds = i, baseline, rivals, 0


def take_lines(lines: Macros, arms: Arms) -> int:
    """Take macro-actions [K, L] as arms; return the baseline, which is the first."""
    for arm in range(arms.live.shape[0]):
        arms.live[arm] = arm < lines.shape[0]
        if arms.live[arm]:
            for step in range(lines.shape[1]):
                arms.macros[arm, step] = lines[arm, step]
    return 0


def try_stage(state: State, key: np.uint64, share: WorldShare, budget: Budget, workspace: SearchWorkspace) -> int:
    """Try the arms in a share of the worlds of the stage at hand; return how many actions were played."""
    progress = workspace.arms.progress[0]
    begin = progress.worlds
    worlds = stage_end(progress, budget) - begin
    moves = 0
    for world in range(begin + worlds * share.number // share.of, begin + worlds * (share.number + 1) // share.of):
        workspace.stream[0] = derive(key, world)
        draw_likely_world(state, budget.refine_steps, workspace.stream, workspace.states)
        moves += try_arms(progress.baseline, workspace)
    return moves


def draw_likely_world(state: State, refine_steps: int, stream: UInt64s, states: NDArray[Any]) -> None:
    """Draw a world into states[0] with a probability in proportion to its likelihood L.

    A uniform determinization is accepted with probability L, which is exact (rejection sampling). If none of MAX_DRAWS
    is accepted, one of them stands, chosen in proportion to L (sampling, importance resampling: Rubin 1987), and
    `refine_steps` Metropolis steps lead on from there.

    Args:
        state: the position whose hidden part is drawn; not modified.
        refine_steps: Metropolis steps.
        stream: [1] advanced.
        states: [SCRATCH_STATES], of which the first gets the world.
    """
    total = 0.0
    for _ in range(MAX_DRAWS):
        states[1] = state
        draw_world(states[1], state.seat, stream)
        weight = likelihood(states[1], state.seat)
        total += weight
        accepted = weight == 1 or uniform(stream) < weight
        if accepted or uniform(stream) * total < weight:  # stands with probability weight / total so far
            states[0] = states[1]
        if accepted:
            return
    refine_world(states, states[0].seat, refine_steps, stream)


def try_arms(baseline: int, workspace: SearchWorkspace) -> int:
    """Play the baseline and then its rivals out in the world at hand, states[0]; return the actions played."""
    arms, stats, states = workspace.arms, workspace.stats, workspace.states
    seat = states[0].seat
    baseline_result = 0.0
    moves = 0
    for number in range(arms.live.shape[0] + 1):
        arm = number - 1 if number else baseline
        if number and arms.live[arm] == 0:
            continue
        states[1] = states[0]
        state = states[1]
        for step in range(arms.macros.shape[1]):
            if arms.macros[arm, step] == NO_ACTION:
                break
            play(state, arms.macros[arm, step])
            moves += 1
        moves += roll_out(state, seat, workspace.rollout)
        played, result = leaf_value(state, seat, workspace.leaf)
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


def write_result(i: int, arms: Arms, stats: ArmStats, z_threshold: float, results: SearchResults) -> None:
    """Choose an arm of decision i, write the statistics by action, and end the decision."""
    progress = arms.progress[0]
    progress.decision = NOT_BEGUN
    baseline = progress.baseline
    chosen = choose_arm(baseline, arms.live, stats, z_threshold)
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
