"""Curves, ablations, speed: the tools around training, on tiny runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from card_envs.opponents.networks.folder import load_card, load_value
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from training import ablate, best_response, fit_leads, fit_value, plot, speed, train
from training.config import load_config
from training.run_folder import read_log

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.toml"
TINY = ["tables=32", "steps=16", "hidden=[16]", "minibatch=64", "final_pairs=2", "quick_pairs=1", "decisions=1500"]


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
    variants.write_text(json.dumps({"as configured": {}, "no copying": {"imitation": 0.0}}))
    out = tmp_path / "figures.json"
    common = ["--config", str(QUICKSTART), "--variants", str(variants), "--processes", "1", "--out", str(out), *TINY]
    result = CliRunner().invoke(ablate.app, common)
    assert result.exit_code == 0, result.output
    figures = json.loads(out.read_text())
    assert list(figures) == ["as configured", "no copying"]
    assert all(len(runs) == 2 and runs[0] != runs[1] for runs in figures.values())
    variants.write_text(json.dumps({"wrong": {"lr": 7}}))
    wrong = CliRunner().invoke(ablate.app, common)
    assert wrong.exit_code == 2 and "lr" in wrong.output


def test_outputs_are_checked_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("work was done before its outputs were checked")

    monkeypatch.setattr(ablate, "spread", nothing)
    monkeypatch.setattr(best_response, "respond", nothing)
    monkeypatch.setattr(fit_value, "Positions", nothing)
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
        (best_response.app, [*config, "--against", "greedy", "--out", str(tmp_path / "thesis")], "other things"),
        (fit_value.app, [HIGH_CARD.name, "--out", str(tmp_path / "thesis")], "other things"),
        (fit_value.app, [HIGH_CARD.name, "--out", str(tmp_path / "v.json" / "value")], "it is a file"),
        (plot.app, [str(tmp_path), "--out", missing], "there is no folder"),
        (plot.app, [str(tmp_path), "--out", str(tmp_path / "a.docx")], "expected a name that ends in"),
    ):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2 and said.lower() in result.output.replace("\n", " ").lower(), result.output


@pytest.mark.parametrize(("kind", "flags"), [("afterstates", []), ("lookahead", ["--lookahead", "--worlds", "2"])])
def test_leads_are_fitted(tmp_path: Path, kind: str, flags: list[str]) -> None:
    words = [HIGH_CARD.name, "--out", str(tmp_path / "mine"), "--minutes", "0.01", "--pairs", "4", "--hidden", "8", "8"]
    result = CliRunner().invoke(fit_leads.app, [*words, "--follow", "0.5", "--reuse", "2", *flags])
    assert result.exit_code == 0, result.output
    card = load_card(tmp_path / "mine")
    assert (card.architecture, card.sampled, card.hidden) == (kind, False, [8, 8])
    assert card.training["positions"] > 0 and 0 < card.training["all"]["error"] < 2
    assert (tmp_path / "mine.jsonl").read_text().count("gain") > 0
    more = [*words[:2], str(tmp_path / "more"), "--minutes", "0.01", "--pairs", "4", "--start", str(tmp_path / "mine")]
    result = CliRunner().invoke(fit_leads.app, more)
    assert result.exit_code == 0, result.output
    card = load_card(tmp_path / "more")
    assert (card.architecture, card.hidden) == (kind, [8, 8])
    led = [*more[:2], str(tmp_path / "led"), *more[3:], "--led", str(tmp_path / "more"), "--follow", "1"]
    result = CliRunner().invoke(fit_leads.app, led)
    assert result.exit_code == 0, result.output
    assert load_card(tmp_path / "led").training["led"] == str(tmp_path / "more")
    worlds = CliRunner().invoke(fit_leads.app, [*more[:2], str(tmp_path / "third"), "--led", "greedy", "--worlds", "2"])
    assert worlds.exit_code == 2 and "one world" in worlds.output.replace("\n", " ")
    unlike = CliRunner().invoke(fit_leads.app, [*more[:2], str(tmp_path / "third"), "--start", "greedy"])
    assert unlike.exit_code == 2 and "reads what moves change" in unlike.output.replace("\n", " ")
    no_value = CliRunner().invoke(fit_leads.app, [*words[:2], str(tmp_path / "fourth"), "--horizon", "3"])
    assert no_value.exit_code == 2 and "value" in no_value.output
    wrong = CliRunner().invoke(fit_leads.app, [*words, "--option", "no=1"])
    assert wrong.exit_code == 2 and "option no" in wrong.output


def test_logs_of_killed_runs_are_read(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"decisions": 5}\n12\n\0\0\0\n[]\n\xff\n{"decisions": 7}\n{"decis')
    assert read_log(tmp_path) == [{"decisions": 5}, {"decisions": 7}]


def test_speed_counts_decisions() -> None:
    found, parts = speed.rate(load_config(QUICKSTART, TINY).model_dump())
    assert found > 0
    assert list(parts) == ["seconds_playing", "seconds_valuing", "seconds_updating"]


def test_a_value_network_learns_what_positions_are_worth(tmp_path: Path) -> None:
    out = tmp_path / "value"
    words = [HIGH_CARD.name, "--out", str(out), "--minutes", "0.05", "--hidden"]
    result = CliRunner().invoke(fit_value.app, [*words, "16", "8"])
    assert result.exit_code == 0, result.output
    figures = load_card(out).training
    assert figures["explained"] > 0.3 and figures["error"] < figures["standard_deviation"]
    load_value(out, HIGH_CARD)
    wrong = CliRunner().invoke(fit_value.app, [*words, "0", "8"])
    assert wrong.exit_code == 2 and "hidden" in wrong.output
