"""`python -m card_envs.build._tour PACKAGE FILE`: which loops a game's environments and players call, with which types.

Everything that the package offers is asked something, in plain Python (with NUMBA_DISABLE_JIT=1), and the types of all
arguments are noted.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import types

from card_envs.build._loops import Asked, game_of, type_of
from card_envs.build._visit import visit
from card_envs.engine import compile as specializing
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents.search import _policy as search

search.ROLLOUT_POSITIONS = search.MACROS_PER_WORLD = search.SCORED_PER_WORLD = 2  # plain Python is slow


def asked_by(game: Game, visit: Callable[[Game], None]) -> list[Asked]:
    """Return the loops that a visit to a game asks for, each with the types that it was called with."""
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], None]] = {}
    whole = specializing._bound

    def noting(loop: Any, of: Game | None, bot: str, inline: bool, target: Any = "cpu") -> Any:
        bound = whole(loop, of, bot, inline, target)
        signatures = found.setdefault((loop.__module__, loop.__qualname__, of and of.package, bot, inline), {})

        def noted(*arguments: Any) -> Any:
            signatures[tuple(map(type_of, arguments))] = None
            return bound(*arguments)

        return noted

    setattr(specializing, "_bound", noting)  # noqa: B010 - or type checkers compare the two
    try:
        with np.errstate(over="ignore"):
            visit(game)
    finally:
        setattr(specializing, "_bound", whole)  # noqa: B010
    return [
        Asked._make((*key, signature)) for key, signatures in found.items() for signature in merged(list(signatures))
    ]


def merged(signatures: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
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
    package, file = sys.argv[1:]
    game = game_of(package)
    GAMES.setdefault(game.name, game)  # environments refer to games by name
    Path(file).write_bytes(pickle.dumps(asked_by(game, visit)))
