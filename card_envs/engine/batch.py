"""Thousands of tables at once in preallocated NumPy buffers."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from card_envs.engine import kernels
from card_envs.engine.compile import bind
from card_envs.engine.legality import WORD, find_illegal, illegal_move, unpacked, whole_numbers, words
from card_envs.engine.rng import table_keys
from card_envs.game import Game

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Handing work to threads costs about 50 microseconds; below this many tables for each it does not pay.
MIN_TABLES_A_THREAD = 4096


class BatchEnv:
    """Tables of one game, stepped together; table i depends on the seed and its number alone.

    All buffers are allocated once and written in place (copy what must last; `torch.from_numpy` shares them):

    Attributes:
        obs: [B, D] int8, what the seat to move may know.
        mask: [B, A] int8, its legal actions.
        seat: [B] int8, the seat to move.
        rewards: [B, S] float32, of the last step.
        done: [B] bool, whether the last step ended an episode; the table has been dealt anew.
        states: [B] records of the game's State, hidden cards included.
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
        num_threads: int = 1,
    ) -> None:
        """Deal every table.

        Args:
            game: from `card_envs.get_game`.
            num_tables: B, at least 1.
            seed: of all tables.
            options: of the game, as for its environment.
            tables: [B] numbers of the tables, for their streams (default 0 .. B-1); equal numbers get equal deals.
            skip_forced: play decisions with one legal action without asking; rewards are summed up to the next
                decision that is asked, and a step ends at most one episode.
            num_threads: used where the batch is large enough for them to pay; results are the same.
        """
        if num_tables < 1 or num_threads < 1:
            raise ValueError(f"num_tables and num_threads: expected at least 1, got {num_tables} and {num_threads}")
        rules = game.rules
        self.game = game
        self.num_tables = num_tables
        self.num_threads = num_threads
        self.skip_forced = skip_forced
        numbers = np.arange(num_tables) if tables is None else np.asarray(tables)
        if numbers.shape != (num_tables,):
            raise ValueError(f"tables: expected {num_tables} numbers, got shape {numbers.shape}")
        self.states = np.zeros(num_tables, rules.STATE)
        self.states[:] = rules.new_state(game.validated(options or {}))
        self.obs = np.zeros((num_tables, rules.OBS_SIZE), np.int8)
        self.mask = np.zeros((num_tables, rules.NUM_ACTIONS), np.int8)
        self.seat = np.zeros(num_tables, np.int8)
        self._legal = np.zeros((num_tables, words(rules.NUM_ACTIONS)), np.uint64)  # what `step` believes
        self.rewards = np.zeros((num_tables, rules.NUM_SEATS), np.float32)
        self.done = np.zeros(num_tables, np.bool_)
        self._threads: tuple[int, ThreadPoolExecutor] | None = None
        self._step = bind(kernels.step_legal_tables, game)
        self._run(bind(kernels.reset_tables, game), self.states, table_keys(seed, numbers))
        self.look()

    def look(self) -> None:
        """Write `obs`, `mask` and `seat` anew, after `states` were set from outside."""
        self._run(bind(kernels.look_tables, self.game), self.states, self.obs, self.mask, self.seat)
        self._run(bind(kernels.note_tables), self.mask, self._legal)

    def step(self, actions: NDArray[Any]) -> None:
        """Play one action at every table and write all buffers; ended episodes are followed by the next.

        Args:
            actions: [B] whole numbers, each legal under `mask`.

        Raises:
            IllegalMove: naming the first table with an action that its mask forbids; no table has moved then.
        """
        actions = whole_numbers(actions, self.num_tables)
        buffers = self.obs, self.mask, self._legal, self.seat, self.rewards, self.done
        if self._num_ranges() == 1:
            illegal = self._step(0, self.num_tables, self.states, actions, *buffers, self.skip_forced)
        else:  # no range may move before all are known to be legal
            found = self._run(bind(find_illegal), self._legal, self.game.rules.NUM_ACTIONS, actions)
            illegal = next((table for table in found if table >= 0), -1)
            if illegal < 0:
                self._run(bind(kernels.step_tables, self.game), self.states, actions, *buffers, self.skip_forced)
        if illegal >= 0:
            who = f"seat {self.seat[illegal]} at table {illegal}"
            mask = unpacked(self._legal[illegal], self.game.rules.NUM_ACTIONS)
            raise illegal_move(self.game, int(actions[illegal]), mask, who)

    def are_legal(self, actions: NDArray[Any]) -> NDArray[np.bool_]:
        """[B] bool, which of these actions `step` would take, whatever was written into `mask`."""
        actions = whole_numbers(actions, self.num_tables)
        num_actions = self.game.rules.NUM_ACTIONS
        within = (actions >= 0) & (actions < num_actions)
        number = np.where(within, actions, 0)
        start = np.maximum(np.minimum(number // WORD * WORD, num_actions - WORD), 0)
        bits = self._legal[np.arange(self.num_tables), number // WORD] >> (number - start).astype(np.uint64)
        return within & ((bits & np.uint64(1)) != 0)

    def random_actions(self, streams: NDArray[np.uint64], actions: NDArray[np.int64]) -> None:
        """Write a uniformly drawn legal action for each table into `actions` [B]; `streams` [B] move on."""
        self._run(bind(kernels.random_actions, self.game), self.states, streams, actions)

    def bot_actions(self, bot: str, actions: NDArray[np.int64]) -> None:
        """Write the move of the game's scripted player `trivial` or `greedy` into `actions` [B]."""
        self._run(bind(kernels.bot_actions, self.game, bot), self.states, actions)

    def observe_all(self, full: NDArray[np.int8]) -> None:
        """Write the full state seen from the seat to move into `full` [B, FULL_SIZE], for critics."""
        self._run(bind(kernels.observe_all_tables, self.game), self.states, self.seat, full)

    def random_playout(self, streams: NDArray[np.uint64], decisions: int) -> int:
        """Play that many random moves at each table, without looking; returns how many episodes ended."""
        return sum(self._run(bind(kernels.random_playout, self.game), self.states, streams, decisions))

    def bot_playout(self, bot: str, decisions: int) -> int:
        """Play that many moves of a scripted player at each table, without looking; returns the episodes ended."""
        return sum(self._run(bind(kernels.bot_playout, self.game, bot), self.states, decisions))

    def _run(
        self,
        loop: Callable[Concatenate[int, int, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> list[Result]:
        """Run a loop over all tables, on threads where they pay; returns what it returned for each range."""
        threads = self._num_ranges()
        if threads == 1:
            return [loop(0, self.num_tables, *arguments, **named)]
        bounds = [self.num_tables * i // threads for i in range(threads + 1)]
        pool = self._pool()
        first = pool.submit(loop, 0, bounds[1], *arguments, **named)  # alone first: it may have to compile
        if not getattr(loop, "signatures", None):
            first.result()
        rest = [pool.submit(loop, bounds[i], bounds[i + 1], *arguments, **named) for i in range(1, threads)]
        return [future.result() for future in (first, *rest)]

    def _num_ranges(self) -> int:
        """Into how many ranges of tables a loop is divided."""
        return max(1, min(self.num_threads, self.num_tables // MIN_TABLES_A_THREAD))

    def _pool(self) -> ThreadPoolExecutor:
        # Threads do not survive a fork, so a forked child makes its own.
        if self._threads is None or self._threads[0] != os.getpid():
            self._threads = os.getpid(), ThreadPoolExecutor(self.num_threads, "card_envs")
        return self._threads[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_threads": None, "_step": None}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved)
        self._step = bind(kernels.step_legal_tables, self.game)
