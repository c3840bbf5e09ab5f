"""One table with a game's compiled rules: environments, views and records play on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from card_envs.compiling import specialize, specialize_bot
from card_envs.engine import kernels
from card_envs.engine.buffers import INT8, MAX_TABLES, Fixed, check_game, check_int, checked
from card_envs.engine.rng import table_keys
from card_envs.game import Game, Int8s, State


class Table(Fixed):
    """A State and the operations on it. The state is `table.state`; copying a Table copies it.

    Arguments are checked, but not against the rules: `play` accepts illegal actions, and values written to the state
    are trusted.
    """

    def __init__(self, game: Game, state: State) -> None:
        check_game(game)
        if getattr(state, "dtype", None) != game.rules.STATE or state.shape != ():
            raise ValueError(f"state: expected one State of {game.name}, got {state!r:.80}")
        self.game = game
        self._states = np.zeros(1, game.rules.STATE)
        self._states[0] = state
        self.states = self._states.view()  # a view, so that reshaping it does not affect the table
        self.state: State = self._states[0]
        # Views of the fields: attribute access on a record takes microseconds in Python.
        self._seat, self._over, self._needs_deal = (self._states[name] for name in ("seat", "over", "needs_deal"))
        self._check_seat(self.seat, "state: seat")
        self._rewards = self._states["rewards"][0]
        self._play = specialize(kernels.play_table, game)
        self._legal = specialize(kernels.legal_table, game)
        self._observe = specialize(kernels.observe_table, game)
        self._turn = specialize(kernels.turn_table, game)  # unchecked: `CardEnv` has checked the arguments

    def _check_seat(self, seat: int, where: str = "seat") -> int:
        return check_int(seat, 0, self.game.rules.NUM_SEATS - 1, where)

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self.game, self.state.copy())

    @property
    def seat(self) -> int:
        """The seat to move."""
        return int(self._seat[0])

    @property
    def over(self) -> bool:
        return bool(self._over[0])

    @property
    def needs_deal(self) -> bool:
        return bool(self._needs_deal[0])

    @property
    def rewards(self) -> list[float]:
        """The reward of the last action for each seat."""
        rewards: list[float] = self._rewards.tolist()
        return rewards

    def copy(self) -> Table:
        return Table(self.game, self.state)

    def seed(self, seed: int, table: int = 0) -> None:
        """Set the key of the table's stream and end its episode: the next deal begins one. Raises ValueError."""
        table = check_int(table, 0, MAX_TABLES - 1, "table")
        self.state.rng = table_keys(seed, np.array([table]))[0]
        self.state.over = self.state.needs_deal = True

    def deal(self) -> None:
        specialize(kernels.deal_table, self.game)(self._states, 0)

    def set_deal(self, pack: Int8s) -> None:
        """Deal a pack as returned by `parse_deal`; its cards are not checked."""
        pack = checked("pack", pack, (self.game.rules.PACK_SIZE,), INT8, written=False)
        specialize(kernels.set_deal_table, self.game)(self._states, 0, pack)

    def play(self, action: int) -> None:
        """Play an action; it must be legal, but only its range is checked.

        Raises:
            ValueError: out of range, or no decision is due.
        """
        if self._needs_deal[0]:
            raise ValueError("action: no decision is due: a deal comes next")
        self._play(self._states, 0, check_int(action, 0, self.game.rules.NUM_ACTIONS - 1, "action"))

    def legal(self) -> Int8s:
        """Return a new 0/1 mask, int8 [A], of the seat to move; all zero if a deal comes next."""
        mask = np.empty(self.game.rules.NUM_ACTIONS, np.int8)
        self._legal(self._states, 0, mask)
        return mask

    def observe(self, seat: int) -> Int8s:
        """Return a new observation, int8 [D]."""
        obs = np.empty(self.game.rules.OBS_SIZE, np.int8)
        self._observe(self._states, 0, self._check_seat(seat), obs)
        return obs

    def observe_all(self, seat: int) -> Int8s:
        """Return the full state relative to a seat, int8 [FULL_SIZE]."""
        full = np.empty(self.game.rules.FULL_SIZE, np.int8)
        specialize(kernels.observe_all_table, self.game)(self._states, 0, self._check_seat(seat), full)
        return full

    def determinize(self, seat: int, key: int) -> None:
        """Redraw what a seat can't know, in place."""
        keys = np.array([check_int(key, 0, (1 << 64) - 1, "key")], np.uint64)
        seats = np.array([self._check_seat(seat)], np.int8)
        specialize(kernels.determinize_tables, self.game)(0, 1, self._states, seats, keys)

    def bot_move(self, bot: str) -> int:
        """Return the move of one of the game's scripted players."""
        actions: NDArray[np.int64] = np.zeros(1, np.int64)
        specialize_bot(kernels.bot_actions, self.game, bot)(0, 1, self._states, actions)
        return int(actions[0])


def legal_actions(game: Game, state: State) -> list[int]:
    """Return the legal actions of a state with a decision due, in a fraction of the time that a Table takes."""
    states, mask = np.empty(1, game.rules.STATE), np.empty(game.rules.NUM_ACTIONS, np.int8)
    states[0] = state
    specialize(kernels.legal_table, game)(states, 0, mask)
    actions: list[int] = np.flatnonzero(mask).tolist()
    return actions
