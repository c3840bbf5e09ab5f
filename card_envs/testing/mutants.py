"""Mutants of a game: edits that break it, and the tests that should notice."""

from __future__ import annotations

from typing import NamedTuple

WORLDS = ("tests/test_worlds.py",)
CONTRACT = ("tests/test_contract.py",)
REFEREE = ("tests/testing/test_referee.py",)
TALLIES = ("tests/compare/test_compare.py", "-k", "tallies")
SHARED = (*CONTRACT, *WORLDS, *REFEREE)  # tests that the unmodified game must pass


class Mutant(NamedTuple):
    """An edit of one file in a game's folder."""

    name: str
    old: str  # text that occurs once in the file
    new: str
    tests: tuple[str, ...] = CONTRACT  # arguments of pytest
    file: str = "rules.py"
