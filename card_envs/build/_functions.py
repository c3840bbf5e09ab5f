"""The compiled functions of the C interface: a game's rules, and players' answers, on one table.

`states` [1] is the caller's; players copy it and redraw its hidden cards before they look at anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine._dealing import deal_next, draw_world, set_next_deal
from card_envs.engine.rng import GOLDEN_RATIO, mix
from card_envs.game import Int8s, UInt64s, bot_move, legal, observe, play, score_margin, text_index
from card_envs.opponents._macros import NO_ACTION, Macro, Macros
from card_envs.opponents.networks._afterstate_network import AfterstateNetwork, best_move
from card_envs.opponents.networks._ntuples import write_best_macros
from card_envs.opponents.search._decide import WHOLE, decide_tables

Float64s = NDArray[np.float64]

ILLEGAL, NO_DECISION, DEAL_NOT_DUE, NO_SEAT = -1, -2, -3, -4  # errors
MEANS, ERRORS_OF_MEANS, ADVANTAGES, ADVANTAGE_ERRORS, NUM_WORLDS = range(5)  # rows of `values`


# The rules


def begin(states: Any, seeds: UInt64s) -> None:
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


def legal_actions(states: Any, mask: Int8s) -> int:
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


def write_rewards(states: Any, found: Any) -> None:
    for s in range(found.shape[0]):
        found[s] = states[0].rewards[s]


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


def margin(states: Any, seat: int) -> int:
    if not has_seat(states, seat):
        return 0
    return score_margin(states[0], seat)


def index_of_text(states: Any, action: int, num_actions: int) -> int:
    return ILLEGAL if action < 0 or action >= num_actions else text_index(states[0], action)


# The players. Hidden cards are redrawn first, so that nothing can depend on them.


def see(states: Any, keys: UInt64s, worlds: Any, stream: UInt64s, values: Float64s) -> bool:
    """Copy a state with its hidden cards redrawn into worlds[0]; return whether a decision is due there."""
    values[:] = np.nan
    if states[0].needs_deal:
        return False
    worlds[0] = states[0]
    stream[0] = keys[0]
    draw_world(worlds[0], worlds[0].seat, stream)
    return True


def length_of(macro: Macro) -> int:
    length = 0
    while length < macro.shape[0] and macro[length] != NO_ACTION:
        length += 1
    return length


def advise_scripted(states: Any, keys: UInt64s, macros: Macros, values: Float64s, worlds: Any, stream: UInt64s) -> int:
    if not see(states, keys, worlds, stream, values):
        return NO_DECISION
    macros[0, 0] = bot_move(worlds[0])
    return 1


def advise_network(
    states: Any, keys: UInt64s, macros: Macros, values: Float64s, worlds: Any, stream: UInt64s,
    network: AfterstateNetwork, mode: int, scratch: Any,
) -> int:  # fmt: skip
    if not see(states, keys, worlds, stream, values):
        return NO_DECISION
    macros[0, 0] = best_move(worlds[0], network, mode, scratch)
    return 1


def advise_ntuple(
    states: Any, keys: UInt64s, macros: Macros, values: Float64s, worlds: Any, stream: UInt64s, weights: Any,
    scratch: Any, found: Float64s, order: Any,
) -> int:  # fmt: skip
    if not see(states, keys, worlds, stream, values):
        return NO_DECISION
    write_best_macros(worlds[0], weights, 1, scratch, found, order, macros[0:1])
    return length_of(macros[0])


def advise_search(
    states: Any, keys: UInt64s, macros: Macros, values: Float64s, stream: UInt64s, batch: Any, limits: Any,
    budget: Any, prior_weights: Any, prior_network: Any, rollout_weights: Any, rollout_network: Any, leaf: Any,
    scratch: Any, arms: Any, stats: Any, results: Any, baseline: Any, first: int, last: int, inside: Any,
) -> int:  # fmt: skip
    """Search; `baseline` and `inside` are a network, how far it follows moves and its scratch, or None.

    `inside` decides where an action in [first, last) is legal; `baseline` names the baseline of a search.
    """
    if not see(states, keys, batch.states, stream, values):
        return NO_DECISION
    state, tried = batch.states[0], batch.tried[0]
    legal(state, tried)
    if inside is not None:
        for action in range(first, last):
            if tried[action]:
                macros[0, 0] = best_move(state, inside.network, inside.mode, inside.scratch)
                return 1
    batch.keys[0] = keys[1]
    if baseline is None:
        batch.baselines[0] = bot_move(state)
    else:
        batch.baselines[0] = best_move(state, baseline.network, baseline.mode, baseline.scratch)
    for action in range(tried.shape[0]):
        results.stats.worlds[0, action] = 0
    decide_tables(
        0, 1, WHOLE, 0, 1, batch, limits, budget, prior_weights, prior_network, rollout_weights, rollout_network,
        leaf, scratch, arms, stats, results,
    )  # fmt: skip
    for step in range(results.macros.shape[1]):
        macros[0, step] = results.macros[0, step]
    write_values(results.stats, results.expected[0], values)
    return length_of(results.macros[0])


def write_values(stats: Any, expected: float, values: Float64s) -> None:
    """Write what `SearchPolicy.evaluate` says; nan where nothing is known."""
    for action in range(values.shape[1]):
        worlds = stats.worlds[0, action]
        values[NUM_WORLDS, action] = worlds
        if worlds > 0:
            values[ADVANTAGES, action] = stats.advantages[0, action] / worlds
            values[MEANS, action] = expected + values[ADVANTAGES, action]
            values[ERRORS_OF_MEANS, action] = error_of(stats.sums[0, action], stats.squares[0, action], worlds)
            values[ADVANTAGE_ERRORS, action] = error_of(
                stats.advantages[0, action], stats.advantage_squares[0, action], worlds
            )


def error_of(total: float, squares: float, worlds: int) -> float:
    if worlds < 2:
        return np.nan
    mean = total / worlds
    variance = max(squares / worlds - mean**2, 0.0) * worlds / (worlds - 1)
    return np.sqrt(variance / worlds)
