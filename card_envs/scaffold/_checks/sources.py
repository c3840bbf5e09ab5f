"""The sources of a game, to locate faults."""

from __future__ import annotations

import ast
import difflib
import traceback
from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import card_envs
from card_envs.game import Game

MODULES = ("__init__", "rules", "bot", "view", "options")


class Finding(NamedTuple):
    """A fault and its place."""

    file: Path
    line: int
    text: str

    def __str__(self) -> str:
        here = Path.cwd()
        file = self.file.relative_to(here) if self.file.is_relative_to(here) else self.file
        return f"{file}:{self.line}: {self.text}"


class Source:
    """A Python file. Raises SyntaxError."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.tree = ast.parse(file.read_bytes(), str(file))

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """The functions of the module, by name."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    def line_of(self, name: str) -> int:
        """Return the line at which a name of the module is defined or assigned; 1 if there is none."""
        for node in self.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                if node.name == name:
                    return node.lineno
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(part, ast.Name) and part.id == name for t in targets for part in ast.walk(t)):
                    return node.lineno
        return 1

    def function_at(self, line: int) -> str:
        """Return the name of the function at a line; empty if there is none."""
        inside = (name for name, node in self.functions.items() if node.lineno <= line <= (node.end_lineno or 0))
        return next(inside, "")

    def lines_with(self, attribute: str) -> list[int]:
        """Return the lines that access an attribute of this name."""
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, ast.Attribute))
        return [node.lineno for node in nodes if node.attr == attribute]

    def finding(self, name: str, text: str) -> Finding:
        """Return a fault of a name of the module."""
        return Finding(self.file, self.line_of(name), text)


class Sources(NamedTuple):
    """The folder of a game and its readable files, by module."""

    folder: Path
    files: dict[str, Source]

    def blame(self, error: BaseException) -> Finding:
        """Return the deepest line of the game that an exception passed through."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if self.owns(frame.filename)]
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if not frames:
            return Finding(self.folder, 1, text)
        where = frames[-1]
        inside = "" if where.name == "<module>" else f"{where.name}: "
        return Finding(Path(where.filename), where.lineno or 1, inside + text)

    def owns(self, file: str | Path) -> bool:
        """Return whether a file belongs to the game."""
        return Path(file).is_relative_to(self.folder)

    def place(self, file: Path, line: int, text: str) -> Finding:
        """Return a fault at a line, with the name of the function there."""
        source = self.files.get(file.stem)
        function = source.function_at(line) if source and source.file == file else ""
        return Finding(file, line, f"{function}: {text}" if function else text)


def read_sources(folder: Path) -> Sources | list[Finding]:
    """Return the sources of a game's folder; or the files that are missing or not Python."""
    files: dict[str, Source] = {}
    faults = []
    for module in MODULES:
        file = folder / f"{module}.py"
        try:
            files[module] = Source(file)
        except FileNotFoundError:
            faults.append(Finding(file, 1, "this file is missing"))
        except SyntaxError as error:
            faults.append(Finding(file, error.lineno or 1, f"SyntaxError: {error.msg}: {(error.text or '').strip()}"))
    if not (folder / "RULES.md").exists():
        faults.append(Finding(folder / "RULES.md", 1, "this file is missing: numbered rules, notation, tables"))
    return faults or Sources(folder, files)


def module_of(game: Game, name: str) -> ModuleType:
    """Return a module of a game as it was written, without the contract's defaults."""
    return import_module(f"{game.package}.{name}")


def checkout() -> Path | None:
    """Return the repository that contains this package, if it has configurations and tests."""
    root = Path(card_envs.__file__).parents[1]
    return root if all((root / part).is_dir() for part in ("configs", "tests/games")) else None


def did_you_mean(name: str, known: Iterable[Any]) -> str:
    """Return a suggestion for a message about an unknown name."""
    near = difflib.get_close_matches(name, map(str, known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
