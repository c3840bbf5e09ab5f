"""Curves, ablations, speed: the tools around training, on tiny runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from training import ablate, best_response, plot, speed, train
from training.config import load_config
from training.run_folder import read_log

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
def test_curves(tmp_path: Path, more: list[str]) -> None:
    arguments = ["--config", str(QUICKSTART), f"runs={tmp_path}", "name=tiny", "strength_minutes=1e-6", *TINY]
    assert CliRunner().invoke(train.app, arguments).exit_code == 0
    picture = tmp_path / "curves.png"
    result = CliRunner().invoke(plot.app, [str(tmp_path / "tiny"), "--out", str(picture), *more])
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    wrong = CliRunner().invoke(plot.app, [str(tmp_path), "--out", str(picture)])
    assert wrong.exit_code == 2 and "no folder of a run" in wrong.output.replace("\n", " ")


def test_ablation(tmp_path: Path) -> None:
    variants = tmp_path / "variants.json"
    variants.write_text(json.dumps({"as configured": {}, "no pool": {"pool_share": 0.0}}))
    out = tmp_path / "figures.json"
    common = ["--config", str(QUICKSTART), "--variants", str(variants), "--processes", "1", "--out", str(out), *TINY]
    result = CliRunner().invoke(ablate.app, common)
    assert result.exit_code == 0, result.output
    figures = json.loads(out.read_text())
    assert list(figures) == ["as configured", "no pool"]
    assert all(len(runs) == 2 and runs[0] != runs[1] for runs in figures.values())
    variants.write_text(json.dumps({"wrong": {"learning_rate": 7}}))
    wrong = CliRunner().invoke(ablate.app, common)
    assert wrong.exit_code == 2 and "learning_rate" in wrong.output


def test_outputs_are_checked_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("work was done before its outputs were checked")

    monkeypatch.setattr(ablate, "spread", nothing)
    monkeypatch.setattr(best_response, "respond", nothing)
    monkeypatch.setattr(plot, "_entries", nothing)
    (tmp_path / "v.json").write_text('{"as configured": {}}')
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").touch()
    config = ["--config", str(QUICKSTART), *TINY]
    missing = str(tmp_path / "no" / "file.png")
    for app, words, said in (
        (ablate.app, [*config, "--variants", str(tmp_path / "v.json"), "--out", missing], "there is no folder"),
        (ablate.app, [*config, "--variants", str(QUICKSTART)], "not JSON"),
        (best_response.app, [*config, "--against", "greedy", "--json", missing], "there is no folder"),
        (best_response.app, [*config, "--against", "greedy", "--out", str(tmp_path / "thesis")], "other files"),
        (plot.app, [str(tmp_path), "--out", missing], "there is no folder"),
        (plot.app, [str(tmp_path), "--out", str(tmp_path / "a.docx")], "expected a name that ends in"),
    ):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2 and said.lower() in result.output.replace("\n", " ").lower(), result.output


def test_logs_of_killed_runs_are_read(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"decisions": 5}\n12\n\0\0\0\n[]\n\xff\n{"decisions": 7}\n{"decis')
    assert read_log(tmp_path) == [{"decisions": 5}, {"decisions": 7}]


def test_speed_counts_decisions() -> None:
    found, parts = speed.rate(load_config(QUICKSTART, TINY))
    assert found > 0
    assert list(parts) == ["seconds_playing", "seconds_updating"]
