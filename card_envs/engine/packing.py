"""Observations and masks as bits, in a sixth to two fifths of the bytes: for replay buffers and transfers to a GPU.

A packed row is a row of bits, lowest bit of each byte first, zero-padded to a multiple of 8 bytes.

- Mask: one bit for each action.
- Observation: bit planes, lowest first. The packed value of an entry is its distance from the lowest value of its
  field; it has a bit only in the planes that its field's range needs. Fields and ranges are listed in the game's
  RULES.md.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from card_envs._files import short_repr
from card_envs.compiling import specialize
from card_envs.engine._buffers import Fixed, check_game, for_loops
from card_envs.engine._legality import WORD, words
from card_envs.engine.sets import set_bits, some_bits
from card_envs.game import Field, Game, Int8s, Int64s, UInt64s, total

Rows = TypeVar("Rows")  # an array or a torch tensor
ALL = np.uint64((1 << WORD) - 1)


class Packing(Fixed):
    """Packs and unpacks the observations and masks of a game.

    `unpack` and `unpack_mask` take arrays and torch tensors on any device, with any leading axes, and return the same
    kind; `pack` and `pack_mask` take arrays. All raise ValueError for rows of another kind. To pack the observations
    and masks of a batch takes about as long as its step, 0.8 to 1.4 times (`python -m benchmarks.packing`).

    Attributes:
        obs_bytes: bytes of a packed observation.
        mask_bytes: bytes of a packed mask.
    """

    def __init__(self, game: Game) -> None:
        check_game(game)
        self.game = game
        self._obs = _Planes(game.rules.OBS_FIELDS)
        self._mask = _Planes((Field("legal", game.rules.NUM_ACTIONS, 1),))
        self.obs_bytes, self.mask_bytes = self._obs.num_bytes, self._mask.num_bytes

    def unpack(self, rows: Rows) -> Rows:
        """Return observations [..., D] int8 from packed ones [..., obs_bytes] uint8."""
        return self._obs.unpacked(rows)

    def unpack_mask(self, rows: Rows) -> Rows:
        """Return masks [..., A] int8 from packed ones [..., mask_bytes] uint8."""
        return self._mask.unpacked(rows)

    def pack(self, obs: Int8s) -> NDArray[np.uint8]:
        """Return observations [..., D] int8, within the ranges of their fields, as [..., obs_bytes] uint8."""
        return self._obs.packed(obs)

    def pack_mask(self, mask: Int8s) -> NDArray[np.uint8]:
        """Return masks [..., A] int8 as [..., mask_bytes] uint8."""
        return self._mask.packed(mask)


class _Planes:
    """The bit planes of some fields."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.size = total(fields)
        starts = [0, *accumulate(field.size for field in fields)]
        self.lows = np.array(
            [(start + i, field.low) for start, field in zip(starts, fields) if field.low for i in range(field.size)],
            np.int64,
        ).reshape(-1, 2)
        runs: list[tuple[int, int, int]] = []
        for plane in range(8):
            end = -1
            for start, field in zip(starts, fields):
                if plane == 0 or (field.high - field.low) >> plane:
                    for entry in range(start, start + field.size):
                        if entry == end and runs[-1][1] < WORD:
                            runs[-1] = (runs[-1][0], runs[-1][1] + 1, 1 << plane)
                        else:
                            runs.append((entry, 1, 1 << plane))
                        end = entry + 1
        self.runs = np.array(runs, np.int64)
        self.num_bytes = 8 * words(int(self.runs[:, 1].sum()))

    def packed(self, rows: Int8s) -> NDArray[np.uint8]:
        rows = _checked(rows, np.ndarray, "int8", self.size)
        found = np.zeros((*rows.shape[:-1], self.num_bytes), np.uint8)
        flat, flat_found = rows.reshape(-1, self.size), found.reshape(-1, self.num_bytes)
        flat = for_loops(np.ascontiguousarray(flat))
        words = flat_found.view(np.uint64)
        specialize(_pack_rows)(0, len(flat), flat, self.runs, self.lows, words, self.scratch())
        return found

    def unpacked(self, rows: Any) -> Any:
        if not isinstance(rows, np.ndarray) and hasattr(rows, "new_tensor"):
            import torch

            rows = _checked(rows, torch.Tensor, "torch.uint8", self.num_bytes)
            return torch.from_numpy(self.unpacked(rows.numpy())) if rows.device.type == "cpu" else self.on_device(rows)
        rows = _checked(rows, np.ndarray, "uint8", self.num_bytes)
        found = np.empty((*rows.shape[:-1], self.size), np.int8)
        flat = for_loops(np.ascontiguousarray(rows.reshape(-1, self.num_bytes)))
        if flat.ctypes.data % 8:
            flat = flat.copy()
        words, target = flat.view(np.uint64), found.reshape(-1, self.size)
        specialize(_unpack_rows)(0, len(flat), words, self.runs, self.lows, target, self.scratch())
        return found

    def scratch(self) -> Int8s:
        return np.empty(self.size + WORD, np.int8)

    def on_device(self, rows: Any) -> Any:
        """Do `unpacked` for a tensor on a device that compiled loops can't access."""
        import torch

        bits = (rows.unsqueeze(-1) >> rows.new_tensor(range(8)) & 1).flatten(-2)
        entries = rows.new_zeros((*rows.shape[:-1], self.size))
        at = 0
        for start, size, place in self.runs.tolist():
            entries[..., start : start + size] |= bits[..., at : at + size] * place
            at += size
        for entry, low in self.lows.tolist():
            entries[..., entry] += low % 256
        return entries.view(torch.int8)


