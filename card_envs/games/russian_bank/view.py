"""Russian Bank for people: notation, custom deals, JSON views, text pictures."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from card_envs.cards import ACE_LOW, SUITS, codes_of, parse_pack
from card_envs.engine.table import Table
from card_envs.game import Cards, Choice, Int8s, Int64s, Pack, Question, Rate, State, States
from card_envs.games.russian_bank import GAME, rules
from card_envs.games.russian_bank.options import Options
from card_envs.games.russian_bank.rules import ACTION, MATCH_GAMES, NO_CARD, NUM_BOTH, NUM_CARDS, OWN_HOUSES
from card_envs.options import as_json
from card_envs.views import (
    VERSION,
    Points,
    Strict,
    Version,
    check_int,
    deal_keys,
    follows,
    legal_texts,
    plain,
    read,
    settled,
    to_move,
)

CARDS = tuple(rank + suit for rank in ACE_LOW for suit in SUITS)
CODES = {card: code for code, card in enumerate(CARDS)}
SEAT_NAMES = ("you", "opponent")
GOAL = "Get rid of all the cards of your reserve, hand and waste before your opponent does."
MINUTES = 15
ENDS = {
    "win": "",
    "match": "",
    "stalemate": "no card was played in a whole hand of both",
    "no_progress": "200 turns without progress",
}
QUESTIONS = (
    Question("Your turn: play a card, or discard the one that you turned.", ("discard",)),
    Question("Your turn: play a card, or turn one of your hand.", ("turn",)),
    Question("Your turn: play a card, or end your turn.", ("end",)),
    Question("A card fits a foundation: it must go there.", ("R-F", "D-F", *(f"H{house}-F" for house in range(1, 9)))),
    Question("Your turn: play a card."),
)
FORCED = {
    "turn": "No card can be played: turn one of your hand.",
    "discard": "No card can be played: discard the one that you turned.",
    "end": "No card can be played: end your turn.",
}
LEGEND = (
    ("R", "the top card of your reserve"),
    ("D", "the card that you turned from your hand"),
    ("H1 … H8", "the houses"),
    ("F", "a foundation"),
    ("OR, OW", "the opponent's reserve, the opponent's waste"),
    ("R-OW, H2-H5", "a move: the card goes from the first place to the second"),
    ("turn", "turn the next card of your hand"),
    ("discard", "put the turned card on your waste; your turn ends"),
    ("end", "end your turn, with no card left to turn"),
)
CHOICES = (
    Choice("match", "Length", ((False, "one game"), (True, "a match"))),
    Choice("match_target", "A match ends at", ((150, "150 points"), (100, "100 points"), (300, "300 points"))),
    Choice("reserve", "Cards in each reserve", ((13, "13"), (12, "12"), (11, "11"))),
    Choice(
        "fill_houses",
        "An empty house is filled",
        (("any", "with any card"), ("reserve", "from the reserve, while there is one")),
    ),
    Choice(
        "start",
        "Who starts",
        (
            ("low_reserve", "the lower card on the reserve"),
            ("high_reserve", "the higher card on the reserve"),
            ("random", "chance decides"),
            ("player_0", "you"),
            ("player_1", "the opponent"),
        ),
    ),
)
HOUSES = {house: f"H{house + 1}" for house in range(8)}
SOURCES = HOUSES | {rules.RESERVE: "R", rules.HAND: "D", -1: ""}
TARGETS = HOUSES | {rules.FOUNDATION: "F", rules.OTHER_RESERVE: "OR", rules.OTHER_WASTE: "OW", -1: ""}
MOVES = tuple(f"{SOURCES[source]}-{TARGETS[target]}" for source, target in rules.PAIRS)  # "-" for an advance
ACTIONS = {text: action for action, text in enumerate(MOVES) if action != ACTION.advance}
ADVANCES = ("turn", "discard", "end")
TEXTS = (*MOVES, *ADVANCES)
PLACE_NAMES = {f"H{house}": f"house {house}" for house in range(1, 9)} | {
    "F": "a foundation",
    "OR": "the other player's reserve",
    "OW": "the other player's waste",
}
TAKEN = {"R": "a card from the reserve", "D": "the turned card"} | {
    house: f"a card from {name}" for house, name in PLACE_NAMES.items() if house.startswith("H")
}
ADVANCED = {"turn": "turn a card", "discard": "discard the turned card", "end": "end the turn"}
REASONS = ("", "win", "stalemate", "no_progress")
RATES = (
    Rate("own turns", "a game", "turns", per="games"),
    Rate("end: win", "a game", "won", per="games", percent=True),
    Rate("end: stalemate (RB-19)", "a game", "stalemate", per="games", percent=True),
    Rate("end: no progress (RB-20)", "a game", "no_progress", per="games", percent=True),
    Rate("own cards left", "a game", "cards_left", per="games"),
    Rate("of these in the reserve", "a game", "reserve_left", per="games"),
)


def card_texts(cards: Cards) -> list[str]:
    """Return a set of cards as texts, in the order of their codes."""
    return [CARDS[code] for code in codes_of(int(cards))]


def card_set(cards: list[str]) -> int:
    """Return the set of cards for card texts."""
    return sum(1 << CODES[card] for card in set(cards))


def advance_text(state: State) -> str:
    """Return what the advance means now: `turn`, `discard` or `end`."""
    if state.turned != NO_CARD:
        return "discard"
    return "turn" if int(state.hand_sizes[state.seat]) + int(state.waste_sizes[state.seat]) > 0 else "end"


def move_text(state: State, action: int) -> str:
    """Return an action in the notation of RULES.md: `R-F`, `D-H3`, `H2-OW`, `turn`, `discard`, `end`."""
    return advance_text(state) if action == ACTION.advance else MOVES[action]


def moved_card(view: dict[str, Any], move: str) -> str:
    """Return the top card of the house or the reserve that a move takes it from, or the turned one."""
    source = move.partition("-")[0]
    if source == "R":
        return str(view["players"][view["to_move"]]["reserve"]["cards"][-1])
    houses = {f"H{number + 1}": house[-1] for number, house in enumerate(view["houses"]) if house}
    return str((houses | {"D": view["turned"], "discard": view["turned"]}).get(source, ""))


def move_words(text: str) -> str:
    """Return a move in words: `move a card from house 2 to house 5`."""
    source, _, target = text.partition("-")
    return ADVANCED[text] if text in ADVANCED else f"move {TAKEN[source]} to {PLACE_NAMES[target]}" if source else text


def question(view: dict[str, Any]) -> str:
    """Return what remains to do if no card can be played."""
    return FORCED.get(view["legal"][0], "") if len(view["legal"]) == 1 else ""


def parse_move(state: State, text: str) -> int:
    """Return the action for a text, legal or not.

    Raises ValueError if it is not a move, or another kind of advance than the current one.
    """
    if not isinstance(text, str):
        raise ValueError(f"move: expected a text, got {text!r:.80}")
    if text in ACTIONS:
        return ACTIONS[text]
    if text in ADVANCES:
        if text == advance_text(state):
            return ACTION.advance
        raise ValueError(f"{text!r:.80} is not possible now; expected {advance_text(state)}")
    raise ValueError(
        f"{text!r:.80} is not a move of Russian Bank; expected R-F, D-H3, H2-H5, H4-OW, turn, discard, end, …"
    )


def parse_deal(state: State, deal: object) -> list[Pack]:
    """Return the packs of `{"packs": [[52 cards], [52 cards]], "starts": 0, "later": [{…}, …]}`.

    Only `packs` is required. `later` has the next games of a match in the same form.
    """
    first = _game_keys(deal, "deal", "starts", "later")
    later = first.get("later", [])
    if not isinstance(later, (list, tuple)) or len(later) >= MATCH_GAMES:
        raise ValueError(f"deal.later: expected a list of less than {MATCH_GAMES} deals, got {later!r:.80}")
    if later and not state.match:
        raise ValueError("deal.later: only with match=True; otherwise an episode is one game")
    packs = [_parse_game(first, "deal")]
    for i, game in enumerate(later):
        where = f"deal.later[{i}]"
        packs.append(_parse_game(_game_keys(game, where, "starts"), where))
    return packs


def _game_keys(deal: object, where: str, *optional: str) -> dict[str, Any]:
    example = '{"packs": [[52 cards], [52 cards]], "starts": 0}'
    return deal_keys(deal, "packs", *optional, example=example, where=where)


def _parse_game(deal: dict[str, Any], where: str) -> Pack:
    packs = deal["packs"]
    if not isinstance(packs, (list, tuple)) or len(packs) != 2:
        raise ValueError(f"{where}.packs: expected the packs of player 0 and player 1, got {packs!r:.80}")
    cards = [parse_pack(pack, CODES, range(NUM_CARDS), f"{where}.packs[{i}]") for i, pack in enumerate(packs)]
    starts = check_int(deal["starts"], 0, 1, f"{where}.starts") if "starts" in deal else -1
    return np.array([*cards[0], *cards[1], starts], np.int8)


def dealt_pack(state: State) -> Pack:
    """Return the packs and the starter of the deal on the table, for `set_deal`."""
    return np.array([*state.packs[0], *state.packs[1], state.starts], np.int8)


def deal_text(packs: list[Pack]) -> dict[str, Any]:
    """Return packs as a custom deal: the inverse of `parse_deal`."""
    games: list[dict[str, Any]] = []
    for pack in packs:
        cards = [CARDS[card] for card in pack[:NUM_BOTH]]
        starts = {"starts": int(pack[NUM_BOTH])} if pack[NUM_BOTH] >= 0 else {}
        games.append({"packs": [cards[:NUM_CARDS], cards[NUM_CARDS:]], **starts})
    return games[0] | ({"later": games[1:]} if games[1:] else {})


def options_of(state: State) -> Options:
    """Return the options that the state was made with."""
    start: Any = rules.STARTS[state.start]
    reward: Any = rules.REWARDS[state.reward]
    reserve: Any = int(state.dealt_reserve)
    fills: Any = rules.FILLS[int(state.others_fill == 0)]
    return Options(
        start=start,
        match=bool(state.match),
        match_target=int(state.match_target),
        reserve=reserve,
        fill_houses=fills,
        reward=reward,
    )


def outcome(state: State) -> tuple[str, list[int]]:
    """Return the reason of the end ("" while it runs) and each player's points so far."""
    reason = "" if not state.over else "match" if state.match else REASONS[state.game_end]
    return reason, [int(score) for score in state.scores]


