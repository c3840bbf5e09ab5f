"""Every numbered rule of every game has a test that is named after it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from card_envs.game import Game
from card_envs.scaffold._checks.places import numbered_rules
from card_envs.testing.referee import home_of_tests


def test_every_rule_has_a_test(game: Game) -> None:
    rules = [rule for _, rule in numbered_rules(game.rules_page.read_text())]
    prefix = rules[0].split("-")[0]
    assert rules == [f"{prefix}-{number}" for number in range(1, len(rules) + 1)]  # each once, none left out
    (folder,) = import_module(home_of_tests(game)).__path__
    tests = (Path(folder) / "test_rules.py").read_text()
    tested = re.findall(r"^def test_([a-z]{2})_(\d+)_", tests, re.MULTILINE)
    names = {f"{letters.upper()}-{int(number)}" for letters, number in tested}
    assert set(rules) - names == set(), "rules without a test"
    assert names - set(rules) == set(), "tests of rules that are not there"
