"""A review as data: of a recorded game, or of decisions that a policy made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs._files import finite
from card_envs.compare._spread import THIS_PROCESS, Executor
from card_envs.engine._buffers import check_int
from card_envs.engine.batch import BatchEnv
from card_envs.envs._replay import play_moves, replay
from card_envs.game import Game, Int64s
from card_envs.opponents._about import warn_if_unlike_training
from card_envs.opponents._names import load_opponent
from card_envs.opponents.policy import Opponent, decisions_at
from card_envs.record import GameRecord
from card_envs.reviews._judge import MoveJudge

JUDGE = "strong"  # unless another is named
AT_ONCE = 16  # decisions that are judged together
SURE = 2.0  # standard errors by which a cost must exceed 0 for the move to be called worse
THIRDS = ("first third", "middle third", "last third")


@dataclass(frozen=True)
class ReviewedMove:
    """A decision with more than one legal move, judged.

    Attributes:
        number: of moves before it in the game.
        seat: who moved.
        phase: of the game: its own (bidding, play), or a third of the game.
        played, best: the move, and the one that the judge would play, in the game's notation.
        cost: how much better the judge's move is, in the game's `margin_unit`; below 0 the move looked better.
        error: standard error of the cost.
        view: what the seat saw.
    """

    number: int
    seat: int
    phase: str
    played: str
    best: str
    cost: float
    error: float
    view: dict[str, Any]

    @property
    def is_worse(self) -> bool:
        """True if the cost is clearly above 0."""
        return self.cost > SURE * self.error


@dataclass(frozen=True)
class CostSummary:
    """A summary of decisions.

    Attributes:
        decisions: how many.
        cost: mean cost of one.
        error: standard error of that mean, from the spread of the costs.
        total: of all.
        within_error: share of the moves that are not clearly worse than the judge's.
    """

    decisions: int
    cost: float
    error: float
    total: float
    within_error: float

    @staticmethod
    def of(moves: Sequence[ReviewedMove]) -> CostSummary:
        """Summarize some moves."""
        costs = np.array([move.cost for move in moves])
        number = len(costs)
        error = float(costs.std(ddof=1) / np.sqrt(number)) if number > 1 else float("nan")
        mean = float(costs.mean()) if number else float("nan")
        within = sum(not move.is_worse for move in moves) / number if number else float("nan")
        return CostSummary(number, mean, error, float(costs.sum()), within)


@dataclass(frozen=True)
class Review:
    """Judged decisions.

    Attributes:
        game: the game.
        judge: name of the opponent that judged.
        moves: in the order of play.
        total: decisions that there are to judge; more than `moves` if the review was stopped.
    """

    game: Game
    judge: str
    moves: tuple[ReviewedMove, ...]
    total: int

    def phases(self, seat: int | None = None) -> dict[str, CostSummary]:
        """Return summaries by phase, and of `all`, for a seat or for all of them."""
        chosen = [move for move in self.moves if seat in (None, move.seat)]
        names = dict.fromkeys(move.phase for move in chosen)
        found = {name: CostSummary.of([move for move in chosen if move.phase == name]) for name in names}
        return found | {"all": CostSummary.of(chosen)}

    def costliest(self, number: int = 3) -> list[ReviewedMove]:
        """Return the moves that cost most, the worst first, of those that are clearly worse than the judge's."""
        return sorted((move for move in self.moves if move.is_worse), key=lambda move: -move.cost)[:number]

    def as_dict(self) -> dict[str, Any]:
        """Return the review as JSON-able data."""
        seats = sorted({move.seat for move in self.moves})
        summaries = {str(seat): {name: asdict(part) for name, part in self.phases(seat).items()} for seat in seats}
        about = {"game": self.game.name, "version": self.game.version, "judge": self.judge}
        about |= {"unit": self.game.margin_unit, "decisions": self.total, "stopped": len(self.moves) < self.total}
        whole: dict[str, Any] = finite(about | {"seats": summaries, "moves": [asdict(move) for move in self.moves]})
        return whole


class Group(NamedTuple):
    """Some decisions of a review, which are judged together.

    Attributes:
        first: number of the first in the review.
        numbers: of moves before each of them in its game.
        states, actions: where they were made, and what was played.
    """

    first: int
    numbers: list[int]
    states: NDArray[Any]
    actions: Int64s


