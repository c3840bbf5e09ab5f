"""Back Alley between states and people: notation, custom deals, JSON views, the terminal's picture."""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from card_envs.cards import ACE_HIGH, SUITS, deck, parse_pack
from card_envs.engine.table import Table
from card_envs.game import Int8s, Int64s, Ratio, State
from card_envs.games.back_alley import GAME, rules
from card_envs.games.back_alley.options import Options
from card_envs.games.back_alley.rules import BID, LITTLE_BLOOPER, NUM_CARDS

CARDS = (*deck(ACE_HIGH), "LB", "BB")
CODES = {card: code for code, card in enumerate(CARDS)}
BIDS = ("pass", *map(str, range(1, 13)), "board")
SEAT_NAMES = ("you", "left", "partner", "right")
PHASES = {"bidding": range(BID, rules.NUM_ACTIONS), "play": range(BID)}
RATIOS = (
    *(
        ratio
        for bid, name in enumerate(BIDS)
        for ratio in (
            Ratio(name, "of hands", rules.BIDS_MADE + bid, rules.HANDS, percent=True),
            Ratio(name, "contract made", rules.CONTRACTS_MADE + bid, rules.BIDS_MADE + bid, percent=True),
            # Own tricks beyond the own bid; a board is the side's, which has all tricks to take.
            Ratio(name, "tricks - bid", rules.TRICKS_OVER + bid, rules.BIDS_MADE + bid),
        )
    ),
    Ratio("second board or later (BA-8)", "of hands", rules.RAISED, rules.HANDS, percent=True),
    Ratio("passed out (BA-9)", "of hands", rules.PASSED_OUT, rules.HANDS, percent=True),
    Ratio("no trumps (BA-5)", "of hands", rules.NO_TRUMPS, rules.HANDS, percent=True),
    Ratio("Blooper laid aside (BA-5)", "of hands", rules.LAID_ASIDE, rules.HANDS, percent=True),
    Ratio("Blooper led (BA-13)", "of hands", rules.BLOOPER_LEADS, rules.HANDS, percent=True),
)


def true_card(state: State, card: int) -> int:
    """The card of the table behind a relative code."""
    return card if card >= LITTLE_BLOOPER else (card - 13 * int(state.shift)) % 52


def relative_card(state: State, card: int) -> int:
    """The relative code of a card of the table."""
    return card if card >= LITTLE_BLOOPER else (card + 13 * int(state.shift)) % 52


def card_texts(state: State, cards: int) -> list[str]:
    """A set of relative codes as texts, by suit and rank."""
    return [CARDS[code] for code in sorted(true_card(state, c) for c in range(NUM_CARDS) if int(cards) >> c & 1)]


def card_set(state: State, cards: list[str]) -> int:
    """The set of relative codes of some card texts."""
    return sum(1 << relative_card(state, CODES[card]) for card in set(cards))


def move_text(state: State, action: int) -> str:
    """An action in the notation of RULES.md: `pass`, `1` to `12`, `board`, or the card."""
    return BIDS[action - BID] if action >= BID else CARDS[true_card(state, action)]


def parse_move(state: State, text: str) -> int:
    """The action of a text, legal or not. Raises ValueError if it is neither bid nor card."""
    if text in BIDS:
        return BID + BIDS.index(text)
    if text in CODES:
        return relative_card(state, CODES[text])
    raise ValueError(f"{text!r} is no move of Back Alley; expected pass, 1 to 12, board, or a card such as AC, TD, BB")


