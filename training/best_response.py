"""`python -m training.best_response --against OPPONENT --config configs/back_alley/ppo.toml --decisions 50M`

Trains a policy against a frozen one. What it wins is a lower bound on the frozen policy's exploitability
(Timbers et al. 2020): a better learner would find more, a failed one proves nothing.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from card_envs import _files as files
from card_envs.compare._waiting import waiting
from card_envs.opponents.networks.folder import check_place

from .command import command, console
from .config import Config, load_config

UNITS = {"": 1, "k": 1_000, "M": 1_000_000, "B": 1_000_000_000}


def number(text: str) -> int:
    """Return the integer of 5000, 50k, 50M. Raises ValueError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kMB]?)", text)
    if not found or float(found[1]) == 0:
        raise ValueError(f"decisions {text!r}: expected a number such as 5000, 500k or 50M")
    return round(float(found[1]) * UNITS[found[2]])


def main(
    against: Annotated[str, typer.Option(help="the frozen policy: `greedy`, or a trained opponent (name or folder)")],
    config: Annotated[Path, typer.Option(help="a recipe for PPO; its game is the opponent's")],
    decisions: Annotated[str, typer.Option(help="to learn from, such as 500k or 50M")] = "50M",
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="settings, last")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="save the response as an opponent to this folder")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="write the figures to this file")] = None,
) -> None:
    """Train a best response to a frozen opponent; its margin is a lower bound on the opponent's exploitability."""
    settings = load_config(config, [*(overrides or []), f"decisions={number(decisions)}"])
    files.check_output(json_file)
    if out is not None:
        check_place(out)
    figures = respond(settings, against, out)
    if json_file is not None:
        files.write_json(json_file, figures)
    share, margin = figures["win_share"], figures["margin_per_episode"]
    low, high = margin["low"], margin["high"]
    interval = "no interval" if low is None else f"{low:+.3g} to {high:+.3g}"
    console.print(
        f"after {figures['decisions_learned']:,} decisions the response wins {share['mean']:.1%} "
        f"({share['low']:.1%} to {share['high']:.1%}) against {against}, "
        f"by {margin['mean']:+.3g} an episode ({interval}): "
        f"{against} can be exploited by at least {max(low or 0, 0):.3g}",
        highlight=False,
        soft_wrap=True,
    )


def respond(config: Config, against: str, out: Path | None) -> dict[str, Any]:
    """Train against the opponent, from its own weights where it has such layers, and measure on mirrored deals.

    Raises:
        ValueError: the opponent is neither `greedy` nor a trained network, or the recipe not for PPO.
    """
    from card_envs.games import get_game
    from card_envs.opponents import load_opponent
    from card_envs.opponents.networks.policies import TrainedPolicy

    from .networks import new_actor
    from .run import FINAL_SEED, Run

    game = get_game(config.game)
    victim = load_opponent(against, game)
    if game.is_solitaire:
        raise ValueError(f"{game.name}: there is nobody to exploit")
    if config.algorithm != "ppo":
        raise ValueError(f"algorithm = {config.algorithm!r}: only ppo learns from play against an opponent")
    shares: dict[str, Any] = {"greedy_share": 0.0, "pool_size": 0, "pool_opponents": []}
    if isinstance(victim.policy, TrainedPolicy):
        shares |= {"pool_share": 1.0, "pool_opponents": [against]}
        own = new_actor(game, config)
        if {name: weight.shape for name, weight in own.weights().items()} == {
            name: weight.shape for name, weight in victim.policy.weights.items()
        }:
            shares |= {"warm_start": against, "bc_coef": 0.0}
    elif victim.name == "greedy":
        shares |= {"pool_share": 0.0, "greedy_share": 1.0}
    else:
        raise ValueError(f"against {against!r}: expected greedy or a trained opponent")
    run = Run(config.changed(minutes=None, **shares))
    with waiting(console) as progress:
        task = progress.add_task(f"against {against}", total=1.0)
        while run.progress < 1:
            run.iterate()
            progress.update(task, completed=run.progress)
    result = run.strength(victim, config.final_pairs)
    figures = {"against": against, "decisions_learned": run.decisions, "seed": FINAL_SEED, **result.as_dict()}
    if out is not None:
        run.save(out, [figures])
    return figures


app = command(main)

if __name__ == "__main__":
    app()
