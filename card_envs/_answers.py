"""The move in an answer of a language model: what is marked or stands alone, never a guess.

Every step takes time linear in the answer's length: it comes from outside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from card_envs.cards import squeezed
from card_envs.game import LONGEST_MOVE

KINDS = "move|answer|action|bid|play|choice|card|correction"
WHOSE = "my|the|final|best|next|chosen|selected"
MARK = re.compile(
    rf"(?i)(?:(?:{WHOSE}) ){{0,3}}(?:{KINDS})\b[*_`\"']{{0,3}}(?: is)? ?[:=：]([^\n]*)"
)  # `**My move:** TD`
TAG = re.compile(rf"(?i)<({KINDS})>([^<]{{0,{LONGEST_MOVE}}})</\1>|\\boxed\{{([^{{}}]{{0,{LONGEST_MOVE}}})\}}")
SAYING = re.compile(rf"(?i)^(?:(?:(?:{WHOSE}) ){{1,3}}(?:{KINDS}) is |i(?:'ll| will)? (?:play|bid|choose|go with) )")
BULLET = re.compile(r"(?:[>\s]|[#*•]+ )*(?:- (?!\d))?")  # but `- 3` and `#3` are no bids
ASIDE = re.compile(r"\([^()]*\)")
REASON = re.compile(r"(?i),? (?:because|since)\b")
REMARK = re.compile(r"[.;!] | [–—-] ")
TAKEN_BACK = re.compile(r"(?i)\W*(?:no|not|or|wait|actually|rather|instead|correction|sorry|just kidding)\b")
NONE = "none"  # stands for a mark that takes back what was said
MOST_WORDS = 5  # of a move in a sentence: `H 1 to H 2`


class UnclearAnswer(ValueError):
    """An answer in which no move, or more than one, is marked or stands alone."""


def move_in(answer: str, known: Callable[[str], str | None]) -> str:
    """Return the move that an answer gives, legal or not.

    What is marked counts and nothing else: `Move: TD`, `{"move": "TD"}`, `<move>TD</move>`, `\\boxed{TD}`. In an answer
    without marks, a move must stand alone on a line, and be the only one that the answer names. Words and numbers that
    are moves, such as `pass` and `3`, name one only if they stand alone, or where something is taken back: `no, 3`.
    What is thought before `</think>` is skipped.

    Args:
        answer: any text.
        known: returns the notation of a move of the game in any spelling, None for other texts.

    Raises:
        UnclearAnswer: says what the answer names.
    """
    text = answer.rpartition("</think>")[2]
    lines = [line for line in map(_stripped, text.splitlines()) if line]
    marked = list(_marked(text, lines))
    found = set().union(*(_marked_moves(content, known) for content in marked))
    if not marked:
        found = {move for line in lines if (move := known(SAYING.sub("", line)))}
        if len(found) == 1:
            found |= named_in(lines, known).union(*(taken_instead(line, known) for line in lines))
    if len(found) == 1 and NONE not in found:
        return found.pop()
    shown = f"{answer.strip()[:60]!r}" + ("…" if len(answer.strip()) > 60 else "")
    if found:
        raise UnclearAnswer(f"{shown} names {' and '.join(sorted(found))}; answer with one move alone")
    raise UnclearAnswer(shown)


def named_in(lines: list[str], known: Callable[[str], str | None]) -> set[str]:
    """Return the moves that sentences name by code (`KH`, `h1-h2`) or in words (`king of hearts`)."""
    found = set()
    for line in lines:
        words = line.split()
        for first, word in enumerate(words):
            if len(word) > LONGEST_MOVE or not squeezed(word):
                continue
            for last in range(first, min(first + MOST_WORDS, len(words))):
                span = " ".join(words[first : last + 1])
                move = known(span) if len(span) <= LONGEST_MOVE and squeezed(words[last]) else None
                plain = last == first and re.fullmatch(r"\W*[A-Za-z]?[a-z]+\W*", word)  # "As", "Ad" and "ah" are words
                if move and not plain and not move.islower() and not move.isdigit():
                    found.add(move)
    return found


def _stripped(line: str) -> str:
    """Return a line with single spaces, without signs of lists, headings, quotes and code blocks."""
    line = " ".join(line.split())
    line = line[BULLET.match(line).end() :]  # type: ignore[union-attr]
    return "" if line.startswith("```") else line


def _marked(text: str, lines: list[str]) -> Iterator[str]:
    """Yield what stands in marked places."""
    with suppress(ValueError, RecursionError):
        given = json.loads(text[text.find("{") : text.rfind("}") + 1], object_pairs_hook=tuple)  # a key may come twice
        yield from (str(value) for key, value in given if key.lower() in KINDS.split("|"))
    for tag in TAG.finditer(text):
        yield tag[2] or tag[3] or ""
    for line, following in zip(lines, [*lines[1:], ""]):
        if mark := MARK.match(line.lstrip("*_`\"'")):
            yield mark[1].strip(" *_`\"',") or following


def taken_instead(text: str, known: Callable[[str], str | None]) -> set[str]:
    """Return the moves that a text puts in the place of what was said before: all of it is a move, or `no, …`."""
    if move := known(text.strip(" ()")):
        return {move}
    words = text.split() if TAKEN_BACK.match(text) else []
    return {move for word in words if len(word) <= LONGEST_MOVE and (move := known(word.strip(".,;:!?()*_`\"'")))}


def _marked_moves(content: str, known: Callable[[str], str | None]) -> set[str]:
    """Return the moves of a marked place: the one that it begins with, and others that what follows names."""
    content = " ".join(content.split())
    asides = ASIDE.findall(content)
    content = SAYING.sub("", " ".join(ASIDE.sub(" ", content).split()))
    if move := known(content):
        return {move}.union(*(taken_instead(aside, known) for aside in asides))
    said, *_ = REASON.split(content, maxsplit=1)
    head, *remarks = REMARK.split(said, maxsplit=1)
    move = known(head)
    if move is None:  # a second mark that takes the first one back has no move of its own
        return {NONE} if TAKEN_BACK.match(content) else set()
    return {move}.union(named_in(remarks, known), *(taken_instead(part, known) for part in (*asides, *remarks)))
