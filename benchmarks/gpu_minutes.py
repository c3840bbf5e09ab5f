"""`benchmarks/gpu_minutes.sh MINUTES`: tests, rates, profiles and training on a GPU that is lent for minutes.

Needs no network: what this machine's Python lacks is installed from the wheels in WHEELS, if that folder is there.
Steps run one after the other, each within a limit of time, whatever became of the one before. All that they write is
in OUT at once; OUT/result.json sums it up after each step, and says what did not finish.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks.gpu_steps import ROOT, SITE, Minutes, Step

SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"}
AROUND = 60.0  # seconds that training takes besides learning: it imports, compiles and measures
GRAPHS, EAGER = "back_alley", "graphs=false"
PROFILED: tuple[tuple[str, list[str]], ...] = (
    (GRAPHS, []),
    (GRAPHS, [EAGER]),
    ("russian_bank", []),  # there are no graphs where networks read moves
)
# Of the minutes that are left when each begins, a share; the last takes what is left: 0.4, 0.25 and 0.35 in all.
LABELS, PLAYOUTS = "back_alley_advantages", "back_alley_playouts"  # which begins where the other ended
TRAINED = {"russian_bank": 0.4, LABELS: 0.42, PLAYOUTS: 1.0}
KINDS = ("wheels", "tests", "rates", "profiles", "training")
PAIRS = ("quick_pairs=4", "final_pairs=20")  # a card waits while a processor measures, which it can do later
TINY = ("num_envs=4", "num_steps=2", "hidden=[8]", "minibatch_size=8", "quick_pairs=1", "final_pairs=1")


class Plan:
    """What is to be done.

    Attributes:
        out: the folder of all that is found.
        wheels: the folder of what to install.
        tiny: as small as can be, for CUDA's simulator.
    """

    def __init__(self, out: Path, wheels: Path, tiny: bool) -> None:
        self.out, self.wheels, self.tiny = out, wheels, tiny

    def steps(self) -> dict[str, list[Step]]:
        """Return the steps by kind, in their order."""
        games = sorted(file.parent.name for file in (ROOT / "card_envs" / "games").glob("*/rules.py"))
        return {
            "wheels": [Step("wheels", self.install, 0.25, 60)] if self.wheels.is_dir() else [],
            "tests": [Step("tests", self.test, 0.25, 180)],
            "rates": [Step(f"rates of {game}", partial(self.rates, game), 0.1, 40) for game in games],
            "profiles": [
                Step(" ".join(["profile of", recipe, *more]), partial(self.profile, recipe, more), 0.15, 75)
                for recipe, more in PROFILED
            ],
            "training": [
                Step(f"training of {name}", partial(self.train, name), share) for name, share in TRAINED.items()
            ],
        }

    def install(self, seconds: float) -> list[str]:
        options = ["--quiet", "--no-index", "--no-deps", "--upgrade", "--target", str(SITE)]
        return ["-m", "pip", "install", *options, *map(str, sorted(self.wheels.glob("*.whl")))]

    def test(self, seconds: float) -> list[str]:
        workers = ["-n", "1"] if self.tiny else ["-n", "auto", "--maxprocesses", "16"]
        files = ["tests/test_gpu.py"] if self.tiny else ["tests/test_gpu.py", "tests/training"]
        options = ["-m", "gpu", "-v", *workers, "--durations=0", "-p", "tests.progress"]
        return ["-m", "pytest", *options, "--progress", f"{self.out}/tests.jsonl", *files]

    def rates(self, game: str, seconds: float) -> list[str]:
        options = ["--device", "cuda", "--seconds", "0.01" if self.tiny else "0.7"]
        return ["-m", "card_envs", "bench", game, *options, "--json", f"{self.out}/rates/{game}.json"]

    def profile(self, recipe: str, overrides: list[str], seconds: float) -> list[str]:
        settings = [f"gpu/{recipe}", *(TINY if self.tiny else ()), *overrides]
        return ["-m", "benchmarks.gpu", "--profile", *settings, "--json", str(self.profile_of(recipe, *overrides))]

    def profile_of(self, *words: str) -> Path:
        """Return the file of the profile of a recipe with these settings."""
        return self.out / "profiles" / f"{'-'.join(words)}.json"

    def train(self, recipe: str, seconds: float) -> list[str]:
        minutes = 0.005 if self.tiny else max(seconds / 2, seconds - AROUND) / 60
        settings = [f"minutes={minutes:.3f}", f"runs={self.out}/runs", f"name={recipe}"]
        settings += TINY if self.tiny else PAIRS
        if self.tiny and recipe == "russian_bank":  # to measure lookahead takes Python many minutes
            settings.append("network=afterstates")
        if recipe == PLAYOUTS:
            before = self.out / "runs" / LABELS
            settings.append(f"warm_start={before if (before / 'checkpoint.safetensors').is_file() else ''}")
        if self.profile_of(GRAPHS, EAGER).is_file() and not self.profile_of(GRAPHS).is_file():
            settings.append(EAGER)  # graphs have failed
        return ["-m", "training.train", "--config", f"gpu/{recipe}", *settings]


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu_minutes.sh", description=__doc__)
    parser.add_argument("minutes", type=float, help="for all steps together")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="these steps alone")
    trial = "a trial in CUDA's simulator; SIZE=tiny as well"
    parser.add_argument("--tiny", action="store_true", default=os.environ.get("SIZE") == "tiny", help=trial)
    arguments = parser.parse_args()
    out = Path(os.environ.get("OUT") or ROOT / "build" / "gpu_minutes").resolve()
    wheels = Path(os.environ.get("WHEELS") or ROOT / "build" / "wheels-gpu").resolve()
    if (out / "result.json").exists():
        shutil.move(out, out.with_name(f"{out.name}-until-{time.strftime('%Y%m%d-%H%M%S')}"))
    # A process that is started in the background ignores Ctrl-C, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    minutes = Minutes(out, arguments.minutes, SIMULATOR if arguments.tiny else None)
    steps = Plan(out, wheels, arguments.tiny).steps()
    try:
        minutes.run(step for kind in KINDS if kind in arguments.only for step in steps[kind])
    except KeyboardInterrupt:
        return 130
    finally:
        minutes.write()
        print(out / "result.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
