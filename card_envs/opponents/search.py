"""Searching opponents: moves are tried in worlds that fit what the seat knows, played out by `greedy`.

Perfect-information Monte Carlo (Ginsberg 2001), with the same worlds for all moves of a decision. Worlds that don't
explain what the other seats did are drawn less often: in Back Alley search believes bids and cards.

A search that plans compares lines of moves instead, up to where something hidden shows or others move, and plays the
best one to its end without another look: on the way nothing new becomes known. A network that reads where moves lead
ranks the lines first; its best one is the one to beat, and only those next to it are tried. So does an n-tuple network,
which is asked again some looks at hidden cards later, in place of a playout to the end or beside one.
"""

from __future__ import annotations

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.buffers import UINT64, check_bool, check_game, check_int, checked
from card_envs.engine.compile import specialize
from card_envs.files import short_repr
from card_envs.game import Game, Int8s, Int64s, UInt64s
from card_envs.opponents.lines import LONGEST, NO_MOVE, Lines, find_lines, new_reach, single_moves
from card_envs.opponents.networks.afterstate_network import AfterstateNetwork, line_scores
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.networks.ntuples import planner_of
from card_envs.opponents.networks.policies import LookaheadPolicy
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
from card_envs.opponents.remembered import Remembered
from card_envs.opponents.rollouts import Rollouts
from card_envs.opponents.searching import (
    ALL_MOVES,
    FIRST_LOOK,
    TO_THE_END,
    Budget,
    Ending,
    Floats,
    Scratch,
    Tables,
    Trials,
    choose_lines,
    enter_race,
    judge_stage,
    new_scratch,
    no_trials,
    try_stage,
)
from card_envs.opponents.value import ValueNetwork, checked_net

PLAYER = "greedy"  # who plays the worlds out
# Standard errors by which another move must be better than the player's own. Without doubt, noise decides between
# moves of equal worth; 1 was the best of 0, 0.5, 1, 2 in Big Ben, and 1 and 2 the best in Back Alley.
DOUBT = 1.0
LUCK = 0.25  # standard deviations that a mean lead may still move by, for each time the number of worlds is doubled
LONGER = 4  # times as many worlds for the last rival, while it is in doubt
HORIZON = 60  # moves that are played out before a value network is asked
# Threads share the tables of a turn where each has so many, else the worlds of a table once a stage takes that long.
MANY, WORTH_SHARING = 4, 5e-4  # seconds
# Steps of the Markov chain that improves a world, where the game has one: twice as many as there are worlds, about as
# long as playing the moves out takes; beyond the most, worlds hardly get better.
STEPS_PER_WORLD, MOST_STEPS = 2, 512
STEPS_IN_A_SECOND = 1e7  # the square of what a timed search does in a second: twice its worlds, again
LEAST_PROBABILITY = 0.01  # moves that a trained guide thinks less likely are not tried
# Lines that a plan chooses from: so many for each world of the budget, at most so many. A search that has a time spends
# up to a quarter of it on its first look at them.
LINES_PER_WORLD, MOST_LINES = 8, 8192
FIRST_SHARE, SECONDS_A_LINE = 0.25, 5e-5  # for a playout, until it is known how long they take
# Lines that a network ranks, which takes a first look's place: as many as would be left after one are tried.
RANKED_PER_WORLD, MOST_RANKED, SECONDS_TO_RANK = 2, 2048, 1e-5


