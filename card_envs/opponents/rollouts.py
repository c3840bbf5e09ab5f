"""Moves played out by a policy, many at once: a search whose guide plays on for its own side instead of `greedy`.

A player that tries every move and plays on as it would is better than itself (policy improvement by rollouts: Tesauro &
Galperin 1996). The other sides are taken to play like `greedy`, as they are where worlds are drawn. A network takes a
hundred times as long for a playout as `greedy`, so that few worlds must do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.compile import specialize
from card_envs.engine.rng import derive
from card_envs.game import SCRATCH_STATES, Game, Int8s, Int64s, UInt64s, bot_move, legal, play, score_margin
from card_envs.opponents.policy import Policy, decisions_at, moves_of
from card_envs.opponents.searching import Budget, Floats, Race, Tables, Trials, draw_likely_world, stage_end

PLAYER = "greedy"  # who plays for the other sides, and by whose lights worlds are likely
PART = 4096  # worlds at once


def play_at(first: int, last: int, states: NDArray[Any], tables: Int64s, actions: Int64s) -> None:
    """Play one action at each of some tables."""
    for k in range(first, last):
        play(states[tables[k]], actions[k])


def play_others(first: int, last: int, states: NDArray[Any], seats: Int8s, sides: Int64s, mask: Int8s) -> int:
    """Play on until the side of these seats [B] has a choice, or the deal ends; returns how many moves that took."""
    moves = 0
    for i in range(first, last):
        state, side = states[i], sides[seats[i]]
        while not state.needs_deal and (sides[state.seat] != side or legal(state, mask) == 1):
            play(state, bot_move(state))
            moves += 1
    return moves


def note_standings(first: int, last: int, states: NDArray[Any], seats: Int8s, results: Floats) -> None:
    """Write the points that the deal has brought so far to these seats [B]."""
    for i in range(first, last):
        results[i] = score_margin(states[i], seats[i])


def count_worlds(first: int, last: int, budget: Budget, race: Race, numbers: Int64s) -> None:
    """Write in how many worlds the moves of each table are tried in the stage at hand."""
    for i in range(first, last):
        numbers[i] = stage_end(i, budget, race) - race.worlds[i]


def draw_worlds(
    first: int, last: int, tables: Int64s, numbers: Int64s, states: NDArray[Any], keys: UInt64s, steps: int,
    stream: UInt64s, scratch: NDArray[Any], worlds: NDArray[Any],
) -> None:  # fmt: skip
    """Draw the worlds with these numbers of some tables, the same that a search tries moves in."""
    for k in range(first, last):
        stream[0] = derive(keys[tables[k]], numbers[k])
        draw_likely_world(states[tables[k]], steps, stream, scratch)
        worlds[k] = scratch[0]


def played_out(
    game: Game, states: NDArray[Any], tried: Int8s, player: Policy, rng: np.random.Generator
) -> tuple[Floats, int]:
    """What moves bring to the mover where a policy plays on for its side until the deal ends, `greedy` for the others.

    Args:
        game: what is played.
        states: [n]; they stay as they are.
        tried: [n, A] which moves.
        player: the policy.
        rng: for it.

    Returns:
        [n, A] points of the mover's side, 0 for other moves, and how many moves were made in all.
    """
    table, action = np.nonzero(tried)
    left, seats, results = states[table], states["seat"][table].copy(), np.zeros(len(table))
    sides, mask = np.array(game.sides), np.zeros(game.rules.NUM_ACTIONS, np.int8)
    specialize(play_at, game)(0, len(table), left, np.arange(len(table)), action)
    moves = len(table)
    while True:
        moves += specialize(play_others, game, PLAYER)(0, len(table), left, seats, sides, mask)
        alive = np.flatnonzero(left["needs_deal"] == 0)
        if len(alive) == 0:
            break
        decisions = decisions_at(game, left[alive])
        specialize(play_at, game)(0, len(alive), left, alive, moves_of(player, decisions, rng))
        moves += len(alive)
    specialize(note_standings, game)(0, len(left), left, seats, results)
    reached = np.zeros(tried.shape)
    reached[table, action] = results
    return reached, moves


class Rollouts:
    """Tries moves as `Crew` does, but for who plays them out."""

    def __init__(self, game: Game, player: Policy, seed: UInt64s) -> None:
        self.game = game
        self.player = player
        self.rng = np.random.default_rng(seed)

    def __enter__(self) -> Rollouts:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def try_stage(self, tables: Tables, budget: Budget, trials: Trials) -> int:
        """Try the moves in the worlds of a stage; returns how many moves were made in all worlds."""
        numbers = np.zeros(len(tables.own), np.int64)
        specialize(count_worlds)(0, len(numbers), budget, tables.race, numbers)
        table = np.repeat(np.arange(len(numbers)), numbers)
        world = np.arange(len(table)) - np.repeat(np.cumsum(numbers) - numbers - tables.race.worlds, numbers)
        return sum(
            self._try_worlds(tables, table[start : start + PART], world[start : start + PART], budget.steps, trials)
            for start in range(0, len(table), PART)
        )

    def _try_worlds(self, tables: Tables, table: Int64s, world: Int64s, steps: int, trials: Trials) -> int:
        states, scratch = np.zeros(len(table), self.game.rules.STATE), np.zeros(SCRATCH_STATES, self.game.rules.STATE)
        specialize(draw_worlds, self.game, PLAYER)(
            0, len(table), table, world, tables.states, tables.keys, steps, np.zeros(1, np.uint64), scratch, states
        )
        own, tried = tables.own[table], tables.live[table]  # lines of one move, with the number of that
        tried[np.arange(len(table)), own] = 1
        results, moves = played_out(self.game, states, tried, self.player, self.rng)
        leads = np.where(tried, results - np.take_along_axis(results, own[:, None], axis=1), 0)
        more: list[NDArray[Any]] = [results, results**2, leads, leads**2, tried]
        for whole, found in zip(trials, more):
            np.add.at(whole, table, found)
        return moves
