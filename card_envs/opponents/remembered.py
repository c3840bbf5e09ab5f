"""The way that a plan goes: what comes next wherever it leads, so that nobody plans again before something shows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.compile import specialize
from card_envs.game import Game, Int8s, Int64s
from card_envs.opponents.lines import NO_MOVE, Lines
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.opponents.rollouts import play_at

MOST = 1 << 16  # positions on the way of plans; all are forgotten when there are more


class Remembered:
    """Moves of plans by what the seat sees where they are due."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.moves: dict[bytes, int] = {}

    def clear(self) -> None:
        """Forget all moves."""
        self.moves.clear()

    def act(self, decisions: Decisions, plan: Callable[[Decisions], Int64s]) -> Int64s:
        """[n] moves: those that were planned; where none was, what `plan` says of these decisions."""
        decisions = decisions.copy()
        moves = np.array(
            [self.moves.get(sight_of(*seen), NO_MOVE) for seen in zip(decisions.obs, decisions.mask)], np.int64
        )
        new = moves == NO_MOVE
        if new.any():
            moves[new] = plan(decisions.at(new))
        return moves

    def note(self, states: NDArray[Any], lines: Lines) -> None:
        """Note what comes next wherever lines [n, L] lead; `states` [n] are played on."""
        if len(self.moves) > MOST:
            self.clear()
        for step in range(1, lines.shape[1]):
            going = np.flatnonzero(lines[:, step] != NO_MOVE)
            if not len(going):
                return
            specialize(play_at, self.game)(0, len(going), states, going, lines[going, step - 1].astype(np.int64))
            decisions = decisions_at(self.game, states[going])
            for obs, mask, move in zip(decisions.obs, decisions.mask, lines[going, step].tolist()):
                self.moves[sight_of(obs, mask)] = move


def sight_of(obs: Int8s, mask: Int8s) -> bytes:
    """What a seat sees, in few bytes."""
    return hashlib.blake2b(obs.tobytes() + mask.tobytes(), digest_size=16).digest()
