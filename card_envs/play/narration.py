"""The course of a game in lines of at most 80 columns: moves, finished deals, results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from textwrap import fill
from typing import Any, NamedTuple

from card_envs.game import Game
from card_envs.opponents.policy import ActionValue
from card_envs.opponents.search import why_not
from card_envs.options import describe_options
from card_envs.play.episode import Episode

WIDTH = 80
WON = "won"  # reason of the end of a won solitaire
TIED = "\u00a0"  # a non-breaking space
MOST_OTHERS = 9  # further moves shown by a hint


class Event(NamedTuple):
    """A move by a player, or, with the name "", something else that all see, such as the end of a deal."""

    who: str
    what: str


def lines_of(text: str, indent: int = 0) -> str:
    """Return a text in lines of at most 80 columns; later lines are indented.

    Moves and file names are not broken.
    """
    filled = fill(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return filled.replace(TIED, " ")


def seat_names(game: Game, seat: int) -> list[str]:
    """Return the game's names for the seats, seen from one of them."""
    return [game.view.SEAT_NAMES[(other - seat) % game.rules.NUM_SEATS] for other in range(game.rules.NUM_SEATS)]


def events_of(episode: Episode, action: int, names: Sequence[str]) -> list[Event]:
    """Return a move about to be played, and what else it brings about that all see. `names` are those of the seats."""
    state = episode.table.state
    move = Event(names[episode.table.seat], episode.game.view.move_text(state, action))
    happened = episode.game.view.event_text(state, action, names)
    return [move, Event("", happened)] if happened else [move]


def events_after(episode: Episode, deals: int, scores: Sequence[int], names: Sequence[str]) -> list[Event]:
    """Return the end of a deal, if the last move ended it; `deals` and `scores` are those from before it."""
    now = episode.outcome()
    if len(episode.dealt) == deals and not (now["over"] and deals > 1):
        return []
    gained = [after - before for after, before in zip(now["scores"], scores)]
    total = scores_text(episode.game, now["scores"], names)
    return [Event("", f"Deal {deals} is over: {scores_text(episode.game, gained, names, '+')}; now {total}")]


def told(events: Sequence[Event]) -> str:
    """Return events as lines: consecutive moves of a seat together, all else on lines of its own."""
    lines: list[str] = []
    for by_nobody, group in groupby(events, lambda event: not event.who):
        if by_nobody:
            lines += [lines_of(event.what, 4) for event in group]
            continue
        turns = [
            f"{who}:".replace(" ", TIED) + TIED + ", ".join(event.what for event in turn)
            for who, turn in groupby(group, lambda event: event.who)
        ]
        lines.append(lines_of("   ".join(turns), 4))
    return "\n".join(lines)


def moves_text(moves: Sequence[str]) -> str:
    """Return the legal moves, grouped by source: `R-F,H3 turn`."""
    targets: dict[str, list[str]] = {}
    for move in moves:
        source, dash, target = move.partition("-")
        targets.setdefault(source + dash, []).append(target)
    return lines_of("moves: " + "  ".join(source + ",".join(to) for source, to in targets.items()), 7)


def position_text(game: Game, seat: int, events: Sequence[Event], view: dict[str, Any], outcome: dict[str, Any]) -> str:
    """Return events, what a seat sees, and its legal moves or the result of the episode."""
    parts = [told(events), game.view.picture(view)]
    if outcome["over"]:
        parts.append(result_text(game, outcome, seat_names(game, seat), seat))
    elif view["legal"]:
        parts.append(f"{question_text(game, view)}\nYour legal moves: {', '.join(view['legal'])}")
    return "\n\n".join(filter(None, parts))


def question_text(game: Game, view: dict[str, Any]) -> str:
    """Return what a view asks its seat, which is to move, and what moves come to where the game says it."""
    notes = (f"{move}: {note}".replace(" ", TIED) for move, note in game.move_notes(view).items())
    return "\n".join(filter(None, [lines_of(game.question(view)), lines_of("; ".join(notes))]))


