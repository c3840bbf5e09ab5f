"""A review as data: of a recorded game, or of decisions that a policy made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs._files import finite
from card_envs.compare._spread import THIS_PROCESS, Executor
from card_envs.compare._tables import new_tables, play_out
from card_envs.compare.estimates import FEW, estimate
from card_envs.engine._buffers import check_int
from card_envs.envs._replay import play_moves, replay
from card_envs.episode import Episode
from card_envs.game import Game
from card_envs.opponents._about import warn_if_unlike_training
from card_envs.opponents._names import load_cached
from card_envs.opponents.policy import Opponent, decisions_at
from card_envs.record import GameRecord
from card_envs.reviews._judge import MoveJudge

JUDGE = "strong"  # unless another is named
AT_ONCE = 16  # decisions that are judged together
NUMBER, GAMES = 1000, 50  # decisions of a policy that are judged, and games that they are from
LEAST = 300  # decisions of several games without which their means have no error
SURE = 2.0  # standard errors by which a cost must exceed 0 for the move to be called worse
LEVEL = "by more than 2 errors, as 1 of 44 equal moves is by chance"  # one-sided: P(z > 2) = 0.0228
THIRDS = ("first third", "middle third", "last third")


class Position(NamedTuple):
    """A decision to judge.

    Attributes:
        game: number of the game.
        number: of moves before it in the game.
        length: of the game, in moves.
        state: where it was made.
        action: what was played.
        weight: how many decisions of its game it stands for.
    """

    game: int
    number: int
    length: int
    state: Any
    action: int
    weight: float = 1.0


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

    Costs have long tails: a game that was not drawn may be as far off as the farthest that was.
    """
    found = estimate(values)
    farthest = float(np.abs(values - values.mean()).max())
    return max(found.high - found.mean, found.mean - found.low) / 2 + farthest / len(values)


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
        found = {name: summary([move for move in chosen if move.phase == name]) for name in names}
        return found | {"all": summary(chosen)}

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


class Group(NamedTuple):
    """Some decisions of a review, which are judged together; `first` is the number of the first in the review."""

    first: int
    positions: list[Position]


