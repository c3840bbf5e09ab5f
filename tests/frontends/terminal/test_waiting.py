"""Long commands say how far they are: a bar at a terminal, lines elsewhere."""

from __future__ import annotations

import io
import threading
from contextlib import suppress

import pytest

from card_envs.compare.waiting import ProgressBar
from card_envs.system.console import Console


def test_a_pipe_gets_lines_on_stderr(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the work ends, also where it fails."""
    monkeypatch.delenv("CARD_ENVS_QUIET")
    lines, threads = list[str](), threading.active_count()
    with suppress(KeyboardInterrupt), ProgressBar(Console(file=io.StringIO()), first=0.01, last=0.02) as bar:
        bar.begin("greedy small", 4)
        bar.advance()
        while len(lines) < 3:
            shown = capsys.readouterr()
            lines += shown.err.splitlines()
            assert shown.out == ""
        raise KeyboardInterrupt
    assert all(line.startswith("greedy small: 25 %, 0:00:0") and " left" in line for line in lines)
    while threading.active_count() > threads:
        pass


def test_who_wants_quiet_has_it() -> None:
    threads = threading.active_count()
    with ProgressBar(Console(file=io.StringIO()), first=0.01):
        assert threading.active_count() == threads  # nobody writes lines


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
