"""Curves, and a run's log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from training import plot, train
from training.run import Run
from training.run_folder import RunFolder

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.toml"
TINY = [
    "num_envs=32",
    "num_steps=16",
    "hidden=[16]",
    "minibatch_size=64",
    "final_pairs=2",
    "quick_pairs=1",
    "decisions=1500",
]


@pytest.mark.parametrize("more", [[], ["--hours"]])
def test_curves(tmp_path: Path, more: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "_measuring_interval", lambda run, took: 0.0)
    arguments = ["--config", str(QUICKSTART), f"runs={tmp_path}", "name=tiny", *TINY]
    assert CliRunner().invoke(train.app, arguments).exit_code == 0
    picture = tmp_path / "curves.png"
    result = CliRunner().invoke(plot.app, [str(tmp_path / "tiny"), "--out", str(picture), *more])
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    wrong = CliRunner().invoke(plot.app, [str(tmp_path), "--out", str(picture)])
    assert wrong.exit_code == 2 and "no folder of a run" in wrong.output.replace("\n", " ")


def test_outputs_are_checked_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("work was done before its outputs were checked")

    monkeypatch.setattr(plot, "_entries", nothing)
    missing = str(tmp_path / "no" / "file.png")
    for out, said in ((missing, "there is no folder"), (str(tmp_path / "a.docx"), "expected a name that ends in")):
        result = CliRunner().invoke(plot.app, [str(tmp_path), "--out", out])
        assert result.exit_code == 2 and said.lower() in result.output.replace("\n", " ").lower(), result.output


def test_logs_of_killed_runs_are_read(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"decisions": 5}\n12\n\0\0\0\n[]\n\xff\n{"decisions": 7}\n{"decis')
    assert RunFolder(tmp_path).read_log() == [{"decisions": 5}, {"decisions": 7}]
