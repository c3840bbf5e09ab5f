"""The command line: `python -m card_envs` with games, survey, compare, solve, train, bench, play and more."""

from __future__ import annotations

import os
import sys
from types import TracebackType


def without_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an uncaught exception without a traceback; Ctrl-C ends silently."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


SCRIPT = "card-envs"
STOPPED = 130  # exit status after Ctrl-C
IS_PROGRAM = __name__ == "__main__" or os.path.basename(sys.argv[0] if sys.argv else "").startswith(SCRIPT)  # noqa: PTH119
if IS_PROGRAM:
    sys.excepthook = without_traceback  # before the slow imports below

import json
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as Sheet
from rich.text import Text

from card_envs.game import Game
from card_envs.games import GAMES, get_game, package_of
from card_envs.options import describe_options, parse_options
from card_envs.system import files
from card_envs.system.console import Program, console, say
from card_envs.system.processes import cores
from card_envs.system.training import training_module

MISSING = {name: f"this needs {name}: pip install 'card_envs[gpu]'" for name in ("torch", "numba_cuda")}
app = Program(MISSING, no_args_is_help=True)


def known_games() -> list[str]:
    """Return the names of games for shell completion."""
    return list(GAMES)


def known_players(context: typer.Context) -> list[str]:
    """Return the opponents of the game typed before, for shell completion."""
    from card_envs.opponents import opponent_names

    name = str(context.params.get("game_name"))
    return opponent_names(GAMES[name]) if name in GAMES else []


GameName = Annotated[str, typer.Argument(help=f"one of {', '.join(GAMES)}", autocompletion=known_games)]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="an option of the game, such as deals=[7,6,5] or deals=single"),
]
Seed = Annotated[int, typer.Option(min=0, help="of deals and policies")]
Best = Annotated[bool, typer.Option("--best", help="networks play their likeliest move")]
Form = Annotated[str, typer.Option("--format", help="table, markdown, latex, csv or json")]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", help="trainings of one method: NAME=runs/mine_* or NAME=PLAYER,PLAYER; again for more"),
]
JsonFile = Annotated[Path | None, typer.Option("--json", help="write the figures to this file")]
Processes = Annotated[int, typer.Option(min=1, help="number of processes; results do not depend on it")]
Ray = Annotated[str, typer.Option(metavar="ADDRESS", help="Ray cluster that does the work; local: start one here")]
RecordFile = Annotated[Path | None, typer.Option(help="save the game to this file")]
DEFAULT_PLAYERS = ("random", "trivial", "greedy")


def show_version(asked: bool) -> None:
    """Print the versions of the package and of the libraries that its figures depend on, and exit."""
    if asked:
        print(f"card_envs {version('card_envs')}, numba {version('numba')}, numpy {version('numpy')}")
        raise typer.Exit


@app.callback()
def root(
    asked: Annotated[bool, typer.Option("--version", callback=show_version, is_eager=True, help="show it and end")] = (
        False
    ),
) -> None:
    """Card games for reinforcement learning: play, watch, compare, measure."""


def write_figures(figures: dict[str, Any], path: Path | None) -> None:
    """Write figures to the file that the user asked for, if any: as far as processors agree on their digits."""
    if path is not None:
        files.write_json(path, _rounded(figures))


def _rounded(figures: Any) -> Any:
    """Return figures with numbers of 12 significant digits: sums and logarithms differ in the last ones."""
    if isinstance(figures, dict):
        return {key: _rounded(value) for key, value in figures.items()}
    if isinstance(figures, (list, tuple)):
        return [_rounded(value) for value in figures]
    return float(f"{figures:.12g}") if isinstance(figures, float) else figures


def deliver(figures: dict[str, Any], path: Path | None, show: Callable[[], object]) -> None:
    """Write figures, then show them: printing may wait for a reader.

    If they can't be written, they are shown nevertheless.
    """
    try:
        write_figures(figures, path)
    finally:
        show()
    if path is not None:
        say(f"written to {path}")


@app.command()
def games(name: Annotated[str | None, typer.Argument(help="show this game's options and opponents")] = None) -> None:
    """List the games, or one game's options and opponents.

    Opponents come with their measured strength and time.
    """
    from card_envs.compare.report import duration
    from card_envs.opponents import opponent_names
    from card_envs.opponents._levels import levels
    from card_envs.opponents.about import figures_of

    for game in GAMES.values() if name is None else [get_game(name)]:
        rules = game.rules
        about = f" ({game.title}): {rules.NUM_SEATS} seats, {rules.NUM_ACTIONS} actions, "
        about += f"observation of {rules.OBS_SIZE}; pettingzoo id {game.id}"
        console.print(Text.assemble((game.name, "bold"), about))
        sheet = Sheet(box=None, padding=(0, 0, 0, 2))
        strength = "deals won" if game.is_solitaire else f"{game.view.MARGIN_UNIT} over greedy"
        for column in ("opponent", "", strength, "a move"):
            sheet.add_column(column, no_wrap=bool(column))
        for short in opponent_names(game):
            kind, figure, time = figures_of(short, game)
            sheet.add_row(short, kind, figure, "" if time is None else duration(time))
        console.print(sheet)
        for short, meant in game.presets.items():
            say(f"  {short} stands for {meant}")  # not wrapped, so that it can be copied
        for level in levels(game, opponent_names(game)):
            say(
                f"  level {level.name} for people is {level.player}" + (f", {level.strength}" if level.strength else "")
            )
        for option, field in describe_options(game.options).items():
            console.print(f"  option {option} (default {field.default!r}): {field.description}")