def parse_deal(state: State, deal: object) -> list[Int8s]:
    """The packs of `{"dealer": 0, "size": 7, "packs": [[54 cards], …]}`; only `packs` is required."""
    if not isinstance(deal, dict) or "packs" not in deal:
        raise ValueError(f'deal: expected {{"dealer": 0, "packs": [[54 cards in dealing order], …]}}, got {deal!r:.80}')
    unknown = set(deal) - {"dealer", "size", "packs"}
    if unknown:
        raise ValueError(f"deal: unknown key {sorted(map(str, unknown))[0]!r}; expected dealer, size, packs")
    packs = deal["packs"]
    if isinstance(packs, str) or not isinstance(packs, (list, tuple)) or not packs:
        raise ValueError(f"deal.packs: expected a list of at least one pack, got {packs!r:.80}")
    if "size" in deal and not state.single:
        raise ValueError('deal.size: only for deals="single"; otherwise the option gives the sizes')
    arrays = []
    for i, pack in enumerate(packs):
        cards = parse_pack(pack, CODES, range(NUM_CARDS), f"deal.packs[{i}]")
        arrays.append(np.array([*cards, -1, -1], np.int8))
    arrays[0][NUM_CARDS] = _whole_number(deal.get("dealer", -1), -1 if "dealer" not in deal else 0, 3, "deal.dealer")
    arrays[0][NUM_CARDS + 1] = _whole_number(deal.get("size", -1), -1 if "size" not in deal else 1, 13, "deal.size")
    return arrays


