"""Curves, and a run's log."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner

from card_envs.__main__ import app
from training import plot, train
from training.run import measuring_interval
from training.run_folder import RunFolder

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.toml"
TINY = [
    "num_envs=32",
    "num_steps=16",
    "hidden=[16]",
    "minibatch_size=64",
    "final_pairs=2",
    "quick_pairs=1",
    "decisions=6000",
]


def test_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A short run has a curve from its start to its end, in the log, TensorBoard and the picture."""
    arguments = ["--config", str(QUICKSTART), f"runs={tmp_path}", "name=tiny", *TINY]
    assert CliRunner().invoke(train.app, arguments).exit_code == 0
    log = RunFolder(tmp_path / "tiny").read_log()
    measured = [entry["decisions"] for entry in log if "win_share_greedy" in entry]
    assert measured[0] == 0 and measured[-1] == log[-1]["decisions"] >= 6000
    assert len(measured) > 2
    board = EventAccumulator(str(tmp_path / "tiny" / "tensorboard")).Reload()
    assert [point.step for point in board.Scalars("strength/win_share_greedy")] == measured
    picture = tmp_path / "curves.png"
    for more in ([], ["--hours"]):
        result = CliRunner().invoke(app, ["plot", str(tmp_path / "tiny"), "--out", str(picture), *more])
        assert result.exit_code == 0, result.output
        assert picture.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit, match="2"):
        app(["plot", str(tmp_path), "--out", str(picture)])
    assert "no folder of a run" in " ".join(capsys.readouterr().err.split())


def draw_as_text(*runs: Path, out: Path) -> str:
    """Return a picture of curves with the texts in it."""
    plot.draw([*runs], out.with_suffix(".svg"))
    return out.with_suffix(".svg").read_text()


@pytest.mark.parametrize(
    ("more", "start"),
    [
        (["sampled=true"], "untrained: greedy's moves have a bonus"),
        pytest.param(
            ["warm_start=back_alley/small", "hidden=[128,64]"],
            "untrained: it begins as back_alley/small",
            marks=pytest.mark.slow,
        ),
        pytest.param(["baseline_bonus=0"], "", marks=pytest.mark.slow),
    ],
)
def test_a_curve_says_where_it_begins(tmp_path: Path, more: list[str], start: str) -> None:
    """A curve that begins at its top looks as if training broke something; its points have intervals."""
    own = {setting.partition("=")[0] for setting in ("quick_pairs", *more)}
    settings = [*(setting for setting in TINY if setting.partition("=")[0] not in own), *more]
    arguments = ["--config", str(QUICKSTART), f"runs={tmp_path}", "name=tiny", *settings, "quick_pairs=50"]
    result = CliRunner().invoke(train.app, arguments)
    assert result.exit_code == 0, result.output
    first, *others = [line for line in result.output.splitlines() if re.match(r" *[\d,]+ decisions .* greedy", line)]
    assert first.split()[0] == "0" and first.endswith(start or "░") and others
    assert not any("untrained" in line for line in others)
    log = [entry for entry in RunFolder(tmp_path / "tiny").read_log() if "win_share_greedy" in entry]
    for line, entry in zip([first, *others], log, strict=True):
        for name in ("win_share_trivial", "win_share_greedy", "margin_trivial", "margin_greedy"):
            low, high = (entry[f"{name}{end}"] for end in ("_low", "_high"))
            alike = name == "margin_greedy" and entry[name] == 0  # all pairs, so nothing is known of others
            assert (low is high is None) if alike else low <= entry[name] <= high
        share, low, high = (entry[f"win_share_greedy{end}"] for end in ("", "_low", "_high"))
        assert f"greedy {share:.2f} ±{max(high - share, share - low):.2f} (" in line
    drawn = draw_as_text(tmp_path / "tiny", out=tmp_path / "curves")
    assert ("untrained" in drawn) == bool(start) and start in drawn
    assert drawn.count('id="FillBetween') == 4


INTERVALS = (
    (12, 0.1, 0.5, 15),  # a run of two minutes: eight times
    (12, 0.1, 5.0, 15),
    (12, 0.1, 30.0, 60),  # measuring takes as much as half of the training
    (600, 0.1, 1.0, 120),
    (60, 0.001, 0.5, 24),  # a long run: after a share of the time so far
)


def test_runs_are_measured_often_enough() -> None:
    for seconds, progress, took, interval in INTERVALS:
        assert measuring_interval(seconds, progress, took) == pytest.approx(interval)


def test_panels_without_figures_are_left_out(tmp_path: Path) -> None:
    """Such as the critic's of an algorithm without one; a curve of one point has a mark."""
    folder = tmp_path / "run"
    folder.mkdir()
    entry = {"decisions": 5, "seconds": 1.0, "win_share_greedy": 0.5, "margin_greedy": -1.0, "value_error": None}
    (folder / "log.jsonl").write_text(json.dumps(entry) + "\n")
    picture = tmp_path / "curves.svg"
    plot.draw([folder], picture)
    drawn = picture.read_text()
    assert "Strength" in drawn and "Margin" in drawn
    assert "critic" not in drawn and "Entropy" not in drawn
    assert "line2d" in drawn and drawn.count("<use") > 2


def test_outputs_are_checked_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which would fail: there is no run in this folder."""
    missing = str(tmp_path / "no" / "file.png")
    for out, said in ((missing, "there is no folder"), (str(tmp_path / "a.docx"), "expected a name that ends in")):
        with pytest.raises(SystemExit, match="2"):
            app(["plot", str(tmp_path), "--out", out])
        assert said.lower() in " ".join(capsys.readouterr().err.split()).lower()


def test_logs_of_killed_runs_are_read(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"decisions": 5}\n12\n\0\0\0\n[]\n\xff\n{"decisions": 7}\n{"decis')
    assert RunFolder(tmp_path).read_log() == [{"decisions": 5}, {"decisions": 7}]
