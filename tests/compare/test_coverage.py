"""How often 95 % intervals hold what is true, for 20, 50 and 200 pairs.

Shares of pairs that are won, drawn or lost: exactly, from all outcomes. Everything else: thousands of times from
skewed and heavy-tailed distributions, and from a pool of played pairs of each game, whose mean is the truth; pairs are
drawn from it with replacement, as from a game that has these pairs alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement, product
from math import lgamma, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from card_envs.compare._ratings import ratings
from card_envs.compare.contests import Contest, Part, chunks, join
from card_envs.compare.estimates import Estimate, estimate, share
from card_envs.compare.pairs import PairResult, play_pairs
from card_envs.engine.batch import BatchEnv
from card_envs.game import Game
from card_envs.games import get_game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.options import describe_options
from card_envs.reviews import MoveJudge
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import listed_values, quick_opponents, short_options

SIZES = (20, 50, 200)
LEAST, MOST = 0.935, 0.97
ERRORS = 3.0  # standard errors of the simulation
SIGN_TEST = 6  # fewer pairs are never significant at 5 %, no matter who wins them
POOL, POOL_SECONDS = 8000, 20.0
ROUNDING = 1e-9


# Shares, exactly


@cache
def all_outcomes(pairs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[n, 3] How often each of 0, 1/2 and 1 can occur, and [n, 2] the bounds of the share then."""
    counts = [(pairs - won - drawn, drawn, won) for won in range(pairs + 1) for drawn in range(pairs + 1 - won)]
    found = [share(np.repeat([0, 0.5, 1], times)) for times in counts]
    return np.array(counts, np.float64), np.array([(one.low, one.high) for one in found])


def exact_coverage(pairs: int, chances: NDArray[np.float64]) -> tuple[float, float]:
    """How often the interval holds the true share, and its mean width, by the chances of 0, 1/2 and 1."""
    counts, bounds = all_outcomes(pairs)
    ways = lgamma(pairs + 1) - np.array([sum(lgamma(count + 1) for count in row) for row in counts])
    weights = np.exp(ways + counts @ np.log(np.maximum(chances, 1e-300)))
    truth = chances @ [0, 0.5, 1]
    held = (bounds[:, 0] <= truth + ROUNDING) & (truth - ROUNDING <= bounds[:, 1])
    return float(weights @ held), float(weights @ (bounds[:, 1] - bounds[:, 0]))


def chances_of(won: float, draws: float) -> NDArray[np.float64]:
    """Of 0, 1/2 and 1, for a share and how many of all draws that it allows occur."""
    drawn = draws * 2 * min(won, 1 - won)
    return np.array([1 - won - drawn / 2, drawn, won - drawn / 2])


@pytest.mark.parametrize("pairs", SIZES[:2])
def test_shares_are_held_at_every_scale(pairs: int) -> None:
    """The shares and rates of draws between them, too.

    Twenty pairs that are won or lost and nothing else have 21 outcomes: then the coverage of any interval jumps by
    percents from one share to the next (Brown, Cai & DasGupta 2001), and it is the mean that can be near 95 %.
    """
    for draws in (0.0, 0.1, 0.3, 0.5, 0.7):
        inside = [exact_coverage(pairs, chances_of(won, draws))[0] for won in np.linspace(0.1, 0.9, 161)]
        near_0 = [exact_coverage(pairs, chances_of(won, draws))[0] for won in np.geomspace(0.0005, 0.1, 100)]
        assert 0.945 < np.mean(inside) < 0.965
        assert min(inside) > (0.925 if draws == 0 else LEAST)
        assert max(inside) < (0.985 if pairs == 20 else 0.972)
        assert min(near_0) > LEAST


