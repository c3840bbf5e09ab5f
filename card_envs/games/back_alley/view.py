"""Back Alley for people: notation, custom deals, JSON views, text pictures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from card_envs.cards import ACE_HIGH, SUITS, card_name, codes_of, deck, parse_pack
from card_envs.engine.table import Table
from card_envs.game import Cards, Choice, Int64s, Pack, Question, Rate, State, States
from card_envs.games.back_alley import GAME, rules
from card_envs.games.back_alley.options import Options
from card_envs.games.back_alley.rules import ACTION, LITTLE_BLOOPER, NUM_CARDS
from card_envs.options import as_json
from card_envs.views import (
    VERSION,
    Amount,
    Points,
    Strict,
    Version,
    check_int,
    deal_keys,
    follows,
    legal_texts,
    plain,
    play_shown,
    read,
    settled,
    to_move,
)

CARDS = (*deck(ACE_HIGH), "LB", "BB")
CODES = {card: code for code, card in enumerate(CARDS)}
BIDS = ("pass", *map(str, range(1, 13)), "board")
TEXTS = (*CARDS, *BIDS)
SEAT_NAMES = ("you", "left", "partner", "right")
LEGEND = (
    ("7S, TD, QH", "a card: rank and suit. T is the ten; C clubs, D diamonds, H hearts, S spades"),
    ("BB, LB", "the Big and the Little Blooper, the two highest trumps"),
    ("pass, 1, 2, …", "a bid: how many tricks you promise; your partner's are added"),
    ("board", "a bid: your team will take every trick"),
)
CHOICES = (
    Choice(
        "deals",
        "Length",
        ((None, "a match of 25 deals"), ("single", "one deal, of any size"), ((13,), "one deal of 13 cards each")),
    ),
    Choice(
        "blooper_turned",
        "When a Blooper is turned up",
        (("no_trump", "there are no trumps"), ("redraw", "the next card is turned up instead")),
    ),
)
GOAL = "Bid, together with your partner, how many tricks you will take, and take them: the team with more points wins."
MINUTES = 45
ENDS = {"played": ""}
QUESTIONS = (
    Question("How many tricks do you bid? Your partner's bid is added.", BIDS),
    Question("Your turn: play a card."),
)
PHASES = {"bidding": range(ACTION.bid, ACTION.bid + rules.NUM_BIDS), "play": range(ACTION.bid)}
RATES = (
    *(
        ratio
        for bid, name in enumerate(BIDS)
        for ratio in (
            Rate(name, "of hands", "bids_made", per="hands", entry=bid, percent=True),
            Rate(name, "contract made", "contracts_made", per="bids_made", entry=bid, percent=True),
            # Tricks beyond the bid; a board obliges the side to take all tricks.
            Rate(name, "tricks - bid", "tricks_over", per="bids_made", entry=bid),
        )
    ),
    Rate("second board or later (BA-8)", "of hands", "raised", per="hands", percent=True),
    Rate("passed out (BA-9)", "of hands", "passed_out", per="hands", percent=True),
    Rate("no trumps (BA-5)", "of hands", "no_trumps", per="hands", percent=True),
    Rate("Blooper laid aside (BA-5)", "of hands", "laid_aside", per="hands", percent=True),
    Rate("Blooper led (BA-13)", "of hands", "blooper_leads", per="hands", percent=True),
)


def true_card(state: State, card: int) -> int:
    """Return the true card for a relative code."""
    return card if card >= LITTLE_BLOOPER else (card - 13 * int(state.shift)) % 52


def relative_card(state: State, card: int) -> int:
    """Return the relative code of a true card."""
    return card if card >= LITTLE_BLOOPER else (card + 13 * int(state.shift)) % 52


def card_texts(state: State, cards: Cards) -> list[str]:
    """Return a set of relative codes as texts, by suit and rank."""
    return [CARDS[code] for code in sorted(true_card(state, code) for code in codes_of(int(cards)))]


def card_set(state: State, cards: list[str]) -> int:
    """Return the set of relative codes of card texts."""
    return sum(1 << relative_card(state, CODES[card]) for card in set(cards))


def move_text(state: State, action: int) -> str:
    """Return an action in the notation of RULES.md: `pass`, `1` to `12`, `board`, or the card."""
    return TEXTS[action if action >= ACTION.bid else true_card(state, action)]


def move_words(text: str) -> str:
    """Return a move in words: `play the queen of hearts`, `bid 3 tricks`."""
    if text in CODES:
        return f"play the {card_name(text)}"
    if text == "pass":
        return text
    return "bid every trick" if text == "board" else f"bid {text} {'trick' if text == '1' else 'tricks'}"


def question(view: dict[str, Any]) -> str:
    """Return what a bid is added to, once the partner has bid (BA-7)."""
    partners = _partners_bid(view)
    if partners is None or len(view["bids"]) == 4:
        return ""
    if partners == "board":
        return "Your partner bid board: your team must take every trick. What do you bid?"
    if partners == "pass":
        return "Your partner passed. How many tricks do you bid?"
    return f"Your partner bid {partners}. How many tricks do you add?"


def move_notes(view: dict[str, Any]) -> dict[str, str]:
    """Return the team's contract by each legal bid, once the partner has bid (BA-7)."""
    partners = _partners_bid(view)
    if partners is None or len(view["bids"]) == 4:
        return {}
    notes = {}
    for bid in view["legal"]:
        contract = BIDS.index(bid) + BIDS.index(partners)
        together = f"together {contract}{', too many' if contract > view['size'] else ''}"
        notes[bid] = "every trick" if "board" in (bid, partners) else together
    return notes


