"""High Card for people: notation, custom deals, JSON views, text pictures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from card_envs.cards import codes_of, parse_pack
from card_envs.engine.table import Table
from card_envs.game import Cards, Pack, Question, Rate, State
from card_envs.options import as_json
from card_envs.scaffold.high_card import GAME, rules
from card_envs.scaffold.high_card.options import Options
from card_envs.views import (
    VERSION,
    Amount,
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

CARDS = tuple(str(code + 1) for code in range(rules.PACK_SIZE))  # HC-1
CODES = {card: code for code, card in enumerate(CARDS)}
SEAT_NAMES = ("you", "opponent")
GOAL = "Take more tricks than your opponent."
MINUTES = 1
ENDS = {"played": ""}
QUESTIONS = (Question("Your turn: play a card."),)
LEGEND = (("1 … 12", "a card of your hand"),)
RATES = (
    Rate("won", "a deal", "wins", per="deals", percent=True),
    Rate("tricks", "a deal", "tricks", per="deals"),
)


def card_texts(cards: Cards) -> list[str]:
    return [CARDS[code] for code in codes_of(int(cards))]


def move_text(state: State, action: int) -> str:
    return CARDS[action]


def move_words(text: str) -> str:
    return f"play the {text}"


def parse_move(state: State, text: str) -> int:
    if not isinstance(text, str) or text not in CODES:
        raise ValueError(f"{text!r:.80} is not a move of High Card; expected a card from 1 to 12")
    return CODES[text]


def parse_deal(state: State, deal: object) -> list[Pack]:
    pack = deal_keys(deal, "pack", example='{"pack": [12 cards]}')["pack"]
    return [np.array(parse_pack(pack, CODES, range(rules.PACK_SIZE), "deal.pack"), np.int8)]


def dealt_pack(state: State) -> Pack:
    dealt = [card for seat in range(2) for card in card_texts(state.hands[seat] | state.played[seat])]
    return np.array([CODES[card] for card in [*dealt, *(card for card in CARDS if card not in dealt)]], np.int8)


def deal_text(packs: list[Pack]) -> dict[str, Any]:
    return {"pack": [CARDS[card] for card in packs[0]]}


def options_of(state: State) -> Options:
    return Options(reward="win" if state.reward_win else "points")


def outcome(state: State) -> tuple[str, list[int]]:
    return "played" if state.over else "", [int(score) for score in state.scores]


Seat = Annotated[int, Field(ge=0, le=1)]


class View(Strict):
    """The view of a seat. `played` does not say who played each card: that follows from the rules."""

    version: Version = VERSION
    game: Literal["high_card"] = "high_card"
    options: Annotated[Options, Field(description="of the episode")] = Options()
    seat: Annotated[Seat, Field(description="whose view this is")]
    scores: list[Amount] | None = follows("tricks of each seat")
    hand: Annotated[list[Literal[CARDS]], Field(description="own cards")]  # type: ignore[valid-type]
    played: list[Literal[CARDS]] = Field([], description="cards of all tricks, in the order of play")  # type: ignore[valid-type]
    to_move: Seat | None = follows("the seat to move; null: none")
    legal: list[str] | None = follows("the legal moves of the seat")


SCHEMA: dict[str, Any] = View.model_json_schema()


def view(state: State, seat: int) -> dict[str, Any]:
    return {
        "version": VERSION,
        "game": GAME.name,
        "options": as_json(options_of(state)),
        "seat": seat,
        "scores": outcome(state)[1],
        "hand": card_texts(state.hands[seat]),
        "played": [CARDS[card] for card in state.history[: state.num_played]],
        "to_move": to_move(state),
        "legal": legal_texts(GAME, state, seat),
    }


def from_view(given: dict[str, Any]) -> State:
    seen = read(View, given)
    table = Table(GAME, rules.new_state(seen.options))
    table.set_deal(_plausible_pack(seen))
    for number, card in enumerate(seen.played):
        play_shown(table, table.seat, card, f"played.{number}")
    return settled(table, given)


def _plausible_pack(seen: View) -> Pack:
    """Return a pack that deals each seat the cards that it is known to have had, filled up with others."""
    hands: list[list[str]] = [[], []]
    seat = 0
    for i, card in enumerate(seen.played):
        hands[seat].append(card)
        if i & 1 == 0 or CODES[card] < CODES[seen.played[i - 1]]:  # HC-4
            seat = 1 - seat
    hands[seen.seat] += seen.hand
    unseen = [card for card in CARDS if card not in hands[0] + hands[1]]
    hands[1 - seen.seat] += unseen[: rules.HAND_SIZE - len(hands[1 - seen.seat])]
    if [*map(len, hands)] != [rules.HAND_SIZE] * 2 or len({*hands[0], *hands[1]}) != 2 * rules.HAND_SIZE:
        raise ValueError(f"view: hand: expected {rules.HAND_SIZE} cards for each seat, each once; got {hands}")
    rest = [card for card in CARDS if card not in hands[0] + hands[1]]
    return np.array([CODES[card] for card in hands[0] + hands[1] + rest], np.int8)


def picture(given: dict[str, Any]) -> str:
    lines = (
        f"High Card   tricks {given['scores']}",
        f"played: {' '.join(given['played'])}",
        f"hand: {' '.join(given['hand'])}",
    )
    return "\n".join(lines)
