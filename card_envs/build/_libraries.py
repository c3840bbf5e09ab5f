"""`build_libraries`: from the loops that environments and players ask for to libraries, each with its manifest."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from card_envs.compare.spread import over_processes
from card_envs.compiling._digest import HEX_DIGITS
from card_envs.compiling._library import ENTRY, FOLDER, FORMAT, TARGET, WITHOUT_RULES, read_checked, read_facts
from card_envs.compiling.loops import TracedLoop
from card_envs.game import Game
from card_envs.system.files import check_replaceable, error_text, replace_file, replace_folder, write_json
from card_envs.system.processes import PARENT, cores

COMPILING = Path(__file__).parents[1] / "compiling"
COMPILER = ("_numba.py", "_ir.py", "targets.py")  # files that make machine code of a loop
CACHE = ".objects"  # machine code of loops, by what it was made from
Progress = Callable[[str, int, int], object]


class Loop(Protocol):
    """A task that one process compiles."""

    @property
    def name(self) -> str: ...
    @property
    def package(self) -> str | None: ...


Task = TypeVar("Task", bound=Loop)
Result = TypeVar("Result")


class BuildError(RuntimeError):
    """A library could not be built."""


class BuiltLoop(NamedTuple):
    """A loop as machine code.

    Attributes:
        name: the name that `specialize` gives it.
        symbol: the name of its entry.
        arguments, returns: kinds, as in a manifest, but with dtypes described.
        objects: the name of its file in the cache by target.
    """

    name: str
    symbol: str
    arguments: list[Any]
    returns: list[Any]
    objects: dict[str, str]


def build_libraries(
    games: Sequence[Game], targets: Sequence[str], folder: Path = FOLDER, jobs: int = 0,
    progress: Progress = lambda what, done, of: None,
) -> list[Path]:  # fmt: skip
    """Write a library for each game and target, and one of the loops without rules.

    Args:
        games: the games.
        targets: names of targets (`targets.py`).
        folder: written: a folder for each target; the same games there are replaced once all is complete.
        jobs: processes; 0: one for each core.
        progress: called with the task, how much of it is done, and of how much.

    Returns:
        The folders written.

    Raises:
        ValueError: an unknown target, or there is no linker for it.
        BuildError: something that it needs is missing, or failed.
        OSError: the folder can't be written.
    """
    from card_envs.compiling.targets import target_of

    wanted = [target_of(name) for name in targets]
    workers = jobs or cores()
    for target in wanted:
        target.link(folder, [])  # before anything takes minutes
        check_replaceable(folder / target.name, target_file)
    _headers()
    (folder / CACHE).mkdir(parents=True, exist_ok=True)
    traced = trace_loops(games, workers, progress)
    built = compile_all(traced, targets, folder / CACHE, workers, progress)
    return [_write_target(folder, target, built) for target in wanted]


def trace_loops(games: Sequence[Game], workers: int, progress: Progress) -> list[TracedLoop]:
    """Return the loops that games ask for."""
    unique: dict[TracedLoop, None] = {}
    running: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory() as room, ThreadPoolExecutor(workers) as threads:

        def trace(game: Game) -> list[TracedLoop]:
            file = Path(room) / game.name
            command = [sys.executable, "-m", "card_envs.build._trace", game.package, str(file)]
            more = {"NUMBA_DISABLE_JIT": "1", PARENT: str(os.getpid())}  # which the engine reads as it is imported
            _run(command, f"the trace of {game.name}", running, **more)
            loops: list[TracedLoop] = pickle.loads(file.read_bytes())
            return loops

        progress("tracing calls", 0, len(games))
        try:
            for number, loops in enumerate(threads.map(trace, games)):
                unique.update(dict.fromkeys(loops))
                progress("tracing calls", number + 1, len(games))
        except BaseException:  # Ctrl-C, too: the threads wait for these processes
            threads.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.kill()
            raise
    return list(unique)


def compile_all(
    traced: Iterable[TracedLoop], targets: Sequence[str], objects: Path, workers: int, progress: Progress
) -> dict[str, list[BuiltLoop]]:
    """Return the loops of each library as machine code, made in several processes."""
    # A loop with many arrays is a search, which takes longest: it comes first.
    tasks = sorted(traced, key=lambda loop: (-len(str(loop.signature)), loop[:6], str(loop.signature)))
    libraries: dict[str, list[BuiltLoop]] = {}
    done = in_processes(build_loop, tasks, workers, progress, targets=tuple(targets), objects=objects)
    for loop, built in done.items():
        game = loop.specialization().game
        libraries.setdefault(game.name if game else WITHOUT_RULES, []).append(built)
    return {name: sorted(loops) for name, loops in sorted(libraries.items())}


def in_processes(
    work: Callable[..., Result], tasks: Sequence[Task], workers: int, progress: Progress,
    what: str = "compiling loops", **fixed: Any,
) -> dict[Task, Result]:  # fmt: skip
    """Call a function for each task in several new processes; return the results. Raises BuildError naming the task."""
    outcomes: dict[Task, Result] = {}
    progress(what, 0, len(tasks))
    with closing(over_processes(partial(_attempt, partial(work, **fixed)), tasks, workers or cores())) as results:
        for task, result, error in results:
            if error:
                raise BuildError(f"{task.name} for {task.package}: {error}")
            outcomes[task] = result
            progress(what, len(outcomes), len(tasks))
    return outcomes


def _attempt(work: Callable[[Task], Result], task: Task) -> tuple[Task, Any, str]:
    """Return a task with a function's result for it and an empty text, or with None and the error as text."""
    try:
        return task, work(task), ""
    except Exception as error:
        return task, None, str(error) or type(error).__name__


