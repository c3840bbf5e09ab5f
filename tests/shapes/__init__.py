"""Games of unusual shapes, each in one file: the shared tests run on them, by `pytest --game tests.shapes.NAME`.

In all of them cards lie face down in a row, and a move names a place in it, so that nothing but the cards is hidden.
Everybody knows who has looked at which. What follows from this stands here; a shape's file has its rules and a referee,
and is all modules of its package at once: `declare` makes it so.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import numpy as np
import pydantic

from card_envs.cards import parse_pack
from card_envs.compiling import rule
from card_envs.engine.rng import advance, below, derive, shuffle
from card_envs.engine.sets import EMPTY, bit, count, lowest, nth, spread
from card_envs.engine.table import Table
from card_envs.game import Cards, Field, Game, Mask, Obs, Pack, State, Stream, state_dtype
from card_envs.options import as_json, option, options
from card_envs.system.files import short_repr
from card_envs.views import (
    VERSION,
    Strict,
    Version,
    deal_keys,
    follows,
    legal_texts,
    play_shown,
    read,
    settled,
    to_move,
)


@options
class Options:
    reward: Literal["points", "win"] = option("points", '"points": the margin; "win": 1, -1 or 0, at the end')


def layout(
    num_seats: int, pack_size: int, most_moves: int, num_actions: int, *more: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return STATE, OBS_FIELDS and FULL_FIELDS of a shape; `more` are fields of its State alone."""
    fields: list[tuple[Any, ...]] = [("reward_win", np.bool_), ("scores", np.int8, num_seats)]
    fields += [("pack", np.int8, pack_size), ("known", np.int8, pack_size)]  # a bit for each seat that knows the card
    fields += [("moves", np.int8, most_moves), ("num_moves", np.int8)]  # actions + 1
    observed = [Field("cards", pack_size, pack_size, meaning="cards that the seat knows, from 1")]
    if most_moves > 1:  # after the last one, no decision follows
        observed.append(Field("moves", most_moves - 1, num_actions, meaning="actions so far, from 1"))
    if num_seats > 1:
        observed.append(Field("seat", 1, num_seats - 1, meaning="whose observation this is"))
    hidden = Field("hidden", pack_size, pack_size, meaning="cards that the seat does not know, from 1")
    return state_dtype(num_seats, [*fields, *more]), tuple(observed), (*observed, hidden)


# Rules that follow from the row


@rule
def places(first: int, last: int) -> Cards:
    """Return the places from `first` to before `last`."""
    found = EMPTY
    for place in range(first, last):
        found |= bit(place)
    return found


@rule
def show(state: State, first: int, last: int, seat: int) -> None:
    """Let a seat look at the cards from `first` to before `last`."""
    for place in range(first, last):
        state.known[place] |= 1 << seat


@rule
def knows(state: State, seat: int, place: int) -> bool:
    return (state.known[place] >> seat) & 1 == 1


@rule
def write_move(state: State, action: int) -> None:
    state.moves[int(state.num_moves)] = action + 1
    state.num_moves = int(state.num_moves) + 1
    for seat in range(len(state.rewards)):
        state.rewards[seat] = np.float32(0)


@rule
def end(state: State) -> None:
    """End the deal, and pay by the scores as they are."""
    state.over = state.needs_deal = True
    for seat in range(len(state.rewards)):
        margin = score_margin(state, seat)
        if state.reward_win:
            margin = min(max(margin, -1), 1)
        state.rewards[seat] = np.float32(margin)


@rule
def score_margin(state: State, seat: int) -> int:
    other = int(state.scores[1 - int(seat)]) if len(state.rewards) > 1 else 0
    return int(state.scores[int(seat)]) - other


@rule
def observe(state: State, seat: int, obs: Obs) -> None:
    size, most_moves = len(state.pack), len(state.moves) - 1
    for place in range(size):
        obs[place] = state.pack[place] + 1 if knows(state, seat, place) else 0
    for k in range(most_moves):
        obs[size + k] = state.moves[k]
    if len(state.rewards) > 1:
        obs[size + most_moves] = seat


@rule
def observe_all(state: State, seat: int, obs: Obs) -> None:
    start = len(state.pack) + len(state.moves) - 1 + (1 if len(state.rewards) > 1 else 0)
    observe(state, seat, obs[:start])
    for place in range(len(state.pack)):
        obs[start + place] = 0 if knows(state, seat, place) else state.pack[place] + 1


