"""Builds all wheels into `dist/` and tries those that this machine can run: `python -m tests.wheels [TARGET]...`.

One with libraries for each kind of machine, all of them made here, and one without. Needs the extra `build`.
"""

from __future__ import annotations

import sys
import tempfile
import venv
from pathlib import Path
from typing import NamedTuple

from card_envs.build import build_libraries
from card_envs.compiling._library import machine
from card_envs.games import GAMES
from tests.release import DIST, ROOT, run


class Wheel(NamedTuple):
    """A wheel: the end of its tag, the machine that it is for, and whose libraries it has."""

    platform: str
    machine: str
    targets: tuple[str, ...]


WHEELS = (
    Wheel("manylinux_2_17_x86_64", "linux-x86_64", ("x86-64-v2", "x86-64-v3")),
    Wheel("manylinux_2_17_aarch64", "linux-aarch64", ("aarch64",)),
    Wheel("macosx_11_0_arm64", "darwin-arm64", ("macos-arm64",)),
    Wheel("macosx_10_15_x86_64", "darwin-x86_64", ("macos-x86-64",)),
    Wheel("", "", ()),
)
TRY = """
import sys, time
start = time.perf_counter()
import card_envs
for game in {games!r}:
    env = __import__(f"card_envs.{{game}}_v0", fromlist=["env"]).env()
    env.reset(seed=1)
    view = env.view(env.agent_selection)
    for who in ("small", "strong", "champion"):
        print(game, who, card_envs.load_opponent(f"{{game}}/{{who}}").rank_moves(view)[0].move)
print(f"{{time.perf_counter() - start:.1f}} s, Numba imported: {{'numba' in sys.modules}}")
"""


def make(wheel: Wheel) -> Path:
    """Build a wheel and return its file."""
    before = set(DIST.glob("*.whl"))
    tag = f"{wheel.platform}:{','.join(wheel.targets)}" if wheel.targets else ""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", DIST, CARD_ENVS_WHEEL=tag)
    (made,) = set(DIST.glob("*.whl")) - before
    return made


def tried(wheel: Path) -> str:
    """What a clean environment says that has only this wheel and what it needs."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
        return run(python, "-c", TRY.format(games=list(GAMES)), cwd=Path(folder))


def main(names: list[str]) -> None:
    """Build, list and try the wheels of some targets, or all."""
    chosen = [wheel for wheel in WHEELS if not names or set(wheel.targets) & set(names)]
    for file in DIST.glob("*.whl"):
        file.unlink()
    targets = [target for wheel in chosen for target in wheel.targets]
    build_libraries(list(GAMES.values()), targets, progress=lambda what, done, of: print(f"{what}: {done} of {of}"))
    for wheel in chosen:
        made = make(wheel)
        print(f"{made.name}: {made.stat().st_size / 1e6:.1f} MB")
        if wheel.machine in ("", machine()):
            print(tried(made))


if __name__ == "__main__":
    main(sys.argv[1:])
