"""Thousands of tables at once in preallocated NumPy buffers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from card_envs.engine import kernels
from card_envs.engine.buffers import (
    INT8,
    INT64,
    MAX_TABLES,
    UINT64,
    Fixed,
    Kinds,
    check_bool,
    check_choice,
    check_game,
    check_int,
    check_seats,
    checked,
    checked_out,
)
from card_envs.engine.compile import specialize, specialize_bot
from card_envs.engine.exclusive import Holder, exclusive
from card_envs.engine.legality import (
    IllegalMove,
    check_ints,
    draw_legal,
    find_illegal,
    find_legal,
    illegal_move,
    unpacked,
    words,
)
from card_envs.engine.packing import Packing
from card_envs.engine.rng import table_keys
from card_envs.files import short_repr
from card_envs.game import Game

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Handing work to threads costs about 50 microseconds; below this many tables for each it does not pay.
MIN_TABLES_A_THREAD = 4096
MAX_DECISIONS = (1 << 63) - 1


def undealt(
    game: Game, num_tables: int, seed: int, options: dict[str, Any] | None, tables: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return [B] States before their first deals, and [B] the keys of their streams; for the arguments see `BatchEnv`."""
    check_game(game)
    num_tables = check_int(num_tables, 1, MAX_TABLES, "num_tables")
    numbers = np.arange(num_tables) if tables is None else np.asarray(tables)
    if numbers.shape != (num_tables,) or numbers.dtype.kind not in "iu" or numbers.min() < 0:
        raise ValueError(f"tables: expected {num_tables} whole numbers from 0, got {tables!r:.80}")
    states = np.zeros(num_tables, game.rules.STATE)
    states[:] = game.rules.new_state(game.validated({} if options is None else options))
    return states, table_keys(seed, numbers)


