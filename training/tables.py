"""The tables of a rollout on any device, and the episodes under way at them.

Checkpoints hold tables as the keys of their deals and the moves made since. Compiled code believes a State, so none is
taken from a file: the moves are played again by the rules, and whatever a file says, only positions come out that can
arise in play.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine import kernels
from card_envs.engine.batch import BatchEnv
from card_envs.engine.legality import num_words
from card_envs.game import Game, Int64s, UInt64s

from .checkpoint import Arrays

if TYPE_CHECKING:  # it needs CUDA
    from card_envs.engine.gpu import GpuBatchEnv


class HostTables:
    """`BatchEnv` as tensors that share its memory; the members are those of `GpuBatchEnv`, which documents them."""

    def __init__(
        self, game: Game, num_tables: int, seed: int, out: Mapping[str, torch.Tensor] | None = None, **options: Any
    ) -> None:
        """Deal every table; for the arguments see `BatchEnv`."""
        arrays = {name: tensor.numpy() for name, tensor in (out or {}).items()}
        self.env = env = BatchEnv(game, num_tables, seed, out=arrays, **options)
        self.game = game
        self.skip_forced = env.skip_forced
        self._first = 0 if arrays else None
        self.obs, self.mask, self.seat, self.rewards, self.done = (
            torch.from_numpy(array) for array in (env.obs, env.mask, env.seat, env.rewards, env.done)
        )
        self.streams = torch.from_numpy(env.states["rng"].view(np.int64))

    @property
    def state_bytes(self) -> torch.Tensor:
        return torch.from_numpy(self.env.states.view(np.uint8)).view(len(self.env.states), -1)

    def run(self, loop: Any, number: int, *arguments: Any, bot: str = "") -> None:
        specialize(loop, self.game, bot)(0, number, *map(self._argument, arguments))

    def _argument(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return value._make(map(self._argument, value)) if hasattr(value, "_make") else value
        if not isinstance(value, torch.Tensor):
            return value
        array = value.numpy()
        return array.reshape(-1).view(self.game.rules.STATE) if array.dtype == np.uint8 else array

    def parts(self, rows: torch.Tensor, most: int) -> tuple[Sequence[torch.Tensor], int]:
        return [rows], 1

    def observe(self, t: int | None = None) -> None:
        self.env.observe(t)

    def step(self, actions: torch.Tensor, t: int | None = None) -> None:
        self.env.step(actions.numpy(), t)

    def check(self) -> None:
        """Do nothing: `step` checks at once."""

    def bot_actions(self, bot: str, actions: torch.Tensor) -> None:
        self.env.bot_actions(bot, actions.numpy())

    def observe_all(self, full: torch.Tensor, seat: int | None = None) -> None:
        if seat is None:
            self.env.observe_all(full.numpy())
            return
        states, seats = self.env.states, np.full(len(full), seat, np.int8)
        specialize(kernels.observe_all_tables, self.game)(0, len(full), states, seats, full.numpy())

    def read_states(self) -> NDArray[Any]:
        return self.env.states.copy()

    def write_states(self, states: NDArray[Any]) -> None:
        self.env.states[:] = states
        self.env.observe(self._first)


TensorTables: TypeAlias = "HostTables | GpuBatchEnv"  # B tables as tensors of one device


class EpisodeLog:
    """The moves at each table since its episode began."""

    def __init__(self, tables: TensorTables, keys: UInt64s) -> None:
        """Follow tables whose first episodes have just been dealt.

        Args:
            tables: the tables; moves that they make by themselves, with `skip_forced`, are not recorded.
            keys: [B] the keys that they were dealt from, as `reset_tables` takes them.
        """
        self.tables = tables
        device = tables.obs.device
        self._dealt_from = torch.from_numpy(keys.view(np.int64)).to(device)
        self._keys = tables.streams.clone()  # of the episodes under way; the next are dealt from them
        self._lengths = torch.zeros(len(keys), dtype=torch.int64, device=device)
        self._moves = torch.zeros((0, len(keys)), dtype=torch.int16, device=device)  # [longest, B]

    def make_room(self, steps: int) -> bool:
        """Make room for that many more moves at each table; return whether they have moved in memory. Waits."""
        missing = int(self._lengths.max()) + steps - len(self._moves)
        if missing <= 0:
            return False
        more = max(missing, len(self._moves))  # seldom: what has been captured for these addresses is lost
        self._moves = torch.cat([self._moves, self._moves.new_zeros((more, self._moves.shape[1]))])
        return True

    def record(self, actions: torch.Tensor, done: torch.Tensor) -> None:
        """Remember what has just been played at all tables [B]; episodes that are `done` [B] are forgotten."""
        streams = self.tables.streams
        self._moves.scatter_(0, self._lengths[None], actions[None].short())
        self._lengths.add_(1).masked_fill_(done, 0)
        self._dealt_from.copy_(torch.where(done, self._keys, self._dealt_from))
        self._keys.copy_(torch.where(done, streams, self._keys))

    def memory(self) -> Arrays:
        """Return copies: `dealt_from` [B], `lengths` [B], and the `moves` of one table after the other."""
        lengths = self._lengths.cpu()
        longest = int(lengths.max())
        moves = self._moves[:longest].t().cpu()[torch.arange(longest) < lengths[:, None]]
        return {
            "dealt_from": self._dealt_from.cpu().numpy().view(np.uint64).copy(),
            "lengths": lengths.numpy().copy(),
            "moves": moves.numpy().astype(np.min_scalar_type(self.tables.game.rules.NUM_ACTIONS - 1)),
        }

    def restore(self, arrays: Arrays) -> None:
        """Set the tables to the positions that these episodes led to.

        Args:
            arrays: the `memory` of as many tables under the same options.

        Raises:
            ValueError: not such arrays, or not all moves are legal; nothing was changed.
        """
        expected = self.memory()
        if set(arrays) != set(expected):
            raise ValueError(f"episodes: expected arrays {', '.join(expected)}; got {', '.join(arrays) or 'none'}")
        for name, array in arrays.items():
            dtype, number = expected[name].dtype, array.size if name == "moves" else len(expected[name])
            if array.dtype != dtype or array.shape != (number,):
                wanted = "any number" if name == "moves" else number
                raise ValueError(f"{name}: expected {wanted} of {dtype}, got {array.dtype} of shape {array.shape}")
        dealt_from, lengths, moves = arrays["dealt_from"], arrays["lengths"], arrays["moves"]
        if (lengths < 0).any() or (lengths > len(moves)).any() or lengths.sum() != len(moves):
            raise ValueError(f"lengths: expected lengths of episodes that sum to the {len(moves)} moves there are")
        self.tables.write_states(self._replay(dealt_from, lengths, moves))
        by_table = np.zeros((len(lengths), int(lengths.max())), np.int16)
        by_table[np.arange(by_table.shape[1]) < lengths[:, None]] = moves
        device = self._keys.device
        self._moves = torch.from_numpy(by_table.T.copy()).to(device)
        self._dealt_from = torch.from_numpy(dealt_from.view(np.int64).copy()).to(device)
        self._lengths, self._keys = torch.from_numpy(lengths.copy()).to(device), self.tables.streams.clone()

    def _replay(self, dealt_from: UInt64s, lengths: Int64s, moves: NDArray[Any]) -> NDArray[Any]:
        """Return the states [B] to which the rules lead by these moves; the longest episodes are played first."""
        game, number, rules = self.tables.game, len(lengths), self.tables.game.rules
        order = np.argsort(-lengths, kind="stable")
        starts, lengths = (np.cumsum(lengths) - lengths)[order], lengths[order]
        states = self.tables.read_states()
        obs, mask = np.zeros((number, rules.OBS_SIZE), np.int8), np.zeros((number, rules.NUM_ACTIONS), np.int8)
        legal = np.zeros((number, num_words(rules.NUM_ACTIONS)), np.uint64)
        seat, rewards = np.zeros(number, np.int8), np.zeros((number, rules.NUM_SEATS), np.float32)
        done = np.zeros(number, np.bool_)
        specialize(kernels.reset_tables, game)(0, number, states, dealt_from[order])
        specialize(kernels.observe_tables, game)(0, number, states, obs, mask, seat)
        specialize(kernels.write_legal_bits)(0, number, mask, legal)
        step = specialize(kernels.step_tables, game)
        for k in range(int(lengths.max())):
            n = int((lengths > k).sum())
            actions = moves[starts[:n] + k].astype(np.int64)
            wrong = step(0, n, states, actions, obs, mask, legal, seat, rewards, done, self.tables.skip_forced)
            if wrong < 0 and done[:n].any():
                wrong = int(done[:n].argmax())
            if wrong >= 0:
                raise ValueError(f"moves: number {k} at table {order[wrong]} is illegal, or ends the episode")
        return states[np.argsort(order)]
