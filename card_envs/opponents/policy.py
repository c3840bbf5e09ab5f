"""What a policy sees and does."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from card_envs.engine import kernels
from card_envs.engine.buffers import INT8, UINT64, check_game, check_int, checked, checked_states
from card_envs.engine.compile import specialize, specialize_bot
from card_envs.engine.legality import IllegalMove, check_ints, illegal_move, is_legal
from card_envs.files import short_repr
from card_envs.game import Game, Int8s, Int64s, legal

Answer = TypeVar("Answer")

MOST_WORLDS = 1 << 32


class PolicyError(ValueError):
    """A policy failed: its own exception is the cause."""


def find_illegal_at(first: int, last: int, states: NDArray[Any], mask: Int8s, actions: Int64s) -> int:
    """Return the first table at which an action [B] is illegal, or -1; `mask` [A] is then that of the last one looked at."""
    for i in range(first, last):
        legal(states[i], mask)
        if not is_legal(mask, actions[i]):
            return i
    return -1


class Decisions:
    """The decisions at n tables, each seen from the seat to move.

    What it offers in public tells no more than the seat may know, and what is written into its arrays decides nothing.
    That keeps honest policies from cheating by mistake. It is no wall: a policy runs in the same process, and Python
    objects can be pried open. Whoever plays for strangers gives their policies views (`env.view`) and nothing else.

    Attributes:
        game: the game.
        obs: [n, D] int8, what each seat may know.
        mask: [n, A] int8, its legal actions.
        seat: [n] int8, the seat.
    """

    def __init__(self, game: Game, states: NDArray[Any], obs: Int8s, mask: Int8s, seat: Int8s) -> None:
        check_game(game)
        n = np.size(seat)
        self.game = game
        self.obs = checked("obs", obs, (n, game.rules.OBS_SIZE), INT8)
        self.mask = checked("mask", mask, (n, game.rules.NUM_ACTIONS), INT8)
        self.seat = checked("seat", seat, (n,), INT8)
        self.__states = checked("states", states, (n,), game.rules.STATE, written=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return decisions_at, (self.game, self.__states)

    def __len__(self) -> int:
        return len(self.__states)

    def at(self, rows: NDArray[np.intp]) -> Decisions:
        """Return the decisions at some of the tables: their numbers [m], or [n] bool. Raises ValueError for others."""
        n, given = len(self), np.asarray(rows)
        are_numbers = given.dtype.kind in "iu" and (given.size == 0 or -n <= given.min() <= given.max() < n)
        if given.ndim != 1 or not (are_numbers or given.size == 0 or (given.dtype == np.bool_ and len(given) == n)):
            raise ValueError(f"rows: expected numbers of tables below {n}, or {n} bools, got {short_repr(rows)}")
        rows = np.arange(n)[given if given.size else []]
        return Decisions(self.game, self.__states.take(rows), self.obs[rows], self.mask[rows], self.seat[rows])

    def copy(self) -> Decisions:
        """Return the same decisions in new arrays, whatever was written into those of this one."""
        return decisions_at(self.game, self.__states)

    def check(self, actions: Any, who: str) -> Int64s:
        """Return the actions [n] if each is legal at its table, whatever was written into `mask`.

        Raises:
            ValueError: they are not n whole numbers.
            IllegalMove: naming who chose it, the move and the position.
        """
        try:
            numbers = check_ints(actions, len(self))
        except ValueError as error:
            raise ValueError(f"{who}: {error}") from None
        mask = np.zeros(self.game.rules.NUM_ACTIONS, np.int8)
        row = specialize(find_illegal_at, self.game)(0, len(self), self.__states, mask, numbers)
        if row < 0:
            return numbers
        state = self.__states[row]
        move_text = partial(self.game.view.move_text, state)
        raise illegal_move(self.game, int(numbers[row]), mask, f"{who} at {self._shown(row)}", move_text)

    def failure(self, error: Exception, who: str) -> PolicyError:
        """What to raise from an exception in a policy: who failed, how and where, and at which decision."""
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = "".join(f" ({frame.filename}, line {frame.lineno}, in {frame.name})" for frame in last)
        at = f"at {self._shown(0)}" if len(self) else "at no table"
        more = f" and {len(self) - 1} more" if len(self) > 1 else ""
        return PolicyError(f"{self.game.name}: {who}: {type(error).__name__}: {error}{where} {at}{more}")

    def _shown(self, row: int) -> str:
        """What a seat sees, as JSON."""
        state = self.__states[row]
        return json.dumps(self.game.view.view(state, int(state.seat)))

    def worlds(self, rng: np.random.Generator, k: int) -> NDArray[Any]:
        """Return [n, k] States whose hidden part is drawn anew, uniformly among all that fits what the seat knows."""
        if not callable(getattr(rng, "integers", None)):
            raise ValueError(f"rng: expected a numpy.random.Generator, got {short_repr(rng)}")
        worlds = np.repeat(self.__states, check_int(k, 1, MOST_WORLDS, "k"))
        keys = checked("rng.integers", rng.integers(0, 1 << 64, len(worlds), np.uint64), (len(worlds),), UINT64)
        specialize(kernels.determinize_tables, self.game)(0, len(worlds), worlds, worlds["seat"].copy(), keys)
        return worlds.reshape(len(self), k)

    def bot_moves(self, bot: str) -> NDArray[np.int64]:
        """Return [n] moves of the game's scripted player `trivial` or `greedy`, which know no more than the seat."""
        actions = np.zeros(len(self), np.int64)
        specialize_bot(kernels.bot_actions, self.game, bot)(0, len(self), self.__states, actions)
        return actions

    def _trusted_states(self) -> NDArray[Any]:
        """Return [n] States, hidden cards included: for this package's networks, whose inputs don't depend on these.

        A test asserts that (`tests/test_contract.py`).
        """
        return self.__states