@app.command()
def compare(
    game_name: GameName,
    players: Annotated[
        list[str] | None,
        typer.Argument(help="two or more: opponents' names, ./FOLDER or MODULE:CLASS", autocompletion=known_players),
    ] = None,
    group: Groups = None,
    pairs: Annotated[int, typer.Option(min=1, help="mirrored pairs of episodes of every pairing")] = 1000,
    seed: Seed = 0,
    best: Best = False,
    option: Options = None,
    partner: Annotated[str, typer.Option(help="partner of each player, if a side has several seats")] = "",
    apart: Annotated[
        str, typer.Option(help="compare their play in this phase of the game, and separately in all other phases")
    ] = "",
    with_player: Annotated[str, typer.Option("--with", help="with --apart: player of the other phases")] = "greedy",
    processes: Processes = 1,
    ray: Ray = "",
    solve: Annotated[
        float | None,
        typer.Option(help="seconds per deal: also show the share won of the deals that the game's solver can win"),
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="show ratings, wins, score and time alone")] = False,
    details: Annotated[bool, typer.Option("--details", help="show statistics of play, such as bids made")] = False,
    form: Form = "table",
    json_file: JsonFile = None,
    picture: Annotated[Path | None, typer.Option(help="draw the figures to this file")] = None,
    records: Annotated[Path | None, typer.Option(help="save games to this folder")] = None,
    record_pairs: Annotated[int, typer.Option(min=1, help="pairs of each pairing to save")] = 10,
    reviewed: Annotated[
        int, typer.Option("--review", min=0, help="also judge this many decisions of each: what they cost, by phase")
    ] = 0,
    review_games: Annotated[
        int, typer.Option(min=1, help="with --review: games of each against itself, from which the decisions are taken")
    ] = 50,
    by: Annotated[
        str | None, typer.Option(help="with --review: the opponent that judges; it must search; default: strong")
    ] = None,
) -> None:
    """Compare policies on the same deals.

    Two sides are swapped on every deal. Ctrl-C shows the figures so far.
    """
    from card_envs.compare import _command as command
    from card_envs.compare._groups import parse_groups
    from card_envs.compare._provenance import circumstances, provenance
    from card_envs.compare.contests import Contest, taken_apart
    from card_envs.compare.report import FOR_PROGRAMS, for_programs
    from card_envs.compare.spread import Executor
    from card_envs.compare.standings import Standings
    from card_envs.reviews._command import check_review, review_policies

    options = tuple(parse_options(option).items())
    recorded = 0 if records is None else record_pairs
    groups = parse_groups(group or [])
    names = (*(players or []), *(name for _, runs in groups for name in runs))
    contest = Contest(get_game(game_name), names, seed, options, not best, partner, recorded=recorded, groups=groups)
    contests = taken_apart(contest, apart, with_player) if apart else {"": contest}
    workers = Executor(processes, ray)
    job = command.ContestJob(pairs, workers, solve, picture, records, form, brief, details)
    files.check_output(json_file)
    job.check()
    command.check_contests(contests, solve)
    judge = check_review(contest.game, reviewed, by)
    origin = provenance(contest) | circumstances() if json_file or form == "json" else {}

    def figures(results: dict[str, Standings]) -> dict[str, Any]:
        return command.json_figures(results, apart, with_player) | {"provenance": origin}

    with workers:
        results = command.compare_all(
            contests, job, console, lambda results: write_figures(figures(results), json_file)
        )
        known = figures(results) if results else {}
        stopped = len(results) < len(contests) or any(standings.stopped for standings in results.values())
        if reviewed and not stopped:
            shown = command.message_console(form)
            reviews, stopped = review_policies(contest, reviewed, review_games, judge, workers, shown)
            known |= {"reviews": reviews}
            write_figures(known, json_file)
    if results and form in FOR_PROGRAMS:
        rows = [{"contest": label, **row} for label, each in results.items() for row in each.as_dict()["policies"]]
        console.out(for_programs(form, _rounded(known), rows), end="", highlight=False)
    if results and json_file is not None:
        command.message_console(form).print(f"written to {json_file}", soft_wrap=True)
    if stopped:
        raise typer.Exit(STOPPED)


