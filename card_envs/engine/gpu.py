"""Thousands of tables in GPU memory: the loops of `BatchEnv`, one thread per table, on torch CUDA tensors.

docs/gpu.md says what has run on a GPU, and what is tested without one. Under CUDA's simulator
(`NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1`) the same class runs on CPU tensors, slowly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numba import config, cuda
from numpy.typing import ArrayLike, NDArray

from card_envs.compiling import specialize, specialize_bot
from card_envs.engine import kernels
from card_envs.engine.batch import MAX_DECISIONS, _new_states
from card_envs.engine.buffers import (
    SEEN,
    Fixed,
    buffer_kinds,
    check_bool,
    check_int,
    checked_states,
    known_keys,
    out_shapes,
    slice_at,
    with_padding,
)
from card_envs.engine.kernels import bot_playout, random_playout, step_rows
from card_envs.engine.legality import IllegalMove, draw_legal, find_legal, illegal_move, num_words, unpack_mask
from card_envs.game import Game, Int8s, UInt64s, observe_all

SIMULATED = bool(config.ENABLE_CUDASIM)
THREADS = 128  # per block
STEP_BUFFERS = (SEEN, "seat", "rewards", "done")  # buffers, as kernels take them


def _step_or_refuse(
    first: int, last: int, states: Any, actions: Any, rows: Int8s, obs_size: int, num_actions: int,
    legal_bits: UInt64s, seat: Int8s, rewards: Any, done: Any, refused: Any, refused_actions: Any, skip_forced: bool,
) -> None:  # fmt: skip
    """Do `step_rows` where the action is legal; mark other tables as `refused`, unchanged from then on."""
    for i in range(first, last):
        if refused[i] == 0:
            illegal = step_rows(
                i, i + 1, states, actions, rows, obs_size, num_actions, legal_bits, seat, rewards, done, skip_forced
            )
            if illegal < 0:
                continue
            refused[i] = True
            refused_actions[i] = actions[i]
        done[i] = False
        for s in range(rewards.shape[1]):
            rewards[i, s] = 0


def _observe_from(first: int, last: int, states: Any, seat: int, full: Int8s) -> None:
    """Write the full state of each table, relative to `seat`, or to the seat to move (-1)."""
    for i in range(first, last):
        observe_all(states[i], states[i].seat if seat < 0 else seat, full[i])


def _count_random_playout(first: int, last: int, states: Any, streams: UInt64s, decisions: int, ended: Any) -> None:
    """Do `random_playout`, but add the number of ended episodes to `ended` [B]: a kernel returns nothing."""
    for i in range(first, last):
        ended[i] += random_playout(i, i + 1, states, streams, decisions)


def _count_bot_playout(first: int, last: int, states: Any, decisions: int, ended: Any) -> None:
    """Do `bot_playout`, but add the number of ended episodes to `ended` [B]."""
    for i in range(first, last):
        ended[i] += bot_playout(i, i + 1, states, decisions)


class GpuBatchEnv(Fixed):
    """`BatchEnv` on one GPU: the same tables, deals and streams for the same seed, in torch tensors.

    Kernels run asynchronously on torch's current stream; only methods that say so wait for them. So `step` does not
    raise for an illegal action; `check` does. Tensors are allocated once and written in place. `obs`, `mask` and
    `rewards` are stored column by column: entry k of all tables is contiguous, so that the threads of a warp write
    adjacent bytes. With `out`, kernels write into tensors of the caller instead: see `BatchEnv`.

    Attributes:
        obs: [B, D] int8, as of `BatchEnv`; so are the next four.
        mask: [B, A] int8.
        seat: [B] int8.
        rewards: [B, S] float32.
        done: [B] bool.
        device: where all tensors are.
    """

    def __init__(
        self,
        game: Game,
        num_tables: int,
        seed: int = 0,
        *,
        options: dict[str, Any] | None = None,
        tables: ArrayLike | None = None,
        skip_forced: bool = False,
        out: Mapping[str, torch.Tensor] | None = None,
        device: str | torch.device = "cuda",
        **more: Any,
    ) -> None:
        """Deal every table; for the arguments see `BatchEnv`.

        Args:
            game, num_tables, seed, options, tables, skip_forced, more: as for `BatchEnv`.
            out: contiguous tensors on the device for some of `seen`, `seat`, `rewards` and `done`; `seen` is
                [T, B, at least D + A].
            device: a CUDA device.

        Raises:
            ValueError: an argument is wrong, there is no such GPU, or numba-cuda is missing.
        """
        states, keys = _new_states(game, num_tables, seed, options, more, tables)
        self.device = self._usable(device)
        self.game = game
        self.num_tables = len(states)
        self.skip_forced = check_bool(skip_forced, "skip_forced")
        rules, number = game.rules, self.num_tables
        self._states = torch.from_numpy(states.view(np.uint8)).to(self.device)
        self._legal = self.columns(num_words(rules.NUM_ACTIONS), torch.int64)  # bits of uint64; decides legality
        self._refused = torch.zeros(number, dtype=torch.bool, device=self.device)
        self._refused_actions = torch.zeros(number, dtype=torch.int64, device=self.device)
        self._is_observed = False
        self._out = self._check_out(out)
        buffers = {name: self._new_buffer(name) for name in STEP_BUFFERS if name not in self._out} | self._out
        seen, start = buffers[SEEN], rules.OBS_SIZE
        self.obs, self.mask = seen[..., :start], seen[..., start : start + rules.NUM_ACTIONS]
        self.seat, self.rewards, self.done = (buffers[name] for name in STEP_BUFFERS[1:])
        # Arguments of kernels, wrapped once: each takes about 50 microseconds.
        self._records = kernel_array(self._states, rules.STATE)
        self._bits = kernel_array(self._legal, np.dtype(np.uint64))
        self._refusals = kernel_array(self._refused), kernel_array(self._refused_actions)
        self._steps = [self._arguments(buffers, t) for t in range(len(next(iter(self._out.values()), "1")))]
        self._step = specialize(_step_or_refuse, game, target="cuda")
        self._draw = specialize(draw_legal, target="cuda")
        own_keys = torch.from_numpy(keys).to(self.device)
        self._run(specialize(kernels.reset_tables, game, target="cuda"), self._records, kernel_array(own_keys))
        self.observe(0 if self._out else None)

    def _new_buffer(self, name: str) -> torch.Tensor:
        """Return a tensor that kernels write by column."""
        (_, *size), dtype = buffer_kinds(self.game, self.num_tables)[name]
        buffer = self.columns(size[0] if size else 1, getattr(torch, np.dtype(dtype).name))
        return buffer if size else buffer[:, 0]

    def _check_out(self, out: Mapping[str, torch.Tensor] | None) -> dict[str, torch.Tensor]:
        """Return the tensors of `out`, checked for kernels, which check nothing. Raises ValueError."""
        kinds = buffer_kinds(self.game, self.num_tables)
        tensors = known_keys(out, STEP_BUFFERS, "out")
        for name, shape in out_shapes(tensors, kinds, torch.Tensor).items():
            self._check(f"out: {name}", tensors[name], getattr(torch, np.dtype(kinds[name][1]).name), shape)
            if not tensors[name].is_contiguous():
                raise ValueError(f"out: {name}: expected a contiguous tensor")
        return tensors

    def _arguments(self, buffers: Mapping[str, torch.Tensor], t: int) -> tuple[Any, ...]:
        """Return the arguments of a step that writes to [t]."""
        now = {name: buffer[t] if name in self._out else buffer for name, buffer in buffers.items()}
        rows, *others = (kernel_array(now[name]) for name in STEP_BUFFERS)
        return (rows, self.game.rules.OBS_SIZE, self.game.rules.NUM_ACTIONS, self._bits, *others)

    def _into(self, t: int | None) -> tuple[Any, ...]:
        """Return the arguments of a step that writes to [t]. Raises ValueError."""
        return slice_at(self._steps, bool(self._out), t)

    def columns(self, size: int, dtype: torch.dtype = torch.int8) -> torch.Tensor:
        """Return a new zero tensor [B, size] with the memory layout of `obs`."""
        return torch.zeros((size, self.num_tables), dtype=dtype, device=self.device).t()

    @property
    def streams(self) -> torch.Tensor:
        """[B] int64, a view of the States: bit patterns of the keys of the current episodes."""
        offset: int = self.game.rules.STATE.fields["rng"][1]  # type: ignore[index]
        return self._states.view(torch.int64).view(self.num_tables, -1)[:, offset // 8]

    @property
    def state_bytes(self) -> torch.Tensor:
        """[B, itemsize] uint8, a view of the States."""
        return self._states.view(self.num_tables, -1)

    def observe(self, t: int | None = None) -> None:
        """Write `obs`, `mask` and `seat`; call it after a playout.

        Args:
            t: time step to write to, with `out`.

        Raises:
            ValueError: `t` is out of range.
        """
        *places, seat, _, _ = self._into(t)
        self._run(specialize(kernels.observe_rows, self.game, target="cuda"), self._records, *places, seat)
        self._is_observed = True

    def step(self, actions: torch.Tensor, t: int | None = None) -> None:
        """Play one action at every table and write all buffers; an ended episode is followed by the next one.

        A table with an illegal action is left unchanged from then on, without rewards, until `check` reports it.

        Args:
            actions: [B] int64 on this device, each legal under `mask`.
            t: time step to write to, with `out`.

        Raises:
            ValueError: `actions` is not such a tensor, or `t` is out of range.
            IllegalMove: after a playout without `observe`.
        """
        self._check_observed()
        kernel_actions = self._kernel_input("actions", actions, torch.int64)
        self._run(self._step, self._records, kernel_actions, *self._into(t), *self._refusals, self.skip_forced)

    def check(self) -> None:
        """Wait for the GPU and report illegal actions; refused tables can be stepped again afterwards.

        Raises:
            IllegalMove: names the first refused table and its action.
        """
        refused = self._refused.nonzero()
        if not len(refused):
            return
        table = int(refused[0])
        self._refused.zero_()
        seat = self.read_states(table, table + 1)["seat"][0]
        mask = unpack_mask(self._legal[table].cpu().numpy().view(np.uint64), self.game.rules.NUM_ACTIONS)
        raise illegal_move(self.game, int(self._refused_actions[table]), mask, f"seat {seat} at table {table}")

    def are_legal(self, actions: torch.Tensor) -> torch.Tensor:
        """Return [B] bool, which of these actions, int64 [B], `step` would accept, whatever `mask` holds."""
        allowed = torch.zeros_like(self._refused)
        inputs = self._kernel_input("actions", actions, torch.int64), kernel_array(allowed)
        self._run(specialize(find_legal, target="cuda"), self._bits, self.game.rules.NUM_ACTIONS, *inputs)
        return allowed

    def random_actions(self, streams: torch.Tensor, actions: torch.Tensor) -> None:
        """Draw a legal action uniformly for each table into `actions` [B] int64; advance `streams` [B] uint64.

        Raises:
            ValueError: not such tensors.
            IllegalMove: after a playout without `observe`: the legal actions are not known.
        """
        self._check_observed()
        self._run(
            self._draw, self._bits, self.game.rules.NUM_ACTIONS, self._kernel_input("streams", streams, torch.uint64),
            self._kernel_input("actions", actions, torch.int64),
        )  # fmt: skip

    def bot_actions(self, bot: str, actions: torch.Tensor) -> None:
        """Write the actions of the scripted player `trivial` or `greedy` into `actions` [B] int64."""
        kernel = specialize_bot(kernels.bot_actions, self.game, bot, "cuda")
        self._run(kernel, self._records, self._kernel_input("actions", actions, torch.int64))

    def observe_all(self, full: torch.Tensor, seat: int | None = None) -> None:
        """Write the full states into `full` [B, at least FULL_SIZE] int8: for critics.

        Args:
            full: written to.
            seat: the seat that they are relative to; None: the seat to move.
        """
        viewer = -1 if seat is None else check_int(seat, 0, self.game.rules.NUM_SEATS - 1, "seat")
        size = with_padding((self.game.rules.FULL_SIZE,), full)
        kernel_full = self._kernel_input("full", full, torch.int8, *size)
        self._run(specialize(_observe_from, self.game, target="cuda"), self._records, viewer, kernel_full)

    def random_playout(self, streams: torch.Tensor, decisions: int) -> int:
        """Play `decisions` random moves at each table without observing; wait, and return how many episodes ended."""
        kernel_streams = self._kernel_input("streams", streams, torch.uint64)
        return self._playout(specialize(_count_random_playout, self.game, target="cuda"), decisions, kernel_streams)

    def bot_playout(self, bot: str, decisions: int) -> int:
        """Play `decisions` moves of a scripted player at each table; return how many episodes ended."""
        return self._playout(specialize_bot(_count_bot_playout, self.game, bot, "cuda"), decisions)

    def read_states(self, first: int = 0, last: int | None = None) -> NDArray[Any]:
        """Wait, and return copies [n] of the States of the tables first <= i < last, hidden cards included."""
        size = self.game.rules.STATE.itemsize
        last = self.num_tables if last is None else last
        return self._states[first * size : last * size].cpu().numpy().view(self.game.rules.STATE).copy()

    def write_states(self, states: NDArray[Any]) -> None:
        """Set all tables to these States [B], which are trusted, and observe, with `out` at [0].

        Raises:
            ValueError: another number of States.
        """
        states = checked_states(self.game, states)
        if len(states) != self.num_tables:
            raise ValueError(f"states: expected {self.num_tables}, got {len(states)}")
        self._states.copy_(torch.from_numpy(states.view(np.uint8)))
        self.observe(0 if self._out else None)

    def _check_observed(self) -> None:
        if not self._is_observed:
            raise IllegalMove(f"{self.game.name}: no move is known to be legal: call observe() first")

    def _playout(self, kernel: Any, decisions: int, *arguments: Any) -> int:
        decisions = check_int(decisions, 0, MAX_DECISIONS, "decisions")
        self._is_observed = False
        ended = torch.zeros_like(self._refused_actions)
        self._run(kernel, self._records, *arguments, decisions, kernel_array(ended))
        return int(ended.sum())

    def _kernel_input(self, name: str, tensor: Any, dtype: torch.dtype, *size: int) -> Any:
        """Return a tensor [B, size] of the caller, checked for a kernel, which checks nothing. Raises ValueError."""
        self._check(name, tensor, dtype, (self.num_tables, *size))
        return kernel_array(tensor)

    def _check(self, name: str, tensor: Any, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
        """Raise ValueError for anything but a tensor of that type and shape on this device."""
        fits = isinstance(tensor, torch.Tensor) and tensor.shape == shape and tensor.dtype == dtype
        if not fits or tensor.device != self.device:
            got = type(tensor).__name__
            if isinstance(tensor, torch.Tensor):
                got = f"{tensor.dtype} {tuple(tensor.shape)} on {tensor.device}"
            raise ValueError(f"{name}: expected a tensor of {dtype} {shape} on {self.device}, got {got}")

    def _usable(self, device: str | torch.device) -> torch.device:
        return torch.device("cpu") if SIMULATED else usable(device)

    def launch(self, kernel: Any, number: int, *arguments: Any) -> None:
        """Launch a specialized kernel with that many threads, on torch's current stream; none for no threads."""
        if not number:
            return
        blocks = -(-number // THREADS)
        if SIMULATED:
            kernel[blocks, THREADS](number, *map(_for_simulator, arguments))
        else:
            with torch.cuda.device(self.device):
                stream = _numba_stream(torch.cuda.current_stream().cuda_stream, self.device)
                kernel[blocks, THREADS, stream](number, *arguments)

    def run(self, loop: Any, number: int, *arguments: Any, bot: str = "") -> None:
        """Run a loop, specialized for the game, with a thread for each of `number` rows.

        Args:
            loop: `loop(first, last, *arguments)`, in plain Python.
            number: how many rows.
            arguments: tensors on this device, of which those of uint8 hold States [n, itemsize], and numbers.
            bot: function of the game's `bot.py` that replaces `bot_move`.
        """
        kernel = specialize(loop, self.game, bot, target="cuda")
        self.launch(kernel, number, *map(self._argument, arguments))

    def _argument(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return value._make(map(self._argument, value)) if hasattr(value, "_make") else value
        if not isinstance(value, torch.Tensor):
            return value
        return (
            kernel_array(value.flatten(), self.game.rules.STATE) if value.dtype == torch.uint8 else kernel_array(value)
        )

    def parts(self, rows: torch.Tensor, most: int) -> tuple[Sequence[torch.Tensor], int]:
        """Return parts of [R] rows for `run`, one after the other, and how many workspaces the rows of a part need."""
        return torch.split(rows, most), min(len(rows), most)

    def _run(self, kernel: Any, *arguments: Any) -> None:
        """Launch a kernel with one thread per table."""
        self.launch(kernel, self.num_tables, *arguments)

    def __reduce__(self) -> Any:
        raise TypeError("GpuBatchEnv can't be pickled: it is in the GPU's memory; `read_states` copies its tables")


def usable(device: str | torch.device) -> torch.device:
    """Return a CUDA device with its index. Raises ValueError, naming what is missing, if it can't be used."""
    parsed: torch.device | None = None
    with suppress(RuntimeError):  # no such kind
        parsed = torch.device(device)
    if parsed is None or parsed.type != "cuda":
        raise ValueError(f"device: expected 'cuda' or 'cuda:0', 'cuda:1', …, got {str(device)!r}")
    if not torch.cuda.is_available() or (parsed.index or 0) >= torch.cuda.device_count():
        number = torch.cuda.device_count() if torch.cuda.is_available() else "no"
        raise ValueError(f"device = {str(device)!r}: torch {torch.__version__} finds {number} GPU here")
    try:
        import numba_cuda  # noqa: F401
    except ModuleNotFoundError:
        raise ValueError(
            f"device = {str(device)!r} needs numba-cuda: pip install 'card_envs[gpu]', or [gpu12] for CUDA 12"
        ) from None
    return torch.device("cuda", torch.cuda.current_device() if parsed.index is None else parsed.index)


def _for_simulator(argument: Any) -> Any:
    """Return an array as the simulator's own, which it does not copy: arguments may be the same memory."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    return FakeCUDAArray(argument) if isinstance(argument, np.ndarray) else argument


@lru_cache(64)
def _numba_stream(handle: int, device: torch.device) -> Any:
    """Return Numba's handle for a torch stream."""
    return cuda.external_stream(handle)


def kernel_array(tensor: torch.Tensor, dtype: np.dtype[Any] | None = None) -> Any:
    """Return a tensor's memory as kernels take it, reinterpreted as another dtype if one is given."""
    if tensor.device.type == "cpu":  # in the simulator
        return tensor.numpy() if dtype is None else tensor.numpy().view(dtype)
    kind = np.dtype(str(tensor.dtype).removeprefix("torch."))
    strides = tuple(stride * tensor.element_size() for stride in tensor.stride())
    return _device_array(tensor.data_ptr(), tuple(tensor.shape), strides, kind, dtype or kind, tensor.device.index)


@lru_cache(4096)
def _device_array(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], kind: np.dtype[Any], dtype: np.dtype[Any], gpu: int
) -> Any:
    """Return Numba's description of device memory that it does not own; building one takes longer than a launch."""
    interface = {"shape": shape, "strides": strides, "typestr": kind.str, "data": (pointer, False), "version": 3}
    with torch.cuda.device(gpu):
        return cuda.from_cuda_array_interface(interface, sync=False).view(dtype)
