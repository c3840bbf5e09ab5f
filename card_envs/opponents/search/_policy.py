"""SearchPolicy: plays the action that is best on average over worlds that fit what the seat knows.

Perfect-information Monte Carlo (Ginsberg 2001), with the same worlds for all arms of a decision; worlds that don't
explain what the other seats did are drawn less often. A search is made of parts, each with a file of its own:

- candidates: single actions, or all that the seat can do before something hidden shows (`_candidates.py`);
- prior: who names the baseline, and prunes or ranks the candidates (here, and in `_decide.prepare`);
- rollout: who plays the worlds on (`_rollout.py`);
- leaf: where a playout stops (`_leaf.py`);
- budget: how many worlds each arm gets (`_budget.py`), drawn by `_worlds.py`.

Any parts go together; what can't is in `check_parts`.
"""

from __future__ import annotations

import math
import os
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from card_envs.engine._buffers import UINT64, check_choice, check_game, check_int, checked
from card_envs.game import Game, Int8s, Int64s
from card_envs.opponents._macros import MAX_LENGTH, NO_ACTION
from card_envs.opponents._plan_cache import PlanCache
from card_envs.opponents.networks._afterstates import follow_mode
from card_envs.opponents.networks._ntuples import PLAYER
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.policies import AfterstatePolicy, LookaheadPolicy
from card_envs.opponents.policy import (
    ActionValue,
    ActionValues,
    Decisions,
    Opponent,
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
    Arms,
    ArmStats,
    Budget,
    budget_of,
)
from card_envs.opponents.search._decide import Batch, Limits, Parts, new_results
from card_envs.opponents.search._leaf import Leaf
from card_envs.opponents.search._rollout import try_with_policy
from card_envs.opponents.search._workers import FIRST_PLAYOUT, WorkerPool

Moves = Literal["single", "turn"]
SETTINGS = ("worlds", "seconds", "moves", "prior", "rollout", "leaf", "leaf_after", "leaf_playout", "arms", "threads")

LEAST_PROBABILITY = 0.01  # a prior's actions below it are not tried
# Macro-actions that are found: this many for each world, at most this many. With a time, finding and trying them for
# the first time may take a quarter of it.
MACROS_PER_WORLD, MAX_MACROS, FIRST_SHARE = 8, 8192, 0.25
# Macro-actions that a network scores, each in about this time.
SCORED_PER_WORLD, MAX_SCORED, SCORE_SECONDS = 2, 2048, 1e-5
ROLLOUT_POSITIONS = 64  # that an n-tuple network values where it plays worlds on


class SearchResult(NamedTuple):
    """The findings of a search about n decisions.

    Attributes:
        macros: [n, L] the actions to play, one after the other; NO_ACTION after the last.
        baselines: [n] the baseline's first action.
        expected: [n] points that the baseline brings on average; nan where it is the only candidate.
        stats: [n, A] of each action, or of the best macro-action that begins with it.
        moves: played in all worlds.
    """

    macros: NDArray[np.int16]
    baselines: Int64s
    expected: NDArray[np.float64]
    stats: ArmStats
    moves: int

    @property
    def chosen(self) -> Int64s:
        """[n] the actions to play now."""
        return self.macros[:, 0].astype(np.int64)


