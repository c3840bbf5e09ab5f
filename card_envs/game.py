"""The contract between a game and everything else.

A game is a folder: `rules.py` and `bot.py` hold plain functions on one record of a NumPy dtype, compiled by Numba;
`view.py` translates between states and people; `options.py` declares the options. `Rules`, `Bot` and `View` list what
they offer, and `OptionalRules`, `OptionalBot` and `OptionalView` what they may offer besides. The loops of the engine
name the compiled functions (`play`, `legal`, …) by the stubs at the end of this file, and `engine/compile.py` puts a
game's own in their place.

Letters for shapes, everywhere: `B` tables, `S` seats, `A` actions, `D` observation size, `T` steps.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib.util import find_spec
from typing import (
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
)

import numpy as np
from numpy.typing import NDArray

from card_envs.options import validated

Int8s: TypeAlias = NDArray[np.int8]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]

State: TypeAlias = Any  # one record of a game's STATE dtype, which alone knows its fields
States: TypeAlias = NDArray[np.void]  # [B] of them
Cards: TypeAlias = np.uint64  # a set of up to 64 cards, one bit each: see engine/sets.py
Key: TypeAlias = np.uint64  # of a random stream, never changed: see engine/rng.py
Stream: TypeAlias = UInt64s  # [1] where a random stream has got to
Pack: TypeAlias = Int8s  # [PACK_SIZE] what is dealt
Mask: TypeAlias = Int8s  # [A] 1 where an action is legal, else 0
Obs: TypeAlias = Int8s  # [D] or [FULL_SIZE]
Stats: TypeAlias = Int64s  # what `update_stats` counts: the entries of STATS one after the other

SCRATCH_STATES = 64  # states that `refine_world` gets

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


# What a game declares


class Field(NamedTuple):
    """A stretch of an observation or of the actions: `size` entries, each within [low, high]."""

    name: str
    size: int
    high: int
    low: int = 0
    meaning: str = ""


class Stat(NamedTuple):
    """What `update_stats` counts, in one entry or in one for each of several cases."""

    name: str
    size: int = 1
    meaning: str = ""


class Rate(NamedTuple):
    """A figure of a policy beside its score, shown by comparisons and surveys: one stat for each `per`."""

    row: str  # "bid 3"
    column: str  # "made"
    counted: str  # name of a count
    per: str  # name of the count that it is divided by
    entry: int = 0  # which entry of the two, where they have several
    percent: bool = False


class Offsets(Protocol):
    """Where each of some fields starts, by its name."""

    def __getattr__(self, name: str) -> int: ...


def offsets(fields: Sequence[Field | Stat]) -> Offsets:
    """Return a named tuple of where each field starts: `AT = offsets(FULL_FIELDS)`, then `obs[AT.hand + card]`.

    To Numba it is a constant, folded into machine code.
    """
    make: Any = namedtuple
    starts: Offsets = make("Offsets", [field.name for field in fields])(
        *(total(fields[:i]) for i in range(len(fields)))
    )
    return starts


def total(fields: Sequence[Field | Stat]) -> int:
    """Return how many entries some fields have together."""
    return sum(field.size for field in fields)


def bounds(fields: Sequence[Field]) -> tuple[Int8s, Int8s]:
    """Return the lowest and the highest value of each entry of an observation."""
    sizes = [field.size for field in fields]
    low = np.repeat(np.array([field.low for field in fields], np.int8), sizes)
    return low, np.repeat(np.array([field.high for field in fields], np.int8), sizes)


def layout_digest(rules: Rules, full: bool = False) -> str:
    """Hash of the declared layout of observations (or full states) and actions, which trained networks depend on."""
    seen = rules.FULL_FIELDS if full else rules.OBS_FIELDS
    layout = [[field[:4] for field in fields] for fields in (seen, rules.ACTION_FIELDS)]
    return hashlib.sha256(json.dumps(layout).encode()).hexdigest()[:16]


def state_dtype(num_seats: int, fields: list[tuple[Any, ...]]) -> np.dtype[Any]:
    """Return a game's State: what the engine knows of every game, then the game's own fields.

    `np.record` gives attribute access with Numba switched off as well; to Numba it is the same type.
    """
    shared: list[tuple[Any, ...]] = [
        ("rng", np.uint64),  # key of this episode's deals
        ("rewards", np.float32, num_seats),  # of the last move
        ("seat", np.int8),  # to move
        ("over", np.bool_),  # the episode; the next deal begins another
        ("needs_deal", np.bool_),  # the next thing is a deal
    ]
    taken = [field[0] for field in fields if hasattr(np.record, field[0])]
    if taken:  # attribute access would find NumPy's own
        raise ValueError(f"np.record has attributes named {taken}; name the fields otherwise")
    return np.dtype((np.record, np.dtype(shared + fields, align=True)))


# What the modules of a game offer


class Rules(Protocol):
    """What a `rules.py` offers. All functions but `new_state` are compiled: decorate them with `@rule`."""

    __file__: str
    STATE: np.dtype[Any]
    NUM_SEATS: int
    ACTION_FIELDS: tuple[Field, ...]  # the ranges of action ids
    NUM_ACTIONS: int
    PACK_SIZE: int  # entries of the array that `set_deal` takes
    OBS_FIELDS: tuple[Field, ...]
    FULL_FIELDS: tuple[Field, ...]  # those of the observation, then what only the full state has
    OBS_SIZE: int
    FULL_SIZE: int
    WORST_SCORE: float  # the worst reward that one deal can bring, 0 or less: what an illegal move costs

    def new_state(self, options: Any) -> State:
        """Return a State with these (validated) options before its first deal: `over` and `needs_deal` are set."""

    def deal(self, state: State) -> None:
        """Deal afresh; where the episode is over, begin the next one.

        `rng` is the key of the episode, of which the engine takes care. Derive those of its deals and re-deals from it
        by their numbers: then a deal does not depend on how earlier ones were played.
        """

    def set_deal(self, state: State, pack: Pack) -> None:
        """Deal from a given pack, `int8 [PACK_SIZE]`, which stays the caller's; else as `deal`."""

    def legal(self, state: State, mask: Mask) -> int:
        """Write the 0/1 mask `int8 [A]` of the seat to move and return how many actions are legal.

        None is where the state needs a deal; before that there is always one.
        """

    def play(self, state: State, action: int) -> None:
        """Apply one legal action and move on to the next decision, the end, or the need of a deal; set `rewards`.

        It never deals. At the end of an episode both `over` and `needs_deal` are set.
        """

    def random_move(self, state: State, stream: Stream) -> int:
        """Return a uniformly drawn legal action; `stream` is `uint64 [1]` and moves on."""

    def observe(self, state: State, seat: int, obs: Obs) -> None:
        """Write what a seat may know into `int8 [D]`: complete for perfect memory, relative to the seat."""

    def observe_all(self, state: State, seat: int, obs: Obs) -> None:
        """Write the full state seen from a seat into `int8 [FULL_SIZE]`: for critics only."""

    def determinize(self, state: State, seat: int, stream: Stream) -> None:
        """Draw everything that a seat can't know anew, uniformly among all that fits what it knows.

        The result depends on that knowledge and the stream alone, to the last field; the engine gives the state a new
        `rng`.
        """

    def score_margin(self, state: State, seat: int) -> int:
        """Return how far a seat's side is ahead in the episode, in points; in a game for one, how far it has come.

        Search compares moves by what this is at the end of the deal; it does not depend on the option `reward`.
        """


