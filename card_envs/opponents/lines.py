"""Lines of moves: what a seat can bring about before anything hidden shows or somebody else is to move.

Between two looks at hidden cards nothing new becomes known, so that a stretch of own moves is one decision, and the
move that is best in the end may look bad by itself. A search that plans compares whole lines: every position that can
be reached is looked at once, by whichever way is shortest, and each move there that ends the stretch ends a line.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.rng import MIX_1, SHIFT_32, mix
from card_envs.engine.seen import Seen, forget, is_new, new_seen, trace
from card_envs.game import Game, Int8s, Int64s, State, bot_move, legal, observe, play, reveals

LONGEST = 32  # moves of a line
NO_MOVE = -1  # after the last of a line

Line: TypeAlias = NDArray[np.int16]  # [L] moves, L up to LONGEST; NO_MOVE where it has ended
Lines: TypeAlias = NDArray[np.int16]  # [C, L] of a table, or [B, C, L]


class Reach(NamedTuple):
    """What one thread works with.

    Attributes:
        positions: [M + 1] that were reached, and room for one more.
        parents: [M] from which position.
        actions: [M] by which move.
        depths: [M] after how many.
        seen: sights of positions.
        obs: [D] an observation, padded to a multiple of 8.
        size: D before that.
        mask: [A].
    """

    positions: NDArray[Any]
    parents: Int64s
    actions: Int64s
    depths: Int64s
    seen: Seen
    obs: Int8s
    size: int
    mask: Int8s


def single_moves(num_actions: int) -> Lines:
    """[A, 1]: each action a line of its own, with its number."""
    return np.arange(num_actions, dtype=np.int16)[:, None]


def new_reach(game: Game, most: int) -> Reach:
    """For so many positions."""
    rules = game.rules
    parents, actions, depths = np.zeros((3, most), np.int64)
    obs = np.zeros(-(-rules.OBS_SIZE // 8) * 8, np.int8)
    positions = np.zeros(most + 1, rules.STATE)
    mask = np.zeros(rules.NUM_ACTIONS, np.int8)
    return Reach(positions, parents, actions, depths, new_seen(most), obs, rules.OBS_SIZE, mask)


def find_lines(
    first: int, last: int, states: NDArray[Any], own: Int64s, tried: Int8s, plays_on: bool, reach: Reach, lines: Lines,
    live: Int8s,
) -> None:  # fmt: skip
    """Write the lines of the tables first <= i < last, the own one as the first of each.

    Where there are more than there is room for, those that would have got longest end early.

    Args:
        first, last: which tables.
        states: [B]; they stay as they are.
        own: [B] the moves that own lines begin with.
        tried: [B, A] the moves that others begin with.
        plays_on: whether the own line goes on with the moves of `greedy`; else it is one move.
        reach: to work with; room for as many positions as lines.
        lines: [B, C, LONGEST] is written; C is greater than A.
        live: [B, C] gets 1 for each line.
    """
    for i in range(first, last):
        number = find_lines_of(states[i], own[i], tried[i], plays_on, reach, lines[i])
        for c in range(live.shape[1]):
            live[i, c] = c < number


def find_lines_of(state: State, own: int, tried: Int8s, plays_on: bool, reach: Reach, lines: Lines) -> int:
    """Write the lines of a table; returns how many there are."""
    positions, mask, seat = reach.positions, reach.mask, state.seat
    note_own_line(state, own, plays_on, positions, lines[0])
    found = 1
    forget(reach.seen)
    positions[0] = state
    reach.depths[0] = 0
    enter_sight(0, seat, reach)
    known, k = 1, 0
    while k < known:
        number = legal(positions[k], mask)
        if k > 0 and (
            reach.depths[k] == LONGEST
            or known + number > reach.parents.shape[0]
            or found + known - k + number > lines.shape[0]
        ):
            break
        for action in range(mask.shape[0]):
            if mask[action] == 0 or (k == 0 and tried[action] == 0):
                continue
            if reveals(positions[k], action):
                note_line(k, action, reach, lines[found])
                found += 1
                continue
            positions[known] = positions[k]
            play(positions[known], action)
            if enter_sight(known, seat, reach):
                if positions[known].needs_deal or positions[known].seat != seat:
                    note_line(k, action, reach, lines[found])
                    found += 1
                else:
                    reach.parents[known] = k
                    reach.actions[known] = action
                    reach.depths[known] = reach.depths[k] + 1
                    known += 1
        k += 1
    for left in range(k, known):  # not gone on from: `greedy` does
        note_line(reach.parents[left], reach.actions[left], reach, lines[found])
        found += 1
    return found


def note_own_line(state: State, own: int, plays_on: bool, positions: NDArray[Any], line: Line) -> None:
    """The own move, and where it `plays_on` the moves of `greedy` as far as a line goes."""
    positions[0] = state
    action = own
    going = True
    for step in range(line.shape[0]):
        line[step] = action if going else NO_MOVE
        if going:
            going = plays_on and not reveals(positions[0], action)
            play(positions[0], action)
            going &= not positions[0].needs_deal and positions[0].seat == state.seat
            if going:
                action = bot_move(positions[0])


def note_line(k: int, action: int, reach: Reach, line: Line) -> None:
    """The way to a position, and a move from there."""
    depth = reach.depths[k]
    for step in range(depth + 1, line.shape[0]):
        line[step] = NO_MOVE
    line[depth] = action
    trace(k, depth, reach.parents, reach.actions, line)


def last_of(line: Line) -> int:
    """The last move of a line."""
    step = 0
    while step + 1 < line.shape[0] and line[step + 1] != NO_MOVE:
        step += 1
    return int(line[step])


def enter_sight(number: int, seat: int, reach: Reach) -> bool:
    """Note what a seat sees of a position; whether that was not there."""
    observe(reach.positions[number], seat, reach.obs[: reach.size])
    return is_new(sight(reach.obs), reach.seen)


def sight(obs: Int8s) -> np.uint64:
    """A hash of an observation."""
    words = obs.view(np.uint64)
    bits = np.uint64(0)
    for w in range(words.shape[0]):
        bits = (bits ^ words[w]) * MIX_1
        bits ^= bits >> SHIFT_32
    return mix(bits)