@app.command()
def score(
    agents: Annotated[list[str] | None, typer.Argument(help="names, ./FOLDER or MODULE:CLASS")] = None,
    group: Groups = None,
    game_name: Annotated[str | None, typer.Option("--game", help="only this game; default: all that they play")] = None,
    best: Best = False,
    quick: Annotated[bool, typer.Option("--quick", help="on few deals, for a first look")] = False,
    processes: Processes = 1,
    ray: Ray = "",
    form: Form = "table",
    json_file: JsonFile = None,
) -> None:
    """Measure agents by the standard measure.

    That is fixed opponents and deals, with a scale from random to strong. A paragraph for a paper says how. Ctrl-C
    shows the scores that are complete.
    """
    from card_envs.compare import _command as command
    from card_envs.compare import _score
    from card_envs.compare._groups import parse_groups
    from card_envs.compare._provenance import circumstances, provenance
    from card_envs.compare.report import FOR_PROGRAMS, for_programs, sheet_of, show_sheets
    from card_envs.compare.spread import Executor

    groups = [*((agent, (agent,)) for agent in agents or []), *parse_groups(group or [])]
    known = _score.measures(quick)
    measures = [measure for game, measure in known.items() if game_name in (None, game)]
    if not groups or not measures:
        raise ValueError(f"score: expected agents, and one of {', '.join(known)}; got {len(groups)}, {game_name}")
    files.check_output(json_file)
    workers, messages = Executor(processes, ray), command.message_console(form)
    tell = partial(messages.print, soft_wrap=True)
    tasks = [task for each in groups for task in _score.contests_of(each, measures, not best, tell)]
    scores, records, stopped = list[_score.Score](), list[dict[str, Any]](), False
    with workers:
        for name, measure, contest in tasks:
            job, origin = command.ContestJob(measure.pairs, workers, form=form), provenance(contest)
            job.check()
            played = command.play_contest_shown(contest, job, "", console, lambda _: None)
            if stopped := played is None or played[0].stopped:
                break
            scores.append(_score.Score(name, measure, *played))
            records.append(scores[-1].as_dict() | {"provenance": origin})
    *others, how = _score.score_notes(scores) if scores else [""]
    figures = {"how": how, "scores": records, "provenance": circumstances(), "stopped": stopped}
    write_figures(figures, json_file)
    if form in FOR_PROGRAMS:
        console.out(for_programs(form, _rounded(figures), records), end="", highlight=False)
    elif scores:
        sheet = sheet_of(scores[0].measure.name, [*scores[0].figures, "a move"], _score.rows_of(scores))
        show_sheets(console, [sheet], form, [*others, how])
    if json_file is not None:
        tell(f"written to {json_file}")
    if stopped:
        raise typer.Exit(STOPPED)


@app.command()
def review(
    record: Annotated[Path, typer.Argument(help="a saved game: JSON, from play, serve or compare --records")],
    by: Annotated[str, typer.Option(help="the opponent that judges; it must search")] = "strong",
    seat: Annotated[int | None, typer.Option(min=0, help="judge this seat alone")] = None,
    seed: Annotated[int, typer.Option(min=0, help="of the worlds that the judge draws")] = 0,
    processes: Processes = 1,
    ray: Ray = "",
    json_file: JsonFile = None,
    picture: Annotated[Path | None, typer.Option(help="draw the costs over the game to this file")] = None,
) -> None:
    """Show what each move of a saved game cost.

    The judge is a search that knows only what the seat knew. Ctrl-C shows the moves judged so far.
    """
    from card_envs.compare._provenance import circumstances, provenance
    from card_envs.compare.games import Plan
    from card_envs.compare.report import check_picture
    from card_envs.compare.spread import Executor
    from card_envs.record import GameRecord
    from card_envs.reviews import _command as command
    from card_envs.reviews._review import ReviewTask, record_decisions

    files.check_output(json_file)
    check_picture(picture)
    workers = Executor(processes, ray)
    saved = GameRecord.load(record)
    game, decided = record_decisions(saved, seat)
    work = ReviewTask(Plan(game, seed=seed), by, decided)
    origin = (
        provenance(Plan(game, [by], seed, tuple(saved.options.items()), False)) | circumstances() if json_file else {}
    )
    with workers:
        reviews, stopped = command.judge_all({f"judged by {by}": work}, workers, console)
    (review,) = reviews.values()
    title = f"{game.title}: {len(review.moves)} of {review.total} decisions, judged by {by}, in {game.view.MARGIN_UNIT}"

    def show() -> None:
        if stopped and not review.moves:
            console.print(command.NONE_JUDGED)
            return
        console.print(command.review_sheet(title, {record.name: review}, by_seat=True))
        command.show_costliest(console, review)

    if picture is not None:
        command.draw_costs(title, review, picture)
    deliver(review.as_dict() | {"provenance": origin}, json_file, show)
    if stopped:
        raise typer.Exit(STOPPED)


