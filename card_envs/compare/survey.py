"""Self-play statistics, one player in all seats: length, endings, scores, first-move advantage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._tables import PlayedOut, new_tables, play_out
from card_envs.compare._tallies import Tallied, sums_of, tallied
from card_envs.compare.estimates import Estimate, as_json, estimate, share, share_of
from card_envs.engine._buffers import check_game, check_int, seed_number
from card_envs.game import Game, Int8s
from card_envs.opponents.policy import PolicyLike, as_policy

TABLES_AT_ONCE = 4096
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


@dataclass(frozen=True)
class Counted:
    """Sums over some episodes; those of parts add up."""

    episodes: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    lengths: list[NDArray[np.int64]] = field(default_factory=list)
    scores: list[NDArray[np.float64]] = field(default_factory=list)
    first_won: list[NDArray[np.float64]] = field(default_factory=list)
    seconds: float = 0.0
    decisions: int = 0
    tallies: Any = 0

    def plus(self, game: Game, played: PlayedOut, first_seats: Int8s) -> Counted:
        """Return the sums with further ended episodes, given the seats of their first decisions."""
        reasons, points = game.outcomes(played.states)
        scores = points.astype(np.float64)
        return Counted(
            self.episodes + len(scores),
            self.reasons + Counter(reasons.tolist()),
            [*self.lengths, played.moves.sum(axis=1)],
            [*self.scores, scores[:, 0]],
            [*self.first_won, wins_of(game, scores, first_seats)],
            self.seconds + float(played.seconds.sum()),
            self.decisions + int(played.decisions.sum()),
            self.tallies + sums_of(game, played.counts[:, 0]),
        )

    def figures(self, game: Game) -> Survey:
        """Return the statistics of these sums."""
        episodes = self.episodes
        return Survey(
            episodes,
            estimate(np.concatenate(self.lengths).astype(np.float64)),
            {reason: share_of(times, episodes) for reason, times in self.reasons.most_common()},
            None if game.is_solitaire else share(np.concatenate(self.first_won)),
            estimate(np.concatenate(self.scores)),
            1e6 * self.seconds / max(self.decisions, 1),
            tallied(game, self.tallies),
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
    count, before = Counted(), 0
    for count in counts(game, policy, episodes, seed, options):
        if progress is not None:
            progress(count.episodes - before)
        before = count.episodes
    return count.figures(game)


def counts(
    game: Game, policy: PolicyLike, episodes: int, seed: int = 0, options: dict[str, Any] | None = None
) -> Iterator[Counted]:
    """Yield the sums so far after each portion of the episodes."""
    check_game(game)
    asked = as_policy(policy, "policy", game)
    check_int(episodes, 1, MOST_EPISODES, "episodes")
    seed = seed_number(seed)
    count = Counted()
    for start in range(0, episodes, TABLES_AT_ONCE):
        numbers = np.arange(start, min(start + TABLES_AT_ONCE, episodes))
        states = new_tables(game, options or {}, seed, numbers)
        first_seats = states["seat"].copy()
        players = np.zeros((len(states), game.rules.NUM_SEATS), np.int8)
        played = play_out(game, states, [asked], players, [np.random.default_rng([seed, start])])
        count = count.plus(game, played, first_seats)
        yield count


def wins_of(game: Game, scores: NDArray[np.float64], seats: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return [B] the share of the win of a seat's side, given the [B, S] scores.

    It is 1 if its score alone is the best, 1/n if n sides share the best score, else 0.
    """
    sides = np.array(game.sides)
    by_side = scores[:, [int(np.argmax(sides == side)) for side in range(game.num_sides)]]
    best = by_side == by_side.max(axis=1, keepdims=True)
    share: NDArray[np.float64] = best[np.arange(len(seats)), sides[seats]] / best.sum(axis=1)
    return share
