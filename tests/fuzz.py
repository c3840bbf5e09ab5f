"""Malformed input by the thousand: `python -m tests.fuzz [DOOR …] --number 50000`. Arrays: `test_doors.py`.

Each door is tried with what good input becomes by mutation, and with junk. Answers are counted by their kind: taken, or
which documented error. Any other exception, a crash, an answer that takes longer than `PATIENCE`, or something left
half-done is a fault: it is printed with what repeats it, and the exit status is 1.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as Sheet

from card_envs import GameRecord, replay, verify
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.opponents.networks.folder import CARD_FILE, WEIGHTS_FILE
from card_envs.options import describe_options
from card_envs.testing.malformed import JUNK, mutated
from tests.conftest import field_bytes, play_randomly

Attempt = Callable[[], object]
PATIENCE = 60  # seconds of processor time, which a busy machine does not use up
HANGS = 600  # seconds for whatever waits without using any
DOCUMENTED = (ValueError, RuntimeError)  # IllegalMove and pydantic's are ValueErrors; RuntimeError: reset() comes first


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Some bytes flipped, dropped, doubled, or cut off."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(changed) or 1)
        how = rng.randrange(4)
        if how == 0 and changed:
            changed[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del changed[at : at + rng.randrange(1, 64)]
        elif how == 2:
            changed[at:at] = changed[at : at + rng.randrange(1, 64)]
        else:
            del changed[at + rng.randrange(len(changed) - at + 1) :]
    return bytes(changed)


class Unharmed:
    """After an error the environment is as it was."""

    def __init__(self, env: CardEnv) -> None:
        self.env = env

    def after(self, attempt: Attempt) -> None:
        before = field_bytes(self.env.states), self.env.agent_selection, self.env.legal_moves()
        try:
            attempt()
        except DOCUMENTED:
            assert (field_bytes(self.env.states), self.env.agent_selection, self.env.legal_moves()) == before
            raise


def fresh(game: Game, rng: random.Random) -> CardEnv:
    env = CardEnv(game, illegal_move="raise")
    env.reset(seed=rng.getrandbits(60))
    return play_randomly(env, rng.getrandbits(30), moves=rng.randrange(60))


def views(game: Game, rng: random.Random) -> Iterator[Attempt]:
    greedy = load_opponent("greedy", game)
    while True:
        env = fresh(game, rng)
        seen = env.view(rng.choice(env.possible_agents))
        for _ in range(50):
            given = mutated(seen, rng) if rng.random() < 0.95 else rng.choice(JUNK)
            if rng.random() < 0.3 and isinstance(given, dict) and given:
                given = mutated(given, rng)
            yield lambda given=given: greedy.advise(given)  # type: ignore[misc]


def deals(game: Game, rng: random.Random) -> Iterator[Attempt]:
    while True:
        env = fresh(game, rng)
        deal = env.record().deal
        for _ in range(50):
            options: Any = {"deal": mutated(deal, rng) if rng.random() < 0.9 else rng.choice(JUNK)}
            options = mutated(options, rng) if rng.random() < 0.1 else options
            yield lambda options=options, env=env: Unharmed(env).after(lambda: env.reset(options=options))  # type: ignore[misc]


def moves(game: Game, rng: random.Random) -> Iterator[Attempt]:
    letters = "ACDHKSTW0123456789FROBabcdefghijklmnopqrstuvwxyz- \0é♥"
    while True:
        env = fresh(game, rng)
        for _ in range(50):
            text: Any = "".join(rng.choices(letters, k=rng.randrange(9)))
            if rng.random() < 0.5 and env.legal_moves():
                text = changed_bytes(rng.choice(env.legal_moves()).encode(), rng).decode(errors="replace")
            junk = rng.choice((text, *JUNK, np.float64(2), np.array([1, 2]), b"x"))
            call = rng.choice((env.parse_move, env.move_text, env.observe, env.view, env.step))
            yield lambda call=call, junk=junk, env=env: Unharmed(env).after(lambda: call(junk))  # type: ignore[misc]


def records(game: Game, rng: random.Random) -> Iterator[Attempt]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.json"
        while True:
            record = fresh(game, rng).record()
            whole = json.loads(record.model_dump_json())
            for _ in range(20):
                text = json.dumps(mutated(whole, rng)).encode()
                if rng.random() < 0.3:
                    text = changed_bytes(text, rng)
                file.write_bytes(text)

                def attempt() -> None:
                    loaded = GameRecord.load(file)
                    replay(loaded)
                    verify(loaded)

                yield attempt


def options(game: Game, rng: random.Random) -> Iterator[Attempt]:
    names = [*describe_options(game.options), "no_such", "render_mode", "illegal_move", "obs_key"]
    while True:
        given = {rng.choice(names): rng.choice((*JUNK, "win", "single", [13, 1])) for _ in range(rng.randrange(1, 3))}
        yield lambda given=given: CardEnv(game, **given).reset(seed=1)  # type: ignore[misc]


def folders(game: Game, rng: random.Random) -> Iterator[Attempt]:
    import card_envs.opponents._names as names

    source = next((Path(names.__file__).parent / "models" / game.name).glob("*"), None)
    if source is None:
        return
    files = {name: (source / name).read_bytes() for name in (CARD_FILE, WEIGHTS_FILE)}
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "opponent"
        folder.mkdir()
        while True:
            name = rng.choice((CARD_FILE, CARD_FILE, WEIGHTS_FILE))
            data = files[name]
            if name == CARD_FILE and rng.random() < 0.7:
                data = json.dumps(mutated(json.loads(data), rng)).encode()
            else:
                data = changed_bytes(data, rng)
            for one, good in files.items():
                (folder / one).write_bytes(data if one == name else good)
            yield lambda: load_opponent(folder, game)


def names(game: Game, rng: random.Random) -> Iterator[Attempt]:
    words = (
        "greedy", "search", "ppo", "random", ":", "-", "=", "+", "/", "64", game.name, "bidding", "os", "\0", "é", "..",
    )  # fmt: skip
    while True:
        name = "".join(rng.choices(words, k=rng.randrange(7))) * rng.choice((1, 1, 1, 400))
        yield lambda name=name: load_opponent(name, game)  # type: ignore[misc]


def configs(game: Game, rng: random.Random) -> Iterator[Attempt]:
    from training.config import as_toml, load_config

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "some.toml"
        file.write_text(f'game = "{game.name}"\nminutes = 1\n')
        whole = as_toml(load_config(file)).encode()
        keys = [line.split(" = ")[0] for line in whole.decode().splitlines() if " = " in line]
        while True:
            file.write_bytes(changed_bytes(whole, rng) if rng.random() < 0.5 else whole)
            values = (*map(str, JUNK), "[[1]]", "nan", "{a = {b = 1}}", '"\0"', "1e400")
            override = f"{rng.choice(keys)}={rng.choice(values)}"
            yield lambda override=override: load_config(file, [override] if rng.random() < 0.7 else [])  # type: ignore[misc]


def checkpoints(game: Game, rng: random.Random) -> Iterator[Attempt]:
    """Half of them with the right checksum: then all depends on the checks behind it."""
    import torch

    from training import checkpoint
    from training.algorithms import Diverged
    from training.config import Config
    from training.run import Run

    torch.set_num_threads(1)
    sizes: dict[str, Any] = {"num_envs": 6, "num_steps": 4, "hidden": [4], "minibatch_size": 8, "pool_size": 2}
    config = Config(game=game.name, decisions=20, bf16=False, **sizes)
    trained = Run(config)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.safetensors"
        kept = checkpoint.previous(path)
        while True:
            if trained.progress >= 1:
                trained = Run(config)
            trained.iterate()
            trained.save_checkpoint(path)
            whole = path.read_bytes()
            arrays, facts = checkpoint.read_checkpoint(path)
            for _ in range(50):
                if rng.random() < 0.5:
                    path.write_bytes(changed_bytes(whole, rng))
                else:
                    given = dict(facts)
                    changed = {name: array.copy() for name, array in arrays.items()}
                    if rng.random() < 0.5:
                        given = mutated(facts, rng)
                    else:
                        change_arrays(changed, rng)
                    path.write_bytes(checkpoint.pack(changed, given))
                kept.unlink(missing_ok=True)

                def attempt(run: Run = trained) -> None:
                    run.load_checkpoint(path)
                    if run.progress < 1:
                        with suppress(Diverged):  # from absurd weights
                            run.iterate()

                yield attempt


def change_arrays(arrays: dict[str, Any], rng: random.Random) -> None:
    """One of them dropped, added, renamed, or of other numbers, another type or shape."""
    name = rng.choice(list(arrays))
    if rng.random() < 0.5:
        name = rng.choice([one for one in arrays if one.startswith("rank")])
    array = arrays[name]
    how = rng.randrange(7)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[rng.choice(("surprise", f"{name}x", "rank9/moves"))] = array
    elif how == 2:
        arrays[name] = array.astype(rng.choice(("i1", "i8", "u1", "u8", "f4", "f8")))
    elif how == 3:
        arrays[name] = array.reshape(-1)[: rng.randrange(array.size + 1)]
    elif how == 4 and array.ndim:
        arrays[name] = array[..., None]
    elif array.size:
        data = array.view(np.uint8) if array.ndim else array
        for _ in range(rng.choice((1, 3, 100))):
            at = rng.randrange(data.size)
            data.flat[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))


DOORS: dict[str, Callable[[Game, random.Random], Iterator[Attempt]]] = {
    door.__name__: door for door in (views, deals, moves, records, options, folders, names, configs, checkpoints)
}


class TooLong(Exception):
    """An answer took longer than `PATIENCE`."""


def _too_long(*_: object) -> None:
    raise TooLong


def run_door(door: str, game_name: str, number: int, seed: int) -> int:
    """Try one door of one game; prints counts and faults as JSON lines."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.signal(signal.SIGPROF, _too_long)
    rng = random.Random(f"{door} {game_name} {seed}")
    counts: Counter[str] = Counter()
    faults = 0
    for attempt in DOORS[door](GAMES[game_name], rng):
        if sum(counts.values()) >= number:
            break
        signal.alarm(HANGS)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        try:
            attempt()
        except DOCUMENTED as error:
            counts[type(error).__name__] += 1
        except Exception as error:
            counts[f"FAULT {type(error).__name__}"] += 1
            faults += 1
            if faults <= 5:
                print(f"{door} {game_name} seed {seed} attempt {sum(counts.values())}:", file=sys.stderr)
                traceback.print_exc(limit=-4)
        else:
            counts["taken"] += 1
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps(counts))
    return faults


