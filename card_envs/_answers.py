"""The move in an answer of a language model: what is marked or stands alone, never a guess.

Every step takes time linear in the answer's length: it comes from outside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

from card_envs.cards import squeezed
from card_envs.game import LONGEST_MOVE

Known = Callable[[str], str | None]

KINDS = "move|answer|action|bid|play|choice|card|correction"
WHOSE = "my|the|final|best|next|chosen|selected"
MARK = re.compile(
    rf"(?i)(?:(?:{WHOSE}) ){{0,3}}(?:{KINDS})\b[*_`\"']{{0,3}}(?: is)? ?[:=：]([^\n]*)"
)  # `**My move:** TD`
TAG = re.compile(
    rf"(?i)<({KINDS})>([^<]{{0,{LONGEST_MOVE}}})</\1>"
    rf"|\\boxed\{{(?:\\text\{{)?([^{{}}]{{0,{LONGEST_MOVE}}})\}}"
)
THOUGHT = re.compile(r"(?i)[<\[◁](/?)(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)[>\]▷]")
SAYING = re.compile(
    rf"(?i)^(?:(?:(?:{WHOSE}) ){{1,3}}(?:{KINDS}) is |i(?:'ll| will)? (?:play|bid|choose|move|go with) )"
)
BULLET = re.compile(r"(?:[>\s]|[#*•]+ )*(?:- (?!\d))?")  # but `- 3` and `#3` are no bids
NUMBERED = re.compile(r"(\d{1,3})[.)](?: |$)")
PLUS = re.compile(r"^\+(?=\d)")
ASIDE = re.compile(r"\([^()]*\)")
REASON = re.compile(r"(?i),? (?:because|since)\b")
REMARK = re.compile(r"[.;!?…] | [–—-] ")
SENTENCE = re.compile(r"[.;!?…](?= )|\n|\b(?i:so|thus|hence|therefore|but)\b|[,–—-] ?(?=(?i:i|i'll|my|we|the|let)\b)")
NEAR = 200  # characters of a sentence before and after what it marks
TAKEN_BACK = re.compile(
    r"(?i)\W*(?:no|not|nope|or|wait|hmm+|actually|rather|instead|correction|sorry|oops|just kidding|on second thoughts?"
    r"|i mean|make (?:it|that)|scratch that|alternatively)\b"
)
REVISED = re.compile(
    r"(?i)\b(?:no(?=[,.;:])|wait|actually|instead|rather|better|prefer|second thoughts?|sorry|i mean|make (?:it|that)"
    r"|chang(?:e|ed|ing) (?:it|that|my))\b"
)
UNFINISHED = re.compile(
    r"(?i)\W*(?:(?:(?:no|nope|not|wrong|wait)\b\W*)+$"
    r"|(?:wait|hold on|scratch that|strike that|on second thoughts?|correction)\b)"
)
REFUSED = re.compile(
    r"(?i)\b(?:not|never|no|cannot|avoid|without|against|instead of|rather than|than|unless|if|example|e\.g|format"
    r"|wrong|bad|mistake|illegal)\b|n['’]t\b"
)
SAID_OF_IT = re.compile(r"(?i)\W*(?:is|was|would|will|can|could|seems?|looks?|isn|wasn|wouldn|won)\b")
WORD = re.compile(r"\W*(?:[Aa][dhs])\W*")  # words, and cards: `Ah` is the ace of hearts, but `Ah!` is none
EXCLAMATION = re.compile(rf"{WORD.pattern}(?<=[!?,…])")
NONE = "none"  # stands for a mark that takes back what was said
MOST_WORDS = 5  # of a move in a sentence: `H 1 to H 2`


class UnclearAnswer(ValueError):
    """An answer in which no move, or more than one, is marked or stands alone."""


class Line(NamedTuple):
    """A line with single spaces, and the signs of lists, headings and quotes before it."""

    text: str
    sign: str


class Mark(NamedTuple):
    """A marked place: what stands in it, and the part of the answer that it takes."""

    content: str
    start: int
    end: int


def move_in(answer: str, known: Known, legal: Collection[str] | None = None) -> str:
    r"""Return the move that an answer gives, legal or not.

    What is marked counts: `Move: TD`, `{"move": "TD"}`, `<move>TD</move>`, `\boxed{TD}`. In an answer without marks, a
    move must stand alone on a line, and be the only one that the answer names. An answer that names another legal move
    after the one it gives is unclear. Words and numbers that are moves, such as `pass` and `3`, name one only as the
    last line, or where something is taken back: `no, 3`; not below a colon, as a heading, or as the number of a list.
    What is thought before `</think>` is skipped, and nothing counts while a thought is open.

    Args:
        answer: any text.
        known: returns the notation of a move of the game in any spelling, None for other texts.
        legal: the legal moves; None: any move may be legal.

    Raises:
        UnclearAnswer: says what the answer names.
    """

    def read(text: str) -> str | None:
        return known(PLUS.sub("", text))

    text, is_thinking = _after_thoughts(answer)
    found = set() if is_thinking else _moves_in(text, read, legal)
    if len(found) == 1 and NONE not in found:
        return found.pop()
    shown = f"{answer.strip()[:60]!r}" + ("…" if len(answer.strip()) > 60 else "")
    if found:
        raise UnclearAnswer(f"{shown} names {' and '.join(sorted(found))}; answer with one move alone")
    raise UnclearAnswer(f"{shown} ends within a thought" if is_thinking else shown)


def _after_thoughts(answer: str) -> tuple[str, bool]:
    """Return what follows the last thought, and whether another one is open there."""
    tags = list(THOUGHT.finditer(answer))
    closing = [tag for tag in tags if tag[1]]
    return answer[closing[-1].end() if closing else 0 :], bool(tags and not tags[-1][1])


def _moves_in(text: str, known: Known, legal: Collection[str] | None) -> set[str]:
    """Return the moves that a text gives: one, or several that contradict each other."""
    lines = _spoken_lines(text)
    if marks := sorted(_marks(text), key=lambda mark: mark.start):
        found = set().union(*(_marked_moves(mark.content, known, legal) for mark in marks))
        later = _spoken_lines(_after_first(text, marks))
    else:
        alone = {at: move for at in range(len(lines)) if (move := _alone(lines, at, known))}
        found = set(alone.values())
        if all(_is_word(lines[at].text, move) and at < len(lines) - 1 for at, move in alone.items()):
            return set()
        if len(found) == 1:
            found = found.union(*(named_in(line.text, known) | taken_back(line.text, known) for line in lines))
        later = lines[min(alone) + 1 :]
    return found | _named_after(later, known, legal) | _items(lines, found, known) if found else found


def _spoken_lines(text: str) -> list[Line]:
    """Return the lines of a text that are not empty, without the fences of code blocks."""
    found = []
    for line in text.splitlines():
        words = " ".join(line.split())
        sign = BULLET.match(words)[0]  # type: ignore[index]
        if (rest := words[len(sign) :]) and not rest.startswith("```"):
            found.append(Line(rest, sign))
    return found


# Moves that are marked


def _marks(text: str) -> Iterator[Mark]:
    """Yield the marked places; those in a sentence that says not to play what they mark are empty."""
    first, last = text.find("{"), text.rfind("}") + 1
    with suppress(ValueError, RecursionError):
        given = json.loads(text[first:last], object_pairs_hook=tuple)  # a key may come twice
        for key, value in given:
            if key.lower() in KINDS.split("|"):
                yield Mark("" if _is_refused(text, first, last) else str(value), first, last)
    end = 0
    for tag in TAG.finditer(text):
        refused = _is_refused(text, tag.start(), tag.end(), end)
        start, end = tag.span()
        yield Mark("" if refused else tag[2] or tag[3] or "", start, end)
    end, whole, above = 0, len(text.rstrip()), None
    for row in text.splitlines(keepends=True):
        start, end = end, end + len(row)
        for line in _spoken_lines(row):
            if above is not None:  # a mark alone on its line marks the next one
                content = NUMBERED.sub("", line.text, count=1) or (line.text if end >= whole else "")
                yield Mark("" if "#" in line.sign else content, above, end)
                above = None
            if mark := MARK.match(line.text.lstrip("*_`\"'")):
                content = mark[1].strip(" *_`\"',")
                yield Mark(content, start, end)
                above = None if content else start


def _is_refused(text: str, start: int, end: int, earlier: int = 0) -> bool:
    """Return whether the sentence around a marked place says not to play it, or gives it as an example.

    `earlier` is the end of the mark before it.
    """
    before = SENTENCE.split(text[max(earlier, start - NEAR) : start])[-1]
    after = SENTENCE.split(text[end : end + NEAR].partition("<")[0], maxsplit=1)[0]
    return bool(REFUSED.search(before) or (SAID_OF_IT.match(after) and REFUSED.search(after)))


def _after_first(text: str, marks: list[Mark]) -> str:
    """Return what follows the first mark, without the others."""
    parts, end = [], marks[0].end
    for mark in marks[1:]:
        parts.append(text[end : mark.start])
        end = max(end, mark.end)
    return "".join([*parts, text[end:]])


def _marked_moves(content: str, known: Known, legal: Collection[str] | None) -> set[str]:
    """Return the moves of a marked place: the one that it begins with, and others that what follows names."""
    content = " ".join(content.split())
    asides = ASIDE.findall(content)
    said = SAYING.sub("", " ".join(ASIDE.sub(" ", content).split()))
    if not said and asides:  # `(3)`
        said, *asides = (aside.strip("()") for aside in asides)
    if move := known(said):
        return {move}.union(*(taken_instead(aside, known) for aside in asides))
    said, *reasons = REASON.split(said, maxsplit=1)
    head, *remarks = REMARK.split(said, maxsplit=1)
    move = known(head)
    if move is None:  # a second mark that takes the first one back has no move of its own
        return {NONE} if TAKEN_BACK.match(content) else set()
    for reason in reasons:
        remarks += REMARK.split(reason, maxsplit=1)[1:]
    rest = [Line(remark, "") for remark in remarks]
    return {move}.union(_named_after(rest, known, legal), *(taken_instead(aside, known) for aside in asides))


# Moves that are not marked


def _alone(lines: list[Line], at: int, known: Known) -> str | None:
    """Return the move that stands alone on a line; a word or a number must also look like an answer."""
    text, sign = lines[at]
    move = known(SAYING.sub("", text))
    if move is None or not _is_word(text, move):
        return move
    is_label = any(line.text.rstrip(" *_`\"'").endswith((":", "：")) for line in lines[max(0, at - 1) : at + 1])
    is_item = len(lines) > 1 and (sign or NUMBERED.fullmatch(text))
    return None if is_label or is_item or "#" in sign or EXCLAMATION.fullmatch(text) else move


def _is_word(text: str, move: str) -> bool:
    """Return whether a line with a move is only a number or an English word."""
    return not SAYING.match(text) and (move.isdigit() or move.islower() or bool(WORD.fullmatch(text)))


def named_in(text: str, known: Known) -> set[str]:
    """Return the moves that a sentence names by code (`KH`, `h1-h2`) or in words (`king of hearts`)."""
    found = set()
    words = text.split()
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


def taken_instead(text: str, known: Known) -> set[str]:
    """Return the moves that a text puts in the place of what was said before: all of it is a move, or `no, …`."""
    move = known(text.strip(" ()"))
    return {move} if move else taken_back(text, known)


def taken_back(text: str, known: Known, anywhere: bool = False) -> set[str]:
    """Return the moves in a text that begins by taking back what was said before, or does so anywhere."""
    if not TAKEN_BACK.match(text) and not (anywhere and REVISED.search(text)):
        return set()
    words = (word.strip(".,;:!?()*_`\"'") for word in text.split() if len(word) <= LONGEST_MOVE)
    return {move for word in words if (move := known(word))}


def _named_after(lines: list[Line], known: Known, legal: Collection[str] | None) -> set[str]:
    """Return the moves that lines after an answer name: legal ones, and those that take it back."""
    found = set()
    for at, line in enumerate(lines):
        named = {move for move in named_in(line.text, known) if legal is None or move in legal}
        if move := _alone(lines, at, known):
            named.add(move)
        named |= taken_back(line.text, known, anywhere=True)
        if not named and UNFINISHED.match(line.text):
            named = {NONE}
        found |= named
    return found


def _items(lines: list[Line], found: set[str], known: Known) -> set[str]:
    """Return the moves of a numbered list whose numbers were given: `3` may stand for the third one."""
    numbered = ((NUMBERED.match(line.text), line.text) for line in lines)
    items = {ASIDE.sub("", text[item.end() :]) for item, text in numbered if item and item[1] in found}
    return {move for item in items if (move := known(item))}
