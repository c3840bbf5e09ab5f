"""Signals that end commands, workers that end with them, and the cores that both may use."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest

from card_envs.games import GAMES
from card_envs.system import processes
from tests.conftest import ROOT, new_env, play_randomly, run_python

SOLITAIRE = next(game for game in GAMES.values() if game.solver is not None)
GAME = next(game for game in GAMES.values() if game.rules.NUM_SEATS > 1 and game.name != "high_card")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

# The command, with a file that appears once it has some of its results.
COMMAND = """
import os, sys
from pathlib import Path
import rich.progress
from card_envs.compare import waiting
from card_envs.__main__ import main
import card_envs.__main__ as program

waiting.SAVE_SECONDS = 0.0
steps = 0
whole = rich.progress.Progress.advance, rich.progress.Progress.update

def counted(function):
    def count(*arguments, **named):
        global steps
        function(*arguments, **named)
        steps += 1
        if steps > 2:
            Path("begun").touch()
    return count

rich.progress.Progress.advance, rich.progress.Progress.update = map(counted, whole)
program.IS_PROGRAM = True
main()
"""
COMMANDS = {
    "compare": f"compare {GAME.name} greedy trivial --pairs 9000000 --json OUT.json",
    "survey": f"survey {GAME.name} greedy --episodes 9000000 --json OUT.json",
    "solve": f"solve {SOLITAIRE.name} --packs 100000 --seconds 0.01 --json OUT.json",
    "review": "review game.json --by search:4000 --json OUT.json",
    "bench": f"bench {GAME.name} --seconds 0.2 --json OUT.json",
    "generate": f"generate {GAME.name} --players greedy --games 9000000 --out data --processes 1",
}


@contextmanager
def started(
    folder: Path, *words: str, ignored: bool = False, more: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a session of its own, which is killed afterwards; `ignored`: as `nohup` and `&` do."""

    def ignore() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONUNBUFFERED": "1", **(more or {})}
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True, preexec_fn=ignore if ignored else None,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until(true: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, "nothing happens"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "number"), [*product(COMMANDS, ["SIGTERM"]), ("survey", "SIGHUP"), ("survey", "SIGINT")]
)
def test_signals_save_what_there_is(command: str, number: str, tmp_path: Path) -> None:
    """Of schedulers and containers as well as Ctrl-C."""
    play_randomly(new_env(GAME), 1).record().save(tmp_path / "game.json")
    with started(tmp_path, "-c", COMMAND, *COMMANDS[command].split()) as process:
        wait_until((tmp_path / "begun").exists, process)
        process.send_signal(signal.Signals[number])
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    if command == "generate":
        assert "stopped after" in output
    else:
        figures = json.loads((tmp_path / "OUT.json").read_text())
        assert figures.get("stopped", True)


@pytest.mark.processes
@pytest.mark.parametrize("number", ["SIGHUP", "SIGINT"])
def test_signals_save_a_game(number: str, tmp_path: Path) -> None:
    with started(tmp_path, "-m", "card_envs", "play", GAME.name, "--record", "OUT.json") as process:
        assert process.stdout is not None
        while "hand" not in process.stdout.readline():  # the first position
            assert process.poll() is None
        process.send_signal(signal.Signals[number])
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and "saved to OUT.json" in output
    assert not json.loads((tmp_path / "OUT.json").read_text())["outcome"]["over"]


NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child"]


@pytest.mark.processes
def test_the_first_process_of_a_container_ends(tmp_path: Path) -> None:
    """The system keeps signals from it that it does not handle."""
    with suppress(OSError):
        if subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0:
            words = [*COMMANDS["survey"].split()]
            command = [*NAMESPACE, sys.executable, "-c", COMMAND, *words]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) as process:
                wait_until((tmp_path / "begun").exists)
                (first,) = children(process.pid)
                os.kill(first, signal.SIGTERM)
                assert process.wait(60) == 130
            assert json.loads((tmp_path / "OUT.json").read_text())["stopped"]
            return
    pytest.skip("no namespaces here")


@pytest.mark.processes
def test_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    """A hangup and Ctrl-C, as under `nohup … &`; SIGTERM saves there, too."""
    with started(tmp_path, "-c", COMMAND, *COMMANDS["survey"].split(), ignored=True) as process:
        wait_until((tmp_path / "begun").exists, process)
        for number in (signal.SIGHUP, signal.SIGINT):
            process.send_signal(number)
        (tmp_path / "begun").unlink()
        wait_until((tmp_path / "begun").exists, process)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert json.loads((tmp_path / "OUT.json").read_text())["stopped"]


HANDLERS = """
import asyncio, signal, sys, time
from card_envs.system.processes import ended_as_by_ctrl_c

async def wait():
    print("waiting", flush=True)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise

with ended_as_by_ctrl_c():
    try:
        if sys.argv[1] == "loop":
            asyncio.run(wait())
        print("waiting", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        signal.raise_signal(signal.SIGHUP)
        print("saved", flush=True)
assert signal.getsignal(signal.SIGTERM) == signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
"""


@pytest.mark.parametrize(("kind", "said"), [("plain", "saved\n"), ("loop", "cancelled\nsaved\n")])
def test_a_signal_is_ctrl_c_once(kind: str, said: str, tmp_path: Path) -> None:
    """To whatever handles Ctrl-C; a closed terminal sends two, and the second one must not end the saving."""
    with started(tmp_path, "-c", HANDLERS, kind) as process:
        assert process.stdout is not None and process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert output == said and process.returncode == 0


# Workers


