"""Many deals of a game for one, each solved with its cards known: how many of them can be won at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from card_envs.compare.estimates import Estimate, as_json, share_of
from card_envs.compare.spread import spread
from card_envs.compare.tables import new_tables
from card_envs.engine.table import Table
from card_envs.game import VERDICTS, Game, Solution, Solver, State

QUANTILES = (0.5, 0.9, 0.99)
Solved: TypeAlias = tuple[int, Solution]  # the number of a deal, and what was found out about it


@dataclass(frozen=True)
class SolveTask:
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

    def solve_number(self, number: int) -> Solved:
        """Return the deal of that number, with its number."""
        states = new_tables(self.game, dict(self.options), self.seed, np.array([number]))
        return number, self.solve(states[0])


def solver_of(game: Game) -> Solver:
    """Return the game's solver. Raises ValueError where there is none."""
    if game.solver is None:
        raise ValueError(f"{game.name}: there is no solver for this game")
    return game.solver


def solve_deals(task: SolveTask, numbers: Sequence[int], processes: int = 1, ray_address: str = "") -> Iterator[Solved]:
    """Return the deals with these numbers, each as it is solved, with its number.

    Args:
        task: what to solve them with.
        numbers: as `compare` counts its deals.
        processes, ray_address: who shares the work (see `spread`); the order depends on it.
    """
    solver_of(task.game)
    task.game.validated(dict(task.options))
    return spread(task.solve_number, numbers, processes, ray_address)


def won_of_winnable(wins: NDArray[np.float64], solved: Sequence[Solved]) -> list[Estimate]:
    """Of the deals that the solver won, the share that each policy won, with its interval.

    Args:
        wins: [P, N] 1 where a policy won.
        solved: these N deals.
    """
    winnable = np.array([solution.verdict == "won" for _, solution in sorted(solved, key=lambda pair: pair[0])])
    number = int(winnable.sum())
    return [share_of(int(row[winnable].sum()), number) for row in wins] if number else []


def count_verdicts(solved: Sequence[Solved]) -> dict[str, int]:
    """Return how many deals were won, lost, left open."""
    counts = Counter(solution.verdict for _, solution in solved)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def given_deal(game: Game, options: dict[str, Any], deal: object) -> State:
    """Return a state dealt from a custom deal (`reset(options={"deal": …})`). Raises ValueError saying what is wrong."""
    table = Table(game, game.rules.new_state(game.validated(options)))
    table.set_deal(game.view.parse_deal(table.state, deal)[0])
    return table.state


@dataclass(frozen=True)
class SolvingFigures:
    """How many deals were won, lost, left open; which; how long it took.

    Attributes:
        task: what they were solved with.
        solved: the deals, in the order of their numbers.
    """

    task: SolveTask
    solved: tuple[Solved, ...]

    @property
    def packs(self) -> int:
        """How many deals."""
        return len(self.solved)

    @property
    def verdicts(self) -> dict[str, int]:
        """How many of each."""
        return count_verdicts(self.solved)

    def share(self, packs: int) -> Estimate:
        """What share so many of the deals are."""
        return share_of(packs, self.packs)

    @property
    def bounds(self) -> dict[str, int]:
        """How many can be won: at least those that were, at most those not proved lost."""
        verdicts = self.verdicts
        return {"winnable_at_least": verdicts["won"], "winnable_at_most": self.packs - verdicts["lost"]}

    @property
    def seconds(self) -> dict[str, float]:
        """Processor time of a deal: quantiles and mean."""
        seconds = [solution.seconds for _, solution in self.solved]
        return {f"{share:.0%}": float(np.quantile(seconds, share)) for share in QUANTILES} | {
            "mean": float(np.mean(seconds))
        }

    @property
    def positions_per_second(self) -> int:
        """Looked at, of processor time."""
        seconds = sum(solution.seconds for _, solution in self.solved)
        return round(sum(solution.positions for _, solution in self.solved) / seconds)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
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
    """Return the figures of these deals, whatever their order."""
    return SolvingFigures(task, tuple(sorted(solved, key=lambda pair: pair[0])))
