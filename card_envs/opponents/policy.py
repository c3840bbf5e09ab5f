"""Policies: `Decisions` go in, actions, probabilities or values come out."""

from __future__ import annotations

import hashlib
import json
import traceback
import warnings
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize, specialize_bot
from card_envs.engine import kernels
from card_envs.engine.buffers import INT8, UINT64, check_game, check_int, checked, checked_states
from card_envs.engine.legality import IllegalMove, check_ints, illegal_move, is_legal
from card_envs.game import Game, Int8s, Int64s, legal
from card_envs.system.files import short_repr

Function = TypeVar("Function", bound=Callable[..., Any])

UNCHECKED = "unchecked"  # attribute of a checked method: the method as its class defines it

MOST_WORLDS = 1 << 32


class PolicyError(ValueError):
    """A policy raised an exception, which is the cause of this one, or returned something that is not an answer."""


def _find_illegal_at(first: int, last: int, states: NDArray[Any], mask: Int8s, actions: Int64s) -> int:
    """Return the first table at which an action [B] is illegal, or -1.

    Afterwards `mask` [A] is the one of the last table tested.
    """
    for i in range(first, last):
        legal(states[i], mask)
        if not is_legal(mask, actions[i]):
            return i
    return -1


class Decisions:
    """A batch of n decisions, each seen from the seat to move.

    The public interface reveals no more than the seat may know, and writing into the arrays does not affect which
    actions are legal. This keeps honest policies from cheating by mistake. It is not a security boundary: a policy runs
    in the same process and can inspect private attributes. To run untrusted policies, give them views (`env.view`) and
    nothing else.

    Attributes:
        game: the game.
        obs: [n, D] int8, observation of the seat to move.
        mask: [n, A] int8, its legal actions.
        seat: [n] int8, the seat to move.
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
        """Return the decisions at these rows: int [m] or bool [n]. Raises ValueError for anything else."""
        n, given = len(self), np.asarray(rows)
        are_numbers = given.dtype.kind in "iu" and (given.size == 0 or -n <= given.min() <= given.max() < n)
        if given.ndim != 1 or not (are_numbers or given.size == 0 or (given.dtype == np.bool_ and len(given) == n)):
            raise ValueError(f"rows: expected row numbers below {n}, or {n} bools, got {short_repr(rows)}")
        rows = np.arange(n)[given if given.size else []]
        return Decisions(self.game, self.__states.take(rows), self.obs[rows], self.mask[rows], self.seat[rows])

    def copy(self) -> Decisions:
        """Return the same decisions in fresh arrays, undoing anything that was written into these."""
        return decisions_at(self.game, self.__states)

    def check(self, actions: Any, who: str) -> Int64s:
        """Return the actions as int64 [n] if each is legal at its table, regardless of what was written into `mask`.

        Raises:
            PolicyError: not n whole numbers.
            IllegalMove: one is illegal; names the player, the move and the position.
        """
        try:
            numbers = check_ints(actions, len(self))
        except ValueError as error:
            raise PolicyError(f"{who}: {error}") from None
        mask = np.zeros(self.game.rules.NUM_ACTIONS, np.int8)
        row = specialize(_find_illegal_at, self.game)(0, len(self), self.__states, mask, numbers)
        if row < 0:
            return numbers
        state = self.__states[row]
        move_text = partial(self.game.view.move_text, state)
        raise illegal_move(self.game, int(numbers[row]), mask, f"{who} at {self._shown(row)}", move_text)

    def failure(self, error: Exception, who: str) -> PolicyError:
        """Return the error to raise from an exception in a policy: it names the policy, the line and the decision."""
        last = traceback.extract_tb(error.__traceback__)[-1:]
        where = "".join(f" ({frame.filename}, line {frame.lineno}, in {frame.name})" for frame in last)
        at = f"at {self._shown(0)}" if len(self) else "at no table"
        more = f" and {len(self) - 1} more" if len(self) > 1 else ""
        return PolicyError(f"{self.game.name}: {who}: {type(error).__name__}: {error}{where} {at}{more}")

    def _shown(self, row: int) -> str:
        """Return the view of the seat to move, as JSON."""
        state = self.__states[row]
        return json.dumps(self.game.view.view(state, int(state.seat)))

    def worlds(self, rng: np.random.Generator, k: int) -> NDArray[Any]:
        """Return [n, k] States, determinizations of each decision.

        The hidden cards are drawn uniformly from all that is consistent with what the seat knows.
        """
        if not callable(getattr(rng, "integers", None)):
            raise ValueError(f"rng: expected a numpy.random.Generator, got {short_repr(rng)}")
        worlds = np.repeat(self.__states, check_int(k, 1, MOST_WORLDS, "k"))
        keys = checked("rng.integers", rng.integers(0, 1 << 64, len(worlds), np.uint64), (len(worlds),), UINT64)
        specialize(kernels.determinize_tables, self.game)(0, len(worlds), worlds, worlds["seat"].copy(), keys)
        return worlds.reshape(len(self), k)

    def bot_moves(self, bot: str) -> NDArray[np.int64]:
        """Return int64 [n], the actions of the scripted player `trivial` or `greedy`.

        It knows no more than the seat.
        """
        actions = np.zeros(len(self), np.int64)
        specialize_bot(kernels.bot_actions, self.game, bot)(0, len(self), self.__states, actions)
        return actions

    def _trusted_states(self) -> NDArray[Any]:
        """Return the [n] States, hidden cards included, for this package's networks only.

        Their inputs do not depend on the hidden cards; `tests/test_contract.py` asserts it.
        """
        return self.__states


QUESTIONS = ("act", "act_and_evaluate", "probabilities", "evaluate")


def _check_probabilities(decisions: Decisions, answer: Any, who: str) -> NDArray[np.floating]:
    """Return an array of probabilities if its shape [n, A] and type are right. Raises PolicyError."""
    probabilities, shape = np.asarray(answer), decisions.mask.shape
    if probabilities.shape != shape or probabilities.dtype.kind != "f":
        got = f"{probabilities.dtype} of shape {probabilities.shape}"
        raise PolicyError(f"{who}: probabilities: expected floats of shape {shape}, got {got}")
    return probabilities


def _with_check(method: Function, question: str = "act") -> Function:
    """Return a method of a policy that checks its answer, and names the policy in what it raises."""

    @wraps(method)
    def ask(policy: Policy, decisions: Decisions, *args: Any, **kwargs: Any) -> Any:
        who = f"policy {policy.name}"
        try:
            answer = method(policy, decisions, *args, **kwargs)
            if question == "act":
                return decisions.check(answer, who)
            if question == "act_and_evaluate":
                actions, values = answer
                return decisions.check(actions, who), values
            return _check_probabilities(decisions, answer, who) if question == "probabilities" else answer
        except (IllegalMove, PolicyError):
            raise
        except Exception as error:
            raise decisions.failure(error, who) from error

    vars(ask)[UNCHECKED] = method
    return ask  # type: ignore[return-value]


class Policy:
    """A player. Subclasses implement `act`; everything else has a default.

    The methods that answer a question (`act`, `act_and_evaluate`, `probabilities`, `evaluate`) are checked in every
    subclass, wherever they are called: PolicyError names the policy, the line and the position of an exception, and
    says what was no answer; IllegalMove names an illegal action.

    Wherever this package takes a policy, an object with `act` or a function of (decisions, rng) does as well: see
    `as_policy`.

    Attributes:
        sampled: whether it draws its moves from the probabilities of a network; False: it plays the likeliest; None:
            there is no such choice, as in scripted players and searches.
        bot_name: the scripted player that it is, if it is one.
        is_quick: True if it takes less than a millisecond per move.
        is_compiled: True if `compiled_moves` plays like it in machine code.
        trained_options: of the game, in training; None: unknown.
        origin: the folder that it was loaded from, and what its files were like then; None: elsewhere.
    """

    given_name = ""
    sampled: bool | None = None
    bot_name = ""
    is_quick = False
    is_compiled = False
    trained_options: dict[str, Any] | None = None
    origin: tuple[Path, Any] | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for name in QUESTIONS:
            method = getattr(cls, name)
            if method is not getattr(Policy, name) and not hasattr(method, UNCHECKED):
                setattr(cls, name, _with_check(method, name))

    @_with_check
    def act(self, decisions: Decisions, rng: np.random.Generator) -> Int64s:
        """Return int64 [n], one action for each decision, legal under `decisions.mask`.

        All randomness must come from `rng`, from which the seeds of the deals cannot be recovered.
        """
        raise NotImplementedError

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        """Return [n, A] probabilities of the actions, zero where illegal; by default 1 for one that `act` returns."""
        chosen = self.act(decisions, np.random.default_rng(0))
        return np.eye(decisions.mask.shape[1], dtype=np.float32)[chosen]

    def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> ActionValues | None:
        """Return estimated values of the legal actions; None: it has no opinion."""
        return None

    def act_and_evaluate(self, decisions: Decisions, rng: np.random.Generator) -> tuple[Int64s, ActionValues | None]:
        """Return the actions of `act`, and the estimates that led to them.

        By default both methods are called, one after the other, with the same random numbers.
        """
        twin = hide_seed(rng)
        return self.act(decisions, rng), self.evaluate(decisions, twin)

    def within(self, seconds: float, threads: int = 1) -> Policy:
        """Return the same policy with a limit on its time, and a memory of its own.

        By default that is the policy itself: it remembers nothing, and takes the time that it takes.

        Args:
            seconds: for each decision, approximately; `math.inf`: no limit but that of the policy.
            threads: to use at most.
        """
        return self

    def likeliest(self) -> Policy:
        """Return a policy that plays the likeliest moves: itself, unless it draws from the probabilities of a network.

        Nothing is copied but the settings.
        """
        return self

    def reset(self) -> None:
        """Forget everything remembered from earlier decisions; by default there is nothing to forget."""
        return

    def parts(self) -> tuple[Policy, ...]:
        """Return the policy itself, followed by all the policies inside."""
        return (self,)

    def with_parts(self, change: Callable[[Policy], Policy]) -> Policy:
        """Return the same policy with other policies inside; by default there are none."""
        return self

    def deciding(self, decisions: Decisions) -> Policy:
        """Return the policy inside that makes the first decision; by default itself."""
        return self

    def compiled_moves(self, positions: int | None = None) -> tuple[Any, Any]:
        """Return a function that plays like the policy as a part of a search (`next_moves`), and its arrays.

        An n-tuple network values `positions` (default: its own number).
        """
        raise NotImplementedError

    def describe(self) -> str:
        """Return what it is, in a few words; by default nothing."""
        return ""

    def definition(self) -> list[Any] | None:
        """Return what decides how it plays: settings as bytes, weights, parts. None: its class and attributes."""
        return None

    @property
    def name(self) -> str:
        """The name in messages; that of this package's own policies is one for `load_opponent` as well."""
        return self.given_name or self.default_name

    @name.setter
    def name(self, name: str) -> None:
        self.given_name = name

    @property
    def default_name(self) -> str:
        """The name of a policy that was given none."""
        return type(self).__name__

    def named(self, name: str) -> Self:
        """Return the policy under a name: a copy that shares its memory, unless that is its name anyway."""
        if name == self.name:
            return self
        twin = copy(self)
        vars(twin)["given_name"] = name  # also where it is frozen
        return twin