def _partners_bid(view: dict[str, Any]) -> str | None:
    """Return what the partner of a view's seat bid; None if it has not bid yet."""
    partners_turn = (view["seat"] + 1 - view["dealer"]) % 4
    return view["bids"][partners_turn] if partners_turn < len(view["bids"]) else None


def parse_move(state: State, text: str) -> int:
    """Return the action for a text, legal or not. Raises ValueError if it is neither a bid nor a card."""
    if not isinstance(text, str):
        raise ValueError(f"move: expected a text, got {text!r:.80}")
    if text in BIDS:
        return ACTION.bid + BIDS.index(text)
    if text in CODES:
        return relative_card(state, CODES[text])
    raise ValueError(
        f"{text!r:.80} is not a move of Back Alley; expected pass, 1 to 12, board, or a card such as AC, BB"
    )


def parse_deal(state: State, deal: object) -> list[Pack]:
    """Return the packs of `{"dealer": 0, "size": 7, "packs": [[54 cards], …]}`; only `packs` is required."""
    custom_deal = deal_keys(
        deal, "packs", "dealer", "size", example='{"dealer": 0, "packs": [[54 cards in dealing order], …]}'
    )
    packs = custom_deal["packs"]
    if isinstance(packs, str) or not isinstance(packs, (list, tuple)) or not packs:
        raise ValueError(f"deal.packs: expected a list of at least one pack, got {packs!r:.80}")
    if "size" in custom_deal and not state.single:
        raise ValueError('deal.size: only for deals="single"; otherwise the option gives the sizes')
    arrays = []
    for i, pack in enumerate(packs):
        cards = parse_pack(pack, CODES, range(NUM_CARDS), f"deal.packs[{i}]")
        arrays.append(np.array([*cards, -1, -1], np.int8))
    if "dealer" in custom_deal:
        arrays[0][NUM_CARDS] = check_int(custom_deal["dealer"], 0, 3, "deal.dealer")
    if "size" in custom_deal:
        arrays[0][NUM_CARDS + 1] = check_int(custom_deal["size"], 1, 13, "deal.size")
    return arrays


def dealt_pack(state: State) -> Pack:
    """Return the pack of the deal on the table, for `set_deal`."""
    return np.array([*state.pack, state.dealer, state.hand_size if state.single else -1], np.int8)


