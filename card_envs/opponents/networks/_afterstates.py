"""Afterstates of all legal actions: the input of networks that score actions one by one.

An action is represented by the entries of the mover's observation that it changes, the actions that are legal
afterwards, and whether `greedy` would play it. It is played in a determinization from a random stream that is a
function of the seat's observation. So nothing leaks, and equal observations give equal inputs. An action that reveals a
hidden card is played in several worlds; entries on which they differ are left unchanged, so that a random card is never
presented as a fact.

With lookahead, an action is represented by the position to which `greedy` would continue from it: with the seat's own
actions and, in games in which all seats see the same cards, those of the others (elsewhere their actions would reveal
their cards). Actions with the same afterstate are merged: the baseline action, or else the first, represents them all,
and the action id is not an input.

In games with many actions per turn, most orders of the same actions lead to the same position. There, `greedy` then
continues for all seats in a few determinizations until a few hidden cards have been revealed; the input is the mean of
the observations. Macro-actions are represented likewise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize, specialize_bot
from card_envs.engine._dealing import draw_world
from card_envs.engine._kernels import bot_actions
from card_envs.engine._sums import Floats
from card_envs.engine.sets import lowest
from card_envs.game import (
    Field,
    Game,
    Int8s,
    Int64s,
    Rules,
    State,
    UInt64s,
    bot_move,
    bounds,
    legal,
    observe,
    play,
    reveals,
)
from card_envs.opponents._macros import NO_ACTION, Macro, sight
from card_envs.opponents.networks._sparse import BYTE, SparseRows

PLAYER = "greedy"  # its action is the baseline
NUM_WORLDS = 6  # for actions that reveal a hidden card
NUM_AHEAD, CHANCE_AHEAD = 6, 6  # lookahead: worlds, and hidden cards revealed in each
MAX_FOLLOWED, MAX_AHEAD = 64, 512  # most actions of `greedy` before the worlds are drawn, and in them
NOT_FOLLOWED, FOLLOW_OWN, FOLLOW_ALL = range(3)  # modes: how far actions are followed
KEPT, GOES_ON, ENDS_DEAL = 1, 2, 4  # flags of an action with lookahead
NO_SIGHT = np.uint64(0)
NUM_FLAGS = 3  # `goes_on`, `ends_deal`, `baseline`: the last entries
PART = 256  # decisions at a time, so that buffers stay in the CPU cache


class Afterstates(NamedTuple):
    """The legal actions of n decisions, in the order of their ids within a decision; with lookahead, merged.

    Attributes:
        first: [n + 1]; decision i has the rows first[i] to first[i + 1].
        action: [R] of each row.
        rows: [R] changes of each action: sparse rows of `move_fields`.
    """

    first: Int64s
    action: Int64s
    rows: SparseRows

    def decision(self) -> Int64s:
        """Return [R], the decision that each row belongs to."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def shown(self, num_actions: int) -> Int8s:
        """Return [n, num_actions] int8, 1 for each action with a row."""
        shown = np.zeros((len(self.first) - 1, num_actions), np.int8)
        shown[self.decision(), self.action] = 1
        return shown


def move_fields(rules: Rules) -> tuple[Field, ...]:
    """Return the entries that represent an action: changes of the observation's entries, then further ones."""
    num_actions = rules.NUM_ACTIONS
    return (
        *rules.OBS_FIELDS,
        Field("action", num_actions, 1, meaning="the move itself"),
        Field("legal_after", num_actions, 1, meaning="as played: the legal moves after it, if the seat is to move"),
        Field("goes_on", 1, 1, meaning="the seat is to move again"),
        Field("ends_deal", 1, 1, meaning="the deal ends"),
        Field("own", 1, 1, meaning="`greedy` would play it"),
    )


def move_scale(rules: Rules) -> Floats:
    """Return the factors of the entries: as those of the observation, so that changes are within [-2, 2]."""
    low, high = bounds(move_fields(rules))
    return (1 / np.maximum(np.abs(low.astype(np.float32)), high)).astype(np.float32)