class Acting(Protocol):
    """An object that is accepted in place of a `Policy`; further methods of `Policy` are used if present."""

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Int64s:
        """See `Policy.act`."""
        ...


class AdaptedPolicy(Policy):
    """Adapts a user's object or function to `Policy`; its own methods override the defaults.

    Attributes:
        own: an object with `act`, or a function of (decisions, rng).
    """

    def __init__(self, own: Any) -> None:
        self.own = own

    @property
    def default_name(self) -> str:
        return str(getattr(self.own, "given_name", "") or getattr(self.own, "__name__", type(self.own).__name__))

    def __repr__(self) -> str:
        return f"AdaptedPolicy({self.own!r})"

    def _method(self, name: str) -> Any:
        return getattr(self.own, name, None) or getattr(super(), name)

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Any:
        return getattr(self.own, "act", self.own)(decisions, rng)

    def probabilities(self, decisions: Decisions) -> Any:
        return self._method("probabilities")(decisions)

    def evaluate(self, decisions: Decisions, rng: np.random.Generator) -> Any:
        return self._method("evaluate")(decisions, rng)

    def act_and_evaluate(self, decisions: Decisions, rng: np.random.Generator) -> Any:
        return self._method("act_and_evaluate")(decisions, rng)

    def within(self, seconds: float, threads: int = 1) -> Policy:
        bounded = self._method("within")(seconds, threads)
        return as_policy(bounded, f"{self.name}.within").named(self.name)

    def reset(self) -> None:
        self._method("reset")()


