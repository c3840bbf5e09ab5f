"""What a game is like when one player sits in all seats: length, endings, scores, the value of moving first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import Estimate, normal_interval, wilson
from card_envs.compare.tables import new_tables, play_out
from card_envs.compare.tallies import sums_of, tallied
from card_envs.game import Game
from card_envs.opponents.policy import Policy

TABLES_AT_ONCE = 4096


@dataclass(frozen=True)
class Survey:
    """A player's episodes against itself, each figure with its 95 % interval.

    Attributes:
        episodes: how many were played.
        decisions: moves an episode, forced ones included.
        endings: share of each reason of the end.
        first_wins: share won by the side that made the first decision, a draw counting one half; None in a game for
            one.
        score: of seat 0.
        microseconds: a decision; where compiled code plays, with the game's own work.
        figures: the game's own, by row and column (`RATIOS` of its view).
    """

    episodes: int
    decisions: Estimate
    endings: dict[str, Estimate]
    first_wins: Estimate | None
    score: Estimate
    microseconds: float
    figures: dict[str, dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
        return {
            "episodes": self.episodes,
            "decisions": vars(self.decisions),
            "endings": {reason: vars(share) for reason, share in self.endings.items()},
            "first_side_wins": vars(self.first_wins) if self.first_wins else None,
            "score_of_seat_0": vars(self.score),
            "microseconds_a_decision": round(self.microseconds, 4),
            "figures": self.figures,
        }


def survey(
    game: Game,
    policy: Policy,
    episodes: int,
    seed: int = 0,
    *,
    options: dict[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Survey:
    """Play episodes with one policy in all seats. Same seed, same deals for every policy, same result.

    Args:
        game: what is played.
        policy: who plays.
        episodes: how many.
        seed: of deals and policy.
        options: of the game.
        progress: called with the number of episodes finished since the last call.
    """
    if episodes < 1:
        raise ValueError(f"episodes: expected at least 1, got {episodes}")
    reasons: Counter[str] = Counter()
    lengths, scores, first_won = [], [], []
    seconds = 0.0
    decisions = 0
    tallies: Any = 0
    for start in range(0, episodes, TABLES_AT_ONCE):
        numbers = np.arange(start, min(start + TABLES_AT_ONCE, episodes))
        states = new_tables(game, options or {}, seed, numbers)
        first_seats = states["seat"].copy()
        players = np.zeros((len(states), game.rules.NUM_SEATS), np.int8)
        played = play_out(game, states, [policy], players, [np.random.default_rng([seed, start])])
        ended, points = game.outcomes(states)
        reasons.update(ended.tolist())
        scored = points.astype(np.float64)
        lengths.append(played.moves.sum(axis=1))
        scores.append(scored[:, 0])
        first_won.append(wins_of(game, scored, first_seats))
        seconds += float(played.seconds.sum())
        decisions += int(played.decisions.sum())
        tallies += sums_of(game, played.counts[:, 0])
        if progress is not None:
            progress(len(numbers))
    return Survey(
        episodes,
        normal_interval(np.concatenate(lengths).astype(np.float64)),
        {reason: wilson(times, episodes) for reason, times in reasons.most_common()},
        wilson(float(np.concatenate(first_won).sum()), episodes) if max(game.sides) else None,
        normal_interval(np.concatenate(scores)),
        1e6 * seconds / max(decisions, 1),
        tallied(game, tallies, episodes),
    )


def wins_of(game: Game, scores: NDArray[np.float64], seats: NDArray[np.int8]) -> NDArray[np.float64]:
    """[B] 1 where the side of a seat has the best of the [B, S] scores alone, 1/n where n sides share it, else 0."""
    sides = np.array(game.sides)
    by_side = scores[:, [int(np.argmax(sides == side)) for side in range(max(sides) + 1)]]
    best = by_side == by_side.max(axis=1, keepdims=True)
    share: NDArray[np.float64] = best[np.arange(len(seats)), sides[seats]] / best.sum(axis=1)
    return share
