"""Libraries built ahead of time: the same bytes as compiled code, no compiler, and nothing stale or strange."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from card_envs.build import build_libraries
from card_envs.build._libraries import CACHE, _loops_of_others, _write_target
from card_envs.build._warm_up import warm_up
from card_envs.compiling import _library as library
from card_envs.compiling import _specialize as specializing
from card_envs.compiling._digest import HEX_DIGITS
from card_envs.compiling._rules import INTERPRETED
from card_envs.compiling.targets import target_of
from card_envs.engine import kernels
from card_envs.engine.batch import MIN_TABLES_A_THREAD, BatchEnv
from card_envs.engine.legality import find_illegal
from card_envs.scaffold.high_card import GAME as TINY
from tests.conftest import ROOT, run_python

WITHOUT_COMPILER = """
import sys

class NoCompiler:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ImportError(f"{name} was asked for")

sys.meta_path.insert(0, NoCompiler())
from card_envs.__main__ import main
from card_envs.build._warm_up import warm_up
from card_envs.games import GAMES
from card_envs.scaffold.high_card import GAME
GAMES[GAME.name] = GAME
"""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(INTERPRETED, reason="nothing is compiled"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library of the smallest game."""
    folder = tmp_path_factory.mktemp("native")
    (target,) = build_libraries([TINY], ["native"], folder)
    assert target == folder / "native"
    return folder


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Lets this process look for libraries in another folder, as a fresh process would."""
    caches: list[Any] = [
        specializing._specialized, library.chosen_target, library._library, library._sums, library._caller,
        library._warn,
    ]  # fmt: skip

    def forget() -> None:
        for cached in caches:
            cached.cache_clear()

    def look_in(folder: Path) -> None:
        monkeypatch.setenv(library.SWITCH, str(folder))
        forget()

    yield look_in
    monkeypatch.undo()
    forget()


def test_everything_runs_without_a_compiler(built: Path) -> None:
    run_python("-c", WITHOUT_COMPILER + "warm_up(GAME)", CARD_ENVS_NATIVE=str(built))


@pytest.mark.parametrize(
    "words",
    [
        "compare high_card random greedy --pairs 4",
        "survey high_card --episodes 4",
        "generate high_card --players greedy --games 2 --processes 1 --out out",
        "watch high_card --delay 0",
        "serve --stdio",
    ],
)
def test_commands_run_without_a_compiler(built: Path, words: str, tmp_path: Path) -> None:
    code = f"{WITHOUT_COMPILER}sys.argv = ['card_envs', *{words.split()!r}]\nmain()"
    request = json.dumps({"id": 1, "call": "table", "body": {"game": TINY.name, "opponents": "greedy"}})
    done = run_python("-c", code, folder=tmp_path, stdin=request + "\n", CARD_ENVS_NATIVE=str(built))
    assert "was asked for" not in done.stdout + done.stderr, done.stdout + done.stderr


def test_libraries_give_the_same_bytes(built: Path, use: Callable[[Path], None]) -> None:
    """Every loop of a warm-up run, with copies of its arguments, as a library has it and as Numba compiles it."""
    use(built)
    compared = set()

    def both(wanted: specializing.Specialization, found: Any) -> Any:
        rebuilt = specializing.rebuild(wanted)
        bound, compiled = rebuilt.function, specializing._Compiled(rebuilt, "a loop")

        def checked(*arguments: Any) -> Any:
            copies = copied(arguments, {})
            result = found(*arguments)
            assert compiled(*copies) == result or result != result
            assert parts_of(copies) == parts_of(arguments), bound.__name__
            compared.add(bound.__name__)
            return result

        return checked

    with specializing.watching_specialize(both):
        warm_up(TINY)
    assert len(compared) > 20


def copied(value: Any, memory: dict[int, bytearray]) -> Any:
    """A copy of an argument, to the byte: NumPy would leave out what lies between the fields of records.

    Arrays that share memory from its beginning share it afterwards, also as different types: `memory` has the copies so
    far by address.
    """
    if isinstance(value, np.ndarray):
        whole: Any = value
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        start = whole.__array_interface__["data"][0]
        if start not in memory or len(memory[start]) < whole.nbytes:
            memory[start] = bytearray(whole.tobytes())
        offset = value.__array_interface__["data"][0] - start
        return np.ndarray(value.shape, value.dtype, memory[start], offset, value.strides)
    if isinstance(value, tuple):
        parts = [copied(part, memory) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def parts_of(value: Any) -> Any:
    """The bytes of all arrays of arguments."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return [parts_of(part) for part in value] if isinstance(value, tuple) else value


