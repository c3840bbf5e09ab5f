"""Rollouts by a policy that is not compiled: it is asked from Python, for many worlds at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize
from card_envs.engine.rng import derive
from card_envs.game import GREEDY, Int8s, Int64s, State, UInt64s, bot_move, legal, play, reveals
from card_envs.opponents.macros import NO_ACTION, Macros
from card_envs.opponents.policy import decisions_at
from card_envs.opponents.search._budget import Budget, Float64s, stage_end
from card_envs.opponents.search._decide import SearchBatch, SearchWorkspace, draw_likely_world
from card_envs.opponents.search._parts import NEVER, Arrays, leaf_part, leaf_value, stop_of
from card_envs.opponents.search._settings import SearchSettings

PLAYOUTS_AT_ONCE = 4096


def play_others(
    first: int, last: int, states: NDArray[Any], seats: Int8s, sides: Int64s, left: Int64s, mask: Int8s
) -> int:
    """Play until the side of these seats [B] has a choice, its rollout stops or the deal ends; return the actions.

    `left` [B] counts the chance events that are due until the rollout stops: 0 where it has.
    """
    moves = 0
    for i in range(first, last):
        state, side = states[i], sides[seats[i]]
        while left[i] > 0 and not state.needs_deal and (sides[state.seat] != side or legal(state, mask) == 1):
            moves += play_unless_stopped(state, bot_move(state), left, i)
    return moves


def play_macros(first: int, last: int, states: NDArray[Any], tables: Int64s, macros: Macros, left: Int64s) -> int:
    """Play a macro-action [n] at each of some tables [n], unless the rollout stops; return the number of actions."""
    moves = 0
    for k in range(first, last):
        for step in range(macros.shape[1]):
            if macros[k, step] != NO_ACTION:
                moves += play_unless_stopped(states[tables[k]], macros[k, step], left, tables[k])
    return moves


def play_unless_stopped(state: State, action: int, left: Int64s, i: int) -> int:
    """Play an action, unless it shows the chance event before which the rollout stops; return 1 if it was played."""
    if reveals(state, action):
        left[i] -= 1
        if left[i] == 0:
            return 0
    play(state, action)
    return 1


def write_values(first: int, last: int, states: NDArray[Any], seats: Int8s, leaf: Arrays, results: Float64s) -> int:
    """Write the results [B] of rollouts for these seats; return how many actions were still played."""
    moves = 0
    for i in range(first, last):
        played, result = leaf_value(states[i], seats[i], leaf)
        moves += played
        results[i] = result
    return moves


def draw_worlds(
    first: int, last: int, state: NDArray[Any], key: UInt64s, refine_steps: int, scratch: NDArray[Any],
    worlds: NDArray[Any],
) -> None:  # fmt: skip
    """Draw the worlds with the numbers first <= w < last of one table [1]: the same as in a compiled search."""
    stream = key.copy()
    for w in range(first, last):
        stream[0] = derive(key[0], w)
        draw_likely_world(state[0], refine_steps, stream, scratch)
        worlds[w - first] = scratch[0]


class PolicyRollouts:
    """The rollouts of a search by a policy in Python, which has its random numbers from `rng`."""

    def __init__(self, search: SearchSettings, rng: np.random.Generator) -> None:
        assert search.rollout is not None
        self.game, self.player, self.rng = search.game, search.rollout, rng
        self.events, self.most = stop_of(search)
        self.value, self.leaf = leaf_part(search)

    def try_stage(self, batch: SearchBatch, i: int, budget: Budget, workspace: SearchWorkspace) -> int:
        """Try the arms in the worlds of a stage, as `_decide.try_stage`; return how many actions were played."""
        arms, stats = workspace.arms, workspace.stats
        progress, table = arms.progress[0], slice(i, i + 1)
        tried = np.concatenate([[progress.baseline], np.flatnonzero(arms.live)])
        moves, at_once = 0, max(1, PLAYOUTS_AT_ONCE // len(tried))
        end = stage_end(progress, budget)
        for start in range(progress.worlds, end, at_once):
            worlds = np.zeros(min(at_once, end - start), self.game.rules.STATE)
            specialize(draw_worlds, self.game, GREEDY)(
                start, start + len(worlds), batch.states[table], batch.keys[table], budget.refine_steps,
                workspace.states, worlds,
            )  # fmt: skip
            arm_of_row = np.tile(tried, len(worlds))
            results, played = self.play_out(np.repeat(worlds, len(tried)), arm_of_row, arms.macros)
            moves += played
            advantages = results - np.repeat(results[:: len(tried)], len(tried))
            columns: list[NDArray[Any]] = [results, results**2, advantages, advantages**2, np.ones_like(arm_of_row)]
            for total, values in zip(stats, columns):
                np.add.at(total, arm_of_row, values)
        return moves

    def play_out(self, worlds: NDArray[Any], arms: Int64s, macros: Macros) -> tuple[Float64s, int]:
        """Play arms out, each in a world of its own, the policy playing on for the mover's side.

        Args:
            worlds: [B]; they stay as they are.
            arms: [B] the arm to begin with in each.
            macros: [C, L] what the arms do.

        Returns:
            [B] the results for the movers' sides, and how many actions were played in all.
        """
        game, n = self.game, len(worlds)
        states, seats, sides = worlds.copy(), worlds["seat"].copy(), np.array(game.sides)
        mask, results, left = np.zeros(game.rules.NUM_ACTIONS, np.int8), np.zeros(n), np.full(n, self.events)
        play_all = specialize(play_macros, game)
        moves = play_all(0, n, states, np.arange(n), macros[arms], np.full(n, NEVER))
        for _ in range(self.most):
            moves += specialize(play_others, game, GREEDY)(0, n, states, seats, sides, left, mask)
            going = np.flatnonzero((states["needs_deal"] == 0) & (left > 0))
            if len(going) == 0:
                break
            actions = self.player.act(decisions_at(game, states[going]), self.rng)
            moves += play_all(0, len(going), states, going, actions[:, None].astype(np.int16), left)
        value = specialize(write_values, game, GREEDY, functions=((leaf_value, self.value),))
        return results, moves + value(0, n, states, seats, self.leaf, results)
