"""An episode that a server keeps: what a seed or packs, and the moves so far, lead to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from card_envs.engine import kernels
from card_envs.engine.compile import specialize
from card_envs.engine.legality import is_legal
from card_envs.engine.table import Table
from card_envs.game import Game, Int8s
from card_envs.opponents.policy import Decisions, decisions_at
from card_envs.options import as_json
from card_envs.record import GameRecord


class Move(NamedTuple):
    """A move that was played: by which seat, its text, and in which deal, from 0."""

    seat: int
    move: str
    deal: int


class Episode:
    """A table, its deals and its moves; what a seat sees of it, and nothing else, is what others get."""

    def __init__(self, game: Game, options: dict[str, Any], seed: int, deal: dict[str, Any] | None = None) -> None:
        """Deal.

        Args:
            game: what is played.
            options: of the game.
            seed: of the deals.
            deal: a custom one, after which the seed's follow.

        Raises:
            ValueError: of the options or the deal.
        """
        self.game = game
        self.options = game.validated(options)
        self.seed = seed
        self.deal = deal
        self.moves: list[Move] = []
        self._actions: list[int] = []
        self.dealt: list[Int8s] = []
        self._table = Table(game, game.rules.new_state(self.options))
        self._packs = game.view.parse_deal(self._table.state, deal) if deal is not None else []
        self._table.seed(seed)
        self._deal()

    def _deal(self) -> None:
        while self._table.needs_deal:
            if len(self.dealt) < len(self._packs):
                self._table.set_deal(self._packs[len(self.dealt)])
            else:
                self._table.deal()
            self.dealt.append(self.game.view.dealt_pack(self._table.state))

    @property
    def over(self) -> bool:
        return self._table.over

    @property
    def seat(self) -> int | None:
        """Whose turn it is; None after the end."""
        return None if self.over else self._table.seat

    def checked(self, text: str) -> int:
        """The action of a legal move. Raises ValueError where it is none or illegal."""
        action = self.game.view.parse_move(self._table.state, text)
        mask = self._table.legal()
        if not is_legal(mask, action):
            legal = ", ".join(self.move_text(int(number)) for number in np.flatnonzero(mask))
            raise ValueError(f"{text!r:.80} is no legal move; legal: {legal}")
        return action

    def play(self, text: str) -> None:
        """Play a move. Raises ValueError, and nothing has happened, where it is none or illegal."""
        self.play_action(self.checked(text))

    def play_action(self, action: int) -> None:
        """Play an action that is legal."""
        self._actions.append(action)
        self.moves.append(Move(self._table.seat, self.move_text(action), len(self.dealt) - 1))
        self._table.play(action)
        if not self.over:
            self._deal()

    def move_text(self, action: int) -> str:
        """An action as text."""
        return self.game.view.move_text(self._table.state, action)

    def after(self, num_moves: int) -> Episode:
        """Another one in which only the first moves have been played."""
        again = Episode(self.game, as_json(self.options), self.seed, self.deal)
        for action in self._actions[:num_moves]:
            again.play_action(action)
        return again

    def view(self, seat: int) -> dict[str, Any]:
        """All that a seat sees."""
        return self.game.view.view(self._table.state, seat)

    def outcome(self) -> dict[str, Any]:
        """As `CardEnv.outcome`."""
        reason, scores = self.game.view.outcome(self._table.state)
        return {"over": self.over, "reason": reason, "scores": scores}

    def turn(self, rng: np.random.Generator) -> Decisions:
        """The decision that is due, in a world drawn anew from what the seat to move knows: never the true one."""
        states = self._table.states.copy()
        keys = rng.integers(0, 1 << 64, 1, np.uint64)
        specialize(kernels.determinize_tables, self.game)(0, 1, states, states["seat"].copy(), keys)
        return decisions_at(self.game, states)

    def record(self) -> GameRecord:
        """The whole of it, hidden cards included."""
        return GameRecord(
            game=self.game.name,
            version=self.game.version,
            options=as_json(self.options),
            deal=self.game.view.deal_text(self.dealt),
            moves=[move.move for move in self.moves],
            outcome=self.outcome(),
        )


def position(
    episode: Episode,
    seat: int,
    players: list[str | None],
    since: int | None = None,
    can_undo: bool = False,
    problem: str | None = None,
) -> dict[str, Any]:
    """What a seat may see of an episode, with the moves from a number on."""
    number = len(episode.moves)
    return {
        "game": episode.game.name,
        "seat": seat,
        "players": players,
        "turn": number,
        "moves": [move._asdict() for move in episode.moves[number if since is None else since :]],
        "your_turn": episode.seat == seat,
        "view": episode.view(seat),
        "outcome": episode.outcome(),
        "can_undo": can_undo,
        "problem": problem,
    }