@app.command()
def survey(
    game_name: GameName,
    players: Annotated[
        list[str] | None,
        typer.Argument(help="opponents; default: random, trivial, greedy", autocompletion=known_players),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="of each player, on the same deals")] = 10000,
    seed: Seed = 0,
    best: Best = False,
    option: Options = None,
    processes: Processes = 1,
    ray: Ray = "",
    json_file: JsonFile = None,
) -> None:
    """Show statistics of self-play: one player in all seats.

    Length, endings, scores, first-move advantage. Ctrl-C shows the figures so far.
    """
    from card_envs.compare._command import survey_all, survey_title
    from card_envs.compare._provenance import circumstances, provenance
    from card_envs.compare.games import GamePlan
    from card_envs.compare.report import show_figures, survey_sheet
    from card_envs.compare.spread import Executor
    from card_envs.compare.survey import Survey

    game = get_game(game_name)
    options = parse_options(option)
    game.validated(options)
    files.check_output(json_file)
    workers = Executor(processes, ray)
    names = players or DEFAULT_PLAYERS
    plans = {name: GamePlan(game, [name], seed, tuple(options.items()), not best) for name in names}
    modes = {name: plan.load()[0].sampled for name, plan in plans.items()}
    together = GamePlan(game, list(names), seed, tuple(options.items()), not best)
    origin = provenance(together) | circumstances() if json_file else {}

    def figures(surveys: dict[str, Survey]) -> dict[str, Any]:
        stopped = len(surveys) < len(plans) or any(survey.episodes < episodes for survey in surveys.values())
        about = {"game": game.name, "version": game.version, "options": options, "seed": seed, "stopped": stopped}
        about |= {"provenance": origin}
        chosen = {name: {} if modes[name] is None else {"sampled": modes[name]} for name in surveys}
        return {**about, "players": {name: {**chosen[name], **survey.as_dict()} for name, survey in surveys.items()}}

    with workers:
        surveys = survey_all(
            plans, episodes, workers, console, lambda surveys: write_figures(figures(surveys), json_file)
        )
    if not surveys:
        console.print("stopped before the first episodes were finished")
        raise typer.Exit(STOPPED)
    known = figures(surveys)

    def show() -> None:
        console.print(survey_sheet(survey_title(plans[names[0]], episodes, surveys, modes, known["stopped"]), surveys))
        show_figures(console, game, {name: survey.figures for name, survey in surveys.items()})

    deliver(known, json_file, show)
    if known["stopped"]:
        raise typer.Exit(STOPPED)


@app.command()
def solve(
    game_name: GameName,
    packs: Annotated[int, typer.Option(min=1, help="number of deals; the same ones as in compare")] = 100,
    seconds: Annotated[float, typer.Option(help="of processor time for each deal")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="of the deals")] = 0,
    option: Options = None,
    deal: Annotated[
        Path | None, typer.Option(help="solve this deal instead: JSON, in the format of reset; - reads standard input")
    ] = None,
    memory: Annotated[int, typer.Option(help="MiB for each deal")] = 512,
    positions: Annotated[
        int | None, typer.Option(help="positions per deal, a limit that does not depend on the machine")
    ] = None,
    processes: Processes = 1,
    ray: Ray = "",
    json_file: JsonFile = None,
) -> None:
    """Solve deals with all cards known.

    Ctrl-C shows the figures so far.
    """
    from card_envs.compare._command import show_solved, solve_many, solve_one, solving_title
    from card_envs.compare._solving import SolveTask, SolvingFigures
    from card_envs.compare.report import show_solving
    from card_envs.compare.spread import Executor

    options = tuple(parse_options(option).items())
    task = SolveTask(get_game(game_name), (), seed, options, True, seconds, memory, positions)
    files.check_output(json_file)
    if deal is not None:
        solved = solve_one(task, files.read_json(deal), console)
        deliver(solved, json_file, lambda: show_solved(console, solved))
        return

    def known(figures: SolvingFigures) -> dict[str, Any]:
        return {**figures.as_dict(), "stopped": figures.packs < packs}

    with Executor(processes, ray) as workers:
        figures = solve_many(task, packs, workers, console, lambda some: write_figures(known(some), json_file))
    if figures is not None:
        title = solving_title(task, figures.packs)
        deliver(known(figures), json_file, lambda: show_solving(console, title, figures))
    if figures is None or figures.packs < packs:
        raise typer.Exit(STOPPED)


@app.command()
def rules(
    game_name: GameName,
    short: Annotated[bool, typer.Option("--short", help="in a few hundred words, and the codes of moves")] = False,
) -> None:
    """Print the rules of a game, as Markdown."""
    game = get_game(game_name)
    if not short:
        console.out(game.rules_page.read_text(encoding="utf-8"), highlight=False)
        return
    console.out(f"{game.short_rules}\n", highlight=False)
    for code, meaning in game.view.LEGEND:
        say(f"{code}: {meaning}")