class OptionalRules(Protocol):
    """What a `rules.py` may leave out."""

    SIDES: tuple[int, ...]  # by seat, from 0: equal ones win and lose together; default: everybody plays alone
    STATS: tuple[Stat, ...]  # what `update_stats` counts; default: nothing
    ALL_SEE_ALIKE: bool  # whether every seat knows the same cards at any time; default: in games of one seat

    def update_stats(self, state: State, seat: int, counts: Stats) -> None:
        """Add what a deal that has just ended was like for a seat to the `int64` entries of STATS.

        Called for each seat at the end of each deal, before the next.
        """

    def reveals(self, state: State, action: int) -> bool:
        """Return whether a legal action may show the seat to move a card that it can't know; default: every action may.

        Networks that look at what a move changes draw a world for it, and take nothing for a fact that differs between
        worlds. A move that reveals nothing needs one world instead of several, and a search that plans goes on from it.
        """


class Bot(Protocol):
    """What a `bot.py` offers, compiled like the rules. Both use only what the seat to move may know."""

    def trivial(self, state: State) -> int:
        """Return the move of the yardstick that RULES.md defines to the last tie."""

    def greedy(self, state: State) -> int:
        """Return the move of the game's scripted player."""


class OptionalBot(Protocol):
    """What a `bot.py` may leave out."""

    PRESETS: dict[str, str]  # opponents' names that stand for others, such as {"strong": "search:64"}; default: none

    def likelihood(self, state: State, seat: int) -> float:
        """Return how well the cards that a seat can't see explain what the others did: above 0, at most 1, the default.

        Search keeps a world with this probability; the others are taken to play much like `greedy`. It may write to
        the state, and leaves it as it was.
        """

    def refine_world(self, states: States, seat: int, steps: int, stream: Stream) -> None:
        """Change what a seat can't see in states[0], in so many steps of a Markov chain (Metropolis et al. 1953).

        In the long run worlds come up in proportion to `likelihood`, and never one that is impossible; like
        `determinize` it leaves nothing of the true cards. `states` has SCRATCH_STATES entries; the others are scratch.
        Default: nothing changes.
        """


