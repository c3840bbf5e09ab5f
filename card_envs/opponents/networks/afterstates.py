"""What each legal move would change: the input of networks that score moves one by one.

A move is shown by the entries of the mover's observation that it changes, by which moves are legal after it, and by
what `greedy` would play. It is played in a world whose hidden cards are drawn anew, from a stream that is fixed by what
the seat sees: nothing leaks, and the same sight gives the same input. Where a move shows a hidden card, it is played
in several worlds, and entries on which they differ are left as they were: no drawn card passes for a fact.

Settled, a move is shown by where `greedy` would lead from it: by the seat's own moves, and by those of others where all
see alike (who sees other cards may play by them, which would give them away). Of moves that lead to the same sight
before anything hidden shows, its own or else the first stands for all, and they are not told apart by their names: in
games of many moves a turn most orders of moves come to the same, and what counts is what they come to. Then `greedy`
plays on for all in some drawn worlds until a few hidden cards have shown there, and the means of what is seen then are
the input. A line of moves is shown as a settled move is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.compile import specialize, specialize_bot
from card_envs.engine.dealing import draw_world
from card_envs.engine.kernels import bot_actions
from card_envs.engine.sets import lowest
from card_envs.engine.sums import Floats
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
from card_envs.opponents.lines import NO_MOVE, Line, sight
from card_envs.opponents.networks.sparse import BYTE, SparseRows

PLAYER = "greedy"  # whose choice is shown
NUM_WORLDS = 6  # for moves that show a hidden card
WORLDS_AHEAD, CARDS_AHEAD = 6, 6  # drawn worlds that settled moves lead to, and hidden cards that show there
MOST_SETTLING, MOST_AHEAD = 64, 512  # moves of `greedy` until a position counts as settled, and in drawn worlds
AS_PLAYED, SETTLED_BY_SEAT, SETTLED_BY_ALL = range(3)  # how far moves are followed
TOLD_APART, GOES_ON, ENDS_DEAL = 1, 2, 4  # what is known of a settled move
NO_SIGHT = np.uint64(0)
NUM_FLAGS = 3  # `goes_on`, `ends_deal`, `own`: the last entries
PART = 256  # decisions at once: buffers stay in the processor's cache


class Afterstates(NamedTuple):
    """The legal moves of n decisions, those of a decision in the order of their actions; settled, some are left out.

    Attributes:
        first: [n + 1]; decision i has the moves first[i] to first[i + 1].
        action: [R] of each move.
        rows: [R] what each changes: sparse rows of `move_fields`.
    """

    first: Int64s
    action: Int64s
    rows: SparseRows

    def decision(self) -> Int64s:
        """[R] which decision each move belongs to."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def shown(self, num_actions: int) -> Int8s:
        """[n, num_actions] 1 for each of the moves."""
        shown = np.zeros((len(self.first) - 1, num_actions), np.int8)
        shown[self.decision(), self.action] = 1
        return shown


def move_fields(rules: Rules) -> tuple[Field, ...]:
    """The entries that show a move: changes of the observation's entries, then what is not in it."""
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
    """What the entries are multiplied with: as those of the observation are, within [-2, 2] then."""
    low, high = bounds(move_fields(rules))
    return (1 / np.maximum(np.abs(low.astype(np.float32)), high)).astype(np.float32)


class Scratch(NamedTuple):
    """What the loop works with; observations are padded to a multiple of 8.

    Attributes:
        worlds: [2 + WORLDS_AHEAD] a world, what a move makes of it, and the drawn ones that settled moves lead to.
        before, after, agreed: [D] observations.
        legal_now, legal_after, legal_there: [A].
        single: [1] a move as a line.
        key: [1] the stream of the worlds.
        sums: [D] of observations.
        reached: [A] the sights that moves led to.
        apart: [A] TOLD_APART, and GOES_ON or ENDS_DEAL where it settles so; 0: another move stands for it.
    """

    worlds: NDArray[Any]
    before: Int8s
    after: Int8s
    agreed: Int8s
    legal_now: Int8s
    legal_after: Int8s
    legal_there: Int8s
    single: Line
    key: UInt64s
    sums: NDArray[np.int16]
    reached: UInt64s
    apart: Int8s


class Noted(NamedTuple):
    """What moves change, as it is written.

    Attributes:
        actions: [R] of each move.
        starts: [R + 1], from 0; row r has the entries starts[r] to starts[r + 1].
        entry, value: of the rows, one after the other.
    """

    actions: Int64s
    starts: Int64s
    entry: NDArray[np.int32]
    value: Floats


