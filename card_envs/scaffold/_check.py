"""`python -m card_envs check`: what is missing or wrong in a game, each fault with its file and line.

Files, imports, declarations and sources are inspected first, because this finds the place of a fault. Then the shared
tests run, from those that others build on to those of whole matches. What builds on something faulty is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeAlias

from card_envs.game import Game
from card_envs.games import package_of
from card_envs.scaffold._checks.declared import check_declarations
from card_envs.scaffold._checks.inside_rules import check_sources
from card_envs.scaffold._checks.places import (
    check_page,
    check_places,
    check_referee_is_own,
    check_rule_tests,
    tests_are_elsewhere,
)
from card_envs.scaffold._checks.sources import Finding, Sources, checkout, read_sources
from card_envs.scaffold._checks.tested import BY_THE_PAGE, groups, run_tests
from card_envs.scaffold._checks.trial import try_import

Check: TypeAlias = Callable[[Game, Sources], Iterator[Finding]]
# A tuple is skipped if a previous one found a fault.
INSPECTIONS: tuple[tuple[Check, ...], ...] = ((check_declarations, check_sources, check_places), (check_page,))
OWN_TESTS: tuple[Check, ...] = (check_rule_tests, check_referee_is_own)


class Report(NamedTuple):
    """What `check` found.

    Attributes:
        findings: the faults of the first stage that has any.
        num_tests: how many tests passed; 0 where the shared tests can't run.
    """

    findings: list[Finding]
    num_tests: int = 0


def check(name: str, show: Callable[[str], None] = lambda doing: None) -> Report:
    """Inspect the sources of a game, then run the tests of all games on it.

    Args:
        name: of a registered game, or of a package with `GAME`, such as `its.package`.
        show: is called with what is done next.

    Raises:
        ValueError: there is neither.
    """
    package = package_of(name)
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    sources = read_sources(Path(spec.origin).parent)
    if not isinstance(sources, Sources):
        return Report(sources)
    game = import_game(package, sources)
    if isinstance(game, Finding):
        return Report([game])
    for stage in INSPECTIONS:
        findings = _found(stage, game, sources)
        if findings:
            return Report(findings)
    return _tested(game, sources, show)


def _found(stage: tuple[Check, ...], game: Game, sources: Sources) -> list[Finding]:
    return [finding for part in stage for finding in part(game, sources)]


def _tested(game: Game, sources: Sources, show: Callable[[str], None]) -> Report:
    """Run the shared tests if they are here; ask for the game's own tests before they run."""
    root, num_tests = checkout(), 0
    if root is None or find_spec("pytest") is None:
        return Report([] if tests_are_elsewhere(game) else _found(OWN_TESTS, game, sources))
    for title, arguments in groups(game, sources, root).items():
        if title == BY_THE_PAGE and (findings := _found(OWN_TESTS, game, sources)):
            return Report(findings, num_tests)
        show(title)
        findings, passed = run_tests(sources, root, arguments)
        num_tests += passed
        if findings:
            return Report(findings, num_tests)
    return Report([], num_tests)


def import_game(package: str, sources: Sources) -> Game | Finding:
    """Return the game with all modules imported, or the reason why they can't be."""
    fault = try_import(package, sources)
    if fault is not None:
        return fault
    init = sources.files["__init__"]
    try:
        game: Game | None = getattr(import_module(package), "GAME", None)
        if not isinstance(game, Game):
            return Finding(init.file, 1, 'expected GAME = Game("the_name", "The Title", __name__)')
        for module in ("options", "rules", "bot", "view"):
            import_module(f"{package}.{module}")
    except (Exception, SystemExit) as error:  # the game's code may raise anything
        return sources.blame(error)
    if game.package != package or (package.startswith("card_envs.games.") and game.name != sources.folder.name):
        return init.finding("GAME", f"expected the name of the folder, and the package {package}; got {game}")
    return game
