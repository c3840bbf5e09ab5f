"""The contract between a game and the rest of the package.

A game is a package of four modules. `rules.py` and `bot.py` hold plain functions on a State, one record of a NumPy
dtype; Numba compiles them. `view.py` translates between States and people, in plain Python. `options.py` declares the
options. The protocols `Rules`, `Bot` and `View` list what is required; `OptionalRules`, `OptionalBot` and
`OptionalView` list what may be left out, with the defaults. A game may also have a `solver.py`, a `planner.py` and a
`drawing.py`.

Loops call the stubs at the end of this file (`play`, `legal`, …); `compiling/_specialize.py` replaces them by the
functions of a game.

Letters for shapes: `B` tables, `S` seats, `A` actions, `D` observation size, `T` steps.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections import Counter, namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from card_envs.cards import squeezed
from card_envs.options import validated
from card_envs.system.files import short_repr

Int8s: TypeAlias = NDArray[np.int8]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]

State: TypeAlias = Any  # one record of the game's STATE dtype
States: TypeAlias = NDArray[np.void]  # [B]
Cards: TypeAlias = np.uint64  # set of up to 64 cards, one bit each: see engine/sets.py
Key: TypeAlias = np.uint64  # names a random stream, never changes: see engine/rng.py
Stream: TypeAlias = UInt64s  # [1] the current state of a random stream
Pack: TypeAlias = Int8s  # [PACK_SIZE] the cards in the order in which they are dealt
Mask: TypeAlias = Int8s  # [A] 1 where an action is legal, else 0
Obs: TypeAlias = Int8s  # [D] or [FULL_SIZE]
Stats: TypeAlias = Int64s  # the entries of STATS, concatenated: see `update_stats`

SHORT_RULES = "\n## In short\n"
LONGEST_MOVE = 100  # letters of a move in words
GREEDY = "greedy"  # the scripted player, whose action is the baseline that others are compared with
STRONG = "search:64"  # what `strong` stands for in a game that says nothing else
SCRATCH_STATES = 64  # length of the `states` that `refine_world` gets

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])


# What a game declares


class Field(NamedTuple):
    """A named range of an observation or of the action ids: `size` entries, each within [low, high]."""

    name: str
    size: int
    high: int
    low: int = 0
    meaning: str = ""


class Stat(NamedTuple):
    """A statistic of a deal, counted by `update_stats`: one entry, or one for each of several cases."""

    name: str
    size: int = 1
    meaning: str = ""


class Rate(NamedTuple):
    """A ratio of two statistics, such as "bids of 3 made": shown by comparisons beside the score."""

    row: str  # "bid 3"
    column: str  # "made"
    counted: str  # name of the Stat in the numerator
    per: str  # name of the Stat in the denominator
    entry: int = 0  # index into each of the two that has several entries
    percent: bool = False


class Choice(NamedTuple):
    """An option in the words of a card player, for pages on which people choose."""

    option: str  # its name in `options.py`
    title: str  # "Length"
    values: tuple[tuple[Any, str], ...]  # those offered, the default first, each with its words: ("single", "one deal")


class Question(NamedTuple):
    """A question that a position asks the seat to move, in words for people: "Your turn: play a card."."""

    text: str
    moves: tuple[str, ...] = ()  # asked if one of these is legal; empty: always


class Offsets(Protocol):
    """The first entry of each field, by the field's name."""

    def __getattr__(self, name: str) -> int: ...


def offsets(fields: Sequence[Field | Stat]) -> Offsets:
    """Return a named tuple of the first entry of each field: `AT = offsets(FULL_FIELDS)`, then `obs[AT.hand + card]`.

    Numba treats it as a constant, which is folded into the machine code.
    """
    make: Any = namedtuple
    starts: Offsets = make("Offsets", [field.name for field in fields])(
        *(total(fields[:i]) for i in range(len(fields)))
    )
    return starts


def total(fields: Sequence[Field | Stat]) -> int:
    """Return the number of entries of all these fields together."""
    return sum(field.size for field in fields)


