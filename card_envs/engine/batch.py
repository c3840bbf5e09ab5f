"""Thousands of tables at once in preallocated NumPy buffers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from card_envs.compiling import specialize, specialize_bot
from card_envs.engine import kernels
from card_envs.engine.buffers import (
    INT8,
    INT64,
    MAX_TABLES,
    SEEN,
    UINT64,
    Fixed,
    buffer_kinds,
    check_bool,
    check_game,
    check_int,
    check_out,
    check_seats,
    checked,
    slice_at,
    with_padding,
    zeros,
)
from card_envs.engine.legality import (
    IllegalMove,
    check_ints,
    draw_legal,
    find_illegal,
    find_legal,
    illegal_move,
    num_words,
    unpack_mask,
)
from card_envs.engine.rng import table_keys
from card_envs.game import Game

Result = TypeVar("Result")

# Handing work to a thread costs about 50 microseconds; with fewer tables per thread it does not pay.
MIN_TABLES_A_THREAD = 4096
MAX_DECISIONS = (1 << 63) - 1


def _new_states(
    game: Game,
    num_tables: int,
    seed: int,
    options: dict[str, Any] | None,
    more: dict[str, Any],
    tables: ArrayLike | None,
) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return [B] States before their first deal and the keys [B] of their streams; arguments as for `BatchEnv`."""
    check_game(game)
    num_tables = check_int(num_tables, 1, MAX_TABLES, "num_tables")
    numbers = np.arange(num_tables) if tables is None else np.asarray(tables)
    if numbers.shape != (num_tables,) or numbers.dtype.kind not in "iu" or numbers.min() < 0:
        raise ValueError(f"tables: expected {num_tables} whole numbers from 0, got {tables!r:.80}")
    states = np.zeros(num_tables, game.rules.STATE)
    options = {} if options is None else options
    states[:] = game.rules.new_state(game.validated(dict(**options, **more) if more else options))
    return states, table_keys(seed, numbers)


