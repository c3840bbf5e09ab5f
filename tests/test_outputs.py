"""Commands lose nothing: outputs are checked before the work, and what is known is shown and written."""

from __future__ import annotations

import errno
import json
import os
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from card_envs import _bench as bench
from card_envs import _files as files
from card_envs.compare import _command as command
from card_envs.compare import survey
from card_envs.compare._solving import SolveTask
from card_envs.compare._spread import Executor
from card_envs.compare.contests import Contest, join, play_contest
from card_envs.games import GAMES
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import run
from tests.test_compare import Impatient

HERE = "tests.test_compare"
SOLVED = next(game.name for game in GAMES.values() if game.solver)
ROOT = Path(__file__).parents[1]


def nothing(*arguments: Any, **named: Any) -> Any:
    raise AssertionError("work was done before its outputs were checked")


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "play_contest", nothing)
    monkeypatch.setattr(command, "solve_deals", nothing)
    monkeypatch.setattr(SolveTask, "solve", nothing)
    monkeypatch.setattr(command, "play_portions", nothing)
    monkeypatch.setattr(bench, "measure_all", nothing)
    monkeypatch.setattr("card_envs.opponents.policy.Opponent.evaluate", nothing)
    monkeypatch.setattr("card_envs.terminal._play.PersonsTable.play", nothing)
    monkeypatch.setattr("card_envs.terminal._watch.browse", nothing)


