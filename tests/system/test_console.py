"""Commands at broken and narrow terminals: files are written whole, and what is said is said in words."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.main import get_command

from card_envs import bench
from card_envs.__main__ import app, main
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents.networks import folder, onnx
from card_envs.opponents.policy import Decisions
from card_envs.record import GameRecord
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.system import console, files
from tests.conftest import ROOT, command_parameters, new_env, play_randomly, run_python

SOLVED = next(game.name for game in GAMES.values() if game.solver)
SHIPPED = next(game.name for game in GAMES.values() if game != HIGH_CARD)
COMPARE = "compare high_card greedy trivial --pairs 8"
# What makes each command write each of its files, by the name of the parameter.
OUTPUTS = {
    ("compare", "json_file"): f"{COMPARE} --json OUT.json",
    ("compare", "picture"): f"{COMPARE} --picture OUT.png",
    ("compare", "records"): f"{COMPARE} --records OUT",
    ("score", "json_file"): f"score trivial --game {SHIPPED} --quick --json OUT.json",
    ("review", "json_file"): "review game.json --by search:8 --json OUT.json",
    ("review", "picture"): "review game.json --by search:8 --picture OUT.png",
    ("survey", "json_file"): "survey high_card --episodes 16 --json OUT.json",
    ("generate", "out"): "generate high_card --players greedy --games 20 --processes 1 --format jsonl --out OUT",
    ("solve", "json_file"): f"solve {SOLVED} --packs 2 --positions 50 --json OUT.json",
    ("advise", "json_file"): "advise high_card view.json --opponent greedy --json OUT.json",
    ("bench", "json_file"): "bench high_card --json OUT.json",
    ("export", "model"): f"export {SHIPPED}/small OUT.onnx",
    ("import", "folder"): "import high_card view.json OUT",
    ("play", "record"): "play high_card --record OUT.json",
    ("watch", "record"): "watch high_card --delay 0 --record OUT.json",
    ("watch", "gif"): "watch high_card --seed 1 --delay 0.02 --gif OUT.gif",
    ("new-game", "folder"): "new-game at_the_console --folder OUT",
}
# What makes each command read each of its files.
INPUTS = {
    ("review", "record"): "review IN",
    ("solve", "deal"): f"solve {SOLVED} --deal IN",
    ("advise", "position"): "advise high_card IN",
    ("import", "model"): "import high_card IN OUT",
    ("play", "resume"): "play high_card --resume IN",
    ("watch", "replay"): "watch --replay IN",
}
# Of a server's tables, of libraries, of runs (tests/training/test_tools.py).
OTHERS = {("serve", "folder"), ("build", "folder"), ("plot", "runs"), ("plot", "out")}
OR_NAMES = {("generate", "out")}  # a folder, or the name of a data set


class Boom:
    """A policy that plays nothing."""

    def __init__(self, game: Game) -> None:
        pass

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        raise RuntimeError("[bold]no[/] :boom:")

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        raise RuntimeError


def without_reader() -> Any:
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "wb", 0)


# What stdout is, and the exit codes: lost output is an error, what is less than Unicode is not.
BROKEN: dict[str, tuple[Callable[[], Any], set[int]]] = {
    "reader gone": (lambda: wrapped(without_reader()), {1}),
    "ascii": (lambda: wrapped(io.BytesIO(), "ascii"), {0}),
}


def wrapped(raw: Any, encoding: str = "utf-8") -> io.TextIOWrapper:
    return io.TextIOWrapper(raw if isinstance(raw, io.BytesIO) else io.BufferedWriter(raw), encoding)


def run(
    words: str,
    stdout: Any,
    monkeypatch: pytest.MonkeyPatch,
    stdin: Any = None,
    program: Callable[[], Any] = main,
    stderr: Any = None,
) -> Any:
    """The exit code of a command at these streams."""
    target = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["card_envs", *words.split()])
        patch.setattr(sys, "stdin", stdin or io.StringIO())
        patch.setattr(sys, "stdout", stdout)
        patch.setattr(sys, "stderr", stderr or wrapped(target, "ascii"))
        with pytest.raises(SystemExit) as ended:
            program()
        error = target.getvalue()
    assert b"Traceback" not in error, error
    return ended.value.code


def shown(
    words: str, monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8", program: Callable[[], Any] = main
) -> tuple[Any, str]:
    """The exit code of a command and what it printed, errors as well, with nothing to read."""
    target = io.BytesIO()
    both = wrapped(target, encoding)
    code = run(words, both, monkeypatch, program=program, stderr=both)
    return code, target.getvalue().decode(encoding)


@pytest.fixture(autouse=True)
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own with a view, and no work that takes long."""
    monkeypatch.chdir(tmp_path)
    fresh = console.Console()
    monkeypatch.setattr(console, "console", fresh)
    monkeypatch.setattr("card_envs.__main__.console", fresh)
    env = new_env(HIGH_CARD)
    Path("view.json").write_text(json.dumps(env.view(env.agent_selection)), encoding="utf-8")
    play_randomly(env, 1, moves=3).record().save("game.json")
    for name in dir(bench):
        if name.endswith(("_rate", "_seconds")):
            monkeypatch.setattr(bench, name, lambda *arguments, **named: bench.Throughput(1.0, 1.0))
    monkeypatch.setattr(
        folder,
        "save_model",
        lambda place, game, model: files.replace_folder(place, {"model": model}, lambda made: ["model"]),
    )
    monkeypatch.setattr(onnx, "model_file", files.read_file)


