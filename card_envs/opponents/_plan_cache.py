"""PlanCache: how macro-actions go on, so that a policy does not search again before something hidden shows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.game import Game, Int8s, Int64s, play
from card_envs.opponents._macros import NO_ACTION, Macros
from card_envs.opponents.policy import Decisions, decisions_at

MAX_ENTRIES = 1 << 16  # all are forgotten when there are more


def play_each(first: int, last: int, states: NDArray[Any], tables: Int64s, actions: Int64s) -> None:
    """Play one action [n] at each of some tables [n]."""
    for k in range(first, last):
        play(states[tables[k]], actions[k])


class PlanCache:
    """The next action of macro-actions that were chosen, by what the seat sees where it is due."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.actions: dict[bytes, int] = {}

    def clear(self) -> None:
        """Forget everything."""
        self.actions.clear()

    def act(self, decisions: Decisions, decide: Callable[[Decisions], Int64s]) -> Int64s:
        """Return [n] actions: the planned ones, and what `decide` says of decisions for which none is planned."""
        decisions, actions = self.planned(decisions)
        new = actions == NO_ACTION
        if new.any():
            actions[new] = decide(decisions.at(new))
        return actions

    def planned(self, decisions: Decisions) -> tuple[Decisions, Int64s]:
        """Return the decisions in fresh arrays, and [n] the planned actions; NO_ACTION where there is none."""
        decisions = decisions.copy()
        seen = zip(decisions.obs, decisions.mask)
        return decisions, np.array([self.actions.get(key_of(*one), NO_ACTION) for one in seen], np.int64)

    def add(self, states: NDArray[Any], macros: Macros) -> None:
        """Enter how macro-actions [n, L] go on; `states` [n] are played on."""
        if len(self.actions) > MAX_ENTRIES:
            self.clear()
        for step in range(1, macros.shape[1]):
            going = np.flatnonzero(macros[:, step] != NO_ACTION)
            if not len(going):
                return
            played = macros[going, step - 1].astype(np.int64)
            specialize(play_each, self.game)(0, len(going), states, going, played)
            decisions = decisions_at(self.game, states[going])
            for obs, mask, action in zip(decisions.obs, decisions.mask, macros[going, step].tolist()):
                self.actions[key_of(obs, mask)] = action


def key_of(obs: Int8s, mask: Int8s) -> bytes:
    """Return a hash of what a seat sees."""
    return hashlib.blake2b(obs.tobytes() + mask.tobytes(), digest_size=16).digest()
