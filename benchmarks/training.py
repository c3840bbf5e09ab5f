"""`python -m benchmarks.training`: how well known methods learn each game, stored in strength/baselines.json.

Each method learns for as many minutes of one core, by CPU time; compiling and measuring do not count. A run is a
process of its own, stored as soon as it ends: the command goes on where it was stopped. `python docs/figures.py` makes
the tables of docs/baselines.md from the file. `python -m benchmarks --only training`: decisions learned a second,
beside MaskablePPO. Extras `sb3` and `train`.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core each; before NumPy or torch is imported

from benchmarks import Row, Work, as_work, in_turns, short
from card_envs import GAMES, Game, get_game
from card_envs.compare.contests import Contest, join, play_contest
from card_envs.compare.estimates import Estimate, as_json, estimate, share
from card_envs.engine.cost import per_second, work_time
from card_envs.opponents import TorchPolicy, load_opponent
from card_envs.opponents.policy import Policy
from card_envs.system.files import read_json, write_json
from card_envs.system.processes import begin_worker, processor

FILE = Path(__file__).parents[1] / "strength" / "baselines.json"
SEED = 7  # of the deals that measure
SHARES, DECISIONS = (0.1, 0.3, 1.0), (30_000, 100_000)  # of the minutes, and in all, after which is measured
LIBRARIES = ("torch", "numba", "numpy", "sb3-contrib", "tianshou")


@dataclass
class TimeBudget:
    """Minutes to learn for, and the seconds spent so far; `curve` keeps them."""

    minutes: float
    seconds: float = 0.0


Learning = Iterator[tuple[int, Callable[[], Policy]]]  # after each update: decisions so far, what gives the policy
Learn = Callable[[Game, dict[str, Any], int, TimeBudget], Learning]  # with the game's options, and a seed


def example(name: str, **settings: Any) -> Learn:
    """Return the trainer of an example."""

    def learn(game: Game, options: dict[str, Any], seed: int, budget: TimeBudget) -> Learning:
        train = importlib.import_module(f"examples.{name}").train
        for decisions, model, *_ in train(game, seed=seed, **settings, **options):
            yield decisions, partial(TorchPolicy, model)

    return learn


def our_trainer(recipe: str, **settings: Any) -> Learn:
    """Return our trainer with a recipe of `configs/`, which has its own options, or with the default settings."""

    def learn(game: Game, options: dict[str, Any], seed: int, budget: TimeBudget) -> Learning:
        from training.run import Run

        run = Run(recipe_of(game, recipe).changed(seed=seed, minutes=budget.minutes, decisions=None, **settings))
        while True:
            run.iterate()
            yield run.decisions, run.algorithm.policy
            run.seconds = budget.seconds  # its schedules follow this clock

    return learn


MASKABLE_PPO = {"n_steps": 128, "batch_size": 256, "policy_kwargs": {"net_arch": [128, 128]}}
METHODS: dict[str, Learn] = {
    "maskable_ppo": example("maskable_ppo", tables=16, settings=MASKABLE_PPO),
    "cleanrl_ppo": example("cleanrl_ppo"),
    "tianshou_dqn": example("tianshou_dqn"),
    "ppo": our_trainer("{}/ppo"),
    "advantages": our_trainer("{}"),
    "td": our_trainer("{}/ntuple"),
}


def recipe_of(game: Game, recipe: str) -> Any:
    """Return the settings of that name for a game, or the default ones."""
    from training.config import Config, load_config

    return Config(game=game.name, minutes=1.0) if recipe == "default" else load_config(Path(recipe.format(game.name)))


def measure(game: Game, policy: Policy, pairs: int) -> dict[str, Any]:
    """Measure a policy against scripted ones: points a deal (in a solitaire, its score) and share of wins."""
    options = {name: value for name, value in options_of(game).items() if name != "reward"}

    def rounded(figure: Estimate) -> dict[str, Any]:
        return as_json(Estimate(*(round(value, 4) for value in (figure.mean, figure.low, figure.high))))

    results = {}
    for anchor in ("greedy", "trivial"):
        contest = Contest(game, (policy, anchor), SEED, tuple(options.items()))
        part = join(list(play_contest(contest, pairs)))
        gained = part.margins[0] - part.margins[1] if game.is_solitaire else part.margins[0] / contest.deals_per_episode
        results[anchor] = {"gained": rounded(estimate(gained)), "won": rounded(share(part.wins[0]))}
    return results


def curve(learning: Learning, budget: TimeBudget, measure: Callable[[Policy], dict[str, Any]]) -> list[dict[str, Any]]:
    """Learn until the budget is spent; return what was measured on the way, where the time stands still."""
    shares, marks, points = list(SHARES), list(DECISIONS), []
    start = work_time()
    for decisions, policy in learning:
        budget.seconds += work_time() - start
        done = budget.seconds / (60 * budget.minutes)
        due = [*(mark for mark in shares if done >= mark), *(mark for mark in marks if decisions >= mark)]
        if due:
            shares, marks = [mark for mark in shares if done < mark], [mark for mark in marks if decisions < mark]
            point = {"decisions": decisions, "minutes": round(budget.seconds / 60, 4), "after": due}
            player: Any = policy()
            player.sampled = False  # the likeliest moves
            points.append(point | measure(player))
        if done >= 1:
            break
        start = work_time()
    return points


def options_of(game: Game) -> dict[str, Any]:
    """Return the game's options for learning: single deals."""
    return dict(recipe_of(game, "{}/ppo").options_of_stage(0))


