"""Symbols and colours of suits at a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from card_envs.play.suits import with_suits

LETTERS, SYMBOLS = "hand: AS TH", "hand: A♠ T♥"


@pytest.mark.parametrize(
    ("encoding", "locale", "terminal", "shown"),
    [
        ("utf-8", "en_US.UTF-8", True, SYMBOLS),
        ("utf-8", "", True, SYMBOLS),
        ("utf-8", "C", True, LETTERS),
        ("iso-8859-1", "de_DE.ISO-8859-1", True, LETTERS),
        ("utf-8", "en_US.UTF-8", False, LETTERS),
    ],
)
def test_suits_at_the_terminal(
    encoding: str, locale: str, terminal: bool, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("LANG", locale)
    monkeypatch.setenv("TERM", "xterm")
    with (tmp_path / "out").open("w", encoding=encoding) as file:
        console = Console(file=file, force_terminal=terminal, color_system="standard", no_color=False)
        dressed = with_suits("hand: AS TH   H2-H5", console)
        assert dressed.plain == shown + "   H2-H5"
        assert [str(dressed.plain[span.start : span.end]) for span in dressed.spans] == [shown[-2:]]
        assert with_suits("AS", console, symbols=False).plain == "AS"


def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm")
    with (tmp_path / "out").open("w", encoding="utf-8") as file:
        console = Console(file=file, force_terminal=True)
        console.print(with_suits("TH", console), highlight=False)
    assert (tmp_path / "out").read_text(encoding="utf-8").strip() == "T♥"
