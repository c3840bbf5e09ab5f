"""The move in an answer of a language model, which is asked for in one form.

Every step takes time linear in the answer's length: it comes from outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from card_envs.game import LONGEST_MOVE

FORM = "a last line `Move: X`, where X is one of your legal moves"
MARK = re.compile(
    rf"(?im)^[ \t>#*_`-]{{0,9}}move[*_`]{{0,3}}[ \t]?[:：](?P<line>[^\n]*)$"
    rf"|<move>(?P<tag>[^<]{{0,{LONGEST_MOVE}}})</move>"
)
THOUGHT = re.compile(r"(?i)[<\[◁](/?)(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)[>\]▷]")


class UnclearAnswer(ValueError):
    """An answer that gives no move, or more than one."""


def move_in(answer: str, known: Callable[[str], str | None]) -> str:
    """Return the move that an answer gives, legal or not.

    An answer gives a move by a line `Move: TD`, by `<move>TD</move>`, or by being nothing but a move. A move may be
    marked several times; another one marked besides, or a mark without a move, makes the answer unclear. Nothing that
    stands in a thought (`<think>…</think>`) counts: neither where only its end is there, nor where it is cut off.

    Args:
        answer: any text.
        known: returns the notation of a move of the game in any spelling, None for other texts.

    Raises:
        UnclearAnswer: says what the answer gives.
    """
    parts, is_thinking = _outside_thoughts(answer)
    text = "\n".join(parts).strip()
    contents = [match["line"] if match["tag"] is None else match["tag"] for match in MARK.finditer(text)]
    if not contents and not is_thinking and "\n" not in text:
        contents = [text]
    moves = {known(content) for content in contents}
    if len(moves) == 1 and (move := moves.pop()) is not None:
        return move
    shown = f"{answer.strip()[:60]!r}" + ("…" if len(answer.strip()) > 60 else "")
    what = f"marks {' and '.join(sorted(filter(None, moves)))}" if len(moves) > 1 else "gives no move"
    raise UnclearAnswer(f"{shown} {what}")


def _outside_thoughts(answer: str) -> tuple[list[str], bool]:
    """Return the parts that do not stand in a thought, and whether one is open at the end."""
    parts: list[str] = []
    start = depth = 0
    for tag in THOUGHT.finditer(answer):
        if not tag[1]:
            parts += [answer[start : tag.start()]] if depth == 0 else []
            depth += 1
        elif depth:
            depth -= 1
        else:  # the prompt has opened it
            parts.clear()
        start = tag.end()
    return ([*parts, answer[start:]], False) if depth == 0 else (parts, True)
