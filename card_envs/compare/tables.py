"""Playing tables to the end of their episodes: scripted and random players in compiled code, others in batches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.batch import IllegalMove
from card_envs.engine.compile import kernel
from card_envs.engine.kernels import ASK, GREEDY, RANDOM, TRIVIAL
from card_envs.engine.rng import table_keys
from card_envs.game import Game, Int8s, Int64s
from card_envs.opponents.policy import Opponent, Policy, turn_of_states
from card_envs.opponents.scripted import RandomPolicy, ScriptedPolicy

SCRIPTED = {"trivial": TRIVIAL, "greedy": GREEDY}


@dataclass(frozen=True)
class Played:
    """Episodes that have ended.

    Attributes:
        states: [B] the last State of each.
        rewards: [B, S] the sum of each seat's rewards.
        moves: [B, P] how many moves each policy made, forced ones included.
        seconds: [P] time for all decisions of each policy; where compiled code plays, with the game's own work.
        decisions: [P] how many these were: moves with a choice, or all where compiled code plays.
        log: [B, L] the first L moves of each episode, -1 after its end.
        counts: [N, P, NUM_COUNTS] what the game's `tally` and the loop have counted of each policy.
    """

    states: NDArray[Any]
    rewards: NDArray[np.float64]
    moves: NDArray[np.int64]
    seconds: NDArray[np.float64]
    decisions: NDArray[np.int64]
    log: NDArray[np.int16]
    counts: Int64s


def new_tables(game: Game, options: dict[str, Any], seed: int, numbers: NDArray[np.int64]) -> NDArray[Any]:
    """[B] States after the first deal of the tables with these numbers; equal numbers get equal deals."""
    one = np.array([game.rules.new_state(game.validated(options))], game.rules.STATE)
    states: NDArray[Any] = one.repeat(len(numbers))  # assigning it to all copies field by field
    kernel("reset_tables", game)(states, table_keys(seed, numbers), 0, len(states))
    return states


def compiled_kind(policy: Policy) -> int:
    """How `play_on` plays this policy: in compiled code, or by asking."""
    if isinstance(policy, Opponent):
        return compiled_kind(policy.policy)
    if type(policy) is RandomPolicy:
        return RANDOM
    return SCRIPTED[policy.bot] if type(policy) is ScriptedPolicy else ASK


def play_out(
    game: Game,
    states: NDArray[Any],
    policies: Sequence[Policy],
    players: Int8s,
    rngs: Sequence[np.random.Generator],
    *,
    tables_a_deal: int = 1,
    log_size: int = 0,
) -> Played:
    """Play each table to the end of its episode.

    Args:
        game: what is played.
        states: [B] where to begin; they are played on in place.
        policies: P of them.
        players: [B, S] int8, which of them sits where.
        rngs: [P] one for each policy.
        tables_a_deal: B / N, how many tables in a row have the same deals; they are counted together.
        log_size: L, how many moves of each episode to keep.

    Raises:
        IllegalMove: a policy chose an action that its mask forbids.
    """
    num_tables = len(states)
    kinds = np.array([compiled_kind(policy) for policy in policies], np.int8)
    compiled = np.flatnonzero(kinds != ASK)
    streams = rngs[int(compiled[0]) if len(compiled) else 0].integers(0, 1 << 64, num_tables, np.uint64)
    actions = np.full(num_tables, -1)
    mask = np.zeros(game.rules.NUM_ACTIONS, np.int8)
    moves = np.zeros((num_tables, len(policies)), np.int64)
    rewards = np.zeros((num_tables, game.rules.NUM_SEATS))
    log = np.full((num_tables, log_size), -1, np.int16)
    counts = np.zeros((num_tables // tables_a_deal, len(policies), game.rules.NUM_COUNTS), np.int64)
    seconds = np.zeros(len(policies))
    decisions = np.zeros(len(policies), np.int64)
    play_on = kernel("play_on", game)
    arguments = states, actions, players, kinds, streams, mask, moves, rewards, log, counts
    play_on(*arguments, 0, 0)  # compile
    compiled_seconds = 0.0
    rows = np.arange(num_tables)
    while True:
        start = time.perf_counter()
        play_on(*arguments, 0, num_tables)
        compiled_seconds += time.perf_counter() - start
        actions[:] = -1
        waiting = ~states["over"]
        if not waiting.any():
            break
        player = players[rows, states["seat"]]
        for which in np.flatnonzero(kinds == ASK).tolist():
            tables = np.flatnonzero(waiting & (player == which))
            if len(tables):
                turn = turn_of_states(game, states.take(tables))  # indexing copies field by field
                start = time.perf_counter()
                actions[tables] = policies[which].act(turn, rngs[which])
                seconds[which] += time.perf_counter() - start
                decisions[which] += len(tables)
                _check_legal(policies[which], turn.mask, actions[tables])
    decisions[compiled] = moves[:, compiled].sum(axis=0)
    seconds[compiled] = compiled_seconds * decisions[compiled] / max(decisions[compiled].sum(), 1)
    return Played(states, rewards, moves, seconds, decisions, log, counts)


def _check_legal(policy: Policy, mask: Int8s, actions: NDArray[np.int64]) -> None:
    inside = (actions >= 0) & (actions < mask.shape[1])
    wrong = ~inside | (mask[np.arange(len(mask)), np.where(inside, actions, 0)] == 0)
    if wrong.any():
        row = int(wrong.argmax())
        legal = ", ".join(map(str, np.flatnonzero(mask[row])))
        name = policy.name if isinstance(policy, Opponent) else type(policy).__name__
        raise IllegalMove(f"policy {name}: action {actions[row]} is illegal; legal: {legal}")
