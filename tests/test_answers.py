"""Which move an answer of a language model gives: a table of real sorts of answers with the right reading."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from card_envs._answers import UnclearAnswer, move_in
from card_envs.envs.aec import CardEnv
from card_envs.game import Game
from card_envs.scaffold.high_card import GAME as HIGH_CARD
from card_envs.testing.referee import home_of_tests
from card_envs.text import TextEnv
from tests.conftest import games_under_test

TABLE = [
    pytest.param(game, answer, move, id=f"{game.name}-{answer[:30]!r}")
    for game in games_under_test()
    if find_spec(f"{home_of_tests(game)}.answers")
    for answer, move in import_module(f"{home_of_tests(game)}.answers").ANSWERS
]


@pytest.mark.parametrize(("game", "answer", "move"), TABLE)
def test_answers(game: Game, answer: str, move: str | None) -> None:
    if move is None:
        with pytest.raises(UnclearAnswer):
            move_in(answer, game.spelled)
    else:
        assert move_in(answer, game.spelled) == move


def test_an_answer_that_marks_an_illegal_move_plays_none(game: Game) -> None:
    env = TextEnv(game, "random")
    env.reset(seed=0)
    while not env.over:
        legal = env.legal_moves()
        illegal = sorted({move for move in game.move_texts if move.isalnum()} - set(legal))
        if illegal:
            break
        env.step(legal[0])
    text, paid, over = env.step(f"Move: {illegal[0]} ({legal[0]} is too low)")
    assert text.startswith(f"That is no legal move: {illegal[0]!r}; legal are ") and env.invalid == 1
    assert env.legal_moves() == legal and (paid, over) == (0.0, False)


def test_an_answer_may_go_on_about_illegal_moves_alone(game: Game) -> None:
    codes = [move for move in game.move_texts if not move.islower() and not move.isdigit() and move != "-"]
    if len(codes) < 2:
        pytest.skip("its moves are words and numbers")
    given, other = codes[0], codes[-1]
    for later in (f"It beats {other}.", f"{other} is worse."):
        answer = f"Move: {given}\n{later}"
        assert move_in(answer, game.spelled, legal=[given]) == given
        with pytest.raises(UnclearAnswer, match=rf"{given}.*{other}|{other}.*{given}"):
            move_in(answer, game.spelled, legal=[given, other])
    with pytest.raises(UnclearAnswer):  # what takes a move back need not be legal
        move_in(f"Move: {given}\nNo, {other}.", game.spelled, legal=[given])


@pytest.mark.parametrize("text", ["-1", "1.0", "0.5", "+1", "1 0", "1,0", "−1", "1/1", "%1", "1e0", "#1", "-TD"])
def test_signs_are_not_dropped_from_moves(game: Game, text: str) -> None:
    """By no reader of moves: `parse_move` is the server's and the terminal's as well."""
    env = CardEnv(game)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"is not|expected"):
        env.parse_move(text)
    with pytest.raises(ValueError, match=r"is not|expected"):
        game.parse_move(env.states[0], text)


def test_every_move_is_read_alone_and_marked(game: Game) -> None:
    for move in set(game.move_texts) - {"-"}:  # what stands for no move in Russian Bank
        for answer in (move, f"Some thoughts.\n{move.lower()}", f"Move: {move}", f'{{"move": "{move}"}}'):
            assert move_in(answer, game.spelled) == move


@pytest.mark.parametrize("part", ["\n", " ", "*", "(", "<move>", "Move:", "{", "[", "`", "my ", "-", "1 ", "T♦ ", '"'])
def test_reading_takes_time_linear_in_the_length(part: str) -> None:
    """Counted in lines of Python run, and regular expressions in `test_regular_expressions_are_linear`."""
    known = HIGH_CARD.spelled

    def lines_run(answer: str) -> int:
        count = 0

        def trace(frame: object, event: str, argument: object) -> object:
            nonlocal count
            count += event == "line"
            return trace

        sys.settrace(trace)  # type: ignore[arg-type]
        try:
            move_in(answer, known)
        except UnclearAnswer:
            pass
        finally:
            sys.settrace(None)
        return count

    short, long = (lines_run(part * number) for number in (500, 1000))
    assert long < 2.5 * short + 1000


def test_regular_expressions_are_linear(game: Game) -> None:
    """200,000 characters of what each could stumble over are read; a quadratic one would take an hour."""
    parts = ("\n", " ", "*", "(", "my ", "the move ", "<move>", "\\boxed{", "- ", "1 ", "—", "a-", "“", ")", "\r")
    for part in (*parts, "no ", "<think>", "not <move>3</move>", "Move:\n"):
        for answer in (part * (200_000 // len(part)), "Move:" + part * (200_000 // len(part)) + "x"):
            with pytest.raises(UnclearAnswer):
                move_in(answer, game.spelled)
