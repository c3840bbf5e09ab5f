"""Playing and watching at the terminal: what is typed, what is shown, what is saved."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console
from typer.testing import CliRunner

from card_envs.__main__ import app
from card_envs.envs._replay import replay, verify
from card_envs.envs.aec import env_with
from card_envs.frontends.terminal import _waiting
from card_envs.frontends.terminal._play import SHORT, find_move, play_game
from card_envs.frontends.terminal._watch import Screen, watch_game, watch_record
from card_envs.game import Game
from card_envs.games import GAMES
from card_envs.opponents import load_opponent
from card_envs.opponents.policy import ActionValue, Decisions, decisions_at
from card_envs.opponents.search import why_not
from card_envs.play.narration import seat_names
from card_envs.record import GameRecord
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from tests.conftest import FirstLegal, short_options

FILE = Path("game.json")
Typed = Iterable[str | type[BaseException]]
Answer = Callable[[str], str]  # what is typed, by what has been shown


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # file names stay short


class Typing(Console):
    """A console at which somebody types; the end of the list is the end of the input."""

    def __init__(self, typed: Typed | Answer) -> None:
        super().__init__(file=io.StringIO(), width=200)
        self.typed = typed if callable(typed) else iter(typed)

    def input(self, prompt: Any = "", **how: Any) -> str:
        self.print(prompt, markup=False, end="")
        line = self.typed(self.shown()) if callable(self.typed) else next(self.typed, EOFError)
        if isinstance(line, str):
            return line
        raise line

    def shown(self) -> str:
        assert isinstance(self.file, io.StringIO)
        return self.file.getvalue()


def shown_by(call: Callable[[Console], None], typed: Typed | Answer) -> str:
    """Return what a command prints for this input."""
    console = Typing(typed)
    call(console)
    shown = console.shown()
    assert max(map(len, shown.splitlines())) <= 80
    return shown


def play(game: Game, typed: Typed | Answer, **changes: Any) -> tuple[str, GameRecord]:
    """What was shown, and the record."""
    given = {"opponents": "random", "seat": game.rules.NUM_SEATS - 1, "seed": 3, "options": short_options(game)}
    call = {**given, "record": FILE, **changes}
    shown = shown_by(lambda console: play_game(game, console=console, **call), typed)
    record = GameRecord.load(FILE)
    verify(record)
    return shown, record


def first_legal(shown: str) -> str:
    return shown.rpartition("moves: ")[2].split()[0].split(",")[0]


def by_hand(game: Game, moves: int = 10_000) -> tuple[list[str], GameRecord]:
    """The moves of a person who plays like `greedy` against `random` in the game of `play`, and its record."""
    rng = np.random.default_rng(3)
    env = env_with(game, short_options(game))
    env.reset(3)
    policies = {"person": load_opponent("greedy", game), "other": load_opponent("random", game)}
    typed: list[str] = []
    while not env.outcome()["over"]:
        person = env.agent_selection == env.possible_agents[-1]
        if person and len(typed) == moves:
            break
        action = policies["person" if person else "other"].move(env, rng)
        typed += [env.move_text(action)] if person else []
        env.step(action)
    return typed, env.record()


def test_a_whole_game(game: Game) -> None:
    typed, expected = by_hand(game)
    shown, record = play(game, [move.lower().replace("-", " ") for move in typed])
    assert record == expected
    assert "Game over: " in shown and "Left before" not in shown
    scores = record.outcome["scores"]
    verdict = "drawn" if len(set(scores)) == 1 else "you won" if scores[-1] == max(scores) else "you lost"
    verdict = f"you {record.outcome['reason']}" if game.is_solitaire else verdict
    assert f"Game over: {verdict}" in shown
    for name in seat_names(game, game.rules.NUM_SEATS - 1):
        assert f"{name}: " in shown


@pytest.mark.mechanics
def test_what_is_taken_back_leaves_no_trace(game: Game) -> None:
    """Later hidden deals and the opponents' replies come out the same."""
    moves, expected = by_hand(game, 40)
    rng = np.random.default_rng(4)
    typed = ["undo"]
    env = replay(expected, 0)
    person = env.possible_agents[-1]
    for move in expected.moves:
        if env.agent_selection == person and len(moves) > 0:
            typed += [rng.choice(env.legal_moves()), "undo"] if rng.random() < 0.5 else []
            typed += [move]
        env.step(env.parse_move(move))
    typed = [*typed, *["undo"] * 2, *moves[-2:]] if not expected.outcome["over"] else typed
    shown, record = play(game, typed)
    assert record == expected
    assert shown.count("no move of yours to take back") == 1