class BatchEnv(Fixed):
    """Tables of one game, stepped together; the stream of table i depends only on the seed and i.

    All buffers are allocated once and written in place: copy what must outlive a step; `torch.from_numpy` shares them.
    They can't be replaced. After writing to `states`, call `observe`; their contents are not checked, because compiled
    code trusts them. Use one thread at a time, as nothing here is locked; to use several cores, set `num_threads`.

    With `out`, some of the buffers are arrays of the caller with T time steps: the constructor writes to [0] and
    `step(actions, t)` to [t]. With `seen` among them, `obs` and `mask` are views of its rows: the observation, then the
    mask, then anything. A rollout is then collected without copies::

        out = {"obs": np.zeros((T + 1, B, D), np.int8), "mask": np.zeros((T + 1, B, A), np.int8)}
        env = BatchEnv(game, B, out=out)
        for t in range(T):
            env.step(choose(env.obs[t], env.mask[t]), t + 1)

    Attributes:
        obs: [B, D] int8, observation of the seat to move.
        mask: [B, A] int8, its legal actions.
        seat: [B] int8, the seat to move.
        rewards: [B, S] float32, of the last step.
        done: [B] bool, whether the last step ended an episode; the next one has already been dealt.
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
        out: Mapping[str, NDArray[Any]] | None = None,
        **more: Any,
    ) -> None:
        """Deal every table.

        Args:
            game: a game from `card_envs.get_game`.
            num_tables: B, at least 1.
            seed: one for all tables.
            options: a dict of the game's options, as for its environment. `BatchEnv(game, B, reward="win")` is the
                same as `BatchEnv(game, B, options={"reward": "win"})`.
            tables: [B] numbers that select the tables' streams (default 0 .. B-1); equal numbers get equal deals.
            skip_forced: play decisions with a single legal action automatically; rewards are summed up to the next real
                decision, and a step ends at most one episode.
            num_threads: used if the batch is large enough for them to pay; results do not depend on it.
            out: arrays to use for some of `obs`, `mask`, `seat`, `rewards` and `done`: same dtypes, shapes with [T] in
                front, C-contiguous, writable, not overlapping; or for both `obs` and `mask` `seen` [T, B, at least
                D + A] int8. A copy of this object has copies of them.
            more: further options of the game, not in `options`.
        """
        num_threads = check_int(num_threads, 1, None, "num_threads")
        states, keys = _new_states(game, num_tables, seed, options, more, tables)
        self._lay_out(game, states, check_bool(skip_forced, "skip_forced"), num_threads, out)
        self._run(specialize(kernels.reset_tables, game), self._states, keys)
        self.observe(0 if out else None)

    def _lay_out(self, game: Game, states: NDArray[Any], skip_forced: bool, num_threads: int, out: object) -> None:
        """Allocate all buffers. Users get views, so reshaping one of those in place leaves the buffer as it is."""
        rules, num_tables = game.rules, len(states)
        self.game = game
        self.num_tables = num_tables
        self.num_threads = num_threads
        self.skip_forced = skip_forced
        self.states = states.view()
        self._states = states
        self._legal = zeros((num_tables, num_words(rules.NUM_ACTIONS)), np.uint64)  # decides legality
        kinds = buffer_kinds(game, num_tables)
        self._out = check_out(out, kinds)
        self._in_rows = SEEN in self._out
        unused = ("obs", "mask") if self._in_rows else (SEEN,)
        buffers = {name: zeros(*kinds[name]) for name in kinds if name not in (*self._out, *unused)} | self._out
        self.obs, self.mask = self._seen(buffers)
        self.seat, self.rewards, self.done = (buffers[name].view() for name in ("seat", "rewards", "done"))
        self._steps = []  # the buffers of a step, for each slice of `out`
        for t in range(len(next(iter(self._out.values()), "1"))):
            now = {name: buffer[t] if name in self._out else buffer for name, buffer in buffers.items()}
            places = (now[SEEN], rules.OBS_SIZE, rules.NUM_ACTIONS) if self._in_rows else (now["obs"], now["mask"])
            self._steps.append((*places, self._legal, now["seat"], now["rewards"], now["done"]))
        self._last: int | None = None  # the slice written last
        self._num_ranges = max(1, min(num_threads, num_tables // MIN_TABLES_A_THREAD))  # ranges of tables per loop
        self._threads: tuple[int, ThreadPoolExecutor] | None = None
        # Cached: a call of `specialize` takes as long as a step of a few tables.
        self._step: Callable[..., int] = specialize(kernels.step_rows if self._in_rows else kernels.step_tables, game)
        self._draw = specialize(draw_legal)

    def _seen(self, buffers: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return views of the observations and masks."""
        if not self._in_rows:
            return buffers["obs"].view(), buffers["mask"].view()
        start, rows = self.game.rules.OBS_SIZE, buffers[SEEN]
        return rows[..., :start], rows[..., start : start + self.game.rules.NUM_ACTIONS]

    def _into(self, t: int | None) -> tuple[Any, ...]:
        """Return the buffers to write to."""
        return slice_at(self._steps, bool(self._out), t)

    def observe(self, t: int | None = None) -> None:
        """Write `obs`, `mask` and `seat`; call it after a playout or after writing to `states`.

        Args:
            t: time step to write to, with `out`.

        Raises:
            ValueError: `states` name a seat that does not exist, or `t` is out of range.
        """
        check_seats(self.game, self._states)
        *places, legal, seat, _, _ = self._into(t)
        if self._in_rows:
            self._run(specialize(kernels.observe_rows, self.game), self._states, *places, legal, seat)
        else:
            self._run(specialize(kernels.observe_tables, self.game), self._states, *places, seat)
            self._run(specialize(kernels.write_legal_bits), places[1], legal)
        self._last = t

    def step(self, actions: NDArray[Any], t: int | None = None) -> None:
        """Play one action at every table and write all buffers; an ended episode is followed by the next one.

        Args:
            actions: [B] whole numbers, each legal under `mask`.
            t: time step to write to, with `out`.

        Raises:
            IllegalMove: names the first table with an illegal action; no table was changed. Also after a playout
                without `observe`.
            ValueError: `t` is out of range; no table was changed.
        """
        actions = check_ints(actions, self.num_tables)
        buffers = self._into(t)
        if self._num_ranges == 1:
            illegal = self._step(0, self.num_tables, self._states, actions, *buffers, self.skip_forced)
        else:  # all actions must be known to be legal before any range is stepped
            # In the calling thread: the check takes a fiftieth of a step, and handing it to threads would double that.
            illegal = specialize(find_illegal)(0, self.num_tables, self._legal, self.game.rules.NUM_ACTIONS, actions)
            if illegal < 0:  # the loop of a single range: its own check is cheap, and libraries have it
                self._run(self._step, self._states, actions, *buffers, self.skip_forced)
        if illegal >= 0:
            raise self._illegal(illegal, actions)
        self._last = t

    def are_legal(self, actions: NDArray[Any]) -> NDArray[np.bool_]:
        """Return [B] bool, which of these actions `step` would accept, regardless of what was written into `mask`."""
        actions = check_ints(actions, self.num_tables)
        allowed = np.zeros(self.num_tables, np.bool_)
        self._run(specialize(find_legal), self._legal, self.game.rules.NUM_ACTIONS, actions, allowed)
        return allowed

    def random_actions(self, streams: NDArray[np.uint64], actions: NDArray[np.int64]) -> None:
        """Draw a legal action uniformly for each table and write it into `actions` [B]; advance `streams` [B].

        Raises:
            IllegalMove: after a playout without `observe`: the legal actions are not known.
        """
        streams = checked("streams", streams, (self.num_tables,), UINT64)
        actions = checked("actions", actions, (self.num_tables,), INT64)
        refused = self._run(self._draw, self._legal, self.game.rules.NUM_ACTIONS, streams, actions)
        table = max(refused)
        if table >= 0:
            raise self._illegal(table, actions)

    def _illegal(self, table: int, actions: NDArray[np.int64]) -> IllegalMove:
        """Return the error for the action at a table."""
        who = f"seat {self._states['seat'][table]} at table {table}"
        mask = unpack_mask(self._legal[table], self.game.rules.NUM_ACTIONS)
        if not mask.any():
            return IllegalMove(f"{self.game.name}: no move of {who} is known to be legal: call observe() first")
        return illegal_move(self.game, int(actions[table]), mask, who)

    def bot_actions(self, bot: str, actions: NDArray[np.int64]) -> None:
        """Write the actions of the scripted player `trivial` or `greedy` into `actions` [B]."""
        actions = checked("actions", actions, (self.num_tables,), INT64)
        self._run(specialize_bot(kernels.bot_actions, self.game, bot), self._states, actions)

    def observe_all(self, full: NDArray[np.int8]) -> None:
        """Write the full states, relative to the seats to move, into `full` [B, at least FULL_SIZE]: for critics."""
        full = checked("full", full, with_padding((self.num_tables, self.game.rules.FULL_SIZE), full), INT8)
        seat = self._states["seat"].copy()  # `seat` is public and may have been written to
        self._run(specialize(kernels.observe_all_tables, self.game), self._states, seat, full)

    def random_playout(self, streams: NDArray[np.uint64], decisions: int) -> int:
        """Play `decisions` random moves at each table without observing; return how many episodes ended."""
        streams = checked("streams", streams, (self.num_tables,), UINT64)
        decisions = check_int(decisions, 0, MAX_DECISIONS, "decisions")
        self._legal[:] = 0  # outdated: the position changed
        return sum(self._run(specialize(kernels.random_playout, self.game), self._states, streams, decisions))

    def bot_playout(self, bot: str, decisions: int) -> int:
        """Play `decisions` moves of a bot at each table without observing; return how many episodes ended."""
        decisions = check_int(decisions, 0, MAX_DECISIONS, "decisions")
        loop = specialize_bot(kernels.bot_playout, self.game, bot)
        self._legal[:] = 0  # outdated: the position changed
        return sum(self._run(loop, self._states, decisions))

    def _run(self, loop: Callable[..., Result], *arguments: Any) -> list[Result]:
        """Run a loop over all tables, on threads if they pay; return its result for each range.

        The calling thread works on the first range, and finishes it first if the loop may have to be compiled.
        """
        threads = self._num_ranges
        if threads == 1:
            return [loop(0, self.num_tables, *arguments)]
        bounds = [self.num_tables * i // threads for i in range(threads + 1)]

        def hand_over() -> list[Future[Result]]:
            pool = self._pool()
            return [pool.submit(loop, bounds[i], bounds[i + 1], *arguments) for i in range(1, threads)]

        # Only Numba's loops have signatures, none before they are compiled; those of libraries are ready.
        rest = hand_over() if getattr(loop, "signatures", True) else []
        try:
            first = loop(0, bounds[1], *arguments)
            rest = rest or hand_over()
        finally:
            wait(rest)  # on Ctrl-C too: no thread may write to the buffers afterwards
        return [first, *(future.result() for future in rest)]

    def _pool(self) -> ThreadPoolExecutor:
        # Threads do not survive a fork, so a forked child makes its own.
        if self._threads is None or self._threads[0] != os.getpid():
            self._threads = os.getpid(), ThreadPoolExecutor(self._num_ranges - 1, "card_envs")
        return self._threads[1]

    def __getstate__(self) -> dict[str, Any]:
        names = ("game", "skip_forced", "num_threads", "rewards", "done")
        saved = {"states": self._states, **{name: getattr(self, name) for name in names}}
        return saved | {"out": self._out, "last": self._last}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self._lay_out(saved["game"], saved["states"], saved["skip_forced"], saved["num_threads"], saved["out"])
        self.rewards[...], self.done[...] = saved["rewards"], saved["done"]
        self.observe(saved["last"])
