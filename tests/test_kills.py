"""Processes that are killed at random moments, without warning: what they wrote is whole, and nothing lingers."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from card_envs import GAMES, BatchEnv, GameRecord, load_opponent, verify
from card_envs._files import LEFTOVER
from card_envs.envs.aec import CardEnv
from card_envs.opponents.networks.folder import save_network
from card_envs.opponents.networks.policies import NetworkPolicy
from card_envs.opponents.policy import decisions_at
from tests.conftest import play_randomly

GAME = next(iter(GAMES.values()))
COMPARE = """
from card_envs.__main__ import main
from card_envs.compare import _command as command
command.SAVE_SECONDS = 0.0  # write after each part
main()
"""


def killed(rng: random.Random, work: Callable[[], object], longest: float) -> None:
    """Let a child process do some work again and again, and kill it."""
    child = os.fork()
    if child == 0:
        try:
            while True:
                work()
        finally:
            os._exit(1)
    time.sleep(rng.uniform(0, longest))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)  # it was still at it


@pytest.mark.slow
def test_kills_while_saving(tmp_path: Path) -> None:
    """An opponent's folder, a checkpoint and a record are whole at every moment, the old ones or the new."""
    from training import checkpoint

    golden = decisions_at(GAME, BatchEnv(GAME, 32).states)
    shapes = NetworkPolicy.shapes(GAME, [64])
    draws = np.random.default_rng(0)
    weights = [{name: draws.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()} for _ in "ab"]
    table = CardEnv(GAME)
    table.reset(seed=1)
    play_randomly(table, 1)
    opponent, saved, record = tmp_path / "opponent", tmp_path / "checkpoint.safetensors", tmp_path / "game.json"
    facts = {"decisions": 1, "seconds": 1.0, "settings": {}, "num_envs": 1, "algorithm": {}, "ranks": [{}]}

    def save() -> None:
        for one in weights:
            save_network(opponent, NetworkPolicy(GAME, one), golden, training={}, strength=[])
            checkpoint.write(saved, one, facts)
            table.record().save(record)

    save()
    rng = random.Random(0)
    half_written = 0
    for _ in range(100):
        killed(rng, save, 0.1)
        if not opponent.exists():  # between two renames: the old one is beside
            next(tmp_path.glob(".old-*")).rename(opponent)
        load_opponent(opponent, GAME)
        found, _ = checkpoint.read_checkpoint(saved)
        assert any(all(np.array_equal(found[name], one[name]) for name in one) for one in weights)
        checkpoint.read_checkpoint(checkpoint.previous(saved))
        verify(GameRecord.load(record))
        half_written += any(LEFTOVER.fullmatch(path.name) for path in tmp_path.iterdir())
    print(f"100 kills while saving, {half_written} of them after one that left something half-written beside")
    assert half_written


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "kills"), [(1, 20), (2, 20)])
def test_kills_while_comparing(tmp_path: Path, processes: int, kills: int) -> None:
    """The figures that are there are whole and those of some parts; workers end with their command."""
    file, records = tmp_path / "figures.json", tmp_path / "games"
    words = ["compare", GAME.name, "greedy", "trivial", "--processes", str(processes), "--json", str(file)]
    command = [sys.executable, "-c", COMPARE, *words, "--pairs"]
    rng = random.Random(processes)
    with_figures = 0
    for _ in range(kills):
        file.unlink(missing_ok=True)
        process = subprocess.Popen(
            [*command, "60_000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + 120
        while rng.random() < 0.99 and not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)  # most of them while there are figures, the others before
        time.sleep(rng.uniform(0, 0.5))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        if file.exists():
            figures = json.loads(file.read_text())
            assert figures["stopped"] and figures["pairs"] % 1024 == 0
            with_figures += 1
        deadline = time.monotonic() + 60
        while group_lives(process.pid):
            assert time.monotonic() < deadline, "workers outlive their command"
            time.sleep(0.1)
    print(f"{kills} kills while comparing in {processes} processes, {with_figures} of them with figures on the disk")
    done = subprocess.run([*command, "64", "--records", str(records)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(file.read_text())["pairs"] == 64
    for path in records.glob("*.json"):
        verify(GameRecord.load(path))


def group_lives(group: int) -> bool:
    """Whether a process of a process group still runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
