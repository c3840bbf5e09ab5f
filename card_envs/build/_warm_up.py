"""Call each public feature once for a game: the trace records the loops, and libraries must have them.

Searches try one world only: how long a loop runs does not change what it is called with.
"""

from __future__ import annotations

import re
from contextlib import suppress
from copy import copy
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from card_envs.bench import batch_out_of_step
from card_envs.compare._solving import SolveTask
from card_envs.compare.contests import Contest
from card_envs.compare.estimates import estimate, share
from card_envs.compiling import specialize
from card_envs.compiling._specialize import BOTS
from card_envs.data import Plan
from card_envs.engine.batch import BatchEnv
from card_envs.engine.legality import find_illegal
from card_envs.engine.table import Table
from card_envs.envs.aec import CardEnv
from card_envs.envs.single_agent import SingleSeatEnv
from card_envs.envs.vector import VectorSeatEnv
from card_envs.game import Game
from card_envs.opponents import load_opponent, opponent_names
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.phased import PhasedPolicy
from card_envs.opponents.policy import Opponent, Policy, decisions_at
from card_envs.opponents.search import SearchPolicy
from card_envs.play.sitting import Sitting
from card_envs.reviews import MoveJudge
from card_envs.system.training import training_module

FEW = 2  # tables, arms, positions
LATER = 100  # decisions after which searches are asked: the end is nearer


def warm_up(game: Game) -> None:
    """Ask everything that the package has for a game."""
    visit_environments(game)
    visit_batches(game)
    # Searches with other numbers of worlds are the same code.
    for name in {re.sub(r"^search:\d+", "", name): name for name in opponent_names(game)}.values():
        visit_opponent(game, load_opponent(name, game))
    visit_comparison(game)
    if game.is_solitaire:
        visit_solver(game)
    if find_spec("torch") is not None:
        visit_training(game)


def visit_environments(game: Game) -> None:
    """Play some moves in each environment, with and without a given deal."""
    env = CardEnv(game)
    env.reset(seed=1)
    for _ in range(6):
        env.last()
        env.observe(env.agents[0])
        env.state()
        env.step(env.parse_move(env.legal_moves()[-1]))
    env.clone().reset(seed=2, options={"deal": env.record().deal})
    seat = SingleSeatEnv(game.name)
    _, info = seat.reset(seed=1)
    seat.step(int(np.flatnonzero(info["action_mask"])[0]))
    for mode in ("SameStep", "NextStep"):
        seats = VectorSeatEnv(game.name, FEW, autoreset_mode=mode, reward="win")
        seats.reset(seed=1)
        seats.reset(seed=1, options={"reset_mask": np.array([True, False])})
        for _ in range(3):
            seats.step(seats.action_masks().argmax(axis=1))
    seats.reset(seed=1, options={"deal": env.record().deal})
    sitting = Sitting.dealt(game, {}, 1)
    sitting.play(sitting.action(sitting.legal_moves()[0]))
    sitting.view(0)
    table = Table(game, env.states[0])
    table.observe_all(0)
    table.determinize(0, 1)
    for bot in BOTS:
        if not table.needs_deal:
            table.bot_move(bot)


def visit_batches(game: Game) -> None:
    """Call every method of a batch."""
    batch_out_of_step(game, FEW)
    env = BatchEnv(game, FEW, seed=1)
    streams, actions = np.arange(FEW, dtype=np.uint64), np.zeros(FEW, np.int64)
    env.random_actions(streams, actions)
    env.are_legal(actions)
    env.step(actions)
    specialize(find_illegal)(0, FEW, env._legal, game.rules.NUM_ACTIONS, actions)  # for threads, which FEW don't need
    env.observe()
    env.observe_all(np.zeros((FEW, game.rules.FULL_SIZE), np.int8))
    env.random_playout(streams, 3)
    for bot in BOTS:
        env.bot_actions(bot, actions)
        env.bot_playout(bot, 3)


def visit_opponent(game: Game, opponent: Opponent) -> None:
    """Ask a player for moves, probabilities and values, of one decision and of several."""
    env = BatchEnv(game, FEW, seed=1)
    env.bot_playout("greedy", LATER)
    asked, quick = decisions_at(game, env.states), made_quick(opponent.policy)
    quick.act(asked, np.random.default_rng(0))
    Opponent(opponent.name, game, quick).rank_moves(env_view(game))
    with suppress(ValueError):  # it does not search
        MoveJudge(Opponent(opponent.name, game, quick)).prepare(env_view(game))
    if isinstance(quick, SearchPolicy):
        quick.within(1e-3, FEW).act(asked.at(np.array([0])), np.random.default_rng(0))
    else:
        quick.probabilities(asked)


def env_view(game: Game) -> dict[str, Any]:
    """Return what the first player to move sees."""
    env = CardEnv(game)
    env.reset(seed=1)
    return env.view(env.agent_selection)


def made_quick(policy: Policy) -> Any:
    """Return a policy of the same parts that tries hardly any worlds."""
    if isinstance(policy, PhasedPolicy):
        return PhasedPolicy(policy.actions, made_quick(policy.inside), made_quick(policy.outside))
    if isinstance(policy, NTuplePolicy):
        small = copy(policy)
        small.max_positions = FEW
        return small
    if isinstance(policy, SearchPolicy):
        quick: dict[str, Any] = {name: made_quick(policy.settings[name]) for name in ("prior", "rollout", "leaf")}
        quick |= {"worlds": 1, "arms": FEW, "threads": 1, "refine_steps": FEW, "rollout_positions": FEW}
        return replace(policy, **quick | ({"leaf_after": 1} if policy.leaf else {}))
    return policy


def visit_comparison(game: Game) -> None:
    """Compare, measure and sum up; write games down."""
    contest = Contest(game, ("random", "greedy"))
    contest.play(np.arange(1))
    Plan(game, ("greedy",), 1).play(range(1))
    values = np.array([0.1, 0.5, 0.7])
    estimate(values)
    share(values)


def visit_solver(game: Game) -> None:
    """Solve a deal, where the game has a solver."""
    with suppress(ValueError):
        SolveTask(game, max_positions=500).solve_number(0)


def visit_training(game: Game) -> None:
    """Learn for a moment with each algorithm and each kind of network."""
    config, run = training_module("config"), training_module("run")
    learners: list[dict[str, Any]] = [{"algorithm": "ppo", "network": name} for name in ("flat", "afterstates")]
    learners += [{"algorithm": "advantages", "network": name} for name in ("afterstates", "lookahead")]
    if game.planner is not None:
        learners.append({"algorithm": "td"})
    for learner in learners:
        sizes: dict[str, Any] = {"decisions": FEW}
        if learner["algorithm"] != "td":
            sizes |= {"num_envs": FEW, "num_steps": FEW, "minibatch_size": FEW, "hidden": [8], "bf16": False}
        learning = run.Run(config.Config(game=game.name, **learner, **sizes))
        if learner["algorithm"] == "td":
            learning.algorithm.deals_each = 1
        learning.iterate()
        visit_opponent(game, Opponent("learned", game, learning.algorithm.stored()))