@pytest.mark.slow
def test_coverage_of_shares() -> None:
    shares = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
    for draws in (0.0, 0.2, 0.5):
        print(
            f"\nshares with {draws:.0%} of the draws that they allow: coverage in % (mean width in percentage points)"
        )
        print("pairs " + "".join(f"{won:>12}" for won in shares))
        for pairs in SIZES:
            found = [exact_coverage(pairs, chances_of(won, draws)) for won in shares]
            print(f"{pairs:5} " + "".join(f"{100 * held:6.1f} ({100 * width:.0f})" for held, width in found))
            for won, (held, _) in zip(shares, found):
                assert held >= LEAST and (held <= MOST or not 0.1 <= won <= 0.9), (pairs, draws, won)


# What is drawn from a pool


def check_coverage(
    label: str, values: NDArray[np.float64], truth: Any, figure: Any, times: int, least: dict[int, float] | None = None
) -> None:
    """Draw pairs from the columns of [..., N] values many times; print a line, and compare with what is asked for."""
    least = least or {}
    rng = np.random.default_rng(0)
    line = f"{label:58}"
    for pairs in SIZES:
        drawn: list[Estimate] = [figure(values[..., rng.integers(0, values.shape[-1], pairs)]) for _ in range(times)]
        held = float(np.mean([one.low <= truth <= one.high for one in drawn]))
        widths = np.array([one.high - one.low for one in drawn])
        endless = ~np.isfinite(widths)
        width = f"{widths[~endless].mean():.3g}" if not endless.all() else "-"
        line += f"{100 * held:6.1f} ({width}{f', {endless.mean():.0%} endless' if endless.any() else ''})"
        error = ERRORS * sqrt(0.05 * 0.95 / times)
        assert held >= least.get(pairs, LEAST) - error, (label, pairs, held)
        edge = not 0.1 <= truth <= 0.9 if figure is share else endless.any()
        if figure is not estimate:  # by few pairs that are not as most, no interval can exclude that players are equal
            edge = edge or pairs * np.mean(values != np.median(values)) < SIGN_TEST
        assert edge or held <= MOST + error, (label, pairs, held)
    print(line)


SKEWED: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "normal": lambda rng, size: rng.normal(0.2, 1, size),
    "exponential": lambda rng, size: rng.exponential(1, size),
    "lognormal, skewness 1.75": lambda rng, size: np.exp(0.5 * rng.normal(size=size)),
    "Student's t with 4 degrees of freedom": lambda rng, size: rng.standard_t(4, size),
    "one of ten pairs ends six deviations lower": lambda rng, size: (
        rng.normal(size=size) - 6 * (rng.random(size) < 0.1)
    ),
}


def test_skewed_margins_are_held_by_fifty_pairs() -> None:
    values = np.random.default_rng(0).exponential(1, (2000, 50))
    found = [estimate(row) for row in values]
    assert LEAST < np.mean([one.low <= 1 <= one.high for one in found]) < MOST


@pytest.mark.slow
def test_coverage_of_skewed_margins() -> None:
    print("\nmargins: coverage in % (mean width) for 20, 50 and 200 pairs")
    for name, draw in SKEWED.items():
        pool = draw(np.random.default_rng(1), 1_000_000)
        # In one of eight samples of 20 the tail of the last kind does not show at all.
        check_coverage(name, pool, pool.mean(), estimate, 10_000, {20: 0.905} if name.startswith("one of") else None)


def pool_of(game: Game, rivals: tuple[str, ...], options: dict[str, Any]) -> Part:
    """Pairs of these players, as many as `POOL_SECONDS` allow."""
    contest = Contest(game, rivals, 11, tuple(options.items()))
    parts, began = [], time.monotonic()
    for numbers in chunks(POOL):
        parts.append(contest.play(numbers))
        if time.monotonic() - began > POOL_SECONDS:
            break
    return join(parts)


def rating_of_first(wins: NDArray[np.float64]) -> Estimate:
    """Above the last one."""
    players = {1: 2, 3: 3}[len(wins)]
    return ratings(players, wins, anchor=players - 1)[0]


