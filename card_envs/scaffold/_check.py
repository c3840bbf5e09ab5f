"""`python -m card_envs check`: what is missing or wrong in a game, each fault with its file and line.

Checks run from cheap to expensive, and those that build on something faulty are skipped: files, imports, declarations
and sources, then each rule compiled by itself, then play, then the rules' tests. A mark of rules that have passed makes
the second run fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numba

from card_envs.game import Game
from card_envs.games import GAMES, package_of
from card_envs.scaffold._checks.compiled import check_compiled
from card_envs.scaffold._checks.declared import check_declarations
from card_envs.scaffold._checks.inside_rules import check_sources
from card_envs.scaffold._checks.places import check_page, check_places, check_rule_tests
from card_envs.scaffold._checks.played import check_played
from card_envs.scaffold._checks.sources import Finding, Sources, read_sources

Check: TypeAlias = Callable[[Game, Sources], Iterator[Finding]]
# A tuple is skipped if a previous one found a fault.
STAGES: tuple[tuple[Check, ...], ...] = (
    (check_declarations, check_sources, check_places),
    (check_page, check_compiled),
    (check_played,),
    (check_rule_tests,),  # which come last when a game is written
)


def check(name: str) -> list[Finding]:
    """Return the faults of a game.

    Args:
        name: of a registered game, or of a package with `GAME`, such as `my_package.my_game`.

    Raises:
        ValueError: there is neither.
    """
    package = package_of(name)
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    sources = read_sources(Path(spec.origin).parent)
    if not isinstance(sources, Sources):
        return sources
    game = imported(package, sources)
    if isinstance(game, Finding):
        return [game]
    known, checked = game.name in GAMES, numba.config.BOUNDSCHECK
    GAMES.setdefault(game.name, game)  # records refer to games by name
    numba.config.BOUNDSCHECK = 1
    try:
        return _staged(game, sources)
    finally:
        numba.config.BOUNDSCHECK = checked
        if not known:
            del GAMES[game.name]


def _staged(game: Game, sources: Sources) -> list[Finding]:
    """Return the faults of the first stage that finds any."""
    for stage in STAGES:
        findings = [finding for part in stage for finding in part(game, sources)]
        if findings:
            return findings
    return []


def imported(package: str, sources: Sources) -> Game | Finding:
    """Return the game with all modules imported, or the reason why they can't be."""
    init = sources.files["__init__"]
    try:
        game: Game | None = getattr(import_module(package), "GAME", None)
        if not isinstance(game, Game):
            return Finding(init.file, 1, 'expected GAME = Game("the_name", "The Title", __name__)')
        for module in ("options", "rules", "bot", "view"):
            import_module(f"{package}.{module}")
    except Exception as error:  # the game's code may raise anything
        return sources.blame(error)
    if game.package != package or (package.startswith("card_envs.games.") and game.name != sources.folder.name):
        return init.finding("GAME", f"expected the name of the folder, and the package {package}; got {game}")
    return game
