"""SearchPolicy: plays the action that is best on average over worlds that fit what the seat knows.

Perfect-information Monte Carlo (Ginsberg 2001), with the same worlds for all arms of a decision; worlds that don't
explain what the other seats did are drawn less often. A search is made of functions (`_parts.py`) for

- candidates: single actions, or all that the seat can do before something hidden shows (`_candidates.py`);
- prior: who names the baseline, and prunes (here) or ranks the candidates;
- rollout: who plays the worlds on;
- leaf: where a rollout stops.

`_decide.py` has the loop that calls them, and `_budget.py` how many worlds each arm gets. `_workers.py` lets threads
share decisions or the worlds of one, and keeps to a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import UINT64, checked
from card_envs.game import GREEDY, Int8s, Int64s, UInt64s
from card_envs.opponents.macros import MAX_LENGTH, NO_ACTION, Macros, PlanCache
from card_envs.opponents.policy import ActionValue, ActionValues, Decisions, Policy
from card_envs.opponents.search._budget import (
    FIRST_BATCH,
    LONGER,
    MAX_STEPS,
    STEPS_IN_A_SECOND,
    STEPS_PER_WORLD,
    UNLIMITED,
    Z_THRESHOLD,
    Budget,
)
from card_envs.opponents.search._decide import SearchBatch, SearchResults, new_results
from card_envs.opponents.search._parts import ranks_macros
from card_envs.opponents.search._settings import MAX_MACROS, PARTS, SearchSettings
from card_envs.opponents.search._workers import FIRST_PLAYOUT, Pace, SearchWorkers, ThreadWorkers

LEAST_PROBABILITY = 0.01  # a prior's actions below it are not tried
# Macro-actions that are found: this many for each world, at most MAX_MACROS. With a time, finding and trying them for
# the first time may take a quarter of it.
MACROS_PER_WORLD, FIRST_SHARE = 8, 0.25
# In a name, these settings follow the budget if they are not what they are without being named.
NAMED_SETTINGS = ("moves", *PARTS, "leaf_after", "leaf_playout", "arms")


class SearchPolicy(SearchSettings, Policy):
    """Plays the action that is best on average over sampled worlds, in compiled code, on all cores.

    Attributes:
        game: the game.
        worlds: number after which one rival of the baseline is left; arms that fall behind are dropped earlier, and the
            last one gets up to four times as many while it is in doubt.
        seconds: bound on a decision, which has all threads to itself. A search that is cut short does not repeat
            exactly. What has begun is ended: with a slow rollout the first eight worlds may take longer.
        moves: "single": the candidates are single actions; "turn": all that the seat can do before something hidden
            shows, as macro-actions.
        prior: its likeliest action is the baseline, and actions below 1 % are not tried. An n-tuple network ranks
            macro-actions, and the best is the baseline. None: all actions are tried, and the baseline is that of the
            rollout.
        rollout: plays the worlds on for its side, in compiled code: an n-tuple network, or one of moves, that plays the
            likeliest. None: the scripted player does for all.
        leaf: an n-tuple network that values the position where a rollout stops; None: rollouts go to the end of the
            deal.
        leaf_after: a rollout stops before this many chance events.
        leaf_playout: share of a result that comes from the scripted player's play on from there to the end.
        arms: most arms that a ranking prior keeps (and at most `worlds`).
        threads: number that share decisions, or the worlds of one (None: one for each core); the result is the same.
        refine_steps: Metropolis steps that improve each world (None: as many as the budget is worth).
        rollout_positions: most positions that an n-tuple network values at each decision of a rollout.
        plans: the rest of chosen macro-actions.

    Raises:
        ValueError: a part is not such a policy or plays another game, or there are settings of a leaf without one.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plans = PlanCache()
        self._pace = Pace()
        self._of_thread = ThreadWorkers()

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        return self.act_and_evaluate(decisions, rng)[0]

    def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues:
        """Return the expected points of each action by the end of the deal; NaN if it was not tried.

        Where there is only one candidate, such as the best of merged actions, it is played without being tried.
        """
        return _values(self.search(decisions, rng))

    def act_and_evaluate(
        self, decisions: Decisions, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], ActionValues | None]:
        """Return actions and estimates; none for actions of a macro-action under way, which needs no search."""
        if self.moves == "single":
            results = self.search(decisions, rng)
            return results.chosen, _values(results)
        decisions, actions = self.plans.look_up(decisions)
        new = np.flatnonzero(actions == NO_ACTION)
        if not len(new):
            return actions, None
        results = self.search(decisions.at(new), rng)
        actions[new] = results.chosen
        return actions, ActionValues.joined(actions, decisions.mask.shape[1], [(new, _values(results))])

    def within(self, seconds: float, threads: int = 1) -> SearchPolicy:
        """Return a copy of the search with a limit on the time of a decision."""
        seconds = min(seconds, self.seconds or seconds)
        changes: dict[str, Any] = {name: part.within(math.inf, threads) for name, part in self.named_parts().items()}
        changes |= {"seconds": None if seconds == math.inf else seconds, "threads": threads}
        return replace(self, **changes).named(self.name)

    def with_parts(self, change: Callable[[Policy], Policy]) -> SearchPolicy:
        parts: dict[str, Any] = {name: change(part) for name, part in self.named_parts().items()}
        return replace(self, **parts).named(self.name)

    def parts(self) -> tuple[Policy, ...]:
        return (self, *(policy for part in self.named_parts().values() for policy in part.parts()))

    @property
    def default_name(self) -> str:
        """The name that the settings make; those that names don't have are left out."""
        budget = f"{self.worlds}" if self.seconds is None else f"{1000 * self.seconds:g}ms"
        settings = self.settings
        changed = {key: settings[key] for key in NAMED_SETTINGS if settings[key] != getattr(SearchPolicy, key)}
        words = (f"{key}={getattr(value, 'name', value)}" for key, value in changed.items())
        return ",".join([f"search:{budget}", *words])

    def describe(self) -> str:
        if self.seconds is not None:
            return f"searches for {1000 * self.seconds:g} ms"
        return f"searches {self.worlds:,} possible worlds"

    def definition(self) -> list[Any]:
        parts = self.named_parts()  # the moves do not depend on threads
        settings = ((name, value) for name, value in self.settings.items() if name != "threads")
        return [parts[name] if name in parts else f"{name}={value!r}".encode() for name, value in settings]

    def __repr__(self) -> str:
        settings = {name: value for name, value in self.settings.items() if value not in (None, UNLIMITED)}
        made_of = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        return f"SearchPolicy({self.game.name}, {made_of})"

    def reset(self) -> None:
        """Forget plans, and those of the parts; see `Policy`."""
        self.plans.clear()
        self._pace.reset()
        for part in self.named_parts().values():
            part.reset()

    def search(self, decisions: Decisions, rng: np.random.Generator) -> SearchResults:
        """Search at all tables. Raises ValueError or IllegalMove where a part is of no use."""
        if decisions.game != self.game:
            raise ValueError(f"search: it plays {self.game.name}, not {decisions.game.name}")
        decisions = decisions.copy()
        states = decisions.worlds(rng, 1)[:, 0].copy()
        keys = checked("rng.integers", rng.integers(0, 1 << 64, len(states), np.uint64), (len(states),), UINT64)
        results = self.search_worlds(decisions, states, keys)
        if self.moves == "turn":
            self.plans.add(self.game, states, results.macros)
        return results

    def search_worlds(self, decisions: Decisions, states: NDArray[Any], keys: UInt64s) -> SearchResults:
        """Search at all tables, in worlds of given random streams; plans stay as they are.

        Args:
            decisions: n decisions, in arrays of their own.
            states: [n] a determinization of each.
            keys: [n] keys of the streams.
        """
        n, length = len(states), MAX_LENGTH if self.moves == "turn" else 1
        batch = SearchBatch(states, keys, *self._baselines(decisions), np.zeros((n, 0, length), np.int16))
        return self._decide(batch, self.seconds)

    def try_lines(self, states: NDArray[Any], lines: Macros, keys: UInt64s, worlds: int) -> SearchResults:
        """Play macro-actions out, each in the same number of worlds, and let none drop out.

        Args:
            states: [n] a determinization of each decision.
            lines: [n, K, MAX_LENGTH] macro-actions, the first the baseline; no two begin with the same action.
            keys: [n] keys of the random streams of the worlds.
            worlds: number in which each is tried.
        """
        n, num_actions = len(states), self.game.rules.NUM_ACTIONS
        batch = SearchBatch(states, keys, np.zeros(n, np.int64), np.zeros((n, num_actions), np.int8), lines)
        return self._decide(batch, None, self.budget(None).of_lines(lines.shape[1], worlds))

    def _decide(self, batch: SearchBatch, seconds: float | None, budget: Budget | None = None) -> SearchResults:
        """Return the results of decisions; by default, each has the budget of the search."""
        results = new_results(len(batch.states), batch.lines.shape[2], self.game.rules.NUM_ACTIONS)
        budget = budget or self.budget(seconds, self._pace.playout_seconds)
        with self._of_thread.borrow(lambda: SearchWorkers(self, self.budget(None), self.threads or 1)) as workers:
            moves = workers.decide(batch, budget, seconds, results, self._pace)
        return results._replace(moves=moves)

    def _baselines(self, decisions: Decisions) -> tuple[Int64s, Int8s]:
        """Return [n] the baseline actions, and [n, A] the actions to try, all of them legal."""
        policy = self.rollout if self.prior is None else self.prior
        if policy is None or ranks_macros(self):
            return decisions.bot_moves(GREEDY), decisions.mask
        probabilities = policy.probabilities(decisions.copy())  # it may write into what it gets
        baselines = decisions.check(probabilities.argmax(axis=1), f"{policy.name} in a search")
        if self.prior is None:
            return baselines, decisions.mask
        certain = probabilities.max(axis=1, keepdims=True) == 1  # a deterministic prior ranks no other actions
        return baselines, decisions.mask * (certain | (probabilities >= LEAST_PROBABILITY))

    def budget(self, seconds: float | None, playout_seconds: float = FIRST_PLAYOUT) -> Budget:
        """Return the budget of a decision: with a time, as many arms as a share of it is enough for."""

        def affordable(per_world: int, most: int, seconds_each: float) -> int:
            by_worlds = min(per_world * self.worlds, most)
            return by_worlds if seconds is None else min(by_worlds, int(FIRST_SHARE * seconds / seconds_each))

        if ranks_macros(self):  # n-tuple networks find the best alone
            candidates = max(affordable(1, self.arms, playout_seconds), 2)
        else:
            least = 2 * self.game.rules.NUM_ACTIONS  # the baseline, and each action as a candidate
            candidates = max(affordable(MACROS_PER_WORLD, MAX_MACROS, FIRST_BATCH * playout_seconds), least)
        steps = self._steps() if self.refine_steps is None else self.refine_steps
        unlimited = Budget(0, 0, Z_THRESHOLD, 0.0, steps, candidates)
        return unlimited.with_max_worlds(LONGER * self.worlds)

    def _steps(self) -> int:
        """Return how many steps to refine a world with are worth their time."""
        if self.rollout is not None:
            return MAX_STEPS
        affordable = STEPS_PER_WORLD * self.worlds
        if self.seconds is not None:
            affordable = min(affordable, int(math.sqrt(STEPS_IN_A_SECOND * self.seconds)))
        return min(affordable, MAX_STEPS)


def _values(results: SearchResults) -> ActionValues:
    """Return the estimates of a search."""
    stats, worlds = results.stats, results.stats.worlds
    with np.errstate(invalid="ignore", divide="ignore"):
        advantages = np.where(worlds > 0, stats.advantages / worlds, np.nan)
    return ActionValues(results.expected[:, None] + advantages, advantages, worlds, results.chosen)


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
