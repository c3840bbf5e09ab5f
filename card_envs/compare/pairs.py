"""Mirrored pairs: the unit of every comparison.

A pair is one episode played twice on the same deals with the policies' sides swapped. What the cards give to one side
they also give to the other, so the difference is due to play. In a solitaire, all policies play the same deals. Letters
for shapes: `N` pairs (in a solitaire: deals), `P` policies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._tables import PlayedOut, Watch, new_tables, play_out
from card_envs.compare._tallies import sums_of
from card_envs.compare.estimates import Estimate, as_json, estimate, share
from card_envs.engine._buffers import check_game, check_int, seed_number
from card_envs.game import Game, Int8s
from card_envs.opponents._about import warn_if_unlike_training
from card_envs.opponents.policy import Policy, PolicyLike, as_policy

MOST_PAIRS = 1 << 24
PAIRS_AT_ONCE = 1024
MIN_PAIRS_AT_ONCE = 16
WON = "won"  # reason of the end of a won solitaire


@dataclass(frozen=True)
class PairResult:
    """Results of the first policy against the second.

    Attributes:
        margins: [N] the first's score minus the second's, averaged over a pair's two episodes.
        win_shares: [N] share of the pair's episodes that the first won; a draw counts one half.
        deals_per_episode: scored deals.
        seconds_per_move: processor time per decision of (first, second).
        decisions: of (first, second).
    """

    margins: NDArray[np.float64]
    win_shares: NDArray[np.float64]
    deals_per_episode: int
    seconds_per_move: tuple[float, float]
    decisions: tuple[int, int]

    @property
    def margin_per_episode(self) -> Estimate:
        """Mean margin of the first policy per episode, in points."""
        return estimate(self.margins)

    @property
    def margin_per_deal(self) -> Estimate:
        """Mean margin of the first policy per scored deal, in points."""
        return estimate(self.margins / self.deals_per_episode)

    @property
    def win_share(self) -> Estimate:
        """Share of the episodes that the first policy won."""
        return share(self.win_shares)

    def in_words(self) -> str:
        """Return wins and points as text."""
        share, margin = self.win_share, self.margin_per_episode
        return (
            f"{share.mean:.3f} ({share.low:.3f} to {share.high:.3f}) of the wins, "
            f"{margin.mean:+z.3g} ({margin.low:+z.3g} to {margin.high:+z.3g}) points"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON; infinite bounds become None."""
        return {
            "pairs": len(self.margins),
            "deals_per_episode": self.deals_per_episode,
            "win_share": as_json(self.win_share),
            "margin_per_episode": as_json(self.margin_per_episode),
            "margin_per_deal": as_json(self.margin_per_deal),
            "microseconds_per_move": [round(1e6 * seconds, 3) for seconds in self.seconds_per_move],
            "decisions": list(self.decisions),
        }


@dataclass(frozen=True)
class Part:
    """Results of the policies on some deals.

    Rows are the pairings (0, 1), (0, 2) .. (1, 2) .. of P policies; in a solitaire, the policies.

    Attributes:
        first: number of the first deal.
        margins: [rows, N] margin of the pairing's first policy, averaged over a pair's episodes; solitaire: its score.
        wins: [rows, N] its share of the pair's episodes, draws counting one half; solitaire: 1 if it won.
        seconds: [P] processor time.
        decisions: [P] in that time.
        tallies: [P, R, SUMS] sums for the game's rates.
    """

    first: int
    margins: NDArray[np.float64]
    wins: NDArray[np.float64]
    seconds: NDArray[np.float64]
    decisions: NDArray[np.int64]
    tallies: NDArray[np.float64]

    @property
    def num_deals(self) -> int:
        """The number of deals, N."""
        return self.wins.shape[1]

    @property
    def seconds_per_move(self) -> list[float]:
        """Thinking time per decision of each policy."""
        seconds: list[float] = (self.seconds / np.maximum(self.decisions, 1)).tolist()
        return seconds


def join(parts: Sequence[Part]) -> Part:
    """Concatenate several parts in the order of their deals."""
    parts = sorted(parts, key=lambda part: part.first)
    return Part(
        parts[0].first,
        np.concatenate([part.margins for part in parts], axis=1),
        np.concatenate([part.wins for part in parts], axis=1),
        np.sum([part.seconds for part in parts], axis=0),
        np.sum([part.decisions for part in parts], axis=0),
        np.sum([part.tallies for part in parts], axis=0),
    )