def deal_text(packs: list[Pack]) -> dict[str, Any]:
    """Return packs as a custom deal: the inverse of `parse_deal`."""
    first = packs[0]
    set_by_hand = {"dealer": int(first[NUM_CARDS]), "size": int(first[NUM_CARDS + 1])}
    cards = [[CARDS[card] for card in pack[:NUM_CARDS]] for pack in packs]
    return {**{key: value for key, value in set_by_hand.items() if value >= 0}, "packs": cards}


def options_of(state: State) -> Options:
    """Return the options that the state was made with."""
    sizes = tuple(int(size) for size in state.sizes[: state.num_deals])
    deals: Any = "single" if state.single else None if sizes == rules.MATCH else sizes
    return Options(
        deals=deals,
        blooper_turned="redraw" if state.redraws else "no_trump",
        reward="win" if state.reward_win else "points",
    )


def event_text(state: State, action: int, names: Sequence[str]) -> str:
    """Return who takes the trick that a card completes."""
    if int(state.num_played) & 3 != 3:
        return ""
    winner = int(state.seat) if int(state.beats) >> action & 1 else int(state.best_seat)
    return f"The trick goes to {names[winner]}."


def num_deals(state: State) -> int:
    """Return the number of deals in an episode, without pass-outs."""
    return int(state.num_deals)


def outcome(state: State) -> tuple[str, list[int]]:
    """Return the reason of the end ("" while it runs) and each seat's team points so far."""
    return "played" if state.over else "", [int(state.scores[seat & 1]) for seat in range(4)]


def outcomes(states: States) -> tuple[NDArray[np.str_], Int64s]:
    return np.where(states["over"], "played", ""), states["scores"][:, list(rules.SIDES)].astype(np.int64)


Card = Literal[CARDS]  # type: ignore[valid-type]
Seat = Annotated[int, Field(ge=0, le=3)]


class LaidAside(Strict):
    """A joker that was laid aside (BA-5)."""

    seat: Annotated[Seat, Field(description="who had it")]
    card: Literal["LB", "BB"]


class Trick(Strict):
    leader: Seat | None = follows("who played the first card")
    cards: Annotated[list[Card], Field(min_length=1, max_length=4, description="in playing order")]


class View(Strict):
    """The view of a seat."""

    version: Version = VERSION
    game: Literal["back_alley"] = "back_alley"
    options: Annotated[Options, Field(description="of the episode")] = Options()
    seat: Annotated[Seat, Field(description="whose view this is; 0 and 2 play 1 and 3, clockwise")]
    deal_number: Annotated[int, Field(ge=0, le=99)] | None = Field(
        None, description="0 for the first deal; left out: the first deal of this size"
    )
    pass_outs: Annotated[int, Field(ge=0, le=7, description="deals passed out in a row at this size")] = 0
    size: Annotated[int, Field(ge=1, le=13)] | None = follows("cards dealt to each hand")
    dealer: Seat
    scores: list[Points] = Field([0] * 4, min_length=4, max_length=4, description="points of each seat's team")
    turned: Annotated[Card, Field(description="the card turned up, the last one if there were several")]
    redrawn: list[Literal["LB", "BB"]] = Field(
        [], max_length=2, description="jokers turned up before it and replaced (BA-5), in order"
    )
    laid_aside: LaidAside | None = Field(None, description="null: no joker was laid aside (BA-5)")
    hand: Annotated[list[Card], Field(description="own cards, in any order")]
    bids: list[Literal[BIDS]] = Field([], max_length=4, description="from left of the dealer")  # type: ignore[valid-type]
    tricks: list[Trick] = Field([], max_length=13, description="the last may be incomplete")
    trump: Literal["C", "D", "H", "S"] | None = follows("suit of the card turned up; null: no trump")
    hand_sizes: list[Amount] | None = follows("cards in each hand")
    tricks_taken: list[Amount] | None = follows("by team 0 (seats 0 and 2) and team 1")
    contracts: list[Amount] | None = follows("of team 0 and team 1")
    board_levels: list[Amount] | None = follows("of each seat (BA-8); 0: no board")
    to_move: Seat | None = follows("the seat to move; null: none")
    legal: list[str] | None = follows("the legal moves of the seat")


