"""What every command has: versions, completion, standard input, how long it takes."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from card_envs import bench
from card_envs.__main__ import app
from card_envs.compare import waiting
from card_envs.compare.estimates import Estimate
from card_envs.compare.report import on_one_line, percent
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import opponent_names
from card_envs.opponents.names import MODELS
from card_envs.opponents.policy import ActionValue, Decisions
from card_envs.options import UnknownOption, describe_options, parse_options
from card_envs.play.episode import Episode
from card_envs.play.narration import hint_text
from card_envs.scaffold.high_card import GAME
from card_envs.system import files
from tests.conftest import command_parameters, run, run_python, table_of

ROOT = Path(__file__).parents[1]
SOLVED = next(game for game in GAMES.values() if game.solver)


def view_of(game: Game) -> dict[str, Any]:
    table = table_of(game, {}, 1)
    return game.view.view(table.state, table.seat)


def test_versions() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0 and result.output.startswith("card_envs ") and "numba" in result.output


@pytest.mark.parametrize("game", GAMES.values(), ids=str)
def test_what_there_is_to_know_of_a_game(game: Game) -> None:
    """Each command ends well and shows what the game declares."""
    for words in (("games",), ("games", game.name)):
        status, shown = run(*words)
        assert status == 0 and f"{game.name} ({game.title}): {game.rules.NUM_SEATS} seats" in shown
        assert all(f"{name} stands for {meant}" in shown for name, meant in game.presets.items())
    assert all(f"option {option} (" in shown for option in describe_options(game.options))
    status, shown = run("rules", game.name, "--short")
    assert status == 0 and game.short_rules in shown and all(f"{code}: " in shown for code, _ in game.view.LEGEND)
    status, shown = run("schema", game.name)
    assert status == 0 and json.loads(shown) == game.view.SCHEMA
    status, shown = run("schema", game.name, "--table")
    assert status == 0 and all(f"`{key}" in shown for key in game.view.SCHEMA["required"])


def test_games_and_players_are_completed_at_the_shell() -> None:
    def completed(*words: str) -> list[str]:
        line = ["card-envs", *words, ""]
        code = "import sys; sys.argv = ['card-envs']; from card_envs.__main__ import main; main()"
        asked = run_python(
            "-c", code, _CARD_ENVS_COMPLETE="complete_bash", COMP_WORDS=" ".join(line), COMP_CWORD=str(len(line) - 1)
        )
        return asked.stdout.split()

    shipped = [game for game in GAMES.values() if game != GAME]
    assert set(completed("compare")) >= {game.name for game in shipped}
    assert completed("compare", shipped[0].name) == opponent_names(shipped[0])
    assert "compare" in completed()


def test_positions_come_from_standard_input(tmp_path: Path) -> None:
    view = json.dumps(view_of(GAME))
    (tmp_path / "view.json").write_text(view)
    answers = []
    for word, given in (("-", view), (str(tmp_path / "view.json"), None)):
        words = ["advise", GAME.name, word, "--opponent", "search:8"]
        result = CliRunner().invoke(app, words, input=given)
        assert result.exit_code == 0, result.output
        answers.append(result.output)
    assert answers[0] == answers[1]
    result = CliRunner().invoke(app, ["advise", GAME.name, "-"], input="{")
    assert isinstance(result.exception, ValueError) and str(result.exception).startswith("-: not JSON")


def test_time_left_follows_from_the_share_that_is_done() -> None:
    with Progress(console=Console(file=io.StringIO())) as progress:
        bar = progress.add_task("", total=100)
        task = progress.tasks[bar]
        column = waiting.TimeLeft()
        assert "not known" in str(column.render(task))
        now = task.start_time or 0.0
        task.get_time = lambda: now + 120.0  # type: ignore[method-assign]
        progress.update(bar, completed=0.5)  # not even one of them
        assert str(column.render(task)) == "about 6:38:00 left"


def test_ctrl_c_during_the_imports_shows_nothing(tmp_path: Path) -> None:
    """A module that the command imports raises what Ctrl-C raises."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "card_envs", "games"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert done.stdout == done.stderr == ""
    (tmp_path / "typer.py").write_text("raise RuntimeError('broken')\n")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "RuntimeError: broken" in done.stderr