@dataclass(frozen=True)
class ActionValues:
    """Estimated values of actions; nan for those that were not tried.

    These are estimates without a standard error: a search stops trying an action because of what it found, and plays
    the one that came out best, so the spread of its results says little about their error. `MoveJudge` prices a move
    with an error that holds.

    Attributes:
        means: [n, A] expected margin of the mover's side, in the game's `margin_unit`: the baseline's mean over all
            worlds, plus the advantage.
        advantages: [n, A] mean difference to the baseline action in the same worlds.
        worlds: [n, A] number of worlds in which each action was tried.
        chosen: [n] the action that the policy would play; not always the one with the highest mean, which may be noise.
    """

    means: NDArray[np.float64]
    advantages: NDArray[np.float64]
    worlds: NDArray[np.int64]
    chosen: NDArray[np.int64]

    @property
    def differences(self) -> NDArray[np.float64]:
        """[n, A] mean differences to the chosen action."""
        return self.advantages - np.take_along_axis(self.advantages, self.chosen[:, None], axis=1)

    @staticmethod
    def joined(
        actions: Int64s, num_actions: int, parts: Iterable[tuple[NDArray[np.intp], ActionValues | None]]
    ) -> ActionValues | None:
        """Return the estimates of n decisions from those of some rows each; None if there are none.

        Args:
            actions: [n] the chosen ones, of rows without estimates as well.
            num_actions: A.
            parts: rows [m] and their estimates [m, A].
        """
        parts = list(parts)
        if all(found is None for _, found in parts):
            return None
        shape = len(actions), num_actions
        means, advantages = np.full((2, *shape), np.nan)
        whole = ActionValues(means, advantages, np.zeros(shape, np.int64), actions)
        for rows, found in parts:
            for field in fields(ActionValues)[:-1] if found is not None else ():
                getattr(whole, field.name)[rows] = getattr(found, field.name)
        return whole


