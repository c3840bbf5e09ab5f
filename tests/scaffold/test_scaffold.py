"""New games made by `new-game`, and what `check` says of them and of games with one fault each."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from card_envs.__main__ import app
from card_envs.games import GAMES
from card_envs.scaffold import _check
from card_envs.scaffold._check import check
from card_envs.scaffold._checks import tested
from card_envs.scaffold._checks.tested import groups, run_tests
from card_envs.scaffold._new_game import REGISTRY, NewGame, new_game, next_steps, plan, register_game
from tests.conftest import ROOT, run_python
from tests.system.test_processes import children, is_running, started, wait_until

TITLE = " ".join(("The", "Old", "Maids", "of", "the", "High", "Hills"))  # no line gets too long with it
NAME = TITLE.lower().replace(" ", "_")
KNOWN = next(iter(GAMES.values()))
REFEREE_IS_MISSING = "this is still the template's referee"
LEFT_OUT = (".git", ".venv", "runs", "__pycache__", ".*_cache", ".hypothesis")


def run(folder: Path, *arguments: str, packages: Path | None = None, status: int = 0) -> str:
    """What a command of Python prints, with the code of this checkout or of the copy that the folder is."""
    paths = (packages, folder) if packages else (folder,)
    done = run_python(*arguments, folder=folder, paths=paths, status=status, NUMBA_CACHE_DIR=str(folder / "cache"))
    return done.stdout


# A new game


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout with a new game in it, made and checked by the commands."""
    folder = tmp_path_factory.mktemp("new") / "checkout"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    said = run(folder, "-m", "card_envs", "new-game", NAME, "--title", TITLE)
    assert f"configs/{NAME}.toml" in said and f"python -m card_envs check {NAME}" in said
    return folder


@pytest.mark.processes
def test_a_new_game_is_in_all_its_places(checkout: Path) -> None:
    assert f"({TITLE}): 2 seats" in run(checkout, "-m", "card_envs", "games", NAME)
    tests = ("tests/test_layout.py", "tests/test_imports.py")
    run(checkout, "-m", "pytest", "-q", "-k", f"{NAME} or registered or one_way", *tests)
    test = "tests/testing/test_referee.py::test_the_referee_is_the_games_own"
    assert REFEREE_IS_MISSING in run(checkout, "-m", "pytest", "-q", "-k", NAME, test, status=1)
    assert "TO-1 Twelve cards" in (checkout / "card_envs" / "games" / NAME / "RULES.md").read_text()
    for command in (("check", "--fix"), ("format", "--check")):  # the first sorts imports by their new names
        run(checkout, "-m", "ruff", *command, "card_envs", "tests")


@pytest.mark.slow
def test_a_new_game_with_a_referee_of_its_own_is_all_right(checkout: Path) -> None:
    """All tests on it pass then, as any other referee would do."""
    referee = checkout / "tests" / "games" / NAME / "referee.py"
    referee.write_text(f"{referee.read_text()}\n\nMINE = True\n")
    assert f"{NAME}: all right" in run(checkout, "-m", "card_envs", "check", NAME)
    run(checkout, "-m", "mypy")


@pytest.mark.processes
def test_a_new_game_as_a_package(tmp_path: Path) -> None:
    """Built, installed, checked whole and played."""
    if not find_spec("hatchling"):
        pytest.skip("hatchling, which builds the package, is not installed: it is in the extra dev")
    made, installed = tmp_path / "made", tmp_path / "installed"
    new_game = ("-m", "card_envs", "new-game", NAME, "--title", TITLE, "--folder", str(made))
    assert f"pip install --editable {made / NAME}" in run(tmp_path, *new_game)
    for command in (("check", "--fix"), ("format", "--check")):
        run(tmp_path, "-m", "ruff", *command, "--config", "line-length=120", str(made))
    referee = made / NAME / NAME / "tests" / "referee.py"
    referee.write_text(f"{referee.read_text()}\n\nMINE = True\n")
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target")
    run(tmp_path, *pip, str(installed), str(made / NAME))
    assert f"{NAME} ({TITLE})" in run(tmp_path, "-m", "card_envs", "games", packages=installed)
    checked = run(tmp_path, "-m", "card_envs", "check", NAME, packages=installed)
    assert f"{NAME}: all right" in checked and "skipped 1: once the rules are settled, write" in checked
    compare = ("-m", "card_envs", "compare", NAME, "trivial", "greedy", "--pairs", "20")
    assert "20 mirrored pairs" in run(tmp_path, *compare, packages=installed)
    run(tmp_path, "-m", "pytest", "-q", "--pyargs", f"{NAME}.tests", packages=installed)


