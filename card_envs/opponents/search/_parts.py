"""The parts that a search is made of: stubs that `_decide.py` calls, and the functions that take their place.

Each part is a function and a named tuple of the arrays that it works with in one thread. `arms_part`,
`rollout_part` and `leaf_part` choose them for a `SearchPolicy`; `specialize` binds the functions when the search is
compiled, so that what a search lacks costs nothing.

| stub | functions |
| --- | --- |
| `find_arms` | `take_unranked`, `rank_by_ntuples` |
| `roll_out` | `play_to_end`, `roll_out_by_policy` |
| `next_moves`, in `roll_out_by_policy` | `scripted_moves`, `network_moves`, `lookahead_moves`, `ntuple_moves` |
| `leaf_value` | `margin_at_end`, `ntuple_value` |
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from card_envs.compiling import stub
from card_envs.compiling._specialize import Functions
from card_envs.engine.sums import Floats
from card_envs.game import Int8s, Int64s, State, bot_move, load, play, reveals, score_margin
from card_envs.opponents.macros import MAX_LENGTH, Macro
from card_envs.opponents.networks._ntuples import (
    NTupleNetwork,
    planner_of,
    worth_at,
    write_best_macros,
)
from card_envs.opponents.networks.ntuple_policy import NTuplePolicy
from card_envs.opponents.policy import Policy
from card_envs.opponents.search._budget import Arms, Budget
from card_envs.opponents.search._candidates import MacroExpansion, find_macros, new_expansion
from card_envs.opponents.search._settings import SearchSettings

RESOLUTION = 64.0  # results are rounded to whole multiples of 1/64 point, so that sums of them are exact
MAX_ACTIONS = 512  # of a playout before a leaf is valued at the latest
NEVER = 1 << 40  # more chance events, or actions, than a deal has

Arrays: TypeAlias = tuple[Any, ...]  # the named tuple of a part


class NoArrays(NamedTuple):
    """The arrays of a part that needs none."""


# Arms


@stub
def find_arms(state: State, baseline: int, tried: Int8s, budget: Budget, part: Arrays, arms: Arms) -> int:
    """Write the arms of a decision, and which are live; return the baseline arm.

    Args:
        state: not modified.
        baseline: the baseline action.
        tried: [A] 1 for the actions to try.
        budget: bounds their number.
        part: arrays of the function.
        arms: written.
    """
    raise NotImplementedError


def take_unranked(state: State, baseline: int, tried: Int8s, budget: Budget, part: MacroExpansion, arms: Arms) -> int:
    """Take the actions to try as arms, or macro-actions that begin with them; their first continues the baseline.

    Both are one function, so that they are compiled once.
    """
    if part.single:
        for action in range(tried.shape[0]):
            arms.macros[action, 0] = action
            arms.live[action] = tried[action]
        return baseline
    mark_live(find_macros(state, baseline, tried, budget.candidates, part, arms.macros), arms.live)
    return 0


class NTupleRanking(NamedTuple):
    """Macro-actions, ranked by an n-tuple network; `order` [C] is scratch."""

    network: NTupleNetwork
    order: Int64s


def rank_by_ntuples(state: State, baseline: int, tried: Int8s, budget: Budget, part: NTupleRanking, arms: Arms) -> int:
    """Take the macro-actions to the positions with the highest values as arms; the best one is the baseline."""
    mark_live(write_best_macros(state, budget.candidates, part.network, part.order, arms.macros), arms.live)
    return 0


def mark_live(number: int, live: Int8s) -> None:
    """Mark the first `number` arms."""
    for arm in range(live.shape[0]):
        live[arm] = arm < number


# Rollouts. An agent that tries every action and plays on as it would is better than itself (policy improvement by
# rollouts: Tesauro & Galperin 1996). The other sides play like the scripted player, as they do where worlds are drawn.


@stub
def roll_out(state: State, seat: int, part: Arrays) -> int:
    """Play a world on after an arm of a seat, with arrays of the function; return how many actions were played."""
    raise NotImplementedError


def play_to_end(state: State, seat: int, part: Arrays) -> int:
    """Let the scripted player finish the deal for all seats."""
    return finish_deal(state)


def finish_deal(state: State) -> int:
    """Let the scripted player finish the deal for all seats; return how many actions it played."""
    moves = 0
    while not state.needs_deal:
        play(state, bot_move(state))
        moves += 1
    return moves


class RolloutArrays(NamedTuple):
    """A policy that plays on for the side of a seat.

    Attributes:
        sides: [S] the seats' sides.
        events: the rollout stops before this many hidden cards or deals have shown (1: before the first).
        most: actions to play at most.
        macro: [MAX_LENGTH] actions.
        player: arrays of `next_moves`.
    """

    sides: Int64s
    events: int
    most: int
    macro: Macro
    player: Arrays


def roll_out_by_policy(state: State, seat: int, part: RolloutArrays) -> int:
    """Play on until the deal ends or the rollout stops; `next_moves` plays for the side of the seat."""
    moves = revealed = 0
    sides, macro = part.sides, part.macro
    while moves < part.most and not state.needs_deal:
        number = 1
        if sides[state.seat] != sides[seat]:
            macro[0] = bot_move(state)
        else:
            number = next_moves(state, part.player, macro)
        for step in range(number):
            revealed += reveals(state, macro[step])
            if revealed == part.events:
                return moves
            play(state, macro[step])
            moves += 1
    return moves


@stub
def next_moves(state: State, part: Arrays, macro: Macro) -> int:
    """Write what the player does next, with arrays of the function; return how many actions that is."""
    raise NotImplementedError


def scripted_moves(state: State, part: Arrays, macro: Macro) -> int:
    """Write the move of the scripted player."""
    macro[0] = bot_move(state)
    return 1


# Leaves


@stub
def leaf_value(state: State, seat: int, part: Arrays) -> tuple[int, float]:
    """Return how many actions were still played, and the result of a rollout for a seat, in points."""
    raise NotImplementedError


def margin_at_end(state: State, seat: int, part: Arrays) -> tuple[int, float]:
    """Return the `score_margin` at the end of the deal."""
    return 0, float(score_margin(state, seat))


class NTupleLeaf(NamedTuple):
    """An n-tuple network that values the position where a rollout stops.

    Attributes:
        weights: [W] the network's weights.
        planning: the planner's workspace, for one position.
        playout: share of the result that comes from the scripted player's play from there to the end of the deal.
    """

    weights: Floats
    planning: Any
    playout: float


def ntuple_value(state: State, seat: int, part: NTupleLeaf) -> tuple[int, float]:
    """Return the network's value of the position, unless the deal has ended."""
    moves = 0
    result = float(score_margin(state, seat))
    if not state.needs_deal:
        load(state, seat, part.planning)
        result = worth_at(0, part.weights, part.planning)
        if part.playout > 0:
            moves = finish_deal(state)
            result += part.playout * (float(score_margin(state, seat)) - result)
    return moves, np.rint(RESOLUTION * result) / RESOLUTION


