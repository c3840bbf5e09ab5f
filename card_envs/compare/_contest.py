"""Contests: players given by name, in all pairings on the same deals, in any number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare._spread import THIS_PROCESS, Executor
from card_envs.compare._tables import PlayedOut, Watch
from card_envs.compare.pairs import Match, Part, chunks, lineups
from card_envs.game import Game
from card_envs.opponents._about import unlike_training
from card_envs.opponents._names import frames, load_cached
from card_envs.opponents.phased import phase_actions
from card_envs.opponents.scripted import ScriptedPolicy


@dataclass(frozen=True)
class Contest:
    """A contest: everything that a process needs to play a part of it.

    Attributes:
        game: the game.
        names: of the policies, as for `load_opponent`.
        seed: of deals and policies.
        options: of the game, as sorted items.
        sampled: networks sample their actions; False: they play the likeliest.
        partner: policy in all but the first seat of a side; empty: the same policy in all seats of a side.
        frame: text before and after each name for `load_opponent`: with `("bidding=", "+greedy")` the policies differ
            only in their bidding.
    """

    game: Game
    names: tuple[str, ...]
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()
    sampled: bool = True
    partner: str = ""
    frame: tuple[str, str] = ("", "")

    def check(self) -> None:
        """Raise ValueError, before anything is played, for a game, name or option that does not fit."""
        self.game.validated(dict(self.options))
        lineups(self.game, len(self.names))
        self.match()
        if self.partner and self.game.num_sides == self.game.rules.NUM_SEATS:
            raise ValueError(f"{self.game.name}: no side has a second seat for a partner, got {self.partner!r}")

    def warnings(self) -> list[str]:
        """Return a line for each policy that was trained under other options."""
        match, names = self.match(), (*self.names, self.partner)
        found = (
            unlike_training(name, policy, self.game, match.options)
            for name, policy in zip(names, (*match.policies, match.partner))
            if policy is not None
        )
        return [line for line in dict.fromkeys(found) if line]

    def match(self) -> Match:
        """Return the contest with its policies loaded."""
        load = partial(load_cached, game=self.game, sampled=self.sampled)
        policies = [load(name.join(self.frame)).policy for name in self.names]
        partner = load(self.partner).policy if self.partner else None
        return Match(self.game, policies, partner, self.seed, dict(self.options))

    def play(self, numbers: NDArray[np.int64], watch: Watch | None = None) -> Part:
        """Play every pairing (in a solitaire: policy) on the deals with these numbers; `watch` as in `play_out`."""
        return self.match().play(numbers, watch)

    def expected_moves(self, numbers: NDArray[np.int64]) -> int:
        """Estimate the number of moves that `play` makes from a playout by `greedy`, which takes milliseconds."""
        rows = lineups(self.game, len(self.names))
        match = Match(self.game, [ScriptedPolicy("greedy")] * len(self.names), None, self.seed, dict(self.options))
        return len(rows) * int(match.play_lineup(rows[0], numbers).moves.sum())

    def play_one(self, lineup: Sequence[int], numbers: NDArray[np.int64]) -> PlayedOut:
        """Play one pairing or policy on these deals, exactly as `play` does, and keep the moves."""
        return self.match().play_lineup(lineup, numbers, keep_moves=True)


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
    here, elsewhere = frames(phase, other, contest.names)
    return {phase: replace(contest, frame=here), rest: replace(contest, frame=elsewhere)}


def play_contest(
    contest: Contest, pairs: int, workers: Executor = THIS_PROCESS, watch: Watch | None = None
) -> Iterator[Part]:
    """Play all pairings on the same deals and yield the parts as they are finished.

    Args:
        contest: what to play.
        pairs: number of deals; with two sides, each is played twice.
        workers: who plays; they affect only the order of the parts.
        watch: called with the moves made in the current part, if this process plays.
    """
    play = partial(contest.play, watch=watch) if workers.is_here else contest.play
    return workers.spread(play, chunks(pairs))