@dataclass(frozen=True)
class ReviewTask:
    """A review as its workers need it: any of them can judge any group.

    Attributes:
        game: the game.
        by: name of the judge.
        seed: of the worlds that the judge draws.
    """

    game: Game
    by: str
    seed: int

    def judge(self, group: Group) -> tuple[int, list[ReviewedMove]]:
        """Return the number of the first decision of a group, and the judged decisions."""
        # A stream for each group: what a group of decisions costs does not depend on the others.
        rng = np.random.default_rng([self.seed, group.first])
        decisions = decisions_at(self.game, _states(self.game, group.positions))
        played = np.array([one.action for one in group.positions])
        found = _judge_of(load_cached(self.by, self.game, sampled=False)).costs(decisions, played, rng)
        return group.first, [self._reviewed(*one) for one in zip(group.positions, *found, strict=True)]

    def _reviewed(self, one: Position, best: np.int64, cost: np.float64, error: np.float64) -> ReviewedMove:
        game, state, view = self.game, one.state, self.game.view
        third = THIRDS[min(2, 3 * one.number // one.length)]
        phase = next((name for name, actions in game.view.PHASES.items() if one.action in actions), third)
        played, better = (view.move_text(state, action) for action in (one.action, int(best)))
        seat = int(state["seat"])
        return ReviewedMove(
            one.game, one.number, seat, phase, played, better, float(cost), float(error), one.weight,
            view.view(state, seat),
        )  # fmt: skip


def _states(game: Game, positions: Sequence[Position]) -> NDArray[Any]:
    """Return [n] the States of decisions."""
    return np.array([one.state for one in positions], game.rules.STATE)


@lru_cache(8)
def _judge_of(opponent: Opponent) -> MoveJudge:
    return MoveJudge(opponent)


class Reviewing:
    """A review under way; take `review` at any time."""

    def __init__(
        self, game: Game, by: str, positions: Sequence[Position], seed: int = 0, games: int = 1, sides: int = 1
    ) -> None:
        """Take the decisions to judge.

        Args:
            game: the game.
            by: name of the judge.
            positions: the decisions; those with one legal move are left out.
            seed: of the worlds that the judge draws.
            games: that the decisions are from.
            sides: as `Review.sides`.

        Raises:
            ValueError: there is no such opponent, or it does not search.
        """
        self._name = _judge_of(load_cached(by, game, sampled=False)).opponent.name
        self._task = ReviewTask(game, by, check_int(seed, 0, None, "seed"))
        chosen = with_choice(game, positions)
        self._groups = [Group(first, chosen[first : first + AT_ONCE]) for first in range(0, len(chosen), AT_ONCE)]
        self._judged: dict[int, list[ReviewedMove]] = {}
        self._games, self._sides = games, sides
        self.total = len(chosen)

    @property
    def review(self) -> Review:
        """The review of the decisions judged so far."""
        moves = tuple(move for _, group in sorted(self._judged.items()) for move in group)
        return Review(self._task.game, self._name, moves, self.total, self._games, self._sides)

    def judge(self, workers: Executor = THIS_PROCESS) -> Iterator[int]:
        """Judge a group of decisions at a time, and yield how many decisions that is."""
        for first, moves in workers.spread(self._task.judge, self._groups):
            self._judged[first] = moves
            yield len(moves)

    def finish(self) -> Review:
        """Judge all, and return the review."""
        for _ in self.judge():
            pass
        return self.review


def with_choice(game: Game, positions: Sequence[Position]) -> list[Position]:
    """Return the decisions with more than one legal move."""
    if not positions:
        return []
    choices = decisions_at(game, _states(game, positions)).mask.sum(axis=1) > 1
    return [one for one, is_choice in zip(positions, choices) if is_choice]


def positions_of(record: GameRecord, seat: int | None = None) -> tuple[Game, list[Position]]:
    """Return the game of a record, and the decisions of a seat or of all.

    Raises:
        ValueError: the record does not fit, or the game has no such seat.
    """
    env = replay(record, 0)
    game = env.game
    if seat is not None:
        check_int(seat, 0, game.rules.NUM_SEATS - 1, "seat")
    found = []
    for number, action in enumerate(play_moves(env, record.moves)):
        if seat in (None, int(env.states[0]["seat"])):
            found.append(Position(0, number, len(record.moves), env.states[0].copy(), action))
    return game, found


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
    game, positions = positions_of(record, seat)
    return Reviewing(game, by, positions, seed).finish()


def sampled_positions(
    opponent: Opponent, number: int, games: int, options: dict[str, Any], seed: int = 0
) -> list[Position]:
    """Return a sample of the decisions with a choice that a policy makes in games against itself.

    All games are played to the end. Each gives the same number of decisions, or all that it has, and each of these
    stands for as many as the game has for each that was taken.

    Args:
        opponent: plays in all seats.
        number: of decisions, at least one for each game.
        games: whose deals are those of tables 0, 1, … of the seed, the same for every policy.
        options: of the game.
        seed: of deals and policy.
    """
    game = opponent.game
    opponent.reset()  # results must not depend on what this process played before
    states = new_tables(game, options, seed, np.arange(games))
    seats = np.zeros((games, game.rules.NUM_SEATS), np.int8)
    played = play_out(game, states, [opponent.policy], seats, [np.random.default_rng([seed, 0])], keep_moves=True)
    rng, found = np.random.default_rng([seed, 1]), []
    for table in range(games):
        all_of_game = with_choice(game, _positions_on(game, options, seed, table, played.moves_of(table)))
        wanted = number // games + (table < number % games)
        rows = np.sort(rng.choice(len(all_of_game), min(wanted, len(all_of_game)), replace=False))
        found += [all_of_game[row]._replace(weight=len(all_of_game) / len(rows)) for row in rows]
    return found


def _positions_on(game: Game, options: dict[str, Any], seed: int, table: int, actions: list[int]) -> list[Position]:
    """Return the decisions on a table, given all actions of its first episode."""
    episode, found = Episode(game, game.validated(options), seed=seed, number=table), []
    for number, action in enumerate(actions):
        found.append(Position(table, number, len(actions), episode.table.states[0].copy(), action))
        episode.play(action)
    return found


def review_of_policy(
    opponent: Opponent, number: int, by: str, options: dict[str, Any], seed: int, games: int = GAMES
) -> Reviewing:
    """Return a review of a policy, whose games are played and whose decisions are not judged yet; see `review_policy`.

    There is one game for each decision at most.
    """
    games = min(check_int(games, 1, 1 << 20, "games"), check_int(number, 1, 1 << 20, "number"))
    positions = sampled_positions(opponent, number, games, options, seed)
    return Reviewing(opponent.game, by, positions, seed, games, opponent.game.num_sides)


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
        number: of decisions with more than one legal move.
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
    return review_of_policy(opponent, number, by, options or {}, seed, games).finish()
