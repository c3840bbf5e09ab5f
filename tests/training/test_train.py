"""The command: a whole run, Ctrl-C, and what goes wrong before it starts."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from card_envs import BatchEnv, get_game, load_opponent
from card_envs.compare.pairs import play_pairs
from card_envs.opponents.networks.folder import load_card
from card_envs.opponents.policy import decisions_at
from training.algorithms.ppo import PPO
from training.config import load_config
from training.rollout import GREEDY, POOL
from training.run import Run
from training.train import app

CONFIGS = Path(__file__).parents[2] / "configs"
QUICKSTART = CONFIGS / "quickstart.toml"
TINY = ["num_envs=32", "num_steps=16", "hidden=[16]", "minibatch_size=64", "final_pairs=2", "quick_pairs=1"]


def arguments(runs: Path, *overrides: str) -> list[str]:
    return ["--config", str(QUICKSTART), f"runs={runs}", "name=tiny", *TINY, *overrides]


def test_a_whole_run(tmp_path: Path) -> None:
    overrides = ["decisions=3000", "save_minutes=1e-6"]
    result = CliRunner().invoke(app, arguments(tmp_path, *overrides))
    assert result.exit_code == 0, result.output
    folder = tmp_path / "tiny"
    assert f'load_opponent("{folder / "opponent"}")' in result.output
    assert f"python -m card_envs play back_alley --opponents {folder / 'opponent'}" in result.output
    start, *log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert start["decisions"] == 0 and 0 <= start["win_share_trivial"] <= 1
    assert log[-1]["decisions"] >= 3000 > log[-2]["decisions"]
    assert all(0 < entry["entropy"] <= 1.001 and entry["decisions_per_second"] > 0 for entry in log)
    assert list((folder / "tensorboard").iterdir())
    assert log[-1]["learning_rate"] < log[0]["learning_rate"]
    settings = load_config(folder / "config.resolved.toml")
    assert (settings.decisions, settings.hidden, settings.options) == (3000, [16], {"deals": "single"})
    card = load_card(folder / "opponent")
    assert [entry["against"] for entry in card.strength] == ["trivial", "greedy"]
    assert card.training["decisions"] == log[-1]["decisions"]
    opponent = load_opponent(folder / "opponent")
    env = BatchEnv(opponent.game, 50)
    decisions = decisions_at(opponent.game, env.states)
    actions = opponent.act(decisions, np.random.default_rng(0))
    assert decisions.mask[np.arange(50), actions].all()

    warm = CliRunner().invoke(app, arguments(tmp_path, "decisions=1", "name=warm", f"warm_start={folder / 'opponent'}"))
    assert warm.exit_code == 0, warm.output
    wrong = CliRunner().invoke(app, arguments(tmp_path, "decisions=1", "name=wrong", "warm_start=greedy"))
    assert wrong.exit_code == 2 and "expected the folder of a run" in wrong.output

    again = CliRunner().invoke(app, arguments(tmp_path, "decisions=1"))
    assert again.exit_code == 0, again.output
    assert load_card(tmp_path / "tiny.1" / "opponent") == card  # nothing is lost


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_ctrl_c_leaves_an_opponent(number: signal.Signals, tmp_path: Path) -> None:
    """And so does a terminal that is closed, where nothing can be printed any longer."""
    command = [sys.executable, "-m", "training.train", *arguments(tmp_path, "minutes=60")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        log = tmp_path / "tiny" / "log.jsonl"
        deadline = time.monotonic() + 300
        while not (log.exists() and log.read_text().count("\n") >= 2):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        if number == signal.SIGHUP:
            assert process.stdout is not None
            process.stdout.close()
        process.send_signal(number)
        output = "" if number == signal.SIGHUP else process.communicate(timeout=120)[0]
        process.wait(120)
    finally:
        process.kill()
    assert process.returncode == 130, output
    assert number == signal.SIGHUP or ("stopped after" in output and "Traceback" not in output)
    assert load_opponent(tmp_path / "tiny" / "opponent").game.name == "back_alley"
    assert load_card(tmp_path / "tiny" / "opponent").training["decisions"] > 0


@pytest.mark.parametrize("blocked", ["runs", "runs/tiny"])
def test_a_folder_that_cannot_be_written_fails_before_training(tmp_path: Path, blocked: str) -> None:
    runs = tmp_path / "runs"
    (tmp_path / blocked).parent.mkdir(exist_ok=True)
    (tmp_path / blocked).write_text("in the way")
    result = CliRunner().invoke(app, arguments(runs, "decisions=100"))
    assert result.exit_code == 2
    assert "error:" in result.output and "runs" in result.output
    assert (tmp_path / blocked).read_text() == "in the way"


def test_wrong_settings_end_in_one_line(tmp_path: Path) -> None:
    for extra, said in (
        ("learning_rat=1", "did you mean learning_rate"),
        ("pool_share=0.0 pool_opponents=['small']", "pool_opponents would play at no table"),
        ("game=big_ben options={} pool_opponents=['small']", "pool_opponents would play at no table"),
    ):
        result = CliRunner().invoke(app, arguments(tmp_path, *extra.split()))
        assert result.exit_code == 2
        assert said in result.output and "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_short_run_beats_random(tmp_path: Path) -> None:
    command = ["--config", str(QUICKSTART), f"runs={tmp_path}", "name=short", "decisions=300_000", "final_pairs=10"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    game = get_game("back_alley")
    strength = play_pairs(game, load_opponent(tmp_path / "short" / "opponent"), load_opponent("random", game), 200)
    assert strength.win_share.low > 0.9
    assert strength.margin_per_deal.low > 5


@pytest.mark.parametrize(
    ("against", "player"),
    [
        (["warm_start=''", "bc_coef=1", 'pool_opponents=["small"]'], POOL),
        (["warm_start=''", "bc_coef=1", "pool_opponents=[]", "pool_share=0", "greedy_share=1"], GREEDY),
    ],
)
def test_a_best_response_plays_its_victim_alone(against: list[str], player: int) -> None:
    sizes = ["num_envs=32", "num_steps=16", "minibatch_size=64"]
    run = Run(load_config(CONFIGS / "best_response.toml", [*sizes, *against]))
    for _ in range(3):
        run.iterate()
    assert isinstance(run.algorithm, PPO) and not run.algorithm.pool.snapshots
    assert (run.algorithm.rollout.players == player).any(dim=1).all()


def test_a_run_moves_only_runs_aside(tmp_path: Path) -> None:
    """A folder of the user's stays, also if files in it are called as those of a run."""
    for name in ("notes.txt", "log.jsonl", "checkpoint.safetensors"):
        (tmp_path / "tiny" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "tiny" / name).write_text(f"years of work: {name}")
    before = {path: path.read_bytes() for path in (tmp_path / "tiny").iterdir()}
    result = CliRunner().invoke(app, arguments(tmp_path, "decisions=600"))
    assert result.exit_code and "tiny" in result.output.replace("\n", "")
    assert {path: path.read_bytes() for path in (tmp_path / "tiny").iterdir()} == before
    shutil.rmtree(tmp_path / "tiny")
    for _ in range(2):
        assert CliRunner().invoke(app, arguments(tmp_path, "decisions=600")).exit_code == 0
    assert (tmp_path / "tiny.1" / "config.resolved.toml").is_file()
