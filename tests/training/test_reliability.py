"""Runs that are interrupted, killed, starved or poisoned lose at most what came after their last checkpoint."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from card_envs import load_opponent
from card_envs.opponents.networks.folder import WEIGHTS_FILE
from card_envs.system.processes import cores
from tests.conftest import run_python
from training import checkpoint, launch
from training.algorithms.ppo import PPO
from training.algorithms.self_play import SelfPlay
from training.config import Config, load_config
from training.run import Run
from training.train import app

SETTINGS: dict[str, Any] = {
    "game": "high_card",
    "stages": [{"until": 0.4, "options": {"reward": "win"}}],
    "decisions": 6000,
    "num_envs": 32,
    "num_steps": 15,
    "hidden": [16],
    "minibatch_size": 128,
    "bc_coef": 1.0,
}
COMMAND = ["num_envs=32", "num_steps=15", "hidden=[16]", "minibatch_size=64", "final_pairs=2", "quick_pairs=1"]


def toml(folder: Path, game: str = "high_card") -> list[str]:
    path = folder / "tiny.toml"
    path.write_text(f'game = "{game}"\n')
    return ["--config", str(path), f"runs={folder / 'runs'}", *COMMAND]


def shipped(folder: Path) -> list[str]:
    """Return the same for a game that other processes know as well."""
    return [*toml(folder, "back_alley"), "options={deals = [2]}"]


def everything(run: Run, path: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """All that the run would go on from."""
    run.save_checkpoint(path)
    arrays, facts = checkpoint.read_checkpoint(path)
    facts.pop("seconds")
    return {name: array.tobytes() for name, array in arrays.items()}, facts


MOVES = {"network": "afterstates", "critic_first": 0.1}
SHARED = ("game", "stages", "decisions", "num_envs", "num_steps", "hidden", "minibatch_size")
ADVANTAGES = {name: SETTINGS[name] for name in SHARED} | {"algorithm": "advantages", "advantage_worlds": 2}


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        {**SETTINGS, **MOVES, "baseline_bonus": 2.0},
        {**ADVANTAGES, "network": "lookahead", "advantage_stride": 2},
    ],
)
def test_a_resumed_run_goes_on_exactly(settings: dict[str, Any], tmp_path: Path) -> None:
    config = Config(**settings)
    path = tmp_path / "checkpoint.safetensors"
    one = Run(config)
    for _ in range(4):
        one.iterate()
    one.save_checkpoint(path)
    for _ in range(9):
        one.iterate()
    assert isinstance(one.algorithm, SelfPlay) and one.algorithm.pool.snapshots
    assert one.algorithm.stage == 1 or config.algorithm == "advantages"
    other = Run(config)
    other.load_checkpoint(path)
    for _ in range(9):
        other.iterate()
    assert everything(one, tmp_path / "a") == everything(other, tmp_path / "b")
    again = Run(config)
    for _ in range(13):
        again.iterate()
    assert everything(one, tmp_path / "a") == everything(again, tmp_path / "b")  # same seed, same policy


def ppo(config: Config) -> tuple[Run, PPO]:
    run = Run(config)
    assert isinstance(run.algorithm, PPO)
    return run, run.algorithm


@pytest.mark.parametrize("change", [{}, {**MOVES, "baseline_bonus": 2.0}])
def test_a_warm_start_takes_over_what_was_learned(change: dict[str, Any], tmp_path: Path) -> None:
    """From a run: actor, critic and Adam's state. From an opponent: the actor, which waits for its critic."""
    config = Config(**{**SETTINGS, **change, "critic_first": 0.0})
    run, one = ppo(config)
    for _ in range(3):
        run.iterate()
    (tmp_path / "run").mkdir()
    run.save_checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    _, other = ppo(config.changed(warm_start=str(tmp_path / "run"), seed=7))
    for mine, theirs in zip(one.parameters, other.parameters):
        assert torch.equal(mine, theirs)
    steps = [learner.optimizer.state_dict()["state"][0]["step"] for learner in (one, other)]
    assert steps[0] == steps[1] > 0
    run.save(tmp_path / "opponent")
    third_run, third = ppo(config.changed(warm_start=str(tmp_path / "opponent"), critic_first=0.5, learning_rate=0.01))
    before, critic = third.actor.weights(), third.critic.weights()
    for name, weight in before.items():
        np.testing.assert_array_equal(weight, one.actor.weights()[name].astype(np.float16))
    third_run.iterate()
    assert all(np.array_equal(weight, before[name]) for name, weight in third.actor.weights().items())
    assert not np.array_equal(third.critic.weights()["layer0.weight"], critic["layer0.weight"])
    while third_run.progress < 0.5:
        third_run.iterate()
    third_run.iterate()
    assert not np.array_equal(third.actor.weights()["layer0.weight"], before["layer0.weight"])


