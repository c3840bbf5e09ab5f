"""Combined players: one policy decides in a phase of the game (such as the bidding), another everywhere else."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from card_envs._files import short_repr
from card_envs.game import Game
from card_envs.opponents.policy import ActionValues, Decisions, Policy, check_policy, evaluation_of, reset, within


def phase_actions(game: Game, phase: str) -> range:
    """Return the actions of a phase. Raises ValueError that lists the phases."""
    phases = game.phases
    if phase not in phases:
        known = f"its phases are {', '.join(phases)}" if phases else "it has none"
        raise ValueError(f"{game.name}: no phase {phase!r}: {known}")
    return phases[phase]


class PhasedPolicy:
    """Plays like one policy where the legal actions are those of a phase, else like another."""

    def __init__(self, actions: range, inside: Policy, outside: Policy) -> None:
        """Combine two policies.

        Args:
            actions: of the phase (see `Game.phases`).
            inside: the policy in the phase.
            outside: the policy everywhere else.

        Raises:
            ValueError: an argument is something else.
        """
        if not isinstance(actions, range):
            raise ValueError(f"actions: expected a range of actions, as in Game.phases, got {short_repr(actions)}")
        check_policy(inside, "inside")
        check_policy(outside, "outside")
        self.actions = actions
        self.inside = inside
        self.outside = outside

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        actions = np.empty(len(decisions), np.int64)
        for policy, rows in self._split(decisions):
            actions[rows] = policy.act(decisions.at(rows), rng)
        return actions

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        probabilities = np.empty(decisions.mask.shape, np.float32)
        for policy, rows in self._split(decisions):
            probabilities[rows] = policy.probabilities(decisions.at(rows))
        return probabilities

    def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues | None:
        """See `Policy`: the values of the policies that decide; None if neither has any."""
        parts = [
            (rows, policy, evaluation_of(policy, decisions.at(rows), rng)) for policy, rows in self._split(decisions)
        ]
        if all(found is None for _, _, found in parts):
            return None
        shape = decisions.mask.shape
        means, errors, advantages, advantage_errors = (np.full(shape, np.nan) for _ in range(4))
        worlds, chosen = np.zeros(shape, np.int64), np.zeros(len(decisions), np.int64)
        whole = ActionValues(means, errors, advantages, advantage_errors, worlds, chosen)
        for rows, policy, found in parts:
            if found is None:
                chosen[rows] = policy.probabilities(decisions.at(rows)).argmax(axis=1)
                continue
            for field in fields(ActionValues):
                getattr(whole, field.name)[rows] = getattr(found, field.name)
        return whole

    def within(self, seconds: float, threads: int = 1) -> PhasedPolicy:
        """See `Policy`."""
        inside, outside = (within(policy, seconds, threads) for policy in (self.inside, self.outside))
        return PhasedPolicy(self.actions, inside, outside)

    def reset(self) -> None:
        """See `Policy`."""
        reset(self.inside)
        reset(self.outside)

    def _split(self, decisions: Decisions) -> list[tuple[Policy, NDArray[np.intp]]]:
        inside = decisions.mask[:, self.actions.start : self.actions.stop].any(axis=1)
        parts = ((self.inside, np.flatnonzero(inside)), (self.outside, np.flatnonzero(~inside)))
        return [(policy, rows) for policy, rows in parts if len(rows)]