@app.command()
def generate(
    game_name: GameName,
    out: Annotated[str, typer.Option(help="a folder; with --format minari, the name of a data set: NAME/OF-v0")],
    players: Annotated[str, typer.Option(help="opponents, separated by commas: they take the sides in turn")] = "small",
    games: Annotated[int, typer.Option(min=1, help="number of episodes")] = 1000,
    form: Annotated[str, typer.Option("--format", help="parquet, jsonl (positions as text), or minari")] = "parquet",
    values: Annotated[bool, typer.Option("--values", help="what searching players expect of every move")] = False,
    solve: Annotated[
        float | None,
        typer.Option(help="winning lines that the solver finds in these seconds a deal, instead of players"),
    ] = None,
    seed: Seed = 0,
    best: Best = False,
    option: Options = None,
    processes: Annotated[int, typer.Option(min=0, help="that share the work; 0: one for each core")] = 0,
    ray: Ray = "",
) -> None:
    """Play games and write every decision, as data for training.

    Ctrl-C stops; the same command goes on (Parquet and JSON lines).
    """
    from card_envs.compare.waiting import ProgressBar
    from card_envs.data import Plan
    from card_envs.data import generate as generate_files
    from card_envs.data._minari import to_minari
    from card_envs.engine.buffers import check_choice
    from card_envs.opponents.names import split_names

    check_choice(form, ("parquet", "jsonl", "minari"), "format")
    named = () if solve is not None else tuple(split_names(players))
    options = tuple(sorted(parse_options(option).items()))
    plan = Plan(get_game(game_name), named, games, seed, options, not best, values, solve)
    processes = processes or (1 if ray else cores())
    played = rows = 0
    try:
        with ProgressBar(console) as bar:
            bar.begin("playing", games)

            def show(done: int, written: int) -> None:
                nonlocal played, rows
                played, rows = done, written
                bar.update(done, f"{written:,} decisions")

            if form == "minari":
                to_minari(plan, out, processes=processes, ray_address=ray, progress=show)
            else:
                generate_files(plan, out, format=form, processes=processes, ray_address=ray, progress=show)
    except KeyboardInterrupt:
        say(f"stopped after {rows:,} decisions; the same command goes on" if form != "minari" else "stopped")
        raise typer.Exit(STOPPED) from None
    if rows or not played:
        say(f"{rows:,} decisions written to {out}" if rows else f"{out} is complete: there was nothing left to write")
    else:
        say(f"none of the {played:,} deals was won: there are no decisions to write")


