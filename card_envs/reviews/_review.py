"""A review as data: of a recorded game, or of decisions that a policy made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import FEW, estimate
from card_envs.compare.games import GamePlan, Plan, play_games, portions
from card_envs.compare.rows import read_rows
from card_envs.compare.spread import THIS_PROCESS, Executor
from card_envs.engine.buffers import check_int
from card_envs.envs._replay import game_of
from card_envs.game import Game, Int64s
from card_envs.opponents.about import warn_if_unlike_training
from card_envs.opponents.names import load_cached
from card_envs.opponents.policy import Opponent, decisions_at
from card_envs.play.episode import read_episode
from card_envs.record import GameRecord
from card_envs.reviews._judge import MoveJudge
from card_envs.system.files import finite

JUDGE = "strong"  # unless another is named
BATCH_SIZE = 16  # decisions that are judged together
NUMBER, GAMES = 1000, 50  # decisions of a policy that are judged, and games that they are from
LEAST = 300  # decisions of several games without which their means have no error
SURE = 2.0  # standard errors by which a cost must exceed 0 for the move to be called worse
LEVEL = "by more than 2 errors, as 1 of 44 equal moves is by chance"  # one-sided: P(z > 2) = 0.0228
THIRDS = ("first third", "middle third", "last third")


class Decided(NamedTuple):
    """n decisions to judge.

    Attributes:
        game: [n] number of the game.
        number: [n] moves before it in the game.
        length: [n] of the game, in moves.
        states: [n] State in which it was made.
        action: [n] what was played.
        weight: [n] how many decisions of its game it stands for.
    """

    game: Int64s
    number: Int64s
    length: Int64s
    states: NDArray[Any]
    action: Int64s
    weight: NDArray[np.float64]

    def at(self, rows: Any) -> Decided:
        """Return the decisions at these rows."""
        return Decided(*(column.take(rows) for column in self))  # indexing States copies by field


@dataclass(frozen=True)
class ReviewedMove:
    """A decision with more than one legal move, judged.

    Attributes:
        game: number of the game: of its deal, in the review of a policy.
        number: of moves before it in the game.
        seat: who moved.
        phase: of the game: its own (bidding, play), or a third of this game.
        played, best: the move, and the one that the judge would play, in the game's notation.
        cost: how much better the judge's move is, in the game's `margin_unit`; below 0 the move looked better.
        error: standard error of the cost.
        weight: how many decisions of its game it stands for, in a sample.
        view: what the seat saw.
    """

    game: int
    number: int
    seat: int
    phase: str
    played: str
    best: str
    cost: float
    error: float
    weight: float
    view: dict[str, Any]

    @property
    def is_worse(self) -> bool:
        """True if the cost is clearly above 0; see LEVEL."""
        return self.cost > SURE * self.error


@dataclass(frozen=True)
class CostSummary:
    """A summary of decisions.

    Attributes:
        decisions: how many were judged.
        cost: mean cost of one.
        error: of that mean: plus or minus 2 of it hold the true one 95 times of 100. Games differ, and few decisions
            cost most, so it comes from the spread between games; nan where there are fewer than 30 games or LEAST
            decisions. Of a single game, all of which was judged, it comes from the errors of the costs.
        total: of all decisions of a game, on average over the games; in the review of a policy, of one side.
        total_error: of the total.
        within_error: share of the moves that are not clearly worse than the judge's.
    """

    decisions: int
    cost: float
    error: float
    total: float
    total_error: float
    within_error: float

    @staticmethod
    def of(moves: Sequence[ReviewedMove], games: int = 1, sides: int = 1) -> CostSummary:
        """Summarize some moves.

        Args:
            moves: of the games, in any order.
            games: that they are from; some may have no such move.
            sides: that share the costs of a game.
        """
        if not moves:
            nan = float("nan")
            return CostSummary(0, nan, nan, 0.0, 0.0, nan)
        weights, costs, errors = (
            np.array([getattr(move, name) for move in moves]) for name in ("weight", "cost", "error")
        )
        _, rows = np.unique([move.game for move in moves], return_inverse=True)
        sizes, totals = (np.bincount(rows, of, games) for of in (weights, weights * costs))
        mean = float(totals.sum() / sizes.sum())
        if games == 1:
            total_error = float(np.sqrt(((weights * errors) ** 2).sum()))
            error = total_error / float(sizes.sum())
        elif games < FEW or len(moves) < LEAST:
            error = total_error = float("nan")
        else:  # the first is of a ratio of two means over games: linearized, as in `share_of_clusters`
            error, total_error = map(_error_of_mean, ((totals - mean * sizes) / sizes.mean(), totals))
        within = float(weights @ [not move.is_worse for move in moves] / sizes.sum())
        return CostSummary(len(moves), mean, error, float(totals.mean()) / sides, total_error / sides, within)


def _error_of_mean(values: NDArray[Any]) -> float:
    """Return the error of a mean over games: 2 of them are the wider half of the 95 % interval, and something more.

    It is nan if the values do not limit the mean.

    Costs have long tails: a game that was not drawn may be as far off as the farthest that was.
    """
    mean = estimate(values)
    farthest = float(np.abs(values - values.mean()).max())
    half = max(mean.high - mean.mean, mean.mean - mean.low)
    return half / 2 + farthest / len(values) if isfinite(half) else float("nan")


@dataclass(frozen=True)
class Review:
    """Judged decisions.

    Attributes:
        game: the game.
        judge: name of the opponent that judged.
        moves: in the order of play.
        total: decisions that there are to judge; more than `moves` if the review was stopped.
        games: that the decisions are from.
        sides: whose costs a game adds up: 1, or in games of a policy against itself all.
    """

    game: Game
    judge: str
    moves: tuple[ReviewedMove, ...]
    total: int
    games: int = 1
    sides: int = 1

    def phases(self, seat: int | None = None) -> dict[str, CostSummary]:
        """Return summaries by phase, and of `all`, for a seat or for all of them."""
        chosen = [move for move in self.moves if seat in (None, move.seat)]
        sides = self.sides if seat is None else 1

        def summary(moves: Sequence[ReviewedMove]) -> CostSummary:
            return CostSummary.of(moves, self.games, sides)

        names = dict.fromkeys(move.phase for move in chosen)
        by_phase = {name: summary([move for move in chosen if move.phase == name]) for name in names}
        return by_phase | {"all": summary(chosen)}

    def costliest(self, number: int = 3) -> list[ReviewedMove]:
        """Return the moves that cost most, the worst first, of those that are clearly worse than the judge's."""
        return sorted((move for move in self.moves if move.is_worse), key=lambda move: -move.cost)[:number]

    def as_dict(self) -> dict[str, Any]:
        """Return the review as JSON-able data."""
        seats = sorted({move.seat for move in self.moves})
        summaries = {str(seat): {name: asdict(part) for name, part in self.phases(seat).items()} for seat in seats}
        about = {"game": self.game.name, "version": self.game.version, "judge": self.judge}
        about |= {"unit": self.game.view.MARGIN_UNIT, "games": self.games, "sides": self.sides}
        about |= {"decisions": self.total, "stopped": len(self.moves) < self.total}
        about |= {"phases": {name: asdict(part) for name, part in self.phases().items()}, "seats": summaries}
        whole: dict[str, Any] = finite(about | {"moves": [asdict(move) for move in self.moves]})
        return whole


