"""Long commands say how far they are: a bar at a terminal, lines elsewhere."""

from __future__ import annotations

import io
import time
from contextlib import suppress

import pytest

from card_envs.compare.waiting import ProgressBar
from card_envs.system.console import Console


def lines_of(capsys: pytest.CaptureFixture[str], seconds: float) -> list[str]:
    with ProgressBar(Console(file=io.StringIO()), first=0.05, last=0.1) as bar:
        bar.begin("greedy small", 4)
        bar.advance()
        time.sleep(seconds)
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err.splitlines()


def test_a_pipe_gets_lines_on_stderr(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CARD_ENVS_QUIET")
    lines = lines_of(capsys, 1.0)
    assert len(lines) >= 3 and all(line.startswith("greedy small: 25 %, 0:00:0") for line in lines)
    assert all(" left" in line for line in lines)


def test_who_wants_quiet_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines_of(capsys, 0.3) == []


def test_lines_end_with_the_work(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it fails."""
    monkeypatch.delenv("CARD_ENVS_QUIET")
    with suppress(KeyboardInterrupt), ProgressBar(Console(file=io.StringIO()), first=0.05) as bar:
        bar.begin("it", 1)
        raise KeyboardInterrupt
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """On stderr, if stdout goes elsewhere."""
    terminal = io.StringIO()
    monkeypatch.setattr(
        "card_envs.compare.waiting.error_console", lambda: Console(file=terminal, force_terminal=True, width=100)
    )
    with ProgressBar(Console(file=io.StringIO())) as bar:
        bar.begin("greedy small", 4)
        bar.advance()
    assert "greedy small" in terminal.getvalue() and "25%" in terminal.getvalue()
