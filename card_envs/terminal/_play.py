"""A person at the terminal against any opponents."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markdown import Markdown

from card_envs._console import is_lost
from card_envs._files import check_output, in_words
from card_envs.envs._others import Others
from card_envs.envs._replay import replay
from card_envs.envs.aec import CardEnv, env_with
from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import Opponent, hide_seed, spawn
from card_envs.record import GameRecord
from card_envs.terminal._narration import (
    WIDTH,
    Event,
    hint_text,
    legend_text,
    lines_of,
    moves_text,
    result_text,
    seat_names,
    step,
    told,
)
from card_envs.terminal._suits import LETTERS, with_suits
from card_envs.terminal._waiting import thinking

HELP = """\
Type a move as it is shown, in small or capital letters; its first letters will
do where they leave no doubt. Enter plays the only legal move.
  hint [OPPONENT]  what an opponent (default: greedy) would play from your seat
  undo             take back your last move and all that followed it
  save FILE        write the game so far to a file
  rules            the rules in short; all of them: card-envs rules GAME
  help             this text
  quit             leave; with --record the game is saved
"""
COMMANDS = ("hint", "undo", "save", "rules", "help", "quit")
SHORT = {"?": "help", "q": "quit", "exit": "quit"}
SHOWN_AGAIN = 8  # moves shown when a game is resumed


def play_game(
    game: Game,
    opponents: str | list[str],
    seat: int,
    seed: int | None,
    options: dict[str, Any],
    record: Path | None,
    console: Console,
    resume: Path | None = None,
) -> None:
    """Play one episode; the record is saved however it ends.

    Args:
        game: the game.
        opponents: one name for all other seats, or one each, clockwise from the left.
        seat: the person's seat.
        seed: of deals and opponents; None: a different game each time.
        options: of the game; for a resumed game those of the record.
        record: file to save the game to, or None.
        console: to print to.
        resume: a record to continue, or None; `seed` is then that of the later deals.

    Raises:
        ValueError: a wrong seat, opponent, option or folder; a record of another game or of a finished one.
    """
    check_seat(game, seat)
    loaded = load_opponents(game, opponents, game.rules.NUM_SEATS - 1)
    others = Others([opponent.policy for opponent in loaded], seat)
    check_output(record)
    rng = np.random.default_rng(seed)
    names, events = seat_names(game, seat), list[Event]()
    if resume is None:
        env = env_with(game, options)
        env.reset(seed)
    else:
        env, events = _resumed(game, resume, options, names, rng)
        rng = spawn(rng)  # the opponents must not be able to recover the key of the later deals
    others.rng = hide_seed(rng)
    table = PersonsTable(env, others, console, events)
    try:
        table.play()
    except (KeyboardInterrupt, EOFError):
        console.print()
    finally:
        if record is not None:
            table.env.record().save(record)
    table.say(result_text(game, table.env.outcome(), names, seat))
    if record is not None:
        table.say(f"saved to {record}")


def check_seat(game: Game, seat: int | None) -> None:
    """Raise ValueError if the game has no such seat."""
    if seat is not None and not 0 <= seat < game.rules.NUM_SEATS:
        raise ValueError(f"seat: {game.title} has seats 0 to {game.rules.NUM_SEATS - 1}, got {seat}")


def ask(prompt: str, console: Console) -> str:
    """Read a line from the person. Raises EOFError at the end of the input, or if printed output is lost."""
    if is_lost():
        raise EOFError
    line = console.input(prompt, markup=False).strip()
    if not sys.stdin.isatty():  # input is not echoed: print it, with a line break
        console.print(line, markup=False, highlight=False)
    return line


def load_opponents(game: Game, names: str | list[str], number: int) -> list[Opponent]:
    """Return `number` opponents from one name for all or one each. Raises ValueError for another number."""
    names = [names] if isinstance(names, str) else names
    names = names * number if len(names) == 1 else names
    if len(names) != number:
        raise ValueError(f"opponents: expected one name, or {number}, got {len(names)}")
    loaded = {name: load_opponent(name, game) for name in dict.fromkeys(names)}
    return [loaded[name] for name in names]


def _resumed(
    game: Game, file: Path, options: dict[str, Any], names: Sequence[str], rng: np.random.Generator
) -> tuple[CardEnv, list[Event]]:
    """Return the game in a record with new later deals, and its last events."""
    if options:
        raise ValueError("option: a resumed game keeps its own options")
    record = GameRecord.load(file)
    if record.game != game.name:
        raise ValueError(f"{file}: a record of {record.game}, not of {game.name}")
    if record.outcome.get("over"):
        raise ValueError(f"{file}: this game is over; `watch --replay {file}` shows it")
    first_shown = max(0, len(record.moves) - SHOWN_AGAIN)
    env = replay(record, first_shown)
    events = []
    for move in record.moves[first_shown:]:
        events += step(env, env.parse_move(move), names)
    # Replaying always leaves the same stream; the later deals must differ each time.
    env.states["rng"] = rng.integers(0, 1 << 64, dtype=np.uint64)
    return env, events


class PersonsTable:
    """One episode with a person in a seat, who can look, ask for hints and take back moves."""

    def __init__(self, env: CardEnv, others: Others, console: Console, events: Sequence[Event] = ()) -> None:
        """Set up the table.

        Args:
            env: the episode; undo replaces it by a copy.
            others: the opponents in all seats but the person's.
            console: to print to.
            events: what happened before.
        """
        self.env = env
        self.others = others
        self.person = env.possible_agents[others.seat]
        self.names = seat_names(env.game, others.seat)
        self.console = console
        self.events = list(events)  # since the person's last move
        self.decisions: list[tuple[CardEnv, Mapping[str, Any], list[Event]]] = []  # copies from before each decision

    def say(self, text: str) -> None:
        """Print a text in lines of at most 80 columns."""
        self.show(lines_of(text))

    def show(self, text: str, style: str | None = None, symbols: bool = True) -> None:
        """Print a text unwrapped, with its cards in colour."""
        self.console.print(with_suits(text, self.console, symbols), style=style, highlight=False)

    def play(self) -> None:
        """Play until the episode is over or the person leaves."""
        self.say(f"{self.env.game.title}: {self._seating()}. Type a move, or help.")
        while True:
            for action in self.others.moves(self.env, thinking):
                self.events += step(self.env, action, self.names)
            self._show_table()
            if self.env.outcome()["over"] or not self._decide():
                return

    def _seating(self) -> str:
        seat = self.others.seat
        named = zip(self.names[seat + 1 :] + self.names[:seat], self.others.players)
        return ", ".join([f"you have seat {seat}", *(f"{name} is {player.name}" for name, player in named)])

    def _show_table(self) -> None:
        self.show("-" * WIDTH, "dim")
        if self.events:
            self.show(told(self.events) + "\n", "cyan")
        self.show(self.env.game.view.picture(self.env.view(self.person)))

    def _decide(self) -> bool:
        """Show the moves, and read lines until one changes the position; return False if the person leaves."""
        moves = self.env.legal_moves()
        self.show(moves_text(moves), symbols=False)  # letters, as typed
        prompt = f"your move (Enter: {moves[0]})> " if len(moves) == 1 else "your move> "
        while True:
            line = ask(prompt, self.console)
            word, _, rest = line.partition(" ")
            command = SHORT.get(word.lower(), word.lower())
            if command == "quit":
                return False
            if command == "undo":
                if self._undo():
                    return True
            elif command == "help":
                self.show(HELP + legend_text(self.env.game) + moves_text(moves), symbols=False)
            elif command == "rules":
                self._rules()
            elif command == "hint":
                self._hint(rest.strip())
            elif command == "save":
                self._save(rest.strip())
            else:
                try:
                    move = find_move(self.env, line or (moves[0] if len(moves) == 1 else ""))
                except ValueError as error:
                    self.say(str(error))
                    continue
                self.decisions.append((self.env.clone(), self.others.rng.bit_generator.state, self.events))
                self.events = step(self.env, self.env.parse_move(move), self.names)
                return True

    def _rules(self) -> None:
        text = self.env.game.short_rules
        self.console.print(Markdown(text) if text else "This game has no rules in short.", width=WIDTH)

    def _undo(self) -> bool:
        if not self.decisions:
            self.say("There is no move of yours to take back.")
            return False
        self.env, self.others.rng.bit_generator.state, self.events = self.decisions.pop()
        return True

    def _hint(self, name: str) -> None:
        name = name or "greedy"
        game, view = self.env.game, self.env.view(self.person)
        try:
            ranked = thinking(name, lambda: load_opponent(name, game).evaluate(view))
        except KeyboardInterrupt:
            self.say(f"{name} was stopped; it is still your move.")
            return
        except (OSError, ValueError) as error:
            self.say(in_words(error))
            return
        self.show(hint_text(game, name, ranked))

    def _save(self, file: str) -> None:
        if not file:
            self.say("Missing file name: save FILE")
            return
        try:
            check_output(Path(file))
            self.env.record().save(file)
        except (OSError, ValueError) as error:
            self.say(in_words(error))
        else:
            self.say(f"Saved to {file}; --resume {file} goes on from here.")


def find_move(env: CardEnv, text: str) -> str:
    """Return the legal move that a text means: in any case, with or without dash, or its first letters.

    Raises:
        ValueError: no legal move begins like that, or several do; suggests moves.
    """
    moves = {_squeezed(move): move for move in env.legal_moves()}
    typed = _squeezed(text)
    if not typed:
        raise ValueError("Type one of the moves shown, or help.")
    if typed in moves:
        return moves[typed]
    fitting = [move for short, move in moves.items() if short.startswith(typed)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ValueError(f"{text!r} may be {', '.join(fitting)}: type more of it.")
    near = difflib.get_close_matches(typed, [*moves, *COMMANDS], 3, 0.6)
    hint = f" Did you mean {' or '.join(moves.get(one, one) for one in near)}?" if near else ""
    problems = []
    for spelling in (text, text.upper(), text.lower()):
        try:
            env.parse_move(spelling)
        except ValueError as error:
            problems.append(str(error))
        else:
            raise ValueError(f"{spelling} is not legal now.{hint}")
    raise ValueError(f"{text!r} is neither a move nor a command.{hint}" if near else problems[0])


def _squeezed(text: str) -> str:
    return "".join(text.translate(LETTERS).lower().replace("-", " ").split())
