"""A game's compiled rules compared, move for move, with a referee written from the rules page alone.

A game brings two test modules, typed by the protocols below:

- `referee.py`: an independent implementation of the rules, slow and plain, sharing no code with the game: cards are
  strings, hands are lists.
- `facts.py`: options, packs and ways to play that reach every rule, and what the referee knows of a seat's view.

They are in `tests/games/<name>/` for the games of this package and in the folder `tests` of any other game's package;
`facts_of` and `referee_of` find them. For mypy to check them against the protocols, declare in their `__init__.py`:

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

LOOKS = 0.1  # probability of comparing a random seat's view; at the end of an episode all are compared


class Referee(Protocol):
    """One episode by the rules page. Between two deals, all public facts are still those of the finished one."""

    over: bool  # the episode has ended
    needs_deal: bool  # a deal is next
    seat: int  # to move
    reason: str  # why the episode ended, as in `View.outcome`; empty while it runs
    scores: list[int]  # of each seat so far, as in `View.outcome`
    rewards: list[float]  # of each seat for the last move
    fired: Counter[str]  # how often each rule applied: "HC-3", and branches of it as "HC-3 higher card second"

    def legal(self) -> list[str]:
        """Return the legal moves in the notation of the rules page; empty if no decision is due."""

    def play(self, move: str) -> None:
        """Play a legal move."""


R = TypeVar("R", bound=Referee)


class RefereeModule(Protocol[R]):
    """Required in a game's `referee.py`."""

    def Referee(self, options: Mapping[str, Any]) -> R:
        """Return an episode with these options, or their defaults, before its first deal. This is the class."""

    def deal_from(self, referee: R, dealt: Mapping[str, Any], given: Mapping[str, Any], seat: int) -> None:
        """Deal what was dealt at a table.

        Args:
            referee: one that needs a deal.
            dealt: the deal on the table as a custom deal of the rules page, complete and with one pack.
            given: the custom deal that it was made from; empty if the table dealt itself.
            seat: the seat to move at the table, for games in which chance decides it independently of the pack.
        """

    def trivial(self, referee: R) -> str:
        """Return the move of the yardstick player in the rules page."""


class Facts(Protocol[R]):
    """Required in a game's `facts.py`."""

    OPTIONS: list[dict[str, Any]]  # sets of options to play with; repeat those that reach most rules
    STYLES: dict[str, Callable[[R, str], float]]  # ways to play at random: the weight of a move
    STEADY: set[str]  # styles kept for a whole episode; others change between deals
    SHORT_EPISODES: dict[str, int]  # number that the quick test plays with each player: "random", "greedy"
    EPISODES: dict[str, int]  # number that the slow test plays
    BRANCHES: set[str]  # everything that a referee may count in `fired`
    ELSEWHERE: set[str]  # of these, the ones that random episodes do not reach but another test does
    GOLDEN: dict[int, str]  # by version: hash of random tables; add a line for a new version, never edit one
    COUNTING: set[str]  # functions that may use floating point; all others use integers only

    def rig(self, rng: Random, referee: R, style: str) -> dict[str, Any]:
        """Return a custom deal for the referee's next deal that reaches rare rules; empty: the table deals itself."""

    def seen(self, view: dict[str, Any]) -> dict[str, Any]:
        """Return a view in the form of `expected_view`: sets sorted."""

    def expected_view(self, referee: R, seat: int) -> dict[str, Any]:
        """Return the view that a seat should have, at a decision or at the end.

        Omitted keys are not compared.
        """

    def recount(
        self, view: dict[str, Any], reason: str, movers: list[int], seat: int
    ) -> dict[tuple[str, str], tuple[int, int]]:
        """Return the rates that comparisons show for one finished deal, computed from the view alone.

        Args:
            view: the last one of the seat.
            reason: why the episode ended.
            movers: the seat of each move.
            seat: the seat to compute them for.

        Returns:
            By row and column of `Rate`: numerator and denominator.
        """


class OptionalFacts(Protocol):
    """Optional in a game's `facts.py`."""

    RARE: set[str]  # options that shared tests combine with others only as in OPTIONS, to stay fast; default: none
    FROZEN_PRIORS: tuple[str, ...]  # of searches whose moves are in tests/frozen_moves.json; default: none


def home_of_tests(game: Game) -> str:
    """Return the package of a game's own tests."""
    inside = game.package.startswith("card_envs.games.")
    return f"tests.games.{game.name}" if inside else f"{game.package}.tests"


