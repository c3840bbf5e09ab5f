"""Builds the wheel and the sdist into `dist/` and tests both in clean environments: `python -m tests.release`.

- The wheel without extras, for each Python from 3.11 to 3.14 on the PATH (`PYENV_VERSION=3.11.7:3.12.1` for pyenv's):
  no torch comes along, every command works or says which extra it needs.
- The sdist with extras, for the Python at hand: training, models in and out, pictures, the server.

`--quick` leaves out what brings torch. Packages come from where pip finds them; `constraints.txt` has the versions.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Annotated

import typer

from card_envs.__main__ import app
from card_envs.games import GAMES

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = "train,serve,onnx,draw"
PLACEHOLDER = "example.org"
GAME = next(game.name for game in GAMES.values() if not game.is_solitaire)
SOLVED = next(game.name for game in GAMES.values() if game.solver is not None)
VIEW = f"""
import json
from card_envs.{GAME}_v0 import env as new
env = new()
env.reset(seed=1)
open("view.json", "w").write(json.dumps(env.view(env.agent_selection)))
"""
# What each command is tried with, and what it must say; where it needs an extra, that it says which.
CORE: dict[str, tuple[list[str], str]] = {
    "games": ([], GAME),
    "compare": ([GAME, "greedy", "trivial", "--pairs", "4"], "mirrored pairs"),
    "score": (["trivial", "--game", SOLVED, "--quick"], "card_envs-1-quick"),
    "survey": ([GAME, "--episodes", "4"], "episodes"),
    "generate": ([GAME, "--players", "greedy", "--games", "4", "--format", "jsonl", "--out", "games"], "decisions"),
    "solve": ([SOLVED, "--packs", "1", "--seconds", "2"], "packs"),
    "advise": ([GAME, "view.json", "--opponent", "greedy"], "probability"),
    "schema": ([GAME], "properties"),
    "serve": ([], "card_envs[serve]"),
    "train": (["--config", "quickstart"], "card_envs[train]"),
    "plot": (["run/quickstart"], "pip install"),
    "export": ([f"{GAME}/ppo", "model.onnx"], "card_envs[onnx]"),
    "import": ([GAME, "view.json", "imported"], "card_envs[onnx]"),
    "rules": ([GAME, "--short"], "board"),
    "layout": ([GAME], "observation"),
    "bench": ([GAME, "--seconds", "0.01"], "import card_envs"),
    "play": ([GAME, "--record", "game.json"], "saved"),
    "review": (["game.json", "--by", "search:8"], "judged by"),
    "watch": (["--replay", "game.json"], ""),
    "new-game": (["clean_game", "--folder", "made"], "clean_game"),
    "build": (["--help"], "--target"),
    "check": (["clean_game"], ""),  # the one just made: those that ship have their tests in the checkout
}
TRAIN = [
    "--config", "quickstart", "runs=run", "minutes=0.05", "num_envs=64", "num_steps=16", "quick_pairs=2",
    "final_pairs=4",
]  # fmt: skip
FULL: dict[str, tuple[list[str], str]] = {
    "train": (TRAIN, "load_opponent"),
    "plot": (["run/quickstart"], "drawn to"),
    "export": ([f"{GAME}/ppo", "model.onnx"], "written to"),
    "import": ([GAME, "model.onnx", "imported"], "compare"),
    "compare": ([GAME, "imported", "run/quickstart/opponent", "--pairs", "4"], "mirrored pairs"),
    "serve": (["--stdio"], '"reply"'),
}
REQUEST = '{"id": 1, "call": "games"}\n'


def untried() -> set[str]:
    """The commands that are not in CORE."""
    callbacks = [(command.name, command.callback) for command in app.registered_commands]
    return {name or callback.__name__.replace("_", "-") for name, callback in callbacks if callback} - CORE.keys()


def run(*words: str | Path, cwd: Path = ROOT, text: str = "", fails: bool = False, **environment: str) -> str:
    """What a command says. Ends the check where it fails, or ends in a traceback."""
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, env={**os.environ, **environment}, input=text, capture_output=True, text=True,
        check=False, timeout=900,
    )  # fmt: skip
    said = done.stdout + done.stderr
    if "Traceback" in said or (done.returncode != 0 and not fails):
        raise SystemExit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{said}")
    return said


def build() -> tuple[Path, Path]:
    """The wheel, made from the sdist as an index's users would, and the sdist."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", DIST)
    (sdist,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", DIST, cwd=source)
    (wheel,) = DIST.glob("*.whl")
    return wheel, sdist


def check_contents(wheel: Path) -> None:
    """What must be in the wheel, what must not, and what the package index will show."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("METADATA"))
    wanted = {
        "card_envs/py.typed",
        "card_envs/frontends/serve/page/index.html",
        "card_envs/training/configs/quickstart.toml",
    }
    wanted |= {f"card_envs/games/{game}/RULES.md" for game in GAMES}
    wanted |= {f"card_envs/opponents/models/{GAME}/ppo/weights.safetensors"}
    strange = [name for name in names if not name.startswith("card_envs")]
    if wanted - names or strange:
        raise SystemExit(f"{wheel.name}: missing {sorted(wanted - names)}, not expected {strange}")
    page = metadata.partition("\n\n")[2]
    relative = [link for link in re.findall(r"\]\(([^)]+)\)", page) if not link.startswith(("https://", "#"))]
    if relative:
        raise SystemExit(f"README.md: links that lead nowhere on a package index: {relative}")


def check_versions() -> None:
    """One version everywhere, and a home."""
    text = (ROOT / "pyproject.toml").read_text()
    version = tomllib.loads(text)["project"]["version"]
    for name, form in (("CITATION.cff", f"version: {version}\n"), ("CHANGELOG.md", f"## {version}")):
        if form not in (ROOT / name).read_text():
            print(f"not ready: {name} has no {form.strip()!r}")
    if PLACEHOLDER in text:
        print(f"not ready: pyproject.toml: {PLACEHOLDER} stands where the project's home should")


def is_here(version: str) -> bool:
    """Whether that Python can be started; a name on the PATH may be the shim of a version manager."""
    command = [f"python{version}", "-c", ""]
    return shutil.which(command[0]) is not None and subprocess.run(command, capture_output=True).returncode == 0


def environment(python: str, what: str, folder: Path) -> Path:
    run(python, "-m", "venv", folder / "venv")
    installed = folder / "venv" / "bin" / "python"
    run(installed, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", what)
    return installed


def try_commands(python: Path, commands: dict[str, tuple[list[str], str]], folder: Path) -> None:
    for name, (words, expected) in commands.items():
        if name == "check":
            run(python, "-m", "pip", "install", "--quiet", "--no-deps", folder / "made" / "clean_game")
        text = REQUEST if "--stdio" in words else "quit\n"
        said = run(python, "-m", "card_envs", name, *words, cwd=folder, text=text, fails="[" in expected)
        if expected not in said.replace("\n", " "):
            raise SystemExit(f"card_envs {name} {' '.join(words)}: expected {expected!r} in\n{said}")


def check_core(version: str, wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = environment(f"python{version}", str(wheel), folder)
        listed = json.loads(run(python, "-m", "pip", "list", "--format", "json"))
        heavy = {"torch", "fastapi", "onnx", "matplotlib"} & {package["name"] for package in listed}
        if heavy:
            raise SystemExit(f"the core brings {heavy}")
        run(python, "-c", VIEW, cwd=folder)
        try_commands(python, CORE, folder)
        print(f"Python {version}: wheel without extras, {len(listed)} packages, {len(CORE)} commands")


def check_extras(sdist: Path) -> None:
    """The sdist, with what training and serving need."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = environment(sys.executable, f"{sdist}[{EXTRAS}]", folder)
        try_commands(python, FULL, folder)
        print(f"sdist with {EXTRAS}: {len(FULL)} commands")


def main(quick: Annotated[bool, typer.Option("--quick", help="without the extras")] = False) -> None:
    """Build and test a release."""
    if untried():
        raise SystemExit(f"tests/release.py does not try {sorted(untried())}")
    wheel, sdist = build()
    check_contents(wheel)
    found = [version for version in PYTHONS if is_here(version)]
    for version in found:
        check_core(version, wheel)
    if not quick:
        check_extras(sdist)
    print(f"not tested, since not here: Python {', '.join(sorted(set(PYTHONS) - set(found))) or 'none'}")
    check_versions()
    print(f"{wheel.name} and {sdist.name} are in {DIST}")


if __name__ == "__main__":
    typer.run(main)
