"""Mutants of a game: edits that make it wrong, and the tests that should notice."""

from __future__ import annotations

from typing import NamedTuple

WORLDS = ("tests/test_worlds.py",)
CONTRACT = ("tests/test_contract.py",)
REFEREE = ("tests/test_referee.py",)
TALLIES = ("tests/test_compare.py", "-k", "tallies")
SHARED = (*CONTRACT, *WORLDS, *REFEREE)  # what a game as it is must pass


class Mutant(NamedTuple):
    """One edit in one file of a game's folder."""

    name: str
    old: str  # text that the file has once
    new: str
    tests: tuple[str, ...] = CONTRACT  # what pytest is asked to run
    file: str = "rules.py"