class Scratch(NamedTuple):
    """The workspace of the loops; observations are padded to a multiple of 8.

    Attributes:
        worlds: [2 + NUM_AHEAD] a world, its state after an action, and the worlds of the lookahead.
        before, after, agreed: [D] observations.
        legal_now, legal_after, legal_there: [A].
        single: [1] an action as a macro-action.
        key: [1] the stream of the worlds.
        sums: [D] of observations.
        reached: [A] hashes of the observations after each action.
        kept: [A] KEPT, plus GOES_ON or ENDS_DEAL if true; 0: merged into another action.
    """

    worlds: NDArray[Any]
    before: Int8s
    after: Int8s
    agreed: Int8s
    legal_now: Int8s
    legal_after: Int8s
    legal_there: Int8s
    single: Macro
    key: UInt64s
    sums: NDArray[np.int16]
    reached: UInt64s
    kept: Int8s


class MoveRows(NamedTuple):
    """Output buffers: the changes of each action.

    Attributes:
        actions: [R] of each row.
        starts: [R + 1], from 0; row r has the entries starts[r] to starts[r + 1].
        entry, value: of all rows, concatenated.
    """

    actions: Int64s
    starts: Int64s
    entry: NDArray[np.int32]
    value: Floats


def new_scratch(game: Game) -> Scratch:
    """Return the workspace of one thread."""
    rules = game.rules
    before, after, agreed = np.zeros((3, -(-rules.OBS_SIZE // 8) * 8), np.int8)
    legal_now, legal_after, legal_there = np.zeros((3, rules.NUM_ACTIONS), np.int8)
    worlds, sums = np.zeros(2 + NUM_AHEAD, rules.STATE), np.zeros(len(before), np.int16)
    single, key = np.zeros(1, np.int16), np.zeros(1, np.uint64)
    reached, kept = np.zeros(rules.NUM_ACTIONS, np.uint64), np.zeros(rules.NUM_ACTIONS, np.int8)
    seen = before, after, agreed, legal_now, legal_after, legal_there
    return Scratch(worlds, *seen, single, key, sums, reached, kept)


def new_rows(moves: int, entries: int) -> MoveRows:
    """Return buffers for `moves` rows of up to `entries` entries; untouched memory costs nothing."""
    entry, value = np.zeros(moves * entries, np.int32), np.zeros(moves * entries, np.float32)
    return MoveRows(np.zeros(moves, np.int64), np.zeros(moves + 1, np.int64), entry, value)


def count_moves(first: int, last: int, states: NDArray[Any], tables: Int64s, mask: Int8s) -> int:
    """Return the number of legal actions at some tables; `mask` [A] is scratch."""
    moves = 0
    for k in range(first, last):
        moves += legal(states[tables[k]], mask)
    return moves


def write_moves(
    first: int, last: int, states: NDArray[Any], tables: Int64s, baseline: Int64s, mode: int, scale: Floats,
    scratch: Scratch, firsts: Int64s, rows: MoveRows,
) -> None:  # fmt: skip
    """Write the changes of the legal actions at some tables; decision 0 is at the table tables[first].

    Args:
        first, last: range of `tables`.
        states: [B]; not modified.
        tables: numbers of states.
        baseline: [B] the actions of `greedy`.
        mode: how far actions are followed.
        scale: of the entries.
        scratch: workspace.
        firsts: [last - first + 1] written.
        rows: written, and large enough.
    """
    moves = 0
    for k in range(first, last):
        i = tables[k]
        firsts[k - first] = moves
        moves = write_decision(states[i], baseline[i], mode, scale, scratch, moves, rows)
    firsts[last - first] = moves


def write_decision(
    state: State, baseline: int, mode: int, scale: Floats, scratch: Scratch, moves: int, rows: MoveRows
) -> int:
    """Append the changes of the legal actions of a decision to `moves` rows; return the number of rows then.

    Afterwards `scratch.before` holds the observation and `scratch.legal_now` the legal actions.
    """
    legal_now, legal_after = scratch.legal_now, scratch.legal_after
    actions, starts, entry, value = rows
    num_actions = legal_now.shape[0]
    size = obs_size(scale, scratch)
    load_decision(state, size, scratch)
    found = starts[moves]
    number = 0  # number of afterstates; a single one needs no lookahead
    if mode > NOT_FOLLOWED:
        number = merge_moves(state, baseline, mode, size, scratch)
    if number > 1:
        draw_worlds(state.seat, scratch)
    for action in range(num_actions):
        if legal_now[action] == 0 or (mode > NOT_FOLLOWED and scratch.kept[action] == 0):
            continue
        shows = reveals(state, action)
        if mode == NOT_FOLLOWED:
            goes_on, ends_deal = play_move(state, action, NUM_WORLDS if shows else 1, size, scratch)
            found = write_changes(scratch.before, scratch.agreed, scale, entry, value, found)
        else:
            goes_on, ends_deal = scratch.kept[action] & GOES_ON != 0, scratch.kept[action] & ENDS_DEAL != 0
            if ends_deal or number > 1:
                scratch.single[0] = action
                found = write_outcome(state, scratch.single, ends_deal, mode, scale, scratch, entry, value, found)
        if mode == NOT_FOLLOWED or shows:
            found = write_entry(size + action, entry, value, found)
        if goes_on and mode == NOT_FOLLOWED:
            for a in range(num_actions):
                if legal_after[a]:
                    found = write_entry(size + num_actions + a, entry, value, found)
        found = write_flags(goes_on, ends_deal, action == baseline, size + 2 * num_actions, entry, value, found)
        if found == starts[moves]:  # no row is empty
            found = write_entry(size + action, entry, value, found)
        actions[moves] = action
        moves += 1
        starts[moves] = found
    return moves


def obs_size(scale: Floats, scratch: Scratch) -> int:
    """Return the size of an observation."""
    return scale.shape[0] - 2 * scratch.legal_now.shape[0] - NUM_FLAGS


def load_decision(state: State, size: int, scratch: Scratch) -> None:
    """Write the observation, the legal actions and the random stream derived from them into `scratch`."""
    observe(state, state.seat, scratch.before[:size])
    legal(state, scratch.legal_now)
    scratch.key[0] = sight(scratch.before)
    scratch.worlds[0] = state


def draw_worlds(seat: int, scratch: Scratch) -> None:
    """Draw the worlds of the lookahead."""
    for k in range(NUM_AHEAD):
        draw_world(scratch.worlds[0], seat, scratch.key)
        scratch.worlds[2 + k] = scratch.worlds[0]


def write_outcome(
    state: State, macro: Macro, ends_deal: bool, mode: int, scale: Floats, scratch: Scratch,
    entry: NDArray[np.int32], value: Floats, found: int,
) -> int:  # fmt: skip
    """Append the changes by a macro-action; return the number of entries then."""
    size = obs_size(scale, scratch)
    if ends_deal:
        follow_macro(state, macro, mode, size, scratch)
        return write_changes(scratch.before, scratch.after, scale, entry, value, found)
    sum_ahead(macro, state.seat, mode, size, scratch)
    return write_means(scratch.before, scratch.sums, scale, entry, value, found)


def play_move(state: State, action: int, num_worlds: int, size: int, scratch: Scratch) -> tuple[bool, bool]:
    """Play an action in `num_worlds` worlds, or in the state itself; write what they agree on into `scratch.agreed`.

    Returns whether the seat is to move again in all of them, and whether the deal ends in all.
    """
    worlds, before, after, agreed, _, legal_after, legal_there, _, key, _, _, _ = scratch
    seat = state.seat
    goes_on = ends_deal = True
    for world in range(num_worlds):
        if num_worlds > 1:
            draw_world(worlds[0], seat, key)
            worlds[1] = worlds[0]
        else:
            worlds[1] = state
        play(worlds[1], action)
        goes_on &= not worlds[1].needs_deal and worlds[1].seat == seat
        ends_deal &= worlds[1].needs_deal
        observe(worlds[1], seat, after[:size])
        if world == 0:
            copy_all(after, agreed)
            if goes_on:
                legal(worlds[1], legal_after)
        else:
            agree(agreed, after, before)
            if goes_on:
                keep_legal(worlds[1], legal_after, legal_there)
    return goes_on, ends_deal


def merge_moves(state: State, baseline: int, mode: int, size: int, scratch: Scratch) -> int:
    """Mark one action for each afterstate in `scratch.kept`; return how many there are."""
    kept, reached = scratch.kept, scratch.reached
    number = 0
    for turn in range(kept.shape[0] + 1):  # the baseline first, so that it represents its afterstate
        action = turn - 1 if turn else baseline
        if turn and action == baseline:
            continue
        if turn:
            kept[action] = 0
        if action < 0 or scratch.legal_now[action] == 0:
            continue
        scratch.single[0] = action
        there, mark = follow_macro(state, scratch.single, mode, size, scratch)
        if is_first_reached(there, reached, number):
            kept[action] = KEPT | mark
            number += 1
    return number


def follow_macro(state: State, macro: Macro, mode: int, size: int, scratch: Scratch) -> tuple[np.uint64, int]:
    """Play a macro-action and follow it in scratch.worlds[1]; return the afterstate's hash and GOES_ON, ENDS_DEAL or 0.

    An action that reveals a card is never merged: its hash is NO_SIGHT.
    """
    seat = state.seat
    scratch.worlds[1] = state
    last = play_to_last(scratch.worlds[1], macro)
    if reveals(scratch.worlds[1], last):
        return NO_SIGHT, GOES_ON
    play_ahead(scratch.worlds[1], last, seat, mode, 0, 1 + MAX_FOLLOWED)
    lookahead = scratch.worlds[1]
    observe(lookahead, seat, scratch.after[:size])
    return sight(scratch.after), ENDS_DEAL if lookahead.needs_deal else GOES_ON if lookahead.seat == seat else 0


def is_first_reached(there: np.uint64, reached: UInt64s, number: int) -> bool:
    """Add a hash to `number` others; return whether it is new."""
    reached[number] = there
    alike = 0
    if there != NO_SIGHT:
        for k in range(number):
            alike += reached[k] == there
    return alike == 0


def play_to_last(state: State, macro: Macro) -> int:
    """Play a macro-action except its last action, and return that one."""
    step = 0
    while step + 1 < macro.shape[0] and macro[step + 1] != NO_ACTION:
        play(state, macro[step])
        step += 1
    return int(macro[step])


def sum_ahead(macro: Macro, seat: int, mode: int, size: int, scratch: Scratch) -> None:
    """Sum a seat's observations a few revealed cards after a macro-action over the worlds, in `scratch.sums`."""
    worlds, after, sums = scratch.worlds, scratch.after, scratch.sums
    for j in range(sums.shape[0]):
        sums[j] = 0
    for k in range(NUM_AHEAD):
        worlds[1] = worlds[2 + k]
        last = play_to_last(worlds[1], macro)
        play_ahead(worlds[1], last, seat, mode, CHANCE_AHEAD, MAX_AHEAD)
        observe(worlds[1], seat, after[:size])
        for j in range(sums.shape[0]):
            sums[j] += after[j]


def play_ahead(state: State, action: int, seat: int, mode: int, cards: int, most: int) -> int:
    """Play an action, then `greedy` for all seats, until more than `cards` hidden cards were revealed.

    Every action of a seat whose cards the given seat does not see counts as one. At most `most` actions are played.
    Returns their number.
    """
    shown = 0
    for made in range(most):
        shown += reveals(state, action) or (state.seat != seat and mode == FOLLOW_OWN)
        if shown > cards:
            return made
        play(state, action)
        if state.needs_deal:
            return made + 1
        action = bot_move(state)
    return most


def copy_all(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copy to an array of the same size: helpers of loops can't assign to slices."""
    for j in range(target.shape[0]):
        target[j] = source[j]


def agree(agreed: Int8s, after: Int8s, before: Int8s) -> None:
    """Reset the entries that differ between worlds to their value before."""
    for j in range(agreed.shape[0]):
        if after[j] != agreed[j]:
            agreed[j] = before[j]


def keep_legal(state: Any, legal_after: Int8s, mask: Int8s) -> None:
    """Keep only the actions that are legal in this state, too; `mask` is scratch."""
    legal(state, mask)
    for a in range(legal_after.shape[0]):
        legal_after[a] &= mask[a]


def write_changes(
    before: Int8s, after: Int8s, scale: Floats, entry: NDArray[np.int32], value: Floats, found: int
) -> int:
    """Append the entries that differ, comparing eight bytes at a time; return the number of entries then."""
    old, new = before.view(np.uint64), after.view(np.uint64)
    for w in range(old.shape[0]):
        word = old[w] ^ new[w]
        while word:
            byte = lowest(word) >> 3
            word &= ~(BYTE << np.uint64(8 * byte))
            j = 8 * w + byte
            entry[found] = j
            value[found] = np.float32(int(after[j]) - int(before[j])) * scale[j]
            found += 1
    return found


def write_means(
    before: Int8s, sums: NDArray[np.int16], scale: Floats, entry: NDArray[np.int32], value: Floats, found: int
) -> int:
    """Append the entries whose mean over the worlds differs; return the number of entries then."""
    for j in range(before.shape[0]):
        change = sums[j] - NUM_AHEAD * before[j]
        if change:
            entry[found] = j
            value[found] = np.float32(change) / np.float32(NUM_AHEAD) * scale[j]
            found += 1
    return found


def write_entry(number: int, entry: NDArray[np.int32], value: Floats, found: int) -> int:
    """Append an entry with value 1."""
    entry[found] = number
    value[found] = np.float32(1)
    return found + 1


def write_flags(
    goes_on: bool, ends_deal: bool, is_baseline: bool, flags: int, entry: NDArray[np.int32], value: Floats, found: int
) -> int:
    """Append the flags that are set; `flags` is the entry of the first."""
    if goes_on:
        found = write_entry(flags, entry, value, found)
    if ends_deal:
        found = write_entry(flags + 1, entry, value, found)
    if is_baseline:
        found = write_entry(flags + 2, entry, value, found)
    return found


def afterstates(
    game: Game, states: NDArray[Any], tables: Int64s, baseline: Int64s | None = None, lookahead: bool = False
) -> Afterstates:
    """Return the changes by the legal actions at some tables.

    Args:
        game: the game.
        states: [B] checked states with a decision due.
        tables: [n] numbers of states.
        baseline: [B] actions of `greedy`, if known.
        lookahead: represent actions by the position to which `greedy` would continue.
    """
    rules, mode = game.rules, follow_mode(game, lookahead)
    if baseline is None:
        baseline = np.zeros(len(states), np.int64)
        specialize_bot(bot_actions, game, PLAYER)(0, len(states), states, baseline)
    loop = specialize(write_moves, game, PLAYER)
    scale, scratch = move_scale(rules), new_scratch(game)
    parts = []
    for start in range(0, len(tables), PART):
        end = min(start + PART, len(tables))
        room = specialize(count_moves, game)(start, end, states, tables, scratch.legal_now)
        firsts, rows = np.zeros(end - start + 1, np.int64), new_rows(room, len(scale))
        loop(start, end, states, tables, baseline, mode, scale, scratch, firsts, rows)
        moves = firsts[-1]
        found = rows.starts[moves]
        sparse = SparseRows(rows.starts[: moves + 1], rows.entry[:found].copy(), rows.value[:found].copy())
        parts.append(Afterstates(firsts, rows.actions[:moves], sparse))
    return joined(parts)


def follow_mode(game: Game, lookahead: bool) -> int:
    """Return how far actions are followed in a game."""
    if not lookahead:
        return NOT_FOLLOWED
    return FOLLOW_ALL if game.all_see_alike else FOLLOW_OWN


def joined(parts: list[Afterstates]) -> Afterstates:
    """Return the decisions of all parts, concatenated."""
    if not parts:
        none = SparseRows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        return Afterstates(np.zeros(1, np.int64), np.zeros(0, np.int64), none)
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([part.first[-1] for part in parts])
    firsts = [parts[0].first, *(part.first[1:] + end for part, end in zip(parts[1:], ends))]
    return Afterstates(
        np.concatenate(firsts),
        np.concatenate([part.action for part in parts]),
        parts[0].rows.joined([part.rows for part in parts[1:]]),
    )
