"""Macro-actions: several actions of a seat that are one decision (options: Sutton, Precup & Singh 1999).

Between two looks at hidden cards nothing new becomes known, so that a seat can decide on all its moves up to the next
one at once. A macro-action is an array of actions, `NO_ACTION` after its last. `PlanCache` keeps the rest of those that
were chosen, so that a policy does not search again before something hidden shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.rng import MIX_1, SHIFT_32, mix
from card_envs.game import Game, Int8s, Int64s, play
from card_envs.opponents.policy import Decisions, decisions_at

MAX_LENGTH = 32  # actions of a macro-action
MAX_ENTRIES = 1 << 16  # of a plan cache: all are forgotten when there are more
NO_ACTION = -1
UNKNOWN = -np.inf  # value of a candidate that is never chosen

Macro: TypeAlias = NDArray[np.int16]  # [L], L up to MAX_LENGTH
Macros: TypeAlias = NDArray[np.int16]  # [C, L] of one table, or [B, C, L]


def observation_hash(obs: Int8s) -> np.uint64:
    """Return a hash of an observation, padded to a multiple of 8 bytes."""
    words = obs.view(np.uint64)
    bits = np.uint64(0)
    for w in range(words.shape[0]):
        bits = (bits ^ words[w]) * MIX_1
        bits ^= bits >> SHIFT_32
    return mix(bits)


def select_best(values: NDArray[Any], number: int, most: int, order: Int64s) -> int:
    """Write the indices of the `most` greatest of the first `number` values; return how many there are.

    The greatest comes first, and of equal ones the one with the lower index; UNKNOWN ones are left out.
    """
    selected = 0
    for k in range(number):  # insertion into the best so far
        if values[k] == UNKNOWN or (selected == most and not values[k] > values[order[most - 1]]):
            continue
        place = selected if selected < most else most - 1
        while place > 0 and values[order[place - 1]] < values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
        selected = min(selected + 1, most)
    return selected


class PlanCache:
    """The next action of macro-actions that were chosen, by what the seat sees where it is due."""

    def __init__(self) -> None:
        self.actions: dict[bytes, int] = {}

    def clear(self) -> None:
        """Forget everything."""
        self.actions.clear()

    def act(self, decisions: Decisions, decide: Callable[[Decisions], Int64s]) -> Int64s:
        """Return [n] actions: the planned ones, and what `decide` says of decisions for which none is planned."""
        decisions, actions = self.look_up(decisions)
        new = actions == NO_ACTION
        if new.any():
            actions[new] = decide(decisions.at(new))
        return actions

    def look_up(self, decisions: Decisions) -> tuple[Decisions, Int64s]:
        """Return the decisions in fresh arrays, and [n] the planned actions; NO_ACTION if none is."""
        decisions = decisions.copy()
        rows = zip(decisions.obs, decisions.mask)
        return decisions, np.array([self.actions.get(key_of(*row), NO_ACTION) for row in rows], np.int64)

    def add(self, game: Game, states: NDArray[Any], macros: Macros) -> None:
        """Enter how macro-actions [n, L] go on; `states` [n] are played on."""
        if len(self.actions) > MAX_ENTRIES:
            self.clear()
        for step in range(1, macros.shape[1]):
            going = np.flatnonzero(macros[:, step] != NO_ACTION)
            if not len(going):
                return
            played = macros[going, step - 1].astype(np.int64)
            specialize(play_each, game)(0, len(going), states, going, played)
            decisions = decisions_at(game, states[going])
            for obs, mask, action in zip(decisions.obs, decisions.mask, macros[going, step].tolist()):
                self.actions[key_of(obs, mask)] = action


def play_each(first: int, last: int, states: NDArray[Any], tables: Int64s, actions: Int64s) -> None:
    """Play one action [n] at each of some tables [n]."""
    for k in range(first, last):
        play(states[tables[k]], actions[k])


def key_of(obs: Int8s, mask: Int8s) -> bytes:
    """Return a hash of what a seat sees."""
    return hashlib.blake2b(obs.tobytes() + mask.tobytes(), digest_size=16).digest()
