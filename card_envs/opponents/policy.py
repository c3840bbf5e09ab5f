"""What a policy sees and does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from card_envs.engine import kernels
from card_envs.engine.compile import bind
from card_envs.engine.legality import illegal_move, is_legal, whole_numbers
from card_envs.game import Game, Int8s, Int64s, legal


def find_illegal_at(first: int, last: int, states: NDArray[Any], mask: Int8s, actions: Int64s) -> int:
    """The first table at which an action [B] is illegal, or -1; `mask` [A] is then that of the last one looked at."""
    for i in range(first, last):
        legal(states[i], mask)
        if not is_legal(mask, actions[i]):
            return i
    return -1


class Turn:
    """The decisions at n tables, each seen from the seat to move; hidden cards stay hidden.

    Attributes:
        game: the game.
        obs: [n, D] int8, what each seat may know.
        mask: [n, A] int8, its legal actions.
        seat: [n] int8, the seat.
    """

    def __init__(self, game: Game, states: NDArray[Any], obs: Int8s, mask: Int8s, seat: Int8s) -> None:
        self.game = game
        self.obs = obs
        self.mask = mask
        self.seat = seat
        self.__states = states

    def __len__(self) -> int:
        return len(self.seat)

    def at(self, rows: NDArray[np.intp]) -> Turn:
        """The decisions at some of the tables."""
        return Turn(self.game, self.__states.take(rows), self.obs[rows], self.mask[rows], self.seat[rows])

    def check(self, actions: Any, who: str) -> Int64s:
        """The actions [n] if each is legal at its table, whatever was written into `mask`.

        Raises:
            ValueError: they are not n whole numbers.
            IllegalMove: naming who chose it, the move and the position.
        """
        try:
            numbers = whole_numbers(actions, len(self))
        except ValueError as error:
            raise ValueError(f"{who}: {error}") from None
        mask = np.zeros(self.game.rules.NUM_ACTIONS, np.int8)
        row = bind(find_illegal_at, self.game)(0, len(self), self.__states, mask, numbers)
        if row < 0:
            return numbers
        view, state = self.game.view, self.__states[row]
        who += f" at {json.dumps(view.view(state, int(state.seat)))}"
        raise illegal_move(self.game, int(numbers[row]), mask, who, partial(view.move_text, state))

    def worlds(self, rng: np.random.Generator, k: int) -> NDArray[Any]:
        """[n, k] States whose hidden part is drawn anew, uniformly among all that fits what the seat knows."""
        worlds = np.repeat(self.__states, k)
        keys = rng.integers(0, 1 << 64, len(worlds), np.uint64)
        bind(kernels.redeal_tables, self.game)(0, len(worlds), worlds, np.repeat(self.seat, k), keys)
        return worlds.reshape(len(self), k)

    def bot_moves(self, bot: str) -> NDArray[np.int64]:
        """[n] moves of the game's scripted player `trivial` or `greedy`, which know no more than the seat."""
        actions = np.zeros(len(self), np.int64)
        bind(kernels.bot_actions, self.game, bot)(0, len(self), self.__states, actions)
        return actions


@runtime_checkable
class Policy(Protocol):
    """Something that acts. Implement these two methods to bring your own."""

    def act(self, turn: Turn, rng: np.random.Generator) -> NDArray[np.int64]:
        """[n] actions, each legal under `turn.mask`; all randomness comes from `rng`."""
        ...

    def probabilities(self, turn: Turn) -> NDArray[np.float32]:
        """[n, A] probabilities of the actions, zero where illegal."""
        ...


@dataclass(frozen=True)
class Evaluation:
    """What moves are worth.

    Attributes:
        means: [n, A] expected points of the mover's side, nan for moves that were not tried.
        errors: [n, A] their standard errors.
        worlds: [n, A] in how many worlds each was tried.
    """

    means: NDArray[np.float64]
    errors: NDArray[np.float64]
    worlds: NDArray[np.int64]


@runtime_checkable
class Evaluator(Protocol):
    """A policy that can say what moves are worth."""

    def evaluate(self, turn: Turn, rng: np.random.Generator) -> Evaluation:
        """What each legal move is worth."""
        ...


