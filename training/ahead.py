"""Rows of what `greedy` makes of moves, written on a GPU.

Threads of a few simple kernels play: one for each legal move, to find those with the same afterstate; one for each
decision, to draw its worlds; one for each move and world, to look ahead. The rest are sums of what those saw. A row
shows that, not what it changes: see `training.moves`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.engine.buffers import row_size
from card_envs.engine.dealing import copy_state, draw_world
from card_envs.engine.sums import Floats
from card_envs.game import GREEDY, Game, Int8s, Int64s, Rules, UInt64s, bounds, observe, reveals, total
from card_envs.opponents.macros import observation_hash
from card_envs.opponents.networks.afterstates import (
    CHANCE_AHEAD,
    ENDS_DEAL,
    KEPT,
    MAX_AHEAD,
    MAX_FOLLOWED,
    MOVES_AGAIN,
    NOT_MERGED,
    NUM_AHEAD,
    NUM_FLAGS,
    follow_seen,
    merge_moves,
    move_fields,
    move_scale,
    play_ahead,
)

if TYPE_CHECKING:  # it needs CUDA
    from card_envs.engine.gpu import GpuBatchEnv

MOVES_PER_LAUNCH = 1 << 17  # moves, each with a State and an observation
ROWS_PER_LAUNCH = 1 << 16  # likewise, but for each of the worlds
REVEALS = 8  # a flag of a move beside KEPT, MOVES_AGAIN and ENDS_DEAL
NOWHERE, TO_ITS_END, AHEAD = range(3)  # how far a move is followed: it is the only one, it ends the deal, or neither
STATES_PER_DECISION = 1 + NUM_AHEAD  # States of a decision: as it is, then its worlds


def wide_entries(rules: Rules) -> Int64s:
    """Return the entries of observations whose sums over the worlds may exceed 8 bits."""
    low, high = bounds(rules.OBS_FIELDS)
    return np.flatnonzero(NUM_AHEAD * np.maximum(-low.astype(int), high) > np.iinfo(np.int8).max)


def ahead_columns(rules: Rules) -> tuple[Int64s, Floats]:
    """Return the entry of `move_fields` of each column [W] of rows, and the weight of its values.

    Rows hold the sums over the worlds. A sum that may exceed 8 bits is split: its entry has the mean, rounded down, and
    one of the columns at the end what is left.
    """
    wide, scale = wide_entries(rules), move_scale(rules)
    share = scale.copy()
    share[: rules.OBS_SIZE] /= NUM_AHEAD
    share[wide] = scale[wide]
    return np.concatenate([np.arange(len(scale)), wide]), np.concatenate([share, scale[wide] / np.float32(NUM_AHEAD)])


class FollowWorkspace(NamedTuple):
    """The workspace of `follow_pairs`: row r works at r % K.

    Attributes:
        played: [K] States.
        seen: [K, at least obs_size] observations, padded for hashes.
        obs_size: size of an observation.
        all_see_alike: the game's.
    """

    played: Any
    seen: Any
    obs_size: int
    all_see_alike: bool


def follow_pairs(
    first: int, last: int, states: NDArray[Any], pairs: Int64s, workspace: FollowWorkspace, followed: UInt64s,
    kept: Int8s,
) -> None:  # fmt: skip
    """Write where pairs [R, 2] of a decision and a move lead: at their places in `followed` and `kept` [n, A]."""
    for r in range(first, last):
        k, i, action = r % workspace.played.shape[0], pairs[r, 0], pairs[r, 1]
        seat = states[i].seat
        if reveals(states[i], action):
            followed[i, action], kept[i, action] = NOT_MERGED, KEPT | MOVES_AGAIN | REVEALS
        else:
            copy_state(states, i, workspace.played, k)
            followed[i, action], mark = follow_seen(
                workspace.played[k], action, seat, workspace.all_see_alike, workspace.seen[k], workspace.obs_size
            )
            kept[i, action] = KEPT | mark


def merge_followed(first: int, last: int, baseline: Any, followed: Any, reached: Any, kept: Any) -> None:
    """Keep one action for each afterstate of a decision."""
    for i in range(first, last):
        merge_moves(baseline[i], followed[i], reached[i], kept[i])


def draw_ahead(
    first: int, last: int, states: NDArray[Any], decisions: Int64s, obs_size: int, before: Int8s, keys: UInt64s,
    worlds: NDArray[Any],
) -> None:  # fmt: skip
    """Write what is seen at decisions, and their worlds.

    Args:
        first, last: which of the decisions.
        states: the tables' States.
        decisions: [n, 2] numbers of States, and how many afterstates there are: a single one needs no worlds.
        obs_size: size of an observation.
        before: [n, D] written, the observation, from whose hash the worlds are drawn; padded.
        keys: [n] workspace.
        worlds: [n * STATES_PER_DECISION] written: of each decision, its State and NUM_AHEAD worlds.
    """
    for n in range(first, last):
        i, start = decisions[n, 0], n * STATES_PER_DECISION
        seat = states[i].seat
        copy_state(states, i, worlds, start)
        observe(states[i], seat, before[n, :obs_size])
        keys[n] = observation_hash(before[n])
        for world in range(start + 1, start + STATES_PER_DECISION if decisions[n, 1] > 1 else start + 1):
            copy_state(worlds, world - 1, worlds, world)
            draw_world(worlds[world], seat, keys[n : n + 1])


def look_ahead(
    first: int, last: int, worlds: NDArray[Any], moves: Int64s, played: NDArray[Any], seen: Int8s,
    all_see_alike: bool,
) -> None:  # fmt: skip
    """Write what the mover sees after moves [R, 3] in NUM_AHEAD worlds into `seen` [R * NUM_AHEAD, D].

    A move is the number of its decision in `worlds`, the move, and how far it is followed.
    """
    for t in range(first, last):
        r, world = t // NUM_AHEAD, t % NUM_AHEAD
        start, action, far = moves[r, 0] * STATES_PER_DECISION, moves[r, 1], moves[r, 2]
        seat = worlds[start].seat
        copy_state(worlds, start + 1 + world if far == AHEAD else start, played, t)
        cards = CHANCE_AHEAD if far == AHEAD else 0
        most = MAX_AHEAD if far == AHEAD else 1 + MAX_FOLLOWED if far == TO_ITS_END else 0
        play_ahead(played[t], action, seat, all_see_alike, cards, most)
        observe(played[t], seat, seen[t])


class AheadWriter:
    """Writes rows of decisions at tables on a GPU, for which it waits.

    Attributes:
        width: bytes of a row.
    """

    def __init__(self, game: Game, tables: GpuBatchEnv) -> None:
        """Find the columns of a game's rows."""
        rules = game.rules
        self.game, self.tables = game, tables
        self._wide = torch.from_numpy(wide_entries(rules)).to(tables.device)
        self._size = total(move_fields(rules))
        self.width = row_size(self._size + len(self._wide))

    def mark_moves(self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [n, A] int8, not zero for each move that has a row: KEPT with further flags.

        Args:
            states: [n, itemsize] uint8.
            baseline: [n] the moves of `greedy`, which represent their afterstates.
            mask: [n, A] int8, legal moves.
        """
        tables, rules = self.tables, self.game.rules
        kept = torch.zeros_like(mask, memory_format=torch.contiguous_format)
        followed, reached = torch.zeros((2, *mask.shape), dtype=torch.int64, device=mask.device).view(torch.uint64)
        pairs = mask.nonzero().contiguous()
        number = min(len(pairs), MOVES_PER_LAUNCH)
        played, seen = states.new_empty((number, states.shape[1])), self._observations(number)
        workspace = FollowWorkspace(played, seen, rules.OBS_SIZE, self.game.all_see_alike)
        for part in torch.split(pairs, MOVES_PER_LAUNCH):
            tables.run(follow_pairs, len(part), states, part, workspace, followed, kept, bot=GREEDY)
        tables.run(merge_followed, len(mask), baseline, followed, reached, kept)
        return kept

    def write(
        self, states: torch.Tensor, baseline: torch.Tensor, kept: torch.Tensor, pairs: torch.Tensor, rows: torch.Tensor
    ) -> None:
        """Write the rows [R, width] int8 of pairs [R, 2], which are the places of what is `kept`."""
        numbers = (kept != 0).sum(dim=1)
        for part, into in zip(torch.split(pairs, ROWS_PER_LAUNCH), torch.split(rows, ROWS_PER_LAUNCH)):
            decision, action = part.unbind(1)
            decisions, place = torch.unique_consecutive(decision, return_inverse=True)
            before, worlds = self._draw(states, torch.stack([decisions, numbers[decisions]], dim=1))
            marks = kept[decision, action]
            far = torch.where(numbers[decision] > 1, AHEAD, NOWHERE).masked_fill(marks & ENDS_DEAL != 0, TO_ITS_END)
            sums = self._sum_ahead(worlds, torch.stack([place, action, far], dim=1))
            same = (sums == NUM_AHEAD * before.short()[place]).all(dim=1)
            self._finish(sums, same, marks, action, action == baseline[decision], into)

    def _draw(self, states: torch.Tensor, decisions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return observations [n, D] and worlds of decisions: see `draw_ahead`."""
        number, size = len(decisions), self.game.rules.OBS_SIZE
        before = self._observations(number)
        keys = torch.zeros(number, dtype=torch.uint64, device=states.device)
        worlds = states.new_empty((number * STATES_PER_DECISION, states.shape[1]))
        self.tables.run(draw_ahead, number, states, decisions, size, before, keys, worlds)
        return before[:, :size], worlds

    def _sum_ahead(self, worlds: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Return [R, D] int16, sums of what is seen after moves over the worlds: see `look_ahead`."""
        number, size = len(moves), self.game.rules.OBS_SIZE
        played = worlds.new_empty((number * NUM_AHEAD, worlds.shape[1]))
        seen = torch.empty((number * NUM_AHEAD, size), dtype=torch.int8, device=worlds.device)
        self.tables.run(look_ahead, len(played), worlds, moves, played, seen, self.game.all_see_alike, bot=GREEDY)
        sums = seen.new_zeros((number, size), dtype=torch.int16)
        for world in seen.view(number, NUM_AHEAD, size).unbind(1):
            sums += world
        return sums

    def _finish(
        self, sums: torch.Tensor, same: torch.Tensor, marks: torch.Tensor, action: torch.Tensor,
        is_baseline: torch.Tensor, rows: torch.Tensor,
    ) -> None:  # fmt: skip
        """Write rows: sums of what is seen, which may be the `same` [R] as before, and what is known of the move."""
        start, flags = self.game.rules.OBS_SIZE, self._size - NUM_FLAGS
        wide = sums[:, self._wide]
        means = wide.div(NUM_AHEAD, rounding_mode="floor")
        sums[:, self._wide] = means
        rows.zero_()
        rows[:, :start] = sums
        rows[:, self._size : self._size + len(self._wide)] = wide - NUM_AHEAD * means
        known = marks & MOVES_AGAIN != 0, marks & ENDS_DEAL != 0, is_baseline
        rows[:, flags : self._size] = torch.stack(known, dim=1)
        changes = torch.stack([*known, ~same]).any(dim=0)  # no row is without
        rows.scatter_(1, start + action[:, None], ((marks & REVEALS != 0) | ~changes)[:, None].to(torch.int8))

    def _observations(self, number: int) -> torch.Tensor:
        """Return zeros for observations, which are hashed by words."""
        size = -(-self.game.rules.OBS_SIZE // 8) * 8
        return torch.zeros((number, size), dtype=torch.int8, device=self.tables.device)