def test_the_question_is_asked(game: Game) -> None:
    """With what the moves come to: before each move, and by `help`."""
    shown, record = play(game, ["help", "quit"])
    env = replay(record)
    view = env.view(env.agent_selection)
    asked = [game.question(view), *(f"{move}: {note}" for move, note in game.move_notes(view).items())]
    plain = " ".join(shown.split())
    assert all(plain.count(said) >= 2 for said in asked)


@pytest.mark.mechanics
def test_wrong_input_is_answered_and_changes_nothing(game: Game) -> None:
    _, untouched = play(game, ["quit"])
    env = replay(untouched)
    legal = env.legal_moves()
    illegal = next(move for move in map(env.move_text, range(game.rules.NUM_ACTIONS)) if env_refuses(env, move, legal))
    typed = ["nonsense", "undoo", illegal, "?", "save", "save no/folder", "hint nobody", "Q"]
    shown, record = play(game, typed)
    assert record == untouched
    for answer in ("not a move of", "Did you mean undo", "is not legal now", "take back your last", "Missing file"):
        assert answer in shown
    assert "there is no folder no;" in shown and "unknown opponent 'nobody'" in shown
    assert "Left before the end" in shown


def env_refuses(env: Any, move: str, legal: list[str]) -> bool:
    """Whether it is a move of the game, but neither legal now nor the beginning of a legal one."""
    try:
        env.parse_move(move)
    except ValueError:
        return False
    return not any(one.replace("-", "").startswith(move.replace("-", "")) for one in legal)


@pytest.mark.mechanics
def test_the_beginning_of_a_move_will_do_and_enter_plays_the_only_one(game: Game) -> None:
    _, expected = play(game, lambda shown: first_legal(shown), opponents="greedy")

    def answer(shown: str) -> str:
        if "(Enter: " in shown.splitlines()[-1]:
            return ""
        block = shown.rpartition("moves: ")[2].rpartition("your move")[0].split()
        groups = [item.rpartition("-") for item in block]
        legal = [source + dash + target for source, dash, targets in groups for target in targets.split(",")]
        move = legal[0]
        alone = (move[:i] for i in range(1, len(move)) if sum(m.startswith(move[:i]) for m in legal) == 1)
        return next((text for text in alone if text.lower() not in SHORT), move)  # q is no queen

    shown, record = play(game, answer, opponents="greedy")
    assert record == expected
    env = env_with(game, short_options(game))
    env.reset(3)
    forced = False  # no game needs to have moves without a choice
    for played in expected.moves:
        forced |= env.agent_selection == env.possible_agents[-1] and len(env.legal_moves()) == 1
        env.step(env.parse_move(played))
    assert ("(Enter: " in shown) == forced


@pytest.mark.mechanics
def test_hints_of_searches_name_the_best_move_first_and_say_why_not_another(game: Game) -> None:
    typed, _ = by_hand(game, 2)
    shown, record = play(game, [*typed, "hint search:64", "quit"])
    env = replay(record)
    if env.outcome()["over"] or len(env.legal_moves()) == 1:
        pytest.skip("nothing to search: one move, or none")
    best, *others = load_opponent("search:64", game).rank_moves(env.view(env.agent_selection))
    decisions = decisions_at(game, env.states)
    policy = load_opponent("search:64", game)
    assert env.move_text(int(policy.act(decisions, np.random.default_rng(0))[0])) == best.move and best.probability == 1
    move = f"{best.move} ({game.words[best.move]})" if best.move in game.words else best.move
    expecting = f"search:64 would play {move}, expecting about {best.margin:+z.1f} {game.view.MARGIN_UNIT}."
    assert expecting in " ".join(shown.split())
    for one in others[:9]:
        figures = f"    {one.move}: {one.difference:+z.1f}"
        assert figures in shown
        assert one.dropped == (one.worlds < best.worlds) == (f"{figures}, dropped after" in shown)