def bounds(fields: Sequence[Field]) -> tuple[Int8s, Int8s]:
    """Return the lowest and the highest value of each entry of an observation."""
    sizes = [field.size for field in fields]
    low = np.repeat(np.array([field.low for field in fields], np.int8), sizes)
    return low, np.repeat(np.array([field.high for field in fields], np.int8), sizes)


def layout_digest(rules: Rules, full: bool = False) -> str:
    """Return a hash of the layout of observations (or full states) and actions, on which trained networks depend."""
    seen = rules.FULL_FIELDS if full else rules.OBS_FIELDS
    layout = [[field[:4] for field in fields] for fields in (seen, rules.ACTION_FIELDS)]
    return hashlib.sha256(json.dumps(layout).encode()).hexdigest()[:16]


def state_dtype(num_seats: int, fields: list[tuple[Any, ...]]) -> np.dtype[Any]:
    """Return the dtype of a game's State: the fields that the engine uses, then the game's own.

    `np.record` allows attribute access with Numba switched off too; to Numba it is the same type.

    Raises ValueError for a field that Numba or `np.record` can't have.
    """
    shared: list[tuple[Any, ...]] = [
        ("rng", np.uint64),  # key of this episode's deals
        ("rewards", np.float32, num_seats),  # of the last action
        ("seat", np.int8),  # to move
        ("over", np.bool_),  # the episode has ended; the next deal begins another
        ("needs_deal", np.bool_),  # no decision is due before a deal
    ]
    taken = [field[0] for field in fields if hasattr(np.record, field[0])]
    if taken:  # attribute access would return NumPy's attribute
        raise ValueError(f"np.record has attributes named {taken}; rename these fields")
    unknown = [name for name, kind, *shape in fields if shape and np.dtype(kind) == np.bool_]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: Numba has no arrays of np.bool_ in records; use np.int8")
    return np.dtype((np.record, np.dtype(shared + fields, align=True)))


# What the modules of a game offer


class OptionalRules(Protocol):
    """Optional in `rules.py`, with the defaults; `Game.rules` has them all."""

    SIDES: tuple[int, ...]  # side of each seat, 0 or 1: it wins and loses together; default: one seat each
    ALL_SEE_ALIKE: bool  # every seat always knows the same cards; default: True with one seat only
    STATS: tuple[Stat, ...] = ()  # the statistics that `update_stats` counts
    NUM_ACTIONS: int  # the sum of the sizes of ACTION_FIELDS, always; likewise of OBS_FIELDS and FULL_FIELDS
    OBS_SIZE: int
    FULL_SIZE: int

    @staticmethod
    def update_stats(state: State, seat: int, counts: Stats) -> None:
        """Add the statistics of a deal that has just ended, as seen by a seat, to `counts`, int64 [entries of STATS].

        The engine calls it for each seat at the end of each deal, before the next one.
        """

    @staticmethod
    def reveals(state: State, action: int) -> bool:
        """Return whether a legal action may show the mover a card that it does not know.

        Lookahead needs one world for an action that reveals nothing and several otherwise, because the outcome may
        differ between worlds. A search over all moves of a turn goes on only after an action that reveals nothing.
        """
        return True

    @staticmethod
    def text_index(state: State, action: int) -> int:
        """Return which of the view's `TEXTS` an action has in a state.

        Programs in other languages name moves by it.
        """
        return action