def outcomes(states: States) -> tuple[NDArray[np.str_], Int64s]:
    reasons = np.where(states["match"], "match", np.array(REASONS)[states["game_end"]])
    return np.where(states["over"], reasons, ""), states["scores"].astype(np.int64)


Card = Literal[CARDS]  # type: ignore[valid-type]
Seat = Annotated[int, Field(ge=0, le=1)]
Height = Annotated[int, Field(ge=0, le=13)]


class Reserve(Strict):
    face_down: Annotated[int, Field(ge=0, le=12, description="cards at the bottom that were never seen")]
    cards: Annotated[list[Card], Field(description="the others, the top card last")]
    lowest: Height | None = follows("fewest cards that it has held (RB-20)")


class Hand(Strict):
    size: Annotated[int, Field(ge=0, le=NUM_BOTH, description="cards, a turned one included")]
    cards: list[Card] | None = Field(
        None, description="once the waste was turned over: all of them, the next (or turned) first; before: null"
    )


class Player(Strict):
    reserve: Reserve
    hand: Hand
    waste: list[Card] = Field([], description="the oldest first, the top card last")
    unseen: list[Card] | None = Field(
        None,
        description="cards of this player's pack that lie face down, never seen; left out: shared out in one of the "
        "ways that fit",
    )
    stale: Annotated[int, Field(ge=0, le=NUM_BOTH + 1, description="turns that count for RB-19")] = 0
    penalty_points: Points | None = follows("RB-21")