class ActionValue(NamedTuple):
    """A legal move with an opponent's estimate of it, which has no standard error; see `ActionValues`.

    Attributes:
        move: in the game's notation.
        probability: of playing it.
        margin: expected by the end of the deal, in the game's `margin_unit`; None if the opponent gives no estimate.
        worlds: number of worlds in which it was tried.
        advantage: mean difference to the baseline action (by default that of `greedy`) in the same worlds.
        difference: mean difference to the move that the opponent would play, the first of the list. Moves compare by
            it: a world that favours one move tends to favour the others too.
        dropped: True if the search gave the move up early, in fewer worlds than the one that it would play: it found
            others better, and the estimates are rough.
    """

    move: str
    probability: float
    margin: float | None = None
    worlds: int = 0
    advantage: float | None = None
    difference: float | None = None
    dropped: bool = False


class HasStates(Protocol):
    """The tables that `Opponent.move` and `Opponent.actions` read: an environment, a `Table` or a `BatchEnv`."""

    @property
    def game(self) -> Game: ...

    @property
    def states(self) -> NDArray[Any]:
        """[B] records."""


@dataclass(frozen=True)
class Opponent:
    """A policy with a name and the game that it plays. It may be given wherever a policy is asked for."""

    name: str
    game: Game
    policy: Policy

    def __post_init__(self) -> None:
        """Take what `as_policy` takes. Raises ValueError for anything else."""
        object.__setattr__(self, "policy", as_policy(self.policy, self.name, self.game).named(self.name))

    def act(self, decisions: Decisions, rng: np.random.Generator) -> Int64s:
        """Choose an action [n] for each decision."""
        return self.policy.act(decisions, rng)

    def probabilities(self, decisions: Decisions) -> NDArray[np.float32]:
        """Return the probability [n, A] of each action."""
        return self.policy.probabilities(decisions)

    def move(self, env: HasStates, rng: np.random.Generator) -> int:
        """Return the action that the opponent plays in a PettingZoo environment, from what the seat to move can see.

        Args:
            env: with a decision due.
            rng: of sampled actions and drawn worlds.

        Raises:
            ValueError: the environment is of another game, or the episode is over or has not begun.
        """
        if len(env.states) != 1:
            raise ValueError(f"env: expected one table, got {len(env.states)}; `actions` plays at many")
        return int(self.actions(env, rng)[0])

    def actions(self, env: HasStates, rng: np.random.Generator) -> Int64s:
        """Return the actions [B] that the opponent plays at the B tables of a `BatchEnv`; see `move`."""
        if env.game.name != self.game.name:
            raise ValueError(f"env: {self.name} plays {self.game.name}, not {env.game.name}")
        if env.states["over"].any():
            raise ValueError("env: no decision is due: the episode is over, or has not begun; call reset")
        return self.policy.act(decisions_at(self.game, env.states), rng)

    def within(self, seconds: float, threads: int = 1) -> Opponent:
        """Return the opponent with a limit on its time per decision and a memory of its own; see `Policy.within`."""
        return Opponent(self.name, self.game, self.policy.within(seconds, threads))

    def reset(self) -> None:
        """Make the opponent forget earlier decisions."""
        self.policy.reset()

    def advise(self, view: dict[str, Any]) -> list[tuple[str, float]]:
        """Return the legal moves for a view (`env.view`) of the seat to move, best first, each with one number.

        The number is the expected margin if the opponent searches, and the probability of the move otherwise.
        `rank_moves` returns both, and more.

        Raises:
            ValueError: the view is malformed or contradictory, or it is another seat's turn.
        """
        ranked = self.rank_moves(view)
        return [(move.move, move.probability if move.margin is None else move.margin) for move in ranked]

    def evaluate(self, view: dict[str, Any], seed: int = 0) -> list[ActionValue]:
        """Return what `rank_moves` does, which took the place of this method."""
        warnings.warn("Opponent.evaluate is Opponent.rank_moves now", DeprecationWarning, stacklevel=2)
        return self.rank_moves(view, seed)

    def rank_moves(self, view: dict[str, Any], seed: int = 0) -> list[ActionValue]:
        """Return the legal moves for a view (`env.view`) of the seat to move, best first, with all estimates.

        Args:
            view: of the seat to move.
            seed: of the worlds that a searching opponent draws.

        Raises:
            ValueError: the view is malformed or contradictory, or it is another seat's turn.
        """
        seed = check_int(seed, 0, None, "seed")
        state, decisions = decision_of(self.game, view)
        texts = {int(a): self.game.view.move_text(state, int(a)) for a in np.flatnonzero(decisions.mask[0])}
        worth = self.policy.evaluate(decisions, np.random.default_rng(seed)) if len(texts) > 1 else None
        if worth is None:
            shares = self.policy.probabilities(decisions)[0]
            return [ActionValue(texts[a], float(shares[a])) for a in sorted(texts, key=lambda a: -shares[a])]
        best = int(worth.chosen[0])
        if not worth.worlds.any():  # one candidate: nothing was tried
            return [ActionValue(texts[a], float(a == best)) for a in sorted(texts, key=lambda a: a != best)]
        figures = {
            "margin": worth.means,
            "worlds": worth.worlds,
            "advantage": worth.advantages,
            "difference": worth.differences,
            "dropped": (worth.worlds > 0) & (worth.worlds < worth.worlds[0, best]),
        }
        worlds, means = worth.worlds[0], worth.means[0]
        ranked = sorted(texts, key=lambda a: (a != best, -worlds[a], -means[a]))  # actions dropped early come last
        return [
            ActionValue(texts[a], float(a == best), **{name: each[0, a].item() for name, each in figures.items()})
            for a in ranked
        ]