def build_loop(loop: TracedLoop, targets: tuple[str, ...], objects: Path) -> BuiltLoop:
    """Compile a loop for some targets, or take it from the cache."""
    from card_envs.compiling import _ir
    from card_envs.compiling._specialize import rebuild
    from card_envs.compiling.targets import object_code, target_of

    bound = rebuild(loop.specialization()).function
    inputs = f"{bound.__name__} {loop.signature}"
    symbol = f"card_envs_{bound.__name__}_{_sum(inputs.encode())[:8]}"
    inputs = f"{compiler_digest(*COMPILER)} {inputs}"
    files = {name: _sum(f"{inputs} {target_of(name)}".encode())[:32] for name in targets}
    missing = [name for name, file in files.items() if not (objects / f"{file}.o").exists()]
    kinds = objects / f"{_sum(inputs.encode())[:32]}.json"
    if missing or not kinds.exists():
        entry = _ir.compile_entry(bound, loop.signature, symbol)
        for name in missing:
            replace_file(objects / f"{files[name]}.o", object_code(entry.text, target_of(name)))
        replace_file(kinds, json.dumps([entry.arguments, entry.returns]))
    arguments, returns = json.loads(kinds.read_bytes())
    return BuiltLoop(bound.__name__, symbol, arguments, returns, files)


@cache
def compiler_digest(*parts: str) -> str:
    """Return a digest of what makes machine code: these files of `compiling/`, and its libraries."""
    sources = b"".join((COMPILING / name).read_bytes() for name in parts)
    return _sum(sources) + version("numba") + version("llvmlite")


def _write_target(folder: Path, target: Any, built: dict[str, list[BuiltLoop]]) -> Path:
    """Link the libraries of a target and put them in place, beside those of other games."""
    final = folder / target.name
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        for game, loops in built.items():
            if game == WITHOUT_RULES:
                loops = [*loops, *_loops_of_others(final, folder / CACHE, loops)]
            library = room / f"{game}{target.suffix}"
            objects = [folder / CACHE / f"{loop.objects[target.name]}.o" for loop in loops]
            _run(target.link(library, objects), f"linking {library.name} for {target.name}")
            manifest = {"library": library.name, "sha256": _sum(library.read_bytes())}
            manifest |= _manifest(loops, target.name)
            write_json(room / f"{game}.manifest.json", manifest)
        _run(target.compile_c(Path(__file__).with_name("entry.c"), room / ENTRY, _headers()), "compiling entry.c")
        files = {file.name: file.read_bytes() for file in sorted(room.iterdir())}
    put_in(final, files, {"format": FORMAT, "machine": target.machine, "needs": target.needs})
    return final