# Names and places


@pytest.mark.parametrize(
    ("name", "title", "said"),
    [
        ("Rummy", "", "name 'Rummy': expected a Python name in lower case"),
        ("gin-rummy", "", "name 'gin-rummy': expected"),
        ("class", "", "name 'class': expected"),
        ("../rummy", "", "name '../rummy': expected"),
        (KNOWN.name, "", f"there is a game {KNOWN.name}"),
        ("high_card", "", "there is a game high_card"),
        ("other", KNOWN.title, f"there is a game {KNOWN.name}"),
        ("other", '"quoted"', "title '\"quoted\"': expected"),
    ],
)
def test_wrong_names_are_refused(name: str, title: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        plan(name, title)


def test_a_package_does_not_hide_another(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is a module json already"):
        plan("json", folder=tmp_path)


@pytest.mark.parametrize(
    ("title", "prefix"), [("Gin Rummy", "GR"), ("Hearts", "HE"), ("Crazy 8s", "CR"), ("Oh Hell Again", "OH")]
)
def test_rules_are_numbered_by_initials(title: str, prefix: str, tmp_path: Path) -> None:
    new_game(plan("other", title, tmp_path))
    assert f"- {prefix}-1 " in (tmp_path / "other" / "other" / "RULES.md").read_text()


def small_checkout(folder: Path) -> NewGame:
    """A new game in a folder with the places of a checkout."""
    for part in ("card_envs/games", "configs", "tests/games"):
        (folder / part).mkdir(parents=True)
    shutil.copy(ROOT / REGISTRY, folder / REGISTRY)
    return NewGame("other", "Other", folder, "card_envs.games.other", "tests.games.other", True)


def listing(folder: Path) -> list[tuple[str, str]]:
    return [(str(path), path.read_text() if path.is_file() else "") for path in sorted(folder.rglob("*"))]


@pytest.mark.parametrize("taken", ["card_envs/games/other", "tests/games/other", "card_envs/other_v0.py"])
def test_nothing_is_overwritten(tmp_path: Path, taken: str) -> None:
    game = small_checkout(tmp_path)
    (tmp_path / taken).mkdir()
    before = listing(tmp_path)
    with pytest.raises(FileExistsError, match=taken):
        new_game(game)
    assert listing(tmp_path) == before


def test_all_files_of_a_new_game_are_listed(tmp_path: Path) -> None:
    game = small_checkout(tmp_path)
    assert set(map(str, new_game(game))) < {path for path, _ in listing(tmp_path)}
    assert next_steps(game)


def test_the_registry_stays_in_order() -> None:
    text = (ROOT / REGISTRY).read_text()
    names = re.findall(r"(\w+)\.GAME,", text)
    for name in ("zanzibar", "aces", *(f"a_game_with_a_long_name_{number}" for number in range(5))):
        text = register_game(text, name)
        names.append(name)
    assert re.findall(r"(\w+)\.GAME,", text) == sorted(names)
    (imports,) = re.findall(r"^from card_envs.games import \((.*?)\)$", text, re.MULTILINE | re.DOTALL)
    assert imports.replace(",", "").split() == sorted(names)
    with pytest.raises(ValueError, match="add aces there yourself"):
        register_game("GAMES = {}", "aces")


# Faulty games


class Fault(NamedTuple):
    """One edit of the template, and what `check` must say of it."""

    file: str
    old: str
    new: str
    said: str
    at: str | None = None  # text of the line that it must name, where it is not the edited one; "" for the first line
    group: str = ""  # of tests that find it, where others come before: these alone are run


FAULTS = {
    "syntax": Fault("rules.py", "def legal(", "def legal((", "SyntaxError: "),
    "import": Fault("bot.py", "above_card, highest", "above_crad, highest", "ImportError: cannot import name"),
    "not compiled": Fault(
        "bot.py", "@rule\ndef trivial(", "def trivial(", "trivial: expected the decorator @rule", "def t"
    ),
    "no function": Fault(
        "rules.py",
        "def score_margin(",
        "def score_marginal(",
        "score_margin(state, seat) is missing: Return the points by which",
        "",
    ),
    "parameters": Fault(
        "rules.py",
        "def observe(state: State, seat: int, obs: Obs)",
        "def observe(state: State, obs: Obs, seat: int)",
        "observe: takes (state, obs, seat); the contract: observe(state, seat, obs)",
    ),
    "constant": Fault(
        "rules.py", "WORST_SCORE = -3.0", "WORST = -3.0", "WORST_SCORE is missing: the worst possible reward", ""
    ),
    "no win": Fault(
        "options.py", '"win"] = ', '"match"] = ', 'option reward: expected a Literal with "win"', "class Options"
    ),
    "schema": Fault(
        "view.py",
        "    legal: list[str] |",
        "    moves: list[str] |",
        "SCHEMA: expected a JSON schema with",
        "SCHEMA: dict",
    ),
    "array of bool": Fault(
        "rules.py",
        '("history", np.int8, 2',
        '("history", np.bool_, 2',
        "ValueError: history: Numba has no arrays of np.bool_ in records; use np.int8",
        "STATE = state_dtype(",
    ),
    "phases": Fault(
        "view.py",
        'SEAT_NAMES = ("you", "opponent")',
        'SEAT_NAMES = ("you", "opponent")\nPHASES = {"turn up": range(rules.PACK_SIZE)}',
        "PHASES: expected words such as draw, or turn_up, got 'turn up'",
        "PHASES = ",
    ),
}
PLAYED = {  # of each way in which a test tells of a place; `at` is empty where the test is named
    "unknown field": Fault(
        "rules.py", "state.hands[seat] &= ~bit", "state.hnads[seat] &= ~bit", "play: AttributeError: "
    ),
    "not compiled": Fault(
        "rules.py", "@rule\ndef pay(", "def pay(", "Untyped global name 'pay'", "pay(state, int(state.seat))"
    ),
    "table": Fault(
        "RULES.md", "| `led` | 12 |", "| `led` | 13 |", "python -m card_envs layout", "", "the rules of RULES.md"
    ),
    "set and number": Fault(
        "bot.py", "winners = hand &", "winners = (hand - 1) &", "greedy: a uint64 meets an int64 and becomes"
    ),
    "hidden allocation": Fault("rules.py", "mask[:] = 0", "mask[:] = mask + mask", "this allocates memory"),
    "outside an array": Fault(
        "rules.py", "spread(obs, AT.hand, ", "spread(obs, AT.scores + 1, ", "observe: IndexError: index 50 is out of"
    ),
    "no ValueError": Fault(
        "view.py",
        "seen = read(View, given)",
        "seen = View(**given)",
        "argument after ** must be a mapping",
        group="positions, views and moves",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder; what is compiled goes there, and what is imported from there is forgotten."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    path = sys.path.copy()
    yield tmp_path
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def made(folder: Path, name: str) -> Path:
    """A new game's package, which can be imported now."""
    new_game(plan(name, "High Crown", folder))
    sys.path.insert(0, str(folder / name))
    importlib.invalidate_caches()
    return folder / name / name


def made_faulty(folder: Path, name: str, fault: Fault) -> tuple[Path, int]:
    """A new game with a fault; returns the file and line at which it is."""
    file = made(folder, name) / fault.file
    text = file.read_text()
    assert text.count(fault.old) == 1
    place = text.index(fault.old)
    text = text.replace(fault.old, fault.new)
    file.write_text(text)
    return file, text.count("\n", 0, place if fault.at is None else text.index(fault.at)) + 1


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_are_found_in_their_places(folder: Path, kind: str) -> None:
    name = f"faulty_{list(FAULTS).index(kind)}"
    file, line = made_faulty(folder, name, FAULTS[kind])
    found = [str(finding) for finding in check(name).findings]
    assert any(finding.startswith(f"{file}:{line}: {FAULTS[kind].said}") for finding in found), found


@pytest.mark.processes
@pytest.mark.parametrize("kind", PLAYED)
def test_faults_in_play_are_found(folder: Path, kind: str) -> None:
    name = f"played_{list(PLAYED).index(kind)}"
    fault = PLAYED[kind]
    file, line = made_faulty(folder, name, fault)
    if fault.group:
        arguments = groups(importlib.import_module(name).GAME, file.parent, ROOT)[fault.group]
        findings, *_ = run_tests(file.parent, ROOT, arguments)
    else:
        findings = check(name).findings
    found = [str(finding) for finding in findings]
    where = "tests/" if fault.at == "" else f"{file}:{line}: "
    assert any(where in finding and fault.said in finding for finding in found), found


@pytest.mark.processes
def test_play_without_an_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "MOST_SECONDS", 40)
    made_faulty(folder, "endless", Fault("rules.py", "    state.hands[seat] &= ~bit", "    while True: pass  # ", ""))
    (found,) = check("endless").findings
    assert re.search(r"test_interpreted_rules\w+: does not end within 40 s$", str(found)), found
    for file in Path("/proc").glob("[0-9]*/cmdline"):  # of all processes, where there is such a folder
        with suppress(OSError):  # it has just ended
            assert b"['endless']" not in file.read_bytes(), "what the test had started still plays"


@pytest.mark.processes
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_tests_end_with_the_command(folder: Path) -> None:
    """Also where it is killed."""
    made_faulty(folder, "unending", Fault("rules.py", "    state.hands[seat] &= ~bit", "    while True: pass  # ", ""))
    command = [sys.executable, "-m", "card_envs", "check", "unending"]
    path = os.pathsep.join([str(folder / "unending"), str(ROOT)])
    with started(folder, *command[1:], more={"PYTHONPATH": path}) as process:
        wait_until(lambda: len(children(process.pid)) >= 1, process)
        running = children(process.pid)
        assert running and process.poll() is None
        process.kill()
        wait_until(lambda: not any(map(is_running, running)))
        assert process.wait(60) != 0


@pytest.mark.processes
def test_a_process_that_dies_is_a_fault(folder: Path) -> None:
    made_faulty(folder, "dying", Fault("view.py", "    return CARDS[action]", "    __import__('os')._exit(7)", ""))
    (found,) = check("dying").findings
    assert found.text.endswith("ends the process: exit status 7") and "test_" in found.text


def test_without_the_tests_only_declarations_are_inspected(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is not called success."""
    monkeypatch.setattr(_check, "checkout", lambda: None)
    made(folder, "sources_only")
    assert check("sources_only") == ([], 0, {})
    shown = CliRunner().invoke(app, ["check", "sources_only"])
    assert shown.exit_code == 3 and "only the declarations were inspected" in shown.output


def test_missing_modules_are_named(folder: Path) -> None:
    (made(folder, "missing_files") / "bot.py").unlink()
    (finding,) = check("missing_files").findings
    assert finding.text.startswith("ModuleNotFoundError: No module named 'missing_files.bot'")


def test_unknown_games_are_value_errors() -> None:
    with pytest.raises(ValueError, match=f"did you mean {KNOWN.name}"):
        check(KNOWN.name[1:])
    with pytest.raises(ValueError, match="unknown game"):
        check("no_such_package.game")
