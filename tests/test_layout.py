"""What a game declares: the functions of the contract, and what stands where in actions, observations and counts."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from card_envs.__main__ import app
from card_envs._layout import layout_tables, rewritten
from card_envs.game import Game, Rate, Stat, offsets, total
from card_envs.scaffold._check import Check
from card_envs.scaffold._checks.declared import check_declarations
from card_envs.scaffold._checks.inside_rules import check_sources
from card_envs.scaffold._checks.places import check_page, check_places, check_rule_tests
from card_envs.scaffold._checks.sources import Sources, read_sources
from card_envs.scaffold.high_card import GAME as HIGH_CARD

INSPECTIONS = (check_declarations, check_sources, check_places, check_page, check_rule_tests)


@pytest.mark.parametrize("inspected", INSPECTIONS)
def test_sources_are_in_order(game: Game, inspected: Check) -> None:
    """Functions, constants, layouts, options, the rules page, and a test for each rule, as `check` inspects them."""
    sources = read_sources(game.rules_page.parent)
    assert isinstance(sources, Sources)
    assert list(map(str, inspected(game, sources))) == []


def test_outdated_tables_are_rewritten(game: Game) -> None:
    page = game.rules_page.read_text()
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