def put_in(folder: Path, files: dict[str, bytes], facts: dict[str, Any], outdated: Collection[str] = ()) -> None:
    """Put files into a target's folder, beside those of other builds, and describe them in its TARGET file.

    Args:
        folder: the target's folder.
        files: contents by name.
        facts: added to the description of the target.
        outdated: names of files to leave out.
    """
    before = read_facts(folder) if target_file(folder) else {"sha256": {}}
    current = {name for name in before["sha256"] if (folder / name).exists()} - {*outdated}
    sums = {name: before["sha256"][name] for name in sorted(current)}
    sums |= {name: _sum(content) for name, content in files.items()}
    described = {**before, **facts, "sha256": sums}
    files = {**files, TARGET: json.dumps(described, indent=1).encode()}
    replace_folder(folder, files, lambda place: {*target_file(place), *outdated} if target_file(place) else ())


def target_file(folder: Path) -> set[str]:
    """Return the name of the file by which a target's folder is known; nothing if it is not one."""
    if not os.path.lexists(folder / TARGET):
        return set()
    read_facts(folder)  # raises for what no build writes
    return {TARGET}


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _loops_of_others(target: Path, objects: Path, loops: list[BuiltLoop]) -> list[BuiltLoop]:
    """Return the loops without rules that other games asked for, of current sources; their machine code is cached."""
    file = target / f"{WITHOUT_RULES}.manifest.json"
    try:
        manifest = json.loads(read_checked(file, read_facts(target)["sha256"][file.name]))
    except (OSError, ValueError, KeyError):
        return []

    def expand(kind: list[Any]) -> list[Any]:
        if kind[0] == "array":
            return ["array", manifest["dtypes"][kind[1]], *kind[2:]]
        return [kind[0], *map(expand, kind[1:])]

    names, symbols = {loop.name for loop in loops}, {loop.symbol for loop in loops}
    edited = {name[:-HEX_DIGITS] for name in names}
    return [
        BuiltLoop(
            name, entry["symbol"], [*map(expand, entry["arguments"])], entry["returns"], {target.name: entry["object"]}
        )
        for name, entries in manifest["loops"].items()
        if name in names or name[:-HEX_DIGITS] not in edited
        for entry in entries
        if entry["symbol"] not in symbols and (objects / f"{entry.get('object')}.o").exists()
    ]


def _manifest(loops: list[BuiltLoop], target: str) -> dict[str, Any]:
    """Return loops as data; dtypes are listed once."""
    dtypes: dict[str, int] = {}

    def number_dtypes(kind: list[Any]) -> list[Any]:
        if kind[0] == "array":
            return ["array", dtypes.setdefault(json.dumps(kind[1]), len(dtypes)), *kind[2:]]
        return [kind[0], *map(number_dtypes, kind[1:])]

    by_name: dict[str, list[Any]] = {}
    for loop in loops:
        arguments = [number_dtypes(kind) for kind in loop.arguments]
        known = {"symbol": loop.symbol, "arguments": arguments, "returns": loop.returns}
        by_name.setdefault(loop.name, []).append(known | {"object": loop.objects[target]})
    return {"loops": by_name, "dtypes": [json.loads(described) for described in dtypes]}


def _headers() -> Path:
    """Return the folder of Python's headers. Raises BuildError."""
    folder = Path(sysconfig.get_paths()["include"])
    if not (folder / "Python.h").exists():
        raise BuildError(f"{folder / 'Python.h'}: not there; Debian and Ubuntu have it in python3-dev")
    return folder


def _run(command: list[str], what: str, running: list[subprocess.Popen[str]] | None = None, **more: str) -> None:
    """Run a program, with more in its environment; add it to `running`. Raises BuildError with its last lines."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, env={**os.environ, **more}, stdout=pipe, stderr=pipe, text=True, errors="replace"
        )
    except OSError as error:
        raise BuildError(f"{what}: {error_text(error)}") from None
    if running is not None:
        running.append(process)
    with process:
        try:
            output, errors = process.communicate()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise BuildError(f"{what} failed:\n" + "\n".join((errors or output).splitlines()[-12:]))