class Foundations(Strict):
    """Cards on the two foundations of each suit, the higher first."""

    C: list[Height] = Field(default=[0, 0], min_length=2, max_length=2)
    D: list[Height] = Field(default=[0, 0], min_length=2, max_length=2)
    H: list[Height] = Field(default=[0, 0], min_length=2, max_length=2)
    S: list[Height] = Field(default=[0, 0], min_length=2, max_length=2)


class View(Strict):
    """The view of a seat."""

    version: Version = VERSION
    game: Literal["russian_bank"] = "russian_bank"
    options: Annotated[Options, Field(description="of the episode")] = Options()
    seat: Annotated[Seat, Field(description="whose view this is")]
    game_number: Annotated[int, Field(ge=0, lt=MATCH_GAMES, description="0 for the first game of a match")] = 0
    scores: list[Points] = Field([0, 0], min_length=2, max_length=2, description="points of player 0, player 1")
    starts: Seat | None = Field(None, description="who started this game; left out: the player to move")
    to_move: Seat | None = Field(None, description="null when the game is over; left out: `seat`")
    turned: Card | None = Field(None, description="the turned hand card of the player to move; null: none")
    players: Annotated[list[Player], Field(min_length=2, max_length=2, description="player 0, player 1")]
    houses: Annotated[list[list[Card]], Field(min_length=8, max_length=8, description="H1 to H8, top cards last")]
    foundations: Foundations = Foundations()
    house_moves: Annotated[int, Field(ge=0, le=16, description="house-to-house moves in a row (RB-18)")] = 0
    idle_turns: Annotated[int, Field(ge=0, le=200, description="turns without progress (RB-20)")] = 0
    progress: Annotated[bool, Field(description="whether this turn has had progress (RB-20)")] = False
    dealt: Annotated[list[list[Card | None]], Field(min_length=2, max_length=2)] | None = Field(
        None, description="both packs as dealt, null for cards never seen; left out: in any order"
    )
    legal: list[str] | None = follows("the legal moves of the seat")


