"""`python -m card_envs`: games, survey, compare, solve, layout, bench, play, watch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table as Sheet

from card_envs.games import GAMES, get_game

if TYPE_CHECKING:
    from card_envs.compare.match import Contest

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)
console = Console()

GameName = Annotated[str, typer.Argument(help=f"one of {', '.join(GAMES)}")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="an option of the game, such as deals=[7,6,5] or deals=single"),
]
Seed = Annotated[int, typer.Option(min=0, help="of deals and policies")]
Best = Annotated[bool, typer.Option("--best", help="networks play their likeliest move")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="write the figures to this file")]
RecordFile = Annotated[Path | None, typer.Option(help="save the game to this file")]
DEFAULT_PLAYERS = ("random", "trivial", "greedy")


def parse_options(options: list[str] | None) -> dict[str, Any]:
    """`name=value` pairs; values are JSON, or text where they are not."""
    parsed: dict[str, Any] = {}
    for option in options or []:
        name, equals, value = option.partition("=")
        if not equals:
            raise ValueError(f"option {option!r}: expected name=value")
        try:
            parsed[name] = json.loads(value)
        except json.JSONDecodeError:
            parsed[name] = value
    return parsed


def write_json(figures: dict[str, Any], path: Path | None) -> None:
    """Write figures where the user asked for it."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=1) + "\n")
        console.print(f"written to {path}")


@app.command()
def games(name: Annotated[str | None, typer.Argument(help="show this game's options and opponents")] = None) -> None:
    """List the games, or one game's options and opponents."""
    from card_envs.opponents import opponent_names

    for game in GAMES.values() if name is None else [get_game(name)]:
        rules = game.rules
        console.print(
            f"[bold]{game.name}[/] ({game.title}): {rules.NUM_SEATS} seats, {rules.NUM_ACTIONS} actions, "
            f"observation of {rules.OBS_SIZE}; pettingzoo id {game.id}"
        )
        console.print(f"  opponents: {', '.join(opponent_names(game))}")
        for option, field in game.options.model_fields.items():
            console.print(f"  option {option} (default {field.default!r}): {field.description}", markup=False)


@app.command()
def compare(
    game_name: GameName,
    players: Annotated[list[str], typer.Argument(help="two or more: opponents' names, folders or module:Class")],
    pairs: Annotated[int, typer.Option(min=1, help="mirrored pairs of episodes of every pairing")] = 1000,
    seed: Seed = 0,
    best: Best = False,
    option: Options = None,
    partner: Annotated[
        str, typer.Option(help="who plays beside each of them, where a side has more seats than one")
    ] = "",
    apart: Annotated[
        str, typer.Option(help="compare what they do in this phase of the game, and apart from it all the rest")
    ] = "",
    with_player: Annotated[str, typer.Option("--with", help="who decides the other part for all, with --apart")] = (
        "greedy"
    ),
    processes: Annotated[int, typer.Option(min=1, help="that share the work; the result is the same")] = 1,
    ray: Annotated[
        str, typer.Option(metavar="ADDRESS", help="of a Ray cluster that shares the work; local: start one here")
    ] = "",
    solve: Annotated[
        float | None,
        typer.Option(help="seconds for each deal: show who won how many of the deals that the game's solver wins"),
    ] = None,
    json_file: JsonFile = None,
    picture: Annotated[Path | None, typer.Option(help="draw the figures to this file")] = None,
    records: Annotated[Path | None, typer.Option(help="save games to this folder")] = None,
    record_pairs: Annotated[int, typer.Option(min=1, help="how many pairs of each pairing to save")] = 10,
) -> None:
    """Compare policies on the same deals, with sides swapped where there are two; Ctrl-C shows what is known so far."""
    from card_envs.compare.match import Contest, taken_apart
    from card_envs.compare.records import save_records
    from card_envs.compare.report import draw, show_comparison
    from card_envs.compare.solving import solver_of

    if len(players) < 2:
        raise ValueError(f"compare: expected two or more players, got {', '.join(players)}")
    contest = Contest(
        get_game(game_name), tuple(players), seed, tuple(parse_options(option).items()), not best, partner
    )
    contests = taken_apart(contest, apart, with_player) if apart else {"": contest}
    for part in contests.values():
        part.check()
    if solve is not None:
        solver_of(contest.game)
    figures = {}
    for label, contest in contests.items():
        found = play_shown(contest, pairs, label, processes, ray, solve)
        if found is None:
            break
        figures[label] = found
        title = comparison_title(contest, found, pairs, label)
        show_comparison(console, title, contest.game, found)
        if picture is not None:
            path = picture.with_stem(f"{picture.stem}-{label}") if label else picture
            draw(title, found, path)
            console.print(f"drawn to {path}")
        if found["stopped"]:
            break
        if records is not None:
            saved = save_records(contest, pairs, record_pairs, records / label)
            console.print(f"{saved} games saved to {records / label}")
    if figures:
        write_json({"apart": apart, "with": with_player, "contests": figures} if apart else figures[""], json_file)
    if len(figures) < len(contests) or any(found["stopped"] for found in figures.values()):
        raise typer.Exit(130)