def test_why_a_search_does_not_play_a_move() -> None:
    best = ActionValue("a", 1.0, worlds=64, difference=0.0)
    nan = float("nan")
    for difference, worlds, why in (
        (-1.0, 64, ""),
        (1.0, 64, "better perhaps by chance alone"),
        (0.0, 64, "on average the same as a"),
        (5.0, 8, "dropped after 8 of 64 worlds"),
        (nan, 0, "not tried: unlikely by its prior, or merged with another"),
    ):
        other = ActionValue("b", 0.0, worlds=worlds, difference=difference)
        assert why_not(best, other._replace(dropped=0 < worlds < 64)) == why


class Thinking(FirstLegal):
    """Is asked, and never answers."""

    asked = threading.Event()

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        self.asked.set()
        threading.Event().wait(600)
        raise AssertionError("nobody waits for this")


class Terminal(io.StringIO):
    """Says when something is shown there."""

    shown = threading.Event()

    def write(self, text: str) -> int:
        number = super().write(text)
        if "is thinking" in self.getvalue():
            self.shown.set()
        return number


def test_a_hint_that_takes_long_shows_it_and_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal; Ctrl-C stops the hint, not the game."""
    terminal, name = Terminal(), f"{__name__}:Thinking"

    def interrupt() -> None:
        assert Thinking.asked.wait(300) and terminal.shown.wait(300)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_waiting, "error_console", lambda: Console(file=terminal, force_terminal=True, width=200))
    stopper = threading.Thread(target=interrupt, daemon=True)

    def answer(shown: str) -> str:
        if Thinking.asked.is_set():
            return "quit"
        stopper.start()
        return f"hint {name}"

    shown, _ = play(HIGH_CARD, answer)
    plain = " ".join(shown.split())
    assert f"{name} was stopped; it is still your move." in plain and "Left before" in plain
    assert "0:00:0" in terminal.getvalue()


@pytest.mark.mechanics
def test_a_game_left_is_resumed_and_finished(game: Game) -> None:
    typed, _ = by_hand(game, 2)
    _, left = play(game, [*typed, "save copy.json", "quit"])
    assert not left.outcome["over"] and Path("copy.json").read_text() == FILE.read_text()
    changes: dict[str, Any] = {"options": {}, "resume": Path("copy.json")}
    shown, record = play(game, first_legal, **changes)
    assert record.outcome["over"] and record.options == left.options
    assert record.moves[: len(left.moves)] == left.moves
    told = shown.split("-" * 80)[1].split("\n\n")[0]
    assert told.replace(",", " ").split()[-1] == left.moves[-1]  # what happened last
    assert play(game, first_legal, **changes)[1] == record  # the same seed
    with pytest.raises(ValueError, match="is over"):
        play(game, [], options={}, resume=FILE)
    with pytest.raises(ValueError, match="keeps its own options"):
        play(game, [], options={"reward": "win"}, resume=Path("copy.json"))
    Path("other.json").write_text(FILE.read_text().replace(f'"{game.name}"', '"whist"'))
    with pytest.raises(ValueError, match="a record of whist"):
        play(game, [], options={}, resume=Path("other.json"))


@pytest.mark.parametrize("end", [KeyboardInterrupt, EOFError])
@pytest.mark.mechanics
def test_leaving_saves_the_game(game: Game, end: type[BaseException]) -> None:
    typed, expected = by_hand(game, 1)
    shown, record = play(game, [typed[0], end])
    assert record == expected
    assert "Left before the end" in shown and "saved to game.json" in shown


@pytest.mark.mechanics
def test_wrong_calls_are_refused_before_the_game(game: Game) -> None:
    with pytest.raises(ValueError, match="seats 0 to"):
        play(game, [], seat=game.rules.NUM_SEATS)
    with pytest.raises(ValueError, match="expected one name, or"):
        play(game, [], opponents=["greedy"] * 9)
    with pytest.raises(ValueError, match="existing folder"):
        play(game, [], record=Path("no/folder.json"))


def headers(shown: str) -> list[int]:
    """The numbers of the moves shown."""
    return [int(line.split()[1].strip(",")) for line in shown.splitlines() if line.startswith("Move ")]


@pytest.mark.mechanics
def test_watching_a_game_and_its_record(game: Game) -> None:
    names = (["greedy", "random"] * 2)[: game.rules.NUM_SEATS]
    options = short_options(game)

    def watch(console: Console, delay: float | None = None) -> None:
        watch_game(game, names, None, 6, options, FILE, Screen(console, delay))

    shown = shown_by(watch, lambda shown: "")  # Enter to the end
    record = GameRecord.load(FILE)
    verify(record)
    last = len(record.moves)
    assert record.outcome["over"] and headers(shown) == list(range(last + 1))
    assert "Game over: " in shown and "seat 0 (greedy): " in shown
    assert headers(shown_by(lambda console: watch(console, 0), [])) == list(range(last + 1))
    assert GameRecord.load(FILE) == record

    steps = ["b", "", "", "b", "what?", "3", "999999999999", "", "q"]
    for seat in (None, game.rules.NUM_SEATS - 1):
        shown = shown_by(lambda console: watch_record(FILE, None, seat, Screen(console)), steps)  # noqa: B023
        assert headers(shown) == [0, 0, 1, 2, 1, 3, last]
        assert "'what?'?" in shown and "Game over: " in shown
        position = replay(record, 1)
        viewer = position.agent_selection if seat is None else position.possible_agents[seat]
        assert game.view.picture(position.view(viewer)) in shown


@pytest.mark.mechanics
def test_watching_stops_where_the_game_was_left(game: Game) -> None:
    shown_by(lambda console: watch_game(game, "random", 0, 1, {}, FILE, Screen(console)), ["2", "q"])
    assert len(GameRecord.load(FILE).moves) in (2, 3)
    shown = shown_by(lambda console: watch_record(FILE, game, 0, Screen(console, 0)), [])
    assert headers(shown)[:3] == [0, 1, 2] and "Left before the end" in shown
    with pytest.raises(ValueError, match="seats 0 to"):
        watch_record(FILE, game, 9, Screen(Console(), 0))
    other = next(other for other in GAMES.values() if other != game)
    with pytest.raises(ValueError, match=f"a record of {game.name}, not of {other.name}"):
        watch_record(FILE, other, 0, Screen(Console(), 0))


@pytest.mark.mechanics
def test_the_commands(game: Game) -> None:
    def run(*words: str, text: str = "") -> str:
        result = CliRunner().invoke(app, words, input=text)
        return f"{result.output} {result.exception or ''}"

    assert "saved to game.json" in run("play", game.name, "--seed", "1", "--record", "game.json", text="quit\n")
    assert "Left before" in run("play", game.name, "--resume", "game.json", text="hint\n")
    assert headers(run("watch", game.name, "--opponents", "random", text="\n\nq\n")) == [0, 1, 2]
    assert headers(run("watch", "--replay", "game.json", "--delay", "0"))
    assert "expected a game" in run("watch")


def test_a_move_is_known_by_its_first_letters() -> None:
    sitting = SimpleNamespace(legal_moves=lambda: ["turn", "F1-P3", "F1-P10"])
    assert find_move(sitting, "T") == "turn" and find_move(sitting, "f1p3") == "F1-P3"  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'f1' may be F1-P3, F1-P10: type more of it"):
        find_move(sitting, "f1")  # type: ignore[arg-type]


def test_help_says_what_the_moves_mean_and_rules_what_the_game_is(game: Game) -> None:
    shown, _ = play(game, ["help", "rules", "quit"])
    for code, _ in game.view.LEGEND:
        assert code in shown
    assert " ".join(game.short_rules.replace("*", "").split()[:8]) in " ".join(shown.split())
