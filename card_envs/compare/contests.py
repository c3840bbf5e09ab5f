"""Contests: players in all pairings on the same deals, in any number of processes.

A pair is one episode played twice on the same deals with the policies' sides swapped. In a solitaire, all policies play
the same deals. Letters for shapes: `N` pairs (in a solitaire: deals), `P` policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._tables import Watch
from card_envs.compare._tallies import sums_of
from card_envs.compare.games import GamePlan, Games, Plan, play_games, portions
from card_envs.compare.spread import THIS_PROCESS, Executor
from card_envs.engine.buffers import check_int
from card_envs.game import Game, Int8s
from card_envs.opponents.about import unlike_training
from card_envs.opponents.names import phase_templates
from card_envs.opponents.phased import phase_actions
from card_envs.opponents.policy import Policy, PolicyLike

MOST_PAIRS = 1 << 24
PAIRS_AT_ONCE = 1024
MIN_PAIRS_AT_ONCE = 16
MODES = {True: "moves drawn", False: "likeliest moves"}  # how networks choose, in words
WON = "won"  # reason of the end of a won solitaire


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
        recorded: games of the first deals, if they are kept: the deal's number, the policies by side, the actions.
    """

    first: int
    margins: NDArray[np.float64]
    wins: NDArray[np.float64]
    seconds: NDArray[np.float64]
    decisions: NDArray[np.int64]
    tallies: NDArray[np.float64]
    recorded: tuple[tuple[int, tuple[int, ...], list[int]], ...] = ()

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
        tuple(game for part in parts for game in part.recorded),
    )


