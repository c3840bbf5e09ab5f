"""Which part may know of which, read from the sources; the layers are contracts of import-linter (pyproject.toml)."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from card_envs.game import Game
from card_envs.games import GAMES
from tests.conftest import run_python

ROOT = Path(__file__).parents[1]

IMAGES = {"PIL", "matplotlib", "resvg_py"}
HEAVY = IMAGES | {"rich", "scipy", "stable_baselines3", "tensorboard", "torch", "torchrl", "typer"}
# Modules that only commands and users import.
MAY_BE_HEAVY = {
    "__main__", "bench", "_play", "_watch", "suits", "report", "_command", "console", "_waiting", "waiting", "gpu",
    "_actors",
}  # fmt: skip
# Shared tests that name games, as users see them; `tests/training` trains on one of the games.
OF_A_GAME = {"games", "training"}
NAMING = {
    "test_coverage.py", "test_installation.py", "test_installed.py", "test_documents.py", "test_names.py",
    "size.py", "test_trainers.py", "test_benchmarks.py", "test_search.py", "test_native.py",
}  # fmt: skip


def layers() -> list[set[str]]:
    """The layers of import-linter's contract, the lowest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    found = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [set(layer.split(" : ")) for layer in reversed(found)]


def test_every_part_has_a_layer() -> None:
    modules = {path.stem for path in (ROOT / "card_envs").glob("*.py") if not re.search(r"_v\d+$", path.stem)}
    folders = {path.parent.name for path in (ROOT / "card_envs").glob("*/__init__.py")}
    assert set().union(*layers()) == (modules | folders) - {"__init__"}


def sources(*folders: str) -> list[Path]:
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 3
    return files


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes(), str(file))