class View(Protocol):
    """What a `view.py` offers: names, text, JSON. Nothing here is compiled."""

    View: Any  # the pydantic model of `view`
    SCHEMA: dict[str, Any]  # its JSON schema
    SEAT_NAMES: tuple[str, ...]  # what a seat calls itself and the others, clockwise

    def move_text(self, state: State, action: int) -> str:
        """Return an action in the notation of RULES.md; no two legal ones read alike."""

    def parse_move(self, state: State, text: str) -> int:
        """Return the action of a text in that notation, legal or not. Raises ValueError if it is none."""

    def parse_deal(self, state: State, deal: object) -> list[Pack]:
        """Return the packs of a custom deal, whatever JSON it is, for `set_deal`.

        Raises ValueError that begins with the place in the deal that is wrong: `deal.packs[0]: …`.
        """

    def dealt_pack(self, state: State) -> Pack:
        """Return the pack of the deal on the table, or of a world drawn anew, for `set_deal`."""

    def deal_text(self, packs: list[Pack]) -> dict[str, Any]:
        """Packs as a custom deal, ready for JSON: the reverse of `parse_deal`."""

    def options_of(self, state: State) -> Any:
        """Return the options that a state was made with."""

    def outcome(self, state: State) -> tuple[str, list[int]]:
        """Why the episode ended (empty while it runs) and the score of each seat so far.

        Seats of one side have the same score. A game for one says "won" of an episode that is.
        """

    def view(self, state: State, seat: int) -> dict[str, Any]:
        """Return all that a seat sees, ready for JSON.

        Every game has the keys `version` (`card_envs.views.VERSION`), `game` (its name), `options` (as
        `env(**options)` takes them), `seat`, `to_move` (the seat, or None where no decision is due) and `legal` (the
        seat's legal moves as text; empty where it is not to move). Moves are public: all seats get to know their texts.
        """

    def from_view(self, given: dict[str, Any]) -> State:
        """Return a State with that view; what is hidden is filled in consistently.

        The view comes from outside and may be any JSON; `card_envs/views.py` helps to check it. Raises ValueError,
        with a message that begins with "view: ", then the key that is wrong and a colon, where it is malformed,
        contradicts itself or the rules, or shows no decision.
        """

    def picture(self, given: dict[str, Any]) -> str:
        """Return a view as text of at most 80 columns and 40 lines."""


class OptionalView(Protocol):
    """What a `view.py` may leave out."""

    RATES: tuple[Rate, ...]  # what is shown of the counts of `update_stats`; default: nothing
    PHASES: dict[str, range]  # kinds of decisions by the actions that are legal there; default: there is only one kind

    def num_deals(self, state: State) -> int:
        """Return how many scored deals an episode has; default: 1, which is also right where that is open."""

    def outcomes(self, states: States) -> tuple[NDArray[np.str_], Int64s]:
        """`outcome` of [B] states at once, in NumPy: reasons [B], scores [B, S]; default: a loop."""