def decision_of(game: Game, view: dict[str, Any]) -> tuple[Any, Decisions]:
    """Return a State that a view allows, and its decision. Raises ValueError as `Opponent.rank_moves` does."""
    state = game.view.from_view(view)
    if state.needs_deal or state.seat != view["seat"]:
        whose = "nobody's turn" if state.needs_deal else f"the turn of seat {state.seat}"
        raise ValueError(f"view: seat: this is what seat {view['seat']} sees, but it is {whose}")
    return state, decisions_at(game, np.array([state], game.rules.STATE))


def can_act(given: object) -> bool:
    """Return whether something has `act`, or is a function that may be one; classes and torch modules don't count."""
    acts = callable(getattr(given, "act", None)) and not isinstance(given, type)
    return acts or isinstance(given, (FunctionType, MethodType, partial))


PolicyLike: TypeAlias = Policy | Opponent | Acting | Callable[[Decisions, np.random.Generator], Int64s]


def as_policy(player: PolicyLike, where: str, game: Game | None = None) -> Policy:
    """Return the policy that an object stands for; `load_opponent` takes names.

    Args:
        player: a `Policy`; an opponent; an object with `act`; or a function of (decisions, rng).
        where: it was passed, for messages.
        game: that it must play, if it says which it plays; None: any.

    Raises:
        ValueError: it is something else, such as a class or a name, or it plays another game.
    """
    policy = player.policy if isinstance(player, Opponent) else player
    if not can_act(policy):
        raise ValueError(f"{where}: expected a Policy, or another object with act, got {short_repr(policy)}")
    if not isinstance(policy, Policy):
        policy = AdaptedPolicy(policy)
    playing = getattr(player, "game", None)
    if game is not None and isinstance(playing, Game) and playing != game:
        raise ValueError(f"{where}: {policy.name} plays {playing.name}, not {game.name}")
    return policy