class Advice(NamedTuple):
    """A legal move, and what an opponent thinks of it.

    Attributes:
        move: in the game's notation.
        probability: of playing it.
        margin: points that it is expected to bring by the end of the deal; None where the opponent doesn't say.
        error: the standard error of the margin.
        worlds: in which it was tried.
    """

    move: str
    probability: float
    margin: float | None = None
    error: float | None = None
    worlds: int = 0


@dataclass(frozen=True)
class Opponent:
    """A policy with the game it plays and a name."""

    name: str
    game: Game
    policy: Policy

    def act(self, turn: Turn, rng: np.random.Generator) -> NDArray[np.int64]:
        """See `Policy.act`."""
        return self.policy.act(turn, rng)

    def probabilities(self, turn: Turn) -> NDArray[np.float32]:
        """See `Policy.probabilities`."""
        return self.policy.probabilities(turn)

    def advise(self, view: dict[str, Any]) -> list[tuple[str, float]]:
        """The legal moves of the seat to move with their probabilities, or expected margins where the opponent
        searches, best first, from a view (`env.view`).

        Raises:
            ValueError: the view is malformed or contradictory, or it is another seat's turn.
        """
        advices = self.evaluate(view)
        return [(one.move, one.probability if one.margin is None else one.margin) for one in advices]

    def evaluate(self, view: dict[str, Any], seed: int = 0) -> list[Advice]:
        """All that this opponent can say of the legal moves, best first, from a view (`env.view`).

        Args:
            view: of the seat to move.
            seed: of the worlds that a searching opponent draws.

        Raises:
            ValueError: the view is malformed or contradictory, or it is another seat's turn.
        """
        state = self.game.view.from_view(view)
        if state.needs_deal or state.seat != view["seat"]:
            raise ValueError(f"view: to_move: it is not the turn of seat {view['seat']}")
        turn = turn_of_states(self.game, np.array([state], self.game.rules.STATE))
        texts = {int(a): self.game.view.move_text(state, int(a)) for a in np.flatnonzero(turn.mask[0])}
        if not isinstance(self.policy, Evaluator) or len(texts) == 1:
            shares = self.probabilities(turn)[0]
            return [Advice(texts[a], float(shares[a])) for a in sorted(texts, key=lambda a: -shares[a])]
        worth = self.policy.evaluate(turn, np.random.default_rng(seed))
        means, errors, worlds = worth.means[0], worth.errors[0], worth.worlds[0]
        ranked = sorted(texts, key=lambda a: (-worlds[a], -means[a]))  # what was dropped early comes last
        return [
            Advice(texts[a], float(a == ranked[0]), float(means[a]), float(errors[a]), int(worlds[a])) for a in ranked
        ]


def moves_of(policy: Policy, turn: Turn, rng: np.random.Generator) -> Int64s:
    """The moves [n] of a policy, checked.

    Raises:
        ValueError: it gives anything but n whole numbers.
        IllegalMove: one of them is illegal.
    """
    return turn.check(policy.act(turn, rng), f"policy {name_of(policy)}")


def name_of(policy: Policy) -> str:
    """What messages call a policy."""
    return policy.name if isinstance(policy, Opponent) else type(policy).__name__


def turn_of_states(game: Game, states: NDArray[Any]) -> Turn:
    """The decisions at these tables."""
    n = len(states)
    obs = np.empty((n, game.rules.OBS_SIZE), np.int8)
    mask = np.empty((n, game.rules.NUM_ACTIONS), np.int8)
    seat = np.empty(n, np.int8)
    bind(kernels.look_tables, game)(0, n, states, obs, mask, seat)
    return Turn(game, states, obs, mask, seat)


def sample(probabilities: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int64]:
    """One action for each row, drawn with its probabilities; never one with probability zero."""
    cumulative = np.cumsum(probabilities, axis=1, dtype=np.float64)
    draws = rng.random((len(probabilities), 1)) * cumulative[:, -1:]
    return np.argmax(cumulative > draws, axis=1)