class BatchEnv(Fixed):
    """Tables of one game, stepped together; table i depends on the seed and its number alone.

    All buffers are allocated once and written in place (copy what must last; `torch.from_numpy` shares them). They
    can't be replaced. Whoever writes into `states` calls `look` next, and answers for what is written there: compiled
    code believes it. One thread at a time: a call while another thread is inside raises RuntimeError and changes
    nothing (`num_threads` is the way to use several).

    With `out`, some of the buffers are the caller's, and have room for T steps: making the tables writes into [0], and
    `step(actions, t)` into [t]. So a rollout is where it is to be without a copy::

        out = {"obs": np.zeros((T + 1, B, D), np.int8), "mask": np.zeros((T + 1, B, A), np.int8)}
        env = BatchEnv(game, B, out=out)
        for t in range(T):
            env.step(choose(env.obs[t], env.mask[t]), t + 1)

    Attributes:
        obs: [B, D] int8, what the seat to move may know; with `obs_format="bits"` [B, packing.obs_bytes] uint8.
        mask: [B, A] int8, its legal actions; with `obs_format="bits"` [B, packing.mask_bytes] uint8.
        seat: [B] int8, the seat to move.
        rewards: [B, S] float32, of the last step.
        done: [B] bool, whether the last step ended an episode; the table has been dealt anew.
        states: [B] records of the game's State, hidden cards included.
        packing: with `obs_format="bits"`: what unpacks `obs` and `mask`.
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
        obs_format: Literal["int8", "bits"] = "int8",
        out: Mapping[str, NDArray[Any]] | None = None,
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
            obs_format: "bits": observations and masks are packed (`Packing`), for replay buffers and GPUs.
            out: the caller's own arrays in place of some of `obs`, `mask`, `seat`, `rewards` and `done`, of their types
                and shapes with [T] before: contiguous, writable, and apart from each other. A copy of this object has
                copies of them.
        """
        num_threads = check_int(num_threads, 1, None, "num_threads")
        states, keys = undealt(game, num_tables, seed, options, tables)
        check_choice(obs_format, ("int8", "bits"), "obs_format")
        self._lay_out(game, states, check_bool(skip_forced, "skip_forced"), num_threads, obs_format == "bits", out)
        self._run(specialize(kernels.reset_tables, game), self._states, keys)
        self.observe(0 if out else None)

    def _lay_out(
        self, game: Game, states: NDArray[Any], skip_forced: bool, num_threads: int, packed: bool, out: object
    ) -> None:
        """Allocate all buffers. Users get views: reshaping one of them in place leaves the buffer as it is."""
        rules, num_tables = game.rules, len(states)
        self.game = game
        self.num_tables = num_tables
        self.num_threads = num_threads
        self.skip_forced = skip_forced
        self.packing = Packing(game) if packed else None
        self.states = states.view()
        self._states = states
        self._legal = np.zeros((num_tables, words(rules.NUM_ACTIONS)), np.uint64)  # what `step` believes
        kinds: Kinds = {
            "obs": ((num_tables, rules.OBS_SIZE), np.int8),
            "mask": ((num_tables, rules.NUM_ACTIONS), np.int8),
            "seat": ((num_tables,), np.int8),
            "rewards": ((num_tables, rules.NUM_SEATS), np.float32),
            "done": ((num_tables,), np.bool_),
        }
        if self.packing:
            kinds["obs"] = ((num_tables, self.packing.obs_bytes), np.uint8)
            kinds["mask"] = ((num_tables, self.packing.mask_bytes), np.uint8)
        self._given = checked_out(out, kinds)
        buffers = {**{name: np.zeros(*kinds[name]) for name in kinds if name not in self._given}, **self._given}
        self.obs, self.mask, self.seat = (buffers[name].view() for name in ("obs", "mask", "seat"))
        self.rewards, self.done = buffers["rewards"].view(), buffers["done"].view()
        self._packed: tuple[Any, ...] = ()  # what loops that pack have to know
        if self.packing:
            self._packed = self.packing.for_loops
            buffers |= {name: buffers[name].view(np.uint64) for name in ("obs", "mask")}
        self._steps = []  # what a step writes to, for each slice of `out`
        for t in range(len(next(iter(self._given.values()), "1"))):
            obs, mask, seat, rewards, done = (
                buffers[name][t] if name in self._given else buffers[name] for name in kinds
            )
            self._steps.append((obs, mask, self._legal, seat, rewards, done))
        self._holder = Holder()
        self._last: int | None = None  # which of them was written last
        self._num_ranges = max(1, min(num_threads, num_tables // MIN_TABLES_A_THREAD))  # of tables, for each loop
        self._threads: tuple[int, ThreadPoolExecutor] | None = None
        # Kept: asking `specialize` takes as long as a step of a few tables.
        self._step: Callable[..., int] = specialize(kernels.step_legal_tables, game)
        self._draw = specialize(draw_legal)

    def _into(self, t: int | None) -> tuple[NDArray[Any], ...]:
        """Return the buffers that are to be written."""
        if self._given:
            return self._steps[check_int(t, 0, len(self._steps) - 1, "t")]
        if t is not None:
            raise ValueError(f"t: expected None, since there is no `out` of several steps, got {short_repr(t)}")
        return self._steps[0]

    @exclusive
    def observe(self, t: int | None = None) -> None:
        """Write `obs`, `mask` and `seat` anew, after `states` were set from outside or a playout.

        Args:
            t: with `out`: where to.

        Raises:
            ValueError: `states` name a seat to move that there is not, or there is no such `t`.
        """
        check_seats(self.game, self._states)
        obs, mask, legal, seat, _, _ = self._into(t)
        if self.packing:
            loop: Callable[..., None] = specialize(kernels.observe_packed_tables, self.game)
            self._run(loop, self._states, *self._packed, obs, mask, legal, seat)
        else:
            self._run(specialize(kernels.observe_tables, self.game), self._states, obs, mask, seat)
            self._run(specialize(kernels.write_legal_bits), mask, legal)
        self._last = t

    def step(self, actions: NDArray[Any], t: int | None = None) -> None:
        """Play one action at every table and write all buffers; ended episodes are followed by the next.

        Args:
            actions: [B] whole numbers, each legal under `mask`.
            t: with `out`: where to write what comes of them.

        Raises:
            IllegalMove: naming the first table with an action that its mask forbids; no table has moved then. After a
                playout, `look` comes first.
            ValueError: there is no such `t`; no table has moved then either.
        """
        self._holder.enter(self, "step")  # written out: a decorator's call takes a tenth of a step of few tables
        try:
            self._play(actions, t)
        finally:
            self._holder.leave()

    def _play(self, actions: NDArray[Any], t: int | None) -> None:
        actions = check_ints(actions, self.num_tables)
        buffers = self._into(t)
        if self._num_ranges == 1 and not self._packed:
            illegal = self._step(0, self.num_tables, self._states, actions, *buffers, self.skip_forced)
        else:  # no range may move before all are known to be legal
            # By the caller alone: that takes a fiftieth of a step, and handing it over as long again.
            illegal = specialize(find_illegal)(0, self.num_tables, self._legal, self.game.rules.NUM_ACTIONS, actions)
            if illegal < 0:
                loop: Callable[..., None] = specialize(
                    kernels.step_packed_tables if self._packed else kernels.step_tables, self.game
                )
                self._run(loop, self._states, actions, *self._packed, *buffers, self.skip_forced)
        if illegal >= 0:
            raise self._illegal(illegal, actions)
        self._last = t

    @exclusive
    def are_legal(self, actions: NDArray[Any]) -> NDArray[np.bool_]:
        """Return [B] bool, which of these actions `step` would take, whatever was written into `mask`."""
        actions = check_ints(actions, self.num_tables)
        allowed = np.zeros(self.num_tables, np.bool_)
        self._run(specialize(find_legal), self._legal, self.game.rules.NUM_ACTIONS, actions, allowed)
        return allowed

    @exclusive
    def random_actions(self, streams: NDArray[np.uint64], actions: NDArray[np.int64]) -> None:
        """Write a uniformly drawn legal action for each table into `actions` [B]; `streams` [B] move on.

        Raises:
            IllegalMove: after a playout, before `look`: no action is known to be legal.
        """
        streams = checked("streams", streams, (self.num_tables,), UINT64)
        actions = checked("actions", actions, (self.num_tables,), INT64)
        found = self._run(self._draw, self._legal, self.game.rules.NUM_ACTIONS, streams, actions)
        table = max(found)
        if table >= 0:
            raise self._illegal(table, actions)

    def _illegal(self, table: int, actions: NDArray[np.int64]) -> IllegalMove:
        """Return the error for the action at a table."""
        who = f"seat {self._states['seat'][table]} at table {table}"
        mask = unpacked(self._legal[table], self.game.rules.NUM_ACTIONS)
        if not mask.any():
            return IllegalMove(f"{self.game.name}: no move of {who} is known to be legal: call observe() first")
        return illegal_move(self.game, int(actions[table]), mask, who)

    @exclusive
    def bot_actions(self, bot: str, actions: NDArray[np.int64]) -> None:
        """Write the move of the game's scripted player `trivial` or `greedy` into `actions` [B]."""
        actions = checked("actions", actions, (self.num_tables,), INT64)
        self._run(specialize_bot(kernels.bot_actions, self.game, bot), self._states, actions)

    @exclusive
    def observe_all(self, full: NDArray[np.int8]) -> None:
        """Write the full state seen from the seat to move into `full` [B, FULL_SIZE], for critics."""
        full = checked("full", full, (self.num_tables, self.game.rules.FULL_SIZE), INT8)
        seat = self._states["seat"].copy()  # whoever has `seat` may write into it
        self._run(specialize(kernels.observe_all_tables, self.game), self._states, seat, full)

    @exclusive
    def random_playout(self, streams: NDArray[np.uint64], decisions: int) -> int:
        """Play that many random moves at each table, without looking; returns how many episodes ended."""
        streams = checked("streams", streams, (self.num_tables,), UINT64)
        decisions = check_int(decisions, 0, MAX_DECISIONS, "decisions")
        self._legal[:] = 0  # it is of another position
        return sum(self._run(specialize(kernels.random_playout, self.game), self._states, streams, decisions))

    @exclusive
    def bot_playout(self, bot: str, decisions: int) -> int:
        """Play that many moves of a scripted player at each table, without looking; returns the episodes ended."""
        decisions = check_int(decisions, 0, MAX_DECISIONS, "decisions")
        loop = specialize_bot(kernels.bot_playout, self.game, bot)
        self._legal[:] = 0  # it is of another position
        return sum(self._run(loop, self._states, decisions))

    def _run(
        self,
        loop: Callable[Concatenate[int, int, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> list[Result]:
        """Run a loop over all tables, on threads where they pay; returns what it returned for each range.

        The caller works on the first range. It does so alone first where the loop may have to be compiled.
        """
        threads = self._num_ranges
        if threads == 1:
            return [loop(0, self.num_tables, *arguments, **named)]
        bounds = [self.num_tables * i // threads for i in range(threads + 1)]

        def hand_over() -> list[Future[Result]]:
            pool = self._pool()
            return [pool.submit(loop, bounds[i], bounds[i + 1], *arguments, **named) for i in range(1, threads)]

        rest = hand_over() if getattr(loop, "signatures", None) else []
        try:
            first = loop(0, bounds[1], *arguments, **named)
            rest = rest or hand_over()
        finally:
            wait(rest)  # also where Ctrl-C ends the step: nobody else writes into the buffers afterwards
        return [first, *(future.result() for future in rest)]

    def _pool(self) -> ThreadPoolExecutor:
        # Threads do not survive a fork, so a forked child makes its own.
        if self._threads is None or self._threads[0] != os.getpid():
            self._threads = os.getpid(), ThreadPoolExecutor(self._num_ranges - 1, "card_envs")
        return self._threads[1]

    def __getstate__(self) -> dict[str, Any]:
        kept = ("game", "skip_forced", "num_threads", "rewards", "done")
        saved = {"states": self._states, **{name: getattr(self, name) for name in kept}}
        return saved | {"packed": bool(self.packing), "out": self._given, "last": self._last}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Take what was unpickled. Raises ValueError where that is not what a batch of the game has."""
        game, states = saved["game"], saved["states"]
        check_game(game)
        states = checked("states", states, (np.size(states),), game.rules.STATE)
        self._lay_out(
            game, states, check_bool(saved["skip_forced"], "skip_forced"),
            check_int(saved["num_threads"], 1, None, "num_threads"), check_bool(saved["packed"], "packed"),
            saved["out"],
        )  # fmt: skip
        for name in ("rewards", "done"):
            own = getattr(self, name)
            own[...] = checked(name, saved[name], own.shape, own.dtype, written=False)
        self.observe(saved["last"])
