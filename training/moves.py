"""What moves change, as networks of moves read it.

On the CPU the rows of a rollout are found once and stay sparse. On a GPU they are dense, and show what is seen after a
move, not what it changes: the first layer is linear, and what was seen before is in the rollout. Rows without lookahead
are written again whenever they are read: the States that they follow from take a fraction of their memory. Those with
lookahead cost hundreds of `greedy`'s moves, and are kept where memory allows: see `training.ahead`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from card_envs.compiling import specialize
from card_envs.engine._buffers import row_size
from card_envs.engine._dealing import draw_world
from card_envs.game import Game, Int64s, Rules, legal, observe, play, reveals, total
from card_envs.opponents.networks._afterstates import (
    NUM_FLAGS,
    NUM_WORLDS,
    Afterstates,
    AfterstateWorkspace,
    afterstates,
    joined,
    load_decision,
    move_fields,
    new_afterstate_workspace,
    play_move,
)
from card_envs.opponents.networks._sparse import SparseRows

from .ahead import AheadWriter
from .tables import copy_words

if TYPE_CHECKING:  # it needs CUDA
    from card_envs.engine.gpu import GpuBatchEnv

AT_ONCE = 1 << 17  # moves whose rows are written by one launch, each with a State
AGREED_AT_ONCE = 1 << 14  # likewise of moves that reveal a card, each with a workspace of some 10 KB
KEPT_SHARE = 0.5  # of a GPU's free memory, for rows that are kept
Selection: TypeAlias = torch.Tensor | slice  # of N decisions: numbers [n], or a stretch


class Moves(NamedTuple):
    """The moves of n decisions that have a row, R in all.

    Attributes:
        decision: [R] which of the n each is of; ascending.
        action: [R].
        is_baseline: [R] bool, whether `greedy` would play it, where that is shown.
        changes: rows of `move_fields`: sparse ones and [R] their numbers; or [R, W] int8, with the observation after
            the move instead of its changes, zero from M on; with lookahead, sums of observations: see `ahead_columns`.
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
        moves, decision = (tensor.numpy() for tensor in moves_of(torch.from_numpy(first), rows))
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


def moves_of(first: torch.Tensor, rows: Selection) -> tuple[torch.Tensor, torch.Tensor]:
    """Return [R] the numbers of the moves of some decisions, and [R] the place of each one's decision among those.

    Decision i has the moves first[i] to first[i + 1].
    """
    numbers = torch.arange(len(first) - 1, device=first.device)[rows] if isinstance(rows, slice) else rows
    counts = first[numbers + 1] - first[numbers]
    decision = torch.repeat_interleave(counts)
    before = first[numbers] - (counts.cumsum(0) - counts)  # the number of a decision's first move, less its place here
    return before[decision] + torch.arange(len(decision), device=first.device), decision


# On a GPU: workspaces have one more dimension in front, a workspace for each thread


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


class DeviceMoves:
    """Rows that are written whenever they are read; the first step of each reading waits for the GPU."""

    def __init__(self, recorder: DeviceRecorder, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor):
        """Take N decisions: bytes of their States [N, itemsize], baseline actions [N], and legal actions [N, A]."""
        self._recorder = recorder
        self._states, self._baseline, self._mask = states, baseline, mask

    def of(self, rows: Selection) -> Moves:
        pairs, changes = self._recorder.written(*self._taken(rows))
        return self._recorder.moves(pairs[:, 0], pairs[:, 1], changes)

    def shown(self) -> torch.Tensor:
        return self._recorder.shown(*self._taken(slice(None)))

    def _taken(self, rows: Selection) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return States, baseline and legal actions of some decisions, as `DeviceRecorder.written` takes them."""
        states, baseline, mask = (taken(tensor, rows) for tensor in (self._states, self._baseline, self._mask))
        return states, self._recorder.shown_baseline(baseline), mask


class KeptMoves:
    """Rows that lie in a GPU's memory; reading them waits for it."""

    def __init__(self, recorder: DeviceRecorder, counts: torch.Tensor, actions: torch.Tensor, rows: torch.Tensor):
        """Take N decisions: how many moves each has [N], and actions [R] and rows [R, W] of all of them."""
        self._recorder = recorder
        self._first = functional.pad(counts.cumsum(0), (1, 0))
        self._actions, self._rows = actions, rows

    def of(self, rows: Selection) -> Moves:
        moves, decision = moves_of(self._first, rows)
        return self._recorder.moves(decision, self._actions[moves], taken(self._rows, moves))

    def shown(self) -> torch.Tensor:
        _, decision = moves_of(self._first, slice(None))
        shown = self._rows.new_zeros((len(self._first) - 1, self._recorder.game.rules.NUM_ACTIONS))
        shown[decision, self._actions] = 1
        return shown


