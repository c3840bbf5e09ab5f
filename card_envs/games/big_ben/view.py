"""Big Ben for people: notation, custom deals, JSON views, text pictures."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from card_envs.cards import ACE_LOW, SUITS, deck, parse_pack
from card_envs.engine.table import Table
from card_envs.game import Choice, Int64s, Pack, Question, Rate, State, States
from card_envs.games.big_ben import GAME, rules
from card_envs.games.big_ben.options import Options
from card_envs.games.big_ben.rules import (
    ALL_TO_COME,
    FLOOR,
    FOUNDATIONS,
    FULL_PILE,
    MAX_HEIGHT,
    MAX_HOPS,
    NO_CARD,
    PACK_SIZE,
    SORTED_PACK,
    STOCK_SIZE,
    UP,
)
from card_envs.options import as_json
from card_envs.views import (
    VERSION,
    Amount,
    Strict,
    Version,
    deal_keys,
    follows,
    legal_texts,
    plain,
    read,
    settled,
    to_move,
)

CARDS = deck(ACE_LOW)
CODES = {card: code for code, card in enumerate(CARDS)}
SEAT_NAMES = ("you",)
GOAL = "Build up all twelve foundations of the clock until each shows its hour."
MINUTES = 15
ENDS = {"won": "", "lost": f"no move left, {{score}} of {PACK_SIZE} cards placed"}
QUESTIONS = (Question("Your turn: move a card, or deal.", ("deal",)), Question("Your turn: move a card."))
MARGIN_UNIT = "cards (those of a won game count twice)"
LEGEND = (
    ("T1 … T12", "the pile beside that hour of the clock"),
    ("W", "the waste, where the stock is dealt"),
    ("F", "a foundation, inside the clock"),
    ("T3-T5", "a move: the top card of one pile goes to another"),
    ("T3-F, W-F", "the card goes to the foundation that takes it"),
    ("deal", "fill all gaps from the stock; without gaps, deal a card to the waste"),
)
CHOICES = (
    Choice(
        "fill_order",
        "Gaps are filled",
        (("rounds", "in rounds: a card to each short pile"), ("pile_by_pile", "pile by pile, each up to three cards")),
    ),
    Choice(
        "waste_deal",
        "A card may be dealt to the waste",
        (("always", "whenever there is no gap"), ("when_stuck", "only when nothing else can be played")),
    ),
    Choice(
        "waste_to",
        "A card of the waste may go",
        (("anywhere", "to foundations and piles"), ("foundations", "to foundations only")),
    ),
    Choice("redeals", "The waste is turned over", ((0, "never"), (1, "once"))),
    Choice("build_on", "Cards may be built on", (("full_piles", "piles of at least three"), ("any_pile", "any pile"))),
)
RATES = (
    Rate("cards placed", "a lost deal", "placed", per="lost"),
    Rate("foundations complete", "a lost deal", "complete", per="lost"),
    Rate("cards left in the waste", "a lost deal", "in_waste", per="lost"),
)
HOURS = ("12", *map(str, range(1, 12)))
PILES = tuple(f"T{hour}" for hour in HOURS)
PLACE_NAMES = {"W": "the waste", "F": "a foundation"}


def _runs() -> tuple[tuple[str, ...], ...]:
    """Return the cards of each foundation from base to last (BB-1, BB-4)."""
    runs = []
    for hour, (base, _) in enumerate(FOUNDATIONS):
        run = [CODES[base]]
        for _ in range(ALL_TO_COME[hour]):
            run.append(int(UP[run[-1]]))
        runs.append(tuple(CARDS[code] for code in run))
    return tuple(runs)


RUNS = _runs()
SPANS = ", ".join(f"{hour}: {run[0]}-{run[-1]}" for hour, run in zip(HOURS, RUNS))


def _all_moves() -> tuple[str, ...]:
    """Return the text of each action, in the order of the table in RULES.md."""
    from_piles = [
        f"{source}-{target}" for source in PILES for target in ("F", *(pile for pile in PILES if pile != source))
    ]
    return (*from_piles, *(f"W-{target}" for target in ("F", *PILES)), "deal")


MOVES = _all_moves()


def move_text(state: State, action: int) -> str:
    """Return an action in the notation of RULES.md: `T3-F`, `T3-T7`, `W-F`, `W-T2` or `deal`."""
    return MOVES[action]


def moved_card(view: dict[str, Any], move: str) -> str:
    """Return the top card of the pile or the waste that a move takes it from."""
    cards = view["waste"] if move.startswith("W") else view["piles"].get(move.partition("-")[0])
    return str(cards[-1]) if cards else ""


def move_words(text: str) -> str:
    """Return a move in words: `move a card from pile 3 to pile 7`."""
    if text == "deal":
        return "deal from the stock"
    source, target = (f"pile {place[1:]}" if place in PILES else PLACE_NAMES[place] for place in text.split("-"))
    return f"move a card from {source} to {target}"


def question(view: dict[str, Any]) -> str:
    """Return what remains to do if no card can be moved."""
    return "No card can be moved: deal." if view["legal"] == ["deal"] else ""


def parse_move(state: State, text: str) -> int:
    """Return the action for a text, legal or not. Raises ValueError if it is not a move."""
    if not isinstance(text, str):
        raise ValueError(f"move: expected a text, got {text!r:.80}")
    if text in MOVES:
        return MOVES.index(text)
    raise ValueError(f"{text!r:.80} is not a move of Big Ben; expected such as T3-F, T3-T7, W-F, W-T2, or deal")


def parse_deal(state: State, deal: object) -> list[Pack]:
    """Return the pack of `{"pack": [92 cards in dealing order]}`."""
    pack = deal_keys(deal, "pack", example=f'{{"pack": [{PACK_SIZE} cards in dealing order]}}')["pack"]
    return [np.array(parse_pack(pack, CODES, SORTED_PACK.tolist(), "deal.pack"), np.int8)]


def dealt_pack(state: State) -> Pack:
    """Return the pack of the deal on the table, for `set_deal`."""
    return np.array(state.pack, np.int8)


def deal_text(packs: list[Pack]) -> dict[str, Any]:
    """Return packs as a custom deal: the inverse of `parse_deal`."""
    return {"pack": [CARDS[card] for card in packs[0]]}


def options_of(state: State) -> Options:
    """Return the options that the state was made with."""
    return Options(
        fill_order="pile_by_pile" if state.pile_by_pile else "rounds",
        waste_deal="when_stuck" if state.when_stuck else "always",
        waste_to="anywhere" if state.waste_piles else "foundations",
        redeals=1 if state.redeals else 0,
        build_on="full_piles" if state.open_from == FULL_PILE else "any_pile",
        reward="win" if state.reward_win else "cards",
    )


def outcome(state: State) -> tuple[str, list[int]]:
    """Return the reason of the end ("" while it runs) and the number of cards placed so far."""
    placed = int(state.num_placed)
    return ("won" if placed == PACK_SIZE else "lost") if state.over else "", [placed]


def outcomes(states: States) -> tuple[NDArray[np.str_], Int64s]:
    placed = states["num_placed"].astype(np.int64)
    return np.where(states["over"], np.where(placed == PACK_SIZE, "won", "lost"), ""), placed[:, None]


Card = Literal[CARDS]  # type: ignore[valid-type]
Pile = Literal[PILES]  # type: ignore[valid-type]
Hour = Literal[HOURS]  # type: ignore[valid-type]


class View(Strict):
    """The view of the player."""

    version: Version = VERSION
    game: Literal["big_ben"] = "big_ben"
    options: Annotated[Options, Field(description="of the episode")] = Options()
    seat: Annotated[Literal[0], Field(description="there is only one")]
    foundations: Annotated[
        dict[Hour, Card], Field(description=f"the top card at each hour, from base to last: {SPANS}")
    ]
    piles: Annotated[
        dict[Pile, list[Card]], Field(description="the cards of each pile, from the bottom; `T12` and `T1` to `T11`")
    ]
    waste: list[Card] = Field([], max_length=STOCK_SIZE, description="from the bottom")
    hops: Annotated[int, Field(ge=0, le=MAX_HOPS, description="hops in a row (BB-10)")] = 0
    redealt: Annotated[bool, Field(description="whether the waste was turned over (BB-9)")] = False
    stock: list[Card] | None = Field(
        None,
        description="the cards in it, by suit and rank; follows from the rest. Once the waste was turned over, they "
        "are in order, the next one first, and must be given",
    )
    stock_size: Amount | None = follows("cards in the stock")
    to_come: dict[Hour, Amount] | None = follows("cards still to come at each hour")
    placed: Amount | None = follows("cards placed on foundations")
    to_move: Literal[0] | None = follows("the seat to move; null: none")
    legal: list[str] | None = follows("the legal moves")


SCHEMA: dict[str, Any] = View.model_json_schema()


def view(state: State, seat: int) -> dict[str, Any]:
    """Return everything that the player may know, ready for JSON; `SCHEMA` describes it."""
    original, state = state, plain(state)
    to_come = [int(left) for left in state.to_come]
    redealt, stock = bool(state.stock_end > PACK_SIZE), stock_of(state)
    return {
        "version": VERSION,
        "game": GAME.name,
        "options": as_json(options_of(state)),
        "seat": seat,
        "foundations": {hour: RUNS[i][-1 - to_come[i]] for i, hour in enumerate(HOURS)},
        "piles": {
            name: [CARDS[card] for card in pile[FLOOR : FLOOR + height]]
            for name, pile, height in zip(PILES, state.piles, state.heights, strict=True)
        },
        "waste": [CARDS[card] for card in state.waste[: state.num_waste]],
        "hops": int(state.hops),
        "redealt": redealt,
        "stock": [CARDS[card] for card in (stock if redealt else sorted(stock))],
        "stock_size": int(state.stock_end) - int(state.num_dealt),
        "to_come": dict(zip(HOURS, to_come, strict=True)),
        "placed": int(state.num_placed),
        "to_move": to_move(state),
        "legal": legal_texts(GAME, original, seat, state),
    }


def stock_of(state: State) -> list[int]:
    """Return the cards of the stock in order, known or not."""
    first, end = int(state.num_dealt), int(state.stock_end)
    if end > PACK_SIZE:
        return [int(card) for card in state.waste[first - PACK_SIZE : end - PACK_SIZE]]
    return [int(card) for card in state.pack[first:end]]


def from_view(given: dict[str, Any]) -> State:
    """Return a State with this view; a stock of unknown order is in a random one, the same for equal views.

    Raises:
        ValueError: the view is malformed, contradicts itself or the rules, or shows no decision.
    """
    seen = read(View, given)
    state = rules.new_state(seen.options)
    state.over = state.needs_deal = False
    laid = _lay_foundations(state, seen) + _lay_piles(state, seen)
    _lay_stock(state, laid, seen, _stock(seen, laid))
    # In plain Python: compiling would not pay for a single state.
    getattr(rules.look_afresh, "py_func", rules.look_afresh)(state)
    state.hops = seen.hops
    if state.hops and not _could_have_hopped(state):
        raise ValueError(
            "view: hops: after a hop (BB-10) its card lies on one copy of a card and the other is a top card"
        )
    return settled(Table(GAME, state), given, ("legal",) if seen.redealt else ("stock", "legal"))


def _lay_foundations(state: State, seen: View) -> list[str]:
    """Set the foundations; return the cards placed on them."""
    placed: list[str] = []
    for i, (hour, run) in enumerate(zip(HOURS, RUNS, strict=True)):
        top = seen.foundations.get(hour)
        if top not in run:
            raise ValueError(f"view: foundations.{hour}: hour {hour} shows one of {' '.join(run)}, got {top}")
        height = run.index(top)
        state.to_come[i] = len(run) - 1 - height
        placed += run[1 : height + 1]
    state.num_placed = len(placed)
    return placed


def _lay_piles(state: State, seen: View) -> list[str]:
    """Set the piles; return their cards."""
    cards: list[str] = []
    for i, name in enumerate(PILES):
        if name not in seen.piles:
            raise ValueError(f"view: piles: {name} is missing")
        pile = seen.piles[name]
        if len(pile) > MAX_HEIGHT:
            raise ValueError(f"view: piles.{name}: {len(pile)} cards; no pile can have more than {MAX_HEIGHT}")
        for card, lower in zip(pile[FULL_PILE:], pile[FULL_PILE - 1 :]):
            if UP[CODES[card]] != CODES[lower]:
                raise ValueError(f"view: piles.{name}: {card} can't lie on {lower} in {name} (BB-5)")
        state.piles[i] = NO_CARD
        state.piles[i, FLOOR : FLOOR + len(pile)] = [CODES[card] for card in pile]
        state.heights[i] = len(pile)
        cards += pile
    return cards


def _lay_stock(state: State, laid: list[str], seen: View, stock: list[str]) -> None:
    """Set waste and stock, and a pack with all cards in the order in which they were or will be dealt."""
    waste = seen.waste
    turned_over = [*waste, *stock] if seen.redealt else []
    state.pack[:] = [CODES[card] for card in (*laid, *waste, *stock)]
    state.waste[: len(waste)] = [CODES[card] for card in waste]
    state.waste[: len(turned_over)] = [CODES[card] for card in turned_over]
    state.stock_end = PACK_SIZE + (max(len(turned_over), 1) if seen.redealt else 0)
    state.num_dealt = int(state.stock_end) - len(stock)
    state.num_waste = len(waste)
    for card in stock:
        state.in_stock[CODES[card]] += 1
    for card in waste:
        state.in_waste[CODES[card]] += 1


def _stock(seen: View, laid: list[str]) -> list[str]:
    """Return the cards that are neither on foundations nor in piles nor in the waste, by suit and rank."""
    left = Counter(CARDS[card] for card in SORTED_PACK)
    left.subtract([*laid, *seen.waste])
    if min(left.values()) < 0:
        card = min(left, key=lambda card: left[card])
        where = ", ".join(f"piles.{name}" for name, pile in seen.piles.items() if card in pile)
        where = f"{where}, waste" if card in seen.waste else where
        raise ValueError(f"view: {where or 'foundations'}: the card {card} occurs too often")
    stock = list(left.elements())
    if len(stock) + len(seen.waste) > STOCK_SIZE:
        raise ValueError(
            f"view: waste: {len(seen.waste)} cards in the waste leave {len(stock)} for the stock; "
            f"both together never have more than {STOCK_SIZE} (BB-2)"
        )
    if not seen.redealt:
        return stock
    if seen.options.redeals == 0:
        raise ValueError("view: redealt: the waste is turned over only with redeals=1 (BB-9)")
    if sorted(seen.stock or []) != sorted(stock):
        raise ValueError(f"view: stock: expected {' '.join(stock) or 'no cards'} in the order in which they come")
    return list(seen.stock or [])


def _could_have_hopped(state: State) -> bool:
    for pile, height in zip(state.piles, state.heights, strict=True):
        if height > state.open_from and state.piles_of[pile[FLOOR + height - 2]] != 0:
            return True
    return False


# Positions of the hours in the picture: column and line of the upper left corner.
CORNERS = (
    (30, 0), (50, 2), (58, 5), (60, 8), (58, 11), (50, 14), (30, 16), (10, 14), (2, 11), (0, 8), (2, 5), (10, 2),
)  # fmt: skip


def picture(given: dict[str, Any]) -> str:
    """Return a view as text of at most 80 columns: the clock, then the stock by suit and the waste.

    Each hour shows the top card of its foundation and how many are to come, and below it the pile: its two lowest
    cards, then the first and last card of the run from the third card on.
    """
    canvas = [[" "] * 80 for _ in range(18)]

    def write(column: int, line: int, text: str) -> None:
        canvas[line][column : column + len(text)] = text

    for i, hour in enumerate(HOURS):
        top = given["foundations"][hour]
        left = len(RUNS[i]) - 1 - RUNS[i].index(top)
        write(*CORNERS[i], f"{hour:>2}: {top} " + (f"{left} to come" if left else "complete"))
        write(CORNERS[i][0] + 4, CORNERS[i][1] + 1, _pile_text(given["piles"][PILES[i]]))
    gaps = sum(max(0, FULL_PILE - len(pile)) for pile in given["piles"].values())
    waste, size = given["waste"], given["stock_size"]
    center = (
        f"{'Big Ben':^31}",
        f"{given['placed']} of {PACK_SIZE} placed".center(31),
        f"stock {size}   gaps {gaps}".center(31),
        f"waste {len(waste)}{', top ' + waste[-1] if waste else ''}".center(31),
        (f"{given['hops']} hops in a row" if given["hops"] else "").center(31),
    )
    for k, text in enumerate(center):
        write(24, 6 + k, text)
    lines = ["".join(line).rstrip() for line in canvas]
    if given["redealt"]:
        lines += _rows("stock", given["stock"])
    else:
        lines.append("stock  " + "   ".join(_suit_text(given["stock"], suit) for suit in SUITS))
    return "\n".join(lines + _rows("waste", waste))


def _rows(name: str, cards: list[str]) -> list[str]:
    """Return cards in their order, in lines."""
    rows = [" ".join(cards[start : start + 24]) for start in range(0, len(cards), 24)]
    return [f"{name if row == 0 else '':7}{text}" for row, text in enumerate(rows)]


def _pile_text(pile: list[str]) -> str:
    if not pile:
        return "(empty)"
    if len(pile) <= FULL_PILE:
        return " ".join(pile)
    run = pile[FULL_PILE - 1 :]
    return f"{pile[0]} {pile[1]} {run[0]}-{run[-1]}" + (f" ({len(pile)})" if len(run) > 13 else "")


def _suit_text(cards: list[str], suit: str) -> str:
    """Return the ranks of a suit, twice if both copies are there: `C A23357K`."""
    return f"{suit} " + ("".join(card[0] for card in cards if card[1] == suit) or "-")
