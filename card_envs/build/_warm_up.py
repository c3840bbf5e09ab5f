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
from card_envs.compare.estimates import FEWEST_SHOWN, estimate, share
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
from card_envs.opponents.policy import Opponent, Policy, decisions_at
from card_envs.opponents.search import SearchPolicy
from card_envs.play.sitting import Sitting
from card_envs.reviews import MoveJudge
from card_envs.system.training import training_module

SMALLEST = 2  # number of tables, arms, positions
OPENING = 100  # decisions played first: searches end sooner later in a game


def warm_up(game: Game) -> None:
    """Call each public feature once for a game."""
    warm_up_environments(game)
    warm_up_batches(game)
    # Searches with other numbers of worlds are the same code.
    for name in {re.sub(r"^search:\d+", "", name): name for name in opponent_names(game)}.values():
        warm_up_opponent(game, load_opponent(name, game))
    warm_up_comparison(game)
    if game.is_solitaire:
        warm_up_solver(game)
    if find_spec("torch") is not None:
        warm_up_training(game)


def warm_up_environments(game: Game) -> None:
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
        seats = VectorSeatEnv(game.name, SMALLEST, autoreset_mode=mode, reward="win")
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


def warm_up_batches(game: Game) -> None:
    """Call every method of a batch."""
    batch_out_of_step(game, SMALLEST)
    env = BatchEnv(game, SMALLEST, seed=1)
    streams, actions = np.arange(SMALLEST, dtype=np.uint64), np.zeros(SMALLEST, np.int64)
    env.random_actions(streams, actions)
    env.are_legal(actions)
    env.step(actions)
    specialize(find_illegal)(0, SMALLEST, env._legal, game.rules.NUM_ACTIONS, actions)  # for threads
    env.observe()
    env.observe_all(np.zeros((SMALLEST, game.rules.FULL_SIZE), np.int8))
    env.random_playout(streams, 3)
    for bot in BOTS:
        env.bot_actions(bot, actions)
        env.bot_playout(bot, 3)


def warm_up_opponent(game: Game, opponent: Opponent) -> None:
    """Ask a player for moves, probabilities and values, of one decision and of several."""
    env = BatchEnv(game, SMALLEST, seed=1)
    env.bot_playout("greedy", OPENING)
    decisions, quick = decisions_at(game, env.states), quick_copy(opponent.policy)
    view = game.view.view(env.states[0], int(env.states[0].seat))
    quick.act(decisions, np.random.default_rng(0))
    Opponent(opponent.name, game, quick).rank_moves(view)
    with suppress(ValueError):  # it does not search
        MoveJudge(Opponent(opponent.name, game, quick)).prepare(view)
    quick.within(1e-3, SMALLEST).act(decisions.at(np.array([0])), np.random.default_rng(0))
    quick.probabilities(decisions)


def quick_copy(policy: Policy) -> Policy:
    """Return a copy of a policy, and of its parts, that tries hardly any worlds."""
    policy = policy.with_parts(quick_copy)
    if isinstance(policy, SearchPolicy):
        quick: dict[str, Any] = {"worlds": 1, "arms": SMALLEST, "threads": 1, "refine_steps": SMALLEST}
        quick |= {"rollout_positions": SMALLEST} | ({"leaf_after": 1} if policy.leaf else {})
        return replace(policy, **quick)
    if getattr(policy, "max_positions", None) is not None:  # an n-tuple network
        policy = copy(policy)
        vars(policy)["max_positions"] = SMALLEST
    return policy


def warm_up_comparison(game: Game) -> None:
    """Compare players, estimate figures, and generate a data set."""
    contest = Contest(game, ("random", "greedy"))
    contest.play(np.arange(1))
    Plan(game, ("greedy",), 1).play(range(1))
    values = np.linspace(0.1, 0.7, FEWEST_SHOWN)  # of fewer no interval is computed
    estimate(values)
    share(values)


def warm_up_solver(game: Game) -> None:
    """Solve a deal, where the game has a solver."""
    with suppress(ValueError):
        SolveTask(game, max_positions=500).solve_number(0)


def warm_up_training(game: Game) -> None:
    """Train one iteration with each algorithm and each kind of network."""
    config, run = training_module("config"), training_module("run")
    learners: list[dict[str, Any]] = [{"algorithm": "ppo", "network": name} for name in ("flat", "afterstates")]
    learners += [{"algorithm": "advantages", "network": name} for name in ("afterstates", "lookahead")]
    if game.planner is not None:
        learners.append({"algorithm": "td"})
    for learner in learners:
        sizes: dict[str, Any] = {"decisions": SMALLEST}
        if learner["algorithm"] != "td":
            sizes |= dict.fromkeys(("num_envs", "num_steps", "minibatch_size"), SMALLEST)
            sizes |= {"hidden": [8], "bf16": False}
        learning = run.Run(config.Config(game=game.name, **learner, **sizes))
        if learner["algorithm"] == "td":
            learning.algorithm.deals_each = 1
        learning.iterate()
        warm_up_opponent(game, Opponent("learned", game, learning.algorithm.stored_policy()))
