"""`python -m benchmarks.baselines`: how well known methods learn each game, stored in strength/baselines.json.

`high_card`, the template of new games, is one of them: there the optimum is known (`benchmarks/tiny_game.py`). Each
method learns for as many minutes of one core, by CPU time; compiling and measuring do not count. A run is a process of
its own, and stored as soon as it ends: the command goes on where it was stopped. `python docs/figures.py` makes the
tables of docs/baselines.md from the file.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.__main__ import processor
from benchmarks.measuring import short
from benchmarks.tiny_game import Learning, mccfr, nfsp, registered, tree
from card_envs import GAMES, Game, get_game
from card_envs._files import read_json, write_json
from card_envs._processes import begin_worker
from card_envs.compare.estimates import Estimate, as_json, estimate, share
from card_envs.compare.pairs import Match, chunks, join
from card_envs.engine._cost import per_second, work_time
from card_envs.opponents import TorchPolicy, load_opponent
from card_envs.opponents.policy import Policy
from card_envs.scaffold.high_card import GAME as TINY_GAME

FILE = Path(__file__).parents[1] / "strength" / "baselines.json"
ANCHORS = ("greedy", "trivial")
SEED = 7  # of the deals that measure
CFR_ITERATIONS = 100  # of the tiny game's optimum
# What is measured: the first policy after these shares of the minutes and after these decisions.
SHARES = (0.1, 0.3, 1.0)
DECISIONS = (30_000, 100_000)
LIBRARIES = ("card_envs", "torch", "numba", "numpy", "sb3-contrib", "tianshou", "open_spiel")


class Budget:
    """Time to learn.

    Attributes:
        minutes: in all.
        seconds: spent so far; kept by `curve`.
    """

    def __init__(self, minutes: float) -> None:
        self.minutes, self.seconds = minutes, 0.0


Learn = Callable[[Game, dict[str, Any], int, Budget], Learning]  # with the game's options, and a seed


def maskable_ppo(game: Game, options: dict[str, Any], seed: int, budget: Budget) -> Learning:
    from examples.maskable_ppo import train

    settings = {"n_steps": 128, "batch_size": 256, "policy_kwargs": {"net_arch": [128, 128]}}
    for decisions, model in train(game, 16, seed, settings=settings, **options):
        yield decisions, partial(TorchPolicy, model)


def cleanrl_ppo(game: Game, options: dict[str, Any], seed: int, budget: Budget) -> Learning:
    from examples.cleanrl_ppo import train

    for decisions, actor, _ in train(game, seed=seed, **options):
        yield decisions, partial(TorchPolicy, actor)


def tianshou_dqn(game: Game, options: dict[str, Any], seed: int, budget: Budget) -> Learning:
    from examples.tianshou_dqn import train

    for decisions, algorithm, _ in train(game, seed=seed, **options):
        yield decisions, partial(TorchPolicy, algorithm)


def own(recipe: str) -> Learn:
    """Return our trainer with a recipe of `configs/`, which has its own options; only the budget differs."""

    def learn(game: Game, options: dict[str, Any], seed: int, budget: Budget) -> Learning:
        from training.run import Run

        run = Run(recipe_of(game, recipe).changed(seed=seed, minutes=budget.minutes, decisions=None))
        while True:
            run.iterate()
            yield run.decisions, run.algorithm.policy
            run.seconds = budget.seconds  # its schedules follow this clock

    return learn


METHODS: dict[str, Learn] = {
    "maskable_ppo": maskable_ppo,
    "cleanrl_ppo": cleanrl_ppo,
    "tianshou_dqn": tianshou_dqn,
    "ppo": own("{}/ppo"),
    "advantages": own("{}"),
    "td": own("{}/ntuple"),
    "mccfr": lambda game, options, seed, budget: mccfr(seed),
    "nfsp": lambda game, options, seed, budget: nfsp(seed),
}
BIG = ("maskable_ppo", "cleanrl_ppo", "tianshou_dqn", "ppo", "advantages", "td")
TINY = ("mccfr", "nfsp", "cleanrl_ppo", "ppo", "advantages")
TINY_SETTINGS: dict[str, Any] = {  # there is no recipe for it
    "num_envs": 256, "num_steps": 24, "hidden": [64], "minibatch_size": 1024, "learning_rate": 5e-3,
}  # fmt: skip
MIXED = ("mccfr", "nfsp", "cleanrl_ppo", "ppo")  # draw their moves in the tiny game; else the likeliest are played


def recipe_of(game: Game, recipe: str) -> Any:
    """Return the settings of that name for a game."""
    from training.config import Config, load_config

    if game is not TINY_GAME:
        return load_config(Path(recipe.format(game.name)))
    kind: dict[str, Any] = {"algorithm": "advantages", "network": "afterstates", "baseline_bonus": 1.0}
    if recipe.endswith("ppo"):
        kind = {"algorithm": "ppo", "reward_scale": 1.0}
    return Config(game=game.name, minutes=1.0, **kind, **TINY_SETTINGS)


def methods_of(game: Game) -> list[str]:
    """Return the methods for a game: `td` needs a planner."""
    return [name for name in (TINY if game is TINY_GAME else BIG) if name != "td" or game.planner is not None]


def rounded(found: Estimate) -> dict[str, Any]:
    """Return an estimate for JSON."""
    return as_json(Estimate(*(round(value, 4) for value in (found.mean, found.low, found.high))))


def measured(game: Game, policy: Policy, options: dict[str, Any], pairs: int) -> dict[str, Any]:
    """Return what a policy gains over each anchor: points a deal, in a solitaire its score; and what it won."""
    found: dict[str, Any] = {}
    for anchor in ANCHORS:
        match = Match(game, (policy, load_opponent(anchor, game).policy), seed=SEED, options=options)
        part = join([match.play(numbers) for numbers in chunks(pairs)])
        gained = part.margins[0] - part.margins[1] if game.is_solitaire else part.margins[0] / match.deals_per_episode
        found[anchor] = {"gained": rounded(estimate(gained)), "won": rounded(share(part.wins[0]))}
    if game is TINY_GAME:
        found["exploitability"] = round(tree().exploitability(tree().strategy(policy)), 5)
    return found


def curve(learning: Learning, budget: Budget, measure: Callable[[Policy], dict[str, Any]]) -> list[dict[str, Any]]:
    """Learn until the budget is spent; return what was measured on the way, where the time stands still."""
    shares, marks, points = list(SHARES), list(DECISIONS), []
    start = work_time()
    for decisions, policy in learning:
        budget.seconds += work_time() - start
        done = budget.seconds / (60 * budget.minutes)
        due = [*(one for one in shares if done >= one), *(mark for mark in marks if decisions >= mark)]
        if due:
            shares, marks = [one for one in shares if done < one], [mark for mark in marks if decisions < mark]
            point = {"decisions": decisions, "minutes": round(budget.seconds / 60, 4), "after": due}
            points.append(point | measure(policy()))
        if done >= 1:
            break
        start = work_time()
    return points


def options_of(game: Game) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the game's options for learning, and for measuring: single deals; learning may have other rewards."""
    learning = recipe_of(game, "{}/ppo").options_of_stage(0)
    return learning, {name: value for name, value in learning.items() if name != "reward"}