COMPARE = ("compare", "high_card", "greedy", "trivial", "--pairs", "30")


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    "words",
    [
        (*COMPARE, "--json"),
        (*COMPARE, "--picture"),
        ("survey", "high_card", "--json"),
        ("solve", SOLVED, "--json"),
        ("solve", SOLVED, "--deal", "{json}", "--json"),
        ("advise", "high_card", "{json}", "--json"),
        ("bench", "--json"),
        ("play", "high_card", "--record"),
        ("watch", "high_card", "--record"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_files_that_cannot_be_written_are_named_first(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text("{}")
    words = tuple(word.format(json=tmp_path / "in.json") for word in words)
    for path, said in ((tmp_path / "no" / "file.png", "there is no folder"), (Path("/proc/file.png"), "cannot be")):
        with pytest.raises(ValueError, match=rf"{path}: {said}"):
            run(*words, path)
    with pytest.raises(ValueError, match="is a folder"):
        run(*words, tmp_path if "--picture" not in words else folder(tmp_path / "f.png"))


def folder(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path


@pytest.mark.usefixtures("no_work")
def test_pictures_and_records_are_checked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="no files can be written there"):
        run(*COMPARE, "--records", tmp_path / "file" / "games")
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=r"p\.docx: expected a name that ends in \."):
        run(*COMPARE, "--picture", tmp_path / "p.docx")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    with pytest.raises(ValueError, match="pictures need matplotlib: pip install"):
        run(*COMPARE, "--json", tmp_path / "j", "--picture", tmp_path / "p")


def test_figures_are_written_before_pictures_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(command, "draw", draw)
    monkeypatch.setattr(command, "check_picture", lambda path: None)
    with pytest.raises(OSError, match="No space"):
        run(*COMPARE, "--json", tmp_path / "c.json", "--picture", tmp_path / "p.png")
    assert json.loads((tmp_path / "c.json").read_text())["pairs"] == 30


@pytest.mark.parametrize("words", [(*COMPARE[:-1], "64"), ("solve", SOLVED, "--packs", "3", "--positions", "50")])
def test_what_is_known_is_written_now_and_then(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed leaves the figures of its last minute, whole; a disk that is full stops nothing."""
    monkeypatch.setattr("card_envs.compare._waiting.SAVE_SECONDS", -1.0)
    whole, written = files.write_json, []

    def write(path: Path, figures: Any) -> None:
        written.append(figures)
        if len(written) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(path, figures)

    monkeypatch.setattr(files, "write_json", write)
    code, _ = run(*words, "--json", tmp_path / "f.json")
    assert code == 0
    assert len(written) >= 3 and [figures["stopped"] for figures in (written[0], written[-1])] == [True, False]
    assert json.loads((tmp_path / "f.json").read_text()) == written[-1]


def test_ctrl_c_in_a_survey_shows_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "EPISODES_AT_ONCE", 16)
    words = ("survey", "high_card", "greedy", f"{HERE}:Impatient", "--episodes", 64, "--json", tmp_path / "s.json")
    monkeypatch.setattr(Impatient, "asked", 0)
    monkeypatch.setattr(Impatient, "patience", 6)
    code, output = run(*words)
    assert code == 130 and "stopped after greedy 64" in output and "decisions an episode" in output
    figures = json.loads((tmp_path / "s.json").read_text())
    assert figures["stopped"] and figures["players"]["greedy"]["episodes"] == 64
    assert figures["players"][f"{HERE}:Impatient"]["episodes"] in (16, 32, 48)
    monkeypatch.setattr(Impatient, "asked", 1000)
    code, output = run("survey", "high_card", f"{HERE}:Impatient")
    assert code == 130 and "before the first episodes" in output


def test_ctrl_c_in_bench_shows_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("copy_rate", "random_rate", "step_rate", "bot_rate", "compare_rate", "search_rate"):
        monkeypatch.setattr(bench, name, lambda *arguments: bench.Throughput(2e6, 4e6))
    monkeypatch.setattr(bench, "import_seconds", lambda: bench.Throughput(0.5, 0.25))

    def interrupted(*arguments: Any) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "aec_rate", interrupted)
    code, output = run("bench", "high_card", "--json", tmp_path / "b.json")
    assert code == 130 and "stopped before all" in output and "trivial playouts" in output and "AEC" not in output
    figures = json.loads((tmp_path / "b.json").read_text())
    assert figures["games"]["high_card"]["greedy playouts, M/s"] == {"clock": 2, "cpu": 4}
    monkeypatch.setattr(bench, "copy_rate", interrupted)
    code, output = run("bench", "high_card")
    assert code == 130 and "stopped" in output


def test_bench_measures_as_long_as_it_is_told() -> None:
    """On tables at different stages."""
    clock = [0.0]

    def work() -> int:
        clock[0] += 0.25
        return 3

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.perf_counter", lambda: clock[0])
        patch.setattr("time.process_time", lambda: clock[0] / 2)
        assert bench.rate(work, 3.0) == (12.0, 24.0)
    assert clock[0] == 3.25  # the warm-up is not counted
    env = bench.batch_out_of_step(HIGH_CARD, 64)
    assert len(np.unique(env.states["num_played"])) > 3


@pytest.mark.processes
def test_lost_workers_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are those of an undisturbed run; where workers die without end, it is said."""
    monkeypatch.setenv("TEST_COMPARE_GRAVE", str(tmp_path / "grave"))
    contest = Contest(HIGH_CARD, (f"{HERE}:Mortal", "random"), 4)
    spread_out = join(list(play_contest(contest, 80, Executor(2))))
    assert (tmp_path / "grave").exists()
    here = join(list(play_contest(contest, 80)))
    for name in ("margins", "wins", "decisions", "tallies"):
        assert np.array_equal(getattr(spread_out, name), getattr(here, name))
    monkeypatch.setattr("card_envs.compare._spread.RETRIES", 1)
    with pytest.raises(OSError, match="a worker process died 2 times in a row"):
        list(play_contest(Contest(HIGH_CARD, (f"{HERE}:Doomed", "random"), 4), 16, Executor(2)))


def test_the_script_is_the_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`card-envs` as well as `python -m card_envs` says in one line what is wrong."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["card-envs"].partition(":")
    monkeypatch.setattr("sys.argv", ["card-envs", "survey", "high_card", "gredy"])
    with pytest.raises(SystemExit) as ended:
        getattr(import_module(module), function)()
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error:") and shown.count("\n") == 1


def test_options_nested_without_end() -> None:
    for depth in (900, 100_000):
        with pytest.raises(ValueError, match="option"):
            run("survey", "high_card", "-o", f"reward={'[' * depth}{']' * depth}")
