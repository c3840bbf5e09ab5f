"""Mirrored pairs: the unit of every comparison.

A pair is one episode played twice on the same deals, with the policies' sides swapped; what the cards give to one side
they give to the other as well, so only play is left in the difference. In a game for one, all play the same deals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import Estimate, estimate
from card_envs.compare.spread import spread
from card_envs.compare.tables import Played, new_tables, play_out
from card_envs.compare.tallies import sums_of
from card_envs.game import Game, Int8s
from card_envs.opponents import load_opponent
from card_envs.opponents.phased import phase_actions
from card_envs.opponents.policy import Policy

PAIRS_AT_ONCE = 1024
MIN_PAIRS_AT_ONCE = 16
WON = "won"  # how a game for one calls the end of a won episode


@dataclass(frozen=True)
class PairResult:
    """What the first policy made of its pairs against the second.

    Attributes:
        margins: [P] the first's score minus the second's, the mean of a pair's two episodes.
        win_shares: [P] share of the pair's episodes that the first won, a draw counting one half.
        num_deals: deals in an episode.
        seconds_a_move: thinking time of (first, second) for one decision.
        decisions: how many each of them made.
    """

    margins: NDArray[np.float64]
    win_shares: NDArray[np.float64]
    num_deals: int
    seconds_a_move: tuple[float, float]
    decisions: tuple[int, int]

    @property
    def margin(self) -> Estimate:
        """The first's margin an episode."""
        return estimate(self.margins)

    @property
    def margin_a_deal(self) -> Estimate:
        """The first's margin a deal."""
        return estimate(self.margins / self.num_deals)

    @property
    def win_share(self) -> Estimate:
        """The first's share of the episodes."""
        return estimate(self.win_shares)

    def as_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
        return {
            "pairs": len(self.margins),
            "deals_an_episode": self.num_deals,
            "win_share": vars(self.win_share),
            "margin_an_episode": vars(self.margin),
            "margin_a_deal": vars(self.margin_a_deal),
            "microseconds_a_move": [round(1e6 * seconds, 3) for seconds in self.seconds_a_move],
            "decisions": list(self.decisions),
        }


@dataclass(frozen=True)
class Contest:
    """Who plays what: everything that a process needs in order to play some of it.

    Attributes:
        game: what is played.
        names: of the policies, as `load_opponent` takes them.
        seed: of deals and policies.
        options: of the game, as sorted items.
        sampled: networks draw their moves; False: they play the likeliest.
        partner: the policy in all seats of a side but its first; empty: a policy has its own kind beside it.
        frame: what `load_opponent` is given before and after each name: with `("bidding=", "+greedy")` they differ in
            their bidding only.
    """

    game: Game
    names: tuple[str, ...]
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()
    sampled: bool = True
    partner: str = ""
    frame: tuple[str, str] = ("", "")

    def check(self) -> None:
        """Raise ValueError for a game, name or option that does not fit, before anything is played."""
        self.game.validated(dict(self.options))
        lineups(self.game, len(self.names))
        self._loaded()
        if self.partner and len(set(self.game.sides)) == self.game.rules.NUM_SEATS:
            raise ValueError(f"{self.game.name}: nobody has a partner, so {self.partner!r} can't be one")

    def play(self, numbers: NDArray[np.int64]) -> Part:
        """Every pairing (in a game for one: every policy) on the deals with these numbers."""
        return play_part(self.game, *self._loaded(), numbers, self.seed, dict(self.options))

    def play_one(self, lineup: Sequence[int], numbers: NDArray[np.int64], log_size: int) -> Played:
        """One pairing or policy on the same deals, exactly as `play` does it."""
        policies, partner = self._loaded()
        return play_lineup(
            self.game, policies, partner, lineup, numbers, self.seed, dict(self.options), log_size=log_size
        )

    def _loaded(self) -> tuple[list[Policy], Policy | None]:
        partner = self._load(self.partner) if self.partner else None
        return [self._load(name.join(self.frame)) for name in self.names], partner

    def _load(self, name: str) -> Policy:
        # Users' own classes are made anew: should they remember anything, the result still is the part's alone.
        return (load_opponent if ":" in name else _load_once)(name, self.game, self.sampled)