def run(name: str, method: str, seed: int, minutes: float, pairs: int) -> dict[str, Any]:
    """Learn and measure in a process of its own; return what is stored."""
    import torch

    torch.set_num_threads(1)
    registered()
    game, learn = get_game(name), METHODS[method]
    learning, measuring = options_of(game)

    def measure(policy: Any, pairs: int = pairs) -> dict[str, Any]:
        policy.sampled = game is TINY_GAME and method in MIXED
        return measured(game, policy, measuring, pairs)

    _, policy = next(learn(game, learning, seed, Budget(minutes)))  # what has to be compiled is compiled now
    measure(policy(), 1)
    budget = Budget(minutes)
    points = curve(learn(game, learning, seed, budget), budget, measure)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rate = per_second(points[-1]["decisions"], budget.seconds)
    return {"points": points, "decisions_per_second": round(rate, 1), "memory_mib": round(memory)}


def known(game: Game, pairs: int) -> dict[str, Any]:
    """Return what players gain that are not trained here, for comparison."""
    names = ("random", "greedy") if game is TINY_GAME else ("random", "small")
    options = options_of(game)[1]
    found = {name: measured(game, load_opponent(name, game).policy, options, pairs) for name in names}
    if game is TINY_GAME:
        found["optimum"] = measured(game, tree().player(tree().optimum(CFR_ITERATIONS)), options, pairs)
    return found


