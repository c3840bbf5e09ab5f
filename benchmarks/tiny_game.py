"""High Card, the template of new games, solved: its optimum, and how far from it a policy is.

All 18,480 deals and all plays of them are listed, so that best responses are exact, of any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.game import Game, Int8s, Int64s, play, set_deal
from card_envs.games import GAMES
from card_envs.opponents import TorchPolicy
from card_envs.opponents.networks.policies import LogitsPolicy
from card_envs.opponents.policy import Decisions, Policy, decisions_at
from card_envs.scaffold.high_card import GAME

Learning = Iterator[tuple[int, Callable[[], Policy]]]  # after each update: decisions so far, what gives the policy

Floats = NDArray[np.float64]
Strategy = list[Floats]  # for each level [M, K] probabilities


class Level(NamedTuple):
    """The N positions after some moves, each with K legal actions; its child k is number K * n + k of the next level.

    Attributes:
        seat: [N] to move.
        sets: [N] number of the information set.
        decisions: one for each of the M information sets.
        legal: [M, K] its actions.
    """

    seat: Int8s
    sets: Int64s
    decisions: Decisions
    legal: Int64s


def set_deals(first: int, last: int, states: NDArray[Any], packs: Int8s) -> None:
    """Give each table its deal."""
    for i in range(first, last):
        set_deal(states[i], packs[i])


def play_each(first: int, last: int, states: NDArray[Any], actions: Int64s, paid: Floats) -> None:
    """Play an action at each table, and add up what seat 0 is paid."""
    for i in range(first, last):
        play(states[i], actions[i])
        paid[i] += states[i].rewards[0]


class Tabular(LogitsPolicy):
    """Plays by a table; any move where it has nothing.

    Attributes:
        look_up: returns the probabilities [K] of the legal actions for what a seat sees, or None.
    """

    def __init__(self, look_up: Callable[[int, Int8s], Floats | None]) -> None:
        super().__init__()
        self.look_up = look_up

    def logits_at(self, decisions: Decisions) -> NDArray[np.float32]:
        """Return [n, A] the logarithms of the probabilities."""
        found = np.zeros(decisions.mask.shape, np.float32)
        for row, (seat, obs) in enumerate(zip(decisions.seat.tolist(), decisions.obs)):
            chances = self.look_up(seat, obs)
            found[row, decisions.mask[row] != 0] = 1.0 if chances is None else chances
        return np.log(np.maximum(found, np.finfo(np.float32).tiny))


class Tree:
    """The whole game.

    Attributes:
        levels: those with a choice.
        paid: [leaves] to seat 0.
    """

    def __init__(self, game: Game = GAME) -> None:
        rules: Any = game.rules
        cards = range(rules.PACK_SIZE)
        packs = [
            (*one, *other)
            for one in combinations(cards, rules.HAND_SIZE)
            for other in combinations([card for card in cards if card not in one], rules.HAND_SIZE)
        ]
        states = np.array([rules.new_state(game.validated({}))], rules.STATE).repeat(len(packs))
        specialize(set_deals, game)(0, len(packs), states, np.array(packs, np.int8))
        self.levels: list[Level] = []
        self.paid = np.zeros(len(packs))
        while not states["over"].all():
            decisions = decisions_at(game, states)
            size = int(decisions.mask[0].sum())  # the same for all: every move is a card of the hand
            legal = decisions.mask.nonzero()[1].reshape(-1, size)
            if size > 1:
                rows = np.column_stack([decisions.seat, decisions.obs])
                keys = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}")[:, 0]
                _, examples, sets = np.unique(keys, return_index=True, return_inverse=True)
                self.levels.append(Level(decisions.seat, sets, decisions.at(examples), legal[examples]))
            states, self.paid = states.repeat(size), self.paid.repeat(size)
            specialize(play_each, game)(0, len(states), states, legal.ravel(), self.paid)

    def strategy(self, policy: Policy) -> Strategy:
        """Return the probabilities with which a policy plays."""

        def played(decisions: Decisions) -> NDArray[Any]:
            if getattr(policy, "sampled", True):
                return policy.probabilities(decisions)
            return np.eye(decisions.mask.shape[1])[policy.act(decisions, np.random.default_rng(0))]

        return [
            np.take_along_axis(played(level.decisions), level.legal, axis=1).astype(np.float64) for level in self.levels
        ]

    def player(self, strategy: Strategy) -> Policy:
        """Return what plays a strategy."""
        table = {
            (int(seat), obs.tobytes()): chances
            for level, known in zip(self.levels, strategy)
            for seat, obs, chances in zip(level.decisions.seat, level.decisions.obs, known)
        }
        return Tabular(lambda seat, obs: table.get((seat, obs.tobytes())))

    def reaches(self, strategy: Strategy, seat: int) -> list[Floats]:
        """Return for each level [N]: the probability that a position comes about if this seat plays for it."""
        reach = np.full(len(self.levels[0].seat), 1 / len(self.levels[0].seat))
        found = []
        for level, chances in zip(self.levels, strategy):
            found.append(reach)
            step = np.where((level.seat == seat)[:, None], 1.0, chances[level.sets])
            reach = (reach[:, None] * step).ravel()
        return found

    def values(self, strategy: Strategy, seat: int, choose: Callable[[int, Floats], Floats]) -> float:
        """Return what a seat wins against a strategy.

        Args:
            strategy: of the other seat.
            seat: whose value it is.
            choose: gets a level's number and [M, K], what each action is worth in each information set, weighted by
                `reaches`; returns the seat's probabilities [M, K].
        """
        value = self.paid if seat == 0 else -self.paid
        reaches = self.reaches(strategy, seat)
        for number in reversed(range(len(self.levels))):
            level = self.levels[number]
            children = value.reshape(len(level.seat), -1)
            weighted = children * reaches[number][:, None]
            sums = [np.bincount(level.sets, column, len(level.legal)) for column in weighted.T]
            worth = np.stack(sums, axis=1).astype(np.float64)
            own = (level.seat == seat)[:, None]
            chances = np.where(own, choose(number, worth)[level.sets], strategy[number][level.sets])
            value = (children * chances).sum(axis=1)
        return float(value.mean())

    def exploitability(self, strategy: Strategy) -> float:
        """Return what a best response wins in points a deal, on average over the seats; 0 for the optimum."""

        def best(number: int, worth: Floats) -> Floats:
            return np.eye(worth.shape[1])[worth.argmax(axis=1)]

        return fmean(self.values(strategy, seat, best) for seat in range(2))

    def optimum(self, iterations: int) -> Strategy:
        """Return a strategy near the optimum: CFR+ (Tammelin 2014)."""
        regrets = [np.zeros(level.legal.shape) for level in self.levels]
        sums = [np.zeros(level.legal.shape) for level in self.levels]
        owners = [level.decisions.seat[:, None] for level in self.levels]
        strategy = [matched(regret) for regret in regrets]
        for iteration in range(1, iterations + 1):
            for seat in range(2):

                def choose(number: int, worth: Floats, seat: int = seat, strategy: Strategy = strategy) -> Floats:
                    gained = worth - (worth * strategy[number]).sum(axis=1, keepdims=True)
                    own = owners[number] == seat
                    regrets[number] = np.where(own, np.maximum(regrets[number] + gained, 0), regrets[number])
                    return strategy[number]

                self.values(strategy, seat, choose)
                strategy = [matched(regret) for regret in regrets]
            for seat in range(2):
                for number, reach in enumerate(self.reaches(strategy, 1 - seat)):
                    level = self.levels[number]
                    weight = np.bincount(level.sets, reach, len(level.legal))[:, None] * float(iteration)
                    sums[number] += np.where(owners[number] == seat, weight * strategy[number], 0)
        return [matched(total) for total in sums]


@cache
def tree() -> Tree:
    """Return the game's tree, made once."""
    return Tree()