@pytest.mark.slow
def test_coverage_of_games(game: Game) -> None:
    """Episodes as they are, or where they have several deals, single ones and between two players whole ones."""
    rivals = [name for name in ("trivial", "small") if name in quick_opponents(game)]
    single, whole = (game.view.num_deals(game.rules.new_state(game.validated(of))) for of in (short_options(game), {}))
    options = short_options(game) if single < whole else {}
    for rival in rivals:
        check_figures(game, ("greedy", rival), options)
    if len(rivals) == 2 and not game.is_solitaire:
        check_figures(game, ("greedy", *rivals), options)
    if single < whole:
        check_figures(game, ("greedy", rivals[0]), {})


def check_figures(game: Game, rivals: tuple[str, ...], options: dict[str, Any]) -> None:
    """All figures of such a contest; of three players the rating alone."""
    part = pool_of(game, rivals, options)
    print(
        f"\n{game.name} {options or ''}, {part.num_deals:,} pairs: coverage in % (mean width) for 20, 50 and 200 pairs"
    )
    times = 4000
    if game.is_solitaire:
        for rival, wins, scores in zip(rivals, part.wins, part.margins):
            check_coverage(f"win share of {rival}, {wins.mean():.3f}", wins, wins.mean(), share, times)
            check_coverage(f"score of {rival}", scores, scores.mean(), estimate, times)
        wins, scores = part.wins[0] - part.wins[1], part.margins[0] - part.margins[1]
        check_coverage(f"wins more, {' than '.join(rivals)}", (wins + 1) / 2, (wins.mean() + 1) / 2, share, times)
        check_coverage(f"score more, {' than '.join(rivals)}", scores, scores.mean(), estimate, times)
        return
    if len(rivals) == 2:
        pairing, wins, margins = " against ".join(rivals), part.wins[0], part.margins[0]
        check_coverage(f"win share, {pairing}, {wins.mean():.3f}", wins, wins.mean(), share, times)
        check_coverage(f"margin, {pairing}", margins, margins.mean(), estimate, times)
    truth = rating_of_first(part.wins).mean
    label = f"rating above the last, {', '.join(rivals)}, {truth - 1000:+.0f}"
    check_coverage(label, part.wins, truth, rating_of_first, 1000 if len(rivals) == 2 else 300)


SCRIPTED = ("random", "trivial", "greedy")
FROM_FEW_ON = (2, 3, 5, 10, 30, 100)
FEW_POOL, FEW_TIMES = 4000, 500


@pytest.mark.parametrize("pairs", [30, 100])
def test_equal_results_have_an_interval(pairs: int) -> None:
    """That none of these pairs differed does not say that none does."""
    for counts_wins, text in ((False, "+0 (no interval) points"), (True, "to +0.0")):
        played = PairResult(np.zeros(pairs), np.full(pairs, 0.5), 1, (0.0, 0.0), (1, 1), counts_wins)
        for figure in (played.win_share, played.margin_per_episode, played.margin_per_deal):
            assert figure.low < figure.mean < figure.high
        assert played.margin_per_episode.low == (2 * played.win_share.low - 1 if counts_wins else -np.inf)
        assert text in played.in_words()


def scripted_contests(game: Game) -> Iterator[tuple[str, PairResult]]:
    """Many pairs of each two scripted players, a player against itself included, in each unit of margins."""
    for reward in listed_values(describe_options(game.options)["reward"].type):
        options = short_options(game) | {"reward": reward}
        for first, second in combinations_with_replacement(SCRIPTED, 2):
            played = play_pairs(game, first, second, FEW_POOL, 11, options=options)
            yield f"{game.name}, {reward}: {first} against {second}", played