SCHEMA: dict[str, Any] = View.model_json_schema()


def view(state: State, seat: int) -> dict[str, Any]:
    """Return everything that a seat may know, ready for JSON; `SCHEMA` describes it."""
    original, state = state, plain(state)
    heights = [int(height) for height in state.foundations]
    return {
        "version": VERSION,
        "game": GAME.name,
        "options": as_json(options_of(state)),
        "seat": int(seat),
        "game_number": int(state.game_number) - int(state.needs_deal),
        "scores": outcome(state)[1],
        "starts": int(state.starts),
        "to_move": to_move(state),
        "turned": CARDS[state.turned] if state.turned != NO_CARD else None,
        "players": [_player_view(state, player) for player in range(2)],
        "houses": [card_texts(house)[::-1] for house in state.houses],
        "foundations": {suit: heights[2 * i : 2 * i + 2] for i, suit in enumerate(SUITS)},
        "house_moves": int(state.house_moves),
        "idle_turns": int(state.idle),
        "progress": bool(state.progress),
        "dealt": [_seen_pack(state, player) for player in range(2)],
        "legal": legal_texts(GAME, original, seat, state),
    }


def _player_view(state: State, player: int) -> dict[str, Any]:
    lowest = int(state.lowest_reserves[player])
    face_down = max(lowest - 1, 0)
    reserve = state.reserves[player, 1 + face_down : 1 + int(state.reserve_sizes[player])]
    first, size = int(state.hand_next[player]), int(state.hand_sizes[player])
    hand = None if state.first_pass[player] else [CARDS[card] for card in state.hands[player, first : first + size]]
    waste = state.wastes[player, 1 : 1 + int(state.waste_sizes[player])]
    return {
        "reserve": {"face_down": face_down, "cards": [CARDS[card] for card in reserve], "lowest": lowest},
        "hand": {"size": size, "cards": hand},
        "waste": [CARDS[card] for card in waste],
        "unseen": card_texts(state.unseen[player]),
        "stale": int(state.stale[player]),
        "penalty_points": 2 * int(state.reserve_sizes[player]) + size + len(waste),
    }


def _seen_pack(state: State, player: int) -> list[str | None]:
    """Return a pack as dealt, as far as its cards were seen."""
    unseen = int(state.unseen[player])
    return [None if unseen >> int(card) & 1 else CARDS[card] for card in state.packs[player]]


def from_view(given: dict[str, Any]) -> State:
    """Return a State with this view; face-down cards are in any order.

    Raises:
        ValueError: the view is malformed, contradicts itself or the rules, or shows no decision.
    """
    seen = read(View, given)
    mover = seen.to_move if "to_move" in seen.model_fields_set else seen.seat
    if mover is None:
        raise ValueError("view: to_move: the game is over; expected a view of a decision")
    seen.to_move = mover
    _fill_in(seen)
    _check_counts(seen, mover)
    _check_cards(seen)
    state = rules.new_state(seen.options)
    state.over = state.needs_deal = False
    state.seat, state.game_number = mover, seen.game_number
    state.starts = mover if seen.starts is None else seen.starts
    state.scores[:] = seen.scores
    state.turned = CODES[seen.turned] if seen.turned else NO_CARD
    state.house_moves, state.idle, state.progress = seen.house_moves, seen.idle_turns, seen.progress
    _put_houses(state, seen)
    for number, player in enumerate(seen.players):
        _put_player(state, number, player)
        _put_pack(state, number, player, seen.dealt[number] if seen.dealt else None)
    return settled(Table(GAME, state), given, ("unseen", "legal"))


