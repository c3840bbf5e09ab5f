"""What moves change, as networks of moves read it.

On the CPU the rows of a rollout are found once and stay sparse. On a GPU they are dense, a thread to each legal move,
and written again whenever they are read: the States that they follow from take a fraction of their memory. A thread
writes what is seen after its move, not what the move changes: the first layer is linear, and what was seen before is in
the rollout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine._buffers import row_size
from card_envs.engine._dealing import draw_world
from card_envs.game import Game, Int64s, Rules, legal, observe, play, reveals, total
from card_envs.opponents.networks._afterstates import (
    NUM_FLAGS,
    NUM_WORLDS,
    PLAYER,
    Afterstates,
    AfterstateWorkspace,
    afterstates,
    draw_lookahead_worlds,
    follow_action,
    joined,
    load_decision,
    merge_moves,
    move_fields,
    new_afterstate_workspace,
    play_move,
    write_entry,
    write_followed,
)
from card_envs.opponents.networks._sparse import SparseRows

from .tables import copy_words

if TYPE_CHECKING:  # it needs CUDA
    from card_envs.engine.gpu import GpuBatchEnv

AT_ONCE = 1 << 17  # moves whose rows are written by one launch, each with a State, or a workspace of some 10 KB
AGREED_AT_ONCE = 1 << 14  # likewise of moves that reveal a card, each with a workspace
Selection: TypeAlias = torch.Tensor | slice  # of N decisions: numbers [n], or a stretch


class Moves(NamedTuple):
    """The moves of n decisions that have a row, R in all.

    Attributes:
        decision: [R] which of the n each is of; ascending.
        action: [R].
        is_baseline: [R] bool, whether `greedy` would play it, where that is shown.
        changes: rows of `move_fields`: sparse ones and [R] their numbers; or [R, W], zero from M on: float32, or int8
            with the observation after the move instead of its changes.
    """

    decision: torch.Tensor
    action: torch.Tensor
    is_baseline: torch.Tensor
    changes: torch.Tensor | tuple[SparseRows, torch.Tensor]


class MoveSource(Protocol):
    """What the moves of N decisions change."""

    def of(self, rows: Selection) -> Moves:
        """Return the moves of some of the decisions."""
        ...

    def shown(self) -> torch.Tensor:
        """Return [N, A] int8, 1 for each move with a row."""
        ...


class MoveReading(NamedTuple):
    """What the networks at some tables read about moves.

    Attributes:
        lookahead: what `greedy` makes of them, else what they lead to at once.
        shows_baseline: which of them `greedy` would play.
    """

    lookahead: bool
    shows_baseline: bool


class HostMoves:
    """Rows that lie in memory.

    Attributes:
        after: of all N decisions.
    """

    def __init__(self, after: Afterstates, rules: Rules) -> None:
        """Take rows of `move_fields`, whose last entry marks the baseline action."""
        self.after = after
        self._size = total(move_fields(rules))
        self._num_actions = rules.NUM_ACTIONS

    def of(self, rows: Selection) -> Moves:
        first, action, sparse = self.after
        numbers = np.arange(len(first) - 1)[rows] if isinstance(rows, slice) else rows.numpy()
        moves, decision = moves_of(first, numbers)
        last = sparse.entry[sparse.starts[moves + 1] - 1]  # the baseline's entry comes last
        found = decision, action[moves], last == self._size - 1, moves
        decisions, actions, is_baseline, own = map(torch.from_numpy, found)
        return Moves(decisions, actions, is_baseline, (sparse, own))

    def shown(self) -> torch.Tensor:
        return torch.from_numpy(self.after.shown(self._num_actions))


class HostRecorder:
    """The moves of a rollout's decisions at tables on the CPU."""

    def __init__(self, game: Game, reading: MoveReading, num_steps: int, tables: Any) -> None:
        """Begin a rollout."""
        self.game = game
        self.reading = reading
        self.tables = tables
        self.steps: list[Afterstates] = []

    def step(self, decides: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> HostMoves:
        """Return what moves change now, of all B tables, but with moves where a network `decides` [B] alone."""
        states, decided = self.tables.env.states, decides.numpy().nonzero()[0]
        found = self._found(states, decided, baseline)
        counts = np.zeros(len(states) + 1, np.int64)
        counts[decided + 1] = np.diff(found.first)
        self.steps.append(found._replace(first=np.cumsum(counts)))
        return HostMoves(self.steps[-1], self.game.rules)

    def moves_at(self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> HostMoves:
        """Return what moves change at other States [n, itemsize], which are not recorded."""
        records = states.numpy().reshape(-1).view(self.game.rules.STATE)
        return HostMoves(self._found(records, np.arange(len(records)), baseline), self.game.rules)

    def _found(self, states: NDArray[Any], decided: Int64s, baseline: torch.Tensor) -> Afterstates:
        shown = baseline.numpy() if self.reading.shows_baseline else np.full_like(baseline.numpy(), -1)
        return afterstates(self.game, states, decided, shown, self.reading.lookahead)

    def all(self, baseline: torch.Tensor, mask: torch.Tensor) -> HostMoves:
        """Return what moves change, of all decisions so far."""
        return HostMoves(joined(self.steps), self.game.rules)


def moves_of(first: Int64s, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Return [R] the numbers of the moves of some decisions, and [R] the place of each one's decision in `rows`."""
    counts = first[rows + 1] - first[rows]
    ends = np.cumsum(counts)
    moves = np.repeat(first[rows] - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)
    return moves, np.repeat(np.arange(len(rows)), counts)


# On a GPU: workspaces have one more dimension in front, a workspace for each thread


def set_entry(entry: int, value: np.float32, row: Any, found: int) -> int:
    """Set an entry of a dense row: takes the place of `write_entry`."""
    row[entry] = value
    return found + 1


def own_workspace(all_of_them: AfterstateWorkspace, r: int) -> AfterstateWorkspace:
    """Return the workspace of thread r."""
    w = all_of_them
    return AfterstateWorkspace(
        w.scale, w.all_see_alike, w.worlds[r], w.before[r], w.after[r], w.agreed[r], w.legal_now[r], w.legal_after[r],
        w.legal_there[r], w.single[r], w.key[r], w.sums[r], w.followed[r], w.reached[r], w.kept[r],
    )  # fmt: skip


def write_after(
    first: int, last: int, states: Any, words: Any, pairs: Any, baseline: Any, sizes: tuple[int, int], played: Any,
    played_words: Any, rows: Any, reveal: Any,
) -> None:  # fmt: skip
    """Write what actions lead to into int8 rows [R, W]: those of pairs [R, 2] of a decision and an action of it.

    Rows have the entries of `move_fields`, but instead of changes the observation after the action. Row r works in
    `played` [K] at r % K; `words` and `played_words` are the same memory as the States. Actions that reveal a card are
    only marked in `reveal` [R]; `write_agreed` writes those.
    """
    for r in range(first, last):
        k, i, action = r % played.shape[0], pairs[r, 0], pairs[r, 1]
        reveal[r] = reveals(states[i], action)
        if reveal[r] == 0:
            copy_words(words[i], played_words[k])
            play(played[k], action)
            seat, after = states[i].seat, played[k]
            observe(after, seat, rows[r, : sizes[0]])
            moves_again = not after.needs_deal and after.seat == seat
            if moves_again:
                legal(after, rows[r, sizes[0] + sizes[1] : sizes[0] + 2 * sizes[1]])
            write_rest(action, moves_again, after.needs_deal, action == baseline[i], sizes, rows[r])


def write_agreed(
    first: int, last: int, states: Any, pairs: Any, baseline: Any, sizes: tuple[int, int], numbers: Any,
    workspaces: AfterstateWorkspace, rows: Any,
) -> None:  # fmt: skip
    """Write the rows of these numbers, of actions that reveal a card: see `write_after`.

    Where worlds differ, the observation stays as before.
    """
    for n in range(first, last):
        workspace, r = own_workspace(workspaces, n), numbers[n]
        i, action = pairs[r, 0], pairs[r, 1]
        load_decision(states[i], workspace)
        for earlier in range(action):
            if workspace.legal_now[earlier] and reveals(states[i], earlier):  # it has taken its worlds from the stream
                for _ in range(NUM_WORLDS):
                    draw_world(workspace.worlds[0], states[i].seat, workspace.key)
        moves_again, ends_deal = play_move(states[i], action, NUM_WORLDS, workspace)
        for j in range(sizes[0]):
            rows[r, j] = workspace.agreed[j]
        if moves_again:
            for a in range(sizes[1]):
                rows[r, sizes[0] + sizes[1] + a] = workspace.legal_after[a]
        write_rest(action, moves_again, ends_deal, action == baseline[i], sizes, rows[r])


def write_rest(
    action: int, moves_again: bool, ends_deal: bool, is_baseline: bool, sizes: tuple[int, int], row: Any
) -> None:  # fmt: skip
    """Write what follows the observation in a row; the legal actions after the move are there, if it moves again."""
    start, flags = sizes[0], sizes[0] + 2 * sizes[1]
    for a in range(sizes[1]):
        row[start + a] = a == action
        if not moves_again:
            row[start + sizes[1] + a] = 0
    row[flags], row[flags + 1], row[flags + 2] = moves_again, ends_deal, is_baseline
    for j in range(flags + NUM_FLAGS, row.shape[0]):
        row[j] = 0


def follow_pairs(
    first: int, last: int, states: Any, pairs: Any, workspaces: AfterstateWorkspace, followed: Any, kept: Any
) -> None:  # fmt: skip
    """Write where actions lead, at their places in `followed` and `kept` [n, A]."""
    for r in range(first, last):
        i, action = pairs[r, 0], pairs[r, 1]
        followed[i, action], kept[i, action] = follow_action(states[i], action, own_workspace(workspaces, r))


def merge_followed(first: int, last: int, baseline: Any, followed: Any, reached: Any, kept: Any) -> None:
    """Keep one action for each afterstate of a decision."""
    for i in range(first, last):
        merge_moves(baseline[i], followed[i], reached[i], kept[i])


def write_dense_lookahead(
    first: int, last: int, states: Any, pairs: Any, baseline: Any, workspaces: AfterstateWorkspace, kept: Any, rows: Any
) -> None:  # fmt: skip
    """Write where kept actions lead: see `write_dense`."""
    for r in range(first, last):
        workspace = own_workspace(workspaces, r)
        i, action = pairs[r, 0], pairs[r, 1]
        load_decision(states[i], workspace)
        number = 0
        for a in range(kept.shape[1]):
            number += kept[i, a] != 0
        if number > 1:
            draw_lookahead_worlds(states[i].seat, workspace)
        write_followed(states[i], action, kept[i, action], number, action == baseline[i], workspace, rows[r], 0)


class DeviceMoves:
    """Rows that are written whenever they are read; the first step of each reading waits for the GPU."""

    def __init__(self, recorder: DeviceRecorder, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor):
        """Take N decisions: bytes of their States [N, itemsize], baseline actions [N], and legal actions [N, A]."""
        self._recorder = recorder
        self._states, self._baseline, self._mask = states, baseline, mask

    def of(self, rows: Selection) -> Moves:
        recorder = self._recorder
        pairs, changes = recorder.written(*self._taken(rows))
        decision, action = pairs.unbind(1)
        return Moves(decision, action, changes[:, recorder.size - 1] != 0, changes)

    def shown(self) -> torch.Tensor:
        return self._recorder.shown(*self._taken(slice(None)))

    def _taken(self, rows: Selection) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return States, baseline and legal actions of some decisions, as `DeviceRecorder.written` takes them."""
        mask, states, baseline = (taken(tensor, rows) for tensor in (self._mask, self._states, self._baseline))
        if not self._recorder.reading.shows_baseline:
            baseline = torch.full_like(baseline, -1)
        return states.flatten(), baseline, mask


class DeviceRecorder:
    """The moves of a rollout's decisions at tables on a GPU, whose States it keeps."""

    def __init__(self, game: Game, reading: MoveReading, num_steps: int, tables: GpuBatchEnv) -> None:
        """Begin a rollout."""
        from card_envs.engine.gpu import kernel_array

        self.game = game
        self.reading = reading
        self.tables = tables
        self._array = kernel_array
        self._states = tables.state_bytes.new_zeros((num_steps, *tables.state_bytes.shape))
        self._step = 0
        self.size = total(move_fields(game.rules))
        self._at_once = min(AT_ONCE, num_steps * tables.num_tables * game.rules.NUM_ACTIONS)
        self._num_workspaces = self._at_once if reading.lookahead else min(self._at_once, AGREED_AT_ONCE)
        self._workspaces = self._new_workspaces()

    def step(self, decides: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> DeviceMoves:
        """Return what moves change now, of all B tables, from their baseline and legal actions."""
        states = self._states[self._step]
        states.copy_(self.tables.state_bytes)
        self._step += 1
        return DeviceMoves(self, states, baseline, mask)

    def moves_at(self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> DeviceMoves:
        """Return what moves change at other States [n, itemsize], which are not recorded."""
        return DeviceMoves(self, states, baseline, mask)

    def all(self, baseline: torch.Tensor, mask: torch.Tensor) -> DeviceMoves:
        """Return what moves change, of all T * B decisions, from their baseline and legal actions [T, B, …]."""
        return DeviceMoves(self, self._states.flatten(0, 1), baseline.flatten(), mask.flatten(0, 1))

    def written(
        self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return [R, 2] decisions with the actions that have a row, and the rows [R, W]: see `Moves`."""
        if not self.reading.lookahead:
            return self._written_after(states, baseline, mask)
        records, baselines = self._array(states, self.game.rules.STATE), self._array(baseline)
        kept = self._kept(records, baselines, mask.nonzero().contiguous(), mask)
        pairs = kept.nonzero().contiguous()
        rows = torch.zeros((len(pairs), row_size(self.size)), device=mask.device)
        functions = ((write_entry, set_entry),)
        kernel = specialize(write_dense_lookahead, self.game, PLAYER, target="cuda", functions=functions)
        for some, into in zip(torch.split(pairs, self._at_once), torch.split(rows, self._at_once)):
            given = records, self._array(some), baselines, self._workspaces, self._array(kept), self._array(into)
            self.tables.launch(kernel, len(some), *given)
        return pairs, rows

    def _written_after(
        self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the pairs and int8 rows of `write_after`, in two stages: few actions reveal a card."""
        tables, rules, array = self.tables, self.game.rules, self._array
        pairs = mask.nonzero().contiguous()
        rows = torch.empty((len(pairs), row_size(self.size)), dtype=torch.int8, device=mask.device)
        reveal = torch.empty(len(pairs), dtype=torch.int8, device=mask.device)
        size, sizes = rules.STATE.itemsize, (rules.OBS_SIZE, rules.NUM_ACTIONS)
        states = states.view(-1, size)
        played = states.new_empty((min(len(pairs), self._at_once), size))
        words = states.view(torch.int64), played.view(torch.int64)
        for some, into, marks in zip(*(torch.split(tensor, self._at_once) for tensor in (pairs, rows, reveal))):
            common = states, words[0], some, baseline, sizes, played, words[1]
            tables.run(write_after, len(some), *common, into, marks)
        agreed = specialize(write_agreed, self.game, target="cuda")
        given = array(states.flatten(), rules.STATE), array(pairs), array(baseline), sizes
        for numbers in torch.split(reveal.nonzero()[:, 0].contiguous(), self._num_workspaces):
            tables.launch(agreed, len(numbers), *given, array(numbers), self._workspaces, array(rows))
        return pairs, rows

    def shown(self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [n, A] int8, 1 for each action that has a row."""
        if not self.reading.lookahead:
            return mask.contiguous()
        records, baselines = self._array(states, self.game.rules.STATE), self._array(baseline)
        return (self._kept(records, baselines, mask.nonzero().contiguous(), mask) != 0).to(torch.int8)

    def _kept(self, records: Any, baselines: Any, pairs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [n, A] int8, what `AfterstateWorkspace.kept` says of each action."""
        kept = torch.zeros_like(mask, memory_format=torch.contiguous_format)
        followed, reached = torch.zeros((2, *mask.shape), dtype=torch.int64, device=mask.device)
        hashes = self._array(followed, np.dtype(np.uint64)), self._array(reached, np.dtype(np.uint64))
        follow = specialize(follow_pairs, self.game, PLAYER, target="cuda")
        for some in torch.split(pairs, self._at_once):
            given = records, self._array(some), self._workspaces, hashes[0], self._array(kept)
            self.tables.launch(follow, len(some), *given)
        merge = specialize(merge_followed, target="cuda")
        self.tables.launch(merge, len(mask), baselines, *hashes, self._array(kept))
        return kept

    def _new_workspaces(self) -> AfterstateWorkspace:
        """Return workspaces for as many threads as a launch may have."""
        one = new_afterstate_workspace(self.game)

        def stacked(array: NDArray[Any]) -> Any:
            memory = torch.zeros((self._num_workspaces, array.nbytes), dtype=torch.uint8, device=self.tables.device)
            self._memory.append(memory)
            return self._array(memory, array.dtype)

        self._memory = [torch.from_numpy(one.scale).to(self.tables.device)]
        arrays = map(stacked, one[2:])
        return AfterstateWorkspace(self._array(self._memory[0]), one.all_see_alike, *arrays)


def taken(tensor: torch.Tensor, rows: Selection) -> torch.Tensor:
    """Return some rows of a tensor; of bytes, eight at a time where rows are whole words."""
    if isinstance(rows, slice):
        return tensor[rows]
    size = tensor.shape[1:].numel()
    if tensor.element_size() == 1 and tensor.is_contiguous() and size % 8 == tensor.storage_offset() % 8 == 0:
        return tensor.view(torch.int64).index_select(0, rows).view(tensor.dtype)
    return tensor.index_select(0, rows)