def matched(weights: Floats) -> Floats:
    """Return probabilities in proportion to weights from 0; where all are 0, the same for all actions."""
    total = weights.sum(axis=1, keepdims=True)
    return np.where(total > 0, weights / np.maximum(total, 1e-300), 1 / weights.shape[1])


# OpenSpiel's methods. Exact CFR through its Python would take minutes for one pass over all deals; these draw deals.


def registered() -> None:
    """Make the game known: the package's registry is without it."""
    from card_envs.envs._registration import register_all

    GAMES[GAME.name] = GAME
    register_all()


def loaded() -> Any:
    """Return the game in OpenSpiel."""
    import pyspiel

    from card_envs.envs import spiel

    name = spiel.PREFIX + GAME.name
    if name not in pyspiel.registered_names():
        spiel.register(GAME)
    return pyspiel.load_game(name)


class BySeat(LogitsPolicy):
    """A network for each seat."""

    def __init__(self, networks: list[Any]) -> None:
        super().__init__()
        self.policies = [TorchPolicy(network) for network in networks]

    def logits_at(self, decisions: Decisions) -> NDArray[np.float32]:
        """Return [n, A] the logits of the seats' networks."""
        return np.choose(decisions.seat[:, None], [policy.logits_at(decisions) for policy in self.policies])