def play_shown(
    contest: Contest, pairs: int, label: str, processes: int, ray: str, solve: float | None
) -> dict[str, Any] | None:
    """The standings of a contest played with a progress bar; None if Ctrl-C came before there was anything."""
    from card_envs.compare.match import join, play_contest
    from card_envs.compare.solving import Search, count_verdicts, solve_deals, won_of_winnable
    from card_envs.compare.standings import standings

    parts, solved = [], []
    stopped = False
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(" ".join([label, *contest.names]), total=pairs)
        try:
            for part in play_contest(contest, pairs, processes, ray):
                parts.append(part)
                progress.advance(task, part.wins.shape[1])
            if solve is not None:
                search = Search(contest.game, contest.seed, contest.options, solve)
                task = progress.add_task("solving", total=pairs)
                for pair in solve_deals(search, range(pairs), processes, ray):
                    solved.append(pair)
                    progress.advance(task)
        except KeyboardInterrupt:
            stopped = True
    if not parts:
        console.print("stopped before the first pairs were finished")
        return None
    played = join(parts)
    found = {**standings(contest, played), "stopped": stopped}
    if len(solved) == pairs:
        found["solved"] = count_verdicts(solved)
        for policy, share in zip(found["policies"], won_of_winnable(played.wins, solved)):
            policy["won_of_winnable"] = share
    return found


def comparison_title(contest: Contest, figures: dict[str, Any], pairs: int, label: str) -> str:
    """What was played."""
    unit = "mirrored pairs" if "rating" in figures["policies"][0] else "deals"
    title = f"{contest.game.title}{described(contest.options)}: {figures['pairs']:,} {unit}, seed {contest.seed}"
    title += f", stopped before {pairs:,}" if figures["stopped"] else ""
    return title + (f"\n{label} of each; all else by one player: {'NAME'.join(contest.frame)}" if label else "")


def described(options: Iterable[tuple[str, Any]]) -> str:
    """Options for a title."""
    return "".join(f", {name}={value}" for name, value in options)


@app.command()
def survey(
    game_name: GameName,
    players: Annotated[list[str] | None, typer.Argument(help="opponents; default: random, trivial, greedy")] = None,
    episodes: Annotated[int, typer.Option(min=1, help="of each player, on the same deals")] = 10000,
    seed: Seed = 0,
    best: Best = False,
    option: Options = None,
    json_file: JsonFile = None,
) -> None:
    """Show what a game is like when one player sits in all seats: length, endings, scores, moving first."""
    from card_envs.compare.report import figures_sheet, survey_sheet
    from card_envs.compare.survey import survey as play_survey
    from card_envs.opponents import load_opponent

    game = get_game(game_name)
    options = parse_options(option)
    game.validated(options)
    policies = {name: load_opponent(name, game, sampled=not best) for name in players or DEFAULT_PLAYERS}
    surveys = {}
    with Progress(console=console, transient=True) as progress:
        for name, policy in policies.items():
            advance = partial(progress.advance, progress.add_task(name, total=episodes))
            surveys[name] = play_survey(game, policy, episodes, seed, options=options, progress=advance)
    title = f"{game.title}{described(options.items())}: {episodes:,} episodes each, seed {seed}"
    console.print(survey_sheet(title, surveys))
    console.print(figures_sheet(game, {name: part.figures for name, part in surveys.items()}))
    figures: dict[str, Any] = {"game": game.name, "version": game.version, "options": options, "seed": seed}
    write_json({**figures, "players": {name: part.as_dict() for name, part in surveys.items()}}, json_file)


