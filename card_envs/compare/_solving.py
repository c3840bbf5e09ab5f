"""Solving many deals of a solitaire with all cards known: how many can be won at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import Estimate, as_json, share_of
from card_envs.compare.games import Plan
from card_envs.compare.spread import THIS_PROCESS, Executor
from card_envs.engine.buffers import check_positive
from card_envs.engine.cost import per_second
from card_envs.engine.table import Table
from card_envs.game import VERDICTS, Game, Solution, Solver, State

QUANTILES = (0.5, 0.9, 0.99)
Solved: TypeAlias = tuple[int, Solution]  # number and solution of a deal


@dataclass(frozen=True)
class SolveTask(Plan):
    """A task of solving deals, those that players get for this seed in `compare`; complete for any process.

    Attributes:
        seconds, memory_mb, max_positions: bounds per deal, as for `Solver.solve`.
    """

    seconds: float = 10.0
    memory_mb: int = 512
    max_positions: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for seconds that are not a finite number above 0."""
        check_positive(self.seconds, "solve: seconds")

    def solve(self, state: State) -> Solution:
        solution: Solution = solver_of(self.game).solve(state, self.seconds, self.memory_mb, self.max_positions)
        return solution

    def set_deal(self, deal: object) -> State:
        """Return the State of a custom deal (`reset(options={"deal": …})`). Raises ValueError."""
        table = Table(self.game, self.game.rules.new_state(self.validated()))
        table.set_deal(self.game.view.parse_deal(table.state, deal)[0])
        return table.state

    def solve_number(self, number: int) -> Solved:
        """Solve the deal with this number; return both."""
        return number, self.solve(self.deal(np.array([number]))[0])


def solver_of(game: Game) -> Solver:
    """Return the game's solver. Raises ValueError if it has none."""
    if game.solver is None:
        raise ValueError(f"{game.name}: there is no solver for this game")
    return game.solver


def solve_deals(task: SolveTask, numbers: Sequence[int], workers: Executor = THIS_PROCESS) -> Iterator[Solved]:
    """Yield the number and solution of each of these deals as they are solved.

    Args:
        task: how to solve them.
        numbers: of the deals, as in `compare`.
        workers: who solves them; the order depends on it.
    """
    solver_of(task.game)
    task.check()
    return workers.spread(task.solve_number, numbers)


def won_of_winnable(wins: NDArray[np.float64], solved: Sequence[Solved]) -> list[Estimate]:
    """Return the share that each policy won of the deals that the solver won, with its interval.

    Args:
        wins: [P, N] 1 where a policy won.
        solved: these N deals.
    """
    winnable = np.array([solution.verdict == "won" for _, solution in sorted(solved, key=lambda pair: pair[0])])
    number = int(winnable.sum())
    return [share_of(int(row[winnable].sum()), number) for row in wins] if number else []


def count_verdicts(solved: Sequence[Solved]) -> dict[str, int]:
    """Return the number of deals with each verdict."""
    counts = Counter(solution.verdict for _, solution in solved)
    return {verdict: counts[verdict] for verdict in VERDICTS}


@dataclass(frozen=True)
class SolvingFigures:
    """Results of solving deals: verdicts and times.

    Attributes:
        task: how they were solved.
        solved: the deals, in the order of their numbers.
    """

    task: SolveTask
    solved: tuple[Solved, ...]

    @property
    def packs(self) -> int:
        """The number of deals."""
        return len(self.solved)

    @property
    def verdicts(self) -> dict[str, int]:
        """The number of deals with each verdict."""
        return count_verdicts(self.solved)

    def share(self, packs: int) -> Estimate:
        """Return `packs` as a proportion of the deals, with its interval."""
        return share_of(packs, self.packs)

    @property
    def bounds(self) -> dict[str, int]:
        """Bounds on the number that can be won: those won, and those not proved lost."""
        verdicts = self.verdicts
        return {"winnable_at_least": verdicts["won"], "winnable_at_most": self.packs - verdicts["lost"]}

    @property
    def seconds(self) -> dict[str, float]:
        """Processor time per deal: quantiles and mean."""
        seconds = [solution.seconds for _, solution in self.solved]
        return {f"{share:.0%}": float(np.quantile(seconds, share)) for share in QUANTILES} | {
            "mean": float(np.mean(seconds))
        }

    @property
    def positions_per_second(self) -> int:
        """Positions examined per second of processor time."""
        seconds = fsum(solution.seconds for _, solution in self.solved)
        return round(per_second(sum(solution.positions for _, solution in self.solved), seconds))

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        task = self.task
        return {
            "game": task.game.name,
            "version": task.game.version,
            "options": dict(task.options),
            "seed": task.seed,
            "seconds_each": task.seconds,
            "memory_mb": task.memory_mb,
            "max_positions": task.max_positions,
            "packs": self.packs,
            "verdicts": {name: {"packs": packs, **as_json(self.share(packs))} for name, packs in self.verdicts.items()},
            **{name: as_json(self.share(packs)) for name, packs in self.bounds.items()},
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "positions_per_second": self.positions_per_second,
            "deals": [_deal_as_dict(number, solution) for number, solution in self.solved],
        }


def _deal_as_dict(number: int, solution: Solution) -> dict[str, Any]:
    return {
        "number": number,
        "verdict": solution.verdict,
        "moves": len(solution.moves),
        "positions": solution.positions,
        "seconds": round(solution.seconds, 3),
    }


def solving_figures(task: SolveTask, solved: Sequence[Solved]) -> SolvingFigures:
    """Return the figures of these deals, in any order."""
    return SolvingFigures(task, tuple(sorted(solved, key=lambda pair: pair[0])))