class Judged(NamedTuple):
    """Some judged decisions; `first` is the number of the first in the review."""

    first: int
    moves: list[ReviewedMove]


def load_judge(game: Game, by: str) -> MoveJudge:
    """Return the judge of this name. Raises ValueError: there is no such opponent, or it does not search."""
    return MoveJudge(load_cached(by, game, sampled=False))


def judge_decisions(game: Game, by: str, seed: int, portion: tuple[int, Decided]) -> Judged:
    """Judge some decisions, given with the number of the first; what they cost does not depend on the others."""
    first, decided = portion
    priced = load_judge(game, by).costs(
        decisions_at(game, decided.states), decided.action, np.random.default_rng([seed, first])
    )
    columns = zip(*(column.tolist() for column in decided[:3]), decided.states, *map(np.ndarray.tolist, priced))
    moves = []
    for i, (number_of_game, number, length, state, best, cost, error) in enumerate(columns):
        action, weight, seat = int(decided.action[i]), float(decided.weight[i]), int(state["seat"])
        third = THIRDS[min(2, 3 * number // length)]
        phase = next((name for name, actions in game.view.PHASES.items() if action in actions), third)
        played, better = (game.view.move_text(state, move) for move in (action, best))
        view = game.view.view(state, seat)
        moves.append(ReviewedMove(number_of_game, number, seat, phase, played, better, cost, error, weight, view))
    return Judged(first, moves)


@dataclass(frozen=True)
class ReviewTask:
    """The decisions of a review, and who judges them.

    Attributes:
        plan: what was played; its seed is also that of the worlds that the judge draws.
        by: name of the judge.
        decided: the decisions, each with more than one legal move.
        games: that they are from.
        sides: as `Review.sides`.

    Raises:
        ValueError: the seed is not one, there is no such opponent, or it does not search.
    """

    plan: Plan
    by: str
    decided: Decided
    games: int = 1
    sides: int = 1

    def __post_init__(self) -> None:
        check_int(self.plan.seed, 0, None, "seed")
        load_judge(self.plan.game, self.by)

    def __len__(self) -> int:
        return len(self.decided.action)

    def judge(self, workers: Executor = THIS_PROCESS, size: int = BATCH_SIZE) -> Iterator[Judged]:
        """Yield the judged decisions in portions, as they are finished."""
        work = [(rows.start, self.decided.at(rows)) for rows in portions(len(self), size)]
        return workers.spread(partial(judge_decisions, self.plan.game, self.by, self.plan.seed), work)

    def review(self, judged: Iterable[Judged]) -> Review:
        """Return the review of what was judged, in any order."""
        moves = tuple(move for _, part in sorted(judged, key=lambda part: part.first) for move in part)
        judge = load_judge(self.plan.game, self.by).opponent.name
        return Review(self.plan.game, judge, moves, len(self), self.games, self.sides)


def record_decisions(record: GameRecord, seat: int | None = None) -> tuple[Game, Decided]:
    """Return the game of a record, and the decisions with a choice of a seat or of all.

    Raises:
        ValueError: the record does not fit, or the game has no such seat.
    """
    game = game_of(record)
    if seat is not None:
        check_int(seat, 0, game.rules.NUM_SEATS - 1, "seat")
    episode, actions = read_episode(record, game, seed=0)
    n, states = len(actions), np.array(list(episode.states_before(actions)), game.rules.STATE)
    chosen = (decisions_at(game, states).mask.sum(axis=1) > 1) & (True if seat is None else states["seat"] == seat)
    numbers, lengths = np.arange(n), np.full(n, n)
    decided = Decided(np.zeros(n, np.int64), numbers, lengths, states, np.array(actions, np.int64), np.ones(n))
    return game, decided.at(np.flatnonzero(chosen))


def review(record: GameRecord, by: str = JUDGE, seat: int | None = None, seed: int = 0) -> Review:
    """Return what each decision of a recorded game cost, in the opinion of a searching opponent.

    Only what the seat could know at that moment counts.

    Args:
        record: the game.
        by: name of the opponent that judges; it must search.
        seat: whose decisions; None: all.
        seed: of the worlds that the judge draws.

    Raises:
        ValueError: the record, the judge or the seat does not fit.
    """
    game, decided = record_decisions(record, seat)
    task = ReviewTask(Plan(game, seed=seed), by, decided)
    return task.review(task.judge())


def sample_decisions(plan: GamePlan, number: int, games: int) -> Decided:
    """Return a sample of the decisions with a choice that a policy makes in games against itself.

    All games are played to the end. Each gives the same number of decisions, or all that it has; the others then give
    more. Each decision stands for as many as its game has for each that was taken.

    Args:
        plan: one player in all seats; moves are kept.
        number: of decisions, at least one for each game; fewer if the games have fewer.
        games: whose deals are those of tables 0, 1, … of the seed, the same for every policy.
    """
    rows = read_rows(plan, play_games(plan, np.arange(games)), keep_states=True)
    lengths, n = np.bincount(rows.game, minlength=games), len(rows.game)
    numbers = np.arange(n) - (np.cumsum(lengths) - lengths)[rows.game]
    decided = Decided(rows.game, numbers, lengths[rows.game], rows.states, rows.action.astype(np.int64), np.ones(n))
    with_choice = np.flatnonzero(rows.mask.sum(axis=1) > 1)
    sizes = np.bincount(rows.game[with_choice], minlength=games)
    shares, rng = divide_evenly(number, sizes), np.random.default_rng([plan.seed, 1])
    draws = [np.sort(rng.choice(size, share, replace=False)) for size, share in zip(sizes, shares)]
    drawn = with_choice[np.concatenate(draws) + np.repeat(np.cumsum(sizes) - sizes, shares)]
    return decided.at(drawn)._replace(weight=np.repeat(sizes / np.maximum(shares, 1), shares))


def divide_evenly(number: int, sizes: Int64s) -> Int64s:
    """Divide a number into shares as equal as these sizes, which no share exceeds, allow; the first ones get more."""
    shares = np.zeros_like(sizes)
    while (left := min(number, sizes.sum()) - shares.sum()) > 0:
        unfilled = np.flatnonzero(shares < sizes)
        shares[unfilled[:left]] += max(1, left // len(unfilled))
        shares = np.minimum(shares, sizes)
    return shares


def review_task(plan: Plan, number: int, by: str, games: int = GAMES) -> ReviewTask:
    """Play the games of `review_policy`; return what there is to judge. There is one game for each decision at most."""
    games = min(check_int(games, 1, 1 << 20, "games"), check_int(number, 1, 1 << 20, "number"))
    played = GamePlan(plan.game, plan.players, plan.seed, plan.options, plan.sampled, keep_moves=True)
    return ReviewTask(plan, by, sample_decisions(played, number, games), games, plan.game.num_sides)


def review_policy(
    opponent: Opponent,
    number: int = NUMBER,
    by: str = JUDGE,
    options: dict[str, Any] | None = None,
    seed: int = 0,
    games: int = GAMES,
) -> Review:
    """Return what a sample of an opponent's decisions cost, from games against itself.

    Args:
        opponent: the policy.
        number: of decisions with more than one legal move; fewer if the games have fewer.
        by: name of the opponent that judges; it must search.
        options: of the game.
        seed: of deals, policy and worlds.
        games: that are played, to the end, on the same deals whatever the policy; one for each decision at most.

    Raises:
        ValueError: an argument does not fit.

    Warns:
        UserWarning: the opponent was trained under other options.
    """
    warn_if_unlike_training(opponent.policy, opponent.game, options or {})
    task = review_task(Plan(opponent.game, [opponent], seed, tuple((options or {}).items())), number, by, games)
    return task.review(task.judge())
