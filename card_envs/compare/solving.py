"""Many deals of a game for one, each solved with its cards known: how many of them can be won at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import wilson
from card_envs.compare.spread import spread
from card_envs.compare.tables import new_tables
from card_envs.engine.table import Table
from card_envs.game import VERDICTS, Game, Solution, Solver, State

QUANTILES = (0.5, 0.9, 0.99)
Figures = dict[str, Any]


@dataclass(frozen=True)
class Search:
    """What a process needs in order to solve some deals.

    Attributes:
        game: with a solver.
        seed: of the deals; they are those that `compare` plays with this seed.
        options: of the game, as items.
        seconds, memory_mb, max_positions: bounds on each deal, as `Solver.solve` takes them.
    """

    game: Game
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()
    seconds: float = 10.0
    memory_mb: int = 512
    max_positions: int | None = None

    def solve(self, state: State) -> Solution:
        solution: Solution = solver_of(self.game).solve(state, self.seconds, self.memory_mb, self.max_positions)
        return solution

    def solve_number(self, number: int) -> tuple[int, Solution]:
        """The deal of that number, with its number."""
        states = new_tables(self.game, dict(self.options), self.seed, np.array([number]))
        return number, self.solve(states[0])


def solver_of(game: Game) -> Solver:
    """The game's solver. Raises ValueError where there is none."""
    if game.solver is None:
        raise ValueError(f"{game.name}: there is no solver for this game")
    return game.solver


def solve_deals(
    search: Search, numbers: Sequence[int], processes: int = 1, ray_address: str = ""
) -> Iterator[tuple[int, Solution]]:
    """The deals with these numbers, each as it is solved, with its number.

    Args:
        search: what to solve them with.
        numbers: as `compare` counts its deals.
        processes, ray_address: who shares the work (see `spread`); the order depends on it.
    """
    solver_of(search.game)
    search.game.validated(dict(search.options))
    return spread(search.solve_number, numbers, processes, ray_address)


def won_of_winnable(wins: NDArray[np.float64], solved: Sequence[tuple[int, Solution]]) -> list[dict[str, float]]:
    """Of the deals that the solver won, the share that each policy won, with its interval.

    Args:
        wins: [P, N] 1 where a policy won.
        solved: these N deals.
    """
    winnable = np.array([solution.verdict == "won" for _, solution in sorted(solved, key=lambda pair: pair[0])])
    number = int(winnable.sum())
    return [vars(wilson(float(row[winnable].sum()), number)) for row in wins] if number else []


def count_verdicts(solved: Sequence[tuple[int, Solution]]) -> dict[str, int]:
    """How many deals were won, lost, left open."""
    counts = Counter(solution.verdict for _, solution in solved)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def given_deal(game: Game, options: dict[str, Any], deal: object) -> State:
    """A state dealt from a custom deal (`reset(options={"deal": …})`). Raises ValueError saying what is wrong."""
    table = Table(game, game.rules.new_state(game.validated(options)))
    table.arrange(game.view.parse_deal(table.state, deal)[0])
    return table.state


def solving_figures(search: Search, solved: Sequence[tuple[int, Solution]]) -> Figures:
    """How many deals were won, lost, left open, with 95 % intervals; which; how long it took.

    The share of winnable deals is at least that of the won ones and at most that of those not proved lost.
    """
    solved = sorted(solved, key=lambda pair: pair[0])
    packs = len(solved)
    times = count_verdicts(solved)
    seconds = np.array([solution.seconds for _, solution in solved])
    took = {f"{share:.0%}": float(np.quantile(seconds, share)) for share in QUANTILES} | {"mean": float(seconds.mean())}
    return {
        "game": search.game.name,
        "version": search.game.version,
        "options": dict(search.options),
        "seed": search.seed,
        "seconds_each": search.seconds,
        "memory_mb": search.memory_mb,
        "max_positions": search.max_positions,
        "packs": packs,
        "verdicts": {verdict: {"packs": times[verdict], **vars(wilson(times[verdict], packs))} for verdict in VERDICTS},
        "winnable_at_least": vars(wilson(times["won"], packs)),
        "winnable_at_most": vars(wilson(packs - times["lost"], packs)),
        "seconds": {name: round(value, 3) for name, value in took.items()},
        "positions_per_second": round(sum(solution.positions for _, solution in solved) / float(seconds.sum())),
        "deals": [
            {
                "number": number,
                "verdict": solution.verdict,
                "moves": len(solution.moves),
                "positions": solution.positions,
                "seconds": round(solution.seconds, 3),
            }
            for number, solution in solved
        ],
    }


def solving_rows(figures: Figures) -> list[tuple[str, str, str, str]]:
    """The figures as rows of a table: name, packs, share, interval."""
    shares = [(verdict, share["packs"], share) for verdict, share in figures["verdicts"].items()]
    shares.append(("winnable at least", figures["verdicts"]["won"]["packs"], figures["winnable_at_least"]))
    not_lost = figures["packs"] - figures["verdicts"]["lost"]["packs"]
    shares.append(("winnable at most", not_lost, figures["winnable_at_most"]))
    return [
        (name, f"{packs:,}", f"{share['mean']:.1%}", f"{share['low']:.1%} to {share['high']:.1%}")
        for name, packs, share in shares
    ]
