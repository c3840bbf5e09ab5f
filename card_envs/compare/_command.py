"""The commands `compare` and `solve`: run the work with a progress bar, then show and save the results.

Ctrl-C ends the work; the results so far are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from card_envs.compare._records import save_records
from card_envs.compare._solving import (
    Solved,
    SolveTask,
    SolvingFigures,
    solve_deals,
    solver_of,
    solving_figures,
)
from card_envs.compare.contests import Contest, Part, chunks, join, modes_in_words, play_contest
from card_envs.compare.games import GamePlan
from card_envs.compare.report import FOR_PEOPLE, FOR_PROGRAMS, check_picture, draw, show_comparison
from card_envs.compare.spread import THIS_PROCESS, Executor
from card_envs.compare.standings import Standings, standings
from card_envs.compare.survey import Survey, play_portions, survey_of
from card_envs.compare.waiting import ProgressBar
from card_envs.engine.buffers import check_choice
from card_envs.engine.table import Table
from card_envs.play.episode import move_texts
from card_envs.system.console import console, error_console
from card_envs.system.files import check_output_folder


@dataclass(frozen=True)
class ContestJob:
    """The amount of work, who does it, and what to save besides the figures.

    Attributes:
        pairs: of each pairing; in a solitaire, deals.
        workers: who does it.
        solve_seconds: per deal, to solve the deals as well; None: don't.
        picture: file of a picture, or None.
        records: folder of saved games, or None.
        form: in which the figures are printed, see `report.py`.
        brief: print the standings alone.
        details: print the game's rates, too.
    """

    pairs: int
    workers: Executor = THIS_PROCESS
    solve_seconds: float | None = None
    picture: Path | None = None
    records: Path | None = None
    form: str = "table"
    brief: bool = False
    details: bool = False

    def check(self) -> None:
        """Raise ValueError, before anything is played, if something can't be written."""
        check_choice(self.form, (*FOR_PEOPLE, *FOR_PROGRAMS), "format")
        check_picture(self.picture)
        check_output_folder(self.records)

    def save(self, title: str, results: Standings, part: Part, label: str) -> Iterator[str]:
        """Write the picture and, if everything was played, the games; yield a message for each."""
        if self.picture is not None:
            path = self.picture.with_stem(f"{self.picture.stem}-{label}") if label else self.picture
            draw(title, results, path)
            yield f"drawn to {path}"
        if self.records is not None and not results.stopped:
            saved = save_records(results.contest, part, self.records / label)
            yield f"{saved} games saved to {self.records / label}"


def check_contests(contests: dict[str, Contest], solve_seconds: float | None) -> None:
    """Raise ValueError for players that can't meet, or deals that can't be solved in this time."""
    for contest in contests.values():
        if len(contest.names) < 2:
            raise ValueError(f"compare: expected two or more players, got {', '.join(contest.names)}")
        contest.check()
        if solve_seconds is not None:
            solver_of(contest.game)
            SolveTask(contest.game, seconds=solve_seconds)  # checks it


def compare_all(
    contests: dict[str, Contest],
    job: ContestJob,
    console: Console,
    write: Callable[[dict[str, Standings]], object],
) -> dict[str, Standings]:
    """Play contests one by one; return the standings of those played, the last one perhaps partial.

    Args:
        contests: by label.
        job: how much is played, and what is saved and printed.
        console: to print to.
        write: called with the results so far, periodically and after each contest.
    """
    messages_to = message_console(job.form)
    for line in dict.fromkeys(line for contest in contests.values() for line in contest.warnings()):
        messages_to.print(line, soft_wrap=True)
    results: dict[str, Standings] = {}
    for label, contest in contests.items():
        played = play_contest_shown(contest, job, label, console, lambda part: write({**results, label: part}))  # noqa: B023
        if played is None:
            messages_to.print("stopped before the first pairs were finished")
            break
        results[label], part = played
        title, messages = comparison_title(results[label], job.pairs, label), list[str]()
        try:  # files first: printing may block
            write(results)
            messages += job.save(title, results[label], part, label)
        finally:
            if job.form in FOR_PEOPLE:
                show_comparison(console, title, results[label], job.brief, job.details, job.form)
        for line in messages:
            messages_to.print(line, soft_wrap=True)
        if results[label].stopped:
            break
    return results


def message_console(form: str) -> Console:
    """Return where messages go: not between figures that are made for another program."""
    return console if form == "table" else error_console()


def json_figures(results: dict[str, Standings], apart: str, with_player: str) -> dict[str, Any]:
    """Return the figures of contests for a file: of one, or of one for each phase of the game."""
    figures: dict[str, Any] = {label: each.as_dict() | {"intervals": each.intervals} for label, each in results.items()}
    return {"apart": apart, "with": with_player, "contests": figures} if apart else figures[""]


def survey_all(
    plans: Mapping[str, GamePlan],
    episodes: int,
    workers: Executor,
    console: Console,
    write: Callable[[dict[str, Survey]], object],
) -> dict[str, Survey]:
    """Play each policy against itself, with a progress bar; after Ctrl-C, return what there is.

    `write` gets the results so far after each policy.
    """
    surveys: dict[str, Survey] = {}
    with ProgressBar(console) as bar:
        for name, plan in plans.items():
            bar.begin(name, episodes)
            parts = bar.collect(play_portions(plan, episodes, workers), lambda part: bar.advance(len(part.lengths)))
            if parts:
                surveys[name] = survey_of(plan.game, parts)
            if bar.stopped:
                break
            with suppress(OSError):  # there may be room again at the end
                write(surveys)
    return surveys


