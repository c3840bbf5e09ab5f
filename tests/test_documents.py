"""The documents: their code blocks run, their figures are those measured, and the front page is short."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
import typer.main

from card_envs.__main__ import app
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import opponent_names
from card_envs.opponents._levels import levels
from card_envs.opponents.about import comparisons, figures_of
from card_envs.options import describe_options
from tests.test_imports import code_without_docstrings
from training.config import Config

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
BLOCKS = [
    (language, code)
    for page in PAGES
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.M | re.S)
]
LINES = list(dict.fromkeys(line for language, code in BLOCKS if language == "bash" for line in code.splitlines()))
# What makes a training run short; everything else runs as it stands.
SHORT = ["minutes=0.05", "num_envs=64", "num_steps=16", "quick_pairs=2", "final_pairs=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the documents' commands leave behind, so that they can run in any order."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "configs").symlink_to(ROOT / "configs")
    for config in ("configs/quickstart.toml", "configs/russian_bank.toml", "configs/best_response.toml"):
        run([sys.executable, "-m", "training.train", "--config", config, *SHORT], folder)
    run([sys.executable, "-m", "card_envs", "play", "back_alley", "--record", "game.json"], folder, text="quit\n")
    generate = ["generate", "back_alley", "--players", "greedy", "--games", "4", "--out", "games"]
    run([sys.executable, "-m", "card_envs", *generate, "--option", "deals=single", "--processes", "1"], folder)
    run([sys.executable, "-m", "card_envs", "export", "back_alley/ppo", "model.onnx"], folder)
    run([sys.executable, "-m", "card_envs", "import", "back_alley", "model.onnx", "runs/imported"], folder)
    for name in ("mine", "mine_1", "mine_2"):
        shutil.copytree(folder / "runs" / "imported", folder / "runs" / name)
    return folder


def run(command: list[str], folder: Path, text: str | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_block_is_known() -> None:
    assert {language for language, _ in BLOCKS} <= {"bash", "python"}
    assert len(BLOCKS) > 5


@pytest.mark.processes
@pytest.mark.parametrize("code", [code for language, code in BLOCKS if language == "python"])
def test_python_blocks_run(code: str, folder: Path) -> None:
    run([sys.executable, "-c", code], folder)


@pytest.mark.processes
@pytest.mark.parametrize("line", LINES)
def test_commands_run(line: str, folder: Path) -> None:
    words = shlex.split(line, comments=True)
    if not words or words[0] in ("git", "cd", "pip"):
        return
    if words[0] == "make":  # what it would do, without doing it
        assert "python" in run(["make", "-n", "-C", str(ROOT), *words[1:]], folder)
        return
    assert words[:2] == ["python", "-m"], f"a document shows a command that this test does not know: {line}"
    extra: list[str] = []
    if {"training.train", "train"} & set(words):
        extra = SHORT
    if "compare" in words:
        extra = ["--pairs", "3", *["--review", "20"] * ("--review" in words)]
    if "solve" in words:
        extra = ["--packs", "2"]
    if "generate" in words:
        extra = ["--games", "4", "--out", f"written-{LINES.index(line)}"]
    if "survey" in words:
        extra = ["--episodes", "20"]
    if "bench" in words:
        extra = ["--seconds", "0.05"]
    run([sys.executable, *words[1:], *extra], folder, text="quit\n")


# What documents, docstrings and messages name exists

APP = typer.main.get_command(app)
COMMANDS = {
    name: {"--help", *(option for part in command.params for option in (*part.opts, *part.secondary_opts))}
    for name, command in APP.commands.items()  # type: ignore[attr-defined]
}
TRAIN = {"--config", "--resume", "--processes", "--help"}  # of training.train, which reads its own
# Folders of programs with options of their own: a text that names one may name its options.
PROGRAMS = {
    folder: set(re.findall(r'"(--[a-z-]+)"', "".join(path.read_text() for path in (ROOT / folder).glob("*.py"))))
    for folder in ("training", "benchmarks", "examples", "tests")
}
OTHERS = {  # options of other programs: git, pip, ruff, torchrun, pytest, typer, linkers, esbuild, what `check` runs
    "--editable", "--index-url", "--install-completion", "--nproc-per-node", "--nnodes", "--node-rank", "--master-addr",
    "--pyargs", "--maxfail", "--ignore", "--events", "--sources", "--export", "--no-entry", "--stack-first",
    "--strip-all", "--version", "--bundle", "--outdir", "--fix", "--always", "--dirty", "--exclude", "--abbrev",
}  # fmt: skip
EXTERNAL = {  # names of other libraries and of what programs write, which no code here has
    "breakpoint", "taskset", "profiler", "max_episode_steps", "SubprocVecEnv", "AsyncVectorEnv", "EventSource",
    "QValueActor", "ActionMask", "MultiAgentOffPolicyAlgorithm", "seconds_playing", "seconds_valuing",
    "seconds_updating", "back_alley_v1", "_v1", "nohup", "fixed_size_list", "serialize_game_and_state", "embedding_bag",
    "GymEnv", "dist_fn", "RLModule", "FORWARDED_ALLOW_IPS", "ProbabilisticActor",
}  # fmt: skip
KEY = re.compile(r"(?<![\w.-])([a-z_]{3,})=(?=[\w\[\"'{])")
NO_PATH = re.compile(r"^js/built|^card_envs/native|-v\d$|_$")  # what is built, ids of environments, parts of a text
PLACEHOLDER = re.compile(r"GAME|NAME|TARGET|my_game|FOLDER|[<*{…]")
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
FILES = [Path(name) for name in TRACKED if (ROOT / name).is_file()]


@cache
def places() -> set[str]:
    """Files and folders, from any folder on."""
    return {"/".join(path.parts[i:j]) for path in FILES for i, j in combinations(range(len(path.parts) + 1), 2)}


@cache
def texts() -> dict[str, str]:
    """Documents, settings with their comments, and all texts in code, by their file."""
    found = {}
    for path in FILES:
        text = (ROOT / path).read_text(encoding="utf-8") if path.suffix in (".md", ".toml", ".py") else ""
        if (path.suffix == ".md" and path.name != "CHANGELOG.md") or path.parts[0] == "configs":
            found[str(path)] = text
        elif path.suffix == ".py" and path.parts[0] in ("card_envs", "training"):
            strings = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
            found[str(path)] = "\n".join(value for value in strings if isinstance(value, str))
    return found


def wrong_options(name: str, text: str) -> Iterator[str]:
    """Options that nothing has, or that the command does not have which a line names before them."""
    folders = [folder for folder in PROGRAMS if re.search(rf"\b{folder}[./]", f"{name} {text}")]
    known = OTHERS.union(TRAIN, *COMMANDS.values(), *(PROGRAMS[folder] for folder in folders))
    yield from set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text)) - known
    for command, words in re.findall(r"(?:card_envs|`) ?([a-z-]+)((?: [^\s`#|]+)*)", text):
        if command in COMMANDS and command != "train":
            yield from (f"{command} {word}" for word in {*re.findall(r" (--[a-z-]+)", words)} - COMMANDS[command])


def wrong_paths(name: str, text: str) -> Iterator[str]:
    """Files and folders of this repository that it does not have."""
    tops = "|".join(sorted({re.escape(path.parts[0]) for path in FILES if len(path.parts) > 1}))
    for path in re.findall(rf"(?<![\w/.:-])(?:{tops})/[\w./*{{}}<>…-]*\w", text):
        if path not in places() and not PLACEHOLDER.search(path) and not NO_PATH.search(path):
            yield path


def wrong_names(name: str, text: str) -> Iterator[str]:
    """Names between backticks, alone or before `=`, that stand in no code."""
    for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text):
        match = re.fullmatch(r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:\(\)| ?= ?.*)?", span)
        for word in re.findall(r"\w+", match[1]) if match and not PLACEHOLDER.search(span) else ():
            if word not in EXTERNAL and not {word, f"_{word}"} & words_of_code():
                yield span


def wrong_settings(name: str, text: str) -> Iterator[str]:
    """Settings that training does not have: in a line that calls it, and in what its own code and files say."""
    keys = {key for line in re.findall(r"(?:training\.train|card_envs train) (.*)", text) for key in KEY.findall(line)}
    if re.match(r"(training|configs)/.*\.(py|toml)$", name):
        keys.update(KEY.findall(text))
    yield from keys - {"key", *Config.model_fields}.union(*(describe_options(game.options) for game in GAMES.values()))


@cache
def words_of_code() -> set[str]:
    """Every word of code, without docstrings and comments in Python."""
    kinds = {".toml", ".c", ".h", ".js", ".mjs", ".rs", ".html", ".ipynb", ".yml", ".json"}
    found = {word for path in FILES for part in path.parts for word in (part, Path(part).stem)}
    for path in FILES:
        if path.suffix == ".py" and path.name != Path(__file__).name:
            found.update(re.findall(r"\w+", " ".join(code_without_docstrings(ROOT / path))))
        elif path.suffix in kinds:
            found.update(re.findall(r"\w+", (ROOT / path).read_text(encoding="utf-8")))
    return found


@pytest.mark.skipif(not FILES, reason="not a checkout of git, which says what belongs to it")
@pytest.mark.parametrize("wrong", [wrong_options, wrong_paths, wrong_names, wrong_settings])
def test_what_is_named_exists(wrong: Callable[[str, str], Iterator[str]]) -> None:
    found = [f"{name}: {what}" for name, text in texts().items() for what in wrong(name, text)]
    assert len(texts()) > 200
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (wrong_options, "`--no-such-option`"), (wrong_options, "`serve --pairs 3`"),
        (wrong_options, "python -m card_envs compare back_alley greedy --tables 3"), (wrong_paths, "training/lost.py"),
        (wrong_names, "`no_such_function()`"), (wrong_names, "`no_such_setting = 3`"),
        (wrong_settings, "python -m training.train --config x no_such=3"),
    ],
)  # fmt: skip
def test_what_does_not_exist_is_found(wrong: Callable[[str, str], Iterator[str]], text: str) -> None:
    assert list(wrong("README.md", text))


def test_the_front_page_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120  # a row of a table can't be broken


def test_figures_are_those_measured() -> None:
    """`make figures` writes them."""
    run([sys.executable, str(ROOT / "docs" / "figures.py"), "--check"], ROOT)


@pytest.mark.parametrize("game", list(GAMES.values()), ids=str)
def test_a_figure_has_one_source(game: Game) -> None:
    """The front page, the command `games` and the levels for people agree about a player."""
    if not comparisons(game):
        pytest.skip("none of its players was measured")
    readme = (ROOT / "README.md").read_text()
    for name in ("greedy", "small", "search:64", "strong", "champion"):
        _, figure, _ = figures_of(name, game)
        (row,) = re.findall(rf"^\| `{name}` \|.*$", readme, re.M)
        assert f"| {figure} |" in row or not figure
        if game.is_solitaire:
            shown = [level.strength for level in levels(game, opponent_names(game)) if level.player == name]
            assert not figure or shown in ([], [f"wins {figure.split()[0]} of 100 games"])


def test_the_notebook_is_kept_without_outputs() -> None:
    """The site's build runs it."""
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text())["cells"]
    assert len(cells) > 5
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_broken_links_are_found(tmp_path: Path) -> None:
    faults = runpy.run_path(str(ROOT / "docs" / "links.py"))["faults"]
    (tmp_path / "a.html").write_text('<p id=here><a href="b.html#there"><a href="#here"><a href="https://x.org/">')
    (tmp_path / "b.html").write_text('<p id=there><img src="../c.png">')
    assert faults(tmp_path) == ["b.html: ../c.png: no such file"]
    (tmp_path / "b.html").write_text('<script src="https://x.org/x.js"></script>')
    assert (
        faults(tmp_path)
        == ["b.html: loads https://x.org/x.js", "a.html: b.html#there: no such place on that page"][::-1]
    )