def _fill_in(seen: View) -> None:
    """Fill in omitted fields of the players: unseen cards and the lowest reserves."""
    for player in seen.players:
        if player.reserve.lowest is None:
            player.reserve.lowest = player.reserve.face_down + (len(player.reserve.cards) > 0)
    left = Counter(dict.fromkeys(CARDS, 2))
    left.subtract(_shown_cards(seen))
    for player in seen.players:
        left.subtract(player.unseen or [])
    first, second = seen.players
    hidden = sum(_num_unseen(seen, number) for number, player in enumerate(seen.players) if player.unseen is None)
    face_down = sum(left.values())
    if hidden and hidden != face_down:
        raise ValueError(
            f"view: players: {hidden} cards lie face down, but the others that are shown leave {face_down}"
        )
    if first.unseen is None and second.unseen is None:  # each player has one copy of every card
        single = [card for card in CARDS if left[card] == 1]
        both = [card for card in CARDS if left[card] == 2]
        share = max(_num_unseen(seen, 0) - len(both), 0)
        first.unseen, second.unseen = both + single[:share], both + single[share:]
    for player in seen.players:
        if player.unseen is None:
            player.unseen = [card for card in CARDS if left[card] > 0]


def _num_unseen(seen: View, number: int) -> int:
    """Return how many cards of a player are face down and were never seen."""
    player = seen.players[number]
    turned = number == seen.to_move and seen.turned is not None
    return player.reserve.face_down + (player.hand.size - turned if player.hand.cards is None else 0)


def _shown_cards(seen: View) -> list[str]:
    """Return all cards that are or were face up."""
    cards = [card for house in seen.houses for card in house]
    for suit, heights in seen.foundations.model_dump().items():
        cards += [rank + suit for height in heights for rank in ACE_LOW[:height]]
    for number, player in enumerate(seen.players):
        cards += player.reserve.cards + player.waste + (player.hand.cards or [])
        if seen.turned and seen.to_move == number and player.hand.cards is None:
            cards.append(seen.turned)
    return cards


def _put_houses(state: State, seen: View) -> None:
    """Set houses and foundations, and the fields derived from them."""
    for house, cards in enumerate(seen.houses):
        state.houses[house] = card_set(cards)
        state.tops[house] = CODES[cards[-1]] if cards else NO_CARD
        state.landing[rules.KEYS[state.tops[house]]] |= 1 << house
    wanted = set()
    for suit, heights in enumerate(seen.foundations.model_dump().values()):
        state.foundations[2 * suit : 2 * suit + 2] = heights
        wanted |= {4 * height + suit for height in heights if height < 13}
    state.wanted = sum(1 << card for card in wanted)


def _put_player(state: State, number: int, player: Player) -> None:
    reserve, hand = player.reserve, player.hand
    state.reserve_sizes[number] = reserve.face_down + len(reserve.cards)
    state.lowest_reserves[number] = reserve.lowest or 0
    state.hand_sizes[number], state.waste_sizes[number] = hand.size, len(player.waste)
    state.stale[number] = player.stale
    state.unseen[number] = card_set(player.unseen or [])
    state.reserves[number, 0] = state.wastes[number, 0] = NO_CARD
    _fill(state.reserves[number, 1 + reserve.face_down :], reserve.cards)
    _fill(state.wastes[number, 1:], player.waste)
    turned = int(state.turned != NO_CARD and state.seat == number)
    state.first_pass[number] = hand.cards is None
    if hand.cards is None:
        state.hand_next[number] = _dealt_hand(int(state.dealt_reserve)) - hand.size
        if turned:
            state.hands[number, state.hand_next[number]] = state.turned
    else:
        _fill(state.hands[number], hand.cards)
    unknown = hand.size - turned if hand.cards is None else 0
    for before, card in enumerate((hand.cards or [])[turned:] + player.waste, unknown):
        second = NUM_CARDS if state.coming[number, CODES[card]] else 0
        state.coming[number, CODES[card] + second] = NUM_BOTH - before


