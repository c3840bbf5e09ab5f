"""`python -m card_envs check`: a run of the shared tests on a game, each fault with its file and line.

The modules are imported and their declarations compared with the contract first, because this finds the place of a
fault. Then tests run, from those that others build on to those of whole matches. What builds on something faulty is
skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from card_envs.game import Game
from card_envs.games import package_of
from card_envs.scaffold._checks.declared import check_declarations
from card_envs.scaffold._checks.findings import Finding, blame, checkout, locate
from card_envs.scaffold._checks.tested import groups, run_tests


class Report(NamedTuple):
    """The result of `check`.

    Attributes:
        findings: the faults of the first stage that has any.
        num_tests: how many tests passed; 0 where the shared tests can't run.
        skipped: why tests were skipped: what is optional and missing, by the number of tests.
    """

    findings: list[Finding]
    num_tests: int = 0
    skipped: Counter[str] = Counter()  # noqa: RUF012


def check(name: str, show: Callable[[str], None] = lambda doing: None) -> Report:
    """Check the declarations of a game, then run the tests of all games on it.

    Args:
        name: a registered game, or a package with `GAME`, such as `its.package`.
        show: called with the title of each group of tests.

    Raises:
        ValueError: there is neither.
    """
    package = package_of(name)
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent
    try:
        game: Game | None = getattr(import_module(package), "GAME", None)
        for module in ("rules", "bot", "view", "options"):
            import_module(f"{package}.{module}")
    except Exception as error:  # the game's code may raise anything
        return Report([blame(error, folder)])
    if not isinstance(game, Game):
        return Report([Finding(folder / "__init__.py", 1, 'expected GAME = Game("the_name", "The Title", __name__)')])
    if game.package != package or (package.startswith("card_envs.games.") and game.name != folder.name):
        expected = f"expected the name of the folder, and the package {package}; got {game}"
        return Report([locate(folder / "__init__.py", "GAME", expected)])
    if findings := list(check_declarations(game)):
        return Report(findings)
    root, num_tests, skipped = checkout(), 0, Counter[str]()
    if root is None or find_spec("pytest") is None:
        return Report([])
    for title, arguments in groups(game, folder, root).items():
        show(title)
        findings, passed, reasons = run_tests(folder, root, arguments)
        num_tests += passed
        skipped += reasons
        if findings:
            return Report(findings, num_tests, skipped)
    return Report([], num_tests, skipped)
