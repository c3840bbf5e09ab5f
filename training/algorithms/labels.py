"""The advantage of every legal move over the baseline action: what it gains where somebody plays the deal to its end.

The hidden cards are those of the deal as it was played, so that what the others did needs no model; where it tells
nothing of hidden cards, the mean over several drawn worlds has less noise. A row of a loop is a pair of a table and a
move of it: on a GPU, a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.engine.dealing import copy_state
from card_envs.engine.rng import derive_each, table_keys
from card_envs.game import GREEDY, SCRATCH_STATES, Game, Int64s, UInt64s, play, score_margin
from card_envs.opponents.search._decide import draw_likely_world
from card_envs.opponents.search._parts import finish_deal

from ..tables import TensorTables

PAIRS_PER_LAUNCH = 1 << 17  # on a GPU, each with a State of its own
DRAWS_PER_LAUNCH = 1 << 12  # likewise, each with SCRATCH_STATES of them
# Plays legal moves of pairs [R, 2] int64 of a table and a move, from States [B, itemsize] uint8 that stay as they are,
# and the deals to their ends; returns [R] float64, the margins there for the seats that moved.
Finisher: TypeAlias = Callable[[TensorTables, torch.Tensor, torch.Tensor, np.random.Generator], torch.Tensor]


def try_pairs(
    first: int, last: int, states: NDArray[Any], pairs: Int64s, played: NDArray[Any], results: NDArray[np.float64]
) -> None:
    """Play moves of pairs [R, 2] and let the scripted player finish the deals; write the margins into `results` [R].

    Row r works in `played` [K] at r % K.
    """
    for r in range(first, last):
        k, i = r % played.shape[0], pairs[r, 0]
        copy_state(states, i, played, k)
        play(played[k], pairs[r, 1])
        finish_deal(played[k])
        results[r] = score_margin(played[k], states[i].seat)


def draw_table_worlds(
    first: int, last: int, states: NDArray[Any], tables: Int64s, streams: UInt64s, scratch: NDArray[Any],
    worlds: NDArray[Any],
) -> None:  # fmt: skip
    """Draw a world for each of the tables [R], at its place in `worlds` [B], from its stream [B].

    Row r works in `scratch` [K * SCRATCH_STATES] at r % K.
    """
    for r in range(first, last):
        i = tables[r]
        start = r * SCRATCH_STATES % scratch.shape[0]
        draw_likely_world(states[i], 0, streams[i : i + 1], scratch[start : start + SCRATCH_STATES])
        copy_state(scratch, start, worlds, i)


def finish_by_greedy(
    tables: TensorTables, states: torch.Tensor, pairs: torch.Tensor, rng: np.random.Generator
) -> torch.Tensor:
    """Let `greedy` finish the deals: see `Finisher`."""
    results = torch.zeros(len(pairs), dtype=torch.float64, device=pairs.device)
    parts, number = tables.parts(pairs, PAIRS_PER_LAUNCH)
    played = states.new_zeros((number, states.shape[1]))
    for part, into in zip(parts, tables.parts(results, PAIRS_PER_LAUNCH)[0]):
        tables.run(try_pairs, len(part), states, part, played, into, bot=GREEDY)
    return results


class MoveLabels:
    """Labels moves with their advantages over the baseline actions."""

    def __init__(self, game: Game, worlds: int = 1, finish: Finisher = finish_by_greedy) -> None:
        """Choose in how many worlds moves are tried, the deal itself among them; labels are means."""
        self.game = game
        self.worlds = worlds
        self.finish = finish

    def __call__(
        self, tables: TensorTables, baseline: torch.Tensor, moves: torch.Tensor, rng: np.random.Generator
    ) -> torch.Tensor:
        """Return [B, A] float32, points that each move brings the mover's side beyond what the baseline does; else 0.

        Args:
            tables: B tables, not modified.
            baseline: [B] int64, the moves of `greedy`.
            moves: [B, A] int8, the legal moves to try.
            rng: source of draws.
        """
        seed = int(rng.integers(1 << 62)) if self.worlds > 1 else 0
        baselines = baseline[:, None]
        tried = moves.scatter(1, baselines, 0)
        pairs = tried.scatter(1, baselines, tried.amax(dim=1, keepdim=True)).nonzero().contiguous()  # baselines as well
        table, action = pairs.unbind(1)
        sums = torch.zeros(moves.shape, dtype=torch.float64, device=moves.device)
        for world in range(self.worlds):
            states = self._draw(tables, tried.any(dim=1).nonzero()[:, 0], world, seed) if world else tables.state_bytes
            results = torch.zeros_like(sums)
            results[table, action] = self.finish(tables, states, pairs, rng)
            sums += results - results.gather(1, baselines)
        return (sums / self.worlds).float().masked_fill_(tried == 0, 0)

    def _draw(self, tables: TensorTables, numbers: torch.Tensor, world: int, seed: int) -> torch.Tensor:
        """Return [B, itemsize] States, a drawn world at each of the tables of these numbers."""
        states, size = tables.state_bytes, tables.state_bytes.shape[1]
        streams = torch.from_numpy(derive_each(table_keys(seed, np.arange(len(states))), world)).to(states.device)
        worlds = torch.zeros_like(states)
        parts, number = tables.parts(numbers.contiguous(), DRAWS_PER_LAUNCH)
        scratch = states.new_zeros((number * SCRATCH_STATES, size))
        for part in parts:
            tables.run(draw_table_worlds, len(part), states, part, streams, scratch, worlds)
        return worlds


def phases_of(game: Game) -> Int64s:
    """Return [A] the number of the game's phase (`phases`, such as bidding) that each action belongs to."""
    numbers = np.zeros(game.rules.NUM_ACTIONS, np.int64)
    for number, actions in enumerate(game.view.PHASES.values()):
        numbers[actions.start : actions.stop] = number
    return numbers


def phase_deviations(
    advantages: torch.Tensor, baseline: torch.Tensor, mask: torch.Tensor, phases: torch.Tensor
) -> NDArray[np.float32]:
    """Return [K] the standard deviation of the best alternative's advantage in each phase; 1 where there is none.

    Args:
        advantages: [n, A].
        baseline: [n] the moves of `greedy`.
        mask: [n, A] legal moves.
        phases: [A] the phase that an action belongs to, below K.
    """
    alternatives = (mask != 0).scatter(1, baseline[:, None], False)
    best = advantages.masked_fill(~alternatives, -torch.inf).amax(dim=1).cpu().numpy()
    phase = np.where(np.isfinite(best), phases[baseline].cpu().numpy(), -1)
    deviations = [float(best[phase == k].std()) if (phase == k).any() else 0.0 for k in range(int(phases.max()) + 1)]
    return np.array([spread or 1.0 for spread in deviations], np.float32)
