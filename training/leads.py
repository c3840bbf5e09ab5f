"""What each legal move of a position gains over `greedy`'s, where `greedy` or another player plays on.

The hidden cards are those of the deal as it was played: what the others did is believed as far as it deserves, without
a model of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from card_envs.engine.compile import specialize
from card_envs.engine.rng import derive, table_keys
from card_envs.game import Game, Int8s, Int64s, UInt64s
from card_envs.opponents.lines import Lines, single_moves
from card_envs.opponents.policy import Policy
from card_envs.opponents.rollouts import played_out
from card_envs.opponents.searching import (
    TO_THE_END,
    Ending,
    Scratch,
    Trials,
    draw_likely_world,
    new_scratch,
    no_trials,
    try_lines,
)

if TYPE_CHECKING:
    import torch

PLAYER = "greedy"
SHARPNESS = 20.0  # of the policy: by how much a move's logit rises for a lead of one standard deviation


def try_tables(
    first: int, last: int, states: NDArray[Any], keys: UInt64s, worlds: int, lines: Lines, own: Int64s, live: Int8s,
    ending: Ending, scratch: Scratch, trials: Trials,
) -> None:  # fmt: skip
    """Try all moves of each table, first in the deal itself; `live` [B, A]: the legal moves without the own one."""
    for i in range(first, last):
        rivals = 0
        for action in range(live.shape[1]):
            rivals += live[i, action]
        if rivals == 0:
            continue
        found = Trials(trials.sums[i], trials.squares[i], trials.leads[i], trials.lead_squares[i], trials.worlds[i])
        for world in range(worlds):
            scratch.states[0] = states[i]
            if world:
                scratch.stream[0] = derive(keys[i], world)
                draw_likely_world(states[i], 0, scratch.stream, scratch.states)
            try_lines(lines, own[i], live[i], ending, None, scratch, found)


def leads_over(
    game: Game,
    states: NDArray[Any],
    own: Int64s,
    mask: Int8s,
    ending: Ending = TO_THE_END,
    worlds: int = 1,
    seed: int = 0,
) -> NDArray[np.float32]:
    """[B, A] points that each move brings the mover's side beyond what the own one does; 0 for others.

    Args:
        game: what is played.
        states: [B]; they stay as they are.
        own: [B] the moves of `greedy`.
        mask: [B, A] which legal moves to try.
        ending: how `greedy` plays on after the move.
        worlds: in which moves are tried, the deal itself among them; the mean counts.
        seed: of the worlds that are drawn.
    """
    live = mask.copy()
    live[np.arange(len(own)), own] = 0
    trials, scratch = no_trials(mask.shape), new_scratch(game, ending.net)
    keys = table_keys(seed, np.arange(len(own)))
    specialize(try_tables, game, PLAYER)(
        0, len(own), states, keys, worlds, single_moves(mask.shape[1]), own, live, ending, scratch, trials
    )
    return (trials.leads / worlds).astype(np.float32)


def leads_led(
    game: Game, states: NDArray[Any], own: Int64s, shown: Int8s, leader: Policy, rng: np.random.Generator
) -> NDArray[np.float32]:
    """The same in the deal as it was played, with another player than `greedy` in all seats after the move.

    Args:
        game: what is played.
        states: [B]; they stay as they are.
        own: [B] the moves of `greedy`.
        shown: [B, A] the moves to try, the own ones among them.
        leader: who plays on.
        rng: for that player.
    """
    choices = np.flatnonzero(shown.sum(axis=1) > 1)
    reached = np.zeros(shown.shape)
    reached[choices], _ = played_out(game, states[choices], shown[choices], leader, rng)
    leads = reached - np.take_along_axis(reached, own[:, None], axis=1)
    return np.where(shown, leads, 0).astype(np.float32)


def leads_loss(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The sum of squared errors of some leads, in standard deviations.

    Moves that the network itself believes far behind are told apart from each other for nothing: others count more.
    """
    return ((found - wanted) ** 2 / (1 + found.detach() ** 2)).sum()


def kinds_of(game: Game) -> Int64s:
    """[A] which of the game's kinds of decisions (`phases`) each action belongs to."""
    kinds = np.zeros(game.rules.NUM_ACTIONS, np.int64)
    for number, actions in enumerate(game.phases.values()):
        kinds[actions.start : actions.stop] = number
    return kinds


def spreads(leads: NDArray[np.float32], own: Int64s, mask: Int8s, kinds: Int64s) -> NDArray[np.float32]:
    """[K] the standard deviation of the best rival's lead in each kind of decision; 1 where there is none.

    Args:
        leads: [n, A].
        own: [n] the moves of `greedy`.
        mask: [n, A] legal moves.
        kinds: [A] the kind of decision that an action belongs to, below K.
    """
    rivals = mask != 0
    rivals[np.arange(len(own)), own] = False
    return spreads_of_best(np.where(rivals, leads, -np.inf).max(axis=1), own, kinds)


def spreads_of_best(best: NDArray[np.float32], own: Int64s, kinds: Int64s) -> NDArray[np.float32]:
    """The same from the best rivals' leads [n] themselves, -inf where there is no rival."""
    kind = np.where(np.isfinite(best), kinds[own], -1)
    found = [float(best[kind == k].std()) if (kind == k).any() else 0.0 for k in range(int(kinds.max()) + 1)]
    return np.array([spread or 1.0 for spread in found], np.float32)