@runtime_checkable
class Policy(Protocol):
    """Something that acts. Implement these two methods to bring your own.

    Three more are optional; `evaluation_of`, `within` and `reset` ask for them and know the defaults. A policy made of
    others hands them on.

    - `evaluate(decisions, rng) -> ActionValues | None`: what each legal move is worth; without it: None, not known.
    - `within(seconds, threads) -> Policy`: the same policy, which takes about that long for a decision at most, in
      that many threads; without it: the policy as it is.
    - `reset()`: forget everything that was remembered of earlier decisions; without it: nothing is.
    """

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return [n] actions, each legal under `decisions.mask`; all randomness comes from `rng`.

        `rng` does not tell how the deals were seeded, as far as a `Decisions` keeps secrets.
        """
        ...

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        """Return [n, A] probabilities of the actions, zero where illegal."""
        ...


@dataclass(frozen=True)
class ActionValues:
    """What moves are worth; nan for those that were not tried.

    Attributes:
        means: [n, A] expected points of the mover's side: the mean of the baseline in all worlds, plus the advantage.
        errors: [n, A] their standard errors.
        advantages: [n, A] points by which a move beats the baseline in the same worlds, on average.
        advantage_errors: [n, A] their standard errors.
        worlds: [n, A] in how many worlds each was tried.
        chosen: [n] what the policy would play; it need not be the move with the highest mean, which may be chance.
    """

    means: NDArray[np.float64]
    errors: NDArray[np.float64]
    advantages: NDArray[np.float64]
    advantage_errors: NDArray[np.float64]
    worlds: NDArray[np.int64]
    chosen: NDArray[np.int64]


class ActionValue(NamedTuple):
    """A legal move, and what an opponent thinks of it.

    Attributes:
        move: in the game's notation.
        probability: of playing it.
        margin: points that it is expected to bring by the end of the deal; None where the opponent doesn't say.
        error: the standard error of the margin.
        worlds: in which it was tried.
        advantage: points by which it beats the baseline (by default the move of `greedy`) in the same worlds.
        advantage_error: its standard error, smaller than that of the margin: worlds that are good for one move tend to
            be good for another.
    """

    move: str
    probability: float
    margin: float | None = None
    error: float | None = None
    worlds: int = 0
    advantage: float | None = None
    advantage_error: float | None = None


@dataclass(frozen=True)
class Opponent:
    """A policy with the game it plays and a name."""

    name: str
    game: Game
    policy: Policy

    def act(self, decisions: Decisions, rng: np.random.Generator) -> NDArray[np.int64]:
        """See `Policy.act`."""
        return self.policy.act(decisions, rng)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        """See `Policy.probabilities`."""
        return self.policy.probabilities(decisions)

    def within(self, seconds: float, threads: int = 1) -> Opponent:
        """See `Policy`."""
        return replace(self, policy=within(self.policy, seconds, threads))

    def reset(self) -> None:
        """See `Policy`."""
        reset(self.policy)

    def advise(self, view: dict[str, Any]) -> list[tuple[str, float]]:
        """Return the legal moves of the seat to move, best first, from a view (`env.view`), each with one number.

        That is the expected margin in points of an opponent that searches, else the probability of playing the move.
        `evaluate` gives both, each by its name, and the margin's error.

        Raises:
            ValueError: the view is malformed or contradictory, or it is another seat's turn.
        """
        advices = self.evaluate(view)
        return [(one.move, one.probability if one.margin is None else one.margin) for one in advices]

    def evaluate(self, view: dict[str, Any], seed: int = 0) -> list[ActionValue]:
        """Return all that this opponent can say of the legal moves, best first, from a view (`env.view`).

        Args:
            view: of the seat to move.
            seed: of the worlds that a searching opponent draws.

        Raises:
            ValueError: the view is malformed or contradictory, or it is another seat's turn.
        """
        seed = check_int(seed, 0, None, "seed")
        state = self.game.view.from_view(view)
        if state.needs_deal or state.seat != view["seat"]:
            whose = "nobody's turn" if state.needs_deal else f"the turn of seat {state.seat}"
            raise ValueError(f"view: seat: this is what seat {view['seat']} sees, but it is {whose}")
        decisions = decisions_at(self.game, np.array([state], self.game.rules.STATE))
        texts = {int(a): self.game.view.move_text(state, int(a)) for a in np.flatnonzero(decisions.mask[0])}
        worth = None
        if len(texts) > 1:
            worth = answer_of(self, decisions, lambda: evaluation_of(self, decisions, np.random.default_rng(seed)))
        if worth is None:
            shares = probabilities_of(self, decisions)[0]
            return [ActionValue(texts[a], float(shares[a])) for a in sorted(texts, key=lambda a: -shares[a])]
        tried = worth.means[0], worth.errors[0], worth.worlds[0], worth.advantages[0], worth.advantage_errors[0]
        means, _, worlds, *_ = tried
        best = int(worth.chosen[0])
        ranked = sorted(texts, key=lambda a: (a != best, -worlds[a], -means[a]))  # what was dropped early comes last
        return [ActionValue(texts[a], float(a == best), *(figures[a].item() for figures in tried)) for a in ranked]


def evaluation_of(policy: Policy, decisions: Decisions, rng: np.random.Generator) -> ActionValues | None:
    """Return what a policy says that moves are worth; None where it doesn't."""
    if isinstance(policy, Opponent):  # whose `evaluate` takes a view
        return evaluation_of(policy.policy, decisions, rng)
    evaluate = getattr(policy, "evaluate", None)
    found: ActionValues | None = None if evaluate is None else evaluate(decisions, rng)
    return found


