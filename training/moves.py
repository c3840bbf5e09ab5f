"""What moves change, as networks of moves read it.

On the CPU the rows of a rollout are found once and stay sparse. On a GPU they are dense, and show what is seen after a
move, not what it changes: the first layer is linear, and what was seen before is in the rollout. Rows without lookahead
are written again whenever they are read: the States that they follow from take a fraction of their memory. Those with
lookahead cost hundreds of `greedy`'s moves, and are kept where memory allows. Kernels are in `after` and `ahead`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from card_envs.game import Game, Int64s, Rules, total
from card_envs.opponents.networks._sparse import SparseRows
from card_envs.opponents.networks.afterstates import Afterstates, afterstates, concatenate, move_fields

from .after import AfterWriter
from .ahead import AheadWriter

if TYPE_CHECKING:  # it needs CUDA
    from card_envs.engine.gpu import GpuBatchEnv

STORED_SHARE = 0.5  # of a GPU's free memory, for rows that are kept
Selection: TypeAlias = torch.Tensor | slice  # of N decisions: numbers [n], or a stretch


class Moves(NamedTuple):
    """The moves of n decisions that have a row, R in all.

    Attributes:
        decision: [R] the decision of each, below n; ascending.
        action: [R] its action.
        is_baseline: [R] bool, whether `greedy` would play it, where that is shown.
        changes: rows of `move_fields`: sparse ones and [R] their numbers; or [R, W] int8, with the observation after
            the move instead of its changes, zero from M on; with lookahead, sums of observations: see `ahead_columns`.
    """

    decision: torch.Tensor
    action: torch.Tensor
    is_baseline: torch.Tensor
    changes: torch.Tensor | tuple[SparseRows, torch.Tensor]


class MoveReading(NamedTuple):
    """What the networks at some tables read about moves.

    Attributes:
        lookahead: what `greedy` makes of them, else what they lead to at once.
        shows_baseline: whether they are shown which of them `greedy` would play.
    """

    lookahead: bool
    shows_baseline: bool


class HostMoves:
    """Rows that lie in memory.

    Attributes:
        after: the afterstates of all N decisions.
    """

    def __init__(self, after: Afterstates, rules: Rules) -> None:
        """Take rows of `move_fields`, whose last entry marks the baseline action."""
        self.after = after
        self._size = total(move_fields(rules))
        self._num_actions = rules.NUM_ACTIONS

    def of(self, rows: Selection) -> Moves:
        """Return the moves of some of the decisions."""
        first, action, sparse = self.after
        moves, decision = (tensor.numpy() for tensor in moves_of(torch.from_numpy(first), rows))
        last = sparse.entry[sparse.starts[moves + 1] - 1]  # the baseline's entry comes last
        columns = decision, action[moves], last == self._size - 1, moves
        decisions, actions, is_baseline, numbers = map(torch.from_numpy, columns)
        return Moves(decisions, actions, is_baseline, (sparse, numbers))

    def action_mask(self) -> torch.Tensor:
        """Return [N, A] int8, 1 for each move with a row."""
        return torch.from_numpy(self.after.action_mask(self._num_actions))


class HostRecorder:
    """The moves of a rollout's decisions at tables on the CPU."""

    def __init__(self, game: Game, reading: MoveReading, num_steps: int, tables: Any) -> None:
        """Begin to record a rollout."""
        self.game = game
        self.reading = reading
        self.tables = tables
        self.steps: list[Afterstates] = []

    def step(self, decides: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> HostMoves:
        """Record and return the afterstates of all B tables; only tables where a network `decides` [B] have moves."""
        states, decided = self.tables.env.states, decides.numpy().nonzero()[0]
        after = self._afterstates(states, decided, baseline)
        counts = np.zeros(len(states) + 1, np.int64)
        counts[decided + 1] = np.diff(after.first)
        self.steps.append(after._replace(first=np.cumsum(counts)))
        return HostMoves(self.steps[-1], self.game.rules)

    def moves_at(self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> HostMoves:
        """Return the afterstates of other States [n, itemsize], which are not recorded."""
        records = states.numpy().reshape(-1).view(self.game.rules.STATE)
        return HostMoves(self._afterstates(records, np.arange(len(records)), baseline), self.game.rules)

    def _afterstates(self, states: NDArray[Any], decided: Int64s, baseline: torch.Tensor) -> Afterstates:
        shown_baseline = baseline.numpy() if self.reading.shows_baseline else np.full_like(baseline.numpy(), -1)
        return afterstates(self.game, states, decided, shown_baseline, self.reading.lookahead)

    def all(self, baseline: torch.Tensor, mask: torch.Tensor) -> HostMoves:
        """Return the afterstates of all decisions so far."""
        return HostMoves(concatenate(self.steps), self.game.rules)


def moves_of(first: torch.Tensor, rows: Selection) -> tuple[torch.Tensor, torch.Tensor]:
    """Return [R] the numbers of the moves of some decisions, and [R] the place of each one's decision among those.

    Decision i has the moves first[i] to first[i + 1].
    """
    numbers = torch.arange(len(first) - 1, device=first.device)[rows] if isinstance(rows, slice) else rows
    counts = first[numbers + 1] - first[numbers]
    decision = torch.repeat_interleave(counts)
    before = first[numbers] - (counts.cumsum(0) - counts)  # the number of a decision's first move, less its place here
    return before[decision] + torch.arange(len(decision), device=first.device), decision


class DeviceMoves:
    """Rows that are written whenever they are read; the first step of each reading waits for the GPU."""

    def __init__(self, recorder: DeviceRecorder, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor):
        """Take N decisions: bytes of their States [N, itemsize], baseline actions [N], and legal actions [N, A]."""
        self._recorder = recorder
        self._states, self._baseline, self._mask = states, baseline, mask

    def of(self, rows: Selection) -> Moves:
        pairs, changes = self._recorder.write(*self._take(rows))
        return self._recorder.moves(pairs[:, 0], pairs[:, 1], changes)

    def action_mask(self) -> torch.Tensor:
        return self._recorder.action_mask(*self._take(slice(None)))

    def _take(self, rows: Selection) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return States, baseline and legal actions of some decisions, as `DeviceRecorder.write` takes them."""
        states, baseline, mask = (take(tensor, rows) for tensor in (self._states, self._baseline, self._mask))
        return states, self._recorder.shown_baseline(baseline), mask


class StoredMoves:
    """Rows that lie in a GPU's memory; reading them waits for it."""

    def __init__(self, recorder: DeviceRecorder, counts: torch.Tensor, actions: torch.Tensor, rows: torch.Tensor):
        """Take N decisions: how many moves each has [N], and actions [R] and rows [R, W] of all of them."""
        self._recorder = recorder
        self._first = functional.pad(counts.cumsum(0), (1, 0))
        self._actions, self._rows = actions, rows

    def of(self, rows: Selection) -> Moves:
        moves, decision = moves_of(self._first, rows)
        return self._recorder.moves(decision, self._actions[moves], take(self._rows, moves))

    def action_mask(self) -> torch.Tensor:
        _, decision = moves_of(self._first, slice(None))
        mask = self._rows.new_zeros((len(self._first) - 1, self._recorder.game.rules.NUM_ACTIONS))
        mask[decision, self._actions] = 1
        return mask


MoveSource: TypeAlias = HostMoves | DeviceMoves | StoredMoves  # what the moves of N decisions change


class DeviceRecorder:
    """The moves of a rollout's decisions at tables on a GPU, whose States it keeps; with lookahead, rows as well."""

    def __init__(
        self, game: Game, reading: MoveReading, num_steps: int, tables: GpuBatchEnv, most_kept: int | None = None
    ) -> None:
        """Begin to record T steps; `most_kept` bytes of rows are kept for the update, or as many as memory allows."""
        self.game = game
        self.reading = reading
        self.tables = tables
        self._states = tables.state_bytes.new_zeros((num_steps, *tables.state_bytes.shape))
        self._step = 0
        self._size = total(move_fields(game.rules))
        self._most = num_steps * tables.num_tables * game.rules.NUM_ACTIONS
        self._most_kept = most_kept
        self._writer = AheadWriter(game, tables) if reading.lookahead else AfterWriter(game, tables, self._most)
        self._rows: torch.Tensor | None = None  # the first `_used` are those of all steps so far, if they fit
        self._used = 0
        self._counts: list[torch.Tensor] = []
        self._actions: list[torch.Tensor] = []

    def step(self, decides: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> DeviceMoves | StoredMoves:
        """Record and return the afterstates of all B tables, from their baseline and legal actions.

        With lookahead, those where a network `decides` [B] alone have moves.
        """
        if self._step == 0 and self.reading.lookahead:
            self._rows = self._room()
        states = self._states[self._step]
        states.copy_(self.tables.state_bytes)
        self._step += 1
        if not self.reading.lookahead:
            return DeviceMoves(self, states, baseline, mask)
        pairs, rows = self.write(states, self.shown_baseline(baseline), mask * decides[:, None], keep=True)
        counts = torch.zeros_like(baseline).index_add_(0, pairs[:, 0], torch.ones_like(pairs[:, 0]))
        self._counts.append(counts)
        self._actions.append(pairs[:, 1].clone())
        return StoredMoves(self, counts, self._actions[-1], rows)

    def moves_at(self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> DeviceMoves:
        """Return the afterstates of other States [n, itemsize], which are not recorded."""
        return DeviceMoves(self, states, baseline, mask)

    def all(self, baseline: torch.Tensor, mask: torch.Tensor) -> DeviceMoves | StoredMoves:
        """Return the afterstates of all T * B decisions, from their baseline and legal actions [T, B, …]."""
        if self._rows is not None:
            return StoredMoves(self, torch.cat(self._counts), torch.cat(self._actions), self._rows[: self._used])
        return DeviceMoves(self, self._states.flatten(0, 1), baseline.flatten(), mask.flatten(0, 1))

    def moves(self, decision: torch.Tensor, action: torch.Tensor, rows: torch.Tensor) -> Moves:
        """Return moves, given their decisions, actions and rows."""
        return Moves(decision, action, rows[:, self._size - 1] != 0, rows)

    def shown_baseline(self, baseline: torch.Tensor) -> torch.Tensor:
        """Return [n] the baseline actions that the networks are shown; -1 for none."""
        return baseline if self.reading.shows_baseline else torch.full_like(baseline, -1)

    def write(
        self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor, keep: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return [R, 2] decisions with the actions that have a row, and the rows [R, W]: see `Moves`.

        Rows to `keep` lie side by side as long as all of them fit.
        """
        kept = self._writer.mark_moves(states, baseline, mask)
        pairs = kept.nonzero().contiguous()
        if keep and self._rows is not None and self._used + len(pairs) > len(self._rows):
            self._rows = None  # they are all written again
        if keep and self._rows is not None:
            rows = self._rows[self._used : self._used + len(pairs)]
            self._used += len(pairs)
        else:
            rows = torch.empty((len(pairs), self._writer.width), dtype=torch.int8, device=mask.device)
        self._writer.write(states, baseline, kept, pairs, rows)
        return pairs, rows

    def action_mask(self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [n, A] int8, 1 for each action that has a row."""
        return (self._writer.mark_moves(states, baseline, mask) != 0).to(torch.int8)

    def _room(self) -> torch.Tensor:
        """Return memory for as many rows as may be kept; in the simulator for all."""
        device, width = self.tables.device, self._writer.width
        most = self._most_kept
        if most is None and device.type == "cuda":
            cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
            most = int(STORED_SHARE * (torch.cuda.mem_get_info(device)[0] + cached))
        number = self._most if most is None else min(self._most, most // width)
        return torch.empty((number, width), dtype=torch.int8, device=device)


def take(tensor: torch.Tensor, rows: Selection) -> torch.Tensor:
    """Return some rows of a tensor; of bytes, eight at a time where rows are whole words."""
    if isinstance(rows, slice):
        return tensor[rows]
    size = tensor.shape[1:].numel()
    if tensor.element_size() == 1 and tensor.is_contiguous() and size % 8 == tensor.storage_offset() % 8 == 0:
        return tensor.view(torch.int64).index_select(0, rows).view(tensor.dtype)
    return tensor.index_select(0, rows)