def _dealt_hand(reserve: int) -> int:
    """Return the size of a hand after the deal, by that of the reserve (RB-2)."""
    return NUM_CARDS - reserve - OWN_HOUSES


def _put_pack(state: State, number: int, player: Player, dealt: list[str | None] | None) -> None:
    """Place the seen cards of a pack where they were dealt, or in any order; `determinize` fills in the others."""
    unseen = player.unseen or []
    hidden = len(unseen) - player.reserve.face_down
    places = range(player.reserve.face_down, NUM_CARDS - hidden)
    cards: list[str | None] = [card for card in CARDS if card not in unseen]
    if dealt is not None:
        seen = dealt[places.start : places.stop]
        if [place for place, card in enumerate(dealt) if card] != [*places] or {*seen} != {*cards}:
            raise ValueError(f"view: dealt.{number}: expected null where cards were never seen, and the others once")
        cards = seen
    state.packs[number, places] = [CODES[card] for card in cards if card]


def _fill(pile: Int8s, cards: list[str]) -> None:
    pile[: len(cards)] = [CODES[card] for card in cards]


def _check_counts(seen: View, mover: int) -> None:
    if seen.options.match:
        most = seen.options.match_target - 1
        if not 0 <= min(seen.scores) <= max(seen.scores) <= most:
            raise ValueError(f"view: scores: expected 0 to {most} while a match runs, got {seen.scores}")
    elif seen.game_number or any(seen.scores):
        where = "game_number" if seen.game_number else "scores"
        raise ValueError(f"view: {where}: game_number and scores are 0 in an episode of one game")
    if seen.idle_turns == rules.MAX_IDLE:
        raise ValueError(f"view: idle_turns: {rules.MAX_IDLE} of them end the game (RB-20)")
    if not 0 <= seen.players[1 - mover].stale - seen.players[mover].stale <= 1:
        raise ValueError(
            "view: players.0.stale: turns alternate, so the player to move has as many as the other or one less"
        )
    for number, player in enumerate(seen.players):
        turned = seen.turned if number == mover else None
        _check_player(f"view: players.{number}", player, turned, _num_unseen(seen, number), seen.options.reserve)
    if all(player.stale >= max(1, player.hand.size + len(player.waste)) for player in seen.players):
        raise ValueError("view: players.0.stale: this is a stalemate (RB-19)")


def _check_player(where: str, player: Player, turned: str | None, hidden: int, dealt: int) -> None:
    """Raise ValueError unless the piles of a player fit each other; `dealt` is the size of a dealt reserve."""
    reserve, hand, unseen = player.reserve, player.hand, player.unseen or []
    lowest = reserve.lowest or 0
    if lowest > dealt:
        raise ValueError(f"{where}.reserve: {dealt} cards are dealt to it, so its lowest count is not {lowest}")
    if reserve.face_down != max(lowest - 1, 0) or (lowest > 0) != (len(reserve.cards) > 0):
        raise ValueError(f"{where}.reserve: all cards but one of the lowest count were never seen, got {reserve}")
    if turned and hand.size == 0:
        raise ValueError(f"{where}.hand: the turned card belongs to a hand without cards")
    if hand.cards is None and hand.size > _dealt_hand(dealt):
        raise ValueError(f"{where}.hand: a dealt hand has at most {_dealt_hand(dealt)} cards, got {hand.size}")
    if hand.cards is not None:
        if len(hand.cards) != hand.size:
            raise ValueError(f"{where}.hand: {len(hand.cards)} cards, but the size is {hand.size}")
        if turned and hand.cards[0] != turned:
            raise ValueError(f"{where}.hand: its first card is {hand.cards[0]}, but {turned} is turned")
    if len(set(unseen)) != len(unseen) or len(unseen) != hidden:
        raise ValueError(f"{where}.unseen: expected {hidden} different cards, got {unseen}")
    if not reserve.cards and not hand.size and not player.waste:
        raise ValueError(f"{where}: a player without cards has won (RB-5)")