@pytest.mark.parametrize(
    "words",
    [["play"], ["watch"], ["compare", "random", "greedy"], ["survey"], ["generate", "--out", "games"], ["solve"]],
    ids=lambda words: words[0],
)
def test_options_are_those_of_the_game(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None reaches another argument of what the command makes, and nothing is begun."""
    monkeypatch.chdir(tmp_path)
    command, *rest = words
    for option in ("illegal_move=raise", "render_mode=human", "self=1", "game=x"):
        name = option.partition("=")[0]
        with pytest.raises(UnknownOption, match=f"unexpected keyword argument '{name}'. The options are "):
            run(command, SOLVED.name, *rest, "-o", option)
    assert not list(tmp_path.iterdir())


def test_options_that_are_too_deep_are_refused() -> None:
    with pytest.raises(ValueError, match=r"option x=\[\[.*…: not JSON: "):
        parse_options([f"x={'[' * 100_000}"])


def test_ctrl_c_does_not_wait_for_a_search(tmp_path: Path) -> None:
    """Its threads may have minutes left: the program ends before they do, with all that it had to say."""
    (tmp_path / "long.py").write_text(
        """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import card_envs.__main__ as program

@program.app.command()
def search() -> None:
    threads = ThreadPoolExecutor(1)
    try:
        threads.submit(time.sleep, 300)
        print("searching", flush=True)
        time.sleep(300)
    except KeyboardInterrupt:
        program.say("stopped")
        raise program.typer.Exit(program.STOPPED)

sys.argv = ["card-envs", "search"]
program.IS_PROGRAM = True
program.main()
"""
    )
    command = [sys.executable, str(tmp_path / "long.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "searching\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130 and child.stdout.read() == "stopped\n"


def test_a_file_does_not_speak_to_the_terminal(tmp_path: Path) -> None:
    """Its control characters are spelled out in an error."""
    record = Episode(SOLVED, SOLVED.options(), seed=1).record().model_dump()
    (tmp_path / "game.json").write_text(json.dumps(record | {"\x1b]0;pwned\x07\x1b[2J": 1}))
    done = run_python("-m", "card_envs", "review", "game.json", folder=tmp_path, status=2)
    assert "\\x1b]0;pwned\\x07\\x1b[2J" in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "compare GAME greedy OPPONENT --pairs 2 --review 2 --review-games 2 --by search:16",
        "watch GAME --opponents OPPONENT",
    ],
)
def test_a_folders_name_does_not_speak_to_the_terminal(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its control characters, which would clear the screen and name the window, are spelled out wherever it stands."""
    opponent = min(file.parent for file in MODELS.glob("*/*/weights.safetensors"))
    monkeypatch.chdir(tmp_path)
    name = "./x\x1b]0;pwned\x07\x1b[2J\x9b2J"
    shutil.copytree(opponent, name)
    named = {"GAME": opponent.parent.name, "OPPONENT": name}
    status, output = run(*(named.get(word, word) for word in words.split()))
    assert status == 0 and "x\\x1b]0;pwned" in output.replace("\n", "")
    assert not re.search(r"[\x07\x1b\x9b]", output)


@pytest.mark.parametrize(
    "words",
    [
        "compare GAME greedy trivial --pairs 20",
        "survey GAME greedy --episodes 20",
        "solve SOLVED --packs 2 --seconds 0.2",
    ],
)
def test_figures_in_files_have_the_digits_on_which_processors_agree(words: str, tmp_path: Path) -> None:
    named = {"GAME": GAME.name, "SOLVED": SOLVED.name}
    run(*(named.get(word, word) for word in words.split()), "--json", tmp_path / "figures.json")
    numbers = re.findall(r"[-: \[]([0-9]+\.[0-9]+)", (tmp_path / "figures.json").read_text())
    digits = [len(number.replace(".", "").lstrip("0")) for number in numbers]
    assert len(digits) > 5 and max(digits) <= 12


def said_of(words: str) -> str:
    """Return the error message and output of a command with wrong arguments."""
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code and isinstance(result.exception, (ValueError, SystemExit)), result
    return str(result.exception) + result.output


def test_numbers_of_commands_are_finite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command, parameter in command_parameters("float"):
        option = f"--{parameter.replace('_', '-')}"
        needed = {"generate": "--out OUT", "compare": "greedy"}.get(command, "")
        game = "" if command in ("serve", "bench", "watch") else SOLVED.name
        for value in ("nan", "-inf"):
            text = said_of(f"{command} {game} {option}={value} {needed}")
            assert option in text and re.search("expected a finite number|should be greater", text), text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("device", ["CPU", "cuda:"])
def test_devices_of_bench_are_named(device: str) -> None:
    assert f"expected cpu, or a GPU: cuda, cuda:0, cuda:1, …, got {device!r}" in said_of(f"bench --device={device}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-o deals=single --option deals=[7]", "deals is given twice; expected each option once"),
        ("--out=", "out: expected a folder, got an empty name"),
        ("--format minari --out=", "out: expected the name of a Minari data set"),
        ("--solve 0", "solve: seconds: expected a number above 0"),
    ],
)
def test_what_generate_cannot_do_is_said_before_anything_is_written(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "minari" in words:
        pytest.importorskip("minari")
    assert said in said_of(f"generate {SOLVED.name} --players greedy --games 4 --out OUT {words}")
    assert not list(tmp_path.iterdir())


MINE = """
from card_envs.opponents.scripted import RandomPolicy

class Mine(RandomPolicy):
    def __init__(self, game): pass
"""


def test_the_script_finds_modules_as_the_module_does(tmp_path: Path) -> None:
    """Those of the current folder; not with Python's option that leaves it out."""
    (tmp_path / "my_agents.py").write_text(MINE)
    script = tmp_path / "bin" / "card-envs"
    script.parent.mkdir()
    script.write_text("import sys\nfrom card_envs.__main__ import main\nsys.exit(main())\n")
    words = ["survey", next(iter(GAMES)), "my_agents:Mine", "--episodes", "4"]
    for how, status in (([script], 0), (["-m", "card_envs"], 0), (["-P", script], 2)):
        run_python(*how, *words, folder=tmp_path, status=status)


@pytest.mark.parametrize("words", ["watch --replay nowhere.json", "train --config nowhere.toml"])
def test_errors_go_to_stderr(words: str) -> None:
    """What a command has to say goes to stdout, which others read."""
    done = run_python("-m", "card_envs", *words.split(), status=2)
    assert done.stderr.startswith("error: ") and done.stdout == ""


def test_the_pictures_warnings_have_no_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Letters that matplotlib's font lacks, and those that UTF-8 lacks."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from card_envs.compare.report import save_picture

    figure = Figure()
    figure.suptitle("\u65e5 \u672c")
    save_picture(figure, tmp_path / "picture.png", 50)
    said = capsys.readouterr().err
    assert "picture.png: Glyph 26085" in said and ".py:" not in said and "Warning" not in said


def test_figures_that_round_to_zero_have_no_minus() -> None:
    none = Estimate(-0.00001, -0.00002, -0.000001)
    moves = [ActionValue(name, 0.5, -0.001, worlds=1, difference=-0.001) for name in "AB"]
    shown = [percent(none), on_one_line(Estimate(-0.001, -0.5, 0.5), False), hint_text(GAME, "she", moves)]
    shown += [on_one_line(Estimate(-0.0, -0.0, -0.0), False)]
    assert shown == [
        "0.00 %\n0.00 to 0.00",
        "0.0 ±0.5",
        "she would play A, expecting about +0.0 points. The others, compared with it:\n    B: +0.0",
        "0",
    ]


class Unasked:
    """A player that must not be asked."""

    def __init__(self, game: Game) -> None:
        pass

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        raise AssertionError("work was done before its outputs were checked")


UNASKED = f"{__name__}:Unasked"


COMPARE = ("compare", "high_card", "greedy", "trivial", "--pairs", "30")


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "high_card", UNASKED, "trivial", "--json"),
        ("compare", "high_card", UNASKED, "trivial", "--picture"),
        ("survey", "high_card", UNASKED, "--json"),
        ("solve", SOLVED.name, "--json"),
        ("advise", "high_card", "{json}", "--opponent", UNASKED, "--json"),
        ("bench", "--json"),
        ("play", "high_card", "--record"),
        ("watch", "high_card", "--record"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_files_that_cannot_be_written_are_named_first(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(view_of(GAME)))
    (tmp_path / "f.png").mkdir()
    words = tuple(word.format(json=tmp_path / "in.json") for word in words)
    for path, said in ((tmp_path / "no" / "file.png", "there is no folder"), (tmp_path / "f.png", "is a folder")):
        with pytest.raises(ValueError, match=rf"{path}: {said}"):
            run(*words, path)


def test_pictures_and_records_are_checked_first(tmp_path: Path) -> None:
    words = ("compare", "high_card", UNASKED, "trivial")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="no files can be written there"):
        run(*words, "--records", tmp_path / "file" / "games")
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=r"p\.docx: expected a name that ends in \."):
        run(*words, "--picture", tmp_path / "p.docx")


@pytest.mark.parametrize("words", [(*COMPARE[:-1], "64"), ("solve", SOLVED.name, "--packs", "3", "--positions", "50")])
def test_what_is_known_is_written_now_and_then(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed leaves the figures of its last minute, whole; a disk that is full stops nothing."""
    monkeypatch.setattr("card_envs.compare.waiting.SAVE_SECONDS", -1.0)
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
    env = bench.batch_out_of_step(GAME, 64)
    assert len(np.unique(env.states["num_played"])) > 3