def children(process: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            text = stat.read_text()
            if text.rpartition(")")[2].split()[0] != "Z":
                parents[int(stat.parent.name)] = int(text.rpartition(")")[2].split()[1])
    found = [process]
    for parent in found:  # which grows meanwhile
        found += [child for child, known in parents.items() if known == parent]
    return found[1:]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


TRAINING = "name=run num_envs=32 num_steps=8 minibatch_size=64 minutes=60"
WITH_WORKERS = {
    "compare": ["-m", "card_envs", *COMMANDS["compare"].split(), "--processes", "2"],
    "build": ["-m", "card_envs", "build", GAME.name, "--jobs", "2", "--folder", "built"],
    "train": [
        *("-m", "training.train", "--config", "quickstart", "--processes", "2", "runs=runs"),
        *TRAINING.split(),
    ],
}


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
@pytest.mark.parametrize(
    ("command", "number"), [*product(WITH_WORKERS, ["SIGKILL"]), ("compare", "SIGTERM"), ("compare", "SIGINT")]
)
def test_workers_end_with_their_parent(command: str, number: str, tmp_path: Path) -> None:
    """However it ends; the signal reaches it alone."""
    with started(tmp_path, *WITH_WORKERS[command]) as process:
        if command == "train":
            wait_until((tmp_path / "runs" / "run" / "log.jsonl").exists, process)
        wait_until(lambda: len(children(process.pid)) >= (1 if command == "build" else 2), process)
        workers = children(process.pid)
        assert workers
        process.send_signal(signal.Signals[number])
        try:
            wait_until(lambda: not any(map(is_running, workers)))
            process.communicate(timeout=60)
        finally:
            for worker in filter(is_running, workers):
                os.kill(worker, signal.SIGKILL)
    assert process.returncode != 0


ORPHAN = """
import os, subprocess, sys, time
from card_envs.system.processes import PARENT, end_with_parent

if len(sys.argv) == 1:
    child = subprocess.Popen([sys.executable, "-c", os.environ["CODE"], "child"],
        env={**os.environ, PARENT: str(os.getpid())})
    print(child.pid, flush=True)
    os._exit(0)  # before the child can look who its parent is
else:
    end_with_parent()
    assert PARENT not in os.environ
    time.sleep(60)
"""


def test_a_worker_ends_whose_parent_is_gone_already(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN], env={**os.environ, "CODE": ORPHAN}, cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    wait_until(lambda: not is_running(int(done.stdout.split()[0])))


# Cores


def test_cores_are_those_that_are_allotted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By affinity and by control groups, a process's own or one around it."""
    own, groups = tmp_path / "cgroup", tmp_path / "groups"
    monkeypatch.setattr(processes, "OWN_GROUPS", own)
    monkeypatch.setattr(processes, "CGROUPS", groups)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))
    assert processes.cores() == 64
    inner = groups / "jobs" / "mine"
    inner.mkdir(parents=True)
    own.write_text("0::/jobs/mine\n")
    for text, number in (("max 100000", 64), ("200000 100000", 2), ("150000 100000", 2), ("1000 100000", 1)):
        (inner / "cpu.max").write_text(text)
        assert processes.cores() == number
    (inner / "cpu.max").write_text("max 100000")
    (groups / "jobs" / "cpu.max").write_text("300000 100000")
    assert processes.cores() == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5})
    assert processes.cores() == 1


def test_nobody_counts_the_machines_cores() -> None:
    """A node has 64, and two are allotted."""
    for folder in ("card_envs", "training", "benchmarks"):
        for file in (ROOT / folder).rglob("*.py"):
            assert "cpu_count" not in file.read_text(encoding="utf-8") or file.name == "processes.py", file


BEGINNER = f"""
import sys
from threading import Thread
from card_envs import get_game
from card_envs.data import Plan, generate
print("once more")
plan = Plan(get_game({GAME.name!r}), ("greedy",), games=8)
def work(): return generate(plan, sys.argv[1], format="jsonl", processes=2)
{{work}}
"""
WORK, IN_THREAD = "work()", "thread = Thread(target=work); thread.start(); thread.join()"
GUARD = 'if __name__ == "__main__": '
RUN_AGAIN = 'they would run the program again; put line 9 of .*program.py under `if __name__ == "__main__":`'


@pytest.mark.parametrize(
    ("work", "how", "problem"),
    [
        (WORK, "file", RUN_AGAIN),
        (GUARD + WORK, "input", "they can't import the program <stdin>; save it to a file"),
        (GUARD + WORK, "file", ""),
        *(
            pytest.param(*case, marks=pytest.mark.processes)
            for case in (
                (WORK, "module", RUN_AGAIN),
                (IN_THREAD, "file", RUN_AGAIN),
                (GUARD + IN_THREAD, "file", ""),
                (f'__name__ == "__main__" and {WORK}', "file", ""),
                (WORK, "text", ""),
            )
        ),
    ],
)
def test_a_program_that_workers_can_not_import_works_alone(work: str, how: str, problem: str, tmp_path: Path) -> None:
    """And says so in one line, at once; others have workers, which import them."""
    text = BEGINNER.format(work=work)
    (tmp_path / "program.py").write_text(text)
    words = {"file": ["program.py"], "module": ["-m", "program"], "input": ["-"], "text": ["-c", text]}[how]
    done = run_python(*words, "out", folder=tmp_path, stdin=text)
    warning = f".*UserWarning: this process works alone, without others: {problem}\n(  .*\n)?" if problem else ""
    assert re.fullmatch(warning, done.stderr), done.stderr
    assert (done.stdout.count("once more") == 1) == (bool(problem) or how == "text")
    rows = [line for file in sorted((tmp_path / "out" / "data").iterdir()) for line in file.read_text().splitlines()]
    assert {json.loads(row)["game"] for row in rows} == set(range(8))