_load_once = cache(load_opponent)


def taken_apart(contest: Contest, phase: str, other: str) -> dict[str, Contest]:
    """Two contests: in one the players differ in a phase only, in the other everywhere else only.

    Args:
        contest: of the players as they are.
        phase: of the game (`PHASES` of its view).
        other: who decides the other part for all of them.

    Raises:
        ValueError: the game has no such phase, or a player is made of two already.
    """
    phase_actions(contest.game, phase)
    for name in contest.names:
        if "+" in name:
            raise ValueError(f"{name}: a player made of two can't be taken apart")
    rest = " and ".join(name for name in contest.game.phases if name != phase)
    return {
        phase: replace(contest, frame=(f"{phase}=", f"+{other}")),
        rest: replace(contest, frame=(f"{phase}={other}+", "")),
    }


@dataclass(frozen=True)
class Part:
    """What the policies made of some deals.

    Rows are the pairings (0, 1), (0, 2) .. (1, 2) .. of P policies; in a game for one, the policies.

    Attributes:
        first: number of the first deal.
        margins: [rows, N] margin of the pairing's first policy, the mean of a pair's episodes; for one: its score.
        wins: [rows, N] its share of the pair's episodes, draws counting one half; for one: 1 if it won.
        seconds: [P] thinking time.
        decisions: [P] in that time.
        tallies: [P, R, SUMS] sums behind the game's `RATIOS`.
    """

    first: int
    margins: NDArray[np.float64]
    wins: NDArray[np.float64]
    seconds: NDArray[np.float64]
    decisions: NDArray[np.int64]
    tallies: NDArray[np.float64]


