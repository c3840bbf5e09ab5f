"""What an installed package has and says: settings by name, what is missing, and the oldest versions that it allows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.release import untried
from training.config import load_config, recipes

ROOT = Path(__file__).parents[1]
OLDEST_GIB = 10  # of disk, most of them for CUDA: 8.3 at most in November 2026
GAME = load_config(ROOT / "configs" / "quickstart.toml").game
WITHOUT = """
import runpy, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

missing, module, *sys.argv[1:] = sys.argv[1:]
sys.meta_path.insert(0, Missing())
runpy.run_module(module, run_name="__main__")
"""


def run(folder: Path, *words: str | Path, python: str | Path = sys.executable, path: Path | None = None) -> str:
    """What a command says in that folder; it must not end in a traceback."""
    environment = {**os.environ, "PYTHONPATH": str(path or ""), "COLUMNS": "200"}
    done = subprocess.run([python, *words], capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as `pip install` leaves it, without what it needs."""
    if not find_spec("hatchling"):
        pytest.skip("hatchling, which builds the package, is not installed: it is in the extra dev")
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def test_settings_are_installed_and_have_names(installed: Path, tmp_path: Path) -> None:
    assert sorted(path.name for path in installed.iterdir() if path.suffix != ".dist-info") == ["card_envs"]
    say = "from card_envs.training import config; print(*config.recipes()); print(config.__file__)"
    names, file = run(tmp_path, "-c", say, path=installed).splitlines()
    assert names.split() == list(recipes()) and file == str(installed / "card_envs/training/config.py")
    assert "Usage: python -m card_envs train" in run(tmp_path, "-m", "card_envs", "train", "--help", path=installed)
    said = run(tmp_path, "-m", "card_envs", "train", "--config", "configs/quickstart.toml", path=installed)
    assert f"did you mean --config quickstart? there are: {', '.join(names.split())}" in said


def test_training_without_torch_says_what_to_do(tmp_path: Path) -> None:
    said = run(
        tmp_path, "-c", WITHOUT, "torch", "training.train", "--config", "quickstart", f"runs={tmp_path}", path=ROOT
    )
    assert "training needs torch: pip install 'card_envs[train]'" in said


@pytest.mark.parametrize(
    ("missing", "kind", "extra"),
    [
        ("anyio", "--stdio", "serve"), ("anyio", "--mcp", "mcp"), ("fastapi", "--port=8000", "serve"),
    ],
)  # fmt: skip
def test_serving_without_its_packages_says_what_to_do(missing: str, kind: str, extra: str, tmp_path: Path) -> None:
    said = run(tmp_path, "-c", WITHOUT, missing, "card_envs", "serve", kind, "--game", GAME, path=ROOT)
    assert f"pip install 'card_envs[{extra}]'" in said and missing in said


def test_the_release_check_tries_every_command() -> None:
    assert not untried()


def oldest() -> list[str]:
    """The oldest version that pyproject.toml allows of each package that is needed to play and to train."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = [*project["dependencies"], *project["optional-dependencies"]["train"]]
    return [re.sub(r">=([\w.]+).*", r"==\1", requirement) for requirement in stated]


SMOKE = """
import numpy as np, gymnasium, card_envs
for game in card_envs.GAMES.values():
    env = gymnasium.make(game.gymnasium_id)
    obs, info = env.reset(seed=1)
    for _ in range(50):
        *_, done, _, info = env.step(env.action_space.sample(info["action_mask"]))
        if done:
            break
    batch = card_envs.BatchEnv(game, 64, seed=0)
    batch.step(batch.mask.argmax(axis=1))
from card_envs import back_alley_v0
env = back_alley_v0.env()
env.reset(seed=1)
print(card_envs.load_opponent("ppo", env.game).advise(env.view(env.agent_selection))[0])
"""


@pytest.mark.slow
def test_the_oldest_stated_versions_work(tmp_path: Path) -> None:
    """In an environment of their own: play, compare, train a little.

    The oldest torch comes with CUDA: gigabytes that are fetched, unpacked and deleted.
    """
    free = shutil.disk_usage(tmp_path).free / 2**30
    if free < OLDEST_GIB:
        pytest.skip(f"{free:.0f} GiB of disk are free in {tmp_path}; an old torch with CUDA takes {OLDEST_GIB} GiB")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    command = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", ROOT, *oldest()]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    versions = run(tmp_path, "-m", "pip", "list", "--format", "freeze", python=python)
    print("\n".join(line for line in versions.splitlines() if line in oldest()))
    assert "(" in run(tmp_path, "-c", SMOKE, python=python)
    compare = ("compare", GAME, "greedy", "ppo", "trivial", "--pairs", "20", "--picture", "p.png")
    assert "20 mirrored pairs" in run(tmp_path, "-m", "card_envs", *compare, python=python)
    assert "compare" in run(tmp_path, "-m", "card_envs", "--help", python=python)
    words = ("decisions=20_000", "final_pairs=10", "num_envs=64")
    assert "load_opponent" in run(tmp_path, "-m", "card_envs", "train", "--config", "quickstart", *words, python=python)
    assert "mirrored pairs" in run(
        tmp_path, "-m", "card_envs", "compare", GAME, "runs/quickstart/opponent", "greedy", "--pairs", "10",
        python=python,
    )  # fmt: skip


def test_a_second_copy_is_warned_of(tmp_path: Path) -> None:
    """`pip install .` leaves one beside the checkout: `python -m` there uses the checkout, examples the other."""
    about = tmp_path / "card_envs-0.0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: card_envs\nVersion: 0.0.1\n")
    assert "warning" not in run(ROOT, "-m", "card_envs", "games", path=tmp_path)  # editable: no code there
    (tmp_path / "card_envs").mkdir()
    (tmp_path / "card_envs" / "__init__.py").touch()
    said = run(ROOT, "-m", "card_envs", "games", path=tmp_path)
    assert f"the copy in {tmp_path / 'card_envs'}" in said and "pip install -e ." in said
