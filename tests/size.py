"""Measure how much code there is and how far one has to read: `python -m tests.size`."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from card_envs.games import GAMES

ROOT = Path(__file__).parents[1]
PACKAGE = ("card_envs", "training")
COMMANDS = "__main__.py"  # their options are their parameters, and they are named as they are typed
OWN_SHAPE = ("games", "scaffold")  # modules that have the functions of the contract, each its own
MOST_PARAMETERS, MOST_LINES = 8, 50
EMPTY_NAMES = ("one", "found", "given", "own", "said", "told", "shown", "asked", "made")


def sources(*folders: str) -> list[Path]:
    """Return the Python files below these folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def num_lines(*folders: str) -> int:
    """Return the number of lines of their Python files."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in sources(*folders))


def _nodes(*folders: str) -> Iterator[tuple[Path, ast.AST]]:
    for path in sources(*folders):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path, node


def large_functions() -> tuple[list[str], list[str]]:
    """Return the functions with too many parameters, and those with too many lines, commands left out."""
    wide, long = [], []
    for path, node in _nodes(*PACKAGE):
        if isinstance(node, ast.FunctionDef) and path.name != COMMANDS:
            name = f"{path.relative_to(ROOT)}:{node.name}"
            names = [arg.arg for arg in node.args.posonlyargs + node.args.args + node.args.kwonlyargs]
            if len(names) - ("self" in names) > MOST_PARAMETERS:
                wide.append(name)
            if (node.end_lineno or 0) - node.lineno >= MOST_LINES:
                long.append(name)
    return wide, long


def repeated_names() -> dict[str, list[str]]:
    """Return the names of functions that two modules define, and the modules; commands and games left out."""
    modules = defaultdict(list)
    for path in sources(*PACKAGE):
        if not set(OWN_SHAPE) & set(path.parts) and path.name != COMMANDS:
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef):
                    modules[node.name].append(str(path.relative_to(ROOT)))
    return {name: paths for name, paths in sorted(modules.items()) if len(paths) > 1}


def _defined(node: ast.AST) -> str:
    """Return the name that a node defines: an argument, a variable, an attribute or a function; empty: none."""
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
        return node.id if isinstance(node, ast.Name) else node.attr
    return node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""


def empty_names(*folders: str) -> Counter[str]:
    """Return how often each of the names is defined that say only that something exists."""
    names = Counter(_defined(node) for _, node in _nodes(*folders))
    return Counter({name: names[name] for name in EMPTY_NAMES})


def private_imports() -> tuple[int, int]:
    """Return the number of imports of a private module of another folder, and of all imports."""
    private = total = 0
    for path, node in _nodes(*PACKAGE):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PACKAGE:
            folder, module = path.relative_to(ROOT).parts[:-1], node.module.split(".")
            first = next((k for k, part in enumerate(module) if part.startswith("_")), None)
            total += 1
            private += first is not None and folder != tuple(module[:first])
    return private, total


def plans() -> list[str]:
    """Return the classes that declare what is played themselves: a game, a seed and options."""
    classes = []
    for _, node in _nodes(*PACKAGE):
        if isinstance(node, ast.ClassDef):
            fields = {ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
            classes += [node.name] * ({"game", "seed", "options"} <= fields)
    return classes


def progress_loops() -> list[str]:
    """Return the files that add a step to a progress bar of rich, once for each place."""
    calls = (
        (path, node.func)
        for path, node in _nodes(*PACKAGE)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )
    return [str(path.relative_to(ROOT)) for path, function in calls if function.attr == "add_task"]


def record_readers() -> list[str]:
    """Return the functions that read the moves of a record."""
    functions = ((path, node) for path, node in _nodes(*PACKAGE) if isinstance(node, ast.FunctionDef))
    return [
        f"{path.relative_to(ROOT)}:{function.name}"
        for path, function in functions
        if any(isinstance(node, ast.Attribute) and ast.unparse(node) == "record.moves" for node in ast.walk(function))
    ]


def matches(pattern: str, path: Path) -> int:
    """Return how often a pattern occurs in a file."""
    return len(re.findall(pattern, path.read_text(encoding="utf-8")))


def files_run(work: Callable[[], object]) -> list[str]:
    """Return the package's files whose functions run while `work` is done, in this thread; imports do not count."""
    seen = set()

    def note(frame: object, event: str, arg: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and code.co_name != "<module>":
            seen.add(code.co_filename)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    inside = (Path(name) for name in seen if name.startswith(tuple(f"{ROOT / folder}/" for folder in PACKAGE)))
    return sorted(str(path.relative_to(ROOT)) for path in inside)


def champion_move(game: str) -> Callable[[], object]:
    """Return a function that loads a game's `champion` and lets it make a move."""
    from card_envs import get_game, load_opponent
    from card_envs.envs.aec import env_with

    env = env_with(get_game(game), {})
    env.reset(seed=1)
    return lambda: load_opponent(f"{game}/champion").move(env, np.random.default_rng(0))


def iteration(game: str) -> Callable[[], object]:
    """Return an iteration of PPO in a game, ready to run."""
    from training.algorithms import create
    from training.config import Config
    from training.ranks import Ranks

    sizes = {"num_envs": 64, "num_steps": 8, "hidden": [16], "minibatch_size": 64}
    config = Config.model_validate({"game": game, "decisions": 1000, "device": "cpu", **sizes})
    learner = create(config, Ranks())
    learner.iterate(0.0)
    return lambda: learner.iterate(0.5)


def main() -> None:
    """Print the figures."""
    wide, long = large_functions()
    private, imports = private_imports()
    tests = sources("tests")
    print(f"lines of card_envs and training: {num_lines(*PACKAGE):,}")
    print(f"lines of tests: {num_lines('tests'):,}; of benchmarks: {num_lines('benchmarks'):,}")
    print(f"functions of more than {MOST_PARAMETERS} parameters: {len(wide)}: {', '.join(wide)}")
    print(f"functions of more than {MOST_LINES} lines: {len(long)}: {', '.join(long)}")
    names = repeated_names()
    print(f"function names in two modules: {len(names)}: {', '.join(names)}")
    empty = empty_names(*PACKAGE)
    counts = ", ".join(f"{name} {count}" for name, count in empty.most_common())
    print(f"names that say only that something exists: {empty.total()}: {counts}")
    for what, places in (
        ("classes that declare what is played", plans()),
        ("steps of progress bars", progress_loops()),
        ("functions that read the moves of a record", record_readers()),
    ):
        print(f"{what}: {len(places)}: {', '.join(places)}")
    print(f"imports of private modules: {private} of {imports}, {100 * private / imports:.0f} %")
    print(f"monkeypatches: {sum(matches('monkeypatch.set(?:attr|item)', path) for path in tests)}")
    print(f"test files that name CardEnv: {sum(matches('CardEnv', path) > 0 for path in tests)}")
    first, *_, last = GAMES
    for name, work in ((f"a move of {last}/champion", champion_move(last)), ("an iteration", iteration(first))):
        files = files_run(work)
        print(f"files run for {name}: {len(files)}: {', '.join(files)}")


if __name__ == "__main__":
    main()