class Rules(OptionalRules, Protocol):
    """Required in `rules.py`. All functions except `new_state` are compiled: decorate them with `@rule`."""

    __file__: str
    STATE: np.dtype[Any]
    NUM_SEATS: int
    ACTION_FIELDS: tuple[Field, ...]  # the ranges of action ids
    PACK_SIZE: int  # length of the array that `set_deal` takes
    OBS_FIELDS: tuple[Field, ...]
    FULL_FIELDS: tuple[Field, ...]  # OBS_FIELDS, then the fields that only the full state has
    WORST_SCORE: float  # the worst possible reward of one deal, at most 0; the penalty for an illegal move

    def new_state(self, options: Any) -> State:
        """Return a State with these validated options before its first deal: `over` and `needs_deal` are set."""

    def deal(self, state: State) -> None:
        """Deal; if the episode is over, begin the next one.

        `rng` is the key of the episode, which the engine sets. Derive the key of each deal and re-deal from it and the
        number of the deal, so that a deal does not depend on how earlier ones were played.
        """

    def set_deal(self, state: State, pack: Pack) -> None:
        """Deal the given pack, int8 [PACK_SIZE], which must not be modified; otherwise like `deal`."""

    def legal(self, state: State, mask: Mask) -> int:
        """Write the 0/1 mask, int8 [A], of the seat to move and return the number of legal actions.

        It is 0 if the state needs a deal, and at least 1 otherwise.
        """

    def play(self, state: State, action: int) -> None:
        """Apply one legal action, advance to the next decision, deal or end of the episode, and set `rewards`.

        Never deal here: set `needs_deal` instead. At the end of an episode, set both `over` and `needs_deal`.
        """

    def random_move(self, state: State, stream: Stream) -> int:
        """Return a uniformly drawn legal action and advance `stream`, uint64 [1]."""

    def observe(self, state: State, seat: int, obs: Obs) -> None:
        """Write what a seat may know into `obs`, int8 [D].

        The observation is relative to the seat and includes everything that it could have remembered (perfect recall).
        """

    def observe_all(self, state: State, seat: int, obs: Obs) -> None:
        """Write the full state, relative to a seat, into `obs`, int8 [FULL_SIZE]: for critics only."""

    def determinize(self, state: State, seat: int, stream: Stream) -> None:
        """Replace everything hidden from a seat by a uniform draw from all that is consistent with its knowledge.

        Every field of the result depends only on that knowledge and on the stream, never on the true cards. What is
        drawn is a pack from which the same moves lead to the same view: if others draw cards unseen, then the place in
        the pack that a card came from which they played is hidden, too. The engine gives the state a new `rng`
        beforehand.
        """

    def score_margin(self, state: State, seat: int) -> int:
        """Return the points by which a seat's side is ahead in the episode; in a solitaire, its progress.

        It is the side's score in `outcome` minus the other's, so a higher score is better there: where few points win,
        the scores are negative, or count what the opponent has. Rewards add up to it, but for the option `reward`.
        Search maximizes it at the end of the deal.
        """


class OptionalBot(Protocol):
    """Optional in `bot.py`, with the defaults; `Game.bot` has them all."""

    PRESETS: Mapping[str, str] = {}  # names for opponents, such as {"champion": "search:1024"}; see `Game.presets`
    LEVELS: Sequence[str] = ()  # opponents for people, the easiest first, at most four; default: the strongest four

    @staticmethod
    def likelihood(state: State, seat: int) -> float:
        """Return the likelihood of the others' observed actions given the hidden cards, in (0, 1].

        The model of the others is roughly `greedy`. Search keeps a determinization with this probability (rejection
        sampling). The function may write to the state as scratch, but must restore it.
        """
        return 1.0

    @staticmethod
    def refine_world(states: States, seat: int, steps: int, stream: Stream) -> None:
        """Resample the hidden cards of states[0] by `steps` Metropolis steps; default: leave them as they are.

        The stationary distribution must be proportional to `likelihood` over the worlds that are consistent with the
        seat's knowledge (Metropolis et al. 1953). Like `determinize`, the result must not depend on the true cards.
        `states` has SCRATCH_STATES entries; all but the first are scratch.
        """


class Bot(OptionalBot, Protocol):
    """Required in `bot.py`, compiled like the rules. Both functions use only what the seat to move may know."""

    def trivial(self, state: State) -> int:
        """Return the action of the yardstick player, which RULES.md defines down to the last tie."""

    def greedy(self, state: State) -> int:
        """Return the action of the scripted player."""