def test_a_warm_start_from_something_else_is_refused(tmp_path: Path) -> None:
    one = Run(Config(**SETTINGS))
    one.save(tmp_path / "opponent")
    for name, settings, said in (
        (tmp_path / "opponent", {"hidden": [8]}, r"layer0\.bias has the shape \(16,\), in this run \(8,\)"),
        (tmp_path / "opponent", MOVES, r"layer1\.bias has the shape"),
        ("greedy", {}, "expected the folder of a run, or a trained opponent"),
        (tmp_path / "nothing", {}, "nothing"),
        (
            "small",
            {**MOVES, "game": "back_alley", "stages": [], "hidden": [128, 64]},
            "expected a baseline_bonus above 0",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            Run(Config(**{**SETTINGS, **settings, "warm_start": str(name)}))


def test_resuming_under_other_settings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    Run(Config(**SETTINGS)).save_checkpoint(path)
    change: dict[str, Any]
    for change, said in (
        ({"learning_rate": 0.5}, "the run had learning_rate = 0.001; only"),
        ({"hidden": [8]}, "hidden = "),
    ):
        with pytest.raises(ValueError, match=said):
            Run(Config(**{**SETTINGS, **change})).load_checkpoint(path)


FEW = "game=back_alley options={deals=[2]} greedy_share=1 pool_share=0 num_envs=1 num_steps=2 decisions=20"
BOUNDED = {  # figures that numbers of 32 or 16 bits do not hold, and sizes
    "algorithm=advantages network=afterstates margins=[0,1e30]": "margins = 1e+30: expected less than or equal to 1000",
    "ent_coef=1e300": "ent_coef = 1e+300: expected less than or equal to 1000",
    "ent_coef_end=1e38": "ent_coef_end = 1e+38: expected less than or equal to 1000",
    "bc_coef=1e308": "bc_coef = 1e+308: expected less than or equal to 1000",
    "reward_scale=1e300": "reward_scale = 1e+300: expected less than or equal to 1000000",
    "num_envs=1048576 num_steps=65536": "num_envs = 1048576, num_steps = 65536, hidden = [16]: expected",
    "quick_pairs=16777217": "quick_pairs = 16777217: expected less than or equal to 16777216",
}


def test_a_run_that_can_not_be_is_refused_before_it_begins(tmp_path: Path) -> None:
    for settings, problem in BOUNDED.items():
        done = CliRunner().invoke(app, [*toml(tmp_path), *settings.split(), "decisions=9"])
        assert done.exit_code == 2 and problem in done.output.replace("\n", ""), done.output
        assert not (tmp_path / "runs/tiny").exists()


@pytest.mark.parametrize(
    "settings",
    [
        FEW,
        f"{FEW} algorithm=advantages",
        "algorithm=advantages num_envs=1 num_steps=2 advantage_stride=50 decisions=2",
        "minutes=5e-324",
        "critic_first=0.99 pool_share=1 greedy_share=0 pool_size=0 decisions=9",
        "minibatch_size=4611686018427387904 update_epochs=3 ent_coef=1000 bc_coef=1000 bc_until=5e-324 decisions=9",
        "reward_scale=1e6 learning_rate=1 decisions=9",
    ],
)
def test_a_run_in_which_little_is_learned_is_saved_and_goes_on(settings: str, tmp_path: Path) -> None:
    arguments = [*toml(tmp_path), *settings.split()]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert load_opponent(tmp_path / "runs/tiny/opponent").name
    again = CliRunner().invoke(app, [*arguments, "decisions=40", "--resume"])
    assert again.exit_code == 0, again.output


def test_a_run_of_a_version_with_fewer_settings_goes_on(tmp_path: Path) -> None:
    """Where the others have their defaults, which do what it did; others are refused."""
    path = tmp_path / "checkpoint.safetensors"
    settings = {**ADVANTAGES, "advantage_worlds": 1}
    Run(Config(**settings)).save_checkpoint(path)
    arrays, facts = checkpoint.read_checkpoint(path)
    for newer in ("advantage_player", "advantage_worlds", "margins"):
        del facts["settings"][newer]
    checkpoint.write(path, arrays, facts | {"settings": facts["settings"] | {"graphs": True}})
    assert Run(Config(**settings, graphs=False)).load_checkpoint(path) == ""
    with pytest.raises(ValueError, match="the run had advantage_player = 'greedy', advantage_worlds = 1; only"):
        Run(Config(**ADVANTAGES, advantage_player="learner")).load_checkpoint(path)


def test_more_of_a_finished_run(tmp_path: Path) -> None:
    arguments = toml(tmp_path)
    assert CliRunner().invoke(app, [*arguments, "decisions=1000"]).exit_code == 0
    result = CliRunner().invoke(app, [*arguments, "decisions=2500", "--resume"])
    assert result.exit_code == 0, result.output
    log = [json.loads(line) for line in (tmp_path / "runs/tiny/log.jsonl").read_text().splitlines()]
    decisions = [entry["decisions"] for entry in log]
    assert decisions == sorted(set(decisions)) and decisions[-1] >= 2500
    assert not (tmp_path / "runs/tiny.1").exists()


def test_a_poisoned_batch_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def poisoned(values: torch.Tensor, returns: torch.Tensor, delta: float) -> torch.Tensor:
        calls.append(1)
        return values.sum() * (float("nan") if len(calls) > 20 else 0)

    monkeypatch.setattr("training.algorithms.ppo.huber_loss", poisoned)
    result = CliRunner().invoke(app, [*toml(tmp_path), "decisions=100_000", "save_minutes=1e-9"])
    assert result.exit_code == 3, result.output
    said = result.output.replace("\n", "")
    assert "no longer a number" in said and "--resume goes on from" in said
    with np.load(tmp_path / "runs/tiny/bad_batch.npz") as bad:
        assert len(bad["seen"]) == len(bad["full"]) == len(bad["returns"]) > 0
    arrays, _ = checkpoint.read_checkpoint(tmp_path / "runs/tiny/checkpoint.safetensors")
    assert all(np.isfinite(array).all() for array in arrays.values())


def test_too_little_disk_is_said_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    result = CliRunner().invoke(app, [*toml(tmp_path), "decisions=500"])
    assert result.exit_code == 2
    assert "the disk has 0 MB left" in result.output.replace("\n", " ")
    assert not (tmp_path / "runs/tiny").exists()


def test_a_disk_that_fills_ends_the_run_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it happens: the message names the file, and --resume goes on once there is room."""
    arguments = [*toml(tmp_path), "decisions=100_000", "save_minutes=1e-9"]
    folder = tmp_path / "runs" / "tiny"
    whole, room = os.fsync, [0]

    def fsync(handle: int) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    for files, hint in ((2, "there was no checkpoint yet"), (9, "--resume goes on from"), (10, "--resume goes on")):
        room[0] = files
        result = CliRunner().invoke(app, arguments)
        said = result.output.replace("\n", "")
        assert result.exit_code == 3 and "Traceback" not in said and "no space left on the disk" in said, said
        assert hint in said
        assert not list(folder.rglob(".new-*"))
    room[0] = 10**9
    _, before = checkpoint.read_checkpoint(folder / "checkpoint.safetensors")
    result = CliRunner().invoke(app, [*arguments, f"decisions={before['decisions'] + 100}", "--resume"])
    assert result.exit_code == 0, result.output


@pytest.mark.processes
def test_one_process_at_a_time_has_a_run(tmp_path: Path) -> None:
    """Neither a second run of the name nor a second --resume touches a running one."""
    arguments = [*shipped(tmp_path), "minutes=60", "save_minutes=1e-9"]
    folder = tmp_path / "runs" / "tiny"
    first = start(arguments)
    try:
        wait_for_lines(first, folder / "log.jsonl", 3)
        inode = folder.stat().st_ino
        for more in ([], ["--resume"]):
            second = CliRunner().invoke(app, [*arguments, *more])
            assert second.exit_code == 2
            said = second.output.replace("\n", " ")
            assert "tiny: is in use by another process, which trains this run; wait" in said
        lines = (folder / "log.jsonl").read_text().count("\n")
        wait_for_lines(first, folder / "log.jsonl", lines + 3)
        assert folder.stat().st_ino == inode and first.poll() is None
    finally:
        first.kill()
        first.communicate()
    assert not (tmp_path / "runs" / "tiny.1").exists()
    (folder / ".new-1-0123456789abcdef").touch()  # of the killed one
    resumed = CliRunner().invoke(app, [*arguments, "decisions=1", "--resume"])
    assert resumed.exit_code == 0, resumed.output
    assert not (folder / ".new-1-0123456789abcdef").exists()


def start(arguments: list[str], processes: int = 1) -> subprocess.Popen[str]:
    launcher = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}"] if processes > 1 else []
    return subprocess.Popen(
        [sys.executable, *launcher, "-m", "training.train", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_lines(process: subprocess.Popen[str], log: Path, lines: int) -> None:
    deadline = time.monotonic() + 300
    while not (log.exists() and log.read_text().count("\n") >= lines):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.processes
def test_a_run_is_shared_among_cores(tmp_path: Path) -> None:
    """As many decisions in each update as one process has; errors and exit codes are the run's own."""
    command = ["-m", "training.train", *shipped(tmp_path), "--processes", "2"]
    done = run_python(*command, "decisions=4000")
    assert f"training in 2 of {cores()} cores" in done.stdout and done.stdout.count("load_opponent(") == 1
    _, facts = checkpoint.read_checkpoint(tmp_path / "runs" / "tiny" / "checkpoint.safetensors")
    assert len(facts["ranks"]) == 2
    assert (facts["settings"]["num_envs"], facts["settings"]["minibatch_size"]) == (32, 64)  # as they were given
    assert facts["num_envs"] == 16
    wrong = run_python(*command, "decisions=1", "num_envs=33", status=2)
    assert "--processes: expected a number that divides num_envs = 33" in wrong.stderr
    lost = run_python(*command, "--resume", "decisions=5000", "learning_rate=0.5", status=2)
    assert "the run had learning_rate" in lost.stdout + lost.stderr
    assert "Traceback" not in lost.stdout + lost.stderr
    folder = tmp_path / "runs" / "tiny"
    for processes, changed in ((2, False), (1, True)):
        before = checkpoint.read_checkpoint(folder / "checkpoint.safetensors")[1]["decisions"]
        done = run_python(*command[:-1], processes, "--resume", f"decisions={before + 1000}")
        assert f"after {before:,} decisions" in done.stdout and ("no longer bit-exact" in done.stdout) == changed
        assert load_config(folder / "config.resolved.toml").num_envs == 32


@pytest.mark.processes
def test_ctrl_c_ends_a_shared_run_as_it_ends_another(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "training.train", *shipped(tmp_path), "--processes", "2", "minutes=60"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        wait_for_lines(process, tmp_path / "runs" / "tiny" / "log.jsonl", 2)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        output, _ = process.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130 and "saved to" in output, output
    assert "Traceback" not in output and "death signal" not in output, output
    _, facts = checkpoint.read_checkpoint(tmp_path / "runs" / "tiny" / "checkpoint.safetensors")
    assert facts["decisions"] > 0


@pytest.mark.parametrize(
    ("available", "num_envs", "minibatch_size", "number"),
    [(1, 512, 2048, 1), (2, 512, 2048, 2), (8, 512, 2048, 4), (2, 513, 2048, 1), (3, 1536, 2048, 2), (4, 100, 64, 1)],
)
def test_as_many_processes_as_pay(available: int, num_envs: int, minibatch_size: int, number: int) -> None:
    config = Config(game="back_alley", minutes=1, num_envs=num_envs, minibatch_size=minibatch_size)
    assert launch.processes_for(config, 0, available) == number
    for wrong in (-1, 7):
        with pytest.raises(ValueError, match="--processes: expected a number that divides"):
            launch.processes_for(config, wrong)


@pytest.mark.processes
def test_a_dead_process_ends_the_run_with_a_good_checkpoint(tmp_path: Path) -> None:
    process = start([*shipped(tmp_path), "minutes=60", "save_minutes=1e-9"], 2)
    folder = tmp_path / "runs" / "tiny"
    try:
        wait_for_lines(process, folder / "log.jsonl", 3)
        os.kill(max(children(process.pid)), signal.SIGKILL)
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode != 0
    assert "another process of this run has died" in output or "SIGKILL" in output or "Signal 9" in output
    _, facts = checkpoint.read_checkpoint(folder / "checkpoint.safetensors")
    assert facts["decisions"] > 0


def start_nodes(arguments: list[str]) -> list[subprocess.Popen[str]]:
    """torchrun on two nodes, both of them here."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
    launcher += ["--master-addr=127.0.0.1", f"--master-port={port}"]
    return [
        subprocess.Popen(
            [*launcher, f"--node-rank={rank}", "-m", "training.train", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for rank in range(2)
    ]  # fmt: skip


def end(nodes: list[subprocess.Popen[str]]) -> None:
    """Kill them with their children, which outlive a launcher that is killed."""
    for node in nodes:
        for process in [*children(node.pid), node.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def children(process: int) -> list[int]:
    found = subprocess.run(["ps", "--ppid", str(process), "-o", "pid="], capture_output=True, text=True, check=False)
    return [int(child) for child in found.stdout.split()]


@pytest.mark.processes
def test_two_nodes_train_one_policy(tmp_path: Path) -> None:
    arguments = shipped(tmp_path)
    nodes = start_nodes([*arguments, "decisions=4000"])
    try:
        outputs = [node.communicate(timeout=300)[0] for node in nodes]
    finally:
        end(nodes)
    assert [node.returncode for node in nodes] == [0, 0], outputs
    assert "load_opponent(" in outputs[0] and "load_opponent(" not in outputs[1]  # one writer
    folder = tmp_path / "runs" / "tiny"
    assert load_opponent(folder / "opponent").game.name == "back_alley"
    arrays, facts = checkpoint.read_checkpoint(folder / "checkpoint.safetensors")
    assert arrays["rank0/dealt_from"].tobytes() != arrays["rank1/dealt_from"].tobytes()  # deals of their own
    assert len(facts["ranks"]) == 2 and facts["decisions"] >= 4000
    alone = CliRunner().invoke(app, [*arguments, "decisions=5000", "--resume"])
    assert alone.exit_code == 0, alone.output
    assert "it had 2 x 32 tables in as many processes, now 1 x 32 tables" in alone.output
    assert "no longer bit-exact" in alone.output


@pytest.mark.processes
@pytest.mark.slow
def test_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    """Killed ten times without warning, a run ends with the very weights of one that was left alone."""
    budget = ["decisions=60_000", "save_minutes=1e-9"]
    (tmp_path / "calm").mkdir()
    (tmp_path / "killed").mkdir()
    calm = start([*shipped(tmp_path / "calm"), *budget])
    output, _ = calm.communicate(timeout=600)
    assert calm.returncode == 0, output
    arguments = [*shipped(tmp_path / "killed"), *budget]
    folder = tmp_path / "killed" / "runs" / "tiny"
    rng = random.Random(0)
    kills, reached = 0, [0]
    while kills < 10:
        log, resume = folder / "log.jsonl", []
        if (folder / "checkpoint.safetensors").exists():
            resume = ["--resume"]
        process = start([*arguments, *resume])
        try:
            if rng.random() < 0.75 or not resume:  # while it trains; else while it starts
                # The first checkpoint lies between the second line, after the untrained network's, and the third.
                wait_for_lines(process, log, 1 + log.read_text().count("\n") if resume else 3)
                time.sleep(rng.uniform(0, 0.2))
            else:
                time.sleep(rng.uniform(0, 4))
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        kills += 1
        _, facts = checkpoint.read_checkpoint(folder / "checkpoint.safetensors")  # the last good one is always there
        reached.append(facts["decisions"])
    print("decisions at the kills:", reached)
    assert reached == sorted(reached)
    process = start([*arguments, "--resume"])
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    weights = [run / "opponent" / WEIGHTS_FILE for run in (tmp_path / "calm/runs/tiny", folder)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