def join(parts: Sequence[Part]) -> Part:
    """Several parts as one, in the order of their deals."""
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
    """The numbers of the deals in the portions in which they are played, the same for any number of processes."""
    if pairs < 1:
        raise ValueError(f"pairs: expected at least 1, got {pairs}")
    size = min(PAIRS_AT_ONCE, max(MIN_PAIRS_AT_ONCE, -(-pairs // 32)))
    return [np.arange(start, min(start + size, pairs)) for start in range(0, pairs, size)]


def play_contest(contest: Contest, pairs: int, processes: int = 1, ray_address: str = "") -> Iterator[Part]:
    """Play all pairings on the same deals, part by part as they are finished.

    Args:
        contest: who plays what.
        pairs: how many deals; between two sides, each is played twice.
        processes: that share the work; the parts do not depend on it, their order does.
        ray_address: of a Ray cluster that does the work instead (see `spread`).
    """
    return spread(contest.play, chunks(pairs), processes, ray_address)


def play_pairs(
    game: Game,
    first: Policy,
    second: Policy,
    pairs: int,
    seed: int = 0,
    *,
    options: dict[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> PairResult:
    """Play mirrored pairs of episodes. Same seed, same result.

    Args:
        game: what is played.
        first: the policy whose margin is reported.
        second: its rival.
        pairs: P, how many deals (each played twice).
        seed: of deals and policies.
        options: of the game; rewards are in points unless they say otherwise.
        progress: called with the number of pairs finished since the last call.
    """
    parts = []
    for numbers in chunks(pairs):
        parts.append(play_part(game, (first, second), None, numbers, seed, options or {}))
        if progress is not None:
            progress(len(numbers))
    return pair_result(game, join(parts), options or {})


def pair_result(game: Game, part: Part, options: dict[str, Any]) -> PairResult:
    """What two policies made of these pairs; in a game for one the margin is that of wins."""
    margins, wins = part.margins[0], part.wins[0]
    if max(game.sides) == 0:
        margins = part.wins[0] - part.wins[1]
        wins = (margins + 1) / 2
    seconds = (part.seconds / np.maximum(part.decisions, 1)).tolist()
    decisions = part.decisions.tolist()
    return PairResult(margins, wins, num_deals(game, options), (seconds[0], seconds[1]), (decisions[0], decisions[1]))


def num_deals(game: Game, options: dict[str, Any]) -> int:
    """Scored deals in an episode, 1 where that is open."""
    number: int = game.num_deals(game.rules.new_state(game.validated(options)))
    return number


def play_part(
    game: Game,
    policies: Sequence[Policy],
    partner: Policy | None,
    numbers: NDArray[np.int64],
    seed: int,
    options: dict[str, Any],
) -> Part:
    """Every pairing of these policies (in a game for one: every policy) on the deals with these numbers."""
    rows = []
    seconds = np.zeros(len(policies))
    decisions = np.zeros(len(policies), np.int64)
    counts: list[Any] = [0] * len(policies)
    for lineup in lineups(game, len(policies)):
        played = play_lineup(game, policies, partner, lineup, numbers, seed, options)
        rows.append((_figures_alone if len(lineup) == 1 else _pair_figures)(game, played))
        for which, i in enumerate(lineup):
            seconds[i] += played.seconds[which]
            decisions[i] += played.decisions[which]
            counts[i] = counts[i] + played.counts[:, which]
    margins, wins = (np.array([row[k] for row in rows]) for k in range(2))
    tallies = np.array([sums_of(game, of_policy) for of_policy in counts])
    return Part(int(numbers[0]), margins, wins, seconds, decisions, tallies)


def lineups(game: Game, num_policies: int) -> list[tuple[int, ...]]:
    """Who meets: all pairings, or in a game for one each policy by itself."""
    num_sides = max(game.sides) + 1
    if num_sides > 2:
        raise ValueError(f"{game.name}: comparisons are for games with one or two sides, not {num_sides}")
    return list(combinations(range(num_policies), num_sides))


def play_lineup(
    game: Game,
    policies: Sequence[Policy],
    partner: Policy | None,
    lineup: Sequence[int],
    numbers: NDArray[np.int64],
    seed: int,
    options: dict[str, Any],
    *,
    log_size: int = 0,
) -> Played:
    """One or two of the policies on the deals with these numbers.

    Two play each deal twice: tables 2k and 2k + 1 are a pair, with the first policy on side 0 at table 2k.
    """
    everyone = [*(policies[i] for i in lineup), *([partner] if partner else [])]
    streams = [*lineup, len(policies)] if len(lineup) == 1 else [0, 1, 2]  # two copies of a player are two players
    rngs = [np.random.default_rng([seed, int(numbers[0]), stream]) for stream in streams]
    states = new_tables(game, options, seed, np.repeat(numbers, len(lineup)))
    players = np.tile(seating(game.sides, len(lineup), partner is not None), (len(numbers), 1))
    return play_out(game, states, everyone, players, rngs, tables_a_deal=len(lineup), log_size=log_size)


def seating(sides: Sequence[int], num_policies: int, with_partner: bool) -> Int8s:
    """[tables a deal, S] which policy sits where: two swap their sides; a partner has all but a side's first seat."""
    own = np.array([not with_partner or side not in sides[:seat] for seat, side in enumerate(sides)])
    tables = [np.where(own, np.array(sides) ^ swapped, num_policies) for swapped in range(num_policies)]
    return np.array(tables, np.int8)


def _pair_figures(game: Game, played: Played) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Margins and win shares of the first policy, one for each pair, from the rewards."""
    margins = np.array([played.rewards[side::2, game.sides.index(side)] for side in range(2)])
    wins = (np.sign(margins) + 1) / 2
    return margins.mean(axis=0), wins.mean(axis=0)


def _figures_alone(game: Game, played: Played) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores and wins of a policy, from the outcomes."""
    reasons, scores = game.outcomes(played.states)
    return scores[:, 0].astype(np.float64), (reasons == WON).astype(np.float64)
