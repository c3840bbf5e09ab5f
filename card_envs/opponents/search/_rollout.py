"""Rollout: who plays a world on after an arm. The scripted player, or a policy for the mover's side.

An agent that tries every action and plays on as it would is better than itself (policy improvement by rollouts: Tesauro
& Galperin 1996). The other sides play like the scripted player, as they do where worlds are drawn. Networks that score
moves and n-tuple networks play on in compiled code; any other policy is asked from Python, for many worlds at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.rng import derive
from card_envs.game import (
    SCRATCH_STATES,
    Game,
    Int8s,
    Int64s,
    State,
    UInt64s,
    bot_move,
    legal,
    play,
    reveals,
)
from card_envs.opponents._macros import NO_ACTION, Macros
from card_envs.opponents.networks._afterstate_network import AfterstateNetwork, best_move
from card_envs.opponents.networks._ntuples import PLAYER, best_index, path_or_baseline, planning_scratch, value_all
from card_envs.opponents.policy import Policy, decisions_at, moves_of
from card_envs.opponents.search._budget import WORLDS, Arms, ArmStats, Budget, Float64s, stage_end
from card_envs.opponents.search._leaf import MAX_ACTIONS, Leaf, value_of
from card_envs.opponents.search._worlds import draw_likely_world

NEVER = 1 << 40  # more chance events, or actions, than a deal has
PART = 4096  # worlds that a policy in Python plays out at once


def play_on(
    state: State, seat: int, after: int, most: int, weights: NDArray[np.float32] | None,
    network: AfterstateNetwork | None, scratch: Any,
) -> int:  # fmt: skip
    """Play on until the deal ends or a chance event is due; return how many actions were played.

    Args:
        state: is played on.
        seat: its side is played by the network.
        after: stop before this many chance events.
        most: actions to play at most.
        weights: [W] of an n-tuple network that plays; None: see `network`.
        network: that plays; None, and no weights: the scripted player plays for all.
        scratch: of the search.
    """
    moves = shown = 0
    macro = scratch.macro
    while moves < most and not state.needs_deal:
        number = 1
        if scratch.sides[state.seat] != scratch.sides[seat]:
            macro[0] = bot_move(state)
        else:
            number = next_moves(state, weights, network, scratch)
        for step in range(number):
            shown += reveals(state, macro[step])
            if shown == after:
                return moves
            play(state, macro[step])
            moves += 1
    return moves


def next_moves(
    state: State, weights: NDArray[np.float32] | None, network: AfterstateNetwork | None, scratch: Any
) -> int:
    """Write what the player does next into scratch.macro; return how many actions that is."""
    number = 1
    if weights is not None:
        known = value_all(state, weights, scratch.planning, scratch.values, scratch.macro)
        number = path_or_baseline(best_index(scratch.values, known), state, scratch.planning, scratch.macro)
    elif network is not None:
        scratch.macro[0] = best_move(state, network, scratch.follow, scratch.network)
    else:
        scratch.macro[0] = bot_move(state)
    return number


# Policies that are not compiled


def play_macros(first: int, last: int, states: NDArray[Any], arms: Int64s, macros: Macros) -> int:
    """Play an arm [B] at each table; return how many actions that was."""
    moves = 0
    for k in range(first, last):
        for step in range(macros.shape[1]):
            if macros[arms[k], step] == NO_ACTION:
                break
            play(states[k], macros[arms[k], step])
            moves += 1
    return moves


def play_others(
    first: int, last: int, states: NDArray[Any], seats: Int8s, sides: Int64s, left: Int64s, mask: Int8s
) -> int:
    """Play until the side of these seats [B] has a choice, its playout stops or the deal ends; return the actions.

    `left` [B] counts the chance events that are due until the playout stops: 0 where it has.
    """
    moves = 0
    for i in range(first, last):
        state, side = states[i], sides[seats[i]]
        while left[i] > 0 and not state.needs_deal and (sides[state.seat] != side or legal(state, mask) == 1):
            moves += play_unless_stopped(state, bot_move(state), left, i)
    return moves


def play_chosen(first: int, last: int, states: NDArray[Any], tables: Int64s, actions: Int64s, left: Int64s) -> int:
    """Play one action [n] at each of some tables [n], unless the playout stops there; return how many were played."""
    moves = 0
    for k in range(first, last):
        moves += play_unless_stopped(states[tables[k]], actions[k], left, tables[k])
    return moves


def play_unless_stopped(state: State, action: int, left: Int64s, i: int) -> int:
    """Play an action, unless it shows the chance event before which the playout stops; return 1 if it was played."""
    if reveals(state, action):
        left[i] -= 1
        if left[i] == 0:
            return 0
    play(state, action)
    return 1


def write_values(
    first: int, last: int, states: NDArray[Any], seats: Int8s, leaf: Leaf | None, planning: Any, results: Float64s
) -> int:
    """Write the results [B] of playouts for these seats; return how many actions were still played."""
    moves = 0
    for i in range(first, last):
        played, result = value_of(states[i], seats[i], leaf, planning)
        moves += played
        results[i] = result
    return moves


def draw_worlds(
    first: int, last: int, state: NDArray[Any], key: UInt64s, begin: int, refine_steps: int, scratch: NDArray[Any],
    worlds: NDArray[Any],
) -> None:  # fmt: skip
    """Draw the worlds [N] with these numbers, counted from `begin`, of one table: the same as in compiled search."""
    stream = key.copy()
    for k in range(first, last):
        stream[0] = derive(key[0], begin + k)
        draw_likely_world(state[0], refine_steps, stream, scratch)
        worlds[k] = scratch[0]


def played_out(
    game: Game, worlds: NDArray[Any], arms: Int64s, macros: Macros, player: Policy, rng: np.random.Generator,
    leaf: Leaf | None = None,
) -> tuple[Float64s, int]:  # fmt: skip
    """Play arms out, each in a world of its own, a policy playing on for the mover's side.

    Args:
        game: what is played.
        worlds: [B]; they stay as they are.
        arms: [B] the arm to begin with in each.
        macros: [C, L] what the arms do.
        player: the policy; the scripted player has the other sides.
        rng: for it.
        leaf: where playouts stop.

    Returns:
        [B] the results for the movers' sides, and how many actions were played in all.
    """
    states, seats, sides = worlds.copy(), worlds["seat"].copy(), np.array(game.sides)
    mask, results = np.zeros(game.rules.NUM_ACTIONS, np.int8), np.zeros(len(worlds))
    left = np.full(len(worlds), NEVER if leaf is None else leaf.after)
    moves = specialize(play_macros, game)(0, len(states), states, arms, macros)
    for _ in range(NEVER if leaf is None else MAX_ACTIONS):
        moves += specialize(play_others, game, PLAYER)(0, len(states), states, seats, sides, left, mask)
        going = np.flatnonzero((states["needs_deal"] == 0) & (left > 0))
        if len(going) == 0:
            break
        actions = moves_of(player, decisions_at(game, states[going]), rng)
        moves += specialize(play_chosen, game)(0, len(going), states, going, actions, left)
    planning = planning_scratch(game, 1)
    moves += specialize(write_values, game, PLAYER)(0, len(states), states, seats, leaf, planning, results)
    return results, moves


def try_with_policy(
    game: Game, state: NDArray[Any], key: UInt64s, arms: Arms, budget: Budget, player: Policy,
    rng: np.random.Generator, leaf: Leaf | None, stats: ArmStats,
) -> int:  # fmt: skip
    """Try the arms of one table [1] in the worlds of a stage; return how many actions were played.

    As `_decide.try_stage`, for a policy that is not compiled; `stats` [C] grow.
    """
    begin, baseline = int(arms.race[WORLDS]), int(arms.race[0])
    number = stage_end(arms.race, budget) - begin
    tried = np.concatenate([[baseline], np.flatnonzero(arms.live)])
    moves, at_once = 0, max(1, PART // len(tried))
    scratch = np.zeros(SCRATCH_STATES, game.rules.STATE)
    for start in range(0, number, at_once):
        worlds = np.zeros(min(at_once, number - start), game.rules.STATE)
        specialize(draw_worlds, game, PLAYER)(
            0, len(worlds), state, key, begin + start, budget.refine_steps, scratch, worlds
        )
        each = np.tile(tried, len(worlds))
        results, played = played_out(game, np.repeat(worlds, len(tried)), each, arms.macros, player, rng, leaf)
        moves += played
        advantages = results - np.repeat(results[:: len(tried)], len(tried))
        more: list[NDArray[Any]] = [results, results**2, advantages, advantages**2, np.ones_like(each)]
        for whole, found in zip(stats, more):
            np.add.at(whole, each, found)
    return moves
