"""`build_api`: a game's rules and players as a C library or a WebAssembly module, for programs in other languages."""

from __future__ import annotations

import json
import re
import struct
import tempfile
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from card_envs.build._description import choices_of, describe_game
from card_envs.build._drawings import drawings_module
from card_envs.build._libraries import CACHE, Progress, _run, _sum, compiler_digest, in_processes, put_in, target_file
from card_envs.compiling._library import MAX_BYTES, read_facts
from card_envs.compiling.loops import game_of_package
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent, opponent_names
from card_envs.opponents._levels import levels
from card_envs.opponents.about import about
from card_envs.system.files import check_replaceable, read_file, replace_file

if TYPE_CHECKING:
    from card_envs.build._api import Export, ExportedPlayer

COMPILER = ("_numba.py", "_ir.py", "_exported.py", "targets.py")  # files that make machine code of a function
BUILT = "built/wasm32"  # in the package for JavaScript
MAGIC, LAYOUT = b"CARDENV2", 16
BYTES, HALVES = range(2)
RULES = "rules"
PLAYERS = ("trivial", "greedy", "small")  # and the game's presets
MORE_ERRORS = {
    -5: "there is no such option",
    -6: "that is not a move",
    -7: "there is no such player",
    -8: "the file is damaged, or of another version",
    -9: "the memory is too small",
}


class Task(NamedTuple):
    """Functions to compile: all RULES of a game, or what asks one of its opponents.

    Attributes:
        package: the game's package.
        name: RULES, or the opponent.
        equals: names of other opponents that are the same player.
    """

    package: str
    name: str
    equals: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Prepared:
    """The functions of a task with their arguments, and its player; None for rules."""

    package: str
    name: str
    equals: tuple[str, ...]
    exports: list[Export]
    player: ExportedPlayer | None = None

    @property
    def task(self) -> Task:
        """The task that it was prepared for."""
        return Task(self.package, self.name, self.equals)


@dataclass(frozen=True, eq=False)
class CompiledFunction:
    """A function as machine code.

    Attributes:
        name: its name in the API.
        symbol: its name in the library.
        parameters, meaning: texts for the header.
        objects: its file in the cache by target.
        layout: a digest of what it was made from; a player's file has the same.
        player: the player's name in the API; made_of: as `load_opponent` takes it, presets written out.
        size: bytes of a player's memory.
        file: the player's file in the cache; empty if this is not a player.
    """

    name: str
    symbol: str
    parameters: tuple[str, ...]
    meaning: str
    objects: dict[str, str]
    layout: str
    player: str = ""
    made_of: str = ""
    size: int = 0
    file: str = ""


def usual_players(game: Game) -> list[str]:
    """Return the names of the players that are built unless others are named."""
    return [name for name in opponent_names(game) if name in (*PLAYERS, *game.bot.PRESETS, *game.bot.LEVELS)]


def build_api(
    games: Sequence[Game], targets: Sequence[str], folder: Path, jobs: int = 0,
    progress: Progress = lambda what, done, of: None, opponents: Sequence[str] = (),
) -> list[Path]:  # fmt: skip
    """Write a folder for each target: for each game a library or module, a header, a description, files of players.

    For the other arguments and the errors see `build_libraries`; there is one more target, `wasm32`.

    Args:
        opponents: names for `load_opponent`; default: the scripted ones, `small`, the game's presets and its levels.
    """
    from card_envs.compiling.targets import target_of

    wanted = [target_of(name, api=True) for name in targets]
    for target in wanted:
        target.link(folder, [])  # before anything takes minutes
        check_replaceable(folder / target.name, target_file)
    objects = folder / CACHE
    objects.mkdir(parents=True, exist_ok=True)
    players = {game: by_name_in_c(opponents) or usual_players(game) for game in games}
    of_games = {game: tasks_of(game, players[game]) for game in games}
    tasks = [task for row in zip_longest(*of_games.values()) for task in row if task]  # the longest of all games first
    # In processes of their own: loading a player may compile for this machine, and such code would get into a target's.
    ready = in_processes(prepare, tasks, jobs, progress, "loading players")
    work = [ready[task] for task in tasks]
    compiled = in_processes(compile_task, work, jobs, progress, targets=tuple(targets), objects=objects)
    done = {prepared.task: functions for prepared, functions in compiled.items()}
    written = []
    for target in wanted:
        files: dict[str, bytes] = {}
        for game in games:
            of_game = [export for task in reversed(of_games[game]) for export in done[task]]
            files |= _target_files(game, of_game, target, objects)
        place = folder / target.name
        put_in(place, files, {"target": target.name}, outdated_files(place, games, files))
        written.append(place)
    return written


