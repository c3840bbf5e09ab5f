"""Tables of figures in all formats: the same figures, whole, and read back by other programs."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.table import Table as Sheet

from card_envs.compare.pairs import play_pairs
from card_envs.compare.report import as_text, for_programs
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.compare.test_compare import short_words
from tests.conftest import run

WORDS = ("compare", "high_card", "greedy", "trivial", "--pairs", 30)


def test_what_a_format_means_by_itself_is_escaped() -> None:
    sheet = Sheet(title="50 % & more\nof it", caption="a_b")
    for column in ("", "x | y"):
        sheet.add_column(column)
    sheet.add_row("runs/a_1\nagainst b|c", "5 µs\n4 to 6")
    assert as_text(sheet, False) == (
        "**50 % & more of it**\n\n|  | x \\| y |\n| --- | ---: |\n| runs/a_1 against b\\|c | 5 µs (4 to 6) |\n\na_b\n"
    )
    latex = as_text(sheet, True)
    assert r"\caption{50 \% \& more of it}" in latex and r"\footnotesize a\_b" in latex
    assert r"runs/a\_1 against b|c & 5 \textmu{}s (4 to 6) \\" in latex
    assert for_programs(
        "csv", {}, [{"name": "a,b", "won": {"mean": 1, "low": 0, "high": None}, "rates": {"x": {}}}, {"more": 2}]
    ) == ('name,won,won_low,won_high,more\n"a,b",1,0,,\n,,,,2\n')


def test_all_formats_have_the_same_figures(tmp_path: Path) -> None:
    """Those for programs have nothing else on stdout, and JSON is what the file has, but for the clock."""
    printed = {form: run(*WORDS, "--format", form)[1] for form in ("table", "markdown", "latex")}
    for form in ("json", "csv"):
        printed[form] = run(*WORDS, "--format", form, "--json", tmp_path / f"{form}.json")[1].split("written to")[0]
    figures, (best, _) = json.loads(printed["json"]), csv.DictReader(io.StringIO(printed["csv"]))
    saved = json.loads((tmp_path / "json.json").read_text())
    assert figures == saved and figures["policies"][0]["name"] == best["name"] == "greedy"
    share = figures["policies"][0]["win_share"]
    assert [float(best[f"win_share{end}"]) for end in ("", "_low", "_high")] == pytest.approx(list(share.values()))
    shown = [f"{100 * share['mean']:.1f} %", f"{100 * share['low']:.1f} to {100 * share['high']:.1f}"]
    for form in ("table", "markdown", "latex"):
        text = printed[form].replace("\\", "")
        assert all(part in text for part in shown) and "each interval holds in 95 %" in text.lower()
    with pytest.raises(ValueError, match="format: expected"):
        run(*WORDS, "--format", "xml")


@pytest.mark.parametrize("game", list(GAMES.values()), ids=str)
def test_statistics_of_play_are_details(game: Game) -> None:
    words = ("compare", game.name, "greedy", "trivial", "--pairs", 8, *short_words(game))
    plain, detailed = run(*words)[1], run(*words, "--details")[1]
    assert "beside the score" not in plain
    assert ("beside the score" in detailed) == bool(game.view.RATES)


def test_results_are_short_where_they_are_shown() -> None:
    result = play_pairs(HIGH_CARD, "greedy", "trivial", 1000)
    assert (
        re.fullmatch(r"PairResult\(1,000 pairs: .* of the wins, .* points\)", repr(result)) and len(repr(result)) < 120
    )
