"""Self-play statistics, one player in all seats: length, endings, scores, first-move advantage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._tallies import Tallied, sums_of, tallied
from card_envs.compare.estimates import Estimate, as_json, estimate, share, share_of
from card_envs.compare.games import GamePlan, play_games, portions
from card_envs.compare.spread import THIS_PROCESS, Executor
from card_envs.engine.buffers import check_game, check_int
from card_envs.game import Game, Int64s
from card_envs.opponents.names import load_policy
from card_envs.opponents.policy import PolicyLike

EPISODES_AT_ONCE = 4096
MOST_EPISODES = 1 << 32


@dataclass(frozen=True)
class Survey:
    """Self-play statistics of a player, each with its 95 % interval.

    Attributes:
        episodes: number played.
        decisions: moves per episode, forced ones included.
        endings: share of each reason of the end.
        first_side_wins: share won by the side with the first decision, a draw counting one half; None in a solitaire.
        score_of_seat_0: points.
        microseconds_per_decision: for compiled players, the game's own time included.
        figures: the game's rates.
    """

    episodes: int
    decisions: Estimate
    endings: dict[str, Estimate]
    first_side_wins: Estimate | None
    score_of_seat_0: Estimate
    microseconds_per_decision: float
    figures: Tallied

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON; infinite bounds become None."""
        return as_json(self) | {"microseconds_per_decision": round(self.microseconds_per_decision, 4)}


class SelfPlayed(NamedTuple):
    """Per-game figures of N games, from which self-play statistics are computed.

    Attributes:
        start: number of the first one.
        reasons: number of endings for each reason.
        lengths: [N] moves.
        scores: [N] of seat 0.
        first_wins: [N] share of the win of the side that decided first.
        seconds, decisions: processor time, and the decisions made in it.
        sums: of the game's rates, as `sums_of`.
    """

    start: int
    reasons: Counter[str]
    lengths: Int64s
    scores: NDArray[np.float64]
    first_wins: NDArray[np.float64]
    seconds: float
    decisions: int
    sums: NDArray[np.float64]


def _play_portion(plan: GamePlan, numbers: range) -> SelfPlayed:
    """Play these games; return what self-play statistics need of them, which is small."""
    game, games = plan.game, play_games(plan, np.array(numbers))
    reasons, points = game.outcomes(games.states)
    scores = points.astype(np.float64)
    return SelfPlayed(
        numbers.start,
        Counter(reasons.tolist()),
        games.num_moves.sum(axis=1),
        scores[:, 0],
        wins_of(game, scores, games.first_seat),
        float(games.seconds.sum()),
        int(games.decisions.sum()),
        sums_of(game, games.stats[:, 0]),
    )


def survey_of(game: Game, parts: Sequence[SelfPlayed]) -> Survey:
    """Return the statistics of some games, which are given in portions, in any order."""
    _, reasons, lengths, scores, first_wins, seconds, decisions, sums = zip(*sorted(parts, key=lambda part: part.start))
    episodes = sum(map(len, lengths))
    endings: Counter[str] = sum(reasons, Counter())
    return Survey(
        episodes,
        estimate(np.concatenate(lengths).astype(np.float64)),
        {reason: share_of(times, episodes) for reason, times in endings.most_common()},
        None if game.is_solitaire else share(np.concatenate(first_wins)),
        estimate(np.concatenate(scores)),
        1e6 * sum(seconds) / max(sum(decisions), 1),
        tallied(game, np.sum(sums, axis=0)),
    )


def survey(
    game: Game,
    policy: PolicyLike,
    episodes: int,
    seed: int = 0,
    *,
    options: dict[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Survey:
    """Play episodes with one policy in all seats. Results are reproducible, and deals are the same for every policy.

    Args:
        game: the game.
        policy: in all seats.
        episodes: number to play.
        seed: of deals and policy.
        options: of the game.
        progress: called with the number of episodes finished since the last call.
    """
    check_game(game)
    plan = GamePlan(game, [load_policy(policy, "policy", game)], seed, tuple((options or {}).items()))
    parts = []
    for part in play_portions(plan, episodes):
        parts.append(part)
        if progress is not None:
            progress(len(part.lengths))
    return survey_of(game, parts)


def play_portions(plan: GamePlan, episodes: int, workers: Executor = THIS_PROCESS) -> Iterator[SelfPlayed]:
    """Play episodes as `survey` does; yield portions as they are finished."""
    check_int(episodes, 1, MOST_EPISODES, "episodes")
    return workers.spread(partial(_play_portion, plan), portions(episodes, EPISODES_AT_ONCE))


def wins_of(game: Game, scores: NDArray[np.float64], seats: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return [B] the share of the win of a seat's side, given the [B, S] scores.

    It is 1 if its score alone is the best, 1/n if n sides share the best score, else 0.
    """
    sides = np.array(game.sides)
    by_side = scores[:, [int(np.argmax(sides == side)) for side in range(game.num_sides)]]
    best = by_side == by_side.max(axis=1, keepdims=True)
    share: NDArray[np.float64] = best[np.arange(len(seats)), sides[seats]] / best.sum(axis=1)
    return share