def tasks_of(game: Game, names: Sequence[str]) -> list[Task]:
    """Return the tasks of a game: searches, which take longest, first."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(game.presets.get(name, name), []).append(name)
    players = [Task(game.package, first, tuple(others)) for first, *others in alike.values()]
    return [*reversed(players), Task(game.package, RULES)]


def by_name_in_c(opponents: Sequence[str]) -> list[str]:
    """Return opponents, each once. Raises ValueError if two would have the same name in C."""
    from card_envs.build._api import name_in_c

    by_c_name: dict[str, str] = {}
    for name in dict.fromkeys(opponents):
        other = by_c_name.setdefault(name_in_c(name), name)
        if other != name:
            raise ValueError(f"opponent: {other!r:.80} and {name!r:.80} would both be {name_in_c(name)} in C")
    return list(by_c_name.values())


def outdated_files(folder: Path, games: Sequence[Game], files: Collection[str]) -> set[str]:
    """Return the files that earlier builds of these games made in a folder and this one does not, unless edited."""
    names = "|".join(re.escape(game.name) for game in games)
    of_games = re.compile(rf"(libcard_envs_|card_envs_)?({names})\..+")
    known = read_facts(folder)["sha256"] if target_file(folder) else {}
    return {
        name
        for name, digest in known.items()
        if of_games.fullmatch(name) and name not in files and is_file_with(folder / name, digest)
    }


def is_file_with(file: Path, digest: str) -> bool:
    """Return whether a file has the contents of that SHA-256."""
    try:
        return _sum(read_file(file, MAX_BYTES)) == digest
    except (OSError, ValueError):
        return False


def prepare(task: Task) -> Prepared:
    """Return the functions of a task, with a player loaded."""
    from card_envs.build._api import exports_of_rules, player_of

    game = game_of_package(task.package)
    if task.name == RULES:
        return Prepared(*task, exports_of_rules(game))
    player = player_of(game, task.name)
    return Prepared(*task, player.exports, player)


def compile_task(prepared: Prepared, targets: tuple[str, ...], objects: Path) -> list[CompiledFunction]:
    """Compile functions for some targets, or take them from the cache; those of a player share one module."""
    task, player = prepared.task, prepared.player
    if player is None:
        return [_compile(task, [export], targets, objects)[0] for export in prepared.exports]
    from card_envs.build._api import name_in_c

    functions = _compile(task, prepared.exports, targets, objects)
    content = player_file(functions[0].layout, player.first)
    file = f"{_sum(content)[:32]}.player"
    replace_file(objects / file, content)
    made_of = game_of_package(task.package).presets.get(task.name, task.name)
    done = []
    for name in map(name_in_c, (task.name, *task.equals)):
        first, *others = (rename(function, name_in_c(task.name), name) for function in functions)
        done += [replace(first, player=name, made_of=made_of, size=player.size, file=file), *others]
    return done


def rename(function: CompiledFunction, player: str, other: str) -> CompiledFunction:
    """Return a function of a player under the name of another one that is the same player."""
    name, symbol = (text.removesuffix(player) + other for text in (function.name, function.symbol))
    return replace(function, name=name, symbol=symbol)


def _compile(task: Task, exports: Sequence[Export], targets: tuple[str, ...], objects: Path) -> list[CompiledFunction]:
    """Compile functions to one module, which has them under the names of equal players, too."""
    from card_envs.build._api import name_in_c
    from card_envs.compiling._exported import argument_type, export_function, parts_of
    from card_envs.compiling._ir import link_modules
    from card_envs.compiling._specialize import Specialization, rebuild
    from card_envs.compiling.targets import object_code, target_of

    game = game_of_package(task.package)
    loops, symbols, made_from = [], [], compiler_digest(*COMPILER)
    for export in exports:
        loop: Any = export.function
        loops.append(rebuild(Specialization(loop, game, export.bot, functions=export.functions)).function)
        stem = f"card_envs_{game.name}_{export.name}".removesuffix(name_in_c(task.name))
        symbols.append([f"card_envs_{game.name}_{export.name}", *(stem + name_in_c(name) for name in task.equals)])
        parts = [_describe(part) for part in parts_of(export.arguments)]
        made_from += f" {loops[-1].__name__} {symbols[-1]} {[*map(argument_type, export.arguments)]} {parts}"
    files = {target: f"{_sum(f'{made_from} {target_of(target, api=True)}'.encode())[:32]}.o" for target in targets}
    missing = [target for target, file in files.items() if not (objects / file).exists()]
    if missing:
        rows = zip(loops, exports, symbols)
        texts = [export_function(loop, export.arguments, first, aliases) for loop, export, (first, *aliases) in rows]
        text = link_modules(texts, [symbol for names in symbols for symbol in names])
        for target in missing:
            replace_file(objects / files[target], object_code(text, target_of(target, api=True)))
    layout = _sum(made_from.encode())[:LAYOUT]
    return [
        CompiledFunction(export.name, first, export.parameters, export.meaning, files, layout)
        for export, (first, *_) in zip(exports, symbols)
    ]


def _describe(part: Any) -> str:
    """Describe an argument as far as machine code depends on it: not the contents of arrays."""
    if hasattr(part, "array"):
        return str([part.array.shape, *(getattr(part, field.name) for field in fields(part) if field.name != "array")])
    return repr(part)


def player_file(layout: str, first: list[tuple[int, Any]]) -> bytes:
    """Return the file of a player: the initial contents of its memory, float32 as float16 where that is exact.

    A CRC-32 of all that follows it tells damaged files.
    """
    segments = []
    for offset, array in first:
        flat = np.ascontiguousarray(array).ravel()
        with np.errstate(over="ignore"):
            halves = flat.astype("<f2") if flat.dtype == np.float32 else None
        if halves is not None and np.array_equal(halves.astype(np.float32), flat):
            segments.append(struct.pack("<QII", offset, halves.size, HALVES) + halves.tobytes())
        else:
            segments.append(struct.pack("<QII", offset, flat.nbytes, BYTES) + flat.tobytes())
    content = struct.pack("<I", len(segments)) + b"".join(segments)
    return MAGIC + layout.encode() + struct.pack("<I", zlib.crc32(content)) + content


def _target_files(game: Game, functions: list[CompiledFunction], target: Any, objects: Path) -> dict[str, bytes]:
    """Return the files of a game for a target, by name."""
    from card_envs.build._api import name_in_c

    players = {export.player: export for export in functions if export.file}
    known = describe_game(game)
    known["opponents"] = list(players)
    names = {name_in_c(name): name for name in opponent_names(game)}  # by which strength was measured
    known["about_opponents"] = {
        name: about(replace(load_opponent(player.made_of, game), name=names.get(name, name)))
        for name, player in players.items()
    }
    offered = [names[name] for name in players if name in names]
    known["levels"] = [{**level._asdict(), "player": name_in_c(level.player)} for level in levels(game, offered)]
    known["judges"] = [name for name, player in players.items() if "search:" in player.made_of]
    known["players"] = {
        name: {
            "made_of": player.made_of,
            "searches": name in known["judges"],
            "memory": player.size,
            "layout": player.layout,
            "file": f"{game.name}.{name}.player",
        }
        for name, player in players.items()
    }
    files = {f"{game.name}.json": json.dumps(known, indent=1).encode()}
    files |= {f"{game.name}.{name}.player": (objects / player.file).read_bytes() for name, player in players.items()}
    machine_code = list(dict.fromkeys(objects / export.objects[target.name] for export in functions))
    with tempfile.TemporaryDirectory() as place:
        room = Path(place)
        if target.is_wasm:
            files["shapes.js"] = drawings_module(list(GAMES.values())).encode()
            files[f"{game.name}.files.js"] = urls_module(
                [*(name for name in files if name != "shapes.js"), f"{game.name}.wasm"]
            )
            library = room / f"{game.name}.wasm"
            _run(target.link(library, machine_code, [export.symbol for export in functions]), f"linking {library.name}")
        else:
            (room / "tables.h").write_text(c_tables(game, players), encoding="utf-8")
            more = ["-fvisibility=hidden", f'-DTABLES="{room / "tables.h"}"', str(Path(__file__).with_name("api.c"))]
            library = room / f"libcard_envs_{game.name}{target.suffix}"
            _run([*target.link(library, machine_code), *more], f"linking {library.name} for {target.name}")
            files[f"card_envs_{game.name}.h"] = header(game, functions).encode()
        files[library.name] = library.read_bytes()
    return files


def urls_module(names: Sequence[str]) -> bytes:
    """Return a module with the URL of each file, written as bundlers know a file by."""
    listed = "".join(
        f"  {json.dumps(name)}: new URL({json.dumps(f'./{name}')}, import.meta.url).href,\n" for name in names
    )
    return f"export default {{\n{listed}}};\n".encode()


def initial_state(game: Game, **options: Any) -> bytes:
    """Return a State with some options before its first deal."""
    state = np.zeros(1, game.rules.STATE)
    state[0] = game.rules.new_state(replace(game.options(), **options))
    return state.tobytes()


def patches(game: Game) -> dict[str, list[tuple[int, int]]]:
    """Return what each value of an option writes into a State, as `option=value`: offsets and bytes.

    An option writes the same bytes whatever its value, so that a choice undoes an earlier one.
    """
    changes = {}
    for name, values in choices_of(game.options).items():
        states = {value: initial_state(game, **{name: value}) for value in values}
        offsets = [k for k in range(len(initial_state(game))) if len({state[k] for state in states.values()}) > 1]
        for value, state in states.items():
            text = value if isinstance(value, str) else json.dumps(value)
            changes[f"{name}={text}"] = [(k, state[k]) for k in offsets]
    return changes


def c_tables(game: Game, players: dict[str, CompiledFunction]) -> str:
    """Return the tables that `api.c` includes."""
    from card_envs.build._api import ERRORS

    choices: list[str] = []
    all_patches: list[str] = []
    for text, changes in patches(game).items():
        choices.append(f"{{{json.dumps(text)}, {len(all_patches)}, {len(all_patches) + len(changes)}}}")
        all_patches += [f"{{{offset}, {value}}}" for offset, value in changes]
    listed = [f'{{"{name}", "{player.layout}", {player.size}}}' for name, player in players.items()]
    problems = [f"{{{code}, {json.dumps(text)}}}" for code, text in (ERRORS | MORE_ERRORS).items()]
    return "\n".join(
        (
            f"#define NAME(x) card_envs_{game.name}_##x",
            f"#define ACTIONS {game.rules.NUM_ACTIONS}",
            f"static const uint8_t INITIAL[] = {{{', '.join(map(str, initial_state(game)))}}};",
            f"static const patch PATCHES[] = {{{', '.join(all_patches or ['{0, 0}'])}}};",
            f"static const choice CHOICES[] = {{{', '.join(choices)}}};",
            f"static const char *const TEXTS[] = {{{', '.join(map(json.dumps, game.move_texts))}}};",
            f"static const player PLAYERS[] = {{{', '.join(listed)}}};",
            f"static const problem PROBLEMS[] = {{{', '.join(problems)}}};",
            "",
        )
    )


def header(game: Game, functions: list[CompiledFunction]) -> str:
    """Return the header of a game's C library."""
    from card_envs.build._api import ERRORS

    rules, upper = game.rules, f"CARD_ENVS_{game.name.upper()}"
    sizes = {
        "STATE_SIZE": rules.STATE.itemsize,
        "SEATS": rules.NUM_SEATS,
        "ACTIONS": rules.NUM_ACTIONS,
        "OBSERVATION": rules.OBS_SIZE,
        "PACK": rules.PACK_SIZE,
    }
    sizes |= {f"{export.player.upper()}_MEMORY": export.size for export in functions if export.file}
    rules_texts, players_texts = [], []
    for export in functions:
        declaration = f"int32_t {export.symbol}({', '.join(export.parameters)});"
        if export.name.startswith(("advise_", "judge_")):
            players_texts.append(declaration)
        else:
            rules_texts.append(f"/* {export.meaning[0].upper()}{export.meaning[1:]}. */\n{declaration}")
    return Template(Path(__file__).with_name("api.h").read_text(encoding="utf-8")).substitute(
        name=game.name,
        title=game.title,
        upper=upper,
        sizes="\n".join(f"    {upper}_{name} = {size}," for name, size in sizes.items()),
        errors="\n".join(f"   {code}: {text}" for code, text in (ERRORS | MORE_ERRORS).items()),
        options="\n".join(f"   {text}" for text in patches(game)),
        rules="\n\n".join(rules_texts),
        players="\n".join(players_texts),
    )