@pytest.mark.mechanics
def test_intervals_hold_from_two_pairs_on(game: Game) -> None:
    """Of every two scripted players, in every unit; and where players differ, no interval is without width."""
    rng, lost, widths = np.random.default_rng(0), [], []
    print(f"\ncoverage in % for {FROM_FEW_ON} pairs")
    figures_shown = ("win_share", "margin_per_episode", "margin_per_deal")
    for (label, played), shown in product(scripted_contests(game), figures_shown):
        truth, line = getattr(played, shown).mean, []
        for pairs in FROM_FEW_ON:
            rows = rng.integers(0, FEW_POOL, (FEW_TIMES, pairs))
            drawn = [replace(played, margins=played.margins[row], win_shares=played.win_shares[row]) for row in rows]
            figures: list[Estimate] = [getattr(result, shown) for result in drawn]
            held = np.mean([one.low - ROUNDING <= truth <= one.high + ROUNDING for one in figures])
            widths += [one.high - one.low for one in figures]
            line.append(f"{100 * held:.1f}")
            if held < LEAST - ERRORS * sqrt(0.05 * 0.95 / FEW_TIMES):
                lost.append((shown, label, pairs, held))
        print(f"{shown:18} {label:60} {truth:8.3f}  {' '.join(line)}")
    assert lost == [] and min(widths) > 0


# Costs of moves


def decided(game: Game, number: int, seed: int) -> tuple[Decisions, NDArray[np.int64]]:
    """Decisions from all parts of games by `greedy` with some random moves, and moves there, half of them random."""
    env, rng = BatchEnv(game, 64, seed=seed), np.random.default_rng(seed)
    scripted, states, played = np.zeros(64, np.int64), list[Any](), list[int]()
    for step in range(7 * number):
        env.bot_actions("greedy", scripted)
        anything = rng.random(env.mask.shape) * env.mask
        if step % 7 == 3:
            for row in rng.permutation(np.flatnonzero(env.mask.sum(axis=1) > 1))[: 1 + number // 40]:
                states.append(env.states[row].copy())
                played.append(int(anything[row].argmax() if rng.random() < 0.5 else scripted[row]))
        if len(states) >= 2 * number:
            break
        env.step(np.where(rng.random(64) < 0.1, anything.argmax(axis=1), scripted))
    rows = rng.permutation(len(states))[:number]
    return decisions_at(game, np.array([states[row] for row in rows], game.rules.STATE)), np.array(played)[rows]


JUDGED = pytest.mark.parametrize("game", [HIGH_CARD, get_game("big_ben")], ids=lambda game: game.name)  # moves, turns


@pytest.mark.slow
@JUDGED
def test_coverage_of_costs(game: Game) -> None:
    """Twice the error holds what 100 seeds find on average, for moves that come to something else than the judge's."""
    judge = MoveJudge(load_opponent("strong", game, sampled=False))
    decisions, played = decided(game, 150, seed=0)
    _, _, errors = judge.costs(decisions, played, np.random.default_rng(9))
    rows = np.flatnonzero(errors > 0)[:25]
    found = [judge.costs(decisions.at(rows), played[rows], np.random.default_rng(seed))[1:] for seed in range(100)]
    costs, errors = np.array(found).swapaxes(0, 1)
    held = np.abs(costs - costs.mean(axis=0)) <= 2 * errors
    differ = costs.std(axis=0) > 0
    print(f"{game.name}: {len(rows)} moves, {differ.sum()} of which differ: {held[:, differ].mean():.1%} held")
    print(f"of each: {np.round(100 * held.mean(axis=0)).astype(int).tolist()}")
    assert 0.93 <= held[:, differ].mean() <= 0.98
    assert held.mean(axis=0).min() >= 0.75


@pytest.mark.slow
@JUDGED
def test_costs_are_right_on_average(game: Game) -> None:
    """The choice of a move, and of its line, does not show in what it costs: ten times the worlds find the same."""
    judge, surer = (MoveJudge(load_opponent("strong", game, sampled=False), worlds) for worlds in (512, 5120))
    decisions, played = decided(game, 4500, seed=1)
    _, costs, errors = judge.costs(decisions, played, np.random.default_rng(1))
    rows = np.flatnonzero(errors > 0)[:1500]
    _, truth, _ = surer.costs(decisions.at(rows), played[rows], np.random.default_rng(2))
    z = (costs[rows] - truth) / errors[rows]
    print(f"{game.name}: {len(rows)} costs, {costs[rows].mean():.3f}, truly {truth.mean():.3f}; mean z {z.mean():.3f}")
    assert len(rows) == 1500 and abs(z.mean()) < 0.1