# The parts of a policy


def arms_part(search: SearchSettings, budget: Budget) -> tuple[Any, Arrays]:
    """Return the function for `find_arms`, and its arrays."""
    prior, most = search.prior, budget.candidates
    if search.moves == "single":
        return take_unranked, new_expansion(search.game, 1, False, single=True)
    if not isinstance(prior, NTuplePolicy):
        return take_unranked, new_expansion(search.game, most, prior is None and search.rollout is None)
    return rank_by_ntuples, NTupleRanking(prior.network(), np.zeros(most, np.int64))


def ranks_macros(search: SearchSettings) -> bool:
    """Return whether the prior of a search ranks macro-actions."""
    return search.moves == "turn" and isinstance(search.prior, NTuplePolicy)


def moves_part(policy: Policy | None, positions: int | None = None) -> tuple[Any, Arrays]:
    """Return the function for `next_moves` that plays like a policy, and its arrays; `scripted_moves` if none does."""
    if policy is None or not policy.is_compiled:
        return scripted_moves, NoArrays()
    return policy.compiled_moves(positions)


def rollout_part(search: SearchSettings) -> tuple[Functions, Arrays]:
    """Return the functions for `roll_out` and `next_moves`, and the arrays."""
    game = search.game
    moves, player = moves_part(search.rollout, search.rollout_positions)
    if moves is scripted_moves and search.leaf is None:
        return ((roll_out, play_to_end),), NoArrays()
    macro = np.zeros(MAX_LENGTH, np.int16)
    stop = (NEVER, NEVER) if search.leaf is None else (search.leaf_after, MAX_ACTIONS)
    rollout = RolloutArrays(np.array(game.sides), *stop, macro, player)
    return ((roll_out, roll_out_by_policy), (next_moves, moves)), rollout


def leaf_part(search: SearchSettings) -> tuple[Any, Arrays]:
    """Return the function for `leaf_value`, and its arrays."""
    leaf: Any = search.leaf  # an n-tuple network
    if leaf is None:
        return margin_at_end, NoArrays()
    return ntuple_value, NTupleLeaf(leaf.table, planner_of(search.game).new_scratch(1), search.leaf_playout)