def within(policy: Policy, seconds: float, threads: int = 1) -> Policy:
    """Return the same policy with a bound on its time for a decision, as far as it knows one; what it remembers is its
    own."""
    bounded = getattr(policy, "within", None)
    found: Policy = policy if bounded is None else bounded(seconds, threads)
    return found


def reset(policy: Policy) -> None:
    """Let a policy forget what it remembers of earlier decisions, so that it decides as a new one would."""
    forget = getattr(policy, "reset", None)
    if forget is not None:
        forget()


def check_policy(policy: object, where: str) -> None:
    """Raise ValueError where a policy is meant and something else was given, such as a class or a name."""
    if not isinstance(policy, Policy) or isinstance(policy, type):
        raise ValueError(f"{where}: expected a Policy, with act and probabilities, got {short_repr(policy)}")


def answer_of(policy: Policy, decisions: Decisions, ask: Callable[[], Answer]) -> Answer:
    """What a policy answers. Raises PolicyError from its own exception; IllegalMove passes."""
    try:
        return ask()
    except (IllegalMove, PolicyError):
        raise
    except Exception as error:
        raise decisions.failure(error, f"policy {name_of(policy)}") from error


def moves_of(policy: Policy, decisions: Decisions, rng: np.random.Generator) -> Int64s:
    """Return the moves [n] of a policy, checked.

    Raises:
        ValueError: it gives anything but n whole numbers.
        PolicyError: it raises an exception of its own.
        IllegalMove: one of them is illegal.
    """
    return decisions.check(
        answer_of(policy, decisions, lambda: policy.act(decisions, rng)), f"policy {name_of(policy)}"
    )


def probabilities_of(policy: Policy, decisions: Decisions) -> NDArray[np.floating]:
    """Return the probabilities [n, A] of a policy's moves, checked for their shape alone. Raises as `moves_of` does."""
    shares = np.asarray(answer_of(policy, decisions, lambda: policy.probabilities(decisions)))
    shape = len(decisions), decisions.game.rules.NUM_ACTIONS
    if shares.shape != shape or shares.dtype.kind != "f":
        got = f"{shares.dtype} of shape {shares.shape}"
        raise ValueError(f"policy {name_of(policy)}: probabilities: expected floats of shape {shape}, got {got}")
    return shares


def sealed(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator that goes on with the numbers of `rng`, and does not tell what that was seeded with."""
    source: Any = rng.bit_generator
    twin = type(source)(_digest(rng))
    twin.state = source.state
    return np.random.Generator(twin)


def offspring(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator that depends on `rng`, from which the numbers that `rng` has drawn and will draw can't be found."""
    return np.random.default_rng(_digest(rng))


def _digest(rng: np.random.Generator) -> int:
    return int.from_bytes(hashlib.sha256(repr(rng.bit_generator.state).encode()).digest(), "little")


def name_of(policy: Policy) -> str:
    """What messages call a policy."""
    return policy.name if isinstance(policy, Opponent) else type(policy).__name__


def decisions_at(game: Game, states: NDArray[Any]) -> Decisions:
    """Return the decisions at these tables. Raises ValueError where that is no game, or the States are not its."""
    check_game(game)
    states = checked_states(game, states)
    n = len(states)
    obs = np.empty((n, game.rules.OBS_SIZE), np.int8)
    mask = np.empty((n, game.rules.NUM_ACTIONS), np.int8)
    seat = np.empty(n, np.int8)
    specialize(kernels.observe_tables, game)(0, n, states, obs, mask, seat)
    return Decisions(game, states, obs, mask, seat)


def sample(probabilities: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return one action for each row, drawn with its probabilities; never one with probability zero."""
    cumulative = np.cumsum(probabilities, axis=1, dtype=np.float64)
    draws = rng.random((len(probabilities), 1)) * cumulative[:, -1:]
    return np.argmax(cumulative > draws, axis=1)