@app.command()
def advise(
    game_name: GameName,
    position: Annotated[
        Path, typer.Argument(help="JSON: a view (`env.view`) of the seat to move; - reads standard input")
    ],
    opponent: Annotated[str, typer.Option(help="a name, ./FOLDER or MODULE:CLASS")] = "search:1024",
    seed: Annotated[int, typer.Option(min=0, help="of the worlds that it draws")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Show an opponent's evaluation of every legal move.

    It knows only what the seat to move can see.
    """
    from card_envs.opponents import load_opponent
    from card_envs.opponents.search import why_not

    game = get_game(game_name)
    view = files.read_json(position)
    files.check_output(json_file)
    with console.status("thinking"):
        advices = load_opponent(opponent, game).rank_moves(view, seed)
    best = advices[0]
    sheet = Sheet(title=f"{game.title}, seat {view['seat']}: {opponent}")
    searched = best.margin is not None
    compared = (f"against {best.move}", "expected margin", "worlds", "why not")
    sheet.add_column("move")
    for column in compared if searched else ("probability",):
        sheet.add_column(column, justify="left" if column == "why not" else "right")
    for one in advices:
        if searched:
            numbers = [f"{number:z.2f}" for number in (one.difference, one.margin)]
            sheet.add_row(one.move, *numbers, str(one.worlds), "" if one is best else why_not(best, one))
        else:
            sheet.add_row(one.move, f"{one.probability:.3f}")
    if searched:
        sheet.caption = f"estimates, in {game.view.MARGIN_UNIT}"
    figures = {"game": game.name, "opponent": opponent, "seed": seed, "moves": [one._asdict() for one in advices]}
    deliver(figures, json_file, lambda: console.print(sheet))


@app.command()
def schema(
    game_name: GameName,
    table: Annotated[bool, typer.Option("--table", help="as a Markdown table")] = False,
) -> None:
    """Print the JSON schema of a game's views.

    `advise` and the server use views as input and output.
    """
    game = get_game(game_name)
    if table:
        from card_envs.frontends.serve._described import key_table

        console.print(key_table(game), soft_wrap=True, end="")
    else:
        say(json.dumps(game.view.SCHEMA, indent=1))


OF_MODELS = ("game", "opponent", "seconds")  # options of `serve` that hold with --mcp
OF_PARENTS = (*OF_MODELS, "folder", "allow_deals", "tables", "idle_hours", "searches")  # and with --stdio


def check_used(context: typer.Context, kind: str, used: Sequence[str]) -> None:
    """Raise ValueError for an option on the command line that does nothing with this kind of server."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in (kind, *used) and source is not None and source.name == "COMMANDLINE":
            known = ", ".join(f"--{one.replace('_', '-')}" for one in used)
            raise ValueError(f"serve --{kind}: --{name.replace('_', '-')} does not apply; these do: {known}")


@app.command(epilog="See docs/protocol.md.")
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="address to listen on; default: only this machine")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    stdio: Annotated[bool, typer.Option("--stdio", help="JSON lines on stdin and stdout instead of HTTP")] = False,
    mcp: Annotated[bool, typer.Option("--mcp", help="tools for language models on stdin and stdout (MCP)")] = False,
    folder: Annotated[Path | None, typer.Option(help="storage of tables; default: tables, with --stdio none")] = None,
    game: Annotated[list[str] | None, typer.Option(help="serve only these games")] = None,
    opponent: Annotated[
        list[str] | None,
        typer.Option(help="GAME/NAME=WHAT: serve this opponent, too: ./FOLDER or MODULE:CLASS"),
    ] = None,
    allow_deals: Annotated[
        bool, typer.Option("--allow-deals", help="accept seeds and custom deals, which tell a client every card")
    ] = False,
    seconds: Annotated[float, typer.Option(min=0.01, help="most thinking time of an opponent per move")] = 2.0,
    tables: Annotated[int, typer.Option(min=1, help="most tables kept")] = 10_000,
    idle_hours: Annotated[float, typer.Option(min=0.01, help="hours after which an unused table is deleted")] = 168.0,
    searches: Annotated[int | None, typer.Option(min=1, help="search threads; default: one per core")] = None,
    origin: Annotated[
        list[str] | None, typer.Option(help="allow requests from this web origin: https://example.org")
    ] = None,
    host_name: Annotated[list[str] | None, typer.Option(help="another host name of this server")] = None,
    root_path: Annotated[str, typer.Option(help="path prefix behind a reverse proxy: /cards")] = "",
) -> None:
    """Serve opponents and tables to programs in any language."""
    try:
        from card_envs.frontends.serve import _command as command
        from card_envs.frontends.serve._limits import Limits

        needed = (
            ("anyio", "mcp.server.lowlevel") if mcp else () if stdio else ("uvicorn", "card_envs.frontends.serve.app")
        )
        for module in needed:  # before anything is loaded or compiled
            import_module(module)
    except ImportError as error:
        extra = "mcp" if mcp else "serve"
        raise ValueError(f"serve: {error.name} is missing: pip install 'card_envs[{extra}]'") from None

    if mcp or stdio:
        from card_envs.frontends.serve._stdio import streams

        source, target = streams()  # before anything can print
        check_used(context, "mcp" if mcp else "stdio", OF_MODELS if mcp else OF_PARENTS)
    if mcp:
        command.serve_model(source, target, game or [], opponent or [], seconds)
        return
    threads = {} if searches is None else {"searches": searches}
    limits = Limits(tables=tables, idle_hours=idle_hours, seconds=seconds, **threads)
    if stdio:
        command.serve_parent(source, target, folder, game or [], opponent or [], limits, allow_deals)
        return
    names = command.names_of(host, host_name or [])  # before anything is bound or loaded
    listener = command.listen(host, port)
    service = command.make_service(folder or Path("tables"), game or [], opponent or [], limits, allow_deals)
    command.serve_http(service, listener, names, origin or [], root_path, say)


@app.command()
def export(
    opponent: Annotated[str, typer.Argument(help="a trained one: GAME/NAME or ./FOLDER")],
    model: Annotated[Path, typer.Argument(help="the file to write, such as model.onnx")],
) -> None:
    """Export a trained opponent as an ONNX model.

    A description of its inputs is written beside it.
    """
    from card_envs.layout import model_page
    from card_envs.opponents import load_opponent
    from card_envs.opponents.networks.onnx import check_runtime, inputs_read, to_onnx
    from card_envs.opponents.networks.policies import TrainedPolicy

    check_runtime()
    notes = model.with_suffix(".md")
    for file in (model, notes):
        files.check_output(file)
    found = load_opponent(opponent)
    if not isinstance(found.policy, TrainedPolicy):
        raise ValueError(f"{opponent}: expected a trained network; only these can be exported")
    written = to_onnx(found.policy)
    files.replace_file(model, written)
    files.replace_file(notes, model_page(found.game, inputs_read(written)))
    say(f"written to {model}; its inputs are in {notes}")


@app.command(name="import")
def import_model(
    game_name: GameName,
    model: Annotated[Path, typer.Argument(help="an ONNX model from observation and action_mask to logits or values")],
    folder: Annotated[Path, typer.Argument(help="the opponent's folder to write")],
) -> None:
    """Import an ONNX model from any library as an opponent.

    The folder's path is its name in every other command.
    """
    from card_envs.opponents.names import name_of_folder
    from card_envs.opponents.networks.folder import MAX_BYTES, MODEL_FILE, check_place, save_model
    from card_envs.opponents.networks.onnx import check_runtime, model_file

    check_runtime()
    check_place(folder)
    save_model(folder, get_game(game_name), model_file(model, MAX_BYTES[MODEL_FILE]))
    say(f"python -m card_envs compare {game_name} greedy {name_of_folder(folder)}")


