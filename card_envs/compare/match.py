"""Mirrored pairs: the unit of every comparison.

A pair is one episode played twice on the same deals, with the policies' sides swapped; what the cards give to one side
they give to the other as well, so only play is left in the difference. In a game for one, all play the same deals.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import Estimate, estimate
from card_envs.compare.tables import Played, new_tables, play_out
from card_envs.game import Game, Int8s
from card_envs.opponents import load_opponent
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
    """

    game: Game
    names: tuple[str, ...]
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()
    sampled: bool = True
    partner: str = ""

    def play(self, numbers: NDArray[np.int64]) -> Part:
        """Every pairing (in a game for one: every policy) on the deals with these numbers."""
        # Users' own classes are made anew: should they remember anything, the result still is the parts' alone.
        load = _loaded if all(":" not in name for name in self.names) else load_opponent
        policies = [load(name, self.game, self.sampled) for name in self.names]
        partner = load(self.partner, self.game, self.sampled) if self.partner else None
        return play_part(self.game, policies, numbers, self.seed, dict(self.options), partner)


_loaded = cache(load_opponent)


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
    """

    first: int
    margins: NDArray[np.float64]
    wins: NDArray[np.float64]
    seconds: NDArray[np.float64]
    decisions: NDArray[np.int64]


def join(parts: Sequence[Part]) -> Part:
    """Several parts as one, in the order of their deals."""
    parts = sorted(parts, key=lambda part: part.first)
    return Part(
        parts[0].first,
        np.concatenate([part.margins for part in parts], axis=1),
        np.concatenate([part.wins for part in parts], axis=1),
        np.sum([part.seconds for part in parts], axis=0),
        np.sum([part.decisions for part in parts], axis=0),
    )


def chunks(pairs: int) -> list[NDArray[np.int64]]:
    """The numbers of the deals in the portions in which they are played, the same for any number of processes."""
    if pairs < 1:
        raise ValueError(f"pairs: expected at least 1, got {pairs}")
    size = min(PAIRS_AT_ONCE, max(MIN_PAIRS_AT_ONCE, -(-pairs // 32)))
    return [np.arange(start, min(start + size, pairs)) for start in range(0, pairs, size)]


def play_contest(contest: Contest, pairs: int, processes: int = 1) -> Iterator[Part]:
    """Play all pairings on the same deals, part by part as they are finished.

    Args:
        contest: who plays what.
        pairs: how many deals; between two sides, each is played twice.
        processes: that share the work; the parts do not depend on it, their order does.
    """
    if processes < 1:
        raise ValueError(f"processes: expected at least 1, got {processes}")
    if processes == 1:
        yield from map(contest.play, chunks(pairs))
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _die_silently)
    try:
        for future in as_completed([pool.submit(contest.play, numbers) for numbers in chunks(pairs)]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _die_silently() -> None:
    """Ctrl-C reaches all processes of a command; only the first one has something to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


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
        parts.append(play_part(game, (first, second), numbers, seed, options or {}))
        if progress is not None:
            progress(len(numbers))
    return pair_result(game, join(parts), options or {})


def pair_result(game: Game, part: Part, options: dict[str, Any]) -> PairResult:
    """What two policies made of these pairs; in a game for one the margin is that of wins."""
    margins, wins = part.margins[0], part.wins[0]
    if max(game.rules.SIDES) == 0:
        margins = part.wins[0] - part.wins[1]
        wins = (margins + 1) / 2
    seconds = (part.seconds / np.maximum(part.decisions, 1)).tolist()
    decisions = part.decisions.tolist()
    return PairResult(margins, wins, num_deals(game, options), (seconds[0], seconds[1]), (decisions[0], decisions[1]))


def num_deals(game: Game, options: dict[str, Any]) -> int:
    """Scored deals in an episode, 1 where that is open."""
    number: int = game.view.num_deals(game.rules.new_state(game.validated(options)))
    return number