@app.command()
def solve(
    game_name: GameName,
    packs: Annotated[int, typer.Option(min=1, help="how many deals, those that compare plays")] = 100,
    seconds: Annotated[float, typer.Option(help="of processor time for each deal")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="of the deals")] = 0,
    option: Options = None,
    deal: Annotated[Path | None, typer.Option(help="solve this one instead: JSON, as reset takes a deal")] = None,
    memory: Annotated[int, typer.Option(help="MiB for each deal")] = 512,
    positions: Annotated[int | None, typer.Option(help="stop a deal after about so many: the same everywhere")] = None,
    processes: Annotated[int, typer.Option(min=1, help="that share the work")] = 1,
    json_file: JsonFile = None,
) -> None:
    """Find out which deals can be won when all cards are known; Ctrl-C shows what is known so far."""
    from card_envs.compare.solving import Search, given_deal, line_text, solve_deals, solving_figures, solving_rows

    options = parse_options(option)
    search = Search(get_game(game_name), seed, tuple(options.items()), seconds, memory, positions)
    if deal is not None:
        try:
            state = given_deal(search.game, options, json.loads(deal.read_text()))
        except json.JSONDecodeError as error:
            raise ValueError(f"{deal}: no JSON: {error}") from None
        with console.status("solving"):
            solution = search.solve(state)
        line = line_text(search.game, state, solution.moves)
        console.print(f"{solution.verdict}: {solution.positions:,} positions in {solution.seconds:.2f} s")
        if line:
            console.print(" ".join(line), highlight=False)
        write_json({**vars(solution), "moves": line}, json_file)
        return
    solved = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("solving", total=packs)
        try:
            for pair in solve_deals(search, range(packs), processes):
                solved.append(pair)
                known = sum(solution.verdict != "unknown" for _, solution in solved)
                progress.update(task, advance=1, description=f"{known} of {len(solved)} decided")
        except KeyboardInterrupt:
            console.print(f"stopped before {packs:,} packs")
    if not solved:
        raise typer.Exit(130)
    figures = solving_figures(search, solved)
    title = f"{search.game.title}{described(search.options)}: {len(solved):,} packs, seed {seed}, {seconds:g} s each"
    sheet = Sheet("", "packs", "share", "95 % interval", title=title)
    for row in solving_rows(figures):
        sheet.add_row(*row)
    console.print(sheet)
    times = ", ".join(f"{share} {took:.2f} s" for share, took in figures["seconds"].items())
    console.print(f"processor time: {times}; {figures['positions_a_second']:,} positions a second")
    write_json({**figures, "stopped": len(solved) < packs}, json_file)
    if len(solved) < packs:
        raise typer.Exit(130)