Verdict: TypeAlias = Literal["won", "lost", "unknown"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Solution:
    """What a solver found out about a state.

    Attributes:
        verdict: "won": `moves` wins; "lost": nothing does, which is proved; "unknown".
        moves: actions from the state to the end, replayed by the rules; empty unless won.
        positions: that were looked at.
        seconds: of processor time.
    """

    verdict: Verdict
    moves: list[int]
    positions: int
    seconds: float


class Solver(Protocol):
    """What a `solver.py` offers, in a game for one that has one."""

    def solve(
        self, state: State, seconds: float = 10.0, memory_mb: int = 512, max_positions: int | None = None
    ) -> Solution:
        """Find a win from a state whose hidden cards are taken as they lie, or prove that there is none.

        Raises ValueError where no decision is due, or a bound is out of range.
        """


class Planner(Protocol):
    """What a `planner.py` offers, in a game that has one: positions, and which weights of a table count there.

    Tables that are learned by playing say what a position is worth to a seat before something hidden shows. Where the
    seat stands is position 0 of a scratch, what it can reach from there has the numbers after it. All functions but
    `new_scratch` are compiled.
    """

    NUM_WEIGHTS: int  # of the tables; the first stands for a point and is 1

    def new_scratch(self, most: int) -> Any:
        """What one thread plans with, for so many positions; `features` is among its attributes."""

    def load(self, state: State, seat: int, scratch: Any) -> None:
        """Enter a State as position 0, with its hidden cards as they lie; it will be worth something to `seat`."""

    def expand(self, scratch: Any, most: int, longest: int) -> int:
        """Enter what the seat, which is to move, can reach before something hidden shows or others are to move.

        By at most `longest` moves; at most so many, or, where nothing will show any more, as many as there is room for.
        Returns how many positions there are then.
        """

    def is_chance_next(self, scratch: Any, k: int) -> bool:
        """Return whether the marks of position k say what it is worth."""

    def is_terminal(self, scratch: Any, k: int) -> bool:
        """Return whether nothing hidden can show any more, so that its points are what it is worth."""

    def final_margin(self, scratch: Any, k: int) -> float:
        """Return the `score_margin` of the seat at a final position."""

    def active_features(self, scratch: Any, k: int) -> int:
        """Write which weights count for a position into `scratch.features` and return how many do.

        They depend on nothing that is hidden there.
        """

    def path_to(self, scratch: Any, k: int, line: Any) -> int:
        """Write the moves to a position, as far as there is room, and on to where something shows or others move.

        Returns how many they are.
        """


class Drawing(Protocol):
    """What a `drawing.py` offers, in a game that has one; `card_envs/draw/picture.py` helps."""

    def draw(self, given: dict[str, Any], tall: bool) -> str:
        """Return a view as an SVG document, for a screen that is wider than high or, with `tall`, the other way round."""


@dataclass(frozen=True)
class Game:
    """A game by name; its modules are imported when first used, so that a `Game` costs nothing."""

    name: str  # in code, files and the registry: "back_alley"
    title: str  # for people: "Back Alley"
    package: str  # where `rules`, `bot`, `view` and `options` are
    version: int = 0  # changes with the rules or the observation layout, with nothing else

    @property
    def id(self) -> str:
        """PettingZoo's id."""
        return f"card_envs/{self.name}-v{self.version}"

    @property
    def gymnasium_id(self) -> str:
        """Gymnasium's id: the title without spaces."""
        return f"card_envs/{self.title.replace(' ', '')}-v{self.version}"

    @cached_property
    def rules(self) -> Rules:
        return cast(Rules, importlib.import_module(f"{self.package}.rules"))

    @cached_property
    def bot(self) -> Bot:
        return cast(Bot, importlib.import_module(f"{self.package}.bot"))

    @cached_property
    def view(self) -> View:
        return cast(View, importlib.import_module(f"{self.package}.view"))

    @cached_property
    def solver(self) -> Solver | None:
        """The game's solver, if it has one."""
        name = f"{self.package}.solver"
        return cast(Solver, importlib.import_module(name)) if find_spec(name) else None

    @cached_property
    def planner(self) -> Planner | None:
        """What values of positions are learned with, if the game has that."""
        name = f"{self.package}.planner"
        return cast(Planner, importlib.import_module(name)) if find_spec(name) else None

    @cached_property
    def drawing(self) -> Drawing | None:
        """The game's drawing, if it has one (default: its picture as text)."""
        name = f"{self.package}.drawing"
        return cast(Drawing, importlib.import_module(name)) if find_spec(name) else None

    @cached_property
    def options(self) -> type[Any]:
        """The dataclass of the game's options, `Options` in its `options.py`: see `card_envs/options.py`.

        Every option has a default and a description. `reward` is one of them, with the value "win" among others: 1, -1
        or 0 for each seat at the end of an episode and nothing before.
        """
        declared: type[Any] = importlib.import_module(f"{self.package}.options").Options
        return declared

    # What a game may leave out, with what holds then.

    @cached_property
    def sides(self) -> tuple[int, ...]:
        """By seat: seats with the same number win and lose together (default: everybody plays alone)."""
        sides: tuple[int, ...] = getattr(self.rules, "SIDES", tuple(range(self.rules.NUM_SEATS)))
        return sides

    @property
    def num_sides(self) -> int:
        """How many sides there are."""
        return len(set(self.sides))

    @property
    def is_solitaire(self) -> bool:
        """Whether there is nobody to play against."""
        return self.num_sides == 1

    @property
    def phases(self) -> dict[str, range]:
        """Kinds of decisions by the actions that are legal there; empty where there is only one kind."""
        phases: dict[str, range] = getattr(self.view, "PHASES", {})
        return phases

    @property
    def all_see_alike(self) -> bool:
        """Whether every seat knows the same cards, so that all moves that reveal nothing can be foreseen."""
        alike: bool = getattr(self.rules, "ALL_SEE_ALIKE", self.rules.NUM_SEATS == 1)
        return alike

    @property
    def presets(self) -> dict[str, str]:
        """Opponents' names that stand for others, such as `strong`, from `bot.py`; empty where there are none."""
        presets: dict[str, str] = getattr(self.bot, "PRESETS", {})
        return presets

    @property
    def stats(self) -> tuple[Stat, ...]:
        """What the game's `update_stats` counts."""
        stats: tuple[Stat, ...] = getattr(self.rules, "STATS", ())
        return stats

    @property
    def num_stats(self) -> int:
        """How many entries `update_stats` adds to."""
        return total(self.stats)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """What comparisons show of the counts of `update_stats`."""
        rates: tuple[Rate, ...] = getattr(self.view, "RATES", ())
        return rates

    @cached_property
    def rate_entries(self) -> Int64s:
        """[R, 2] where `update_stats` counts what each ratio divides, and what it divides by."""
        start = offsets(self.stats)
        several = {count.name for count in self.stats if count.size > 1}

        def entry(name: str, case: int) -> int:
            return int(getattr(start, name)) + (case if name in several else 0)

        pairs = [(entry(rate.counted, rate.entry), entry(rate.per, rate.entry)) for rate in self.rates]
        return np.array(pairs, np.int64).reshape(-1, 2)

    def num_deals(self, state: State) -> int:
        """Return how many scored deals an episode has, 1 where that is open."""
        own: Callable[[State], int] | None = getattr(self.view, "num_deals", None)
        return own(state) if own else 1

    def outcomes(self, states: States) -> tuple[NDArray[np.str_], Int64s]:
        """Why the episodes of [B] states ended: reasons [B] and scores [B, S]."""
        own: Callable[[States], tuple[NDArray[np.str_], Int64s]] | None = getattr(self.view, "outcomes", None)
        if own:
            return own(states)
        reasons, scores = zip(*(self.view.outcome(state) for state in states))
        return np.array(reasons), np.array(scores, np.int64)

    def validated(self, options: dict[str, Any]) -> Any:
        """Return the game's `Options` with these. Raises ValueError that says what is wrong and what there is."""
        return validated(self.options, options, self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Game, (self.name, self.title, self.package, self.version)


# The compiled functions, for loops to name


MODULE_OF: dict[Callable[..., Any], str] = {}  # which module of a game has each: the attribute of `Game`


def _stub(function: Callable[Concatenate[Any, Parameters], Result]) -> Callable[Parameters, Result]:
    """Return a plain function with the name and the type of one of a game, for `specialize` to replace."""

    @wraps(function)
    def unbound(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        raise NotImplementedError(f"{function.__name__}: the loop that calls it is not bound to a game")

    protocol = function.__qualname__.partition(".")[0]
    MODULE_OF[unbound] = protocol.removeprefix("Optional").lower()
    return unbound


deal = _stub(Rules.deal)
set_deal = _stub(Rules.set_deal)
legal = _stub(Rules.legal)
play = _stub(Rules.play)
random_move = _stub(Rules.random_move)
observe = _stub(Rules.observe)
observe_all = _stub(Rules.observe_all)
determinize = _stub(Rules.determinize)
score_margin = _stub(Rules.score_margin)
update_stats = _stub(OptionalRules.update_stats)
reveals = _stub(OptionalRules.reveals)
trivial = _stub(Bot.trivial)
greedy = _stub(Bot.greedy)
likelihood = _stub(OptionalBot.likelihood)
refine_world = _stub(OptionalBot.refine_world)
load = _stub(Planner.load)
expand = _stub(Planner.expand)
is_chance_next = _stub(Planner.is_chance_next)
is_terminal = _stub(Planner.is_terminal)
final_margin = _stub(Planner.final_margin)
active_features = _stub(Planner.active_features)
path_to = _stub(Planner.path_to)


def bot_move(state: State) -> int:
    """Return the move of the one of the two bots that a loop is bound to."""
    raise NotImplementedError("bot_move: the loop that calls it is not bound to a bot")


MODULE_OF[bot_move] = "bot"