def _whole_number(value: object, low: int, high: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise ValueError(f"{where}: expected a whole number from {low} to {high}, got {value!r}")
    return int(value)


def dealt_pack(state: State) -> Int8s:
    """The pack of the deal on the table, for `arrange`."""
    return np.array([*state.pack, state.dealer, state.hand_size if state.single else -1], np.int8)


def deal_text(packs: list[Int8s]) -> dict[str, Any]:
    """Packs as a custom deal: the reverse of `parse_deal`."""
    first = packs[0]
    set_by_hand = {"dealer": int(first[NUM_CARDS]), "size": int(first[NUM_CARDS + 1])}
    cards = [[CARDS[card] for card in pack[:NUM_CARDS]] for pack in packs]
    return {**{key: value for key, value in set_by_hand.items() if value >= 0}, "packs": cards}


def options_of(state: State) -> Options:
    """The options that the state was made with."""
    sizes = tuple(int(size) for size in state.sizes[: state.num_deals])
    deals: Any = "single" if state.single else None if sizes == rules.MATCH else sizes
    return Options(deals=deals, reward="win" if state.reward_win else "points")


def num_deals(state: State) -> int:
    """How many deals an episode counts (pass-outs aside)."""
    return int(state.num_deals)


def outcome(state: State) -> tuple[str, list[int]]:
    """The reason of the end ("" while it runs) and each seat's team points so far."""
    return "played" if state.over else "", [int(state.scores[seat & 1]) for seat in range(4)]


def outcomes(states: NDArray[Any]) -> tuple[NDArray[np.str_], Int64s]:
    return np.where(states["over"], "played", ""), states["scores"][:, rules.SIDES].astype(np.int64)


Card = Literal[CARDS]  # type: ignore[valid-type]
Seat = Annotated[int, Field(ge=0, le=3)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class LaidAside(_Model):
    seat: Seat
    card: Literal["LB", "BB"]


class Trick(_Model):
    leader: Seat
    cards: Annotated[list[Card], Field(min_length=1, max_length=4, description="in playing order")]


class View(_Model):
    """All that a seat sees. Optional parts follow from the others and are checked when given."""

    game: Literal["back_alley"]
    options: Annotated[dict[str, Any], Field(description="the options of the environment")]
    seat: Annotated[Seat, Field(description="whose view this is; 0 and 2 play 1 and 3")]
    deal_number: Annotated[int, Field(ge=0, le=99, description="0 for the first deal")]
    pass_outs: Annotated[int, Field(ge=0, le=7, description="deals passed out in a row at this size")] = 0
    size: Annotated[int, Field(ge=1, le=13, description="cards dealt to each hand")]
    dealer: Seat
    scores: Annotated[list[int], Field(min_length=4, max_length=4, description="points of each seat's team")]
    turned: Annotated[Card, Field(description="the card turned up")]
    laid_aside: LaidAside | None = None
    hand: Annotated[list[Card], Field(description="own cards")]
    bids: Annotated[list[Literal[BIDS]], Field(max_length=4, description="from left of the dealer")]  # type: ignore[valid-type]
    tricks: Annotated[list[Trick], Field(max_length=13, description="the last may be incomplete")]
    trump: Literal["C", "D", "H", "S"] | None = None
    hand_sizes: list[int] | None = None
    tricks_taken: list[int] | None = None
    contracts: list[int] | None = None
    board_levels: list[int] | None = None
    to_move: Seat | None = None
    legal: list[str] | None = None


SCHEMA: dict[str, Any] = View.model_json_schema()


def view(state: State, seat: int) -> dict[str, Any]:
    """All that a seat sees, ready for JSON; `SCHEMA` describes it."""
    mover = None if state.needs_deal else int(state.seat)
    mask = Table(GAME, state).legal() if mover == seat else np.zeros(0, np.int8)
    order = [(int(state.dealer) + 1 + k) & 3 for k in range(int(state.num_bids))]
    history = [CARDS[true_card(state, int(card))] for card in state.history[: state.num_played]]
    turned = int(state.turned)
    laid_by = int(state.laid_aside_by)
    laid_aside = {"seat": laid_by, "card": CARDS[105 - turned]} if laid_by >= 0 else None
    return {
        "game": GAME.name,
        "options": options_of(state).model_dump(mode="json", exclude_none=True),
        "seat": seat,
        "deal_number": int(state.deal_number) - int(state.over),
        "pass_outs": int(state.pass_outs),
        "size": int(state.hand_size),
        "dealer": int(state.dealer),
        "scores": outcome(state)[1],
        "turned": CARDS[turned],
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
        "to_move": mover,
        "legal": [move_text(state, int(action)) for action in np.flatnonzero(mask)],
    }


def from_view(given: dict[str, Any]) -> State:
    """A State with that view; hidden cards lie where the seat can't exclude them.

    Raises:
        ValueError: the view is malformed, contradicts itself or the rules, or shows no decision.
    """
    try:
        seen = View.model_validate(given)
        options = Options.model_validate(seen.options)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"view: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    state = rules.new_state(options)
    if seen.deal_number >= state.num_deals:
        raise ValueError(f"view: deal_number: there are {state.num_deals} deals, got {seen.deal_number}")
    if not state.single and state.sizes[seen.deal_number] != seen.size:
        raise ValueError(f"view: size: deal {seen.deal_number} has {state.sizes[seen.deal_number]} cards each")
    state.over = False
    state.deal_number, state.pass_outs, state.dealer = seen.deal_number, seen.pass_outs, seen.dealer
    state.sizes[seen.deal_number] = seen.size
    state.scores[:] = seen.scores[:2]
    table = Table(GAME, state)
    table.arrange(_plausible_pack(seen))
    state = table.state
    moves = [(None, bid) for bid in seen.bids] + [
        ((trick.leader + k) % 4, card) for trick in seen.tricks for k, card in enumerate(trick.cards)
    ]
    for seat, text in moves:
        _replay_move(table, seen, seat, text)
    if state.needs_deal:
        raise ValueError("view: the deal is finished; a view to build on shows a decision")
    _check_fits(state, seen.seat)
    table.redeal_hidden(seen.seat, 0)
    for key, value in view(state, seen.seat).items():
        if given.get(key) is not None and key != "options" and value != given[key]:
            if key not in ("hand", "legal") or sorted(value) != sorted(given[key]):
                raise ValueError(f"view: {key}: got {given[key]!r}, but the rest of the view makes it {value!r}")
    return state


def _replay_move(table: Table, seen: View, seat: int | None, text: str) -> None:
    state = table.state
    action = parse_move(state, text)
    bidding = state.num_bids < 4
    if state.needs_deal or bidding != (seat is None) or (seat is not None and seat != state.seat):
        raise ValueError(f"view: {text} can't be played at this point: the bidding and tricks don't follow the rules")
    known_hand = state.seat == seen.seat or bidding
    if known_hand and not table.legal()[action]:
        raise ValueError(f"view: {text} is no legal move for seat {state.seat} at that point")
    if not bidding and int(state.lacks[state.seat]) >> action & 1:
        raise ValueError(f"view: seat {state.seat} played {text}, but showed earlier that it holds none such")
    table.play(action)


def _plausible_pack(seen: View) -> Int8s:
    """A pack that deals every seat the cards it is known to have had, and fills up with unseen ones."""
    own: list[list[int]] = [[], [], [], []]
    for trick in seen.tricks:
        for k, card in enumerate(trick.cards):
            own[(trick.leader + k) % 4].append(CODES[card])
    own[seen.seat] += [CODES[card] for card in seen.hand]
    if seen.laid_aside and {seen.laid_aside.card, seen.turned} != {"LB", "BB"}:
        raise ValueError("view: laid_aside: only where the turned card is the other joker (BA-5)")
    aside = [CODES[seen.laid_aside.card]] if seen.laid_aside else []
    known = [code for hand in own for code in hand] + [CODES[seen.turned]] + aside
    if len(set(known)) < len(known):
        twice = next(CARDS[code] for code in known if known.count(code) > 1)
        raise ValueError(f"view: the card {twice} occurs twice")
    for seat, hand in enumerate(own):
        if len(hand) > seen.size or (seat == seen.seat and len(hand) != seen.size):
            raise ValueError(f"view: seat {seat} shows {len(hand)} cards of {seen.size}")
    spare = [code for code in range(NUM_CARDS) if code not in known]  # Bloopers last: not dealt out in BA-5
    for hand in own:
        while len(hand) < seen.size:
            hand.append(spare.pop(0))
    replacement = []
    if seen.laid_aside:
        replacement = [own[seen.laid_aside.seat].pop()]
        own[seen.laid_aside.seat] += aside
    hands = [own[(seen.dealer + 1 + k) % 4] for k in range(4)]
    dealt = [hands[k][i] for i in range(seen.size) for k in range(4)]
    return np.array([*dealt, CODES[seen.turned], *replacement, *spare, seen.dealer, -1], np.int8)


def _check_fits(state: State, seat: int) -> None:
    """Hall's condition: every group of hidden hands finds enough cards that its members may hold."""
    unseen = (1 << NUM_CARDS) - 1 - card_set(state, [CARDS[state.turned]])
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
                cards = " ".join(card_texts(state, fitting))
                raise ValueError(f"view: seats {group} can hold only {cards or 'nothing'}: too few cards")


def picture(given: dict[str, Any]) -> str:
    """A view as text of at most 80 columns."""
    seat, trump = given["seat"], given["trump"]
    relative = [SEAT_NAMES[(s - seat) % 4] for s in range(4)]
    bidders = [(given["dealer"] + 1 + k) % 4 for k in range(len(given["bids"]))]
    bids = dict(zip(bidders, given["bids"], strict=True))
    lines = [
        f"Back Alley   deal {given['deal_number'] + 1}   {given['size']} cards   "
        f"{'trump ' + trump if trump else 'no trump'} (turned {given['turned']})   "
        f"score {given['scores'][seat]} to {given['scores'][seat ^ 1]}",
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
        card = table.get(s, "") + ("  (led)" if trick and trick["leader"] == s else "")
        mark = ">" if given["to_move"] == s else " "
        dealer = " (dealer)" if given["dealer"] == s else ""
        lines.append(f"{mark} {SEAT_NAMES[k]:9}{s:>6}{bid:>8}{given['hand_sizes'][s]:>7}  {card}{dealer}".rstrip())
    for team, name in ((seat % 2, "we"), (1 - seat % 2, "they")):
        contract = given["contracts"][team] if len(bids) == 4 else "-"
        lines.append(f"{name:>6} took {given['tricks_taken'][team]:>2} of contract {contract}")
    by_suit = ["".join(f" {c}" for c in given["hand"] if c[1] == suit and c[0] not in "LB") for suit in SUITS]
    jokers = "".join(f" {c}" for c in given["hand"] if c in ("LB", "BB"))
    lines.append("hand: " + "  |".join(part for part in [*by_suit, jokers] if part))
    return "\n".join(lines)