class OptionalView(Protocol):
    """Optional in `view.py`, with the defaults; `Game.view` has them all."""

    TEXTS: tuple[str, ...]  # all texts of moves, for `text_index`; default: those of the actions before the first deal
    RATES: tuple[Rate, ...] = ()  # ratios of statistics that comparisons show
    PHASES: Mapping[str, range] = {}  # kinds of decision, each a word, by the range of their actions; empty: one kind
    MARGIN_UNIT: str = "points"  # what `score_margin` counts, a remark in brackets: "cards (of both)"
    LEGEND: tuple[tuple[str, str], ...] = ()  # parts of moves, each with its meaning: ("T1-T12", "piles")
    CHOICES: tuple[Choice, ...] = ()  # the options that people are offered; empty: all, with their names and values
    GOAL: str = ""  # what a player tries to do, in a sentence
    ENDS: Mapping[str, str] = {}  # reasons of ends in words, for a page; {score}: the seat's; empty: needs no words
    MINUTES: int = 0  # that an episode takes a person, with the default options; 0: unknown
    QUESTIONS: tuple[Question, ...] = ()  # for the seat to move; the first that fits a position is asked

    @staticmethod
    def question(view: dict[str, Any]) -> str:
        """Return what a position asks the seat to move; default, and if empty: the one of QUESTIONS that fits.

        For what depends on more than the legal moves: "Your partner bid 1. How many tricks do you add?". `view` is
        that of the seat to move.
        """
        return ""

    @staticmethod
    def move_notes(view: dict[str, Any]) -> dict[str, str]:
        """Return what legal moves come to in a position, by their text: {"3": "together 4"}; default: nothing.

        Pages write it on the move's button. `view` is that of the seat to move.
        """
        return {}

    @staticmethod
    def moved_card(view: dict[str, Any], move: str) -> str:
        """Return the card that a legal move takes, if every seat may know it and its text is not the card; default: "".

        Pages name it: "moves the 7 of hearts from pile 3". `view` is that of the seat to move.
        """
        return ""

    @staticmethod
    def move_words(text: str) -> str:
        """Return the move of this text in words, beginning with a verb: "play the queen of hearts"; default: the text.

        Texts of different moves have different words. In "move a card from house 2 to house 5", pages put the name of
        the card where they show it.
        """
        return text

    @staticmethod
    def event_text(state: State, action: int, names: Sequence[str]) -> str:
        """Return a public side effect of a legal action, such as who takes the trick; often empty.

        `names` are those of the seats.
        """
        return ""

    @staticmethod
    def num_deals(state: State) -> int:
        """Return the number of scored deals in an episode; 1 is also right if the number is open."""
        return 1

    def outcomes(self, states: States) -> tuple[NDArray[np.str_], Int64s]:
        """Return `outcome` for [B] states in NumPy: reasons [B], scores [B, S]; default: a loop over `outcome`."""


class View(OptionalView, Protocol):
    """Required in `view.py`: names, text and JSON. Nothing here is compiled."""

    View: Any  # the pydantic model of `view`
    SCHEMA: dict[str, Any]  # its JSON schema
    SEAT_NAMES: tuple[str, ...]  # names from a seat's perspective: itself first, then the others clockwise

    def move_text(self, state: State, action: int) -> str:
        """Return an action in the notation of RULES.md; no two legal actions have the same text."""

    def parse_move(self, state: State, text: str) -> int:
        """Return the action for a text in that notation, legal or not. Raises ValueError if it is not a move."""

    def parse_deal(self, state: State, deal: object) -> list[Pack]:
        """Return the packs of a custom deal, for `set_deal`; `deal` may be any JSON value.

        Raises ValueError whose message begins with the path to the fault: `deal.packs[0]: …`.
        """

    def dealt_pack(self, state: State) -> Pack:
        """Return the pack of the deal on the table or in a determinization: from it, the same moves lead to the state.

        Where cards are drawn in play, the State must therefore keep the pack.
        """

    def deal_text(self, packs: list[Pack]) -> dict[str, Any]:
        """Return packs as a custom deal, ready for JSON: the inverse of `parse_deal`."""

    def options_of(self, state: State) -> Any:
        """Return the options that a state was made with."""

    def outcome(self, state: State) -> tuple[str, list[int]]:
        """Return why the episode ended (empty while it runs) and the score of each seat so far; higher is better.

        Seats of one side have the same score. A solitaire that was won has the reason "won".
        """

    def view(self, state: State, seat: int) -> dict[str, Any]:
        """Return everything that a seat may know, ready for JSON.

        Every game has the keys `version` (`card_envs.views.VERSION`), `game` (its name), `options` (as `env(**options)`
        takes them), `seat`, `to_move` (the seat, or None if no decision is due) and `legal` (the seat's legal moves as
        text; empty if it is not to move). Moves are public: every seat sees the text of every move.
        """

    def from_view(self, given: dict[str, Any]) -> State:
        """Return a State with this view; hidden cards are filled in consistently.

        The view is untrusted and may be any JSON value; `card_envs/views.py` has helpers for checking it. Raises
        ValueError if the view is malformed, contradicts itself or the rules, or shows no decision. The message begins
        with "view: ", the key at fault and a colon.
        """

    def picture(self, given: dict[str, Any]) -> str:
        """Return a view as text of at most 80 columns and 40 lines."""


