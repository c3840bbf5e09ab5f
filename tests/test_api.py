"""What is public: the page `docs/api.md` lists it, all of it, and no more."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import card_envs

ROOT = Path(__file__).parents[1]
MOST = 250  # public names
AUTODOC = re.compile(r"^\.\. auto(?:class|function|exception|module):: (\S+)(?:\n   :members: (.*))?$", re.MULTILINE)
# Command lines, and the folders of games, whose public names are those of the contract.
EXCEPT = {"__main__.py", "games", "scaffold", "training"}


def listed() -> set[str]:
    """Return the full names that the page lists."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    found = set(re.findall(r"`(card_envs\.\w+\.\w+\.\w+)`", page))  # of extras, which need not be installed
    for name, members in AUTODOC.findall(page):
        found |= {f"{name}.{member}" for member in members.split(", ")} if members else {name}
    return found


def is_public(file: Path) -> bool:
    """Return whether a module's path has no private part."""
    parts = file.relative_to(ROOT / "card_envs").parts
    return not any(part.startswith("_") and part != "__init__.py" for part in parts) and not EXCEPT & set(parts)


def defined() -> set[str]:
    """Return the full names of all classes and functions that public modules define, by where they are defined."""
    names = set()
    for file in (ROOT / "card_envs").rglob("*.py"):
        if is_public(file):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                    names.add(f"{module}.{node.name}")
    return names


def found(name: str) -> object:
    """Import what a full name stands for; skip the test where its extra is not installed."""
    module, _, attribute = name.rpartition(".")
    return getattr(pytest.importorskip(module, exc_type=ImportError), attribute)


def origin(name: str) -> str:
    """Return the full name of where a public name is defined: packages hand names on."""
    thing = found(name)
    return f"{thing.__module__}.{getattr(thing, '__name__', '')}"


def test_the_page_lists_what_is_public() -> None:
    names = listed()
    handed_on = {name for name in names if origin(name) != name}
    assert all(name.count(".") <= 2 or ".search." in name for name in handed_on), "only packages hand names on"
    assert {origin(name) for name in names} >= defined(), sorted(defined() - {origin(name) for name in names})
    own = names - handed_on
    assert own <= defined(), sorted(own - defined())


def test_all_names_of_the_package_are_listed() -> None:
    names = {name for name in card_envs.__all__ if name != "GAMES"}
    assert names <= {name.rpartition(".")[2] for name in listed()}


def test_public_names_are_few_and_described() -> None:
    names = listed()
    assert len(names) < MOST
    for name in names:
        assert found(name).__doc__, name
