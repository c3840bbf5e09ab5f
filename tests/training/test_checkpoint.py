"""Modified, truncated, forged and older checkpoints are refused, and the one before is named."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from training import checkpoint
from training.algorithms.ppo import PPO
from training.config import Config
from training.run import Run

CONFIG = Config(
    game="high_card",
    decisions=3000,
    num_envs=16,
    num_steps=7,
    hidden=[8],
    minibatch_size=64,
    pool_size=5,
)
NAME = "checkpoint.safetensors"


@pytest.fixture(scope="module")
def trained() -> Run:
    run = Run(CONFIG)
    assert isinstance(run.algorithm, PPO)
    while not run.algorithm.pool.snapshots:
        run.iterate()
    return run


def test_300_flipped_bits_are_300_refusals(trained: Run, tmp_path: Path) -> None:
    path = tmp_path / NAME
    trained.save_checkpoint(path)
    whole = path.read_bytes()
    rng = random.Random(0)
    places = [rng.randrange(8 * len(whole)) for _ in range(200)]
    places += [rng.randrange(8 * 4096) for _ in range(100)]  # lengths, names, digest, facts
    for place in places:
        data = bytearray(whole)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        with pytest.raises(ValueError, match=f"{path}: not a checkpoint"):
            checkpoint.read_checkpoint(path)
    for length in (0, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="truncated or modified"):
            checkpoint.read_checkpoint(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ValueError, match="truncated or modified"):
        checkpoint.read_checkpoint(path)
    path.write_bytes(whole)
    arrays, facts = checkpoint.read_checkpoint(path)
    path.write_bytes(save(arrays, {"facts": json.dumps(facts)}))  # without a digest
    with pytest.raises(ValueError, match="truncated or modified"):
        checkpoint.read_checkpoint(path)


def test_the_one_before_is_kept_and_named(trained: Run, tmp_path: Path) -> None:
    path = tmp_path / NAME
    trained.save_checkpoint(path)
    first = path.read_bytes()
    path.write_bytes(first[:-1])
    with pytest.raises(ValueError, match="there is no good one before it: start again without --resume"):
        checkpoint.read_checkpoint(path)
    path.write_bytes(first)
    trained.save_checkpoint(path)
    kept = checkpoint.previous(path)
    assert kept.read_bytes() == first and sorted(tmp_path.iterdir()) == [kept, path]
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=rf"after {trained.decisions:,} decisions: `mv {kept} {path}`"):
        Run(CONFIG).load_checkpoint(path)
    path.unlink()
    with pytest.raises(ValueError, match=rf"there is no checkpoint to resume from; .*`mv {kept}"):
        checkpoint.read_checkpoint(path)
    kept.rename(path)
    Run(CONFIG).load_checkpoint(path)


def put(name: str, value: Any) -> Callable[[checkpoint.Arrays, dict[str, Any]], None]:
    def forge(arrays: checkpoint.Arrays, facts: dict[str, Any]) -> None:
        facts[name] = value

    return forge


def put_in_algorithm(name: str, value: Any) -> Callable[[checkpoint.Arrays, dict[str, Any]], None]:
    def forge(arrays: checkpoint.Arrays, facts: dict[str, Any]) -> None:
        facts["algorithm"][name] = value

    return forge


def fill(name: str, value: float) -> Callable[[checkpoint.Arrays, dict[str, Any]], None]:
    def forge(arrays: checkpoint.Arrays, facts: dict[str, Any]) -> None:
        arrays[name] = np.full_like(arrays[name], value)

    return forge


def moves_dropped(arrays: checkpoint.Arrays, facts: dict[str, Any]) -> None:
    arrays["rank0/moves"] = arrays["rank0/moves"][:-1]


def moves_appended(arrays: checkpoint.Arrays, facts: dict[str, Any]) -> None:
    """The first episode goes on beyond its end."""
    arrays["rank0/moves"] = np.concatenate([np.full(99, arrays["rank0/moves"][0]), arrays["rank0/moves"]])
    arrays["rank0/lengths"][0] += 99


def other_keys(arrays: checkpoint.Arrays, facts: dict[str, Any]) -> None:
    arrays["rank0/dealt_from"] = arrays["rank0/dealt_from"].astype(np.int64)


def wrong_stream(arrays: checkpoint.Arrays, facts: dict[str, Any]) -> None:
    facts["ranks"][0]["pool"] = {"bit_generator": "PCG64", "state": "no"}


FORGED: dict[str, tuple[Callable[[checkpoint.Arrays, dict[str, Any]], None], str]] = {
    "decisions below 0": (put("decisions", -1), "decisions"),
    "decisions of a fraction": (put("decisions", 1.5), "decisions"),
    "seconds of no number": (put("seconds", float("nan")), "seconds"),
    "no such stage": (put_in_algorithm("stage", 7), "stage"),
    "more snapshots than there may be": (put_in_algorithm("pool_snapshots", 500), "pool_snapshots"),
    "snapshots that are not there": (put_in_algorithm("pool_snapshots", 5), "pool"),
    "an algorithm that knows nothing": (put("algorithm", {}), "stage"),
    "unknown fact": (put("surprise", 1), "surprise"),
    "a rank that knows nothing": (put("ranks", [{}]), "rng"),
    "wrong stream": (wrong_stream, "pool: expected the state"),
    "moves of ones": (fill("rank0/moves", 255), "moves: number "),
    "a move less": (moves_dropped, "lengths: expected"),
    "moves after the end": (moves_appended, "moves: number "),
    "other keys": (other_keys, "dealt_from: expected 16 of uint64"),
    "weights of no number": (fill("algorithm/actor/first_weight", float("nan")), "finite"),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_checkpoints_are_refused(forgery: str, trained: Run, tmp_path: Path) -> None:
    """The checksum is right: what only the checks behind it can find."""
    path = tmp_path / NAME
    trained.save_checkpoint(path)
    arrays, facts = checkpoint.read_checkpoint(path)
    forge, named = FORGED[forgery]
    forge(arrays, facts)
    checkpoint.write(path, arrays, facts)
    with pytest.raises(ValueError, match=named) as error:
        Run(CONFIG).load_checkpoint(path)
    assert str(path) in str(error.value) and "the one before it is good" in str(error.value)