def hint_text(game: Game, name: str, ranked: Sequence[ActionValue]) -> str:
    """Return what an opponent of this name would play, as `Opponent.rank_moves` has it, and how others compare."""
    if ranked[0].margin is None:
        likely = [f"{one.move}{TIED}({one.probability:.0%})" for one in ranked if one.probability >= 0.005]
        rest = f"   (the other {len(ranked) - len(likely)}: less than 1%)" if len(likely) < len(ranked) else ""
        return lines_of(f"{name} would play: " + "   ".join(likely) + rest, 4)
    best, *others = ranked
    expects = f", expecting about {best.margin:+z.1f} {game.view.MARGIN_UNIT}" if best.worlds else ""
    move = f"{best.move} ({game.words[best.move]})" if best.move in game.words else best.move
    lines = [lines_of(f"{name} would play {move}{expects}. The others, compared with it:", 4)]
    for one in others[:MOST_OTHERS]:
        parts = [f"{one.difference:+z.1f}"] * bool(one.worlds) + [why_not(best, one)]
        lines.append(lines_of(f"    {one.move}: {', '.join(filter(None, parts))}", 8))
    if len(others) > MOST_OTHERS:
        lines.append(f"    and {len(others) - MOST_OTHERS} more")
    return "\n".join(lines)


def legend_text(game: Game) -> str:
    """Return what the codes of moves mean, a line each."""
    width = max((len(code) for code, _ in game.view.LEGEND), default=0)
    lines = [lines_of(f"  {code:{width}}  {meaning}", width + 4) for code, meaning in game.view.LEGEND]
    return "\n".join(["What the moves mean:", *lines, ""]) if lines else ""


def options_text(game: Game, options: Mapping[str, Any]) -> str:
    """Return which options are not the usual ones, in a card player's words where the game has them; or nothing."""
    usual, meant = asdict(game.options()), describe_options(game.options)
    unusual = []
    for name, value in options.items():
        if value != usual[name]:
            choices = [one for one in game.view.CHOICES if one.option == name]
            words = [f"{one.title.lower()}: {said}" for one in choices for known, said in one.values if known == value]
            unusual += words or [f"{name}: {json.dumps(value)} ({meant[name].description})"]
    return lines_of(f"Options of this game: {'; '.join(unusual)}.") if unusual else ""


def scores_text(game: Game, scores: Sequence[int], names: Sequence[str], sign: str = "") -> str:
    """Return the scores by side: `you and partner 12, left and right 8`; `sign="+"` shows the plus."""
    sides = game.sides
    parts = []
    for side in dict.fromkeys(sides):
        seats = [seat for seat in range(len(sides)) if sides[seat] == side]
        parts.append(f"{' and '.join(names[seat] for seat in seats)} {scores[seats[0]]:{sign}}")
    return ", ".join(parts)


def result_text(game: Game, outcome: dict[str, Any], names: Sequence[str], seat: int | None = None) -> str:
    """Return the state or result of an episode: the winner (or the result for `seat`), the reason, the scores."""
    scores = scores_text(game, outcome["scores"], names)
    if not outcome["over"]:
        return lines_of(f"Left before the end. Scores so far: {scores}.")
    reason = outcome["reason"]
    winners = [other for other, score in enumerate(outcome["scores"]) if score == max(outcome["scores"])]
    if game.is_solitaire:
        verdict = reason if seat is None else "you won" if reason == WON else "you lost"
        verdict += f" ({reason})" if seat is not None and reason not in (WON, "lost") else ""
    elif len(winners) == len(names):
        verdict = f"drawn ({reason})"
    elif seat is not None:
        verdict = f"you {'won' if seat in winners else 'lost'} ({reason})"
    else:
        verdict = f"{' and '.join(names[other] for other in winners)} won ({reason})"
    return lines_of(f"Game over: {verdict}. Scores: {scores}.")
