"""The judge of a review: a search that prices a move against the one that it would play."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.buffers import check_int
from card_envs.engine.legality import IllegalMove
from card_envs.game import GREEDY, Int64s, UInt64s
from card_envs.opponents.macros import MAX_LENGTH, NO_ACTION, Macro
from card_envs.opponents.policy import Decisions, Opponent, PolicyError, decision_of, decisions_at
from card_envs.opponents.search import SearchPolicy
from card_envs.opponents.search._lines import joins, key_of_position, moves_on, new_line_scratch, write_cost

Float64s = NDArray[np.float64]

WORLDS = 512  # in which both moves are priced
LEAST_WORLDS, PILOT = 32, 8  # with a limit on the time: priced at least; to measure the time, and thrown away


class MoveCost(NamedTuple):
    """The cost of a move.

    Attributes:
        best: what the judge would play.
        cost: how much better that is, in the game's `margin_unit`.
        error: standard error of the cost; 0 where both moves come to the same by the rules.
    """

    best: str
    cost: float
    error: float


def searches_of(opponent: Opponent) -> list[SearchPolicy]:
    """Return the searches among an opponent's parts; if there are none, it can't judge."""
    return [part for part in opponent.policy.parts() if isinstance(part, SearchPolicy)]


class MoveJudge:
    """Prices moves.

    The judge chooses its own move as it plays, and for both moves the best line of the turn that begins with it. Then
    it plays both lines out in the same worlds, which are drawn afresh, in a number that was fixed before. So neither
    the choice nor the number depends on the results that are reported. What it chooses depends on the position alone;
    the seed is that of the worlds. Where the judge's line can still be reached after the move, the move costs nothing.

    Attributes:
        opponent: whose opinion it is.
        worlds: in which moves are priced.
        seconds: for a cost, approximately; then there may be fewer worlds, a number that is chosen by a measurement of
            the time before the first of them. None: no limit.
    """

    def __init__(self, opponent: Opponent, worlds: int = WORLDS, seconds: float | None = None) -> None:
        """Find the opponent's search. Raises ValueError if it has none."""
        if seconds is not None:
            opponent = opponent.within(seconds / 3)  # it searches twice, and prices
        searches = searches_of(opponent)
        asked_by_others = {id(part) for search in searches for part in search.parts()[1:]}
        searches = [search for search in searches if id(search) not in asked_by_others]
        if not searches:
            raise ValueError(f"{opponent.name} does not search, so it can't judge; expected strong or search:64")
        self.opponent = opponent
        self.worlds = check_int(worlds, 2, None, "worlds")
        self.seconds = seconds
        search = searches[-1]
        self._turns = search if search.moves == "turn" else replace(search, moves="turn")
        self._scratch = new_line_scratch(opponent.game)

    def cost(self, view: dict[str, Any], move: str, seed: int = 0) -> MoveCost:
        """Return what a move costs.

        Args:
            view: of the seat to move.
            move: a legal one, in any spelling.
            seed: of the worlds in which it is priced.

        Raises:
            ValueError: as `Opponent.rank_moves` does, or the move is not legal.
        """
        rng = np.random.default_rng(check_int(seed, 0, None, "seed"))
        game = self.opponent.game
        state, decisions = decision_of(game, view)
        try:
            played = game.parse_move(state, move)
        except ValueError as error:
            raise ValueError(f"move: {error}") from None
        if not decisions.mask[0, played]:
            raise ValueError(f"move: {move!r:.80} is not legal here")
        best, costs, errors = self.costs(decisions, np.array([played]), rng)
        return MoveCost(game.view.move_text(state, int(best[0])), float(costs[0]) + 0.0, float(errors[0]))

    def prepare(self, view: dict[str, Any]) -> None:
        """Compile or load what `cost` needs at any position of the game."""
        _, decisions = decision_of(self.opponent.game, view)
        states = self._redrawn(decisions)
        lines = np.stack([self._line(states, int(action)) for action in np.flatnonzero(decisions.mask[0])[[0, -1]]])
        self._own_line(decisions, states)
        self._scratch.states[0] = states[0]  # where a move is due in any case
        self._loop(joins)(states, lines[0], self._scratch)
        self._turns.search_worlds(decisions, states, self._key(states))
        tried = self._turns.try_lines(states, lines[None], self._key(states), 2)
        self._loop(write_cost)(states, tried.stats, int(lines[0, 0]), int(lines[1, 0]), np.zeros(2))

    def costs(
        self, decisions: Decisions, played: Int64s, rng: np.random.Generator
    ) -> tuple[Int64s, Float64s, Float64s]:
        """Return what it would play itself, how much better that is than the moves played, and the standard errors.

        Args:
            decisions: n of them.
            played: [n] legal actions.
            rng: of the worlds in which they are priced.

        Returns:
            [n] actions, [n] costs in the game's `margin_unit`, [n] errors; both are 0 where the moves come to the same.

        Raises:
            IllegalMove: one of the moves is.
        """
        played = decisions.check(played, "a move to judge")
        keys = rng.integers(0, 1 << 64, len(decisions), np.uint64)
        best, costs, errors = np.zeros(len(decisions), np.int64), *np.zeros((2, len(decisions)))
        for i, action in enumerate(played.tolist()):
            decision = decisions.at(np.array([i]))
            try:
                best[i], costs[i], errors[i] = self._cost(decision, action, keys[i : i + 1])
            except (IllegalMove, PolicyError):
                raise
            except Exception as error:
                raise decision.failure(error, f"policy {self.opponent.name}") from error
        return best, costs, errors

    def _cost(self, decisions: Decisions, played: int, keys: UInt64s) -> tuple[int, float, float]:
        """Return what `costs` says of one decision."""
        states = self._redrawn(decisions)
        line = self._own_line(decisions, states)
        best = int(line[0])
        if best == played:
            return best, 0.0, 0.0
        if self._loop(moves_on)(states, played, self._scratch) and self._loop(joins)(states, line, self._scratch):
            return best, 0.0, 0.0
        lines = np.stack([line, self._line(states, played)])[None]
        tried = self._turns.try_lines(states, lines, keys, self._num_worlds(states, lines, keys))
        cost = np.zeros(2)
        self._loop(write_cost)(states, tried.stats, best, played, cost)
        return best, float(cost[0]), float(cost[1])

    def _num_worlds(self, states: NDArray[Any], lines: NDArray[np.int16], keys: UInt64s) -> int:
        """Return in how many worlds lines are priced: as many as there is time for, from a few that are thrown away."""
        if self.seconds is None:
            return self.worlds
        start = time.perf_counter()
        self._turns.try_lines(states, lines, ~keys, PILOT)
        affordable = PILOT * self.seconds / 3 / max(time.perf_counter() - start, 1e-9)
        return int(min(self.worlds, max(affordable, LEAST_WORLDS)))

    @staticmethod
    def _redrawn(decisions: Decisions) -> NDArray[Any]:
        """Return [1] the State of a decision, its hidden part redrawn."""
        return decisions.worlds(np.random.default_rng(0), 1)[:, 0].copy()

    def _key(self, states: NDArray[Any]) -> UInt64s:
        """Return [1] the key of a search: what the seat to move sees decides it alone."""
        return np.array([self._loop(key_of_position)(states, self._scratch)], np.uint64)

    def _own_line(self, decisions: Decisions, states: NDArray[Any]) -> Macro:
        """Return [L] what the judge would play."""
        decisions = decisions.copy()
        policy = self.opponent.policy.deciding(decisions)
        key = self._key(states)
        if isinstance(policy, SearchPolicy):
            macro = policy.search_worlds(decisions, states, key).macros[0]
            if policy.moves == "turn":
                return macro
            action = int(macro[0])
        else:
            action = int(policy.act(decisions, np.random.default_rng(key))[0])
        return self._line(states, action)

    def _line(self, states: NDArray[Any], action: int) -> Macro:
        """Return [L] the best line of the turn that begins with an action."""
        line = np.full(MAX_LENGTH, NO_ACTION, np.int16)
        line[0] = action
        if self._loop(moves_on)(states, action, self._scratch):
            after = decisions_at(self.opponent.game, self._scratch.states[:1].copy())
            redrawn = self._redrawn(after)
            line[1:] = self._turns.search_worlds(after, redrawn, self._key(redrawn)).macros[0, :-1]
        return line

    def _loop(self, loop: Any) -> Any:
        return specialize(loop, self.opponent.game, GREEDY)