@dataclass(frozen=True)
class Guide:
    """Who helps a search.

    Attributes:
        policy: its likeliest move is the one to beat; of a trained one, moves that it hardly ever plays are not tried.
        value: what positions are worth; None: deals are played out to the end.
        horizon: moves that are played out before `value` is asked.
        plays_on: whether `policy` plays the deals out for its side, not `greedy`: to the end, so without a `value`.

    A search that plans has a `LookaheadPolicy` or an `NTuplePolicy` rank the lines. The latter is asked for values,
    too, so it plays on only until then.
    """

    policy: Policy
    value: ValueNetwork | None = None
    horizon: int = HORIZON
    plays_on: bool = False

    def __post_init__(self) -> None:
        check_policy(self.policy, "guide: policy")
        if not isinstance(self.value, ValueNetwork | None):
            raise ValueError(f"guide: value: expected a ValueNetwork or None, got {short_repr(self.value)}")
        check_int(self.horizon, 0, ALL_MOVES, "horizon")
        check_bool(self.plays_on, "guide: plays_on")
        if self.plays_on and self.value is not None:
            raise ValueError("guide: who plays on plays to the end: no value network")

    @property
    def plays_lines(self) -> bool:
        """Whether who plays on does so a line at a time, as a search that plans needs it."""
        return self.plays_on and isinstance(self.ranker, NTuplePolicy)

    @property
    def ranker(self) -> AfterstateNetwork | NTuplePolicy | None:
        """The network that ranks lines, if `policy` is one."""
        policy: Any = self.policy
        while isinstance(policy, Opponent):
            policy = policy.policy
        if isinstance(policy, NTuplePolicy):
            return policy
        return policy.mover if isinstance(policy, LookaheadPolicy) else None


class SearchResult(NamedTuple):
    """What a search found out.

    Attributes:
        own: [n] the moves that needed no reason.
        expected: [n] points that the own line brings on the mean.
        lines: [n, L] the moves to make, one after the other; NO_MOVE where a line has ended.
        trials: [n, A] what became of each move, or of the best line that begins with it.
        moves: made in all worlds.
    """

    own: Int64s
    expected: Floats
    lines: NDArray[np.int16]
    trials: Trials
    moves: int

    @property
    def chosen(self) -> Int64s:
        """[n] the moves to make now."""
        return self.lines[:, 0].astype(np.int64)


