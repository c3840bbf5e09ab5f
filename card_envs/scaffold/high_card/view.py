"""High Card between states and people: notation, custom deals, JSON views, the terminal's picture."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from card_envs.cards import parse_pack
from card_envs.engine.table import Table
from card_envs.game import Int8s, Int64s, Ratio, State
from card_envs.scaffold.high_card import GAME, rules
from card_envs.scaffold.high_card.options import Options

CARDS = tuple(str(code + 1) for code in range(rules.PACK_SIZE))  # HC-1
CODES = {card: code for code, card in enumerate(CARDS)}
SEAT_NAMES = ("you", "opponent")
PHASES: dict[str, range] = {}
RATIOS = (
    Ratio("won", "a deal", rules.WINS, rules.DEALS, percent=True),
    Ratio("tricks", "a deal", rules.TRICKS, rules.DEALS),
)


def card_texts(cards: int) -> list[str]:
    return [card for code, card in enumerate(CARDS) if int(cards) >> code & 1]


def move_text(state: State, action: int) -> str:
    return CARDS[action]


def parse_move(state: State, text: str) -> int:
    if text not in CODES:
        raise ValueError(f"{text!r} is no move of High Card; expected a card from 1 to 12")
    return CODES[text]


def parse_deal(state: State, deal: object) -> list[Int8s]:
    if not isinstance(deal, dict) or set(deal) != {"pack"}:
        raise ValueError(f"deal: expected the key pack alone, got {list(deal) if isinstance(deal, dict) else deal!r}")
    return [np.array(parse_pack(deal["pack"], CODES, range(rules.PACK_SIZE), "deal.pack"), np.int8)]


def dealt_pack(state: State) -> Int8s:
    dealt = [card for seat in range(2) for card in card_texts(state.hands[seat] | state.played[seat])]
    return np.array([CODES[card] for card in [*dealt, *(card for card in CARDS if card not in dealt)]], np.int8)


def deal_text(packs: list[Int8s]) -> dict[str, Any]:
    return {"pack": [CARDS[card] for card in packs[0]]}


def options_of(state: State) -> Options:
    return Options(reward="win" if state.reward_win else "points")


def num_deals(state: State) -> int:
    return 1


def outcome(state: State) -> tuple[str, list[int]]:
    return "played" if state.over else "", [int(score) for score in state.scores]


def outcomes(states: NDArray[Any]) -> tuple[NDArray[np.str_], Int64s]:
    return np.where(states["over"], "played", ""), states["scores"].astype(np.int64)


Seat = Annotated[int, Field(ge=0, le=1)]


class View(BaseModel):
    """All that a seat sees: the cards played, in order; who played them follows from the rules."""

    model_config = ConfigDict(extra="forbid", strict=True)

    game: Literal["high_card"]
    options: dict[str, Any]
    seat: Seat
    scores: list[int]
    hand: list[Literal[CARDS]]  # type: ignore[valid-type]
    played: list[Literal[CARDS]]  # type: ignore[valid-type]
    to_move: Seat | None
    legal: list[str]


SCHEMA: dict[str, Any] = View.model_json_schema()


def view(state: State, seat: int) -> dict[str, Any]:
    mover = None if state.needs_deal else int(state.seat)
    hand = card_texts(state.hands[seat])
    return {
        "game": GAME.name,
        "options": options_of(state).model_dump(mode="json"),
        "seat": seat,
        "scores": outcome(state)[1],
        "hand": hand,
        "played": [CARDS[card] for card in state.history[: state.num_played]],
        "to_move": mover,
        "legal": hand if mover == seat else [],
    }


def from_view(given: dict[str, Any]) -> State:
    try:
        seen = View.model_validate(given)
        options = Options.model_validate(seen.options)
    except ValidationError as error:
        raise ValueError(f"view: {error.errors()[0]['loc']}: {error.errors()[0]['msg']}") from None
    hands: list[list[str]] = [[], []]
    seat = 0
    for i, card in enumerate(seen.played):
        hands[seat].append(card)
        if i & 1 == 0 or CODES[card] < CODES[seen.played[i - 1]]:  # HC-4
            seat = 1 - seat
    hands[seen.seat] += seen.hand
    unseen = [card for card in CARDS if card not in hands[0] + hands[1]]
    hands[1 - seen.seat] += unseen[: rules.HAND_SIZE - len(hands[1 - seen.seat])]
    if len(hands[0]) != rules.HAND_SIZE or len({*hands[0], *hands[1]}) != 2 * rules.HAND_SIZE:
        raise ValueError(f"view: expected {rules.HAND_SIZE} cards for each seat, each once; got {hands}")
    table = Table(GAME, rules.new_state(options))
    table.arrange(np.array([CODES[card] for card in hands[0] + hands[1]], np.int8))
    for card in seen.played:
        table.play(CODES[card])
    if table.needs_deal or view(table.state, seen.seat) != given:
        raise ValueError("view: it shows no decision, or contradicts itself")
    return table.state


def picture(given: dict[str, Any]) -> str:
    return f"High Card   tricks {given['scores']}\nplayed: {' '.join(given['played'])}\nhand: {' '.join(given['hand'])}"
