"""Rows of what moves lead to at once, written on a GPU.

A thread writes the row of a move; other threads, which play in drawn worlds, those of moves that reveal a card. A row
shows what is seen after the move, not what it changes: see `training.moves`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.buffers import row_size
from card_envs.engine.dealing import copy_state, draw_world
from card_envs.game import Game, legal, observe, play, reveals, total
from card_envs.opponents.networks.afterstates import (
    NUM_FLAGS,
    NUM_WORLDS,
    AfterstateWorkspace,
    load_decision,
    move_fields,
    new_afterstate_workspace,
    play_move,
)

if TYPE_CHECKING:  # it needs CUDA
    from card_envs.engine.gpu import GpuBatchEnv

ROWS_PER_LAUNCH = 1 << 17  # each with a State
OF_THE_GAME = ("scale", "all_see_alike")  # in a workspace: the same for all threads
AGREED_PER_LAUNCH = 1 << 14  # rows of moves that reveal a card, each with a workspace of some 10 KB


def workspace_of_thread(workspaces: AfterstateWorkspace, r: int) -> AfterstateWorkspace:
    """Return the workspace of thread r; all arrays but `scale` have one more dimension in front."""
    return AfterstateWorkspace(
        scale=workspaces.scale,
        all_see_alike=workspaces.all_see_alike,
        worlds=workspaces.worlds[r],
        before=workspaces.before[r],
        after=workspaces.after[r],
        agreed=workspaces.agreed[r],
        legal_now=workspaces.legal_now[r],
        legal_after=workspaces.legal_after[r],
        legal_there=workspaces.legal_there[r],
        key=workspaces.key[r],
        sums=workspaces.sums[r],
        followed=workspaces.followed[r],
        reached=workspaces.reached[r],
        kept=workspaces.kept[r],
    )


def write_after(
    first: int, last: int, states: Any, pairs: Any, sizes: tuple[int, int], played: Any, rows: Any, reveal: Any
) -> None:
    """Write what actions lead to into int8 rows [R, W]: those of pairs [R, 2] of a decision and an action of it.

    Rows have the entries of `move_fields`, but instead of changes the observation after the action. Row r works in
    `played` [K] at r % K. Actions that reveal a card are only marked in `reveal` [R]; `write_agreed` writes those.
    """
    for r in range(first, last):
        k, i, action = r % played.shape[0], pairs[r, 0], pairs[r, 1]
        reveal[r] = reveals(states[i], action)
        if reveal[r] == 0:
            copy_state(states, i, played, k)
            play(played[k], action)
            seat, after = states[i].seat, played[k]
            observe(after, seat, rows[r, : sizes[0]])
            moves_again = not after.needs_deal and after.seat == seat
            if moves_again:
                legal(after, rows[r, sizes[0] + sizes[1] : sizes[0] + 2 * sizes[1]])
            write_rest(action, moves_again, after.needs_deal, sizes, rows[r])


def write_agreed(
    first: int, last: int, states: Any, pairs: Any, sizes: tuple[int, int], numbers: Any,
    workspaces: AfterstateWorkspace, rows: Any,
) -> None:  # fmt: skip
    """Write the rows of these numbers, of actions that reveal a card: see `write_after`.

    Where worlds differ, the observation stays as before.
    """
    for n in range(first, last):
        workspace, r = workspace_of_thread(workspaces, n), numbers[n]
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
        write_rest(action, moves_again, ends_deal, sizes, rows[r])


def write_rest(action: int, moves_again: bool, ends_deal: bool, sizes: tuple[int, int], row: Any) -> None:
    """Write what follows the observation in a row, but for whether `greedy` would play the move.

    The legal actions after the move are there, if the seat moves again.
    """
    start, flags = sizes[0], sizes[0] + 2 * sizes[1]
    for a in range(sizes[1]):
        row[start + a] = a == action
        if not moves_again:
            row[start + sizes[1] + a] = 0
    row[flags], row[flags + 1] = moves_again, ends_deal
    for j in range(flags + NUM_FLAGS, row.shape[0]):
        row[j] = 0


class AfterWriter:
    """Writes rows of decisions at tables on a GPU, for which it waits.

    Attributes:
        width: bytes of a row.
    """

    def __init__(self, game: Game, tables: GpuBatchEnv, most: int) -> None:
        """Allocate workspaces; `most` is the most rows written at once."""
        from card_envs.engine.gpu import kernel_array

        self.game, self.tables = game, tables
        self.width = row_size(total(move_fields(game.rules)))
        self._array = kernel_array
        self._num_workspaces = min(AGREED_PER_LAUNCH, most)
        self._workspaces = self._new_workspaces()

    def mark_moves(self, states: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return [n, A] int8, not zero for each move that has a row: see `AheadWriter.mark_moves`."""
        return mask.contiguous()

    def write(
        self, states: torch.Tensor, baseline: torch.Tensor, kept: torch.Tensor, pairs: torch.Tensor, rows: torch.Tensor
    ) -> None:
        """Write the rows [R, width] int8 of pairs [R, 2], in two stages: few moves reveal a card."""
        tables, rules, array = self.tables, self.game.rules, self._array
        sizes = rules.OBS_SIZE, rules.NUM_ACTIONS
        reveal = torch.empty(len(pairs), dtype=torch.int8, device=rows.device)
        played = states.new_empty((min(len(pairs), ROWS_PER_LAUNCH), states.shape[1]))
        for part, into, marks in zip(*(torch.split(tensor, ROWS_PER_LAUNCH) for tensor in (pairs, rows, reveal))):
            tables.run(write_after, len(part), states, part, sizes, played, into, marks)
        agreed = specialize(write_agreed, self.game, target="cuda")
        decisions = array(states.flatten(), rules.STATE), array(pairs), sizes
        for numbers in torch.split(reveal.nonzero()[:, 0].contiguous(), self._num_workspaces):
            tables.launch(agreed, len(numbers), *decisions, array(numbers), self._workspaces, array(rows))
        decision, action = pairs.unbind(1)
        rows[:, total(move_fields(rules)) - 1] = action == baseline[decision]

    def _new_workspaces(self) -> AfterstateWorkspace:
        """Return workspaces for as many threads as a launch may have."""
        workspace = new_afterstate_workspace(self.game)

        def stack(array: NDArray[Any]) -> Any:
            memory = torch.zeros((self._num_workspaces, array.nbytes), dtype=torch.uint8, device=self.tables.device)
            self._memory.append(memory)
            return self._array(memory, array.dtype)

        self._memory = [torch.from_numpy(workspace.scale).to(self.tables.device)]
        of_threads = {name: stack(array) for name, array in workspace._asdict().items() if name not in OF_THE_GAME}
        return workspace._replace(scale=self._array(self._memory[0]), **of_threads)
