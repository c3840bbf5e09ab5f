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
the observations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize, specialize_bot, stub
from card_envs.engine.dealing import draw_world
from card_envs.engine.kernels import bot_actions
from card_envs.engine.sets import lowest
from card_envs.engine.sums import Floats
from card_envs.game import (
    GREEDY,
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
from card_envs.opponents.macros import observation_hash
from card_envs.opponents.networks._sparse import BYTE, SparseRows

NUM_WORLDS = 6  # for actions that reveal a hidden card
NUM_AHEAD, CHANCE_AHEAD = 6, 6  # lookahead: worlds, and hidden cards revealed in each
MAX_FOLLOWED, MAX_AHEAD = 64, 512  # most actions of `greedy` before the worlds are drawn, and in them
KEPT, MOVES_AGAIN, ENDS_DEAL = 1, 2, 4  # flags of an action with lookahead
NOT_MERGED = np.uint64(0)  # the hash of an afterstate that is unlike all others
NUM_FLAGS = 3  # `goes_on`, `ends_deal`, `baseline`: the last entries
ONE = np.float32(1)
DECISIONS_AT_ONCE = 256  # so that buffers stay in the CPU cache


class Afterstates(NamedTuple):
    """The legal actions of n decisions, in the order of their ids within a decision; with lookahead, merged.

    Attributes:
        first: [n + 1]; decision i has the rows first[i] to first[i + 1].
        action: [R] the action of each row.
        rows: [R] changes of each action: sparse rows of `move_fields`.
    """

    first: Int64s
    action: Int64s
    rows: SparseRows

    def decision(self) -> Int64s:
        """Return [R], the decision that each row belongs to."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def action_mask(self, num_actions: int) -> Int8s:
        """Return [n, num_actions] int8, 1 for each action with a row."""
        mask = np.zeros((len(self.first) - 1, num_actions), np.int8)
        mask[self.decision(), self.action] = 1
        return mask


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


class AfterstateWorkspace(NamedTuple):
    """The workspace of the loops; observations are padded to a multiple of 8.

    Attributes:
        scale: [M] the factors of the entries of `move_fields`.
        all_see_alike: the game's; if true, lookahead goes on with the actions of all seats, else with the seat's own.
        worlds: [2 + NUM_AHEAD] a world, its state after an action, and the worlds of the lookahead.
        before, after, agreed: [D] observations.
        legal_now, legal_after, legal_there: [A].
        key: [1] the stream of the worlds.
        sums: [D] summed observations.
        followed: [A] hashes of the afterstates of the legal actions; reached: [A] those that differ.
        kept: [A] KEPT, plus MOVES_AGAIN or ENDS_DEAL if true; 0: illegal, or merged into another action.
    """

    scale: Floats
    all_see_alike: bool
    worlds: NDArray[Any]
    before: Int8s
    after: Int8s
    agreed: Int8s
    legal_now: Int8s
    legal_after: Int8s
    legal_there: Int8s
    key: UInt64s
    sums: NDArray[np.int16]
    followed: UInt64s
    reached: UInt64s
    kept: Int8s


class MoveRows(NamedTuple):
    """Output buffers: the changes of each action.

    Attributes:
        actions: [R] the action of each row.
        starts: [R + 1], from 0; row r has the entries starts[r] to starts[r + 1].
        entry, value: columns and values of all rows, concatenated.
    """

    actions: Int64s
    starts: Int64s
    entry: NDArray[np.int32]
    value: Floats


def new_afterstate_workspace(game: Game) -> AfterstateWorkspace:
    """Return the workspace of one thread."""
    rules = game.rules
    size = -(-rules.OBS_SIZE // 8) * 8
    return AfterstateWorkspace(
        scale=move_scale(rules),
        all_see_alike=game.all_see_alike,
        worlds=np.zeros(2 + NUM_AHEAD, rules.STATE),
        before=np.zeros(size, np.int8),
        after=np.zeros(size, np.int8),
        agreed=np.zeros(size, np.int8),
        legal_now=np.zeros(rules.NUM_ACTIONS, np.int8),
        legal_after=np.zeros(rules.NUM_ACTIONS, np.int8),
        legal_there=np.zeros(rules.NUM_ACTIONS, np.int8),
        key=np.zeros(1, np.uint64),
        sums=np.zeros(size, np.int16),
        followed=np.zeros(rules.NUM_ACTIONS, np.uint64),
        reached=np.zeros(rules.NUM_ACTIONS, np.uint64),
        kept=np.zeros(rules.NUM_ACTIONS, np.int8),
    )


def new_rows(moves: int, entries: int) -> MoveRows:
    """Return buffers for `moves` rows of up to `entries` entries; untouched memory costs nothing."""
    entry, value = np.zeros(moves * entries, np.int32), np.zeros(moves * entries, np.float32)
    return MoveRows(np.zeros(moves, np.int64), np.zeros(moves + 1, np.int64), entry, value)


def count_moves(first: int, last: int, states: NDArray[Any], mask: Int8s) -> int:
    """Return the number of legal actions at the tables first <= i < last; `mask` [A] is workspace."""
    moves = 0
    for i in range(first, last):
        moves += legal(states[i], mask)
    return moves


@stub
def write_decision(state: State, baseline: int, workspace: AfterstateWorkspace, rows: MoveRows, moves: int) -> int:
    """Append the changes of the legal actions of a decision to `moves` rows; return the number of rows then.

    Afterwards `workspace.before` holds the observation and `workspace.legal_now` the legal actions.
    """
    raise NotImplementedError


def write_moves(
    first: int, last: int, states: NDArray[Any], baseline: Int64s, workspace: AfterstateWorkspace, firsts: Int64s,
    rows: MoveRows,
) -> None:  # fmt: skip
    """Write the changes of the legal actions at the tables first <= i < last.

    Args:
        first, last: which tables.
        states: [B]; not modified.
        baseline: [B] the actions of `greedy`.
        workspace: this thread's workspace.
        firsts: [last - first + 1] written.
        rows: written, and large enough.
    """
    moves = 0
    for i in range(first, last):
        firsts[i - first] = moves
        moves = write_decision(states[i], baseline[i], workspace, rows, moves)
    firsts[last - first] = moves


def write_afterstates(state: State, baseline: int, workspace: AfterstateWorkspace, rows: MoveRows, moves: int) -> int:
    """Write a decision without lookahead: see `write_decision`."""
    load_decision(state, workspace)
    for action in range(workspace.legal_now.shape[0]):
        if workspace.legal_now[action]:
            end = write_afterstate(state, action, action == baseline, workspace, rows, rows.starts[moves])
            moves = end_row(action, rows, moves, end)
    return moves


def write_afterstate(
    state: State, action: int, is_baseline: bool, workspace: AfterstateWorkspace, rows: MoveRows, end: int
) -> int:
    """Write what an action changes, after `end` entries; return the number of entries then."""
    legal_after, size = workspace.legal_after, obs_size(workspace)
    moves_again, ends_deal = play_move(state, action, NUM_WORLDS if reveals(state, action) else 1, workspace)
    end = write_changes(workspace.before, workspace.agreed, workspace.scale, rows, end)
    end = write_entry(size + action, ONE, rows, end)
    if moves_again:
        for a in range(legal_after.shape[0]):
            if legal_after[a]:
                end = write_entry(size + legal_after.shape[0] + a, ONE, rows, end)
    return write_flags(moves_again, ends_deal, is_baseline, workspace, rows, end)


def write_lookahead(state: State, baseline: int, workspace: AfterstateWorkspace, rows: MoveRows, moves: int) -> int:
    """Write a decision with lookahead: see `write_decision`."""
    kept = workspace.kept
    load_decision(state, workspace)
    for action in range(kept.shape[0]):
        kept[action] = 0
        if workspace.legal_now[action]:
            workspace.followed[action], kept[action] = follow_action(state, action, workspace)
    number = merge_moves(baseline, workspace.followed, workspace.reached, kept)
    if number > 1:  # a single afterstate needs no lookahead
        draw_lookahead_worlds(state.seat, workspace)
    for action in range(kept.shape[0]):
        if kept[action]:
            end = write_followed(
                state, action, kept[action], number, action == baseline, workspace, rows, rows.starts[moves]
            )
            moves = end_row(action, rows, moves, end)
    return moves


def write_followed(
    state: State, action: int, mark: int, number: int, is_baseline: bool, workspace: AfterstateWorkspace,
    rows: MoveRows, end: int,
) -> int:  # fmt: skip
    """Write where an action leads, one of `number` afterstates, after `end` entries; return their number then."""
    size, begin = obs_size(workspace), end
    moves_again, ends_deal = mark & MOVES_AGAIN != 0, mark & ENDS_DEAL != 0
    if ends_deal or number > 1:
        end = write_outcome(state, action, ends_deal, workspace, rows, end)
    if reveals(state, action):
        end = write_entry(size + action, ONE, rows, end)
    end = write_flags(moves_again, ends_deal, is_baseline, workspace, rows, end)
    if end == begin:  # no row is empty
        end = write_entry(size + action, ONE, rows, end)
    return end


def end_row(action: int, rows: MoveRows, moves: int, end: int) -> int:
    """End the row of an action, which has the entries up to `end`; return the number of rows then."""
    rows.actions[moves] = action
    rows.starts[moves + 1] = end
    return moves + 1


def obs_size(workspace: AfterstateWorkspace) -> int:
    """Return the size of an observation."""
    return workspace.scale.shape[0] - 2 * workspace.legal_now.shape[0] - NUM_FLAGS


def load_decision(state: State, workspace: AfterstateWorkspace) -> None:
    """Write the observation, the legal actions and the random stream derived from them into `workspace`."""
    observe(state, state.seat, workspace.before[: obs_size(workspace)])
    legal(state, workspace.legal_now)
    workspace.key[0] = observation_hash(workspace.before)
    workspace.worlds[0] = state


def draw_lookahead_worlds(seat: int, workspace: AfterstateWorkspace) -> None:
    """Draw the worlds of the lookahead."""
    for k in range(NUM_AHEAD):
        draw_world(workspace.worlds[0], seat, workspace.key)
        workspace.worlds[2 + k] = workspace.worlds[0]


def write_outcome(
    state: State, action: int, ends_deal: bool, workspace: AfterstateWorkspace, rows: MoveRows, end: int
) -> int:
    """Append the changes by an action; return the number of entries then."""
    if ends_deal:
        follow_action(state, action, workspace)
        return write_changes(workspace.before, workspace.after, workspace.scale, rows, end)
    sum_ahead(action, state.seat, workspace)
    return write_means(workspace.before, workspace.sums, workspace.scale, rows, end)


def play_move(state: State, action: int, num_worlds: int, workspace: AfterstateWorkspace) -> tuple[bool, bool]:
    """Play an action in `num_worlds` worlds, or in the state itself; write what they agree on into `agreed`.

    Returns whether the seat is to move again in all of them, and whether the deal ends in all.
    """
    worlds, after, seat, size = workspace.worlds, workspace.after, state.seat, obs_size(workspace)
    moves_again = ends_deal = True
    for world in range(num_worlds):
        if num_worlds > 1:
            draw_world(worlds[0], seat, workspace.key)
            worlds[1] = worlds[0]
        else:
            worlds[1] = state
        play(worlds[1], action)
        moves_again &= not worlds[1].needs_deal and worlds[1].seat == seat
        ends_deal &= worlds[1].needs_deal
        observe(worlds[1], seat, after[:size])
        if world == 0:
            copy_all(after, workspace.agreed)
            if moves_again:
                legal(worlds[1], workspace.legal_after)
        else:
            agree(workspace.agreed, after, workspace.before)
            if moves_again:
                keep_legal(worlds[1], workspace.legal_after, workspace.legal_there)
    return moves_again, ends_deal


def follow_action(state: State, action: int, workspace: AfterstateWorkspace) -> tuple[np.uint64, int]:
    """Follow an action in worlds[1]; return the afterstate's hash, and what `AfterstateWorkspace.kept` says of it.

    An action that reveals a card is never merged: its hash is NOT_MERGED.
    """
    lookahead = workspace.worlds[1]
    workspace.worlds[1] = state
    if reveals(lookahead, action):
        return NOT_MERGED, KEPT | MOVES_AGAIN
    size = obs_size(workspace)
    there, mark = follow_seen(lookahead, action, state.seat, workspace.all_see_alike, workspace.after, size)
    return there, KEPT | mark


def merge_moves(baseline: int, followed: UInt64s, reached: UInt64s, kept: Int8s) -> int:
    """Keep one action for each afterstate, of those in `kept`; return how many there are."""
    number = 0
    for turn in range(kept.shape[0] + 1):  # the baseline first, so that it represents its afterstate
        action = turn - 1 if turn else baseline
        if action < 0 or kept[action] == 0 or (turn and action == baseline):
            continue
        if is_first_reached(followed[action], reached, number):
            number += 1
        else:
            kept[action] = 0
    return number


def follow_seen(
    state: State, action: int, seat: int, all_see_alike: bool, seen: Int8s, size: int
) -> tuple[np.uint64, int]:
    """Play an action that reveals no card and follow it; return the afterstate's hash and MOVES_AGAIN, ENDS_DEAL or 0.

    What the seat then sees is written into `seen`, of which an observation has the first `size` entries.
    """
    play_ahead(state, action, seat, all_see_alike, 0, 1 + MAX_FOLLOWED)
    observe(state, seat, seen[:size])
    return observation_hash(seen), ENDS_DEAL if state.needs_deal else MOVES_AGAIN if state.seat == seat else 0


def is_first_reached(there: np.uint64, reached: UInt64s, number: int) -> bool:
    """Add a hash to `number` others; return whether it is new."""
    reached[number] = there
    alike = 0
    if there != NOT_MERGED:
        for k in range(number):
            alike += reached[k] == there
    return alike == 0


def sum_ahead(action: int, seat: int, workspace: AfterstateWorkspace) -> None:
    """Sum a seat's observations a few revealed cards after an action over the worlds, in `workspace.sums`."""
    worlds, after, sums, size = workspace.worlds, workspace.after, workspace.sums, obs_size(workspace)
    for j in range(sums.shape[0]):
        sums[j] = 0
    for k in range(NUM_AHEAD):
        worlds[1] = worlds[2 + k]
        play_ahead(worlds[1], action, seat, workspace.all_see_alike, CHANCE_AHEAD, MAX_AHEAD)
        observe(worlds[1], seat, after[:size])
        for j in range(sums.shape[0]):
            sums[j] += after[j]


def play_ahead(state: State, action: int, seat: int, all_see_alike: bool, cards: int, most: int) -> None:
    """Play an action, then `greedy` for all seats, until more than `cards` hidden cards were revealed.

    Unless all see alike, every action of another seat than the given one counts as one. At most `most` actions are
    played.
    """
    revealed = 0
    for _ in range(most):
        revealed += reveals(state, action) or (state.seat != seat and not all_see_alike)
        if revealed > cards:
            return
        play(state, action)
        if state.needs_deal:
            return
        action = bot_move(state)


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
    """Keep only the actions that are legal in this state, too; `mask` is workspace."""
    legal(state, mask)
    for a in range(legal_after.shape[0]):
        legal_after[a] &= mask[a]


def write_changes(before: Int8s, after: Int8s, scale: Floats, rows: MoveRows, end: int) -> int:
    """Append the entries that differ, comparing eight bytes at a time; return the number of entries then."""
    old, new = before.view(np.uint64), after.view(np.uint64)
    for w in range(old.shape[0]):
        word = old[w] ^ new[w]
        while word:
            byte = lowest(word) >> 3
            word &= ~(BYTE << np.uint64(8 * byte))
            j = 8 * w + byte
            end = write_entry(j, np.float32(int(after[j]) - int(before[j])) * scale[j], rows, end)
    return end


def write_means(before: Int8s, sums: NDArray[np.int16], scale: Floats, rows: MoveRows, end: int) -> int:
    """Append the entries whose mean over the worlds differs; return the number of entries then."""
    for j in range(before.shape[0]):
        change = int(sums[j]) - NUM_AHEAD * int(before[j])
        if change:
            end = write_entry(j, np.float32(change) / np.float32(NUM_AHEAD) * scale[j], rows, end)
    return end


def write_entry(entry: int, value: np.float32, rows: MoveRows, end: int) -> int:
    """Append an entry; return the number of entries then."""
    rows.entry[end] = entry
    rows.value[end] = value
    return end + 1


def write_flags(
    moves_again: bool, ends_deal: bool, is_baseline: bool, workspace: AfterstateWorkspace, rows: MoveRows, end: int
) -> int:
    """Append the flags that are set."""
    flags = workspace.scale.shape[0] - NUM_FLAGS
    if moves_again:
        end = write_entry(flags, ONE, rows, end)
    if ends_deal:
        end = write_entry(flags + 1, ONE, rows, end)
    if is_baseline:
        end = write_entry(flags + 2, ONE, rows, end)
    return end


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
    if baseline is None:
        baseline = np.zeros(len(states), np.int64)
        specialize_bot(bot_actions, game, GREEDY)(0, len(states), states, baseline)
    loop = specialize(write_moves, game, GREEDY, functions=((write_decision, writer_of(lookahead)),))
    workspace = new_afterstate_workspace(game)
    parts = []
    for start in range(0, len(tables), DECISIONS_AT_ONCE):
        part = tables[start : start + DECISIONS_AT_ONCE]
        at, number = states[part], len(part)
        room = specialize(count_moves, game)(0, number, at, workspace.legal_now)
        firsts, rows = np.zeros(number + 1, np.int64), new_rows(room, len(workspace.scale))
        loop(0, number, at, baseline[part], workspace, firsts, rows)
        moves = firsts[-1]
        num_entries = rows.starts[moves]
        sparse = SparseRows(rows.starts[: moves + 1], rows.entry[:num_entries].copy(), rows.value[:num_entries].copy())
        parts.append(Afterstates(firsts, rows.actions[:moves], sparse))
    return concatenate(parts)


def writer_of(lookahead: bool) -> Any:
    """Return the function for `write_decision`."""
    return write_lookahead if lookahead else write_afterstates


def concatenate(parts: list[Afterstates]) -> Afterstates:
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
        parts[0].rows.concatenate([part.rows for part in parts[1:]]),
    )