def _check_cards(seen: View) -> None:
    """Raise ValueError unless every card occurs twice, houses are runs, and loads fit."""
    cards = Counter(_shown_cards(seen))
    for number, player in enumerate(seen.players):
        for below, card in pairwise(player.reserve.cards):
            if abs(CODES[card] - CODES[below]) != 4:
                raise ValueError(f"view: players.{number}.reserve: {card} can't have been loaded on {below} (RB-9)")
        cards.update(player.unseen or [])
    for house, run in enumerate(seen.houses):
        for below, card in pairwise(run):
            if rules.KEYS[CODES[card]] + 1 != rules.KEYS[CODES[below]]:
                raise ValueError(f"view: houses.{house}: {card} can't lie on {below} (RB-8)")
    for suit, heights in seen.foundations.model_dump().items():
        if heights[0] < heights[1]:
            raise ValueError(f"view: foundations.{suit}: expected the higher pile first, got {heights}")
    for card in CARDS:
        if cards[card] != 2:
            raise ValueError(
                f"view: {_places(seen, card)}: the card {card} occurs {cards[card]} times; each is there twice"
            )


def _places(seen: View, card: str) -> str:
    """Return the places of a card in a view, or those of the face-down cards if it has none."""
    places = [f"houses.{house}" for house, run in enumerate(seen.houses) if card in run]
    for number, player in enumerate(seen.players):
        piles = {
            "reserve.cards": player.reserve.cards,
            "hand.cards": player.hand.cards,
            "waste": player.waste,
            "unseen": player.unseen,
        }
        places += [f"players.{number}.{name}" for name, cards in piles.items() if card in (cards or [])]
    if card == seen.turned:
        places.append("turned")
    if any(ACE_LOW.index(card[0]) < height for height in seen.foundations.model_dump()[card[1]]):
        places.append(f"foundations.{card[1]}")
    return ", ".join(places) or "players.0.unseen"


def picture(given: dict[str, Any]) -> str:
    """Return a view as text of at most 80 columns."""
    seat = given["seat"]
    lines = [f"Russian Bank   {_status(given)}"]
    for number, name in ((1 - seat, SEAT_NAMES[1]), (seat, SEAT_NAMES[0])):
        player = given["players"][number]
        reserve, hand, waste = player["reserve"], player["hand"], player["waste"]
        mark = ">" if given["to_move"] == number else " "
        turned = f" (turned {given['turned']})" if given["turned"] and mark == ">" else ""
        size = reserve["face_down"] + len(reserve["cards"])
        lines.append(
            f"{mark} {name:8} reserve {size:>3} {reserve['cards'][-1] if reserve['cards'] else '--'}"
            f"   waste {len(waste):>3} {waste[-1] if waste else '--'}   hand {hand['size']:>3}{turned}"
        )
        loads = reserve["cards"][-2::-1]
        lines += _card_lines("below", loads)
        lines += _card_lines("waste", waste)
        lines += _card_lines("hand", hand["cards"] or [])
        unseen = "  ".join(
            suit + " " + "".join(card[0] for card in player["unseen"] if card[1] == suit)
            for suit in SUITS
            if any(card[1] == suit for card in player["unseen"])
        )
        if unseen:
            lines.append(f"{'unseen':>10}  {unseen}")
    lines.append("")
    tops = (
        " ".join(f"{ACE_LOW[height - 1]}{suit}" if height else "--" for height in heights)
        for suit, heights in given["foundations"].items()
    )
    lines.append("foundations  " + "   ".join(tops))
    for left in range(4):
        columns = (f"H{house + 1} {' '.join(given['houses'][house]) or '--'}" for house in (left, left + 4))
        lines.append("".join(f"{column:40}" for column in columns).rstrip())
    return "\n".join(lines)


def _status(view: dict[str, Any]) -> str:
    """Return game, score and counters in one line."""
    seat = view["seat"]
    parts = []
    if view["options"].get("match"):
        parts.append(f"game {view['game_number'] + 1}")
    parts.append(f"score {view['scores'][seat]} to {view['scores'][1 - seat]}")
    if view["house_moves"]:
        parts.append(f"house moves {view['house_moves']}")
    if view["idle_turns"]:
        parts.append(f"idle turns {view['idle_turns']}")
    return "   ".join(parts)


def _card_lines(label: str, cards: list[str]) -> list[str]:
    """Return cards in their order, wrapped into lines."""
    lines = [" ".join(cards[first : first + 23]) for first in range(0, len(cards), 23)]
    return [f"{label if i == 0 else '':>10}  {line}" for i, line in enumerate(lines)]
