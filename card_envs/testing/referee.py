"""A game's compiled rules against its referee, which was written from the rules page alone, move for move.

A game brings two modules of tests, typed by the protocols below:

- `referee.py`: the rules once more, slow and plain, sharing no code with the game: cards are strings, hands are lists.
- `facts.py`: options, packs and ways to play that reach every rule, and what the referee knows of a seat's view.

They lie in `tests/games/<name>/` for the games of this package and in the folder `tests` of any other game's package;
`facts_of` and `referee_of` find them. That they fit the protocols is checked by mypy: say so in their `__init__.py`,

    FACTS: Facts[referee.Referee] = facts
    REFEREE: RefereeModule[referee.Referee] = referee
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from importlib import import_module
from random import Random
from typing import Any, Protocol, TypeVar

import numpy as np

from card_envs.engine.table import Table
from card_envs.game import Game

LOOKS = 0.1  # how often a random seat's view is compared; when an episode ends all are


class Referee(Protocol):
    """One episode by the rules page. Between two deals all public facts are still those of the finished one."""

    over: bool  # the episode
    needs_deal: bool  # the next thing is a deal
    seat: int  # to move
    reason: str  # why the episode ended, as `View.outcome` says it; empty while it runs
    scores: list[int]  # of each seat so far, as `View.outcome` has them
    rewards: list[float]  # of each seat for the last move
    fired: Counter[str]  # how often each rule applied: "HC-3", and branches of it as "HC-3 higher card second"

    def legal(self) -> list[str]:
        """Return the legal moves in the notation of the rules page; none where no decision is due."""

    def play(self, move: str) -> None:
        """Play one of them."""


R = TypeVar("R", bound=Referee)


class RefereeModule(Protocol[R]):
    """What a game's `referee.py` offers."""

    def Referee(self, options: Mapping[str, Any]) -> R:
        """Return the class: an episode with these options before its first deal; what they leave out has its default."""

    def deal_from(self, referee: R, dealt: Mapping[str, Any], given: Mapping[str, Any], seat: int) -> None:
        """Deal what lies on a table.

        Args:
            referee: whose next thing is a deal.
            dealt: the deal on the table as a custom deal of the rules page, complete and of one pack.
            given: the custom deal that it was made from; empty where the table dealt itself.
            seat: to move at the table, for games in which chance decides on it beyond the pack.
        """

    def trivial(self, referee: R) -> str:
        """Return the move of the yardstick that the rules page defines."""


class Facts(Protocol[R]):
    """What a game's `facts.py` offers."""

    OPTIONS: list[dict[str, Any]]  # sets of options to play with, often those that reach most
    STYLES: dict[str, Callable[[R, str], float]]  # ways to play at random: how likely a move is, compared with others
    STEADY: set[str]  # styles that last a whole episode; others change between deals
    SHORT_EPISODES: dict[str, int]  # how many the quick test plays with each player: "random", "greedy"
    EPISODES: dict[str, int]  # how many the slow test plays
    BRANCHES: set[str]  # all that a referee may count in `fired`
    ELSEWHERE: set[str]  # of these, what random episodes do not reach and another test does
    GOLDEN: dict[int, str]  # by version: hash of what random tables show. Add a line for a new version, edit none
    COUNTING: set[str]  # functions that may compute in floating point; all others deal in whole numbers

    def rig(self, rng: Random, referee: R, style: str) -> dict[str, Any]:
        """Return a custom deal for the referee's next deal that reaches rare rules; empty: the table deals itself."""

    def seen(self, view: dict[str, Any]) -> dict[str, Any]:
        """Return a view in the form of `expected_view`: sets sorted."""

    def expected_view(self, referee: R, seat: int) -> dict[str, Any]:
        """What a seat should see, at a decision or at the end; keys of the view that are left out are not compared."""

    def recount(
        self, view: dict[str, Any], reason: str, movers: list[int], seat: int
    ) -> dict[tuple[str, str], tuple[int, int]]:
        """Return the figures that comparisons show of one finished deal, counted from the view alone.

        Args:
            view: the last one of the seat.
            reason: why the episode ended.
            movers: who made each move.
            seat: whose figures.

        Returns:
            By row and column of `Rate`: the count, and what it is divided by.
        """


def home_of_tests(game: Game) -> str:
    """Return the package of a game's own tests."""
    inside = game.package.startswith("card_envs.games.")
    return f"tests.games.{game.name}" if inside else f"{game.package}.tests"


def facts_of(game: Game) -> Facts[Any]:
    facts: Facts[Any] = import_module(f"{home_of_tests(game)}.facts")
    return facts


def referee_of(game: Game) -> RefereeModule[Any]:
    module: RefereeModule[Any] = import_module(f"{home_of_tests(game)}.referee")
    return module


