"""SearchPolicy: plays the action that is best on average over worlds that fit what the seat knows.

Perfect-information Monte Carlo (Ginsberg 2001), with the same worlds for all arms of a decision; worlds that don't
explain what the other seats did are drawn less often. A search is made of functions (`_parts.py`) for

- candidates: single actions, or all that the seat can do before something hidden shows (`_candidates.py`);
- prior: who names the baseline, and prunes (here) or ranks the candidates;
- rollout: who plays the worlds on; policies that are not compiled do in `_rollout.py`;
- leaf: where a rollout stops.

`_decide.py` has the loop that calls them, and `_budget.py` how many worlds each arm gets. Here, threads share decisions
or the worlds of one, and keep to a time. `check_parts` says what goes together.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from card_envs._processes import cores
from card_envs.compiling import specialize
from card_envs.engine._buffers import UINT64, check_choice, check_game, check_int, checked
from card_envs.engine._cost import SHORTEST
from card_envs.game import Game, Int8s, Int64s, UInt64s
from card_envs.opponents._macros import MAX_LENGTH, NO_ACTION, Macros, PlanCache
from card_envs.opponents.networks._afterstates import PLAYER
from card_envs.opponents.networks.ntuple_policy import MOST_POSITIONS, NTuplePolicy
from card_envs.opponents.networks.policies import LookaheadPolicy
from card_envs.opponents.policy import (
    ActionValue,
    ActionValues,
    Decisions,
    Policy,
    check_policy,
    name_of,
    probabilities_of,
    reset,
)
from card_envs.opponents.search._budget import (
    FIRST_BATCH,
    LONGER,
    MAX_STEPS,
    STEPS_IN_A_SECOND,
    STEPS_PER_WORLD,
    UNLIMITED,
    Z_THRESHOLD,
    ArmStats,
    Budget,
    judge,
    new_stats,
)
from card_envs.opponents.search._decide import (
    SearchBatch,
    SearchResults,
    SearchWorkspace,
    WorldShare,
    decide_tables,
    new_results,
    new_workspace,
    write_result,
)
from card_envs.opponents.search._parts import Moves, asks_python, ranks_macros, unwrapped
from card_envs.opponents.search._rollout import PolicyRollouts

LEAST_PROBABILITY = 0.01  # a prior's actions below it are not tried
# Macro-actions that are found: this many for each world, at most this many. With a time, finding and trying them for
# the first time may take a quarter of it.
MACROS_PER_WORLD, MAX_MACROS, FIRST_SHARE = 8, 8192, 0.25
# Macro-actions that a network scores, each in about this time.
SCORED_PER_WORLD, MAX_SCORED, SCORE_SECONDS = 2, 2048, 1e-5
# Threads share decisions where each has this many, else the worlds of one once a stage takes that long.
MANY, WORTH_SHARING = 4, 5e-4  # seconds
FIRST_PLAYOUT = 5e-5  # seconds that a playout takes, until it is known
WHOLE, ARMS_ALONE, STAGE = (WorldShare(stages, 0, 1) for stages in (UNLIMITED, 0, 1))

TryStage = Callable[[SearchBatch, int, Budget, SearchWorkspace], int]


@dataclass(frozen=True, eq=False, repr=False)
class SearchPolicy:
    """Plays the action that is best on average over sampled worlds, in compiled code, on all cores.

    Attributes:
        game: what it plays.
        worlds: after which one rival of the baseline is left; arms that fall behind are dropped earlier, and the last
            one gets up to four times as many while it is in doubt.
        seconds: bound on a decision, which has all threads to itself. A search that is cut short does not repeat
            exactly. What has begun is ended: with a slow rollout the first eight worlds may take longer.
        moves: "single": the candidates are single actions; "turn": all that the seat can do before something hidden
            shows, as macro-actions.
        prior: its likeliest action is the baseline, and actions below 1 % are not tried. An n-tuple network or a
            network with lookahead ranks macro-actions, and the best is the baseline. None: all actions are tried, and
            the baseline is that of the rollout.
        rollout: plays the worlds on for its side; None: the scripted player does for all.
        leaf: an n-tuple network that values the position where a rollout stops; None: rollouts go to the end of the
            deal.
        leaf_after: a rollout stops before this many chance events.
        leaf_playout: share of a result that comes from the scripted player's play on from there to the end.
        arms: that a ranking prior keeps, at most (and at most `worlds`).
        threads: that share decisions, or the worlds of one (None: one for each core); the result is the same.
        refine_steps: Metropolis steps that improve each world (None: as many as the budget is worth).
        rollout_positions: that an n-tuple network values at each decision of a rollout, at most.
        plans: the rest of macro-actions that were chosen.

    Raises:
        ValueError: a part is no such thing, or the parts don't go together; see `check_parts`.
    """

    game: Game
    worlds: int = UNLIMITED
    _: KW_ONLY
    seconds: float | None = None
    moves: Moves = "single"
    prior: Policy | None = None
    rollout: Policy | None = None
    leaf: Policy | None = None
    leaf_after: int = 2
    leaf_playout: float = 0.0
    arms: int = 256
    threads: int | None = None
    refine_steps: int | None = None
    rollout_positions: int = 64
    plans: PlanCache = field(init=False)
    _idle: list[WorkerPool] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        check_game(self.game)
        check_int(self.worlds, 1, UNLIMITED, "worlds")
        if self.threads is None:
            object.__setattr__(self, "threads", cores())
        check_int(self.threads, 1, None, "threads")
        if self.seconds is None and self.worlds == UNLIMITED:
            raise ValueError("search: expected a number of worlds, or seconds")
        if self.seconds is not None and not (type(self.seconds) in (int, float) and 0 < self.seconds < float("inf")):
            raise ValueError(f"seconds: expected a number above 0, got {self.seconds!r:.80}")
        check_choice(self.moves, get_args(Moves), "moves")
        check_int(self.leaf_after, 1, 1 << 20, "leaf_after")
        if type(self.leaf_playout) not in (int, float) or not 0 <= self.leaf_playout <= 1:
            raise ValueError(f"leaf_playout: expected a number from 0 to 1, got {self.leaf_playout!r:.80}")
        check_int(self.arms, 2, MAX_MACROS, "arms")
        if self.refine_steps is not None:
            check_int(self.refine_steps, 0, MAX_STEPS, "refine_steps")
        check_int(self.rollout_positions, 1, MOST_POSITIONS, "rollout_positions")
        check_parts(self)
        object.__setattr__(self, "plans", PlanCache(self.game))

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        """See `Policy.act`."""
        if self.moves == "single":
            return self.search(decisions, rng).chosen
        return self.plans.act(decisions, lambda new: self.search(new, rng).chosen)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        """See `Policy.probabilities`: 1 for the action that it plays."""
        chosen = self.act(decisions, np.random.default_rng(0))
        return np.eye(decisions.mask.shape[1], dtype=np.float32)[chosen]

    def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues:
        """Return what each action brings in points by the end of the deal; nan where it was not tried.

        Where there is only one candidate, such as the best of merged actions, it is played without being tried.
        """
        return _values(self.search(decisions, rng))

    def act_and_evaluate(
        self, decisions: Decisions, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], ActionValues | None]:
        """See `Policy`: no estimates where a macro-action goes on, which needs no search."""
        if self.moves == "single":
            found = self.search(decisions, rng)
            return found.chosen, _values(found)
        decisions, actions = self.plans.planned(decisions)
        new = np.flatnonzero(actions == NO_ACTION)
        if not len(new):
            return actions, None
        found = self.search(decisions.at(new), rng)
        actions[new] = found.chosen
        return actions, ActionValues.joined(actions, decisions.mask.shape[1], [(new, _values(found))])

    def within(self, seconds: float, threads: int = 1) -> SearchPolicy:
        """Return the same search, cut short where a decision would take longer; see `Policy`."""
        return replace(self, seconds=min(seconds, self.seconds or seconds), threads=threads)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the search was made with but for the game, by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)[1:] if one.init}

    def __repr__(self) -> str:
        made_of = ", ".join(f"{name}={value!r}" for name, value in self.settings.items() if value is not None)
        return f"SearchPolicy({self.game.name}, {made_of})"

    def reset(self) -> None:
        """Forget plans, and those of the parts; see `Policy`."""
        self.plans.clear()
        for pool in self._idle:
            pool.playout_seconds = FIRST_PLAYOUT
        for part in (self.prior, self.rollout):
            if part is not None:
                reset(part)

    def __getstate__(self) -> dict[str, Any]:
        """Leave threads and workspaces out of copies."""
        return {**self.__dict__, "_idle": []}

    def search(self, decisions: Decisions, rng: np.random.Generator) -> SearchResults:
        """Search at all tables. Raises ValueError or IllegalMove where a part is of no use."""
        if decisions.game != self.game:
            raise ValueError(f"search: it plays {self.game.name}, not {decisions.game.name}")
        decisions = decisions.copy()
        states = decisions.worlds(rng, 1)[:, 0].copy()
        keys = checked("rng.integers", rng.integers(0, 1 << 64, len(states), np.uint64), (len(states),), UINT64)
        results = self.search_worlds(decisions, states, keys)
        if self.moves == "turn":
            self.plans.add(states, results.macros)
        return results

    def search_worlds(self, decisions: Decisions, states: NDArray[Any], keys: UInt64s) -> SearchResults:
        """Search at all tables, in worlds of given random streams; plans stay as they are.

        Args:
            decisions: n of them, in arrays of their own.
            states: [n] a determinization of each.
            keys: [n] of the streams.
        """
        n, length = len(states), MAX_LENGTH if self.moves == "turn" else 1
        batch = SearchBatch(states, keys, *self._baselines(decisions), np.zeros((n, 0, length), np.int16))
        return self._decided(batch, self.seconds)

    def try_lines(self, states: NDArray[Any], lines: Macros, keys: UInt64s, worlds: int) -> SearchResults:
        """Play macro-actions out, each in the same number of worlds, and let none drop out.

        Args:
            states: [n] a determinization of each decision.
            lines: [n, K, MAX_LENGTH] of each, the first the baseline; no two begin with the same action.
            keys: [n] of the random streams of the worlds.
            worlds: in which each is tried.
        """
        n, num_actions = len(states), self.game.rules.NUM_ACTIONS
        batch = SearchBatch(states, keys, np.zeros(n, np.int64), np.zeros((n, num_actions), np.int8), lines)
        return self._decided(batch, None, self.budget(None).of_lines(lines.shape[1], worlds))

    def _decided(self, batch: SearchBatch, seconds: float | None, budget: Budget | None = None) -> SearchResults:
        """Return the results of decisions; by default, each has the budget of the search."""
        results = new_results(len(batch.states), batch.lines.shape[2], self.game.rules.NUM_ACTIONS)
        asked = PolicyRollouts(self, np.random.default_rng(batch.keys)).try_stage if asks_python(self) else None
        pool = self._take_pool()
        budget = budget or self.budget(seconds, pool.playout_seconds)
        moves = pool.decide(batch, budget, seconds, asked, results)
        self._idle.append(pool)
        return results._replace(moves=moves)

    def _baselines(self, decisions: Decisions) -> tuple[Int64s, Int8s]:
        """Return [n] the baseline actions, and [n, A] the actions to try, all of them legal."""
        asked = self.rollout if self.prior is None else self.prior
        if asked is None or ranks_macros(self):
            return decisions.bot_moves(PLAYER), decisions.mask
        probabilities = probabilities_of(asked, decisions.copy())  # it may write into what it gets
        baselines = decisions.check(probabilities.argmax(axis=1), f"{name_of(asked)} in a search")
        if self.prior is None:
            return baselines, decisions.mask
        certain = probabilities.max(axis=1, keepdims=True) == 1  # a deterministic prior ranks no other actions
        return baselines, decisions.mask * (certain | (probabilities >= LEAST_PROBABILITY))

    def budget(self, seconds: float | None, playout_seconds: float = FIRST_PLAYOUT) -> Budget:
        """Return the budget of a decision: with a time, as many arms as a share of it is enough for."""

        def affordable(per_world: int, most: int, seconds_each: float) -> int:
            by_worlds = min(per_world * self.worlds, most)
            return by_worlds if seconds is None else min(by_worlds, int(FIRST_SHARE * seconds / seconds_each))

        arms = max(affordable(1, self.arms, playout_seconds), 2)
        least = 2 * self.game.rules.NUM_ACTIONS  # the baseline, and each action as a candidate
        if not ranks_macros(self):
            candidates = max(affordable(MACROS_PER_WORLD, MAX_MACROS, FIRST_BATCH * playout_seconds), least)
        elif isinstance(unwrapped(self.prior), LookaheadPolicy):
            candidates = max(affordable(SCORED_PER_WORLD, MAX_SCORED, SCORE_SECONDS), least)
        else:
            candidates = arms  # n-tuple networks find the best alone
        steps = self._steps() if self.refine_steps is None else self.refine_steps
        unlimited = Budget(0, 0, Z_THRESHOLD, 0.0, steps, candidates, arms)
        return unlimited.limited(LONGER * self.worlds)

    def _steps(self) -> int:
        """Return how many steps to refine a world with are worth their time."""
        if self.rollout is not None:
            return MAX_STEPS
        affordable = STEPS_PER_WORLD * self.worlds
        if self.seconds is not None:
            affordable = min(affordable, int(math.sqrt(STEPS_IN_A_SECOND * self.seconds)))
        return min(affordable, MAX_STEPS)

    def _take_pool(self) -> WorkerPool:
        """Take an idle pool of workers, or make one: several threads may search at once."""
        while self._idle:
            pool = self._idle.pop()
            if pool.process == os.getpid():  # else made before a fork: its threads are gone
                return pool
        return WorkerPool(self, self.threads or 1)


class WorkerPool:
    """Workspaces and threads of one search, used by one caller at a time.

    Attributes:
        workspaces: one for each thread.
        process: id of the process that made it.
        playout_seconds: what a playout took in the last decision that kept to a time.
    """

    def __init__(self, search: SearchPolicy, num_threads: int) -> None:
        """Allocate for this many threads."""
        made = [new_workspace(search, search.budget(None)) for _ in range(num_threads)]
        functions = made[0][0]
        self.workspaces = [workspace for _, workspace in made]
        self.process = os.getpid()
        self.playout_seconds = FIRST_PLAYOUT
        self._decide = specialize(decide_tables, search.game, PLAYER, functions=functions)
        self._judge, self._write_result = specialize(judge), specialize(write_result)
        self._threads: ThreadPoolExecutor | None = None

    def decide(
        self, batch: SearchBatch, budget: Budget, seconds: float | None, try_stage: TryStage | None,
        results: SearchResults,
    ) -> int:  # fmt: skip
        """Decide; return how many actions were played in all worlds.

        Args:
            batch: the decisions.
            budget: of each.
            seconds: for each decision, which has all threads to itself; None: no bound.
            try_stage: tries the arms of a stage in place of compiled code; None: nothing does.
            results: are written.
        """
        n, threads = len(batch.states), len(self.workspaces)
        self._sized = [sized(workspace, budget.candidates) for workspace in self.workspaces]
        if seconds is None and try_stage is None and (threads == 1 or n >= MANY * threads):
            bounds = [n * k // threads for k in range(threads + 1)]

            def work(k: int) -> int:
                return self._decide(bounds[k], bounds[k + 1], WHOLE, batch, budget, self._sized[k], results)

            return sum(self._map(work))
        return sum(self._in_stages(i, batch, budget, seconds, try_stage, results) for i in range(n))

    def _map(self, work: Callable[[int], int]) -> list[int]:
        """Do each thread's share."""
        if len(self.workspaces) == 1:
            return [work(0)]
        if self._threads is None:
            self._threads = ThreadPoolExecutor(len(self.workspaces), "card_envs")
        return list(self._threads.map(work, range(len(self.workspaces))))

    def _in_stages(
        self, i: int, batch: SearchBatch, budget: Budget, seconds: float | None, try_stage: TryStage | None,
        results: SearchResults,
    ) -> int:  # fmt: skip
        """Make one decision, its stages shared among the threads, and look at the clock between them."""
        workspace, max_worlds = self._sized[0], budget.max_worlds
        arms, stats = workspace.arms, workspace.stats
        start = begun = time.perf_counter()
        self._decide(i, i + 1, ARMS_ALONE, batch, budget, workspace, results)
        moves, last, going = 0, 0.0, True
        while going:
            if try_stage is not None:
                moves += try_stage(batch, i, budget, workspace)
            elif last > WORTH_SHARING and len(self.workspaces) > 1:
                moves += self._share_stage(i, batch, budget, results)
            else:
                moves += self._decide(i, i + 1, STAGE, batch, budget, workspace, results)
            going = self._judge(arms, stats, budget)
            now = time.perf_counter()
            last, begun = now - begun, now
            if seconds is not None:
                self.playout_seconds = (now - start) / max(1, int(stats.worlds.sum()))
                spent = max(now - start, SHORTEST) / seconds
                going = going and spent < 1
                budget = budget.limited(min(max_worlds, int(arms.progress[0].worlds / spent)))
        self._write_result(i, arms, stats, budget.z_threshold, results)
        return moves

    def _share_stage(self, i: int, batch: SearchBatch, budget: Budget, results: SearchResults) -> int:
        """Try the arms in the worlds of a stage in all threads."""
        arms, stats, threads = self._sized[0].arms, self._sized[0].stats, len(self._sized)
        found = [new_stats(len(arms.live)) for _ in range(threads)]

        def work(k: int) -> int:
            workspace = self._sized[k]._replace(arms=arms, stats=found[k])
            return self._decide(i, i + 1, WorldShare(1, k, threads), batch, budget, workspace, results)

        moves = sum(self._map(work))
        for share in found:
            for whole, part in zip(stats, share):
                np.add(whole, part, out=whole)
        return moves


