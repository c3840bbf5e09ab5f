"""Nothing that Windows lacks is needed: every module imports, files are read and written, without POSIX's extras."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(file for part in ("card_envs", "training") for file in (ROOT / part).rglob("*.py"))

LACKING = ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource", "syslog", "spwd", "crypt", "nis", "readline")
ONLY_HERE = {
    "os": """O_CLOEXEC O_NONBLOCK O_NOFOLLOW O_DIRECTORY O_SYNC O_DSYNC O_NOCTTY O_PATH O_TMPFILE O_ASYNC O_NDELAY chown
        chroot confstr ctermid fchdir fchmod fchown fdatasync fork forkpty fpathconf getegid geteuid getgid getgroups
        getloadavg getpgid getpgrp getpriority getresgid getresuid getsid getuid getxattr initgroups killpg lchown
        listxattr lockf major makedev memfd_create minor mkfifo mknod nice openpty pathconf pipe2 posix_fadvise
        posix_fallocate posix_spawn posix_spawnp pread preadv pwrite pwritev readv register_at_fork removexattr
        sched_getaffinity sched_setaffinity sched_yield sendfile setegid seteuid setgid setgroups setpgid setpriority
        setregid setresgid setresuid setreuid setsid setuid setxattr splice statvfs fstatvfs sync sysconf tcgetpgrp
        tcsetpgrp ttyname uname wait wait3 wait4 waitid writev F_LOCK F_TLOCK F_ULOCK SCHED_OTHER""",
    "signal": """SIGALRM SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE SIGSTOP SIGCONT SIGTSTP SIGTTIN SIGTTOU
        SIGWINCH alarm setitimer getitimer pause pthread_kill pthread_sigmask sigpending sigwait sigwaitinfo
        sigtimedwait siginterrupt""",
    "select": "poll epoll kqueue",
    "socket": "SO_REUSEPORT",
    "time": "tzset clock_gettime pthread_getcpuclockid",
}

# The libraries are imported first, as they are here; then all that Windows lacks is taken away, and the modules of this
# project are imported once more.
WITHOUT_POSIX = """
import asyncio, importlib, json, os, pkgutil, select, shutil, signal, socket, sys, tempfile, time, types
from pathlib import Path

