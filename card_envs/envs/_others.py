"""The players of the other seats: their moves until it is one seat's turn, in one episode after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from card_envs.envs.aec import CardEnv
from card_envs.game import Int64s
from card_envs.opponents.policy import Decisions, Opponent, Policy, decisions_at, spawn
from card_envs.opponents.pool import OpponentPool

Wait = Callable[[str, Callable[[], Int64s]], Int64s]


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
        return self.member.policy.choose(decisions, rng)

    def report(self, state: Any, seat: int, illegal: bool) -> None:
        """Report the result of an ended episode for the learner at `seat`, who lost it with an illegal move."""
        won = 0.0
        if not illegal:
            game = self.pool.game
            _, scores = game.view.outcome(state)
            best = max(score for side, score in zip(game.sides, scores) if side != game.sides[seat])
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

    def moves(self, env: CardEnv, wait: Wait = lambda who, work: work()) -> Iterator[int]:
        """Yield their actions, each to be played before the next, up to the seat's turn; `wait` calls for each one."""
        while (seat := env._seats[env.agent_selection]) != self.seat and not env.terminations[env.agent_selection]:
            player = self.players[(seat - self.seat) % len(env.possible_agents) - 1]
            decisions = decisions_at(env.game, env._table.states)
            yield int(wait(player.name, partial(player.choose, decisions, self.rng))[0])

    def play(self, env: CardEnv, step: Callable[[Any], object], *own: Any) -> float:
        """Play the seat's own actions, then theirs, by `step`; return what it was paid. Pools learn whether it won."""
        agent, paid = env.possible_agents[self.seat], 0.0
        for action in chain(own, self.moves(env)):
            step(action)
            paid += env.rewards[agent]
        for player in self.distinct if own and env.terminations[agent] else ():
            if isinstance(player, PoolSeat):
                player.report(env._table.state, self.seat, env.outcome()["reason"] == "illegal")
        return paid