def chunks(pairs: int) -> list[NDArray[np.int64]]:
    """Return the numbers of the deals in portions, which do not depend on the number of processes."""
    pairs = check_int(pairs, 1, MOST_PAIRS, "pairs")
    size = min(PAIRS_AT_ONCE, max(MIN_PAIRS_AT_ONCE, -(-pairs // 32)))
    return [np.array(portion) for portion in portions(pairs, size)]


def modes_in_words(modes: Iterable[tuple[str, bool | None]]) -> str:
    """Return which of these players, given with their `Policy.sampled`, choose their moves in which of the MODES."""
    known = list(dict.fromkeys(modes))
    by_mode = {text: [name for name, sampled in known if sampled is mode] for mode, text in MODES.items()}
    return "; ".join(f"{text}: {', '.join(names)}" for text, names in by_mode.items() if names)


def _lineups(game: Game, num_policies: int) -> list[tuple[int, ...]]:
    """Return all pairings or, in a solitaire, each policy by itself."""
    if game.num_sides > 2:
        raise ValueError(f"{game.name}: comparisons are for games with one or two sides, not {game.num_sides}")
    return list(combinations(range(num_policies), game.num_sides))


def seating(sides: Sequence[int], num_policies: int, with_partner: bool) -> Int8s:
    """Return [tables, S], the policy in each seat at the tables of a deal: two policies swap sides.

    A partner has all seats of a side but the first.
    """
    by_policy = np.array([not with_partner or side not in sides[:seat] for seat, side in enumerate(sides)])
    tables = [np.where(by_policy, np.array(sides) ^ swapped, num_policies) for swapped in range(num_policies)]
    return np.array(tables, np.int8)


@dataclass(frozen=True)
class Contest(Plan):
    """A contest: everything that a process needs to play a part of it.

    Attributes:
        partner: player in all but the first seat of a side; empty: the same one in all seats of a side.
        frame: text before and after each name for `load_opponent`: with `("bidding=", "+greedy")` the policies differ
            only in their bidding.
        recorded: number of deals whose games are kept move for move.
        groups: methods with several trainings: name and players of each; these are the last of the players.
    """

    partner: str | PolicyLike = ""
    frame: tuple[str, str] = ("", "")
    recorded: int = 0
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def counts_wins(self) -> bool:
        """True if margins between two sides count episodes won, not points."""
        return getattr(self.validated(), "reward", "") == "win"

    def seated(self, lineup: Iterable[int]) -> list[str | PolicyLike]:
        """Return these players as they play, and the partner if there is one."""
        players = (self.players[i] for i in lineup)
        framed = [player.join(self.frame) if isinstance(player, str) else player for player in players]
        return [*framed, *([self.partner] if self.partner else [])]

    def load(self) -> list[Policy]:
        """Return the policies, and the partner if there is one."""
        return Plan(self.game, self.seated(range(len(self.players))), sampled=self.sampled).load()

    @cached_property
    def modes(self) -> list[bool | None]:
        """`Policy.sampled` of each player, and of the partner if there is one."""
        return [policy.sampled for policy in self.load()]

    def modes_in_words(self) -> str:
        """Return which networks draw their moves and which play the likeliest; empty if there are no networks."""
        partner = self.partner if isinstance(self.partner, str) else "partner"
        return modes_in_words(zip((*self.names, partner), self.modes))

    def check(self) -> None:
        """Raise ValueError, before anything is played, for a game, name or option that does not fit."""
        super().check()
        _lineups(self.game, len(self.players))
        self.load()
        if self.partner and self.game.num_sides == self.game.rules.NUM_SEATS:
            raise ValueError(f"{self.game.name}: no side has a second seat for a partner, got {self.partner!r}")

    def warnings(self) -> list[str]:
        """Return a line for each policy that was trained under other options."""
        named = zip((*self.names, str(self.partner)), self.load())
        lines = (unlike_training(name, policy, self.game, dict(self.options)) for name, policy in named)
        return [line for line in dict.fromkeys(lines) if line]

    @property
    def deals_per_episode(self) -> int:
        """Scored deals in an episode, 1 if that is open."""
        return self.game.view.num_deals(self.game.rules.new_state(self.validated()))

    def play(self, numbers: NDArray[np.int64], watch: Watch | None = None) -> Part:
        """Play every pairing (in a solitaire: policy) on the deals with these numbers; `watch` as in `play_games`."""
        rows, recorded = [], []
        seconds = np.zeros(len(self.players))
        decisions = np.zeros(len(self.players), np.int64)
        stats: list[Any] = [0] * len(self.players)
        num_recorded = int((np.asarray(numbers) < self.recorded).sum())
        for lineup in _lineups(self.game, len(self.players)):
            games = play_games(self.plan(lineup, keep_moves=num_recorded > 0), numbers, watch)
            rows.append((_figures_alone if self.game.is_solitaire else _pair_figures)(self.game, games))
            for which, i in enumerate(lineup):
                seconds[i] += games.seconds[which]
                decisions[i] += games.decisions[which]
                stats[i] = stats[i] + games.stats[:, which]
            for table in range(num_recorded * len(lineup)):
                by_side = lineup[::-1] if table % len(lineup) else lineup
                recorded.append((int(games.number[table]), by_side, games.actions_of(table)))
        margins, wins = (np.array([row[k] for row in rows]) for k in range(2))
        tallies = np.array([sums_of(self.game, of_policy) for of_policy in stats])
        return Part(int(numbers[0]), margins, wins, seconds, decisions, tallies, tuple(recorded))

    def plan(self, lineup: Sequence[int], keep_moves: bool = False) -> GamePlan:
        """Return the games of one or two of the policies.

        Two play each deal twice: games 2k and 2k + 1 are a pair, with the first policy on side 0 in game 2k.
        """
        # Copies of a player get streams of their own.
        streams = [0, 1, 2] if len(lineup) > 1 else [*lineup, len(self.players)]
        lineups = seating(self.game.sides, len(lineup), bool(self.partner))
        return GamePlan(
            self.game, self.seated(lineup), self.seed, self.options, self.sampled, lineups, mirrored=True,
            streams=streams, keep_moves=keep_moves,
        )  # fmt: skip

    def expected_moves(self, numbers: NDArray[np.int64]) -> int:
        """Estimate the number of moves that `play` makes from a playout by `greedy`, which takes milliseconds."""
        rows = _lineups(self.game, len(self.players))
        twin = replace(self, players=("greedy",) * len(self.players), partner="", frame=("", ""))
        return len(rows) * int(play_games(twin.plan(rows[0]), numbers).num_moves.sum())


def _pair_figures(game: Game, games: Games) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the first policy's margins and win shares, one per pair, from the rewards."""
    margins = np.array([games.rewards[side::2, game.sides.index(side)] for side in range(2)])
    wins = (np.sign(margins) + 1) / 2
    return margins.mean(axis=0), wins.mean(axis=0)


def _figures_alone(game: Game, games: Games) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores and wins of a policy in a solitaire, from the outcomes."""
    reasons, scores = game.outcomes(games.states)
    return scores[:, 0].astype(np.float64), (reasons == WON).astype(np.float64)


def taken_apart(contest: Contest, phase: str, other: str) -> dict[str, Contest]:
    """Return two contests: in one, the players differ only in a phase; in the other, only outside it.

    Args:
        contest: of the complete players.
        phase: of the game.
        other: the player of the other part, the same for all.

    Raises:
        ValueError: the game has no such phase, or a player already combines two.
    """
    phase_actions(contest.game, phase)
    rest = " and ".join(name for name in contest.game.view.PHASES if name != phase)
    here, elsewhere = phase_templates(phase, other, contest.names)
    return {phase: replace(contest, frame=here), rest: replace(contest, frame=elsewhere)}


def play_contest(
    contest: Contest, pairs: int, workers: Executor = THIS_PROCESS, watch: Watch | None = None
) -> Iterator[Part]:
    """Play all pairings on the same deals and yield the parts as they are finished.

    Args:
        contest: what to play.
        pairs: number of deals; with two sides, each is played twice.
        workers: who plays; they affect only the order of the parts.
        watch: as in `play_games`, if this process plays.
    """
    play = partial(contest.play, watch=watch) if workers.is_here else contest.play
    return workers.spread(play, chunks(pairs))