def facts_of(game: Game) -> Facts[Any]:
    """Return the module of a game's facts."""
    facts: Facts[Any] = import_module(f"{home_of_tests(game)}.facts")
    return facts


def referee_of(game: Game) -> RefereeModule[Any]:
    """Return the module of a game's referee."""
    module: RefereeModule[Any] = import_module(f"{home_of_tests(game)}.referee")
    return module


def _agree(what: str, rules: object, referee: object) -> None:
    """Assert that the rules and the referee agree."""
    assert rules == referee, f"{what}: {rules!r:.500} by the rules, {referee!r:.500} by the referee"


class RefereedEpisode:
    """One episode at a table and with the referee, as long as they agree."""

    def __init__(self, game: Game, player: str, number: int, rigged: bool = True) -> None:
        """Set up an episode, whose number determines options, style of a random player, and seed.

        With `rigged`, some packs come from `facts.rig`; else all from the table.
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
        """Deal at the table and with the referee."""
        view, table = self.game.view, self.table
        assert table.needs_deal
        custom_deal = self.facts.rig(self.rng, self.referee, self.style) if self.rigged else {}
        if custom_deal:
            table.set_deal(view.parse_deal(table.state, custom_deal)[0])
        else:
            table.deal()
        assert not table.needs_deal
        self.num_deals += 1
        dealt = view.deal_text([view.dealt_pack(table.state)])
        self.rules.deal_from(self.referee, dealt, custom_deal, table.seat)

    def compare(self) -> dict[str, int]:
        """Compare everything at this point; return the legal moves with their actions."""
        table, referee = self.table, self.referee
        _agree("over", table.over, referee.over)
        _agree("outcome", self.game.view.outcome(table.state), (referee.reason, referee.scores))
        if referee.over:
            for seat in range(self.game.rules.NUM_SEATS):
                self.compare_view(seat)
        if referee.over or referee.needs_deal:
            _agree("needs_deal", table.needs_deal, table.over or referee.needs_deal)
            assert not table.legal().any() and not referee.legal(), "legal: expected no moves where a deal is next"
            return {}
        _agree("needs_deal", table.needs_deal, False)
        _agree("seat", table.seat, referee.seat)
        actions = np.flatnonzero(table.legal()).tolist()
        texts = [self.game.view.move_text(table.state, action) for action in actions]
        moves = referee.legal()
        for source, listed in (("move_text", texts), ("the referee's legal moves", moves)):
            assert len(set(listed)) == len(listed), f"{source}: the same text twice: {' '.join(sorted(listed))}"
        _agree("legal moves", sorted(texts), sorted(moves))
        legal = dict(zip(texts, actions))
        vars(referee)["legal"] = lambda: moves  # cached until the next move: it takes most of the time
        _agree("trivial", texts[actions.index(table.bot_move("trivial"))], self.rules.trivial(referee))
        if self.rng.random() < LOOKS:
            self.compare_view(self.rng.randrange(self.game.rules.NUM_SEATS))
        return legal

    def compare_view(self, seat: int) -> None:
        """Compare a seat's view."""
        seen = self.facts.seen(self.game.view.view(self.table.state, seat))
        expected = self.facts.expected_view(self.referee, seat)
        for key, value in expected.items():
            _agree(f"{key} in the view of seat {seat}", seen[key], value)

    def play(self, move: str, action: int) -> None:
        """Play a legal move on both sides and compare the rewards."""
        assert self.game.view.parse_move(self.table.state, move) == action
        self.moves.append((self.table.seat, move))
        self.table.play(action)
        del vars(self.referee)["legal"]
        self.referee.play(move)
        _agree("rewards", self.table.rewards, [float(np.float32(reward)) for reward in self.referee.rewards])
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
        """Return the move of a scripted player, or a random one in the current style."""
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


def play_episode(game: Game, player: str, number: int, rigged: bool = True) -> RefereedEpisode:
    """Play an episode to its end; add its number, options and last moves to any exception."""
    episode = RefereedEpisode(game, player, number, rigged)
    try:
        episode.run()
    except Exception as error:
        error.add_note(f"{game.name}, {player} episode {number}, options {episode.options}, style {episode.style}")
        moves = " ".join(move for _, move in episode.moves[-60:])
        error.add_note(f"deal {episode.num_deals}; the last moves: {moves}")
        raise
    return episode