def import_all():
    found = []
    for package in map(importlib.import_module, ("card_envs", "training")):
        found += [module.name for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
    for name in found:
        if name.rpartition(".")[2] == "mutants" or name.endswith(".tests") or ".tests." in name:
            continue
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:  # an extra that is not installed here
            assert error.name and not error.name.startswith(("card_envs", "training")) and error.name not in LACKING, (
                f"{name}: {error!r}"
            )
    return found

LACKING, ONLY_HERE = json.loads(sys.argv[1])

import_all()
for name in [name for name in sys.modules if name.partition(".")[0] in ("card_envs", "training")]:
    del sys.modules[name]
shutil._use_fd_functions, tempfile.TemporaryFile = False, tempfile.NamedTemporaryFile  # as there
for name in LACKING:
    sys.modules[name] = None
for module, names in ((sys.modules[module], names) for module, names in ONLY_HERE.items()):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
msvcrt = types.ModuleType("msvcrt")  # which only Windows has
msvcrt.LK_NBLCK, msvcrt.locking = 2, lambda handle, mode, number: None
sys.modules["msvcrt"] = msvcrt
assert not hasattr(os, "O_CLOEXEC") and not hasattr(signal, "SIGHUP")

names = import_all()
assert len(names) > 150, len(names)
import card_envs
from card_envs import _files as files
from card_envs._console import Console, prepare_streams
from card_envs._processes import cores, ended_as_by_ctrl_c
from card_envs.envs.aec import CardEnv
from card_envs.games import GAMES
from card_envs.opponents import load_opponent, opponent_names
from card_envs.record import GameRecord
from card_envs.scaffold.high_card import GAME
from card_envs.serve._command import make_seats
from card_envs.serve._limits import Limits
from card_envs.serve._stdio import answer

for game in GAMES.values():
    for name in {"greedy", "small"} & set(opponent_names(game)):
        load_opponent(name, game)
with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    env = CardEnv(GAME)
    env.reset(seed=1)
    env.step(env.parse_move(env.legal_moves()[0]))
    env.record().save(folder / "game.json")
    env.record().save(folder / "game.json")
    assert GameRecord.load(folder / "game.json") == env.record()
    files.write_json(folder / "figures.json", {"one": 1})
    assert files.read_json(folder / "figures.json") == {"one": 1}
    files.replace_folder(folder / "opponent", {"a": b"1\\r\\n\\x1a2"}, lambda made: ["a"])
    files.replace_folder(folder / "opponent", {"a": b"1\\r\\n\\x1a2"}, lambda made: ["a"])
    assert files.read_file(folder / "opponent" / "a", 100) == b"1\\r\\n\\x1a2"
    from training.config import load_config
    load_config(Path("quickstart"), [f"runs={json.dumps(str(folder / 'runs'))}"])
    GAMES[GAME.name] = GAME
    seats = make_seats(folder / "tables", [GAME.name], [], Limits())
    asked = {"call": "table", "body": {"game": GAME.name}}
    found = asyncio.run(answer(seats, json.dumps(asked).encode()))
    assert "reply" in found, found
prepare_streams()
with ended_as_by_ctrl_c():
    Console().print("as before")
assert cores() >= 1
"""


def test_nothing_of_posix_is_needed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "test.py").write_text(WITHOUT_POSIX, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "test.py"), json.dumps([LACKING, ONLY_HERE])],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert done.stdout.split() == [b"as", b"before"]


def with_parents(file: Path) -> Iterator[tuple[Any, list[ast.AST]]]:
    """Every node of a file, and the nodes around it, the innermost last."""
    waiting: list[tuple[ast.AST, list[ast.AST]]] = [(ast.parse(file.read_bytes()), [])]
    while waiting:
        node, around = waiting.pop()
        yield node, around
        waiting += [(child, [*around, node]) for child in ast.iter_child_nodes(node)]


def unguarded(node: Any, around: list[ast.AST]) -> bool:
    """Return whether a node names what Windows lacks without asking first, `hasattr(os, …)` in the same function."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        named = {name.name for name in node.names} if isinstance(node, ast.Import) else {node.module}
        return bool(named & set(LACKING)) and not any(isinstance(one, (ast.Try, ast.If, ast.With)) for one in around)
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return False
    function = next((one for one in reversed(around) if isinstance(one, ast.FunctionDef)), around[0])
    asked = f"hasattr({node.value.id}, '{node.attr}')"
    return node.attr in ONLY_HERE.get(node.value.id, "").split() and asked not in ast.unparse(function)


def without_encoding(node: Any, around: list[ast.AST]) -> bool:
    """Return whether a node opens a file as text without naming the encoding: Windows would take its country's."""
    if not isinstance(node, ast.Call) or any(word.arg == "encoding" for word in node.keywords):
        return False
    called = ast.unparse(node.func)
    is_open = called == "open" or (called.endswith(".open") and called not in ("os.open", "Image.open"))
    modes = map(ast.unparse, node.args[called == "open" :])  # a name for one may be anything
    return called.endswith((".read_text", ".write_text")) or (
        is_open and not any("b" in mode or mode.isidentifier() for mode in modes)
    )


@pytest.mark.parametrize("is_fault", [unguarded, without_encoding])
def test_sources_ask_first_and_name_encodings(is_fault: Callable[[Any, list[ast.AST]], bool]) -> None:
    """Also within functions that the test above does not call."""
    faults = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for file in SOURCES
        for node, around in with_parents(file)
        if is_fault(node, around)
    ]
    assert not faults, faults