# What is edited, damaged or foreign


def answer(use: Callable[[Path], None], folder: Path) -> tuple[bool, list[str]]:
    """Whether a loop comes from the library in a folder, and the warnings; it is right in any case."""
    use(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loop: Any = specializing.specialize(find_illegal)
        assert loop(0, 2, np.array([[3], [1]], np.uint64), 5, np.array([1, 1])) == 1
    return not hasattr(loop, "stats"), [str(one.message) for one in caught]


@pytest.mark.parametrize("value", ["/nowhere", "false", "~", str(ROOT / "docs"), str(ROOT / "LICENSE"), "a" * 300])
def test_a_folder_without_libraries_is_said(use: Callable[[Path], None], value: str) -> None:
    is_used, (warned,) = answer(use, Path(value))
    assert not is_used and library.SWITCH in warned and repr(value)[:200] in warned
    assert "expected 0, or a folder" in warned


@pytest.mark.parametrize(
    "make",
    [
        lambda file: file.write_text("[" * 100_000),
        lambda file: file.write_text("7"),
        lambda file: file.write_text('{"format": 1, "sha256": {"../../x": "0"}}'),
        lambda file: file.write_bytes(b"\xff\xfe\0"),
        Path.mkdir,
    ],
)
def test_target_files_that_no_build_wrote(
    built: Path, use: Callable[[Path], None], tmp_path: Path, make: Callable[[Path], object]
) -> None:
    """They are said and left alone: by who looks for libraries, and by a build into that folder."""
    folder = tmp_path / "libraries"
    shutil.copytree(built / "native", folder / "native")
    file = folder / "native" / library.TARGET
    file.unlink()
    make(file)
    is_used, warned = answer(use, folder)
    assert not is_used and str(file if file.exists() else folder) in warned[0]
    before = sorted(folder.rglob("*"))
    with pytest.raises((ValueError, OSError), match=library.TARGET):
        build_libraries([TINY], ["native"], folder)
    assert sorted(folder.rglob("*")) == before


def test_builds_of_single_games_keep_the_loops_of_others(
    built: Path, use: Callable[[Path], None], tmp_path: Path
) -> None:
    """The library without rules has what any of the games asked for, unless its source was edited since."""
    folder = tmp_path / "libraries"
    shutil.copytree(built, folder)
    target, objects = folder / "native", folder / CACHE

    def loops() -> dict[str, Any]:
        manifest = json.loads((target / "engine.manifest.json").read_bytes())
        assert isinstance(manifest["loops"], dict)
        return manifest["loops"]

    whole = _loops_of_others(target, objects, [])
    assert {loop.name for loop in whole} == loops().keys()
    (asked,) = (loop for loop in whole if loop.name.startswith("find_illegal_"))
    edited = asked._replace(name=asked.name[:-HEX_DIGITS] + "0" * HEX_DIGITS)
    for loop, expected in ((asked, loops().keys()), (edited, {*loops()} - {asked.name} | {edited.name})):
        _write_target(folder, target_of("native"), {library.WITHOUT_RULES: [loop]})
        assert loops().keys() == expected
        assert answer(use, folder) == (loop is asked, [])


def changed(built: Path, folder: Path, name: str, edit: Callable[[bytes], bytes]) -> Path:
    """A copy of the folder in which a file is another one."""
    shutil.copytree(built, folder)
    file = folder / "native" / name
    file.write_bytes(edit(file.read_bytes()))
    return folder


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("engine.so", lambda content: content[:-1]),
        ("engine.so", lambda content: content[:5000] + b"\x90" + content[5001:]),
        ("engine.so", lambda content: b""),
        ("engine.manifest.json", lambda content: content[: len(content) // 2]),
        ("engine.manifest.json", lambda content: content.replace(b"int64", b"uint64", 1)),
        ("engine.manifest.json", lambda content: b"{}"),
        (library.ENTRY, lambda content: content[:-1]),
    ],
)  # fmt: skip
def test_damaged_files_are_left_alone(
    built: Path, use: Callable[[Path], None], tmp_path: Path, name: str, edit: Callable[[bytes], bytes]
) -> None:
    is_used, warned = answer(use, changed(built, tmp_path / "native", name, edit))
    assert not is_used and len(warned) == 1 and name in warned[0] and "build" in warned[0]


@pytest.mark.parametrize("field", ["format", "machine", "needs"])
def test_foreign_targets_are_left_alone(built: Path, use: Callable[[Path], None], tmp_path: Path, field: str) -> None:
    other = {"format": 99, "machine": "linux-sparc", "needs": ["sse99"]}

    def edit(content: bytes) -> bytes:
        return json.dumps({**json.loads(content), field: other[field]}).encode()

    is_used, warned = answer(use, changed(built, tmp_path / "native", "target.json", edit))
    assert not is_used and [library.SWITCH in one for one in warned] == [False] * (field == "format") + [True]


def test_a_library_is_used_for_the_types_that_it_has(built: Path, use: Callable[[Path], None]) -> None:
    assert answer(use, built) == (True, [])
    loop: Any = specializing.specialize(find_illegal)
    actions = np.array([1, 1], np.int32)  # it was built for int64
    assert loop(0, 2, np.array([[3], [1]], np.uint64), 5, actions) == 1
    legal = np.array([[3, 0], [1, 0]], np.uint64)[:, :1]  # not in one piece
    assert loop(0, 2, legal, 5, np.array([1, 1])) == 1


EDITED = """
import sys
from card_envs.engine import kernels
from card_envs.engine.batch import MIN_TABLES_A_THREAD, BatchEnv
from card_envs.scaffold.high_card import GAME
import numpy as np
env = BatchEnv(GAME, 2, seed=1)
for _ in range(20):
    env.step(env.mask.argmax(axis=1))
print(env.rewards.sum(), env.states.tobytes().hex()[:64], "numba" in sys.modules)
"""


def test_an_edited_rule_is_compiled(built: Path, tmp_path: Path) -> None:
    """The loop of an edited rule comes from the compiler, and plays by the rule as it stands."""
    shutil.copytree(ROOT / "card_envs", tmp_path / "card_envs", ignore=shutil.ignore_patterns("__pycache__", "models"))
    rules = tmp_path / "card_envs" / "scaffold" / "high_card" / "rules.py"

    def played(folder: Path | str) -> list[str]:
        return run_python("-c", EDITED, folder=tmp_path, paths=(tmp_path,), CARD_ENVS_NATIVE=str(folder)).stdout.split()

    before = played(built)
    assert before[-1] == "False"
    text = rules.read_text(encoding="utf-8")
    edited = text.replace("state.rewards[winner] = np.float32(1)", "state.rewards[winner] = np.float32(3)")
    assert edited != text
    rules.write_text(edited, encoding="utf-8")
    after = played(built)
    assert after[-1] == "True" and after == played("0")
    assert before[:2] != after[:2]


def test_no_path_of_this_machine_is_in_a_library(built: Path) -> None:
    for folder in (built, library.FOLDER):
        for file in folder.glob("[!.]*/*"):
            content = file.read_bytes()
            for path in (str(ROOT), sys.prefix, str(Path(np.__file__).parent), "site-packages"):
                assert path.encode() not in content, f"{file}: {path}"


def test_batches_with_threads_use_the_library(built: Path, use: Callable[[Path], None]) -> None:
    use(built)
    assert not hasattr(specializing.specialize(kernels.step_tables, TINY), "signatures")  # ready from the start
    one, two = (BatchEnv(TINY, 2 * MIN_TABLES_A_THREAD, seed=1, num_threads=threads) for threads in (1, 2))
    for _ in range(5):
        for env in (one, two):
            env.step(env.mask.argmax(axis=1))
    assert one.states.tobytes() == two.states.tobytes() and one.obs.tobytes() == two.obs.tobytes()
