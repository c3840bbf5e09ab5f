"""`python -m training.fit_value GAME --out FOLDER`: a network that says what `greedy` makes of a position.

Search cuts its playouts short and asks it instead. Tables are played by `greedy` with some random moves; from a
position of each `greedy` plays the deal to its end, and the network learns what that gained. Positions are drawn
faster than it learns from them, so each is used once and there is nothing to overfit.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import Progress

from card_envs.engine import kernels
from card_envs.engine.compile import specialize
from card_envs.game import Game, Int8s, score_margin
from card_envs.games import GAMES, get_game
from card_envs.opponents.networks.folder import NUM_GOLDEN_ROWS, check_place, save_value
from card_envs.opponents.searching import ALL_MOVES, play_on
from training.command import command, console
from training.leads import PLAYER
from training.positions import TEST_SEED, Tables

if TYPE_CHECKING:
    from training.network import Network

NOISE = 0.1  # share of random moves on the way to a position
STRIDE = 8  # moves at most between two positions of a table
TABLES = 8192
MINIBATCH = 1024


def finish_tables(first: int, last: int, states: NDArray[Any], seats: Int8s, gained: NDArray[np.float64]) -> None:
    """Let the bot play each deal to its end and write what that gains `seats` [B] in `score_margin`."""
    for i in range(first, last):
        state = states[i]
        before = score_margin(state, seats[i])
        play_on(state, ALL_MOVES)
        gained[i] = score_margin(state, seats[i]) - before


class Positions:
    """Tables of `greedy` against itself, at any stage of their deals."""

    def __init__(self, game: Game, seed: int) -> None:
        self.game = game
        self.tables = Tables(game, TABLES, seed, NOISE)
        self.full = np.zeros((TABLES, game.rules.FULL_SIZE), np.int8)
        self.gained = np.zeros(TABLES)

    def draw(self) -> tuple[Int8s, NDArray[np.float64]]:
        """[B, FULL_SIZE] full states, each seen from a seat, and [B] what `greedy` gains for that seat's side."""
        tables, game = self.tables, self.game
        for _ in range(int(tables.rng.integers(1, STRIDE + 1))):
            tables.play_on(tables.own())
        states = tables.env.states.copy()
        seats = tables.rng.integers(0, game.rules.NUM_SEATS, TABLES).astype(np.int8)
        specialize(kernels.observe_all_tables, game)(0, TABLES, states, seats, self.full)
        specialize(finish_tables, game, PLAYER)(0, TABLES, states, seats, self.gained)
        return self.full, self.gained


def main(
    game_name: Annotated[str, typer.Argument(metavar="GAME", help=f"one of {', '.join(GAMES)}")],
    out: Annotated[Path, typer.Option(help="a folder: `value` within an opponent's folder is found by search")],
    minutes: Annotated[float, typer.Option(min=0.0, help="of fitting")] = 5.0,
    hidden: Annotated[tuple[int, int], typer.Option(help="sizes of the two hidden layers")] = (32, 32),
    lr: Annotated[float, typer.Option(min=0.0, help="learning rate at the start; it falls to 0")] = 2e-3,
    seed: Annotated[int, typer.Option(min=0, help="of deals and weights")] = 0,
) -> None:
    """Fit a value network and save it; Ctrl-C saves nothing."""
    game = get_game(game_name)
    check_place(out)
    if min(hidden) < 1:
        raise ValueError(f"hidden: expected at least 1, got {hidden}")
    with console.status("compiling and dealing"):
        from training.network import Network

        network = Network(game.rules.FULL_FIELDS, list(hidden), 1, 1.0)
        positions, test = Positions(game, seed), Positions(game, TEST_SEED + seed)
        full, gained = test.draw()
        scale = float(gained.std())
    drawn = fit(network, positions, scale, minutes, lr)
    weights = network.weights()
    for name in ("weight", "bias"):
        weights[f"layer2.{name}"] *= scale  # from here on in points
    errors = values_of(network, full) * scale - gained
    explained = 1 - float(errors.var() / gained.var())
    figures = {
        "player": PLAYER,
        "noise": NOISE,
        "positions": drawn,
        "minutes": minutes,
        "seed": seed,
        "standard_deviation": round(scale, 2),
        "error": round(float(errors.std()), 2),  # on positions of deals of their own
        "explained": round(explained, 4),  # share of the variance
    }
    save_value(out, game, weights, full[:NUM_GOLDEN_ROWS], training=figures)
    console.print(f"{drawn:,} positions, {100 * explained:.1f} % of the variance of their values explained: {out}")


def fit(network: Network, positions: Positions, scale: float, minutes: float, lr: float) -> int:
    """Learn for some minutes; returns how many positions that took."""
    import torch
    from torch.nn import functional

    from training.network import Rows

    optimizer = torch.optim.Adam(network.parameters(), lr=lr, fused=True)
    parts = np.array_split(np.arange(TABLES), TABLES // MINIBATCH)
    start = time.perf_counter()
    drawn, spent = 0, 0.0
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=1.0)
        while spent < 1:
            full, gained = positions.draw()
            targets = torch.from_numpy((gained / scale).astype(np.float32))
            for group in optimizer.param_groups:
                group["lr"] = lr * (1 - spent)
            seen = Rows(full, network.scale)
            for rows in parts:
                loss = functional.mse_loss(network(seen, rows)[:, 0], targets[torch.from_numpy(rows)])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            drawn += TABLES
            spent = (time.perf_counter() - start) / max(60 * minutes, 1e-9)
            progress.update(task, completed=spent, description=f"error {loss.item() ** 0.5 * scale:.1f} points")
    return drawn


def values_of(network: Network, full: Int8s) -> NDArray[np.float32]:
    """[n] what the network says, in the unit that it learned."""
    from training.network import Rows, evaluate_in_parts

    return evaluate_in_parts(network, Rows(full, network.scale), np.arange(len(full)))[:, 0]


app = command(main)

if __name__ == "__main__":
    app()
