"""The contract between a game and everything else.

A game is a folder under `games/`: `rules.py` and `bot.py` hold plain functions on one record of a NumPy dtype,
compiled by Numba; `view.py` translates between states and people. The functions below are typed stubs: the loops in
`engine/kernels.py` name them, and `engine/compile.py` puts a game's own functions in their place.

Letters for shapes, everywhere: `B` tables, `S` seats, `A` actions, `D` observation size, `T` steps.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pydantic import BaseModel

State: TypeAlias = Any  # one record of a game's STATE dtype
Int8s: TypeAlias = NDArray[np.int8]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]


class Field(NamedTuple):
    """A stretch of an observation: `size` entries, each within [low, high]."""

    name: str
    size: int
    high: int
    low: int = 0
    meaning: str = ""


def offsets(fields: tuple[Field, ...]) -> tuple[int, ...]:
    """Where each field starts, and the total size as the last entry."""
    return tuple(sum(field.size for field in fields[:i]) for i in range(len(fields) + 1))


def bounds(fields: tuple[Field, ...]) -> tuple[Int8s, Int8s]:
    """The lowest and the highest value of each entry of an observation."""
    sizes = [field.size for field in fields]
    low = np.repeat(np.array([field.low for field in fields], np.int8), sizes)
    return low, np.repeat(np.array([field.high for field in fields], np.int8), sizes)


def layout_digest(rules: Rules, full: bool = False) -> str:
    """Hash of the declared layout of observations (or full states) and actions, which trained networks depend on."""
    seen = rules.FULL_FIELDS if full else rules.OBS_FIELDS
    layout = [[field[:4] for field in fields] for fields in (seen, rules.ACTION_FIELDS)]
    return hashlib.sha256(json.dumps(layout).encode()).hexdigest()[:16]


def state_dtype(num_seats: int, fields: list[tuple[Any, ...]]) -> np.dtype[Any]:
    """A game's State: what the engine knows of every game, then the game's own fields.

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


class Ratio(NamedTuple):
    """A figure of a policy beside its score, shown by comparisons and surveys: one count of `tally` for each `per`."""

    row: str  # "bid 3"
    column: str  # "made"
    counted: int  # index of a count
    per: int  # index of the count that it is divided by
    percent: bool = False


class Rules(Protocol):
    """What a `rules.py` offers besides the compiled functions below."""

    STATE: np.dtype[Any]
    NUM_SEATS: int
    SIDES: tuple[int, ...]  # by seat: seats with the same number win and lose together
    ACTION_FIELDS: tuple[Field, ...]  # the ranges of action ids
    NUM_ACTIONS: int
    PACK_SIZE: int  # entries of the `int8` array that `arrange` takes
    OBS_FIELDS: tuple[Field, ...]
    FULL_FIELDS: tuple[Field, ...]
    OBS_SIZE: int
    FULL_SIZE: int
    NUM_COUNTS: int  # what `tally` counts
    WORST_SCORE: float  # the worst reward that one deal can bring (what an illegal move costs)

    def new_state(self, options: Any) -> State:
        """A State with these (validated) options before its first deal: `over` and `needs_deal` are set."""