@app.command()
def layout(
    game_name: GameName,
    write: Annotated[bool, typer.Option("--write", help="update them in the game's RULES.md")] = False,
) -> None:
    """Print the layout of actions, observation and full state.

    The tables are generated from the game's declared fields.
    """
    from card_envs.layout import layout_tables, rewritten

    game = get_game(game_name)
    path = game.rules_page
    if write:
        files.replace_file(path, rewritten(game, path.read_text(encoding="utf-8")))
    for name, text in layout_tables(game).items():
        say(f"{name}\n\n{text}")
    if write:
        say(f"written to {path}")


@app.command()
def bench(
    game_name: Annotated[str | None, typer.Argument(help="only this game")] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="measuring time per figure")] = 1.0,
    json_file: JsonFile = None,
    device: Annotated[str, typer.Option(help="cpu, or a GPU: cuda, cuda:1")] = "cpu",
) -> None:
    """Measure speed on this machine, by wall-clock and CPU time.

    Ctrl-C shows the figures so far.
    """
    from card_envs.bench import FIGURES, gpu_rates, measure_all
    from card_envs.compare.waiting import ProgressBar

    chosen = [get_game(game_name)] if game_name else list(GAMES.values())
    files.check_output(json_file)
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f"device: expected cpu, or a GPU: cuda, cuda:0, cuda:1, …, got {device!r}")
    if device != "cpu":
        by_name = {game.name: dict(gpu_rates(game, device, seconds)) for game in chosen}
        title = f"decisions on {device}, by the clock"
        sheet = sheet_by_game(title, chosen, by_name, "{:,.4g}".format)
        deliver({"device": device, "games": by_name}, json_file, lambda: console.print(sheet))
        return

    def both(figure: dict[str, float]) -> str:
        return f"{figure['clock']:,.3g} {figure['cpu']:,.3g}"

    with ProgressBar(console) as bar:
        bar.begin("measuring", 1 + FIGURES * len(chosen))
        measured = bar.collect(measure_all(chosen, seconds), save=lambda some: write_figures(some[-1], json_file))
    if bar.stopped:
        console.print("stopped before all was measured")
    if measured:
        figures = measured[-1]
        title = f"by the clock, then by CPU time; one core copies {both(figures['copy_gb_per_second'])} GB/s"
        sheet = sheet_by_game(title, chosen, figures["games"], both)
        last = f"import card_envs: {both(figures['import_seconds'])} s"
        deliver(figures, json_file, lambda: console.print(sheet, last, sep="\n"))
    if bar.stopped:
        raise typer.Exit(STOPPED)


def sheet_by_game(
    title: str, chosen: list[Game], figures: dict[str, dict[str, Any]], shown: Callable[[Any], str]
) -> Sheet:
    """Return a table with a column for each game."""
    sheet = Sheet(title=title)
    sheet.add_column("")
    for game in chosen:
        sheet.add_column(game.title, justify="right")
    for label in figures[chosen[0].name]:
        by_game = (figures[game.name] for game in chosen)
        sheet.add_row(label, *(shown(known[label]) if label in known else "" for known in by_game))
    return sheet


@app.command()
def play(
    game_name: GameName,
    opponents: Annotated[str, typer.Option(help="in the other seats: one for all, or one each, with commas")] = (
        "greedy"
    ),
    seat: Annotated[int, typer.Option(min=0, help="your seat")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="of the deals and opponents")] = None,
    option: Options = None,
    record: RecordFile = None,
    resume: Annotated[Path | None, typer.Option(help="continue the game saved in this file")] = None,
) -> None:
    """Play at the terminal.

    Type `help` for a list of commands.
    """
    from card_envs.frontends.terminal._play import play_game
    from card_envs.opponents.names import split_names

    options = parse_options(option)
    play_game(get_game(game_name), split_names(opponents), seat, seed, options, record, console, resume)


@app.command()
def watch(
    game_name: Annotated[str | None, typer.Argument(help=f"one of {', '.join(GAMES)}; or --replay")] = None,
    opponents: Annotated[str, typer.Option(help="players: one for all seats, or one each, separated by commas")] = (
        "greedy"
    ),
    seat: Annotated[int | None, typer.Option(min=0, help="whose view to show; default: the seat to move")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="of the deals and opponents")] = None,
    option: Options = None,
    record: RecordFile = None,
    replay: Annotated[Path | None, typer.Option(help="show the game saved in this file instead")] = None,
    delay: Annotated[float | None, typer.Option(min=0, help="seconds per move: advance automatically")] = None,
    gif: Annotated[Path | None, typer.Option(help="write it to this file as an animated GIF (extra: draw)")] = None,
) -> None:
    """Step through a game between opponents, or a saved one.

    Moves can be stepped forwards and backwards.
    """
    from card_envs.frontends.terminal._watch import Screen, watch_game, watch_record
    from card_envs.opponents.names import split_names

    screen = Screen(console, delay, gif)
    if replay is not None:
        watch_record(replay, get_game(game_name) if game_name else None, seat, screen)
    elif game_name is None:
        raise ValueError(f"watch: expected a game ({', '.join(GAMES)}) or --replay FILE")
    else:
        options = parse_options(option)
        watch_game(get_game(game_name), split_names(opponents), seat, seed, options, record, screen)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def train(context: typer.Context) -> None:
    """Train a policy in self-play; `train --help` lists the options."""
    program = training_module("train").app
    program(context.args, prog_name="python -m card_envs train")


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(help="folders of runs that training has made")],
    out: Annotated[Path, typer.Option(help="the picture: .png, .svg or .pdf")] = Path("curves.png"),
    hours: Annotated[bool, typer.Option("--hours", help="over hours of training instead of decisions")] = False,
) -> None:
    """Draw the learning curves of runs."""
    training_module("plot").draw(runs, out, hours)
    say(f"drawn to {out}")


