"""What a game declares: the functions of the contract, and what stands where in actions, observations and counts."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from typer.testing import CliRunner

from card_envs.__main__ import app
from card_envs._layout import rewritten, tables
from card_envs.game import (
    Bot,
    Game,
    OptionalBot,
    OptionalRules,
    OptionalView,
    Rate,
    Rules,
    Stat,
    View,
    offsets,
    total,
)
from card_envs.options import described
from card_envs.scaffold.high_card import GAME as HIGH_CARD


def test_modules_offer_the_contract(game: Game) -> None:
    """Every function with the names of its arguments, and every constant; what is optional agrees where it is there."""
    compulsory: dict[Any, type] = {game.rules: Rules, game.bot: Bot, game.view: View}
    optional: dict[Any, type] = {game.rules: OptionalRules, game.bot: OptionalBot, game.view: OptionalView}
    for module, protocol in [*compulsory.items(), *optional.items()]:
        stubs = {name: stub for name, stub in vars(protocol).items() if inspect.isfunction(stub) and name[0] != "_"}
        for name, stub in stubs.items():
            if hasattr(module, name) or protocol is compulsory[module]:
                own = getattr(module, name)
                expected = list(inspect.signature(stub).parameters)[1:]
                assert list(inspect.signature(getattr(own, "py_func", own)).parameters) == expected, name
    for module, protocol in compulsory.items():
        assert [name for name in protocol.__annotations__ if not hasattr(module, name)] == []


def test_rules_page_lists_the_layouts(game: Game) -> None:
    """`python -m card_envs layout GAME --write` brings the page up to date."""
    page = game.rules_page.read_text()
    assert rewritten(game, page) == page
    for option in described(game.options):
        assert f"`{option}`" in page


def test_outdated_tables_are_rewritten(game: Game) -> None:
    page = game.rules_page.read_text()
    for name, text in tables(game).items():
        outdated = page.replace(text, text.replace("| 0 |", "| 9 |"))
        assert outdated != page and rewritten(game, outdated) == page
        with pytest.raises(ValueError, match=rf"RULES.md: expected the lines <!-- layout: {name} -->"):
            rewritten(game, page.replace(f"<!-- layout: {name} -->", ""))


def test_the_command_prints_the_tables(game: Game) -> None:
    shown = CliRunner().invoke(app, ["layout", game.name])
    assert shown.exit_code == 0
    assert all(text in shown.output for text in tables(game).values())


def test_offsets_are_read_by_name(game: Game) -> None:
    start = 0
    for field in game.rules.FULL_FIELDS:
        assert getattr(offsets(game.rules.FULL_FIELDS), field.name) == start
        start += field.size
    assert total(game.rules.FULL_FIELDS) == start


def test_ratios_name_counts(game: Game) -> None:
    assert game.rate_entries.shape == (len(game.rates), 2)
    for ratio, entries in zip(game.rates, game.rate_entries):
        assert all(0 <= entry < game.num_stats for entry in entries)
        sizes = {count.name: count.size for count in game.stats}
        assert 0 <= ratio.entry < max(sizes[ratio.counted], sizes[ratio.per])


def test_ratios_of_several_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = (Stat("deals"), Stat("bids", 14), Stat("made", 14))
    monkeypatch.setattr(HIGH_CARD.rules, "STATS", counts)
    ratios = Rate("", "", "bids", per="deals", entry=3), Rate("", "", "made", per="bids", entry=3)
    monkeypatch.setattr(HIGH_CARD.view, "RATES", ratios)
    fresh = Game("counted", "Counted", HIGH_CARD.package)
    assert fresh.num_stats == 29
    assert fresh.rate_entries.tolist() == [[4, 0], [18, 4]]