def survey_title(
    plan: GamePlan, episodes: int, surveys: Mapping[str, Survey], modes: Mapping[str, bool | None], stopped: bool
) -> str:
    """Return the title of a survey, with the `Policy.sampled` of players, and what was counted if it was stopped."""
    title = f"{plan.game.title}{options_title(plan.options)}: {episodes:,} episodes each, seed {plan.seed}"
    title += f"\n{text}" if (text := modes_in_words(modes.items())) else ""
    counted = ", ".join(f"{name} {survey.episodes:,}" for name, survey in surveys.items())
    return f"{title}\nstopped after {counted}" if stopped else title


def play_contest_shown(
    contest: Contest, job: ContestJob, label: str, console: Console, write: Callable[[Standings], object]
) -> tuple[Standings, Part] | None:
    """Play a contest with a progress bar; return its standings and games, or None if Ctrl-C came before any result.

    `write` gets partial results periodically.
    """
    size = len(chunks(job.pairs)[0])
    done, moves, expected = 0, 0, 0.0  # pairs so far; moves of the current part, and how many it will have
    solved: list[Solved] = []
    with ProgressBar(console) as bar:
        bar.begin(" ".join([label, *contest.names]), job.pairs)

        def watch(num_moves: int) -> None:
            nonlocal moves, expected
            moves += num_moves
            expected = expected or contest.expected_moves(np.arange(size))
            bar.update(min(done + size * min(moves / expected, 0.95), job.pairs))

        def show(part: Part) -> None:
            nonlocal done, moves, expected
            done += part.num_deals
            moves, expected = 0, moves * size / part.num_deals
            bar.update(done)

        def save(parts: list[Part]) -> None:
            write(standings(contest, join(parts), None, stopped=True))

        parts = bar.collect(play_contest(contest, job.pairs, job.workers, watch), show, save)
        if job.solve_seconds is not None and not bar.stopped:
            task = SolveTask(contest.game, (), contest.seed, contest.options, seconds=job.solve_seconds)
            bar.begin("solving", job.pairs)
            solved = bar.collect(solve_deals(task, range(job.pairs), job.workers))
    if not parts:
        return None
    part = join(parts)
    return standings(contest, part, solved if len(solved) == job.pairs else None, stopped=bar.stopped), part


def comparison_title(results: Standings, pairs: int, label: str) -> str:
    """Return the title of a comparison."""
    contest = results.contest
    unit = "deals" if contest.game.is_solitaire else "mirrored pairs"
    title = f"{contest.game.title}{options_title(contest.options)}: {results.pairs:,} {unit}, seed {contest.seed}"
    title += f", stopped before {pairs:,}" if results.stopped else ""
    title += f"\n{label} of each; all else by one player: {'NAME'.join(contest.frame)}" if label else ""
    modes = contest.modes_in_words()
    return f"{title}\n{modes}" if modes else title


def options_title(options: Iterable[tuple[str, Any]]) -> str:
    """Return options as text for a title."""
    return "".join(f", {name}={value}" for name, value in options)


def solve_one(task: SolveTask, deal: object, console: Console) -> dict[str, Any]:
    """Solve a custom deal; return the figures for JSON."""
    state = task.set_deal(deal)
    with console.status("solving"):
        solution = task.solve(state)
    return {
        "verdict": solution.verdict,
        "moves": move_texts(Table(task.game, state), solution.moves),
        "positions": solution.positions,
        "seconds": solution.seconds,
    }


def show_solved(console: Console, solved: dict[str, Any]) -> None:
    """Print the result of `solve_one`."""
    console.print(f"{solved['verdict']}: {solved['positions']:,} positions in {solved['seconds']:.2f} s")
    if solved["moves"]:
        console.print(" ".join(solved["moves"]))


def solve_many(
    task: SolveTask, packs: int, workers: Executor, console: Console, write: Callable[[SolvingFigures], object]
) -> SolvingFigures | None:
    """Solve the first deals of a seed; return the figures, or None if Ctrl-C came before any result.

    `write` gets partial results periodically.
    """
    seen = decided = 0
    with ProgressBar(console) as bar:
        bar.begin("solving", packs)

        def show(deal: Solved) -> None:
            nonlocal seen, decided
            seen, decided = seen + 1, decided + (deal[1].verdict != "unknown")
            bar.update(seen, f"{decided} of {seen} decided")

        deals = solve_deals(task, range(packs), workers)
        solved = bar.collect(deals, show, lambda solved: write(solving_figures(task, solved)))
        if bar.stopped:
            console.print(f"stopped before {packs:,} packs")
    return solving_figures(task, solved) if solved else None


def solving_title(task: SolveTask, packs: int) -> str:
    """Return the title of solved deals."""
    bounds = f"{packs:,} packs, seed {task.seed}, {task.seconds:g} s each"
    return f"{task.game.title}{options_title(task.options)}: {bounds}"