def new_scratch(game: Game) -> Scratch:
    """For one thread."""
    rules = game.rules
    before, after, agreed = np.zeros((3, -(-rules.OBS_SIZE // 8) * 8), np.int8)
    legal_now, legal_after, legal_there = np.zeros((3, rules.NUM_ACTIONS), np.int8)
    worlds, sums = np.zeros(2 + WORLDS_AHEAD, rules.STATE), np.zeros(len(before), np.int16)
    single, key = np.zeros(1, np.int16), np.zeros(1, np.uint64)
    reached, apart = np.zeros(rules.NUM_ACTIONS, np.uint64), np.zeros(rules.NUM_ACTIONS, np.int8)
    seen = before, after, agreed, legal_now, legal_after, legal_there
    return Scratch(worlds, *seen, single, key, sums, reached, apart)


def room_for(moves: int, entries: int) -> Noted:
    """Room for so many moves with at most so many entries each; memory that is never touched costs nothing."""
    entry, value = np.empty(moves * entries, np.int32), np.empty(moves * entries, np.float32)
    return Noted(np.zeros(moves, np.int64), np.zeros(moves + 1, np.int64), entry, value)


def count_moves(first: int, last: int, states: NDArray[Any], tables: Int64s, mask: Int8s) -> int:
    """How many legal moves there are at some tables; `mask` [A] is scratch."""
    moves = 0
    for k in range(first, last):
        moves += legal(states[tables[k]], mask)
    return moves


def note_moves(
    first: int, last: int, states: NDArray[Any], tables: Int64s, own: Int64s, how_far: int, scale: Floats,
    scratch: Scratch, firsts: Int64s, noted: Noted,
) -> None:  # fmt: skip
    """Write what the legal moves at some tables change; decision 0 is at the table tables[first].

    Args:
        first, last: which of `tables`.
        states: [B]; they stay as they are.
        tables: numbers of states.
        own: [B] the moves of `greedy`.
        how_far: they are followed.
        scale: of the entries.
        scratch: to work with.
        firsts: [last - first + 1] is written.
        noted: is written, and large enough.
    """
    moves = 0
    for k in range(first, last):
        i = tables[k]
        firsts[k - first] = moves
        moves = note_decision(states[i], own[i], how_far, scale, scratch, moves, noted)
    firsts[last - first] = moves


def note_decision(
    state: State, own: int, how_far: int, scale: Floats, scratch: Scratch, moves: int, noted: Noted
) -> int:
    """Append what the legal moves of a decision change to `moves` others; returns how many there are then.

    What the seat to move sees, and its legal moves, are in `scratch.before` and `scratch.legal_now` then.
    """
    legal_now, legal_after = scratch.legal_now, scratch.legal_after
    actions, starts, entry, value = noted
    num_actions = legal_now.shape[0]
    size = obs_size(scale, scratch)
    look_at(state, size, scratch)
    found = starts[moves]
    number = 0  # of settled moves that are told apart; where only one is left, there is nothing to tell
    if how_far > AS_PLAYED:
        number = tell_apart(state, own, how_far, size, scratch)
    if number > 1:
        draw_ahead(state.seat, scratch)
    for action in range(num_actions):
        if legal_now[action] == 0 or (how_far > AS_PLAYED and scratch.apart[action] == 0):
            continue
        shows = reveals(state, action)
        if how_far == AS_PLAYED:
            goes_on, ends_deal = play_move(state, action, NUM_WORLDS if shows else 1, size, scratch)
            found = note_changes(scratch.before, scratch.agreed, scale, entry, value, found)
        else:
            goes_on, ends_deal = scratch.apart[action] & GOES_ON != 0, scratch.apart[action] & ENDS_DEAL != 0
            if ends_deal or number > 1:
                scratch.single[0] = action
                found = note_outcome(state, scratch.single, ends_deal, how_far, scale, scratch, entry, value, found)
        if how_far == AS_PLAYED or shows:
            found = note_entry(size + action, entry, value, found)
        if goes_on and how_far == AS_PLAYED:
            for a in range(num_actions):
                if legal_after[a]:
                    found = note_entry(size + num_actions + a, entry, value, found)
        found = note_flags(goes_on, ends_deal, action == own, size + 2 * num_actions, entry, value, found)
        if found == starts[moves]:  # no row is empty
            found = note_entry(size + action, entry, value, found)
        actions[moves] = action
        moves += 1
        starts[moves] = found
    return moves


def obs_size(scale: Floats, scratch: Scratch) -> int:
    """The size of an observation."""
    return scale.shape[0] - 2 * scratch.legal_now.shape[0] - NUM_FLAGS


def look_at(state: State, size: int, scratch: Scratch) -> None:
    """Write what the seat to move sees and its legal moves into `scratch`; the stream of the worlds follows from it."""
    observe(state, state.seat, scratch.before[:size])
    legal(state, scratch.legal_now)
    scratch.key[0] = sight(scratch.before)
    scratch.worlds[0] = state


def draw_ahead(seat: int, scratch: Scratch) -> None:
    """Draw the worlds that settled moves lead to."""
    for k in range(WORLDS_AHEAD):
        draw_world(scratch.worlds[0], seat, scratch.key)
        scratch.worlds[2 + k] = scratch.worlds[0]


def note_outcome(
    state: State, line: Line, ends_deal: bool, how_far: int, scale: Floats, scratch: Scratch,
    entry: NDArray[np.int32], value: Floats, found: int,
) -> int:  # fmt: skip
    """Append what a line leads to; returns how many entries there are then."""
    size = obs_size(scale, scratch)
    if ends_deal:
        settle(state, line, how_far, size, scratch)
        return note_changes(scratch.before, scratch.after, scale, entry, value, found)
    look_ahead(line, state.seat, how_far, size, scratch)
    return note_means(scratch.before, scratch.sums, scale, entry, value, found)


def play_move(state: State, action: int, num_worlds: int, size: int, scratch: Scratch) -> tuple[bool, bool]:
    """Play a move in so many worlds drawn in worlds[0], or in the state itself; what they agree on is in `scratch`.

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


def tell_apart(state: State, own: int, how_far: int, size: int, scratch: Scratch) -> int:
    """Mark in scratch.apart the moves that stand for all that lead to the same sight; returns how many these are."""
    apart, reached = scratch.apart, scratch.reached
    number = 0
    for turn in range(apart.shape[0] + 1):  # the own move before all others
        action = turn - 1 if turn else own
        if turn and action == own:
            continue
        if turn:
            apart[action] = 0
        if action < 0 or scratch.legal_now[action] == 0:
            continue
        scratch.single[0] = action
        there, mark = settle(state, scratch.single, how_far, size, scratch)
        if enter_reached(there, reached, number):
            apart[action] = TOLD_APART | mark
            number += 1
    return number


def settle(state: State, line: Line, how_far: int, size: int, scratch: Scratch) -> tuple[np.uint64, int]:
    """Play a line and let it settle, in scratch.worlds[1]; returns the sight of that, and GOES_ON, ENDS_DEAL or 0.

    What shows a card is like nothing else: its sight is 0, as far as that can be, and it goes on.
    """
    seat = state.seat
    scratch.worlds[1] = state
    last = play_to_last(scratch.worlds[1], line)
    if reveals(scratch.worlds[1], last):
        return NO_SIGHT, GOES_ON
    follow(scratch.worlds[1], last, seat, how_far, 0, 1 + MOST_SETTLING)
    lookahead = scratch.worlds[1]
    observe(lookahead, seat, scratch.after[:size])
    return sight(scratch.after), ENDS_DEAL if lookahead.needs_deal else GOES_ON if lookahead.seat == seat else 0


def enter_reached(there: np.uint64, reached: UInt64s, number: int) -> bool:
    """Note a sight after so many others; whether it is not among them."""
    reached[number] = there
    alike = 0
    if there != NO_SIGHT:
        for k in range(number):
            alike += reached[k] == there
    return alike == 0


def play_to_last(state: State, line: Line) -> int:
    """Play a line but for its last move; returns that."""
    step = 0
    while step + 1 < line.shape[0] and line[step + 1] != NO_MOVE:
        play(state, line[step])
        step += 1
    return int(line[step])


def look_ahead(line: Line, seat: int, how_far: int, size: int, scratch: Scratch) -> None:
    """Sum up in scratch.sums what a seat sees some hidden cards after a line, in the drawn worlds."""
    worlds, after, sums = scratch.worlds, scratch.after, scratch.sums
    for j in range(sums.shape[0]):
        sums[j] = 0
    for k in range(WORLDS_AHEAD):
        worlds[1] = worlds[2 + k]
        last = play_to_last(worlds[1], line)
        follow(worlds[1], last, seat, how_far, CARDS_AHEAD, MOST_AHEAD)
        observe(worlds[1], seat, after[:size])
        for j in range(sums.shape[0]):
            sums[j] += after[j]


def follow(state: State, action: int, seat: int, how_far: int, cards: int, most: int) -> int:
    """Play a move, and `greedy` on for all seats until one more hidden card than `cards` would show, as by every move
    of others whose cards a seat does not see; at most so many moves. Returns how many they were."""
    shown = 0
    for made in range(most):
        shown += reveals(state, action) or (state.seat != seat and how_far == SETTLED_BY_SEAT)
        if shown > cards:
            return made
        play(state, action)
        if state.needs_deal:
            return made + 1
        action = bot_move(state)
    return most


def copy_all(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Into an array of the same size: helpers of loops can't assign to slices."""
    for j in range(target.shape[0]):
        target[j] = source[j]


def agree(agreed: Int8s, after: Int8s, before: Int8s) -> None:
    """Leave as it was what differs between worlds."""
    for j in range(agreed.shape[0]):
        if after[j] != agreed[j]:
            agreed[j] = before[j]


def keep_legal(state: Any, legal_after: Int8s, mask: Int8s) -> None:
    """Keep of the moves those that are legal in this state, too; `mask` is scratch."""
    legal(state, mask)
    for a in range(legal_after.shape[0]):
        legal_after[a] &= mask[a]


def note_changes(
    before: Int8s, after: Int8s, scale: Floats, entry: NDArray[np.int32], value: Floats, found: int
) -> int:
    """Append the entries that differ, eight bytes at a time; returns how many there are then."""
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


def note_means(
    before: Int8s, sums: NDArray[np.int16], scale: Floats, entry: NDArray[np.int32], value: Floats, found: int
) -> int:
    """Append the entries whose mean over the worlds ahead differs; returns how many there are then."""
    for j in range(before.shape[0]):
        change = sums[j] - WORLDS_AHEAD * before[j]
        if change:
            entry[found] = j
            value[found] = np.float32(change) / np.float32(WORLDS_AHEAD) * scale[j]
            found += 1
    return found


def note_entry(number: int, entry: NDArray[np.int32], value: Floats, found: int) -> int:
    """Append one entry that is set."""
    entry[found] = number
    value[found] = np.float32(1)
    return found + 1


def note_flags(
    goes_on: bool, ends_deal: bool, is_own: bool, flags: int, entry: NDArray[np.int32], value: Floats, found: int
) -> int:
    """Append those of the last entries, from `flags` on, that are set."""
    if goes_on:
        found = note_entry(flags, entry, value, found)
    if ends_deal:
        found = note_entry(flags + 1, entry, value, found)
    if is_own:
        found = note_entry(flags + 2, entry, value, found)
    return found


def afterstates(
    game: Game, states: NDArray[Any], tables: Int64s, own: Int64s | None = None, lookahead: bool = False
) -> Afterstates:
    """What the legal moves at some tables change.

    Args:
        game: what is played.
        states: [B] checked states with a decision due.
        tables: [n] which of them.
        own: [B] what `greedy` plays there, where that is known.
        lookahead: show moves by where `greedy` would lead from them.
    """
    rules, how_far = game.rules, settling(game, lookahead)
    if own is None:
        own = np.zeros(len(states), np.int64)
        specialize_bot(bot_actions, game, PLAYER)(0, len(states), states, own)
    loop = specialize(note_moves, game, PLAYER)
    scale, scratch = move_scale(rules), new_scratch(game)
    parts = []
    for start in range(0, len(tables), PART):
        end = min(start + PART, len(tables))
        room = specialize(count_moves, game)(start, end, states, tables, scratch.legal_now)
        firsts, noted = np.zeros(end - start + 1, np.int64), room_for(room, len(scale))
        loop(start, end, states, tables, own, how_far, scale, scratch, firsts, noted)
        moves = firsts[-1]
        found = noted.starts[moves]
        rows = SparseRows(noted.starts[: moves + 1], noted.entry[:found].copy(), noted.value[:found].copy())
        parts.append(Afterstates(firsts, noted.actions[:moves], rows))
    return joined(parts)


def settling(game: Game, lookahead: bool) -> int:
    """How far the moves of a game are followed."""
    if not lookahead:
        return AS_PLAYED
    return SETTLED_BY_ALL if game.all_see_alike else SETTLED_BY_SEAT


def joined(parts: list[Afterstates]) -> Afterstates:
    """The decisions of all parts, one after the other."""
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
