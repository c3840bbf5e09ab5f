"""Combined players: one policy decides in a phase of the game (such as the bidding), another everywhere else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from card_envs.game import Game, Int64s
from card_envs.opponents.policy import ActionValues, Decisions, Policy, PolicyLike, as_policy
from card_envs.system.files import short_repr


def phase_actions(game: Game, phase: str) -> range:
    """Return the actions of a phase. Raises ValueError that lists the phases."""
    phases = game.view.PHASES
    if phase not in phases:
        known = f"its phases are {', '.join(phases)}" if phases else "it has none"
        raise ValueError(f"{game.name}: no phase {phase!r}: {known}")
    return phases[phase]


class PhasedPolicy(Policy):
    """Plays like one policy where the legal actions are those of a phase, else like another."""

    def __init__(self, actions: range, inside: PolicyLike, outside: PolicyLike, phase: str = "") -> None:
        """Combine two policies.

        Args:
            actions: the actions of the phase (see `PHASES` in `card_envs.game.OptionalView`).
            inside: the policy in the phase.
            outside: the policy everywhere else.
            phase: its name, for `name`.

        Raises:
            ValueError: an argument is something else.
        """
        if not isinstance(actions, range):
            raise ValueError(f"actions: expected a range of actions, as in PHASES, got {short_repr(actions)}")
        self.actions = actions
        self.inside = as_policy(inside, "inside")
        self.outside = as_policy(outside, "outside")
        self.phase = phase
        of_networks = [part.sampled for part in (self.inside, self.outside) if part.sampled is not None]
        self.sampled = any(of_networks) if of_networks else None

    @property
    def default_name(self) -> str:
        return f"{self.phase}={self.inside.name}+{self.outside.name}" if self.phase else type(self).__name__

    def parts(self) -> tuple[Policy, ...]:
        return (self, *self.inside.parts(), *self.outside.parts())

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
        """Return the values of the policies that decide; None if neither has any."""

        def choose(policy: Policy, part: Decisions) -> tuple[Int64s, ActionValues | None]:
            values = policy.evaluate(part, rng)
            return policy.probabilities(part).argmax(axis=1) if values is None else values.chosen, values

        return self._join(decisions, choose)[1]

    def act_and_evaluate(self, decisions: Decisions, rng: np.random.Generator) -> tuple[Int64s, ActionValues | None]:
        """Return the actions that the policies play, and their estimates where they have any."""
        return self._join(decisions, lambda policy, part: policy.act_and_evaluate(part, rng))

    def _join(
        self, decisions: Decisions, choose: Callable[[Policy, Decisions], tuple[Int64s, ActionValues | None]]
    ) -> tuple[Int64s, ActionValues | None]:
        actions = np.zeros(len(decisions), np.int64)
        parts: list[tuple[NDArray[np.intp], ActionValues | None]] = []
        for policy, rows in self._split(decisions):
            actions[rows], values = choose(policy, decisions.at(rows))
            parts.append((rows, values))
        return actions, ActionValues.joined(actions, decisions.mask.shape[1], parts)

    def with_parts(self, change: Callable[[Policy], Policy]) -> PhasedPolicy:
        return PhasedPolicy(self.actions, change(self.inside), change(self.outside), self.phase).named(self.name)

    def within(self, seconds: float, threads: int = 1) -> PhasedPolicy:
        """Return the policy with a limit on the time of both per decision, and memories of their own."""
        return self.with_parts(lambda policy: policy.within(seconds, threads))

    def likeliest(self) -> PhasedPolicy:
        """Return the policy with the likeliest moves of both; see `Policy`."""
        return self.with_parts(lambda policy: policy.likeliest())

    def reset(self) -> None:
        """Make both policies forget earlier decisions."""
        self.inside.reset()
        self.outside.reset()

    def deciding(self, decisions: Decisions) -> Policy:
        return self._split(decisions)[0][0].deciding(decisions)

    def describe(self) -> str:
        return self.outside.describe()

    def _split(self, decisions: Decisions) -> list[tuple[Policy, NDArray[np.intp]]]:
        inside = decisions.mask[:, self.actions.start : self.actions.stop].any(axis=1)
        parts = ((self.inside, np.flatnonzero(inside)), (self.outside, np.flatnonzero(~inside)))
        return [(policy, rows) for policy, rows in parts if len(rows)]