class DeviceRecorder:
    """The moves of a rollout's decisions at tables on a GPU, whose States it keeps; with lookahead, rows as well."""

    def __init__(
        self, game: Game, reading: MoveReading, num_steps: int, tables: GpuBatchEnv, most_kept: int | None = None
    ) -> None:
        """Begin a rollout.

        Args:
            game: what is played.
            reading: what the networks read.
            num_steps: of the rollout.
            tables: where it is played.
            most_kept: bytes of rows that may be kept for the update; None: as many as memory allows.
        """
        from card_envs.engine.gpu import kernel_array

        self.game = game
        self.reading = reading
        self.tables = tables
        self._array = kernel_array
        self._states = tables.state_bytes.new_zeros((num_steps, *tables.state_bytes.shape))
        self._step = 0
        self._size = total(move_fields(game.rules))
        most = num_steps * tables.num_tables * game.rules.NUM_ACTIONS
        if reading.lookahead:
            self._ahead = AheadWriter(game, tables)
            width = self._ahead.width
            fit = (memory_for_rows(tables.device, most * width) if most_kept is None else most_kept) // width
            self._rows: torch.Tensor | None = torch.empty(
                (min(fit, most), width), dtype=torch.int8, device=tables.device
            )
            self._used = 0
            self._counts: list[torch.Tensor] = []
            self._actions: list[torch.Tensor] = []
        else:
            self._at_once = min(AT_ONCE, most)
            self._num_workspaces = min(AT_ONCE, AGREED_AT_ONCE, most)
            self._workspaces = self._new_workspaces()

    def step(self, decides: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> DeviceMoves | KeptMoves:
        """Return what moves change now, of all B tables, from their baseline and legal actions.

        With lookahead, those where a network `decides` [B] alone have moves.
        """
        states = self._states[self._step]
        states.copy_(self.tables.state_bytes)
        self._step += 1
        if not self.reading.lookahead:
            return DeviceMoves(self, states, baseline, mask)
        pairs, rows = self._written_ahead(states, self.shown_baseline(baseline), mask * decides[:, None], keep=True)
        counts = torch.zeros_like(baseline).index_add_(0, pairs[:, 0], torch.ones_like(pairs[:, 0]))
        self._counts.append(counts)
        self._actions.append(pairs[:, 1].clone())
        return KeptMoves(self, counts, self._actions[-1], rows)

    def moves_at(self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> DeviceMoves:
        """Return what moves change at other States [n, itemsize], which are not recorded."""
        return DeviceMoves(self, states, baseline, mask)

    def all(self, baseline: torch.Tensor, mask: torch.Tensor) -> DeviceMoves | KeptMoves:
        """Return what moves change, of all T * B decisions, from their baseline and legal actions [T, B, …]."""
        if self.reading.lookahead and self._rows is not None:
            return KeptMoves(self, torch.cat(self._counts), torch.cat(self._actions), self._rows[: self._used])
        return DeviceMoves(self, self._states.flatten(0, 1), baseline.flatten(), mask.flatten(0, 1))

    def moves(self, decision: torch.Tensor, action: torch.Tensor, rows: torch.Tensor) -> Moves:
        """Return moves with their rows."""
        return Moves(decision, action, rows[:, self._size - 1] != 0, rows)

    def shown_baseline(self, baseline: torch.Tensor) -> torch.Tensor:
        """Return [n] the baseline actions that the networks are shown; -1 for none."""
        return baseline if self.reading.shows_baseline else torch.full_like(baseline, -1)

    def written(
        self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return [R, 2] decisions with the actions that have a row, and the rows [R, W]: see `Moves`."""
        if self.reading.lookahead:
            return self._written_ahead(states, baseline, mask)
        return self._written_after(states.flatten(), baseline, mask)

    def _written_ahead(
        self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor, keep: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the pairs and rows of `AheadWriter`, among those to `keep` as long as all of these fit."""
        kept = self._ahead.kept(states, baseline, mask)
        pairs = kept.nonzero().contiguous()
        if keep and self._rows is not None and self._used + len(pairs) > len(self._rows):
            self._rows = None  # they are all written again
        if keep and self._rows is not None:
            rows = self._rows[self._used : self._used + len(pairs)]
            self._used += len(pairs)
        else:
            rows = torch.empty((len(pairs), self._ahead.width), dtype=torch.int8, device=mask.device)
        self._ahead.write(states, baseline, kept, pairs, rows)
        return pairs, rows

    def _written_after(
        self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the pairs and int8 rows of `write_after`, in two stages: few actions reveal a card."""
        tables, rules, array = self.tables, self.game.rules, self._array
        pairs = mask.nonzero().contiguous()
        rows = torch.empty((len(pairs), row_size(self._size)), dtype=torch.int8, device=mask.device)
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
        return (self._ahead.kept(states, baseline, mask) != 0).to(torch.int8)

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


def memory_for_rows(device: torch.device, most: int) -> int:
    """Return how many bytes rows may take, of the `most` that they could; in the simulator all."""
    if device.type == "cpu":
        return most
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min(most, int(KEPT_SHARE * (torch.cuda.mem_get_info(device)[0] + cached)))


def taken(tensor: torch.Tensor, rows: Selection) -> torch.Tensor:
    """Return some rows of a tensor; of bytes, eight at a time where rows are whole words."""
    if isinstance(rows, slice):
        return tensor[rows]
    size = tensor.shape[1:].numel()
    if tensor.element_size() == 1 and tensor.is_contiguous() and size % 8 == tensor.storage_offset() % 8 == 0:
        return tensor.view(torch.int64).index_select(0, rows).view(tensor.dtype)
    return tensor.index_select(0, rows)
