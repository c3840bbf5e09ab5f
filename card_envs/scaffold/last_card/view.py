"""Last Card for people: notation, custom deals, JSON views, text pictures."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from card_envs.cards import SUITS, card_name, parse_pack
from card_envs.engine.table import Table
from card_envs.game import Pack, Question, Rate, State
from card_envs.options import as_json
from card_envs.scaffold.last_card import GAME, rules
from card_envs.scaffold.last_card.options import Options
from card_envs.scaffold.last_card.rules import FIRST_OF_STOCK, HAND_SIZE
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

CARDS = tuple(rank + suit for suit in SUITS for rank in "JQKA")  # LC-1
MOVES = (*CARDS, "draw", "pass")
CODES = {text: code for code, text in enumerate(MOVES)}
SEAT_NAMES = ("you", "opponent")
GOAL = "Get rid of your cards before your opponent does."
MINUTES = 3
ENDS = {"out": "a hand is empty", "passed": "both passed"}
QUESTIONS = (
    Question("Your turn: play a card that fits, or draw one.", ("draw",)),
    Question("Your turn: play a card that fits, or pass."),
)
LEGEND = (("JC … AS", "a card of your hand"), ("draw", "draw a card from the stock"), ("pass", "end your turn"))
RATES = (
    Rate("won", "a deal", "wins", per="deals", percent=True),
    Rate("points", "a deal", "points", per="deals"),
)


def hand_texts(hand: Any) -> list[str]:
    """Return the cards of a hand, in the order of `CARDS`."""
    return [text for card, text in enumerate(CARDS) for _ in range(rules.copies(hand, card))]


def move_text(state: State, action: int) -> str:
    return MOVES[action]


def move_words(text: str) -> str:
    return f"play the {card_name(text)}" if text in CARDS else {"draw": "draw a card"}.get(text, text)


def parse_move(state: State, text: str) -> int:
    if not isinstance(text, str) or text not in CODES:
        raise ValueError(f"{text!r:.80} is not a move of {GAME.title}; expected a card such as QH, draw or pass")
    return CODES[text]


def parse_deal(state: State, deal: object) -> list[Pack]:
    pack = deal_keys(deal, "pack", example='{"pack": [32 cards]}')["pack"]
    codes = {card: CODES[card] for card in CARDS}
    return [np.array(parse_pack(pack, codes, sorted([*codes.values()] * 2), "deal.pack"), np.int8)]


def dealt_pack(state: State) -> Pack:
    return np.array(state.pack, np.int8)


def deal_text(packs: list[Pack]) -> dict[str, Any]:
    return {"pack": [CARDS[card] for card in packs[0]]}


def options_of(state: State) -> Options:
    return Options(reward="win" if state.reward_win else "points")


def outcome(state: State) -> tuple[str, list[int]]:
    reason = "out" if 0 in hand_sizes(state) else "passed"
    return reason if state.over else "", [int(score) for score in state.scores]


def hand_sizes(state: State) -> list[int]:
    return [rules.size(hand) for hand in state.hands]


Seat = Annotated[int, Field(ge=0, le=1)]
Card = Literal[CARDS]  # type: ignore[valid-type]


class View(Strict):
    """The view of a seat. Who made each move and what is on the pile follows from the rules."""

    version: Version = VERSION
    game: Literal["last_card"] = "last_card"
    options: Annotated[Options, Field(description="of the episode")] = Options()
    seat: Annotated[Seat, Field(description="whose view this is")]
    scores: list[Amount] | None = follows("points of each seat")
    hand: Annotated[list[Card], Field(description="own cards")]
    turned_up: Annotated[Card, Field(description="the first card of the pile")]
    moves: list[Literal[MOVES]] = Field([], description="all moves, in order")  # type: ignore[valid-type]
    top: Card | None = follows("the top card of the pile")
    hand_sizes: list[Amount] | None = follows("cards in each hand")
    stock_size: Amount | None = follows("cards of the stock")
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
        "hand": hand_texts(state.hands[seat]),
        "turned_up": CARDS[state.pack[2 * HAND_SIZE]],
        "moves": [MOVES[action] for action in state.moves[: state.num_moves]],
        "top": CARDS[state.top],
        "hand_sizes": hand_sizes(state),
        "stock_size": rules.PACK_SIZE - int(state.next_place),
        "to_move": to_move(state),
        "legal": legal_texts(GAME, state, seat),
    }


def from_view(given: dict[str, Any]) -> State:
    seen = read(View, given)
    table = Table(GAME, rules.new_state(seen.options))
    table.set_deal(_plausible_pack(seen))
    for number, move in enumerate(seen.moves):
        play_shown(table, table.seat, move, f"moves.{number}")
    return settled(table, given, ("legal", "hand"))


def _plausible_pack(seen: View) -> Pack:
    """Return a pack that deals each seat the cards that it has played, in that order, then those of its hand."""
    places = [[*range(HAND_SIZE)], [*range(HAND_SIZE, 2 * HAND_SIZE)]]
    cards: list[list[str]] = [[], []]
    seat, next_place = 0, FIRST_OF_STOCK
    for move in seen.moves:
        if move == "draw":
            places[seat].append(next_place)
            next_place += 1
        else:
            cards[seat] += [move] if move in CARDS else []
            seat = 1 - seat
    cards[seen.seat] += seen.hand
    left = Counter([*CARDS, *CARDS])
    left.subtract([seen.turned_up, *cards[0], *cards[1]])
    if next_place > rules.PACK_SIZE or min(left.values()) < 0:
        raise ValueError("view: moves: expected each card at most twice, with the hand, and at most 21 times draw")
    rest = list(left.elements())
    unseen = len(places[1 - seen.seat]) - len(cards[1 - seen.seat])
    cards[1 - seen.seat] += rest[: max(unseen, 0)]
    if [*map(len, cards)] != [*map(len, places)]:
        raise ValueError(
            f"view: hand: expected {len(places[seen.seat])} cards, with those played; got {cards[seen.seat]}"
        )
    stock = range(next_place, rules.PACK_SIZE)
    dealt = zip([*places[0], *places[1], 2 * HAND_SIZE, *stock], [*cards[0], *cards[1], seen.turned_up, *rest[unseen:]])
    return np.array([CODES[card] for _, card in sorted(dealt)], np.int8)


def picture(given: dict[str, Any]) -> str:
    others = given["hand_sizes"][1 - given["seat"]]
    lines = (
        f"{GAME.title}   pile: {given['top']}   stock: {given['stock_size']} cards   opponent: {others} cards",
        f"last moves: {' '.join(given['moves'][-12:])}",
        f"hand: {' '.join(given['hand'])}",
    )
    return "\n".join(lines)