def facts() -> dict[str, Any]:
    """Return the machine and the versions."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"machine": f"one core of {processor()}, Python {platform.python_version()}", "versions": found}


def begun(path: Path, games: list[str], **settings: Any) -> dict[str, Any]:
    """Return what is stored so far. Raises ValueError if runs of these games were made with other settings."""
    stored: dict[str, Any] = read_json(path) if path.exists() else {**facts(), "games": {}}
    for game in games:
        found = stored["games"].setdefault(game, {**settings, "known": {}, "methods": {}})
        for name, value in settings.items():
            if found[name] != value:
                raise ValueError(
                    f"{path}: {game} was made with {name} = {found[name]}, not {value}: give that, or another --file"
                )
    return stored


def missing(stored: dict[str, Any], games: list[str], methods: list[str], seeds: int) -> list[tuple[str, str, int]]:
    """Return the runs that are still to be made: all methods with the first seed, then with the next."""
    return [
        (name, method, seed)
        for seed in range(seeds)
        for name in games
        for method in methods_of(get_game(name))
        if method in methods and str(seed) not in stored["games"][name]["methods"].get(method, {})
    ]


def main() -> None:
    registered()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="CPU time of each run (default 1)")
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES), help="these alone")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="these alone")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each method (default 3)")
    parser.add_argument("--pairs", type=int, default=250, help="mirrored pairs of a measurement (default 250)")
    parser.add_argument("--file", type=Path, default=FILE, help="of all runs (default strength/baselines.json)")
    arguments = parser.parse_args()
    if not 0 < arguments.minutes < 1e4 or arguments.seeds < 1 or arguments.pairs < 2:
        parser.error("--minutes, --seeds, --pairs: expected numbers above 0 (pairs: at least 2)")
    try:
        stored = begun(
            arguments.file, arguments.games, minutes=arguments.minutes, pairs=arguments.pairs, deals_seed=SEED
        )
    except ValueError as error:
        parser.error(str(error))
    works = missing(stored, arguments.games, arguments.methods, arguments.seeds)
    try:
        for number, (name, method, seed) in enumerate(works):
            game = stored["games"][name]
            game["known"] = game["known"] or known(get_game(name), arguments.pairs)
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), begin_worker) as process:
                made = process.submit(run, name, method, seed, arguments.minutes, arguments.pairs).result()
            game["methods"].setdefault(method, {})[str(seed)] = made
            write_json(arguments.file, stored)
            last = made["points"][-1]
            print(
                f"{number + 1}/{len(works)} {name} {method} {seed}: {last['greedy']['gained']['mean']:+.1f} over "
                f"greedy, {last['decisions']:,} decisions, {short(made['decisions_per_second'])} a second",
                flush=True,
            )
    except ModuleNotFoundError as error:
        sys.exit(f"{method} needs {error.name}: docs/baselines.md says what to install; --methods leaves it out")
    except KeyboardInterrupt:
        sys.exit(f"stopped; what ended is in {arguments.file}, and the same command goes on")


if __name__ == "__main__":
    main()