@rule
def determinize(state: State, seat: int, stream: Stream) -> None:
    hidden = EMPTY
    for place in range(len(state.pack)):
        if not knows(state, seat, place):
            hidden |= bit(state.pack[place])
    for place in range(len(state.pack)):
        if not knows(state, seat, place):
            card = nth(hidden, below(advance(stream), count(hidden)))
            hidden &= ~bit(card)
            state.pack[place] = card


# What follows from `begin(state)` and `choices(state)`, the legal actions as a set


def _rules(module: Any) -> dict[str, Any]:
    begin, choices, num_actions = module.begin, module.choices, len(module.MOVES)

    def new_state(options: Options) -> State:
        state = np.zeros(1, module.STATE)[0]
        state.reward_win = options.reward == "win"
        state.over = state.needs_deal = True
        return state

    @rule
    def lay(state: State) -> None:
        state.over = state.needs_deal = False
        state.seat = state.num_moves = 0
        state.scores[:] = 0
        state.known[:] = 0
        state.moves[:] = 0
        begin(state)

    @rule
    def deal(state: State) -> None:
        for place in range(len(state.pack)):
            state.pack[place] = place
        shuffle(state.pack, len(state.pack), len(state.pack), derive(state.rng, 0))
        lay(state)

    @rule
    def set_deal(state: State, pack: Pack) -> None:
        for place in range(len(state.pack)):
            state.pack[place] = pack[place]
        lay(state)

    @rule
    def legal(state: State, mask: Mask) -> int:
        mask[:] = 0
        if state.needs_deal:
            return 0
        spread(mask, 0, choices(state), num_actions)
        return count(choices(state))

    @rule
    def random_move(state: State, stream: Stream) -> int:
        return nth(choices(state), below(advance(stream), count(choices(state))))

    @rule
    def trivial(state: State) -> int:
        return lowest(choices(state))

    return {
        "new_state": new_state, "deal": deal, "set_deal": set_deal, "legal": legal, "random_move": random_move,
        "trivial": trivial, "score_margin": score_margin, "observe": observe, "observe_all": observe_all,
        "determinize": determinize, "ACTION_FIELDS": (Field("move", num_actions, 1, meaning="by its number"),),
    }  # fmt: skip


def _views(module: Any, game: Game) -> dict[str, Any]:
    texts, codes = module.MOVES, {text: action for action, text in enumerate(module.MOVES)}
    cards = {str(card + 1): card for card in range(module.PACK_SIZE)}
    names, own_name = list(cards), game.name
    Seat: Any = Annotated[int, pydantic.Field(ge=0, lt=module.NUM_SEATS)]

    class View(Strict):
        version: Version = VERSION
        game: str = own_name
        options: Annotated[Options, pydantic.Field(description="of the episode")] = Options()
        seat: Seat
        scores: list[int] | None = follows("points of each seat")
        cards: list[str | None]
        moves: list[str]
        to_move: Seat | None = follows("the seat to move; null: none")
        legal: list[str] | None = follows("the legal moves of the seat")

    def parse_move(state: State, text: str) -> int:
        if not isinstance(text, str) or text not in codes:
            raise ValueError(f"{text!r:.80} is not a move of {game.title}; expected one of {', '.join(texts)}")
        return codes[text]

    def parse_deal(state: State, deal: object) -> list[Pack]:
        pack = deal_keys(deal, "pack", example=f'{{"pack": [{len(cards)} cards]}}')["pack"]
        return [np.array(parse_pack(pack, cards, range(len(cards)), "deal.pack"), np.int8)]

    def options_of(state: State) -> Options:
        return Options("win" if state.reward_win else "points")

    def view(state: State, seat: int) -> dict[str, Any]:
        shown = enumerate(state.pack)
        return {
            "version": VERSION, "game": game.name, "options": as_json(options_of(state)), "seat": seat,
            "scores": state.scores.tolist(),
            "cards": [names[card] if knows(state, seat, place) else None for place, card in shown],
            "moves": [texts[number - 1] for number in state.moves[: state.num_moves]],
            "to_move": to_move(state), "legal": legal_texts(game, state, seat),
        }  # fmt: skip

    def from_view(given: dict[str, Any]) -> State:
        seen = read(View, given)
        rest = [card for card in names if card not in seen.cards]
        pack = [card or rest.pop(0) for card in seen.cards if card or rest]
        if len(seen.cards) != len(names) or sorted(pack) != sorted(names):
            raise ValueError(
                f"view: cards: expected {len(names)} places, each card at most once, got {short_repr(pack)}"
            )
        table = Table(game, module.new_state(seen.options))
        table.set_deal(np.array([cards[card] for card in pack], np.int8))
        for number, move in enumerate(seen.moves):
            play_shown(table, table.seat, move, f"moves.{number}")
        return settled(table, given)

    return {
        "Options": Options, "View": View, "SCHEMA": View.model_json_schema(), "from_view": from_view, "view": view,
        "SEAT_NAMES": ("you", "opponent")[: module.NUM_SEATS], "parse_move": parse_move, "parse_deal": parse_deal,
        "move_text": lambda state, action: texts[action], "options_of": options_of,
        "dealt_pack": lambda state: np.array(state.pack, np.int8),
        "deal_text": lambda packs: {"pack": [names[card] for card in packs[0]]},
        "outcome": lambda state: ("played" if state.over else "", state.scores.tolist()),
        "picture": lambda given: f"{game.title} {given['scores']}\n{' '.join(card or '-' for card in given['cards'])}",
    }  # fmt: skip


