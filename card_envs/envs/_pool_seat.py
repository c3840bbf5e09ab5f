"""The player of an opponent pool in one episode after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.opponents.policy import Decisions, Opponent, Policy, moves_of, probabilities_of, reset
from card_envs.opponents.pool import OpponentPool


class PoolSeat:
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
        reset(self._member)

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        """See `Policy.act`."""
        return moves_of(self.member, decisions, rng)

    def probabilities(self, decisions: Decisions) -> NDArray[np.floating[Any]]:
        """See `Policy.probabilities`."""
        return probabilities_of(self.member, decisions)

    def report(self, state: Any, seat: int, illegal: bool) -> None:
        """Report the result of an ended episode for the learner at `seat`, who lost it with an illegal move."""
        won = 0.0
        if not illegal:
            game = self.pool.game
            _, scores = game.view.outcome(state)
            best = max(score for side, score in zip(game.sides, scores) if side != game.sides[seat])
            won = (float(np.sign(scores[seat] - best)) + 1) / 2
        self.pool.report(self.member, won)


def report_to_pools(players: Iterable[Policy], state: Any, seat: int, illegal: bool = False) -> None:
    """Tell the pools among the players of an ended episode who won; see `PoolSeat.report`."""
    for player in {id(player): player for player in players}.values():
        if isinstance(player, PoolSeat):
            player.report(state, seat, illegal)