def chunks(pairs: int) -> list[NDArray[np.int64]]:
    """Return the numbers of the deals in portions, which do not depend on the number of processes."""
    pairs = check_int(pairs, 1, MOST_PAIRS, "pairs")
    size = min(PAIRS_AT_ONCE, max(MIN_PAIRS_AT_ONCE, -(-pairs // 32)))
    return [np.arange(start, min(start + size, pairs)) for start in range(0, pairs, size)]


def lineups(game: Game, num_policies: int) -> list[tuple[int, ...]]:
    """Return all pairings or, in a solitaire, each policy by itself."""
    if game.num_sides > 2:
        raise ValueError(f"{game.name}: comparisons are for games with one or two sides, not {game.num_sides}")
    return list(combinations(range(num_policies), game.num_sides))


def seating(sides: Sequence[int], num_policies: int, with_partner: bool) -> Int8s:
    """Return [tables, S], the policy in each seat at the tables of a deal: two policies swap sides.

    A partner has all seats of a side but the first.
    """
    own = np.array([not with_partner or side not in sides[:seat] for seat, side in enumerate(sides)])
    tables = [np.where(own, np.array(sides) ^ swapped, num_policies) for swapped in range(num_policies)]
    return np.array(tables, np.int8)


@dataclass(frozen=True)
class Match:
    """P policies and what they play.

    Attributes:
        game: the game.
        policies: P of them.
        partner: policy in all but the first seat of a side; None: the same policy in all seats of a side.
        seed: of deals and policies.
        options: of the game.
    """

    game: Game
    policies: Sequence[Policy]
    partner: Policy | None = None
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def deals_per_episode(self) -> int:
        """Scored deals in an episode, 1 if that is open."""
        return self.game.view.num_deals(self.game.rules.new_state(self.game.validated(self.options)))

    def play(self, numbers: NDArray[np.int64], watch: Watch | None = None) -> Part:
        """Play every pairing (in a solitaire: policy) on the deals with these numbers; `watch` as in `play_out`."""
        rows = []
        moves = 0
        seconds = np.zeros(len(self.policies))
        decisions = np.zeros(len(self.policies), np.int64)
        counts: list[Any] = [0] * len(self.policies)
        for lineup in lineups(self.game, len(self.policies)):
            told = None if watch is None else partial(_add, watch, moves)
            played = self.play_lineup(lineup, numbers, watch=told)
            moves += int(played.moves.sum())
            rows.append((_figures_alone if self.game.is_solitaire else _pair_figures)(self.game, played))
            for which, i in enumerate(lineup):
                seconds[i] += played.seconds[which]
                decisions[i] += played.decisions[which]
                counts[i] = counts[i] + played.counts[:, which]
        margins, wins = (np.array([row[k] for row in rows]) for k in range(2))
        tallies = np.array([sums_of(self.game, of_policy) for of_policy in counts])
        return Part(int(numbers[0]), margins, wins, seconds, decisions, tallies)

    def play_lineup(
        self, lineup: Sequence[int], numbers: NDArray[np.int64], keep_moves: bool = False, watch: Watch | None = None
    ) -> PlayedOut:
        """Play one or two of the policies on the deals with these numbers.

        Two play each deal twice: tables 2k and 2k + 1 are a pair, with the first policy on side 0 at table 2k.
        """
        alone = len(lineup) == 1
        partner = [] if self.partner is None else [self.partner]
        streams = [*lineup, len(self.policies)] if alone else [0, 1, 2]  # copies of a player get streams of their own
        rngs = [np.random.default_rng([self.seed, int(numbers[0]), stream]) for stream in streams]
        states = new_tables(self.game, self.options, self.seed, np.repeat(numbers, len(lineup)))
        players = np.tile(seating(self.game.sides, len(lineup), bool(partner)), (len(numbers), 1))
        everyone = [*(self.policies[i] for i in lineup), *partner]
        for policy in everyone:  # results must not depend on what this process played before
            policy.reset()
        return play_out(
            self.game, states, everyone, players, rngs, tables_per_deal=len(lineup), keep_moves=keep_moves, watch=watch
        )


def _add(watch: Watch, before: int, moves: int) -> None:
    watch(before + moves)


def _pair_figures(game: Game, played: PlayedOut) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the first policy's margins and win shares, one per pair, from the rewards."""
    margins = np.array([played.rewards[side::2, game.sides.index(side)] for side in range(2)])
    wins = (np.sign(margins) + 1) / 2
    return margins.mean(axis=0), wins.mean(axis=0)


def _figures_alone(game: Game, played: PlayedOut) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores and wins of a policy in a solitaire, from the outcomes."""
    reasons, scores = game.outcomes(played.states)
    return scores[:, 0].astype(np.float64), (reasons == WON).astype(np.float64)


def play_pairs(
    game: Game,
    first: PolicyLike,
    second: PolicyLike,
    pairs: int,
    seed: int = 0,
    *,
    options: dict[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> PairResult:
    """Play mirrored pairs of episodes. Results are reproducible for a seed.

    Args:
        game: the game.
        first: the policy whose margin is reported.
        second: its opponent.
        pairs: N, the number of deals (each is played twice).
        seed: of deals and policies.
        options: of the game; rewards are in points by default.
        progress: called with the number of pairs finished since the last call.

    Raises:
        ValueError: an invalid argument, or a policy fails.

    Warns:
        UserWarning: a policy was trained under other options.
    """
    check_game(game)
    policies = as_policy(first, "first", game), as_policy(second, "second", game)
    for policy in policies:
        warn_if_unlike_training(policy, game, options or {})
    match = Match(game, policies, None, seed_number(seed), options or {})
    parts = []
    for numbers in chunks(pairs):
        parts.append(match.play(numbers))
        if progress is not None:
            progress(len(numbers))
    return pair_result(match, join(parts))


def pair_result(match: Match, part: Part) -> PairResult:
    """Return the results of two policies on these pairs; in a solitaire the margin counts wins."""
    margins, wins = part.margins[0], part.wins[0]
    if match.game.is_solitaire:
        margins = part.wins[0] - part.wins[1]
        wins = (margins + 1) / 2
    first, second = part.seconds_per_move
    decisions = (int(part.decisions[0]), int(part.decisions[1]))
    return PairResult(margins, wins, match.deals_per_episode, (first, second), decisions)
