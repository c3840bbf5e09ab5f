"""The episodes under way at the tables of a run, as the keys of their deals and the moves made in them.

That is what checkpoints hold of the tables. Compiled code believes a State, so none is taken from a file: the moves are
played again by the rules, and whatever a file says, only positions come out that can arise in play.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine import _kernels as kernels
from card_envs.engine._legality import words
from card_envs.engine.batch import BatchEnv
from card_envs.game import Int64s, UInt64s

from .checkpoint import Arrays

START_LENGTH = 64


class Episodes:
    """The moves at each table of a batch since its episode began."""

    def __init__(self, env: BatchEnv, keys: UInt64s) -> None:
        """Follow a batch whose first episodes have just been dealt.

        Args:
            env: the batch; with `skip_forced`, moves that it makes by itself are not noted.
            keys: [B] that they were dealt from, as `reset_tables` takes them.
        """
        self.env = env
        self._dealt_from = keys
        self._keys: UInt64s = env.states["rng"].copy()  # of the episodes under way; the next are dealt from them
        self._lengths = np.zeros(env.num_tables, np.int64)
        kind = np.min_scalar_type(env.game.rules.NUM_ACTIONS - 1)
        self._moves = np.zeros((START_LENGTH, env.num_tables), kind)  # [longest, B]

    def note(self, actions: Int64s) -> None:
        """Remember what has just been played at all tables; ended episodes are forgotten."""
        if self._lengths.max() == len(self._moves):
            self._moves = np.concatenate([self._moves, np.zeros_like(self._moves)])
        self._moves[self._lengths, np.arange(len(actions))] = actions
        self._lengths += 1
        done = self.env.done
        if done.any():
            self._lengths[done] = 0
            self._dealt_from[done] = self._keys[done]
            self._keys[done] = self.env.states["rng"][done]

    def memory(self) -> Arrays:
        """Return copies: `dealt_from` [B], `lengths` [B], and the `moves` of one table after the other."""
        rows = [self._moves[:length, table] for table, length in enumerate(self._lengths)]
        return {
            "dealt_from": self._dealt_from.copy(),
            "lengths": self._lengths.copy(),
            "moves": np.concatenate(rows),
        }

    def restore(self, arrays: Arrays) -> None:
        """Set the tables to the positions that these episodes led to.

        Args:
            arrays: from the `memory` of a batch of as many tables under the same options.

        Raises:
            ValueError: they are no such arrays, or not all moves are legal.
        """
        env, expected = self.env, self.memory()
        if set(arrays) != set(expected):
            raise ValueError(f"episodes: expected arrays {', '.join(expected)}; got {', '.join(arrays) or 'none'}")
        for name, array in arrays.items():
            own = expected[name]
            if array.dtype != own.dtype or array.ndim != 1 or (name != "moves" and len(array) != len(own)):
                wanted = "any number" if name == "moves" else len(own)
                raise ValueError(f"{name}: expected {wanted} of {own.dtype}, got {array.dtype} of shape {array.shape}")
        dealt_from, lengths, moves = arrays["dealt_from"], arrays["lengths"], arrays["moves"]
        if (lengths < 0).any() or (lengths > len(moves)).any() or lengths.sum() != len(moves):
            raise ValueError(f"lengths: expected lengths of episodes that sum to the {len(moves)} moves there are")
        starts = np.cumsum(lengths) - lengths
        self._play_again(dealt_from, lengths, starts, moves)
        self._dealt_from, self._lengths, self._keys = dealt_from.copy(), lengths.copy(), env.states["rng"].copy()
        self._moves = np.zeros((max(START_LENGTH, int(lengths.max())), len(lengths)), moves.dtype)
        for table, (start, length) in enumerate(zip(starts, lengths)):
            self._moves[:length, table] = moves[start : start + length]
        env.observe()

    def _play_again(self, dealt_from: UInt64s, lengths: Int64s, starts: Int64s, moves: NDArray[Any]) -> None:
        """Play the moves by the rules, the longest episodes first, and put the positions into the batch."""
        env, num_tables = self.env, self.env.num_tables
        order = np.argsort(-lengths, kind="stable")
        lengths, starts = lengths[order], starts[order]
        states = env.states.copy()
        obs, mask = np.zeros_like(env.obs), np.zeros_like(env.mask)
        legal = np.zeros((num_tables, words(mask.shape[1])), np.uint64)
        seat, rewards, done = np.zeros_like(env.seat), np.zeros_like(env.rewards), np.zeros_like(env.done)
        specialize(kernels.reset_tables, env.game)(0, num_tables, states, dealt_from[order])
        specialize(kernels.observe_tables, env.game)(0, num_tables, states, obs, mask, seat)
        specialize(kernels.write_legal_bits)(0, num_tables, mask, legal)
        step = specialize(kernels.step_legal_tables, env.game)
        for k in range(int(lengths.max())):
            n = int((lengths > k).sum())
            actions = moves[starts[:n] + k].astype(np.int64)
            wrong = step(0, n, states, actions, obs, mask, legal, seat, rewards, done, env.skip_forced)
            if wrong < 0 and done[:n].any():
                wrong = int(done[:n].argmax())
            if wrong >= 0:
                raise ValueError(f"moves: number {k} at table {order[wrong]} is illegal, or ends the episode")
        env.states[order] = states