def test_all_files_of_commands_are_tried() -> None:
    assert sorted([*command_parameters("Path"), *OR_NAMES]) == sorted([*OUTPUTS, *INPUTS, *OTHERS])


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        *((output, "reader gone") for output in OUTPUTS),
        (("compare", "json_file"), "ascii"),
        (("play", "record"), "ascii"),
    ],
)
def test_files_are_whole_whatever_becomes_of_what_is_printed(
    output: tuple[str, str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lost output ends a command; a game that was played until then is saved."""
    pytest.importorskip({"picture": "matplotlib", "gif": "resvg_py", "model": "onnx"}.get(output[1], "json"))
    make, expected = BROKEN[kind]
    code = run(OUTPUTS[output], make(), monkeypatch, io.StringIO("quit\n"))
    written = list(Path().glob("OUT*"))
    assert code in expected and not list(Path().glob(".new-*"))
    assert written or (kind == "reader gone" and output[1] != "record")
    for path in written:
        assert list(path.iterdir()) if path.is_dir() else path.stat().st_size > 0
        if path.suffix == ".json":
            (GameRecord.load if output[1] == "record" else files.read_json)(path)


@pytest.mark.parametrize("shell", ["{} | head -c 1 >/dev/null", "{} >/dev/full"])
def test_a_shell_breaks_nothing(shell: str) -> None:
    if os.name != "posix" or not Path("/dev/full").exists():
        pytest.skip("there is no such shell")
    command = f"'{sys.executable}' -m card_envs compare {SHIPPED} greedy trivial --pairs 2 --json OUT.json"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", shell.format(command)], env=environment, capture_output=True, timeout=300)
    assert files.read_json(Path("OUT.json"))["pairs"] == 2
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr


# Encodings


def test_help_in_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, command in ("", None), *get_command(app).commands.items():  # type: ignore[attr-defined]
        code, text = shown(f"{name} --help", monkeypatch, "ascii")
        assert code == 0 and "Usage:" in text and text.isascii()
        if command is None:
            assert "..." not in text.replace("[ARGS]...", ""), "a summary is cut off: its first sentence is too long"


def test_what_an_encoding_lacks_is_a_question_mark() -> None:
    target = io.BytesIO()
    with contextlib.redirect_stdout(wrapped(target, "ascii")) as stdout:
        console.prepare_streams()
        print("1 ± 2 é", flush=True)
    assert target.getvalue() == b"1 ? 2 ?\n" and not stdout.closed


# What is said


def test_names_are_no_markup_and_no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = shown(f"compare high_card greedy {__name__}:Boom --pairs 2", monkeypatch)
    assert code == 2 and f"{__name__}:Boom: RuntimeError: [bold]no[/] :boom:" in text
    name = "a:boom:[bold]b"
    for printed in (console.say, console.complain, console.console.print):
        target = wrapped(io.BytesIO())
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", target)
            patch.setattr(sys, "stderr", target)
            printed(name)
        assert name in target.buffer.getvalue().decode()  # type: ignore[attr-defined]


@pytest.mark.parametrize("input_", INPUTS, ids=" ".join)
def test_files_that_cannot_be_read_are_named_in_words(input_: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("folder").mkdir()
    for name, said in (
        ("nofile", "there is no such file"),
        ("folder", "is a folder"),
        ("view.json/x", "there is a file where a folder should be"),
        ("~nobody_of_that_name/x", "no such user"),
    ):
        code, text = shown(INPUTS[input_].replace("IN", name), monkeypatch)
        assert code == 2 and text.startswith(f"error: {name}: ") and text.count("\n") == 1, text
        assert said in text and "Errno" not in text, text


def test_errors_of_the_system_in_words(tmp_path: Path) -> None:
    for number in files.SAID:
        said = files.error_text(OSError(number, os.strerror(number), "a/b"))
        assert said.startswith("a/b: ") and "Errno" not in said
    assert files.error_text(OSError(5, "Input/output error")) == "Input/output error"
    assert files.error_text(OSError("in words")) == files.error_text(ValueError("in words")) == "in words"


def test_saving_where_there_is_no_folder_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    target = io.BytesIO()
    run("play high_card", wrapped(target), monkeypatch, io.StringIO("save no/x\nsave .\nhint nobody\nquit\n"))
    text = target.getvalue().decode()
    assert "no/x: there is no folder no" in " ".join(text.split()) and ".: is a folder" in text and "Errno" not in text


# Files of people


def test_files_with_a_byte_order_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As editors on Windows write them."""
    env = new_env(HIGH_CARD)
    env.record().save("game.json")
    for name in ("game.json", "view.json"):
        Path(name).write_bytes(b"\xef\xbb\xbf" + Path(name).read_bytes())
    assert GameRecord.load("game.json") == env.record()
    assert files.read_json(Path("view.json"))["seat"] == 0
    assert shown("advise high_card view.json --opponent greedy", monkeypatch)[0] == 0
    assert shown("play high_card --resume game.json", monkeypatch)[0] == 0


def test_home_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    env = new_env(HIGH_CARD)
    env.record().save("~/game.json")
    assert GameRecord.load("~/game.json") == env.record()
    assert shown("play high_card --resume=~/game.json --record=~/again.json", monkeypatch)[0] == 0
    assert shown("new-game some_game --folder=~/deep", monkeypatch)[0] == 0
    assert (home / "again.json").exists() and (home / "deep" / "some_game").is_dir() and not Path("~").exists()


def test_the_program_of_training_is_like_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints its help everywhere, and says in words what can't be read."""
    pytest.importorskip("torch")
    from training import train

    assert isinstance(train.app, console.Program)
    code, text = shown("--help", monkeypatch, "ascii", train.app)
    assert code == 0 and "Usage:" in text
    assert run("--help", BROKEN["reader gone"][0](), monkeypatch, program=train.app) == 1
    for words, problem in (("no", "no: no such file"), ("~nobody_of_that_name/x", "no such user")):
        code, text = shown(f"--config {words}", monkeypatch, program=train.app)
        assert code == 2 and problem in text and "Errno" not in text and text.count("\n") == 1, text


def test_importing_the_commands_changes_no_hook() -> None:
    run_python("-c", "import sys; import card_envs.__main__; assert sys.excepthook is sys.__excepthook__")
