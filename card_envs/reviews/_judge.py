"""The judge of a review: a search that compares a move with the one that it would play."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine._buffers import check_int
from card_envs.game import Int64s
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import Decisions, Opponent, Policy, answer_of, decision_of, evaluation_of, moves_of
from card_envs.opponents.search import SearchPolicy

Float64s = NDArray[np.float64]


class MoveJudge:
    """Says what moves cost.

    Where its search has tried both moves, their results there are compared. Otherwise (its prior left the move out, or
    it decides without a search, as some players do when they bid) both are tried by themselves in the same worlds.

    Attributes:
        opponent: whose opinion it is.
    """

    def __init__(self, opponent: Opponent) -> None:
        """Find the opponent's search. Raises ValueError if it has none."""
        searches = list(_searches(opponent.policy))
        if not searches:
            raise ValueError(f"{opponent.name} does not search, so it can't judge; expected strong or search:64")
        self.opponent = opponent
        self._pair = replace(searches[-1], moves="single", prior=None)

    def cost(self, view: dict[str, Any], move: str, seed: int = 0) -> tuple[str, float, float]:
        """Return what it would play itself, how much better that is than a move, and the standard error.

        Args:
            view: of the seat to move.
            move: a legal one, in any spelling.
            seed: of the worlds that are drawn.

        Raises:
            ValueError: as `Opponent.evaluate` does, or the move is not legal.
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
        return game.view.move_text(state, int(best[0])), float(costs[0]) + 0.0, float(errors[0])

    def prepare(self, view: dict[str, Any]) -> None:
        """Compile or load what `cost` needs where its search has not tried a move, at any position of the game."""
        _, decisions = decision_of(self.opponent.game, view)
        some = decisions.mask.argmax(axis=1)
        self._compare(decisions, some, some, np.random.default_rng(0))

    def costs(
        self, decisions: Decisions, played: Int64s, rng: np.random.Generator
    ) -> tuple[Int64s, Float64s, Float64s]:
        """Return what it would play itself, how much better that is than the moves played, and the standard errors.

        Args:
            decisions: n of them.
            played: [n] legal actions.
            rng: of the worlds that are drawn.

        Returns:
            [n] actions, [n] costs in the game's `margin_unit`, [n] errors; both are 0 where the actions are the same.
        """
        rows = np.arange(len(decisions))
        found = answer_of(self.opponent, decisions, lambda: evaluation_of(self.opponent, decisions, rng))
        if found is None:
            best = moves_of(self.opponent, decisions, rng)
            costs, errors = np.full((2, len(decisions)), np.nan)
        else:
            best = found.chosen
            differences, all_errors = found.differences
            costs, errors = -differences[rows, played], all_errors[rows, played]
        costs[best == played] = errors[best == played] = 0
        open_rows = rows[np.isnan(costs) | np.isnan(errors)]
        if len(open_rows):
            costs[open_rows], errors[open_rows] = self._compare(
                decisions.at(open_rows), best[open_rows], played[open_rows], rng
            )
        return best, costs, errors

    def _compare(
        self, decisions: Decisions, best: Int64s, played: Int64s, rng: np.random.Generator
    ) -> tuple[Float64s, Float64s]:
        """Try two moves of each decision by themselves; return [n] costs of the one played and [n] errors."""
        tried = np.eye(decisions.mask.shape[1], dtype=np.int8)[played]
        pair = self._pair.compare(decisions, best, tried, rng)
        number = np.arange(len(decisions))
        return -pair.advantages[number, played], pair.advantage_errors[number, played]


def _searches(policy: Policy) -> Iterator[SearchPolicy]:
    """Yield the searches that a policy is made of."""
    if isinstance(policy, SearchPolicy):
        yield policy
    elif isinstance(policy, PhasedPolicy):
        yield from _searches(policy.inside)
        yield from _searches(policy.outside)
    elif isinstance(policy, Opponent):
        yield from _searches(policy.policy)