class View(Protocol):
    """What a `view.py` offers: names, text, JSON. Nothing here is compiled."""

    SCHEMA: dict[str, Any]  # JSON schema of `view`
    SEAT_NAMES: tuple[str, ...]  # what a seat calls itself and the others, clockwise
    RATIOS: tuple[Ratio, ...]  # what is shown of the counts of `tally`
    PHASES: dict[str, range]  # kinds of decisions by the actions that are legal there; empty if there is only one kind

    def move_text(self, state: State, action: int) -> str:
        """An action in the notation of RULES.md."""

    def parse_move(self, state: State, text: str) -> int:
        """The action of a text in that notation, legal or not. Raises ValueError if it is none."""

    def parse_deal(self, state: State, deal: object) -> list[Int8s]:
        """The packs of a custom deal, for `arrange`. Raises ValueError saying what and where."""

    def dealt_pack(self, state: State) -> Int8s:
        """The pack of the deal on the table, for `arrange`."""

    def deal_text(self, packs: list[Int8s]) -> dict[str, Any]:
        """Packs as a custom deal: the reverse of `parse_deal`."""

    def options_of(self, state: State) -> Any:
        """The options that a state was made with."""

    def num_deals(self, state: State) -> int:
        """How many scored deals an episode has, 1 where that is open."""

    def outcome(self, state: State) -> tuple[str, list[int]]:
        """Why the episode ended (empty while it runs) and the score of each seat so far.

        A game for one says "won" of an episode that is.
        """

    def outcomes(self, states: NDArray[Any]) -> tuple[NDArray[np.str_], Int64s]:
        """The same for [B] states at once, in NumPy: reasons [B] and scores [B, S]."""

    def view(self, state: State, seat: int) -> dict[str, Any]:
        """All that a seat sees, ready for JSON."""

    def from_view(self, view: dict[str, Any]) -> State:
        """A State with that view; what is hidden is filled in consistently."""

    def picture(self, view: dict[str, Any]) -> str:
        """A view as text of at most 80 columns."""


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
    def rules(self) -> Any:
        return importlib.import_module(f"{self.package}.rules")

    @cached_property
    def bot(self) -> Any:
        return importlib.import_module(f"{self.package}.bot")

    @cached_property
    def view(self) -> Any:
        return importlib.import_module(f"{self.package}.view")

    @cached_property
    def solver(self) -> Any:
        """The game's `Solver`, or None."""
        name = f"{self.package}.solver"
        return importlib.import_module(name) if find_spec(name) else None

    @cached_property
    def options(self) -> type[BaseModel]:
        """The pydantic model of the game's options."""
        options: type[BaseModel] = importlib.import_module(f"{self.package}.options").Options
        return options

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
    def ratios(self) -> tuple[Ratio, ...]:
        """What comparisons show of the counts of `tally`."""
        ratios: tuple[Ratio, ...] = getattr(self.view, "RATIOS", ())
        return ratios

    def num_deals(self, state: State) -> int:
        """How many scored deals an episode has, 1 where that is open."""
        return int(self.view.num_deals(state)) if hasattr(self.view, "num_deals") else 1

    def outcomes(self, states: NDArray[Any]) -> tuple[NDArray[np.str_], Int64s]:
        """Why the episodes of [B] states ended: reasons [B] and scores [B, S]."""
        if hasattr(self.view, "outcomes"):
            reasons, scores = self.view.outcomes(states)
        else:
            reasons, scores = zip(*(self.view.outcome(state) for state in states))
        return np.array(reasons), np.array(scores, np.int64)

    def validated(self, options: dict[str, Any]) -> Any:
        """The options as the game's model. Raises ValueError that says what is wrong and what there is."""
        from pydantic import ValidationError

        try:
            return self.options(**options)
        except ValidationError as error:
            problems = "; ".join(
                f"{problem['loc'][0]}={problem['input']!r}: {problem['msg']}" for problem in error.errors()[:2]
            )
            known = "; ".join(f"{name}: {field.description}" for name, field in self.options.model_fields.items())
            raise ValueError(f"{self.name}: option {problems}. The options are {known}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return Game, (self.name, self.title, self.package, self.version)


# The compiled functions of a game: stubs, never called.


def deal(state: State) -> None:
    """Deal afresh from the state's own stream; where the episode is over, begin the next one.

    Streams are keyed by seed, table, episode, number of the deal and re-deal: a deal does not depend on how earlier
    ones were played.
    """
    raise NotImplementedError


def arrange(state: State, pack: Int8s) -> None:
    """Deal from a given pack, `int8 [PACK_SIZE]`, which stays the caller's; else as `deal`."""
    raise NotImplementedError


def legal(state: State, mask: Int8s) -> int:
    """Write the 0/1 mask `int8 [A]` of the seat to move and return how many actions are legal (never 0)."""
    raise NotImplementedError


def play(state: State, action: int) -> None:
    """Apply one legal action and move on to the next decision, the end, or the need of a deal."""
    raise NotImplementedError


def random_move(state: State, stream: UInt64s) -> int:
    """A uniformly drawn legal action; `stream` is `uint64 [1]` and moves on."""
    raise NotImplementedError


def observe(state: State, seat: int, obs: Int8s) -> None:
    """Write what a seat may know into `int8 [D]`: complete for perfect memory, relative to the seat."""
    raise NotImplementedError


def observe_all(state: State, seat: int, obs: Int8s) -> None:
    """Write the full state seen from a seat into `int8 [FULL_SIZE]`: for critics only."""
    raise NotImplementedError


def redeal_hidden(state: State, seat: int, stream: UInt64s) -> None:
    """Draw everything that a seat can't know anew, uniformly among all that fits what it knows.

    The result depends on that knowledge and the stream alone; the state's own stream is re-keyed.
    """
    raise NotImplementedError


def trivial(state: State) -> int:
    """The move of the yardstick that RULES.md defines to the last tie, from what the seat to move may know."""
    raise NotImplementedError


def greedy(state: State) -> int:
    """The move of the game's scripted player, from what the seat to move may know."""
    raise NotImplementedError


def standing(state: State, seat: int) -> int:
    """How far a seat's side is ahead in the episode, in points; in a game for one, how far it has come.

    Search compares moves by what this is at the end of the deal; it does not depend on the option `reward`.
    """
    raise NotImplementedError


def tally(state: State, seat: int, counts: Int64s) -> None:
    """Add what a deal that has just ended was like for a seat to `int64 [NUM_COUNTS]`.

    Called for each seat at the end of each deal, before the next.
    """
    raise NotImplementedError


def plausibility(state: State, seat: int) -> float:
    """How well the cards that a seat can't see explain what the others did, between 0 and 1; in `bot.py`.

    Search keeps a world with this probability; the others are taken to play much like `greedy`. It may write to the
    state, and leaves it as it was.
    """
    raise NotImplementedError


def bot_move(state: State) -> int:
    """The move of the one of the two that a loop is bound to."""
    raise NotImplementedError
