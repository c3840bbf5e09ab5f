"""The other parts of a game: its rules page, its tests and, in a checkout, its other files."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from card_envs._layout import rewritten
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.options import describe_options
from card_envs.scaffold._checks.declared import functions_of
from card_envs.scaffold._checks.sources import Finding, Source, Sources, checkout
from card_envs.testing.referee import Facts, Referee, RefereeModule, home_of_tests

TEMPLATES = [page.parent for page in Path(__file__).parents[1].glob("*/RULES.md")]
TESTS = ("__init__", "referee", "facts", "test_rules")


def checkout_of(package: str) -> Path | None:
    """Return the repository's folder if this package is in one and the game belongs to it."""
    return checkout() if package.startswith("card_envs.games.") else None


def numbered_rules(text: str) -> list[tuple[int, str]]:
    """Return the numbers at the start of list items, such as `BA-7`, with their lines."""
    found = re.finditer(r"^ *[-*] +\**([A-Z]{2}-\d+)\b", text, re.MULTILINE)
    return [(text.count("\n", 0, match.start()) + 1, match[1]) for match in found]


# The rules page


def check_page(game: Game, sources: Sources) -> Iterator[Finding]:
    """Yield faults of RULES.md: layout tables, rule numbers, options."""
    file = game.rules_page
    page = file.read_text(encoding="utf-8")
    try:
        right = rewritten(game, page)
    except ValueError as error:
        yield Finding(file, 1, str(error).removeprefix(f"{file}: "))
    else:
        for number, (found, expected) in enumerate(zip(page.splitlines(), right.splitlines()), 1):
            if found != expected:
                command = f"python -m card_envs layout {game.name} --write"
                yield Finding(file, number, f"expected {expected!r}, from the fields; fix it with {command}")
                break
    for option in describe_options(game.options):
        if f"`{option}`" not in page:
            yield Finding(file, 1, f"it does not mention the option `{option}`")
    rules = numbered_rules(page)
    if not rules:
        yield Finding(file, 1, "expected numbered rules, such as `- XY-1 …`")
    for number, (line, rule) in enumerate(rules, 1):
        expected = f"{rules[0][1][:2]}-{number}"
        if rule != expected:
            yield Finding(file, line, f"expected {expected}, got {rule}")
            break


# The places of a game in a checkout


def check_places(game: Game, sources: Sources) -> Iterator[Finding]:
    """Yield missing parts: registry, PettingZoo module, configuration, tests."""
    root = checkout_of(game.package)
    if root is not None:
        registry = root / "card_envs" / "games" / "__init__.py"
        if GAMES.get(game.name) != game:
            line = Source(registry).line_of("GAMES")
            yield Finding(registry, line, f"expected {game.name}.GAME among the games, and its import")
        module = f"{game.name}_v{game.version}.py"
        for file, what in (
            (root / "card_envs" / module, f"`from card_envs import {module[:-3]}` for PettingZoo"),
            (root / "configs" / f"{game.name}.toml", "how to train it"),
        ):
            if not file.exists():
                yield Finding(file, 1, f"this file is missing: {what}")
        if str(root) not in sys.path:
            sys.path.insert(0, str(root))
    if not tests_are_elsewhere(game):
        yield from _check_tests(game, sources)


def tests_are_elsewhere(game: Game) -> bool:
    """Return whether this is a game of the package, whose tests only a checkout has, outside of one."""
    return home_of_tests(game).startswith("tests.") and checkout_of(game.package) is None


def folder_of_tests(game: Game, sources: Sources) -> Path:
    """Return the folder of the game's own tests."""
    root = checkout_of(game.package)
    return root.joinpath(*home_of_tests(game).split(".")) if root else sources.folder / "tests"


def _check_tests(game: Game, sources: Sources) -> Iterator[Finding]:
    home, folder = home_of_tests(game), folder_of_tests(game, sources)
    missing = [file for file in (folder / f"{name}.py" for name in TESTS) if not file.exists()]
    for file in missing:
        yield Finding(file, 1, "this file is missing: see card_envs/testing/referee.py")
    if missing or find_spec(home) is None:
        return
    own = Sources(folder, {})
    try:
        facts, referee = (import_module(f"{home}.{name}") for name in ("facts", "referee"))
        for module, part in ((facts, Facts), (referee, RefereeModule)):
            for name in (*getattr(part, "__annotations__", {}), *functions_of(part)):
                if not hasattr(module, name):
                    yield Finding(
                        Path(module.__file__ or ""), 1, f"{name} is missing: see card_envs/testing/referee.py"
                    )
        yield from _check_referee(referee, folder / "referee.py")
    except Exception as error:  # the tests' code may raise anything
        yield own.blame(error)


def _check_referee(module: Any, file: Path) -> Iterator[Finding]:
    """Yield attributes that the referee's episode lacks."""
    if hasattr(module, "Referee"):
        referee = module.Referee({})
        for name in (*Referee.__annotations__, *functions_of(Referee)):
            if not hasattr(referee, name):
                yield Finding(file, Source(file).line_of("Referee"), f"Referee: {name} is missing")


def check_rule_tests(game: Game, sources: Sources) -> Iterator[Finding]:
    """Yield numbered rules without a test that is named after them, and vice versa."""
    file = folder_of_tests(game, sources) / "test_rules.py"
    rules = {rule: line for line, rule in numbered_rules((sources.folder / "RULES.md").read_text(encoding="utf-8"))}
    tests = {}
    for name, node in Source(file).functions.items():
        found = re.match(r"test_([a-z]{2})_(\d+)_", name)
        if found:
            tests[f"{found[1].upper()}-{int(found[2])}"] = node.lineno
    for rule in rules:
        if rule not in tests:
            yield Finding(file, 1, f"{rule} has no test: expected test_{rule.lower().replace('-', '_')}_…")
    for rule, line in tests.items():
        if rule not in rules:
            yield Finding(file, line, f"the test of {rule}, a rule that RULES.md does not have")


def check_referee_is_own(game: Game, sources: Sources) -> Iterator[Finding]:
    """Yield the referee if it still is that of a template."""
    file = folder_of_tests(game, sources) / "referee.py"
    copied = any(_code_of(file) == _code_of(template / "tests" / "referee.py") for template in TEMPLATES)
    if copied and sources.folder not in TEMPLATES:
        how = "write it from RULES.md alone, as card_envs/testing/referee.py says"
        yield Finding(file, Source(file).line_of("Referee"), f"this is still the template's referee: {how}")


def _code_of(file: Path) -> str:
    """Return the code of a file without docstrings, comments and the letters of its rule numbers."""
    tree = ast.parse(re.sub(r"\b[A-Z]{2}-(?=\d)", "", file.read_text(encoding="utf-8")))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
