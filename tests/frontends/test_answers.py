"""Which move an answer of a language model gives: the corners of the form that is asked for."""

from __future__ import annotations

import pytest

from card_envs.frontends._answers import UnclearAnswer, move_in
from card_envs.frontends.text import TextEnv
from card_envs.game import Game
from tests.conftest import positions

# X and Y stand for two moves of a game.
CLEAR = [
    "X", " X. ", "**X**", "`X`", "Move: X", "move: X", "**Move:** X", "**Move: X**", "> Move: X", "- Move: X",
    "Move：X", "Y would lose.\nMove: X", "Move: X\nI hope that this helps.", "Move: X\nMove: X.", "Move: X\r\n",
    "<move>X</move>", "Not Y, so <move> X </move>, I think.", "<move>X</move>\nMove: X",
    "<think>Y?\nMove: Y</think>\nMove: X", "<think>Move: Y</think>X", "Move: Y\n</think>\nMove: X", "Y</think>X",
    "[THINK]Y[/THINK]X", "<Thinking>Y</THINKING>\nX", "<think>Y<think>Y</think>Move: Y</think>X",
    "Move: X\n<think>or\nMove: Y", "<think>Y</think>Move: X<think>Move: Y</think>", "<move>X</move><think>Y",
]  # fmt: skip
UNCLEAR = [
    "", "?", "\n" * 16_000, "I can't play.", "The best is X.", "X or Y", "X\nY", "Y loses.\nX", "X because Y is low",
    "Move: X\nMove: Y", "Move: X\n<move>Y</move>", "<move>X</move><move>Y</move>", "Move: X, then Y", "Move: X. No, Y.",
    "Move: X (or Y)", "Move: not X", "Move: X\nMove: not X", "Move:", "Move:\nX", "Move: I don't know\nX", "My bid: X",
    'I say "Move: X"', "<move>X", "<answer>X</answer>", '{"move": "X"}', "\\boxed{X}", "```\nX\n```",
    "<think>X", "<think>\nMove: X", "Y?\n<thinking>\n<move>X</move>", "<think>Y</think><think>\nMove: X",
    "<think>Y<think>Y</think>\nMove: X", "Move: X</think>", "<think>Move: X</think>", "Move: <think>Y</think>X",
]  # fmt: skip


def filled(answer: str, game: Game) -> tuple[str, str]:
    """Return an answer with moves of a game in it, and the move X."""
    moves = [move for move in game.move_texts if move.isalnum() or "-" in move[1:]]
    return answer.replace("X", moves[0]).replace("Y", moves[-1]), moves[0]


def test_the_form_is_read_and_all_else_is_unclear(game: Game) -> None:
    for answer in CLEAR:
        text, move = filled(answer, game)
        assert move_in(text, game.spelled) == move, answer
    for answer in UNCLEAR:
        with pytest.raises(UnclearAnswer):
            move_in(filled(answer, game)[0], game.spelled)


@pytest.mark.mechanics
def test_an_unclear_answer_is_asked_for_again_in_the_same_form(game: Game) -> None:
    env = TextEnv(game, "random")
    form = env.reset(seed=0).rpartition("\n")[2]
    assert "a last line `Move: X`" in form
    legal = env.legal_moves()
    text, paid, over = env.step(f"I would play {legal[0]}.")
    assert text.startswith("That is no legal move: ") and text.endswith(form)
    assert (env.legal_moves(), paid, over, env.invalid) == (legal, 0.0, False, 1)


@pytest.mark.mechanics
def test_an_answer_that_marks_an_illegal_move_plays_none(game: Game) -> None:
    env = TextEnv(game, "random")
    env.reset(seed=0)
    while not env.over:
        legal = env.legal_moves()
        illegal = sorted({move for move in game.move_texts if move.isalnum()} - set(legal))
        if illegal:
            break
        env.step(legal[0])
    text, paid, over = env.step(f"{legal[0]} is too low.\nMove: {illegal[0]}")
    assert text.startswith(f"That is no legal move: {illegal[0]!r}; legal are ") and env.invalid == 1
    assert env.legal_moves() == legal and (paid, over) == (0.0, False)


def test_signs_are_not_dropped_from_moves(game: Game) -> None:
    """By no reader of moves: `parse_move` is the server's and the terminal's as well."""
    for text in ("-1", "1.0", "0.5", "+1", "1 0", "1,0", "−1", "1/1", "%1", "1e0", "#1", "-TD"):
        with pytest.raises(ValueError, match=r"is not|expected"):
            game.parse_move(positions(game)[0], text)
        for answer in (text, f"Move: {text}"):
            with pytest.raises(UnclearAnswer):
                move_in(answer, game.spelled)


def test_every_move_is_read_alone_and_marked(game: Game) -> None:
    for move in set(game.move_texts) - {"-"}:  # what stands for no move in Russian Bank
        for answer in (move, f"Some thoughts.\nMove: {move.lower()}", f"<move>{move}</move>"):
            assert move_in(answer, game.spelled) == move


@pytest.mark.mechanics
def test_reading_takes_time_linear_in_the_length(game: Game) -> None:
    """200,000 characters of what it could stumble over are read; a quadratic expression would take an hour."""
    for part in (
        "\n",
        " ",
        "*",
        ">",
        "move",
        "Move:",
        "Move:\n",
        "<move>",
        "<move>1",
        "<think>",
        "</think>",
        "：",
        "\r",
    ):
        for answer in (part * (200_000 // len(part)), "Move:" + part * (200_000 // len(part)) + "x"):
            with pytest.raises(UnclearAnswer):
                move_in(answer, game.spelled)