class SearchPolicy:
    """Plays the move that is best on average over sampled worlds, in compiled code, on all cores."""

    def __init__(
        self,
        game: Game,
        num_worlds: int = ALL_MOVES,
        num_threads: int | None = None,
        guide: Guide | None = None,
        seconds: float | None = None,
        plans: bool = False,
    ) -> None:
        """Search with a budget.

        Args:
            game: what it plays.
            num_worlds: after which only the best rival of the move to beat is left; moves that fall behind are dropped
                earlier, and the last one gets up to four times as many while it is in doubt.
            num_threads: that share the tables of a turn, or the worlds of a table (default: one for each core); the
                moves are the same.
            guide: proposes moves and may cut playouts short, or plays them out (in one thread, unless lines are
                compared); None: all moves, played out to the end of the deal.
            seconds: for each decision, which has all threads to itself; fewer worlds are looked at then. How many
                depends on the machine, so that a search that this cuts short does not repeat exactly. What has begun
                is ended, which matters where a guide plays on: its first eight worlds may take longer.
            plans: whether lines of moves are compared up to where something hidden shows, instead of moves.
        """
        check_game(game)
        self.game = game
        self.num_worlds = check_int(num_worlds, 1, ALL_MOVES, "num_worlds")
        threads = (os.cpu_count() or 1) if num_threads is None else num_threads
        self.num_threads = check_int(threads, 1, None, "num_threads")
        if not isinstance(guide, Guide | None):
            raise ValueError(f"guide: expected a Guide or None, got {short_repr(guide)}")
        self.guide = guide
        if seconds is None and num_worlds == ALL_MOVES:
            raise ValueError("search: expected a number of worlds, or seconds")
        if seconds is not None and not (isinstance(seconds, int | float) and 0 < seconds < float("inf")):
            raise ValueError(f"seconds: expected a number above 0, got {seconds!r:.80}")
        self.seconds = seconds
        self.plans = check_bool(plans, "plans")
        if plans and guide is not None and guide.plays_on and not guide.plays_lines:
            raise ValueError("guide: of those who play on, only an n-tuple network makes plans")
        self.ranker = None if guide is None or not plans else guide.ranker
        self.plays_lines = plans and guide is not None and guide.plays_lines
        self.remembered = Remembered(game)
        self.seconds_a_line = SECONDS_A_LINE
        affordable = STEPS_PER_WORLD * num_worlds
        if seconds is not None:
            affordable = min(affordable, int(math.sqrt(STEPS_IN_A_SECOND * seconds)))
        slow = guide is not None and guide.plays_on  # takes longer than the most steps
        self.steps = MOST_STEPS if slow else min(affordable, MOST_STEPS)

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        if not self.plans:
            return self.search(decisions, rng).chosen
        return self.remembered.act(decisions, lambda new: self.search(new, rng).chosen)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        chosen = self.act(decisions, np.random.default_rng(0))
        return np.eye(decisions.mask.shape[1], dtype=np.float32)[chosen]

    def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues:
        """What each move brings in points by the end of the deal; nan where it was not tried."""
        found = self.search(decisions, rng)
        trials, worlds = found.trials, found.trials.worlds
        with np.errstate(invalid="ignore", divide="ignore"):
            leads = np.where(worlds > 0, trials.leads / worlds, np.nan)
            errors = standard_error(trials.sums, trials.squares, worlds)
            lead_errors = standard_error(trials.leads, trials.lead_squares, worlds)
        return ActionValues(found.expected[:, None] + leads, errors, leads, lead_errors, worlds, found.chosen)

    def within(self, seconds: float, threads: int = 1) -> SearchPolicy:
        """The same search, cut short where it would take longer for a decision; see `Policy`."""
        seconds = seconds if self.seconds is None else min(seconds, self.seconds)
        return SearchPolicy(self.game, self.num_worlds, threads, self.guide, seconds, self.plans)

    def reset(self) -> None:
        """Forget plans, and those of the guide; see `Policy`."""
        self.remembered.clear()
        self.seconds_a_line = SECONDS_A_LINE
        if self.guide is not None:
            reset(self.guide.policy)

    def _proposals(self, decisions: Decisions) -> tuple[NDArray[np.int64], Int8s]:
        """[n] the moves to beat, and [n, A] those to try, all of them legal."""
        if self.guide is None or self.ranker is not None:
            return decisions.bot_moves(PLAYER), decisions.mask
        probabilities = probabilities_of(self.guide.policy, decisions.copy())  # it may write into what it gets
        certain = probabilities.max(axis=1, keepdims=True) == 1  # such as scripted players, who rank no other moves
        likely = probabilities > 0 if self.guide.plays_on else probabilities >= LEAST_PROBABILITY
        own = decisions.check(probabilities.argmax(axis=1), f"guide {name_of(self.guide.policy)}")
        return own, decisions.mask * (certain | likely)

    def search(self, decisions: Decisions, rng: np.random.Generator) -> SearchResult:
        """Try the moves at all tables. Raises ValueError or IllegalMove where the guide is of no use."""
        if decisions.game != self.game:
            raise ValueError(f"search: it plays {self.game.name}, not {decisions.game.name}")
        decisions = decisions.copy()
        states = decisions.worlds(rng, 1)[:, 0].copy()
        n = len(decisions)
        keys = checked("rng.integers", rng.integers(0, 1 << 64, n, np.uint64), (n,), UINT64)
        own, tried = self._proposals(decisions)
        step = 1 if self.seconds is not None else MANY * self.num_threads if self.plans else max(n, 1)
        expected, trials = np.zeros(n), no_trials(decisions.mask.shape)
        lines = np.full((n, LONGEST if self.plans else 1), NO_MOVE, np.int16)
        moves = 0
        with self._crew(keys) as crew:
            for first in range(0, n, step):
                part = slice(first, first + step)
                tables = self._tables(states[part], keys[part], own[part], tried[part])
                shares = Trials._make(array[part] for array in trials)
                found = no_trials(tables.live.shape) if self.plans else shares
                moves += self._search(tables, found, crew)
                rows, best = np.arange(len(tables.own)), choose_lines(tables.own, tables.live, DOUBT, found)
                lines[part], own[part] = tables.lines[rows, best], tables.lines[rows, tables.own, 0]
                with np.errstate(invalid="ignore"):  # a move without rivals is not tried
                    expected[part] = found.sums[rows, tables.own] / found.worlds[rows, tables.own]
                if self.plans:
                    gather_by_move(tables.lines[:, :, 0], found, shares)
        if self.plans:
            self.remembered.note(states, lines)
        return SearchResult(own, expected, lines, trials, moves)

    def _tables(self, states: NDArray[Any], keys: UInt64s, own: Int64s, tried: Int8s) -> Tables:
        """What is searched, before anything is tried: lines of one move, or plans."""
        n, num_actions = tried.shape
        if not self.plans:
            lines = np.tile(single_moves(num_actions), (n, 1, 1))
            return Tables(states, keys, lines, own, tried, enter_race(own, tried))
        lines, live, first = self._plans(states, own, tried)
        return Tables(states, keys, lines, first, live, enter_race(first, live))

    def _plans(self, states: NDArray[Any], own: Int64s, tried: Int8s) -> tuple[Lines, Int8s, Int64s]:
        """Lines [n, C, L], those that are tried [n, C], and [n] which of them is the one to beat."""
        n, num_actions = tried.shape
        first = np.zeros(n, np.int64)
        if isinstance(self.ranker, NTuplePolicy):
            most = min(self._affordable(1, self.seconds_a_line), planner_of(self.game).MOST_LINES)
            return *self.ranker.best_lines(states, max(most, 2)), first
        tried_at_first = self._affordable(LINES_PER_WORLD, FIRST_LOOK * self.seconds_a_line)
        most = min(tried_at_first, MOST_LINES)
        if self.ranker is not None:
            most = min(self._affordable(RANKED_PER_WORLD, SECONDS_TO_RANK), MOST_RANKED)
        most = max(most, 2 * num_actions)
        lines, live = np.empty((n, most, LONGEST), np.int16), np.zeros((n, most), np.int8)
        plays_on = self.guide is None or self.ranker is not None
        specialize(find_lines, self.game, PLAYER)(
            0, n, states, own, tried, plays_on, new_reach(self.game, most), lines, live
        )
        if self.ranker is not None:
            left = max(min(self.num_worlds // FIRST_LOOK, tried_at_first), 2)
            first = keep_best(live, line_scores(self.game, states, lines, live, self.ranker), left)
        return lines, live, first

    def _affordable(self, per_world: int, seconds_each: float) -> int:
        """How many lines the budget is enough for."""
        by_worlds = per_world * self.num_worlds
        return by_worlds if self.seconds is None else min(by_worlds, int(FIRST_SHARE * self.seconds / seconds_each))

    def _crew(self, keys: UInt64s) -> Crew | Rollouts:
        if self.guide is not None and self.guide.plays_on and not self.plans:
            return Rollouts(self.game, self.guide.policy, keys)
        most = planner_of(self.game).MOST_PLAYED if self.plays_lines else 1
        return Crew(self.game, self.num_threads, self._ending(), most)

    def _ending(self) -> Ending:
        if isinstance(self.ranker, NTuplePolicy):
            planner = planner_of(self.game)
            looks = planner.LOOKS_PLAYED if self.plays_lines else planner.LOOKS_AHEAD
            return Ending(looks, weights=self.ranker.table, share=planner.PLAYOUT_SHARE)
        if self.guide is None or self.guide.value is None:
            return TO_THE_END
        return Ending(self.guide.horizon, checked_net(self.game, self.guide.value.net))

    def _search(self, tables: Tables, trials: Trials, crew: Crew | Rollouts) -> int:
        """Try the lines at these tables until all is found out, or the budget is spent."""
        judge = specialize(judge_stage)
        n, moves = len(tables.own), 0
        budget = budget_of(LONGER * self.num_worlds, self.steps)
        start = time.perf_counter()
        unsettled = n
        while unsettled:
            moves += crew.try_stage(tables, budget, trials)
            unsettled = judge(0, n, tables.live, budget, tables.race, trials)
            if self.seconds is not None:
                self.seconds_a_line = (time.perf_counter() - start) / max(1, int(trials.worlds.sum()))
                share = (time.perf_counter() - start) / self.seconds
                if share >= 1:
                    break
                most = min(LONGER * self.num_worlds, int(tables.race.worlds.max() / share))
                budget = budget_of(most, self.steps)
        return moves


def budget_of(most: int, steps: int) -> Budget:
    """The budget of a search in at most so many worlds: the more there are, the surer it must be to leave early."""
    worlds = max(most // LONGER, 1)
    return Budget(worlds, most, DOUBT, LUCK * math.log2(worlds), steps)


class Crew:
    """Threads that share stages of searches."""

    def __init__(self, game: Game, num_threads: int, ending: Ending, most: int) -> None:
        self.ending = ending
        self.loop = specialize(try_stage, game, PLAYER)
        self.scratches = [new_scratch(game, ending.net, most) for _ in range(num_threads)]
        self.values = [np.zeros(most) if most > 1 else None for _ in range(num_threads)]
        self.pool = ThreadPoolExecutor(num_threads) if num_threads > 1 else None
        self.last_stage = 0.0  # seconds

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def try_stage(self, tables: Tables, budget: Budget, trials: Trials) -> int:
        """Try the lines in the worlds of a stage; returns how many moves were made in all worlds."""
        n, num_lines = tables.live.shape
        threads = len(self.scratches)
        start = time.perf_counter()
        if self.pool is None or not (n >= MANY * threads or self.last_stage > WORTH_SHARING):
            moves = self.loop(0, n, 1, *tables, budget, self.ending, self.values[0], self.scratches[0], trials)
        else:
            parts = 1 if n >= MANY * threads else -(-threads // n)
            found = trials if parts == 1 else no_trials((n * parts, num_lines))
            bounds = [n * parts * k // threads for k in range(threads + 1)]

            def work(first: int, last: int, values: Floats | None, scratch: Scratch) -> int:
                return self.loop(first, last, parts, *tables, budget, self.ending, values, scratch, found)

            moves = sum(self.pool.map(work, bounds[:-1], bounds[1:], self.values, self.scratches))
            if parts > 1:
                for whole, shares in zip(trials, found):
                    whole += shares.reshape(n, parts, num_lines).sum(axis=1)
        self.last_stage = time.perf_counter() - start
        return moves


def keep_best(live: Int8s, scores: NDArray[np.float32], most: int) -> Int64s:
    """Leave so many of the live lines [n, C] that score highest; returns [n] the best of all."""
    order = np.argsort(np.where(live != 0, -scores, np.inf), axis=1, kind="stable")
    np.put_along_axis(live, order[:, most:], 0, axis=1)
    return order[:, 0]


def gather_by_move(first_moves: NDArray[np.int16], found: Trials, trials: Trials) -> None:
    """Write what became of each move: that of the line which begins with it and got furthest, or has the best lead.

    Args:
        first_moves: [n, C] what lines begin with.
        found: [n, C] what became of lines.
        trials: [n, A] is written.
    """
    with np.errstate(invalid="ignore"):
        leads = np.where(found.worlds > 0, found.leads / found.worlds, -np.inf)
    for i, order in enumerate(np.lexsort((leads, found.worlds))):  # the best one last, which overwrites the others
        order = order[found.worlds[i, order] > 0]
        for whole, lines in zip(trials, found):
            whole[i, first_moves[i, order]] = lines[i, order]


def standard_error(sums: Floats, squares: Floats, worlds: Int64s) -> Floats:
    """[n, A] standard errors of means; nan for a single world, and for none."""
    means = sums / worlds
    variances = np.maximum(squares / worlds - means**2, 0) * worlds / (worlds - 1)
    error: Floats = np.sqrt(variances / worlds)
    return error


def why_not(best: ActionValue, other: ActionValue) -> str:
    """Why a search does not play a move, in words; empty where its margin says it."""
    assert best.margin is not None and other.margin is not None
    if other.worlds == 0:
        return "not tried: its guide finds it unlikely, or it comes to the same as another"
    if other.worlds < best.worlds:
        return f"dropped after {other.worlds} of {best.worlds} worlds: no better"
    if (other.margin, other.error) == (best.margin, best.error):
        return f"the same in all worlds as {best.move}"
    return "more perhaps by chance alone" if other.margin > best.margin else ""