def mccfr(seed: int, iterations: int = 100) -> Learning:
    """Learn by external-sampling MCCFR of OpenSpiel; information sets that it visits are decisions."""
    from open_spiel.python.algorithms import mccfr
    from open_spiel.python.algorithms.external_sampling_mccfr import ExternalSamplingSolver

    from card_envs.envs.spiel import information_state

    class Solver(ExternalSamplingSolver):  # type: ignore[misc]
        visited = 0

        def average(self, seat: int, obs: Int8s) -> Floats | None:
            found = self._infostates.get(information_state(seat, obs))
            return found and found[mccfr.AVG_POLICY_INDEX] / found[mccfr.AVG_POLICY_INDEX].sum()

        def _lookup_infostate_info(self, key: str, num_legal_actions: int) -> Any:
            self.visited += num_legal_actions > 1
            return super()._lookup_infostate_info(key, num_legal_actions)

    np.random.seed(seed)  # noqa: NPY002 (it draws from there)
    solver = Solver(loaded())
    while True:
        for _ in range(iterations):
            solver.iteration()
        yield solver.visited, partial(Tabular, solver.average)


def nfsp(seed: int, episodes: int = 100) -> Learning:
    """Learn by NFSP of OpenSpiel, with a network of 128 for each seat."""
    from open_spiel.python import rl_environment
    from open_spiel.python.pytorch.nfsp import NFSP

    env = rl_environment.Environment(loaded())
    sizes = GAME.rules.OBS_SIZE, GAME.rules.NUM_ACTIONS, [128]
    settings = {
        "reservoir_buffer_capacity": 500_000, "replay_buffer_capacity": 50_000, "anticipatory_param": 0.1,
        "epsilon_start": 0.06, "epsilon_end": 0.001, "epsilon_decay_duration": 100_000,
        "optimizer_str": "adam", "rl_learning_rate": 1e-3, "sl_learning_rate": 1e-3, "learn_every": 16, "seed": seed,
    }  # fmt: skip
    agents = [NFSP(player, *sizes, **settings) for player in range(GAME.rules.NUM_SEATS)]
    decisions = 0
    while True:
        for _ in range(episodes):
            step = env.reset()
            while not step.last():
                player = step.observations["current_player"]
                decisions += len(step.observations["legal_actions"][player]) > 1
                step = env.step([agents[player].step(step).action])
            for agent in agents:
                agent.step(step)
        yield decisions, partial(BySeat, [agent._avg_network for agent in agents])  # OpenSpiel offers no other way