# Referees


class Referee:
    """A deal by a shape's rules in words: it says how a deal begins, what may be played, and what a move does."""

    num_seats = 2

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.wins = options.get("reward") == "win"
        self.needs_deal, self.over, self.reason, self.seat = True, False, "", 0
        self.scores, self.rewards = [0] * self.num_seats, [0.0] * self.num_seats
        self.pack: list[int] = []  # from 1
        self.played: list[str] = []
        self.fired: Counter[str] = Counter()

    def begin(self) -> None:
        """Prepare what the game keeps in mind, and whose turn it is."""

    def moves(self) -> list[str]:
        raise NotImplementedError

    def move(self, move: str) -> None:
        raise NotImplementedError

    def legal(self) -> list[str]:
        return [] if self.needs_deal else self.moves()

    def play(self, move: str) -> None:
        self.rewards = [0.0] * len(self.scores)
        self.played.append(move)
        self.move(move)

    def finish(self) -> None:
        self.over, self.needs_deal, self.reason = True, True, "played"
        for seat, score in enumerate(self.scores):
            margin = 2 * score - sum(self.scores) if len(self.scores) > 1 else score
            self.rewards[seat] = float((margin > 0) - (margin < 0) if self.wins else margin)


def _deal(referee: Referee, dealt: Mapping[str, Any], given: Mapping[str, Any], seat: int) -> None:
    referee.pack, referee.needs_deal, referee.seat = [int(card) for card in dealt["pack"]], False, 0
    referee.begin()


def _expected_view(referee: Referee, seat: int) -> dict[str, Any]:
    turn = None if referee.over else referee.seat
    legal = sorted(referee.legal()) if seat == turn else []
    return {"scores": referee.scores, "moves": referee.played, "to_move": turn, "legal": legal}


FACTS = {
    "OPTIONS": [{}, {"reward": "win"}], "STYLES": {"even": lambda referee, move: 1}, "STEADY": set(),
    "SHORT_EPISODES": {"random": 64, "greedy": 16}, "EPISODES": {"random": 200, "greedy": 20},
    "BRANCHES": set(), "ELSEWHERE": set(), "GOLDEN": {}, "COUNTING": set(), "rig": lambda rng, referee, style: {},
    "seen": lambda view: {**view, "legal": sorted(view["legal"])}, "expected_view": _expected_view,
    "recount": lambda view, reason, movers, seat: {},
}  # fmt: skip


def declare(package: str, title: str) -> Game:
    """Return the game whose modules are all this one: it has NUM_SEATS, PACK_SIZE, WORST_SCORE, MOVES, `begin`, …"""
    module: Any = sys.modules[package]
    game = Game(package.rpartition(".")[2], title, package)
    vars(module).update(FACTS | _rules(module) | _views(module, game), __path__=[])
    referee = {
        "Referee": module.Referee,
        "deal_from": _deal,
        "trivial": lambda it: min(it.legal(), key=module.MOVES.index),
    }
    parts = dict.fromkeys(("options", "rules", "bot", "view", "tests", "tests.facts"), module)
    parts["tests.referee"] = SimpleNamespace(**referee)
    sys.modules.update({f"{package}.{name}": part for name, part in parts.items()})
    return game
