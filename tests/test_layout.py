"""What a game declares: the functions of the contract, and what stands where in actions, observations and counts."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from card_envs.__main__ import app
from card_envs.game import Game, Rate, Stat, offsets, total
from card_envs.games import GAMES
from card_envs.layout import layout_tables, rewritten
from card_envs.options import describe_options
from card_envs.scaffold._checks.declared import check_declarations
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.testing.referee import home_of_tests

ROOT = Path(__file__).parents[1]


def page_of(game: Game) -> str:
    """The rules page of a game; the test is skipped where there is none."""
    if not game.rules_page.exists():
        pytest.skip("RULES.md is missing: numbered rules, notation, tables")
    return game.rules_page.read_text(encoding="utf-8")


def numbered_rules(page: str) -> list[str]:
    """The numbers of rules, such as `BA-7`, at the start of list items."""
    return re.findall(r"^ *[-*] +\**([A-Z]{2}-\d+)\b", page, re.MULTILINE)


def test_declarations_are_those_of_the_contract(game: Game) -> None:
    assert list(map(str, check_declarations(game))) == []


def test_the_rules_page_has_the_tables(game: Game) -> None:
    page = page_of(game)
    assert rewritten(game, page) == page, f"python -m card_envs layout {game.name} --write"


def test_the_rules_page_tells_options_and_rules(game: Game) -> None:
    page = page_of(game)
    assert [name for name in describe_options(game.options) if f"`{name}`" not in page] == []
    rules = numbered_rules(page)
    assert rules, "expected numbered rules, such as `- XY-1 …`"
    assert rules == [f"{rules[0][:2]}-{number}" for number in range(1, len(rules) + 1)]


def test_each_rule_has_a_test(game: Game) -> None:
    rules = numbered_rules(page_of(game))
    tests = vars(import_module(f"{home_of_tests(game)}.test_rules"))
    found = [re.match(r"test_([a-z]{2})_(\d+)_", name) for name in tests]
    tested = {f"{match[1].upper()}-{int(match[2])}" for match in found if match}
    assert [rule for rule in rules if rule not in tested] == [], "expected test_xy_1_… for the rule XY-1"
    assert tested <= set(rules), "RULES.md has no such rule"


def test_a_game_of_the_package_is_in_its_places(game: Game) -> None:
    if not game.package.startswith("card_envs.games."):
        pytest.skip("a game outside the package")
    assert GAMES[game.name] == game
    assert (ROOT / "card_envs" / f"{game.name}_v{game.version}.py").exists()
    assert (ROOT / "configs" / f"{game.name}.toml").exists()


def test_outdated_tables_are_rewritten(game: Game) -> None:
    page = page_of(game)
    for name, text in layout_tables(game).items():
        outdated = page.replace(text, text.replace("| 0 |", "| 9 |"))
        assert outdated != page and rewritten(game, outdated) == page
        with pytest.raises(ValueError, match=rf"RULES.md: expected the lines <!-- layout: {name} -->"):
            rewritten(game, page.replace(f"<!-- layout: {name} -->", ""))


def test_the_command_prints_the_tables(game: Game) -> None:
    shown = CliRunner().invoke(app, ["layout", game.name])
    assert shown.exit_code == 0
    assert all(text in shown.output for text in layout_tables(game).values())


def test_offsets_are_read_by_name(game: Game) -> None:
    start = 0
    for field in game.rules.FULL_FIELDS:
        assert getattr(offsets(game.rules.FULL_FIELDS), field.name) == start
        start += field.size
    assert total(game.rules.FULL_FIELDS) == start


def test_ratios_name_counts(game: Game) -> None:
    assert game.rate_entries.shape == (len(game.view.RATES), 2)
    for ratio, entries in zip(game.view.RATES, game.rate_entries):
        assert all(0 <= entry < total(game.rules.STATS) for entry in entries)
        sizes = {count.name: count.size for count in game.rules.STATS}
        assert 0 <= ratio.entry < max(sizes[ratio.counted], sizes[ratio.per])


def test_ratios_of_several_entries() -> None:
    fresh = Game("counted", "Counted", HIGH_CARD.package)
    fresh.rules.STATS = (Stat("deals"), Stat("bids", 14), Stat("made", 14))
    fresh.view.RATES = Rate("", "", "bids", per="deals", entry=3), Rate("", "", "made", per="bids", entry=3)
    assert total(fresh.rules.STATS) == 29
    assert fresh.rate_entries.tolist() == [[4, 0], [18, 4]]