@app.command()
def advise(
    game_name: GameName,
    position: Annotated[Path, typer.Argument(help="JSON: a view (`env.view`) of the seat to move")],
    opponent: Annotated[str, typer.Option(help="who is asked: a name, folder or module:Class")] = "search-1024",
    seed: Annotated[int, typer.Option(min=0, help="of the worlds that it draws")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Show what an opponent thinks of every legal move, from what one seat can see."""
    from card_envs.opponents import load_opponent

    game = get_game(game_name)
    try:
        view = json.loads(position.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{position}: no JSON: {error}") from None
    with console.status("thinking"):
        advices = load_opponent(opponent, game).evaluate(view, seed)
    sheet = Sheet(title=f"{game.title}, seat {view['seat']}: {opponent}")
    searched = advices[0].margin is not None
    columns = ("expected margin", "standard error", "worlds") if searched else ("probability",)
    for column in ("move", *columns):
        sheet.add_column(column, justify="left" if column == "move" else "right")
    for one in advices:
        cells = (f"{one.margin:.2f}", f"{one.error:.2f}", str(one.worlds)) if searched else (f"{one.probability:.3f}",)
        sheet.add_row(one.move, *cells)
    console.print(sheet)
    figures = {"game": game.name, "opponent": opponent, "seed": seed, "moves": [one._asdict() for one in advices]}
    write_json(figures, json_file)


@app.command()
def layout(
    game_name: GameName,
    write: Annotated[bool, typer.Option("--write", help="write them into the game's RULES.md, between their marks")] = (
        False
    ),
) -> None:
    """Print the tables of actions, observation and full state that follow from a game's declared fields."""
    from card_envs.layout import rewritten, rules_page, tables

    game = get_game(game_name)
    for name, text in tables(game).items():
        console.print(f"{name}\n\n{text}", markup=False, highlight=False, soft_wrap=True)
    if write:
        path = rules_page(game)
        path.write_text(rewritten(game, path.read_text()))
        console.print(f"written to {path}")


@app.command()
def bench(
    game_name: Annotated[str | None, typer.Argument(help="only this game")] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="for each figure")] = 1.0,
    json_file: JsonFile = None,
) -> None:
    """Measure speed on this machine, beside the speed of copying memory."""
    from card_envs.bench import measure_all

    chosen = [get_game(game_name)] if game_name else list(GAMES.values())
    with console.status("measuring"):
        figures = measure_all(chosen, seconds)
    sheet = Sheet(title=f"one core; a copy of 256 MiB moves {figures['copy_gb_a_second']:.1f} GB/s")
    sheet.add_column("")
    for game in chosen:
        sheet.add_column(game.title, justify="right")
    for label in figures["games"][chosen[0].name]:
        sheet.add_row(label, *(f"{figures['games'][game.name][label]:,.3g}" for game in chosen))
    console.print(sheet)
    console.print(f"import card_envs: {figures['import_seconds']:.2f} s")
    write_json(figures, json_file)


@app.command()
def play(
    game_name: GameName,
    opponents: Annotated[str, typer.Option(help="who plays the other seats: one, or one each, separated by commas")] = (
        "greedy"
    ),
    seat: Annotated[int, typer.Option(min=0, help="your seat")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="of the deals and opponents")] = None,
    option: Options = None,
    record: RecordFile = None,
    resume: Annotated[Path | None, typer.Option(help="go on with the game saved in this file")] = None,
) -> None:
    """Play at the terminal; `help` at the prompt lists what can be typed."""
    from card_envs.terminal.play import play_game

    options = parse_options(option)
    play_game(get_game(game_name), opponents.split(","), seat, seed, options, record, console, resume)


@app.command()
def watch(
    game_name: Annotated[str | None, typer.Argument(help=f"one of {', '.join(GAMES)}; or --replay")] = None,
    opponents: Annotated[str, typer.Option(help="who plays: one for all seats, or one each, separated by commas")] = (
        "greedy"
    ),
    seat: Annotated[int | None, typer.Option(min=0, help="as this seat sees it; default: as the seat to move")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="of the deals and opponents")] = None,
    option: Options = None,
    record: RecordFile = None,
    replay: Annotated[Path | None, typer.Option(help="show the game saved in this file instead")] = None,
    delay: Annotated[float | None, typer.Option(min=0, help="seconds a move: runs by itself")] = None,
) -> None:
    """Watch a game between opponents, or a saved one, move by move, forth and back."""
    from card_envs.terminal.watch import watch_game, watch_record

    if replay is not None:
        watch_record(replay, get_game(game_name) if game_name else None, seat, delay, console)
    elif game_name is None:
        raise ValueError(f"watch: expected a game ({', '.join(GAMES)}) or --replay FILE")
    else:
        options = parse_options(option)
        watch_game(get_game(game_name), opponents.split(","), seat, seed, options, record, delay, console)


def main() -> None:
    """Run the command line; wrong input ends in one line, not in a traceback."""
    try:
        app()
    except (ValueError, OSError) as error:
        console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