def _defaults_of(optional: type) -> dict[str, Any]:
    """Return the defaults of optional names: constants, and functions in plain Python."""
    constants = [name for name in optional.__annotations__ if hasattr(optional, name)]
    functions = [name for name, value in vars(optional).items() if isinstance(value, staticmethod)]
    return {name: getattr(optional, name) for name in constants + functions}


Verdict: TypeAlias = Literal["won", "lost", "unknown"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Solution:
    """The result of a solver.

    Attributes:
        verdict: "won": `moves` wins; "lost": proved that nothing does; "unknown": a bound was reached first.
        moves: actions from the state to the end, verified by the rules; empty unless won.
        positions: number of positions examined.
        seconds: processor time.
    """

    verdict: Verdict
    moves: list[int]
    positions: int
    seconds: float


class Solver(Protocol):
    """Required in `solver.py`, which a solitaire may have."""

    def solve(
        self, state: State, seconds: float = 10.0, memory_mb: int = 512, max_positions: int | None = None
    ) -> Solution:
        """Find a win from a state, with its hidden cards as they lie, or prove that there is none.

        Raises ValueError if no decision is due or a bound is out of range.
        """


class Planner(Protocol):
    """Required in `planner.py`, which a game may have: positions and their features, for learned value tables.

    A value table gives the expected margin of a seat at a position just before something hidden is revealed (an
    afterstate). Position 0 of a scratch is the current one; those reachable from it are numbered from 1. All functions
    except `new_scratch` are compiled.
    """

    NUM_WEIGHTS: int  # size of the tables; weight 0 is fixed at 1: one point

    def new_scratch(self, most: int) -> Any:
        """Return the workspace of one thread for up to `most` positions; it has an attribute `features`."""

    def load(self, state: State, seat: int, scratch: Any) -> None:
        """Enter a State, with its hidden cards as they lie, as position 0, to be valued for `seat`."""

    def expand(self, scratch: Any, most: int, longest: int) -> int:
        """Enter the positions that the mover can reach before something hidden is revealed or others are to move.

        Paths have at most `longest` moves. Up to `most` positions are entered or, if nothing hidden is left, as many as
        the scratch can hold. Returns the number of positions.
        """

    def is_chance_next(self, scratch: Any, k: int) -> bool:
        """Return whether the value of position k is the sum of its features' weights."""

    def is_terminal(self, scratch: Any, k: int) -> bool:
        """Return whether nothing hidden can be revealed any more: the value of position k is its `final_margin`."""

    def final_margin(self, scratch: Any, k: int) -> float:
        """Return the `score_margin` of the seat at terminal position k."""

    def active_features(self, scratch: Any, k: int) -> int:
        """Write the indices of the features of position k into `scratch.features` and return their number.

        They do not depend on anything hidden at that position.
        """

    def path_to(self, scratch: Any, k: int, line: Any) -> int:
        """Write the actions from position 0 to position k, and on until something is revealed or others move.

        Stops when `line` is full. Returns the number of actions written.
        """


class Drawing(Protocol):
    """Required in `drawing.py`, which a game may have; `card_envs/draw/picture.py` has helpers."""

    def draw(self, given: dict[str, Any], tall: bool) -> str:
        """Return a view as an SVG document, in landscape format or, with `tall`, in portrait format."""


@dataclass(frozen=True)
class Game:
    """A game by name. Its modules are imported on first use, so that a `Game` itself is cheap."""

    name: str  # used in code, files and the registry: "back_alley"
    title: str  # shown to people: "Back Alley"
    package: str  # the package with the modules `rules`, `bot`, `view` and `options`
    version: int = 0  # incremented when the rules or the layout of observations change

    @property
    def id(self) -> str:
        """The id in PettingZoo's registry."""
        return f"card_envs/{self.name}-v{self.version}"

    @property
    def gymnasium_id(self) -> str:
        """The id in Gymnasium's registry: the title without spaces."""
        return f"card_envs/{self.title.replace(' ', '')}-v{self.version}"

    @cached_property
    def rules(self) -> Rules:
        """The names of `rules.py`, with the defaults of those that it leaves out."""
        rules = self._module("rules", OptionalRules)
        rules.NUM_ACTIONS, rules.OBS_SIZE = total(rules.ACTION_FIELDS), total(rules.OBS_FIELDS)
        rules.FULL_SIZE = total(rules.FULL_FIELDS)
        return cast(Rules, rules)

    @cached_property
    def bot(self) -> Bot:
        """The names of `bot.py`, with the defaults of those that it leaves out."""
        return cast(Bot, self._module("bot", OptionalBot))

    @cached_property
    def view(self) -> View:
        """The names of `view.py`, with the defaults of those that it leaves out."""
        return cast(View, self._module("view", OptionalView))

    def _module(self, name: str, optional: type) -> Any:
        """Return a copy of a module's names with the defaults: the module itself stays as it was written."""
        module = importlib.import_module(f"{self.package}.{name}")
        whole = ModuleType(module.__name__)
        vars(whole).update(_defaults_of(optional) | vars(module))
        return whole

    @cached_property
    def solver(self) -> Solver | None:
        """The game's solver, if it has one."""
        name = f"{self.package}.solver"
        return cast(Solver, importlib.import_module(name)) if find_spec(name) else None

    @cached_property
    def planner(self) -> Planner | None:
        """The game's planner, for learned value tables, if it has one."""
        name = f"{self.package}.planner"
        return cast(Planner, importlib.import_module(name)) if find_spec(name) else None

    @cached_property
    def drawing(self) -> Drawing | None:
        """The game's drawing, if it has one; without it, pictures show the cards and numbers of the view."""
        name = f"{self.package}.drawing"
        return cast(Drawing, importlib.import_module(name)) if find_spec(name) else None

    @cached_property
    def options(self) -> type[Any]:
        """The dataclass of the game's options, `Options` in its `options.py`: see `card_envs/options.py`.

        Every option has a default and a description. One of them is `reward`, whose values include "win": 1, -1 or 0
        for each seat at the end of an episode and 0 before.
        """
        declared: type[Any] = importlib.import_module(f"{self.package}.options").Options
        return declared

    # Optional parts, with their defaults

    @cached_property
    def sides(self) -> tuple[int, ...]:
        """The side of each seat; seats of one side win and lose together (default: one side for each seat)."""
        sides: tuple[int, ...] = getattr(self.rules, "SIDES", tuple(range(self.rules.NUM_SEATS)))
        return sides

    @property
    def num_sides(self) -> int:
        """The number of sides."""
        return len(set(self.sides))

    @property
    def is_solitaire(self) -> bool:
        """True if there is only one side."""
        return self.num_sides == 1

    @cached_property
    def move_texts(self) -> tuple[str, ...]:
        """All texts of moves; `text_index` says which of them an action has."""
        texts: tuple[str, ...] | None = getattr(self.view, "TEXTS", None)
        if texts is not None:
            return texts
        undealt = self.rules.new_state(self.options())
        return tuple(self.view.move_text(undealt, action) for action in range(self.rules.NUM_ACTIONS))

    @cached_property
    def words(self) -> dict[str, str]:
        """The words of moves by their text, where they say more than it does: see `move_words`."""
        pairs = ((text, self.view.move_words(text)) for text in self.move_texts)
        return {text: words for text, words in pairs if words != text}

    def question(self, view: dict[str, Any]) -> str:
        """Return what a seat's view asks it, in words for people; empty if the seat is not to move."""
        legal = view["legal"]
        if not legal:
            return ""
        fitting = (text for text, moves in self.view.QUESTIONS if not moves or not set(moves).isdisjoint(legal))
        return self.view.question(view) or next(fitting, "Your turn.")

    def move_notes(self, view: dict[str, Any]) -> dict[str, str]:
        """Return what legal moves of a seat's view come to, by their text; see `OptionalView.move_notes`."""
        return self.view.move_notes(view) if view["legal"] else {}

    def public_view(self, state: State) -> dict[str, Any]:
        """Return what spectators see: what all seats' views have in common, without a hand; `names` are of the seats.

        Of a solitaire, that is all that its player sees. `determinize` for any seat leaves it as it is.
        """
        views = [self.view.view(state, seat) for seat in range(self.rules.NUM_SEATS)]
        hidden: dict[str, Any] = {"hand": []} if len(views) > 1 and "hand" in views[0] else {}
        names = [f"seat {seat + 1}" for seat in range(len(views))]
        return {**_in_common(views), **hidden, "seat": 0, "legal": [], "names": names}

    def parse_move(self, state: State, text: str) -> int:
        """Return the action for a move in the game's notation or in any spelling of it that leaves no doubt.

        `td`, `T♦`, `10 d` and `ten of diamonds` are all `TD`: see `card_envs.cards.squeezed`. The action may be
        illegal. Raises ValueError if it is not a move.
        """
        if isinstance(text, str) and len(text) > LONGEST_MOVE:
            what = f"expected at most {LONGEST_MOVE} letters, got {len(text):,}"
            raise ValueError(f"{short_repr(text)} is not a move; {what}")
        try:
            return self.view.parse_move(state, text)
        except ValueError:
            known = self.spelled(text) if isinstance(text, str) else None
            if known is None:
                raise
        return self.view.parse_move(state, known)

    def spelled(self, text: str) -> str | None:
        """Return the notation of the move that a text spells, at any position; None if it spells none."""
        return self._spellings.get(squeezed(text)) if len(text) <= LONGEST_MOVE else None

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """The texts of moves by what remains of them, without those that others share."""
        spelled = [(squeezed(text), text) for text in self.move_texts]
        counts = Counter(short for short, _ in spelled)
        return {short: text for short, text in spelled if counts[short] == 1 and short[-1:].isalnum()}

    @property
    def rules_page(self) -> Path:
        """The file of the rules in words, RULES.md; it need not exist."""
        return Path(self.rules.__file__).with_name("RULES.md")

    @cached_property
    def short_rules(self) -> str:
        """The rules in a few hundred words: the section "In short" of RULES.md, empty without one."""
        text = self.rules_page.read_text(encoding="utf-8") if self.rules_page.is_file() else ""
        return text.partition(SHORT_RULES)[2].partition("\n## ")[0].strip()

    @property
    def all_see_alike(self) -> bool:
        """True if every seat always knows the same cards: then any action that reveals nothing is predictable."""
        alike: bool = getattr(self.rules, "ALL_SEE_ALIKE", self.rules.NUM_SEATS == 1)
        return alike

    @property
    def presets(self) -> dict[str, str]:
        """Names for opponents, from `bot.py`, and in any case `strong`: who gives hints and judges moves."""
        presets = dict(self.bot.PRESETS)
        return presets if "strong" in presets else {"strong": STRONG, **presets}

    @cached_property
    def input_fields(self) -> tuple[Field, ...]:
        """The fields of a network's input: the observation, then which actions are legal, which says a lot."""
        return (*self.rules.OBS_FIELDS, Field("legal", self.rules.NUM_ACTIONS, 1))

    @cached_property
    def rate_entries(self) -> Int64s:
        """The entries of the numerator and the denominator of each rate, int64 [R, 2]."""
        start = offsets(self.rules.STATS)
        several = {count.name for count in self.rules.STATS if count.size > 1}

        def entry(name: str, case: int) -> int:
            return int(getattr(start, name)) + (case if name in several else 0)

        pairs = [(entry(rate.counted, rate.entry), entry(rate.per, rate.entry)) for rate in self.view.RATES]
        return np.array(pairs, np.int64).reshape(-1, 2)

    def outcomes(self, states: States) -> tuple[NDArray[np.str_], Int64s]:
        """Return why the episodes of [B] states ended: reasons [B], and scores [B, S]."""
        vectorized: Callable[[States], tuple[NDArray[np.str_], Int64s]] | None = getattr(self.view, "outcomes", None)
        if vectorized:
            return vectorized(states)
        reasons, scores = zip(*(self.view.outcome(state) for state in states))
        return np.array(reasons), np.array(scores, np.int64)

    def validated(self, options: dict[str, Any]) -> Any:
        """Return the game's `Options` with these values. Raises ValueError that names the fault and what is allowed."""
        return validated(self.options, options, self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Game, (self.name, self.title, self.package, self.version)


def _in_common(values: Sequence[Any]) -> Any:
    """Return a value if all are equal; else nothing, or what their parts have in common."""
    first, *others = values
    if all(value == first for value in others):
        return first
    if isinstance(first, dict):
        return {key: _in_common([value.get(key) for value in values]) for key in first}
    return [] if isinstance(first, list) else None


# Stubs of the compiled functions, for loops to call


MODULE_OF: dict[Callable[..., Any], str] = {}  # the module that defines each stub: an attribute of `Game`


def _stub(function: Callable[Concatenate[Any, Parameters], Result]) -> Callable[Parameters, Result]:
    """Return a function with the name and type of a method of a protocol, for `specialize` to replace."""

    @wraps(function)
    def unbound(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        raise NotImplementedError(f"{function.__name__}: the loop that calls it is not bound to a game")

    protocol = function.__qualname__.partition(".")[0]
    MODULE_OF[unbound] = protocol.removeprefix("Optional").lower()
    return unbound


def _optional(function: Function) -> Function:
    """Return the stub of a function that a game may leave out: `specialize` takes `function` then."""
    stub: Any = _stub(cast(Any, function))
    return cast(Function, stub)


deal = _stub(Rules.deal)
set_deal = _stub(Rules.set_deal)
legal = _stub(Rules.legal)
play = _stub(Rules.play)
random_move = _stub(Rules.random_move)
observe = _stub(Rules.observe)
observe_all = _stub(Rules.observe_all)
determinize = _stub(Rules.determinize)
score_margin = _stub(Rules.score_margin)
update_stats = _optional(OptionalRules.update_stats)
reveals = _optional(OptionalRules.reveals)
text_index = _optional(OptionalRules.text_index)
trivial = _stub(Bot.trivial)
greedy = _stub(Bot.greedy)
likelihood = _optional(OptionalBot.likelihood)
refine_world = _optional(OptionalBot.refine_world)
load = _stub(Planner.load)
expand = _stub(Planner.expand)
is_chance_next = _stub(Planner.is_chance_next)
is_terminal = _stub(Planner.is_terminal)
final_margin = _stub(Planner.final_margin)
active_features = _stub(Planner.active_features)
path_to = _stub(Planner.path_to)


def bot_move(state: State) -> int:
    """Return the action of the bot that the loop is specialized for: `trivial` or `greedy`."""
    raise NotImplementedError("bot_move: the loop that calls it is not bound to a bot")


MODULE_OF[bot_move] = "bot"