def hide_seed(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator that continues the numbers of `rng` but does not reveal its seed."""
    source: Any = rng.bit_generator
    twin = type(source)(_digest(rng))
    twin.state = source.state
    return np.random.Generator(twin)


def spawn(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator seeded from `rng`; the past and future numbers of `rng` cannot be recovered from it."""
    return np.random.default_rng(_digest(rng))


def _digest(rng: np.random.Generator) -> int:
    return int.from_bytes(hashlib.sha256(repr(rng.bit_generator.state).encode()).digest(), "little")


def decisions_at(game: Game, states: NDArray[Any]) -> Decisions:
    """Return the decisions at these tables. Raises ValueError for something else than a game and States of it."""
    check_game(game)
    states = checked_states(game, states)
    n = len(states)
    obs = np.empty((n, game.rules.OBS_SIZE), np.int8)
    mask = np.empty((n, game.rules.NUM_ACTIONS), np.int8)
    seat = np.empty(n, np.int8)
    specialize(kernels.observe_tables, game)(0, n, states, obs, mask, seat)
    return Decisions(game, states, obs, mask, seat)


def sample(probabilities: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one action for each row with its probabilities; never one with probability zero."""
    cumulative = np.cumsum(probabilities, axis=1, dtype=np.float64)
    draws = rng.random((len(probabilities), 1)) * cumulative[:, -1:]
    return np.argmax(cumulative > draws, axis=1)