def sized(workspace: SearchWorkspace, most: int) -> SearchWorkspace:
    """Return the workspace with room for that many arms."""
    arms, stats = workspace.arms, workspace.stats
    arms = arms._replace(macros=arms.macros[:most], live=arms.live[:most])
    return workspace._replace(arms=arms, stats=ArmStats._make(array[:most] for array in stats))


def _values(found: SearchResults) -> ActionValues:
    """Return the estimates that a search found."""
    stats, worlds = found.stats, found.stats.worlds
    with np.errstate(invalid="ignore", divide="ignore"):
        advantages = np.where(worlds > 0, stats.advantages / worlds, np.nan)
    return ActionValues(found.expected[:, None] + advantages, advantages, worlds, found.chosen)


def check_parts(search: SearchPolicy) -> None:
    """Check that the parts of a search go together:

    | part | must be |
    | --- | --- |
    | `prior`, `rollout`, `leaf` | policies of the same game |
    | `leaf` | an n-tuple network |
    | `leaf_after`, `leaf_playout` | left alone without a `leaf` |

    Raises:
        ValueError: saying which part does not fit.
    """
    for name in ("prior", "rollout", "leaf"):
        part = getattr(search, name)
        if part is not None:
            check_policy(part, name)
            game = getattr(part, "game", search.game)
            if game != search.game:
                raise ValueError(f"{name}: {name_of(part)} plays {game.name}, not {search.game.name}")
    leaf = unwrapped(search.leaf)
    if leaf is None:
        if (search.leaf_after, search.leaf_playout) != (2, 0.0):
            raise ValueError("leaf_after and leaf_playout: expected a leaf as well")
    elif not isinstance(leaf, NTuplePolicy):
        raise ValueError(f"leaf: expected an n-tuple network, got {name_of(leaf)}")


def why_not(best: ActionValue, other: ActionValue) -> str:
    """Return why a search does not play an action, in words; empty where the difference says it."""
    assert other.difference is not None
    if other.worlds == 0:
        return "not tried: unlikely by its prior, or merged with another"
    if other.dropped:
        return f"dropped after {other.worlds} of {best.worlds} worlds"
    if other.difference == 0:
        return f"on average the same as {best.move}"
    return "better perhaps by chance alone" if other.difference > 0 else ""
