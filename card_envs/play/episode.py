"""Episode: a table with its deals and actions, from which it can be recorded, replayed and taken back.

Environments, the server, comparisons and the terminal all play on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from card_envs.engine.legality import is_legal
from card_envs.engine.table import Table
from card_envs.game import Game, Pack, State, States
from card_envs.options import as_json

if TYPE_CHECKING:
    from card_envs.record import GameRecord

RANDOM = object()  # no custom deal


class Episode:
    """One episode under way.

    Attributes:
        game: what is played.
        options: of the game, validated.
        table: where it is played.
        dealt: the table's states [1] right after each deal.
        actions: played so far.
    """

    def __init__(
        self, game: Game, options: Any, deal: object = RANDOM, seed: int | None = None, number: int = 0, key: int = 0
    ) -> None:
        """Deal.

        Args:
            game: what is played.
            options: of the game, validated.
            deal: a custom deal, in the format of RULES.md, or RANDOM; after its packs, deals are random.
            seed: of the random deals, from 0 to 2**64 - 1.
            number: of the table: each has deals of its own for a seed.
            key: of the stream that random deals go on from, where there is no seed.

        Raises:
            ValueError: a malformed seed or deal.
        """
        self.game = game
        self.options = options
        self._start = deal, seed, number, key
        self.table = Table(game, game.rules.new_state(options))
        self.table.state.rng = key
        self._given: list[Pack] = [] if deal is RANDOM else game.view.parse_deal(self.table.state, deal)
        if seed is not None:
            self.table.seed(seed, number)
        self.dealt: list[States] = []
        self.actions: list[int] = []
        self.deal()

    def deal(self) -> None:
        """Deal as long as the next thing is a deal: a given pack, else a random one."""
        table = self.table
        while table.needs_deal:
            if len(self.dealt) < len(self._given):
                table.set_deal(self._given[len(self.dealt)])
            else:
                table.deal()
            self.dealt.append(table.states.copy())

    @property
    def over(self) -> bool:
        """True once the episode has ended."""
        return self.table.over

    def legal_moves(self) -> list[str]:
        """Return the legal moves of the seat to move; none after the end."""
        legal = [] if self.over else np.flatnonzero(self.table.legal()).tolist()
        return [self.game.view.move_text(self.table.state, action) for action in legal]

    def action(self, move: str) -> int:
        """Return the action of a legal move, in any spelling. Raises ValueError if it is not a move or illegal."""
        action = self.game.parse_move(self.table.state, move)
        if not is_legal(self.table.legal(), action):
            raise ValueError(f"{move!r:.80} is not a legal move; legal: {', '.join(self.legal_moves())}")
        return action

    def play(self, action: int) -> list[float]:
        """Play a legal action (unchecked), and deal if that is due; return what the action pays each seat."""
        self.actions.append(action)
        self.table.play(action)
        rewards = self.table.rewards
        if not self.table.over:
            self.deal()
        return rewards

    def after(self, num_actions: int) -> Episode:
        """Return another episode in which only the first actions were played; its later deals are the same."""
        again = Episode(self.game, self.options, *self._start)
        for action in self.actions[:num_actions]:
            again.play(action)
        return again

    def states_before(self, actions: Iterable[int]) -> Iterator[State]:
        """Play legal actions (unchecked); yield a copy of the State before each."""
        for action in actions:
            yield self.table.states[0].copy()
            self.play(action)

    def packs(self) -> list[Pack]:
        """Return the packs of all deals so far, as `set_deal` takes them."""
        return [self.game.view.dealt_pack(states[0]) for states in self.dealt]

    def moves(self) -> list[str]:
        """Return the actions so far in the game's notation."""
        return move_texts(Table(self.game, self.game.rules.new_state(self.options)), self.actions, self.packs())

    def outcome(self) -> dict[str, Any]:
        """Return `{"over", "reason", "scores"}`: why the episode ended, and a number for each seat so far."""
        reason, scores = self.game.view.outcome(self.table.state)
        return {"over": self.over, "reason": reason, "scores": scores}

    def record(self, outcome: dict[str, Any] | None = None) -> GameRecord:
        """Return the episode so far, hidden cards included; `outcome` takes the place of its own."""
        from card_envs.record import GameRecord  # brings pydantic along

        return GameRecord(
            game=self.game.name,
            version=self.game.version,
            options=as_json(self.options),
            deal=self.game.view.deal_text(self.packs()),
            moves=self.moves(),
            outcome=self.outcome() if outcome is None else outcome,
        )


def episode_of(record: GameRecord, game: Game, key: int = 0, seed: int | None = None) -> Episode:
    """Return the episode of a record before its first move.

    Args:
        record: of the game.
        game: as it is played now.
        key: of the stream of deals after those of the record, where there is no seed.
        seed: of these deals.

    Raises:
        ValueError: another version of the rules; options or a deal that do not fit the game.
    """
    if record.version != game.version:
        raise ValueError(f"record: version: {record.version}; these are the rules of {game.version}")
    return Episode(game, game.validated(record.options), record.deal, seed, key=key)


def read_episode(
    record: GameRecord, game: Game, num_moves: int | None = None, key: int = 0, seed: int | None = None
) -> tuple[Episode, list[int]]:
    """Return the episode of a record before its first move, and the moves as actions, which are legal.

    Args:
        record: of the game; its moves may be in any spelling that leaves no doubt.
        game: as it is played now.
        num_moves: number of moves that are read; None: all.
        key, seed: as for `episode_of`.

    Raises:
        ValueError: another version of the rules; options, a deal or a move that does not fit the game.
    """
    episode = episode_of(record, game, key, seed)
    for number, move in enumerate(record.moves[:num_moves]):
        if episode.over:
            raise ValueError(f"record: moves.{number}: the game is over before it")
        try:
            episode.play(episode.action(move))
        except ValueError as error:
            raise ValueError(f"record: moves.{number}: {error}") from None
    return episode.after(0), episode.actions


def move_texts(table: Table, actions: Iterable[int], packs: Iterable[Pack] = ()) -> list[str]:
    """Play legal actions (unchecked) on a table and return their texts: the notation needs the state of each.

    Args:
        table: is played on.
        actions: to play.
        packs: of the deals on the way.
    """
    given, texts = iter(packs), []
    for action in actions:
        while table.needs_deal:
            table.set_deal(next(given))
        texts.append(table.game.view.move_text(table.state, action))
        table.play(action)
    return texts


def played(game: Game, options: Any, seed: int, number: int, actions: Iterable[int]) -> Episode:
    """Return the episode that these legal actions make of a table's random deals."""
    episode = Episode(game, options, seed=seed, number=number)
    for action in actions:
        episode.play(action)
    return episode