def play_part(
    game: Game,
    policies: Sequence[Policy],
    numbers: NDArray[np.int64],
    seed: int,
    options: dict[str, Any],
    partner: Policy | None = None,
) -> Part:
    """Every pairing of these policies (in a game for one: every policy) on the deals with these numbers."""
    num_sides = max(game.rules.SIDES) + 1
    if num_sides > 2:
        raise ValueError(f"{game.name}: comparisons are for games with one or two sides, not {num_sides}")
    rows = []
    seconds = np.zeros(len(policies))
    decisions = np.zeros(len(policies), np.int64)
    lineups = combinations(range(len(policies)), 2) if num_sides == 2 else ((i,) for i in range(len(policies)))
    for lineup in lineups:
        chosen = [policies[i] for i in lineup]
        if num_sides == 2:
            played = play_mirrored(game, chosen, numbers, seed, options, partner)
            rows.append(_pair_figures(game, played))
        else:
            played = _play_alone(game, chosen[0], numbers, [seed, int(numbers[0]), lineup[0]], options)
            rows.append(_figures_alone(game, played))
        for which, i in enumerate(lineup):
            seconds[i] += played.seconds[which]
            decisions[i] += played.decisions[which]
    margins, wins = (np.array([row[k] for row in rows]) for k in range(2))
    return Part(int(numbers[0]), margins, wins, seconds, decisions)


def seating(sides: Sequence[int], num_pairs: int, with_partner: bool) -> Int8s:
    """[2 * pairs, S] which of two policies (2: their partner) sits where: sides are swapped at every second table."""
    seats = np.array(sides)
    partners = np.array([with_partner and side in sides[:seat] for seat, side in enumerate(sides)])
    tables = [np.where(partners, 2, seats ^ swapped) for swapped in (0, 1)]
    return np.tile(np.array(tables, np.int8), (num_pairs, 1))


def play_mirrored(
    game: Game,
    policies: Sequence[Policy],
    numbers: NDArray[np.int64],
    seed: int,
    options: dict[str, Any],
    partner: Policy | None = None,
    log_size: int = 0,
) -> Played:
    """Two policies on the deals with these numbers: tables 2k and 2k + 1 are a pair, at the first of them policy 0
    has side 0."""
    states = new_tables(game, options, seed, np.repeat(numbers, 2))
    everyone = [*policies, *([partner] if partner else [])]
    rngs = [np.random.default_rng([seed, int(numbers[0]), which]) for which in range(len(everyone))]
    players = seating(game.rules.SIDES, len(numbers), partner is not None)
    return play_out(game, states, everyone, players, rngs, log_size)


def _play_alone(
    game: Game, policy: Policy, numbers: NDArray[np.int64], rng_seed: list[int], options: dict[str, Any]
) -> Played:
    states = new_tables(game, options, rng_seed[0], numbers)
    players = np.zeros((len(states), game.rules.NUM_SEATS), np.int8)
    return play_out(game, states, [policy], players, [np.random.default_rng(rng_seed)])


def _pair_figures(game: Game, played: Played) -> tuple[NDArray[np.float64], ...]:
    """Margins and win shares of the first policy, one for each pair, from the rewards."""
    sides = game.rules.SIDES
    tables = np.arange(len(played.rewards))
    margins = played.rewards[tables, [sides.index(swapped) for swapped in tables % 2]]
    wins = (np.sign(margins) + 1) / 2
    margins, wins = ((values[0::2] + values[1::2]) / 2 for values in (margins, wins))
    return margins, wins


def _figures_alone(game: Game, played: Played) -> tuple[NDArray[np.float64], ...]:
    """Scores and wins of a policy, from the outcomes."""
    outcomes = [game.view.outcome(state) for state in played.states]
    scores = np.array([score[0] for _, score in outcomes], np.float64)
    return scores, np.array([reason == WON for reason, _ in outcomes], np.float64)