SCHEMA: dict[str, Any] = View.model_json_schema()


def view(state: State, seat: int) -> dict[str, Any]:
    """Return everything that a seat may know, ready for JSON; `SCHEMA` describes it."""
    original, state = state, plain(state)
    order = [(int(state.dealer) + 1 + k) & 3 for k in range(int(state.num_bids))]
    history = [CARDS[true_card(state, int(card))] for card in state.history[: state.num_played]]
    turned, first = int(state.turned), 4 * int(state.hand_size)
    laid_by = int(state.laid_aside_by)
    laid_aside = {"seat": laid_by, "card": CARDS[105 - turned]} if laid_by >= 0 else None
    return {
        "version": VERSION,
        "game": GAME.name,
        "options": as_json(options_of(state)),
        "seat": seat,
        "deal_number": int(state.deal_number) - int(state.over),
        "pass_outs": int(state.pass_outs),
        "size": int(state.hand_size),
        "dealer": int(state.dealer),
        "scores": outcome(state)[1],
        "turned": CARDS[turned],
        "redrawn": [CARDS[card] for card in state.pack[first : first + int(state.redrawn).bit_count()]],
        "laid_aside": laid_aside,
        "hand": card_texts(state, state.hands[seat]),
        "bids": [BIDS[state.bids[bidder]] for bidder in order],
        "tricks": [
            {"leader": int(state.leaders[i // 4]), "cards": history[i : i + 4]} for i in range(0, len(history), 4)
        ],
        "trump": SUITS[turned // 13] if turned < LITTLE_BLOOPER else None,
        "hand_sizes": [int(hand).bit_count() for hand in state.hands],
        "tricks_taken": [int(taken) for taken in state.tricks],
        "contracts": [int(contract) for contract in state.contracts],
        "board_levels": [int(level) for level in state.levels],
        "to_move": to_move(state),
        "legal": legal_texts(GAME, original, seat, state),
    }


def from_view(given: dict[str, Any]) -> State:
    """Return a State with this view; hidden cards are placed where the seat can't exclude them.

    Raises:
        ValueError: the view is malformed, contradicts itself or the rules, or shows no decision.
    """
    seen = read(View, given)
    leaders = _leaders(seen)
    known_cards = [[*seen.hand] if seat == seen.seat else [] for seat in range(4)]  # known to be dealt to each seat
    for leader, trick in zip(leaders, seen.tricks, strict=True):
        for k, card in enumerate(trick.cards):
            known_cards[(leader + k) % 4].append(card)
    size = len(known_cards[seen.seat]) if seen.size is None else seen.size
    _check_cards(seen, known_cards, size)
    table = Table(GAME, _state_before(seen, size))
    table.set_deal(_plausible_pack(seen, known_cards, size))
    for k, bid in enumerate(seen.bids):
        play_shown(table, (seen.dealer + 1 + k) % 4, bid, f"bids.{k}")
    for i, (leader, trick) in enumerate(zip(leaders, seen.tricks, strict=True)):
        for k, card in enumerate(trick.cards):
            _play_card(table, seen, (leader + k) % 4, card, f"tricks.{i}.cards.{k}")
    _check_fits(table.state, seen.seat)
    return settled(table, given, ("hand", "legal"))


def _leaders(seen: View) -> list[int]:
    """Return the leader of each trick, as given or by BA-10 and BA-11."""
    bids = [BIDS.index(bid) for bid in seen.bids]
    boards = [k for k, bid in enumerate(seen.bids) if bid == "board"]
    first = boards[-1] if boards else bids.index(max(bids)) if bids else 0
    next_leader = (seen.dealer + 1 + first) % 4
    leaders = []
    for trick in seen.tricks:
        leader = next_leader if trick.leader is None else trick.leader
        leaders.append(leader)
        best = max(trick.cards, key=lambda card: strength(card, trick.cards[0][1], seen.turned[1]))
        next_leader = (leader + trick.cards.index(best)) % 4
    return leaders


def strength(card: str, led: str, trump: str) -> tuple[bool, bool, int]:
    """Return the sort key of a card in a trick, from suits as letters; the jokers (`B`) are trumps."""
    suit = trump if card[1] == "B" else card[1]
    return suit == trump, suit == led, CODES[card] if card[1] == "B" else CODES[card] % 13


def _check_cards(seen: View, known_cards: list[list[str]], size: int) -> None:
    """Raise ValueError for a card shown twice or a seat with too many cards."""
    if seen.laid_aside and {seen.laid_aside.card, seen.turned} != {"LB", "BB"}:
        raise ValueError("view: laid_aside: only where the turned card is the other joker (BA-5)")
    redraws, left = seen.options.blooper_turned == "redraw", NUM_CARDS - 4 * size - len(seen.redrawn)
    if seen.redrawn and (not redraws or left < 1):
        raise ValueError('view: redrawn: only with blooper_turned="redraw" and another card to turn up (BA-5)')
    if redraws and CODES[seen.turned] >= LITTLE_BLOOPER and left > 1:
        raise ValueError('view: turned: with blooper_turned="redraw" a joker is replaced: it belongs in `redrawn`')
    places: dict[str, str] = {}
    shown_cards = [("hand", seen.hand), ("turned", [seen.turned]), ("redrawn", [*seen.redrawn])]
    shown_cards += [(f"tricks.{i}.cards", trick.cards) for i, trick in enumerate(seen.tricks)]
    shown_cards += [("laid_aside.card", [seen.laid_aside.card])] if seen.laid_aside else []
    for place, cards in shown_cards:
        for card in cards:
            if card in places:
                raise ValueError(f"view: {place}: the card {card} occurs twice; it is in {places[card]} as well")
            places[card] = place
    for seat, cards in enumerate(known_cards):
        if len(cards) > size or (seat == seen.seat and len(cards) != size):
            where = "hand" if seat == seen.seat else "tricks"
            raise ValueError(f"view: {where}: seat {seat} shows {len(cards)} cards, the deal (`size`) has {size} each")


def _state_before(seen: View, size: int) -> State:
    """Return the match at the start of the deal."""
    state = rules.new_state(seen.options)
    sizes = [int(size) for size in state.sizes[: state.num_deals]]
    number = seen.deal_number
    if number is None:
        number = sizes.index(size) if size in sizes else 0
    if number >= len(sizes):
        raise ValueError(f"view: deal_number: there are {len(sizes)} deals, got {number}")
    if not state.single and sizes[number] != size:
        raise ValueError(f"view: size: deal {number} has {sizes[number]} cards each, got {size}")
    state.over = False
    state.deal_number, state.pass_outs, state.dealer = number, seen.pass_outs, seen.dealer
    state.sizes[number] = size
    state.scores[:] = seen.scores[:2]
    return state


def _play_card(table: Table, seen: View, seat: int, card: str, where: str) -> None:
    if not table.needs_deal and int(table.state.lacks[seat]) >> relative_card(table.state, CODES[card]) & 1:
        raise ValueError(f"view: {where}: seat {seat} played {card}, but showed earlier that it holds none such")
    play_shown(table, seat, card, where, known=seat == seen.seat or len(seen.bids) < 4)


def _plausible_pack(seen: View, known_cards: list[list[str]], size: int) -> Pack:
    """Return a pack that deals every seat the cards that it is known to have had, filled up with unseen ones."""
    hands_by_seat = [[CODES[card] for card in cards] for cards in known_cards]
    aside = [CODES[seen.laid_aside.card]] if seen.laid_aside else []
    turned = [CODES[card] for card in (*seen.redrawn, seen.turned)]
    known = {code for hand in hands_by_seat for code in hand} | {*turned, *aside}
    spare = [code for code in range(NUM_CARDS) if code not in known]  # Bloopers last, so that BA-5 does not apply
    for hand in hands_by_seat:
        while len(hand) < size:
            hand.append(spare.pop(0))
    replacement = []
    if seen.laid_aside:
        replacement = [hands_by_seat[seen.laid_aside.seat].pop()]
        hands_by_seat[seen.laid_aside.seat] += aside
    hands = [hands_by_seat[(seen.dealer + 1 + k) % 4] for k in range(4)]
    dealt = [hands[k][i] for i in range(size) for k in range(4)]
    return np.array([*dealt, *turned, *replacement, *spare, seen.dealer, -1], np.int8)


def _check_fits(state: State, seat: int) -> None:
    """Raise ValueError unless the hidden hands can be filled.

    Hall's condition: the members of every group of hidden hands may together hold at least as many cards as they have
    places.
    """
    unseen = (1 << NUM_CARDS) - 1 - card_set(state, [CARDS[state.turned]])
    unseen &= ~(int(state.redrawn) << LITTLE_BLOOPER)
    for cards in (state.hands[seat], *state.played):
        unseen &= ~int(cards)
    if state.laid_aside_by >= 0:
        unseen &= ~(3 << LITTLE_BLOOPER)
    others = [s for s in range(4) if s != seat]
    for number in (1, 2, 3):
        for group in combinations(others, number):
            fitting = 0
            for s in group:
                fitting |= unseen & ~int(state.lacks[s])
            if fitting.bit_count() < sum(int(state.hands[s]).bit_count() for s in group):
                cards = " ".join(card_texts(state, np.uint64(fitting)))
                raise ValueError(f"view: seats {group} can hold only {cards or 'nothing'}: too few cards")


def picture(given: dict[str, Any]) -> str:
    """Return a view as text of at most 80 columns."""
    seat, trump = given["seat"], given["trump"]
    relative = [SEAT_NAMES[(s - seat) % 4] for s in range(4)]
    bidders = [(given["dealer"] + 1 + k) % 4 for k in range(len(given["bids"]))]
    bids = dict(zip(bidders, given["bids"], strict=True))
    lines = [
        f"Back Alley   deal {given['deal_number'] + 1}   {given['size']} cards   "
        f"{'trump ' + trump if trump else 'no trump'} (turned {' '.join((*given['redrawn'], given['turned']))})   "
        f"score {given['scores'][seat]} to {given['scores'][seat ^ 1]}"
    ]
    if given["laid_aside"]:
        lines.append(f"{given['laid_aside']['card']} laid aside by {relative[given['laid_aside']['seat']]}")
    tricks = given["tricks"]
    trick = tricks[-1] if tricks else None
    table = {(trick["leader"] + k) % 4: card for k, card in enumerate(trick["cards"])} if trick else {}
    complete = trick is not None and len(trick["cards"]) == 4 and given["to_move"] is not None
    label = "last trick" if complete else "trick"
    lines.append(f"{'':11}{'seat':>6}{'bid':>8}{'cards':>7}  {label}")
    for k in range(4):
        s = (seat + k) % 4
        level = given["board_levels"][s]
        bid = bids.get(s, "-") + (f" x{level}" if level > 1 else "")
        card = table.get(s, "")
        card += " (trump)" if card and card[1] in (trump, "B") else ""
        card += " (led)" if trick and trick["leader"] == s else ""
        mark = ">" if given["to_move"] == s else " "
        dealer = " (dealer)" if given["dealer"] == s else ""
        lines.append(f"{mark} {SEAT_NAMES[k]:9}{s:>6}{bid:>8}{given['hand_sizes'][s]:>7}  {card}{dealer}".rstrip())
    for team, name in ((seat % 2, "we"), (1 - seat % 2, "they")):
        contract = given["contracts"][team] if len(bids) == 4 else "-"
        lines.append(f"{name:>6} took {given['tricks_taken'][team]:>2} of contract {contract}")
    plain = ["".join(f" {card}" for card in given["hand"] if card[1] == suit != trump) for suit in SUITS]
    high = "".join(f" {card}" for card in given["hand"] if card[1] in (trump, "B"))
    lines.append("hand:" + "  |".join(part for part in (*plain, f" trumps:{high}" if high else "") if part))
    return "\n".join(lines)
