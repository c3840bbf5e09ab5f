"""`python -m card_envs.build._trace PACKAGE FILE`: record the loops that a game calls, with the types of arguments.

It calls each public feature once (`_warm_up.py`), in plain Python (with NUMBA_DISABLE_JIT=1), and records the types of
all arguments.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import types

from card_envs.build._warm_up import warm_up
from card_envs.compiling._specialize import Specialization, watching_specialize
from card_envs.compiling.loops import TracedLoop, game_of_package, type_of_argument
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.system.processes import end_with_parent


def trace_calls(game: Game, warm_up: Callable[[Game], None]) -> list[TracedLoop]:
    """Return the loops that a warm-up run of a game calls, each with the types of its arguments."""
    calls: dict[Specialization, dict[tuple[Any, ...], None]] = {}

    def record(wanted: Specialization, bound: Any) -> Any:
        signatures = calls.setdefault(wanted, {})

        def recorded(*arguments: Any) -> Any:
            signatures[tuple(map(type_of_argument, arguments))] = None
            return bound(*arguments)

        return recorded

    with watching_specialize(record), np.errstate(over="ignore"):
        warm_up(game)
    return [
        TracedLoop.of(wanted, signature)
        for wanted, signatures in calls.items()
        for signature in merge_signatures(list(signatures))
    ]


def merge_signatures(signatures: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the signatures; of those that differ in what may be written, one that writes the least.

    An array that may only be read is of a type of its own, and code for it takes one that may be written as well.
    """
    by_shape: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for signature in signatures:
        by_shape.setdefault(tuple(map(_writable, signature)), []).append(signature)
    for alike in by_shape.values():
        yield tuple(
            next((kind for kind in kinds if kind != _writable(kind)), kinds[0]) for kinds in zip(*alike, strict=True)
        )


def _writable(kind: Any) -> Any:
    """Return the type of the same argument with all arrays writable."""
    if isinstance(kind, types.Array):
        return kind.copy(readonly=False)
    if isinstance(kind, types.NamedTuple):
        return types.NamedTuple([_writable(part) for part in kind], kind.instance_class)
    return kind


if __name__ == "__main__":
    end_with_parent()
    package, file = sys.argv[1:]
    game = game_of_package(package)
    GAMES.setdefault(game.name, game)  # environments refer to games by name
    Path(file).write_bytes(pickle.dumps(trace_calls(game, warm_up)))