class Episode:
    """One episode at a table and before the referee, for as long as they agree."""

    def __init__(self, game: Game, player: str, number: int, rigged: bool = True) -> None:
        """All about the episode follows from its number: options, the style of a random player, the seed.

        `rigged`: some packs come from `facts.rig`; else all from the table.
        """
        self.game = game
        self.player = player
        self.rigged = rigged
        self.rng = Random(f"{game.name} {player} {number}")
        self.rules = referee_of(game)
        self.facts = facts_of(game)
        self.options = self.facts.OPTIONS[number % len(self.facts.OPTIONS)]
        self.styles = list(self.facts.STYLES)
        self.style = self.styles[(number + number // len(self.facts.OPTIONS)) % len(self.styles)]
        self.referee: Referee = self.rules.Referee(self.options)
        self.table = Table(game, game.rules.new_state(game.options(**self.options)))
        self.seed = self.rng.getrandbits(64)
        self.table.seed(self.seed)
        self.num_deals = 0
        self.moves: list[tuple[int, str]] = []
        self.returns = [0.0] * game.rules.NUM_SEATS

    def deal(self) -> None:
        """Deal at the table and before the referee."""
        view, table = self.game.view, self.table
        assert table.needs_deal
        given = self.facts.rig(self.rng, self.referee, self.style) if self.rigged else {}
        if given:
            table.set_deal(view.parse_deal(table.state, given)[0])
        else:
            table.deal()
        assert not table.needs_deal
        self.num_deals += 1
        dealt = view.deal_text([view.dealt_pack(table.state)])
        self.rules.deal_from(self.referee, dealt, given, table.seat)

    def compare(self) -> dict[str, int]:
        """Compare everything at this point; returns the legal moves with their actions."""
        table, referee = self.table, self.referee
        assert table.over == referee.over
        assert self.game.view.outcome(table.state) == (referee.reason, referee.scores)
        if referee.over:
            for seat in range(self.game.rules.NUM_SEATS):
                self.compare_view(seat)
        if referee.over or referee.needs_deal:
            assert table.needs_deal == (table.over or referee.needs_deal)
            assert not table.legal().any() and not referee.legal()
            return {}
        assert not table.needs_deal
        assert table.seat == referee.seat
        actions = np.flatnonzero(table.legal()).tolist()
        legal = {self.game.view.move_text(table.state, action): action for action in actions}
        moves = referee.legal()
        assert len(legal) == len(actions) and len(set(moves)) == len(moves)
        assert legal.keys() == set(moves)
        vars(referee)["legal"] = lambda: moves  # until the next move: working it out takes most of the time
        assert table.bot_move("trivial") == legal[self.rules.trivial(referee)]
        if self.rng.random() < LOOKS:
            self.compare_view(self.rng.randrange(self.game.rules.NUM_SEATS))
        return legal

    def compare_view(self, seat: int) -> None:
        """Compare what a seat sees."""
        seen = self.facts.seen(self.game.view.view(self.table.state, seat))
        expected = self.facts.expected_view(self.referee, seat)
        assert {key: seen[key] for key in expected} == expected

    def play(self, move: str, action: int) -> None:
        """Play a legal move on both sides and compare the rewards."""
        assert self.game.view.parse_move(self.table.state, move) == action
        self.moves.append((self.table.seat, move))
        self.table.play(action)
        del vars(self.referee)["legal"]
        self.referee.play(move)
        assert self.table.rewards == [float(np.float32(reward)) for reward in self.referee.rewards]
        self.returns = [total + reward for total, reward in zip(self.returns, self.referee.rewards)]

    def run(self) -> None:
        """Play to the end."""
        while not self.referee.over:
            if self.referee.needs_deal:
                if self.num_deals and self.style not in self.facts.STEADY and self.rng.random() < 0.1:
                    self.style = self.rng.choice(self.styles)
                self.deal()
            legal = self.compare()
            while legal:
                self.play(*self.choose(legal))
                legal = self.compare()

    def choose(self, legal: dict[str, int]) -> tuple[str, int]:
        """Return a move of the game's scripted player, or a random one in the style of the moment."""
        moves = list(legal)
        if self.player != "random":
            action = self.table.bot_move(self.player)
            move = next((move for move in moves if legal[move] == action), "")
            assert move, f"{self.player} chose {action}, which is illegal"
        elif len(moves) == 1:
            move = moves[0]
        else:
            weight = self.facts.STYLES[self.style]
            move = self.rng.choices(moves, [weight(self.referee, move) for move in moves])[0]
        return move, legal[move]


def play_episode(game: Game, player: str, number: int, rigged: bool = True) -> Episode:
    """Play an episode to its end; an exception tells which one, and the last moves."""
    episode = Episode(game, player, number, rigged)
    try:
        episode.run()
    except Exception as error:
        error.add_note(f"{game.name}, {player} episode {number}, options {episode.options}, style {episode.style}")
        moves = " ".join(move for _, move in episode.moves[-60:])
        error.add_note(f"deal {episode.num_deals}; the last moves: {moves}")
        raise
    return episode