def _checked(rows: Any, kind: Any, dtype: str, size: int) -> Any:
    """Return the rows. Raises ValueError if they are of another kind."""
    if not isinstance(rows, kind):
        got = short_repr(rows)
    elif str(rows.dtype) != dtype or tuple(rows.shape[-1:]) != (size,):
        got = f"{rows.dtype} {(*rows.shape,)}"
    else:
        return rows
    expected = f"expected {'an array' if kind is np.ndarray else 'a tensor'} of {dtype} with shape (..., {size})"
    raise ValueError(f"{expected}, got {got}")


# Loops


def _pack_rows(first: int, last: int, rows: Int8s, runs: Int64s, lows: Int64s, packed: UInt64s, entries: Int8s) -> None:
    """Pack rows.

    Args:
        rows: [N, D].
        runs: [R, 3] first entry, number of entries (at most 64) and bit of each run, in packing order.
        lows: [L, 2] entries whose lowest value is not 0, and that value.
        packed: [N, W] words, 0 so far.
        entries: [D + 64] scratch.
    """
    size = rows.shape[1]
    for i in range(first, last):
        for k in range(size):
            entries[k] = rows[i, k]
        for low in range(lows.shape[0]):
            entries[lows[low, 0]] -= lows[low, 1]
        at = 0
        for run in range(runs.shape[0]):
            count = runs[run, 1]
            bits = some_bits(entries, runs[run, 0], runs[run, 2]) & (ALL >> np.uint64(WORD - count))
            word, shift = at // WORD, at % WORD
            packed[i, word] |= bits << np.uint64(shift)
            if shift + count > WORD:
                packed[i, word + 1] |= bits >> np.uint64(WORD - shift)
            at += count


def _unpack_rows(
    first: int, last: int, packed: UInt64s, runs: Int64s, lows: Int64s, rows: Int8s, entries: Int8s
) -> None:
    """Unpack [N, W] into rows [N, D]; `entries` [D + 64] are scratch."""
    size = rows.shape[1]
    for i in range(first, last):
        entries[:] = 0
        at = 0
        for run in range(runs.shape[0]):
            count = runs[run, 1]
            word, shift = at // WORD, at % WORD
            bits = packed[i, word] >> np.uint64(shift)
            if shift + count > WORD:
                bits |= packed[i, word + 1] << np.uint64(WORD - shift)
            set_bits(entries, runs[run, 0], bits & (ALL >> np.uint64(WORD - count)), runs[run, 2])
            at += count
        for low in range(lows.shape[0]):
            entries[lows[low, 0]] += lows[low, 1]
        for k in range(size):
            rows[i, k] = entries[k]
