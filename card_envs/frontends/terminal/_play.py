"""A person at the terminal against any opponents."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markdown import Markdown

from card_envs.engine.buffers import new_seed
from card_envs.frontends.terminal._waiting import thinking
from card_envs.game import Game
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import Opponent, hide_seed, spawn
from card_envs.play.episode import Episode, read_episode
from card_envs.play.narration import (
    WIDTH,
    Event,
    hint_text,
    legend_text,
    lines_of,
    moves_text,
    question_text,
    result_text,
    seat_names,
    told,
)
from card_envs.play.sitting import Sitting, seated
from card_envs.play.suits import LETTERS, with_suits
from card_envs.record import GameRecord
from card_envs.system.files import check_output, error_text

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

    Without a seed, each game is different. A record to `resume` brings its own options; the seed is then that of the
    later deals. `opponents` are one name for all other seats, or one each, clockwise from the left.

    Raises:
        ValueError: a wrong seat, opponent, option or folder; a record of another game or of a finished one.
    """
    check_seat(game, seat)
    loaded = load_opponents(game, opponents, game.rules.NUM_SEATS - 1)
    players = seated([opponent.policy for opponent in loaded], seat)
    check_output(record)
    rng = np.random.default_rng(seed)
    names, events = seat_names(game, seat), list[Event]()
    if resume is None:
        episode = Episode(game, game.validated(options), seed=new_seed() if seed is None else seed)
    else:
        episode, events = _resumed(game, resume, options, names, rng)
        rng = spawn(rng)  # the opponents must not be able to recover the key of the later deals
    sitting = Sitting(episode, players, hide_seed(rng), names)
    sitting.events += events
    table = PersonsTable(sitting, seat, console)
    try:
        table.play()
    except (KeyboardInterrupt, EOFError):
        console.print()
    finally:
        if record is not None:
            sitting.episode.record().save(record)
    table.say(result_text(game, sitting.outcome(), names, seat))
    if record is not None:
        table.say(f"saved to {record}")


def check_seat(game: Game, seat: int | None) -> None:
    """Raise ValueError if the game has no such seat."""
    if seat is not None and not 0 <= seat < game.rules.NUM_SEATS:
        raise ValueError(f"seat: {game.title} has seats 0 to {game.rules.NUM_SEATS - 1}, got {seat}")


def ask(prompt: str, console: Console) -> str:
    """Read a line from the person. Raises EOFError at the end of the input."""
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
) -> tuple[Episode, list[Event]]:
    """Return the game in a record with new later deals, and its last events."""
    if options:
        raise ValueError("option: a resumed game keeps its own options")
    record = GameRecord.load(file)
    if record.game != game.name:
        raise ValueError(f"{file}: a record of {record.game}, not of {game.name}")
    if record.outcome.get("over"):
        raise ValueError(f"{file}: this game is over; `watch --replay {file}` shows it")
    # Later deals must differ each time.
    try:
        episode, actions = read_episode(record, game, key=int(rng.integers(0, 1 << 64, dtype=np.uint64)))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    sitting = Sitting(episode)
    for number, action in enumerate(actions):
        if number == max(0, len(actions) - SHOWN_AGAIN):
            sitting.names = names
        sitting.play(action)
    return sitting.episode, sitting.events


class PersonsTable:
    """A person at the terminal in a seat, who can look, ask for hints and take back moves."""

    def __init__(self, sitting: Sitting, seat: int, console: Console) -> None:
        """Take a sitting in which the seat is the person's."""
        self.sitting = sitting
        self.game = sitting.game
        self.seat = seat
        self.console = console

    def say(self, text: str) -> None:
        """Print a text in lines of at most 80 columns."""
        self.show(lines_of(text))

    def show(self, text: str, style: str | None = None, symbols: bool = True) -> None:
        """Print a text unwrapped, with its cards in colour."""
        self.console.print(with_suits(text, self.console, symbols), style=style, highlight=False)

    def play(self) -> None:
        """Play until the episode is over or the person leaves."""
        self.say(f"{self.game.title}: {self._seating()}. Type a move, or help.")
        while True:
            for _ in self.sitting.advance(thinking):
                pass
            self._show_table()
            if self.sitting.over or not self._decide():
                return

    def _seating(self) -> str:
        named = [*zip(self.sitting.names, self.sitting.players)]
        clockwise = named[self.seat + 1 :] + named[: self.seat]
        said = [f"{name} is {player.name}" for name, player in clockwise if player is not None]
        return ", ".join([f"you have seat {self.seat}", *said])

    def _show_table(self) -> None:
        events, view, _ = self.sitting.prompt(self.seat)
        self.show("-" * WIDTH, "dim")
        if events:
            self.show(told(events) + "\n", "cyan")
        self.show(self.game.view.picture(view))

    def _decide(self) -> bool:
        """Show the moves, and read lines until one changes the position; return False if the person leaves."""
        moves = self.sitting.legal_moves()
        asked = f"{question_text(self.game, self.sitting.view(self.seat))}\n{moves_text(moves)}"
        self.show(asked, symbols=False)  # letters, as typed
        prompt = f"your move (Enter: {moves[0]})> " if len(moves) == 1 else "your move> "
        while True:
            line = ask(prompt, self.console)
            word, _, rest = line.partition(" ")
            command = SHORT.get(word.lower(), word.lower())
            if command == "quit":
                return False
            if command == "undo":
                if self.sitting.undo(self.seat):
                    return True
                self.say("There is no move of yours to take back.")
            elif command == "help":
                self.show(HELP + legend_text(self.game) + asked, symbols=False)
            elif command == "rules":
                self._rules()
            elif command == "hint":
                self._hint(rest.strip())
            elif command == "save":
                self._save(rest.strip())
            else:
                try:
                    move = find_move(self.sitting, line or (moves[0] if len(moves) == 1 else ""))
                except ValueError as error:
                    self.say(str(error))
                    continue
                self.sitting.play(self.sitting.action(move))
                return True

    def _rules(self) -> None:
        text = self.game.short_rules
        self.console.print(Markdown(text) if text else "This game has no rules in short.", width=WIDTH)

    def _hint(self, name: str) -> None:
        name = name or "greedy"
        view = self.sitting.view(self.seat)  # now: what was stopped goes on in its thread
        try:
            ranked = thinking(name, lambda: load_opponent(name, self.game).rank_moves(view))
        except KeyboardInterrupt:
            self.say(f"{name} was stopped; it is still your move.")
            return
        except (OSError, ValueError) as error:
            self.say(error_text(error))
            return
        self.show(hint_text(self.game, name, ranked))

    def _save(self, file: str) -> None:
        if not file:
            self.say("Missing file name: save FILE")
            return
        try:
            check_output(Path(file))
            self.sitting.episode.record().save(file)
        except (OSError, ValueError) as error:
            self.say(error_text(error))
        else:
            self.say(f"Saved to {file}; --resume {file} goes on from here.")


def find_move(sitting: Sitting, text: str) -> str:
    """Return the legal move that a text means: in any case, with or without dash, or its first letters.

    Raises:
        ValueError: no legal move begins like that, or several do; suggests moves.
    """
    moves = {_squeezed(move): move for move in sitting.legal_moves()}
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
            sitting.game.parse_move(sitting.episode.table.state, spelling)
        except ValueError as error:
            problems.append(str(error))
        else:
            raise ValueError(f"{spelling} is not legal now.{hint}")
    raise ValueError(f"{text!r} is neither a move nor a command.{hint}" if near else problems[0])


def _squeezed(text: str) -> str:
    return "".join(text.translate(LETTERS).lower().replace("-", " ").split())
