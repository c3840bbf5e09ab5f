"""Candidates: all that a seat can do before something hidden shows or somebody else is to move, as macro-actions.

Every position that the seat can reach on the way is expanded once, by the shortest path to it; each action there that
ends the stretch ends a macro-action. An action that looks bad by itself may be the first of the best one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import called
from card_envs.engine.seen import Seen, forget, is_new, new_seen, trace
from card_envs.game import Game, Int8s, Int64s, State, bot_move, legal, observe, play, reveals
from card_envs.opponents.macros import MAX_LENGTH, NO_ACTION, Macro, Macros, observation_hash


class MacroExpansion(NamedTuple):
    """Scratch of one thread for M positions.

    Attributes:
        positions: [M + 1] reachable positions, and one more to try an action in.
        parents: [M] the position each was reached from.
        actions: [M] the action that led to it.
        depths: [M] the number of actions on the path to it.
        seen: hashes of the observations there.
        obs: [D] an observation, padded to a multiple of 8.
        size: D without padding.
        mask: [A] workspace.
        continues: whether the baseline goes on with the moves of the scripted player; else it is one action.
        single: whether candidates are single actions; then the rest is not used.
    """

    positions: NDArray[Any]
    parents: Int64s
    actions: Int64s
    depths: Int64s
    seen: Seen
    obs: Int8s
    size: int
    mask: Int8s
    continues: bool
    single: bool


def new_expansion(game: Game, most: int, continues: bool, single: bool = False) -> MacroExpansion:
    """Allocate the workspace for `most` positions."""
    rules = game.rules
    parents, actions, depths = np.zeros((3, most), np.int64)
    obs = np.zeros(-(-rules.OBS_SIZE // 8) * 8, np.int8)
    positions = np.zeros(most + 1, rules.STATE)
    mask = np.zeros(rules.NUM_ACTIONS, np.int8)
    seen = new_seen(most)
    return MacroExpansion(positions, parents, actions, depths, seen, obs, rules.OBS_SIZE, mask, continues, single)


@called
def find_macros(state: State, baseline: int, tried: Int8s, most: int, expansion: MacroExpansion, macros: Macros) -> int:
    """Write the macro-actions from a state, the baseline first; return how many there are.

    Where there are more than `most`, those that would have become the longest end early.

    Args:
        state: stays as it is.
        baseline: the action that the baseline begins with.
        tried: [A] the actions that others begin with.
        most: macro-actions at most, greater than A; there is scratch for as many positions.
        expansion: workspace.
        macros: [C, MAX_LENGTH] written.
    """
    positions, mask, seat = expansion.positions, expansion.mask, state.seat
    write_baseline(state, baseline, expansion, macros[0])
    num_macros = 1
    forget(expansion.seen)
    positions[0] = state
    expansion.depths[0] = 0
    is_newly_reached(0, seat, expansion)
    known, k = 1, 0
    while k < known:
        number = legal(positions[k], mask)
        if k > 0 and (
            expansion.depths[k] == MAX_LENGTH or known + number > most or num_macros + known - k + number > most
        ):
            break
        for action in range(mask.shape[0]):
            if mask[action] == 0 or (k == 0 and tried[action] == 0):
                continue
            if reveals(positions[k], action):
                write_path(k, action, expansion, macros[num_macros])
                num_macros += 1
                continue
            positions[known] = positions[k]
            play(positions[known], action)
            if is_newly_reached(known, seat, expansion):
                if positions[known].needs_deal or positions[known].seat != seat:
                    write_path(k, action, expansion, macros[num_macros])
                    num_macros += 1
                else:
                    expansion.parents[known] = k
                    expansion.actions[known] = action
                    expansion.depths[known] = expansion.depths[k] + 1
                    known += 1
        k += 1
    for left in range(k, known):  # not expanded: the scripted player goes on from there
        write_path(expansion.parents[left], expansion.actions[left], expansion, macros[num_macros])
        num_macros += 1
    return num_macros


def write_baseline(state: State, baseline: int, expansion: MacroExpansion, macro: Macro) -> None:
    """Write the baseline action and, if it `continues`, the scripted player's moves to the end of the stretch."""
    positions = expansion.positions
    positions[0] = state
    action = baseline
    going = True
    for step in range(macro.shape[0]):
        macro[step] = action if going else NO_ACTION
        if going:
            going = expansion.continues and not reveals(positions[0], action)
            play(positions[0], action)
            going &= not positions[0].needs_deal and positions[0].seat == state.seat
            if going:
                action = bot_move(positions[0])


def write_path(k: int, action: int, expansion: MacroExpansion, macro: Macro) -> None:
    """Write the path to position k and an action there."""
    depth = expansion.depths[k]
    for step in range(depth + 1, macro.shape[0]):
        macro[step] = NO_ACTION
    macro[depth] = action
    trace(k, depth, expansion.parents, expansion.actions, macro)


def is_newly_reached(k: int, seat: int, expansion: MacroExpansion) -> bool:
    """Enter what a seat sees of position k; return whether no earlier position looks the same."""
    observe(expansion.positions[k], seat, expansion.obs[: expansion.size])
    return is_new(observation_hash(expansion.obs), expansion.seen)
