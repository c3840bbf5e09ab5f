"""Whatever replaces, moves or deletes files touches only what was made here: a user's files outlast all of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from card_envs import _files as files
from card_envs import load_opponent
from card_envs.games import GAMES
from card_envs.opponents.networks.folder import check_place, golden_decisions, save_network
from card_envs.opponents.networks.policies import TrainedPolicy

GAME = next(iter(GAMES.values()))
OLD = time.time() - 30 * 86400


def network() -> TrainedPolicy:
    policy = load_opponent("small", GAME).policy
    assert isinstance(policy, TrainedPolicy)
    return policy


def save_opponent(folder: Path) -> None:
    save_network(folder, network(), golden_decisions(GAME), training={}, strength=[])


def train(folder: Path) -> None:
    from training.train import app

    sizes = ["hidden=[8]", "num_envs=32", "num_steps=8", "minibatch_size=64", "decisions=600"]
    sizes += ["final_pairs=2", "quick_pairs=1"]
    where = [f"runs={folder.parent}", f"name={folder.name}"]
    done = CliRunner().invoke(app, ["--config", GAME.name, *where, *sizes])
    if done.exit_code:
        raise ValueError(done.output)


def lock(folder: Path) -> None:
    with files.locked(folder / "notes.txt"):
        pass


WRITERS: dict[str, Callable[[Path], None]] = {
    "opponent": save_opponent,
    "run": train,
    "lock": lock,
    "leftovers": files.clear_leftovers,
    "place": check_place,
}


def users_files(folder: Path) -> dict[Path, bytes]:
    """Old things of a user's, some of which are called as ours are; returns them with their contents."""
    names = (
        "notes.txt", "weights.safetensors", "model.onnx", "log.jsonl", "checkpoint.safetensors", "data/rows.csv",
        ".new-project/plan.txt", ".new-12-draft", "opponent/notes.txt",
    )  # fmt: skip
    found = {}
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"years of work: {name}")
        os.utime(path, (OLD, OLD))
        found[path] = path.read_bytes()
    (folder / ".new-project").chmod(0o755)
    os.utime(folder / ".new-project", (OLD, OLD))
    folder.chmod(0o755)
    return found


def untouched(found: dict[Path, bytes], folder: Path) -> bool:
    return (
        all(path.read_bytes() == content for path, content in found.items()) and folder.stat().st_mode & 0o777 == 0o755
    )


@pytest.mark.parametrize("writer", WRITERS)
def test_a_users_folder_stays_as_it_is(writer: str, tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    found = users_files(folder)
    try:
        WRITERS[writer](folder)
    except (OSError, ValueError) as error:
        assert "thesis" in str(error).replace("\n", "")  # noqa: PT017 (not every writer has anything against it)
    assert untouched(found, folder) and sorted(tmp_path.iterdir()) in ([folder], [tmp_path / ".thesis.lock", folder])


def test_what_a_user_adds_to_an_opponent_stays(tmp_path: Path) -> None:
    """A note, a folder, and a model that was exported beside the weights; and the folder's access rights."""
    folder = tmp_path / "opponent"
    save_opponent(folder)
    found = {}
    for name in ("notes.txt", "model.onnx", "value/weights.safetensors"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
        found[folder / name] = (folder / name).read_bytes()
    (folder / "latest").symlink_to("notes.txt")
    folder.chmod(0o755)
    (folder / "weights.safetensors").write_bytes(b"broken")  # ours, and replaced
    for _ in range(2):
        save_opponent(folder)
        assert untouched(found, folder) and (folder / "latest").readlink() == Path("notes.txt")
    assert load_opponent(folder).game == GAME


def test_a_run_moves_only_runs_aside(tmp_path: Path) -> None:
    for _ in range(2):
        train(tmp_path / "run")
    assert (tmp_path / "run.1" / "config.resolved.toml").is_file()
