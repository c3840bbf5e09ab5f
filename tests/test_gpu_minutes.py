"""The script for minutes on a GPU, and profiles of training: in CUDA's simulator, with tiny sizes."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.gpu_minutes import EAGER, GRAPHS, LABELS, PLAYOUTS, PROFILED, TRAINED, Plan
from benchmarks.gpu_steps import ROOT, Minutes, Step, found_by_tests
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from tests.test_gpu import simulated

FAILS = "print('first'); print('second'); raise SystemExit(3)"
# Ignores that it is asked to end; what it has started holds the lock.
HANGS = """
import fcntl, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
subprocess.Popen(["sleep", "1000"], pass_fds=[file.fileno()])
time.sleep(1000)
"""
PROFILE = """
import json, sys
from pathlib import Path
from card_envs.games import GAMES
from card_envs.scaffold.high_card import GAME

GAMES[GAME.name] = GAME
from benchmarks import gpu

config, algorithm = sys.argv[1:]
for steps in (5, 10):
    settings = [f"algorithm={algorithm}", f"num_steps={steps}"]
    sys.argv = ["gpu", "--profile", config, *settings, "--json", f"{config}.{steps}"]
    gpu.main()
"""
SETTINGS = """
game = "high_card"
device = "cuda"
decisions = 1
num_envs = 4
num_steps = 5
hidden = [8]
minibatch_size = 8
"""


def code(source: str, *arguments: str) -> Any:
    return lambda seconds: ["-c", source, *arguments]


def test_what_fails_or_is_cut_off_is_told_and_later_steps_run(tmp_path: Path) -> None:
    out, lock = tmp_path / "out", tmp_path / "lock"
    minutes = Minutes(out, 2)

    def missing(seconds: float) -> list[str]:
        raise FileNotFoundError("no such thing")

    minutes.run(
        [
            Step("one that fails", code(FAILS)),
            Step("one that hangs", code(HANGS, str(lock)), most=4),
            Step("one that can't begin", missing),
            Step("one too late", code(FAILS), share=0),
            Step("the last", code("import sys; open(sys.argv[1], 'x')", str(tmp_path / "done"))),
        ]
    )
    result = json.loads((out / "result.json").read_text())
    steps = result["steps"]
    outcomes = ["failed", "cut off", "failed", "no time was left", "done"]
    assert [step["outcome"] for step in steps.values()] == outcomes and (tmp_path / "done").exists()
    assert result["unfinished"] == list(steps)[:4]
    assert steps["one that fails"]["status"] == 3 and steps["one that fails"]["said"] == ["first", "second"]
    assert steps["one that can't begin"]["said"] == ["no such thing"]
    assert steps["one that hangs"]["seconds"] <= result["seconds"]
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # hangs while anything that was started is alive


def test_a_file_that_is_not_as_expected_stops_no_step(tmp_path: Path) -> None:
    step = Step(
        "rates", code("import sys; open(sys.argv[1], 'w').write('no JSON')", str(tmp_path / "rates" / "x.json"))
    )
    Minutes(tmp_path, 1).run([step, step._replace(name="the same")])
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["unfinished"] == [] and result["not_summed_up"].startswith("JSONDecodeError")


def test_tests_are_summed_up_although_the_run_was_cut_off(tmp_path: Path) -> None:
    ends = {"b": ("failed", 2.5), "a": ("passed", 3)}
    lines: list[dict[str, Any]] = [{"test": name, "outcome": "began"} for name in "abc"]
    lines += [{"test": name, "outcome": outcome, "seconds": seconds} for name, (outcome, seconds) in ends.items()]
    file = tmp_path / "tests.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"test": "d", "outc')
    found = found_by_tests(file)
    assert (found["passed"], found["failed"], found["under_way"]) == (1, ["b"], ["c"])
    assert found["seconds"] == {"a": 3, "b": 2.5}
    assert found_by_tests(tmp_path / "none")["passed"] == 0


def test_steps_begin_where_others_ended(tmp_path: Path) -> None:
    """Weights come from the run before, if there is one, and graphs are left out where they have failed."""
    plan = Plan(tmp_path, tmp_path / "wheels", tiny=False)
    assert plan.steps()["wheels"] == []
    train = partial(plan.train, PLAYOUTS, 120)
    assert {"minutes=1.000", "warm_start="} < set(train()) and EAGER not in train()
    checkpoint = tmp_path / "runs" / LABELS / "checkpoint.safetensors"
    for file in (checkpoint, plan.profile_of(GRAPHS, EAGER), tmp_path / "wheels" / "one.whl"):
        file.parent.mkdir(parents=True)
        file.touch()
    assert {f"warm_start={checkpoint.parent}", EAGER} < set(train())
    plan.profile_of(GRAPHS).touch()
    assert EAGER not in train()
    (step,) = plan.steps()["wheels"]
    assert step.arguments(1)[-1].endswith("one.whl")


@pytest.mark.parametrize("algorithm", ["ppo", "advantages"])
def test_a_profile_counts_the_operations_of_each_part(algorithm: str, tmp_path: Path) -> None:
    """Twice the steps are twice the operations."""
    config = tmp_path / "config.toml"
    config.write_text(SETTINGS)
    text = simulated(PROFILE, str(config), algorithm)
    assert text.count("simulator") == 2 and "M/s" not in text
    found = [json.loads(Path(f"{config}.{steps}").read_text()) for steps in (5, 10)]
    for name, part in [part for one in found for part in one["parts"].items()]:
        assert f"{name}: {part['operations']:,} operations" in text and "seconds" not in part
    parts = ["play", "batch", "update"] if algorithm == "ppo" else ["play", "update"]
    assert list(found[0]["parts"]) == parts and 0 < found[0]["decisions"] < found[1]["decisions"]
    play, twice = (one["parts"]["play"]["operations"] for one in found)
    assert 1.5 * play < twice < 2.5 * play


def test_a_profile_tells_how_long_a_card_is_busy() -> None:
    from benchmarks.gpu_profile import on_the_card, show

    def event(name: str, start: float = 0, end: float = 0, device: str = "CPU", note: bool = False) -> Any:
        span, kind = SimpleNamespace(start=start, end=end), SimpleNamespace(name=device)
        return SimpleNamespace(name=name, time_range=span, device_type=kind, is_user_annotation=note)

    calls = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch")
    copies = ("cudaMemcpyAsync", "cudaMemsetAsync", "cuMemcpyDtoHAsync_v2")
    others = ("aten::mm", "cudaDeviceSynchronize", "cudaStreamIsCapturing", "cudaMalloc")
    card = partial(event, device="CUDA")
    on_card = [card("mm", 10, 40), card("copy", 30, 60), card("mm", 50, 55), card("mm", 1000, 1100)]
    part = on_the_card([*map(event, calls + copies + others), *on_card, card("Optimizer.step", 0, 5000, note=True)])
    assert part["launches"] == len(calls + copies) and part["busy_seconds"] == pytest.approx(150e-6)
    assert [(one["kernel"], one["times"]) for one in part["costliest"]] == [("mm", 3), ("copy", 1)]
    assert part["costliest"][0]["seconds"] == pytest.approx(135e-6)
    found = {"card": "H", "decisions": 9, "m_decisions_per_second": 3.25, "peak_gib": 1.5}
    show(found | {"parts": {"play": part | {"seconds": 300e-6}}})


def run_script(out: Path, *arguments: str) -> dict[str, Any]:
    """Run the script in CUDA's simulator and return its result."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    alone |= {"SIZE": "tiny", "OUT": str(out), "WHEELS": str(out / "none"), "PYTHON": sys.executable}
    command = [f"{ROOT}/benchmarks/gpu_minutes.sh", "30", *arguments]
    done = subprocess.run(command, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("result.json\n"), done.stderr
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    return result


def test_the_script_runs_the_tests_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are skipped here. What an earlier run has found is moved aside."""
    out, tools = tmp_path / "out", tmp_path / "bin"
    for folder in (out, tools):
        folder.mkdir()
    (out / "result.json").write_text("{}")
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho NVIDIA H200, 580.159, 143771 MiB\n")
    (tools / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    result = run_script(out, "--only", "tests")
    assert result["steps"]["tests"]["outcome"] == "done" and result["unfinished"] == []
    assert result["tests"]["skipped"] + result["tests"]["passed"] == len(GAMES) and result["tests"]["failed"] == []
    assert (result["machine"]["card"], result["machine"]["driver"]) == ("NVIDIA H200", "580.159")
    assert {"python", "torch", "numba-cuda", "numpy"} <= set(result["machine"])
    (aside,) = tmp_path.glob("out-until-*")
    assert (aside / "result.json").read_text() == "{}"


@pytest.mark.slow
def test_the_script_runs_in_the_simulator(tmp_path: Path) -> None:
    """All steps: rates, operations of each part of an iteration, and opponents that can be loaded."""
    result = run_script(tmp_path)
    assert result["unfinished"] == []
    assert len(result["steps"]) == 1 + len(result["rates"]) + len(PROFILED) + len(TRAINED)
    assert all(rate > 0 for rates in result["rates"].values() for rate in rates.values())
    assert len(result["profiles"]) == len(PROFILED)
    for profile in result["profiles"].values():
        assert 0 < profile["decisions"] <= 8
        assert {"play", "batch", "update"} == {
            name for name, part in profile["parts"].items() if part["operations"] > 50
        }
    assert set(result["training"]) == set(TRAINED)
    for name, run in result["training"].items():
        assert run["decisions"] > 0 and run["decisions_per_second"] > 0
        assert {one["against"] for one in run["strength"]} == {"trivial", "greedy"}
        assert load_opponent(tmp_path / "runs" / name / "opponent")
    log = (tmp_path / "logs" / f"training-of-{PLAYOUTS}.log").read_text()
    assert f"{PLAYOUTS}: " in log
