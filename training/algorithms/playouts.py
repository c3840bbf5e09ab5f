"""Policy improvement by rollouts (Tesauro & Galperin 1996): the learner itself plays tried moves to the end.

Tables are forked, a fork for each tried move, and the learner's network has all seats at them. All forks decide
together; those whose deal has ended make room for the next ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from card_envs.engine.buffers import row_size
from card_envs.engine.dealing import copy_state
from card_envs.engine.kernels import bot_actions
from card_envs.game import GREEDY, Game, Int8s, Int64s, State, legal, observe, play, score_margin

from ..moves import DeviceRecorder, HostRecorder, take
from ..networks import ActorNetwork, Inputs, Observations
from ..rollout import Backend, draw_by_noise, reading_of
from ..tables import TensorTables

FORKS = {"cpu": 1024, "cuda": 1 << 16}  # tables that the learner plays at together


def fork_tables(
    first: int, last: int, states: NDArray[Any], pairs: Int64s, forks: NDArray[Any], rows: Int8s,
    sizes: tuple[int, int], running: Int8s,
) -> None:  # fmt: skip
    """Play moves of pairs [R, 2], a table and a move, at copies of the tables: see `advance_fork`.

    Observation and mask, which have these `sizes`, go side by side into `rows` [R, W].
    """
    for r in range(first, last):
        copy_state(states, pairs[r, 0], forks, r)
        mask = rows[r, sizes[0] : sizes[0] + sizes[1]]
        running[r] = advance_fork(forks[r], pairs[r, 1], rows[r, : sizes[0]], mask)


def step_forks(
    first: int, last: int, forks: NDArray[Any], actions: Int64s, rows: Int8s, sizes: tuple[int, int], running: Int8s
) -> None:
    """Play an action at each fork, none of which has ended: see `fork_tables`."""
    for r in range(first, last):
        mask = rows[r, sizes[0] : sizes[0] + sizes[1]]
        running[r] = advance_fork(forks[r], actions[r], rows[r, : sizes[0]], mask)


def advance_fork(state: State, action: int, obs: Int8s, mask: Int8s) -> bool:
    """Play an action and what is forced then; return whether there is a choice, and write what the mover sees."""
    play(state, action)
    while not state.needs_deal:
        if legal(state, mask) > 1:
            observe(state, state.seat, obs)
            return True
        forced = 0
        while mask[forced] == 0:
            forced += 1
        play(state, forced)
    return False


def write_margins(
    first: int, last: int, states: NDArray[Any], pairs: Int64s, forks: NDArray[Any], results: NDArray[np.float64]
) -> None:
    """Write the margins at the ends of forks, for the seats that moved at their tables."""
    for r in range(first, last):
        results[r] = score_margin(forks[r], states[pairs[r, 0]].seat)


class LearnerPlayouts:
    """Finishes deals with a network in all seats, whose moves are drawn: a `Finisher`."""

    def __init__(self, game: Game, backend: Backend, actor: ActorNetwork) -> None:
        """Take the network; it plays with its current weights whenever deals are finished."""
        self.game = game
        self.backend = backend
        self.actor = actor
        self.at_once = FORKS[backend.device.type]
        self.reading = reading_of([actor])
        self._generator = torch.Generator(backend.device)
        self._recorder: HostRecorder | DeviceRecorder | None = None

    @torch.no_grad()
    def __call__(
        self, tables: TensorTables, states: torch.Tensor, pairs: torch.Tensor, rng: np.random.Generator
    ) -> torch.Tensor:
        self._generator.manual_seed(int(rng.integers(1 << 63)))
        parts = torch.split(pairs, self.at_once)
        margins = [self._finish(tables, states, part.contiguous()) for part in parts if len(part)]
        return torch.cat(margins) if margins else torch.zeros(0, dtype=torch.float64, device=pairs.device)

    def _finish(self, tables: TensorTables, states: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """Return the margins [R] of so few pairs that all their forks are played at together."""
        rules, number = self.game.rules, len(pairs)
        sizes = rules.OBS_SIZE, rules.NUM_ACTIONS
        ended = states.new_zeros((number, states.shape[1]))
        forks = torch.zeros_like(ended)
        rows = torch.zeros((number, row_size(sum(sizes))), dtype=torch.int8, device=states.device)
        running = torch.zeros(number, dtype=torch.int8, device=states.device)
        numbers = torch.arange(number, device=states.device)  # of the pairs that the forks are of
        tables.run(fork_tables, number, states, pairs, forks, rows, sizes, running)
        while True:
            over, going = (running == 0).nonzero()[:, 0], running.nonzero()[:, 0]
            if len(over):
                ended[numbers[over]] = forks[over]
                forks, rows, numbers = take(forks, going), take(rows, going), numbers[going]
            if not len(going):
                break
            running = torch.zeros(len(going), dtype=torch.int8, device=states.device)
            tables.run(step_forks, len(going), forks, self._draw_moves(tables, forks, rows), rows, sizes, running)
        results = torch.zeros(number, dtype=torch.float64, device=states.device)
        tables.run(write_margins, number, states, pairs, ended, results)
        return results

    def _draw_moves(self, tables: TensorTables, forks: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return [n] the network's moves at forks, of which `rows` hold observation and mask."""
        start, size = self.game.rules.OBS_SIZE, self.game.rules.OBS_SIZE + self.game.rules.NUM_ACTIONS
        mask, after = rows[:, start:size], None
        if self.reading is not None:
            if self._recorder is None or self._recorder.tables is not tables:
                self._recorder = self.backend.recorder(self.game, self.reading, 1, tables)
            baseline = torch.zeros(len(forks), dtype=torch.int64, device=forks.device)
            tables.run(bot_actions, len(forks), forks, baseline, bot=GREEDY)
            after = self._recorder.moves_at(forks, baseline, mask)
        inputs = Inputs(Observations(rows, self.backend.dense, size=size), after)
        logits = self.actor.logits(inputs, torch.arange(len(forks), device=forks.device))
        return draw_by_noise(logits, mask, self._generator)[0]
