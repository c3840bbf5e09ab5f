"""The players of the other seats: their moves until it is one seat's turn, in one episode after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from card_envs.opponents.policy import Decisions, Opponent, Policy, spawn
from card_envs.opponents.pool import OpponentPool
from card_envs.play.episode import Episode
from card_envs.play.sitting import Course, seated


class PoolSeat(Policy):
    """A policy that plays by the member drawn for the current episode.

    Environments that share a pool have one of these each, because their episodes begin at different times.
    """

    def __init__(self, pool: OpponentPool) -> None:
        self.pool = pool
        self._member: Opponent | None = None

    @property
    def member(self) -> Opponent:
        """The member that plays this episode."""
        if self._member is None:
            self._member = self.pool.draw()
        return self._member

    def reset(self) -> None:
        """Draw for the next episode."""
        self._member = self.pool.draw()
        self._member.reset()

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose an action [n] for each decision."""
        return self.member.policy.act(decisions, rng)

    def report(self, scores: Sequence[int] | None, seat: int) -> None:
        """Report the scores of an ended episode for the learner at `seat`; None: an illegal move lost it."""
        won = 0.0
        if scores is not None:
            sides = self.pool.game.sides
            best = max(score for side, score in zip(sides, scores) if side != sides[seat])
            won = (float(np.sign(scores[seat] - best)) + 1) / 2
        self.pool.report(self.member, won)


class Others:
    """The players of all seats but one.

    Attributes:
        players: clockwise from that seat's left.
        seat: the one that they leave.
        rng: all their randomness, once an episode has begun.
    """

    def __init__(self, players: Sequence[Policy], seat: int | Literal["random"]) -> None:
        self.players = players
        self.distinct = list({id(player): player for player in players}.values())
        self.rng: np.random.Generator
        self._wanted = seat
        self.seat = 0 if isinstance(seat, str) else int(seat)

    def begin(self, rng: np.random.Generator) -> None:
        """Begin an episode: draw the seat, if it is to be drawn, and members of pools."""
        if isinstance(self._wanted, str):
            self.seat = int(rng.integers(len(self.players) + 1))
        self.rng = spawn(rng)  # the seed of the deals could be recovered from `rng` itself
        for player in self.distinct:
            player.reset()

    def moves(self, episode: Episode) -> Iterator[int]:
        """Yield their actions, which the caller plays, until it is the seat's turn or the end."""
        course = Course(episode)
        for player in course.take_turns(seated(self.players, self.seat)):
            yield int(player.act(course.decisions(), self.rng)[0])

    def report(self, scores: Sequence[int] | None) -> None:
        """Report the scores of an ended episode to pools; None: the seat lost it with an illegal move."""
        for player in self.distinct:
            if isinstance(player, PoolSeat):
                player.report(scores, self.seat)
