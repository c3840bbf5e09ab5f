"""The compiled functions of the C interface: a game's rules, and players' answers, on one table.

`states` [1] is the caller's; players copy it and redraw its hidden cards before they look at anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import called, stub
from card_envs.engine.dealing import deal_next, draw_world, set_next_deal
from card_envs.engine.rng import GOLDEN_RATIO, mix
from card_envs.game import Int8s, UInt64s, legal, observe, play, score_margin, text_index
from card_envs.opponents.macros import NO_ACTION, Macro, Macros
from card_envs.opponents.search._budget import UNLIMITED, ArmStats, Budget
from card_envs.opponents.search._decide import SearchBatch, SearchResults, SearchWorkspace, WorldShare, decide_tables
from card_envs.opponents.search._lines import LineScratch, joins, key_of_position, moves_on, write_cost
from card_envs.opponents.search._parts import Arrays

Float64s = NDArray[np.float64]

ILLEGAL, NO_DECISION, DEAL_NOT_DUE, NO_SEAT = -1, -2, -3, -4  # errors
MEANS, ADVANTAGES, NUM_WORLDS = ROWS = range(3)  # of `values`


# The rules


def begin_episode(states: Any, seeds: UInt64s) -> None:
    state = states[0]
    state.over = True
    state.rng = mix(mix(seeds[0] + GOLDEN_RATIO) + GOLDEN_RATIO)  # `table_keys` of table 0
    deal_next(state)


def deal(states: Any) -> int:
    if not states[0].needs_deal:
        return DEAL_NOT_DUE
    deal_next(states[0])
    return 0


def set_deal(states: Any, pack: Int8s) -> int:
    if not states[0].needs_deal:
        return DEAL_NOT_DUE
    set_next_deal(states[0], pack)
    return 0


def seat_to_move(states: Any) -> int:
    return NO_DECISION if states[0].needs_deal else int(states[0].seat)


def is_over(states: Any) -> int:
    return int(states[0].over)


def write_legal(states: Any, mask: Int8s) -> int:
    if states[0].needs_deal:
        mask[:] = 0
        return 0
    return legal(states[0], mask)


def play_legal(states: Any, mask: Int8s, action: int) -> int:
    if states[0].needs_deal:
        return NO_DECISION
    legal(states[0], mask)
    if action < 0 or action >= mask.shape[0] or mask[action] == 0:
        return ILLEGAL
    play(states[0], action)
    return 0


def write_rewards(states: Any, rewards: Any) -> None:
    for s in range(rewards.shape[0]):
        rewards[s] = states[0].rewards[s]


def has_seat(states: Any, seat: int) -> bool:
    return 0 <= seat < states[0].rewards.shape[0]


def observe_seat(states: Any, seat: int, obs: Int8s) -> int:
    if not has_seat(states, seat):
        return NO_SEAT
    observe(states[0], seat, obs)
    return 0


def redraw(states: Any, seat: int, keys: UInt64s, stream: UInt64s) -> int:
    if not has_seat(states, seat):
        return NO_SEAT
    stream[0] = keys[0]
    draw_world(states[0], seat, stream)
    return 0


def seat_margin(states: Any, seat: int) -> int:
    if not has_seat(states, seat):
        return 0
    return score_margin(states[0], seat)


def index_of_text(states: Any, action: int, num_actions: int) -> int:
    return ILLEGAL if action < 0 or action >= num_actions else text_index(states[0], action)


# The players. Hidden cards are redrawn first, so that nothing can depend on them.


class Adviser(NamedTuple):
    """The memory of a player.

    Attributes:
        worlds: [1] the state, with its hidden cards redrawn.
        stream: [1] the random stream of the redraw.
        mask: [A] the legal actions.
        phase: if an action from phase[0] up to phase[1] is legal, `phase_moves` decides.
        inside, player: arrays of `phase_moves` and of `answer`.
        judging: `Judging`; `NoArrays` if the player does not search.
    """

    worlds: NDArray[Any]
    stream: UInt64s
    mask: Int8s
    phase: tuple[int, int]
    inside: Arrays
    player: Arrays
    judging: Any


def advise(states: Any, keys: UInt64s, macros: Macros, values: Float64s, adviser: Adviser) -> int:
    """Write the actions to play now, and the values of all; return how many actions."""
    if states[0].needs_deal:
        values[:] = np.nan
        return NO_DECISION
    take_state(states, keys[0], adviser.worlds, adviser.stream, adviser.mask)
    return choose_moves(keys[1], macros[0], values, adviser)


def take_state(states: Any, key: np.uint64, worlds: Any, stream: UInt64s, mask: Int8s) -> None:
    """Copy the state, redraw its hidden cards and find the legal actions."""
    worlds[0] = states[0]
    stream[0] = key
    draw_world(worlds[0], worlds[0].seat, stream)
    legal(worlds[0], mask)


def choose_moves(key: np.uint64, macro: Macro, values: Float64s, adviser: Adviser) -> int:
    """Choose what to play in the state of `take_state`, and write all values; return the number of actions to play."""
    values[:] = np.nan
    if is_in_phase(adviser):
        return moves_in_phase(adviser.worlds, adviser.inside, macro)
    return answer(adviser.worlds[0], key, macro, values, adviser.player)


def is_in_phase(adviser: Adviser) -> bool:
    """Return whether an action of the phase is legal: then `phase_moves` decides."""
    for action in range(adviser.phase[0], adviser.phase[1]):
        if adviser.mask[action]:
            return True
    return False


@called
def moves_in_phase(worlds: Any, inside: Arrays, macro: Macro) -> int:
    return phase_moves(worlds[0], inside, macro)


@stub
def phase_moves(state: Any, part: Arrays, macro: Macro) -> int:
    """Write what to play in a phase: as `next_moves` of a search."""
    raise NotImplementedError


@stub
def answer(state: Any, key: np.uint64, macro: Macro, values: Float64s, player: Arrays) -> int:
    """Write what to play, and the values of all actions if known; return the number of actions."""
    raise NotImplementedError


@stub
def player_moves(state: Any, part: Arrays, macro: Macro) -> int:
    """Write what to play: as `next_moves` of a search."""
    raise NotImplementedError


def answer_moves(state: Any, key: np.uint64, macro: Macro, values: Float64s, player: Arrays) -> int:
    return player_moves(state, player, macro)


class Searcher(NamedTuple):
    """A search for one decision; `baseline` has the arrays of `player_moves`, which names the baseline."""

    batch: SearchBatch
    budget: Budget
    workspace: SearchWorkspace
    results: SearchResults
    baseline: Arrays


@called  # a judge asks three times, so it would have three copies
def answer_search(state: Any, key: np.uint64, macro: Macro, values: Float64s, player: Searcher) -> int:
    batch, results = player.batch, player.results
    batch.states[0] = state
    legal(state, batch.tried[0])
    batch.keys[0] = key
    player_moves(state, player.baseline, macro)
    batch.baselines[0] = macro[0]
    for action in range(batch.tried.shape[1]):
        results.stats.worlds[0, action] = 0
    decide(batch, player.budget, player.workspace, results)
    number = 0
    for step in range(min(results.macros.shape[1], macro.shape[0])):
        macro[step] = results.macros[0, step]
        number += macro[step] != NO_ACTION
    write_estimates(results.stats, results.expected[0], values)
    return number


@called
def decide(batch: SearchBatch, budget: Budget, workspace: SearchWorkspace, results: SearchResults) -> None:
    """Decide at the one table of a batch."""
    decide_tables(0, 1, WorldShare(UNLIMITED, 0, 1), batch, budget, workspace, results)


def write_estimates(stats: ArmStats, expected: float, values: Float64s) -> None:
    """Write the estimates of `SearchPolicy.evaluate`; NaN if an action has none."""
    for action in range(values.shape[1]):
        worlds = stats.worlds[0, action]
        values[NUM_WORLDS, action] = worlds
        if worlds > 0:
            values[ADVANTAGES, action] = stats.advantages[0, action] / worlds
            values[MEANS, action] = expected + values[ADVANTAGES, action]


# The judge


class Judging(NamedTuple):
    """The memory of a judge.

    Attributes:
        scratch: workspace for lines.
        lines: [1, 2, L] what it would play, and the line that begins with the move.
        values: written by the search, not used.
        turns: its search for all that a seat can do in a turn.
        pricing: the same search with two given lines.
        is_turn: whether it decides on all of a turn itself.
    """

    scratch: LineScratch
    lines: Macros
    values: Float64s
    turns: Searcher
    pricing: Searcher
    is_turn: bool


def judge_action(states: Any, keys: UInt64s, action: int, cost: Float64s, adviser: Adviser) -> int:
    """Write the cost of an action and its standard error; return what the judge would play: as `MoveJudge.costs`."""
    judging, mask, worlds = adviser.judging, adviser.mask, adviser.worlds
    if states[0].needs_deal:
        return NO_DECISION
    take_state(states, keys[0], adviser.worlds, adviser.stream, adviser.mask)
    if action < 0 or action >= mask.shape[0] or mask[action] == 0:
        return ILLEGAL
    cost[:] = 0
    best_line, played_line = judging.lines[0, 0], judging.lines[0, 1]
    best_line[:] = played_line[:] = NO_ACTION
    in_phase = is_in_phase(adviser)
    choose_moves(key_of_position(worlds, judging.scratch), best_line, judging.values, adviser)
    if in_phase or not judging.is_turn:
        add_best_line(worlds, best_line, judging)
    best = int(best_line[0])
    if best == action or (moves_on(worlds, action, judging.scratch) and joins(worlds, best_line, judging.scratch)):
        return best
    played_line[0] = action
    add_best_line(worlds, played_line, judging)
    price(worlds, keys[0], judging, cost)
    return best


def add_best_line(worlds: Any, line: Macro, judging: Judging) -> None:
    """Write after the first action of a line what the judge would go on with in the same turn."""
    scratch = judging.scratch
    if moves_on(worlds, line[0], scratch):
        after = scratch.states[0]
        key = key_of_position(scratch.states, scratch)
        answer_search(after, key, line[1:], judging.values, judging.turns)


def price(worlds: Any, key: np.uint64, judging: Judging, cost: Float64s) -> None:
    """Play both lines out in the same worlds; write the cost and its error."""
    batch, results = judging.pricing.batch, judging.pricing.results
    batch.states[0] = worlds[0]
    batch.keys[0] = key
    best, played = batch.lines[0, 0, 0], batch.lines[0, 1, 0]
    for action in (best, played):
        results.stats.worlds[0, action] = 0
    decide(batch, judging.pricing.budget, judging.pricing.workspace, results)
    write_cost(worlds, results.stats, best, played, cost)