def learn(name: str, method: str, seed: int, minutes: float, pairs: int) -> dict[str, Any]:
    """Learn and measure in a process of its own; return what is stored."""
    import torch

    torch.set_num_threads(1)
    game, learner = get_game(name), METHODS[method]
    options, budget = options_of(game), TimeBudget(minutes)
    _, policy = next(learner(game, options, seed, TimeBudget(minutes)))  # what has to be compiled is compiled now
    measure(game, policy(), 1)
    points = curve(learner(game, options, seed, budget), budget, partial(measure, game, pairs=pairs))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rate = per_second(points[-1]["decisions"], budget.seconds)
    return {"points": points, "decisions_per_second": round(rate, 1), "memory_mib": round(memory)}


def iterations(learning: Learning) -> Work:
    """Return the iterations of a trainer as work."""
    before = 0

    def iterate() -> int:
        nonlocal before
        started, before = before, next(learning)[0]
        return before - started

    return as_work(iterate)


def rows(seconds: float) -> Iterator[Row]:
    """Yield decisions learned a second, beside MaskablePPO: two layers of 256, one pass over what was played."""
    import torch

    torch.set_num_threads(1)
    game, single = get_game("back_alley"), {"deals": "single"}
    theirs = {"n_steps": 64, "batch_size": 512, "n_epochs": 1, "policy_kwargs": {"net_arch": [256, 256]}}
    ours = {"options": single, "hidden": [256, 256], "num_envs": 512, "minibatch_size": 2048}
    both = example("maskable_ppo", tables=16, opponents="trivial", settings=theirs), our_trainer("default", **ours)
    other, work = (iterations(learner(game, single, 0, TimeBudget(600))) for learner in both)
    yield in_turns(f"training, {game.title}, 2x256, one epoch", "sb3-contrib's MaskablePPO", other, work, 4 * seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="CPU time of each run (default 1)")
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES), help="these alone")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="these alone")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each method (default 3)")
    parser.add_argument("--pairs", type=int, default=250, help="mirrored pairs of a measurement (default 250)")
    parser.add_argument("--file", type=Path, default=FILE, help="of all runs (default strength/baselines.json)")
    arguments = parser.parse_args()
    minutes, pairs = arguments.minutes, arguments.pairs
    stored: dict[str, Any] = read_json(arguments.file) if arguments.file.exists() else {"games": {}}
    versions = {package.name: package.version for package in distributions() if package.name in LIBRARIES}
    stored |= {"machine": f"one core of {processor()}", "versions": versions}
    settings = {"minutes": minutes, "pairs": pairs, "deals_seed": SEED}
    for seed in range(arguments.seeds):
        for name in arguments.games:
            game = get_game(name)
            runs = stored["games"].setdefault(name, {**settings, "known": {}, "methods": {}})
            if any(runs[key] != value for key, value in settings.items()):
                parser.error(f"{arguments.file}: {name} was made with other --minutes or --pairs: give another --file")
            for player in {"random", "small"} - runs["known"].keys():
                runs["known"][player] = measure(game, load_opponent(player, game).policy, pairs)
            for method in arguments.methods:
                if str(seed) in runs["methods"].setdefault(method, {}) or (method == "td" and not game.planner):
                    continue
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), begin_worker) as process:
                    result = process.submit(learn, name, method, seed, minutes, pairs).result()
                runs["methods"][method][str(seed)] = result
                write_json(arguments.file, stored)
                print(f"{name} {method} {seed}: {short(result['decisions_per_second'])} decisions a second", flush=True)


if __name__ == "__main__":
    main()
