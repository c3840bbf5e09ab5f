"""What is public: `docs/api.md` lists it, whole modules at a time; what it does not name is for the package alone."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

import card_envs
from card_envs.system.moved import MOVED

ROOT = Path(__file__).parents[1]
MOST = 250  # public names
AUTODOC = re.compile(r"^\.\. auto(?:class|function|exception|module):: (\S+)(?:\n   :members: (.*))?$", re.MULTILINE)


def listed() -> set[str]:
    """Return the full names that the page lists."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    found = set(re.findall(r"`(card_envs(?:\.\w+){3,4})`", page))  # of extras, which need not be installed
    for name, members in AUTODOC.findall(page):
        found |= {f"{name}.{member}" for member in members.split(", ")} if members else {name}
    return found


def defined() -> set[str]:
    """Return the full names of all classes and functions of the modules of which the page lists something."""
    names = set()
    public = {name.rpartition(".")[0] for name in listed()}
    for file in (ROOT / "card_envs").rglob("*.py"):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if module in public:
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


@pytest.mark.filterwarnings("always::DeprecationWarning")
@pytest.mark.parametrize(("name", "new_name"), MOVED.items())
def test_modules_that_moved_are_found_under_their_names_of_before(name: str, new_name: str) -> None:
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"{name} is {new_name} now"):
        module = importlib.import_module(name)
    assert module is importlib.import_module(new_name)