class SearchPolicy:
    """Plays the action that is best on average over sampled worlds, in compiled code, on all cores.

    Attributes:
        game: what it plays.
        plans: the rest of macro-actions that were chosen.
        refine_steps: Metropolis steps that improve each world.
    """

    def __init__(
        self,
        game: Game,
        worlds: int = UNLIMITED,
        *,
        seconds: float | None = None,
        moves: Moves = "single",
        prior: Policy | None = None,
        rollout: Policy | None = None,
        leaf: Policy | None = None,
        leaf_after: int = 2,
        leaf_playout: float = 0.0,
        arms: int = 256,
        threads: int | None = None,
    ) -> None:
        """Put a search together.

        Args:
            game: what it plays.
            worlds: after which one rival of the baseline is left; arms that fall behind are dropped earlier, and the
                last one gets up to four times as many while it is in doubt.
            seconds: bound on a decision, which has all threads to itself. A search that is cut short does not repeat
                exactly. What has begun is ended: with a slow rollout the first eight worlds may take longer.
            moves: "single": the candidates are single actions; "turn": all that the seat can do before something
                hidden shows, as macro-actions.
            prior: its likeliest action is the baseline, and actions below 1 % are not tried. An n-tuple network or a
                network with lookahead ranks macro-actions, and the best is the baseline. None: all actions are tried,
                and the baseline is that of the rollout.
            rollout: plays the worlds on for its side; None: the scripted player does for all.
            leaf: an n-tuple network that values the position where a playout stops; None: playouts go to the end of
                the deal.
            leaf_after: a playout stops before this many chance events.
            leaf_playout: share of a result that comes from the scripted player's play on from there to the end.
            arms: that a ranking prior keeps, at most (and at most `worlds`).
            threads: that share decisions, or the worlds of one (default: one for each core); the result is the same.

        Raises:
            ValueError: a part is no such thing, or the parts don't go together; see `check_parts`.
        """
        check_game(game)
        self.game = game
        self.worlds = check_int(worlds, 1, UNLIMITED, "worlds")
        cores = (os.cpu_count() or 1) if threads is None else threads
        self.threads = check_int(cores, 1, None, "threads")
        if seconds is None and worlds == UNLIMITED:
            raise ValueError("search: expected a number of worlds, or seconds")
        if seconds is not None and not (type(seconds) in (int, float) and 0 < seconds < float("inf")):
            raise ValueError(f"seconds: expected a number above 0, got {seconds!r:.80}")
        self.seconds = seconds
        check_choice(moves, get_args(Moves), "moves")
        self.moves = moves
        self.prior, self.rollout, self.leaf = prior, rollout, leaf
        self.leaf_after = check_int(leaf_after, 1, 1 << 20, "leaf_after")
        if type(leaf_playout) not in (int, float) or not 0 <= leaf_playout <= 1:
            raise ValueError(f"leaf_playout: expected a number from 0 to 1, got {leaf_playout!r:.80}")
        self.leaf_playout = float(leaf_playout)
        self.arms = check_int(arms, 2, MAX_MACROS, "arms")
        self._parts = check_parts(self)
        is_compiled = self._parts.rollout_weights is not None or self._parts.rollout_network is not None
        self._in_python = None if is_compiled else rollout
        self.plans = PlanCache(game)
        affordable = STEPS_PER_WORLD * self.worlds
        if seconds is not None:
            affordable = min(affordable, int(math.sqrt(STEPS_IN_A_SECOND * seconds)))
        self.refine_steps = MAX_STEPS if rollout is not None else min(affordable, MAX_STEPS)
        self._idle: list[WorkerPool] = []
        self._playout_seconds = FIRST_PLAYOUT

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
        least = seconds if self.seconds is None else min(seconds, self.seconds)
        return SearchPolicy(self.game, **{**self.settings, "seconds": least, "threads": threads})

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the search was made with, by name."""
        return {name: getattr(self, name) for name in SETTINGS}

    def __repr__(self) -> str:
        made_of = ", ".join(f"{name}={value!r}" for name, value in self.settings.items() if value is not None)
        return f"SearchPolicy({self.game.name}, {made_of})"

    def reset(self) -> None:
        """Forget plans, and those of the parts; see `Policy`."""
        self.plans.clear()
        self._playout_seconds = FIRST_PLAYOUT
        for part in (self.prior, self.rollout):
            if part is not None:
                reset(part)

    def __getstate__(self) -> dict[str, Any]:
        """Leave threads and scratch out of copies."""
        return {**self.__dict__, "_idle": []}

    def search(self, decisions: Decisions, rng: np.random.Generator) -> SearchResult:
        """Search at all tables. Raises ValueError or IllegalMove where a part is of no use."""
        if decisions.game != self.game:
            raise ValueError(f"search: it plays {self.game.name}, not {decisions.game.name}")
        decisions = decisions.copy()
        states = decisions.worlds(rng, 1)[:, 0].copy()
        n, num_actions = decisions.mask.shape
        keys = checked("rng.integers", rng.integers(0, 1 << 64, n, np.uint64), (n,), UINT64)
        baselines, tried = self._baselines(decisions)
        results = new_results(n, self._length, num_actions)
        pool = self._pool(np.random.default_rng(keys))
        moves = pool.decide(
            Batch(states, keys, baselines, tried), self._limits(self.seconds), self._budget(), self.seconds, results
        )
        self._playout_seconds = pool.playout_seconds
        self._idle.append(pool)
        if self.moves == "turn":
            self.plans.add(states, results.macros)
        return SearchResult(results.macros, results.baselines, results.expected, results.stats, moves)

    @property
    def _length(self) -> int:
        """The length of its macro-actions."""
        return MAX_LENGTH if self.moves == "turn" else 1

    def _budget(self) -> Budget:
        return budget_of(LONGER * self.worlds, self.refine_steps)

    def _baselines(self, decisions: Decisions) -> tuple[Int64s, Int8s]:
        """Return [n] the baseline actions, and [n, A] the actions to try, all of them legal."""
        asked = self.rollout if self.prior is None else self.prior
        if asked is None or self._ranks:
            return decisions.bot_moves(PLAYER), decisions.mask
        probabilities = probabilities_of(asked, decisions.copy())  # it may write into what it gets
        baselines = decisions.check(probabilities.argmax(axis=1), f"{name_of(asked)} in a search")
        if self.prior is None:
            return baselines, decisions.mask
        certain = probabilities.max(axis=1, keepdims=True) == 1  # a deterministic prior ranks no other actions
        return baselines, decisions.mask * (certain | (probabilities >= LEAST_PROBABILITY))

    @property
    def _ranks(self) -> bool:
        """True if the prior ranks macro-actions."""
        return self._parts.prior_weights is not None or self._parts.prior_network is not None

    def _limits(self, seconds: float | None) -> Limits:
        """Return how many macro-actions the worlds, and a share of the time, are enough for."""

        def affordable(per_world: int, most: int, seconds_each: float) -> int:
            by_worlds = min(per_world * self.worlds, most)
            return by_worlds if seconds is None else min(by_worlds, int(FIRST_SHARE * seconds / seconds_each))

        goes_on = self._ranks or (self.prior is None and self.rollout is None)
        if self._parts.prior_network is not None:
            candidates = affordable(SCORED_PER_WORLD, MAX_SCORED, SCORE_SECONDS)
        else:
            candidates = affordable(MACROS_PER_WORLD, MAX_MACROS, FIRST_BATCH * self._playout_seconds)
        arms = affordable(1, self.arms, self._playout_seconds)
        least = 2 * self.game.rules.NUM_ACTIONS  # the baseline, and each action as a candidate
        return Limits(max(candidates, least), max(arms, 2), goes_on, follow_mode(self.game, True))

    def _pool(self, rng: np.random.Generator) -> WorkerPool:
        """Take an idle pool of workers, or make one: several threads may search at once."""
        pool = None
        while self._idle and pool is None:
            pool = self._idle.pop()
            if pool.process != os.getpid():  # made before a fork: its threads are gone
                pool = None
        if pool is None:
            most, tables = self._limits(None), self._parts.prior_weights is not None
            candidates = 0 if self.moves == "single" else most.arms if tables else most.candidates
            ranked = policy_of(self.prior).max_positions if tables else 1
            played = ROLLOUT_POSITIONS if self._parts.rollout_weights is not None else 1
            pool = WorkerPool(self.game, self.threads, self._parts, candidates, ranked, played)
        pool.in_python = None if self._in_python is None else self._asked(self._in_python, rng)
        pool.playout_seconds = self._playout_seconds
        return pool

    def _asked(self, player: Policy, rng: np.random.Generator) -> Any:
        """Return what tries the arms of a stage by asking a policy in Python."""

        def try_stage(batch: Batch, i: int, arms: Arms, budget: Budget, stats: ArmStats) -> int:
            part = slice(i, i + 1)
            return try_with_policy(
                self.game, batch.states[part], batch.keys[part], arms, budget, player, rng, self._parts.leaf, stats
            )

        return try_stage


def _values(found: SearchResult) -> ActionValues:
    """Return the estimates that a search found."""
    stats, worlds = found.stats, found.stats.worlds
    with np.errstate(invalid="ignore", divide="ignore"):
        advantages = np.where(worlds > 0, stats.advantages / worlds, np.nan)
        errors = standard_error(stats.sums, stats.squares, worlds)
        advantage_errors = standard_error(stats.advantages, stats.advantage_squares, worlds)
    means = found.expected[:, None] + advantages
    return ActionValues(means, errors, advantages, advantage_errors, worlds, found.chosen)


def check_parts(search: SearchPolicy) -> Parts:
    """Return the compiled parts of a search.

    This is all that can't be:

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
    prior, rollout, leaf = (policy_of(part) for part in (search.prior, search.rollout, search.leaf))
    if leaf is None:
        if (search.leaf_after, search.leaf_playout) != (2, 0.0):
            raise ValueError("leaf_after and leaf_playout: expected a leaf as well")
    elif not isinstance(leaf, NTuplePolicy):
        raise ValueError(f"leaf: expected an n-tuple network, got {name_of(leaf)}")
    ranks = search.moves == "turn"
    return Parts(
        prior.table if ranks and isinstance(prior, NTuplePolicy) else None,
        prior.network if ranks and isinstance(prior, LookaheadPolicy) else None,
        rollout.table if isinstance(rollout, NTuplePolicy) and not rollout.sampled else None,
        rollout.network if isinstance(rollout, AfterstatePolicy) and not rollout.sampled else None,
        None if leaf is None else Leaf(leaf.table, search.leaf_after, search.leaf_playout),
        isinstance(rollout, LookaheadPolicy),
    )


def policy_of(policy: Policy | None) -> Any:
    """Return the policy itself, whatever opponents it is wrapped in."""
    while isinstance(policy, Opponent):
        policy = policy.policy
    return policy


def standard_error(sums: NDArray[np.float64], squares: NDArray[np.float64], worlds: Int64s) -> NDArray[np.float64]:
    """Return [n, A] standard errors of means; nan for a single world, and for none."""
    means = sums / worlds
    variances = np.maximum(squares / worlds - means**2, 0) * worlds / (worlds - 1)
    error: NDArray[np.float64] = np.sqrt(variances / worlds)
    return error


def why_not(best: ActionValue, other: ActionValue) -> str:
    """Return why a search does not play an action, in words; empty where the difference says it."""
    assert other.difference is not None
    if other.worlds == 0:
        return "not tried: unlikely by its prior, or merged with another"
    if other.dropped:
        return f"dropped after {other.worlds} of {best.worlds} worlds"
    if other.difference_error == 0 == other.difference:
        return f"the same in all worlds as {best.move}"
    return "better perhaps by chance alone" if other.difference > 0 else ""