@app.command()
def new_game(
    name: Annotated[str, typer.Argument(help="name in code and files: lower case, words joined by _")],
    title: Annotated[str, typer.Option(help="title for people; default: the name in title case")] = "",
    folder: Annotated[Path | None, typer.Option(help="make an installable package in this folder")] = None,
) -> None:
    """Make a new game from a small working template."""
    from card_envs.scaffold._new_game import new_game, next_steps, plan

    game = plan(name, title, folder)
    for file in new_game(game):
        say(str(file))
    console.print("next:")
    for number, step in enumerate(next_steps(game), 1):
        say(f"{number}. {step}")


@app.command()
def build(
    game_names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GAME]...", help="games, or packages that have GAME; default: all", autocompletion=known_games
        ),
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="what to build for; default: native, this machine; again for more")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="gets a folder for each target; default: where it is used")
    ] = None,
    jobs: Annotated[int, typer.Option(min=0, help="processes; 0: one for each core")] = 0,
    api: Annotated[
        bool, typer.Option("--api", help="a C library, or with wasm32 a module for JavaScript, in build/api")
    ] = False,
    opponent: Annotated[
        list[str] | None,
        typer.Option(help="with --api: who is in it; default: the scripted ones, small, presets, levels"),
    ] = None,
) -> None:
    """Compile games ahead of time, so that everything starts at once. Needs a C compiler."""
    from card_envs.build import BuildError, build_api, build_libraries
    from card_envs.compare.waiting import ProgressBar
    from card_envs.compiling._library import FOLDER
    from card_envs.compiling.loops import game_of_package

    if opponent and not api:
        raise ValueError("--opponent: only with --api; libraries for Python have all opponents")
    chosen = list(dict.fromkeys(game_of_package(package_of(name)) for name in game_names or GAMES))
    with ProgressBar(console) as bar:

        def show(what: str, done: int, of: int) -> None:
            if done == 0:
                bar.begin(what, of)
            bar.update(done)

        try:
            if api:
                place = folder or Path("build/api")
                written = build_api(chosen, target or ["native"], place, jobs, show, opponent or ())
            else:
                written = build_libraries(chosen, target or ["native"], folder or FOLDER, jobs, show)
        except BuildError as error:
            raise ValueError(str(error)) from None
    for place in written:
        size = sum(file.stat().st_size for file in place.iterdir())
        say(f"written to {place}, {size / 1e6:.1f} MB")


@app.command()
def check(name: Annotated[str, typer.Argument(help="a game, or a package that has GAME: its.package")]) -> None:
    """Check a game and list its faults, with file and line.

    Exit status: 0, all right; 1, there are faults; 3, nothing is wrong, but the tests of all games are not here.
    """
    from card_envs.scaffold._check import check

    began = time.perf_counter()
    with console.status("") as status:
        report = check(name, lambda title: status.update(f"tests of {title}"))
    for finding in report.findings:
        say(str(finding))
    if report.findings:
        number = "1 problem" if len(report.findings) == 1 else f"{len(report.findings)} problems"
        console.print(f"{name}: {number}; later checks were skipped")
        raise typer.Exit(1)
    if not report.num_tests:
        console.print(f"{name}: only the declarations were inspected, and no fault was found; nothing was played")
        console.print(
            "the tests of all games need a checkout of card_envs: run this command there, after `make .venv/dev`"
        )
        raise typer.Exit(3)
    for reason, number_of_tests in report.skipped.most_common():
        say(f"skipped {number_of_tests}: {reason}")
    console.print(f"{name}: all right, {report.num_tests} tests, {time.perf_counter() - began:.0f} s")


def main() -> None:
    """Run the command line; invalid input ends it with one line instead of a traceback."""
    if IS_PROGRAM and __name__ != "__main__" and not sys.flags.safe_path:
        with suppress(OSError):
            sys.path.insert(0, str(Path.cwd()))  # as `python -m` does: opponents and games are found there
    try:
        app()
    except SystemExit as end:
        if IS_PROGRAM and end.code == STOPPED:
            os._exit(STOPPED)  # without waiting for the threads of a search; all output is written
        raise


if __name__ == "__main__":
    main()