@dataclass(frozen=True)
class ReviewTask:
    """A review as its workers need it: any of them can judge any group.

    Attributes:
        game: the game.
        by: name of the judge.
        seed: of the worlds that the judge draws.
        total: number of decisions.
    """

    game: Game
    by: str
    seed: int
    total: int

    def judge(self, group: Group) -> tuple[int, list[ReviewedMove]]:
        """Return the number of the first decision of a group, and the judged decisions."""
        # A stream for each group: what a group of decisions costs does not depend on the others.
        rng = np.random.default_rng([self.seed, group.first])
        decisions = decisions_at(self.game, group.states)
        judged = zip(*_load_judge(self.by, self.game).costs(decisions, group.actions, rng), strict=True)
        return group.first, [self._reviewed(group, i, *found) for i, found in enumerate(judged)]

    def _reviewed(self, group: Group, i: int, best: np.int64, cost: np.float64, error: np.float64) -> ReviewedMove:
        game, state, action = self.game, group.states[i], int(group.actions[i])
        third = THIRDS[min(2, 3 * (group.first + i) // self.total)]
        phase = next((name for name, actions in game.phases.items() if action in actions), third)
        played, better = (game.view.move_text(state, one) for one in (action, int(best)))
        seat = int(state["seat"])
        view = game.view.view(state, seat)
        return ReviewedMove(group.numbers[i], seat, phase, played, better, float(cost), float(error), view)


@cache
def _load_judge(by: str, game: Game) -> MoveJudge:
    return MoveJudge(load_opponent(by, game, sampled=False))


class Reviewing:
    """A review under way; take `review` at any time."""

    def __init__(self, game: Game, by: str, positions: Sequence[tuple[int, Any, int]], seed: int = 0) -> None:
        """Take the decisions to judge.

        Args:
            game: the game.
            by: name of the judge.
            positions: the number of moves before it, the State and the action of each decision.
            seed: of the worlds that the judge draws.

        Raises:
            ValueError: there is no such opponent, or it does not search.
        """
        _load_judge.cache_clear()  # a folder may hold other weights by now
        self._name = _load_judge(by, game).opponent.name
        check_int(seed, 0, None, "seed")
        numbers, states, actions = zip(*positions) if positions else ((), (), ())
        all_states = np.array(list(states), game.rules.STATE)  # a tuple would be one record
        choices = np.flatnonzero(decisions_at(game, all_states).mask.sum(axis=1) > 1)
        self._task = ReviewTask(game, by, seed, len(choices))
        self._groups = [
            Group(first, [numbers[i] for i in rows], all_states[rows], np.array([actions[i] for i in rows], np.int64))
            for first in range(0, len(choices), AT_ONCE)
            for rows in [choices[first : first + AT_ONCE]]
        ]
        self._judged: dict[int, list[ReviewedMove]] = {}

    @property
    def total(self) -> int:
        """The number of decisions to judge."""
        return self._task.total

    @property
    def review(self) -> Review:
        """The review of the decisions judged so far."""
        moves = tuple(move for _, group in sorted(self._judged.items()) for move in group)
        return Review(self._task.game, self._name, moves, self.total)

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


def positions_of(record: GameRecord, seat: int | None = None) -> tuple[Game, list[tuple[int, Any, int]]]:
    """Return the game of a record, and the decisions of a seat or of all: number, State and action of each.

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
            found.append((number, env.states[0].copy(), action))
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
    opponent: Opponent, number: int, options: dict[str, Any], seed: int = 0, tables: int = 16
) -> list[tuple[int, Any, int]]:
    """Return decisions with a choice that a policy makes in games against itself, from all parts of the games.

    Args:
        opponent: plays in all seats.
        number: of decisions.
        options: of the game.
        seed: of deals and policy.
        tables: at which it plays.
    """
    game = opponent.game
    env, rng = BatchEnv(game, tables, seed=seed, options=options), np.random.default_rng([seed, 1])
    lengths, episodes = np.zeros(tables, np.int64), list[list[tuple[int, Any, int]]]()
    under_way: list[list[tuple[int, Any, int]]] = [[] for _ in range(tables)]
    while sum(map(len, episodes)) < number:
        states: NDArray[Any] = env.states.copy()
        choices = env.mask.sum(axis=1) > 1
        actions: Int64s = opponent.actions(env, rng)
        for i in np.flatnonzero(choices):
            under_way[i].append((int(lengths[i]), states[i], int(actions[i])))
        env.step(actions)
        lengths += 1
        for i in np.flatnonzero(env.done):
            episodes.append(under_way[i])
            under_way[i], lengths[i] = [], 0
    whole = [one for episode in episodes for one in episode]
    rows = np.sort(rng.choice(len(whole), number, replace=False))
    return [whole[row] for row in rows]


def review_policy(
    opponent: Opponent, number: int = 200, by: str = JUDGE, options: dict[str, Any] | None = None, seed: int = 0
) -> Review:
    """Return what a sample of an opponent's decisions cost, from games against itself.

    Args:
        opponent: the policy.
        number: of decisions with more than one legal move.
        by: name of the opponent that judges; it must search.
        options: of the game.
        seed: of deals, policy and worlds.

    Raises:
        ValueError: an argument does not fit.

    Warns:
        UserWarning: the opponent was trained under other options.
    """
    number = check_int(number, 1, 1 << 20, "number")
    warn_if_unlike_training(opponent, opponent.game, options or {})
    positions = sampled_positions(opponent, number, options or {}, seed)
    return Reviewing(opponent.game, by, positions, seed).finish()
