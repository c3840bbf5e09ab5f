"""The registry: one line for each game of this package; `_installed.py` finds those of other packages."""

from __future__ import annotations

import difflib
from importlib.util import find_spec

from card_envs.game import Game
from card_envs.games import back_alley, big_ben, russian_bank
from card_envs.games._installed import InstalledGames

GAMES = InstalledGames(
    back_alley.GAME,
    big_ben.GAME,
    russian_bank.GAME,
)


def get_game(name: str) -> Game:
    """Return a game by name. Raises ValueError that suggests similar names."""
    if not isinstance(name, str):
        raise ValueError(f"game: expected a name, one of {', '.join(GAMES)}, got {name!r:.80}")
    if name not in GAMES:
        near = difflib.get_close_matches(name[:80], GAMES, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(GAMES)}"
        left_out = "".join(f"\n{problem}" for problem in GAMES.problems)
        raise ValueError(f"unknown game {name!r:.80}; {hint}{left_out}")
    return GAMES[name]


def package_of(name: str) -> str:
    """Return the package of a game, given its name or its package; it may be in a checkout and unregistered.

    Raises:
        ValueError: there is neither; suggests similar names.
    """
    if name in GAMES:
        return GAMES[name].package
    for package in (name, f"card_envs.games.{name}"):
        try:
            spec = find_spec(package)
        except (ImportError, ValueError):
            continue
        if spec is not None and spec.submodule_search_locations and spec.origin:
            return package
    return get_game(name).package