def command(door: str, game_name: str, seed: int, number: int) -> list[str]:
    """What tries one door of one game: a crash of it is seen from outside."""
    return [
        sys.executable, "-m", "tests.fuzz", door, "--game", game_name, "--seed", str(seed), "--number", str(number)
    ]  # fmt: skip


def main(
    doors: Annotated[list[str] | None, typer.Argument(help=f"of {', '.join(DOORS)}; default: all")] = None,
    number: Annotated[int, typer.Option(min=1, help="inputs at each door")] = 50_000,
    seed: Annotated[int, typer.Option(help="of all inputs")] = 0,
    game: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Try malformed input at every door and count the answers."""
    chosen = doors or list(DOORS)
    if game:
        raise SystemExit(bool(run_door(chosen[0], game, number, seed)))
    console = Console()
    sheet = Sheet(title=f"malformed input, seed {seed}")
    for column in ("door", "inputs", "taken", "documented errors", "faults", "seconds"):
        sheet.add_column(column, justify="left" if column == "door" else "right")
    failed = False
    for door in chosen:
        counts: Counter[str] = Counter()
        start = time.perf_counter()
        for name in GAMES:
            done = subprocess.run(
                command(door, name, seed, -(-number // len(GAMES))),
                stdout=subprocess.PIPE,
                text=True,
                check=False,
                env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            )
            if done.returncode < 0 or not done.stdout.strip():
                counts[f"FAULT crash {done.returncode}"] += 1
            else:
                counts.update(json.loads(done.stdout.strip().splitlines()[-1]))
        faults = sum(times for kind, times in counts.items() if kind.startswith("FAULT"))
        failed |= faults > 0
        errors = ", ".join(f"{times:,} {kind}" for kind, times in counts.items() if kind.endswith(("Error", "Move")))
        sheet.add_row(
            door, f"{sum(counts.values()):,}", f"{counts['taken']:,}", errors, f"{faults:,}",
            f"{time.perf_counter() - start:.0f}",
        )  # fmt: skip
    console.print(sheet)
    raise SystemExit(failed)


if __name__ == "__main__":
    typer.run(main)
