"""Contests: players given by name, who meet in all pairings on the same deals, in any number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.pairs import Match, Part, chunks, lineups
from card_envs.compare.spread import spread
from card_envs.compare.tables import Played, Watch
from card_envs.game import Game
from card_envs.opponents.names import UsersOwn, frames, load_opponent, parse
from card_envs.opponents.phased import phase_actions
from card_envs.opponents.policy import Policy
from card_envs.opponents.scripted import ScriptedPolicy


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
        self.match()
        if self.partner and self.game.num_sides == self.game.rules.NUM_SEATS:
            raise ValueError(f"{self.game.name}: nobody has a partner, so {self.partner!r} can't be one")

    def match(self) -> Match:
        """Return the contest with its policies loaded."""
        policies = [self._load(name.join(self.frame)) for name in self.names]
        partner = self._load(self.partner) if self.partner else None
        return Match(self.game, policies, partner, self.seed, dict(self.options))

    def play(self, numbers: NDArray[np.int64], watch: Watch | None = None) -> Part:
        """Return every pairing (in a game for one: every policy) on the deals with these numbers; `watch` as in `play_out`."""
        return self.match().play(numbers, watch)

    def expected_moves(self, numbers: NDArray[np.int64]) -> int:
        """About how many moves `play` makes: those of `greedy`, which takes milliseconds."""
        rows = lineups(self.game, len(self.names))
        match = Match(self.game, [ScriptedPolicy("greedy")] * len(self.names), None, self.seed, dict(self.options))
        return len(rows) * int(match.play_lineup(rows[0], numbers).moves.sum())

    def play_one(self, lineup: Sequence[int], numbers: NDArray[np.int64], log_size: int) -> Played:
        """Return one pairing or policy on the same deals, exactly as `play` does it."""
        return self.match().play_lineup(lineup, numbers, log_size)

    def _load(self, name: str) -> Policy:
        # Users' own classes are made anew: should they remember anything, the result still is the part's alone.
        users_own = any(isinstance(player, UsersOwn) for player in parse(name).players())
        return (load_opponent if users_own else _load_once)(name, self.game, self.sampled)


_load_once = cache(load_opponent)


def taken_apart(contest: Contest, phase: str, other: str) -> dict[str, Contest]:
    """Two contests: in one the players differ in a phase only, in the other everywhere else only.

    Args:
        contest: of the players as they are.
        phase: one of the game's.
        other: who decides the other part for all of them.

    Raises:
        ValueError: the game has no such phase, or a player is made of two already.
    """
    phase_actions(contest.game, phase)
    rest = " and ".join(name for name in contest.game.phases if name != phase)
    here, elsewhere = frames(phase, other, contest.names)
    return {phase: replace(contest, frame=here), rest: replace(contest, frame=elsewhere)}


def play_contest(
    contest: Contest, pairs: int, processes: int = 1, ray_address: str = "", watch: Watch | None = None
) -> Iterator[Part]:
    """Play all pairings on the same deals, part by part as they are finished.

    Args:
        contest: who plays what.
        pairs: how many deals; between two sides, each is played twice.
        processes: that share the work; the parts do not depend on it, their order does.
        ray_address: of a Ray cluster that does the work instead (see `spread`).
        watch: is told of the moves made in the part that is being played, where this process plays.
    """
    here = processes == 1 and not ray_address
    return spread(partial(contest.play, watch=watch) if here else contest.play, chunks(pairs), processes, ray_address)
