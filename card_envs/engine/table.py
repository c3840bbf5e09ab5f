"""One table with a game's compiled rules behind it: what environments, views and records play on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from card_envs.engine import kernels
from card_envs.engine.compile import bind
from card_envs.engine.rng import table_keys
from card_envs.game import Game, Int8s, State


class Table:
    """A State and the operations on it. The state is `table.state`; copying a Table copies it."""

    def __init__(self, game: Game, state: State) -> None:
        self.game = game
        self.states = np.zeros(1, game.rules.STATE)
        self.states[0] = state
        self.state: State = self.states[0]
        # Attribute access on a record takes microseconds from Python; these views of it do not.
        self._seat, self._over, self._needs_deal = (self.states[name] for name in ("seat", "over", "needs_deal"))
        self._rewards = self.states["rewards"][0]
        self._play = bind(kernels.play_table, game)
        self._legal = bind(kernels.legal_table, game)
        self._observe = bind(kernels.observe_table, game)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.game, self.states.tobytes())

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
        """Of the last move, for each seat."""
        rewards: list[float] = self._rewards.tolist()
        return rewards

    def copy(self) -> Table:
        return Table(self.game, self.state)

    def seed(self, seed: int, table: int = 0) -> None:
        """Key the table's stream and end its episode, so that the next deal begins one."""
        self.state.rng = table_keys(seed, np.array([table]))[0]
        self.state.over = self.state.needs_deal = True

    def deal(self) -> None:
        bind(kernels.deal_table, self.game)(self.states, 0)

    def arrange(self, pack: Int8s) -> None:
        bind(kernels.arrange_table, self.game)(self.states, 0, pack)

    def play(self, action: int) -> None:
        """Play a legal action (unchecked)."""
        self._play(self.states, 0, action)

    def legal(self) -> Int8s:
        """A new 0/1 mask `int8 [A]` of the seat to move; all zero where the next thing is a deal."""
        mask = np.empty(self.game.rules.NUM_ACTIONS, np.int8)
        self._legal(self.states, 0, mask)
        return mask

    def observe(self, seat: int) -> Int8s:
        """A new observation `int8 [D]`."""
        obs = np.empty(self.game.rules.OBS_SIZE, np.int8)
        self._observe(self.states, 0, seat, obs)
        return obs

    def observe_all(self, seat: int) -> Int8s:
        """The full state seen from a seat, `int8 [FULL_SIZE]`."""
        full = np.empty(self.game.rules.FULL_SIZE, np.int8)
        bind(kernels.observe_all_table, self.game)(self.states, 0, seat, full)
        return full

    def redeal_hidden(self, seat: int, key: int) -> None:
        """Draw anew what a seat can't know, in place."""
        keys = np.array([key], np.uint64)
        bind(kernels.redeal_tables, self.game)(0, 1, self.states, np.array([seat], np.int8), keys)

    def bot_move(self, bot: str) -> int:
        """The move of one of the game's scripted players."""
        actions: NDArray[np.int64] = np.zeros(1, np.int64)
        bind(kernels.bot_actions, self.game, bot)(0, 1, self.states, actions)
        return int(actions[0])


def _restore(game: Game, state: bytes) -> Table:
    return Table(game, np.frombuffer(state, game.rules.STATE)[0])


class Replay(NamedTuple):
    """Moves that were played again.

    Attributes:
        moves: in the notation of RULES.md.
        packs: of all deals on the way, as `arrange` takes them.
    """

    moves: list[str]
    packs: list[Int8s]


def play_again(table: Table, actions: Iterable[int], packs: Iterable[Int8s] = ()) -> Replay:
    """Play legal actions (unchecked) on a table and write them down: the notation needs the state of each.

    Args:
        table: where to begin; it is played on.
        actions: to play.
        packs: of the deals on the way; those after them come from the table's own stream.
    """
    game, given = table.game, iter(packs)
    moves: list[str] = []
    dealt: list[Int8s] = []
    for action in actions:
        while table.needs_deal:
            pack = next(given, None)
            if pack is None:
                table.deal()
            else:
                table.arrange(pack)
            dealt.append(game.view.dealt_pack(table.state))
        moves.append(game.view.move_text(table.state, action))
        table.play(action)
    return Replay(moves, dealt)