def imported(tree: ast.AST, lazy: bool = True, relative: bool = False) -> Iterator[str]:
    """Full names of imported modules; with `lazy` also those within functions and for type checkers.

    Relative imports are refused; with `relative` they are passed over.
    """
    for node in ast.walk(tree) if lazy else run_at_import(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert relative or node.level == 0, "relative import"
            if node.level == 0:
                yield from (f"{node.module}.{name.name}" for name in node.names)


def run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when a module is imported."""
    yield node
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return
    for child in ast.iter_child_nodes(node):
        yield from run_at_import(child)


def part(name: str) -> str:
    """The part of the package that a module belongs to: `card_envs.engine.rng` is of `engine`."""
    words = name.split(".")
    found = words[1] if len(words) > 1 else "__init__"
    known = {module.stem for module in (ROOT / "card_envs").iterdir()}
    return found if found in known else "__init__"  # a name of `card_envs/__init__.py`


def test_the_package_knows_nothing_of_training_and_tests() -> None:
    for file in sources("card_envs"):
        names = {name.split(".")[0] for name in imported(tree_of(file))}
        assert not names & {"training", "tests"}, file
    for file in sources("training"):
        tree = tree_of(file)
        names = {name.split(".")[0] for name in imported(tree, relative=True)}
        # Relative imports alone: in the wheel it is `card_envs.training`.
        assert not names & {"training", "tests"}, file


def test_only_commands_import_what_is_heavy() -> None:
    for file in sources("card_envs"):
        heavy = {name.split(".")[0] for name in imported(tree_of(file), lazy=False)} & HEAVY
        assert not heavy or file.stem in MAY_BE_HEAVY, f"{file}: {heavy}"


def loaded_by(*parts: str) -> list[set[str]]:
    """Names of the modules that a fresh process has loaded after each part of a program."""
    code = "".join(f"{part}\nimport sys, json; print(json.dumps(sorted(sys.modules)))\n" for part in parts)
    return [set(json.loads(line)) for line in run_python("-c", code).stdout.splitlines()]


def test_importing_the_package_is_cheap() -> None:
    (loaded,) = loaded_by("import card_envs")
    assert "card_envs" in loaded
    others = {*HEAVY, "numba", "llvmlite", "safetensors", "pydantic", "pygame", "training"}
    assert not {name.split(".")[0] for name in loaded} & others


PLAY = """import numpy, card_envs; from card_envs.envs.aec import CardEnv; game = card_envs.get_game({game!r}); \
env = CardEnv(game); env.reset(seed=0); env.step(env.last()[0]["action_mask"].argmax()); env.observe("player_0"); \
batch = card_envs.BatchEnv(game, 2); batch.step(batch.mask.argmax(axis=1))"""


def test_playing_loads_nothing_that_it_does_not_use(game: Game) -> None:
    """An environment with the default options, made, reset and stepped: no records, views or opponents, no pydantic."""
    if not game.package.startswith("card_envs.games."):
        pytest.skip("a game outside the package")
    loaded, with_record = loaded_by(PLAY.format(game=game.name), "env.record()")
    others = {*HEAVY, "safetensors", "pydantic", "pygame", "training"} - {"scipy"}  # which Numba loads where it is
    assert not {name.split(".")[0] for name in loaded} & others
    own = {name for name in loaded if name.startswith("card_envs.")}
    assert {part(name) for name in own} <= {
        "cards", "compiling", "engine", "envs", "game", "games", "options", "play", "system",
    }  # fmt: skip
    assert {name for name in own if name.startswith(f"{game.package}.")} == {
        f"{game.package}.{module}" for module in ("options", "rules")
    }
    assert {"pydantic", "card_envs.record", f"{game.package}.view"} <= with_record


@cache
def code_without_docstrings(file: Path) -> tuple[str, ...]:
    """Every name and text that the code of a file consists of, each once; comments and docstrings are prose."""
    tree = tree_of(file)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    words = list(imported(tree, relative=True))
    for node in ast.walk(tree):
        if id(node) not in docstrings:
            words += [value for _, value in ast.iter_fields(node) if isinstance(value, str)]
    return tuple(dict.fromkeys(words))


def naming(game: Game) -> re.Pattern[str]:
    """A game's name or title, not as a part of another word: "war" is not in "rewards".

    One word may mean something else, such as "hearts" or "speed": then only as a module, or with what follows in an id.
    """
    names = map(re.escape, (game.name, game.title, game.title.replace(" ", "")))
    after = r"(?![A-Za-z])" if "_" in game.name else r"(?=_v\d|-v\d|/)"
    module = rf"\bgames\.{game.name}(?!\w)"
    return re.compile(f"{module}|(?<![A-Za-z])({'|'.join(names)}){after}")


def test_a_games_name_appears_in_its_own_places_only(game: Game) -> None:
    """Its folder, its registry line, its `_v0.py`, its config and its tests."""
    if not game.package.startswith("card_envs.games."):
        pytest.skip("a game outside the package")
    own = ROOT / "card_envs" / "games" / game.name
    places = {ROOT / "card_envs" / "games" / "__init__.py", ROOT / "card_envs" / f"{game.name}_v{game.version}.py"}
    named = naming(game)
    for file in sources("card_envs", "training"):
        if file in places or own in file.parents:
            continue
        assert not named.search("\n".join(code_without_docstrings(file))), f"{file} names {game.title}"
    registry = (ROOT / "card_envs" / "games" / "__init__.py").read_text()
    assert registry.count(f"{game.name}.GAME") == 1


def test_shared_tests_name_no_game(game: Game) -> None:
    """What they need to know of one stands in its facts; High Card, of which new games are made, is their example."""
    if not game.package.startswith("card_envs.games."):
        pytest.skip("a game outside the package")
    named = naming(game)
    for file in sources("tests"):
        if file.name in NAMING or file.parts[len(ROOT.parts) + 1] in OF_A_GAME:
            continue
        assert not named.search("\n".join(code_without_docstrings(file))), f"{file} names {game.title}"


def test_every_folder_of_games_is_registered() -> None:
    folders = {file.parent.name for file in (ROOT / "card_envs" / "games").glob("*/rules.py")}
    assert folders == {game.name for game in GAMES.values() if game.package.startswith("card_envs.games.")}
